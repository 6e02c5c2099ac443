"""Warnings about an identified model, such as poles that the trace can't determine or outputs without dependence.

F-tests tell an output's dependence on the inputs, and the inputs' dependence on the outputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log
from typing import NamedTuple

import numpy as np

from netctrl.ident.innovations import Noise
from netctrl.ident.subspace.lq_reduction import LqReduction
from netctrl.model.fit import OrderChoice
from netctrl.model.identified import settled
from netctrl.model.signals import SignalTrace

FEEDBACK_LEVEL = 0.001  # of the test of feedback

_SURE = 1e-18  # relative to an output's variance: residual of its own past below which it is exact
_RANK = 1e-10  # relative singular value below which regressors are linearly dependent
_DETERMINED = 1e-6  # share of an input's innovation below which the outputs determine it
_LATER = 5  # later inputs in the test of feedback [samples]


class Feedback(NamedTuple):
    """Evidence that the inputs respond to the outputs."""

    chance: float
    """p-value: probability that a trace without feedback would show as much, by Bonferroni's bound over the outputs."""
    determined: tuple[int, ...]
    """Inputs that present and past outputs determine: a law without a reference, or outputs without noise."""

    @property
    def found(self) -> bool:
        """Whether the trace shows feedback, at a level of 0.1 % for the test."""
        return bool(self.determined) or self.chance < FEEDBACK_LEVEL


def dependence(data: LqReduction) -> np.ndarray:
    """p-values (p,): probability that inputs without influence would explain as much of each output as these do.

    y_t is regressed on y_{t−1}, ..., y_{t−i}, and on these and u_t, ..., u_{t−i} of all inputs, i = horizon.
    With the output's own past the regression's noise is nearly white, whatever the colour of the output's noise.

    Source: Granger 1969; Lütkepohl 2005, section 3.6.
    """
    i, m = data.horizon, data.n_inputs
    inputs = _inputs(data, range(i + 1))
    return np.array([_chance(data, _own(data, k), inputs, i * (m + data.n_outputs) + m + k) for k in _outputs(data)])


def feedback(data: LqReduction, inputs: np.ndarray, feedthrough: bool) -> Feedback:
    """Test of whether the past innovations of the outputs explain present inputs, as feedback makes them do.

    y_t is regressed on y_{t−1}, ..., y_{t−i} and u_t, ..., u_{t−i}, which leaves its innovation, and on u_{t+1}, ...,
    u_{t+5} in addition: later inputs tell of an innovation only where they respond to it. Given the inputs this is an
    F-test for any signal, periodic or random. Without feedthrough u_t is among the tested inputs.

    A law without a reference, such as u = −k y, can't be tested so: y is an exact function of u too. An input is
    `determined` where the outputs leave 1e-6 of the variance that the inputs' past leaves. A signal that repeats its
    values, such as a GBN, is no law's: `inputs`, shape (T, m), are its samples.

    Source: Haugh 1976 and Sims 1972 (the hypothesis); Geweke, Meese and Dent 1983 (the regression with y's past).
    """
    i, m, p = data.horizon, data.n_inputs, data.n_outputs
    q = m + p
    known = _inputs(data, range(i + feedthrough))
    later = _inputs(data, range(i + feedthrough, min(2 * i, i + 1 + _LATER)))
    chances = [_chance(data, [*_own(data, k), *known], later, i * q + m + k, exact=1.0) for k in _outputs(data)]
    past, outputs = _inputs(data, range(i)), [t * q + m + k for t in range(i + 1) for k in range(p)]
    determined = []
    for j in (j for j in range(m) if 2 * len(np.unique(inputs[:, j])) > len(inputs)):
        target = data.factor[:, i * q + j]
        alone = _left(data.factor[:, past], target)
        left = _left(data.factor[:, [*past, *outputs]], target)
        if alone @ alone > _DETERMINED * (target @ target) and left @ left < _DETERMINED * (alone @ alone):
            determined.append(j)
    return Feedback(min(1.0, p * min(chances)), tuple(determined))


def _outputs(data: LqReduction) -> range:
    return range(data.n_outputs)


