"""Paced flows and their peers at a bottleneck as a program for stock ns-3: fixed files and two generated ones.

Rendering is pure; `netctrl.ns3.bottleneck.read` compiles and runs the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isclose

from netctrl.errors import InvalidValue
from netctrl.laws.codegen import field_texts
from netctrl.laws.pacing.arx import ArxParameters, ArxState, arx_pacing_step, arx_settings, arx_start
from netctrl.laws.pacing.target_rtt import target_rtt_step
from netctrl.laws.pacing.target_state import TargetParameters, TargetState, target_settings, target_start
from netctrl.laws.rate.cap import CapSender
from netctrl.laws.rate.paced import PacedSender
from netctrl.laws.rate.records import sender_name
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
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Stream
from netctrl.units import BITS_PER_BYTE

__all__ = ["OWN_SENDERS", "render"]

_TCP_LAWS = "TCP's laws: printed from the Python that netctrl simulates."
_PACING_LAWS = "Pacing laws, one sample at a time: printed from the Python that netctrl runs."

_MIN_SIZE, _MAX_SIZE = 100, 65_000
_MAX_RTTS = 2**31
"""Largest number of packets of a run, each with a sample of 24 bytes."""
OWN_SENDERS = ("paced", "cap", "htcp", "cubic", "bbr", "reno")
"""Senders that ns-3 or the program has; windows of others are printed."""
_UNDERNEATH = "htcp"
"""Window law under a cap and under the paper's law."""
_MIN_RATE = 8.0
"""One byte per second; lower rates may round to 0 in ns-3's whole bit/s."""


def render(scenario: Scenario, *, design: PacingDesign | None = None, provenance: Provenance) -> dict[str, str]:
    """Files of an ns-3 program that runs flows through a bottleneck: file name -> text.

    Parameters
    ----------
    scenario : Scenario
        One for which `netctrl.scenario.bottleneck.single_line` holds; its paced flows have one law. The paper's law
        caps the pacing rate of H-TCP; a target-RTT law works alone.
    design, provenance
        As in `netctrl.ns3.tcp_aqm.render.render`, with the same exceptions.

    Notes
    -----
    Runs that differ only in the seed share a program.
    """
    law = _law_of(scenario)
    _check(scenario, law)
    return {
        "gains.h": _gains(scenario, law, design, provenance),
        "netctrl-laws.h": laws_header(own_laws([scenario.links[0].queue])),
        "netctrl-pacing-laws.h": functions_header("pacing-laws", _PACING_LAWS, (arx_pacing_step, target_rtt_step)),
        "netctrl-tcp-laws.h": functions_header("tcp-laws", _TCP_LAWS, (htcp_increase, htcp_backoff)),
        "netctrl-tcp-windows.h": tcp_windows_header([TCP_SENDERS[name] for name in _windows(scenario)]),
        "scenario.h": _scenario(scenario),
        **fixed_files("bottleneck", *QUEUES, *TCP),
    }


def _check(scenario: Scenario, law: PacingLaw | None) -> None:
    (line,), size = scenario.links, scenario.packet_size
    if size != int(size) or not _MIN_SIZE <= size <= _MAX_SIZE:
        raise InvalidValue("packet_size", size, f"a whole number of bytes from {_MIN_SIZE} to {_MAX_SIZE}")
    check_capacity("capacity", line.capacity, size)
    check_buffer("buffer", line.buffer or 0.0, size)
    packets = line.capacity * scenario.duration / (BITS_PER_BYTE * size)
    if packets > _MAX_RTTS:
        takes = f"a time in which the bottleneck sends at most {_MAX_RTTS} packets: each has a sample of its RTT"
        raise InvalidValue("duration", scenario.duration, takes)
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
        settings_initializer(scenario.links[0].queue, "queue", int(scenario.packet_size)).rstrip(",") + ";",
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
    (line,) = scenario.links
    single = [group for group in scenario.flows if group.bulk]
    cross = [group.offers.rate for group in scenario.flows if isinstance(group.offers, Stream)]
    capacity, spread = line.capacity, _start_spread(single)
    waits = min(line.buffer or 0.0, MAX_BUFFER - 1)
    window = socket_buffer(capacity, max(group.rtt[0] for group in single), waits)
    constants = {
        "uint64_t kCapacity": (round(capacity), "of the bottleneck [bit/s]"),
        "uint64_t kAccessRate": access_rate(capacity),
        "uint32_t kBuffer": (int(waits), "in front of it [byte]"),
        "uint32_t kPacketSize": (int(scenario.packet_size), "with IP and TCP headers [byte]"),
        "uint32_t kSocketBuffer": (window, "of TCP at both ends [byte]"),
        "double kCrossRate": (sum(cross), "of packets at random [bit/s]"),
        "int64_t kStartSpread": (nanoseconds("start_spread", spread), "[ns]"),
        "int64_t kDuration": (nanoseconds("duration", scenario.duration), "[ns]"),
        "int64_t kBin": (nanoseconds("interval", scenario.interval), "[ns]"),
    }
    windows = _windows(scenario)
    rows = [_flow(group, windows) for group in single]
    tables = {"FlowRow kFlows": ("control, window, cap, delay, start, stop", rows)}
    return scenario_header("netctrl-pacing-tables.h", scenario.name, constants, tables)


def _start_spread(flows: Sequence[Flow]) -> float:
    """Range within which each flow starts [s]; InvalidValue where flows have several."""
    spreads = [high - low for low, high in (group.start for group in flows)]
    for group, spread in zip(flows, spreads, strict=True):
        if not isclose(spread, spreads[0], rel_tol=1e-9):
            raise InvalidValue(f"flows.{group.id}.start", group.start, "a range as long as that of all other flows")
    return round(spreads[0], 12)


def _law_of(scenario: Scenario) -> PacingLaw | None:
    """The law of all paced flows; InvalidValue where there are several, or one with another window."""
    paced = [group for group in scenario.flows if isinstance(group.sender, PacedSender)]
    for group in paced:
        if group.sender != paced[0].sender:
            raise InvalidValue(f"flows.{group.id}.sender", "another law", "the law of all other paced flows")
    if not paced:
        return None
    law = paced[0].sender.pacer()
    window = None if isinstance(law, TargetRttPacer) else _UNDERNEATH
    if paced[0].sender.window != window:
        raise InvalidValue(f"flows.{paced[0].id}.sender.window", paced[0].sender.window, f"{window} under this law")
    return law


def _windows(scenario: Scenario) -> list[str]:
    """Senders whose window laws are printed, as ns-3 doesn't have them."""
    names = {sender_name(group.sender) for group in scenario.flows if group.bulk}
    return sorted(names - set(OWN_SENDERS))


def _flow(group: Flow, windows: list[str]) -> str:
    where, name = f"flows.{group.id}", sender_name(group.sender)
    cap = group.sender.rate if isinstance(group.sender, CapSender) else 0.0
    if isinstance(group.sender, CapSender) and group.sender.window != _UNDERNEATH:
        raise InvalidValue(f"{where}.sender.window", group.sender.window, f"{_UNDERNEATH} under a cap, in ns-3")
    delay = nanoseconds(f"{where}.rtt", group.rtt[0]) // 2
    stop = -1 if group.stop is None else nanoseconds(f"{where}.stop", group.stop[0])
    start = nanoseconds(f"{where}.start", group.start[0])
    window = windows.index(name) if name in windows else -1
    control = "Control::kWindow" if name in windows else f"Control::k{name.capitalize()}"
    return row([control, window, cap, delay, start, stop])
