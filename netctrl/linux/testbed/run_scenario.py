"""Run a scenario of links and flows in the kernel of this machine in real time: build, run, measure, remove."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from netctrl.linux.testbed.bed import Testbed
from netctrl.linux.testbed.netns_process import Job
from netctrl.linux.testbed.plan import default_burst
from netctrl.linux.testbed.scenario import ScenarioPlan, TcpFlow, UdpHost
from netctrl.linux.testbed.traffic import (
    FRAME_OVERHEAD,
    Received,
    UdpSource,
    absorb_tcp,
    open_tcp_sink,
    open_udp_sink,
    receive_udp,
    send_tcp,
    send_udp,
)
from netctrl.model.io.provenance import Provenance
from netctrl.scenario.result import Result

if TYPE_CHECKING:
    from netctrl.linux.kernel.netlink import RouteSocket

__all__ = ["run_scenario"]

_TCP_PORT, _UDP_PORT = 5001, 5002
_TCP_HEADERS = 14 + 20 + 20  # Ethernet, IPv4 and TCP; TCP's time stamps are included in MAXSEG [byte]
_SO_SNDBUFFORCE = 32  # from linux/socket.h; Python has no name for it
_SEND_BUFFER, _UNSENT = 16 * 2**20, 1 << 17  # so that no socket limits a flow [byte]
_LEAD_S, _LEAD_EACH_S = 0.5, 0.02  # time from the first process to the first packet
_LOOKS = 4  # readings of TCP_INFO per interval
_LEAST_LOOK_S = 0.01
_GRACE_S = 0.2  # for packets in flight at the end
_PATIENCE_S = 60.0
_TURN_S = 0.1


class _Change(NamedTuple):
    """A link's new rate."""

    link: int
    rate_bit_per_s: float
    burst_bytes: int
    limit_bytes: int


class _Counters(NamedTuple):
    """Counters of a link's queue at the time of a query."""

    at_s: float
    bytes: int
    packets: int
    drops: int
    backlog_bytes: int


class _Found(NamedTuple):
    """Results of the processes of a run."""

    links: np.ndarray
    """(n, L, 5) rows of `_Counters`."""
    tcp: tuple[np.ndarray, ...]
    """(n, 3) rows of each flow: time of the reading, bytes arrived, smoothed round trip [s]."""
    udp: tuple[dict[int, Received], ...]
    """Arrivals at each node where UDP ends, by group."""


def run_scenario(plan: ScenarioPlan, provenance: Provenance, progress: Callable[[float], None] | None = None) -> Result:
    """Build the testbed of a plan, run it for the scenario's time, and remove it in any case.

    Parameters
    ----------
    plan : ScenarioPlan
    provenance : Provenance
        For the result.
    progress : callable, optional
        Called repeatedly with the elapsed share of the time, from 0 to 1.

    Raises
    ------
    InvalidValue
        As in `netctrl.linux.testbed.plan.plan_testbed`.
    NetctrlError
        Missing privilege or kernel feature, a flow that can't connect, a process that fails.
    """
    with ExitStack() as held:
        bed = held.enter_context(Testbed(plan.network, routed=False, segment=True))
        jobs, begin = _started(bed, plan, held)
        answers = _waited(jobs, begin, plan.scenario.duration, progress)
    count = len(plan.tcp)
    found = _Found(answers[0], tuple(answers[1 : 1 + count]), tuple(answers[1 + count + len(plan.udp) :]))
    return _result(plan, found, begin, provenance)