def _own(data: LqReduction, k: int) -> list[int]:
    """Columns of an output's own past."""
    return [t * (data.n_inputs + data.n_outputs) + data.n_inputs + k for t in range(data.horizon)]


def _inputs(data: LqReduction, times: range) -> list[int]:
    return [t * (data.n_inputs + data.n_outputs) + j for t in times for j in range(data.n_inputs)]


def _chance(
    data: LqReduction, known: Sequence[int], tested: Sequence[int], target: int, *, exact: float = 0.0
) -> float:
    """p-value of the F-test that `tested` columns explain nothing of the target beyond the `known` ones; `exact` where
    these explain all of it."""
    from scipy.special import fdtrc

    R, y = data.factor, data.factor[:, target]
    without, whole = _basis(R[:, known]), _basis(R[:, [*known, *tested]])
    alone, left = y - without @ (without.T @ y), y - whole @ (whole.T @ y)
    many, free = whole.shape[1] - without.shape[1], float(data.columns.sum()) - 1.0 - whole.shape[1]
    if many <= 0 or free <= 0.0:
        return 1.0
    told = alone @ alone - left @ left
    if alone @ alone <= _SURE * (y @ y):
        return exact
    return float(fdtrc(many, free, max(told, 0.0) / many / (left @ left / free))) if left.any() else 0.0


def _left(columns: np.ndarray, target: np.ndarray) -> np.ndarray:
    basis = _basis(columns)
    return target - basis @ (basis.T @ target)


def _basis(columns: np.ndarray) -> np.ndarray:
    """Orthonormal basis of the columns' range; dependent columns, as a law's inputs are, add nothing."""
    U, s, _ = np.linalg.svd(columns, full_matrices=False)
    return U[:, s > _RANK * s[0]]


_LEVEL = 0.01  # significance level of the test of dependence on the inputs
_LITTLE = 1.0  # percentage of an output's variance below which the inputs explain little
_HARM = 1.02  # prediction error that counts as harm, relative to the simulation error's variance
_EXACT = 1e-16  # mean squared error of a model without noise


@dataclass(frozen=True, slots=True, eq=False)
class Fits:
    """Variances accounted for, each (p,) [%]: simulated and one step ahead, on the trace and on held-out data."""

    simulated: np.ndarray
    predicted: np.ndarray | None
    held_out: np.ndarray | None
    held_out_predicted: np.ndarray | None


@dataclass(frozen=True, slots=True)
class Guard:
    """What kept a model stable, and its fit in scaled units."""

    stabilised: str
    """Action of the stability guard; empty without one."""
    raw_radius: float
    """Spectral radius of the unguarded shift of Γ."""
    error: float
    """Mean square of the simulation error."""


def cautions(
    A: np.ndarray,
    guard: Guard | None,
    noise: Noise | None,
    data: LqReduction,
    trace: SignalTrace,
    fits: Fits,
    choice: OrderChoice | None,
    answers: Feedback,
    gains: np.ndarray | None,
) -> list[str]:
    """Warnings about a model with state matrix A; `guard` is None for models without one."""
    return [
        *_feedback(answers, trace),
        *_stability(A, guard),
        *_gains(A, gains, trace),
        *_slow(A, trace),
        *_dependence(data, trace.outputs, fits.simulated),
        *_noise(guard, noise, trace.outputs, fits),
        *_order(choice),
    ]


def _feedback(answers: Feedback, trace: SignalTrace) -> Iterator[str]:
    """Warnings about inputs that respond to the outputs."""
    remedy = "record in open loop, with inputs that no law sets"
    for j in answers.determined:
        yield (
            f"feedback without a reference: {trace.inputs[j]} is an exact function of the outputs, as under u = -k y,"
            f" and the model may be that law's inverse (computed outputs without noise look the same): {remedy}"
        )
    if answers.chance < FEEDBACK_LEVEL:
        yield (
            f"feedback: later inputs respond to the outputs' noise (F-test, p = {answers.chance:.2g}, against"
            f" {FEEDBACK_LEVEL:g}), so the model is biased, even in sign where noise dominates: {remedy}"
        )


