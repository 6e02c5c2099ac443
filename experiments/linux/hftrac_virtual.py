"""HFTraC's Figs. 6a, 7, 10a and 13 in virtual time, beside the fluid of the same demands.

Fig. 7 has two sets of runs: agents' intervals all begin with the demands', or at phases that are drawn.
"""

import pandas as pd
from common import Measured, Outcome, shown, verdicts
from linux.hftrac_agents import AGENTS
from linux.hftrac_bed import WARM_UP
from linux.hftrac_cases import SWEPT, cases, foreseen_rows
from linux.hftrac_network import WAYS
from linux.hftrac_points import (
    COLOURS,
    LOAD,
    LOSS,
    POINT,
    QUEUE,
    at,
    dress,
    furthest,
    of,
    order,
    over_fifo,
    points,
    points_of,
    ratio,
    whole_frames,
)
from linux.virtual_hftrac import ALIGNED, DRAWN, KEY, ORDER, STUDY
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

MARKERS = {ALIGNED: "o", DRAWN: "^"}
WITH_FLUID = ("10", "7", "6a")
OVERLOADS = (1.1, 1.2)
TITLES = {"6a": "6a", "7": "7b, phases drawn", "10": "10a"}
TIGHT = 0.95
"""Utilization of Fig. 7 at which kernel and fluid are compared."""


def runs() -> pd.DataFrame:
    """Runs of these figures; `fluid_NAME` is the fluid's."""
    data = STUDY.read()
    data = data[data.figure.isin((*WITH_FLUID, "13"))]
    fluid = [
        foreseen_rows(case, float(mine.seconds.iloc[0]), WARM_UP, int(mine.run.max()) + 1)
        for figure in WITH_FLUID
        for case in cases(figure)
        if len(mine := of(data, case))
    ]
    return data.merge(pd.concat(fluid), on=KEY, how="left")


def main(*, full: bool = False) -> Outcome:
    data = runs()
    figure = Figure(figsize=(13.0, 10.0), layout="constrained")
    panels = figure.subplots(2, 2).flat
    beside_fluid(panels[0], data)
    panels[0].legend(fontsize=8.5)
    table = points_of(of_phase(data, ALIGNED))
    drawn = points_of(of_phase(data, DRAWN))
    for axes, figures, part, x, label in (
        (panels[1], "6a", table, "queue_kbit", QUEUE),
        (panels[2], "7", drawn, "x", "utilization of the busiest link"),
        (panels[3], "10", table, "x", "demand over what is believed"),
    ):
        for way in WAYS:
            mine = part[(part.figure == figures) & (part.way == way)].sort_values(x)
            points(axes, mine, x, "loss", way)
            axes.plot(mine["fluid_queue_kbit" if x != "x" else x], mine.fluid_loss, ":", color=COLOURS[way], lw=1.0)
        dress(axes, f"Fig. {TITLES[figures]}; dotted: fluid, same demands", label, LOSS)
    panels[2].set_yscale("log")
    panels[1].legend(fontsize=8.5)
    figure.supxlabel(verdicts("linux", "HFTraC, virtual time"), fontsize=9)
    return Outcome("hftrac-virtual", "linux", data, figure, computed(data), readable(data))