def _started(bed: Testbed, plan: ScenarioPlan, held: ExitStack) -> tuple[list[Job], float]:
    """Jobs with results: of the links, of each TCP flow, of each UDP host, of each node where UDP ends.

    The start of the scenario by CLOCK_MONOTONIC is returned with them.
    """
    scenario = plan.scenario
    ways = [(bed.path(flow.path), bed.path(flow.back)) for flow in plan.tcp]
    targets = [bed.path(host.path) for host in plan.udp]
    absorbing = {node: _held(bed, held, node, open_tcp_sink, _TCP_PORT) for node in _ends(bed, plan.tcp)}
    receiving = {node: _held(bed, held, node, open_udp_sink, _UDP_PORT) for node in _ends(bed, plan.udp)}
    routes = [held.enter_context(bed.route_socket(link.source)) for link in scenario.links]
    begin = time.monotonic() + _LEAD_S + _LEAD_EACH_S * (len(plan.tcp) + len(plan.udp) + len(receiving))
    end = begin + scenario.duration
    for node, listener in absorbing.items():
        bed.start(node, absorb_tcp, listener, end + _PATIENCE_S)
    indices = [bed.index(link.id) for link in scenario.links]
    jobs = [bed.start(scenario.links[0].source, _watch, routes, indices, _agenda(bed, plan), begin)]
    every = max(scenario.interval / _LOOKS, _LEAST_LOOK_S)
    for flow, way in zip(plan.tcp, ways, strict=True):
        jobs.append(bed.start(_host(bed, flow), _send, flow, way, int(scenario.traffic.packet_size), begin, every))
    for host, target in zip(plan.udp, targets, strict=True):
        frame = int(scenario.traffic.packet_size)
        sources = [UdpSource(target, _UDP_PORT, each, frame, host.group) for each in host.times_s]
        jobs.append(bed.start(_host(bed, host), send_udp, sources, begin))
    jobs += [bed.start(node, receive_udp, [sink], end + _GRACE_S) for node, sink in receiving.items()]
    return jobs, begin


def _host(bed: Testbed, flow: TcpFlow | UdpHost) -> str:
    return bed.wire(flow.path[0]).link.source


def _ends(bed: Testbed, flows: Sequence[TcpFlow | UdpHost]) -> list[str]:
    """Nodes where flows end, without repetition."""
    return list(dict.fromkeys(bed.wire(flow.path[-1]).link.target for flow in flows))


def _held(bed: Testbed, held: ExitStack, node: str, opened: Callable[[int], socket.socket], port: int) -> socket.socket:
    """Sink at a node, open until the end."""
    with bed.inside(node):
        return held.enter_context(opened(port))


def _waited(jobs: Sequence[Job], begin: float, duration: float, progress: Callable[[float], None] | None) -> list:
    """Results in the order of the jobs; an exception of a job is raised at once."""
    while (passed := time.monotonic() - begin) < duration:
        if progress is not None:
            progress(max(passed, 0.0) / duration)
        for job in jobs:
            if not job.running():
                job.result(0.0)
        time.sleep(min(_TURN_S, duration - passed))
    answers = [job.result(_PATIENCE_S) for job in jobs]
    if progress is not None:
        progress(1.0)
    return answers


def _agenda(bed: Testbed, plan: ScenarioPlan) -> list[tuple[float, _Change | None]]:
    """Times of the links' readings (None), and of their changes of rate."""
    scenario = plan.scenario
    row = {link.id: k for k, link in enumerate(scenario.links)}
    found: list[tuple[float, _Change | None]] = [(float(at), None) for at in _edges(plan)]
    for change in scenario.network.changes:
        if change.capacity is not None:
            limit = bed.wire(change.link).limit_bytes
            new = _Change(row[change.link], change.capacity, default_burst(change.capacity), limit)
            found.append((change.at, new))
    return sorted(found, key=lambda each: each[0])


def _edges(plan: ScenarioPlan) -> np.ndarray:
    """Ends of the intervals, from 0 on [s], (T + 1,)."""
    interval = plan.scenario.interval
    return interval * np.arange(int(plan.scenario.duration / interval * (1.0 + 1e-12)) + 1)


