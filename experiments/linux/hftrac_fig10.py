"""HFTraC's Fig. 10a in the kernel: demands larger than believed, at a believed load of 0.95."""

from __future__ import annotations

import pandas as pd
from common import Measured, Outcome, verdicts
from linux.hftrac_cases import BELIEVED, FIGURES
from linux.hftrac_fig_common import COLOURS, LOSS, dress, over_fifo, points, points_of, readable, runs, tail
from linux.hftrac_network import WAYS
from matplotlib.figure import Figure


def main(*, full: bool = False) -> Outcome:
    every = runs()
    data = every[every.figure == "10"]
    table = points_of(data)
    computed: dict[str, float | Measured] = {}
    for scale in FIGURES["10"].x:
        ratios = over_fifo(data, table, scale)
        for way in ("god", "centralized", "coordinated", "myopic"):
            computed[f"hftrac-10-{way}-{scale:g}"] = ratios[way]
    right = points_of(every[(every.figure == "7") & (every.x == BELIEVED)]).assign(x=1.0)  # the same, as believed
    figure = Figure(figsize=(10.0, 6.0), layout="constrained")
    axes = figure.subplots()
    both = pd.concat([right, table])
    for way in WAYS:
        part = both[both.way == way].sort_values("x")
        points(axes, part, "x", "loss", way)
        axes.plot(part.x, part.fluid_loss, ":", color=COLOURS[way], lw=1.0)
    axes.set_yscale("log")
    axes.legend(fontsize=8.5)
    dress(
        axes, f"Fig. 10a in the kernel, believed load {BELIEVED:g}; dotted: fluid", "demand over what is believed", LOSS
    )
    figure.supxlabel(f"{verdicts('linux', 'HFTraC, Fig. 10a')}\n{tail(table)}", fontsize=9)
    return Outcome("hftrac-fig10", "linux", data, figure, computed, readable(table))
