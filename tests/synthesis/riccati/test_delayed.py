"""The regulator of a state that is known late: closed forms, SciPy, and the closed loop written out as one system."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from link_cases import COSTS, NETWORKS, least_cost

from netctrl.core.errors import InvalidValue, RiccatiStatus
from netctrl.model.datasets import network_path
from netctrl.model.network import read_network
from netctrl.plants.linearize import network_model, network_state_space
from netctrl.synthesis.riccati.delayed import DelayedRegulator, delayed_regulator

TOLERANCE = {"published": 1e-8, "closed form": 1e-9, "lyapunov": 1e-8, "filter": 1e-9, "no noise": 1e-6, "law": 1e-7}


def network_problem(name: str, mu: float):
    model = network_model(read_network(network_path(name)), 0.01)
    plant, H = network_state_space(model)
    Q = np.zeros((model.n_states, model.n_states))
    Q[model.first_backlog :, model.first_backlog :] = mu * np.eye(model.n_links)
    W = (H.toarray() * model.std**2) @ H.toarray().T
    return model, plant.A.toarray(), plant.B.toarray(), Q, np.eye(model.n_links), W


def system(seed: int, n: int = 3, m: int = 2, p: int = 2) -> dict[str, np.ndarray]:
    """A plant with a pole outside the circle."""
    random = np.random.default_rng(seed)
    A = random.normal(size=(n, n))
    A *= random.uniform(0.6, 1.15) / np.abs(np.linalg.eigvals(A)).max()
    root = {name: random.normal(size=(k, k)) for name, k in (("Q", n), ("R", m), ("W", n), ("V", p))}
    square = {name: value @ value.T + 0.1 * np.eye(len(value)) for name, value in root.items()}
    return {"A": A, "B": random.normal(size=(n, m)), "C": random.normal(size=(p, n))} | square


def closed_loop(made: DelayedRegulator, one: dict[str, np.ndarray]) -> tuple[float, np.ndarray]:
    """Cost and covariance of x − x̂ of the loop as it runs: the plant, what it was the last d samples, the filter's
    prediction xi of x(n − d), and the inputs since; by SciPy's Lyapunov equation.

    y(n − d) = C x(n − d) + v arrives now; x̂(n) = A^d (xi + L (y − C xi)) + Σ A^i B u(n − 1 − i).
    """
    A, B, C, d = one["A"], one["B"], one["C"], made.delay
    n, m = B.shape
    p = len(C)
    size = n * (d + 2) + m * d
    eye = np.eye(size)
    x = [eye[n * i : n * (i + 1)] for i in range(d + 1)]  # x(n), ..., x(n − d), as rows of the whole state
    xi = eye[n * (d + 1) : n * (d + 2)]
    u = [eye[n * (d + 2) + m * i :][:m] for i in range(d)]  # u(n − 1), ..., u(n − d)
    power = [np.linalg.matrix_power(A, i) for i in range(d + 1)]
    known = xi + made.L @ C @ (x[d] - xi)
    guess = power[d] @ known + sum((power[i] @ B @ u[i] for i in range(d)), np.zeros((n, size)))
    guess_v, known_v = power[d] @ made.L, made.L
    now, now_v = made.K @ guess, made.K @ guess_v
    last, last_v = (u[-1], np.zeros((m, p))) if d else (now, now_v)
    rows = [A @ x[0] + B @ now, *x[:d], A @ known + B @ last, *([now, *u[:-1]] if d else [])]
    zero = np.zeros((n, p))
    rows_v = [B @ now_v, *[zero] * d, A @ known_v + B @ last_v]
    rows_v += [now_v, *[np.zeros((m, p))] * (d - 1)] if d else []
    Phi, G = np.vstack(rows), np.vstack(rows_v)
    noise = G @ one["V"] @ G.T
    noise[:n, :n] += one["W"]
    Y = scipy.linalg.solve_discrete_lyapunov(Phi, noise)
    inputs = now @ Y @ now.T + now_v @ one["V"] @ now_v.T
    off = (x[0] - guess) @ Y @ (x[0] - guess).T + guess_v @ one["V"] @ guess_v.T
    return float(np.sum(one["Q"] * (x[0] @ Y @ x[0].T)) + np.sum(one["R"] * inputs)), off


# --- the state is measured exactly ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "mu"), COSTS)
def test_costs_of_the_theory_note(name: str, mu: float) -> None:
    _, *problem = network_problem(name, mu)
    for delay, way in enumerate(("god", "centralized")):
        cost = delayed_regulator(*problem, delay=delay).cost
        assert cost == pytest.approx(least_cost(name, mu, way), rel=TOLERANCE["published"])


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("mu", [0.02, 1.0, 30.0])
def test_a_networks_cost_is_linear_in_the_delay(name: str, mu: float) -> None:
    """GOD + d Σ mu sigma², as what enters a buffer stays there until somebody hears."""
    model, *problem = network_problem(name, mu)
    injected = model.injection.toarray() * model.std
    least = delayed_regulator(*problem).cost
    for delay in (1, 2, 5, 20):
        exact = least + delay * mu * float(np.sum(injected**2))
        assert delayed_regulator(*problem, delay=delay).cost == pytest.approx(exact, rel=TOLERANCE["closed form"])


@pytest.mark.parametrize("n", [0, 1, 4])
@pytest.mark.parametrize("mu", [0.01, 1.0, 50.0])
def test_one_link_by_hand(n: int, mu: float) -> None:
    """tau k = p/(1 + p) and cost sigma² p whatever the link's own delay."""
    A, B = np.eye(n + 2, k=-1), np.zeros((n + 2, 1))
    A[n + 1, n], A[n + 1, n + 1], B[0], B[n + 1] = 0.0, 1.0, 1.0, -1.0
    Q, W = np.zeros((n + 2, n + 2)), np.zeros((n + 2, n + 2))
    Q[-1, -1], W[-1, -1] = mu, 9.0
    p = 0.5 * (mu + np.sqrt(mu * mu + 4.0 * mu))
    made = delayed_regulator(A, B, Q, np.eye(1), W, delay=3)
    assert made.K[0, -1] == pytest.approx(p / (1.0 + p), rel=TOLERANCE["closed form"])
    assert made.cost == pytest.approx(9.0 * p + 3.0 * mu * 9.0, rel=TOLERANCE["closed form"])


