"""CONNET in virtual time: the paper's figures at its own rates."""

import linux.connet_tasks as tasks
import linux.connet_virtual_values as values
import numpy as np
import pandas as pd
from common import Outcome, shown, verdicts
from linux.connet_tasks import COLOURS, LQI, PRINTED, STATIC, curve_means
from linux.hftrac_points import dress
from linux.virtual_connet import STUDY
from matplotlib.axes import Axes
from matplotlib.figure import Figure

PLACE = "CONNET, virtual time"
PRINTED_PAIRS = ((0.46, 0.043), (0.534, 0.145), (1.1, 0.6))
"""Delay and jitter in the paper's Figs. 10 (a, b), 10 (d) and its text [ms]."""
DISCIPLINES = {
    tasks.SCHEDULING["fifo"]: "#888888",
    tasks.SCHEDULING["cbq"]: "#6aa84f",
    tasks.SCHEDULING["wfq"]: "#8e44ad",
}


def main(*, full: bool = False) -> Outcome:
    data = STUDY.read(complete=True)
    figure = Figure(figsize=(15.0, 8.4), layout="constrained")
    panels = figure.subplots(2, 3).flat
    for draw in (delays, pairs, changes, step, failures, scheduling):
        draw(next(panels), data)
    figure.suptitle("CONNET in the kernel in virtual time, at the paper's rates", fontsize=12)
    figure.supxlabel(verdicts("linux", PLACE), fontsize=9)
    found = {f"connet-own-{name}": value for name, value in values.computed(data, STUDY.told()["transfers"]).items()}
    return Outcome("connet-virtual", "linux", data, figure, found, readable(data))


def delays(axes: Axes, data: pd.DataFrame) -> None:
    """Curves with UDP and with TCP."""
    mean = sum(values.curves(data).values()) / len(STUDY.repeats)
    axes.plot(mean.index, mean.delay_ms, "o-", ms=3, color=COLOURS[LQI], label="UDP, one node")
    for way, colour in ((tasks.TICKS, COLOURS[PRINTED]), (tasks.EXACT, COLOURS[STATIC])):
        mean = over_repeats(values.part(data, "tcp curve", way))
        axes.plot(mean.index, mean.delay_ms, "s-", ms=3, color=colour, label=f"TCP, three nodes, {way}")
    axes.legend(fontsize=8)
    dress(axes, "Figs. 3a, 12: the curve", "R [Mbit/s]", "delay [ms]")


