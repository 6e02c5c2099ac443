"""Linear MPC problem as data: model, horizon, weights, bounds, rows, delays, blocks."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from netctrl.core.errors import InvalidValue, checked_whole
from netctrl.model.io.matrix import dense, dense_matrix
from netctrl.model.statespace import StateSpace

GROUPS = ("state", "output", "input", "rate", "mixed")
"""Quantities with bounds, as their arguments are called."""

_ROUNDING = 1e-10  # relative tolerance of a weight's symmetry and semidefiniteness


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MpcProblem:
    """A model predictive control problem: a plant, a horizon, quadratic costs and bounds.

        min Σ_{k<P} (x_k'Q x_k + e_k'Q_y e_k + a_k'R a_k + Δu_k'S Δu_k) + x_P'T x_P + Σ (ε'ρ ε + w'ε)
        x_{k+1} = A x_k + B u_{k−d} + B_w w_k,  y_k = C x_k + D u_k + D_w w_k,  Δu_k = u_k − u_{k−1}
        e_k = y_k − r_k,  a_k = u_k − u_ref,  with r = 0 and u_ref = 0 unless they are given with the state

    x_0 is the state after the delay, on which the first free input acts; with delays that differ, after the shortest
    one. Inputs, their changes and rows with inputs are bounded at k = 0 .. P − 1, the others at k = 1 .. P; each by
    lower − ε ≤ · ≤ upper + ε where it is soft.

    Parameters
    ----------
    plant : StateSpace
        Discrete time; n states, p outputs. Its inputs are m manipulated ones and those in `measured`.
    horizon : int
        P [samples], at least 1.
    state_weight, terminal_weight : array_like, shape (n, n)
        Q and T; a number is a multiple of the identity. By default the state and output weights act at P as well: T is
        Q + C'Q_y C, and the outputs at P have the reference r_P. A given T is a weight on x_P itself, or, of shape
        (q, q), on z_P = [x_P; past inputs] (`history`), from the state's and the inputs' references on.
    terminal_rows, terminal_upper : array_like, shapes (l, q), (l,), optional
        Terminal set: rows z_P + moved [r_P; w_P] ≤ upper. `netctrl.mpc.proof.prove_mpc` finds all three.
    terminal_moved : array_like, shape (l, p + nw), optional
        What the reference and the measured disturbances do to it; further columns are those of the disturbances that an
        estimator finds.
    output_weight, input_weight, rate_weight : array_like, shapes (p, p), (m, m), (m, m)
        Q_y, R and S, likewise. An array of shape (P, ·, ·) has one weight for each sample, Q and Q_y too.
    state_lower, state_upper, output_lower, output_upper : array_like, shapes (n,), (p,)
        Bounds in the plant's units, infinite where there is none; a number applies to all entries.
    input_lower, input_upper, rate_lower, rate_upper : array_like, shape (m,)
        Bounds of u and Δu, likewise.
    mixed_states, mixed_inputs : array_like, shapes (l, n), (l, m), optional
        E and F of the rows E x_k + F u_k; zeros where only one is given.
    mixed_lower, mixed_upper : array_like, shape (l,)
        Bounds of these rows.
    soft_weight, output_soft_weight, input_soft_weight, rate_soft_weight, mixed_soft_weight : array_like
        ρ, cost of the squared violation of a bound of states, outputs, inputs, changes or mixed rows; infinite (the
        default) where the bound is hard.
    soft_linear, output_soft_linear, input_soft_linear, rate_soft_linear, mixed_soft_linear : array_like
        w ≥ 0. If it exceeds the multiplier of the hard bound, the bound is met wherever that is possible.
    delay : int or sequence of m int
        d [samples] from an input to its effect.
    measurement_delay : int
        Age of the measured state [samples]; it is predicted over the delay as well.
    control_horizon : int, optional
        Number of free inputs; the last one is held until P. Kept as `blocks`.
    blocks : sequence of int, optional
        Move blocking instead: numbers of samples for which each free input is held; the last one until P.
    measured : sequence of int
        Inputs of the plant that are measured disturbances w.
    input_scale, state_scale : array_like, shapes (m,), (n,), optional
        Units in which the solver works; the default makes results independent of the plant's units.

    Raises
    ------
    InvalidValue
        Continuous time, a horizon of 0, an indefinite weight, an empty interval, shapes that don't fit.

    Examples
    --------
    An integrator with a bounded input, over five samples:

    >>> import netctrl
    >>> plant = netctrl.StateSpace([[1.0]], [[1.0]], [[1.0]], dt=1.0)
    >>> problem = netctrl.MpcProblem(
    ...     plant=plant, horizon=5, state_weight=1.0, input_weight=1.0, input_lower=-0.5, input_upper=0.5
    ... )
    >>> netctrl.solve_mpc(problem, [2.0]).inputs.ravel().round(3).tolist()
    [-0.5, -0.5, -0.5, -0.3, -0.1]

    The same plant follows a reference, with inputs that change by at most 0.2 and are held for 1, 1 and 3 samples:

    >>> problem = netctrl.MpcProblem(
    ...     plant=plant, horizon=5, output_weight=1.0, rate_weight=0.1, rate_lower=-0.2, rate_upper=0.2, blocks=(1, 1)
    ... )
    >>> netctrl.solve_mpc(problem, [0.0], past_inputs=[[0.0]], reference=[1.0]).inputs.ravel().round(3).tolist()
    [0.2, 0.266, 0.266, 0.266, 0.266]
    """

    plant: StateSpace
    horizon: int
    state_weight: Any = 0.0
    output_weight: Any = 0.0
    input_weight: Any = 0.0
    rate_weight: Any = 0.0
    terminal_weight: Any = None
    terminal_rows: Any = None
    terminal_upper: Any = np.inf
    terminal_moved: Any = None
    state_lower: Any = -np.inf
    state_upper: Any = np.inf
    output_lower: Any = -np.inf
    output_upper: Any = np.inf
    input_lower: Any = -np.inf
    input_upper: Any = np.inf
    rate_lower: Any = -np.inf
    rate_upper: Any = np.inf
    mixed_states: Any = None
    mixed_inputs: Any = None
    mixed_lower: Any = -np.inf
    mixed_upper: Any = np.inf
    soft_weight: Any = np.inf
    soft_linear: Any = 0.0
    output_soft_weight: Any = np.inf
    output_soft_linear: Any = 0.0
    input_soft_weight: Any = np.inf
    input_soft_linear: Any = 0.0
    rate_soft_weight: Any = np.inf
    rate_soft_linear: Any = 0.0
    mixed_soft_weight: Any = np.inf
    mixed_soft_linear: Any = 0.0
    delay: Any = 0
    measurement_delay: int = 0
    control_horizon: int | None = None
    blocks: Any = None
    measured: Any = ()
    input_scale: Any = None
    state_scale: Any = None

    def __post_init__(self) -> None:
        plant = self.plant
        if not isinstance(plant, StateSpace) or plant.dt <= 0.0:
            got = "continuous time" if isinstance(plant, StateSpace) else type(plant).__name__
            raise InvalidValue("plant", got, "a StateSpace in discrete time, with a sampling interval dt > 0")
        n, p, measured = plant.n_states, plant.n_outputs, _measured(self.measured, plant.n_inputs)
        m = plant.n_inputs - len(measured)
        samples = "a number of samples of at least 0"
        made: dict[str, Any] = {
            "horizon": checked_whole("horizon", self.horizon, "a number of samples of at least 1", at_least=1),
            "measurement_delay": checked_whole("measurement_delay", self.measurement_delay, samples),
            "measured": measured,
            "delay": _delay(self.delay, m),
        }
        P = made["horizon"]
        made |= {"blocks": _blocks(self.control_horizon, self.blocks, P), "control_horizon": None}
        sizes = {"state": n, "output": p, "input": m, "rate": m}
        for name, size in sizes.items():
            made[f"{name}_weight"] = _weights(f"{name}_weight", getattr(self, f"{name}_weight"), size, P)
        terminal = end_weight(plant, made) if self.terminal_weight is None else self.terminal_weight
        E, F = self.mixed_states, self.mixed_inputs
        rows = len(np.atleast_2d(F if E is None else E)) if E is not None or F is not None else 0
        for name, given, size in (("mixed_states", E, n), ("mixed_inputs", F, m)):
            made[name] = np.zeros((rows, size)) if given is None else dense_matrix(name, given, (rows, size))
        for name in GROUPS:
            size, of = sizes.get(name, rows), "" if name == "state" else f"{name}_"
            made |= interval(name, getattr(self, f"{name}_lower"), getattr(self, f"{name}_upper"), size)
            square, linear = f"{of}soft_weight", f"{of}soft_linear"
            made[square] = _above_zero(square, getattr(self, square), size, finite=False)
            made[linear] = vector(linear, getattr(self, linear), size)
            if not ((made[linear] >= 0.0) & (made[linear] < np.inf)).all():
                raise InvalidValue(linear, getattr(self, linear), "finite numbers of at least 0")
        for name in ("state", "input"):
            scale, size = getattr(self, f"{name}_scale"), sizes[name]
            made[f"{name}_scale"] = None if scale is None else _above_zero(f"{name}_scale", scale, size)
        for name, value in made.items():
            object.__setattr__(self, name, value)
        q = n + len(history(self))
        whole = np.ndim(terminal) == 2 and len(terminal) == q
        last = weight("terminal_weight", terminal, q if whole else n)
        ends = self.terminal_rows
        ends = np.zeros((0, q)) if ends is None else dense_matrix("terminal_rows", ends, (None, q))
        made = {"terminal_weight": last, "terminal_rows": ends}
        made["terminal_upper"] = vector("terminal_upper", self.terminal_upper, len(ends))
        signals, moved = p + len(measured), self.terminal_moved
        moved = np.zeros((len(ends), signals)) if moved is None else moved
        made["terminal_moved"] = dense_matrix("terminal_moved", moved, (len(ends), None))
        if made["terminal_moved"].shape[1] < signals:
            raise InvalidValue("terminal_moved", np.shape(moved), f"rows of at least {signals}: outputs, disturbances")
        for name, value in made.items():
            object.__setattr__(self, name, value)
        for each in fields(self):
            if isinstance(value := getattr(self, each.name), np.ndarray):
                value.setflags(write=False)

    @property
    def outputs_at_end(self) -> bool:
        """Whether the terminal weight is the default one, by which outputs at P follow their reference."""
        weights = {"state_weight": self.state_weight, "output_weight": self.output_weight}
        return not len(self.terminal_rows) and np.array_equal(self.terminal_weight, end_weight(self.plant, weights))

    @property
    def n_inputs(self) -> int:
        """Number of manipulated inputs, m."""
        return self.plant.n_inputs - len(self.measured)

    @property
    def manipulated(self) -> np.ndarray:
        """Columns of the plant's inputs that are manipulated, shape (m,)."""
        return np.setdiff1d(np.arange(self.plant.n_inputs), self.measured)

    @property
    def delays(self) -> np.ndarray:
        """Delay of each input [samples], shape (m,)."""
        return np.broadcast_to(self.delay, (self.n_inputs,))

    @property
    def has_rate(self) -> bool:
        """Whether changes of the input have a cost or a bound, so that the last input matters."""
        bounded = np.isfinite(self.rate_lower).any() or np.isfinite(self.rate_upper).any()
        return bool(bounded or self.rate_weight.any())

    @property
    def soft(self) -> np.ndarray:
        """States with a soft bound, shape (n,) of bool."""
        bounded = np.isfinite(self.state_lower) | np.isfinite(self.state_upper)
        return bounded & np.isfinite(self.soft_weight)

    @property
    def hard(self) -> np.ndarray:
        """States with a hard bound, shape (n,) of bool."""
        bounded = np.isfinite(self.state_lower) | np.isfinite(self.state_upper)
        return bounded & ~np.isfinite(self.soft_weight)

    @property
    def input_limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Hard bounds of the inputs, shapes (m,): infinite where they are soft."""
        hard = ~np.isfinite(self.input_soft_weight)
        return np.where(hard, self.input_lower, -np.inf), np.where(hard, self.input_upper, np.inf)

    @property
    def aimed(self) -> np.ndarray:
        """Which outputs are to meet their references, (p,): those whose errors have a weight; all where none has."""
        weighed = (self.output_weight != 0.0).any(axis=tuple(range(self.output_weight.ndim - 1)))
        return weighed if weighed.any() else np.full(len(weighed), True)


def history(problem: MpcProblem) -> list[tuple[int, int]]:
    """Past inputs in z after the plant's states, as pairs of age [samples] and input."""
    late = problem.delays - problem.delays.min()
    weight, n = problem.terminal_weight, problem.plant.n_states
    wide = np.ndim(weight) == 2 and len(weight) > n  # a weight on past inputs too, whatever else has them
    last = problem.has_rate or problem.blocks is not None or late.any() or wide
    inputs = range(problem.n_inputs)
    return [(1, j) for j in inputs if last] + [(t, j) for t in range(2, late.max() + 1) for j in inputs if late[j] >= t]