@pytest.mark.parametrize("seed", range(4))
def test_without_noise_and_delay_it_is_scipys_regulator(seed: int) -> None:
    one = system(seed)
    P = scipy.linalg.solve_discrete_are(one["A"], one["B"], one["Q"], one["R"])
    made = delayed_regulator(one["A"], one["B"], one["Q"], one["R"], one["W"])
    assert made.cost == pytest.approx(np.trace(P @ one["W"]), rel=TOLERANCE["closed form"])
    assert made.filter is None
    assert not made.error.any()
    assert np.array_equal(made.L, np.eye(3))


@pytest.mark.parametrize("delay", [0, 1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_an_exact_state_in_a_closed_loop(seed: int, delay: int) -> None:
    """As with noise below, with C = L = I and none of it."""
    one = system(seed) | {"C": np.eye(3), "V": np.zeros((3, 3))}
    made = delayed_regulator(one["A"], one["B"], one["Q"], one["R"], one["W"], delay=delay)
    cost, error = closed_loop(made, one)
    assert made.cost == pytest.approx(cost, rel=TOLERANCE["lyapunov"])
    assert made.error == pytest.approx(error, rel=TOLERANCE["lyapunov"], abs=TOLERANCE["lyapunov"])


# --- with noise -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delay", [0, 1, 3])
@pytest.mark.parametrize("seed", range(6))
def test_cost_and_error_are_those_of_the_closed_loop(seed: int, delay: int) -> None:
    one = system(seed, n=2 + seed % 3, m=1 + seed % 2, p=1 + seed % 2)
    made = delayed_regulator(**one, delay=delay)
    cost, error = closed_loop(made, one)
    assert made.cost == pytest.approx(cost, rel=TOLERANCE["lyapunov"])
    assert made.error == pytest.approx(error, rel=TOLERANCE["lyapunov"], abs=TOLERANCE["lyapunov"])


@pytest.mark.parametrize("seed", range(5))
def test_the_filter_is_scipys(seed: int) -> None:
    one = system(seed)
    C, V = one["C"], one["V"]
    S = scipy.linalg.solve_discrete_are(one["A"].T, C.T, one["W"], V)
    made = delayed_regulator(**one)
    L = S @ C.T @ np.linalg.inv(C @ S @ C.T + V)
    np.testing.assert_allclose(made.L, L, rtol=TOLERANCE["filter"], atol=TOLERANCE["filter"])
    assert made.error == pytest.approx(S - L @ C @ S, rel=TOLERANCE["filter"], abs=TOLERANCE["filter"])


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_the_coordinates_of_the_state_do_not_matter_and_waiting_costs(seed: int) -> None:
    random = np.random.default_rng(seed)
    one = system(seed)
    T = 10.0 ** random.uniform(-2, 2, (3, 1)) * np.linalg.qr(random.normal(size=(3, 3)))[0]  # turned, in other units
    back = np.linalg.inv(T)
    other = one | {"A": T @ one["A"] @ back, "B": T @ one["B"], "C": one["C"] @ back, "W": T @ one["W"] @ T.T}
    other["Q"] = back.T @ one["Q"] @ back
    costs = [delayed_regulator(**one, delay=delay).cost for delay in (0, 1, 3)]
    moved = [delayed_regulator(**other, delay=delay).cost for delay in (0, 1, 3)]
    assert moved == pytest.approx(costs, rel=TOLERANCE["law"])
    assert np.all(np.diff(costs) >= 0.0)
    exact = {name: value for name, value in one.items() if name not in "CV"}
    assert delayed_regulator(**exact).cost <= costs[0] * (1.0 + TOLERANCE["law"])


# --- forms of input, and errors -------------------------------------------------------------------------------------


def test_sparse_matrices_do_and_results_are_read_only() -> None:
    one = system(2)
    made = delayed_regulator(**{name: sp.csr_array(value) for name, value in one.items()}, delay=np.int64(2))
    assert made.cost == delayed_regulator(**one, delay=2).cost
    assert made.delay == 2
    for array in (made.K, made.L, made.error):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1.0


@pytest.mark.parametrize("delay", [-1, 1.0, 0.5, True, "1", None])
def test_a_delay_that_is_no_number_of_samples_is_refused(delay) -> None:
    with pytest.raises(InvalidValue, match=r"^delay: got .* whole number of samples of at least 0"):
        delayed_regulator(1.0, 1.0, 1.0, 1.0, 1.0, delay=delay)


@pytest.mark.parametrize("alone", ["C", "V"])
def test_a_measurement_has_noise_and_noise_a_measurement(alone: str) -> None:
    with pytest.raises(InvalidValue, match="C and V"):
        delayed_regulator(1.0, 1.0, 1.0, 1.0, 1.0, **{alone: 1.0})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("A", np.zeros((2, 3))),
        ("A", [[1.0, 2.0], [3.0]]),
        ("B", np.eye(2)),
        ("Q", np.eye(2)),
        ("R", np.eye(3)),
        ("W", np.eye(2)),
        ("W", np.diag([1.0, 1.0, -1.0])),
        ("W", np.eye(3) + np.eye(3, k=1)),
        ("W", np.full((3, 3), np.nan)),
        ("C", np.eye(2)),
        ("C", [["a"]]),
        ("C", 1j * np.ones((2, 3))),
        ("V", np.eye(3)),
        ("V", -np.eye(2)),
        ("V", [[1.0, 0.0], [0.0]]),
    ],
)
def test_matrices_that_do_not_fit_are_named(name: str, value) -> None:
    with pytest.raises(InvalidValue, match=f"^{name}: got "):
        delayed_regulator(**(system(0) | {name: value}))


