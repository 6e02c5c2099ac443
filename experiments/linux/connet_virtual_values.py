"""Numbers of CONNET in virtual time for its claims."""

from collections.abc import Collection
from typing import Any

import linux.connet_tasks as tasks
import numpy as np
import pandas as pd
from common import Measured, measured
from linux.connet_loop import trace
from linux.connet_tasks import FIFO, HELD_OUT, LQI, PRINTED, STATIC, curve_means

import netctrl

LAWS = {PRINTED: "printed", LQI: "lqi"}
MEANT = ["reference_ms", "delay_ms", "jitter_ms", "rate", "other_mbit_s"]
NEAR, IN_A_ROW = 0.2, 5
"""Of its reference a delay has recovered, on average over so many periods."""
ENDS = np.cumsum([0, *(periods for periods, _ in tasks.FAILURES)])
PAIRS = {"constant": 0.46, "activation": 0.534, "loaded": 1.1}
"""Delays of pairs that the paper prints [ms]."""


def part(data: pd.DataFrame, kind: str, way: str) -> pd.DataFrame:
    return data[(data.kind == kind) & (data.way == way)]


def stretch(data: pd.DataFrame, kind: str, way: str, first: int, last: int | None = None) -> pd.DataFrame:
    """Means of some periods of a run on the paper's link, a row a repeat."""
    runs = part(data, kind, way)
    period = runs.groupby("repeat").cumcount()
    return runs[(period >= first) & (period < (np.inf if last is None else last))].groupby("repeat")[MEANT].mean()


