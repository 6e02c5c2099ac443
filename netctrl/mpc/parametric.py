"""Parametric quadratic programs: an MPC problem with fixed model and weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from netctrl.core.errors import InvalidValue, checked_kind, checked_numbers
from netctrl.model.io.matrix import dense
from netctrl.mpc.problem import MpcProblem
from netctrl.mpc.qp.program import QuadraticProgram
from netctrl.mpc.stages import Regulator, Stages, roll_out


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ParametricProgram:
    """Program min ½ v'Hv + (g + F θ)'v, lower + E θ ≤ [v; A v] ≤ upper + E θ, θ = [x_0; u_{−1} with a rate weight].

    v begins with v_0 .. v_{P−1} of u_k = v_k − K_k z_k, in units of `input_scale`; costs are in units of `cost_scale`.
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
    units: np.ndarray
    """(N + k,) size of 1 in each bound, in the plant's units."""
    concerns: np.ndarray
    """(N + k,) owner of each bound: 0 .. P m − 1 an input, then P n states; −1 none."""
    stages: Stages
    gains: np.ndarray
    """(P, m, q) K; 0 where v are the inputs."""
    input_scale: np.ndarray
    """(m,)"""
    state_scale: np.ndarray
    """(n,)"""
    regulator: Regulator
    """Regulator of the problem without bounds."""
    cost_scale: float
    base: QuadraticProgram = field(init=False)
    """Program at θ = 0, whose H and A are checked."""

    def __post_init__(self) -> None:
        for part in (self.g, self.F, self.lower, self.upper, self.E, self.input_scale, self.state_scale, self.units):
            part.setflags(write=False)
        base = QuadraticProgram(self.H, self.g, self.A, self.lower, self.upper, self.names, self.units)
        object.__setattr__(self, "base", base)

    @property
    def horizon(self) -> int:
        """Horizon P."""
        return len(self.gains)

    @property
    def n_parameters(self) -> int:
        """Length q of θ."""
        return self.F.shape[1]

    def program(self, theta: np.ndarray) -> QuadraticProgram:
        """Program at one θ, shape (q,)."""
        theta = np.asarray(theta, dtype=float)
        if theta.shape != (self.n_parameters,) or not np.isfinite(theta).all():
            raise InvalidValue("theta", theta.tolist(), f"{self.n_parameters} finite numbers: state, then last input")
        shift = self.E @ theta
        return self.base.changed(self.g + self.F @ theta, self.lower + shift, self.upper + shift)

    def corrections(self, v: np.ndarray) -> np.ndarray:
        """Corrections v_0 .. v_{P−1} of a solution, shape (P, m), in the plant's units."""
        P, m, _ = self.gains.shape
        return np.asarray(v)[: P * m].reshape(P, m) * self.input_scale

    def first_input(self, v: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Input u_0 of a solution at θ, shape (m,), in the plant's units."""
        return v[: len(self.input_scale)] * self.input_scale - self.gains[0] @ theta

    def plan(self, v: np.ndarray, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Inputs (P, m) and states z (P + 1, q) of a solution at θ, rolled out by the model, in the plant's units."""
        return roll_out(self.stages, self.gains, np.asarray(theta, dtype=float), self.corrections(v))

    def multipliers(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Multipliers of the bounds of inputs (P, m) and states (P, n), in cost over the plant's units: above 0 at an
        upper bound."""
        P, m, _ = self.gains.shape
        found = np.zeros(P * (m + len(self.state_scale)))
        at = self.concerns >= 0
        np.add.at(found, self.concerns[at], (y * self.cost_scale / self.units)[at])
        return found[: P * m].reshape(P, m), found[P * m :].reshape(P, -1)


def parameters(problem: MpcProblem, state: np.ndarray, past_inputs: np.ndarray | None = None) -> np.ndarray:
    """Parameter θ from the measured state and past inputs, oldest first, shape (at least max(d, 1), m).

    The state is predicted over the delay by eq. (3.7) of the MPCC thesis; older inputs are not used.

    Raises
    ------
    InvalidValue
        Numbers that aren't finite, or fewer past inputs than the delay and a rate weight need.
    """
    m = checked_kind("problem", problem, MpcProblem).plant.n_inputs
    needed = max(problem.delay, int(problem.has_rate))
    past = (
        np.zeros((0, m))
        if past_inputs is None
        else checked_numbers("past_inputs", past_inputs, f"inputs of shape (any, {m})")
    )
    if past.ndim == 0 or past.size % m:
        raise InvalidValue("past_inputs", f"shape {past.shape}", f"inputs of shape (any, {m}), oldest first")
    past = past.reshape(-1, m)
    if len(past) < needed or not np.isfinite(past).all():
        takes = f"at least {needed} finite inputs, oldest first: the delay's and, with a rate weight, the last one"
        raise InvalidValue("past_inputs", f"{len(past)} inputs" if len(past) < needed else past.tolist(), takes)
    state = checked_numbers("state", state, f"{problem.plant.n_states} finite numbers")
    if state.shape != (problem.plant.n_states,) or not np.isfinite(state).all():
        raise InvalidValue("state", state.tolist(), f"{problem.plant.n_states} finite numbers")
    delayed = past[len(past) - problem.delay :]
    met = predict_through_delay(problem, state, delayed)
    return np.concatenate([met, past[-1]]) if problem.has_rate else met


def predict_through_delay(problem: MpcProblem, state: np.ndarray, delayed: np.ndarray) -> np.ndarray:
    """State x after the inputs in transit, oldest first, shape (d, m): A^d x + Σ A^i B u(k − 1 − i)."""
    A, B = dense(problem.plant.A), dense(problem.plant.B)
    x = np.asarray(state, dtype=float)
    for u in delayed:
        x = A @ x + B @ u
    return x
