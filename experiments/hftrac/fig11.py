"""HFTraC paper, Fig. 11: the greatest utilization of a wide-area network at a given loss.

Four sites on three continents, 35 ms, buffers of 0.8 Mbit. Its lines, capacities and demands are ours, as its text
doesn't give them, and so is the round trip to a controller at Ashburn, 4 samples. Word travels in band.
"""

import hftrac.fig_common as fig
import msgspec
import numpy as np
import pandas as pd
from common import Outcome
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import netctrl
from netctrl.laws.link_rate.routing import routing
from netctrl.model.datasets import network_path
from netctrl.model.network import Network, read_network
from netctrl.scenario.network.graph import with_utilization
from netctrl.scenario.network.policy import Policy
from netctrl.sim.network.run import simulate_network
from netctrl.sim.network.tune import MaxUtilization

INTERVAL = 0.035
CASES = {5.0: 0.001, 10.0: 0.005}
"""Deviation of each demand [Mbit/s], and the loss that is allowed."""
MUS = (0.003, 0.03, 0.3, 3.0, 100.0)
FACTORS = (1.02, 1.05, 1.1, 1.2, 1.3, 1.5, 2.0)
MIN = 0.5
"""Where FIFO's greatest utilization is looked for from, and what is noted of a way that has none."""
RUNS = 8
STEPS = 3000
IN_BAND = msgspec.structs.replace(fig.WAYS["coordinated"].policy, communication="in-band")
PACED = {
    "static": fig.STATIC,
    "coordinated": fig.Way("coordinated", "#38761d", "--", IN_BAND),
    "centralized": fig.centralized(4, "centralized, d = 4", "-"),
    "myopic": fig.WAYS["myopic"],
}
LOOKS = fig.PLAIN | PACED


def main(*, full: bool = False) -> Outcome:
    network = rounded(read_network(network_path("wan")), INTERVAL)
    networks = {"none": network, "infinite": fig.with_host_links(network)}
    parts = [greatest(each, std).assign(hosts=hosts) for hosts, each in networks.items() for std in CASES]
    data = pd.concat(parts, ignore_index=True)
    return Outcome("fig11", "hftrac", data, draw(data), compute(data))


def rounded(network: Network, interval: float) -> Network:
    """The network with delays of whole intervals, at least one, and with the routes of its true delays."""
    names, shares = [link.id for link in network.links], routing(network).split.tocsc()
    demands = []
    for i, demand in enumerate(network.demands):
        part = slice(shares.indptr[i], shares.indptr[i + 1])
        taken = zip(shares.indices[part], shares.data[part], strict=True)
        demands.append(msgspec.structs.replace(demand, split={names[k]: float(share) for k, share in taken}))
    links = [msgspec.structs.replace(x, delay=interval * max(round(x.delay / interval), 1)) for x in network.links]
    return msgspec.structs.replace(network, links=tuple(links), demands=tuple(demands))


def greatest(network: Network, std: float) -> pd.DataFrame:
    """Of every way, its mu or factor being what loses least at the greatest utilization of FIFO."""
    requested = fig.scenario(
        fig.with_std(network, std),
        fig.FIFO.policy,
        interval=INTERVAL,
        duration=STEPS * INTERVAL,
        warmup=STEPS * INTERVAL / 10,
    )
    law = fig.law_for_all_loads()
    fifo = netctrl.max_utilization(requested, law, loss=CASES[std], low=MIN, runs=RUNS, tolerance=2e-3)

    def found(policy: Policy) -> MaxUtilization | None:
        desired = requested.replace(control=policy)
        return fig.greatest_utilization(desired, law, CASES[std], near=fifo.utilization, runs=RUNS)

    rows = [entry("fifo", std, np.nan, fifo), entry("backpressure", std, np.nan, found(fig.BACKPRESSURE.policy))]

    def loss(policy: Policy) -> float:
        desired = with_utilization(requested.replace(control=policy), fifo.utilization)
        return simulate_network(desired, law(desired), runs=RUNS, watch=False)["loss", "network"]

    for name, way in PACED.items():
        value = min(FACTORS if way is fig.STATIC else MUS, key=lambda each: loss(way.at(each)))
        rows.append(entry(name, std, value, found(way.at(value))))
    return pd.DataFrame(rows)


def entry(name: str, std: float, value: float, found: MaxUtilization | None) -> dict[str, object]:
    """In percent; LEAST where too much is lost at all that were tried."""
    ends = (MIN, MIN, MIN) if found is None else (found.utilization, found.low, found.high)
    best, low, high = (100.0 * each for each in ends)
    return {"way": name, "std": std, "value": value, "utilization": best, "low": low, "high": high}


def compute(data: pd.DataFrame) -> dict[str, float]:
    found = {}
    for hosts, suffix in {"none": "", "infinite": "-hosts"}.items():
        most = data[data.hosts == hosts].pivot(index="std", columns="way", values="utilization")
        gain = most.sub(most.fifo, axis=0)
        found |= {f"fig11-fifo-{std:g}{suffix}": most.fifo[std] for std in CASES}
        for name in ("coordinated", "static") if hosts == "none" else PACED:
            found |= {f"fig11-{name}-{std:g}{suffix}": gain[name][std] for std in CASES}
    return {name: float(value) for name, value in found.items()}


def draw(data: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(15.0, 5.2), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    draw_bars(left, data[data.hosts == "none"])
    title = "Fig. 11c: demands enter the sites' buffers of 0.8 Mbit"
    fig.panel(left, title, y="greatest utilization [%]", legend=None)
    draw_bars(right, data[data.hosts == "infinite"])
    title = "Fig. 11c: demands enter through hosts with infinite buffers"
    fig.panel(right, title, legend="upper center", columns=3)
    fig.verdict(
        figure,
        "Where demands enter the sites' own buffers no HFTraC allows more than FIFO; behind hosts with infinite buffers"
        " all do, and static pacing more still. 95 % intervals.",
        "Fig. 11c",
    )
    return figure


def draw_bars(axes: Axes, data: pd.DataFrame) -> None:
    parts = {name: data[data.way == name] for name in LOOKS}
    ends = {name: [part.utilization - part.low, part.high - part.utilization] for name, part in parts.items()}
    made = fig.bars(axes, LOOKS, {name: part.utilization for name, part in parts.items()}, ends)
    for name, part in parts.items():
        labels = [f"{each:.1f}" if each > 100.0 * MIN else "none" for each in part.utilization]
        axes.bar_label(made[name], labels, fontsize=8.5, padding=3)
    labels = [f"sigma = {std:g} Mbit/s, loss of {100.0 * loss:g} %" for std, loss in CASES.items()]
    axes.set_xticks(range(len(CASES)), labels)
    axes.set_ylim(100.0 * MIN, 112.0)
