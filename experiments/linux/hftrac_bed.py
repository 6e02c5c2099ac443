"""One run of HFTraC's testbed in the kernel: queues, sources, agents, and what was lost and waited meanwhile."""

import os
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np
from linux.hftrac_agents import AGENTS, BURST, configs, controlled, law_table, start_agents, urge_children, urgently
from linux.hftrac_network import FRAME, MEGA, PROPAGATION, STREAM, TELLER, Case, built, paths, scenario, slower
from linux.stream import TAP, Streamed, round_trips, send_frames, tap
from linux.testbed import Job, Testbed
from linux.traffic import Sent, UdpSource, absorb_tcp, open_tcp_sink, open_udp_sink, send_udp

from netctrl.core.units import BITS_PER_BYTE
from netctrl.kernel.scenarios.traffic import series_times
from netctrl.laws.link_rate.routing import routing
from netctrl.linux.export.agent_law import LinkRateTable
from netctrl.linux.kernel.messages import ROOT, classid
from netctrl.linux.kernel.netlink import RouteSocket
from netctrl.linux.kernel.qdisc import FifoOptions, HtbClassOptions, HtbOptions
from netctrl.linux.pacing.tcp import TcpRun, send_tcp
from netctrl.model.network import Network
from netctrl.scenario.network.graph import graph_of
from netctrl.scenario.scenario import Scenario
from netctrl.sim.network.demands import DemandSource

WARM_UP = 3.0
"""Left out; agents find each other's clocks in it [s]."""
HANDLE, LEAF = 1 << 16, 2 << 16
UDP_PORT, TCP_PORT = 9000, 9001
AHEAD = 2.0
"""From the agents' start to the first packet [s]."""
AFTER = 0.5
BEFORE = 0.3
"""From when children are urgent to the first packet [s]."""
LOOK_AT_TCP_S = 0.05
QUANTILES = (5.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9)
"""Of round trips [%]."""
STREAMED = "14"
TCP_FIGURES = ("13", STREAMED)
TURNS = 4
"""Packets by whose turns a demand is split."""


class Seen(NamedTuple):
    """Counters of the links, looked at again and again."""

    times_s: np.ndarray
    """(n,) CLOCK_MONOTONIC"""
    values: np.ndarray
    """(n, L, 3) bytes that left, bytes that wait, packets dropped"""


def measured(
    case: Case, run: int, seconds: float, *, warmup: float = WARM_UP, phases: np.random.Generator | None = None
) -> dict[str, float]:
    """A case with the traffic of a run: run r is the same whatever the way, and as the simulator's.

    With `phases` each agent begins its intervals at a time that is drawn, uniformly within an interval.
    """
    requested = scenario(case, seconds, warmup)
    network = graph_of(requested)
    nominal = dict(zip((link.id for link in network.links), routing(network).load, strict=True))
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="netctrl-")))
        bed = held.enter_context(Testbed(built(network, delayed=case.figure != STREAMED)))
        for link in network.links:
            rate = link.capacity if case.way != "static" else min(case.value * nominal[link.id], link.capacity)
            shape(bed, link.id, rate)
        words = word_ways(bed, network)
        sources = udp_sources(bed, requested, network, run)  # before time counts: the first compiles
        ended = None
        whole = AHEAD + requested.duration + AFTER
        if case.way in AGENTS:
            key = folder / "key"
            key.write_bytes(os.urandom(32))
            key.chmod(0o600)
            table = prepared(case)
            desired = configs(case, network, controlled(bed, network, nominal), table, words, key)
            drawn = () if phases is None else phases.uniform(0.0, case.interval, len(desired)).tolist()
            ended = start_agents(bed, desired, whole, drawn)
        begin = time.monotonic() + AHEAD
        seen, sent, tcp = traffic(held, bed, case, requested, network, sources, begin)
        counted = [] if ended is None else ended()
    found = figures(case, requested, network, seen, begin + requested.warmup, begin + requested.duration)
    if isinstance(tcp, Streamed):
        found |= of_stream(tcp, begin + requested.warmup, begin + requested.duration)
    elif tcp is not None:
        found |= of_tcp(tcp, begin + requested.warmup, begin + requested.duration)
    early, late = (1e3 * max(each.latest_s for each in part) for part in (sent[::2], sent[1::2]))
    found |= {"warm_up_late_ms": early, "sender_late_ms": late, "refused": float(sum(each.dropped for each in sent))}
    return found | {f"agent_{name}": float(max(each[name] for each in counted)) for name in (counted or [{}])[0]}


def prepared(case: Case) -> LinkRateTable:
    """The law of a case with agents, which is designed once."""
    return law_table(case.figure, case.x, case.way, case.value)


