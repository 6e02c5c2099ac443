"""CONNET in the kernel by the wall clock: what its figures share, Figs. 3a, 5, 10 (d), 11 and 13."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pandas as pd
from common import Outcome, interval, shown
from connet.links import finish
from linux.connet_loop import LIMITS, designed, trace
from linux.connet_plant import Plant
from linux.connet_study import (
    COLOURS,
    CURVE,
    FAILURE_REFERENCE,
    FAILURES,
    FIFO,
    HELD_OUT,
    LQI,
    PRINTED,
    REFERENCES,
    SETTLING,
    SHORT_SETTLING,
    STATIC,
    SWITCHED,
    SWITCHED_REFERENCE,
    curve_means,
    kept,
)
from matplotlib.figure import Figure

import netctrl
from netctrl.model.fit import IdentificationResult

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
    finish(figure, panels, title, said, columns=4)
    if log:
        panels[0].set(yscale="log", ylim=(0.1, top))
    else:
        panels[0].set_ylim(top=top)
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


def curve(*, full: bool = False) -> Outcome:
    """CONNET in the kernel, as Fig. 3a: delay and jitter of premium packets by the rate of all others."""
    data = kept()
    curves = data[data.kind == "curve"]
    each = pd.concat({number: curve_means(part) for number, part in curves.groupby("repeat")}, names=["repeat"])
    figure = Figure(figsize=(9.0, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    means = {}
    for name, colour, mark in (("delay_ms", "#1f4e9c", "o"), ("jitter_ms", "#b45f06", "s")):
        found = np.array([interval(each[name].xs(rate, level="rate")) for rate in CURVE])
        means[name] = found[:, 0]
        left.errorbar(CURVE, *found.T, fmt=f"{mark}-", color=colour, ms=3, capsize=2, label=name.removesuffix("_ms"))
    left.set(xlabel="R [Mbit/s]", ylabel="[ms]")
    left.legend(fontsize=8)
    right.plot(each.delay_ms, each.jitter_ms, ".", color="#999999", ms=4, label="repeats")
    right.plot(means["delay_ms"], means["jitter_ms"], "o-", color="#1f4e9c", ms=3, label="mean")
    right.set(xlabel="delay [ms]", ylabel="jitter [ms]")
    right.legend(fontsize=8)
    for axes in (left, right):
        axes.grid(color="#dddddd", lw=0.6)
    figure.suptitle("CONNET in the kernel: the characteristic curve", fontsize=12)
    said = "Bars: 95 % intervals over repeats. The jitter follows the delay, as in the paper's Fig. 3a."
    figure.supxlabel(said, fontsize=8.5)
    delay, jitter = means["delay_ms"], means["jitter_ms"]
    slope = np.diff(delay) / np.diff(CURVE)
    computed = {
        "connet-curve-rises": float(np.mean([np.diff(delay) > 0.0, np.diff(jitter) > 0.0])),
        "connet-curve-steepens": float(slope[-3:].mean() / slope[2:5].mean()),
    }
    return Outcome("connet-curve", "linux", each.reset_index(), figure, computed)


def identification(*, full: bool = False) -> Outcome:
    """CONNET in the kernel, as Fig. 5: models from traces of a kernel queue, and what they didn't see."""
    data, interval = kept(), Plant().interval
    rows, series = [], None
    for number, part in data[data.kind == "trace"].groupby("repeat"):
        found = netctrl.identify(trace(part, interval), held_out=HELD_OUT)
        model, how = found.model, found.model.identification
        proof = designed(model).certificate
        gain = model.state_space.steady_gain()
        rows.append(
            {
                "repeat": number,
                "order": len(model.A),
                "gain_delay": gain[0, 0],
                "gain_jitter": gain[1, 0],
                "vaf_delay": how.vaf[0],
                "vaf_jitter": how.vaf[1],
                "held_out_delay": how.held_out_vaf[0],
                "held_out_jitter": how.held_out_vaf[1],
                "disc_alpha": proof.disc_alpha,
                "radius": proof.spectral_radius,
            }
        )
        series = found if series is None else series
    table = pd.DataFrame(rows)
    said = "Dashed line: from here on the model was not made from what is shown."
    figure = draw_identification(first_repeat(data, "trace"), series, interval, said)
    computed = {
        "connet-ident-delay": float(table.held_out_delay.mean()),
        "connet-ident-jitter": float(table.held_out_jitter.mean()),
        "connet-ident-admissible": float((table.disc_alpha > 2.0 / 3.0).mean()),
        "connet-ident-gain": float(table.gain_delay.std() / table.gain_delay.mean()),
    }
    text = pd.DataFrame(
        [
            ("order", " ".join(map(str, table.order))),
            ("gain R to delay [ms per Mbit/s]", shown(table.gain_delay, 3)),
            ("gain R to jitter [ms per Mbit/s]", shown(table.gain_jitter, 3)),
            ("delay: variance accounted for, fitted [%]", shown(table.vaf_delay, 0)),
            ("delay: held out [%]", shown(table.held_out_delay, 0)),
            ("jitter: variance accounted for, fitted [%]", shown(table.vaf_jitter, 0)),
            ("jitter: held out [%]", shown(table.held_out_jitter, 0)),
            ("disk margin of the LQI loop", shown(table.disc_alpha, 2)),
        ],
        columns=["of five models", "mean ± 95 %"],
    )
    return Outcome("connet-identification", "linux", table, figure, computed, text)