def end_weight(plant: StateSpace, weights: dict[str, Any]) -> np.ndarray:
    """Weight Q + C'Q_y C of the states after the last sample, by the weights of that sample."""
    Q, Qy = (
        weights[name] if weights[name].ndim == 2 else weights[name][-1] for name in ("state_weight", "output_weight")
    )
    C = dense(plant.C)
    found = Q + C.T @ Qy @ C
    return 0.5 * (found + found.T)


def _measured(value: Any, inputs: int) -> tuple[int, ...]:
    takes = f"different inputs of the plant from 0 to {inputs - 1}, not all of them"
    value = _listed(value)
    if not isinstance(value, (tuple, list)):
        raise InvalidValue("measured", value, takes)
    found = tuple(checked_whole("measured", each, takes, at_most=inputs - 1) for each in value)
    if len(set(found)) < len(found) or (found and len(found) >= inputs):
        raise InvalidValue("measured", value, takes)
    return found


def _listed(value: Any) -> Any:
    """An array as a list, anything else as it is."""
    return value.tolist() if isinstance(value, np.ndarray) else value


def _delay(value: Any, m: int) -> int | tuple[int, ...]:
    takes, value = "a number of samples of at least 0", _listed(value)
    if not isinstance(value, (tuple, list)):
        return checked_whole("delay", value, takes)
    found = tuple(checked_whole("delay", each, takes) for each in value)
    if len(found) != m:
        raise InvalidValue("delay", value, f"{takes}, or {m} of them, one for each input")
    return found