def shape(bed: Testbed, link: str, rate: float) -> None:
    """An HTB with one class in the place of the testbed's token bucket filter, which is full after each change."""
    wire, index, leaf = bed.wires[link], bed.index(link), classid(HANDLE, 1)
    with bed.route_socket(wire.link.source) as route:
        route.delete_qdisc(index, ROOT, HANDLE)
        route.add_qdisc(index, ROOT, HANDLE, "htb", HtbOptions(1).encode())
        route.add_class(index, HANDLE, leaf, "htb", HtbClassOptions.desired(rate, BURST).encode())
        route.add_qdisc(index, leaf, LEAF, "bfifo", FifoOptions(wire.limit_bytes).encode())


def word_ways(bed: Testbed, network: Network) -> dict[str, str]:
    """An address a node that all others reach past the controlled links: words never wait in their queues."""
    nodes = dict.fromkeys(node for link in network.links for node in (link.source, link.target))
    addresses = {node: bed.path([f"{node}.from"]) for node in nodes} | {TELLER: bed.address(TELLER)}
    for node in nodes:
        wire, lines = bed.wires[f"{node}.to"], []
        for other, address in addresses.items():
            if other != node:
                lines.append(f"route replace {address}/32 via {wire.next_hop} dev {wire.interface}\n")
        bed.program(node, ["ip", "-batch", "-"], "".join(lines))
    return addresses


def udp_sources(bed: Testbed, requested: Scenario, network: Network, run: int) -> dict[str, list[UdpSource]]:
    """By demand: for each of its ways one source of what is left out and one of what counts, which tell each how late
    they were."""
    rates = DemandSource(requested, range(run, run + 1)).draw(requested.steps)[:, :, 0]
    begins, found = requested.interval * np.arange(requested.steps), {}
    for number, demand in enumerate(network.demands):
        packets = series_times(begins, rates[:, number], FRAME, requested.duration)
        turn, first, sources = np.arange(len(packets)) % TURNS, 0, []
        for links, share in paths(network)[demand.id]:
            mine, address = packets[(turn >= first) & (turn < first + share)], bed.path(links)
            first += share
            for part in (mine[mine < requested.warmup], mine[mine >= requested.warmup]):
                sources.append(UdpSource(address, UDP_PORT, part, FRAME))
        found[demand.id] = sources
    return found


def traffic(
    held: ExitStack,
    bed: Testbed,
    case: Case,
    requested: Scenario,
    network: Network,
    sources: dict[str, list[UdpSource]],
    begin: float,
) -> tuple[Seen, list[Sent], TcpRun | Streamed | None]:
    """Send all, and look at queues until it is over. In Figs. 13 and 14 the first demand is TCP."""
    end = begin + requested.duration
    with bed.inside(network.demands[0].target):
        held.enter_context(open_udp_sink(UDP_PORT))  # never read: queues count what arrives
    with_tcp = case.figure in TCP_FIGURES
    sending = [bed.start("H2", send_udp, sources["p2"], begin)]
    if not with_tcp:
        sending.append(bed.start("H1", send_udp, sources["p1"], begin))
    time.sleep(max(begin - BEFORE - time.monotonic(), 0.0))
    urge_children()  # not before: what they prepare is heavy, and would keep another testbed's from their work
    transfer = tcp(held, bed, case, requested, network, begin) if with_tcp else None
    seen = urgently(looks, bed, network, begin, end, case.interval)
    sent = [each for job in sending for each in job.result(30.0)]
    return seen, sent, None if transfer is None else transfer.result(60.0)


def tcp(held: ExitStack, bed: Testbed, case: Case, requested: Scenario, network: Network, begin: float) -> Job:
    """One flow of TCP Cubic over the first demand's way, from the beginning on; in Fig. 14 a video."""
    target = network.demands[0].target
    with bed.inside(target):
        listener = held.enter_context(open_tcp_sink(TCP_PORT))
    # whole segments of several frames would be one packet to an HTB
    bed.program("H1", ["ip", "link", "set", "dev", bed.interface("e1"), "gso_max_segs", "1"])
    links = paths(network)["p1"][0][0]
    address = bed.path(links)
    bed.start(target, absorb_tcp, listener, begin + requested.duration + 30.0, 1)
    if case.figure == STREAMED:
        tap(bed, "e1")
        delay = 2 * len(links) * PROPAGATION  # of both ways, where acknowledgements leave
        netem = ["netem", "delay", f"{1e3 * delay:g}ms", "limit", "10000"]
        bed.program(target, ["tc", "qdisc", "replace", "dev", bed.interface(f"{target}.to"), "root", *netem])
    time.sleep(max(begin - time.monotonic(), 0.0))
    if case.figure == STREAMED:
        rate = STREAM * MEGA / slower(case.figure)
        return bed.start("H1", urgently, send_frames, address, TCP_PORT, requested.duration, bit_per_s=rate)
    options = {"congestion": "cubic", "every_s": LOOK_AT_TCP_S}
    return bed.start("H1", urgently, send_tcp, address, TCP_PORT, requested.duration, **options)


