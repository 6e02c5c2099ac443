"""Pacing paper, Section IV-F: one parameter at a time, about p = 5, q = 1, alpha = gamma = 0.5, psi = 1, xi = 100.

Over H-TCP, as in Fig. 2: throughput with R = 10 Gbit/s, where the law is a cap, and RTTs with R = 40 Gbit/s, where it
has to find one. alpha is NLMS's: eq. (2) as printed is stable in no unit.
"""

import numpy as np
import pacing.paper_link as paper
import pandas as pd
from common import Outcome, verdicts
from matplotlib.figure import Figure
from pacing.fig02 import fit, predictions

import netctrl
from netctrl.laws.tracking.estimators import nlms_step

VALUES: dict[str, tuple[str, tuple[float, ...]]] = {
    "past_rtts": ("p", (1, 2, 5, 10, 20, 50)),
    "past_rates": ("q", (1, 2, 5, 10)),
    "step": ("alpha", (0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 1.9)),
    "smoothing": ("gamma", (0.0, 0.2, 0.5, 0.8, 0.9, 0.99)),
    "psi": ("psi", (0.01, 0.1, 1.0, 10.0, 100.0)),
    "xi": ("xi", (1.0, 10.0, 100.0, 1e3, 1e4)),
}
NOISES = (paper.NOISE, 5.0 * paper.NOISE)
SEEDS = (0, 1)
DURATION_S = 30.0
LONG_RTT = 0.1
DRIFT_NOISE = 5e-5
"""Of the drift; at 0.02 ms there is little."""
TOLD = 0.05
"""Of the RTT: a model whose error is below it has converged."""


def main(*, full: bool = False) -> Outcome:
    data = pd.DataFrame(
        [
            {"parameter": name, "value": value, "noise_s": noise, "most": most, "seed": seed}
            | paper.means(
                paper.run([paper.paper_flow(most, **changed(name, value))], noise, seed, duration=DURATION_S)
            )._asdict()
            for name, (_, values) in VALUES.items()
            for value in values
            for noise in NOISES
            for most in (paper.CAPACITY, paper.SENDER)
            for seed in SEEDS
        ]
    )
    drifts = {xi: drift(xi) for xi in VALUES["xi"][1]}
    steps = {step: learning(step) for step in VALUES["step"][1]}
    memory = {(rtt, past): fit_of(rtt, int(past)) for rtt in (paper.RTT, LONG_RTT) for past in VALUES["past_rtts"][1]}
    figure = draw(data, drifts, steps, memory)
    return Outcome("parameters", "pacing", data, figure, compute(data, drifts, steps, memory), table_of(data))


def changed(name: str, value: float) -> dict[str, object]:
    return {name: int(value) if name in ("past_rtts", "past_rates") else value}


def mean_of(data: pd.DataFrame, name: str, value: float, most: float, noise: float = paper.NOISE) -> pd.Series:
    chosen = (data.parameter == name) & (data.value == value) & (data.most == most) & (data.noise_s == noise)
    return data[chosen].mean(numeric_only=True)


def compute(data: pd.DataFrame, drifts: dict, steps: dict, memory: dict) -> dict[str, float]:
    slow, fast = steps[0.1], steps[1.0]
    computed = {
        "ivf-long-memory": memory[LONG_RTT, 20] - memory[LONG_RTT, 1],
        "ivf-alpha-speed": slow[0] / fast[0],
        "ivf-alpha-volatile": fast[1] / slow[1],
        "ivf-alpha-small": mean_of(data, "step", 0.05, paper.CAPACITY).rate,
        "ivf-alpha-paper": mean_of(data, "step", 0.5, paper.CAPACITY).rate,
        "ivf-drift-light": drifts[1.0][0],
        "ivf-drift-paper": drifts[100.0][0],
        "ivf-drift-rate": drifts[1e3][1],
        "ivf-gamma": mean_of(data, "smoothing", 0.99, paper.CAPACITY).rate,
        "ivf-best": best(data),
        "ivf-cap": paper.CAP / 1e9,
    }
    return {name: float(value) for name, value in computed.items()}


def best(data: pd.DataFrame) -> float:
    """Greatest throughput among settings with R = 40 Gbit/s whose RTTs deviate by less than a tenth of the base RTT, at
    the greater noise [Gbit/s]; NaN: there is none."""
    of = data[(data.most == paper.SENDER) & (data.noise_s == NOISES[1])]
    mean = of.groupby(["parameter", "value"]).mean(numeric_only=True)
    return float(mean[mean.rtt_std < 0.1 * 1e3 * paper.RTT + 1e3 * NOISES[1]].rate.max())


def drift(xi: float) -> tuple[float, float]:
    """Trend [Gbit/s a minute] and mean [Gbit/s] of the throughput at R = 10 Gbit/s, from 5 to 60 s."""
    rates = np.mean(
        [
            paper.by_second(paper.run([paper.paper_flow(paper.CAPACITY, xi)], DRIFT_NOISE, s), warmup=5.0)
            for s in range(4)
        ],
        axis=0,
    )
    return float(60.0 * np.polyfit(np.arange(len(rates)), rates, 1)[0]), float(rates.mean())


