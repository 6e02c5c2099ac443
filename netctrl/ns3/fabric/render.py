"""A data centre as data for the program for stock ns-3: scenario.txt beside its sources.

Rendering is pure; `netctrl.ns3.fabric.read` runs the program.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.core.units import BITS_PER_BYTE
from netctrl.laws.window.law import Path, Telemetry
from netctrl.laws.window.records import Dctcp
from netctrl.model.design.design import MpccDesign, Provenance
from netctrl.ns3.cpp import real
from netctrl.ns3.fabric.centre import Centre
from netctrl.ns3.links import MAX_BUFFER
from netctrl.ns3.program import SCENARIO
from netctrl.ns3.queues import Attribute
from netctrl.ns3.records import certificate_comments, record_line, record_values, scenario_text
from netctrl.ns3.sources import program_files
from netctrl.scenario.fabric.flows import common_sender
from netctrl.scenario.fabric.plan import FabricPlan, Senders
from netctrl.scenario.fabric.result import HISTOGRAM_BINS, HISTOGRAM_BYTES
from netctrl.scenario.scenario import Scenario

_HEADERS = 30
"""PPP 2, IPv4 20 and UDP 8 [byte]."""
_PPP = 2
_MAX_SIZE = 65_000
_MAX_PORTS = 100_000
_MAX_TCP = 50_000
_MIN_S = 0.5e-9
"""Shortest transmission time of a packet, as ns-3 rounds to whole nanoseconds."""
_TCP_BUFFER = 1 << 24
"""[byte], at both ends."""


def render(
    scenario: Scenario, plan: FabricPlan, *, design: MpccDesign | None = None, provenance: Provenance
) -> dict[str, str]:
    """Files of an ns-3 program and of the data centre that it reads: file name -> text.

    Parameters
    ----------
    scenario : Scenario
    plan : FabricPlan
        The scenario's ports, paths and law as numbers (`netctrl.sim.packet.fabric.fabric_plan`).
    design, provenance
        As in `netctrl.ns3.tcp_aqm.render.render`, with the same exceptions.

    Notes
    -----
    Besides the program a run needs its flows, `run-SEED.bin` (`run_table`).
    """
    _check(scenario, plan)
    return {SCENARIO: _scenario(scenario, plan, design, provenance), **program_files(schemes=[plan.senders.law])}


def run_table(scenario: Scenario, plan: FabricPlan) -> bytes:
    """Flows of a run as 64-bit integers, little-endian: their number, then a row each.

    A row has source, target, size, start, kind of path, place among the watched flows or −1, ports of the forward and
    return path.
    """
    flows = plan.flows
    watched, watch = scenario.network.watch.flows, np.full(len(flows.size), -1, dtype=np.int64)
    watch[list(watched)] = np.arange(len(watched))
    columns = (flows.source, flows.target, flows.size, flows.start, plan.kind, watch)
    rows = np.column_stack([*columns, plan.routes[:, 0], plan.routes[:, 1]]).astype("<i8")
    return np.array([len(rows)], dtype="<i8").tobytes() + rows.tobytes()


def _check(scenario: Scenario, plan: FabricPlan) -> None:
    network, senders = scenario.network, plan.senders
    if isinstance(common_sender(scenario.flows), Dctcp) and len(plan.flows.size) > _MAX_TCP:
        takes = f"at most {_MAX_TCP} with dctcp, as each has a TCP port"
        raise InvalidValue("flows", len(plan.flows.size), takes)
    if network.pfc is not None:
        raise InvalidValue("pfc", "Pfc", "null: ns-3's point-to-point devices can't pause one another")
    for name, size in (("packets.payload", 1 + senders.overhead), ("packets.ack", senders.ack)):
        if size < _HEADERS + (name == "packets.payload"):
            takes = f"sizes on the wire of at least {_HEADERS} bytes, the headers of PPP, IPv4 and UDP"
            raise InvalidValue(name, size, takes)
    if _largest(senders) > _MAX_SIZE:
        raise InvalidValue("packets.payload", senders.payload, f"packets of at most {_MAX_SIZE} bytes on the wire")
    fastest = float(plan.ports.rate.max())
    shortest = min(1 + senders.overhead, senders.ack)
    if shortest * BITS_PER_BYTE / fastest < _MIN_S:
        takes = f"links on which a packet of {shortest} bytes takes {_MIN_S:g} s or more: ns-3 counts in ns"
        raise InvalidValue("network", f"{fastest:g} bit/s", takes)
    if len(plan.ports.names) > _MAX_PORTS:
        raise InvalidValue("network", f"{len(plan.ports.names)} ports", f"at most {_MAX_PORTS}: links have addresses")
    if network.buffer is not None and not senders.ack <= network.buffer <= MAX_BUFFER:
        takes = f"null, or {senders.ack} bytes, an acknowledgement, to {MAX_BUFFER}"
        raise InvalidValue("buffer", network.buffer, takes)


def _largest(senders: Senders) -> int:
    """Size of the largest packets on the wire [byte]."""
    return max(senders.payload + senders.overhead, senders.ack)


def _scenario(scenario: Scenario, plan: FabricPlan, design: MpccDesign | None, provenance: Provenance) -> str:
    sender = common_sender(scenario.flows)
    tcp = sender if isinstance(sender, Dctcp) else None
    largest = _largest(plan.senders)
    settings = record_line(
        "set",
        "",
        *(_dctcp(plan, tcp) if tcp is not None else []),
        duration=plan.end,
        sample=plan.interval,
        packet_size=largest - _PPP,
        initial_window=1,
        seed=1,
        run=scenario.seed,
        first_run=1,
        socket_buffer=_TCP_BUFFER,
    )
    return scenario_text(
        scenario.name,
        provenance,
        [] if design is None else _certificate(design),
        [settings, record_line("centre", "", *record_values(Centre, _centre(scenario, plan, tcp)))],
        [
            record_line(
                "senders",
                "",
                *record_values(plan.senders.law.parameters, plan.senders.laws[0].parameters),
                law=plan.senders.law.name,
                memory=max(each.memory for each in plan.senders.laws),
            )
        ],
        list(_paths(plan, design)),
        list(_ports(scenario, plan, tcp)),
    )


def _dctcp(plan: FabricPlan, tcp: Dctcp) -> list[Attribute]:
    timeout = f"{plan.senders.timeout}ns"
    return [
        ("ns3::TcpSocket::SegmentSize", str(plan.senders.payload), "[byte]"),
        ("ns3::TcpL4Protocol::SocketType", "ns3::TcpDctcp", ""),
        ("ns3::TcpDctcp::DctcpShiftG", real(tcp.gain), "g"),
        ("ns3::TcpSocketBase::MinRto", timeout, ""),
        ("ns3::TcpSocketBase::ClockGranularity", "1us", ""),
        ("ns3::TcpSocket::ConnTimeout", timeout, ""),
        ("ns3::TcpSocket::ConnCount", "1000", ""),
    ]


def _centre(scenario: Scenario, plan: FabricPlan, tcp: Dctcp | None) -> Centre:
    watch, senders, ports = scenario.network.watch, plan.senders, plan.ports
    law = senders.law
    return Centre(
        hosts=ports.hosts,
        nodes=int(ports.source.max()) + 1,
        payload=plan.senders.payload,
        overhead=plan.senders.overhead,
        ack=plan.senders.ack,
        telemetry=law.telemetry != Telemetry.NONE,
        counts_flows=law.telemetry == Telemetry.FLOWS,
        marks=law.marking is not None and tcp is None,
        most_marking=0.0 if senders.marking is None else senders.marking.most,
        notification=plan.senders.notification,
        flow_timeout=plan.senders.flow_timeout,
        retransmission=plan.senders.timeout,
        buffer=round(scenario.network.buffer or 0),
        tcp=tcp is not None,
        slow_start=tcp is not None and tcp.slow_start,
        bin=plan.bin,
        bins=-(-plan.end // plan.bin),
        watched_flows=len(watch.flows),
        watched_ports=len(watch.ports),
        most_acknowledgements=watch.acknowledgements,
        histogram_bins=HISTOGRAM_BINS,
        histogram_bytes=HISTOGRAM_BYTES,
    )


def _paths(plan: FabricPlan, design: MpccDesign | None) -> Iterator[str]:
    """Kinds of path: line rate and first window of senders, the path as the law takes it, what it looks up."""
    # No port counts more flows than there are, so larger entries are left out, except of a Design's own table.
    most = None if design is not None else len(plan.flows.size) + 1
    for law, line in zip(plan.senders.laws, plan.senders.lines.tolist(), strict=True):
        numbers = law.table[:most].tolist() if law.table.any() else []
        values = [*record_values(Path, law.path), ("table", ",".join(map(repr, numbers)), "what the law looks up")]
        yield record_line("path", "", *values, rate=line, window=float(law.start))


def _ports(scenario: Scenario, plan: FabricPlan, tcp: Dctcp | None) -> Iterator[str]:
    ports = plan.ports
    ends = list(zip(ports.source.tolist(), ports.target.tolist(), strict=True))
    number = {end: place for place, end in enumerate(ends)}
    watched = {name: place for place, name in enumerate(scenario.network.watch.ports)}
    low, high = plan.marks
    for place, ((source, target), name) in enumerate(zip(ends, ports.names, strict=True)):
        marks: dict[str, int] = {}
        attributes: list[Attribute] = []
        if source >= ports.hosts and tcp is not None:
            attributes = _red(int(low[place]), _largest(plan.senders) - _PPP)
        elif source >= ports.hosts and plan.senders.law.marking is not None:
            marks = {"mark_low": min(int(low[place]), MAX_BUFFER), "mark_high": min(int(high[place]), MAX_BUFFER)}
        yield record_line(
            "port",
            name,
            *attributes,
            source=source,
            target=target,
            rate=int(ports.rate[place]),
            delay=int(ports.delay[place]),
            reverse=number[target, source],
            watch=watched.get(name),
            **marks,
            queue="ns3::RedQueueDisc" if attributes else None,
        )


def _red(threshold: int, packet_size: int) -> list[Attribute]:
    """RED that marks what comes when more than K waits, as DCTCP's authors and ns-3's example do: on the queue as it is
    now, without room between the thresholds."""
    return [
        ("UseEcn", "true", ""),
        ("UseHardDrop", "false", ""),
        ("Gentle", "false", ""),
        ("MeanPktSize", str(packet_size), "[byte]"),
        ("QW", "1.0", ""),
        ("MinTh", real(float(threshold)), "K [byte]"),
        ("MaxTh", real(threshold + 1.0), ""),
    ]


def _certificate(design: MpccDesign) -> list[str]:
    proof, law = design.certificate, design.law
    numbers = {
        "flows": (law.flows, "N that the numbers below are for"),
        "gain": (law.gain, "K: bytes of window for a byte of queue"),
        "fair window": (law.fair_window, "c [byte]"),
        "B": (law.B, "bytes of queue for a byte of all windows, an interval"),
        "interval": (law.interval_s, "from one acknowledgement to the next [s]"),
        "closed-loop pole": (proof.closed_loop_pole, "1 - B K, without the round trip"),
        "spectral radius": (proof.spectral_radius, "with it, where a queue stands; 1 or more: it swings"),
        "delay": (proof.delay_steps, "of the round trip [acknowledgement]"),
        "gain margin": (proof.gain_margin, ""),
        "disk margin": (proof.disc_alpha, ""),
        "phase": (proof.phase_deg, "[degree]"),
        "program difference": (proof.qp_difference, "from the quadratic program's window, largest, over P_BD"),
        "feasible queue": (proof.feasible_queue_bytes, "[byte]: beyond, the window is least"),
        "settling": (proof.settling_rtts, "of a burst of P_BD [round trip]"),
        "utilization": (proof.utilization, "at the fair window"),
    }
    return certificate_comments(design, numbers)
