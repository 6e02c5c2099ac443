"""Myopic filters, against a closed form, the controlled network step by step, dense least squares, and laws."""

from __future__ import annotations

import importlib
import json
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from link_cases import DIAMOND, TAU, Case, build, case, line, matrices, published, random_network, run

import netctrl
from netctrl.cli.design import main
from netctrl.core.errors import InvalidValue, NoAdmissibleDesign
from netctrl.model.design.design import read_design
from netctrl.model.network_model import NetworkModel
from netctrl.plants.information import information_pattern
from netctrl.synthesis.localized.coordinated import coordinated
from netctrl.synthesis.myopic.fir import MyopicFirSynthesis, myopic_fir
from netctrl.synthesis.myopic.static import myopic

FLOOR = 1e-6  # of the variance that comes to a link, which each is taken to be hit by besides
TOLERANCE = {
    "closed form": 1e-12,
    "steps": 1e-9,
    "dense": 1e-5,  # of responses, after a descent to rounding
    "dense cost": 1e-10,
    "differences": 1e-7,
    "law": 1e-12,
    "same": 1e-9,
    "order": 1e-9,
    "static": 2e-6,  # the floor's part and the descent's
    "savings": 1e-4,
}


def random_case(seed: int) -> Case:
    return case(random_network(seed, [(0, 2), (1, 3), (2, 4), (3, 5), (0, 3)], (0, 6), 3))


CASES = {
    "tandem": published("tandem"),
    "merge": published("merge"),
    "testbed": published("testbed"),
    "diamond": case(DIAMOND),
    "line": line(4),
    "random": random_case(11),
}


def responses(found: MyopicFirSynthesis) -> np.ndarray:
    """(N, T) theta."""
    return np.array([column.b[0, 0] for column in found.law.columns])


def samples(model: NetworkModel, T: int) -> int:
    """More than any response takes: each link once."""
    return int(np.sum(T + model.delay + 1)) + 1


