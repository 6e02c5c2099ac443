"""A scenario as a program for stock ns-3: files as text, fixed ones from the templates and two made here.

Rendering is pure; `netctrl.ns3.program` compiles and runs what it gives.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from netctrl.errors import InvalidValue
from netctrl.model.design.design import ArcDesign, Provenance
from netctrl.ns3.cpp import MARKER, header, nanoseconds, origin, real, row, string
from netctrl.ns3.laws import laws_header
from netctrl.ns3.queues import own_laws, queue_initializer
from netctrl.ns3.templates import QUEUES, TCP, fixed_files
from netctrl.scenario.tcp_aqm.flows import FastFlows, FlowDraw, FlowGroup, UdpFlows, WebFlows
from netctrl.scenario.tcp_aqm.scenario import Link, Scenario
from netctrl.units import BITS_PER_BYTE

__all__ = ["ACCESS_RATE", "MARKER", "MAX_RECORDS", "SENDERS", "access_rate", "check_capacity", "render", "socket_buffer"]

SENDERS = {
    "reno": "ns3::TcpNewReno",
    "newreno": "ns3::TcpNewReno",
    "cubic": "netctrl::OneByOneCubic",
    "htcp": "ns3::TcpHtcp",
    "vegas": "ns3::TcpVegas",
}
"""ns-3's own congestion controls."""
_KINDS = ("reno", "cubic", "htcp")
MAX_HOSTS = 64
"""Most round-trip times of one group: each is a host, and a group's hosts share a /24."""
MAX_RECORDS = 2**16
"""Of links and of groups: their number is part of an address."""

ACCESS_RATE = "of hosts' lines, where nothing waits [bit/s]"
_UINT32 = 2**32 - 1
_MIN_TRANSMISSION_S = 100e-9
_HEADERS_BYTES = 40
_BUFFER_BYTES = (4 * 2**20, 2**29)
"""Bounds of TCP's buffers; window scaling ends at 2^30."""


def render(
    scenario: Scenario,
    draws: Sequence[FlowDraw],
    *,
    design: ArcDesign | None = None,
    provenance: Provenance,
) -> dict[str, str]:
    """The files of an ns-3 program that runs a scenario: file name -> text.

    Parameters
    ----------
    scenario : Scenario
        What to run; links of kind "design" have been given their law already (`Scenario.with_queue`).
    draws : sequence of FlowDraw
        Round-trip time, start and stop of each flow, one FlowDraw a group, one row a flow
        (`netctrl.sim.tcp_aqm.traffic.draw_flows(scenario, merged=False)`).
    design : ArcDesign, optional
        Where the law came from: its certificate goes into gains.h.
    provenance : Provenance

    Raises
    ------
    InvalidValue
        A value that the program can't express, by its name in the scenario.
    """
    _check(scenario, draws)
    return {
        "gains.h": _gains(scenario, design, provenance),
        "netctrl-laws.h": laws_header(own_laws(link.queue for link in scenario.links)),
        "scenario.h": _scenario(scenario, draws),
        **fixed_files("tcp_aqm", *QUEUES, *TCP),
    }


def _check(scenario: Scenario, draws: Sequence[FlowDraw]) -> None:
    size = scenario.packet_size
    if size != int(size) or not 100 <= size <= 65000:
        raise InvalidValue("packet_size", size, "a whole number of bytes from 100 to 65000")
    if max(len(scenario.links), len(scenario.flows)) > MAX_RECORDS:
        raise InvalidValue("links", len(scenario.links), f"at most {MAX_RECORDS} links and groups of flows")
    for link in scenario.links:
        where = f"links.{link.id}"
        check_capacity(f"{where}.capacity", link.capacity, size)
        if link.buffer is not None and not size <= link.buffer < _UINT32:
            raise InvalidValue(f"{where}.buffer", link.buffer, f"{size:g} (a packet) to {_UINT32 - 1} bytes, or null")
    for change in scenario.changes:
        if change.capacity is not None:
            check_capacity("changes.capacity", change.capacity, size)
    for group in scenario.flows:
        _check_group(scenario, group)
    counts = [group.sessions if isinstance(group, WebFlows) else group.count for group in scenario.flows]
    if [len(draw.rtt_s) for draw in draws] != counts or any(np.any(draw.flows != 1.0) for draw in draws):
        raise InvalidValue("draws", [len(draw.rtt_s) for draw in draws], f"one row a flow: {counts}")


