"""Verification of a plan against its MPC problem: model, bounds, stationarity and gap, stage by stage.

Of the solved program only the multipliers are used, so errors of the formulation are detected as well.

Where an unstable plant leaves its bounds, multipliers reach any power of ten, and rounding times a multiplier is no
error of the plan. An input exactly on its bound has no slack, and takes the multiplier that its gradient asks for; a
state is as far from its bound as its summands' rounding doesn't explain (componentwise backward error).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.mpc.parametric import ParametricProgram
from netctrl.mpc.problem import MpcProblem
from netctrl.mpc.stages import Regulator, Stages, widest

_OF_BOUNDS, _OF_INPUTS = 1e-6, 1e-4
_SMALL = 1e-3  # relative to the widest input: the smallest unit of errors
_EPS = float(np.finfo(float).eps)


class PlanResiduals(NamedTuple):
    """Relative errors of a plan; 0 for the exact one."""

    bounds: float
    """Largest violation of an input's or a state's hard bound, relative to the bound or to the state's summands."""
    stationarity: float
    """Gradient of the cost by an input over its curvature, an error of the input, relative to the inputs' size."""
    gap: float
    """Distance of the multipliers' lower bound from the cost, as an error of the inputs relative to their size."""

    @property
    def worst(self) -> float:
        """Largest of the errors; NaN where any is NaN."""
        return float(np.max(self))

    @property
    def solved(self) -> bool:
        """Whether bounds are met to 1e-6 and inputs accurate to 1e-4; False for NaN."""
        return bool(self.bounds <= _OF_BOUNDS and max(self.stationarity, self.gap) <= _OF_INPUTS)


def plan_residuals(
    problem: MpcProblem, program: ParametricProgram, inputs: np.ndarray, states: np.ndarray, multipliers: np.ndarray
) -> PlanResiduals:
    """Residuals of inputs (P, m) and predicted states z (P + 1, q), with the program's multipliers."""
    return residuals(problem, program, inputs, states, *program.multipliers(multipliers))


def residuals(
    problem: MpcProblem,
    program: ParametricProgram,
    inputs: np.ndarray,
    states: np.ndarray,
    input_multipliers: np.ndarray,
    state_multipliers: np.ndarray,
    regulator: Regulator | None = None,
) -> PlanResiduals:
    """Residuals of inputs (P, m) and predicted states z (P + 1, q), with multipliers ν (P, m) and μ (P, n).

    λ_P = 2 T z_P + μ_P, λ_k = 2 (Q z_k + N u_k) + A'λ_{k+1} + μ_k and r_k = 2 (N'z_k + R u_k) + B'λ_{k+1} + ν_k = 0.
    Subtracting K_k'r_k from λ_k, which has no effect where r = 0, makes r the gradient by v of u = v − K z with the
    regulator's gains. This avoids powers of an unstable A, and r_k over 2 M_k is the distance of v_k from its optimum.
    `regulator` is the one while the inputs on their bounds stay there, by default the one without bounds, whose prices
    M_k are lower: the more later inputs are on their bounds, the more each free one costs.
    """
    free = program.regulator
    K, price = (free if regulator is None else regulator)[:2]
    price = np.maximum(price, free.price)
    n = problem.plant.n_states
    nu, mu = input_multipliers, state_multipliers
    x = states[1:, :n]
    nu = np.where(np.isfinite(np.where(nu > 0.0, problem.input_upper, problem.input_lower)), nu, 0.0)
    mu = np.where(np.isfinite(np.where(mu > 0.0, problem.state_upper, problem.state_lower)), mu, 0.0)
    r, nu = _gradient(problem, program.stages, K, inputs, states, nu, mu)
    reach = np.abs(states[:-1]) @ np.abs(program.stages.A).T + np.abs(inputs) @ np.abs(program.stages.B).T
    reach = reach[:, :n]
    broken = max(
        _broken(inputs, problem.input_lower, problem.input_upper, np.abs(inputs)),
        _broken(
            x[:, problem.hard],
            problem.state_lower[problem.hard],
            problem.state_upper[problem.hard],
            reach[:, problem.hard],
        ),
    )
    unit = np.maximum(np.abs(inputs).max(axis=0), _SMALL * widest(problem.input_lower, problem.input_upper))
    unit = np.maximum(unit, np.finfo(float).tiny)
    off = float((np.abs(r) / price / unit).max())
    gap = _gap(inputs, nu, problem.input_lower, problem.input_upper, np.zeros_like(inputs))
    gap += _state_gap(problem, x, mu, 4.0 * sum(program.stages.B.shape) * _EPS * reach)
    return PlanResiduals(
        broken, off, float(np.sqrt(max(gap, 0.0) / max(free.price[0] @ unit**2, np.finfo(float).tiny)))
    )