def step_by_step(model: NetworkModel, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(samples, N, I) backlogs and rates after a deviation of each demand, the model's equation taken literally.

    Each link reckons what arrived from its own backlogs and rates.
    """
    N, T = theta.shape
    phi = theta - np.pad(theta, ((0, 0), (0, 1)))[:, 1:]
    coupling, length = model.coupling.toarray(), samples(model, T)
    b, u, v = np.zeros((3, length, N, len(model.std)))
    b[0] = model.injection.toarray() * model.std
    for n in range(length):
        v[n] = b[n] - (b[n - 1] - u[n - 1] if n else 0.0)  # of the sample before
        for link in range(N):
            past = min(n + 1, T)
            u[n, link] = phi[link, :past] @ v[n - past + 1 : n + 1, link][::-1]
        if n + 1 < length:
            # f_k(n − n_k) = u_k(n − n_k − 1)
            sent = [u[n - d - 1, k] if n > d else np.zeros(len(model.std)) for k, d in enumerate(model.delay)]
            b[n + 1] = b[n] + coupling @ np.array(sent) - u[n]
    return b, u


def costs(model: NetworkModel, mu: float | np.ndarray, theta: np.ndarray) -> tuple[float, float]:
    """Of rates and of queues."""
    b, u = step_by_step(model, theta)
    return float(np.sum(u**2)), float(np.sum(np.broadcast_to(mu, len(theta)) @ np.sum(b**2, axis=(0, 2))))


def floors(model: NetworkModel) -> np.ndarray:
    """(N,) variance that each link is taken to be hit by: shares of what comes to it in the end, whatever delays it."""
    shares = np.linalg.solve(np.eye(model.n_links) - model.coupling.toarray(), model.injection.toarray())
    return FLOOR * np.sum((shares * model.std) ** 2, axis=1)


def minimised(model: NetworkModel, mu: float | np.ndarray, theta: np.ndarray) -> float:
    """Cost and floor."""
    phi = theta - np.pad(theta, ((0, 0), (0, 1)))[:, 1:]
    return sum(costs(model, mu, theta)) + float(floors(model) @ np.sum(phi**2 + (mu * theta.T**2).T, axis=1))


def static_cost(one: Case, mu: float) -> float:
    return myopic(one.model, *matrices(one.model), mu).cost


def bound(one: Case, mu: float | np.ndarray) -> float:
    """The in-band coordinated cost."""
    return coordinated(one.model, mu, information_pattern(one.network, TAU, one.model.links, "in-band")).cost


# --- closed form ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 3])
@pytest.mark.parametrize("mu", [0.01, 1.0, 40.0])
@pytest.mark.parametrize("T", [1, 2, 7, 400])
def test_a_single_link(n: int, mu: float, T: int) -> None:
    """theta(t) = sinh((T + 1 − t) a)/sinh(T a), cost sigma² (mu + 1 − theta(2)), and sigma² p for T → ∞."""
    one = case(build([("a", "b", n)], [("a", "b", 3e6)]))
    found = myopic_fir(one.model, mu, horizon=T)
    p = 0.5 * (mu + np.sqrt(mu * mu + 4.0 * mu))
    a = np.log1p(p)
    if T < 400:
        theta = np.sinh((T - np.arange(T)) * a) / np.sinh(T * a)
        assert responses(found)[0] == pytest.approx(theta, abs=TOLERANCE["closed form"])
        second = theta[1] if T > 1 else 0.0
        assert found.cost == pytest.approx(9e12 * (mu + 1.0 - second), rel=TOLERANCE["closed form"])
    else:
        assert found.cost == pytest.approx(9e12 * p, rel=TOLERANCE["closed form"])
    assert found.horizon == T


# --- independent ways -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("mu", "T"), [(0.1, 24), (1.0, 12), (5.0, 3), (1.0, 1)])
def test_costs_are_those_of_the_network_step_by_step(name: str, mu: float, T: int) -> None:
    model = CASES[name].model
    weight = mu * np.linspace(0.5, 2.0, model.n_links)
    found = myopic_fir(model, weight, horizon=T)
    rate, queue = costs(model, weight, responses(found))
    assert found.cost_rate == pytest.approx(rate, rel=TOLERANCE["steps"])
    assert found.cost_queue == pytest.approx(queue, rel=TOLERANCE["steps"])
    assert found.cost == pytest.approx(rate + queue, rel=TOLERANCE["steps"])
    expected = minimised(model, weight, responses(found))
    assert found.sweep_costs[-1] == pytest.approx(expected, rel=TOLERANCE["steps"])


@pytest.mark.parametrize("name", CASES)
def test_the_law_does_the_same_by_equation_14(name: str) -> None:
    """With A, B and H: u and the backlogs are those that the links' filters make."""
    model, T = CASES[name].model, 12
    found = myopic_fir(model, 0.5, horizon=T)
    H = matrices(model)[2]
    w = np.zeros((samples(model, T), len(H), len(model.std)))
    w[0] = H * model.std
    x, u = run(found.law, model, w)
    b, rates = step_by_step(model, responses(found))
    scale = model.std.max()
    np.testing.assert_allclose(x[:, model.first_backlog :] / scale, b / scale, atol=TOLERANCE["law"])
    np.testing.assert_allclose(u / scale, rates / scale, atol=TOLERANCE["law"])
    assert found.cost == pytest.approx(np.sum(rates**2) + 0.5 * np.sum(b**2), rel=TOLERANCE["steps"])


def test_what_hits_any_state_is_gone_and_a_link_knows_only_itself() -> None:
    model, T = CASES["diamond"].model, 8
    law = myopic_fir(model, 0.5, horizon=T).law
    n, length = model.n_states, samples(model, T)
    w = np.zeros((length + 1, n, n))
    w[0] = np.eye(n)
    x, u = run(law, model, w)
    assert max(np.abs(x[-1]).max(), np.abs(u[-1]).max()) < TOLERANCE["law"]
    feeds = np.linalg.inv(np.eye(model.n_links) - model.coupling.toarray()) > 0.0  # row: reached from column
    owner = np.concatenate([np.repeat(np.arange(model.n_links), model.delay + 1), np.arange(model.n_links)])
    for state in range(n):
        moved = np.abs(u[:, :, state]).max(axis=0) > TOLERANCE["law"]
        reached = feeds[:, owner[state]].copy()
        if state < model.first_backlog:  # a rate that wasn't commanded doesn't come back to its link
            reached[owner[state]] = False
        np.testing.assert_array_equal(moved, reached)
    for link, column in enumerate(law.columns):
        assert column.links.tolist() == [link]
        assert column.u.shape == column.b.shape == (model.delay[link] + 2, 1, T)


@pytest.mark.parametrize("name", CASES)
def test_no_link_can_do_better_by_dense_least_squares(name: str) -> None:
    """All that is affine in one link's theta, by steps, one theta(t) at a time."""
    model, T, mu = CASES[name].model, 7, 0.6
    found = myopic_fir(model, mu, horizon=T, tolerance=1e-15)
    theta, floor = responses(found), floors(model)

    def rows(changed: np.ndarray) -> np.ndarray:
        b, u = step_by_step(model, changed)
        phi = changed - np.pad(changed, ((0, 0), (0, 1)))[:, 1:]
        alone = np.sqrt(floor)[:, None] * np.hstack([phi, np.sqrt(mu) * changed])
        return np.concatenate([u.ravel(), np.sqrt(mu) * b.ravel(), alone.ravel()])

    here = rows(theta)
    for link in range(model.n_links):
        moves = []
        for t in range(1, T):
            changed = theta.copy()
            changed[link, t] += 1.0
            moves.append(rows(changed) - here)
        step = np.linalg.lstsq(np.array(moves).T, -here, rcond=None)[0]
        assert np.abs(step).max() < TOLERANCE["dense"]
        best = np.sum((here + np.array(moves).T @ step) ** 2)
        assert found.sweep_costs[-1] == pytest.approx(best, rel=TOLERANCE["dense cost"])


@pytest.mark.parametrize("name", ["tandem", "diamond", "random"])
def test_the_gradient_is_the_minimised_costs(name: str) -> None:
    """By differences, where the descent was ended early."""
    model, T, mu = CASES[name].model, 5, 2.0
    found = myopic_fir(model, mu, horizon=T, tolerance=1e-2)
    theta, step = responses(found), 1e-4
    slopes = []
    for link in range(model.n_links):
        for t in range(1, T):
            move = np.zeros_like(theta)
            move[link, t] = step
            ahead, behind = (np.log(minimised(model, mu, theta + sign * move)) for sign in (1, -1))
            slopes.append((ahead - behind) / (2.0 * step))
    assert found.gradient == pytest.approx(np.abs(slopes).max(), abs=TOLERANCE["differences"])
    assert myopic_fir(model, mu, horizon=T, tolerance=1e-14).gradient < 1e-6


# --- laws -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("mu", [0.01, 1.0, 30.0])
def test_sweeps_never_raise_the_cost(name: str, mu: float) -> None:
    found = myopic_fir(CASES[name].model, mu, tolerance=1e-8)
    for before, after in pairwise(found.sweep_costs):
        assert after <= before * (1.0 + TOLERANCE["law"])
    assert found.sweeps == len(found.sweep_costs) - 1 >= 1
    assert abs(found.decrease) <= 1e-8
    assert found.cost <= found.sweep_costs[-1] <= found.cost * (1.0 + 300.0 * FLOOR)


@pytest.mark.parametrize("name", CASES)
def test_a_longer_filter_is_no_worse(name: str) -> None:
    found = [myopic_fir(CASES[name].model, 0.2, horizon=T, tolerance=1e-12) for T in (1, 2, 3, 5, 8, 12, 20, 40)]
    for shorter, longer in pairwise(found):
        assert longer.sweep_costs[-1] <= shorter.sweep_costs[-1] * (1.0 + TOLERANCE["order"])


@given(st.integers(0, 2**32 - 1), st.floats(-2.0, 1.5), st.integers(1, 40))
@settings(max_examples=40)
def test_no_filter_beats_coordination(seed: int, decades: float, T: int) -> None:
    one, random = random_case(seed), np.random.default_rng(seed)
    mu = 10.0**decades * random.uniform(0.5, 2.0, one.model.n_links)
    found = myopic_fir(one.model, mu, horizon=T, tolerance=1e-5)
    assert found.cost >= bound(one, mu) * (1.0 - TOLERANCE["order"])
    assert found.cost == pytest.approx(sum(costs(one.model, mu, responses(found))), rel=TOLERANCE["steps"])
    assert np.diff(found.sweep_costs).max() <= TOLERANCE["law"] * found.cost


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("mu", [0.05, 1.0])
def test_long_filters_cost_no_more_than_static_gains(seed: int, mu: float) -> None:
    one = random_case(seed)
    assert myopic_fir(one.model, mu).cost <= static_cost(one, mu) * (1.0 + TOLERANCE["static"])


@pytest.mark.parametrize(
    ("name", "mu", "expected"),
    [
        ("tandem", 0.01, 0.0110),
        ("tandem", 0.1, 0.0021),
        ("tandem", 1.0, 0.0000),
        ("merge", 0.1, 0.0021),
        ("merge", 1.0, 0.0000),
        ("testbed", 0.01, 0.0107),
        ("testbed", 0.1, 0.0023),
        ("testbed", 1.0, 0.0000),
    ],
)
def test_what_filters_save(name: str, mu: float, expected: float) -> None:
    """Of the static cost. The theory note's "≤ 0.3 %" is of two links one behind the other, and of mu of 0.1 and 1."""
    one = published(name)
    saved = 1.0 - myopic_fir(one.model, mu).cost / static_cost(one, mu)
    assert saved == pytest.approx(expected, abs=TOLERANCE["savings"])


@pytest.mark.parametrize(("mu", "expected"), [(0.01, 0.131), (0.1, 0.079), (1.0, 0.024)])
def test_filters_save_more_the_more_links_are_passed(mu: float, expected: float) -> None:
    one = line(8)
    static, least = static_cost(one, mu), bound(one, mu)
    found = myopic_fir(one.model, mu)
    assert 1.0 - found.cost / static == pytest.approx(expected, abs=1e-3)
    assert least < found.cost


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("mu", [0.02, 1.0])
def test_the_default_horizon_is_long_enough(name: str, mu: float) -> None:
    found = myopic_fir(CASES[name].model, mu, tolerance=1e-9)
    longer = myopic_fir(CASES[name].model, mu, horizon=4 * found.horizon, tolerance=1e-9)
    assert found.cost == pytest.approx(longer.cost, rel=1e-5)


def test_responses_stay_small_where_links_before_let_nothing_through() -> None:
    """Without the floor the last link of such a line amplifies more than a thousand times."""
    found = myopic_fir(line(5).model, 100.0, horizon=64)
    assert np.abs(responses(found)).max() < 10.0


def test_links_that_nothing_disturbs_have_the_filter_of_a_single_one() -> None:
    still = case(build([("A", "B", 1), ("B", "C", 2)], [("A", "C", 0.0)]))
    found = myopic_fir(still.model, 0.4, horizon=10)
    alone = myopic_fir(case(build([("A", "B", 1)], [("A", "B", 1e6)])).model, 0.4, horizon=10)
    assert (found.cost, found.gradient, found.decrease) == (0.0, 0.0, 0.0)
    for row in responses(found):
        np.testing.assert_allclose(row, responses(alone)[0], atol=TOLERANCE["law"])
    assert myopic_fir(still.model, 0.4).cost == 0.0


# --- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("horizon", [0, -1, True, 1.5, 24.0, "24", np.nan])
def test_horizons_are_whole(horizon: object) -> None:
    with pytest.raises(InvalidValue, match=r"^horizon: got .* whole number of samples of at least 1"):
        myopic_fir(published("tandem").model, 1.0, horizon=horizon)


@pytest.mark.parametrize("tolerance", [0.0, 1.0, -1e-3, np.nan, "1e-6"])
def test_tolerances_are_between_zero_and_one(tolerance: object) -> None:
    with pytest.raises(InvalidValue, match=r"^tolerance: got .* above 0 and below 1"):
        myopic_fir(published("tandem").model, 1.0, horizon=4, tolerance=tolerance)


def test_horizons_that_fill_the_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("netctrl.synthesis.myopic.fir"), "_MAX_ENTRIES", 500)
    assert myopic_fir(line(3).model, 1.0, horizon=10).horizon == 10
    with pytest.raises(
        InvalidValue, match=r"^horizon: got 100, takes a shorter horizon: the responses of 3 links take \d+ samples"
    ):
        myopic_fir(line(3).model, 1.0, horizon=100)


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_circles_are_named(n: int) -> None:
    """A link before the circle and one behind it are not in it."""
    coupling = np.zeros((n + 2, n + 2))
    for link in range(n):
        coupling[1 + (link + 1) % n, 1 + link] = 0.5
    coupling[1, 0] = coupling[n + 1, n] = 0.5
    names = ("before", *(f"around{link}" for link in range(n)), "behind")
    model = NetworkModel(TAU, np.ones(n + 2, int), coupling, np.eye(n + 2)[:, :1], np.ones(1), names)
    with pytest.raises(NoAdmissibleDesign, match=r"in a cycle \(.*\), so .* use static gains") as refused:
        myopic_fir(model, 1.0, horizon=5)
    named = str(refused.value).partition("(")[2].partition(")")[0].split(", ")
    assert set(named) <= {*names[1:-1], "..."}
    if n < 7:
        numbers = [int(name.removeprefix("around")) for name in named]
        assert len(set(numbers)) == n
        assert all(after == (before + 1) % n for before, after in pairwise([*numbers, numbers[0]]))
    else:
        assert len(named) == 5


