"""MPC plans by an active set in decimal arithmetic: the KKT conditions as one banded system, solved in 240 digits.

Independent of the package in form and arithmetic: no condensing, no Riccati recursion, no regulator, no floats. The set
of active bounds that it ends with meets all signs exactly, so by convexity the plan is the optimum of the data.
"""

from __future__ import annotations

from decimal import Decimal, DivisionByZero, localcontext

import numpy as np

from netctrl.mpc.problem import MpcProblem

_DIGITS = 240  # growth of 2^200 in states, its square in costs, and 50 digits beyond both
_exact = np.vectorize(Decimal, otypes=[object])


def optimal_inputs(problem: MpcProblem, state: np.ndarray, near: np.ndarray | None = None) -> np.ndarray | None:
    """Optimal inputs (P, m) of a problem without delay, output and rate weights; None where no set was found.

    `near` (P, m) are inputs to start from, such as the ones to be judged.
    """
    P, (n, m) = problem.horizon, problem.plant.B.shape
    fixed = np.zeros((P, m), dtype=int)
    mode = np.zeros((P, n), dtype=int)  # ±1 at a bound, ±2 beyond a soft one
    if near is not None:
        fixed = np.where(near >= problem.input_upper - 1e-7, 1, np.where(near <= problem.input_lower + 1e-7, -1, 0))
        x = np.array(state, dtype=float)
        for k in range(P):
            x = problem.plant.A @ x + problem.plant.B @ near[k]
            out = np.where(x > problem.state_upper + 1e-7, 1, np.where(x < problem.state_lower - 1e-7, -1, 0))
            met = np.where(
                np.abs(x - problem.state_upper) <= 1e-7, 1, np.where(np.abs(x - problem.state_lower) <= 1e-7, -1, 0)
            )
            met[problem.soft & (problem.soft_linear == 0.0)] = 0
            mode[k] = np.where(problem.soft & (out != 0), 2 * out, met)
    seen = set()
    with localcontext() as context:
        context.prec = _DIGITS
        while (key := fixed.tobytes() + mode.tobytes()) not in seen:
            seen.add(key)
            try:
                u, nu, x, mu = _solved(problem, state, fixed, mode)
            except DivisionByZero:  # more bounds than inputs can meet at once
                return None
            after = _after_inputs(problem, u, nu, fixed), _after_states(problem, x, mu, mode)
            if all(np.array_equal(one, two) for one, two in zip(after, (fixed, mode), strict=True)):
                return u.astype(float)
            fixed, mode = after
    return None


def _after_inputs(problem: MpcProblem, u: np.ndarray, nu: np.ndarray, fixed: np.ndarray) -> np.ndarray:
    after = np.zeros_like(fixed)
    for k, j in np.ndindex(*fixed.shape):
        if fixed[k, j]:
            after[k, j] = fixed[k, j] if fixed[k, j] * nu[k, j] >= 0 else 0
        else:
            after[k, j] = (u[k, j] > problem.input_upper[j]) - (u[k, j] < problem.input_lower[j])
    return after


def _after_states(problem: MpcProblem, x: np.ndarray, mu: np.ndarray, mode: np.ndarray) -> np.ndarray:
    after = np.zeros_like(mode)
    for k, i in np.ndindex(*mode.shape):
        out = int(x[k, i] > problem.state_upper[i]) - int(x[k, i] < problem.state_lower[i])
        soft, w, was = problem.soft[i], problem.soft_linear[i], int(mode[k, i])
        side = int(np.sign(was))
        if abs(was) == 1:
            after[k, i] = 2 * side if soft and side * mu[k, i] > w else side if side * mu[k, i] >= 0 else 0
        elif abs(was) == 2:
            after[k, i] = was if out == side else side if w > 0 else 0
        else:
            after[k, i] = 2 * out if soft and w == 0 else out
    return after


