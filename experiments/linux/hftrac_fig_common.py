"""What the figures of HFTraC in the kernel share: runs that are kept beside the fluid's of the same demands."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pandas as pd
from common import Measured, means, measured, plus_minus
from linux.hftrac_bed import WARM_UP
from linux.hftrac_cases import FIGURES, cases, foreseen_rows
from linux.hftrac_network import INTERVAL, SLOWER, WAYS, Case
from linux.hftrac_study import KEY, STUDY, disturbed
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


@lru_cache(maxsize=1)
def runs() -> pd.DataFrame:
    """The first run of each point and number that nothing disturbed, and what the fluid says of its demands."""
    data = STUDY.read()
    good = data[[not disturbed(row) for row in data.to_dict("records")]]
    good = good.sort_values("attempt").drop_duplicates(KEY).sort_values(KEY, ignore_index=True)
    parts = []
    for figure in sorted(set(good.figure) - {"13"}):  # TCP has no fluid
        for case in cases(figure):
            mine = of(good, case)
            if len(mine):
                parts.append(foreseen_rows(case, float(mine.seconds.iloc[0]), WARM_UP, int(mine.run.max()) + 1))
    return good.merge(pd.concat(parts), on=KEY, how="left") if parts else good


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


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """For the docs."""
    rows = []
    for _, row in table.sort_values(["x", "value"], kind="stable").iterrows():
        line: dict[str, object] = {"at": f"{row.x:g}"} if table.x.nunique() > 1 else {}
        line |= {"way": row.way, "mu or factor": "" if row.way == "fifo" else f"{row.value:g}"}
        line |= {"loss, %": of_row(row, "loss", 3), "mean queue, kbit": of_row(row, "queue_kbit", 1)}
        if "fluid_loss" in table and row.fluid_loss == row.fluid_loss:
            line |= {"loss in the fluid, %": f"{row.fluid_loss:.3f}", "queue, kbit": f"{row.fluid_queue_kbit:.1f}"}
        else:
            line |= {"goodput, Mbit/s": of_row(row, "goodput", 2), "round trip, ms": of_row(row, "round_trip_ms", 1)}
        rows.append(line | {"runs": int(row.runs)})
    return pd.DataFrame(rows)


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


def tail(table: pd.DataFrame) -> str:
    """How it was measured, for the end of a caption."""
    low, high = int(table.runs.min()), int(table.runs.max())
    count = str(low) if low == high else f"{low} to {high}"
    seconds = FIGURES[str(table.figure.iloc[0])].seconds
    return (
        f"{count} runs of {seconds:g} s a point, 95 % intervals; the paper's testbed {SLOWER:g} times slower, "
        f"{1e3 * INTERVAL:g} ms between rates."
    )
