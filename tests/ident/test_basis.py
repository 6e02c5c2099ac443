"""Regressors of an output-error fit: combinations of orthonormal filters are the derivatives of simulated outputs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netctrl.ident.descent.basis import Basis
from netctrl.ident.descent.kernels import simulate
from netctrl.ident.descent.output_error import compressed

POLES = {
    "spread": [0.9, -0.5, 0.6 + 0.7j, 0.6 - 0.7j],
    "equal": [0.7, 0.7, 0.7],
    "close pairs": [0.5 + 1e-9j, 0.5 - 1e-9j, 0.5],
    "at one": [1.0 - 1e-9, 0.2],
    "dead": [0.0, 0.0],
    "unstable": [1.02, 0.3],
}


def with_poles(poles: list[complex], random: np.random.Generator) -> np.ndarray:
    """A dense matrix of these poles, equal ones in one Jordan block."""
    companion = np.diag(np.ones(len(poles) - 1), -1)
    companion[0] = -np.poly(poles)[1:].real
    turn = np.linalg.qr(random.standard_normal(companion.shape))[0]
    return turn @ companion @ turn.T


def outputs(A: np.ndarray, B: np.ndarray, C: np.ndarray, D: np.ndarray, x: np.ndarray, u: np.ndarray) -> np.ndarray:
    return simulate(*(np.ascontiguousarray(each) for each in (A, B, C, D)), x, u)


@pytest.mark.parametrize("poles", POLES.values(), ids=POLES)
@pytest.mark.parametrize("direct", [0, 2])
def test_each_regressor_is_the_response_to_its_parameter(poles: list[complex], direct: int) -> None:
    random = np.random.default_rng(7)
    n, m, p, T = len(poles), 2, 3, 90
    A, B, C = with_poles(poles, random), random.standard_normal((n, m)), random.standard_normal((p, n))
    x, u, nothing = random.standard_normal(n), random.standard_normal((T, m)), np.zeros((p, m))
    basis = Basis.of(A)
    ((_, signals),) = basis.signals(B, x, u, direct)
    every = np.eye(n * n + p * n)
    found = np.einsum("ts,ksw->tkw", signals, basis.maps(C, B, x, m, direct, every))
    truth = [outputs(A, 0.0 * B, C, nothing, each, u) for each in np.eye(n)]
    states = outputs(A, B, np.eye(n), np.zeros((n, m)), x, u)
    for i in range(n):  # dA enters as B does, driven by the states
        for q in range(n):
            truth.append(outputs(A, np.eye(n)[:, i : i + 1], C, nothing[:, :1], 0.0 * x, states[:, q : q + 1].copy()))
    truth += [np.outer(states[:, q], np.eye(p)[k]) for k in range(p) for q in range(n)]
    for i in range(n):
        truth += [outputs(A, np.outer(np.eye(n)[i], np.eye(m)[j]), C, nothing, 0.0 * x, u) for j in range(m)]
    truth += [np.outer(u[:, j], np.eye(p)[k]) for k in range(p) for j in range(direct)]
    truth += [np.outer(np.ones(T), each) for each in np.eye(p)]
    expected = np.stack(truth, axis=2)
    size = np.abs(expected).max(axis=(0, 1))
    assert found.shape == expected.shape
    assert (np.abs(found - expected).max(axis=(0, 1)) <= 1e-7 * np.maximum(size, 1.0)).all()


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(-0.98, 0.98), min_size=1, max_size=4),
    st.lists(st.tuples(st.floats(0.0, 0.98), st.floats(0.0, np.pi)), max_size=2),
)
def test_filters_of_white_noise_are_orthonormal(real: list[float], pairs: list[tuple[float, float]]) -> None:
    poles = [*real, *(r * np.exp(sign * 1j * angle) for r, angle in pairs for sign in (1.0, -1.0))]
    basis = Basis.of(with_poles(poles, np.random.default_rng(1)))
    assert basis.F @ basis.F.T + np.outer(basis.b, basis.b) == pytest.approx(np.eye(len(poles)), abs=1e-9)


def test_missing_outputs_leave_their_own_rows_out_alone() -> None:
    random = np.random.default_rng(3)
    A, C = with_poles([0.8, 0.3], random), random.standard_normal((2, 2))
    u, y = random.standard_normal((70, 1)), random.standard_normal((70, 2))
    y[random.random(y.shape) < 0.2] = np.nan
    basis = Basis.of(A)
    ((_, signals),) = basis.signals(None, None, u, 1)
    maps = basis.maps(C, None, None, 1, 1, None)
    rows = np.stack([np.column_stack([signals @ maps[k], y[:, k]]) for k in range(2)], axis=1).reshape(140, -1)
    rows = rows[np.isfinite(rows[:, -1])]
    triangle, (head,) = compressed(A, C, None, None, [(u, y)], 1)
    whole = np.vstack([head, np.hstack([np.zeros((len(triangle), 2)), triangle])])
    assert whole.T @ whole == pytest.approx(rows.T @ rows, abs=1e-9 * len(rows))
