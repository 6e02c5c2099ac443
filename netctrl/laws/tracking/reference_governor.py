"""A reference governor: references that can't be had, or not so soon, become the nearest that keep inputs off their
limits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.errors import InvalidValue, checked_number
from netctrl.laws.tracking.tracking import TrackingState
from netctrl.model.law import LqiLaw, TrackingLaw
from netctrl.model.statespace import StateSpace

__all__ = ["ReferenceGovernor", "govern", "reference_governor"]

_MIN, _MAX = 20, 5000
_SETTLED = 1e-4


class ReferenceGovernor(NamedTuple):
    """What is computed once for a law: m inputs, p outputs, q tracked, T samples ahead."""

    law: LqiLaw
    nearest: np.ndarray
    """(m, p) steady inputs for a unit of reference, as deviations."""
    gain: np.ndarray
    """(p, m) steady outputs for a unit of input."""
    by_state: np.ndarray
    """(T, m, n + q) inputs to come from the law's state [x̂; z], the reference at its offset."""
    by_reference: np.ndarray
    """(T, m, p) inputs to come from a constant reference, as a deviation."""
    low: np.ndarray
    """(m,) what the governor lets inputs come down to, as deviations."""
    high: np.ndarray


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
    kept = margin * (law.high - law.low)
    low, high = law.low + kept - law.input_offset, law.high - kept - law.input_offset
    return ReferenceGovernor(law, nearest, gain, by_state, by_reference, low, high)


def govern(
    governor: ReferenceGovernor, state: TrackingState, applied: np.ndarray, desired: np.ndarray
) -> tuple[np.ndarray, bool]:
    """The reference to use for the next sample: as far from `applied` towards `desired` as inputs stay within limits.

    On the way, inputs are predicted with the law's own model from its state; the line from `applied` to the nearest
    reference that can be had is cut where one of them would reach a limit.

    Parameters
    ----------
    governor : ReferenceGovernor
    state : TrackingState
        Of the law, before its step.
    given : array_like, shape (p,)
        What was used last; on the characteristic curve, as all that this returns is.
    wanted : array_like, shape (p,)
        What is asked for.

    Returns
    -------
    (ndarray of shape (p,), bool)
        The reference, and whether what is asked for can be had within the limits at all.

    Source: Gilbert, Kolmanovsky, Tan, Int. J. Robust Nonlinear Control 5 (1995) 487-504 (scalar governor).
    """
    law = governor.law
    steady = governor.nearest @ (np.asarray(desired, dtype=float) - law.output_offset)
    feasible = np.clip(steady, governor.low, governor.high)
    possible = bool(np.abs(feasible - steady).max() <= 1e-9 * np.abs(law.high - law.low).max())
    goal = governor.gain @ feasible
    start = np.asarray(applied, dtype=float) - law.output_offset
    inputs = governor.by_state @ np.concatenate([state.estimate, state.integral]) + governor.by_reference @ start
    change = governor.by_reference @ (goal - start)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        room = np.where(change > 0.0, (governor.high - inputs) / change, (governor.low - inputs) / change)
    share = float(np.clip(room[change != 0.0].min(initial=1.0), 0.0, 1.0))
    return law.output_offset + start + share * (goal - start), possible
