"""Pictures and tables of what `hftrac_runs.py` kept, beside the fluid's prediction: `python experiments/linux/hftrac_figures.py`.

Writes data/results/linux-hftrac-means.csv and docs/assets/linux-hftrac-*; every word of a caption that judges is
computed from the runs.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from linux.hftrac_bed import WARM_UP
from linux.hftrac_cases import FIGURES, cases, foreseen_rows, interval
from linux.hftrac_network import INTERVAL, SLOWER, WAYS, Case
from linux.hftrac_study import KEY, NAME, RESULTS, ROOT, kept
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from netctrl.model.files import write_atomically

ASSETS = ROOT / "docs" / "assets"
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
ASKED = 0.6
"""Of FIFO's loss: what coordinated control may lose in Fig. 6a at most."""
DESIGN = ("god", "coordinated", "centralized", "myopic")


def good_runs(data: pd.DataFrame) -> pd.DataFrame:
    """The first run of each point and number that nothing disturbed."""
    return data[~data.disturbed].sort_values("attempt").drop_duplicates(KEY).sort_values(KEY, ignore_index=True)


def means(runs: pd.DataFrame) -> pd.DataFrame:
    """By point: kernel and fluid with 95 % intervals over runs, and the ratio of the means, over the same runs."""
    rows = []
    columns = ("loss", "queue_kbit", "fluid_loss", "fluid_queue_kbit", "goodput", "round_trip_ms", "arrived_mbit")
    for point, part in runs.groupby(POINT, sort=False):
        row: dict[str, object] = {**dict(zip(POINT, point, strict=True)), "runs": len(part)}
        for name in columns:
            if name in part and part[name].notna().all():
                row[name], row[f"{name}_half"] = interval(part[name])
        if "fluid_loss" in row:
            row["loss_ratio"] = row["loss"] / row["fluid_loss"] if row["fluid_loss"] else np.nan
            row["queue_ratio"] = row["queue_kbit"] / row["fluid_queue_kbit"]
        rows.append(row)
    return pd.DataFrame(rows)


def with_fluid(runs: pd.DataFrame) -> pd.DataFrame:
    """Each run beside what the fluid says of the same demands; Fig. 13's TCP has no fluid."""
    parts = []
    for figure in sorted(set(runs.figure) - {"13"}):
        for case in cases(figure):
            mine = runs[(runs[POINT] == pd.Series(case._asdict())[POINT]).all(axis=1)]
            if len(mine):
                parts.append(foreseen_rows(case, float(mine.seconds.iloc[0]), WARM_UP, int(mine.run.max()) + 1))
    return runs if not parts else runs.merge(pd.concat(parts), on=KEY, how="left")


def ratio(runs: pd.DataFrame, of: Case, over: Case, column: str = "loss") -> tuple[float, float]:
    """Of two points, run by run as traffic is the same: mean of the ratios and half their 95 % interval."""
    one, other = (
        runs[(runs[POINT] == pd.Series(case._asdict())[POINT]).all(axis=1)].set_index("run")[column]
        for case in (of, over)
    )
    both = (one / other).dropna()
    return interval(both) if len(both) else (float("nan"), float("nan"))


def order(table: pd.DataFrame, column: str) -> list[str]:
    """Architectures from the least on."""
    part = table[table.way.isin(DESIGN)]
    return list(part.sort_values(column).way)


# --- pictures --------------------------------------------------------------------------------------------------------


def draw_6a(runs: pd.DataFrame, table: pd.DataFrame) -> Figure:
    table = table[table.figure == "6a"]
    figure = Figure(figsize=(12.0, 5.4), layout="constrained")
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    for panel, prefix, title in zip(axes, ("", "fluid_"), ("kernel", "fluid, same demands"), strict=True):
        for way in WAYS:
            part = table[table.way == way].sort_values(f"{prefix}queue_kbit")
            points(panel, part, f"{prefix}queue_kbit", f"{prefix}loss", way)
        dress(panel, f"Fig. 6a, {title}; mu = 0.01 and 0.1", QUEUE, LOSS)
    axes[0].legend(fontsize=8.5)
    figure.supxlabel(caption_6a(runs, table), fontsize=9)
    return figure


