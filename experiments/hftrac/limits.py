"""HFTraC paper, Section VI: FIFO and static smoothing as the limits of the weight mu, on the paper's three networks."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from common import Outcome
from hftrac.networks import MEGA, STEP
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import netctrl
from netctrl.model.datasets import network_path
from netctrl.model.network import read_network
from netctrl.model.network_model import NetworkModel
from netctrl.plants.linearize import network_model, network_state_space
from netctrl.synthesis.check import steady_covariance

NETWORKS = {"tandem": "#1f4e9c", "merge": "#b45f06", "testbed": "#38761d"}
WAYS = {
    "god": {"architecture": "god"},
    "coordinated": {"horizon": "exact"},
    "myopic": {"architecture": "myopic"},
    "centralized": {"architecture": "centralized", "information_delay": 1},
}
LABELS = {"god": "GOD", "coordinated": "coordinated", "myopic": "myopic", "centralized": "centralized, d = 1"}
COLOURS = {"god": "#222222", "coordinated": "#38761d", "myopic": "#c0504d", "centralized": "#1f4e9c"}
STYLES = {"god": "-", "coordinated": "--", "myopic": "-", "centralized": "-"}
SMALL, LARGE = 1e-6, 1e6
"""Weights near the limits."""


@dataclass(frozen=True, slots=True)
class Fifo:
    """What empties every buffer at once, u = Δx + b, and what it costs."""

    gain: np.ndarray
    """(N, n) K."""
    rates: float
    """Σ Var f [(Mbit/s)²]."""
    variance: float
    """Σ sigma² of what enters, over the links it enters at [(Mbit/s)²]."""

    def cost(self, mu: np.ndarray) -> np.ndarray:
        """Σ Var f + mu Σ sigma²."""
        return self.rates + mu * self.variance


def fifo(model: NetworkModel) -> Fifo:
    """Δx_l(n) = Σ_k c_lk f_k(n − n_k) is in the state; what demands send at n is not."""
    system, H = network_state_space(model)
    N, n = model.n_links, model.n_states
    gain = np.zeros((N, n))
    gain[:, model.first_rate[:-1] + model.delay] = model.coupling.toarray()
    gain[np.arange(N), model.first_backlog + np.arange(N)] = 1.0
    W = (H.toarray() * (model.std / MEGA) ** 2) @ H.toarray().T
    rates = float(np.sum((gain.T @ gain) * steady_covariance(system.A + system.B @ gain, W)))
    return Fifo(gain, rates, float(np.trace(W)))


def main(*, full: bool = False) -> Outcome:
    grid = np.geomspace(SMALL, LARGE, 25)
    data = pd.concat([sweep(name, grid) for name in NETWORKS], ignore_index=True)
    fronts = testbed_fronts(np.geomspace(1e-3, 1e3, 19))
    both = pd.concat({"limits": data, "fronts": fronts}, names=["part", "row"]).reset_index()
    return Outcome("limits", "hftrac", both, draw(data, fronts), compute(data))


def sweep(name: str, grid: np.ndarray) -> pd.DataFrame:
    """GOD's cost [(Mbit/s)²] and gain against the limits, by mu."""
    network = read_network(network_path(name))
    limit = fifo(network_model(network, STEP))
    rows = []
    for mu in grid:
        design = netctrl.hftrac(network, STEP, mu=float(mu), architecture="god")
        proof = design.certificate
        rows.append(
            {
                "network": name,
                "mu": float(mu),
                "cost": proof.cost / MEGA**2,
                "rates": proof.cost_rate / MEGA**2,
                "backlogs": proof.cost_queue / MEGA**2 / mu,
                "fifo": limit.cost(mu),
                "entering": limit.variance,
                "gain": np.abs(design.law.gain).max(),
                "from_fifo": np.abs(design.law.gain - limit.gain).max(),
            }
        )
    return pd.DataFrame(rows)


def testbed_fronts(grid: np.ndarray) -> pd.DataFrame:
    """How much backlogs and rates fluctuate under each architecture, by mu."""
    network = read_network(network_path("testbed"))
    rows = []
    for way, options in WAYS.items():
        for mu in grid:
            proof = netctrl.hftrac(network, STEP, mu=float(mu), **options).certificate
            backlog, rate = np.sqrt([proof.cost_queue / mu, proof.cost_rate])
            backlog_kbit = backlog * STEP / 1e3
            rows.append({"architecture": way, "mu": mu, "backlogs_kbit": backlog_kbit, "rates": rate / MEGA})
    return pd.DataFrame(rows)


