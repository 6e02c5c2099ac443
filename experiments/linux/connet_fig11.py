"""CONNET in the kernel, as Fig. 11: references that change, under LQI, printed gains, a static rate and no control."""

from __future__ import annotations

import pandas as pd
from common import Outcome, interval, shown
from linux.connet_fig_common import by_repeat, counted, first_repeat, over_time
from linux.connet_study import FIFO, LQI, PRINTED, REFERENCES, SETTLING, SHORT_SETTLING, STATIC, kept

BAR = 0.10
"""Issue: the mean delay within 10 % of its reference."""


def main(*, full: bool = False) -> Outcome:
    data = kept()
    runs = data[data.kind == "references"]
    means = references(runs)
    rows = []
    for way in (LQI, PRINTED, STATIC, FIFO):
        of_way = means[means.way == way]
        for reference in (None,) if way == FIFO else REFERENCES:
            part = of_way if reference is None else of_way[of_way.reference_ms == reference]
            rows.append(
                {
                    "": way,
                    "reference [ms]": "none" if reference is None else f"{reference:g}",
                    "delay [ms]": shown(part.delay_ms),
                    "error": "" if reference is None else f"{100.0 * (part.delay_ms.mean() / reference - 1.0):+.1f} %",
                    "worst repeat": ""
                    if reference is None
                    else f"{100.0 * (part.delay_ms / reference - 1.0).abs().max():.1f} %",
                    "jitter [ms]": shown(part.jitter_ms),
                    "R [Mbit/s]": "open" if reference is None else shown(part.rate, 1),
                    "other traffic [Mbit/s]": shown(part.other_mbit_s, 1),
                }
            )
    said = "One repeat; references 1.0, 3.0 and 1.5 ms, 21 s each, of which the last 14 s count."
    shown_runs = {name: run for name, run in first_repeat(data, "references").items() if name in (LQI, PRINTED)}
    figure = over_time("CONNET in the kernel: references that change", shown_runs, said, top=8.0)
    computed = {f"connet-{name}": value for name, value in values(means).items()}
    computed["connet-change"] = float(runs.change_us[runs.change_us > 0.0].median())
    return Outcome("connet-fig11", "linux", runs, figure, computed, pd.DataFrame(rows))


def values(means: pd.DataFrame) -> dict[str, float]:
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


def references(runs: pd.DataFrame) -> pd.DataFrame:
    """Means of each way, reference and repeat, once it is reached."""
    requested = runs.assign(requested=runs.reference_ms.fillna(0.0))
    controlled = requested.way.isin((LQI, PRINTED))
    parts = [
        counted(requested[controlled], "requested", SETTLING),
        counted(requested[~controlled], "requested", SHORT_SETTLING),
    ]
    return by_repeat(pd.concat(parts), ["way", "reference_ms"])
