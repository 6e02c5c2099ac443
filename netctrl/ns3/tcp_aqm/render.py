"""A scenario as a program for stock ns-3: fixed files from the templates and two generated ones.

Rendering is pure; `netctrl.ns3.program` compiles and runs the program.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from netctrl.errors import InvalidValue
from netctrl.laws.l4s.dualpi2 import DualPi2Queue
from netctrl.laws.rate.records import rate_record, scheme_of, sender_name
from netctrl.model.design.design import ArcDesign, Provenance
from netctrl.ns3.cpp import MARKER, certificate, gains_header, nanoseconds, row, scenario_header, string
from netctrl.ns3.laws import laws_header, scalable_sender
from netctrl.ns3.links import (
    MAX_RECORDS,
    SENDERS,
    access_rate,
    buffer_size,
    check_capacity,
    check_links,
    socket_buffer,
)
from netctrl.ns3.queues import own_laws, queue_initializer
from netctrl.ns3.templates import DUAL, QUEUES, SCALABLE, TCP, fixed_files
from netctrl.register import TCP_SENDERS
from netctrl.scenario.links import Change, Link, refuse_packet_only
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import BulkFlows, FastFlows, FlowDraw, FlowGroup, WebFlows

__all__ = ["KINDS", "MARKER", "render", "sender_lack"]

KINDS = ("reno", "cubic", "htcp", "bbr", "dctcp", "prague")
_EXACT = ("dctcp", "prague")
"""Senders whose receivers echo each mark: bulk flows with ECN only."""
MAX_HOSTS = 64
"""Largest number of round-trip times in a group: each is a host, and a group's hosts share a /24."""


def render(
    scenario: Scenario,
    draws: Sequence[FlowDraw],
    *,
    design: ArcDesign | None = None,
    provenance: Provenance,
) -> dict[str, str]:
    """Files of an ns-3 program that runs a scenario: file name -> text.

    Parameters
    ----------
    scenario : Scenario
        Scenario to run; its links of kind "design" have their law already (`Scenario.with_queue`).
    draws : sequence of FlowDraw
        Round-trip time, start and stop of each flow, one FlowDraw per group, one row per flow
        (`netctrl.sim.tcp_aqm.traffic.draw_flows(scenario, merged=False)`).
    design : ArcDesign, optional
        Design of the law, whose certificate goes into gains.h.
    provenance : Provenance

    Raises
    ------
    InvalidValue
        A value that the program can't express; the message has its name in the scenario.
    """
    _check(scenario, draws)
    return {
        "gains.h": _gains(scenario, design, provenance),
        "netctrl-laws.h": laws_header(
            own_laws(link.queue for link in scenario.links),
            dual=_has_dual(scenario),
            scalable=[TCP_SENDERS[name] for name in _printed(scenario)],
        ),
        "scenario.h": _scenario(scenario, draws),
        **fixed_files("tcp_aqm", *QUEUES, *TCP, *(DUAL if _has_dual(scenario) else ())),
        **(fixed_files("tcp_aqm", *SCALABLE) if _printed(scenario) else {}),
    }


def _has_dual(scenario: Scenario) -> bool:
    return any(isinstance(link.queue, DualPi2Queue) for link in scenario.links)


def _printed(scenario: Scenario) -> list[str]:
    """Senders whose laws are printed."""
    return sorted({sender_name(group.sender) for group in scenario.flows} - set(SENDERS))


def sender_lack(group: FlowGroup) -> str | None:
    """What ns-3's program has instead of a group's sender; None: it has it."""
    name = sender_name(group.sender)
    if name not in KINDS or scheme_of(group.sender) is not None:  # a table's settings would be lost
        return ", ".join(KINDS)
    if name in _EXACT and not (isinstance(group, BulkFlows) and group.ecn):
        return f"{', '.join(kind for kind in KINDS if kind not in _EXACT)} but in bulk flows with ecn"
    return None