def _watch(
    routes: Sequence[RouteSocket],
    indices: Sequence[int],
    agenda: Sequence[tuple[float, _Change | None]],
    begin: float,
) -> np.ndarray:
    """Counters of all links' queues at the times of the agenda, or as soon after as possible, (n, L, 5)."""
    rows = []
    for at, change in agenda:
        _sleep_until(begin + at)
        if change is None:
            rows.append([_look(route, index) for route, index in zip(routes, indices, strict=True)])
        else:
            route, index = routes[change.link], indices[change.link]
            queue = route.qdisc(index)
            route.change_tbf(index, queue.parent, queue.handle, *change[1:])
    return np.array(rows, dtype=float)


def _look(route: RouteSocket, index: int) -> _Counters:
    before = time.monotonic()
    seen = route.qdisc(index).counters
    return _Counters((before + time.monotonic()) / 2.0, seen.bytes, seen.packets, seen.drops, seen.backlog_bytes)


def _send(flow: TcpFlow, way: tuple[str, str], frame: int, begin: float, every: float) -> np.ndarray:
    """Readings of a flow as in `_Found`, (n, 3)."""
    _sleep_until(begin + flow.start_s)
    left = max(begin + flow.stop_s - time.monotonic(), _LEAST_LOOK_S)
    prepare = partial(_prepare, home=way[1], segment=frame - _TCP_HEADERS)
    run = send_tcp(way[0], _TCP_PORT, left, congestion=flow.congestion, every_s=every, prepare=prepare)
    return np.column_stack([run.times_s, run.column("arrived_bytes"), run.column("rtt_s")])


def _prepare(connection: socket.socket, home: str, segment: int) -> None:
    """Set the segment size, the address for acknowledgements, and a window not limited by buffers."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, segment)
    connection.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, _SEND_BUFFER)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT)
    connection.bind((home, 0))


def _sleep_until(at: float) -> None:
    time.sleep(max(at - time.monotonic(), 0.0))


def _result(plan: ScenarioPlan, found: _Found, begin: float, provenance: Provenance) -> Result:
    """Result with counters interpolated linearly between readings, from 0 at the start of the scenario."""
    times = _edges(plan)
    edges = begin + times
    at, sent, packets, drops, backlog = np.moveaxis(found.links, 2, 0).transpose(0, 2, 1)
    # tbf counts drops in packets, assumed to be as long as those sent
    length = sent[:, -1] / np.maximum(packets[:, -1], 1.0)
    lost = drops * np.where(packets[:, -1] > 0.0, length, plan.scenario.traffic.packet_size)[:, None]
    departed, lost, backlog = (
        np.array([np.interp(edges, *pair, left=0.0) for pair in zip(at, each, strict=True)])
        for each in (sent, lost, backlog)
    )
    carried, rtt = _of_groups(plan, found, edges)
    return Result.of_series(
        plan.scenario,
        f"linux-{os.uname().release}",
        provenance,
        links={
            "backlog": backlog[:, 1:],
            "arrived": np.diff(departed + lost + backlog, axis=1),
            "departed": np.diff(departed, axis=1),
            "lost": np.diff(lost, axis=1),
        },
        flows={"payload": carried, "rtt": rtt},
    )


def _of_groups(plan: ScenarioPlan, found: _Found, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Payload arrived [byte], and mean of the round trips [s], both (G, T)."""
    shape = len(plan.scenario.flows), len(edges) - 1
    carried, total, count = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for flow, (times, arrived, rtt) in zip(plan.tcp, (each.T for each in found.tcp), strict=True):
        carried[flow.group] += np.diff(np.interp(edges, times, np.maximum.accumulate(arrived), left=0.0))
        times, rtt = times[rtt > 0.0], rtt[rtt > 0.0]
        total[flow.group] += np.histogram(times, edges, weights=rtt)[0]
        count[flow.group] += np.histogram(times, edges)[0]
    for group, got in _streams(found.udp):
        carried[group] += np.histogram(got.received_s, edges, weights=got.frame_bytes - FRAME_OVERHEAD)[0]
    return carried, np.divide(total, count, out=np.zeros(shape), where=count > 0.0)


def _streams(udp: Sequence[Mapping[int, Received]]) -> list[tuple[int, Received]]:
    return [each for sink in udp for each in sink.items()]
