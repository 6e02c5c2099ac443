"""Online identification of a characteristic curve, and gains scheduled by it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from netctrl.errors import InvalidValue, checked_number
from netctrl.laws.tracking.estimators import RecursiveEstimate, recursive_start, recursive_step
from netctrl.laws.tracking.schedule import GainSchedule
from netctrl.model.io.matrix import dense_matrix
from netctrl.model.law import TrackingLaw
from netctrl.model.statespace import StateSpace

__all__ = ["OnlineStaticMap", "curve_values", "learn", "online_schedule", "start_online_map"]

_POINTS = 6
_MAX = 20.0


class OnlineStaticMap(NamedTuple):
    """Estimate of y = G(q) c(R): c is piecewise linear with k points, G is the law's model with a steady gain of 1."""

    law: TrackingLaw
    """With one input, p outputs, n states."""
    points: np.ndarray
    """(k,) inputs at which c is broken, rising [the law's units]."""
    noise: np.ndarray
    """(p,) deviation of a measured output from what the model predicts."""
    gains: np.ndarray
    """(p,) steady gains of the law's model."""
    doubt: float
    """Greatest P: that at the start."""
    forgetting: float
    """Forgetting factor of the estimates."""
    states: np.ndarray
    """(n, k) of the law's model under each of c's hat functions."""
    estimates: tuple[RecursiveEstimate, ...]
    """c at the points over the noise, by output."""


def start_online_map(
    law: TrackingLaw, noise: Any, *, points: Any = None, at: float | None = None, forgetting: float = 0.995
) -> OnlineStaticMap:
    """Initial curve, the straight line of the law's model, with an uncertainty of its whole rise.

    Parameters
    ----------
    law : TrackingLaw
        With one input, made from a model around one point.
    noise : array_like, shape (p,)
        Deviations of the outputs, as the roots of an `IdentifiedModel.innovation_covariance`'s diagonal.
    points : array_like, shape (k,), optional
        Where the curve may bend; by default six, even between the law's limits.
    at : float, optional
        The input under which the link stands at the start; by default that around which the model was made.
    forgetting : float
        Weight of a sample against the next: 1 / (1 − λ) samples count.

    Raises
    ------
    InvalidValue
        Two inputs, a model without a steady gain, noise that isn't above 0, points that don't rise, no points and no
        limits.
    """
    if len(law.inputs) != 1:
        raise InvalidValue("law", f"{len(law.inputs)} inputs", "one: a curve has one input")
    deviation = dense_matrix("noise", noise, (1, len(law.outputs)))[0]
    if not (deviation > 0.0).all():
        raise InvalidValue("noise", deviation.tolist(), "deviations above 0")
    weight = checked_number("forgetting", forgetting, "a number above 0, at most 1", above=0.0, at_most=1.0)
    if points is None and not (np.isfinite(law.low) & np.isfinite(law.high)).all():
        raise InvalidValue("points", "none", "points, or a law with limits on both sides")
    where = np.linspace(law.low[0], law.high[0], _POINTS) if points is None else dense_matrix("points", points)[0]
    if len(where) < 2 or not (np.diff(where) > 0.0).all():
        raise InvalidValue("points", where.tolist(), "two or more, rising")
    gains = _gains(law)
    line = (law.output_offset + np.outer(where - law.input_offset[0], gains)) / deviation
    doubt = float(np.ptp(line, axis=0).max()) ** 2
    shares = _shares(where, float(law.input_offset[0]) if at is None else at)
    states = np.linalg.solve(np.eye(len(law.A)) - law.A, law.B @ shares[None])
    estimates = tuple(recursive_start(column[:, None], doubt=doubt) for column in line.T)
    return OnlineStaticMap(law, where, deviation, gains, doubt, weight, states, estimates)


def learn(curve: OnlineStaticMap, applied: np.ndarray, measured: np.ndarray) -> OnlineStaticMap:
    """Estimate after one more sample: a period under `applied`, (1,), with the outputs `measured`, (p,).

    c is linear in its values at the points, so y = Σ_i c_i (G h_i)(R) + e is a regression on the model's responses to
    the hat functions h_i; least squares forget by `forgetting`, and doubt never grows beyond that at the start, so
    points that aren't visited keep what they learned. A sample that isn't finite teaches nothing.
    """
    law, shares = curve.law, _shares(curve.points, float(applied[0]))
    responses = (law.C @ curve.states + law.D @ shares[None]) / curve.gains[:, None]
    states = law.A @ curve.states + law.B @ shares[None]
    if not np.isfinite(measured).all():
        return curve._replace(states=states)
    estimates = tuple(
        recursive_step(known, row, [seen], forgetting=curve.forgetting, most=curve.doubt)[0]
        for known, row, seen in zip(curve.estimates, responses, measured / curve.noise, strict=True)
    )
    return curve._replace(states=states, estimates=estimates)


def curve_values(curve: OnlineStaticMap) -> np.ndarray:
    """Estimated steady outputs at the points, (k, p) [the law's units]."""
    return np.hstack([each.theta for each in curve.estimates]) * curve.noise


def online_schedule(curve: OnlineStaticMap) -> GainSchedule:
    """Slopes of the curve as learned, at the middles between points; slopes 20 times off the model's, or of another
    sign, are held at that."""
    ratios = np.diff(curve_values(curve), axis=0) / np.diff(curve.points)[:, None] / curve.gains
    return GainSchedule(0.5 * (curve.points[1:] + curve.points[:-1]), 1.0 / ratios.clip(1.0 / _MAX, _MAX))


def _gains(law: TrackingLaw) -> np.ndarray:
    takes = "a law whose model settles, at a gain other than 0 for each output"
    try:
        gains = StateSpace(law.A, law.B, law.C, law.D, law.interval_s).steady_gain()[:, 0]
    except np.linalg.LinAlgError:
        raise InvalidValue("law", "a model with a pole at 1", takes) from None
    if not gains.all():
        raise InvalidValue("law", "a steady gain of 0", takes)
    return gains


def _shares(points: np.ndarray, at: float) -> np.ndarray:
    """Values of the hat functions, (k,); beyond the ends those of the end."""
    place = int(np.clip(np.searchsorted(points, at) - 1, 0, len(points) - 2))
    share = float(np.clip((at - points[place]) / (points[place + 1] - points[place]), 0.0, 1.0))
    shares = np.zeros(len(points))
    shares[place], shares[place + 1] = 1.0 - share, share
    return shares
