"""What the figures of CONNET in the kernel share: panels against time, and means over repeats."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from linux.connet_study import COLOURS
from matplotlib.figure import Figure

SHOWN_RATE = 30.0
"""All that is offered [Mbit/s]; an open regulator has no rate."""


def over_time(title: str, runs: Mapping[str, pd.DataFrame], said: str, *, top: float, log: bool = False) -> Figure:
    """Delay, jitter and R of one repeat's runs by name, with the reference of the first."""
    figure = Figure(figsize=(9.0, 7.2), layout="constrained")
    panels = figure.subplots(3, 1, sharex=True)
    for name, run in runs.items():
        style = {"color": COLOURS[name], "lw": 1.0, "label": name}
        panels[0].plot(run.time_s, run.delay_ms, **style)
        panels[1].plot(run.time_s, run.jitter_ms, **style)
        panels[2].step(run.time_s, run.rate.where(run.rate <= SHOWN_RATE), where="pre", **style)
    first = next(iter(runs.values()))
    panels[0].step(first.time_s, first.reference_ms, where="pre", color="#222222", lw=1.0, ls="--", label="reference")
    for axes, label in zip(panels, ("delay [ms]", "jitter [ms]", "R [Mbit/s]"), strict=True):
        axes.set_ylabel(label)
        axes.grid(color="#dddddd", lw=0.6)
        axes.set_ylim(bottom=0.0)
    if log:
        panels[0].set(yscale="log", ylim=(0.1, top))
    else:
        panels[0].set_ylim(top=top)
    panels[0].legend(fontsize=8, ncols=4)
    panels[-1].set_xlabel("time [s]")
    figure.suptitle(title, fontsize=12)
    figure.supxlabel(said, fontsize=8.5)
    return figure


def first_repeat(data: pd.DataFrame, kind: str) -> dict[str, pd.DataFrame]:
    """Runs of a kind in the first repeat, by way."""
    rows = data[(data.kind == kind) & (data["repeat"] == data["repeat"].min())]
    return {str(way): run.reset_index(drop=True) for way, run in rows.groupby("way", sort=False)}


def counted(data: pd.DataFrame, by: str, settling: int) -> pd.DataFrame:
    """Without the first periods of each stretch in which `by` stays the same."""
    runs = data.groupby(["repeat", "way"], sort=False)[by]
    stretch = runs.transform(lambda column: column.ne(column.shift()).cumsum())
    return data[data.groupby(["repeat", "way", stretch], sort=False).cumcount() >= settling]


def by_repeat(data: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Means of each repeat: a row for each value of the keys and repeat."""
    columns = ["delay_ms", "jitter_ms", "rate", "other_mbit_s"]
    return data.groupby([*keys, "repeat"], dropna=False)[columns].mean().reset_index()
