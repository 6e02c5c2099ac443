"""HFTraC paper, Section VI: the four norms that it prints for the example of Fig. 7, and why they can't be made again.

Neither lambda nor the delays nor T are published. But central control costs exactly d Σ mu sigma² more than GOD,
whatever the delays of the links, and sigma is 8 Mbit/s for both demands. So the printed norms tell mu d, and d is a
whole number.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from common import Outcome
from hftrac.networks import MEGA, STEP
from matplotlib.figure import Figure

import netctrl
from netctrl.model.datasets import network_path
from netctrl.model.network import Network, read_network
from netctrl.model.network_model import InformationPattern
from netctrl.plants.linearize import network_model
from netctrl.synthesis.localized.coordinated import coordinated

PAPER = {"god": 585.49, "coordinated": 634.5, "myopic": 791.48, "centralized": 1009.269}
LABELS = {"god": "GOD", "coordinated": "coordinated", "myopic": "myopic", "centralized": "centralized"}
COLOURS = {"god": "#222222", "coordinated": "#38761d", "myopic": "#c0504d", "centralized": "#1f4e9c"}
ROUND_TRIPS = (1, 2, 3, 4)
DELAYS = range(4)


def cost(network: Network, mu: float, **options: object) -> float:
    """[(Mbit/s)²]"""
    return netctrl.hftrac(network, STEP, mu=mu, **options).certificate.cost / MEGA**2


def costs(network: Network, mu: float, rtt: int = 1) -> dict[str, float]:
    """Of all architectures [(Mbit/s)²], with a round trip to the central controller in samples."""
    return {
        "god": cost(network, mu, architecture="god"),
        "coordinated": cost(network, mu, horizon="exact"),
        "myopic": cost(network, mu, architecture="myopic"),
        "centralized": cost(network, mu, architecture="centralized", information_delay=rtt),
    }


def delayed(network: Network, hosts: int, switches: int) -> Network:
    """The testbed with other delays [samples] from hosts and between switches."""
    graph = network.to_networkx()
    for source, _, link in graph.edges(data=True):
        link["delay"] = STEP * (hosts if source.startswith("H") else switches)
    return Network.from_networkx(graph)


def with_sixth_link(network: Network) -> Network:
    """The testbed with its link from S3 to Dst, and room in it for the 57 Mbit/s of both sources."""
    graph = network.to_networkx()
    graph.add_edge("S3", "Dst", id="s3d", capacity=60.0 * MEGA)
    for demand in graph.graph["demands"]:
        demand["target"] = "Dst"
        if "split" in demand:
            demand["split"] = demand["split"] | {"s3d": 1.0}
    return Network.from_networkx(graph)


def with_slowest_word(network: Network, mu: float) -> float:
    """Coordinated cost where word travels with the data and no faster than its fluid: n_k + 2 samples a hop."""
    model = network_model(network, STEP)
    heard = np.where(model.coupling.toarray() > 0.0, model.delay + 2.0, np.inf)
    np.fill_diagonal(heard, 0.0)
    for k in range(model.n_links):
        heard = np.minimum(heard, heard[:, [k]] + heard[[k], :])
    return coordinated(model, mu, InformationPattern.from_matrix(heard)).cost / MEGA**2


def in_order(norms: dict[str, float]) -> bool:
    return norms["god"] < norms["coordinated"] < norms["myopic"] < norms["centralized"]


def main(*, full: bool = False) -> Outcome:
    network = read_network(network_path("testbed"))
    variance = sum((demand.std / MEGA) ** 2 for demand in network.demands)
    forced = (PAPER["centralized"] - PAPER["god"]) / variance
    forced_by_roots = (PAPER["centralized"] ** 2 - PAPER["god"] ** 2) / variance
    ours = {d: costs(network, forced / d, d) for d in ROUND_TRIPS}
    gods = [cost(delayed(network, n, m), forced, architecture="god") for n in DELAYS for m in DELAYS]
    computed = {f"norms-{name}": value for name, value in ours[1].items()} | {
        "norms-order": float(all(in_order(each) for each in ours.values())),
        "norms-delays": max(gods),
        "norms-two": ours[2]["god"],
        "norms-slowest": with_slowest_word(network, forced),
        "norms-sixth": cost(with_sixth_link(network), forced, architecture="myopic"),
        "norms-roots": cost(network, forced_by_roots / 2, architecture="god") ** 0.5,
    }
    data = pd.DataFrame([{"mu": mu, **costs(network, float(mu))} for mu in np.linspace(1.0, 4.6, 13)])
    return Outcome("norms", "hftrac", data, draw(data, ours, forced), computed, table(ours))


def table(ours: dict[int, dict[str, float]]) -> pd.DataFrame:
    """The paper's norms and ours, for reading."""
    rows = [["paper", *(f"{value:g}" for value in PAPER.values())]]
    rows += [[f"here, d = {d}", *(f"{found[name]:.1f}" for name in PAPER)] for d, found in ours.items()]
    return pd.DataFrame(rows, columns=["", *LABELS.values()])


def draw(data: pd.DataFrame, ours: dict[int, dict[str, float]], forced: float) -> Figure:
    figure = Figure(figsize=(7.6, 5.0), layout="constrained")
    axes = figure.subplots()
    shade = {"color": COLOURS["coordinated"], "alpha": 0.15, "lw": 0, "label": "coordinated, between the two"}
    axes.fill_between(data.mu, data.god, data.myopic, **shade)
    for name, label in {"myopic": "myopic, here", "god": "GOD, here"}.items():
        axes.plot(data.mu, data[name], color=COLOURS[name], lw=1.8, label=label)
    for d in (1, 2):
        mu = forced / d
        axes.axvline(mu, color="#999999", lw=0.8)
        axes.text(mu, 1120.0, f"d = {d}", fontsize=9.5, ha="center", bbox={"fc": "white", "ec": "none", "pad": 2.0})
        label = "centralized, here" if d == 1 else None
        axes.plot(mu, ours[d]["centralized"], "o", color=COLOURS["centralized"], ms=7, label=label)
    for name, value in PAPER.items():
        axes.axhline(value, color=COLOURS[name], ls=":", lw=1.2)
        axes.text(1.75, value + 6.0, f"paper: {LABELS[name]} {value:g}", color=COLOURS[name], fontsize=8.5)
    axes.set_xlim(1.2, 4.4)
    axes.set_ylim(0.0, 1200.0)
    axes.set_xlabel("mu")
    axes.set_ylabel("cost [(Mbit/s)²]")
    axes.legend(fontsize=8.5, loc="lower right")
    axes.set_title("the paper's testbed; its norms of GOD and centralized force mu d = 3.31", fontsize=10.5)
    figure.supxlabel(
        "Paper: 585.49 ≤ 634.5 ≤ 791.48 ≤ 1009.269. The order is reproduced, the values are not, for any d.",
        fontsize=8.5,
    )
    return figure
