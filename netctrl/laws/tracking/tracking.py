"""A tracking law at work: (state, measured outputs, references) to the inputs of the next sample."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.model.law import LqiLaw, TrackingLaw

__all__ = ["TrackingState", "start_tracking", "step_tracking"]


class TrackingState(NamedTuple):
    """What a law remembers from one sample to the next."""

    estimate: np.ndarray
    """(n,) x̂."""
    integral: np.ndarray
    """(q,) z; none for an LqgLaw."""
    applied: np.ndarray
    """(m,) v, inputs as they were applied [the model's units]."""
    commanded: np.ndarray
    """(m,) u, before the limits."""


def start_tracking(law: TrackingLaw, applied: np.ndarray | None = None) -> TrackingState:
    """At the start: x̂ = 0; z such that the input begins at `applied`, by default at u₀, within the limits."""
    v = np.clip(law.input_offset if applied is None else np.asarray(applied, dtype=float), law.low, law.high)
    integral = np.zeros(law.W.shape[0] if isinstance(law, LqiLaw) else 0)
    if isinstance(law, LqiLaw) and applied is not None:
        integral = -np.linalg.pinv(law.integral_gain) @ (v - law.input_offset)
    return TrackingState(np.zeros(len(law.A)), integral, v, v.copy())


def step_tracking(law: TrackingLaw, state: TrackingState, measured: np.ndarray, reference: np.ndarray) -> TrackingState:
    """One sample: measured outputs and references (p,), with their offsets [the model's units].

    Returns
    -------
    TrackingState
        Whose `applied` is what to apply until the next sample.
    """
    y = np.asarray(measured, dtype=float) - law.output_offset
    r = np.asarray(reference, dtype=float) - law.output_offset
    v = state.applied - law.input_offset
    innovation = y - law.C @ state.estimate - law.D @ v
    integral = state.integral
    if isinstance(law, LqiLaw):
        integral = integral + law.W @ (r - y)
    else:
        innovation = innovation - r
    estimate = law.A @ state.estimate + law.B @ v + law.L @ innovation
    desired = -law.K @ estimate
    if isinstance(law, LqiLaw):
        desired = desired - law.integral_gain @ integral
    u = desired + law.input_offset
    applied = np.clip(u, law.low, law.high)
    if isinstance(law, LqiLaw) and (applied != u).any():
        integral = integral - np.linalg.pinv(law.integral_gain) @ (applied - u)
    return TrackingState(estimate, integral, applied, u)
