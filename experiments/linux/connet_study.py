"""CONNET in the kernel, kept in data/results/: `python experiments/full.py linux-connet [REPEAT ...]`, 10 minutes.

A repeat has seeds of its own, measures the curve, identifies a model, designs from it and runs all that is compared,
one after the other; repeats run at the same time, each in namespaces of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict, replace
from multiprocessing import get_context
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pandas as pd
from linux.connet_loop import LIMITS, OPENED, WARM, Way, designed, excite, printed, trace, track
from linux.connet_plant import KernelLink, Plant, environment
from study_files import RESULTS, read_runs, write_record, write_runs

import netctrl
from netctrl.model.design.design import ConnetDesign, provenance
from netctrl.model.fit import IdentificationResult
from netctrl.scenario.figures import estimate

NAME = "linux-connet"
REPEATS = (1, 2, 3, 4, 5)
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


class Repeat(NamedTuple):
    """All that one repeat measured."""

    number: int
    series: pd.DataFrame
    """A row a period: `kind`, `way`, and what `track` gives."""
    model: dict[str, Any]
    design: ConnetDesign
    load: tuple[float, float]
    """The machine's, over a minute, before and after."""


def run_repeat(number: int, plant: Plant) -> Repeat:
    """Sources and controller come before what else the machine does: a late source is another plant."""
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
    series = pd.concat(parts, ignore_index=True)
    series.insert(0, "repeat", number)
    return Repeat(number, series, _described(found, static), design, (before, os.getloadavg()[0]))


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


def missing(desired: Sequence[int]) -> list[int]:
    data = stored("series")
    done = set() if data is None else set(data["repeat"])
    return [number for number in desired if number not in done]


def make(desired: Sequence[int], workers: int = len(REPEATS)) -> Iterator[Repeat]:
    """Run and keep; each as it is kept."""
    plant = Plant()
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        failed = None
        for done in as_completed([pool.submit(run_repeat, number, plant) for number in desired]):
            failed = failed or done.exception()
            if done.exception() is None:
                keep(done.result(), plant)
                yield done.result()
        if failed is not None:
            raise failed


def keep(repeat: Repeat, plant: Plant) -> None:
    """Add a repeat to data/results/: its series, and where it comes from."""
    parts = [each for each in (stored("series"), repeat.series) if each is not None]
    table = pd.concat(parts, ignore_index=True).sort_values("repeat", kind="stable")
    write_runs(RESULTS / f"{NAME}-series.csv", table, 5)
    record = RESULTS / f"{NAME}.json"
    content = msgspec.json.decode(record.read_bytes()) if record.exists() else {"study": NAME, "made": []}
    content["made"].append(
        {
            "repeat": repeat.number,
            **environment(),
            "load_before": repeat.load[0],
            "load_after": repeat.load[1],
            "provenance": provenance(seed=100 * repeat.number, libraries=("numpy", "scipy", "numba")),
            "model": repeat.model,
            "gains": {"K": repeat.design.law.K.tolist(), "integral": repeat.design.law.integral_gain.tolist()},
            "status": repeat.design.certificate.status,
            "disc_alpha": repeat.design.certificate.disc_alpha,
        }
    )
    content["made"].sort(key=lambda each: each["repeat"])
    content |= {"plant": asdict(plant), "limits": LIMITS}
    write_record(record, content)


def stored(what: str) -> pd.DataFrame | None:
    return read_runs(RESULTS / f"{NAME}-{what}.csv")


def kept() -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """The series of all repeats, and what each was made from; an error that says how to make them."""
    lacking, data = missing(REPEATS), stored("series")
    if data is None or lacking:
        raise FileNotFoundError(f"{len(lacking)} repeats are missing: python experiments/full.py {NAME}")
    return data, msgspec.json.decode((RESULTS / f"{NAME}.json").read_bytes())["made"]


def summary(values: pd.Series) -> tuple[float, float]:
    """Mean over repeats, and half the width of its 95 % interval."""
    found = estimate(values.to_numpy())
    return found.mean, float("nan") if found.half_width is None else found.half_width
