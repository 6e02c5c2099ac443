"""An access link under CONNET as a program for stock ns-3: fixed files from the templates and two generated ones.

Rendering is pure; `netctrl.ns3.access.read` compiles and runs the program.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from netctrl.errors import InvalidValue
from netctrl.laws.cpp import camel
from netctrl.laws.tracking.online_map import OnlineStaticMap
from netctrl.laws.tracking.reference_governor import ReferenceGovernor, govern
from netctrl.laws.tracking.schedule import GainSchedule, scheduled
from netctrl.laws.tracking.tracking import TrackingGains, TrackingState, step_tracking, tracking_gains
from netctrl.model.design.design import ConnetDesign, Provenance
from netctrl.ns3.cpp import certificate, constant, gains_header, nanoseconds, row, scenario_header, string
from netctrl.ns3.laws import functions_header
from netctrl.ns3.links import MAX_RECORDS, check_capacity
from netctrl.ns3.templates import fixed_files
from netctrl.plants.access import observe, pause_mean, read_premium
from netctrl.scenario.access.plan import AccessLinkPlan
from netctrl.scenario.access.scenario import AccessLinkParts, access_parts
from netctrl.scenario.scenario import Scenario
from netctrl.units import BITS_PER_BYTE

_MIN_SIZE, _MAX_SIZE = 64, 65_000
_PPP_BYTES = 2
_MAX_NUMBERS = 200_000
_MAX_BURST = 10_000
_LAW = "A law that tracks references, its governor and its schedule: printed from the Python that netctrl simulates."
_LINK = "What premium packets see, and pauses of regulators: printed from the Python that netctrl simulates."
COLUMNS = (
    "time_s",
    "rate_bit_per_s",
    "burst",
    "delay_ms",
    "jitter_ms",
    "mean_delay_ms",
    "mean_jitter_ms",
    "premium_received",
    "premium_lost",
    "premium_bit_per_s",
    "other_bit_per_s",
    "other_lost",
    "utilization",
)
"""Scalar fields of an AccessLinkSample, in the order in which the program writes them."""


def render(
    scenario: Scenario, plan: AccessLinkPlan, *, design: ConnetDesign | None = None, provenance: Provenance
) -> dict[str, str]:
    """Files of an ns-3 program that runs a law on an access link: file name -> text.

    Parameters
    ----------
    scenario : Scenario
        Scenario of an access link.
    plan : AccessLinkPlan
        The law with its references, governor and schedule (`netctrl.scenario.access.plan`).
    design, provenance
        As in `netctrl.ns3.tcp_aqm.render.render`, with the same exceptions.

    Notes
    -----
    Besides the program a run needs the table of its draws, `run-SEED.bin` (`netctrl.sim.access.draws.run_table`). Runs
    that differ only in the seed share a program.
    """
    parts = access_parts(scenario)
    _check(parts, plan)
    return {
        "gains.h": _gains(plan, design, provenance),
        "scenario.h": _scenario(scenario, parts, plan),
        "netctrl-tracking-law.h": functions_header(
            "tracking-law", _LAW, (step_tracking, govern, scheduled), "netctrl-arrays.h"
        ),
        "netctrl-access-laws.h": functions_header("access-laws", _LINK, (observe, read_premium, pause_mean)),
        **fixed_files("access", "netctrl-arrays.h"),
    }


def _check(parts: AccessLinkParts, plan: AccessLinkPlan) -> None:
    line, flows = parts.line, parts.flows
    if line.discipline != "fifo":
        takes = "fifo; wfq and cbq exist only in netctrl's simulator, not in stock ns-3"
        raise InvalidValue("discipline", line.discipline, takes)
    if parts.sender is not None:
        takes = "null: TCP behind token buckets exists only in netctrl's simulator"
        raise InvalidValue(f"flows.{parts.regulated[0].id}.sender", "TcpSenders", takes)
    sizes = {"packet_size": parts.packet_size, f"flows.{parts.premium.id}.size": parts.premium.size}
    for name, size in sizes.items():
        if size != int(size) or not _MIN_SIZE <= size <= _MAX_SIZE:
            raise InvalidValue(name, size, f"a whole number of bytes from {_MIN_SIZE} to {_MAX_SIZE}")
        check_capacity("capacity", line.capacity, size)
    if line.limit < 2:
        raise InvalidValue("limit", line.limit, "at least 2, one packet being sent and one waiting, as in a device")
    hosts = 1 + len(parts.regulated) + len(parts.cross)
    if flows + hosts > MAX_RECORDS - 10_000:
        takes = f"at most {MAX_RECORDS - 10_000} flows and hosts, whose number is part of a port and of an address"
        raise InvalidValue("flows", flows + hosts, takes)
    if len(plan.law.high) > 1 and not plan.law.high[1] <= _MAX_BURST:
        raise InvalidValue("law", f"bursts up to {plan.law.high[1]:g}", f"limits of bursts up to {_MAX_BURST} packets")
    if isinstance(plan.schedule, OnlineStaticMap):
        takes = "a GainSchedule, such as netctrl.laws.tracking.online_map.online_schedule of a run's curve"
        raise InvalidValue("schedule", "OnlineStaticMap", takes)
    governor = plan.governor
    if governor is not None and governor.by_state.size + governor.by_reference.size > _MAX_NUMBERS:
        got = f"{len(governor.by_state) // len(governor.low)} samples ahead"
        raise InvalidValue("governor", got, f"one of at most {_MAX_NUMBERS} numbers: use a law that settles sooner")


# --- gains.h ---------------------------------------------------------------------------------------------------------


def _gains(plan: AccessLinkPlan, design: ConnetDesign | None, provenance: Provenance) -> str:
    law, schedule = plan.law, plan.schedule
    lines = [
        *(_certificate(design) if design is not None else []),
        f"/// From {_signals(law.inputs, law.input_units)}",
        f"/// to {_signals(law.outputs, law.output_units)}; without units in the Design: Mbit/s and ms.",
        *constant("kLaw", TrackingGains, tracking_gains(law)),
        "",
        "/// When the law is switched on.",
        *constant("kStart", TrackingState, plan.state),
        "",
        "/// Cuts references to what can be had.",
        *constant("kGovernor", ReferenceGovernor, plan.governor),
        "",
        "/// Gains along the characteristic curve.",
        *constant("kSchedule", GainSchedule, schedule if isinstance(schedule, GainSchedule) else None),
    ]
    about = "The law of the regulators with its gains; what they mean is in netctrl-tracking-law.h."
    return gains_header("netctrl-tracking.h", about, provenance, lines)


def _signals(names: Sequence[str], units: Sequence[str]) -> str:
    """Names with units, as literals, since a Design file may contain any text."""
    return ", ".join(string(f"{name} [{unit}]" if unit else name) for name, unit in zip(names, units, strict=True))


def _certificate(design: ConnetDesign) -> list[str]:
    proof = design.certificate
    values = {
        "kMethod": (design.method, ""),
        "kLawMethod": (design.inputs.law, ""),
        "kSpectralRadius": (proof.spectral_radius, "of the closed loop, a sample"),
        "kSteadyError": (proof.dc_error, "of what is tracked, per unit of its reference; HUGE_VAL: not stable"),
        "kBandwidth": (proof.bandwidth_hz, "[Hz], -3 dB; HUGE_VAL: up to half the sampling rate"),
        "kDiskMargin": (proof.disc_alpha, "at the plant's input"),
        "kLowestGain": (proof.lowest_gain, "times the model's that leaves the loop stable"),
        "kHighestGain": (proof.highest_gain, "the same; HUGE_VAL: any"),
        "kPhase": (proof.phase_deg, "[degree]"),
    }
    return certificate(design, values, notes=(f"attainable: {low:g} to {high:g}" for low, high in proof.attainable))


# --- scenario.h ------------------------------------------------------------------------------------------------------


def _scenario(scenario: Scenario, parts: AccessLinkParts, plan: AccessLinkPlan) -> str:
    nanoseconds("interval", scenario.interval)
    line, premium, size = parts.line, parts.premium, parts.packet_size
    largest = int(max(size, premium.size))
    period = premium.size * BITS_PER_BYTE / premium.rate
    spacing = size * BITS_PER_BYTE / line.access_rate
    constants = {
        "double kInterval": (scenario.interval, "Ts [s]"),
        "int64_t kPeriods": (scenario.steps, ""),
        "int64_t kOpenPeriods": (plan.start, "in which regulators are open, before the law is switched on"),
        "int64_t kDuration": (nanoseconds("duration", scenario.duration), "[ns]"),
        "double kSeconds": (scenario.duration, "[s]"),
        "uint64_t kCapacity": (round(line.capacity), "of each hop [bit/s]"),
        "int kHops": (line.hops, ""),
        "int kFlows": (parts.flows, "behind regulators"),
        "uint32_t kLimit": (line.limit, "packets in a node, the one being sent included"),
        "uint32_t kSize": (int(size), "of packets that are not premium, on the wire [byte]"),
        "uint32_t kPremiumSize": (int(premium.size), "of premium packets, on the wire [byte]"),
        "uint32_t kPacketSize": (largest - _PPP_BYTES, "of the largest IP packets [byte]"),
        "double kPremiumPeriod": (period, "between premium packets [s]"),
        "double kSpacing": (spacing, "between packets of a burst [s]"),
        "double kBaseDelay": (line.base_delay, "added to each delay [s]"),
        "double kRateUnit": (plan.rate_unit, "of the law's first input [bit/s]"),
    }
    types = ["", "/// What is measured in a period, at its end.", "struct Columns", "{"]
    types += [*(f"    double {camel(name)};" for name in COLUMNS), "};", ""]
    types += ["inline constexpr Column kColumns[] = {"]
    types += [*(f"    {row([string(name), f'&Columns::{camel(name)}'])}," for name in COLUMNS), "};"]
    signals = zip(plan.signals, plan.scale.tolist(), strict=True)
    tables = {
        "SourceRow kSources": (
            "flows, burst, share, offered [bit/s]",
            [row([each.count, each.burst, each.share, each.offered]) for each in parts.regulated],
        ),
        "FailureRow kFailures": (
            "source, start [s], stop [s], rate [bit/s]",
            [
                row([place, each.start, each.stop, each.rate])
                for place, group in enumerate(parts.regulated)
                for each in group.failures
            ],
        ),
        "CrossRow kCross": (
            "hop, rate [bit/s], burst",
            [row([each.hop, each.rate, each.burst]) for each in parts.cross],
        ),
        "Signal kSignals": (
            "outputs of the law: measurement, and what one of its unit is in the law's",
            [row([f"&Columns::{camel(name)}", scale]) for name, scale in signals],
        ),
        "ReferenceRow kReferences": ("from a period on: what is asked for, in the law's units", _references(plan)),
    }
    return scenario_header("netctrl-fifo-tables.h", scenario.name, constants, tables, types)


def _references(plan: AccessLinkPlan) -> list[str]:
    """Rows for the periods in which references change."""
    desired = plan.reference
    changes = [0, *(1 + np.flatnonzero((desired[1:] != desired[:-1]).any(axis=1))).tolist()]
    return [row([k, row(desired[k].tolist())]) for k in changes]
