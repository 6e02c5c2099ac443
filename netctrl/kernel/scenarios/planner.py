"""A scenario of links and flows as a plan for the kernel: namespaces, interfaces, queues, routes, flows, readings.

Each node is a network namespace, each link a pair of veth interfaces. At the link's source is an HTB class of its
capacity, which keeps no unused time, with the link's queue; at its end netem adds the packet's transmission and the
link's delay. So a packet that finds an empty queue arrives after length/capacity + delay, as on a wire. A trace's
link has its queue in a token bucket, which a thread of the first process opens at the trace's times.

Flows with the same path and round trip share a host: computing takes no time, so they don't disturb each other. The
host's own links have no rate. What a flow's round trip has beyond its path's links is the delay of the host's link for
acknowledgements, and the flow starts half of that later, as in the packet engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address
from math import ceil
from types import MappingProxyType

import msgspec
import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.kernel.plan import PlanWriter, Query, TcpFlow
from netctrl.kernel.regulated.program import regulated_program
from netctrl.kernel.regulated.task import RegulatedGroup
from netctrl.kernel.scenarios.marker import attach_requests, marker_program
from netctrl.kernel.scenarios.pacer import pacer_program
from netctrl.kernel.scenarios.queues import HTB_CLASS, HTB_HANDLE, is_marked
from netctrl.kernel.scenarios.rater import rater_program
from netctrl.kernel.scenarios.senders import kernel_sender
from netctrl.kernel.scenarios.traffic import page_draws, udp_times
from netctrl.kernel.scenarios.wiring import LONG, Wiring, delay_options, rate_options
from netctrl.laws.rate.records import sender_name, window_of
from netctrl.linux.kernel import messages
from netctrl.linux.kernel.messages import CHANGE, ROOT
from netctrl.linux.kernel.queue_options import netem_options
from netctrl.model.law import PacingLaw
from netctrl.scenario.links import Link
from netctrl.scenario.network.plan import FlowLinks, Ways
from netctrl.scenario.network.track import gate_of, gated_groups
from netctrl.scenario.network.tracking import GateDraws
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow, FlowDraw
from netctrl.scenario.tcp_aqm.offers import Demand, Stream, Web, Writes

ETHERNET = 14
"""Header of a frame, which links' capacities count [byte]."""
UDP_HEADERS = ETHERNET + 20 + 8
_TCP_HEADERS = ETHERNET + 20 + 20  # TCP's time stamps are part of its segments
_STAMPS = 12
_TCP_PORT, _UDP_PORT = 5001, 4001
_NEVER_S = 1e9
_GRACE_S = 1e-3  # the last reading is at the end


def payload_share(packet_size: float) -> float:
    """Payload of a TCP segment over the size of its packet."""
    return 1.0 - (_TCP_HEADERS + _STAMPS) / packet_size


def capture_file(number: int) -> str:
    """Name of the file of a link's packets in the folder of results."""
    return f"{number}.pcap"


def plan_scenario(
    scenario: Scenario,
    draws: Sequence[FlowDraw],
    *,
    demands: Mapping[str, np.ndarray] = MappingProxyType({}),
    rates: Mapping[str, float] = MappingProxyType({}),
    control: FlowLinks | None = None,
    gates: Mapping[str, GateDraws] = MappingProxyType({}),
    capture_bytes: int = 0,
) -> KernelPlan:
    """Plan of a scenario, with the flows drawn for each of its groups, one row each.

    Parameters
    ----------
    scenario : Scenario
        One that passes `netctrl.kernel.scenarios.lacks.scenario_lacks`.
    draws : sequence of FlowDraw
        One per group, unmerged.
    demands : mapping, optional
        Rates of the flows of each group of demands, by its id, (intervals, count) [bit/s].
    rates : mapping, optional
        Rate at which a link sends, by its id, and at most its capacity [bit/s].
    control : FlowLinks, optional
        Law by which a program sets links' rates (`netctrl.kernel.scenarios.rater`).
    gates : mapping, optional
        Draws of groups with regulators, by their ids.
    capture_bytes : int
        Most that is captured of each link, by the files `capture_file` of its number; 0: nothing.
    """
    plan = KernelPlan(scenario, demands, rates, control, gates)
    plan.carry_out(draws)
    for number, at in enumerate(plan.places.tolist() if capture_bytes else ()):
        plan.writer.capture(*at, capture_file(number), capture_bytes)
    return plan


