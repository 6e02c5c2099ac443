"""Refinement of a plan: Newton steps on the set of active bounds, each solved stage by stage by a Riccati recursion.

A solver's program has entries of any size where the plant is unstable and its inputs saturate; its stages don't. With
inputs at their bounds exactly, penalised states as quadratic costs and the other active states as equalities, the
optimum of a set of active bounds follows from one backward recursion, whatever the growth over the horizon.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.mpc.parametric import Case
from netctrl.mpc.stages import Regulator, widest

_EPS = float(np.finfo(float).eps)
_PATIENCE = 20  # steps without fewer wrong bounds
_ROUNDING = 64.0 * _EPS
_OFF = 1e-9  # relative distance of a row from a bound that it should meet


class Refined(NamedTuple):
    """A plan on a set of active bounds, with the multipliers of all bounds, above 0 at an upper one."""

    inputs: np.ndarray
    """(P, m), 0 where they are held."""
    states: np.ndarray
    """(P + 1, q) z_0 .. z_P."""
    input_multipliers: np.ndarray
    """(P, m)"""
    row_multipliers: np.ndarray
    """(P + 1, R)"""
    regulator: Regulator
    """Gains and prices of the inputs within their bounds while the others stay there."""


class _Active(NamedTuple):
    """Active bounds: −1 the lower one, 1 the upper one, 0 none."""

    inputs: np.ndarray
    """(P, m)"""
    rows: np.ndarray
    """(P + 1, R) bounds that rows meet with equality."""
    excess: np.ndarray
    """(P + 1, R) soft bounds that rows violate."""

    def distance(self, other: _Active) -> int:
        """Number of bounds by which the sets differ."""
        return sum(int((one != two).sum()) for one, two in zip(self, other, strict=True))


def refined(case: Case, near: tuple[np.ndarray, np.ndarray, np.ndarray] | None) -> Refined | None:
    """Optimal plan, from a plan near it or from the regulator's inputs clipped to their bounds.

    Each step solves the problem with the active bounds as equalities, then releases the bounds whose multiplier has the
    wrong sign and adds those that the step violates, until none changes (a primal-dual active-set method). None where
    their number doesn't fall for 20 steps.

    Parameters
    ----------
    case : Case
        P stages at one θ.
    near : tuple of ndarray, shapes (P, m), (P, m) and (P + 1, R), or None
        Inputs, and the multipliers of the bounds of inputs and rows.

    Source: Hintermüller, Ito, Kunisch, SIAM J. Optimization 13 (2002) 865-888, for the change of sets; Rao, Wright,
    Rawlings, J. Optimization Theory and Applications 99 (1998) 723-757, for the recursion over stages.
    """
    made = case.stages
    if near is None:
        inputs = _clipped_regulator(case)
        nu, mu = np.zeros_like(inputs), np.zeros_like(case.lower)
    else:
        inputs, nu, mu = near
    none = np.zeros_like(case.regulator.K)
    inputs, states = case.rolled(none, np.clip(inputs, made.input_lower, made.input_upper))
    active = _first(case, inputs, case.values(inputs, states), nu, mu)
    mu = np.where(active.rows != 0, mu, 0.0)
    best, patience, exact = inputs.size + 2 * mu.size + 1, _PATIENCE, False
    while patience > 0:
        with np.errstate(over="ignore", invalid="ignore"):
            found = _newton(case, inputs, states, mu, active)
        if found is None:
            return None
        plan, terms = found
        inputs, states, mu = plan.inputs, plan.states, plan.row_multipliers
        wanted = _changed(case, plan, terms, active)
        count = active.distance(wanted)
        if count == 0 and exact:  # the last step refined the one before
            return plan
        exact = count == 0
        best, patience = (count, _PATIENCE) if count < best else (best, patience - 1)
        active = wanted
        mu = np.where(active.rows != 0, mu, 0.0)
    return None


def _clipped_regulator(case: Case) -> np.ndarray:
    made, z, inputs = case.stages, case.start, np.empty_like(case.linear_u)
    for k, K in enumerate(case.regulator.K):
        inputs[k] = np.clip(-K @ z, made.input_lower[k], made.input_upper[k])
        z = made.A[made.kind[k]] @ z + made.B[made.kind[k]] @ inputs[k] + case.c[k]
    return inputs


def _first(case: Case, inputs: np.ndarray, values: np.ndarray, nu: np.ndarray, mu: np.ndarray) -> _Active:
    """Active bounds of a plan that is not exact: inputs on their bounds or pushed there, rows by multipliers."""
    made = case.stages
    fixed = np.where(inputs >= made.input_upper, 1, np.where(inputs <= made.input_lower, -1, 0))
    wide = widest(made.input_lower, made.input_upper)
    for sign, bound in ((1, made.input_upper), (-1, made.input_lower)):
        fixed[(np.abs(inputs - bound) <= 1e-6 * wide) & (sign * nu > 0.0)] = sign
    soft, w = made.soft, made.w
    beyond = np.where(values > case.upper, 1, np.where(values < case.lower, -1, 0))
    excess = np.where(soft & ((np.abs(mu) > w) | (w == 0.0)), beyond, 0)
    met = np.where(excess == 0, np.sign(mu), 0).astype(int)
    bound = np.where(met > 0, case.upper, case.lower)
    return _Active(fixed, np.where((~soft | (w > 0.0)) & np.isfinite(bound), met, 0), excess)


def _changed(case: Case, plan: Refined, terms: np.ndarray, active: _Active) -> _Active:
    """Active bounds after a step: without those of the wrong sign, and with those violated, beyond rounding."""
    made = case.stages
    inputs, states, nu, mu, _ = plan
    x, w, soft = case.values(inputs, states), made.w, made.soft
    tiny = _ROUNDING * widest(made.input_lower, made.input_upper)
    violated = np.where(inputs > made.input_upper + tiny, 1, np.where(inputs < made.input_lower - tiny, -1, 0))
    held = np.where(active.inputs * nu >= -_ROUNDING * terms, active.inputs, 0)
    fixed = np.where(active.inputs != 0, held, violated)
    size = widest(case.lower, case.upper) + np.abs(x)
    tiny = _ROUNDING * size
    out = np.where(x > case.upper + tiny, 1, np.where(x < case.lower - tiny, -1, 0))
    corner = soft & (w > 0.0)
    # A soft bound with w > 0 is met with equality for multipliers from 0 to w.
    # Where no input is free to move a row onto its bound, it stays off it.
    off = np.where(active.rows != 0, active.rows * (x - _edge(case, active.rows)), 0.0)
    held = np.where((active.rows * mu >= 0.0) & (off >= -_OFF * size), active.rows, 0)
    too_much = corner & ((active.rows * mu > w) | (off > _OFF * size))
    met = np.where(active.rows != 0, np.where(too_much, 0, held), np.where(~soft | corner, out, 0))
    left = (active.excess != 0) & (out != active.excess)
    met = np.where(active.excess != 0, np.where(left & corner, active.excess, 0), met)
    excess = np.where(active.excess != 0, np.where(left, 0, active.excess), np.where(soft & ~corner, out, 0))
    return _Active(fixed, met, np.where(too_much, active.rows, excess))


def _edge(case: Case, side: np.ndarray) -> np.ndarray:
    """The bound of each row on this side; 0 where there is none."""
    return np.where(side > 0, case.upper, np.where(side < 0, case.lower, 0.0))


def _newton(
    case: Case, inputs: np.ndarray, states: np.ndarray, mu: np.ndarray, active: _Active
) -> tuple[Refined, np.ndarray] | None:
    """Step to the optimum with the active bounds as equalities, and the size of the terms of the inputs' gradients.

    The cost of z_k .. z_P after a change d of z_k is d'X_k d + 2 d'p_k. Column 0 of p is the plan's own gradient, the
    others are those of a multiplier 2 at each row that meets its bound.
    """
    made = case.stages
    (P, m), q = inputs.shape, states.shape[1]
    values = case.values(inputs, states)
    at = np.nonzero(active.rows)
    count = len(at[0])
    target = np.where(active.inputs > 0, made.input_upper, np.where(active.inputs < 0, made.input_lower, 0.0))
    move = np.where(active.inputs != 0, target - inputs, 0.0)
    curved = np.where(active.excess != 0, made.rho, 0.0)
    pull = 0.5 * (mu + _penalty(case, values, active))
    K, kappa, price = np.zeros((P, m, q)), np.zeros((P, m, 1 + count)), np.ones((P, m))
    X, p = np.zeros((q, q)), np.zeros((q, 1 + count))
    for k in reversed(range(P + 1)):
        A, B, Q, R, N, E, F = (part[made.kind[k]] for part in made[1:8])
        here = np.flatnonzero(at[0] == k)
        of_z, of_u = np.zeros((q, 1 + count)), np.zeros((m, 1 + count))
        of_z[:, 1 + here], of_u[:, 1 + here] = E[at[1][here]].T, F[at[1][here]].T
        of_z[:, 0] = Q @ states[k] + case.linear_z[k] + E.T @ pull[k]
        if curved[k].any():
            Q, R, N = Q + (E.T * curved[k]) @ E, R + (F.T * curved[k]) @ F, N + (E.T * curved[k]) @ F
        if k == P:
            X, p = Q.copy(), of_z
            continue
        of_z[:, 0] += made.N[made.kind[k]] @ inputs[k]
        of_u[:, 0] = made.R[made.kind[k]] @ inputs[k] + made.N[made.kind[k]].T @ states[k]
        of_u[:, 0] += case.linear_u[k] + F.T @ pull[k]
        free = active.inputs[k] == 0
        kappa[k, ~free, 0] = move[k, ~free]
        XB = X @ B
        if free.any():
            M = R + B.T @ XB
            price[k, free] = 2.0 * np.diag(M)[free]
            right = of_u + B.T @ p
            right += M[:, ~free] @ kappa[k, ~free]
            solved = _solve(M[np.ix_(free, free)], np.hstack([(XB.T @ A + N.T)[free], right[free]]))
            if solved is None:
                return None
            K[k, free], kappa[k, free] = solved[:, :q], -solved[:, q:]
        closed = A - B @ K[k]
        p = closed.T @ (XB @ kappa[k] + p) + (N - K[k].T @ R) @ kappa[k] + of_z - K[k].T @ of_u
        X = closed.T @ X @ closed + K[k].T @ R @ K[k] + Q - K[k].T @ N.T - N @ K[k]
        X = 0.5 * (X + X.T)
    if count:
        weights = _weights(case, K, kappa, at, (_edge(case, active.rows) - values)[at])
        if weights is None:
            return None
        kappa[:, :, 0] += kappa[:, :, 1:] @ weights
        mu = mu.copy()
        mu[at] += 2.0 * weights
    after, z = np.empty_like(inputs), np.empty_like(states)
    z[0] = states[0]
    for k in range(P):
        u = inputs[k] + kappa[k, :, 0] - K[k] @ (z[k] - states[k])
        after[k] = np.where(active.inputs[k] != 0, target[k], u)
        z[k + 1] = made.A[made.kind[k]] @ z[k] + made.B[made.kind[k]] @ after[k] + case.c[k]
    if not (np.isfinite(after).all() and np.isfinite(z).all()):
        return None
    mu = np.where(active.rows != 0, mu, 0.0) + _penalty(case, case.values(after, z), active)
    nu, terms = _input_multipliers(case, K, after, z, mu, active)
    return Refined(after, z, nu, mu, Regulator(K, price)), terms


def _penalty(case: Case, values: np.ndarray, active: _Active) -> np.ndarray:
    """Multipliers of violated soft bounds, ± (2 ρ ε + w) at the violation ε."""
    side = active.excess
    out = np.where(side != 0, values - _edge(case, side), 0.0)
    return 2.0 * np.where(side != 0, case.stages.rho, 0.0) * out + side * case.stages.w


def _weights(
    case: Case, K: np.ndarray, kappa: np.ndarray, at: tuple[np.ndarray, ...], short: np.ndarray
) -> np.ndarray | None:
    """Half multipliers of the rows that meet their bounds, by the Schur complement of these equalities."""
    made, count, P = case.stages, len(short), len(K)
    moved, response = np.zeros((K.shape[2], 1 + count)), np.empty((count, 1 + count))
    for k in range(P + 1):
        A, B, _, _, _, E, F = (part[made.kind[k]] for part in made[1:8])
        here = np.flatnonzero(at[0] == k)
        response[here] = E[at[1][here]] @ moved
        if k < P:
            du = kappa[k] - K[k] @ moved
            response[here] += F[at[1][here]] @ du
            moved = A @ moved + B @ du
    S, right = response[:, 1:], short - response[:, 0]
    if not (np.isfinite(S).all() and np.isfinite(right).all()):
        return None
    size = np.sqrt(np.maximum(np.abs(np.diag(S)), np.finfo(float).tiny))
    return np.linalg.lstsq(S / size[:, None] / size, right / size, rcond=None)[0] / size


def _input_multipliers(
    case: Case, K: np.ndarray, inputs: np.ndarray, states: np.ndarray, mu: np.ndarray, active: _Active
) -> tuple[np.ndarray, np.ndarray]:
    """Multipliers of the inputs' bounds by the costates, and the size of the terms that they are sums of."""
    made, nu, terms = case.stages, np.zeros_like(inputs), np.empty_like(inputs)
    P = len(inputs)
    _, _, T, _, _, E, _ = (part[made.kind[P]] for part in made[1:8])
    costate = 2.0 * (T @ states[-1] + case.linear_z[-1]) + E.T @ mu[-1]
    for k in reversed(range(P)):
        A, B, Q, R, N, E, F = (part[made.kind[k]] for part in made[1:8])
        own = 2.0 * (R @ inputs[k] + N.T @ states[k] + case.linear_u[k]) + F.T @ mu[k]
        r = own + B.T @ costate
        terms[k] = np.abs(own) + np.abs(B).T @ np.abs(costate)
        nu[k] = np.where(active.inputs[k] != 0, -r, 0.0)
        costate = 2.0 * (Q @ states[k] + N @ inputs[k] + case.linear_z[k]) + E.T @ mu[k] + A.T @ costate - K[k].T @ r
    return nu, terms


def _solve(M: np.ndarray, right: np.ndarray) -> np.ndarray | None:
    """Solution of M y = right with M scaled to a unit diagonal; None for entries that aren't finite or singular M."""
    diagonal = np.diag(M)
    if not (np.isfinite(M).all() and np.isfinite(right).all() and (diagonal > 0.0).all()):
        return None
    unit = np.sqrt(diagonal)
    try:
        return np.linalg.solve(M / unit[:, None] / unit, right / unit[:, None]) / unit[:, None]
    except np.linalg.LinAlgError:
        return None
