"""A data centre as a program for stock ns-3: fixed files from the templates and three generated ones.

Rendering is pure; `netctrl.ns3.fabric.read` compiles and runs the program.
"""

from __future__ import annotations

import numpy as np

from netctrl.errors import InvalidValue
from netctrl.laws.codegen import field_texts
from netctrl.laws.window.law import Path, Telemetry
from netctrl.laws.window.records import Dctcp
from netctrl.model.design.design import MpccDesign, Provenance
from netctrl.ns3.cpp import certificate, gains_header, real, row, scenario_header
from netctrl.ns3.laws import window_law_header
from netctrl.ns3.links import MAX_BUFFER
from netctrl.ns3.templates import TCP, fixed_files
from netctrl.scenario.fabric.flows import common_sender
from netctrl.scenario.fabric.plan import FabricPlan
from netctrl.scenario.fabric.result import HISTOGRAM_BINS, HISTOGRAM_BYTES
from netctrl.scenario.scenario import Scenario
from netctrl.units import BITS_PER_BYTE

_HEADERS = 30
"""PPP 2, IPv4 20 and UDP 8 [byte]."""
_PPP = 2
_MAX_SIZE = 65_000
_MAX_PORTS = 100_000
_MAX_TCP = 50_000
_MIN_S = 0.5e-9
"""Shortest transmission time of a packet, as ns-3 rounds to whole nanoseconds."""
_A_LINE = 8
_PATH = field_texts(Path)


def render(
    scenario: Scenario, plan: FabricPlan, *, design: MpccDesign | None = None, provenance: Provenance
) -> dict[str, str]:
    """Files of an ns-3 program that runs a law of senders in a data centre: file name -> text.

    Parameters
    ----------
    scenario : Scenario
    plan : FabricPlan
        The scenario's ports, paths and law as numbers (`netctrl.sim.fabric.problem.fabric_plan`).
    design, provenance
        As in `netctrl.ns3.tcp_aqm.render.render`, with the same exceptions.

    Notes
    -----
    Besides the program a run needs its flows, `run-SEED.bin` (`run_table`).
    """
    _check(scenario, plan)
    return {
        "gains.h": _gains(scenario, plan, design, provenance),
        "netctrl-window-law.h": window_law_header(plan.senders.law),
        "scenario.h": _scenario(scenario, plan),
        **fixed_files("fabric", *TCP),
    }


def run_table(scenario: Scenario, plan: FabricPlan) -> bytes:
    """Flows of a run as 64-bit integers, little-endian: their number, then a row each.

    A row has source, target, size, start, kind of path, place among the watched flows or −1, ports of the forward and
    return path.
    """
    flows = plan.flows
    watched, watch = scenario.watch.flows, np.full(len(flows.size), -1, dtype=np.int64)
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
    if max(senders.payload + senders.overhead, senders.ack) > _MAX_SIZE:
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


# --- gains.h ---------------------------------------------------------------------------------------------------------


def _gains(scenario: Scenario, plan: FabricPlan, design: MpccDesign | None, provenance: Provenance) -> str:
    senders = plan.senders
    texts = field_texts(senders.law.parameters)
    values = zip(senders.law.parameters._fields, senders.parameters, strict=True)
    # No port counts more flows than there are, so larger entries are left out, except of a Design's own table.
    most = senders.tables.shape[1] if design is not None else len(plan.flows.size) + 1
    lines = [
        *(_certificate(design) if design is not None else []),
        "/// The senders' law.",
        "inline const Law kLaw = {",
        *(f"    {real(value)}, // {name}: {texts[name]}" for name, value in values),
        "};",
        "",
        f"inline constexpr std::size_t kMemory = {senders.memory}; ///< numbers that it keeps besides its state",
        "",
        f"/// {', '.join(f'{name} {unit}' for name, unit in _PATH.items())}; line rate and first window of senders;",
        "/// what the law looks up.",
        "inline const std::vector<PathRow> kPaths = {",
    ]
    for path, line, window, table in zip(senders.paths, senders.lines, senders.windows, senders.tables, strict=True):
        numbers = ", ".join(real(value) for value in path[:-1])
        rates = ", ".join(map(real, path.rates))
        lines += [f"    {{{{{numbers}, {{{rates}}}}}, {real(line)}, {real(window)},", *_table(table[:most])]
    lines.append("};")
    about = "The law of senders with its gains; it stands in netctrl-window-law.h."
    return gains_header("netctrl-fabric-tables.h", about, provenance, lines)


def _table(table: np.ndarray) -> list[str]:
    if not table.any():
        return ["     {}},"]
    texts = [real(value) for value in table]
    rows = [", ".join(texts[i : i + _A_LINE]) for i in range(0, len(texts), _A_LINE)]
    rows = [f"      {each}," for each in rows]
    return ["     {", *rows, "     }},"]


