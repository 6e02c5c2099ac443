"""HFTraC paper, Section VI: in which order the costs of the architectures come, on random networks, and from which
round trip on central control costs more than none."""

from collections.abc import Iterable

import networkx as nx
import numpy as np
import pandas as pd
from common import Outcome
from hftrac.networks import MEGA, STEP
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

import netctrl
from netctrl.model.datasets import network_path
from netctrl.model.network import Demand, Link, Network, read_network

SEED, NETWORKS = 1, 200
ROUNDING = 1e-9
"""Relative, of two costs that may be equal."""

PAPERS_NETWORKS = ("tandem", "merge", "testbed")

LABELS = {
    "coordinated": "coordinated, out of band",
    "in-band": "coordinated, in band",
    "myopic": "myopic",
    "centralized": "centralized, nearest node",
}
COLOURS = {"coordinated": "#38761d", "in-band": "#b45f06", "myopic": "#c0504d", "centralized": "#1f4e9c"}
STYLES = {"in-band": "--"}
# Of each pair the first should cost no more than the second.
ORDERS = {
    "order-god": [("god", "coordinated"), ("god", "in-band")],
    "order-centralized": [("coordinated", "centralized")],
    "order-myopic": [("coordinated", "myopic"), ("in-band", "myopic")],
    "order-bands": [("coordinated", "in-band")],
}


def random_network(rng: np.random.Generator) -> Network:
    """A connected network of 3 to 7 nodes, lines of 0 to 4 samples, and one to three demands.

    A demand takes its shortest path by delay, or splits at random among the links that bring it nearer to its target.
    """
    nodes = [f"N{k}" for k in range(rng.integers(3, 8))]
    links = [
        Link(source=one, target=other, capacity=1000 * MEGA, delay=delay * STEP)
        for pair, delay in _lines(nodes, rng).items()
        for one, other in (pair, pair[::-1])
    ]
    demands = {}
    for _ in range(rng.integers(2, 4)):
        source, target = rng.choice(nodes, 2, replace=False).tolist()
        mean = rng.uniform(1.0, 10.0) * MEGA
        std = rng.uniform(0.05, 0.5) * mean
        split = _split(links, target, rng) if rng.random() < 0.35 else None
        demands[source, target] = Demand(source=source, target=target, mean=mean, std=std, split=split)
    return Network(links=tuple(links), demands=tuple(demands.values()))


def _lines(nodes: list[str], rng: np.random.Generator) -> dict[tuple[str, str], int]:
    """Delay in samples of each line: a random tree, and a fifth of all other pairs."""
    tree = {(nodes[k], nodes[rng.integers(k)]) for k in range(1, len(nodes))}
    pairs = [(one, other) for k, one in enumerate(nodes) for other in nodes[:k]]
    return {pair: int(rng.integers(5)) for pair in pairs if pair in tree or rng.random() < 0.2}


def _split(links: list[Link], target: str, rng: np.random.Generator) -> dict[str, float]:
    """Shares in ratios of whole numbers up to 4; nearer is by random lengths, so that no route has a circle."""
    graph = nx.DiGraph()
    for link in links:
        graph.add_edge(link.target, link.source, weight=rng.uniform(0.5, 1.5))
    away = nx.single_source_dijkstra_path_length(graph, target)
    split = {}
    for node in graph:
        nearer = [link.id for link in links if link.source == node and away[link.target] < away[node]]
        parts = rng.integers(1, 5, len(nearer))
        split |= {name: float(part / parts.sum()) for name, part in zip(nearer, parts, strict=True)}
    return split


def costs(network: Network, mu: float) -> dict[str, float]:
    """Cost of each architecture [(Mbit/s)²], the round trip of central control and the break-even one [samples]."""
    options = {"architecture": "centralized", "horizon": "exact", "compare": True}
    proof = netctrl.hftrac(network, STEP, mu=mu, **options).certificate
    found = {row.architecture: row.cost / MEGA**2 for row in proof.comparison}
    for name, options in {
        "in-band": {"communication": "in-band", "horizon": "exact"},
        "truncated": {"horizon": "truncated", "tolerance": 1e-6},
        "truncated, in-band": {"horizon": "truncated", "tolerance": 1e-6, "communication": "in-band"},
    }.items():
        found[name] = netctrl.hftrac(network, STEP, mu=mu, **options).certificate.cost / MEGA**2
    return found | {
        "round_trip": proof.information_delay,
        "break_even": proof.break_even_delay_s / STEP,
        "in_time": heard_within(network, proof.nominal_rate, proof.information_delay),
        "links": proof.links,
    }


