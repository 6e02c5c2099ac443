"""Pacing in ns-3 beside H-TCP, Cubic, BBR and a fixed cap: one flow at a time, means of five seeds.

Nothing runs here: `python experiments/full.py pacing-ns3` makes data/results/pacing-ns3.csv.
"""

import pandas as pd
from common import Measured, Outcome, measured, quotient, verdicts
from matplotlib.figure import Figure
from pacing.bottleneck import POINTS, STUDY, beside_fluid, table
from pacing.paper_link import BLUE, GREEN, GREY, ORANGE, RED, grid

FIRST = next(iter(POINTS))
ALONE = "the first, no cross traffic"
SHOWN = (FIRST, "the same, buffer 20 ms", "10 Mbit/s, 50 ms, buffer 100 ms")
COLOURS = {"H-TCP": BLUE, "Cubic": GREY, "BBR": RED, "fixed cap, 0.95 C": "#222222", "own rate": GREEN}
MARKS = {"paper, R = 0.95 C": "v", "paper, R = C": "o", "paper, R = 2 C": "^"}


def main(*, full: bool = False) -> Outcome:
    data = STUDY.read()
    tables = {point: table(point).set_index("scheme") for point in POINTS}
    rows = [
        (point, scheme, f"{each.throughput_bit_per_s:.2f} ± {each.throughput_std_bit_per_s:.2f}",
         f"{each.rtt_mean_s:.2f}", f"{each.rtt_99_s:.1f}", f"{each.sent_again:.2g}")
        for point in SHOWN
        for scheme, each in tables[point].iterrows()
    ]  # fmt: skip
    columns = ["bottleneck", "flow", "Mbit/s, deviation in 0.1 s", "mean RTT [ms]", "99th percentile", "sent again [%]"]
    return Outcome("ns3", "pacing", data, draw(tables), compute(data), pd.DataFrame(rows, columns=columns))


def compute(data: pd.DataFrame) -> dict[str, float | Measured]:
    def runs(point: str, scheme: str, column: str) -> pd.Series:
        return data[(data.point == point) & (data.scheme == scheme)].set_index("seed")[column]

    def ratio(point: str, column: str) -> Measured:
        return quotient(runs(point, "own rate", column), runs(point, "BBR", column))

    def of(scheme: str, column: str, unit: float) -> Measured:
        return measured(runs(FIRST, scheme, column) / unit)

    rate, delay, fluid = "throughput_bit_per_s", "rtt_mean_s", beside_fluid(FIRST)
    return {
        "ns3-own-rtt": ratio(FIRST, delay),
        "ns3-own-p99": ratio(FIRST, "rtt_99_s"),
        "ns3-own-rate": ratio(FIRST, rate),
        "ns3-own-std": ratio(FIRST, "throughput_std_bit_per_s"),
        "ns3-worst-rtt": max(ratio(point, delay) for point in POINTS if point != ALONE),
        "ns3-worst-rate": min(ratio(point, rate) for point in POINTS),
        "ns3-alone-rtt": ratio(ALONE, delay),
        "ns3-known": of("paper, R = C", rate, 1e6),
        "ns3-unknown": of("paper, R = 2 C", rate, 1e6),
        "ns3-cap": of("fixed cap, 0.95 C", rate, 1e6),
        "ns3-cap-rtt": of("fixed cap, 0.95 C", delay, 1e-3),
        "ns3-fluid": fluid["ns-3 utilization"] - fluid["fluid utilization"],
        "ns3-fluid-delay": (fluid["ns-3 delay"] - fluid["fluid delay"]) / fluid["packet time"],
    }


def draw(tables: dict[str, pd.DataFrame]) -> Figure:
    figure = Figure(figsize=(14.0, 5.6), layout="constrained")
    for axes, point in zip(figure.subplots(1, len(SHOWN)), SHOWN, strict=True):
        given = POINTS[point]
        for scheme, each in tables[point].iterrows():
            colour, mark = COLOURS.get(str(scheme), ORANGE), MARKS.get(str(scheme), "o")
            rate = each.throughput_bit_per_s * 1e8 / given["capacity"]
            axes.plot(each.rtt_mean_s, rate, mark, color=colour, ms=6, label=scheme)
            axes.plot([each.rtt_mean_s, each.rtt_99_s], [rate, rate], color=colour, lw=1.2)
        buffer = 8e3 * given["buffer"] / given["capacity"]
        title = f"{given['capacity'] / 1e6:g} Mbit/s, {1e3 * given['rtt']:g} ms, buffer {buffer:g} ms"
        grid(axes, title, xlabel="RTT [ms]: mean, line to the 99th percentile", ylabel="throughput [% of capacity]")
        axes.set_ylim(45.0, 102.0)
        axes.legend(fontsize=8, loc="lower right")
    figure.suptitle("Pacing in ns-3: one flow at a time, 1 % of cross traffic, five seeds", fontsize=11)
    figure.supxlabel(verdicts("pacing", "ns-3"), fontsize=8.5)
    return figure
