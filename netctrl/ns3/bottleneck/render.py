"""Paced flows and their peers at a bottleneck as a program for stock ns-3: fixed files and two generated ones.

Rendering is pure; `netctrl.ns3.bottleneck.read` compiles and runs the program.
"""

from __future__ import annotations

from netctrl.errors import InvalidValue
from netctrl.laws.codegen import field_texts
from netctrl.laws.pacing.arx import ArxParameters, ArxState, arx_pacing_step, arx_settings, arx_start
from netctrl.laws.pacing.target_rtt import target_rtt_step
from netctrl.laws.pacing.target_state import TargetParameters, TargetState, target_settings, target_start
from netctrl.laws.record import row_names
from netctrl.laws.tcp.htcp import htcp_backoff, htcp_increase
from netctrl.model.design.design import PacingDesign, Provenance
from netctrl.model.law import PacingLaw, TargetRttPacer
from netctrl.ns3.cpp import certificate, gains_header, nanoseconds, real, row, scenario_header
from netctrl.ns3.laws import functions_header, laws_header, tcp_windows_header
from netctrl.ns3.links import MAX_BUFFER, access_rate, check_buffer, check_capacity, socket_buffer
from netctrl.ns3.queues import own_laws, settings_initializer
from netctrl.ns3.templates import QUEUES, TCP, fixed_files
from netctrl.register import TCP_SENDERS
from netctrl.scenario.bottleneck.line import SINGLE_SENDERS, Bottleneck, SingleFlow
from netctrl.scenario.scenario import Scenario, checked_network
from netctrl.units import BITS_PER_BYTE

__all__ = ["render"]

_TCP_LAWS = "TCP's laws: printed from the Python that netctrl simulates."
_PACING_LAWS = "Pacing laws, one sample at a time: printed from the Python that netctrl runs."

_MIN_SIZE, _MAX_SIZE = 100, 65_000
_MAX_RTTS = 2**31
"""Largest number of packets of a run, each with a sample of 24 bytes."""
_MIN_RATE = 8.0
"""One byte per second; lower rates may round to 0 in ns-3's whole bit/s."""


def render(
    scenario: Scenario,
    law: PacingLaw | None = None,
    *,
    design: PacingDesign | None = None,
    provenance: Provenance,
) -> dict[str, str]:
    """Files of an ns-3 program that runs flows through a bottleneck: file name -> text.

    Parameters
    ----------
    scenario : Scenario
    law : PacingLaw, optional
        Law of the flows with sender paced. The paper's law caps the pacing rate of H-TCP; a target-RTT law works alone.
    design, provenance
        As in `netctrl.ns3.tcp_aqm.render.render`, with the same exceptions.

    Notes
    -----
    Runs that differ only in the seed share a program.
    """
    _check(scenario, law)
    return {
        "gains.h": _gains(scenario, law, design, provenance),
        "netctrl-laws.h": laws_header(own_laws([scenario.network.queue])),
        "netctrl-pacing-laws.h": functions_header("pacing-laws", _PACING_LAWS, (arx_pacing_step, target_rtt_step)),
        "netctrl-tcp-laws.h": functions_header("tcp-laws", _TCP_LAWS, (htcp_increase, htcp_backoff)),
        "netctrl-tcp-windows.h": tcp_windows_header([TCP_SENDERS[name] for name in _windows(scenario)]),
        "scenario.h": _scenario(scenario),
        **fixed_files("bottleneck", *QUEUES, *TCP),
    }


def _check(scenario: Scenario, law: PacingLaw | None) -> None:
    line: Bottleneck = checked_network(scenario, Bottleneck)
    size = scenario.packet_size
    if size != int(size) or not _MIN_SIZE <= size <= _MAX_SIZE:
        raise InvalidValue("packet_size", size, f"a whole number of bytes from {_MIN_SIZE} to {_MAX_SIZE}")
    check_capacity("capacity", line.capacity, size)
    check_buffer("buffer", line.buffer, size)
    packets = line.capacity * scenario.duration / (BITS_PER_BYTE * size)
    if packets > _MAX_RTTS:
        takes = f"a time in which the bottleneck sends at most {_MAX_RTTS} packets: each has a sample of its RTT"
        raise InvalidValue("duration", scenario.duration, takes)
    paced = any(flow.sender == "paced" for flow in scenario.flows)
    if paced and law is None:
        raise InvalidValue("law", None, "a law for the flows of sender paced: a Design of pacing")
    if law is not None and not paced:
        takes = "at least one flow with sender paced, whose rate the law sets"
        raise InvalidValue("flows", "no flow with sender paced", takes)
    if law is not None and not law.least_rate_bit_per_s >= _MIN_RATE:
        takes = f"at least {_MIN_RATE:g} bit/s: at a rate of 0 no acknowledgement changes the rate; "
        raise InvalidValue("least_rate_bit_per_s", law.least_rate_bit_per_s, takes + "leave out --literal")


# --- gains.h ---------------------------------------------------------------------------------------------------------


