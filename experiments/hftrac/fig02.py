"""HFTraC paper, Figs. 2 to 4: pacing at the first of two switches, and at two switches that share a third link.

The paper doesn't state its sampling interval here: 50 ms, and 100 and 10 ms where it matters.
"""

import hftrac.fig_common as fig
import msgspec
import numpy as np
import pandas as pd
from common import Measured, Outcome
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from netctrl.model.datasets import network_path
from netctrl.model.network import Network, read_network
from netctrl.scenario.network.policy import HftracPolicy, StaticPacing

INTERVAL = 0.05
INTERVALS = {0.05: "#1f4e9c", 0.1: "#b45f06", 0.01: "#38761d"}
NOMINAL = 16.0
"""Of the tandem's demand [Mbit/s]."""
RATES = np.arange(18.0, 23.01, 0.25)
MUS = np.geomspace(1e-3, 30.0, 10)
FIRST = ("L1",)
RAISED = 19.0 / NOMINAL
"""A reference for dynamic pacing: the best static rate, where the paper's is the nominal one."""
SHOWN = 0.1
"""The mu of the verdict on Fig. 4."""


def dynamic(rate_scale: float, label: str, colour: str, style: str) -> fig.Way:
    """GOD's law at S1 alone."""
    policy = HftracPolicy(architecture="god", mu=1.0, links=FIRST, rate_scale=rate_scale)
    return fig.Way(label, colour, style, policy)


DYNAMIC = {
    "printed": dynamic(1.0, "dynamic at S1 around 16 Mbit/s", "#c0504d", "-"),
    "raised": dynamic(RAISED, "dynamic at S1 around 19 Mbit/s", "#222222", "-"),
}


def main(*, full: bool = False) -> Outcome:
    tandem, merge = (read_network(network_path(name)) for name in ("tandem", "merge"))
    rates = pd.concat([static_rates(tandem, interval) for interval in INTERVALS], ignore_index=True)
    tandem, merge = delayed(tandem, INTERVAL), delayed(merge, INTERVAL)
    parts = {"2": rates, "3": dynamic_pacing(tandem), "4": shared(merge)}
    data = pd.concat(parts, names=["part", "row"]).reset_index()
    computed = compute(parts) | {"fig3-static": over_static(tandem, parts)}
    return Outcome("fig02", "hftrac", data, draw(**{f"fig{n}": part for n, part in parts.items()}), computed)


def over_static(network: Network, parts: dict[str, pd.DataFrame]) -> Measured:
    """What dynamic pacing at S1 loses at its best mu, over the best static rate's loss."""
    static, dynamic = parts["2"], parts["3"]
    rate = static.loc[static[static.interval == INTERVAL].loss.idxmin()].rate
    mu = dynamic.loc[dynamic[dynamic.way == "raised"].loss.idxmin()].value
    policies = StaticPacing(factor=rate / NOMINAL, links=FIRST), DYNAMIC["raised"].at(float(mu))
    return fig.over(*(fig.scenario(network, policy, interval=INTERVAL) for policy in policies))


def delayed(network: Network, interval: float) -> Network:
    """The network with one sample of delay for each link, as its file has it at 10 ms."""
    links = tuple(msgspec.structs.replace(link, delay=interval) for link in network.links)
    return msgspec.structs.replace(network, links=links)


def static_rates(network: Network, interval: float) -> pd.DataFrame:
    network, rows = delayed(network, interval), []
    for rate in RATES:
        requested = fig.scenario(network, StaticPacing(factor=rate / NOMINAL, links=FIRST), interval=interval)
        rows.append({"interval": interval, "rate": float(rate), **fig.measure(requested)})
    return pd.DataFrame(rows)


def dynamic_pacing(network: Network) -> pd.DataFrame:
    """FIFO, static pacing at S1 and HFTraC at S1 by mu, and HFTraC at both switches."""
    rows = fig.plain_rows(network, interval=INTERVAL)
    for name, way in DYNAMIC.items():
        for mu in MUS:
            requested = fig.scenario(network, way.at(float(mu)), interval=INTERVAL)
            rows.append({"way": name, "value": float(mu), **fig.measure(requested)})
    return pd.DataFrame(rows)