def _blocks(control_horizon: Any, blocks: Any, P: int) -> tuple[int, ...] | None:
    """Numbers of samples for which each free input is held, P in total; None where each input is free."""
    takes = f"numbers of samples of at least 1, at most {P} in total"
    if control_horizon is not None:
        if blocks is not None:
            raise InvalidValue("control_horizon", control_horizon, "either a control horizon or blocks, not both")
        least = f"a number of free inputs from 1 to {P}"
        free = checked_whole("control_horizon", control_horizon, least, at_least=1, at_most=P)
        blocks = (1,) * free
    if blocks is None:
        return None
    blocks = _listed(blocks)
    if not isinstance(blocks, (tuple, list)) or not blocks:
        raise InvalidValue("blocks", blocks, takes)
    found = [checked_whole("blocks", each, takes, at_least=1) for each in blocks]
    if sum(found) > P:
        raise InvalidValue("blocks", blocks, takes)
    found[-1] += P - sum(found)
    return tuple(found) if len(found) < P else None


def _weights(name: str, value: Any, size: int, P: int) -> np.ndarray:
    """One weight (size, size), or one for each sample (P, size, size)."""
    try:
        depth = np.ndim(value)
    except ValueError:  # ragged lists, which `weight` refuses
        depth = 2
    if depth != 3:
        return weight(name, value, size)
    if len(value) != P:
        raise InvalidValue(name, f"{len(value)} matrices", f"one matrix, or {P}, one for each sample of the horizon")
    return np.stack([weight(name, each, size) for each in value])