def learning(step: float) -> tuple[float, float]:
    """Samples until a model that begins at 0 is off by less than 5 % ten times in a row, and the root mean square of
    what a sample then moves it by; RTTs of H-TCP alone, up by 0.1 ms on average."""
    link = paper.run([netctrl.Flow(sender="htcp")], NOISES[1], duration=20.0)
    seen = np.flatnonzero(~np.isnan(link.series["rtt"][0]))[200:]
    rtts, rates = link.series["rtt"][0, seen] / paper.RTT, link.series["pace"][0, seen] / paper.CAPACITY
    theta, moves, errors = np.zeros((6, 1)), [], []
    for n in range(5, len(rtts)):
        before = theta
        theta, error = nlms_step(theta, np.append(rtts[n - 5 : n][::-1], rates[n - 1]), [rtts[n]], step=step)
        moves.append(float(((theta - before) ** 2).sum()))
        errors.append(abs(float(error[0])) / rtts[n])
    good = np.convolve(np.array(errors) < TOLD, np.ones(10), "valid") == 10
    return float(np.argmax(good)) + 1.0, float(np.sqrt(np.mean(moves[len(moves) // 2 :])))


def fit_of(rtt: float, past: int) -> float:
    """Of the model over H-TCP alone on a link of this RTT, a sample each max(T, RTT) [%]."""
    noise, width = 0.005 * rtt, max(0.01, rtt)
    buffer, duration = paper.CAPACITY * rtt / 8.0, 10.0 + 2000 * width
    flow = netctrl.Flow(sender="htcp")
    link = paper.run([flow], noise, rtt=rtt, buffer=buffer, queue="droptail", duration=duration, interval=width)
    sent = (link.series["delivered"] + link.series["lost"])[0] * 8.0 / width
    seen = ~np.isnan(link.series["rtt"][0])
    rtts = link.series["rtt"][0, seen] / rtt
    return fit(link.time_s[seen], rtts, predictions(nlms_step, rtts, sent[seen] / paper.CAPACITY, past))


def table_of(data: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for name, (symbol, values) in VALUES.items():
        for value in values:
            known, unknown = (mean_of(data, name, value, most) for most in (paper.CAPACITY, paper.SENDER))
            cells = [
                f"{each.rate:.2f} ± {each.rate_std:.2f}, {each.rtt:.2f} ± {each.rtt_std:.2f}"
                for each in (known, unknown)
            ]
            rows.append((symbol, f"{value:g}", *cells))
    columns = ["parameter", "value", "R = 10: Gbit/s, RTT [ms]", "R = 40: Gbit/s, RTT [ms]"]
    return pd.DataFrame(rows, columns=columns)


def threshold_ms(name: str, value: float) -> float:
    """The certificate's d* [ms]; NaN where it always freezes."""
    d = netctrl.pacing(**{name: value}, rtt_s=paper.RTT, bottleneck_bit_per_s=paper.CAPACITY).certificate.freeze_below_s
    return np.nan if d is None else 1e3 * d


def draw(data: pd.DataFrame, drifts: dict, steps: dict, memory: dict) -> Figure:
    figure = Figure(figsize=(14.0, 10.6), layout="constrained")
    panels = figure.subplots(3, 3).ravel()
    for axes, (name, (symbol, values)) in zip(panels, VALUES.items(), strict=False):
        for noise, colour in zip(NOISES, (paper.BLUE, paper.ORANGE), strict=True):
            mean = [mean_of(data, name, value, paper.CAPACITY, noise) for value in values]
            label = f"R = 10 Gbit/s, RTTs up by {1e3 * noise:g} ms"
            axes.errorbar(values, [m.rate for m in mean], [m.rate_std for m in mean], fmt="o-", color=colour, lw=1.2,
                          ms=4, capsize=2, label=label)  # fmt: skip
        axes.axhline(paper.CAP / 1e9, color="#222222", lw=0.8, ls=":", label="fixed cap")
        other = axes.twinx()
        if name in ("psi", "xi"):
            other.semilogy(
                values, [threshold_ms(name, value) for value in values], "s--", color=paper.GREEN, lw=1.0, ms=3
            )
            other.set_ylabel("d* [ms]", color=paper.GREEN)
        else:
            mean = [mean_of(data, name, value, paper.SENDER) for value in values]
            other.plot(values, [m.rtt_std for m in mean], "s--", color=paper.RED, lw=1.0, ms=3)
            other.set_ylabel("R = 40 Gbit/s: std of RTT [ms]", color=paper.RED)
            other.set_ylim(0.0, 1.5)
        scale = "linear" if name == "smoothing" else "log"
        paper.grid(axes, symbol, ylabel="Gbit/s", xscale=scale, ylim=(0.0, 11.5))
    panels[0].legend(fontsize=7.5, loc="lower left")
    xis = list(drifts)
    panels[6].semilogx(xis, [drifts[xi][0] for xi in xis], "o-", color=paper.BLUE, lw=1.2, ms=4)
    paper.grid(panels[6], "drift, R = 10 Gbit/s, RTTs up by 0.05 ms", xlabel="xi", ylabel="Gbit/s a minute")
    panels[7].loglog(list(steps), [each[0] for each in steps.values()], "o-", color=paper.BLUE, lw=1.2, ms=4)
    paper.grid(panels[7], "the model alone", xlabel="alpha", ylabel="samples until it has converged")
    other = panels[7].twinx()
    other.loglog(list(steps), [each[1] for each in steps.values()], "s--", color=paper.RED, lw=1.0, ms=3)
    other.set_ylabel("what a sample moves it by", color=paper.RED)
    for rtt, colour in ((paper.RTT, paper.BLUE), (LONG_RTT, paper.GREY)):
        pasts = VALUES["past_rtts"][1]
        fits = [memory[rtt, past] for past in pasts]
        panels[8].semilogx(pasts, fits, "o-", color=colour, lw=1.2, ms=4, label=f"RTT of {1e3 * rtt:g} ms")
    paper.grid(panels[8], "the model alone, RTTs of H-TCP", xlabel="p", ylabel="fit [%]")
    panels[8].legend(fontsize=8)
    figure.suptitle("Pacing paper, Section IV-F: one parameter at a time", fontsize=11)
    figure.supxlabel(verdicts("pacing", "Section IV-F"), fontsize=8.5)
    return figure