def check_capacity(name: str, capacity: float, packet_size: float) -> None:
    """That ns-3 can count a capacity [bit/s] and the time of a packet; InvalidValue names it."""
    if abs(round(capacity) - capacity) > 1e-6 * capacity:
        raise InvalidValue(name, capacity, "a whole number of bit/s, as ns-3 counts")
    if packet_size * BITS_PER_BYTE / capacity < _MIN_TRANSMISSION_S:
        takes = f"a capacity at which a packet of {packet_size:g} bytes takes 100 ns or more: ns-3 counts in ns"
        raise InvalidValue(name, capacity, takes)


def _check_group(scenario: Scenario, group: FlowGroup) -> None:
    if isinstance(group, FastFlows | UdpFlows):
        takes = "bulk or web flows; FAST is for the fluid simulator only, udp for the packet engine"
        raise InvalidValue(f"flows.{group.id}.kind", group.__struct_config__.tag, takes)
    if group.sender not in _KINDS:
        raise InvalidValue(f"flows.{group.id}.sender", group.sender, f"one of {', '.join(_KINDS)}: ns-3's own")
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
        "/// How this export was made, as JSON.",
        origin(provenance),
        "",
        *(_certificate(design) if design is not None else []),
        "/// In the order of kLinks (scenario.h).",
        "inline const QueueSettings kQueues[] = {",
    ]
    for link in scenario.links:
        capacity = f"{link.capacity:g} bit/s"
        lines += [f"    // {link.id}, {capacity}", queue_initializer(link, int(scenario.packet_size))]
    about = "The queue of each link with its gains; their laws are in netctrl-laws.h."
    return header("GAINS", "netctrl-tables.h", [*lines, "};"], about)


def _certificate(design: ArcDesign) -> list[str]:
    proof, sampled = design.certificate, design.certificate.sampled
    numbers = {
        "kDesignCapacity": (design.law.capacity_bit_per_s, "[bit/s]"),
        "kAlphaLimit": (sampled.alpha_limit, f"[1/packet], sampled loop of plant {sampled.plant}"),
        "kGainMargin": (sampled.gain_margin_db, "[dB]"),
        "kPhaseMargin": (sampled.phase_margin_deg, "[degree]"),
        "kDelayMargin": (sampled.delay_margin_s, "[s]"),
        "kSpectralRadius": (sampled.spectral_radius, "of one epoch"),
    }
    texts = {
        "kMethod": design.method,
        "kStatus": str(proof.status),
    }
    lines = ["/// Why the gains can be trusted: the certificate of the Design; an unlimited margin is HUGE_VAL."]
    lines += ["namespace design", "{"]
    lines += [f"inline constexpr const char* {name} = {string(text)};" for name, text in texts.items()]
    for name, (value, unit) in numbers.items():
        # Nine digits: the last ones of a margin are rounding, which another processor does otherwise.
        text = "HUGE_VAL" if value is None else real(float(f"{value:.9g}"))
        lines.append(f"inline constexpr double {name} = {text}; ///< {unit}")
    lines += [f"// warning: {string(warning)}" for warning in proof.warnings]
    return [*lines, origin(design.provenance), "} // namespace design", ""]


# --- scenario.h ------------------------------------------------------------------------------------------------------


