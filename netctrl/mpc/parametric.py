"""Quadratic programs of a parameter: what an MPC problem is once its model and weights are fixed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from netctrl.errors import InvalidValue
from netctrl.model.matrix import dense
from netctrl.mpc.problem import MpcProblem
from netctrl.mpc.qp import QuadraticProgram

__all__ = ["ParametricProgram", "parameters", "predict_through_delay"]


@dataclass(frozen=True, slots=True, eq=False)
class ParametricProgram:
    """min ½ v'Hv + (g + F θ)'v, lower + E θ ≤ [v; A v] ≤ upper + E θ, of θ = [x_0; u_{−1} where rates have a weight].

    v holds the inputs u_0 .. u_{P−1} first, in units of `input_scale`; costs are in units of `cost_scale`.
    """

    H: Any
    g: np.ndarray
    """(N,)"""
    F: np.ndarray
    """(N, q)"""
    A: Any
    lower: np.ndarray
    """(N + k,)"""
    upper: np.ndarray
    E: np.ndarray
    """(N + k, q)"""
    names: tuple[str, ...]
    horizon: int
    input_scale: np.ndarray
    """(m,)"""
    state_scale: np.ndarray
    """(n,)"""
    cost_scale: float
    units: np.ndarray
    """(N + k,) of the bounds, in the plant's: what 1 stands for."""
    base: QuadraticProgram = field(init=False)
    """The program at θ = 0, whose H and A are checked."""

    def __post_init__(self) -> None:
        for part in (self.g, self.F, self.lower, self.upper, self.E, self.input_scale, self.state_scale, self.units):
            part.setflags(write=False)
        base = QuadraticProgram(self.H, self.g, self.A, self.lower, self.upper, self.names, self.units)
        object.__setattr__(self, "base", base)

    @property
    def n_parameters(self) -> int:
        """Length q of θ."""
        return self.F.shape[1]

    def program(self, theta: np.ndarray) -> QuadraticProgram:
        """The program of one θ, shape (q,)."""
        theta = np.asarray(theta, dtype=float)
        if theta.shape != (self.n_parameters,) or not np.isfinite(theta).all():
            raise InvalidValue("theta", theta.tolist(), f"{self.n_parameters} finite numbers: state, then last input")
        shift = self.E @ theta
        return self.base.changed(self.g + self.F @ theta, self.lower + shift, self.upper + shift)

    def inputs(self, v: np.ndarray) -> np.ndarray:
        """u_0 .. u_{P−1} of a solution, shape (P, m), in the plant's units."""
        m = len(self.input_scale)
        return np.asarray(v)[: self.horizon * m].reshape(self.horizon, m) * self.input_scale


def parameters(problem: MpcProblem, state: np.ndarray, past_inputs: np.ndarray | None = None) -> np.ndarray:
    """θ from the measured state and the inputs that were given before, oldest first, shape (at least max(d, 1), m).

    The state is taken through the delay, eq. (3.7) of the MPCC thesis; what was given before that doesn't matter.

    Raises
    ------
    InvalidValue
        Numbers that aren't finite, or fewer past inputs than the delay and a rate weight need.
    """
    m = problem.plant.n_inputs
    needed = max(problem.delay, int(problem.has_rate))
    past = np.zeros((0, m)) if past_inputs is None else np.asarray(past_inputs, dtype=float).reshape(-1, m)
    if len(past) < needed or not np.isfinite(past).all():
        takes = f"at least {needed} finite inputs, oldest first: the delay's and, with a rate weight, the last one"
        raise InvalidValue("past_inputs", f"{len(past)} of them" if len(past) < needed else past.tolist(), takes)
    state = np.asarray(state, dtype=float)
    if state.shape != (problem.plant.n_states,) or not np.isfinite(state).all():
        raise InvalidValue("state", state.tolist(), f"{problem.plant.n_states} finite numbers")
    delayed = past[len(past) - problem.delay :]
    met = predict_through_delay(problem, state, delayed)
    return np.concatenate([met, past[-1]]) if problem.has_rate else met


def predict_through_delay(problem: MpcProblem, state: np.ndarray, delayed: np.ndarray) -> np.ndarray:
    """x after the inputs that are under way, oldest first, shape (d, m): A^d x + Σ A^i B u(k − 1 − i)."""
    A, B = dense(problem.plant.A), dense(problem.plant.B)
    x = np.asarray(state, dtype=float)
    for u in delayed:
        x = A @ x + B @ u
    return x
