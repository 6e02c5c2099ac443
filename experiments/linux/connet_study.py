"""CONNET in the kernel, kept in data/results/: `python experiments/full.py linux-connet [REPEAT ...]`, 10 minutes.

A repeat has seeds of its own, measures the curve, identifies a model, designs from it and runs all that is compared,
one after the other; repeats run at the same time, each in namespaces of its own.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from linux.connet_loop import LIMITS, OPENED, WARM, Way, designed, excite, printed, trace, track
from linux.connet_plant import KernelLink, Plant, environment
from study import Case, Made, Record, Study, in_a_process, made_by

import netctrl
from netctrl.model.design.design import provenance
from netctrl.model.fit import IdentificationResult

LQI, PRINTED, STATIC, FIFO = "LQI", "printed gains", "static R", "no control"
COLOURS = {LQI: "#1f4e9c", PRINTED: "#b45f06", STATIC: "#38761d", FIFO: "#888888"}

CURVE = (4.0, 8.0, 12.0, 14.0, 16.0, 17.0, 18.0, 19.0, 20.0, 21.0, 22.0)
CURVE_PERIODS, CURVE_SKIPPED = 11, 3
TRACE_PERIODS, HELD_OUT = 160, 0.3
REFERENCES = (1.0, 3.0, 1.5)
"""Delays [ms]; jitters beside them, for the published law, are those of the repeat's own curve."""
HELD, SETTLING = 42, 14
"""Periods at a reference, and those of them that don't count."""
SHORT_HELD, SHORT_SETTLING = 22, 4
"""The same of a static rate, which has nothing to settle but the queue."""
FIFO_PERIODS = 30
LOADED = 14e6 / 3.0
"""By each source while control is switched on: 70 % of the link, as in the paper's Fig. 10(d) [bit/s]."""
SWITCHED, SWITCHED_PERIODS, SWITCHED_REFERENCE = 30, 90, 1.0
FAILURE_REFERENCE = 3.0
FAILURES = ((24, frozenset()), (30, frozenset({0, 1})), (44, frozenset({0})), (30, frozenset()))
"""Periods, and which regulators are dead in them."""


def run_repeat(number: int) -> Made:
    """All that one repeat measures: a row a period, `kind`, `way`, and what `track` gives.

    Sources and controller come before what else the machine does: a late source is another plant.
    """
    plant = Plant()
    before = os.getloadavg()[0]
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    seed = 100 * number
    parts = [_labelled("curve", STATIC, _curve(plant, seed + 1))]
    means = curve_means(parts[0])
    excited = excite(plant, TRACE_PERIODS, seed + 2)
    parts.append(_labelled("trace", STATIC, excited))
    found = netctrl.identify(trace(excited, plant.interval), held_out=HELD_OUT)
    design = designed(found.model)
    law = Way(design.law)
    requested = [on_curve(means, delay) for delay in REFERENCES]
    changing = [pair for pair in requested for _ in range(HELD)]
    parts.append(_labelled("references", LQI, _tracked(plant, law, changing, seed + 3)))
    parts.append(_labelled("references", PRINTED, _tracked(plant, printed(), changing, seed + 4)))
    static = [static_rate(means, delay) for delay in REFERENCES]
    fixed = [(rate, delay) for rate, delay in zip(static, REFERENCES, strict=True) for _ in range(SHORT_HELD)]
    parts.append(_labelled("references", STATIC, _fixed(plant, fixed, seed + 5)))
    opened = [(OPENED, np.nan)] * FIFO_PERIODS
    parts.append(_labelled("references", FIFO, _fixed(plant, opened, seed + 6)))
    parts.append(_labelled("activation", LQI, _activated(plant, law, on_curve(means, SWITCHED_REFERENCE), seed + 7)))
    pair, rate = on_curve(means, FAILURE_REFERENCE), static_rate(means, FAILURE_REFERENCE)
    dead = [each for periods, each in FAILURES for _ in range(periods)]
    broken = _tracked(plant, law, [pair] * len(dead), seed + 8, event=dead.__getitem__)
    parts.append(_labelled("failure", LQI, broken))
    parts.append(_labelled("failure", STATIC, _fixed(plant, [(rate, pair[0])] * len(dead), seed + 9, dead)))
    about = {
        "repeat": number,
        **environment(),
        "load_before": before,
        "load_after": os.getloadavg()[0],
        "provenance": provenance(seed=100 * number, libraries=("numpy", "scipy", "numba")),
        "model": _described(found, static),
        "gains": {"K": design.law.K.tolist(), "integral": design.law.integral_gain.tolist()},
        "status": design.certificate.status,
        "disc_alpha": design.certificate.disc_alpha,
    }
    return Made(pd.concat(parts, ignore_index=True).to_dict("records"), about)


