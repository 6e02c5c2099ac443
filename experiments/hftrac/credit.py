"""Loss by load of FIFO, static pacing and HFTraC at each load's best number, and the credit law, which has none.

The testbed, and Abilene with buffers of 40 kB and demands that vary by as much as their means. The fluid runs whenever
the figure is drawn; packets and the kernel lab, under the same demands, are kept: `python experiments/full.py
hftrac-credit [RUN ...]`.
"""

from collections.abc import Iterable
from functools import cache

import hftrac.fig_common as fig
import msgspec
import numpy as np
import pandas as pd
from common import Outcome, interval, quotient, shown
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from study import Case, Made, Record, Study, kernel_used, made_by

from netctrl.core.register import ENGINES
from netctrl.engines.case import case_of
from netctrl.engines.engine import Job
from netctrl.kernel.build import chosen_kernel
from netctrl.laws.link_rate.routing import at_utilization
from netctrl.model.datasets import network_path
from netctrl.model.network import Network, read_network
from netctrl.scenario.network.policy import CreditPolicy
from netctrl.scenario.result import Result
from netctrl.sim.network.run import simulate_network

LOADS = (0.5, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05)
KEPT = (0.7, 0.9, 1.0)
RUNS, TRIED, SECONDS = 10, 3, 50.0
FRESH = range(fig.FRESH, fig.FRESH + RUNS)
TIMES = {"testbed": (10.0, 2.0), "abilene": (4.0, 1.0)}
"""Of runs on packets and in the kernel: what counts, and what comes before [s]. One of Abilene boots a kernel for 10 to
30 s."""
REAL = ("packet", "kernel")
CREDIT = fig.Way("credit", "#c0504d", "-", CreditPolicy())
WAYS = {"fifo": fig.FIFO, "static": fig.STATIC, "coordinated": fig.WAYS["coordinated"], "credit": CREDIT}
TUNED = {
    "testbed": {
        "static": (1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.6, 2.0),
        "coordinated": tuple(np.geomspace(0.01, 10.0, 7)),
    },
    "abilene": {"static": (1.2, 1.4, 1.6, 1.8, 2.2, 3.0), "coordinated": (10.0, 100.0)},
}
"""Factors and mu that are tried, for each load by runs of their own."""
NAMES = {"static": "static", "coordinated": "HFTraC", "credit": "credit"}
"""In the table."""
TITLES = {"testbed": "testbed", "abilene": "Abilene, buffers of 40 kB, σ = mean"}


@cache
def law_of(name: str) -> fig.LawOf:
    """Of a network's policies, by itself."""
    return fig.law_for_all_loads()


def losses(result: Result) -> np.ndarray:
    """Of each run [%]."""
    return 100.0 * result.figures()["loss", "network"]


def simulated(name: str, load: float, policy: fig.Policy, runs: range) -> np.ndarray:
    """Losses in the fluid."""
    scenario = fig.scenario(network_at(name, load), policy, duration=SECONDS + 5.0, warmup=5.0)
    law = law_of(name)(scenario)
    return losses(simulate_network(scenario, law, runs=len(runs), first_run=runs[0], watch=False))


@cache
def best(name: str, load: float, way: str) -> float:
    """The factor or mu that loses least in the fluid, on runs of their own; NaN where there is none."""
    tried = TUNED[name].get(way, ())
    return min(tried, default=np.nan, key=lambda value: simulated(name, load, WAYS[way].at(value), range(TRIED)).mean())


def policy_of(name: str, load: float, way: str) -> fig.Policy:
    return WAYS[way].at(best(name, load, way)) if way in TUNED[name] else WAYS[way].policy


def one(name: str, load: float, way: str, run: int) -> Made:
    """A run on packets and in the kernel, with the demands of the fluid's run of this number."""
    counted, before = TIMES[name]
    times = {"duration": before + counted, "warmup": before}
    case = case_of(fig.scenario(network_at(name, load), policy_of(name, load, way), **times))
    job, rows = Job(first_run=fig.FRESH + run, watch=False), []
    for engine in REAL:
        (loss,) = losses(ENGINES[engine].run(case, job))
        rows.append({"engine": engine, "value": best(name, load, way), "seconds": counted, "loss": loss})
    return Made(rows)


def record(before: Record, data: pd.DataFrame, case: Case, about: None) -> Record:
    return before | {"kernel": kernel_used(chosen_kernel()), "first_run": fig.FRESH}


STUDY = Study(
    name="hftrac-credit",
    key=("network", "load", "way", "run"),
    repeats=range(RUNS),
    cases=lambda run: [(name, load, way, run) for name in TUNED for load in KEPT for way in WAYS],
    runs=made_by(one),
    record=record,
    sort=("network", "load", "way", "engine", "run"),
    order={"way": tuple(WAYS)},
)


def main(*, full: bool = False) -> Outcome:
    fluid = [
        {"network": name, "load": load, "way": way, "value": best(name, load, way), "engine": "fluid", "run": run}
        | {"loss": loss}
        for name in TUNED
        for load in LOADS
        for way in WAYS
        for run, loss in enumerate(simulated(name, load, policy_of(name, load, way), FRESH))
    ]
    data = pd.concat([pd.DataFrame(fluid), STUDY.read(complete=True)], ignore_index=True)
    found = pd.DataFrame(points(data))
    return Outcome("credit", "hftrac", found, draw(found), compute(found), readable(data))