def slope(data: pd.DataFrame, column: str) -> float:
    """d log column / d log mu at the least mu; of all networks the one that is farthest from a half in size."""
    found = []
    for _, part in data.groupby("network"):
        first, second = part.iloc[:2].to_dict("records")
        found.append(np.log(second[column] / first[column]) / np.log(second["mu"] / first["mu"]))
    return float(max(found, key=lambda each: abs(abs(each) - 0.5)))


def steps_back(data: pd.DataFrame) -> int:
    """Steps of mu at which rates don't fluctuate more, or backlogs not less."""
    parts = [part for _, part in data.groupby("network")]
    return sum(int((np.diff(part.rates) <= 0.0).sum() + (np.diff(part.backlogs) >= 0.0).sum()) for part in parts)


def myopic_over_god(mu: float) -> float:
    network = read_network(network_path("testbed"))
    cost = [netctrl.hftrac(network, STEP, mu=mu, architecture=way).certificate.cost for way in ("myopic", "god")]
    return cost[0] / cost[1]


def compute(data: pd.DataFrame) -> dict[str, float]:
    small, large = data[data.mu == data.mu.min()], data[data.mu == data.mu.max()]
    waits = large.mu * large.entering
    return {
        "limits-fifo-gain": float(large.from_fifo.max()),
        "limits-fifo-cost": float((large.cost / waits).max()),
        "limits-fifo-rates": float(((large.cost - waits) / (large.fifo - waits)).min()),
        "limits-fifo-myopic": myopic_over_god(1e4),
        "limits-smoothing-gain": float(small.gain.max()),
        "limits-smoothing-gain-slope": slope(data, "gain"),
        "limits-smoothing-cost": slope(data, "cost"),
        "limits-smoothing-backlog": slope(data, "backlogs"),
        "limits-pareto": float(steps_back(data)),
    }


def draw(data: pd.DataFrame, fronts: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(14.0, 4.8), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    draw_costs(left, data)
    draw_gains(middle, data[data.network == "testbed"])
    draw_fronts(right, fronts)
    for axes in (left, middle, right):
        axes.grid(which="major", color="#dddddd", lw=0.6)
    figure.supxlabel(
        "Paper: mu → ∞ recovers FIFO, mu → 0 static smoothing. Reproduced. Paper: FIFO's cost is 0. Not reproduced:"
        " it is Σ Var f + mu Σ sigma².",
        fontsize=9,
    )
    return figure


def draw_costs(axes: Axes, data: pd.DataFrame) -> None:
    for name, part in data.groupby("network", sort=False):
        axes.semilogx(part.mu, part.cost / part.fifo, color=NETWORKS[name], lw=1.8, label=name)
        axes.semilogx(part.mu, part.cost / part.entering / np.sqrt(part.mu), color=NETWORKS[name], ls="--", lw=1.4)
    axes.set_ylim(0.0, 2.0)
    axes.text(1e6, 1.05, "over Σ Var f + mu Σ sigma²", fontsize=9, ha="right")
    axes.text(2e-6, 1.42, "over √mu Σ sigma²", fontsize=9)
    axes.set_xlabel("mu")
    axes.legend(fontsize=8.5, loc="lower right")
    axes.set_title("cost of GOD over its limits", fontsize=10.5)


def draw_gains(axes: Axes, part: pd.DataFrame) -> None:
    axes.loglog(part.mu, part.gain, color="#222222", lw=1.8, label="greatest gain, → 0 as √mu")
    axes.loglog(part.mu, part.from_fifo, color="#c0504d", ls="--", lw=1.8, label="distance from FIFO's, → 0 as 1/mu")
    axes.set_xlabel("mu")
    axes.legend(fontsize=8.5, loc="lower center")
    axes.set_title("gains of GOD, testbed", fontsize=10.5)


def draw_fronts(axes: Axes, fronts: pd.DataFrame) -> None:
    for way, part in fronts.groupby("architecture", sort=False):
        axes.plot(part.backlogs_kbit, part.rates, STYLES[way], color=COLOURS[way], lw=1.6, label=LABELS[way])
    axes.set(xlim=(0.0, 550.0), ylim=(0.0, 16.0))
    axes.text(172.0, 15.1, "mu = 1000", fontsize=9)
    axes.text(545.0, 0.9, "mu = 0.001", fontsize=9, ha="right")
    axes.set(xlabel="√Σ Var b [kbit]", ylabel="√Σ Var f [Mbit/s]")
    axes.legend(fontsize=8.5, loc="upper right")
    axes.set_title("buffers against smoothness, testbed", fontsize=10.5)
