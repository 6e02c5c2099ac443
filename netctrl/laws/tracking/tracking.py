"""Tracking law: from state, measured outputs and references to the inputs of the next sample."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.laws.record import Matrix, Vector
from netctrl.model.law import LqiLaw, TrackingLaw


class TrackingGains(NamedTuple):
    """A law's numbers: m inputs, p outputs, n states, and q integrals, none of the published law."""

    A: Matrix
    """(n, n)"""
    B: Matrix
    """(n, m)"""
    C: Matrix
    """(p, n)"""
    D: Matrix
    """(p, m)"""
    L: Matrix
    """(n, p) estimator gain"""
    K: Matrix
    """(m, n) state feedback"""
    W: Matrix
    """(q, p) combinations of outputs that follow their references"""
    integral_gain: Matrix
    """(m, q) Kz"""
    back: Matrix
    """(q, m) pseudo-inverse of Kz"""
    input_offset: Vector
    """(m) at the operating point"""
    output_offset: Vector
    """(p) at the operating point"""
    low: Vector
    """(m) least inputs"""
    high: Vector
    """(m) greatest inputs"""
    integrates: bool
    """whether the law has integrals; without them the reference enters by the observer"""


class TrackingState(NamedTuple):
    """What a law remembers from one sample to the next."""

    estimate: Vector
    """(n) of the state"""
    integral: Vector
    """(q) z"""
    applied: Vector
    """(m) v, inputs as they were applied [the model's units]"""
    commanded: Vector
    """(m) u, before the limits"""


def tracking_gains(law: TrackingLaw) -> TrackingGains:
    """Arguments of `step_tracking` from a law."""
    integrates = isinstance(law, LqiLaw)
    m, p = len(law.inputs), len(law.outputs)
    W = law.W if integrates else np.zeros((0, p))
    integral_gain = law.integral_gain if integrates else np.zeros((m, 0))
    back = np.linalg.pinv(integral_gain) if integrates else np.zeros((0, m))
    observer = law.A, law.B, law.C, law.D, law.L, law.K
    around = law.input_offset, law.output_offset, law.low, law.high
    return TrackingGains(*observer, W, integral_gain, back, *around, integrates)


def start_tracking(gains: TrackingGains, applied: np.ndarray | None = None) -> TrackingState:
    """Initial state: x̂ = 0, and z such that the input starts at `applied`, by default at u₀, within the limits."""
    v = np.clip(gains.input_offset if applied is None else np.asarray(applied, dtype=float), gains.low, gains.high)
    integral = np.zeros(len(gains.W)) if applied is None else -gains.back @ (v - gains.input_offset)
    return TrackingState(np.zeros(len(gains.A)), integral, v, v.copy())


def step_tracking(gains: TrackingGains, state: TrackingState, measured: Vector, reference: Vector) -> TrackingState:
    """One sample of u = −K x̂ − Kz z + u₀, x̂₊ = A x̂ + B v + L (y − C x̂ − D v), z₊ = z + W (r − y).

    v is u within its limits; where it isn't u, z is set back until it is (Hanus' conditioning). Without W and Kz the
    reference enters by the observer: y − r in place of y. Inputs and outputs are deviations from their offsets, in the
    units of the Design; `applied` of what comes back is what to apply until the next sample.

    Source: CONNET paper, eqs. 2 and 3.
    """
    y = measured - gains.output_offset
    r = reference - gains.output_offset
    v = state.applied - gains.input_offset
    innovation = y - gains.C @ state.estimate - gains.D @ v
    if not gains.integrates:
        innovation = innovation - r
    integral = state.integral + gains.W @ (r - y)
    estimate = gains.A @ state.estimate + gains.B @ v + gains.L @ innovation
    commanded = -(gains.K @ estimate) - gains.integral_gain @ integral + gains.input_offset
    applied = np.clip(commanded, gains.low, gains.high)
    integral = integral - gains.back @ (applied - commanded)
    return TrackingState(estimate, integral, applied, commanded)