def points(data: pd.DataFrame) -> Iterable[dict[str, object]]:
    """Means of the runs; `over`: over FIFO's loss."""
    for (name, engine, load), part in data.groupby(["network", "engine", "load"], sort=False):
        loss = part.pivot(index="run", columns="way", values="loss")
        for way, value in part.groupby("way", sort=False)["value"].first().items():
            mean, half = interval(loss[way])
            less = quotient(loss[way], loss.fifo)
            named = {"network": name, "load": load, "way": way, "value": value, "engine": engine, "runs": len(loss)}
            yield named | {"loss": mean, "loss_half": half, "over": less.value, "over_half": less.half_width}


def network_at(name: str, load: float) -> Network:
    """Deviations of the testbed are its own, those of Abilene the load's means."""
    if name == "testbed":
        return at_utilization(read_network(network_path(name)), load)
    network = at_utilization(read_network(network_path("abilene-bursts")), load)
    demands = tuple(msgspec.structs.replace(demand, std=demand.mean) for demand in network.demands)
    return msgspec.structs.replace(network, demands=demands)


def beyond(data: pd.DataFrame) -> pd.Series:
    """What the credit law loses more than the best of FIFO and static pacing, by load, in points of percent."""
    loss = data.pivot(index="load", columns="way", values="loss")
    return loss.credit - loss[["fifo", "static"]].min(axis=1)


def compute(data: pd.DataFrame) -> dict[str, float]:
    found = {}
    for (name, engine), part in data.groupby(["network", "engine"]):
        found[f"credit-{name}-{engine}"] = float(beyond(part).max())
        loss = part.pivot(index="load", columns="way", values="loss")
        found[f"credit-{name}-{engine}-hftrac"] = float((loss.credit - loss.coordinated).max())
    return found


def readable(data: pd.DataFrame) -> pd.DataFrame:
    """Losses in the kernel [%]; differences run by run, and from packets under the same demands."""
    rows = []
    for (name, load), part in data[data.engine.isin(REAL)].groupby(["network", "load"], sort=False):
        packets, kernel = (
            part[part.engine == engine].pivot(index="run", columns="way", values="loss") for engine in REAL
        )
        row: dict[str, object] = {"network": TITLES[str(name)].partition(",")[0], "load": load}
        for way, look in WAYS.items():
            value = f"{round(best(str(name), load, way), 2):g}: " if way in TUNED[str(name)] else ""
            row[NAMES.get(way, look.label)] = value + shown(kernel[way], 3)
        row["credit − static"] = shown(kernel.credit - kernel.static, 3)
        row["credit − HFTraC"] = shown(kernel.credit - kernel.coordinated, 3)
        rows.append(row | {"from packets, at most": f"{(kernel.mean() - packets.mean()).abs().max():.3f}"})
    return pd.DataFrame(rows)


def draw(data: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(11.0, 8.2), layout="constrained")
    panels = figure.subplots(2, 2, height_ratios=(3, 2))
    for (above, below), (name, title) in zip(panels.T, TITLES.items(), strict=True):
        part = data[data.network == name]
        draw_network(above, part[part.loss > 0.0], "loss")
        draw_network(below, part[part.load >= 0.7], "over")
        above.set_yscale("log")
        above.set_ylim(bottom=5e-5)
        below.set_ylim(0.0 if name == "testbed" else 0.9, 1.05)
        fig.panel(above, title, y=fig.LOSS, legend="lower right")
        fig.panel(below, "", fig.LOAD, "loss over FIFO's", legend=None)
    fig.grid(*panels.flat)
    seconds = " and ".join(f"{each:g}" for each, _ in TIMES.values())
    fig.verdict(
        figure,
        f"Lines: fluid, {RUNS} runs of {SECONDS:g} s; factor and mu tuned there for each load. Packets and Linux, a "
        f"little beside their load: {RUNS} runs of {seconds} s, the same demands.\n"
        "95 % intervals; those of packets, as wide as Linux's, are left out.",
        "credit law",
    )
    return figure


def draw_network(axes: Axes, data: pd.DataFrame, y: str) -> None:
    for place, (way, look) in enumerate(WAYS.items()):
        part = data[data.way == way]
        fig.curve(axes, look, "load", y, part[part.engine == "fluid"], lw=3.0 if way == "fifo" else 1.5)
        aside = 0.006 + 0.004 * place
        for engine, marker, side in (("packet", "x", -aside), ("kernel", "o", aside)):
            found = part[part.engine == engine]
            found = found.assign(load=found.load + side)
            if engine == "packet":
                found = found.drop(columns=f"{y}_half")
            fig.curve(axes, look, "load", y, found, label=None, ls="none", marker=marker, ms=5.0, mfc="none")
    for label, marker in (("packets", "x"), ("Linux", "o")):
        axes.plot([], [], f"k{marker}", ms=5.0, mfc="none", label=label)
