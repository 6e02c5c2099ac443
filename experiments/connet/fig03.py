"""CONNET paper, Fig. 3a: the characteristic curve, delay and jitter of premium packets by the rate of all others."""

import numpy as np
import pandas as pd
from common import Outcome
from connet.links import SEEDS, link_of, opened
from matplotlib.figure import Figure

RATES = np.arange(5.0, 96.0, 5.0)
# Delay and jitter [ms] that the paper asks for together, so that they lie on its curve: Figs. 10 (constant,
# activation).
PAIRS = {"Fig. 10ab": (0.46, 0.043), "Fig. 10d": (0.534, 0.145), "70 Mbit/s": (1.1, 0.6)}


def main(*, full: bool = False) -> Outcome:
    scenario = link_of(duration=100.0)
    rows = []
    for rate in RATES:
        for seed in SEEDS:
            run = opened(scenario.replace(seed=seed), rate * 1e6)
            rows.append((rate, seed, 1e3 * run["mean delay"][5:].mean(), 1e3 * run["mean jitter"][5:].mean()))
    data = pd.DataFrame(rows, columns=["rate_mbit_s", "seed", "delay_ms", "jitter_ms"])
    means = data.groupby("rate_mbit_s")[["delay_ms", "jitter_ms"]].mean()
    figure = Figure(figsize=(9.0, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(RATES, means.delay_ms, "o-", color="#1f4e9c", ms=3, label="delay")
    left.plot(RATES, means.jitter_ms, "s-", color="#b45f06", ms=3, label="jitter")
    left.set(xlabel="R [Mbit/s]", ylabel="[ms]")
    left.legend(fontsize=8)
    right.plot(means.delay_ms, means.jitter_ms, "o-", color="#1f4e9c", ms=3, label="packets")
    for name, (delay, jitter) in PAIRS.items():
        right.plot(delay, jitter, "x", color="#c0504d", ms=7, mew=1.6)
        right.annotate(name, (delay, jitter), xytext=(6, -10), textcoords="offset points", fontsize=8)
    right.set(xlim=(0.3, 2.0), ylim=(0.0, 1.2), xlabel="delay [ms]", ylabel="jitter [ms]")
    for axes in (left, right):
        axes.grid(color="#dddddd", lw=0.6)
    figure.suptitle("CONNET paper, Fig. 3a: the characteristic curve", fontsize=12)
    figure.supxlabel(
        "Paper: R decides both. Crosses: pairs that the paper prints; that at 70 Mbit/s it rounds to 1.1 and 0.6 ms.",
        fontsize=8.5,
    )

    def jitter_at(delay: float) -> float:
        return float(np.interp(delay, means.delay_ms, means.jitter_ms))

    computed = {
        "fig3-rises": float((np.diff(means.delay_ms) > 0.0).all() and (np.diff(means.jitter_ms) > 0.0).all()),
        "fig3-constant": jitter_at(PAIRS["Fig. 10ab"][0]),
        "fig3-activation": jitter_at(PAIRS["Fig. 10d"][0]),
        "fig3-loaded": jitter_at(PAIRS["70 Mbit/s"][0]),
    }
    return Outcome("fig03", "connet", data, figure, computed)