def caption_6a(runs: pd.DataFrame, table: pd.DataFrame) -> str:
    said = []
    for mu in (0.01, 0.1):
        mean, half = ratio(runs, Case("6a", 0.95, "coordinated", mu), Case("6a", 0.95, "fifo", 0.0))
        verdict = "reached" if mean + half <= ASKED else "reached in the mean" if mean <= ASKED else "not reached"
        at = table[table.value == mu]
        said.append(
            f"mu = {mu:g}: coordinated over FIFO's loss {mean:.2f} ± {half:.2f} (at most {ASKED:g} asked: {verdict}); "
            f"order in the kernel {' < '.join(order(at, 'loss'))}, in the fluid {' < '.join(order(at, 'fluid_loss'))}."
        )
    return (
        "Paper: up to −80 % loss against FIFO. "
        + "\n".join(said)
        + f"\n{least_runs(table)} runs of {FIGURES['6a'].seconds:g} s a point, 95 % intervals; {scale()}."
    )


def draw_7(runs: pd.DataFrame, table: pd.DataFrame) -> Figure:
    table = table[table.figure == "7"]
    figure = Figure(figsize=(13.0, 5.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for way in WAYS:
        part = table[table.way == way].sort_values("x")
        points(left, part[part.loss > 0.0], "x", "loss", way)
        points(right, part, "x", "queue_kbit", way)
        left.plot(part.x, part.fluid_loss.where(part.fluid_loss > 1e-3), ":", color=COLOURS[way], lw=1.0)
        right.plot(part.x, part.fluid_queue_kbit, ":", color=COLOURS[way], lw=1.0)
    left.set_yscale("log")
    dress(left, "Fig. 7b in the kernel; dotted: fluid, same demands", "utilization of the busiest link", LOSS)
    dress(right, "Fig. 7c in the kernel", "utilization of the busiest link", QUEUE)
    left.legend(fontsize=8.5)
    lines = []
    for x in FIGURES["7"].x:
        lines.append(f"load {x:g}: {over_fifo(runs, table, '7', x)}")
    figure.supxlabel(
        "Paper: up to −50 %. Loss over FIFO's, mu and factor tuned in the fluid:\n" + "\n".join(lines) + tail(table),
        fontsize=9,
    )
    return figure


def draw_10(runs: pd.DataFrame, table: pd.DataFrame) -> Figure:
    believed = table[(table.figure == "7") & (table.x == 0.95)].assign(x=1.0)
    table = pd.concat([table[table.figure == "10"], believed])
    figure = Figure(figsize=(9.5, 5.6), layout="constrained")
    axes = figure.subplots()
    for way in WAYS:
        part = table[table.way == way].sort_values("x")
        points(axes, part, "x", "loss", way)
        axes.plot(part.x, part.fluid_loss, ":", color=COLOURS[way], lw=1.0)
    axes.set_yscale("log")
    axes.legend(fontsize=8.5)
    dress(axes, "Fig. 10a in the kernel, believed load 0.95; dotted: fluid", "demand over what is believed", LOSS)
    lines = [f"demands {x:g} of believed: {over_fifo(runs, table, '10', x)}" for x in FIGURES["10"].x]
    text = "Paper: HFTraC loses less than FIFO up to 20 % off. Loss over FIFO's:\n" + "\n".join(lines)
    figure.supxlabel(text + tail(table), fontsize=9)
    return figure


def draw_13(runs: pd.DataFrame, table: pd.DataFrame) -> Figure:
    table = table[table.figure == "13"]
    figure = Figure(figsize=(14.0, 5.4), layout="constrained")
    panels = figure.subplots(1, 3)
    for axes, (column, label) in zip(
        panels,
        (("goodput", "goodput of TCP [Mbit/s]"), ("loss", LOSS), ("round_trip_ms", "TCP's smoothed round trip [ms]")),
        strict=True,
    ):
        for way in WAYS:
            points(axes, table[table.way == way].sort_values("x"), "x", column, way)
        dress(axes, f"Fig. 13 in the kernel: {label}", f"mean background [Mbit/s times {SLOWER:g}]", label)
    panels[0].legend(fontsize=8.5)
    lines = []
    for x in FIGURES["13"].x:
        fast = {way: ratio(runs, at(table, way, x), at(table, "fifo", x), "goodput") for way in WAYS[1:]}
        lines.append(f"background {x:g}: loss over FIFO's {over_fifo(runs, table, '13', x)}")
        lines.append("    goodput over FIFO's " + ", ".join(f"{way} {m:.3f} ± {h:.3f}" for way, (m, h) in fast.items()))
    text = "Paper: coordinated HFTraC loses half at 15 to 20 Mbit/s, and TCP is faster.\n" + "\n".join(lines)
    figure.supxlabel(text + tail(table), fontsize=9)
    return figure


def at(table: pd.DataFrame, way: str, x: float) -> Case:
    row = table[(table.way == way) & (table.x == x)].iloc[0]
    return Case(str(row.figure), float(row.x), way, float(row.value))


def over_fifo(runs: pd.DataFrame, table: pd.DataFrame, figure: str, x: float) -> str:
    part = table[table.figure == figure]
    found = []
    for way in WAYS[1:]:
        if len(part[(part.way == way) & (part.x == x)]):
            mean, half = ratio(runs, at(part, way, x), at(part, "fifo", x))
            found.append(f"{way} {mean:.2f} ± {half:.2f}")
    return ", ".join(found)


def points(axes: Axes, part: pd.DataFrame, x: str, y: str, way: str) -> None:
    widths = {name: part[f"{of}_half"] for name, of in (("xerr", x), ("yerr", y)) if f"{of}_half" in part}
    look = {"color": COLOURS[way], "label": way, "marker": "o", "ms": 3.5, "lw": 1.3, "elinewidth": 0.9, "capsize": 2.0}
    axes.errorbar(part[x], part[y], **widths, **look)


def dress(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, fontsize=10.5)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(color="#dddddd", lw=0.6)


def scale() -> str:
    return f"the paper's testbed {SLOWER:g} times slower, {1e3 * INTERVAL:g} ms between rates"


def least_runs(table: pd.DataFrame) -> str:
    low, high = int(table.runs.min()), int(table.runs.max())
    return str(low) if low == high else f"{low} to {high}"


def tail(table: pd.DataFrame) -> str:
    figure = table.figure.iloc[0]
    return f"\n{least_runs(table)} runs of {FIGURES[figure].seconds:g} s a point, 95 % intervals; {scale()}."


DRAWN: dict[str, Callable[[pd.DataFrame, pd.DataFrame], Figure]] = {
    "6a": draw_6a,
    "7": draw_7,
    "10": draw_10,
    "13": draw_13,
}


def readable(table: pd.DataFrame, figure: str) -> pd.DataFrame:
    """For the docs."""
    part, rows = table[table.figure == figure], []
    for _, row in part.iterrows():
        said: dict[str, object] = {"way": row.way, "mu or factor": "" if row.way == "fifo" else f"{row.value:g}"}
        if part.x.nunique() > 1:
            said = {"at": f"{row.x:g}"} | said
        said |= {"loss, %": shown(row, "loss", 3), "queue, kbit": shown(row, "queue_kbit", 1)}
        if figure == "13":
            said |= {"goodput, Mbit/s": shown(row, "goodput", 2), "round trip, ms": shown(row, "round_trip_ms", 1)}
        else:
            said |= {"fluid: loss, %": f"{row.fluid_loss:.3f}", "queue, kbit ": f"{row.fluid_queue_kbit:.1f}"}
        rows.append(said | {"runs": int(row.runs)})
    return pd.DataFrame(rows)


def shown(row: pd.Series, name: str, digits: int) -> str:
    half = row[f"{name}_half"]
    return f"{row[name]:.{digits}f}" + (f" ± {half:.{digits}f}" if half == half else "")


def main(argv: Sequence[str]) -> int:
    data = kept()
    if data is None:
        print("nothing is kept: python experiments/linux/hftrac_runs.py", file=sys.stderr)
        return 1
    runs = with_fluid(good_runs(data))
    table = means(runs)
    write_atomically(RESULTS / f"{NAME}-means.csv", table.to_csv(index=False, float_format="%.5g").encode())
    for name, draw in DRAWN.items():
        if name not in set(table.figure):
            continue
        picture = io.BytesIO()
        made = draw(runs, table)
        made.savefig(picture, format="png", dpi=120)
        write_atomically(ASSETS / f"{NAME}-fig{name}.png", picture.getvalue())
        write_atomically(ASSETS / f"{NAME}-fig{name}.csv", readable(table, name).to_csv(index=False).encode())
        print(made.get_supxlabel(), end="\n\n")
    print(
        f"{len(data)} runs kept, {int(data.disturbed.sum())} of them disturbed; load {data.load.min():.1f} to {data.load.max():.1f}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