def _check(scenario: Scenario, draws: Sequence[FlowDraw]) -> None:
    refuse_packet_only(scenario, DualPi2Queue)
    size = scenario.packet_size
    if size != int(size) or not 100 <= size <= 65000:
        raise InvalidValue("packet_size", size, "a whole number of bytes from 100 to 65000")
    if max(len(scenario.links), len(scenario.flows)) > MAX_RECORDS:
        raise InvalidValue("links", len(scenario.links), f"at most {MAX_RECORDS} links and groups of flows")
    check_links("links", scenario.links, size)
    for change in scenario.changes:
        if change.capacity is not None:
            check_capacity("changes.capacity", change.capacity, size)
    for group in scenario.flows:
        _check_group(scenario, group)
    counts = [group.sessions if isinstance(group, WebFlows) else group.count for group in scenario.flows]
    if [len(draw.rtt_s) for draw in draws] != counts or any(np.any(draw.flows != 1.0) for draw in draws):
        raise InvalidValue("draws", [len(draw.rtt_s) for draw in draws], f"one row per flow: {counts}")


def _check_group(scenario: Scenario, group: FlowGroup) -> None:
    if isinstance(group, FastFlows) or not group.answered:
        takes = "bulk or web flows; FAST runs only in the fluid simulator, datagrams only in the packet engine"
        raise InvalidValue(f"flows.{group.id}.kind", group.__struct_config__.tag, takes)
    lack = sender_lack(group)
    if lack is not None:
        raise InvalidValue(f"flows.{group.id}.sender", sender_name(group.sender), f"one of {lack}")
    links = {link.id: link for link in scenario.links}
    if group.ack_path:
        ends = links[group.ack_path[0]].source, links[group.ack_path[-1]].target
        home = links[group.path[-1]].target, links[group.path[0]].source
        if ends != home:
            takes = f"links from {home[0]}, where the data ends, back to {home[1]}"
            raise InvalidValue(f"flows.{group.id}.ack_path", group.ack_path, takes)


# --- gains.h ---------------------------------------------------------------------------------------------------------


def _gains(scenario: Scenario, design: ArcDesign | None, provenance: Provenance) -> str:
    lines = [
        *(_certificate(design) if design is not None else []),
        "/// In the order of kLinks (scenario.h).",
        "inline const QueueSettings kQueues[] = {",
    ]
    for link in scenario.links:
        capacity = f"{link.capacity:g} bit/s"
        lines += [f"    // {link.id}, {capacity}", queue_initializer(link, int(scenario.packet_size))]
    about = "The queue of each link with its gains; their laws are in netctrl-laws.h."
    return gains_header("netctrl-tables.h", about, provenance, [*lines, "};"])


def _certificate(design: ArcDesign) -> list[str]:
    sampled = design.certificate.sampled
    numbers = {
        "kDesignCapacity": (design.law.capacity_bit_per_s, "[bit/s]"),
        "kAlphaLimit": (sampled.alpha_limit, f"[1/packet], sampled loop of plant {sampled.plant}"),
        "kGainMargin": (sampled.gain_margin_db, "[dB]; HUGE_VAL: unlimited"),
        "kPhaseMargin": (sampled.phase_margin_deg, "[degree]"),
        "kDelayMargin": (sampled.delay_margin_s, "[s]"),
        "kSpectralRadius": (sampled.spectral_radius, "of one epoch"),
    }
    # Nine digits, as the last ones of a margin are rounding errors that depend on the processor.
    rounded = {name: (value and float(f"{value:.9g}"), unit) for name, (value, unit) in numbers.items()}
    return certificate(design, {"kMethod": (design.method, "")} | rounded)


# --- scenario.h ------------------------------------------------------------------------------------------------------


def _scenario(scenario: Scenario, draws: Sequence[FlowDraw]) -> str:
    routers = list(dict.fromkeys(node for link in scenario.links for node in (link.source, link.target)))
    hosts, flows = _hosts_and_flows(scenario, draws)
    constants = {
        "int64_t kDuration": (nanoseconds("duration", scenario.duration), "[ns]"),
        "int64_t kSample": (nanoseconds("sample", scenario.interval), "[ns]"),
        "uint32_t kPacketSize": (int(scenario.packet_size), "[byte], with IP and TCP headers"),
        "uint32_t kInitialWindow": (scenario.initial_window, "[segment]"),
        "uint32_t kSeed": (scenario.seed, ""),
        "uint32_t kSocketBuffer": (_socket_buffer(scenario), "[byte], of TCP at both ends"),
        "uint64_t kAccessRate": access_rate(*(link.capacity for link in scenario.links)),
        "int kRouters": (len(routers), ""),
    }
    index = {link.id: number for number, link in enumerate(scenario.links)}
    tables = {
        "LinkRow kLinks": ("id, source, target, capacity, delay, buffer", _links(scenario, routers)),
        "GroupRow kGroups": (
            "id, sender, ecn, path, ackPath, {objectsPerPage, paretoScale, paretoShape, maxObject, thinkTime}",
            [_group(group, index) for group in scenario.flows],
        ),
        "HostRow kHosts": ("group, accessDelay", hosts),
        "FlowRow kFlows": ("host, start, stop", flows),
        "ChangeRow kChanges": ("at, link, capacity, delay", _changes(scenario, index)),
    }
    return scenario_header("netctrl-tables.h", scenario.name, constants, tables)


