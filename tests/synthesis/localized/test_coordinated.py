"""Exact coordinated control, against the theory note's costs, SciPy, a dense least-squares problem, and itself run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.csgraph
import scipy.sparse.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from link_cases import COSTS, TAU, Case, case, god, least_cost, matrices, published

from netctrl.core.errors import InvalidValue, NoAdmissibleDesign
from netctrl.model.law import AgedGain
from netctrl.model.network import Demand, Link, Network
from netctrl.model.network_model import InformationPattern, NetworkModel
from netctrl.plants.information import COMMUNICATIONS
from netctrl.synthesis.localized.coordinated import coordinated
from netctrl.synthesis.localized.localized import localized
from netctrl.synthesis.myopic.static import myopic

TOLERANCE = {
    "published": 1e-8,  # the note prints ten digits
    "dare": 1e-9,
    "closed form": 1e-10,
    "dense": 1e-9,
    "run": 1e-9,
    "order": 1e-10,
    "same": 1e-10,
    "noise": 0.08,  # four deviations of a mean over 3000 samples
}

CASES = [(name, communication) for name in (*range(6), "diamond") for communication in COMMUNICATIONS]


def random_network(seed: int, circle: bool = False) -> Network:
    """Nodes in a row with some chords, delays of 0 to 2 samples, and demands by shortest paths."""
    random = np.random.default_rng(seed)
    n = int(random.integers(3, 6))
    pairs = [(k, k + 1) for k in range(n - 1)] + ([(n - 1, 0)] if circle else [])
    pairs += [tuple(sorted(random.choice(n, 2, replace=False).tolist())) for _ in range(2)]
    pairs = [pairs[row] for row in random.permutation(len(pairs))]  # numbers of links say nothing about their order
    links = [
        Link(id=f"l{row}", source=str(a), target=str(b), capacity="1Gbit", delay=int(random.integers(3)) * TAU)
        for row, (a, b) in enumerate(pairs)
    ]
    links.append(Link(id="last", source=str(n - 1), target="end", capacity="1Gbit", delay=TAU))
    demands = [
        Demand(id="far", source="0", target="end", mean="1Mbit", std="1Mbit"),
        Demand(
            id="near", source=str(random.integers(n)), target="end", mean="2Mbit", std=f"{random.uniform(0.5, 2)}Mbit"
        ),
        Demand(id="steady", source="0", target=str(n - 1), mean="1Mbit"),
    ]
    if circle:
        demands.append(Demand(id="round", source=str(n - 1), target=str(n - 2), mean="1Mbit", std="1Mbit"))
    return Network(links=tuple(links), demands=tuple(demands))


def diamond() -> Network:
    """A demand that splits at its source, over ways that join again; another enters one of them."""
    ends = {"sa": ("s", "a", 1), "jt": ("j", "t", 0), "sb": ("s", "b", 2), "bj": ("b", "j", 1), "aj": ("a", "j", 2)}
    links = [Link(id=k, source=a, target=b, capacity="1Gbit", delay=n * TAU) for k, (a, b, n) in ends.items()]
    split = {"sa": 0.3, "sb": 0.7, "aj": 1.0, "bj": 1.0, "jt": 1.0}
    demands = (
        Demand(id="both", source="s", target="t", mean="2Mbit", std="1Mbit", split=split),
        Demand(id="one", source="b", target="t", mean="1Mbit", std="3Mbit"),
    )
    return Network(links=tuple(links), demands=demands)


def problem(name: int | str) -> Network:
    return diamond() if isinstance(name, str) else random_network(name, circle=name >= 4)


def weights(model: NetworkModel, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.5, 3.0, model.n_links)


def state_weight(model: NetworkModel, mu: float | np.ndarray) -> np.ndarray:
    Q = np.zeros((model.n_states, model.n_states))
    Q[model.first_backlog :, model.first_backlog :] = np.diag(np.broadcast_to(mu, model.n_links))
    return Q


def scipys(model: NetworkModel, mu: float | np.ndarray) -> float:
    A, B, H = matrices(model)
    P = scipy.linalg.solve_discrete_are(A, B, state_weight(model, mu), np.eye(model.n_links))
    return float(np.trace(P @ (H * model.std**2) @ H.T))


def direct(feeds: Sequence[tuple[int, int]], entries: Sequence[int], delay: Sequence[int]) -> NetworkModel:
    """All of k goes on to l for each (k, l); a demand of deviation 1 at each entry."""
    N = len(delay)
    coupling = (
        sp.csr_array((np.ones(len(feeds)), np.transpose(feeds)[::-1]), shape=(N, N)) if feeds else np.zeros((N, N))
    )
    return NetworkModel(TAU, np.array(delay), coupling, np.eye(N)[:, list(entries)], np.ones(len(entries)))


PAIR = direct([(0, 1)], [0], [1, 1])


# --- published numbers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("communication", COMMUNICATIONS)
@pytest.mark.parametrize(("name", "mu"), COSTS)
def test_costs_of_the_theory_note(name: str, mu: float, communication: str) -> None:
    _, model, pattern, _ = published(name, communication)
    cost = coordinated(model, mu, pattern).cost
    assert cost == pytest.approx(least_cost(name, mu, communication), rel=TOLERANCE["published"])


# --- special cases and closed forms ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "mu"), COSTS)
def test_without_delays_it_is_god(name: str, mu: float) -> None:
    model = published(name).model
    found = coordinated(model, mu, god(model))
    assert found.cost == pytest.approx(least_cost(name, mu, "god"), rel=TOLERANCE["published"])
    assert found.cost == pytest.approx(scipys(model, mu), rel=TOLERANCE["dare"])
    assert {len(column.gains) for column in found.law.columns} == {1}


def test_a_central_controller_that_hears_late_is_not_of_this_kind() -> None:
    """Each link knows its own state at once; `delayed_regulator` is the centralized architecture."""
    with pytest.raises(InvalidValue, match="zeros on its diagonal"):
        InformationPattern.from_matrix(np.ones((2, 2)))


@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("mu", [0.01, 1.0, 40.0])
def test_one_link_by_hand(n: int, mu: float) -> None:
    """Gain p/(1 + p) and cost sigma² p, p = (mu + √(mu² + 4 mu))/2, whatever the delay; its part of the rates is
    k²/(1 − (1 − k)²) sigma²."""
    model = direct([], [0], [n])
    found = coordinated(model, mu, god(model))
    p = 0.5 * (mu + np.sqrt(mu * mu + 4.0 * mu))
    k = p / (1.0 + p)
    assert found.cost == pytest.approx(p, rel=TOLERANCE["closed form"])
    assert found.cost_rate == pytest.approx(k * k / (1.0 - (1.0 - k) ** 2), rel=TOLERANCE["closed form"])
    assert found.law.columns[0].gains[-1][0, -1] == pytest.approx(k, rel=TOLERANCE["closed form"])
    assert found.spectral_radius == pytest.approx(1.0 - k, rel=TOLERANCE["closed form"])


# --- the whole problem, densely -------------------------------------------------------------------------------------


def least_squares(one: Case, mu: np.ndarray, start: np.ndarray, heard: np.ndarray, T: int = 60) -> tuple[float, float]:
    """Σ u² + mu b² and Σ u² of the best inputs over T samples, u_l(t) = 0 while t − 1 < n_l; x(T + 1) is free.

    min z'D z s.t. E z = g with z = (u(1), x(2), u(2), ..., x(T + 1)), by the equations of Karush, Kuhn and Tucker.
    """
    A, B, _ = matrices(one.model)
    n, N = B.shape
    time, link = np.nonzero(np.arange(T)[:, None] >= heard)
    moves = sp.csr_array((np.ones(len(time)), (time * N + link, np.arange(len(time)))), shape=(T * N, len(time)))
    forward = sp.eye_array(T * n) - sp.kron(sp.eye_array(T, k=-1), A)
    E = sp.hstack([-sp.kron(sp.eye_array(T), B) @ moves, forward], format="csr")
    D = np.concatenate([np.ones(len(time)), np.tile(np.diag(state_weight(one.model, mu)), T)])
    g = np.concatenate([A @ start, np.zeros((T - 1) * n)])
    kkt = sp.block_array([[sp.diags_array(D), E.T], [E, None]], format="csc")
    z = scipy.sparse.linalg.spsolve(kkt, np.concatenate([np.zeros(len(D)), g]))[: len(D)]
    rates = float(np.sum(z[: len(time)] ** 2))
    return float(np.sum(D * z * z) + start @ state_weight(one.model, mu) @ start), rates


@pytest.mark.parametrize(("name", "communication"), CASES)
def test_costs_are_those_of_the_dense_problem(name: int | str, communication: str) -> None:
    one = case(problem(name), communication)
    mu = weights(one.model, 1)
    cost = rate = 0.0
    for std, h in zip(one.model.std, matrices(one.model)[2].T, strict=True):
        entry = int(np.flatnonzero(h)[0]) - one.model.first_backlog
        part = least_squares(one, mu, h, one.heard[:, entry])
        cost, rate = cost + std**2 * part[0], rate + std**2 * part[1]
    found = coordinated(one.model, mu, one.pattern)
    assert found.cost == pytest.approx(cost, rel=TOLERANCE["dense"])
    assert found.cost_rate == pytest.approx(rate, rel=TOLERANCE["dense"])
    assert found.residual < 1e-12


def test_costs_of_information_by_a_matrix_are_those_of_the_dense_problem() -> None:
    """The testbed, in which the links of one node hear of others at different times."""
    model = published("testbed").model
    heard = np.array([[0, 2, 1, 1, 1], [3, 0, 2, 1, 2], [0, 1, 0, 1, 2], [1, 1, 2, 0, 0], [2, 2, 4, 0, 0]], dtype=float)
    one = published("testbed")._replace(pattern=InformationPattern.from_matrix(heard), heard=heard)
    mu = weights(model, 0)
    cost = sum(64e12 * least_squares(one, mu, h, heard[:, e])[0] for e, h in enumerate(matrices(model)[2].T))
    assert coordinated(model, mu, one.pattern).cost == pytest.approx(cost, rel=TOLERANCE["dense"])


# --- the law, run as it is described --------------------------------------------------------------------------------


class Follower:
    """Each disturbance followed by itself: `made[a]` is what those of age a + 1 at one link made of the state."""

    def __init__(self, model: NetworkModel, law: AgedGain, ages: int) -> None:
        self.A, self.B, _ = matrices(model)
        self.first = model.first_backlog
        first = np.concatenate([[0], np.cumsum(law.delay + 1)])
        self.gains = []
        for column in law.columns:
            states = np.concatenate(
                [*(np.arange(first[k], first[k + 1]) for k in column.links), first[-1] + column.links]
            )
            rows = []
            for age in range(ages):
                F = np.zeros((len(law.delay), len(self.A)))
                F[np.ix_(column.links, states)] = column.gains[min(age, len(column.gains) - 1)]
                rows.append(F)
            self.gains.append(np.array(rows))
        self.made = np.zeros((len(law.delay), ages, len(self.A)))

    def step(self, disturbance: np.ndarray) -> np.ndarray:
        """u(n), and on to n + 1 with what enters each buffer."""
        u = np.array([F @ x[:, :, None] for F, x in zip(self.gains, self.made, strict=True)])[..., 0]
        moved = self.made @ self.A.T + u @ self.B.T
        self.made[:, 1:] = moved[:, :-1]  # what is older than `ages` has died out
        self.made[:, 0] = 0.0
        links = np.arange(len(disturbance))
        self.made[links, 0, self.first + links] = disturbance
        return u.sum(axis=(0, 1))


def run(model: NetworkModel, law: AgedGain, noise: np.ndarray, ages: int) -> tuple[np.ndarray, np.ndarray]:
    """Rates and backlogs of the plant itself under noise, (samples, demands)."""
    A, B, H = matrices(model)
    follower, x = Follower(model, law, ages), np.zeros(len(A))
    rates, backlogs = [], []
    for w in noise:
        u = follower.step(model.injection @ w)
        rates.append(u)
        backlogs.append(x[model.first_backlog :])
        x = A @ x + B @ u + H @ w
    return np.array(rates), np.array(backlogs)


@pytest.mark.parametrize(("name", "communication"), CASES)
def test_the_laws_response_to_an_impulse_costs_what_is_said(name: int | str, communication: str) -> None:
    one = case(problem(name), communication)
    mu = weights(one.model, 1)
    found = coordinated(one.model, mu, one.pattern)
    total = np.zeros(2)
    for demand, std in enumerate(one.model.std):
        noise = np.zeros((70, len(one.model.std)))
        noise[0, demand] = std
        u, b = run(one.model, found.law, noise, 70)
        total += np.sum(u * u), np.sum(mu * b * b)
    assert total.sum() == pytest.approx(found.cost, rel=TOLERANCE["run"])
    assert total[0] == pytest.approx(found.cost_rate, rel=TOLERANCE["run"])


def test_under_white_noise_it_costs_that_on_average_and_disturbances_add_up() -> None:
    one = published("merge", "in-band")
    found = coordinated(one.model, 1.0, one.pattern)
    noise = np.random.default_rng(11).normal(size=(3000, 2)) * one.model.std
    u, b = run(one.model, found.law, noise, 40)
    assert np.sum(u * u + b * b) / len(noise) == pytest.approx(found.cost, rel=TOLERANCE["noise"])
    assert np.sum(u * u) / len(noise) == pytest.approx(found.cost_rate, rel=TOLERANCE["noise"])
    alone = [run(one.model, found.law, noise[:200] * part, 40)[0] for part in np.eye(2)]
    np.testing.assert_allclose(sum(alone), u[:200], atol=1e-10 * np.abs(u).max())


@pytest.mark.parametrize("communication", COMMUNICATIONS)
@pytest.mark.parametrize("name", [0, 1, 5, "diamond"])
def test_no_link_answers_before_it_hears(name: int | str, communication: str) -> None:
    """Two runs that differ in one sample of one demand."""
    one = case(problem(name), communication)
    law = coordinated(one.model, 1.0, one.pattern).law
    noise = np.random.default_rng(3).normal(size=(30, len(one.model.std)))
    same = run(one.model, law, noise, 30)[0]
    for demand in np.flatnonzero(one.model.std):
        changed = noise.copy()
        changed[8, demand] += 1.0
        differs = np.abs(run(one.model, law, changed, 30)[0] - same) > 1e-12
        entry = one.model.injection.toarray()[:, demand].argmax()
        for link in range(one.model.n_links):
            when = np.flatnonzero(differs[:, link])
            assert not when.size or when[0] >= 9 + one.heard[link, entry]  # it enters the backlog one sample later
        assert np.flatnonzero(differs[:, entry])[0] == 9


# --- order and laws -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1), st.floats(-1.5, 1.5), st.booleans())
@settings(max_examples=25)
def test_who_knows_more_pays_less(seed: int, decades: float, circle: bool) -> None:
    network = random_network(seed, circle)
    out, inside = (case(network, communication) for communication in COMMUNICATIONS)
    model, mu = out.model, 10.0**decades
    costs = [coordinated(model, mu, pattern).cost for pattern in (out.pattern, inside.pattern)]
    costs = [scipys(model, mu), *costs, myopic(model, *matrices(model), mu).cost]
    for less, more in pairwise(costs):
        assert less <= more * (1.0 + TOLERANCE["order"])


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=25)
def test_the_numbers_of_the_links_do_not_matter(seed: int) -> None:
    """Also where regions are like one another but for the order of their links' numbers."""
    random = np.random.default_rng(seed)
    one = case(random_network(seed))
    two = case(random_network(seed))
    mu, N = weights(one.model, seed), one.model.n_links
    block = sp.block_diag([one.model.coupling, two.model.coupling], format="csr")
    entries = sp.block_diag([one.model.injection, two.model.injection], format="csr")
    heard = np.full((2 * N, 2 * N), inf)
    heard[:N, :N], heard[N:, N:] = one.heard, two.heard
    order = random.permutation(2 * N)
    both = NetworkModel(
        TAU, np.tile(one.model.delay, 2)[order], block[order][:, order], entries[order], np.tile(one.model.std, 2)
    )
    pattern = InformationPattern.from_matrix(heard[np.ix_(order, order)])
    alone, found = coordinated(one.model, mu, one.pattern), coordinated(both, np.tile(mu, 2)[order], pattern)
    assert found.cost == pytest.approx(2.0 * alone.cost, rel=TOLERANCE["same"])
    assert found.cost_rate == pytest.approx(2.0 * alone.cost_rate, rel=TOLERANCE["same"])


