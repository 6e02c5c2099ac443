"""The packet engine on a dumbbell with access links for each flow: packet hops a second, and against ns-3."""

from collections.abc import Iterator
from statistics import median
from time import perf_counter

from packets import timed_ns3
from rows import Row, span

from netctrl.laws.aqm.codel import CodelQueue
from netctrl.laws.aqm.pie import PieQueue
from netctrl.laws.aqm.records import DropTailQueue, Queue
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.sim.packet.problem import packet_problem
from netctrl.sim.packet.run import run_packets
from netctrl.sim.packet.state import META

SPEED = {"droptail": 1e7, "pie": 5e6, "codel": 5e6}
"""Packet hops a second."""
RATIO = 25.0
"""Times as fast as ns-3."""
_FLOWS, _TURNS = 10, 5


def rows() -> Iterator[Row]:
    yield speed("reno", DropTailQueue())
    yield speed("cubic", DropTailQueue())
    yield speed("reno", PieQueue())
    yield speed("reno", CodelQueue())


def dumbbell(sender: str, queue: Queue) -> Scenario:
    """Ten flows, six links a round trip each: 1 Gbit/s at the edges, 100 Mbit/s between."""
    edges, flows = [], []
    for k in range(_FLOWS):
        ends = {"in": (f"s{k}", "l"), "out": ("r", f"d{k}"), "nack": (f"d{k}", "r"), "ack": ("l", f"s{k}")}
        for name, (source, target) in ends.items():
            edges.append(Link(id=f"{name}{k}", source=source, target=target, capacity=1e9, delay=1e-3, buffer=1e6))
        there, back = (f"in{k}", "there", f"out{k}"), (f"nack{k}", "back", f"ack{k}")
        flows.append(Flow(id=f"f{k}", path=there, ack_path=back, rtt=0.04, count=1, start=(0.0, 1.0), sender=sender))
    there = Link(id="there", source="l", target="r", capacity=1e8, delay=8e-3, buffer=5e5, queue=queue)
    back = Link(id="back", source="r", target="l", capacity=1e8, delay=8e-3, buffer=5e5)
    return Scenario(
        name="dumbbell",
        duration=20.0,
        links=(there, back, *edges),
        flows=tuple(flows),
        packet_size=1500.0,
        interval=1.0,
    )


def speed(sender: str, queue: Queue) -> Row:
    """Hops are packets put on a wire: data and acknowledgements, on all six links of a round trip."""
    scenario, kind = dumbbell(sender, queue), queue.__struct_config__.tag
    run_packets(packet_problem(scenario), 10.0)  # compiled
    ours, hops = [], 0
    theirs = [timed_ns3(scenario).wall_s]
    for _ in range(_TURNS):
        ready, began = packet_problem(scenario), perf_counter()
        state = run_packets(ready, 10.0)
        ours.append(perf_counter() - began)
        hops = int(state.meta[META["hops"]])
    theirs.append(timed_ns3(scenario).wall_s)
    rate, ratio = hops / median(ours), median(theirs) / median(ours)
    return Row(
        f"packet engine, {hops / 1e6:.3g}e6 hops of a dumbbell, {sender} over {kind}",
        span(ours),
        "ns-3",
        span(theirs),
        f"{rate / 1e6:.3g}e6 hops/s; {ratio:.3g}",
        f">= {SPEED[kind] / 1e6:g}e6 hops/s and {RATIO:g}",
        rate >= SPEED[kind] and ratio >= RATIO,
    )