def _solved(problem: MpcProblem, state: np.ndarray, fixed: np.ndarray, mode: np.ndarray) -> tuple[np.ndarray, ...]:
    """u, ν, x_1 .. x_P and μ of the KKT conditions with the active bounds as equalities.

    Unknowns of one stage, in this order: u_k, ν_k, λ_{k+1}, x_{k+1}, μ_{k+1}; so the matrix is banded.
    """
    P, (n, m) = problem.horizon, problem.plant.B.shape
    A, B = _exact(problem.plant.A), _exact(problem.plant.B)
    Q, R, T = (_exact(each) for each in (problem.state_weight, problem.input_weight, problem.terminal_weight))
    one, two, x0 = Decimal(1), Decimal(2), _exact(np.asarray(state, dtype=float))
    size = 2 * m + 3 * n
    U, V, L, X, M = np.cumsum([0, m, m, n, n])
    rows = np.full((P * size, P * size), Decimal(0), dtype=object)
    right = np.full(P * size, Decimal(0), dtype=object)
    for k in range(P):
        s = k * size
        for j in range(m):
            rows[s + U + j, s + U : s + V] = two * R[j]
            rows[s + U + j, s + V + j] = one
            rows[s + U + j, s + L : s + X] = B[:, j]
            if fixed[k, j]:
                rows[s + V + j, s + U + j] = one
                right[s + V + j] = Decimal(float((problem.input_upper if fixed[k, j] > 0 else problem.input_lower)[j]))
            else:
                rows[s + V + j, s + V + j] = one
        for i in range(n):
            # The model: x_{k+1} = A x_k + B u_k.
            rows[s + L + i, s + X + i] = one
            rows[s + L + i, s + U : s + V] = -B[i]
            if k:
                rows[s + L + i, s - size + X : s - size + M] = -A[i]
            else:
                right[s + L + i] = A[i] @ x0
            # The costate: 2 Q x_{k+1} + μ_{k+1} + A'λ_{k+2} = λ_{k+1}.
            rows[s + X + i, s + X : s + M] = two * (T if k == P - 1 else Q)[i]
            rows[s + X + i, s + M + i] = one
            rows[s + X + i, s + L + i] -= one
            if k < P - 1:
                rows[s + X + i, s + size + L : s + size + X] = A[:, i]
            side = int(np.sign(mode[k, i]))
            bound = (problem.state_upper if side > 0 else problem.state_lower)[i]
            if abs(mode[k, i]) == 1:
                rows[s + M + i, s + X + i] = one
                right[s + M + i] = Decimal(float(bound))
            else:
                rows[s + M + i, s + M + i] = one
                if side:
                    rho = two * Decimal(float(problem.soft_weight[i]))
                    rows[s + M + i, s + X + i] = -rho
                    right[s + M + i] = side * Decimal(float(problem.soft_linear[i])) - rho * Decimal(float(bound))
    found = _banded(rows, right, 2 * size).reshape(P, size)
    return found[:, U:V], found[:, V:L], found[:, X:M], found[:, M:]


def _banded(rows: np.ndarray, right: np.ndarray, band: int) -> np.ndarray:
    """Solution by elimination with row pivots, of a matrix whose entries are within `band` of the diagonal."""
    size = len(right)
    for k in range(size):
        end, wide = min(k + band, size), min(k + 2 * band, size)
        pivot = k + int(np.argmax(np.abs(rows[k:end, k])))
        if pivot != k:
            rows[[k, pivot], k:wide] = rows[[pivot, k], k:wide]
            right[[k, pivot]] = right[[pivot, k]]
        for i in range(k + 1, end):
            if rows[i, k]:
                factor = rows[i, k] / rows[k, k]
                used = np.flatnonzero(rows[k, k:wide] != 0) + k
                rows[i, used] -= factor * rows[k, used]
                right[i] -= factor * right[k]
    x = np.empty(size, dtype=object)
    for k in reversed(range(size)):
        wide = min(k + 2 * band, size)
        x[k] = (right[k] - (rows[k, k + 1 : wide] @ x[k + 1 : wide] if wide > k + 1 else 0)) / rows[k, k]
    return x
