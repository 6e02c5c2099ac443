"""HFTraC's Fig. 6a in the kernel: loss against mean queue, hosts' buffers infinite, beside the fluid."""

from __future__ import annotations

import pandas as pd
from common import Measured, Outcome, verdicts
from linux.hftrac_bed import WARM_UP
from linux.hftrac_cases import FIGURES, SWEPT, foreseen
from linux.hftrac_fig_common import LOSS, QUEUE, at, dress, of, order, points, points_of, ratio, readable, runs, tail
from linux.hftrac_network import WAYS, Case
from linux.hftrac_study import REPEATS
from matplotlib.figure import Figure

LOAD = 0.95


def main(*, full: bool = False) -> Outcome:
    data = runs()[runs().figure == "6a"]
    table = points_of(data)
    computed: dict[str, float | Measured] = {}
    for mu in SWEPT:
        points = at(table, "coordinated", LOAD, mu), at(table, "fifo", LOAD)
        mine = table[(table.value == mu) & (table.way != "static")]
        computed |= {
            f"hftrac-6a-{mu:g}": ratio(data, *points),
            f"hftrac-6a-{mu:g}-fluid": ratio(data, *points, "fluid_loss"),
            f"hftrac-6a-{mu:g}-order": float(order(mine, "loss") == order(mine, "fluid_loss")),
        }
    fifo = of(table, at(table, "fifo", LOAD)).iloc[0]
    computed["hftrac-6a-fifo"] = float(fifo.loss / fifo.fluid_loss)
    computed["hftrac-6a-static"] = float(of(table, at(table, "static", LOAD)).loss.iloc[0])
    computed["hftrac-6a-factor"] = furthest(table)
    computed["hftrac-6a-whole"] = whole_frames()
    figure = draw(table)
    figure.supxlabel(f"{verdicts('linux', 'HFTraC, Fig. 6a')}\n{tail(table)}", fontsize=9)
    return Outcome("hftrac-fig06", "linux", data, figure, computed, readable(table))


def whole_frames() -> float:
    """What the fluid's coordinated control loses more, at mu = 0.1, where buffers hold whole frames only."""
    case, seconds = Case("6a", LOAD, "coordinated", 0.1), FIGURES["6a"].seconds
    found = [foreseen(case, seconds, WARM_UP, len(REPEATS), whole=whole) for whole in (False, True)]
    losses = [each.figures()["loss", "network"].mean() for each in found]
    return float(losses[1] / losses[0] - 1.0)


def furthest(table: pd.DataFrame) -> float:
    """The greatest factor between kernel and fluid, of points that lose in both."""
    both = table[(table.loss > 0.0) & (table.fluid_loss > 0.0)]
    change = both.loss / both.fluid_loss
    return float(pd.concat([change, 1.0 / change]).max())


def draw(table: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(12.0, 6.2), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for axes, prefix, title in zip(panels, ("", "fluid_"), ("kernel", "fluid, same demands"), strict=True):
        for way in WAYS:
            part = table[table.way == way].sort_values(f"{prefix}queue_kbit")
            points(axes, part, f"{prefix}queue_kbit", f"{prefix}loss", way)
        dress(axes, f"Fig. 6a, {title}; mu = 0.01 and 0.1, static 1.05 f*", QUEUE, LOSS)
    panels[0].legend(fontsize=8.5)
    return figure
