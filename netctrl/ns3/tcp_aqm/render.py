"""A scenario as data for a program for stock ns-3: scenario.txt beside the program's sources.

The sources are the same for all scenarios whose laws are netctrl's. Rendering is pure; `netctrl.ns3.program` compiles
and runs the program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.core.units import BITS_PER_BYTE
from netctrl.laws.l4s.dualpi2 import DualPi2Queue
from netctrl.model.design.design import ArcDesign, ConnetDesign, PacingDesign, Provenance
from netctrl.model.law import PacingLaw
from netctrl.model.link_trace import LinkTrace, deliveries
from netctrl.ns3.cpp import MARKER, nanoseconds
from netctrl.ns3.links import (
    LINUX_TCP,
    MAX_RECORDS,
    SEEDS,
    access_rate,
    check_capacity,
    check_links,
    packet_bytes,
    socket_buffer,
)
from netctrl.ns3.network.control import check_law, control_record
from netctrl.ns3.program import SCENARIO
from netctrl.ns3.queues import link_queue
from netctrl.ns3.records import certificate_comments, record_line, scenario_text, word
from netctrl.ns3.sources import program_files
from netctrl.ns3.tcp_aqm.senders import laws_of, pacer_records, printed_senders, sender_lack, sender_values
from netctrl.ns3.tcp_aqm.track import check_track, gate_values, track_certificate, track_records
from netctrl.scenario.bottleneck import single_line
from netctrl.scenario.links import Change, Link
from netctrl.scenario.network.plan import FlowLinks
from netctrl.scenario.network.policy import static_rates
from netctrl.scenario.network.track import Track, gated_groups, without_rates
from netctrl.scenario.network.tracking import GateDraws, TrackPlan
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow, FlowDraw
from netctrl.scenario.tcp_aqm.lacks import refuse_packet_only, trace_alone
from netctrl.scenario.tcp_aqm.offers import Web

__all__ = ["MARKER", "render"]

MAX_HOSTS = 64
"""Largest number of round-trip times in a group: each is a host, and a group's hosts share a /24."""
_MAX_RTTS = 2**31
"""Largest number of packets of a run whose round trips are written, 24 bytes each."""
_AS_NS3 = [("ns3::TcpL4Protocol::RecoveryType", "ns3::TcpPrrRecovery", "")]
"""Attributes of ns-3's TCP for links, as its papers' studies had it."""


def render(
    scenario: Scenario,
    draws: Sequence[FlowDraw],
    *,
    design: ArcDesign | PacingDesign | ConnetDesign | None = None,
    plan: TrackPlan | None = None,
    links: FlowLinks | None = None,
    gates: Mapping[str, GateDraws] = MappingProxyType({}),
    provenance: Provenance,
) -> dict[str, str]:
    """Files of an ns-3 program and of the scenario that it reads: file name -> text.

    Parameters
    ----------
    scenario : Scenario
        Scenario to run; its links of kind "design" have their law already (`Scenario.with_queue`).
    draws : sequence of FlowDraw
        Round-trip time, start and stop of each flow, one FlowDraw per group, one row per flow
        (`netctrl.sim.fluid.traffic.draw_flows(scenario, merged=False)`).
    design : ArcDesign, PacingDesign or ConnetDesign, optional
        Design of the law, whose certificate goes into scenario.txt as comments.
    plan : TrackPlan, optional
        Law of the scenario's control of kind track (`netctrl.scenario.network.tracking.track_plan`).
    links : FlowLinks, optional
        Links whose rates a law sets (`netctrl.sim.network.flow_links.flow_links`). One that solves a program needs its
        C, too (`netctrl.ns3.network.control.law_files`).
    gates : mapping, optional
        Draws of groups with regulators, by their ids (`netctrl.sim.packet.run.gate_draws`).
    provenance : Provenance

    Raises
    ------
    InvalidValue
        A value that the program can't express; the message has its name in the scenario.
    """
    _check(scenario, draws)
    if plan is not None:
        check_track(plan)
    if links is not None:
        check_law(links.plan)
    return {
        SCENARIO: _scenario(scenario, draws, gates, plan, links, design, provenance),
        **program_files([link.queue for link in scenario.links], printed_senders(scenario.flows)),
    }