def test_like_regions_whose_numbers_run_the_other_way_have_their_own_gains() -> None:
    heard = np.full((4, 4), inf)
    heard[:2, :2] = heard[2:, 2:] = [[0, 1], [1, 0]]
    pattern = InformationPattern.from_matrix(heard)
    up = coordinated(direct([(0, 1), (2, 3)], [0, 2], [1] * 4), 1.0, pattern)
    down = coordinated(direct([(0, 1), (3, 2)], [0, 3], [1] * 4), 1.0, pattern)
    assert down.cost == pytest.approx(up.cost, rel=TOLERANCE["same"])
    for mine, turned in zip(up.law.columns[2].gains, down.law.columns[3].gains, strict=True):
        order = [2, 3, 0, 1, 5, 4]  # the states of the two links, the other way around
        np.testing.assert_allclose(turned, mine[::-1][:, order], atol=TOLERANCE["same"])


def test_links_out_of_reach_take_no_part() -> None:
    model = direct([(0, 2), (1, 2)], [0], [1, 1, 1])
    heard = np.array([[0, 3, 1], [3, 0, 1], [1, 1, 0]])
    pattern = InformationPattern.from_matrix(heard)
    deaf = InformationPattern.from_matrix(np.where(heard == 3, inf, heard))
    near, far = (coordinated(model, 1.0, pattern, reach=reach) for reach in (2, 3))
    assert near.law.columns[0].links.tolist() == [0, 2]
    assert far.law.columns[0].links.tolist() == [0, 1, 2]
    assert near.cost == pytest.approx(coordinated(model, 1.0, deaf).cost, rel=TOLERANCE["same"])
    assert far.cost < near.cost
    assert far.cost == pytest.approx(coordinated(model, 1.0, pattern).cost, rel=TOLERANCE["same"])


