"""HFTraC paper, Figs. 7b and 7c: loss and mean queue as the testbed's utilization grows.

Demands keep their deviation of 8 Mbit/s, host buffers hold 0.3 Mbit, as the paper has it. Its weights aren't published:
here mu is tuned for each load, and one that is kept for all loads is drawn beside them.
"""

import hftrac.fig_common as fig
import numpy as np
import pandas as pd
from common import Outcome
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import netctrl
from netctrl.model.datasets import network_path
from netctrl.model.network import Network, read_network
from netctrl.scenario.network.traffic import GaussianTraffic, Spread

LOADS = (0.75, 0.8, 0.85, 0.9, 0.95, 0.98)
MUS = np.geomspace(0.01, 30.0, 9)
GAUSSIAN = GaussianTraffic()
TRIED = 8
"""Runs that a weight or a factor is chosen by."""
NAMES = ("god", "coordinated", "centralized-2", "myopic")
KEPT = 0.95
"""Utilization whose best mu is kept for all loads."""
ONE = fig.Way("coordinated, one mu", "#38761d", ":", fig.WAYS["coordinated"].policy)
TRIPS = {1: "centralized", 2: "centralized-2", 4: "centralized-4"}
ROOMY = 0.6
"""Host buffers with which the round trips are compared [Mbit]."""
ROUND_TRIPS = fig.WAYS | {"centralized-4": fig.centralized(4, "centralized, d = 4", "--")}
DRAWN = fig.PLAIN | {"static": fig.STATIC} | {name: fig.WAYS[name] for name in NAMES} | {"one": ONE}


def main(*, full: bool = False) -> Outcome:
    network = read_network(network_path("testbed"))
    data, trips = by_load(network), round_trips(fig.with_hosts(network, ROOMY))
    both = pd.concat({"7": data, "round trips": trips}, names=["part", "row"]).reset_index()
    return Outcome("fig07", "hftrac", both, draw(data, trips), compute(data, trips))


def by_load(network: Network, traffic: Spread = GAUSSIAN) -> pd.DataFrame:
    """Loss and queue of every way at every load, tuned for it; and of coordinated control with one mu."""
    data = pd.concat([at_load(network, load, traffic) for load in LOADS], ignore_index=True)
    kept = float(fig.row(data, way="coordinated", load=KEPT).value)
    rows = [measured(network, "one", ONE, load, kept, traffic) for load in LOADS]
    return pd.concat([data, pd.DataFrame(rows)], ignore_index=True)


def measured(
    network: Network, name: str, way: fig.Way, load: float, value: float, traffic: Spread = GAUSSIAN
) -> dict[str, object]:
    policy = way.policy if np.isnan(value) else way.at(value)
    requested = fig.scenario(network, policy, utilization=load, spread=traffic)
    return {"way": name, "load": load, "value": value, **fig.measure(requested)}


def tuned(network: Network, name: str, way: fig.Way, load: float, traffic: Spread) -> dict[str, object]:
    """The way with that mu of a grid which loses least, and of equal ones with the least queue, by fresh runs."""

    def price(value: float) -> tuple[float, float]:
        requested = fig.scenario(network, way.at(value), utilization=load, spread=traffic)
        found = fig.measure(requested, runs=TRIED, first_run=0)
        return found["loss"], found["queue"]

    return measured(network, name, way, load, min((float(value) for value in MUS), key=price), traffic)


def finer(
    network: Network, name: str, way: fig.Way, load: float, bounds: tuple[float, float], traffic: Spread = GAUSSIAN
) -> dict[str, object]:
    """The same by `netctrl.tune`."""
    low, high = bounds
    requested = fig.scenario(network, way.policy, utilization=load, spread=traffic)
    best = netctrl.tune(requested, netctrl.scenario_law, low=low, high=high, runs=TRIED, tolerance=0.05)
    return measured(network, name, way, load, best.value, traffic)


