"""Loss by load of FIFO, static pacing and HFTraC at each load's best number, and the credit law, which has none.

The testbed, and Abilene with buffers of 40 kB and demands that vary by as much as their means; the fluid and packets.
Packets: two runs of 15 s whenever the figure is drawn, ten with `--full`.
"""

from collections.abc import Iterable

import hftrac.fig_common as fig
import msgspec
import numpy as np
import pandas as pd
from common import Outcome, interval, quotient
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from netctrl.laws.link_rate.routing import at_utilization
from netctrl.model.datasets import network_path
from netctrl.model.network import Network, read_network
from netctrl.scenario.network.policy import CreditPolicy
from netctrl.scenario.result import Result
from netctrl.sim.network.plan import link_plan
from netctrl.sim.network.run import simulate_network
from netctrl.sim.packet.network import simulate_network_packets

LOADS = (0.5, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05)
ON_PACKETS = (0.7, 0.9, 1.0)
RUNS, TRIED, SECONDS = 10, 3, 50.0
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
TITLES = {"testbed": "testbed", "abilene": "Abilene, buffers of 40 kB, σ = mean"}


def main(*, full: bool = False) -> Outcome:
    laws, runs = {name: fig.law_for_all_loads() for name in TUNED}, RUNS if full else 2
    rows = [row for name, law in laws.items() for load in LOADS for row in at_load(name, load, law, runs)]
    data = pd.DataFrame(rows)
    return Outcome("credit", "hftrac", data, draw(data), compute(data))


def network_at(name: str, load: float) -> Network:
    """Deviations of the testbed are its own, those of Abilene the load's means."""
    if name == "testbed":
        return at_utilization(read_network(network_path(name)), load)
    network = at_utilization(read_network(network_path("abilene-bursts")), load)
    demands = tuple(msgspec.structs.replace(demand, std=demand.mean) for demand in network.demands)
    return msgspec.structs.replace(network, demands=demands)


def losses(result: Result) -> np.ndarray:
    """Of each run [%]."""
    return 100.0 * result.figures()["loss", "network"]


def at_load(name: str, load: float, law: fig.LawOf, runs: int) -> Iterable[dict[str, object]]:
    """Rows of every way, in the fluid and on packets; `over`: over FIFO's loss."""
    network, fifo = network_at(name, load), {}
    for way, look in WAYS.items():
        tried = {
            value: losses(simulated(network, look.at(value), law, range(TRIED))).mean()
            for value in TUNED[name].get(way, ())
        }
        value = min(tried, key=tried.__getitem__) if tried else np.nan
        policy = look.at(value) if tried else look.policy
        fresh = range(fig.FRESH, fig.FRESH + RUNS)
        found = {"fluid": losses(simulated(network, policy, law, fresh))}
        if load in ON_PACKETS and way != "coordinated":
            scenario = fig.scenario(network, policy, duration=20.0, warmup=5.0)
            found["packet"] = losses(simulate_network_packets(scenario, link_plan(scenario), fresh[:runs], watch=False))
        for engine, loss in found.items():
            one = pd.Series(loss)
            less = quotient(one, fifo.setdefault(engine, one))
            named = {"network": name, "load": load, "way": way, "value": value, "engine": engine, "runs": len(loss)}
            mean, half = interval(loss)
            yield named | {"loss": mean, "loss_half": half, "over": less.value, "over_half": less.half_width}


def simulated(network: Network, policy: fig.Policy, law: fig.LawOf, runs: range) -> Result:
    scenario = fig.scenario(network, policy, duration=SECONDS + 5.0, warmup=5.0)
    return simulate_network(scenario, law(scenario), runs=len(runs), first_run=runs[0], watch=False)


def beyond(data: pd.DataFrame) -> pd.Series:
    """What the credit law loses more than the best of FIFO and static pacing, by load, in points of percent."""
    loss = data.pivot(index="load", columns="way", values="loss")
    return loss.credit - loss[["fifo", "static"]].min(axis=1)


def compute(data: pd.DataFrame) -> dict[str, float]:
    found = {}
    for (name, engine), part in data.groupby(["network", "engine"]):
        found[f"credit-{name}-{engine}"] = float(beyond(part).max())
    for name, part in data[data.engine == "fluid"].groupby("network"):
        loss = part.pivot(index="load", columns="way", values="loss")
        found[f"credit-{name}-hftrac"] = float((loss.credit - loss.coordinated).max())
    return found


def draw(data: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(11.0, 7.6), layout="constrained")
    panels = figure.subplots(2, 2, height_ratios=(3, 2))
    for (above, below), (name, title) in zip(panels.T, TITLES.items(), strict=True):
        part = data[data.network == name]
        draw_network(above, part[part.loss > 0.0], "loss")
        draw_network(below, part[part.load >= 0.7], "over")
        above.set_yscale("log")
        above.set_ylim(bottom=1e-5)
        below.set_ylim(0.0 if name == "testbed" else 0.9, 1.05)
        fig.panel(above, title, y=fig.LOSS, legend="lower right")
        fig.panel(below, "", fig.LOAD, "loss over FIFO's", legend=None)
    fig.grid(*panels.flat)
    fig.verdict(
        figure,
        "Lines: fluid, 10 runs of 50 s; factor and mu tuned for each load. Crosses: packets. 95 % intervals.",
        "credit law",
    )
    return figure


def draw_network(axes: Axes, data: pd.DataFrame, y: str) -> None:
    for way, look in WAYS.items():
        part = data[data.way == way]
        fig.curve(axes, look, "load", y, part[part.engine == "fluid"])
        packets = part[part.engine == "packet"].drop(columns=f"{y}_half")  # of two runs
        fig.curve(axes, look, "load", y, packets, label=None, ls="none", marker="x", ms=6.0)
