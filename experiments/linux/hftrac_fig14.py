"""HFTraC's Fig. 14 in virtual time: round trips of a video's packets over TCP Cubic, beside background UDP.

The paper's video stands as frames of equal size, 25 a second, of 3.16 Mbit/s. A round trip is from a packet's first
sending to the acknowledgement that covers it. It begins where TCP hands the packet to the host's queue, whose rate is
controlled too; `wire` begins where the packet leaves that queue, as a capture at the host's interface has it.
"""

import pandas as pd
from common import Measured, Outcome, means, measured, verdicts
from linux.hftrac_bed import QUANTILES
from linux.hftrac_cases import FIGURES
from linux.hftrac_points import COLOURS, LOSS, at, bars, dress, of, of_row, ratio
from linux.virtual_hftrac import KEY, STUDY
from matplotlib.axes import Axes
from matplotlib.figure import Figure

PLACE = "HFTraC in virtual time, Fig. 14"
COLUMNS = {"packet_rtt_ms": "mean round trip of a packet [ms]", "packet_again": "packets sent again [%]"}
SHOWN = ("packet_rtt_ms", "packet_rtt_50_ms", "packet_rtt_99_ms", "wire_rtt_ms", "packet_again", "loss")
MILD = {34.0: "-", 37.0: "--"}
"""Levels whose distributions are drawn."""
WAYS = FIGURES["14"].ways
LEVELS = {level: f"{level:g}" for level in FIGURES["14"].x}
"""Means of the background [Mbit/s]."""


def runs() -> pd.DataFrame:
    data = STUDY.read()
    return data[data.figure == "14"].dropna(axis=1, how="all")


def main(*, full: bool = False) -> Outcome:
    data = runs()
    table = means(data, KEY[:-1], SHOWN)
    figure = Figure(figsize=(15.0, 5.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for axes, (column, label) in zip((left, middle), COLUMNS.items(), strict=True):
        bars(axes, table, column, LEVELS, WAYS, ecolor="#222222")
        dress(axes, "Fig. 14 in virtual time", "mean background [Mbit/s]", label)
    left.legend(fontsize=8.5)
    distributions(right, data)
    count = int(table.runs.min())
    tail = f"{count} runs of {data.seconds.iloc[0]:g} s a point, 95 % intervals; the paper's rates and delays."
    figure.supxlabel(f"{verdicts('linux', PLACE)}\n{tail}", fontsize=9)
    return Outcome("hftrac-fig14", "linux", data, figure, computed(data, table), readable(table))


def computed(data: pd.DataFrame, table: pd.DataFrame) -> dict[str, float | Measured]:
    """Round trips and packets sent again over FIFO's, run by run; where FIFO loses none, packets sent again [%]."""
    found: dict[str, float | Measured] = {}
    for level in FIGURES["14"].x:
        base = at(table, "fifo", level)
        for way in WAYS[1:]:
            mine, name = at(table, way, level), f"hftrac-14-{way}-{level:g}"
            found[f"{name}-rtt"] = ratio(data, mine, base, "packet_rtt_ms")
            found[f"{name}-wire"] = ratio(data, mine, base, "wire_rtt_ms")
            found[f"{name}-99"] = ratio(data, mine, base, "packet_rtt_99_ms")
            some = (of(data, base).packet_again > 0.0).all()
            again = ratio(data, mine, base, "packet_again") if some else measured(of(data, mine).packet_again)
            found[f"{name}-again"] = again
    return found


def distributions(axes: Axes, data: pd.DataFrame) -> None:
    """Quantiles of round trips, means over the runs."""
    for level, style in MILD.items():
        for way in WAYS:
            part = data[(data.way == way) & (data.x == level)]
            values = [part[f"packet_rtt_{q:g}_ms"].mean() for q in QUANTILES]
            label = f"{way}, {level:g} Mbit/s"
            axes.plot(values, [1.0 - q / 100.0 for q in QUANTILES], style, color=COLOURS[way], lw=1.3, label=label)
    axes.set(xscale="log", yscale="log")
    axes.legend(fontsize=8)
    dress(axes, "Packets with a longer round trip", "round trip of a packet [ms]", "share of packets")


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """For the docs."""
    rows = []
    for _, row in table.sort_values("x", kind="stable").iterrows():
        line = {"background, Mbit/s": f"{row.x:g}", "way": row.way}
        line |= {"mu or factor": "" if row.way == "fifo" else f"{row.value:g}"}
        line |= {
            "mean round trip, ms": of_row(row, "packet_rtt_ms", 2),
            "median": of_row(row, "packet_rtt_50_ms", 2),
            "99 %": of_row(row, "packet_rtt_99_ms", 1),
            "mean from the host's link on": of_row(row, "wire_rtt_ms", 2),
            "sent again, %": of_row(row, "packet_again", 2),
            f"all traffic's {LOSS}": of_row(row, "loss", 2),
        }
        rows.append(line | {"runs": int(row.runs)})
    return pd.DataFrame(rows)
