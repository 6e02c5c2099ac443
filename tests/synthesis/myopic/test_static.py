"""Myopic control, against the theory note's costs, a closed form, SciPy's Lyapunov equation and differences of it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from link_cases import COSTS, MBPS2, TAU, least_cost, matrices

from netctrl.core.errors import InvalidValue, NoAdmissibleDesign
from netctrl.model.datasets import network_path
from netctrl.model.network import Demand, Link, Network, read_network
from netctrl.model.network_model import NetworkModel
from netctrl.plants.information import information_pattern
from netctrl.plants.linearize import network_model, network_state_space
from netctrl.synthesis.localized.coordinated import coordinated
from netctrl.synthesis.myopic.static import MyopicSynthesis, myopic

TOLERANCE = {
    "published": 1e-6,
    "lyapunov": 1e-9,
    "closed form": 1e-8,
    "differences": 2e-6,
    "gradient": 1e-6,
    "same": 1e-7,
    "order": 1e-9,
}


class Problem(NamedTuple):
    network: Network
    model: NetworkModel
    A: np.ndarray
    B: np.ndarray
    H: np.ndarray


def problem(network: Network) -> Problem:
    model = network_model(network, TAU)
    return Problem(network, model, *matrices(model))


def published(name: str) -> Problem:
    return problem(read_network(network_path(name)))


def circle(n: int = 4, hops: int = 3, std: float = 1.0) -> Problem:
    """n links around, and from each node a demand that goes `hops` links far: no first link and no last."""
    links = [
        Link(id=f"l{k}", source=str(k), target=str((k + 1) % n), capacity="1Gbit", delay=(k % 3) * TAU)
        for k in range(n)
    ]
    demands = [
        Demand(source=str(k), target=str((k + hops) % n), mean="1Mbit", std=std * (1 + k) * 1e6) for k in range(n)
    ]
    return problem(Network(links=tuple(links), demands=tuple(demands)))


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "tandem": lambda: published("tandem"),
    "merge": lambda: published("merge"),
    "testbed": lambda: published("testbed"),
    "circle": circle,
}


def design(one: Problem, mu: float | np.ndarray) -> MyopicSynthesis:
    return myopic(one.model, one.A, one.B, one.H, mu)


def closed_loop(one: Problem, k: np.ndarray, g: np.ndarray) -> np.ndarray:
    """By the description: u_l = k_l b_l + g_l f_l."""
    F = np.zeros(one.B.shape[::-1])
    for link in range(one.model.n_links):
        F[link, one.model.first_backlog + link] = k[link]
        F[link, one.model.first_rate[link]] = g[link]
    return F


def costs(one: Problem, mu: float | np.ndarray, k: np.ndarray, g: np.ndarray) -> tuple[float, float]:
    """Of rates and of queues, by SciPy."""
    F = closed_loop(one, k, g)
    Y = scipy.linalg.solve_discrete_lyapunov(one.A + one.B @ F, (one.H * one.model.std**2) @ one.H.T)
    backlogs = np.diag(Y)[one.model.first_backlog :]
    return float(np.trace(F @ Y @ F.T)), float(np.sum(mu * backlogs))


def differences(value: Callable[[np.ndarray], float], z: np.ndarray, step: float = 1e-5) -> np.ndarray:
    return np.array([(value(z + step * e) - value(z - step * e)) / (2.0 * step) for e in np.eye(len(z))])


# --- published numbers and a closed form ----------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "mu"), COSTS)
def test_costs_of_the_theory_note(name: str, mu: float) -> None:
    cost = design(published(name), mu).cost
    assert cost == pytest.approx(least_cost(name, mu, "myopic"), rel=TOLERANCE["published"])


@pytest.mark.parametrize("n", [0, 1, 4])
@pytest.mark.parametrize("mu", [0.01, 1.0, 40.0])
def test_a_single_link_knows_all_there_is(n: int, mu: float) -> None:
    """k = p/(1 + p), g = 0 and cost sigma² p with p = (mu + √(mu² + 4 mu))/2, as GOD."""
    link = Link(source="a", target="b", capacity="1Gbit", delay=n * TAU)
    one = problem(Network(links=(link,), demands=(Demand(source="a", target="b", mean="1Mbit", std="3Mbit"),)))
    found = design(one, mu)
    p = 0.5 * (mu + np.sqrt(mu * mu + 4.0 * mu))
    assert found.cost / MBPS2 == pytest.approx(9.0 * p, rel=TOLERANCE["closed form"])
    assert found.law.backlog_gain == pytest.approx([p / (1.0 + p)], abs=1e-5)
    assert found.law.rate_gain == pytest.approx([0.0], abs=1e-5)


# --- independent ways -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("mu", [0.1, 3.0])
def test_costs_and_radius_are_those_of_the_closed_loop(name: str, mu: float) -> None:
    one = PROBLEMS[name]()
    found = design(one, mu)
    k, g = found.law.backlog_gain, found.law.rate_gain
    rate, queue = costs(one, mu, k, g)
    assert found.cost_rate == pytest.approx(rate, rel=TOLERANCE["lyapunov"])
    assert found.cost_queue == pytest.approx(queue, rel=TOLERANCE["lyapunov"])
    assert found.cost == pytest.approx(rate + queue, rel=TOLERANCE["lyapunov"])
    poles = np.linalg.eigvals(one.A + one.B @ closed_loop(one, k, g))
    assert found.spectral_radius == pytest.approx(np.abs(poles).max(), rel=1e-9)
    assert found.spectral_radius < 1.0


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_slope_that_the_descent_follows_is_the_costs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Away from the optimum, by differences."""
    one, mu = PROBLEMS[name](), 0.7
    module = importlib.import_module("netctrl.synthesis.myopic.static")
    seen, descend = [], module.minimize
    monkeypatch.setattr(module, "minimize", lambda cost, z, **how: seen.append(cost) or descend(cost, z, **how))
    design(one, mu)
    (cost,) = seen
    random = np.random.default_rng(2)
    for _ in range(5):
        z = random.normal(scale=0.5, size=2 * one.model.n_links)
        slope = differences(lambda z: cost(z)[0], z)
        assert cost(z)[1] == pytest.approx(slope, rel=TOLERANCE["differences"], abs=TOLERANCE["differences"])


