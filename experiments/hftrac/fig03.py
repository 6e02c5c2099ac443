"""HFTraC paper, Figs. 3c and 3d: the greatest utilization of two switches at a loss of 0.1 %, and the queue there.

As Figs. 3a and 3b (`fig02`), with other means of the demand and the same deviation. Static pacing has its best factor,
dynamic pacing its best mu, around nominal rates as printed and around the best multiple of them.
"""

from itertools import product

import hftrac.fig_common as fig
import numpy as np
import pandas as pd
from common import Measured, Outcome
from hftrac.fig02 import FIRST, INTERVAL, delayed
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import netctrl
from netctrl.model.datasets import network_path
from netctrl.model.network import Network, read_network
from netctrl.scenario.network.policy import HftracPolicy, Policy, StaticPacing
from netctrl.scenario.scenario import Scenario
from netctrl.sim.network.tune import MaxUtilization

MAX_LOSS = 1e-3
MUS = (0.001, 0.01, 0.1, 1.0, 10.0)
FACTORS = (1.125, 1.14, 1.155, 1.17, 1.2)
"""Rates of static pacing, and around which dynamic pacing is tuned, over nominal ones."""
MIN = 0.5
"""The utilization at which the mu of the printed reference is chosen, as it has no greatest one."""
TRIED, RUNS = 8, 64
FRESH_SEED = 1
"""Of the runs by which the greatest utilizations are found; nothing is tuned by these."""
LOADS = np.linspace(0.5, 0.94, 12)
LOOKS = fig.PLAIN | {
    "static": fig.Way("static at S1, factor tuned", fig.STATIC.colour, fig.STATIC.style, fig.STATIC.policy),
    "printed": fig.Way("dynamic at S1 around nominal rates", "#c0504d", "-", fig.FIFO.policy),
    "raised": fig.Way("dynamic at S1 around a tuned multiple", "#222222", "--", fig.FIFO.policy),
}


def main(*, full: bool = False) -> Outcome:
    network = delayed(read_network(network_path("tandem")), INTERVAL)
    most = greatest(network)
    best = dict(zip(most.way, most.policy, strict=True))
    at = fig.row(most, way="static").utilization / 100.0
    plain, raised = (at_load(network, best[way], at) for way in ("static", "raised"))
    loads, less = by_load(network, best), fig.decrease(plain, raised, RUNS)
    most = most.drop(columns="policy")
    parts = {"greatest": most, "by load": loads, "decrease": pd.DataFrame([less._asdict()])}
    data = pd.concat(parts, names=["part", "row"]).reset_index()
    return Outcome("fig03", "hftrac", data, draw(most, loads), compute(most, loads, less))


def static(factor: float) -> Policy:
    return StaticPacing(factor=factor, links=FIRST)


def dynamic(rate_scale: float, mu: float) -> Policy:
    """GOD's law at S1 alone."""
    return HftracPolicy(architecture="god", mu=mu, links=FIRST, rate_scale=rate_scale)


def greatest(network: Network) -> pd.DataFrame:
    """Of every way, by other runs than it is tuned by; the printed reference has none, and the mu of least loss."""
    law = fig.law_for_all_loads()
    requested = fig.scenario(network, fig.FIFO.policy, interval=INTERVAL)
    options = {"low": MIN, "runs": TRIED, "tolerance": 2e-3}
    near = netctrl.max_utilization(requested, law, loss=MAX_LOSS, **options).utilization

    def found(policy: Policy, runs: int, seed: int, tolerance: float) -> MaxUtilization | None:
        desired = requested.replace(control=policy, seed=seed)
        return fig.greatest_utilization(desired, law, MAX_LOSS, near + 0.02, runs, tolerance)

    def utilization(policy: Policy) -> float:
        tried = found(policy, TRIED, requested.seed, 2e-3)
        return 0.0 if tried is None else tried.utilization

    def loss(policy: Policy) -> float:
        return fig.measure(fig.scenario(network, policy, interval=INTERVAL, utilization=MIN), TRIED, first_run=0)[
            "loss"
        ]

    chosen = {
        "fifo": fig.FIFO.policy,
        "backpressure": fig.BACKPRESSURE.policy,
        "static": max(map(static, FACTORS), key=utilization),
        "printed": min((dynamic(1.0, mu) for mu in MUS), key=loss),
        "raised": max((dynamic(*pair) for pair in product(FACTORS, MUS)), key=utilization),
    }
    rows = [entry(network, name, policy, found(policy, RUNS, FRESH_SEED, 2.5e-4)) for name, policy in chosen.items()]
    return pd.DataFrame(rows)


