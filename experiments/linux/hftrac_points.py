"""Points of HFTraC's figures in the kernel, from kept runs: means, ratios by run, and how they are drawn."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from common import Measured, means, measured, plus_minus
from linux.hftrac_bed import WARM_UP
from linux.hftrac_cases import FIGURES, foreseen
from linux.hftrac_network import WAYS, Case
from linux.virtual_hftrac import KEY, STUDY
from matplotlib.axes import Axes

COLOURS = {
    "fifo": "#777777",
    "static": "#b45f06",
    "god": "#222222",
    "coordinated": "#38761d",
    "centralized": "#1f4e9c",
    "myopic": "#c0504d",
}
POINT = KEY[:-1]
LOSS, QUEUE = "loss [%]", "mean queue of a link [kbit]"
ARCHITECTURES = ("god", "coordinated", "centralized", "myopic")
MEASURED = ("loss", "queue_kbit", "fluid_loss", "fluid_queue_kbit", "goodput", "round_trip_ms")


def of(data: pd.DataFrame, case: Case) -> pd.DataFrame:
    """Its rows."""
    desired = (data[name] == value for name, value in case._asdict().items())
    return data[np.logical_and.reduce(list(desired))]


def points_of(data: pd.DataFrame) -> pd.DataFrame:
    """Means by point."""
    return means(data, POINT, [name for name in MEASURED if name in data])


def at(table: pd.DataFrame, way: str, x: float, value: float | None = None) -> Case:
    """The point of a way."""
    part = table[(table.way == way) & (table.x == x) & (True if value is None else table.value == value)]
    if len(part) != 1:
        raise LookupError(f"{len(part)} points of {way} at {x:g}")
    row = part.iloc[0]
    return Case(str(row.figure), float(row.x), way, float(row.value))


def ratio(data: pd.DataFrame, one: Case, other: Case, column: str = "loss") -> Measured:
    """Mean of one over the other, run by run as their traffic is the same, of the runs that both have."""
    both = pd.concat([of(data, case).set_index("run")[column] for case in (one, other)], axis=1).dropna()
    return measured(both.iloc[:, 0] / both.iloc[:, 1])


def over_fifo(data: pd.DataFrame, table: pd.DataFrame, x: float, column: str = "loss") -> dict[str, Measured]:
    """Of each way at a point of the sweep."""
    base = at(table, "fifo", x)
    return {
        way: ratio(data, at(table, way, x), base, column)
        for way in WAYS[1:]
        if ((table.way == way) & (table.x == x)).any()
    }


def order(table: pd.DataFrame, column: str) -> str:
    """Architectures, from the least on."""
    return " < ".join(table[table.way.isin(ARCHITECTURES)].sort_values(column).way)


def of_row(row: pd.Series, name: str, digits: int) -> str:
    """A mean of a row with its interval."""
    return plus_minus(row[name], row[f"{name}_half"], digits)


def points(axes: Axes, part: pd.DataFrame, x: str, y: str, way: str) -> None:
    widths = {name: part[f"{column}_half"] for name, column in (("xerr", x), ("yerr", y)) if f"{column}_half" in part}
    look = {"color": COLOURS[way], "label": way, "marker": "o", "ms": 3.5, "lw": 1.3, "elinewidth": 0.9, "capsize": 2.0}
    axes.errorbar(part[x], part[y], **widths, **look)


def dress(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, fontsize=10.5)
    axes.set(xlabel=x, ylabel=y)
    axes.grid(color="#dddddd", lw=0.6)


def bars(
    axes: Axes, table: pd.DataFrame, column: str, at: Mapping[float, str], ways: Sequence[str], ecolor: str
) -> None:
    """Groups of bars at each x, one of each way; an interval's end below 0 says nothing that the other doesn't."""
    width = 0.8 / len(ways)
    for number, way in enumerate(ways):
        part = table[table.way == way].set_index("x").reindex(list(at))
        places = np.arange(len(at)) + width * (number - (len(ways) - 1) / 2)
        low, half = np.minimum(part[f"{column}_half"], part[column]), part[f"{column}_half"]
        look = {"color": COLOURS[way], "label": way, "ecolor": ecolor, "capsize": 2.5}
        axes.bar(places, part[column], width, yerr=[low, half], **look)
        if f"fluid_{column}" in part:
            axes.plot(places, part[f"fluid_{column}"], "o", ms=4.5, color="white", mec="black")
    axes.set_xticks(range(len(at)), list(at.values()))
    axes.set_axisbelow(True)


LOAD = 0.95


def whole_frames() -> float:
    """What the fluid's coordinated control loses more, at mu = 0.1, where buffers hold whole frames only."""
    case, seconds = Case("6a", LOAD, "coordinated", 0.1), FIGURES["6a"].seconds
    found = [foreseen(case, seconds, WARM_UP, len(STUDY.repeats), whole=whole) for whole in (False, True)]
    losses = [each.figures()["loss", "network"].mean() for each in found]
    return float(losses[1] / losses[0] - 1.0)


def furthest(table: pd.DataFrame) -> float:
    """The greatest factor between kernel and fluid, of points that lose in both."""
    both = table[(table.loss > 0.0) & (table.fluid_loss > 0.0)]
    change = both.loss / both.fluid_loss
    return float(pd.concat([change, 1.0 / change]).max())