class KernelPlan:
    """A plan, and what is needed to read its results."""

    def __init__(
        self,
        scenario: Scenario,
        demands: Mapping[str, np.ndarray],
        rates: Mapping[str, float],
        control: FlowLinks | None,
        gates: Mapping[str, GateDraws],
    ) -> None:
        self.scenario, self.demands = scenario, demands
        self.rates, self.control, self.gates = rates, control, gates
        self.links = {link.id: link for link in scenario.links}
        self.packet = int(scenario.packet_size)
        self.samples = int(scenario.duration / scenario.interval * (1.0 + 1e-12))
        self.writer = PlanWriter()
        self.wires = Wiring(self.writer, self.packet, scenario.duration)
        self.hosts: dict[tuple, tuple[int, IPv4Address]] = {}
        self.targets: dict[tuple, IPv4Address] = {}
        self.sinks: set[tuple[int, int]] = set()
        self.flows: list[int] = []
        """Group of each TCP flow, in their order in the plan."""
        self.starts: list[float] = []
        """When each of these starts [s]."""
        self.streams: list[tuple[int, np.ndarray]] = []
        """Group, and sending times [s], of each UDP stream."""
        self.laws: dict[int, PacingLaw] = {}
        """Law of each mark of a paced flow's socket."""
        self.marked = tuple(k for k, link in enumerate(scenario.links) if is_marked(link))
        """Link of each marker, in their order in the plan."""
        self.lossy = tuple(k for k, link in enumerate(scenario.links) if link.loss)
        """Links on whose wires packets are lost. At each sample these wires' counters follow those of all queues."""
        self.regulated: list[RegulatedGroup] = []
        """Groups whose packets a program sends (`netctrl.kernel.regulated`)."""
        self._ports: dict[tuple[str, int], int] = {}

    @property
    def kinds(self) -> list[str]:
        """Queueing discipline of each link."""
        return self.wires.kinds

    @property
    def places(self) -> np.ndarray:
        """(L, 2) number of the namespace, and index of the interface, at the source of each link."""
        return np.array([self.wires.out[link.id] for link in self.scenario.links])

    def carry_out(self, draws: Sequence[FlowDraw]) -> None:
        """Write the plan."""
        links = self.scenario.links
        for link in links:
            self.wires.link(link, self._sends(link.id, link.capacity))
        if any(window_of(group.sender) == "cubic" and group.slow_start == "standard" for group in self.scenario.flows):
            self.writer.sysctl(self.wires.namespace(), "hystart", "0", "/sys/module/tcp_cubic/parameters")
        rows = 0
        for number, (group, draw) in enumerate(zip(self.scenario.flows, draws, strict=True)):
            if group.id in gated_groups(self.scenario):
                self._gated(number, group, draw)
            elif isinstance(group.offers, Stream | Demand):
                self._udp(number, group, draw, rows)
            else:
                self._tcp(number, group, draw)
            rows += len(draw.rtt_s)
        self._changes()
        interval, duration = self.scenario.interval, self.scenario.duration
        for k in self.marked:
            self._marker(links[k])
        if self.laws:
            self.writer.prepared(self.wires.namespace(), pacer_program(duration))
        if self.control is not None:
            self.writer.prepared(self.wires.namespace(), rater_program())
        if self.regulated:
            self.writer.prepared(self.wires.namespace(), regulated_program())
        queries = [Query(*self.wires.out[link.id], HTB_CLASS) for link in links]
        queries += [Query(*self.wires.arrivals[links[k].id], ROOT) for k in self.lossy]
        self.writer.watch(interval, self.samples, queries)
        self.writer.run(duration + (_GRACE_S if self.regulated else 0.0), _GRACE_S)  # a program reads at the end too

    # --- links ---

    def _marker(self, link: Link) -> None:
        at, what = self.wires.out[link.id], f"mark packets of {link.id}"
        program = marker_program(link, at.index, HTB_CLASS, self.packet, self.scenario.interval, self.samples)
        self.writer.request(at.namespace, attach_requests(at.index)[0], what)
        self.writer.prepared(at.namespace, program)

    def _changes(self) -> None:
        capacity = {link.id: link.capacity for link in self.scenario.links}
        delay = {link.id: link.delay for link in self.scenario.links}
        for change in sorted(self.scenario.changes, key=lambda each: each.at):
            if change.flow:
                continue
            name, what = change.link, f"change {change.link} at {change.at:g} s"
            if change.capacity is not None:
                capacity[name] = change.capacity
                at, shaped = self.wires.out[name], rate_options(self._sends(name, change.capacity))
                if self.control is None or name not in self.control.set_links:
                    message = messages.set_class(at.index, HTB_HANDLE, HTB_CLASS, "htb", shaped, CHANGE)
                    self.writer.change(change.at, at.namespace, message, what)
            if change.delay is not None:
                delay[name] = change.delay
            at = self.wires.arrivals[name]
            options = delay_options(self.links[name], capacity[name], delay[name], self.scenario.packet_size)
            message = messages.set_queue(at.index, ROOT, HTB_HANDLE, "netem", options, CHANGE)
            self.writer.change(change.at, at.namespace, message, what)

    def _sends(self, name: str, capacity: float) -> float:
        """Rate of a link with this capacity [bit/s]."""
        return min(capacity, self.rates.get(name, capacity))

    # --- flows ---

    def _tcp(self, number: int, group: Flow, draw: FlowDraw) -> None:
        sender = kernel_sender(group.sender, payload_share(self.packet))
        if sender is None:
            raise InvalidValue(f"flows.{group.id}.sender", sender_name(group.sender), "a sender that the kernel has")
        congestion = sender.congestion
        window = ceil(group.receive_window or 0.0)
        port = self._ports.setdefault((congestion, window), _TCP_PORT + len(self._ports))
        whole, ways = group, Ways(self.scenario.links, group)
        for row, (rtt, start, stop) in enumerate(zip(draw.rtt_s, draw.start_s, draw.stop_s, strict=True)):
            group = whole if whole.split is None else _on_way(whole, ways.next())
            self._sink(group, port, congestion, window)
            trip, there = self._delay(group.both_ways), self._target(group)
            late = max(rtt - trip, 0.0) / 2.0
            begin, end = float(start + late), float(stop + late)
            if begin >= self.scenario.duration:
                continue
            rest = max(rtt - self._delay((*group.path, *group.ack_path)), 0.0)
            host, here = self._host(group, rest, group.hears_marks)
            if sender.law is not None:
                self.laws[len(self.laws) + 1] = sender.law
            flow = TcpFlow(
                namespace=host,
                group=number,
                source=here,
                target=there,
                port=port,
                segment=self.packet - _TCP_HEADERS,
                congestion=congestion,
                start_s=begin,
                stop_s=min(end, _NEVER_S),
                asked_s=float(start),
                every_s=group.offers.interval if isinstance(group.offers, Writes) else 0.0,
                pace=ceil(sender.rate),
                mark=0 if sender.law is None else len(self.laws),
            )
            if isinstance(group.offers, Web):
                self.writer.web(flow, *page_draws(self.scenario, group, number, row))
            else:
                self.flows.append(number)
                self.starts.append(float(start))
                self.writer.tcp_flow(flow, _size(group))

    def _udp(self, number: int, group: Flow, draw: FlowDraw, first: int) -> None:
        size = self.packet - UDP_HEADERS
        for times in udp_times(self.scenario, group, draw, first, self.demands):
            for part, mine in _by_way(self.scenario, group, times):
                host, _ = self._host(part, 0.0, ecn=False, udp=True)
                self._sink(part, _UDP_PORT, None)
                self.writer.udp_flow(host, len(self.streams), self._target(part), _UDP_PORT, size, mine)
                self.streams.append((number, mine))

    def _gated(self, number: int, group: Flow, draw: FlowDraw) -> None:
        host, _ = self._host(group, 0.0, ecn=False, udp=True)
        self.regulated.append(
            RegulatedGroup(
                group=number,
                gate=gate_of(group, self.packet),
                draws=self.gates[group.id],
                start_ns=np.rint(1e9 * draw.start_s).astype(np.int64),
                stop_ns=np.rint(1e9 * np.minimum(draw.stop_s, _NEVER_S)).astype(np.int64),
                host=host,
                address=int(self._target(group)),
                end=self.wires.node(self.links[group.path[-1]].target),
            )
        )

    def _delay(self, names: Sequence[str]) -> float:
        return sum(self.links[name].delay for name in names)

    def _host(self, group: Flow, rest: float, ecn: bool, udp: bool = False) -> tuple[int, IPv4Address]:
        """Namespace and address of the host of flows with this path and delay of acknowledgements."""
        key = (group.path, group.ack_path, round(rest * 1e9), ecn, udp)
        if key in self.hosts:
            return self.hosts[key]
        made, address = self.wires.namespace(ecn), self.wires.next_address()
        self.writer.request(made, messages.add_address(1, address), f"give a host of {group.id} an address")
        out, _ = self.wires.veth(made, self.wires.node(self.links[group.path[0]].source), f"a host of {group.id}")
        if udp:
            self.wires.keep_times(out)
        self.hosts[key] = made, address
        window = self.scenario.initial_window
        self.wires.route(made, self._target(group), out.index, window)
        self._way_back(group, made, address, rest)
        return made, address

    def _way_back(self, group: Flow, host: int, address: IPv4Address, rest: float) -> None:
        """Routes and interfaces for acknowledgements to a host; the last one has the delay."""
        links = self.links
        at = self.wires.node(links[group.path[-1]].target)
        if group.ack_path and self.wires.node(links[group.ack_path[0]].source) != at:
            entry = self.wires.node(links[group.ack_path[0]].source)
            over, _ = self.wires.veth(at, entry, f"the acknowledgements of {group.id}")
            self.wires.route(at, address, over.index)
            at = entry
        for name in group.ack_path:
            self.wires.route(at, address, self.wires.out[name].index)
            at = self.wires.node(links[name].target)
        home, _ = self.wires.veth(at, host, f"the acknowledgements of {group.id}")
        if rest > 0.0:
            options = netem_options(rest, None, 0.0, LONG)
            message = messages.set_queue(home.index, ROOT, HTB_HANDLE, "netem", options)
            self.writer.request(at, message, f"delay acknowledgements of {group.id}")
        self.wires.route(at, address, home.index)

    def _target(self, group: Flow) -> IPv4Address:
        """Address at the end of a path, to which packets are routed along it."""
        if group.path not in self.targets:
            links = self.links
            address = self.targets[group.path] = self.wires.next_address()
            for name in group.path:
                self.wires.route(self.wires.node(links[name].source), address, self.wires.out[name].index)
            end = self.wires.node(links[group.path[-1]].target)
            self.writer.request(end, messages.add_address(1, address), f"give the end of {group.id} an address")
        return self.targets[group.path]

    def _sink(self, group: Flow, port: int, congestion: str | None, window: int = 0) -> None:
        end = self.wires.node(self.links[group.path[-1]].target)
        if (end, port) in self.sinks:
            return
        self.sinks.add((end, port))
        if congestion is None:
            self.writer.udp_sink(end, port)
        else:
            self.writer.tcp_sink(end, port, congestion, window)


def _on_way(group: Flow, path: tuple[str, ...]) -> Flow:
    return msgspec.structs.replace(group, path=path, split=None)


def _by_way(scenario: Scenario, group: Flow, times: np.ndarray) -> list[tuple[Flow, np.ndarray]]:
    """A flow's packets over each of its ways, by turns that keep their shares."""
    if group.split is None:
        return [(group, times)]
    ways, found = Ways(scenario.links, group), dict[tuple[str, ...], list[float]]()
    for time in times.tolist():
        found.setdefault(ways.next(), []).append(time)
    return [(_on_way(group, path), np.array(mine)) for path, mine in found.items()]


def _size(group: Flow) -> int:
    return 0 if group.piece is None else ceil(group.piece)