def computed(data: pd.DataFrame) -> dict[str, float | Measured]:
    """Values of the claims."""

    aligned, drawn = ((part, points_of(part)) for part in (of_phase(data, ALIGNED), of_phase(data, DRAWN)))
    data, table = aligned
    ten, seven, thirteen = (data[data.figure == name] for name in ("10", "7", "13"))
    found: dict[str, float | Measured] = {
        "hftrac-virtual-late": float(data.sender_late_ms.max()),
        "hftrac-virtual-missed": float(data.agent_missed.sum()),
        "hftrac-virtual-10-factor": furthest(table[table.figure == "10"]),
    }
    for scale in OVERLOADS:
        mine = table[(table.figure == "10") & (table.x == scale)]
        found[f"hftrac-virtual-10-order-{scale:g}"] = float(order(mine, "loss") == order(mine, "fluid_loss"))
        for way, value in over_fifo(ten, mine, scale).items():
            found[f"hftrac-virtual-10-{way}-{scale:g}"] = value
    for phase, (runs, means) in ((ALIGNED, aligned), (DRAWN, drawn)):
        runs, means = runs[runs.figure == "7"], means[means.figure == "7"]
        tight = means[means.x == TIGHT]
        found[f"hftrac-virtual-7-{phase}-factor"] = furthest(tight)
        found[f"hftrac-virtual-7-{phase}-order"] = float(order(tight, "loss") == order(tight, "fluid_loss"))
        for load in (0.85, TIGHT):
            ratios = over_fifo(runs, means, load)
            for way in ("coordinated", "centralized"):
                found[f"hftrac-virtual-7-{phase}-{way}-{load:g}"] = ratios[way]
    for load, value in ((load, over_fifo(seven, table[table.figure == "7"], load)) for load in (0.85, TIGHT)):
        found[f"hftrac-virtual-7-static-{load:g}"] = value["static"]
    found |= of_fig06(data[data.figure == "6a"], table[table.figure == "6a"])
    for level in sorted(thirteen[thirteen.way == "coordinated"].x.unique()):
        for name, column in (("loss", "loss"), ("goodput", "goodput")):
            ratios = over_fifo(thirteen, table[table.figure == "13"], level, column)
            found[f"hftrac-virtual-13-{name}-{level:g}"] = ratios["coordinated"]
    return found


def of_fig06(data: pd.DataFrame, table: pd.DataFrame) -> dict[str, float | Measured]:
    """Coordinated control over FIFO and over static pacing, and all points beside the fluid."""
    fifo, static = (at(table, way, LOAD) for way in ("fifo", "static"))
    found: dict[str, float | Measured] = {"hftrac-virtual-6a-factor": furthest(table)}
    found["hftrac-virtual-6a-whole"] = whole_frames()
    for mu in SWEPT:
        mine = at(table, "coordinated", LOAD, mu)
        found[f"hftrac-virtual-6a-{mu:g}"] = ratio(data, mine, fifo)
        found[f"hftrac-virtual-6a-{mu:g}-queue"] = ratio(data, mine, static, "queue_kbit")
    return found


def of_phase(data: pd.DataFrame, phase: str) -> pd.DataFrame:
    """Runs with these phases, and those without agents, which have none."""
    return data[(data.phase == phase) | ~data.way.isin(AGENTS)]


def beside_fluid(axes: Axes, data: pd.DataFrame) -> None:
    for phase, marker in MARKERS.items():
        table = points_of(data[data.phase == phase])
        for way, mine in table[table.fluid_loss > 0.0].groupby("way"):
            label = f"{way}, {phase}" if way in AGENTS else way
            axes.plot(mine.fluid_loss, mine.loss / mine.fluid_loss, marker, ms=5, color=COLOURS[str(way)], label=label)
    axes.set(xscale="log", yscale="log")
    axes.yaxis.set_major_locator(LogLocator(subs=(0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 2.0, 2.5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.axhline(1.0, color="#bbbbbb", lw=0.8)
    dress(
        axes, "Virtual time beside the fluid, Figs. 6a, 7, 10a", "loss in the fluid [%]", "loss in the kernel over it"
    )


def readable(data: pd.DataFrame) -> pd.DataFrame:
    """For the docs: means of the runs by point."""
    rows = []
    for point, part in data.groupby([*POINT, "phase"], sort=False):
        figure, x, way, value, phase = tuple(point)  # ty: ignore[invalid-argument-type]
        row = {"Fig.": figure, "at": f"{x:g}", "way": way, "mu or factor": "" if way == "fifo" else f"{value:g}"}
        row |= {"phases": phase if way in AGENTS else ""}
        row |= {"loss, %": shown(part.loss, 3)}
        row |= {"fluid": "" if part.fluid_loss.isna().any() else f"{part.fluid_loss.mean():.3f}"}
        row |= {"mean queue, kbit": shown(part.queue_kbit, 1)}
        tcp = part.goodput.notna().all()
        row |= {"goodput, Mbit/s": shown(part.goodput, 2) if tcp else ""}
        row |= {"round trip, ms": shown(part.round_trip_ms, 1) if tcp else "", "runs": len(part)}
        rows.append(row)
    return pd.DataFrame(rows).sort_values("Fig.", key=lambda names: names.map(ORDER.index), kind="stable")