def _check(scenario: Scenario, draws: Sequence[FlowDraw]) -> None:
    refuse_packet_only(without_rates(scenario), DualPi2Queue, traces=trace_alone(scenario))
    size = packet_bytes(scenario)
    if max(len(scenario.links), len(scenario.flows)) > MAX_RECORDS:
        raise InvalidValue("links", len(scenario.links), f"at most {MAX_RECORDS} links and groups of flows")
    check_links("links", scenario.links, size)
    packets = scenario.links[0].capacity * scenario.duration / (BITS_PER_BYTE * size)
    if single_line(scenario) and packets > _MAX_RTTS:
        takes = f"a time in which the line sends at most {_MAX_RTTS} packets: each has a sample of its round trip"
        raise InvalidValue("duration", scenario.duration, takes)
    if isinstance(scenario.control, Track):
        for link in scenario.links:
            if link.buffer is not None and link.buffer < 2.0 * size:
                raise InvalidValue(
                    f"links.{link.id}.buffer", link.buffer, "room for two packets, of which one waits in the device"
                )
    for change in scenario.changes:
        if change.capacity is not None:
            check_capacity("changes.capacity", change.capacity, size)
    for group in scenario.flows:
        _check_group(scenario, group)
    counts = [group.count for group in scenario.flows]
    if [len(draw.rtt_s) for draw in draws] != counts or any(np.any(draw.flows != 1.0) for draw in draws):
        raise InvalidValue("draws", [len(draw.rtt_s) for draw in draws], f"one row per flow: {counts}")


def _check_group(scenario: Scenario, group: Flow) -> None:
    lack = sender_lack(group)
    if lack is not None:
        field = "sender" if group.answered else "offers"
        raise InvalidValue(f"flows.{group.id}.{field}", group.kind, f"flows that ns-3's program has: it has no {lack}")
    links = {link.id: link for link in scenario.links}
    if group.ack_path:
        ends = links[group.ack_path[0]].source, links[group.ack_path[-1]].target
        home = links[group.path[-1]].target, links[group.path[0]].source
        if ends != home:
            takes = f"links from {home[0]}, where the data ends, back to {home[1]}"
            raise InvalidValue(f"flows.{group.id}.ack_path", group.ack_path, takes)


def _scenario(
    scenario: Scenario,
    draws: Sequence[FlowDraw],
    gates: Mapping[str, GateDraws],
    plan: TrackPlan | None,
    controlled: FlowLinks | None,
    design: ArcDesign | PacingDesign | ConnetDesign | None,
    provenance: Provenance,
) -> str:
    rate, _ = access_rate(*(link.capacity for link in scenario.links))
    watched, laws = single_line(scenario), laws_of(scenario.flows)
    rates = _paced(scenario, controlled)
    seed, run = (1, 1 + scenario.seed) if watched else (1 + scenario.seed % SEEDS, 1)
    settings = record_line(
        "set",
        "",
        *(LINUX_TCP if watched else _AS_NS3),
        duration=nanoseconds("duration", scenario.duration),
        sample=nanoseconds("sample", scenario.interval),
        packet_size=int(scenario.packet_size),
        initial_window=scenario.initial_window,
        seed=seed,
        run=run,
        watched=watched or None,
        socket_buffer=_socket_buffer(scenario),
        access_rate=rate,
    )
    return scenario_text(
        scenario.name,
        provenance,
        [] if design is None else _certificate(design),
        [settings],
        [_link(link, scenario, rates.get(link.id)) for link in scenario.links],
        pacer_records(laws),
        [_group(scenario, group, laws, watched) for group in scenario.flows],
        *_hosts_and_flows(scenario, draws, gates, watched),
        [_change(change) for change in scenario.changes],
        *([] if plan is None else track_records(scenario, plan)),
        [] if controlled is None else [control_record(controlled.plan, nanoseconds("interval", controlled.interval))],
    )