def weight(name: str, value: Any, size: int) -> np.ndarray:
    """Symmetric positive semidefinite matrix from a number or a matrix; raises InvalidValue with the remedy."""
    if not isinstance(value, (list, tuple)) and np.ndim(value) == 0:
        number = vector(name, value, 1)[0]
        if not 0.0 <= number < np.inf:
            raise InvalidValue(name, value, "a finite number of at least 0, or a positive semidefinite matrix")
        return number * np.eye(size)
    found = dense_matrix(name, value, (size, size))
    largest = np.abs(found).max(initial=0.0)
    takes = "a symmetric positive semidefinite matrix, for a convex cost"
    if np.abs(found - found.T).max(initial=0.0) > _ROUNDING * largest:
        raise InvalidValue(name, "a matrix that isn't symmetric", f"{takes}; pass 0.5 (W + W')")
    least = float(np.linalg.eigvalsh(found).min(initial=0.0))
    if least < -_ROUNDING * largest:
        raise InvalidValue(name, f"an eigenvalue of {least:.3g}", takes)
    return 0.5 * (found + found.T)


def interval(name: str, lower: Any, upper: Any, size: int) -> dict[str, np.ndarray]:
    """Both bounds of a quantity as vectors; raises InvalidValue where one is NaN or the interval is empty."""
    low, high = vector(f"{name}_lower", lower, size), vector(f"{name}_upper", upper, size)
    for which, bound in (("lower", low), ("upper", high)):
        if np.isnan(bound).any():
            raise InvalidValue(f"{name}_{which}", "NaN", "numbers, infinite where there is no bound")
    empty = (low > high) | (low == np.inf) | (high == -np.inf)
    if empty.any():
        at = int(np.argmax(empty))
        got = f"{low[at]:.9g} above {name}_upper {high[at]:.9g} for {name} {at}"
        raise InvalidValue(
            f"{name}_lower", got, f"at most {name}_upper: the interval is empty; swap or widen the bounds"
        )
    return {f"{name}_lower": low, f"{name}_upper": high}


def vector(name: str, value: Any, size: int) -> np.ndarray:
    """Vector of `size` numbers, from as many numbers or from one for all."""
    try:
        found = np.array(value, dtype=float)
        return np.ascontiguousarray(np.broadcast_to(found, (size,))).copy()
    except (TypeError, ValueError, OverflowError):
        raise InvalidValue(name, value, f"a number, or {size} numbers") from None


def _above_zero(name: str, value: Any, size: int, *, finite: bool = True) -> np.ndarray:
    found = vector(name, value, size)
    if not ((found > 0.0) & ((found < np.inf) | (not finite))).all():
        raise InvalidValue(name, value, f"numbers above 0{'' if finite else '; infinite for a hard bound'}")
    return found