def test_a_pole_that_no_input_moves_gives_no_cost_but_a_status() -> None:
    for Q in (np.eye(2), np.diag([0.0, 1.0])):
        made = delayed_regulator(np.diag([2.0, 0.5]), [[0.0], [1.0]], Q, 1.0, np.eye(2), delay=1)
        assert made.regulator.status in (RiccatiStatus.NO_SOLUTION, RiccatiStatus.NOT_STABILISING)
        assert made.regulator.remedy
        assert np.isnan(made.cost)


def test_a_pole_that_no_output_shows_gives_no_cost_but_a_status() -> None:
    made = delayed_regulator(np.diag([2.0, 0.5]), np.eye(2), np.eye(2), np.eye(2), np.eye(2), C=[[0.0, 1.0]], V=1.0)
    assert made.regulator.status is RiccatiStatus.STABILISING
    assert made.filter.status is not RiccatiStatus.STABILISING
    assert np.isnan(made.cost)


def test_a_delay_of_any_length_takes_no_time() -> None:
    """Of an integrator E = d W: 1e18 samples are sixty squarings."""
    for delay in (10**6, 10**18):
        found = delayed_regulator([[1.0]], [[1.0]], [[1.0]], [[1.0]], [[2.0]], delay=delay)
        assert found.error[0, 0] == pytest.approx(2.0 * delay, rel=1e-12)
        golden = 0.5 * (1.0 + 5.0**0.5)
        assert found.cost == pytest.approx(2.0 * (delay + golden), rel=1e-12)


def test_a_delay_over_which_the_plant_overflows_is_refused() -> None:
    with pytest.raises(InvalidValue, match=r"spectral radius 1\.1") as refusal:
        delayed_regulator([[1.1]], [[1.0]], [[1.0]], [[1.0]], [[1.0]], delay=10**6)
    assert refusal.value.argument == "delay"