def entry(network: Network, name: str, policy: Policy, found: MaxUtilization | None) -> dict[str, object]:
    """In percent, with loss and queue there; at LEAST where too much is lost at all that were tried."""
    ends = (np.nan, np.nan, np.nan) if found is None else (found.utilization, found.low, found.high)
    at = MIN if found is None else found.utilization
    return {
        "way": name,
        "policy": policy,
        "factor": getattr(policy, "rate_scale", getattr(policy, "factor", np.nan)),
        "mu": getattr(policy, "mu", np.nan),
        **dict(zip(("utilization", "low", "high"), (100.0 * each for each in ends), strict=True)),
        **fig.measure(fig.scenario(network, policy, interval=INTERVAL, utilization=at)),
    }


def at_load(network: Network, policy: Policy, load: float) -> Scenario:
    return fig.scenario(network, policy, interval=INTERVAL, utilization=load)


def by_load(network: Network, best: dict[str, Policy]) -> pd.DataFrame:
    rows = []
    for name, policy in best.items():
        for load in LOADS:
            rows.append(
                {"way": name, "load": 100.0 * load, **fig.measure(at_load(network, policy, float(load)), TRIED)}
            )
    return pd.DataFrame(rows)


def compute(most: pd.DataFrame, loads: pd.DataFrame, less: Measured) -> dict[str, float | Measured]:
    ways = most.set_index("way")
    use, queue = ways.utilization, ways.queue
    found = {
        "fig3c-fifo": use["fifo"],
        "fig3c-static": use["static"] - use["fifo"],
        "fig3c-printed": loads[loads.way == "printed"].loss.min(),
        "fig3c-raised": use["raised"] - use["fifo"],
        "fig3c-over-static": use["raised"] - use["static"],
        "fig3c-backpressure": use["backpressure"] - use["fifo"],
        "fig3d-static": queue["raised"] / queue["static"],
        "fig3d-fifo": queue["raised"] / queue["fifo"],
    }
    return {name: float(value) for name, value in found.items()} | {"fig3c-loss": less}


def draw(most: pd.DataFrame, loads: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(15.0, 5.0), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(3, 4, 3))
    draw_greatest(left, most)
    draw_loads(middle, loads)
    draw_queues(right, most)
    fig.grid(left, middle)
    use = most.set_index("way").utilization
    fig.verdict(
        figure,
        "Around nominal rates dynamic pacing at S1 loses too much at every utilization tried; around a tuned multiple"
        f" it allows {use['raised'] - use['static']:.2f} points more than static pacing,"
        f" {use['raised'] - use['fifo']:.1f} more than FIFO. 50 ms; 95 % intervals.",
        "Fig. 3c",
        "Fig. 3d",
    )
    return figure


def draw_greatest(axes: Axes, most: pd.DataFrame) -> None:
    for k, each in enumerate(most.itertuples()):
        if np.isnan(each.utilization):
            axes.text(k, 85.2, "none", fontsize=9, ha="center")
            continue
        ends = [[each.utilization - each.low], [each.high - each.utilization]]
        axes.errorbar(k, each.utilization, yerr=ends, color=LOOKS[each.way].colour, marker="o", ms=6.0, capsize=4.0)
        place = {"xytext": (0, 9), "textcoords": "offset points", "ha": "center", "fontsize": 9}
        axes.annotate(f"{each.utilization:.1f}", (k, each.utilization), **place)
    name_bars(axes, most)
    axes.set(xlim=(-0.5, len(most) - 0.5), ylim=(85.0, 92.0))
    fig.panel(axes, "Fig. 3c: greatest utilization at a loss of 0.1 %", y="greatest utilization [%]", legend=None)


def draw_loads(axes: Axes, loads: pd.DataFrame) -> None:
    for name, way in LOOKS.items():
        fig.curve(axes, way, "load", "loss", loads[(loads.way == name) & (loads.loss > 0.0)])
    axes.axhline(100.0 * MAX_LOSS, color="#999999", lw=0.9, ls="--")
    axes.set(yscale="log", ylim=(1e-3, 2.0))
    fig.panel(
        axes,
        "what is lost with the same factor and mu at other loads",
        f"{fig.LOAD} [%]",
        fig.LOSS,
        legend="lower left",
    )


def draw_queues(axes: Axes, most: pd.DataFrame) -> None:
    some = most.dropna(subset="utilization")
    colours = [LOOKS[name].colour for name in some.way]
    made = axes.bar(range(len(some)), some.queue, yerr=some.queue_half, width=0.65, color=colours, capsize=3.0)
    axes.bar_label(made, fmt="%.1f", fontsize=9, padding=3)
    name_bars(axes, some)
    axes.margins(y=0.1)
    fig.panel(axes, "Fig. 3d: mean queue there", y=fig.QUEUE, legend=None)


def name_bars(axes: Axes, most: pd.DataFrame) -> None:
    short = {"fifo": "FIFO", "backpressure": "back-\npressure", "static": "static", "printed": "dynamic,\nnominal"}
    axes.set_xticks(range(len(most)), [short.get(name, "dynamic,\ntuned") for name in most.way], fontsize=9)
