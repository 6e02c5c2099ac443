"""HFTraC in the kernel by the wall clock, beside the fluid of the same demands: Figs. 6a, 7, 10a and 13."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import pandas as pd
from common import Measured, Outcome, means, measured, plus_minus, verdicts
from linux.hftrac_bed import WARM_UP
from linux.hftrac_cases import BELIEVED, FIGURES, SWEPT, cases, foreseen, foreseen_rows
from linux.hftrac_network import INTERVAL, SLOWER, WAYS, Case
from linux.hftrac_study import KEY, REPEATS, STUDY, disturbed
from matplotlib.axes import Axes
from matplotlib.figure import Figure

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


def tail(table: pd.DataFrame) -> str:
    """How it was measured, for the end of a caption."""
    low, high = int(table.runs.min()), int(table.runs.max())
    count = str(low) if low == high else f"{low} to {high}"
    seconds = FIGURES[str(table.figure.iloc[0])].seconds
    return (
        f"{count} runs of {seconds:g} s a point, 95 % intervals; the paper's testbed {SLOWER:g} times slower, "
        f"{1e3 * INTERVAL:g} ms between rates."
    )


LOAD = 0.95


def fig06(*, full: bool = False) -> Outcome:
    """HFTraC's Fig. 6a in the kernel: loss against mean queue, hosts' buffers infinite, beside the fluid."""
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
    figure = draw_fig06(table)
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


def draw_fig06(table: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(12.0, 6.2), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for axes, prefix, title in zip(panels, ("", "fluid_"), ("kernel", "fluid, same demands"), strict=True):
        for way in WAYS:
            part = table[table.way == way].sort_values(f"{prefix}queue_kbit")
            points(axes, part, f"{prefix}queue_kbit", f"{prefix}loss", way)
        dress(axes, f"Fig. 6a, {title}; mu = 0.01 and 0.1, static 1.05 f*", QUEUE, LOSS)
    panels[0].legend(fontsize=8.5)
    return figure


UTILIZATION = "utilization of the busiest link"


def fig07(*, full: bool = False) -> Outcome:
    """HFTraC's Figs. 7b and 7c in the kernel: loss and mean queue by load, mu and factor tuned in the fluid."""
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


def fig10(*, full: bool = False) -> Outcome:
    """HFTraC's Fig. 10a in the kernel: demands larger than believed, at a believed load of 0.95."""
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


PANELS = (("goodput", "goodput of TCP [Mbit/s]"), ("loss", LOSS), ("round_trip_ms", "TCP's smoothed round trip [ms]"))


def fig13(*, full: bool = False) -> Outcome:
    """HFTraC's Fig. 13 in the kernel: one flow of TCP Cubic beside bursty UDP, also through the last link."""
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