def _gains(A: np.ndarray, gains: np.ndarray | None, trace: SignalTrace) -> Iterator[str]:
    """Warnings about steady gains whose draws disagree in sign or by a factor of two."""
    if gains is None:
        if np.abs(np.linalg.eigvals(A)).max() < 1.0:
            yield "the trace is too short to tell how certain the steady gains are: record longer or lower the order"
        return
    unsure = [
        f"{output} to {name} {draws.min():.3g} to {draws.max():.3g}"
        for output, rows in zip(trace.outputs, gains.transpose(1, 2, 0), strict=True)
        for name, draws in zip(trace.inputs, rows, strict=True)
        if not settled(draws)
    ]
    if unsure:
        yield (
            f"the trace doesn't determine the steady gain: {len(gains)} draws of {', '.join(unsure)}. Record longer,"
            " with inputs that move further and stay longer at each level"
        )


def _stability(A: np.ndarray, guard: Guard | None) -> Iterator[str]:
    radius = float(np.abs(np.linalg.eigvals(A)).max())
    if guard is not None and guard.stabilised:
        yield (
            f"the stability guard acted: the data alone give a pole at |z| = {guard.raw_radius:.6g}; used instead: "
            f"{guard.stabilised}, |z| = {radius:.6g}. Lower the order, remove the trend or record longer"
        )
    if radius >= 1.0:
        yield f"the model is unstable: |z| = {radius:.6g}; n4sid, moesp and cva guard against that"


def _slow(A: np.ndarray, trace: SignalTrace) -> Iterator[str]:
    """Warnings about poles whose time constant, −1 / ln |z| samples, exceeds every segment."""
    longest = max(len(u) for u, _ in trace.segments())
    for pole in np.linalg.eigvals(A):
        size = abs(pole)
        if pole.imag >= 0.0 and np.exp(-1.0 / longest) < size < 1.0:
            where = f"|z| = 1 - {1.0 - size:.2g}" + (f" at {np.angle(pole):.4g} rad a sample" if pole.imag else "")
            yield (
                f"a pole at {where} has a time constant of {-1.0 / log(size):.3g} samples, longer than the longest "
                f"segment ({longest}): the data can't distinguish it from an integrator, and the steady gain is "
                "unknown. Record longer, remove the trend or lower the order"
            )


def _dependence(data: LqReduction, outputs: tuple[str, ...], vaf: np.ndarray) -> Iterator[str]:
    for name, chance, told in zip(outputs, dependence(data), vaf, strict=True):
        if chance > _LEVEL:
            yield (
                f"{name}: no measurable dependence on the inputs of the last {data.horizon} samples (F-test, p = "
                f"{chance:.2g}); its model fits noise. Move the inputs more, record longer or leave this output out"
            )
        elif told < _LITTLE:
            yield (
                f"{name}: the inputs explain {told:.2g} % of its variance in this model, though it depends on them "
                f"(F-test, p = {chance:.2g}): raise the order or the horizon, or move the inputs more"
            )


def _noise(guard: Guard | None, noise: Noise | None, outputs: tuple[str, ...], fits: Fits) -> Iterator[str]:
    if noise is None and not (guard is not None and guard.error < _EXACT):
        exact = [name for name, vaf in zip(outputs, fits.simulated, strict=True) if vaf > 100.0 * (1.0 - _EXACT)]
        why = f"{', '.join(exact)} is free of noise" if exact else "no gain gives a stable predictor"
        yield f"no Kalman gain: {why}"
    if fits.held_out is None or fits.held_out_predicted is None:
        return
    for name, alone, ahead in zip(outputs, fits.held_out, fits.held_out_predicted, strict=True):
        if 100.0 - ahead > _HARM * (100.0 - alone):
            yield (
                f"{name}: on held-out data the prediction one step ahead ({ahead:.4g} %) is worse than the simulation "
                f"({alone:.4g} %): the noise there differs, so K makes predictions worse"
            )


def _order(choice: OrderChoice | None) -> Iterator[str]:
    if choice is not None and choice.confidence is not None and choice.confidence < 0.5:
        yield f"order {choice.order} is uncertain: only {choice.confidence:.0%} of the trace's halves show it"
