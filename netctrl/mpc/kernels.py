"""Recursions over the stages of an MPC problem, compiled; nothing is checked here. Names as in `netctrl.mpc.stages`."""

from __future__ import annotations

import numpy as np

from netctrl.core.jit import INLINED, njit

_EPS = float(np.finfo(float).eps)
_TINY = float(np.finfo(float).tiny)
_SMALL = 1e-3  # relative to the widest input: the smallest unit of errors


@njit(fastmath={"reassoc"}, **INLINED)
def add_product(total: np.ndarray, M: np.ndarray, x: np.ndarray) -> None:
    """total += M x; sums in any order, so that they are vectorised."""
    for i in range(M.shape[0]):
        part = 0.0
        for j in range(M.shape[1]):
            part += M[i, j] * x[j]
        total[i] += part


@njit(fastmath={"reassoc"}, **INLINED)
def _add_sizes(total, M, x):
    """total += |M| |x|."""
    for i in range(M.shape[0]):
        part = 0.0
        for j in range(M.shape[1]):
            part += abs(M[i, j] * x[j])
        total[i] += part


@njit(**INLINED)
def _add_transposed(total, M, x, by):
    """total += by M'x."""
    for i in range(M.shape[0]):
        factor = by * x[i]
        if factor != 0.0:
            for j in range(M.shape[1]):
                total[j] += M[i, j] * factor


