"""Refinement of a plan: Newton steps on the set of active bounds, each solved stage by stage by a Riccati recursion.

A solver's program has entries of any size where the plant is unstable and its inputs saturate; its stages don't. With
inputs at their bounds exactly, penalised states as quadratic costs and the other active states as equalities, the
optimum of a set of active bounds follows from one backward recursion, whatever the growth over the horizon.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.mpc.problem import MpcProblem
from netctrl.mpc.stages import Regulator, Stages, roll_out, widest

_EPS = float(np.finfo(float).eps)
_PATIENCE = 20  # steps without fewer wrong bounds
_ROUNDING = 64.0 * _EPS
_OFF = 1e-9  # relative distance of a state from a bound that it should meet


class Refined(NamedTuple):
    """A plan on a set of active bounds, with the multipliers of all bounds, above 0 at an upper one."""

    inputs: np.ndarray
    """(P, m)"""
    states: np.ndarray
    """(P + 1, q) z_0 .. z_P."""
    input_multipliers: np.ndarray
    """(P, m)"""
    state_multipliers: np.ndarray
    """(P, n), of x_1 .. x_P."""
    regulator: Regulator
    """Gains and prices of the inputs within their bounds while the others stay there."""


class _Active(NamedTuple):
    """Active bounds: −1 the lower one, 1 the upper one, 0 none."""

    inputs: np.ndarray
    """(P, m)"""
    states: np.ndarray
    """(P, n) bounds that x_1 .. x_P meet with equality."""
    excess: np.ndarray
    """(P, n) soft bounds that x_1 .. x_P violate."""

    def distance(self, other: _Active) -> int:
        """Number of bounds by which the sets differ."""
        return sum(int((one != two).sum()) for one, two in zip(self, other, strict=True))


def refined(
    problem: MpcProblem,
    made: Stages,
    gains: np.ndarray,
    theta: np.ndarray,
    near: tuple[np.ndarray, np.ndarray, np.ndarray] | None,
) -> Refined | None:
    """Optimal plan, from a plan near it or from the regulator's inputs clipped to their bounds.

    Each step solves the problem with the active bounds as equalities, then releases the bounds whose multiplier has the
    wrong sign and adds those that the step violates, until none changes (a primal-dual active-set method). None where
    their number doesn't fall for 20 steps.

    Parameters
    ----------
    problem : MpcProblem
        n states, m inputs, P stages.
    made : Stages
        Its model and weights in z, shape (q,).
    gains : ndarray, shape (P, m, q)
        Regulator's gains, for the start.
    theta : ndarray, shape (q,)
        z_0.
    near : tuple of ndarray, shapes (P, m), (P, m) and (P, n), or None
        Inputs, and the multipliers of the bounds of inputs and states.

    Source: Hintermüller, Ito, Kunisch, SIAM J. Optimization 13 (2002) 865-888, for the change of sets; Rao, Wright,
    Rawlings, J. Optimization Theory and Applications 99 (1998) 723-757, for the recursion over stages.
    """
    if near is None:
        inputs = _clipped_regulator(problem, made, gains, theta)
        nu, mu = np.zeros_like(inputs), np.zeros((len(inputs), problem.plant.n_states))
    else:
        inputs, nu, mu = near
    inputs, states = _clipped(problem, made, theta, inputs)
    active = _first(problem, inputs, states, nu, mu)
    mu = np.where(active.states != 0, mu, 0.0)
    best, patience, exact = inputs.size + 2 * mu.size + 1, _PATIENCE, False
    while patience > 0:
        with np.errstate(over="ignore", invalid="ignore"):
            found = _newton(problem, made, inputs, states, mu, active)
        if found is None:
            return None
        plan, terms = found
        inputs, states, mu = plan.inputs, plan.states, plan.state_multipliers
        wanted = _changed(problem, plan, terms, active)
        count = active.distance(wanted)
        if count == 0 and exact:  # the last step refined the one before
            return plan
        exact = count == 0
        best, patience = (count, _PATIENCE) if count < best else (best, patience - 1)
        active = wanted
        mu = np.where(active.states != 0, mu, 0.0)
    return None


def _clipped_regulator(problem: MpcProblem, made: Stages, gains: np.ndarray, theta: np.ndarray) -> np.ndarray:
    z, inputs = theta, np.empty(gains.shape[:2])
    for k, K in enumerate(gains):
        inputs[k] = np.clip(-K @ z, problem.input_lower, problem.input_upper)
        z = made.A @ z + made.B @ inputs[k]
    return inputs


def _clipped(problem: MpcProblem, made: Stages, theta: np.ndarray, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return roll_out(
        made, np.zeros((*inputs.shape, len(theta))), theta, np.clip(inputs, problem.input_lower, problem.input_upper)
    )


def _first(problem: MpcProblem, inputs: np.ndarray, states: np.ndarray, nu: np.ndarray, mu: np.ndarray) -> _Active:
    """Active bounds of a plan that is not exact: inputs on their bounds or pushed there, states by multipliers."""
    x = states[1:, : mu.shape[1]]
    fixed = np.where(inputs >= problem.input_upper, 1, np.where(inputs <= problem.input_lower, -1, 0))
    wide = widest(problem.input_lower, problem.input_upper)
    for sign, bound in ((1, problem.input_upper), (-1, problem.input_lower)):
        fixed[(np.abs(inputs - bound) <= 1e-6 * wide) & (sign * nu > 0.0)] = sign
    rho, w = problem.soft_weight, problem.soft_linear
    beyond = np.where(x > problem.state_upper, 1, np.where(x < problem.state_lower, -1, 0))
    excess = np.where(problem.soft & ((np.abs(mu) > w) | (np.isfinite(rho) & (w == 0.0))), beyond, 0)
    met = np.where(excess == 0, np.sign(mu), 0).astype(int)
    bound = np.where(met > 0, problem.state_upper, problem.state_lower)
    return _Active(fixed, np.where((problem.hard | (w > 0.0)) & np.isfinite(bound), met, 0), excess)


def _changed(problem: MpcProblem, plan: Refined, terms: np.ndarray, active: _Active) -> _Active:
    """Active bounds after a step: without those of the wrong sign, and with those violated, beyond rounding."""
    inputs, states, nu, mu, _ = plan
    x, w = states[1:, : mu.shape[1]], problem.soft_linear
    tiny = _ROUNDING * widest(problem.input_lower, problem.input_upper)
    violated = np.where(inputs > problem.input_upper + tiny, 1, np.where(inputs < problem.input_lower - tiny, -1, 0))
    held = np.where(active.inputs * nu >= -_ROUNDING * terms, active.inputs, 0)
    fixed = np.where(active.inputs != 0, held, violated)
    tiny = _ROUNDING * (widest(problem.state_lower, problem.state_upper) + np.abs(x))
    out = np.where(x > problem.state_upper + tiny, 1, np.where(x < problem.state_lower - tiny, -1, 0))
    soft, corner = problem.soft, problem.soft & (w > 0.0)
    # A soft bound with w > 0 is met with equality for multipliers from 0 to w.
    # Where no input is free to move a state onto its bound, it stays off it.
    edge = np.where(active.states > 0, problem.state_upper, problem.state_lower)
    off = np.where(active.states != 0, active.states * (x - np.where(active.states != 0, edge, 0.0)), 0.0)
    size = _OFF * (widest(problem.state_lower, problem.state_upper) + np.abs(x))
    held = np.where((active.states * mu >= 0.0) & (off >= -size), active.states, 0)
    too_much = corner & ((active.states * mu > w) | (off > size))
    met = np.where(active.states != 0, np.where(too_much, 0, held), np.where(problem.hard | corner, out, 0))
    left = (active.excess != 0) & (out != active.excess)
    met = np.where(active.excess != 0, np.where(left & corner, active.excess, 0), met)
    excess = np.where(active.excess != 0, np.where(left, 0, active.excess), np.where(soft & ~corner, out, 0))
    return _Active(fixed, met, np.where(too_much, active.states, excess))


def _newton(
    problem: MpcProblem, made: Stages, inputs: np.ndarray, states: np.ndarray, mu: np.ndarray, active: _Active
) -> tuple[Refined, np.ndarray] | None:
    """Step to the optimum with the active bounds as equalities, and the size of the terms of the inputs' gradients.

    The cost of z_k .. z_P after a change d of z_k is d'X_k d + 2 d'p_k. Column 0 of p is the plan's own gradient, the
    others are those of a multiplier 2 at each state that meets its bound.
    """
    A, B, Q, R, N, T = made
    (P, m), n, q = inputs.shape, mu.shape[1], len(A)
    x = states[1:, :n]
    at, edge = np.nonzero(active.states), np.where(active.states > 0, problem.state_upper, problem.state_lower)
    count = len(at[0])
    target = np.where(active.inputs > 0, problem.input_upper, problem.input_lower)
    move = np.where(active.inputs != 0, np.where(active.inputs != 0, target, 0.0) - inputs, 0.0)
    curved = np.where(active.excess != 0, problem.soft_weight, 0.0)
    pull = 0.5 * (mu + _penalty(problem, x, active))
    K, kappa, price = np.zeros((P, m, q)), np.zeros((P, m, 1 + count)), np.zeros((P, m))
    X, p = T.copy(), np.zeros((q, 1 + count))
    p[:, 0] = T @ states[-1]
    for k in reversed(range(P)):
        X[np.arange(n), np.arange(n)] += curved[k]
        p[:n, 0] += pull[k]
        here = np.flatnonzero(at[0] == k)
        p[at[1][here], 1 + here] += 1.0
        free = active.inputs[k] == 0
        kappa[k, ~free, 0] = move[k, ~free]
        XB = X @ B
        if free.any():
            M = R + B.T @ XB
            price[k, free] = 2.0 * np.diag(M)[free]
            right = (R @ inputs[k] + N.T @ states[k])[:, None] * (np.arange(1 + count) == 0) + B.T @ p
            right += M[:, ~free] @ kappa[k, ~free]
            solved = _solve(M[np.ix_(free, free)], np.hstack([(XB.T @ A + N.T)[free], right[free]]))
            if solved is None:
                return None
            K[k, free], kappa[k, free] = solved[:, :q], -solved[:, q:]
        closed = A - B @ K[k]
        p = closed.T @ (XB @ kappa[k] + p) + (N - K[k].T @ R) @ kappa[k]
        p[:, 0] += Q @ states[k] + N @ inputs[k] - K[k].T @ (R @ inputs[k] + N.T @ states[k])
        X = closed.T @ X @ closed + K[k].T @ R @ K[k] + Q - K[k].T @ N.T - N @ K[k]
        X = 0.5 * (X + X.T)
    if count:
        weights = _weights(A, B, K, kappa, at, (edge - x)[at])
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
        z[k + 1] = A @ z[k] + B @ after[k]
    if not (np.isfinite(after).all() and np.isfinite(z).all()):
        return None
    mu = np.where(active.states != 0, mu, 0.0) + _penalty(problem, z[1:, :n], active)
    nu, terms = _input_multipliers(made, K, after, z, mu, active)
    return Refined(after, z, nu, mu, Regulator(K, price, needed=True)), terms


def _penalty(problem: MpcProblem, x: np.ndarray, active: _Active) -> np.ndarray:
    """Multipliers of violated soft bounds, ± (2 ρ ε + w) at the violation ε."""
    side = active.excess
    edge = np.where(side > 0, problem.state_upper, problem.state_lower)
    out = np.where(side != 0, x - np.where(side != 0, edge, 0.0), 0.0)
    return np.where(side != 0, 2.0 * np.where(side != 0, problem.soft_weight, 0.0) * out, 0.0) + (
        side * problem.soft_linear
    )


def _weights(
    A: np.ndarray, B: np.ndarray, K: np.ndarray, kappa: np.ndarray, at: tuple[np.ndarray, ...], short: np.ndarray
) -> np.ndarray | None:
    """Half multipliers of the states that meet their bounds, by the Schur complement of these equalities."""
    count = len(short)
    moved, response = np.zeros((len(A), 1 + count)), np.empty((count, 1 + count))
    for k, each in enumerate(K):
        moved = A @ moved + B @ (kappa[k] - each @ moved)
        here = np.flatnonzero(at[0] == k)
        response[here] = moved[at[1][here]]
    S, right = response[:, 1:], short - response[:, 0]
    if not (np.isfinite(S).all() and np.isfinite(right).all()):
        return None
    size = np.sqrt(np.maximum(np.abs(np.diag(S)), np.finfo(float).tiny))
    return np.linalg.lstsq(S / size[:, None] / size, right / size, rcond=None)[0] / size


def _input_multipliers(
    made: Stages, K: np.ndarray, inputs: np.ndarray, states: np.ndarray, mu: np.ndarray, active: _Active
) -> tuple[np.ndarray, np.ndarray]:
    """Multipliers of the inputs' bounds by the costates, and the size of the terms that they are sums of."""
    A, B, Q, R, N, T = made
    n, nu, terms = mu.shape[1], np.zeros_like(inputs), np.empty_like(inputs)
    costate = 2.0 * (T @ states[-1])
    for k in reversed(range(len(inputs))):
        costate[:n] += mu[k]
        own = 2.0 * (R @ inputs[k] + N.T @ states[k])
        r = own + B.T @ costate
        terms[k] = np.abs(own) + np.abs(B).T @ np.abs(costate)
        nu[k] = np.where(active.inputs[k] != 0, -r, 0.0)
        costate = 2.0 * (Q @ states[k] + N @ inputs[k]) + A.T @ costate - K[k].T @ r
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