def at_load(network: Network, load: float, traffic: Spread) -> pd.DataFrame:
    rows = [measured(network, name, way, load, np.nan, traffic) for name, way in fig.PLAIN.items()]
    rows += [finer(network, "static", fig.STATIC, load, (1.005, 2.5), traffic)]
    rows += [tuned(network, name, fig.WAYS[name], load, traffic) for name in NAMES]
    return pd.DataFrame(rows)


def round_trips(network: Network) -> pd.DataFrame:
    """Coordinated against centralized control by its round trip, each with its best mu."""
    names = ("coordinated", *TRIPS.values())
    return pd.DataFrame([finer(network, name, ROUND_TRIPS[name], KEPT, (1e-3, 1.0)) for name in names])


def compute(data: pd.DataFrame, trips: pd.DataFrame) -> dict[str, float]:
    loss = data.pivot(index="load", columns="way", values="loss")
    gain = 1.0 - loss.div(loss.fifo, axis=0)
    best = trips.set_index("way").loss
    found = {
        "fig7-heavy": gain.coordinated[[0.95, 0.98]].min(),
        "fig7-most": gain.god.max(),
        "fig7-coordinated": gain.coordinated[0.95],
        "fig7-myopic": gain.myopic[[0.95, 0.98]].min(),
        "fig7-near-god": (loss.coordinated / loss.god).max(),
        "fig7-one": gain.one[[0.75, 0.8, 0.85, 0.9]].min(),
        "fig7-static": loss.static[0.95] / loss.god[0.95],
        "fig7-static-light": loss.static[0.85] / loss.god[0.85],
        "fig7-static-least": loss.static[0.75] / loss.god[0.75],
        "fig7-centralized-light": gain["centralized-2"][0.85],
        "fig7-backpressure": (loss.backpressure / loss.fifo).min(),
        "fig7-centralized": loss.coordinated[0.95] / loss["centralized-2"][0.95],
    }
    found |= {f"fig7-trip-{d}": 1.0 - best["coordinated"] / best[name] for d, name in TRIPS.items()}
    return {name: float(value) for name, value in found.items()}


def draw(data: pd.DataFrame, trips: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(15.0, 5.4), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(4, 4, 2.3))
    draw_loss(left, data, "Fig. 7b: loss; mu and factor tuned for each load")
    left.set_ylim(2e-4, 5.0)
    draw_queue(middle, data, "Fig. 7c: mean queue")
    draw_trips(right, trips)
    fig.grid(left, middle)
    fig.verdict(
        figure,
        "mu is tuned for each load; with one mu for all loads HFTraC loses more than FIFO at light load, as does"
        " central control with any. 95 % intervals.",
        "Fig. 7b",
    )
    return figure


def draw_loss(axes: Axes, data: pd.DataFrame, title: str) -> None:
    for name, way in DRAWN.items():
        part = data[(data.way == name) & (data.loss > 0.0)]
        fig.curve(axes, way, "load", "loss", part, label=way.label + (f" = {part.value.iloc[0]:.2g}" * (way is ONE)))
    axes.set_yscale("log")
    fig.panel(axes, title, fig.LOAD, fig.LOSS, legend="lower right")


def draw_queue(axes: Axes, data: pd.DataFrame, title: str) -> None:
    fig.curves(axes, DRAWN, "load", "queue", data)
    axes.set_ylim(bottom=0.0)
    fig.panel(axes, title, fig.LOAD, fig.QUEUE, legend=None)


def draw_trips(axes: Axes, trips: pd.DataFrame) -> None:
    names = list(trips.way)
    colours = [ROUND_TRIPS[name].colour for name in names]
    axes.bar(range(len(names)), trips.loss, yerr=trips.loss_half, color=colours, width=0.6, capsize=3.0)
    labels = [ROUND_TRIPS[name].label.replace(", ", ",\n") for name in names]
    axes.set_xticks(range(len(names)), labels, fontsize=8, rotation=45, ha="right")
    fig.panel(axes, f"host buffers {ROOMY:g} Mbit, load {KEPT:g}", y=fig.LOSS, legend=None)
