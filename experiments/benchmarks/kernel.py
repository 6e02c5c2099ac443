"""The real kernel in virtual time, boot included: against ns-3 on the same scenario, and against real time."""

from collections.abc import Iterator
from statistics import median
from time import perf_counter

from packets import timed_ns3
from rows import Row, span

import netctrl
from netctrl.kernel.scenarios.lacks import machine_lacks
from netctrl.laws.aqm.pie import PieQueue
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow

RATIO = 4.0
"""Times as fast as ns-3."""
LIMITS = {"10Mbit": (30.0, 2.0), "100Mbit": (30.0, 4.0), "1Gbit": (10.0, 10.0)}
"""Rate -> duration of the scenario, longest wall time [s]."""
_TURNS = 3


def rows() -> Iterator[Row]:
    lacking = machine_lacks()
    if lacking is not None:
        print(f"without the kernel in virtual time: there is no {lacking}")
        return
    yield against_ns3()
    for rate in LIMITS:
        for count in (5, 100):
            yield against_real_time(rate, count)


def flows_over_pie(rate: str, count: int, duration: float) -> Scenario:
    """Cubic flows of 20 ms over one link with PIE."""
    line = Link(id="line", source="a", target="b", capacity=rate, delay="10ms", buffer="5MB", queue=PieQueue())
    flows = Flow(id="flows", path=("line",), rtt="20ms", count=count, sender="cubic", start=("0s", "1s"))
    return Scenario(name="speed", links=(line,), flows=(flows,), duration=duration, interval="100ms", packet_size=1500)


def timed(scenario: Scenario, engine: str, turns: int) -> list[float]:
    found = []
    for _ in range(turns):
        began = perf_counter()
        netctrl.simulate(scenario, engine)
        found.append(perf_counter() - began)
    return found


def against_ns3() -> Row:
    """ns-3 without its start, as `timed_ns3` has it; the kernel with its boot; the packet engine beside them."""
    scenario = flows_over_pie("100Mbit", 5, 30.0)
    theirs = [timed_ns3(scenario).wall_s]
    ours = timed(scenario, "kernel", _TURNS)
    theirs.append(timed_ns3(scenario).wall_s)
    packets = timed(scenario, "packet", 1 + _TURNS)[1:]
    ratio = median(theirs) / median(ours)
    return Row(
        "Linux in virtual time, 5 Cubic flows over PIE, 100 Mbit/s, 30 s",
        span(ours),
        f"ns-3 (packet engine: {span(packets)})",
        span(theirs),
        f"{ratio:.3g}",
        f">= {RATIO:g}",
        ratio >= RATIO,
    )


def against_real_time(rate: str, count: int) -> Row:
    duration, limit = LIMITS[rate]
    ours = timed(flows_over_pie(rate, count, duration), "kernel", _TURNS)
    return Row(
        f"Linux in virtual time, {count} Cubic flows over PIE, {rate}/s, {duration:g} s",
        span(ours),
        "real time",
        f"{duration:g} s",
        f"{duration / median(ours):.3g}",
        f"at most {limit:g} s",
        median(ours) <= limit,
    )
