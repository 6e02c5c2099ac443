"""CONNET in the kernel, as Fig. 13: two of three regulators fail, then one is repaired, then the other."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd
from common import Outcome, shown
from linux.connet_fig_common import first_repeat, over_time
from linux.connet_loop import LIMITS
from linux.connet_study import FAILURE_REFERENCE, FAILURES, LQI, SETTLING, STATIC, kept

PHASES = ("all work", "two dead", "one dead", "all work again")


def main(*, full: bool = False) -> Outcome:
    data = kept()
    runs = data[data.kind == "failure"]
    means = phases(settled(runs))
    rows = [
        {
            "": way,
            "regulators": name,
            "delay [ms]": shown(part.delay_ms),
            "R [Mbit/s]": shown(part.rate, 1),
            "other traffic [Mbit/s]": shown(part.other_mbit_s, 1),
        }
        for way in (LQI, STATIC)
        for k, name in enumerate(PHASES)
        for part in [means[(means.way == way) & (means.phase == k)]]
    ]
    said = "Reference 3 ms. A dead regulator lets 10 of the link's 20 Mbit/s through: two fill it, whatever R is."
    figure = over_time(
        "CONNET in the kernel: regulators that fail", first_repeat(data, "failure"), said, top=60.0, log=True
    )

    computed = {f"connet-{name}": value for name, value in values(runs).items()}
    return Outcome("connet-fig13", "linux", runs, figure, computed, pd.DataFrame(rows))


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


def values(runs: pd.DataFrame) -> dict[str, float]:
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
