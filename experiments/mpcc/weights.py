"""MPCC's two knobs, W_R/W_Q and P, in the fat tree and among sixteen flows: what they change, and what they don't.

The thesis tries 1:1 to 1:100 on four flows (Section 5.2.1) and says that the horizon hardly matters (Section 6.2). Here
both laws, on the queue as told and on the predicted one, meet the same flows, 10 ms of FB_Hadoop at 60 % load, beside
the certificate's disk margin at the same weights for sixteen flows.
"""

from itertools import product

import numpy as np
import pandas as pd
from common import Outcome, verdicts
from matplotlib.figure import Figure
from mpcc.fat_tree import scenario
from mpcc.fig05 import sixteen

import netctrl
from netctrl.laws.window.records import Mpcc
from netctrl.scenario.transfers import slow_downs
from netctrl.sim.packet.run import simulate_packets

WEIGHTS = (0.01, 0.1, 1.0, 10.0, 100.0)
HORIZONS = (1, 5, 20)
SEEDS = (1,)
LAWS = {"delay-free": "#b45f06", "delayed": "#1f4e9c"}
ROUND_TRIP, P_BD = 6.282e-6, 78525.0
"""Of the sixteen flows: 71 packets of 1100 bytes at 100 Gbit/s."""


def fat_tree(variant: str, weight: float, horizon: int, seed: int) -> dict[str, float]:
    scheme = Mpcc(variant=variant, window_weight=weight, horizon=horizon)  # ty: ignore[invalid-argument-type]
    result = simulate_packets(scenario("FB_Hadoop", 0.6, False, scheme, seed))
    return {
        "small": slow_downs(result.transfers, 0.0, 1e4)["slow-down 95 %"],
        "large": slow_downs(result.transfers, 1e5)["slow-down 95 %"],
        "queue_kb": result["queue 99 %", "network"] / 1e3,
    }


def main(*, full: bool = False) -> Outcome:
    points = [(weight, 5) for weight in WEIGHTS] + [(1.0, horizon) for horizon in HORIZONS if horizon != 5]
    rows = []
    for variant, (weight, horizon) in product(LAWS, points):
        utilization, queue = sixteen(variant, weight, horizon)
        design = netctrl.mpcc(
            16, 1e11, ROUND_TRIP, bdp_bytes=P_BD, packet_size_bytes=1100.0, window_weight=weight, horizon=horizon,
            delayed=variant == "delayed",
        )  # fmt: skip
        told = {"variant": variant, "weight": weight, "horizon": horizon}
        told |= {"utilization": utilization, "sixteen_queue": queue}
        told |= {"disc_alpha": design.certificate.disc_alpha, "idle_share": design.certificate.idle_share}
        rows += [told | {"seed": seed} | fat_tree(variant, weight, horizon, seed) for seed in SEEDS]
    data = pd.DataFrame(rows)
    return Outcome("weights", "mpcc", data, draw(data), compute(data))


def compute(data: pd.DataFrame) -> dict[str, float]:
    mean = data.groupby(["variant", "weight", "horizon"]).mean()
    free = mean.loc["delay-free"]
    by_horizon = free.loc[1.0]
    long = by_horizon.loc[[horizon for horizon in HORIZONS if horizon > 2]]
    return {
        "weights-careful": float(free.loc[(100.0, 5), "utilization"]),
        "weights-greedy": float(free.loc[(0.01, 5), "utilization"]),
        "weights-delayed": float(mean.loc["delayed"]["utilization"].min()),
        "weights-large": float(free.loc[(100.0, 5), "large"] / free.loc[(0.01, 5), "large"]),
        "horizon-large": float(np.ptp(long["large"]) / long["large"].mean()),
    }


def draw(data: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(13.0, 7.6), layout="constrained")
    panels = figure.subplots(2, 3)
    for variant, colour in LAWS.items():
        of = data[data.variant == variant]
        by_weight = of[of.horizon == 5].groupby("weight")
        by_horizon = of[of.weight == 1.0].groupby("horizon")
        for column, (grouped, axis) in enumerate(((by_weight, "W_R/W_Q, P = 5"), (by_horizon, "P, weights 1:1"))):
            mean = grouped.mean(numeric_only=True)
            panels[0, column].plot(mean.index, mean["large"], "o-", color=colour, lw=1.4, ms=4, label=variant)
            panels[0, column].plot(mean.index, mean["small"], "o--", color=colour, lw=1.0, ms=3)
            panels[0, column].set(xlabel=axis, ylabel="95 % slow-down", xscale="log", ylim=(0.0, None))
            panels[1, column].plot(mean.index, mean["utilization"], "o-", color=colour, lw=1.4, ms=4, label=variant)
            panels[1, column].set(xlabel=axis, ylabel="utilization, sixteen flows", xscale="log")
        mean = by_weight.mean(numeric_only=True)
        panels[0, 2].plot(mean.index, mean["disc_alpha"], "o-", color=colour, lw=1.4, ms=4, label=variant)
        panels[1, 2].plot(mean.index, mean["idle_share"], "o-", color=colour, lw=1.4, ms=4, label=variant)
    panels[0, 0].set_title("fat tree: above 100 kB, dashed to 10 kB", fontsize=10)
    panels[0, 1].set_title("the same over the horizon", fontsize=10)
    panels[0, 2].set(title="certificate, sixteen flows", xlabel="W_R/W_Q, P = 5", ylabel="disk margin", xscale="log")
    panels[1, 2].set(xlabel="W_R/W_Q, P = 5", ylabel="idle after a burst [P_BD]", xscale="log")
    for axes in panels.ravel():
        axes.grid(color="#dddddd", lw=0.6)
    panels[0, 0].legend(fontsize=8)
    figure.suptitle("MPCC's weights and horizon: FB_Hadoop at 60 % in the fat tree, and sixteen flows", fontsize=11)
    figure.supxlabel(verdicts("mpcc", "ours, weights", "Section 6.2"), fontsize=8.5)
    return figure
