"""Parametric quadratic programs: an MPC problem with fixed model and weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from netctrl.core.errors import InvalidValue, checked_kind, checked_numbers
from netctrl.model.io.matrix import dense, is_sparse
from netctrl.mpc.problem import MpcProblem
from netctrl.mpc.qp.program import QuadraticProgram
from netctrl.mpc.stages import Given, Layout, Regulator, Stages, history

_FLAT = 1e-13  # least over largest eigenvalue of the Hessian


class Case(NamedTuple):
    """Stages at one θ: their affine terms and bounds as numbers."""

    stages: Stages
    regulator: Regulator
    start: np.ndarray
    """(q,) z_0."""
    c: np.ndarray
    """(P, q) L_c s_k."""
    linear_z: np.ndarray
    """(P + 1, q) L_q s_k."""
    linear_u: np.ndarray
    """(P, m) L_r s_k."""
    lower: np.ndarray
    """(P + 1, R) bounds of E z_k + F u_k: those of the row less L_e s_k."""
    upper: np.ndarray

    def rolled(self, gains: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Inputs u = v − K z (P, m), 0 where they are held, and states z_0 .. z_P (P + 1, q)."""
        from netctrl.mpc.kernels import roll_out

        made = self.stages
        return roll_out(made.kind, made.A, made.B, self.c, gains, self.start, V)

    def values(self, inputs: np.ndarray, states: np.ndarray) -> np.ndarray:
        """Values E z_k + F u_k of the rows, shape (P + 1, R)."""
        from netctrl.mpc.kernels import row_values

        return row_values(self.stages.kind, self.stages.E, self.stages.F, inputs, states)

    def held(self, inputs: np.ndarray, states: np.ndarray) -> np.ndarray:
        """Inputs (P, m) with those that are held."""
        made = self.stages
        return np.where(made.free[:, None], inputs, states[:-1] @ made.hold.T)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ParametricProgram:
    """Program min ½ v'Hv + (g + F θ)'v, lower + E θ ≤ [v; A v] ≤ upper + E θ.

    θ = [x_0; u_{−1} and older inputs where they matter; disturbances; references]. v begins with the v_k of free inputs
    u_k = v_k − K_k z_k, in units of `input_scale`; costs are in units of `cost_scale`.
    """

    H: Any
    g: np.ndarray
    """(N,)"""
    F: Any
    """(N, size of θ)"""
    A: Any
    lower: np.ndarray
    """(N + k,)"""
    upper: np.ndarray
    E: Any
    """(N + k, size of θ)"""
    names: tuple[str, ...]
    units: np.ndarray
    """(N + k,) size of 1 in each bound, in the plant's units."""
    concerns: np.ndarray
    """(N + k,) owner of each bound: 0 .. P m − 1 an input, then (P + 1) R rows; −1 none."""
    stages: Stages
    given: Given
    order: Layout
    gains: np.ndarray
    """(P, m, q) K; 0 where v are the inputs."""
    input_scale: np.ndarray
    """(m,)"""
    regulator: Regulator
    """Regulator of the problem without bounds."""
    cost_scale: float
    base: QuadraticProgram = field(init=False)
    """Program at θ = 0, whose H and A are checked."""

    def __post_init__(self) -> None:
        for part in (self.g, self.F, self.lower, self.upper, self.E, self.input_scale, self.units):
            if not is_sparse(part):
                part.setflags(write=False)
        base = QuadraticProgram(self.H, self.g, self.A, self.lower, self.upper, self.names, self.units)
        object.__setattr__(self, "base", base)

    @property
    def horizon(self) -> int:
        """Horizon P."""
        return len(self.gains)

    @property
    def n_parameters(self) -> int:
        """Length of θ."""
        return self.F.shape[1]

    def program(self, theta: np.ndarray) -> QuadraticProgram:
        """Program at one θ."""
        theta = np.asarray(theta, dtype=float)
        if theta.shape != (self.n_parameters,) or not np.isfinite(theta).all():
            takes = f"{self.n_parameters} finite numbers: state, then past inputs, disturbances and references"
            raise InvalidValue("theta", theta.tolist(), takes)
        shift = self.E @ theta
        return self.base.changed(self.g + self.F @ theta, self.lower + shift, self.upper + shift)

    def case(self, theta: np.ndarray) -> Case:
        """Stages at one θ."""
        made, (P, m, q) = self.stages, self.gains.shape
        if len(theta) == q or not theta[q:].any():
            none = np.zeros((P + 1, q))
            return Case(made, self.regulator, theta[:q], none[:P], none, np.zeros((P, m)), made.lower, made.upper)
        from netctrl.mpc.kernels import affine

        found = affine(theta, self.order.pick, made.kind, made.Lc, made.Lq, made.Lr, made.Le, made.lower, made.upper)
        return Case(made, self.regulator, theta[:q], *found)

    def corrections(self, v: np.ndarray) -> np.ndarray:
        """Corrections v_0 .. v_{P−1} of a solution, shape (P, m), in the plant's units; 0 where inputs are held."""
        P, m, _ = self.gains.shape
        found, free = np.zeros((P, m)), self.stages.free
        found[free] = np.asarray(v)[: m * np.count_nonzero(free)].reshape(-1, m) * self.input_scale
        return found

    def first_input(self, v: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Input u_0 of a solution at θ, shape (m,), in the plant's units."""
        return v[: len(self.input_scale)] * self.input_scale - self.gains[0] @ theta[: self.gains.shape[2]]

    def plan(self, v: np.ndarray, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Inputs (P, m) and states z (P + 1, q) of a solution at θ, rolled out by the model, in the plant's units."""
        case = self.case(np.asarray(theta, dtype=float))
        inputs, states = case.rolled(self.gains, self.corrections(v))
        return case.held(inputs, states), states

    def solution(
        self, case: Case, inputs: np.ndarray, states: np.ndarray, nu: np.ndarray, mu: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """v and y of the condensed program for a plan: the inverse of `plan` and `multipliers`."""
        corrections = inputs + np.einsum("kjq,kq->kj", self.gains, states[:-1])
        v = (corrections[self.stages.free] / self.input_scale).ravel()
        y = np.zeros(len(self.units))
        at = self.concerns >= 0
        y[at] = np.concatenate([nu.ravel(), mu.ravel()])[self.concerns[at]]
        y *= self.units / self.cost_scale
        count, N = len(self.g) - len(v), len(self.g)
        if not count:
            return v, y
        own = self.concerns[-count:] - nu.size
        values = case.values(inputs, states).ravel()[own]
        out = np.maximum(values - case.upper.ravel()[own], case.lower.ravel()[own] - values)
        slack = np.maximum(out, 0.0) / self.units[N - count : N]
        size = np.abs(y[-count:])
        y[-2 * count : -count], y[-count:] = np.minimum(y[-2 * count : -count], 0.0), np.maximum(y[-count:], 0.0)
        y[N - count : N] = size - self.H.diagonal()[N - count :] * slack - self.g[N - count :]
        return np.concatenate([v, slack]), y

    def multipliers(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Multipliers of the bounds of inputs (P, m) and rows (P + 1, R), in cost over the plant's units: above 0 at an
        upper bound."""
        P, m, _ = self.gains.shape
        found = np.zeros(P * m + self.stages.lower.size)
        at = self.concerns >= 0
        np.add.at(found, self.concerns[at], (y * self.cost_scale / self.units)[at])
        return found[: P * m].reshape(P, m), found[P * m :].reshape(P + 1, -1)


class Whitened(NamedTuple):
    """A program in coordinates d, v = free [θ; 1] − root d, in which its cost is ½ d'd and a constant."""

    free: np.ndarray
    """(N, q + 1) solution without bounds."""
    root: np.ndarray
    """(N, N) with root root' = H⁻¹."""
    plain: np.ndarray
    """(N + k, N) rows [I; A] of v."""
    rows: np.ndarray
    """(N + k, N) rows [I; A] root of d, whose products are those of [I; A] H⁻¹ [I; A]'."""


def whitened(program: ParametricProgram) -> Whitened:
    """A program with a unique minimum in the coordinates of its cost.

    Raises
    ------
    InvalidValue
        A direction without cost.
    """
    H = dense(program.H)
    curvature = np.linalg.eigvalsh(H)
    if curvature[0] <= _FLAT * curvature[-1]:
        takes = "a cost with a unique minimum: give every input a weight, and use netctrl.mpc.formulate.condensed"
        raise InvalidValue("problem", "a direction without cost", takes)
    plain, root = np.vstack([np.eye(len(H)), dense(program.A)]), np.linalg.inv(np.linalg.cholesky(H)).T
    free = -np.linalg.solve(H, np.column_stack([program.F, program.g]))
    return Whitened(free, root, plain, plain @ root)


def given(problem: MpcProblem, **signals: Any) -> Given:
    """What θ has to contain for signals from outside, None where there is none."""
    ends = not problem.outputs_at_end
    uses = {
        "reference": (
            problem.plant.n_outputs,
            problem.output_weight.any() or problem.terminal_moved.any(),
            "output_weight",
        ),
        "state_reference": (problem.plant.n_states, problem.state_weight.any() or ends, "state_weight"),
        "input_reference": (problem.n_inputs, problem.input_weight.any(), "input_weight"),
        "disturbances": (len(problem.measured), problem.measured, "measured"),
    }
    forms = {}
    for name, value in signals.items():
        size, used, by = uses[name]
        if value is not None and not used:
            raise InvalidValue(name, "values", f"None: without the problem's `{by}` it has no effect; set that")
        constant = not callable(value) and np.size(value) in (1, size)
        forms[name] = "none" if value is None else "constant" if constant else "series"
    return Given(**forms)


def parameters(
    problem: MpcProblem,
    state: np.ndarray,
    past_inputs: np.ndarray | None = None,
    given: Given | None = None,
    *,
    reference: Any = None,
    state_reference: Any = None,
    input_reference: Any = None,
    disturbances: Any = None,
    past_disturbances: Any = None,
) -> np.ndarray:
    """Parameter θ from the measured state, past inputs, and what is given from outside.

    The state is predicted over the delay by eq. (3.7) of the MPCC thesis; older inputs are not used. References and
    disturbances count from the present sample; see `netctrl.mpc.plan.solve_mpc`.

    Raises
    ------
    InvalidValue
        Numbers that aren't finite, or fewer past inputs than the delay and a rate weight need.
    """
    m = checked_kind("problem", problem, MpcProblem).n_inputs
    common, old, kept = int(problem.delays.min()), problem.measurement_delay, history(problem)
    needed = max(int(problem.delays.max()) + old, 1 if kept else 0)
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
    d, P, md = problem.delays, problem.horizon, len(problem.measured)
    w = series("disturbances", disturbances, md, common + P + 1)
    before = series("past_disturbances", w[0] if past_disturbances is None else past_disturbances, md, old, last=True)
    steps = np.arange(-old, common)
    acting = np.array([[past[len(past) + i - d[j], j] for j in range(m)] for i in steps]).reshape(-1, m)
    met = predict_through_delay(problem, state, acting, np.vstack([before, w[:common]]))
    parts = [met, [past[-age, j] for age, j in kept]]
    rows = {"disturbances": (w[common:], md)}
    sizes = {"reference": problem.plant.n_outputs, "state_reference": problem.plant.n_states, "input_reference": m}
    values = {"reference": reference, "state_reference": state_reference, "input_reference": input_reference}
    for name, size in sizes.items():
        # An input acts after the delay, so it is decided that much earlier than the outputs that it moves.
        first = 0 if name == "input_reference" else common
        rows[name] = (series(name, values[name], size, first + P + 1)[first:], size)
    rows["rate_reference"] = (np.zeros((P + 1, m)), m)
    for name, (found, _) in rows.items():
        form = getattr(given, name) if given else "none"
        parts += [] if form == "none" else [found[0] if form == "constant" else found.ravel()]
    return np.concatenate(parts)


def predict_through_delay(
    problem: MpcProblem, state: np.ndarray, delayed: np.ndarray, disturbances: np.ndarray | None = None
) -> np.ndarray:
    """State x after the inputs in transit, oldest first, shape (d, m): A^d x + Σ A^i (B u + B_w w)(k − 1 − i)."""
    A, B = dense(problem.plant.A), dense(problem.plant.B)
    every = np.zeros((len(delayed), problem.plant.n_inputs))
    every[:, problem.manipulated] = delayed
    if disturbances is not None:
        every[:, list(problem.measured)] = disturbances
    x = np.asarray(state, dtype=float)
    for u in every:
        x = A @ x + B @ u
    return x


def series(name: str, value: Any, size: int, count: int, *, last: bool = False) -> np.ndarray:
    """Rows (count, size) from one for all samples, a series whose last row is held, or a function of the sample.

    With `last` the series ends at the last row, and its first one is that of the samples before.
    """
    if value is None or not size:
        return np.zeros((count, size))
    takes = f"{size} finite numbers, rows of {size}, one for each sample, or a function of the sample that gives them"
    if callable(value):
        value = [value(i) for i in range(count)]
    found = checked_numbers(name, value, takes)
    if found.ndim == 0 or (found.ndim == 1 and size == 1):
        found = found.reshape(-1, 1)
    elif found.ndim == 1:
        found = found[None]
    if found.ndim != 2 or found.shape[1] not in (1, size) or not len(found) or not np.isfinite(found).all():
        raise InvalidValue(name, f"shape {found.shape}" if np.isfinite(found).all() else found.tolist(), takes)
    at = np.arange(count) + (len(found) - count if last else 0)
    return np.broadcast_to(found[np.clip(at, 0, len(found) - 1)], (count, size))