def shared(network: Network) -> pd.DataFrame:
    rows = fig.plain_rows(network, interval=INTERVAL)
    for factor in (1.005, 1.01, 1.015, 1.02, 1.025, 1.03, 1.05, 1.1, 1.2, 1.4):
        requested = fig.scenario(network, fig.STATIC.at(factor), interval=INTERVAL)
        rows.append({"way": "static", "value": factor, **fig.measure(requested)})
    for mu in sorted({SHOWN, *(float(mu) for mu in MUS)}):
        requested = fig.scenario(network, fig.WAYS["god"].at(mu), interval=INTERVAL)
        rows.append({"way": "god", "value": mu, **fig.measure(requested)})
    return pd.DataFrame(rows)


def compute(parts: dict[str, pd.DataFrame]) -> dict[str, float]:
    best = parts["2"].loc[parts["2"].groupby("interval").loss.idxmin()].set_index("interval")
    fifo = fig.row(parts["3"], way="fifo")
    least = parts["3"].groupby("way").loss.min()
    before, after = fig.row(parts["4"], way="fifo"), fig.row(parts["4"], way="god", value=SHOWN)
    pacing = parts["4"][parts["4"].way == "static"]
    found = {
        "fig2-rate": best.rate[0.05],
        "fig2-rate-100": best.rate[0.1],
        "fig2-10": parts["2"][(parts["2"].interval == 0.01) & (parts["2"].rate == RATES[-1])].loss.iloc[0],
        "fig2-gain": best.loss[0.05] / fifo.loss,
        "fig2-queue": best.queue[0.05] / fifo.queue,
        "fig3-printed": least["printed"] / fifo.loss,
        "fig3-raised": least["raised"] / fifo.loss,
        "fig4-fifo": before.loss,
        "fig4-loss": after.loss,
        "fig4-throughput-fifo": before.throughput,
        "fig4-throughput": after.throughput,
        "fig4-queue": after.queue / before.queue,
        "fig4-static": pacing.loss.min(),
    }
    return {name: float(value) for name, value in found.items()}


def draw(fig2: pd.DataFrame, fig3: pd.DataFrame, fig4: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(15.0, 5.0), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    draw_rates(left, fig2)
    draw_dynamic(middle, fig2[fig2.interval == INTERVAL], fig3)
    draw_shared(right, fig4)
    fig.grid(left, middle, right)
    fig.verdict(
        figure,
        "FIFO beside static pacing, dynamic pacing at S1 around nominal rates and around 19 Mbit/s, and dynamic control"
        " of two switches. 95 % intervals.",
        "Fig. 2",
        "Fig. 3",
        "Fig. 4",
    )
    return figure


def draw_rates(axes: Axes, rates: pd.DataFrame) -> None:
    for interval, colour in INTERVALS.items():
        look = fig.Way(f"sampled every {1e3 * interval:g} ms", colour, "-", StaticPacing())
        fig.curve(axes, look, "rate", "loss", rates[rates.interval == interval])
    axes.axvline(19.0, color="#999999", lw=0.9, ls="--")
    fig.panel(axes, "Fig. 2: two switches, static pacing; 23 Mbit/s is FIFO", "static rate at S1 [Mbit/s]", fig.LOSS)


def draw_dynamic(axes: Axes, rates: pd.DataFrame, fig3: pd.DataFrame) -> None:
    look = fig.Way("static pacing at S1", fig.STATIC.colour, fig.STATIC.style, fig.STATIC.policy)
    fig.curve(axes, look, "queue", "loss", rates)
    fig.curves(axes, DYNAMIC, "queue", "loss", fig3)
    fig.points(axes, "queue", "loss", fig3)
    axes.set(xscale="log", yscale="log")
    axes.set_xticks([10, 15, 20, 30, 40, 50], minor=False, labels=["10", "15", "20", "30", "40", "50"])
    axes.minorticks_off()
    fig.panel(axes, "Fig. 3: dynamic pacing at S1, by mu; 50 ms", fig.QUEUE, fig.LOSS)


def draw_shared(axes: Axes, fig4: pd.DataFrame) -> None:
    fig.curves(axes, {"god": fig.WAYS["god"], "static": fig.STATIC}, "queue", "loss", fig4)
    fig.points(axes, "queue", "loss", fig4)
    point = fig.row(fig4, way="god", value=SHOWN)
    place = {"xytext": (0, -14), "textcoords": "offset points", "fontsize": 9, "ha": "center"}
    axes.annotate(f"mu = {SHOWN:g}", (point.queue, point.loss), **place)
    axes.set(yscale="log", ylim=(0.2, 30.0))
    fig.panel(axes, "Fig. 4: two sources share a third link; 50 ms", fig.QUEUE, fig.LOSS)