def over_repeats(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean curve."""
    each = [curve_means(run) for _, run in runs.groupby("repeat")]
    return sum(each) / len(each)


def pairs(axes: Axes, data: pd.DataFrame) -> None:
    for number, curve in values.curves(data).items():
        label = None if number > 1 else "kernel"
        axes.plot(curve.delay_ms + tasks.ONE_NODE, curve.jitter_ms, "o-", ms=3, lw=0.8, color=COLOURS[LQI], label=label)
    axes.plot(*np.transpose(PRINTED_PAIRS), "x", color="#c0504d", ms=8, mew=1.8, label="pairs that the paper prints")
    axes.legend(fontsize=8)
    dress(axes, "Fig. 3a: delay and jitter", f"delay + {tasks.ONE_NODE:.2f} ms [ms]", "jitter [ms]")


def over_time(axes: Axes, data: pd.DataFrame, kind: str, top: float) -> None:
    """One repeat under both laws."""
    for way in (PRINTED, LQI):
        run = values.part(data, kind, way)
        run = run[run["repeat"] == STUDY.repeats[0]]
        axes.plot(run.time_s, run.delay_ms, lw=1.0, color=COLOURS[way], label=way)
    axes.step(run.time_s, run.reference_ms, where="pre", color="#222222", lw=1.0, ls="--", label="reference")
    axes.set(ylim=(0.01, top), yscale="log")
    axes.legend(fontsize=8, ncols=3)


def changes(axes: Axes, data: pd.DataFrame) -> None:
    over_time(axes, data, "references", 20.0)
    dress(axes, "Fig. 11: references that change", "time [s]", "delay [ms]")


def failures(axes: Axes, data: pd.DataFrame) -> None:
    over_time(axes, data, "failure", 60.0)
    dress(axes, "Fig. 13: two regulators fail, are repaired", "time [s]", "delay [ms]")


def scheduling(axes: Axes, data: pd.DataFrame) -> None:
    for way, colour in DISCIPLINES.items():
        mean = over_repeats(values.part(data, "scheduling", way))
        axes.plot(mean.index, mean.delay_ms, "o-", ms=3, color=colour, label=way)
    ours = values.stretch(data, "scheduling", LQI, tasks.HELD_PIPE // 2).delay_ms.mean()
    axes.axhline(ours, color=COLOURS[LQI], lw=1.2, label=f"FIFO under {LQI}")
    axes.set_yscale("log")
    axes.legend(fontsize=8)
    dress(axes, "Fig. 14: beside schedulers, three nodes", "offered [Mbit/s]", "delay [ms]")


def step(axes: Axes, data: pd.DataFrame) -> None:
    over_time(axes, data, "activation", 20.0)
    dress(axes, "Fig. 10d: switched on into a loaded link", "time [s]", "delay [ms]")


def readable(data: pd.DataFrame) -> pd.DataFrame:
    """For the docs: means over repeats, ± half of their 95 % interval."""
    rows = []
    for number, rate in enumerate(tasks.REFERENCES):
        what = "11, can't be had" if rate is None else "10a, 11" if number == 0 else "11"
        rows += [told(what, way, values.changing(data, way, number)) for way in values.LAWS]
    for way in values.LAWS:
        rows.append(told("10c", way, values.stretch(data, "step", way, tasks.SETTLING)))
    rows.append(told("10d, before", "open", values.stretch(data, "activation", LQI, 2, tasks.OPEN_PERIODS)))
    for way in values.LAWS:
        rows.append(
            told("10d, after", way, values.stretch(data, "activation", way, tasks.OPEN_PERIODS + tasks.SETTLING))
        )
    for way in values.LAWS:
        rows.append(told("12, TCP", way, values.stretch(data, "tcp", way, tasks.HELD_PIPE // 2)))
    for number, name in enumerate(tasks.PHASES):
        rows += [told(f"13, {name}", way, values.phase(data, way, number)) for way in values.LAWS]
    for way in values.LAWS:
        rows.append(told("15a, uneven", way, values.stretch(data, "uneven", way, tasks.HELD_PIPE // 2)))
    for way in DISCIPLINES:
        runs = values.part(data, "scheduling", way)
        rows.append(told(f"14, {tasks.OFFERED[-1]:g} Mbit/s", way, top_of(runs)))
    rows.append(told("14", LQI, values.stretch(data, "scheduling", LQI, tasks.HELD_PIPE // 2)))
    return pd.DataFrame(rows).fillna("")


def top_of(runs: pd.DataFrame) -> pd.DataFrame:
    """Means at the highest rate that is offered."""
    settled = runs[runs.groupby(["repeat", "rate"]).cumcount() >= tasks.CURVE_SKIPPED]
    return (
        settled[settled.rate == tasks.OFFERED[-1]]
        .groupby("repeat")[["delay_ms", "jitter_ms", "rate", "other_mbit_s"]]
        .mean()
    )


def told(what: str, way: str, means: pd.DataFrame) -> dict[str, str]:
    """A row; a rate that is open has no number."""
    asked = means.reference_ms.mean() if "reference_ms" in means else np.nan
    row = {"Fig.": what, "way": way, "reference, ms": "" if np.isnan(asked) else f"{asked:.3f}"}
    row["delay, ms"] = shown(means.delay_ms, 3)
    if "jitter_ms" in means:
        row["jitter, ms"] = shown(means.jitter_ms, 3)
    row["R, Mbit/s"] = "open" if means.rate.max() > 100.0 else shown(means.rate, 1)
    row["other traffic, Mbit/s"] = shown(means.other_mbit_s, 1)
    return row
