"""Online identification of how far a law's curve has moved: other traffic that joined, or capacity that a link lost."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.laws.tracking.tracking import TrackingGains, tracking_gains
from netctrl.model.identified import InputCurve
from netctrl.model.law import LqiLaw
from netctrl.model.statespace import StateSpace

_RECENT = 0.95  # weight of a sample's misfit against the next: twenty count
_HELPS = 0.5  # of the misfit without a shift
_WALK = 0.002  # standard deviation of the shift's change in a sample, over the range of inputs
_SURPRISE = 16.0  # squared error over its variance from which the shift is taken as unknown


class OnlineShift(NamedTuple):
    """Estimate of y = G(q) f(u + x): f is a law's curve, and x moves it along its input.

    f stays monotone, x leaves u + x within what f's trace visited, and the law's limits of u stay as they are.
    """

    law: LqiLaw
    """With a curve, n states."""
    curve: InputCurve
    place: int
    """Of the curve's output among the law's."""
    gain: float
    """Steady gain of the law's model from v to it."""
    x: float
    """Estimated shift [the input's unit]."""
    variance: float
    """Of its error."""
    states: np.ndarray
    """(2, n) of the law's model with the shift and without."""
    misfit: np.ndarray
    """(2,) recent mean square of the errors with the shift and without, over the noise's."""

    @property
    def used(self) -> float:
        """The shift that the law takes: 0 unless it halves the errors."""
        return self.x if self.misfit[0] < _HELPS * self.misfit[1] else 0.0


def start_online_shift(law: LqiLaw, curve: InputCurve) -> OnlineShift:
    """No shift yet, with the curve of the model that a law was made from.

    Raises
    ------
    InvalidValue
        A law without a curve, or another's.
    """
    if not isinstance(law, LqiLaw) or law.curve is None:
        raise InvalidValue("law", type(law).__name__, "a law from a model with a curve")
    if curve.output not in law.outputs or not np.array_equal(law.curve[0], curve.inputs):
        raise InvalidValue("curve", curve.output, "the curve of the model that the law was made from")
    place = law.outputs.index(curve.output)
    gain = float(StateSpace(law.A, law.B, law.C, law.D, law.interval_s).steady_gain()[place, 0])
    walk = (_WALK * np.ptp(curve.inputs)) ** 2
    return OnlineShift(law, curve, place, gain, 0.0, walk, np.zeros((2, len(law.A))), np.ones(2))


def learn_shift(known: OnlineShift, applied: np.ndarray, measured: np.ndarray) -> OnlineShift:
    """Estimate after one more sample: a period under `applied`, (1,), with the outputs `measured`, (p,).

    An extended Kalman filter of x as a random walk, whose variance grows to the error's where one surprises. A sample
    that isn't finite teaches nothing.
    """
    law, curve, u = known.law, known.curve, float(applied[0])
    ends = curve.inputs[[0, -1]]
    shifts = np.array([known.x, 0.0])
    away = curve.linear(u + shifts) - law.input_offset[0]
    seen = law.output_offset[known.place] + known.states @ law.C[known.place] + law.D[known.place, 0] * away
    states = known.states @ law.A.T + away[:, None] * law.B[:, 0]
    if not np.isfinite(measured).all():
        return known._replace(states=states)
    errors = measured[known.place] - seen
    noise = np.interp(u + shifts, curve.inputs, curve.deviation) ** 2
    piece = int(np.clip(np.searchsorted(curve.inputs, u + known.x) - 1, 0, len(curve.slopes) - 1))
    slope = known.gain * curve.slopes[piece]
    variance = known.variance + (_WALK * np.ptp(ends)) ** 2
    if errors[0] ** 2 > _SURPRISE * (slope**2 * variance + noise[0]):
        variance = min((errors[0] / slope) ** 2, np.ptp(ends) ** 2)
    step = variance * slope / (slope**2 * variance + noise[0])
    x = float(np.clip(known.x + step * errors[0], *(ends - u)))
    misfit = _RECENT * known.misfit + (1.0 - _RECENT) * errors**2 / noise
    return known._replace(x=x, variance=(1.0 - step * slope) * variance, states=states, misfit=misfit)


def shifted(known: OnlineShift) -> TrackingGains:
    """The law's numbers with its curve moved by what was learned, where that helps."""
    gains = tracking_gains(known.law)
    return gains._replace(points=gains.points - known.used)
