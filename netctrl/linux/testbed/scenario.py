"""Testbed plan of a scenario: the network, its hosts, and each host's sending times; pure, builds nothing.

Each TCP flow has a host of its own at the start of its path, so that no sender's queue is measured instead. The host's
links are not shaped. The part of its round trip beyond its path's links is the delay of its return link, as in the
packet engine: the flow starts half of the access delay later. UDP flows of a group share a host.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from netctrl.laws.rate.records import sender_name
from netctrl.linux.testbed.plan import plan_testbed
from netctrl.linux.testbed.schedules import constant_times, poisson_times
from netctrl.model.network import Link, Network
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import FlowDraw, FlowGroup, UdpFlows
from netctrl.units import format_quantity

__all__ = ["ScenarioPlan", "TcpFlow", "UdpHost", "plan_scenario", "plan_text", "sending_times"]

_UNSHAPED = 34e9  # bit/s, tbf's maximum


class TcpFlow(NamedTuple):
    """One flow at a host of its own."""

    group: int
    path: tuple[str, ...]
    """Ids of links from the host to the end."""
    back: tuple[str, ...]
    """Ids of links from the end of the path to the host."""
    congestion: str
    """The kernel's name of the congestion control."""
    start_s: float
    stop_s: float
    """End, at the latest that of the scenario."""


class UdpHost(NamedTuple):
    """Group of flows at one host."""

    group: int
    path: tuple[str, ...]
    times_s: tuple[np.ndarray, ...]
    """Sending times of each flow."""


class ScenarioPlan(NamedTuple):
    """Network of the testbed, and its traffic."""

    scenario: Scenario
    network: Network
    """The scenario's links, then those of hosts, whose names contain a blank to differ from all others."""
    tcp: tuple[TcpFlow, ...]
    udp: tuple[UdpHost, ...]


def plan_scenario(scenario: Scenario, draws: Sequence[FlowDraw]) -> ScenarioPlan:
    """Testbed plan of a scenario, with the flows drawn for each of its groups, one row each.

    Parameters
    ----------
    scenario : Scenario
        A scenario that passes `netctrl.linux.testbed.lacks.scenario_lacks`.
    draws : sequence of FlowDraw
        One per group, unmerged.
    """
    lines = {
        each.id: Link(
            id=each.id,
            source=each.source,
            target=each.target,
            capacity=each.capacity,
            delay=each.delay,
            buffer=each.buffer,
        )
        for each in scenario.links
    }
    tcp: list[TcpFlow] = []
    udp: list[UdpHost] = []
    rows = 0
    for number, (group, draw) in enumerate(zip(scenario.flows, draws, strict=True)):
        if isinstance(group, UdpFlows):
            way = _access(lines, group, f"host {group.id}")
            udp.append(UdpHost(number, way, sending_times(scenario, group, draw, rows)))
        else:
            for k, (rtt, start, stop) in enumerate(zip(draw.rtt_s, draw.start_s, draw.stop_s, strict=True)):
                late = max(rtt - sum(lines[name].delay for name in group.both_ways), 0.0) / 2.0
                begin, end = float(start + late), min(float(stop + late), scenario.duration)
                if begin < end:
                    host = f"host {group.id} {k}"
                    way, back = _access(lines, group, host), _home(lines, group, host, float(rtt))
                    tcp.append(TcpFlow(number, way, back, sender_name(group.sender), begin, end))
        rows += len(draw.rtt_s)
    return ScenarioPlan(scenario, Network(name=scenario.name, links=tuple(lines.values())), tuple(tcp), tuple(udp))


def _access(lines: dict[str, Link], group: FlowGroup, host: str) -> tuple[str, ...]:
    """Path from a new host over the links of the group."""
    return _joined(lines, f"{host} out", host, lines[group.path[0]].source), *group.path


def _home(lines: dict[str, Link], group: FlowGroup, host: str, rtt: float) -> tuple[str, ...]:
    """Return path of acknowledgements, whose delay completes the flow's round trip."""
    at, back = lines[group.path[-1]].target, group.ack_path
    if back and lines[back[0]].source != at:
        back = (_joined(lines, f"{host} over", at, lines[back[0]].source), *back)
    rest = rtt - sum(lines[name].delay for name in (*group.path, *back))
    last = lines[back[-1]].target if back else at
    return *back, _joined(lines, f"{host} in", last, host, max(rest, 0.0))


def _joined(lines: dict[str, Link], name: str, source: str, target: str, delay: float = 0.0) -> str:
    """A new link without shaping."""
    lines[name] = Link(id=name, source=source, target=target, capacity=_UNSHAPED, delay=delay)
    return name


def sending_times(scenario: Scenario, group: UdpFlows, draw: FlowDraw, first: int) -> tuple[np.ndarray, ...]:
    """Sending times of each flow; evenly spaced flows have the same phases as in the packet engine."""
    size, found = scenario.traffic.packet_size, []
    for row, (start, stop) in enumerate(zip(draw.start_s, draw.stop_s, strict=True), first):
        random = np.random.default_rng(np.random.SeedSequence(scenario.seed, spawn_key=(1 << 20, row)))
        length = min(float(stop), scenario.duration) - float(start)
        if length <= 0.0:
            continue
        if group.spacing == "poisson":
            times = poisson_times(group.rate, size, length, random)
        else:
            times = constant_times(group.rate, size, length, phase=random.random())
        found.append(float(start) + times)
    return tuple(found)


def plan_text(plan: ScenarioPlan) -> str:
    """Text of the plan: a line for each link of the scenario, each TCP flow and each group of UDP flows."""
    scenario, rows = plan.scenario, []
    wires = plan_testbed(plan.network, routed=False).wires
    for link in scenario.links:
        wire = wires[link.id]
        rate, delay = format_quantity(link.capacity, "bit/s"), format_quantity(link.delay, "s")
        shaped = f"tbf {rate}, burst {wire.burst_bytes} B, limit {wire.limit_bytes} B, then {delay}"
        rows.append(f"{link.id}: {link.source} to {link.target}, {shaped}")
    for flow in plan.tcp:
        home, when = wires[flow.back[-1]].link, f"{flow.start_s:.3f} to {flow.stop_s:.3f} s"
        way = f"over {' '.join(flow.path[1:])}, back {' '.join((*flow.back[:-1], format_quantity(home.delay, 's')))}"
        rows.append(f"{home.target}: {flow.congestion}, {when}, {way}")
    for udp in plan.udp:
        host, count = wires[udp.path[0]].link.source, sum(map(len, udp.times_s))
        rows.append(f"{host}: {count} UDP packets of {len(udp.times_s)} flows over {' '.join(udp.path[1:])}")
    title = f"{scenario.name}: {len(plan.network.nodes)} namespaces, {scenario.duration:g} s"
    return "\n  ".join([title, *rows]) + "\n"