def _certificate(design: MpccDesign) -> list[str]:
    proof, law = design.certificate, design.law
    numbers = {
        "kFlows": (law.flows, "N that the numbers below are for"),
        "kGain": (law.gain, "K: bytes of window for a byte of queue"),
        "kFairWindow": (law.fair_window, "c [byte]"),
        "kB": (law.B, "bytes of queue for a byte of all windows, an interval"),
        "kInterval": (law.interval_s, "from one acknowledgement to the next [s]"),
        "kClosedLoopPole": (proof.closed_loop_pole, "1 - B K, without the round trip"),
        "kSpectralRadius": (proof.spectral_radius, "with it, where a queue stands; 1 or more: it swings"),
        "kDelaySteps": (proof.delay_steps, "of the round trip [acknowledgement]"),
        "kGainMargin": (proof.gain_margin, ""),
        "kDiskMargin": (proof.disc_alpha, ""),
        "kPhase": (proof.phase_deg, "[degree]"),
        "kProgramDifference": (proof.qp_difference, "from the quadratic program's window, largest, over P_BD"),
        "kFeasibleQueue": (proof.feasible_queue_bytes, "[byte]: beyond, the window is least"),
        "kSettling": (proof.settling_rtts, "of a burst of P_BD [round trip]"),
        "kUtilization": (proof.utilization, "at the fair window"),
    }
    return certificate(design, numbers)


# --- scenario.h ------------------------------------------------------------------------------------------------------


def _scenario(scenario: Scenario, plan: FabricPlan) -> str:
    watch, senders = scenario.watch, plan.senders
    sender = common_sender(scenario.flows)
    tcp = sender if isinstance(sender, Dctcp) else None
    law, marks = senders.law, senders.law.marking is not None
    largest = max(senders.payload + senders.overhead, senders.ack)
    most = 0.0 if senders.marking is None else senders.marking.most
    constants = {
        "int64_t kDuration": (plan.end, "[ns]"),
        "int kHosts": (plan.ports.hosts, "the first nodes"),
        "int kNodes": (int(plan.ports.source.max()) + 1, ""),
        "int64_t kPayload": (senders.payload, "of a full packet [byte]"),
        "int64_t kDataOverhead": (senders.overhead, "of a data packet on the wire [byte]"),
        "int64_t kAckSize": (senders.ack, "on the wire [byte]"),
        "uint32_t kPacketSize": (largest - _PPP, "of the largest IP packets [byte]"),
        "bool kTelemetry": (law.telemetry != Telemetry.NONE, "switch ports write it"),
        "bool kCountsFlows": (law.telemetry == Telemetry.FLOWS, "with how many flows pass them"),
        "bool kMarks": (marks and tcp is None, "switch ports mark data that finds a long queue"),
        "double kMostMarking": (most, "probability between a port's two thresholds"),
        "int64_t kNotification": (senders.notification, "least time between two notifications of marks [ns]; 0: none"),
        "int64_t kFlowTimeout": (senders.flow_timeout, "a port counts a flow so long after its last packet [ns]"),
        "int64_t kRetransmission": (senders.timeout, "[ns]"),
        "uint32_t kBuffer": (round(scenario.network.buffer or 0), "of a switch port [byte]; 0: no limit"),
        "int64_t kSample": (plan.interval, "from one sample of all queues to the next [ns]"),
        "int64_t kBin": (plan.bin, "of watched flows' throughput [ns]"),
        "int64_t kBins": (-(-plan.end // plan.bin), ""),
        "int64_t kWatchedFlows": (len(watch.flows), ""),
        "int64_t kWatchedPorts": (len(watch.ports), ""),
        "int64_t kMostAcknowledgements": (watch.acknowledgements, "that are logged"),
        "bool kTcp": (tcp is not None, "flows go over ns-3's TcpDctcp"),
        "double kDctcpGain": (tcp.gain if tcp is not None else 0.0, "g"),
        "bool kSlowStart": (tcp is not None and tcp.slow_start, "of DCTCP"),
        "int64_t kHistogramBins": (HISTOGRAM_BINS, ""),
        "int64_t kHistogramBytes": (HISTOGRAM_BYTES, "of a bin"),
    }
    ports = [
        "",
        "/// from node, to node, rate [bit/s], delay [ns], the other end's port, place among watched ports or -1,",
        "/// thresholds of marking [byte]",
        "inline const std::vector<PortRow> kPorts = {",
        *(f"    {each}" for each in _ports(scenario, plan)),
        "};",
    ]
    return scenario_header("netctrl-fabric-tables.h", scenario.name, constants, {}, last=ports)


def _ports(scenario: Scenario, plan: FabricPlan) -> list[str]:
    ports = plan.ports
    ends = list(zip(ports.source.tolist(), ports.target.tolist(), strict=True))
    number = {end: place for place, end in enumerate(ends)}
    watched = {name: place for place, name in enumerate(scenario.watch.ports)}
    marks = plan.senders.law.marking is not None
    low, high = ((np.minimum(each, MAX_BUFFER) if marks else np.zeros_like(each)).tolist() for each in plan.marks)
    columns = zip(ends, ports.rate.tolist(), ports.delay.tolist(), low, high, ports.names, strict=True)
    return [
        row([a, b, f"{rate}U", delay, number[b, a], watched.get(name, -1), K, most]) + f", // {name}"
        for (a, b), rate, delay, K, most, name in columns
    ]
