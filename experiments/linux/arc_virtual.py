"""ARC's marking beside the kernel's own queues on ARC's staircase, in virtual time."""

import pandas as pd
from common import Measured, Outcome, over_runs, shown, verdicts
from linux.virtual_arc import ARC, DROP_TAIL, FLOWS, QUEUES, SERIES_S, STEP_S, STUDY, settling_s
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = {
    ARC: "#1f4e9c",
    "pie": "#b45f06",
    "codel": "#6aa84f",
    "fq_codel": "#17a2b8",
    "red": "#c0504d",
    "cake": "#8e44ad",
    "dualpi2": "#d4a017",
    DROP_TAIL: "#777777",
}
WIDE = (ARC, DROP_TAIL)
LOADED = (50, 100, 200)
"""Flows at which ARC's model of TCP holds, and ARC isn't fragile."""
PEERS = tuple(name for name in QUEUES if name not in (ARC, DROP_TAIL))


def runs() -> pd.DataFrame:
    """Steps of all runs, with the time that each took to settle."""
    data, series = STUDY.read(), STUDY.read("-series")
    per_step = round(STEP_S / SERIES_S)
    rows = []
    for (queue, seed), part in series.groupby(["queue", "seed"], sort=False):
        delay = part.sort_values("time_s").delay_ms.to_numpy()
        for number, flows in enumerate(FLOWS):
            mine = delay[number * per_step : (number + 1) * per_step]
            rows.append({"queue": queue, "seed": seed, "flows": flows, "settling_s": settling_s(mine, SERIES_S)})
    return data.merge(pd.DataFrame(rows), on=["queue", "seed", "flows"])


def main(*, full: bool = False) -> Outcome:
    data, series = runs(), STUDY.read("-series")
    figure = Figure(figsize=(12.5, 8.2), layout="constrained")
    parts = figure.subplot_mosaic([["delay"] * 3, ["99", "utilization", "dropped"]], height_ratios=(1.2, 1.0))
    over_time(parts["delay"], series)
    by_load(parts["99"], data, "delay_99_ms", "queueing delay, 99 % [ms]", log=True)
    by_load(parts["utilization"], data, "utilization", "utilization")
    by_load(parts["dropped"], data.assign(percent=100.0 * data.dropped), "percent", "dropped [%]")
    handles, labels = parts["delay"].get_legend_handles_labels()
    parts["delay"].legend(handles, labels, fontsize=9, ncols=len(labels), loc="lower center")
    figure.suptitle("ARC's staircase in Linux, virtual time: Reno with ECN, 60 ms to 1 s, 10 Mbit/s", fontsize=12)
    figure.supxlabel(verdicts("linux", "ARC, virtual time"), fontsize=9)
    return Outcome("arc-virtual", "linux", data, figure, computed(data), readable(data))


def computed(data: pd.DataFrame) -> dict[str, float | Measured]:
    """Values of the claims, by seed."""

    def at(one: pd.DataFrame, queue: str, column: str, flows: tuple[int, ...]) -> pd.Series:
        chosen = one[(one.queue == queue) & one.flows.isin(flows)]
        return chosen.set_index("flows")[column]

    def over(column: str, queue: str, peer: str, flows: int) -> Measured:
        def ratio(one: pd.DataFrame) -> float:
            return float(at(one, queue, column, (flows,)).iloc[0] / at(one, peer, column, (flows,)).iloc[0])

        return over_runs(data, ratio)

    found: dict[str, float | Measured] = {
        "arc-virtual-throughput": over_runs(data, lambda one: 10.0 * at(one, ARC, "utilization", FLOWS[1:]).min()),
        "arc-virtual-target": over_runs(data, lambda one: at(one, ARC, "utilization", (50, 100)).mean()),
        "arc-virtual-queue": over_runs(data, lambda one: at(one, ARC, "delay_ms", FLOWS).max()),
        "arc-virtual-queue-loaded": over_runs(data, lambda one: at(one, ARC, "delay_ms", LOADED).max()),
        "arc-virtual-losses": over("dropped", ARC, DROP_TAIL, 200),
        "arc-virtual-losses-most": over("dropped", ARC, DROP_TAIL, FLOWS[-1]),
    }
    mean = data[data.flows.isin(LOADED)].groupby(["flows", "queue"]).delay_ms.mean().unstack()
    found["arc-virtual-lower"] = float(mean[list(PEERS)].gt(mean[ARC], axis=0).to_numpy().mean())
    for peer in PEERS:
        found[f"arc-virtual-delay-{peer}"] = over("delay_ms", ARC, peer, 100)
        found[f"arc-virtual-utilization-{peer}"] = over("utilization", ARC, peer, 100)
    return found


def over_time(axes: Axes, series: pd.DataFrame) -> None:
    for queue in QUEUES:
        mine = series[series.queue == queue].groupby("time_s").delay_ms.mean()
        axes.plot(mine.index, mine, color=COLOURS[queue], lw=2.0 if queue in WIDE else 1.1, label=queue)
    for number, flows in enumerate(FLOWS):
        axes.axvline(STEP_S * number, color="#bbbbbb", lw=0.8)
        axes.text(STEP_S * (number + 0.5), 1300.0, f"{flows} flows", ha="center", fontsize=9.5)
    axes.set(yscale="log", ylim=(0.8, 2000.0))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set(xlim=(0.0, STEP_S * len(FLOWS)), xlabel="time [s]", ylabel="queueing delay [ms]")
    axes.grid(color="#e5e5e5", lw=0.6)


def by_load(axes: Axes, data: pd.DataFrame, column: str, label: str, *, log: bool = False) -> None:
    """Means over seeds, and all seeds as points."""
    for queue in QUEUES:
        mine = data[data.queue == queue]
        mean = mine.groupby("flows")[column].mean()
        axes.plot(mean.index, mean, color=COLOURS[queue], lw=2.0 if queue in WIDE else 1.1)
        axes.plot(mine.flows, mine[column], ".", ms=4, color=COLOURS[queue])
    axes.set_xscale("log")
    axes.set_xticks(FLOWS, [str(flows) for flows in FLOWS])
    axes.minorticks_off()
    if log:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
    axes.set(xlabel="flows", ylabel=label)
    axes.grid(color="#e5e5e5", lw=0.6)


def readable(data: pd.DataFrame) -> pd.DataFrame:
    """For the docs: means over seeds, ± half of their 95 % interval."""
    rows = []
    for flows in FLOWS:
        for queue in QUEUES:
            part = data[(data.queue == queue) & (data.flows == flows)]
            if not len(part):
                continue
            settled = part.settling_s.dropna()
            rows.append(
                {
                    "flows": flows,
                    "queue": queue,
                    "delay, ms": shown(part.delay_ms, 1),
                    "its 99 %, ms": shown(part.delay_99_ms, 0),
                    "utilization": shown(part.utilization, 3),
                    "marked, %": shown(100.0 * part.marked, 2),
                    "dropped, %": shown(100.0 * part.dropped, 2),
                    "settled after, s": f"{settled.mean():.0f}" if len(settled) == len(part) else "not",
                    "runs": len(part),
                }
            )
    return pd.DataFrame(rows)
