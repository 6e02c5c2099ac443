"""CONNET paper, Figs. 14 and 15b: beside CBQ, WFQ and a FIFO that nobody controls, as the offered rate rises."""

from __future__ import annotations

import numpy as np
import pandas as pd
from common import Outcome
from connet.links import LQI, SEEDS, laws, link_of, opened, tracked
from matplotlib.figure import Figure

OFFERED = (20.0, 40.0, 60.0, 80.0, 95.0)
REFERENCE = (0.62, 0.037)
"""Three nodes at R = 18 Mbit/s: lower than WFQ's."""
CBQ = {"kind": "cbq", "shares": [0.02, 0.98]}
"""Premium packets have a class of their own."""
NAMES = ("FIFO", "CBQ", "WFQ", "CONNET (LQI)")
STYLES = {"FIFO": "#777777", "CBQ": "#6aa84f", "WFQ": "#8e44ad", "CONNET (LQI)": "#1f4e9c"}


def main(*, full: bool = False) -> Outcome:
    rows = []
    for seed in SEEDS:
        base = {"duration": 120.0, "hops": 3, "seed": seed}
        for rate in OFFERED:
            for name, queue in zip(NAMES, ("droptail", CBQ, "wfq"), strict=False):
                rows.append((name, rate, seed, *columns(opened(link_of(queue=queue, **base), rate * 1e6))))
        held = tracked(laws()[LQI], link_of(**base), REFERENCE)
        ours = held.mean_delay_ms, held.mean_jitter_ms, held.other_bit_per_s / 1e6
        rows += [(NAMES[3], rate, seed, *ours) for rate in OFFERED]
    data = pd.DataFrame(
        [(name, rate, seed, *(column[40:].mean() for column in found)) for name, rate, seed, *found in rows],
        columns=["scheme", "offered_mbit_s", "seed", "delay_ms", "jitter_ms", "other_mbit_s"],
    )
    means = data.groupby(["scheme", "offered_mbit_s"])[["delay_ms", "jitter_ms", "other_mbit_s"]].mean()
    figure = Figure(figsize=(12.0, 4.0), layout="constrained")
    panels = figure.subplots(1, 3)
    labels = ("delay [ms]", "jitter [ms]", "non-premium throughput [Mbit/s]")
    for axes, column, label in zip(panels, means.columns, labels, strict=True):
        for name in NAMES:
            part = means.loc[name]
            axes.plot(part.index, part[column], "o-", ms=3, color=STYLES[name], label=name)
        axes.set_xlabel("offered [Mbit/s]")
        axes.set_ylabel(label)
        axes.grid(color="#dddddd", lw=0.6)
        axes.set_ylim(bottom=0.0)
    panels[0].legend(fontsize=8)
    figure.suptitle(
        "CONNET paper, Fig. 14: premium delay and jitter, and what it costs the others; 3 nodes", fontsize=12
    )
    said = (
        "Paper: less delay and jitter than CBQ and WFQ. So it is, and non-premium traffic pays for it: see the right."
    )
    figure.supxlabel(said, fontsize=8.5)
    top = means.xs(OFFERED[-1], level="offered_mbit_s")
    ours = top.loc[NAMES[3]]
    alone = [1e3 * opened(link_of(duration=100.0, hops=3, seed=seed))["mean delay"][20:].mean() for seed in SEEDS]
    computed = {
        "fig14-cbq-delay": float(1.0 - ours.delay_ms / top.loc["CBQ"].delay_ms),
        "fig14-cbq-jitter": float(1.0 - ours.jitter_ms / top.loc["CBQ"].jitter_ms),
        "fig14-wfq-delay": float(1.0 - ours.delay_ms / top.loc["WFQ"].delay_ms),
        "fig14-wfq-jitter": float(1.0 - ours.jitter_ms / top.loc["WFQ"].jitter_ms),
        "fig14-price": float(ours.other_mbit_s / top.loc["FIFO"].other_mbit_s),
        "fig15b-open": float(np.mean(alone)),
    }
    return Outcome("fig14", "connet", data, figure, computed)


def columns(signals: dict[str, np.ndarray]) -> tuple[np.ndarray, ...]:
    """Delay, jitter [ms], and throughput of all other traffic [Mbit/s]."""
    return 1e3 * signals["mean delay"], 1e3 * signals["mean jitter"], signals["throughput"] / 1e6