def phase(data: pd.DataFrame, way: str, number: int) -> pd.DataFrame:
    """Means of what counts of a phase of failures: the latter half."""
    first, last = int(ENDS[number]), int(ENDS[number + 1])
    return stretch(data, "failure", way, (first + last) // 2, last)


def curves(data: pd.DataFrame) -> dict[int, pd.DataFrame]:
    """Of each repeat."""
    return {number: curve_means(runs) for number, runs in part(data, "curve", STATIC).groupby("repeat")}


def met(means: pd.DataFrame, base: float) -> Measured:
    """Delay over its reference, both with what the paper's delays have and the kernel's lack [ms]."""
    return measured(((means.delay_ms + base) / (means.reference_ms + base)).tolist())


def changing(data: pd.DataFrame, way: str, number: int) -> pd.DataFrame:
    """Fig. 11 at one reference, settled."""
    last = int(sum(tasks.HELD[: number + 1]))
    return stretch(data, "references", way, last - tasks.SETTLING, last)


def recovery(data: pd.DataFrame, way: str) -> Measured:
    """Periods after a reference that can't be had until the delay is at the next one."""
    found, after = [], tasks.REFERENCES.index(None) + 1
    for _, run in part(data, "references", way).groupby("repeat"):
        rows = run.iloc[sum(tasks.HELD[:after]) : sum(tasks.HELD[: after + 1])]
        off = np.abs(rows.delay_ms.to_numpy() / rows.reference_ms.to_numpy() - 1.0)
        reached = np.flatnonzero(np.convolve(off, np.full(IN_A_ROW, 1.0 / IN_A_ROW), "valid") < NEAR)
        found.append(float(reached[0]) if len(reached) else float(tasks.HELD[after]))
    return measured(found)


def computed(data: pd.DataFrame, transfers: Collection[dict[str, Any]]) -> dict[str, float | Measured]:
    """Values of the claims."""
    return {**_curve(data), **_one_node(data), **_tcp(data, transfers), **_failures(data), **_scheduling(data)}


def _curve(data: pd.DataFrame) -> dict[str, float | Measured]:
    each = curves(data)
    mean = sum(each.values()) / len(each)
    rising = [np.diff(mean[name]) > 0.0 for name in ("delay_ms", "jitter_ms")]
    found: dict[str, float | Measured] = {"rises": float(np.mean(rising))}
    for name, delay in PAIRS.items():
        jitters = [float(np.interp(delay - tasks.ONE_NODE, curve.delay_ms, curve.jitter_ms)) for curve in each.values()]
        found[name] = measured(jitters)
    models = [
        netctrl.identify(trace(runs, tasks.Plant().interval), held_out=HELD_OUT).model.identification
        for _, runs in part(data, "trace", STATIC).groupby("repeat")
    ]
    for number, name in enumerate(("delay", "jitter")):
        found[f"ident-{name}"] = measured([float(how.held_out_vaf[number]) for how in models])
    return found


def _one_node(data: pd.DataFrame) -> dict[str, float | Measured]:
    """Figs. 10 and 11."""
    each = curves(data)
    opened = stretch(data, "activation", LQI, 2, tasks.OPEN_PERIODS)
    found: dict[str, float | Measured] = {
        "10d-open-delay": measured((opened.delay_ms + tasks.ONE_NODE).tolist()),
        "10d-open-jitter": measured(opened.jitter_ms.tolist()),
    }

    there = [n for n, rate in enumerate(tasks.REFERENCES) if rate is not None]

    def off(ratio: Measured) -> float:
        return abs(ratio.value - 1.0)

    def jitter(means: pd.DataFrame, rate: float) -> Measured:
        return measured([row.jitter_ms / tasks.on_curve_at(each[number], rate)[1] for number, row in means.iterrows()])

    for way, key in LAWS.items():
        constant = changing(data, way, 0)
        found[f"10a-{key}"] = met(constant, tasks.ONE_NODE)
        found[f"10b-{key}"] = jitter(constant, tasks.REFERENCES[0])
        found[f"10c-{key}"] = jitter(stretch(data, "step", way, tasks.SETTLING), tasks.STEPPED)
        found[f"10d-{key}"] = met(stretch(data, "activation", way, tasks.OPEN_PERIODS + tasks.SETTLING), tasks.ONE_NODE)
        feasible = [met(changing(data, way, n), tasks.ONE_NODE) for n in there]
        found[f"11-{key}"] = max(feasible, key=off)
        found[f"11-{key}-queue"] = max((met(changing(data, way, n), 0.0) for n in there), key=off)
        found[f"11-{key}-recovery"] = recovery(data, way)
    return found


def _tcp(data: pd.DataFrame, transfers: Collection[dict[str, Any]]) -> dict[str, float | Measured]:
    found: dict[str, float | Measured] = {}
    for way, key in LAWS.items():
        means = stretch(data, "tcp", way, tasks.HELD_PIPE // 2)
        flows = {each["repeat"]: each["mbit_s"] for each in transfers if each["way"] == way}
        found[f"12-{key}-delay"] = met(means, tasks.THREE_NODES)
        found[f"12-{key}-rate"] = measured([sum(flows[number]) / row.rate for number, row in means.iterrows()])
        found[f"12-{key}-flow"] = measured([float(np.mean(flows[number])) for number in means.index])
        found[f"12-{key}-least"] = measured([min(flows[n]) / float(np.mean(flows[n])) for n in means.index])
    top = max(part(data, "tcp curve", tasks.EXACT).rate)
    for name, way in (("instants", tasks.TICKS), ("exact", tasks.EXACT)):
        runs = part(data, "tcp curve", way)
        each = [curve_means(run).delay_ms for _, run in runs[runs.rate == top].groupby("repeat")]
        mean = measured([float(delays.iloc[0]) for delays in each])
        found[f"12-{name}"] = mean.value if way == tasks.EXACT else mean  # nothing is random with exact timers
    return found


def _failures(data: pd.DataFrame) -> dict[str, float | Measured]:
    """Figs. 13 and 15a."""
    found: dict[str, float | Measured] = {}
    for way, key in LAWS.items():
        for name, number in (("two", 1), ("one", 2), ("repaired", 3)):
            found[f"13-{key}-{name}"] = met(phase(data, way, number), tasks.THREE_NODES)
        found[f"15a-{key}"] = met(stretch(data, "uneven", way, tasks.HELD_PIPE // 2), tasks.THREE_NODES)
    before, after = phase(data, LQI, 0), phase(data, LQI, 2)
    found["13-lqi-rate"] = measured((after.rate / before.rate).tolist())
    helpless = part(data, "failure", LQI)
    number = helpless.groupby("repeat").cumcount()
    late = helpless[(number >= (ENDS[1] + ENDS[2]) // 2) & (number < ENDS[2])]
    found["13-lqi-reported"] = float((late.commanded <= tasks.Plant().limits[0]).mean())
    return found


def _scheduling(data: pd.DataFrame) -> dict[str, float | Measured]:
    """Figs. 14 and 15b."""
    top, found = tasks.OFFERED[-1], {}
    ours = stretch(data, "scheduling", LQI, tasks.HELD_PIPE // 2)
    for name, way in tasks.SCHEDULING.items():
        theirs = {n: curve_means(run).loc[top] for n, run in part(data, "scheduling", way).groupby("repeat")}
        for column in ("delay", "jitter"):
            values = [1.0 - row[f"{column}_ms"] / theirs[number][f"{column}_ms"] for number, row in ours.iterrows()]
            found[f"14-{name}-{column}"] = measured(values)
        if name == "fifo":
            price = [row.other_mbit_s / theirs[number].other_mbit_s for number, row in ours.iterrows()]
            found["14-price"] = measured(price)
    opened = stretch(data, "scheduling", FIFO, tasks.CURVE_SKIPPED)
    found["15b-open"] = measured((opened.delay_ms + tasks.THREE_NODES).tolist())
    return found