def looks(bed: Testbed, network: Network, begin: float, end: float, interval: float) -> Seen:
    """At all links' queues, once an interval."""
    nodes: dict[str, dict[int, int]] = {}
    for number, link in enumerate(network.links):
        nodes.setdefault(link.source, {})[bed.index(link.id)] = number
    times: list[float] = []
    rows: list[np.ndarray] = []
    with ExitStack() as held:
        routes: Mapping[str, RouteSocket] = {node: held.enter_context(bed.route_socket(node)) for node in nodes}
        for number in range(int((end - begin) / interval + 1e-9) + 1):
            time.sleep(max(begin + number * interval - time.monotonic(), 0.0))
            values = np.zeros((len(network.links), 3))
            times.append(time.monotonic())
            for node, of in nodes.items():
                for queue in routes[node].qdiscs():
                    if queue.index in of and queue.parent == ROOT:
                        c = queue.counters
                        values[of[queue.index]] = c.bytes, c.backlog_bytes, c.drops
            rows.append(values)
    return Seen(np.array(times), np.array(rows))


def figures(
    case: Case, requested: Scenario, network: Network, seen: Seen, begin: float, end: float
) -> dict[str, float]:
    """Of what counts: loss of what came into the hosts' links, mean queue of a link, rate that arrived."""
    counted = (seen.times_s >= begin) & (seen.times_s <= end)
    values, seconds = seen.values[counted], float(np.ptp(seen.times_s[counted]))
    change = values[-1] - values[0]
    lost = FRAME * change[:, 2]
    ids = [link.id for link in network.links]
    entry = [ids.index(name) for name in ("e1", "e2")]
    exits = [ids.index("s3d")] if "s3d" in ids else [ids.index(name) for name in ("s13", "s23")]
    came = float((change[entry, 0] + change[entry, 1] + lost[entry]).sum())
    # weights: looks that came late stand for a longer time
    step = np.gradient(seen.times_s[counted])
    queue = (values[:, :, 1] * step[:, None]).sum(axis=0) / step.sum()
    return {
        "loss": 100.0 * float(lost.sum()) / came,
        "queue_kbit": float(queue.mean()) * BITS_PER_BYTE / 1e3,
        "offered_mbit": came * BITS_PER_BYTE / seconds / MEGA,
        "arrived_mbit": float(change[exits, 0].sum()) * BITS_PER_BYTE / seconds / MEGA,
        "looks": float(counted.sum()),
        **{f"lost_{name}": 100.0 * float(each) / came for name, each in zip(ids, lost, strict=True)},
        **{f"queue_{name}": float(each) * BITS_PER_BYTE / 1e3 for name, each in zip(ids, queue, strict=True)},
    }


def of_tcp(run: TcpRun, begin: float, end: float) -> dict[str, float]:
    """Goodput of what was acknowledged [Mbit/s] and the kernel's smoothed round trip [ms]."""
    arrived = np.interp([begin, end], run.times_s, run.column("arrived_bytes"))
    counted = (run.times_s >= begin) & (run.times_s <= end)
    counted |= run.times_s == run.times_s[run.times_s <= end].max(initial=run.times_s[0])  # one, however late
    return {
        "goodput": float(np.diff(arrived)[0]) * BITS_PER_BYTE / (end - begin) / MEGA,
        "round_trip_ms": 1e3 * float(run.column("rtt_s")[counted].mean()),
        "sent_again": float(run.infos[-1].total_retrans),
    }


def of_stream(run: Streamed, begin: float, end: float) -> dict[str, float]:
    """Round trips of the packets that were first sent in a time [ms], from TCP on and from the host's link on; packets
    that were sent again, per hundred [%]."""
    found: dict[str, float] = {"frame_late_ms": 1e3 * run.late_s}
    for name, place in (("packet", TAP), ("wire", "e1")):
        trips = round_trips(run.seen, place)
        counted = (trips.sent_s >= begin) & (trips.sent_s < end)
        again = float(((trips.again_s >= begin) & (trips.again_s < end)).sum())
        values = 1e3 * trips.round_trips_s[counted]
        found |= {
            f"{name}s": float(counted.sum()),
            f"{name}_rtt_ms": float(values.mean()),
            f"{name}_again": 100.0 * again / float(counted.sum()),
            **{f"{name}_rtt_{q:g}_ms": float(np.percentile(values, q)) for q in QUANTILES},
        }
    return found