def draw_identification(
    runs: dict[str, pd.DataFrame], found: IdentificationResult, interval: float, said: str
) -> Figure:
    run = next(iter(runs.values()))
    times = interval * np.arange(1, len(run) + 1)
    modelled = np.vstack([found.simulated, found.held_out_simulated])
    figure = Figure(figsize=(9.0, 6.4), layout="constrained")
    panels = figure.subplots(3, 1, sharex=True)
    for k, name in enumerate(("delay", "jitter")):
        panels[k].plot(times, run[f"{name}_ms"], color="#999999", lw=1.0, label="kernel")
        panels[k].plot(times, modelled[:, k], color=COLOURS[LQI], lw=1.0, label="model, simulated")
        panels[k].set_ylabel(f"{name} [ms]")
    panels[2].step(times, run.rate, where="pre", color="#222222", lw=1.0)
    panels[2].set(ylabel="R [Mbit/s]", xlabel="time [s]")
    for axes in panels:
        axes.grid(color="#dddddd", lw=0.6)
        axes.axvline(times[len(found.simulated)], color="#c0504d", lw=1.0, ls="--")
    panels[0].legend(fontsize=8, ncols=2)
    figure.suptitle("CONNET in the kernel: a model from a trace", fontsize=12)
    figure.supxlabel(said, fontsize=8.5)
    return figure


SKIPPED = 4
"""Periods before the load is what it will be."""


def fig10(*, full: bool = False) -> Outcome:
    """CONNET in the kernel, as Fig. 10(d): control is switched on while the link is loaded by 70 %."""
    data = kept()
    runs = data[data.kind == "activation"]
    said = "Sources send 14 Mbit/s of 20 through open regulators; the law is switched on after 15 s."
    shown = first_repeat(data, "activation")
    figure = over_time("CONNET in the kernel: switched on at run time", shown, said, top=12.0)
    computed = {f"connet-{name}": value for name, value in values_fig10(runs).items()}
    return Outcome("connet-fig10", "linux", runs, figure, computed)


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


def fig11(*, full: bool = False) -> Outcome:
    """CONNET in the kernel, as Fig. 11: references that change, under LQI, printed gains, a static R, no control."""
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
    computed = {f"connet-{name}": value for name, value in values_fig11(means).items()}
    computed["connet-change"] = float(runs.change_us[runs.change_us > 0.0].median())
    return Outcome("connet-fig11", "linux", runs, figure, computed, pd.DataFrame(rows))


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


def references(runs: pd.DataFrame) -> pd.DataFrame:
    """Means of each way, reference and repeat, once it is reached."""
    requested = runs.assign(requested=runs.reference_ms.fillna(0.0))
    controlled = requested.way.isin((LQI, PRINTED))
    parts = [
        counted(requested[controlled], "requested", SETTLING),
        counted(requested[~controlled], "requested", SHORT_SETTLING),
    ]
    return by_repeat(pd.concat(parts), ["way", "reference_ms"])


PHASES = ("all work", "two dead", "one dead", "all work again")


def fig13(*, full: bool = False) -> Outcome:
    """CONNET in the kernel, as Fig. 13: two of three regulators fail, then one is repaired, then the other."""
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

    computed = {f"connet-{name}": value for name, value in values_fig13(runs).items()}
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