@pytest.mark.parametrize("name", ["tandem", "merge", "testbed"])
@pytest.mark.parametrize("communication", COMMUNICATIONS)
def test_finite_responses_come_to_it_from_above(name: str, communication: str) -> None:
    _, model, pattern, _ = published(name, communication)
    exact = coordinated(model, 1.0, pattern).cost
    costs = [localized(model, 1.0, pattern, horizon=T).cost / exact - 1.0 for T in (12, 18, 40)]
    assert costs[0] > costs[1] > 0.0
    assert costs[2] == pytest.approx(0.0, abs=TOLERANCE["order"])


# --- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reach", [-1, 1.5, "far"])
def test_a_reach_is_a_number_of_samples(reach) -> None:
    with pytest.raises(InvalidValue, match=r"^reach: got .* whole number"):
        coordinated(PAIR, 1.0, god(PAIR), reach=reach)


def test_information_of_another_network_is_refused() -> None:
    with pytest.raises(InvalidValue, match=r"^information: got 'shape \(3, 3\)', takes shape \(2, 2\)"):
        coordinated(PAIR, 1.0, InformationPattern.from_matrix(np.zeros((3, 3))))


@pytest.mark.parametrize(
    ("later", "message"), [(inf, "0 reaches 1, which learns of it never"), (4, "of 0 reaches 1 before the information")]
)
def test_who_is_on_the_route_hears_before_the_fluid_comes(later: float, message: str) -> None:
    model = PAIR
    coordinated(model, 1.0, InformationPattern.from_matrix([[0, 0], [3, 0]]))  # n + 2 is the latest
    with pytest.raises(NoAdmissibleDesign, match=message):
        coordinated(model, 1.0, InformationPattern.from_matrix([[0, 0], [later, 0]]))


def test_fluid_that_never_leaves_has_no_controller() -> None:
    with pytest.raises(NoAdmissibleDesign, match="links 0, 1 has no solution: traffic circulates among them"):
        coordinated(direct([(0, 1), (1, 0)], [0], [1, 1]), 1.0, god(PAIR))


def test_a_region_of_too_many_states_is_refused_at_the_door() -> None:
    model = direct([], [0], [2000])
    with pytest.raises(InvalidValue, match=r"exact, for a region of 2002 states.* at most 2000"):
        coordinated(model, 1.0, god(model))