def _socket_buffer(scenario: Scenario) -> int:
    """Buffer that never limits a window: some multiples of the fastest link's capacity in the longest round trip."""
    fastest = max(
        [link.capacity for link in scenario.links]
        + [change.capacity for change in scenario.changes if change.capacity is not None]
    )
    longest = max(group.rtt[1] for group in scenario.flows) + 2.0 * sum(c.delay or 0.0 for c in scenario.changes)
    waiting = sum(link.buffer or 0.0 for link in scenario.links)
    return socket_buffer(fastest, longest, waiting)


def _links(scenario: Scenario, routers: list[str]) -> list[str]:
    def one(link: Link) -> str:
        delay = nanoseconds(f"links.{link.id}.delay", link.delay)
        ends = routers.index(link.source), routers.index(link.target)
        return row([string(link.id), *ends, f"{round(link.capacity)}U", delay, buffer_size(link.buffer)])

    return [one(link) for link in scenario.links]


def _group(group: FlowGroup, index: dict[str, int]) -> str:
    paths = [row(index[name] for name in path) for path in (group.path, group.ack_path)]
    web = [0, 0.0, 0.0, 0.0, 0.0]
    if isinstance(group, WebFlows):
        scale = group.mean_object * (group.pareto_shape - 1.0) / group.pareto_shape
        web = [group.objects_per_page, scale, group.pareto_shape, group.max_object, group.think_time]
    name = sender_name(group.sender)
    sender = SENDERS.get(name) or scalable_sender(TCP_SENDERS[name])
    ecn = group.ecn and rate_record(group.sender) is None  # what hears no marks can't be marked
    return row([string(group.id), string(sender), ecn, *paths, row(web)])


def _hosts_and_flows(scenario: Scenario, draws: Sequence[FlowDraw]) -> tuple[list[str], list[str]]:
    hosts: list[str] = []
    flows: list[str] = []
    delays = {link.id: nanoseconds(f"links.{link.id}.delay", link.delay) for link in scenario.links}
    for number, (group, draw) in enumerate(zip(scenario.flows, draws, strict=True)):
        where = f"flows.{group.id}"
        trips = [nanoseconds(f"{where}.rtt", rtt) for rtt in draw.rtt_s.tolist()]
        if len(set(trips)) > MAX_HOSTS:
            raise InvalidValue("draws", len(set(trips)), f"at most {MAX_HOSTS} round-trip times in group {group.id}")
        host_of = {trip: len(hosts) + position for position, trip in enumerate(sorted(set(trips)))}
        links_trip = sum(delays[name] for name in group.both_ways)
        for trip in host_of:
            if trip < links_trip:
                takes = f"at least {links_trip / 1e9:g} s, the delays of path and ack_path"
                raise InvalidValue(f"{where}.rtt", trip / 1e9, takes)
            hosts.append(row([number, (trip - links_trip) // 2]))
        for trip, start, stop in zip(trips, draw.start_s.tolist(), draw.stop_s.tolist(), strict=True):
            end = "kNever" if np.isinf(stop) else nanoseconds(f"{where}.stop", stop)
            flows.append(row([host_of[trip], nanoseconds(f"{where}.start", start), end]))
    return hosts, flows


def _changes(scenario: Scenario, index: dict[str, int]) -> list[str]:
    def one(change: Change) -> str:
        at, delay = nanoseconds("changes.at", change.at), -1
        if change.delay is not None:
            delay = nanoseconds("changes.delay", change.delay)
        return row([at, index[change.link], f"{round(change.capacity or 0.0)}U", delay])

    return [one(change) for change in scenario.changes]
