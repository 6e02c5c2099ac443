"""HFTraC's Figs. 7b and 7c in the kernel: loss and mean queue by load, mu and factor tuned in the fluid."""

from __future__ import annotations

from common import Measured, Outcome, verdicts
from linux.hftrac_cases import FIGURES
from linux.hftrac_fig06 import furthest
from linux.hftrac_fig_common import COLOURS, LOSS, QUEUE, dress, over_fifo, points, points_of, readable, runs, tail
from linux.hftrac_network import WAYS
from matplotlib.figure import Figure

UTILIZATION = "utilization of the busiest link"


def main(*, full: bool = False) -> Outcome:
    data = runs()[runs().figure == "7"]
    table = points_of(data)
    computed: dict[str, float | Measured] = {}
    for load in FIGURES["7"].x:
        ratios = over_fifo(data, table, load)
        for way in ("coordinated", "centralized", "static"):
            computed[f"hftrac-7-{way}-{load:g}"] = ratios[way]
    computed["hftrac-7-factor"] = furthest(table[table.x == FIGURES["7"].x[-1]])
    figure = Figure(figsize=(13.0, 6.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    for way in WAYS:
        part = table[table.way == way].sort_values("x")
        points(left, part[part.loss > 0.0], "x", "loss", way)
        points(right, part, "x", "queue_kbit", way)
        left.plot(part.x, part.fluid_loss.where(part.fluid_loss > 1e-3), ":", color=COLOURS[way], lw=1.0)
        right.plot(part.x, part.fluid_queue_kbit, ":", color=COLOURS[way], lw=1.0)
    left.set_yscale("log")
    left.legend(fontsize=8.5)
    dress(left, "Fig. 7b in the kernel; dotted: fluid, same demands", UTILIZATION, LOSS)
    dress(right, "Fig. 7c in the kernel; dotted: fluid", UTILIZATION, QUEUE)
    figure.supxlabel(f"{verdicts('linux', 'HFTraC, Fig. 7b')}\n{tail(table)}", fontsize=9)
    return Outcome("hftrac-fig07", "linux", data, figure, computed, readable(table))
