"""Warnings about an identified model, such as poles that the trace can't determine or outputs without dependence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log

import numpy as np

from netctrl.ident.descent.innovations import Noise
from netctrl.ident.subspace.dependence import FEEDBACK_LEVEL, Feedback, dependence, instant
from netctrl.ident.subspace.lq_reduction import LqReduction
from netctrl.ident.validate import Matrices
from netctrl.model.fit import OrderChoice, central, settled
from netctrl.model.signals import SignalTrace

_LEVEL = 0.01  # significance level of the test of dependence on the inputs
_LITTLE = 1.0  # percentage of an output's variance below which the inputs explain little
_HARM = 1.02  # prediction error that counts as harm, relative to the simulation error's variance
_TOLD = 0.5  # share of what the past leaves of an output, told by the inputs of the same sample
_MOVED = 1e-9  # residue of a mode, relative to the greatest: below it is the noise's alone
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
    model: Matrices,
    guard: Guard | None,
    noise: Noise | None,
    data: LqReduction,
    trace: SignalTrace,
    fits: Fits,
    choice: OrderChoice | None,
    answers: Feedback,
    biased: bool,
    gains: np.ndarray | None,
) -> list[str]:
    """Warnings about a model (A, B, C, D) in scaled units; `guard` is None for models without one."""
    A = model[0]
    return [
        *_feedback(answers, biased, bool(model[3].any()), trace, 1.0 - 1.0 / instant(data)),
        *_stability(A, guard),
        *_gains(A, gains, trace),
        *_slow(model, trace),
        *_dependence(data, trace.outputs, fits.simulated),
        *_noise(guard, noise, trace.outputs, fits),
        *_order(choice),
    ]


def _feedback(answers: Feedback, biased: bool, direct: bool, trace: SignalTrace, at_once: float) -> Iterator[str]:
    """Warnings about inputs that respond to the outputs."""
    for j in answers.determined:
        yield (
            f"feedback without a reference: {trace.inputs[j]} is an exact function of the outputs, as under u = -k y,"
            " and the model may be that law's inverse (computed outputs without noise look the same): record in open"
            " loop, with inputs that no law sets"
        )
    if answers.determined:
        return
    remedy = "which doesn't bias this model, by maximum likelihood and with D = 0"
    if at_once > _TOLD:
        remedy += f"; the inputs tell {at_once:.0%} of the outputs within the sample: where that is the plant, not the"
        remedy += " law, ask for feedthrough"
    if direct:
        remedy = "and D may stand for a law: without feedthrough the likelihood's model isn't biased"
    if biased:
        remedy = "and biases this method, even in sign where noise dominates: take method auto, or record in open loop"
    for j in answers.laws:
        yield (
            f"feedback: {trace.inputs[j]} follows the present output's noise as under a law, {remedy}: the data can't"
            " tell a response within the sample from the law's"
        )
    if answers.chance < FEEDBACK_LEVEL and not answers.laws:
        yield (
            f"feedback: later inputs respond to the outputs' noise (F-test, p = {answers.chance:.2g}, against"
            f" {FEEDBACK_LEVEL:g}), {remedy}"
        )


def _gains(A: np.ndarray, gains: np.ndarray | None, trace: SignalTrace) -> Iterator[str]:
    """Warnings about steady gains whose draws disagree in sign or by a factor of two."""
    if gains is None:
        if np.abs(np.linalg.eigvals(A)).max() < 1.0:
            yield "the trace is too short to tell how certain the steady gains are: record longer or lower the order"
        return
    unsure = [
        "{} to {} {:.3g} to {:.3g}".format(output, name, *central(draws))
        for output, rows in zip(trace.outputs, gains.transpose(1, 2, 0), strict=True)
        for name, draws in zip(trace.inputs, rows, strict=True)
        if not settled(draws)
    ]
    if unsure:
        yield (
            f"the trace doesn't determine the steady gain: {len(gains)} draws of {', '.join(unsure)} (nine in ten)."
            " Record longer, with inputs that move further and stay longer at each level"
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


def _slow(model: Matrices, trace: SignalTrace) -> Iterator[str]:
    """Warnings about poles that the inputs move and whose time constant, −1 / ln |z| samples, exceeds every segment."""
    longest = max(len(u) for u, _ in trace.segments())
    A, B, C, _ = model
    poles, modes = np.linalg.eig(A)
    moved = np.linalg.norm(C @ modes, axis=0) * np.linalg.norm(np.linalg.lstsq(modes, B, rcond=None)[0], axis=1)
    for pole in poles[moved > _MOVED * moved.max(initial=0.0)]:
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
