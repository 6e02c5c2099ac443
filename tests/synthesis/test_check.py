"""What a controller achieves: against SciPy, closed forms, and a simulation."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from netctrl.core.errors import InvalidValue
from netctrl.synthesis.check import spectral_radius, steady_covariance

TOLERANCE = {"scipy": 1e-10, "closed form": 1e-15, "dare": 1e-10, "law": 1e-10}


def stable(random: np.random.Generator, n: int, radius: float = 0.9) -> np.ndarray:
    A = random.normal(size=(n, n))
    return A * radius / np.abs(np.linalg.eigvals(A)).max()


def covariance(random: np.random.Generator, n: int, rank: int | None = None) -> np.ndarray:
    root = random.normal(size=(n, n if rank is None else rank))
    return root @ root.T


# --- radius ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("A", "radius"),
    [
        ([[0.3]], 0.3),
        ([[0.0, 2.0], [0.0, 0.0]], 0.0),
        ([[0.6, -0.8], [0.8, 0.6]], 1.0),
        ([[-2.0, 5.0], [0.0, 1.0]], 2.0),
        (np.zeros((0, 0)), 0.0),
        (sp.csr_array(np.diag([0.5, -0.7])), 0.7),
    ],
)
def test_spectral_radius_by_hand(A, radius) -> None:
    assert spectral_radius(A) == pytest.approx(radius, rel=1e-12, abs=1e-12)


# --- covariance -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("radius", [0.1, 0.9, 0.999])
def test_steady_covariance_is_scipys(seed: int, radius: float) -> None:
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 9))
    A, W = stable(random, n, radius), covariance(random, n, 1 + seed % n)
    expected = scipy.linalg.solve_discrete_lyapunov(A, W)
    found = steady_covariance(A, W)
    scale = np.abs(expected).max() / (1.0 - radius)
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE["scipy"], atol=TOLERANCE["scipy"] * scale)


@pytest.mark.parametrize("a", [0.0, -0.4, 0.99, 1.0 - 1e-9])
def test_the_variance_of_one_state_is_a_geometric_series(a: float) -> None:
    exact = 3.0 / ((1.0 - a) * (1.0 + a))
    assert steady_covariance([[a]], [[3.0]])[0, 0] == pytest.approx(
        exact, rel=TOLERANCE["closed form"] / (1.0 - abs(a))
    )


def test_a_delay_line_adds_up_what_enters_it() -> None:
    """Nilpotent: state j holds what entered j samples ago, so each has the variance of the input."""
    A, W = np.eye(5, k=-1), np.zeros((5, 5))
    W[0, 0] = 7.0
    assert steady_covariance(A, W).tolist() == (7.0 * np.eye(5)).tolist()


def test_a_rotation_that_shrinks_has_the_same_variance_in_both_directions() -> None:
    r, angle = 0.95, 0.3
    A = r * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    expected = np.eye(2) / (1.0 - r * r)
    np.testing.assert_allclose(steady_covariance(A, np.eye(2)), expected, rtol=1e-12, atol=1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.floats(0.0, 0.98))
@settings(max_examples=60)
def test_steady_covariance_leaves_no_residual_and_is_one(seed: int, n: int, radius: float) -> None:
    random = np.random.default_rng(seed)
    A, W = stable(random, n, radius), covariance(random, n)
    Y = steady_covariance(A, W)
    scale = np.abs(Y).max()
    assert np.abs(A @ Y @ A.T + W - Y).max() <= TOLERANCE["law"] * scale
    assert np.abs(Y - Y.T).max() <= TOLERANCE["law"] * scale
    assert np.linalg.eigvalsh(Y - W).min() >= -TOLERANCE["law"] * scale  # past disturbances only add


def test_inputs_are_left_alone() -> None:
    A, W = np.diag([0.0, 0.5]), np.eye(2)
    before = A.copy(), W.copy()
    for matrix in (A, np.zeros((2, 2))):
        steady_covariance(matrix, W)[:] = 9.0
    assert np.array_equal(A, before[0])
    assert np.array_equal(W, before[1])


def test_sparse_matrices_and_lists_do() -> None:
    dense = steady_covariance(np.diag([0.5, 0.2]), np.eye(2))
    assert np.array_equal(steady_covariance(sp.csr_array(np.diag([0.5, 0.2])), sp.eye_array(2)), dense)
    assert np.array_equal(steady_covariance([[0.5, 0.0], [0.0, 0.2]], [[1, 0], [0, 1]]), dense)


# --- cost -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_cost_of_the_regulator_is_the_trace_with_the_riccati_equations_solution(seed: int) -> None:
    random = np.random.default_rng(seed)
    n, m = 5, 2
    A, B = stable(random, n, 1.3), random.normal(size=(n, m))
    Q, R, W = covariance(random, n), covariance(random, m) + np.eye(m), covariance(random, n)
    P = scipy.linalg.solve_discrete_are(A, B, Q, R)
    K = -np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
    cost = np.sum((Q + K.T @ R @ K) * steady_covariance(A + B @ K, W))
    assert cost == pytest.approx(np.trace(P @ W), rel=TOLERANCE["dare"])


# --- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("A", [[[1.0]], [[-1.5]], [[0.0, 1.0], [-1.0, 0.0]], [[0.5, 0.0], [0.0, 2.0]]])
def test_an_unstable_matrix_has_no_covariance_and_the_radius_is_said(A) -> None:
    with pytest.raises(
        InvalidValue, match=rf"A: got 'spectral radius {spectral_radius(A):.9g}', takes a stable matrix"
    ):
        steady_covariance(A, np.eye(len(A)))


@pytest.mark.parametrize(
    ("A", "W", "message"),
    [
        ([[0.5, 0.0]], [[1.0]], r"A: got 'shape \(1, 2\)', takes a square matrix"),
        ([0.5, 0.1], [[1.0]], r"A: got 'shape \(1, 2\)', takes a square matrix"),
        ([[np.nan]], [[1.0]], "A: got 'an entry that is not finite'"),
        ([[0.5]], [[np.inf]], "W: got 'an entry that is not finite'"),
        ([[0.5]], np.eye(2), r"W: got 'shape \(2, 2\)', takes a finite real matrix of shape \(1, 1\)"),
        ([[0.5j]], [[1.0]], "A: got .* takes a finite real matrix"),
        ([[0.5, 0.1], [0.2]], [[1.0]], "A: got .* takes a finite real matrix"),
    ],
)
def test_what_is_no_matrix_is_refused(A, W, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        steady_covariance(A, W)