def heard_within(network: Network, used: Iterable[str], samples: int) -> bool:
    """Whether word of every demand comes in band to the controllers of all links in use within so many samples.

    Where it does, a coordinated controller can do all that a central one does. Out of band it always can: the way by
    the central controller's node is one of those that word may take.
    """
    graph = nx.DiGraph()
    lines = [link for link in network.links if link.id in set(used)]
    for link in lines:
        graph.add_edge(link.source, link.target, weight=round(link.delay / STEP))
    for demand in network.demands:
        away = nx.single_source_dijkstra_path_length(graph, demand.source)
        if any(away.get(link.source, np.inf) > samples for link in lines):
            return False
    return True


def violations(data: pd.DataFrame, pairs: list[tuple[str, str]]) -> int:
    """In how many comparisons what should cost no more does."""
    return sum(int((data[less] > data[more] * (1.0 + ROUNDING)).sum()) for less, more in pairs)


def random_networks() -> pd.DataFrame:
    """All costs on each of the random networks, under a weight that is as random."""
    rng = np.random.default_rng(SEED)
    rows = []
    for _ in range(NETWORKS):
        network, mu = random_network(rng), float(10.0 ** rng.uniform(-2.0, 2.0))
        rows.append({"network": "random", "nodes": len(network.nodes), "mu": mu, **costs(network, mu)})
    return pd.DataFrame(rows)


def break_evens() -> pd.DataFrame:
    """Break-even round trip on the paper's networks, by mu."""
    rows = []
    for name in PAPERS_NETWORKS:
        network = read_network(network_path(name))
        for mu in np.geomspace(1e-5, 1e2, 15):
            proof = netctrl.hftrac(network, STEP, mu=float(mu), horizon="exact", compare=True).certificate
            rows.append({"network": name, "mu": float(mu), "break_even": proof.break_even_delay_s / STEP})
    return pd.DataFrame(rows)


def testbed(mu: float) -> pd.DataFrame:
    """Costs on the paper's testbed by the round trip of central control, and what Appendix B makes of it."""
    network = read_network(network_path("testbed"))
    proof = netctrl.hftrac(network, STEP, mu=mu, horizon="exact", compare=True).certificate
    known = {row.architecture: row.cost / MEGA**2 for row in proof.comparison}
    known |= {"network": "testbed", "mu": mu, "break_even": proof.break_even_delay_s / STEP}
    rows = []
    for delay in range(4):
        central = netctrl.hftrac(network, STEP, mu=mu, architecture="centralized", information_delay=delay)
        rows.append(known | {"round_trip": delay, "centralized": central.certificate.cost / MEGA**2})
    variance = sum((demand.std / MEGA) ** 2 for demand in network.demands)
    data = pd.DataFrame(rows)
    return data.assign(line=data.god + data.round_trip * mu * variance)


def main(*, full: bool = False) -> Outcome:
    networks, evens, bed = random_networks(), break_evens(), testbed(1.0)
    data = pd.concat({"random": networks, "break-even": evens, "round trip": bed}, names=["part", "row"]).reset_index()
    figure = draw(networks, evens, bed)
    return Outcome("architectures", "hftrac", data, figure, compute(networks, evens, bed), prices(networks))


def compute(data: pd.DataFrame, evens: pd.DataFrame, bed: pd.DataFrame) -> dict[str, float]:
    in_time, late, away = data[data.in_time], data[~data.in_time], data[data.round_trip > 0]
    truncated = pd.concat([data["truncated"] / data["coordinated"], data["truncated, in-band"] / data["in-band"]])
    orders = {name: float(violations(data, pairs)) for name, pairs in ORDERS.items()}
    medians = {f"price-{name}": float((data[name] / data.god - 1.0).median()) for name in LABELS}
    small = evens[(evens.network == "testbed") & np.isclose(evens.mu, 1e-4)]
    return (
        orders
        | medians
        | {
            "order-in-band": float(violations(in_time, [("in-band", "centralized")])),
            "order-late": float(violations(late, [("in-band", "centralized")])),
            "price-truncated": float(truncated.max() - 1.0),
            "even-line": float((bed.centralized / bed.line - 1.0).abs().max()),
            "even-testbed": float(bed.break_even.iloc[0]),
            "even-small": float(small.break_even.iloc[0]),
            "even-random": float((away.centralized < away.myopic).sum()),
        }
    )