def _scenario(scenario: Scenario, draws: Sequence[FlowDraw]) -> str:
    routers = list(dict.fromkeys(node for link in scenario.links for node in (link.source, link.target)))
    hosts, flows = _hosts_and_flows(scenario, draws)
    constants = {
        "int64_t kDuration": (nanoseconds("duration", scenario.duration), "[ns]"),
        "int64_t kSample": (nanoseconds("sample", scenario.sample), "[ns]"),
        "uint32_t kPacketSize": (int(scenario.packet_size), "[byte], with IP and TCP headers"),
        "uint32_t kInitialWindow": (scenario.initial_window, "[segment]"),
        "uint32_t kSeed": (scenario.seed, ""),
        "uint32_t kSocketBuffer": (_socket_buffer(scenario), "[byte], of TCP at both ends"),
        "uint64_t kAccessRate": (access_rate(*(link.capacity for link in scenario.links)), ACCESS_RATE),
        "int kRouters": (len(routers), ""),
    }
    lines = [f"inline constexpr const char* kScenario = {string(scenario.name)};"]
    for name, (value, unit) in constants.items():
        comment = f" ///< {unit}" if unit else ""
        lines.append(f"inline constexpr {name} = {value}{'U' if name.startswith('u') else ''};{comment}")
    index = {link.id: number for number, link in enumerate(scenario.links)}
    tables = {
        "const LinkRow kLinks[]": ("id, source, target, capacity, delay, buffer", _links(scenario, routers)),
        "const std::vector<GroupRow> kGroups": (
            "id, sender, ecn, path, ackPath, {objectsPerPage, paretoScale, paretoShape, maxObject, thinkTime}",
            [_group(group, index) for group in scenario.flows],
        ),
        "const std::vector<HostRow> kHosts": ("group, accessDelay", hosts),
        "const std::vector<FlowRow> kFlows": ("host, start, stop", flows),
        "const std::vector<ChangeRow> kChanges": ("at, link, capacity, delay", _changes(scenario, index)),
    }
    for name, (columns, rows) in tables.items():
        lines += ["", f"/// {columns}", f"inline {name} = {{", *(f"    {each}," for each in rows), "};"]
    return header("SCENARIO", "netctrl-tables.h", lines)


def _socket_buffer(scenario: Scenario) -> int:
    """Never what limits a window: a few times what the fastest link and its buffer hold in the longest round trip."""
    fastest = max(
        [link.capacity for link in scenario.links]
        + [change.capacity for change in scenario.changes if change.capacity is not None]
    )
    longest = max(group.rtt[1] for group in scenario.flows) + 2.0 * sum(c.delay or 0.0 for c in scenario.changes)
    waiting = sum(link.buffer or 0.0 for link in scenario.links)
    return socket_buffer(fastest, longest, waiting)


def socket_buffer(fastest: float, longest: float, waiting: float) -> int:
    """TCP's buffers [byte], of which no window runs out: capacity [bit/s], round trip [s] and all buffers [byte]."""
    low, high = _BUFFER_BYTES
    return int(min(max(4.0 * (fastest * longest / BITS_PER_BYTE + waiting), low), high))


def access_rate(*capacities: float) -> int:
    """Rate of hosts' lines, and of idle directions: so fast that nothing waits there [bit/s]."""
    return max(10 * round(max(capacities)), 1_000_000_000)


def _links(scenario: Scenario, routers: list[str]) -> list[str]:
    def one(link: Link) -> str:
        delay = nanoseconds(f"links.{link.id}.delay", link.delay)
        buffer = "kUnlimited" if link.buffer is None else f"{int(link.buffer)}U"
        ends = str(routers.index(link.source)), str(routers.index(link.target))
        return row([string(link.id), *ends, f"{round(link.capacity)}U", str(delay), buffer])

    return [one(link) for link in scenario.links]


def _group(group: FlowGroup, index: dict[str, int]) -> str:
    paths = [row(str(index[name]) for name in path) for path in (group.path, group.ack_path)]
    web = ["0", "0.0", "0.0", "0.0", "0.0"]
    if isinstance(group, WebFlows):
        scale = group.mean_object * (group.pareto_shape - 1.0) / group.pareto_shape
        numbers = (scale, group.pareto_shape, group.max_object, group.think_time)
        web = [str(group.objects_per_page), *map(real, numbers)]
    return row([string(group.id), string(SENDERS[group.sender]), "true" if group.ecn else "false", *paths, row(web)])


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
            hosts.append(row([str(number), str((trip - links_trip) // 2)]))
        for trip, start, stop in zip(trips, draw.start_s.tolist(), draw.stop_s.tolist(), strict=True):
            end = "kNever" if np.isinf(stop) else str(nanoseconds(f"{where}.stop", stop))
            flows.append(row([str(host_of[trip]), str(nanoseconds(f"{where}.start", start)), end]))
    return hosts, flows


def _changes(scenario: Scenario, index: dict[str, int]) -> list[str]:
    return [
        row(
            [
                str(nanoseconds("changes.at", change.at)),
                str(index[change.link]),
                f"{round(change.capacity)}U" if change.capacity is not None else "0U",
                str(nanoseconds("changes.delay", change.delay)) if change.delay is not None else "-1",
            ]
        )
        for change in scenario.changes
    ]