def curve_means(series: pd.DataFrame, skipped: int = CURVE_SKIPPED) -> pd.DataFrame:
    """Delay and jitter [ms] and other traffic [Mbit/s] by R, once the queue has settled."""
    counted = series[series.groupby("rate").cumcount() >= skipped]
    return counted.groupby("rate")[["delay_ms", "jitter_ms", "other_mbit_s"]].mean()


def _curve(plant: Plant, seed: int) -> pd.DataFrame:
    return _fixed(plant, [(rate, np.nan) for rate in CURVE for _ in range(CURVE_PERIODS)], seed)


def _fixed(
    plant: Plant, requested: Sequence[tuple[float, float]], seed: int, dead: Sequence[frozenset[int]] | None = None
) -> pd.DataFrame:
    """(R [Mbit/s], reference [ms]) of each period, without a law."""
    with KernelLink(plant, (len(requested) + 1) * plant.interval, seed) as link:
        return hold(link, requested, dead)


def hold(
    link: KernelLink, requested: Sequence[tuple[float, float]], dead: Sequence[frozenset[int]] | None = None
) -> pd.DataFrame:
    """(R [Mbit/s], reference [ms]) of each period, and which regulators are dead in it, without a law."""
    rows = []
    for k, (rate, reference) in enumerate(requested):
        link.failed = frozenset() if dead is None else dead[k]
        time_s = (k + 1) * link.plant.interval
        row = {"time_s": time_s, "reference_ms": reference, "failed": len(link.failed)}
        rows.append(row | link.advance(rate)._asdict())
    return pd.DataFrame(rows)


def _tracked(plant: Plant, way: Way, reference: Sequence[tuple[float, float]], seed: int, **options) -> pd.DataFrame:
    with KernelLink(plant, (len(reference) + WARM + 1) * plant.interval, seed) as link:
        return track(link, way, reference, first=14.0, **options)


def _activated(plant: Plant, way: Way, pair: tuple[float, float], seed: int) -> pd.DataFrame:
    """Regulators are open under 70 % of load; then the law is switched on."""
    loaded = replace(plant, offered=LOADED)
    with KernelLink(loaded, (SWITCHED_PERIODS + 1) * plant.interval, seed) as link:
        return track(link, way, [pair] * SWITCHED_PERIODS, start=SWITCHED, first=14.0)


def on_curve(means: pd.DataFrame, delay: float) -> tuple[float, float]:
    """A delay and the jitter that the curve has with it [ms]."""
    return delay, float(np.interp(delay, means.delay_ms, means.jitter_ms))


def static_rate(means: pd.DataFrame, delay: float) -> float:
    """The R at which the curve has a delay [Mbit/s]."""
    return float(np.interp(delay, means.delay_ms, means.index))


def _labelled(kind: str, way: str, frame: pd.DataFrame) -> pd.DataFrame:
    frame = frame.copy()
    if "time_s" not in frame:
        frame.insert(0, "time_s", 0.5 * np.arange(1, len(frame) + 1))
    frame.insert(0, "way", way)
    frame.insert(0, "kind", kind)
    return frame


def _described(found: IdentificationResult, static: Sequence[float]) -> dict[str, Any]:
    model, how = found.model, found.model.identification
    poles = np.linalg.eigvals(model.A)
    return {
        "order": len(model.A),
        "largest_pole": float(np.abs(poles).max()),
        "gain_delay": float(model.state_space.steady_gain()[0, 0]),
        "gain_jitter": float(model.state_space.steady_gain()[1, 0]),
        "vaf_delay": float(how.vaf[0]),
        "vaf_jitter": float(how.vaf[1]),
        "held_out_vaf_delay": float(how.held_out_vaf[0]),
        "held_out_vaf_jitter": float(how.held_out_vaf[1]),
        "static": list(static),
        "warnings": list(how.warnings),
    }


def record(before: Record, data: pd.DataFrame, case: Case, about: dict[str, Any]) -> Record:
    made = sorted([*before.get("made", []), about], key=lambda each: each["repeat"])
    return before | {"made": made, "plant": asdict(Plant()), "limits": LIMITS}


STUDY = Study(
    name="linux-connet",
    key=("repeat",),
    repeats=(1, 2, 3, 4, 5),
    cases=lambda number: [(number,)],
    runs=made_by(partial(in_a_process, run_repeat), at_once=5),
    record=record,
    sort=("repeat",),
    digits=5,
)


def kept() -> pd.DataFrame:
    """The series of all repeats."""
    return STUDY.read(complete=True)