@njit(cache=True, error_model="numpy")
def roll_out(
    kind: np.ndarray, A: np.ndarray, B: np.ndarray, c: np.ndarray, gains: np.ndarray, theta: np.ndarray, V: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Inputs u_k = v_k − K_k z_k (P, m) and states z_0 .. z_P (P + 1, q) by the model, each step to rounding."""
    P, m, fed = gains.shape  # no columns where V are the inputs
    q = A.shape[1]
    inputs, z = V.copy(), np.zeros((P + 1, q))
    z[0] = theta[:q]
    for k in range(P):
        for j in range(m):
            back = 0.0
            for i in range(fed):
                back += gains[k, j, i] * z[k, i]
            inputs[k, j] -= back
        z[k + 1] = c[k]
        add_product(z[k + 1], A[kind[k]], z[k])
        add_product(z[k + 1], B[kind[k]], inputs[k])
    return inputs, z


@njit(cache=True, error_model="numpy")
def affine(
    theta: np.ndarray, pick: np.ndarray, kind: np.ndarray, Lc: np.ndarray, Lq: np.ndarray, Lr: np.ndarray,
    Le: np.ndarray, lower: np.ndarray, upper: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """L_c s_k (P, q), L_q s_k (P + 1, q), L_r s_k (P, m) and the rows' bounds less L_e s_k (P + 1, R)."""
    P, q, m, rows = len(pick) - 1, Lc.shape[1], Lr.shape[1], Le.shape[1]
    c, linear_z, linear_u = np.zeros((P, q)), np.zeros((P + 1, q)), np.zeros((P, m))
    low, high = lower.copy(), upper.copy()
    for k in range(P + 1):
        at = kind[k]
        for i in range(pick.shape[1]):
            s = theta[pick[k, i]] if pick[k, i] >= 0 else 0.0
            if s == 0.0:
                continue
            for j in range(q):
                linear_z[k, j] += Lq[at, j, i] * s
            for j in range(rows):
                low[k, j] -= Le[at, j, i] * s
                high[k, j] -= Le[at, j, i] * s
            if k < P:
                for j in range(q):
                    c[k, j] += Lc[at, j, i] * s
                for j in range(m):
                    linear_u[k, j] += Lr[at, j, i] * s
    return c, linear_z, linear_u, low, high


@njit(cache=True, error_model="numpy")
def row_values(kind: np.ndarray, E: np.ndarray, F: np.ndarray, inputs: np.ndarray, states: np.ndarray) -> np.ndarray:
    """E z_k + F u_k, shape (P + 1, R)."""
    found = np.zeros((len(states), E.shape[1]))
    for k in range(len(states)):
        add_product(found[k], E[kind[k]], states[k])
        if k < len(inputs):
            add_product(found[k], F[kind[k]], inputs[k])
    return found


@njit(cache=True, error_model="numpy")
def errors_of_plan(
    kind: np.ndarray, A: np.ndarray, B: np.ndarray, Q: np.ndarray, R: np.ndarray, N: np.ndarray, E: np.ndarray,
    F: np.ndarray, c: np.ndarray, linear_z: np.ndarray, linear_u: np.ndarray, lower: np.ndarray, upper: np.ndarray,
    rho: np.ndarray, w: np.ndarray, state_of: np.ndarray, low: np.ndarray, high: np.ndarray, K: np.ndarray,
    price: np.ndarray, first: np.ndarray, inputs: np.ndarray, states: np.ndarray, nu: np.ndarray, mu: np.ndarray,
) -> tuple[float, float, float]:  # fmt: skip
    """Errors `bounds`, `stationarity` and `gap` of `netctrl.mpc.plan.PlanResiduals`, NaN for a plan that isn't finite.

    low, high (P, m) are the inputs' bounds, lower, upper (P + 1, R) those of rows; `first` (m,) are the prices of v_0.
    """
    P, m = inputs.shape
    q, rows = states.shape[1], E.shape[1]
    unit = np.zeros(m)
    broken, gap = 0.0, 0.0
    for k in range(P):
        for j in range(m):
            wide = 0.0
            if np.isfinite(low[k, j]):
                wide = abs(low[k, j])
            if np.isfinite(high[k, j]):
                wide = max(wide, abs(high[k, j]))
            size = abs(inputs[k, j])
            unit[j] = max(unit[j], size, _SMALL * wide, _TINY)
            by = max(inputs[k, j] - high[k, j], low[k, j] - inputs[k, j], 0.0)
            broken = max(broken, by / max(wide, size, _TINY))
    costate, push, pull = np.zeros(q), np.zeros(q), np.zeros(m)
    pressed, before = np.zeros(rows), np.zeros(q)
    off, seen = 0.0, 0.0
    diagonal, crossed = np.ones(len(Q), np.bool_), np.zeros(len(Q), np.bool_)  # most weights are, and have no N
    for at in range(len(Q)):
        for i in range(q):
            for j in range(q):
                if i != j and Q[at, i, j] != 0.0:
                    diagonal[at] = False
                    break
            for j in range(m):
                if N[at, i, j] != 0.0:
                    crossed[at] = True
    rounding = 4.0 * (q + m) * _EPS
    for k in range(P, -1, -1):
        at = kind[k]
        z = states[k]
        # Rows of this stage: their distance from the bounds, without what the rounding of their terms explains.
        known = False
        for r in range(rows):
            lo, hi, y = lower[k, r], upper[k, r], mu[k, r]
            pressed[r] = 0.0
            if not (np.isfinite(lo) or np.isfinite(hi)):
                continue
            if state_of[r] >= 0:
                value = z[state_of[r]]
            else:
                value = 0.0
                for i in range(q):
                    value += E[at, r, i] * z[i]
                if k < P:
                    for j in range(m):
                        value += F[at, r, j] * inputs[k, j]
            if (y > 0.0 and not np.isfinite(hi)) or (y < 0.0 and not np.isfinite(lo)):
                y = 0.0
            pressed[r] = y
            above, below = max(value - hi, 0.0), max(lo - value, 0.0)
            if not np.isfinite(value):
                return np.nan, np.nan, np.nan
            if y == 0.0 and above == 0.0 and below == 0.0:
                continue
            if not known:
                known = True
                for i in range(q):
                    before[i] = abs(z[i]) if k == 0 else abs(c[k - 1, i])
                if k > 0:
                    _add_sizes(before, A[kind[k - 1]], states[k - 1])
                    _add_sizes(before, B[kind[k - 1]], inputs[k - 1])
            reach = 0.0
            for i in range(q):
                reach += abs(E[at, r, i]) * before[i]
            if k < P:
                for j in range(m):
                    reach += abs(F[at, r, j] * inputs[k, j])
            noise = rounding * reach
            if not np.isfinite(rho[r]):
                wide = 0.0
                if np.isfinite(lo):
                    wide = abs(lo)
                if np.isfinite(hi):
                    wide = max(wide, abs(hi))
                broken = max(broken, max(above, below) / max(wide, reach, _TINY))
                if y != 0.0:
                    gap += abs(y) * max(abs((hi if y > 0.0 else lo) - value) - noise, 0.0)
                continue
            # φ(x) + φ*(μ) − μ x, φ(x) = ρ ε² + w ε with the violation ε of x: of the bound that μ is on it is
            # ρ (ε − (|μ| − w)₊ / 2ρ)² + (w − |μ|)₊ ε + |μ| s with the slack s, and φ(x) of the other one.
            own, other = (above, below) if y >= 0.0 else (below, above)
            slack = 0.0
            if own == 0.0 and y != 0.0:
                slack = abs((hi if y > 0.0 else lo) - value)
            apart = max(abs(own - max(abs(y) - w[r], 0.0) / (2.0 * rho[r])) - noise, 0.0)
            gap += rho[r] * apart**2 + max(w[r] - abs(y), 0.0) * max(own - noise, 0.0)
            gap += abs(y) * max(slack - noise, 0.0) + rho[r] * other**2 + w[r] * other
        push[:] = linear_z[k]
        if diagonal[at]:
            for i in range(q):
                push[i] += Q[at, i, i] * z[i]
        else:
            add_product(push, Q[at], z)
        if k < P and crossed[at]:
            add_product(push, N[at], inputs[k])
        push *= 2.0
        _add_transposed(push, E[at], pressed, 1.0)
        if k < P:
            pull[:] = linear_u[k]
            add_product(pull, R[at], inputs[k])
            if crossed[at]:
                _add_transposed(pull, N[at], z, 1.0)
            pull *= 2.0
            _add_transposed(pull, B[at], costate, 1.0)
            _add_transposed(pull, F[at], pressed, 1.0)
            for j in range(m):
                u, y = inputs[k, j], nu[k, j]
                if not np.isfinite(high[k, j] if y > 0.0 else low[k, j]):
                    y = 0.0
                # An input exactly on a bound takes the multiplier with which its gradient is 0, if its sign allows it.
                side = 1.0 if u == high[k, j] else (-1.0 if u == low[k, j] else 0.0)
                if (low[k, j] == high[k, j] and side != 0.0) or -side * pull[j] > 0.0:
                    y = -pull[j]
                pull[j] += y
                seen += abs(pull[j])
                off = max(off, abs(pull[j]) / price[k, j] / unit[j])
                if y != 0.0:
                    gap += abs(y) * abs((high[k, j] if y > 0.0 else low[k, j]) - u)
            _add_transposed(push, A[at], costate, 1.0)
            _add_transposed(push, K[k], pull, -1.0)
        costate[:] = push
    whole = 0.0
    for j in range(m):
        whole += first[j] * unit[j] ** 2
    if not np.isfinite(seen + gap + broken):
        return np.nan, np.nan, np.nan
    return broken, off, np.sqrt(max(gap, 0.0) / max(whole, _TINY))