# --- optimality -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("mu", [0.1, 1.0])
def test_no_gains_nearby_cost_less(name: str, mu: float) -> None:
    one = PROBLEMS[name]()
    found = design(one, mu)
    N, random = one.model.n_links, np.random.default_rng(4)
    best = np.concatenate([found.law.backlog_gain, found.law.rate_gain])
    value = lambda z: sum(costs(one, mu, z[:N], z[N:])) / found.cost  # noqa: E731
    for size in (1e-3, 1e-2, 0.05):
        assert min(value(best + size * random.normal(size=2 * N)) for _ in range(20)) > 1.0 - 1e-12
    slope = np.abs(differences(value, best)).max()
    assert slope <= TOLERANCE["gradient"]
    assert found.gradient == pytest.approx(slope, abs=TOLERANCE["differences"])


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("mu", [0.1, 1.0])
def test_what_other_links_know_is_worth_something(name: str, mu: float) -> None:
    one = PROBLEMS[name]()
    links = one.model.links
    pattern = information_pattern(one.network, TAU, links, "in-band")
    assert design(one, mu).cost > coordinated(one.model, mu, pattern).cost


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1), st.floats(-2.0, 2.0), st.floats(-6.0, 6.0))
@settings(max_examples=15)
def test_units_do_not_matter_and_coordination_never_costs_more(seed: int, decades: float, unit: float) -> None:
    random = np.random.default_rng(seed)
    one = PROBLEMS[str(random.choice(list(PROBLEMS)))]()
    mu = 10.0**decades * random.uniform(0.5, 2.0, one.model.n_links)
    found = design(one, mu)
    model = one.model
    scaled = NetworkModel(TAU, model.delay, model.coupling, model.injection, model.std * 10.0**unit, model.links)
    again = design(one._replace(model=scaled), mu)
    assert again.cost == pytest.approx(100.0**unit * found.cost, rel=TOLERANCE["same"])
    assert again.spectral_radius == pytest.approx(found.spectral_radius, rel=1e-3)
    pattern = information_pattern(one.network, TAU, model.links, "in-band")
    assert coordinated(model, mu, pattern).cost <= found.cost * (1.0 + TOLERANCE["order"])


def test_demands_that_do_not_fluctuate_cost_nothing() -> None:
    found = design(circle(std=0.0), 1.0)
    assert found.cost == 0.0
    assert found.spectral_radius < 1.0


# --- errors ---------------------------------------------------------------------------------------------------------


def test_matrices_are_the_models() -> None:
    one, other = published("tandem"), published("merge")
    for name in ("A", "B", "H"):
        with pytest.raises(InvalidValue, match=rf"^{name}: got 'ndarray of shape .* takes a dense array of shape"):
            design(one._replace(**{name: getattr(other, name)}), 1.0)
    with pytest.raises(InvalidValue, match=r"^A: got 'csr_array of shape"):
        design(one._replace(A=network_state_space(one.model)[0].A), 1.0)


def test_fluid_that_never_leaves_has_no_controller() -> None:
    model = NetworkModel(TAU, np.array([1, 0]), np.array([[0.0, 1.0], [1.0, 0.0]]), np.eye(2)[:, :1], np.ones(1))
    with pytest.raises(NoAdmissibleDesign, match="circulates in a cycle of links and never leaves"):
        myopic(model, *matrices(model), 1.0)