def _gains(scenario: Scenario, law: PacingLaw | None, design: PacingDesign | None, provenance: Provenance) -> str:
    lines = [
        *(_certificate(design) if design is not None else []),
        "/// Sets the rates of paced flows: parameters, then the state before the first sample.",
        *_law(law),
        "",
        "/// In front of the bottleneck.",
        "inline const QueueSettings kQueue =",
        settings_initializer(scenario.network.queue, "queue", int(scenario.packet_size)).rstrip(",") + ";",
    ]
    about = "The law of pacing rates with its parameters; what they mean is in netctrl-pacing-laws.h."
    return gains_header("netctrl-pacing-tables.h", about, provenance, lines)


def _law(law: PacingLaw | None) -> list[str]:
    if law is None:
        return ["inline const Pacer kLaw = NoPacer{};"]
    nanoseconds("period_s", law.period_s)
    if isinstance(law, TargetRttPacer):
        nanoseconds("probe_s", law.probe_s)
        name, records, rows = "Target", (TargetParameters, TargetState), (target_settings(law), target_start(law))
        memory = []
    else:
        name, records, rows = "Arx", (ArxParameters, ArxState), (arx_settings(law), arx_start(law))
        memory = [f"    std::vector<double>({2 * (law.past_rtts + law.past_rates)}), // theta, then phi"]
    lines = [f"inline const Pacer kLaw = {name}Pacer{{"]
    for kind, numbers in zip(records, rows, strict=True):
        texts = field_texts(kind)
        lines += ["    {", *(
            f"        {real(value)}, // {field}{texts[field] and f': {texts[field]}'}"
            for field, value in zip(row_names(kind), numbers.tolist(), strict=False)
        ), "    },"]  # fmt: skip
    return [*lines, *memory, "};"]


def _certificate(design: PacingDesign) -> list[str]:
    proof, requested = design.certificate, design.inputs
    numbers = {
        "kSampling": (proof.sampling_s, "between two rates [s]"),
        "kFreezesBelow": (proof.freeze_below_s, "d*, a deviation of the predicted RTT [s]"),
        "kStepLimit": (proof.step_limit, "of alpha"),
        "kTargetRtt": (proof.target_rtt_s, "[s]"),
        "kClosedLoopPole": (proof.closed_loop_pole, "of what is in flight, from one rate to the next"),
        "kIntervalMargin": (proof.interval_margin, "factor by which rates may come later"),
    }
    known = {name: each for name, each in numbers.items() if each[0] is not None}
    return certificate(design, known, f", at {requested.bottleneck_bit_per_s:g} bit/s and {requested.rtt_s:g} s")


# --- scenario.h ------------------------------------------------------------------------------------------------------


def _scenario(scenario: Scenario) -> str:
    line: Bottleneck = scenario.network
    capacity, rtts = line.capacity, line.rtts_s(scenario.flows)
    waits = min(line.buffer, MAX_BUFFER - 1)
    window = socket_buffer(capacity, max(rtts), waits)
    constants = {
        "uint64_t kCapacity": (round(capacity), "of the bottleneck [bit/s]"),
        "uint64_t kAccessRate": access_rate(capacity),
        "uint32_t kBuffer": (int(waits), "in front of it [byte]"),
        "uint32_t kPacketSize": (int(scenario.packet_size), "with IP and TCP headers [byte]"),
        "uint32_t kSocketBuffer": (window, "of TCP at both ends [byte]"),
        "double kCrossRate": (line.cross, "of packets at random [bit/s]"),
        "int64_t kStartSpread": (nanoseconds("start_spread", line.start_spread), "[ns]"),
        "int64_t kDuration": (nanoseconds("duration", scenario.duration), "[ns]"),
        "int64_t kBin": (nanoseconds("interval", scenario.interval), "[ns]"),
    }
    flows, windows = zip(scenario.flows, rtts, strict=True), _windows(scenario)
    rows = [_flow(place, flow, rtt, windows) for place, (flow, rtt) in enumerate(flows)]
    tables = {"FlowRow kFlows": ("control, window, cap, delay, start, stop", rows)}
    return scenario_header("netctrl-pacing-tables.h", scenario.name, constants, tables)


def _windows(scenario: Scenario) -> list[str]:
    """Senders whose window laws are printed, as ns-3 doesn't have them."""
    return sorted({flow.sender for flow in scenario.flows} - set(SINGLE_SENDERS))


def _flow(place: int, flow: SingleFlow, rtt_s: float, windows: list[str]) -> str:
    where = f"flows[{place}]"
    delay = nanoseconds(f"{where}.rtt", rtt_s) // 2
    stop = -1 if flow.stop is None else nanoseconds(f"{where}.stop", flow.stop)
    start = nanoseconds(f"{where}.start", flow.start)
    window = windows.index(flow.sender) if flow.sender in windows else -1
    control = "Control::kWindow" if flow.sender in windows else f"Control::k{flow.sender.capitalize()}"
    return row([control, window, flow.rate or 0.0, delay, start, stop])
