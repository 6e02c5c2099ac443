"""CONNET in the kernel, as Fig. 3a: delay and jitter of premium packets by the rate of all others, in five repeats."""

from __future__ import annotations

import numpy as np
import pandas as pd
from common import Outcome, interval
from linux.connet_study import CURVE, curve_means, kept
from matplotlib.figure import Figure


def main(*, full: bool = False) -> Outcome:
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
