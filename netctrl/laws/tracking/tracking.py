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
    points: Vector
    """(k) first inputs at which its curve is broken, rising; 0 and 1 without a curve"""
    linearised: Vector
    """(k) the model's inputs there, rising"""


class TrackingState(NamedTuple):
    """What a law remembers from one sample to the next."""

    estimate: Vector
    """(n) of the state"""
    integral: Vector
    """(q) z"""
    applied: Vector
    """(m) v, inputs as they were applied [the law's units]"""
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
    curve = law.curve if integrates and law.curve is not None else np.tile([0.0, 1.0], (2, 1))
    return TrackingGains(*observer, W, integral_gain, back, *around, integrates, curve[0].copy(), curve[1].copy())


def curved(points: Vector, values: Vector, inputs: Vector) -> Vector:
    """Inputs, (m), of which the first goes through a piecewise linear curve, straight on beyond its ends."""
    last = len(points) - 1
    right = min(1, last)
    while right < last and points[right] < inputs[0]:
        right += 1
    left = right - 1
    slope = (values[right] - values[left]) / (points[right] - points[left])
    through = 1.0 * inputs
    through[0] = values[left] + slope * (inputs[0] - points[left])
    return through


def linearised(law: TrackingLaw, inputs: np.ndarray) -> np.ndarray:
    """The model's inputs, (m,), for these inputs of a law: the same where it has no curve."""
    gains = tracking_gains(law)
    return curved(gains.points, gains.linearised, np.asarray(inputs, dtype=float))


def start_tracking(gains: TrackingGains, applied: np.ndarray | None = None) -> TrackingState:
    """Initial state: x̂ = 0, and z such that the input starts at `applied`, by default at u₀, within the limits."""
    middle = curved(gains.linearised, gains.points, gains.input_offset)
    v = np.clip(middle if applied is None else np.asarray(applied, dtype=float), gains.low, gains.high)
    away = curved(gains.points, gains.linearised, v) - gains.input_offset
    integral = np.zeros(len(gains.W)) if applied is None else -gains.back @ away
    return TrackingState(np.zeros(len(gains.A)), integral, v, v.copy())


def step_tracking(gains: TrackingGains, state: TrackingState, measured: Vector, reference: Vector) -> TrackingState:
    """One sample of u = −K x̂ − Kz z + u₀, x̂₊ = A x̂ + B v + L (y − C x̂ − D v), z₊ = z + W (r − y).

    v is u within its limits; where it isn't u, z is set back until it is (Hanus' conditioning). Without W and Kz the
    reference enters by the observer: y − r in place of y. With a curve, u and v are inputs of the model, in which the
    plant is linear; their images under its inverse are what is limited and applied. Inputs and outputs are deviations
    from their offsets, in the units of the Design; `applied` of what comes back is what to apply until the next sample.

    Source: CONNET paper, eqs. 2 and 3.
    """
    y = measured - gains.output_offset
    r = reference - gains.output_offset
    v = curved(gains.points, gains.linearised, state.applied) - gains.input_offset
    innovation = y - gains.C @ state.estimate - gains.D @ v
    if not gains.integrates:
        innovation = innovation - r
    integral = state.integral + gains.W @ (r - y)
    estimate = gains.A @ state.estimate + gains.B @ v + gains.L @ innovation
    linear = -(gains.K @ estimate) - gains.integral_gain @ integral + gains.input_offset
    commanded = curved(gains.linearised, gains.points, linear)
    applied = np.clip(commanded, gains.low, gains.high)
    integral = integral - gains.back @ (curved(gains.points, gains.linearised, applied) - linear)
    return TrackingState(estimate, integral, applied, commanded)
