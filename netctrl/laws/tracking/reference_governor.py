"""Reference governor: replaces unreachable references by the nearest ones that keep inputs within their limits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.core.errors import InvalidValue, checked_number
from netctrl.laws.record import Matrix, Vector
from netctrl.laws.tracking.tracking import TrackingState, linearised
from netctrl.model.law import LqiLaw, TrackingLaw
from netctrl.model.statespace import StateSpace

_MIN, _MAX = 20, 5000
_SETTLED = 1e-4


class ReferenceGovernor(NamedTuple):
    """Data computed once for a law: m inputs, p outputs, q tracked, T samples ahead."""

    output_offset: Vector
    """(p) of the law; what follows is for deviations"""
    nearest: Matrix
    """(m, p) steady inputs for a unit of reference"""
    gain: Matrix
    """(p, m) steady outputs for a unit of input"""
    by_state: Matrix
    """(T m, n + q) inputs to come from the law's state [x; z], the reference at its offset"""
    by_reference: Matrix
    """(T m, p) inputs to come from a constant reference"""
    low: Vector
    """(m) what the governor lets inputs come down to"""
    high: Vector
    """(m) and up to"""


def reference_governor(law: TrackingLaw, *, margin: float = 0.0) -> ReferenceGovernor:
    """Prepare a governor for a law with integral action.

    Parameters
    ----------
    law : LqiLaw
        Stable without its limits; no other law settles at its reference.
    margin : float
        Share of each input's range that is kept free at both ends, for noise; from 0 to below 0.5.

    Raises
    ------
    InvalidValue
        Another law, a margin out of bounds, or a law that doesn't settle.
    """
    if not isinstance(law, LqiLaw):
        raise InvalidValue("law", type(law).__name__, "an LqiLaw: others do not settle at their reference")
    margin = checked_number("margin", margin, "a share from 0 to below 0.5", at_least=0.0, at_most=0.499)
    n, q = len(law.A), len(law.W)
    F = np.hstack([law.K, law.integral_gain])
    C = np.hstack([law.C, np.zeros((len(law.C), q))]) - law.D @ F
    A = np.zeros((n + q, n + q))
    A[:n, :n], A[n:, n:] = law.A, np.eye(q)
    A[:n] -= law.B @ F
    A[n:] -= law.W @ C
    radius = float(np.abs(np.linalg.eigvals(A)).max())
    if not radius < 1.0:
        raise InvalidValue("law", f"spectral radius {radius:.6g}", "a law whose loop around its own model settles")
    T = int(np.clip(np.ceil(np.log(_SETTLED) / np.log(max(radius, 1e-3))), _MIN, _MAX))
    by_state, by_reference = np.empty((T, len(F), n + q)), np.empty((T, len(F), len(law.C)))
    power, response = np.eye(n + q), np.zeros((n + q, len(law.C)))
    entering = np.vstack([np.zeros((n, len(law.C))), law.W])
    for t in range(T):
        by_state[t], by_reference[t] = -F @ power, -F @ response
        power, response = A @ power, A @ response + entering
    gain = StateSpace(law.A, law.B, law.C, law.D, law.interval_s).steady_gain()
    nearest = np.linalg.pinv(law.W @ gain) @ law.W
    kept = margin * (law.high - law.low) if margin > 0.0 else np.zeros(len(F))  # limits may be infinite
    low, high = (linearised(law, each) - law.input_offset for each in (law.low + kept, law.high - kept))
    ahead = by_state.reshape(-1, n + q), by_reference.reshape(-1, len(law.C))
    return ReferenceGovernor(law.output_offset, nearest, gain, *ahead, low, high)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def govern(governor: ReferenceGovernor, state: TrackingState, applied: Vector, desired: Vector) -> Vector:
    """The reference to use for the next sample: as far from `applied` towards `desired` as inputs stay within limits.

    On the way, inputs are predicted with the law's own model from its state, before its step; the line from `applied`,
    what was used last, to the nearest reference that can be had is cut where one of them would reach a limit.

    Source: Gilbert, Kolmanovsky, Tan, Int. J. Robust Nonlinear Control 5 (1995) 487-504 (scalar governor).
    """
    start = applied - governor.output_offset
    steady = governor.nearest @ (desired - governor.output_offset)
    way = governor.gain @ np.clip(steady, governor.low, governor.high) - start
    inputs = governor.by_state @ np.concatenate((state.estimate, state.integral)) + governor.by_reference @ start
    change = governor.by_reference @ way
    limit = np.where(change > 0.0, np.resize(governor.high, len(change)), np.resize(governor.low, len(change)))
    room = np.where(change != 0.0, (limit - inputs) / change, 1.0)
    share = max(min(room.min(), 1.0), 0.0)
    return governor.output_offset + start + share * way


def attainable(governor: ReferenceGovernor, desired: np.ndarray) -> bool:
    """Whether a reference, (p,), is reachable within the limits."""
    steady = governor.nearest @ (np.asarray(desired, dtype=float) - governor.output_offset)
    feasible = np.clip(steady, governor.low, governor.high)
    return bool(np.abs(feasible - steady).max() <= 1e-9 * np.abs(governor.high - governor.low).max())
