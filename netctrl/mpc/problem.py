"""Linear MPC problem as data: model, horizon, weights, bounds, delay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from netctrl.core.errors import InvalidValue, checked_whole
from netctrl.model.io.matrix import dense, dense_matrix
from netctrl.model.statespace import StateSpace

_ROUNDING = 1e-10  # relative tolerance of a weight's symmetry and semidefiniteness


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MpcProblem:
    """A model predictive control problem: a plant, a horizon, quadratic costs and bounds.

        min Σ_{k<P} (x_k'Q x_k + y_k'Q_y y_k + u_k'R u_k + Δu_k'S Δu_k) + x_P'T x_P + Σ (ε'ρ ε + w'ε)
        x_{k+1} = A x_k + B u_{k−d},  y_k = C x_k + D u_k,  Δu_k = u_k − u_{k−1}

    x_0 is the state after the delay, on which the first free input acts. Inputs are bounded at k = 0 .. P − 1, states
    at k = 1 .. P, by lower − ε ≤ x ≤ upper + ε where they are soft.

    Parameters
    ----------
    plant : StateSpace
        Discrete time; n states, m inputs, p outputs.
    horizon : int
        P [samples], at least 1.
    state_weight, terminal_weight : array_like, shape (n, n)
        Q and T; a number is a multiple of the identity. T is Q + C'Q_y C by default.
    output_weight, input_weight, rate_weight : array_like, shapes (p, p), (m, m), (m, m)
        Q_y, R and S, likewise.
    state_lower, state_upper, input_lower, input_upper : array_like, shapes (n,), (m,)
        Bounds in the plant's units, infinite where there is none; a number applies to all entries.
    soft_weight : array_like, shape (n,)
        ρ, cost of the squared violation of a state's bound; infinite (the default) where the bound is hard.
    soft_linear : array_like, shape (n,)
        w ≥ 0. If it exceeds the multiplier of the hard bound, the bound is met wherever that is possible.
    delay : int
        d [samples] from an input to its effect.
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
    """

    plant: StateSpace
    horizon: int
    state_weight: Any = 0.0
    output_weight: Any = 0.0
    input_weight: Any = 0.0
    rate_weight: Any = 0.0
    terminal_weight: Any = None
    state_lower: Any = -np.inf
    state_upper: Any = np.inf
    input_lower: Any = -np.inf
    input_upper: Any = np.inf
    soft_weight: Any = np.inf
    soft_linear: Any = 0.0
    delay: int = 0
    input_scale: Any = None
    state_scale: Any = None

    def __post_init__(self) -> None:
        plant = self.plant
        if not isinstance(plant, StateSpace) or plant.dt <= 0.0:
            got = "continuous time" if isinstance(plant, StateSpace) else type(plant).__name__
            raise InvalidValue("plant", got, "a StateSpace in discrete time, with a sampling interval dt > 0")
        n, m, p = plant.n_states, plant.n_inputs, plant.n_outputs
        made: dict[str, Any] = {
            "horizon": checked_whole("horizon", self.horizon, "a number of samples of at least 1", at_least=1),
            "delay": checked_whole("delay", self.delay, "a number of samples of at least 0"),
        }
        for name, size in (("state", n), ("output", p), ("input", m), ("rate", m)):
            made[f"{name}_weight"] = weight(f"{name}_weight", getattr(self, f"{name}_weight"), size)
        C = dense(plant.C)
        stage = made["state_weight"] + C.T @ made["output_weight"] @ C
        terminal = stage if self.terminal_weight is None else weight("terminal_weight", self.terminal_weight, n)
        made["terminal_weight"] = terminal
        for name, size in (("state", n), ("input", m)):
            made |= interval(name, getattr(self, f"{name}_lower"), getattr(self, f"{name}_upper"), size)
            scale = getattr(self, f"{name}_scale")
            made[f"{name}_scale"] = np.zeros(size) if scale is None else _above_zero(f"{name}_scale", scale, size)
        made["soft_weight"] = _above_zero("soft_weight", self.soft_weight, n, finite=False)
        linear = vector("soft_linear", self.soft_linear, n)
        if not ((linear >= 0.0) & (linear < np.inf)).all():
            raise InvalidValue("soft_linear", self.soft_linear, "finite numbers of at least 0")
        made["soft_linear"] = linear
        for name, value in made.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)

    @property
    def has_rate(self) -> bool:
        """Whether changes of the input have a cost, so that the last input matters."""
        return bool(self.rate_weight.any())

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