def _paced(scenario: Scenario, controlled: FlowLinks | None) -> dict[str, tuple[float, bool]]:
    """Of links whose rates are set, by their ids: the first one [bit/s], and whether they send at it."""
    if controlled is None:
        return {name: (rate, True) for name, rate in static_rates(scenario).items()}
    plan = controlled.plan
    return dict(zip(plan.links, zip(plan.nominal.tolist(), plan.paced.tolist(), strict=True), strict=True))


def _certificate(design: ArcDesign | PacingDesign | ConnetDesign) -> list[str]:
    if isinstance(design, ConnetDesign):
        return track_certificate(design)
    proof: Any = design.certificate
    if isinstance(design, PacingDesign):
        requested = design.inputs
        numbers = {
            "bottleneck": (requested.bottleneck_bit_per_s, "bit/s"),
            "round trip": (requested.rtt_s, "s"),
            "sampling": (proof.sampling_s, "s between two rates"),
            "freezes below": (proof.freeze_below_s, "s, d*, a deviation of the predicted RTT"),
            "limit of the step": (proof.step_limit, "of alpha"),
        }
        if proof.equilibrium is not None:
            numbers |= {
                "queue": (proof.equilibrium.queue_s, "s that all flows see"),
                "pole": (proof.equilibrium.pole, "of a difference of rates, a round trip"),
                "gain margin": (proof.equilibrium.gain_margin, "for any round trips"),
            }
        return certificate_comments(design, {name: each for name, each in numbers.items() if each[0] is not None})
    sampled = proof.sampled
    return certificate_comments(
        design,
        {
            "method": (design.method, ""),
            "design capacity": (design.law.capacity_bit_per_s, "bit/s"),
            "limit of alpha": (sampled.alpha_limit, f"1/packet, sampled loop of plant {sampled.plant}"),
            "gain margin": (sampled.gain_margin_db, "dB"),
            "phase margin": (sampled.phase_margin_deg, "degree"),
            "delay margin": (sampled.delay_margin_s, "s"),
            "spectral radius": (sampled.spectral_radius, "of one epoch"),
        },
    )


def _socket_buffer(scenario: Scenario) -> int:
    """Buffer that never limits a window: some multiples of the fastest link's capacity in the longest round trip."""
    fastest = max(
        [link.capacity for link in scenario.links]
        + [change.capacity for change in scenario.changes if change.capacity is not None]
    )
    longest = max(group.rtt[1] for group in scenario.flows) + 2.0 * sum(c.delay or 0.0 for c in scenario.changes)
    waiting = sum(link.buffer or 0.0 for link in scenario.links)
    return socket_buffer(fastest, longest, waiting)


def _link(link: Link, scenario: Scenario, paced: tuple[float, bool] | None) -> str:
    packet_size = int(scenario.packet_size)
    queue, attributes = link_queue(link, packet_size)
    buffer = None if link.buffer is None else int(link.buffer)
    if buffer is not None and isinstance(scenario.control, Track):
        buffer -= packet_size  # one more waits in the device
    opportunities: dict[str, Any] = {}
    if link.trace is not None:
        at, sizes = deliveries(link.trace, scenario.duration).T.tolist()
        header = round(link.trace.header_bytes) if isinstance(link.trace, LinkTrace) else 0
        opportunities = {"header": header, "at": map(str, at), "sizes": map(str, sizes)}
    return record_line(
        "link",
        word(link.id),
        *attributes,
        source=word(link.source),
        target=word(link.target),
        capacity=round(link.capacity),
        delay=nanoseconds(f"links.{link.id}.delay", link.delay),
        buffer=buffer,
        **({} if paced is None else {"nominal": paced[0], "paced": paced[1]}),
        **opportunities,
        queue=queue,
    )


