"""CONNET on the link of 20 Mbit/s: its points, and what is measured at them, as in Figs. 3a, 10 (d), 11 and 13."""

from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd
from common import interval
from linux.connet_plant import LIMITS

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


def curve_means(series: pd.DataFrame, skipped: int = CURVE_SKIPPED) -> pd.DataFrame:
    """Delay and jitter [ms] and other traffic [Mbit/s] by R, once the queue has settled."""
    counted = series[series.groupby("rate").cumcount() >= skipped]
    return counted.groupby("rate")[["delay_ms", "jitter_ms", "other_mbit_s"]].mean()


def on_curve(means: pd.DataFrame, delay: float) -> tuple[float, float]:
    """A delay and the jitter that the curve has with it [ms]."""
    return delay, float(np.interp(delay, means.delay_ms, means.jitter_ms))


def static_rate(means: pd.DataFrame, delay: float) -> float:
    """The R at which the curve has a delay [Mbit/s]."""
    return float(np.interp(delay, means.delay_ms, means.index))


def counted(data: pd.DataFrame, by: str, settling: int) -> pd.DataFrame:
    """Without the first periods of each stretch in which `by` stays the same."""
    runs = data.groupby(["repeat", "way"], sort=False)[by]
    stretch = runs.transform(lambda column: column.ne(column.shift()).cumsum())
    return data[data.groupby(["repeat", "way", stretch], sort=False).cumcount() >= settling]


def by_repeat(data: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Means of each repeat: a row for each value of the keys and repeat."""
    columns = ["delay_ms", "jitter_ms", "rate", "other_mbit_s"]
    return data.groupby([*keys, "repeat"], dropna=False)[columns].mean().reset_index()


SKIPPED = 4
"""Periods before the load is what it will be."""


def values_fig10(runs: pd.DataFrame) -> dict[str, float]:
    """Of the claims."""
    period = runs.groupby("repeat").cumcount()
    before = by_repeat(runs[(period >= SKIPPED) & (period < SWITCHED)], ["way"])
    after = by_repeat(runs[period >= SWITCHED + SETTLING], ["way"])
    return {
        "open-delay": float(before.delay_ms.mean()),
        "switched-error": float(abs(after.delay_ms.mean() / SWITCHED_REFERENCE - 1.0)),
        "switched-price": float(after.other_mbit_s.mean() / before.other_mbit_s.mean()),
    }


BAR = 0.10
"""Issue: the mean delay within 10 % of its reference."""


def references(runs: pd.DataFrame) -> pd.DataFrame:
    """Means of each way, reference and repeat, once it is reached."""
    requested = runs.assign(requested=runs.reference_ms.fillna(0.0))
    controlled = requested.way.isin((LQI, PRINTED))
    parts = [
        counted(requested[controlled], "requested", SETTLING),
        counted(requested[~controlled], "requested", SHORT_SETTLING),
    ]
    return by_repeat(pd.concat(parts), ["way", "reference_ms"])


def values_fig11(means: pd.DataFrame) -> dict[str, float]:
    """Of the claims, from what `references` gives."""
    errors = means[means.way != FIFO].assign(error=lambda rows: rows.delay_ms / rows.reference_ms - 1.0)
    computed: dict[str, float] = {}
    for way, key in ((LQI, "lqi"), (PRINTED, "printed"), (STATIC, "static")):
        of_way = errors[errors.way == way]
        average = of_way.groupby("reference_ms").error.mean()
        computed[f"{key}-error"] = float(average.abs().max())
        computed[f"{key}-within"] = float((of_way.error.abs() <= BAR).mean())
    for reference in REFERENCES:
        part = means[(means.way == LQI) & (means.reference_ms == reference)]
        computed[f"lqi-{reference:g}"] = interval(part.delay_ms)[0]
    computed["fifo-delay"] = float(means[means.way == FIFO].delay_ms.mean())
    return computed


PHASES = ("all work", "two dead", "one dead", "all work again")


def settled(runs: pd.DataFrame, failures: Sequence[tuple[int, Collection[int]]] = FAILURES) -> pd.DataFrame:
    """What counts of each phase, whose number is added."""
    period = runs.groupby(["repeat", "way"]).cumcount().to_numpy()
    ends = np.cumsum([periods for periods, _ in failures])
    phase = np.searchsorted(ends, period, side="right")
    since = period - np.concatenate([[0], ends])[phase]
    return runs.assign(phase=phase)[since >= SETTLING]


def phases(late: pd.DataFrame) -> pd.DataFrame:
    """Means of each way, phase and repeat."""
    return late.groupby(["way", "phase", "repeat"])[["delay_ms", "rate", "other_mbit_s"]].mean().reset_index()


def values_fig13(runs: pd.DataFrame) -> dict[str, float]:
    """Of the claims."""
    late = settled(runs)
    means = phases(late)

    def delay(way: str, k: int) -> float:
        return float(means[(means.way == way) & (means.phase == k)].delay_ms.mean())

    helpless = late[(late.way == LQI) & (late.phase == 1)]
    return {
        "failed-one": abs(delay(LQI, 2) / FAILURE_REFERENCE - 1.0),
        "failed-two": delay(LQI, 1),
        "failed-repaired": abs(delay(LQI, 3) / FAILURE_REFERENCE - 1.0),
        "failed-reported": float((helpless.commanded <= LIMITS[0]).mean()),
        "failed-static": delay(STATIC, 2),
    }
