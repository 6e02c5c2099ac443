"""Online identification of a characteristic curve, and gains scheduled by it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from netctrl.core.errors import InvalidValue, checked_number
from netctrl.laws.tracking.estimators import RecursiveEstimate, recursive_start, recursive_step
from netctrl.laws.tracking.schedule import GainSchedule
from netctrl.model.io.matrix import dense_matrix
from netctrl.model.law import TrackingLaw
from netctrl.model.statespace import StateSpace

_POINTS = 6
_MAX = 20.0
_RECENT = 0.98  # weight of a sample's misfit against the next: fifty count


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
    misfit: np.ndarray
    """(p, 2) recent mean square of the errors of the curve, and of the law's model, over the noise's."""


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
    misfit = np.ones((len(law.outputs), 2))
    return OnlineStaticMap(law, where, deviation, gains, doubt, weight, states, estimates, misfit)


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
    steps = [
        recursive_step(known, row, [seen], forgetting=curve.forgetting, most=curve.doubt)
        for known, row, seen in zip(curve.estimates, responses, measured / curve.noise, strict=True)
    ]
    line = law.output_offset + np.outer(curve.points - law.input_offset[0], curve.gains)
    errors = np.column_stack(
        [np.hstack([error for _, error in steps]), (measured - (responses * line.T).sum(axis=1)) / curve.noise]
    )
    misfit = _RECENT * curve.misfit + (1.0 - _RECENT) * errors**2
    return curve._replace(states=states, estimates=tuple(known for known, _ in steps), misfit=misfit)


def curve_values(curve: OnlineStaticMap) -> np.ndarray:
    """Estimated steady outputs at the points, (k, p) [the law's units]: monotone, in the direction of the model's gain.

    Source: Barlow, Bartholomew, Bremner, Brunk 1972 (isotonic regression).
    """
    from scipy.optimize import isotonic_regression

    columns = [
        isotonic_regression(each.theta[:, 0], weights=1.0 / np.diag(each.P), increasing=bool(gain > 0.0)).x
        for each, gain in zip(curve.estimates, curve.gains, strict=True)
    ]
    return np.column_stack(columns) * curve.noise


def online_schedule(curve: OnlineStaticMap) -> GainSchedule:
    """Slopes of the curve as learned, at the middles between points, at most 20 times off the model's.

    A slope below the model's, which raises the law's gain, counts only as far as two standard errors above it are still
    below: where the link wasn't seen, the model's slope stays. All slopes are the model's while the curve predicts the
    outputs no better than the model does.
    """
    widths = np.diff(curve.points)
    ratios = np.diff(curve_values(curve), axis=0) / widths[:, None] / curve.gains
    for k, (each, noise) in enumerate(zip(curve.estimates, curve.noise, strict=True)):
        between = np.diff(np.diff(each.P, axis=0), axis=1).diagonal()  # variances of c_{i+1} - c_i
        error = noise * np.sqrt(curve.misfit[k, 0] * between) / (widths * abs(curve.gains[k]))
        ratios[:, k] = np.maximum(ratios[:, k], np.minimum(1.0, ratios[:, k] + 2.0 * error))
    ratios[:, curve.misfit[:, 0] >= curve.misfit[:, 1]] = 1.0
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