def _group(scenario: Scenario, group: Flow, laws: list[PacingLaw], watched: bool) -> str:
    at_gates = group.id in gated_groups(scenario)
    sender = gate_values(group, scenario.packet_size) if at_gates else sender_values(group, laws)
    web: dict[str, float] = {}
    if isinstance(group.offers, Web):
        web = {
            "objects_per_page": group.offers.objects_per_page,
            "pareto_scale": group.offers.least_object,
            "pareto_shape": group.offers.pareto_shape,
            "max_object": group.offers.max_object,
            "think_time": group.offers.think_time,
        }
    return record_line(
        "group",
        word(group.id),
        **sender,
        ecn=group.hears_marks,
        at_router=watched or at_gates or None,
        path=map(word, group.path),
        ack_path=map(word, group.ack_path),
        **web,
    )


def _hosts_and_flows(
    scenario: Scenario, draws: Sequence[FlowDraw], gates: Mapping[str, GateDraws], watched: bool
) -> tuple[list[str], list[str]]:
    hosts: list[str] = []
    flows: list[str] = []
    delays = {link.id: nanoseconds(f"links.{link.id}.delay", link.delay) for link in scenario.links}
    for group, draw in zip(scenario.flows, draws, strict=True):
        where = f"flows.{group.id}"
        trips = [nanoseconds(f"{where}.rtt", rtt) for rtt in draw.rtt_s.tolist()]
        if len(set(trips)) > MAX_HOSTS:
            raise InvalidValue("draws", len(set(trips)), f"at most {MAX_HOSTS} round-trip times in group {group.id}")
        host_of = {trip: f"{word(group.id)}/{number}" for number, trip in enumerate(sorted(set(trips)), 1)}
        links_trip = sum(delays[name] for name in group.both_ways) if group.answered else 0
        for trip, host in host_of.items():
            if trip < links_trip:
                takes = f"at least {links_trip / 1e9:g} s, the delays of path and ack_path"
                raise InvalidValue(f"{where}.rtt", trip / 1e9, takes)
            hosts.append(record_line("host", host, group=word(group.id), access_delay=(trip - links_trip) // 2))
        spread = nanoseconds(f"{where}.start", round(group.start[1] - group.start[0], 12)) if watched else 0
        drawn = _gates(scenario, group, gates)
        for row, (trip, start, stop) in enumerate(zip(trips, draw.start_s.tolist(), draw.stop_s.tolist(), strict=True)):
            begin = nanoseconds(f"{where}.start", group.start[0] if watched else start)
            end = None if np.isinf(stop) else nanoseconds(f"{where}.stop", stop)
            flows.append(
                record_line("flow", host=host_of[trip], start=begin, spread=spread or None, stop=end, **drawn[row])
            )
    return hosts, flows


def _gates(scenario: Scenario, group: Flow, gates: Mapping[str, GateDraws]) -> list[dict[str, Any]]:
    """Of each flow what its regulator draws."""
    if group.id not in gated_groups(scenario):
        return [{}] * group.count
    opens, random = gates[group.id]
    return [{"opens": at, "random": state} for at, state in zip(opens.tolist(), random.tolist(), strict=True)]


def _change(change: Change) -> str:
    if change.flow:
        rate = None if change.rate is None else float(change.rate)
        return record_line("change", at=nanoseconds("changes.at", change.at), group=word(change.flow), rate=rate)
    capacity = None if change.capacity is None else round(change.capacity)
    delay = None if change.delay is None else nanoseconds("changes.delay", change.delay)
    return record_line(
        "change", at=nanoseconds("changes.at", change.at), link=word(change.link), capacity=capacity, delay=delay
    )
