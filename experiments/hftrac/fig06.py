"""HFTraC paper, Fig. 6: loss against mean queue by mu for each architecture, and what host buffers are worth.

The testbed with demands of N(19, 8²) and N(38, 8²). The paper publishes neither its weights nor the round trip to the
central controller, nor the sizes of the three host buffers: all are ours.
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
from netctrl.scenario.network.policy import Policy

MUS = np.geomspace(1e-3, 1e2, 16)
SHOWN = 0.01
"""The mu of the verdict."""
FACTORS = (1.02, 1.03, 1.04, 1.05, 1.07, 1.1, 1.15, 1.2, 1.3, 1.5, 2.2)
HOSTS = {0.3: "#c0504d", 0.6: "#1f4e9c", 1.2: "#38761d"}
"""Host buffers [Mbit]."""
MAX_LOSS = 1e-3
"""At which the queues of tuned ways are compared."""


def main(*, full: bool = False) -> Outcome:
    network = read_network(network_path("testbed"))
    fronts, hosts = trade_offs(fig.with_hosts(network, None)), host_buffers(network)
    least = min_queues(fig.with_hosts(network, None))
    data = pd.concat({"6a": fronts, "6b": hosts, "tuned": least}, names=["part", "row"]).reset_index()
    return Outcome("fig06", "hftrac", data, draw(fronts, hosts, least), compute(fronts, hosts, least))


def trade_offs(network: Network) -> pd.DataFrame:
    """Loss and queue of every way, with infinite buffers at the hosts."""
    rows = fig.plain_rows(network)
    rows += [{"way": "static", "value": f, **fig.measure(fig.scenario(network, fig.STATIC.at(f)))} for f in FACTORS]
    for name, way in fig.WAYS.items():
        rows += [
            {"way": name, "value": mu, **fig.measure(fig.scenario(network, way.at(float(mu))))} for mu in (*MUS, SHOWN)
        ]
    return pd.DataFrame(rows).drop_duplicates(["way", "value"]).sort_values(["way", "value"], ignore_index=True)


def host_buffers(network: Network) -> pd.DataFrame:
    """Loss of GOD by mu, of FIFO and of tuned static pacing, for each size of the host buffers."""
    rows = []
    for size in HOSTS:
        requested = fig.with_hosts(network, size)
        rows += [
            {"way": "god", "hosts": size, "value": mu, **fig.measure(fig.scenario(requested, god(mu)))} for mu in MUS
        ]
        rows += [
            {"way": "fifo", "hosts": size, "value": np.nan, **fig.measure(fig.scenario(requested, fig.FIFO.policy))}
        ]
        best = netctrl.tune(
            fig.scenario(requested, fig.STATIC.policy), netctrl.scenario_law, low=1.005, high=1.5, runs=16
        )
        rows += [{"way": "static", "hosts": size, "value": best.value, **fig.measure(best.scenario)}]
    return pd.DataFrame(rows)


def god(mu: float) -> Policy:
    return fig.WAYS["god"].at(float(mu))


def min_queues(network: Network) -> pd.DataFrame:
    """The least queue at which at most 0.1 % is lost, each way tuned, by fresh runs."""
    rows = []
    for name, way in {"static": fig.STATIC, **fig.WAYS}.items():
        bounds = {"low": 1.005, "high": 2.2} if way is fig.STATIC else {"low": 1e-4, "high": 10.0}
        requested = fig.scenario(network, way.policy)
        options = {"objective": "backlog", "max_loss": MAX_LOSS, "runs": 16, "tolerance": 0.05}
        best = netctrl.tune(requested, netctrl.scenario_law, **options, **bounds)
        rows.append({"way": name, "value": best.value, **fig.measure(best.scenario)})
    return pd.DataFrame(rows)


def compute(fronts: pd.DataFrame, hosts: pd.DataFrame, least: pd.DataFrame) -> dict[str, float]:
    ours = {name: fig.row(fronts, way=name, value=SHOWN) for name in fig.WAYS}
    fifo, tuned = fig.row(fronts, way="fifo"), fig.row(fronts, way="static", value=1.05)
    near = fig.row(fronts, way="static", value=1.02)
    queue = least.set_index("way").queue
    losses = hosts[hosts.way == "god"].pivot(index="value", columns="hosts", values="loss")
    fifos, statics = (hosts[hosts.way == way].set_index("hosts").loss for way in ("fifo", "static"))
    found = {
        "fig6-loss": 1.0 - ours["god"].loss / fifo.loss,
        "fig6-queue": 1.0 - ours["god"].queue / near.queue,
        "fig6-coordinated": ours["coordinated"].loss / ours["god"].loss,
        "fig6-static-loss": tuned.loss,
        "fig6-static-queue": tuned.queue / ours["god"].queue,
        "fig6-tuned": queue["god"] / queue["static"],
        "fig6-tuned-myopic": queue["myopic"] / queue["god"],
        "fig6-backpressure": fig.row(fronts, way="backpressure").loss / fifo.loss,
        "fig6-hosts": float((np.diff(losses.to_numpy(), axis=1) > 0.0).sum()),
        "fig6-hosts-small": 1.0 - losses[0.3].min() / fifos[0.3],
        "fig6-hosts-large": 1.0 - losses[1.2].min() / fifos[1.2],
        "fig6-hosts-static": losses[0.3].min() / statics[0.3],
        "fig6-hosts-static-2": losses[0.6].min() / statics[0.6],
    }
    return {name: float(value) for name, value in found.items()}


def draw(fronts: pd.DataFrame, hosts: pd.DataFrame, least: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(13.5, 5.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_fronts(left, fronts)
    draw_hosts(right, hosts)
    fig.grid(left, right)
    queue = least.set_index("way").queue
    fig.verdict(
        figure,
        f"Tuned static pacing needs a queue of {queue['static']:.0f} kbit for a loss of 0.1 %, GOD"
        f" {queue['god']:.0f} kbit. 95 % intervals.",
        "Fig. 6a",
        "Fig. 6b",
    )
    return figure


def draw_fronts(axes: Axes, fronts: pd.DataFrame) -> None:
    fig.curves(axes, {**fig.WAYS, "static": fig.STATIC}, "queue", "loss", fronts)
    fig.points(axes, "queue", "loss", fronts)
    for factor, place in {1.02: (0, 8), 1.05: (0, -12), 1.1: (-22, -4), 1.2: (-22, -4)}.items():
        point = fig.row(fronts, way="static", value=factor)
        look = {"xytext": place, "textcoords": "offset points", "ha": "center", "fontsize": 9}
        axes.annotate(f"{factor:g} f*", (point.queue, point.loss), color=fig.STATIC.colour, **look)
    point = fig.row(fronts, way="god", value=SHOWN)
    arrow = {"arrowstyle": "-", "color": "#222222", "lw": 0.8}
    axes.annotate(f"GOD, mu = {SHOWN:g}", (point.queue, point.loss), xytext=(110.0, 0.3), fontsize=9, arrowprops=arrow)
    axes.set(xlim=(20.0, 260.0), ylim=(-0.06, 1.25))
    fig.panel(axes, "Fig. 6a: testbed, infinite host buffers; mu from 0.001 to 100", fig.QUEUE, fig.LOSS)


def draw_hosts(axes: Axes, hosts: pd.DataFrame) -> None:
    for size, colour in HOSTS.items():
        part = hosts[hosts.hosts == size]
        look = fig.Way(f"GOD, host buffers of {size:g} Mbit", colour, "-", fig.WAYS["god"].policy)
        fig.curve(axes, look, "value", "loss", part[part.way == "god"])
        for name, style in {"fifo": ":", "static": "--"}.items():
            axes.axhline(fig.row(part, way=name).loss, color=colour, ls=style, lw=1.1)
    axes.plot([], [], color="#555555", ls=":", label="FIFO")
    axes.plot([], [], color="#555555", ls="--", label="static pacing, factor tuned")
    axes.set(xscale="log", ylim=(0.0, None))
    fig.panel(axes, "Fig. 6b: limited host buffers, GOD", "mu", fig.LOSS)
