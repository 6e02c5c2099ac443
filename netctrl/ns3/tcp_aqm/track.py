"""Regulated flows and the law that sets their rates as records for ns-3's program, and the signals that it writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.laws.tracking.online_map import OnlineStaticMap
from netctrl.laws.tracking.online_shift import OnlineShift
from netctrl.laws.tracking.schedule import GainSchedule
from netctrl.laws.tracking.tracking import tracking_gains
from netctrl.model.design.design import ConnetDesign
from netctrl.model.design.mpc import MpcLaw
from netctrl.ns3.cpp import nanoseconds
from netctrl.ns3.program import read_table
from netctrl.ns3.records import certificate_comments, record_line, record_values, word
from netctrl.ns3.sources import TRACK_RECORDS
from netctrl.scenario.network.track import gate_of, tracked_groups
from netctrl.scenario.network.tracking import Period, Periods, TrackPlan, driven_columns, law_columns, tracked_flows
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow

_MAX_NUMBERS = 200_000
_MAX_BURST = 10_000


def gate_values(group: Flow, packet_size: float) -> dict[str, Any]:
    """Values of the record of a group whose packets go when those of the packet engine do."""
    gate = gate_of(group, packet_size)
    within = max(round(1e9 * gate.within_s), 1)
    return {"rate": gate.rate, "burst": gate.burst, "within": within, "variation": gate.variation}


def check_track(plan: TrackPlan) -> None:
    """InvalidValue for a law that the program can't run."""
    if len(plan.law.high) > 1 and not plan.law.high[1] <= _MAX_BURST:
        raise InvalidValue("law", f"bursts up to {plan.law.high[1]:g}", f"limits of bursts up to {_MAX_BURST} packets")
    if isinstance(plan.schedule, OnlineShift):
        raise InvalidValue("schedule", "OnlineShift", "none for a law with a curve: the shift runs in packets")
    if isinstance(plan.schedule, OnlineStaticMap):
        takes = "a GainSchedule, such as netctrl.laws.tracking.online_map.online_schedule of a run's curve"
        raise InvalidValue("schedule", type(plan.schedule).__name__, takes)
    governor = plan.governor
    if governor is not None and governor.by_state.size + governor.by_reference.size > _MAX_NUMBERS:
        got = f"{len(governor.by_state) // len(governor.low)} samples ahead"
        raise InvalidValue("governor", got, f"one of at most {_MAX_NUMBERS} numbers: use a law that settles sooner")


def track_records(scenario: Scenario, plan: TrackPlan) -> Iterator[list[str]]:
    """Records of a scenario's `Track` under the law of its plan."""
    flows, groups = tracked_flows(scenario), tracked_groups(scenario)
    places = np.cumsum([0, *(group.count for group in groups)])[:-1]
    desired = plan.reference
    changes = [0, *(1 + np.flatnonzero((desired[1:] != desired[:-1]).any(axis=1))).tolist()]
    columns = {name: place for place, name in enumerate(Period._fields)}
    yield [
        record_line(
            "track",
            periods=len(desired),
            interval=nanoseconds("interval", plan.law.interval_s),
            start=plan.start,
            rate_unit=plan.rate_unit,
            measures=word(scenario.control.measures),
        ),
        *(
            record_line("tracked", group=word(group.id), share=float(flows.share[place]))
            for group, place in zip(groups, places, strict=True)
        ),
        *(
            record_line("output", column=columns[name], scale=scale)
            for name, scale in zip(plan.signals, plan.scale.tolist(), strict=True)
        ),
        *(record_line("reference", **{"from": k}, values=_numbers(desired[k])) for k in changes),
    ]
    schedule = plan.schedule if isinstance(plan.schedule, GainSchedule) else None
    if isinstance(plan.law, MpcLaw):
        raise InvalidValue("design", "of method mpc", "one of method connet, with a control of kind track in ns-3")
    values = tracking_gains(plan.law), plan.state, plan.governor, schedule
    names = "gains", "state", "governor", "schedule"
    yield [
        record_line("law", name, *record_values(kind, each))
        for name, kind, each in zip(names, TRACK_RECORDS, values, strict=True)
        if each is not None
    ]


def _numbers(values: np.ndarray) -> str:
    return ",".join(map(repr, np.ravel(values).tolist()))


def track_certificate(design: ConnetDesign) -> list[str]:
    """Comments with the certificate of a Design."""
    proof = design.certificate
    return certificate_comments(
        design,
        {
            "method": (design.method, ""),
            "law": (design.inputs.law, ""),
            "spectral radius": (proof.spectral_radius, "of the closed loop, a sample"),
            "steady error": (proof.dc_error, "of what is tracked, per unit of its reference"),
            "bandwidth": (proof.bandwidth_hz, "Hz, -3 dB"),
            "disk margin": (proof.disc_alpha, "at the plant's input"),
            "lowest gain": (proof.lowest_gain, "times the model's that leaves the loop stable"),
            "highest gain": (proof.highest_gain, "the same"),
            "phase": (proof.phase_deg, "degree"),
        },
    )


def read_signals(folder: Path, plan: TrackPlan) -> dict[str, np.ndarray]:
    """The table `signals` of a result, from what the program wrote."""
    (T, p), m = plan.reference.shape, len(plan.law.inputs)
    table = read_table(folder / "signals.csv", 2 + len(Period._fields) + 2 * p + m, T)
    first = 2 + len(Period._fields)
    driven = [(row[0], int(row[1]), Period(*row[2:first])) for row in table.tolist()]
    measured, given, commanded = np.split(table[:, first:], [p, 2 * p], axis=1)
    found = Periods(driven, given, measured, commanded)
    return driven_columns(plan.law.interval_s, driven) | law_columns(plan, found)
