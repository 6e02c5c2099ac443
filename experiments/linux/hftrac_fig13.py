"""HFTraC's Fig. 13 in the kernel: one flow of TCP Cubic beside bursty UDP, through the testbed and its last link."""

from __future__ import annotations

from common import Measured, Outcome, verdicts
from linux.hftrac_cases import FIGURES
from linux.hftrac_fig_common import LOSS, dress, over_fifo, points, points_of, readable, runs, tail
from linux.hftrac_network import SLOWER, WAYS
from matplotlib.figure import Figure

PANELS = (("goodput", "goodput of TCP [Mbit/s]"), ("loss", LOSS), ("round_trip_ms", "TCP's smoothed round trip [ms]"))


def main(*, full: bool = False) -> Outcome:
    data = runs()[runs().figure == "13"]
    table = points_of(data)
    computed: dict[str, float | Measured] = {}
    for level in FIGURES["13"].x:
        less, more = over_fifo(data, table, level), over_fifo(data, table, level, "goodput")
        for name, ratios in (("loss", less), ("goodput", more)):
            computed[f"hftrac-13-{name}-{level:g}"] = ratios["coordinated"]
    figure = Figure(figsize=(15.0, 6.2), layout="constrained")
    for axes, (column, label) in zip(figure.subplots(1, 3), PANELS, strict=True):
        for way in WAYS:
            points(axes, table[table.way == way].sort_values("x"), "x", column, way)
        dress(axes, "Fig. 13 in the kernel", f"mean background [Mbit/s], {SLOWER:g} times what is sent here", label)
        if column == "goodput":
            axes.legend(fontsize=8.5)
    figure.supxlabel(f"{verdicts('linux', 'HFTraC, Fig. 13')}\n{tail(table)}", fontsize=9)
    return Outcome("hftrac-fig13", "linux", data, figure, computed, readable(table))