def test_shares_of_zero_make_no_circle() -> None:
    model = published("tandem").model
    coupling = sp.csr_array((np.array([0.0, 1.0]), ([0, 1], [1, 0])), shape=(2, 2))
    assert coupling.nnz == 2
    again = NetworkModel(TAU, model.delay, coupling, model.injection, model.std, model.links)
    assert myopic_fir(again, 1.0, horizon=9).cost == myopic_fir(model, 1.0, horizon=9).cost


# --- from a network to a Design -------------------------------------------------------------------------------------


def test_a_design_with_a_horizon_is_of_filters_and_without_of_static_gains() -> None:
    one = published("merge")
    proof = netctrl.hftrac(one.network, TAU, mu=0.1, architecture="myopic", horizon=30).certificate
    found, least = myopic_fir(one.model, 0.1, horizon=30), bound(one, 0.1)
    assert (proof.cost, proof.cost_rate, proof.horizon) == (found.cost, found.cost_rate, 30)
    assert (proof.spectral_radius, proof.excess_over_exact) == (0.0, None)
    assert proof.bound == pytest.approx(least, rel=TOLERANCE["law"])
    assert proof.gap_to_bound == pytest.approx(found.cost / least - 1.0, rel=TOLERANCE["same"])
    static = netctrl.hftrac(one.network, TAU, mu=0.1, architecture="myopic")
    assert static.certificate.horizon is None
    assert static.certificate.cost > proof.cost
    counted = netctrl.hftrac(one.network, TAU, mu=0.1, architecture="myopic", horizon=np.int64(30))
    assert counted.certificate.cost == proof.cost