def prices(data: pd.DataFrame) -> pd.DataFrame:
    """By how much each architecture costs more than GOD, for reading."""
    rows = []
    for name, label in LABELS.items():
        price = data[name] / data.god - 1.0
        percent = [100.0 * price.quantile(part) for part in (0.5, 0.9, 1.0)]
        rows.append([label, *(f"{each:.0f} %" if each >= 100.0 else f"{each:.2g} %" for each in percent)])
    return pd.DataFrame(rows, columns=["cost above GOD's", "median", "a tenth are above", "greatest"])


def draw(data: pd.DataFrame, evens: pd.DataFrame, bed: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(14.0, 4.8), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    draw_prices(left, data)
    draw_testbed(middle, bed)
    draw_break_evens(right, evens)
    figure.supxlabel(
        "Paper: GOD ≤ coordinated ≤ centralized and GOD ≤ coordinated ≤ myopic. Reproduced, where word travels at least"
        " as fast as to the controller and back.",
        fontsize=9,
    )
    return figure


def draw_prices(axes: Axes, data: pd.DataFrame) -> None:
    least, share = 1e-6, np.arange(1, len(data) + 1) / len(data)
    for name, colour in COLOURS.items():
        excess = np.sort(np.maximum(data[name] / data.god - 1.0, least))
        axes.step(excess, share, where="post", color=colour, lw=1.8, ls=STYLES.get(name, "-"), label=LABELS[name])
    axes.set(xscale="log", xlim=(least, 30.0), ylim=(0.0, 1.22))
    axes.set_yticks(np.linspace(0.0, 1.0, 6))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set(xlabel="cost over GOD's, − 1", ylabel="networks with at most that")
    axes.grid(color="#dddddd", lw=0.6)
    axes.legend(fontsize=8, loc="upper left", ncols=2)
    axes.set_title(f"{len(data)} random networks, mu from 0.01 to 100", fontsize=10.5)


def draw_testbed(axes: Axes, bed: pd.DataFrame) -> None:
    central, myopic, even = COLOURS["centralized"], bed.myopic[0], bed.break_even[0]
    axes.plot(bed.round_trip, bed.line, color=central, lw=1.2, label="GOD + d Σ mu sigma²")
    axes.plot(bed.round_trip, bed.centralized, "o", color=central, ms=7, label="centralized")
    axes.axhline(myopic, color=COLOURS["myopic"], lw=1.6, label="myopic")
    label = f"coordinated ({bed.coordinated[0] / bed.god[0] - 1.0:.2%} over GOD)"
    axes.axhline(bed.coordinated[0], color=COLOURS["coordinated"], lw=1.6, label=label)
    axes.plot(even, myopic, "D", color="#222222", ms=6)
    arrow = {"arrowstyle": "-", "color": "#222222", "lw": 0.8}
    axes.annotate(f"break-even at d = {even:.2f}", (even, myopic), (0.1, 430.0), fontsize=9, arrowprops=arrow)
    axes.set_xticks(bed.round_trip)
    axes.set(ylim=(0.0, 700.0), xlabel="round trip d to the controller [samples]", ylabel="cost [(Mbit/s)²]")
    axes.grid(color="#dddddd", lw=0.6)
    axes.legend(fontsize=8.5, loc="lower right")
    axes.set_title("the paper's testbed, mu = 1", fontsize=10.5)


def draw_break_evens(axes: Axes, evens: pd.DataFrame) -> None:
    for (name, part), style in zip(evens.groupby("network", sort=False), ("-", "--", ":"), strict=True):
        axes.loglog(part.mu, part.break_even, style, color="#222222", lw=1.8, label=name)
    axes.axhline(1.0, color="#999999", lw=0.8)
    axes.text(6e-3, 4.0, "above: myopic\ncosts less", fontsize=9.5, color=COLOURS["myopic"])
    axes.text(1.3e-5, 0.55, "below: centralized\ncosts less", fontsize=9.5, color=COLOURS["centralized"])
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set(xlabel="mu", ylabel="break-even round trip [samples]")
    axes.grid(which="major", color="#dddddd", lw=0.6)
    axes.legend(fontsize=8.5, loc="upper right")
    axes.set_title("where central control costs what myopic does", fontsize=10.5)