def _gradient(
    problem: MpcProblem,
    made: Stages,
    gains: np.ndarray,
    inputs: np.ndarray,
    states: np.ndarray,
    nu: np.ndarray,
    mu: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Gradient r (P, m) by v of u = v − K z with the regulator's gains, and the multipliers ν.

    An input exactly on a bound takes the multiplier ν − r, with which its gradient is 0, where its sign allows that.
    """
    A, B, Q, R, N, T = made
    n = mu.shape[1]
    at = np.where(inputs == problem.input_upper, 1.0, np.where(inputs == problem.input_lower, -1.0, 0.0))
    fixed = problem.input_lower == problem.input_upper
    own = 2.0 * (inputs @ R + states[:-1] @ N)
    push = 2.0 * (states[:-1] @ Q + inputs @ N.T)
    push[1:, :n] += mu[:-1]
    costate = 2.0 * (T @ states[-1])
    costate[:n] += mu[-1]
    r, nu = np.empty_like(inputs), nu.copy()
    for k in reversed(range(len(inputs))):
        pull = own[k] + B.T @ costate
        nu[k] = np.where((fixed & (at[k] != 0.0)) | (-at[k] * pull > 0.0), -pull, nu[k])
        r[k] = pull + nu[k]
        costate = push[k] + A.T @ costate - gains[k].T @ r[k]
    return r, nu


def _broken(at: np.ndarray, lower: np.ndarray, upper: np.ndarray, terms: np.ndarray) -> float:
    if not at.size:
        return 0.0
    by = np.maximum(np.maximum(at - upper, lower - at), 0.0)
    return float((by / np.maximum(np.maximum(widest(lower, upper), terms), np.finfo(float).tiny)).max())


def _gap(at: np.ndarray, multipliers: np.ndarray, lower: np.ndarray, upper: np.ndarray, noise: np.ndarray) -> float:
    used = np.where(multipliers > 0.0, upper, lower)
    slack = np.abs(np.where(multipliers != 0.0, used - at, 0.0))
    return float((np.abs(multipliers) * np.maximum(slack - noise, 0.0)).sum())


def _state_gap(problem: MpcProblem, x: np.ndarray, mu: np.ndarray, noise: np.ndarray) -> float:
    """Duality gap of the states' bounds, each distance without what rounding explains.

    For soft ones φ(x) + φ*(μ) − μ x, φ(x) = ρ ε² + w ε with the violation ε of x. Of the bound that μ is on it is
    ρ (ε − (|μ| − w)₊ / 2ρ)² + (w − |μ|)₊ ε + |μ| s with the slack s, and φ(x) of the other one.
    """
    low, high, soft = problem.state_lower, problem.state_upper, problem.soft
    hard = _gap(x[:, ~soft], mu[:, ~soft], low[~soft], high[~soft], noise[:, ~soft])
    if not soft.any():
        return hard
    x, mu, low, high, noise = x[:, soft], mu[:, soft], low[soft], high[soft], noise[:, soft]
    rho, w = problem.soft_weight[soft], problem.soft_linear[soft]
    above, below, size = np.maximum(x - high, 0.0), np.maximum(low - x, 0.0), np.abs(mu)
    own, other = np.where(mu >= 0.0, above, below), np.where(mu >= 0.0, below, above)
    slack = np.abs(np.where(mu > 0.0, high - x, np.where(mu < 0.0, x - low, 0.0)))
    slack = np.where(own > 0.0, 0.0, slack)
    apart = np.maximum(np.abs(own - np.maximum(size - w, 0.0) / (2.0 * rho)) - noise, 0.0)
    gap = rho * apart**2 + np.maximum(w - size, 0.0) * np.maximum(own - noise, 0.0)
    gap += size * np.maximum(slack - noise, 0.0) + rho * other**2 + w * other
    return hard + float(gap.sum())