@pytest.mark.parametrize("horizon", ["auto", "exact", 24])
def test_beside_a_coordinated_controller_of_any_horizon_stand_static_gains(horizon) -> None:
    one = published("merge")
    proof = netctrl.hftrac(one.network, TAU, mu=0.1, horizon=horizon, compare=True).certificate
    row = {each.architecture: each for each in proof.comparison}["myopic"]
    assert row.note == "static gains, locally optimal"
    assert row.cost == pytest.approx(static_cost(one, 0.1), rel=TOLERANCE["same"])


def test_beside_filters_stands_coordinated_control_of_whatever_length_it_takes() -> None:
    network = published("merge").network
    proof = netctrl.hftrac(network, TAU, mu=0.1, architecture="myopic", horizon=4, compare=True).certificate
    rows = {each.architecture: each for each in proof.comparison}
    assert rows["myopic"].note == "filters of 4 samples, locally optimal"
    assert rows["coordinated"].cost == netctrl.hftrac(network, TAU, mu=0.1).certificate.cost
    assert rows["myopic"].cost == proof.cost


def test_the_command_line_makes_table_json_file_and_picture(tmp_path, capsys) -> None:
    saved, picture = tmp_path / "design.json", tmp_path / "network.png"
    requested = ["hftrac", "--network", "tandem", "--mu", "1", "--architecture", "myopic", "--horizon", "24"]
    assert main([*requested, "-o", str(saved), "--plot", str(picture)]) == 0
    said, told = capsys.readouterr()
    assert told == ""
    assert "24 samples\n" in said
    assert picture.stat().st_size > 3000
    assert main([*requested, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["law"]["kind"] == "fir"
    assert answer["certificate"]["cost"] == pytest.approx(14.36733e12, rel=1e-6)
    assert read_design(saved).certificate.cost == answer["certificate"]["cost"]
