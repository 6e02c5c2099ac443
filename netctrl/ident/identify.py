"""Identification of a model from a trace: check, scale, compress, estimate, validate, and return to physical units."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import numpy as np

from netctrl.core.errors import InvalidValue, checked_whole, checked_word
from netctrl.ident.cautions import Fits, Guard, cautions
from netctrl.ident.choice import FOCUSES, Score, Validation, choose
from netctrl.ident.descent.innovations import Noise, noise_of
from netctrl.ident.descent.likelihood import Innovations
from netctrl.ident.descent.output_error import settled
from netctrl.ident.learner import COMPARED, Candidate, Learner
from netctrl.ident.missing import completed, without_faults
from netctrl.ident.signals import Samples, Scale, Signals, check_excitation, excitation, parted, signals_of
from netctrl.ident.subspace.dependence import Feedback, feedback
from netctrl.ident.subspace.estimate import INSIDE
from netctrl.ident.subspace.horizon import horizon_of
from netctrl.ident.subspace.lq_reduction import LqReduction, Segment, lq_reduce
from netctrl.ident.subspace.methods import METHODS, Subspace, choose_order, shift, subspace
from netctrl.ident.subspace.sippy_ import SIPPY_METHODS, by_sippy
from netctrl.ident.uncertainty import bootstrap_poles, gain_draws
from netctrl.ident.validate import Matrices, predicted, simulated, variance_accounted_for
from netctrl.model.design.design import provenance
from netctrl.model.fit import IdentificationResult, OrderChoice
from netctrl.model.identified import Identification, IdentifiedModel
from netctrl.model.signals import SignalTrace

if TYPE_CHECKING:
    from typing import Unpack

    from netctrl.core.names import Focus, IdentMethod
    from netctrl.ident.signals import Columns, Experiments, Options, Reading, Table

ALL_METHODS = ("auto", *METHODS, "pbsid", *SIPPY_METHODS)

_MAX_ORDER = 20
_TINY = float(np.finfo(float).tiny)


@overload
def identify(trace: SignalTrace, **options: Unpack[Options]) -> IdentificationResult: ...
@overload
def identify(
    trace: Table, *, inputs: Sequence[str], outputs: Sequence[str], **options: Unpack[Reading]
) -> IdentificationResult: ...
@overload
def identify(trace: Experiments, **options: Unpack[Columns]) -> IdentificationResult: ...
@overload
def identify(
    trace: Samples,
    y: Samples,
    *,
    interval_s: float | None = ...,
    inputs: Sequence[str] | None = ...,
    outputs: Sequence[str] | None = ...,
    **options: Unpack[Options],
) -> IdentificationResult: ...
def identify(
    trace: Signals,
    y: Samples | None = None,
    *,
    interval_s: float | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    segments: str | None = None,
    time: str | None = None,
    bin_s: float | None = None,
    order: int | Literal["auto"] = "auto",
    method: IdentMethod = "auto",
    focus: Focus = "both",
    horizon: int | None = None,
    feedthrough: bool | Literal["auto"] = "auto",
    stable: bool | Literal["auto"] = "auto",
    held_out: float | SignalTrace | None = None,
    refine: bool | Literal["auto"] = "auto",
    bootstrap: int = 0,
    seed: int = 0,
    argv: Iterable[str] = (),
    files: Iterable[Path] = (),
) -> IdentificationResult:
    """Identify a linear state-space model from measured inputs and outputs.

        x₊ = A x + B u + K e,  y = C x + D u + e

    u and y are deviations from the signals' means. Signals are scaled first and scaled back afterwards: the model is in
    the units of the trace. The model is stable: a guard corrects an unstable estimate, with a warning.

    Parameters
    ----------
    trace : SignalTrace, DataFrame, path, str, array_like or list
        One or several segments; those shorter than two horizons are not used. A DataFrame has times as
        `SignalTrace.from_pandas` takes them. A name is that of a bundled trace. With `y`, the inputs u: (T,) or (T, m),
        one row per sample. A list has several experiments: traces, tables, files, or pairs (u, y) of arrays.
    y : array_like, optional
        Outputs to the inputs u: (T,) or (T, p).
    interval_s : float, optional
        Sampling interval of arrays and of tables without times [s]; a pandas index of dates or durations determines it.
    inputs, outputs : sequence of str, optional
        Columns of a table or file; names of arrays' signals, by default pandas' or u1, u2, ... and y1, y2, ...
    segments, time : str, optional
        Columns of a table or file: a segment begins where the value changes; the times, as usual `time_s`.
    bin_s : float, optional
        Width of bins [s] over whose rows a table or file is averaged, for times that aren't evenly spaced.
    order : int or "auto"
        States n. "auto" counts the canonical correlations of past and future that exceed those of noise alone.
    method : str
        "auto": the best of those below on stretches left out, refined or not, with noise states or without. Otherwise
        a subspace weighting "n4sid", "moesp" or "cva", "pbsid" (greatest likelihood, without bias under feedback), or a
        method of SIPPY ("sippy-...", one segment only).
    focus : {"both", "simulation", "prediction"}
        What "auto" compares: simulation, prediction one sample ahead, or the latter among models that simulate as well
        as the best.
    horizon : int, optional
        Samples i of the past and the future that are regressed on one another; above `order`. By default 20 or less.
    feedthrough : bool or "auto"
        Whether D is estimated; 0 otherwise. "auto": unless the trace surely shows feedback, which D would stand for.
    stable : bool or "auto"
        Whether only stable models are taken. "auto": unless the trace surely shows feedback, which may hold the plant.
    held_out : float or SignalTrace, optional
        Share of the trace, at its end, that is kept for validation; or another trace for validation.
    refine : bool or "auto"
        Whether all parameters of a method other than "auto" are refined: for the least simulation error, or for
        "pbsid" to the greatest likelihood. "auto": if that improves the fit on stretches left out.
    bootstrap : int
        Number of draws for the uncertainty of the poles.
    seed : int
        Seed of these draws.
    argv, files : iterable of str and of Path
        Command line and files, for the provenance.

    Returns
    -------
    IdentificationResult

    Raises
    ------
    InvalidValue
        An unusable argument, a constant signal, too little excitation, too short a trace: what to change.
    NetctrlError
        A method of SIPPY fails.

    Examples
    --------
    A first-order lag with a pole at 0.8 and a little noise:

    >>> import netctrl, numpy as np
    >>> from scipy.signal import lfilter
    >>> random = np.random.default_rng(1)
    >>> u = netctrl.gbn(500, (0.0, 1.0), random)[:, 0]
    >>> y = lfilter([0.0, 0.5], [1.0, -0.8], u) + 0.01 * random.standard_normal(500)
    >>> found = netctrl.identify(netctrl.SignalTrace(interval_s=0.1, input_values=u, output_values=y))
    >>> len(found.model.A), round(float(found.poles[0].real), 2)
    (1, 0.8)

    References
    ----------
    van Overschee and De Moor, Subspace Identification for Linear Systems, 1996; Verhaegen and Verdult, Filtering and
    System Identification, 2007.
    """
    trace = signals_of(trace, y, interval_s, inputs=inputs, outputs=outputs, segments=segments, time=time, bin_s=bin_s)
    _check_options(order, method, focus, feedthrough, stable, refine)
    draws = checked_whole("bootstrap", bootstrap, "a number of draws from 0 to 10000", at_most=10_000)
    random = np.random.default_rng(checked_whole("seed", seed, "a whole number of at least 0"))
    learned, tried = parted(trace, held_out)
    given, (learned, found, told) = learned, without_faults(learned)
    if tried is not None:
        tried, _, said = without_faults(tried)
        told += [f"held out: {each}" for each in said]
    if focus == "both" and any(flaw.kind == "random walk" for flaw in found):
        focus = "prediction"  # a simulation says nothing of an integrated disturbance
    scale = Scale.of(learned)
    parts = scale.scaled(learned)
    desired = None if order == "auto" else order
    i = horizon_of(parts, horizon, desired)
    filled = completed(parts, i) if np.isnan(learned.output_values).any() else None
    data = lq_reduce(filled or parts, i)
    most = min(i - 1, _MAX_ORDER, max(1, excitation(data) - 1))  # the inputs can't determine more states
    choice = None if desired is not None else choose_order(data, random, most=most)
    answers = feedback(data, learned.input_values)
    direct, held = (not answers.sure if each == "auto" else bool(each) for each in (feedthrough, stable))
    learner = Learner(parts, i, direct, held, data_=data, filled=filled)
    validation = Validation.of(parts, i, direct, held, filled)
    candidate, score, n = None, None, cast(int, desired) if choice is None else choice.order
    if method == "auto" and validation.possible:
        score = choose(validation, most, focus, desired, closed=answers.found)
        candidate, n = score.candidate, score.candidate.order
    elif method not in SIPPY_METHODS:
        candidate = _candidate(method, n, refine, validation, len(learned))
        score = validation.score(candidate) if validation.possible else None
    warnings = [*learned.notes, *told, *check_excitation(data, learned.inputs, n)]
    made = _by_sippy(filled or parts, data, method, n, direct) if candidate is None else _found(learner, candidate)
    around = np.linalg.eigvals(made.matrices[0])
    around = around[np.lexsort((-around.imag, -np.abs(around)))]
    cloud = bootstrap_poles(data, _own(method), len(around), draws, random, around) if draws else None
    if draws and cloud is None:
        warnings.append(
            "no uncertainty of the poles: the trace is too short for the bootstrap, or the horizon too long"
        )
    gains = gain_draws(made.matrices, _about(parts, made.offset), random)
    return _result(
        made, scale, given, tried, parts, data, choice, validation, score, cloud, gains, answers, warnings, argv, files
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """Identified model in scaled units."""

    matrices: Matrices
    offset: np.ndarray
    noise: Noise | None
    singular_values: np.ndarray
    guard: Guard | None
    method: str
    refined: bool
    consistent: bool
    """Whether feedback doesn't bias it."""


def _candidate(method: str, n: int, refine: Any, validation: Validation, samples: int) -> Candidate:
    """The candidate of a method by name, refined where asked or where that pays."""
    if method == "pbsid":
        return Candidate("pbsid", n, "likelihood", rough=refine is False)
    plain = Candidate(cast(Any, _own(method)), n)
    fine = replace(plain, refinement="simulation")
    if refine is not True:
        pays = refine == "auto" and samples <= COMPARED and validation.possible
        fine = fine if pays and validation.score(fine).simulation < validation.score(plain).simulation else plain
    return replace(fine, noise="gain")


def _found(learner: Learner, candidate: Candidate) -> _Found:
    space = learner.space("cva" if candidate.start == "arx" else candidate.start)
    if isinstance(space, Subspace) and candidate.start != "arx":
        space.gamma(candidate.order)  # refuses an order that the data don't have
    made = learner.model(candidate)
    if made is None:
        raise InvalidValue("order", candidate.order, "fewer states, or another method: the data give no such model")
    made = _no_worse(made, learner)
    guard = None
    if candidate.refinement != "likelihood" and isinstance(space, Subspace):
        said, fitted = cast(Any, learner.fitted(candidate))
        radius = float(np.abs(np.linalg.eigvals(shift(space.gamma(candidate.order), space.n_outputs))).max())
        guard = Guard((said or "states regressed") if radius >= INSIDE else "", radius, fitted.error)
    A, B, C, D = made.matrices
    T, inverse = settled(A, np.hstack([B, made.K]), C)  # noise states see K alone
    noise = Noise(inverse @ made.K, made.V) if np.isfinite(made.V).all() else None
    return _Found(
        (inverse @ A @ T, inverse @ B, C @ T, D),
        made.offset,
        noise,
        space.singular_values,
        guard,
        str(candidate),
        candidate.refinement != "none",
        candidate.refinement == "likelihood",
    )


def _no_worse(made: Innovations, learner: Learner) -> Innovations:
    """The model, with another K where the likelihood predicts one output worse than the simulation for another."""
    if not made.K.any() or np.abs(np.linalg.eigvals(made.A)).max() >= 1.0:
        return made
    about = _about(learner.segments, made.offset)
    y = np.vstack([y for _, y in about])
    alone = np.nanvar(y - simulated(made.matrices, about), axis=0)
    if (np.nanvar(y - predicted(made.matrices, made.K, about), axis=0) <= alone).all():
        return made
    noise = noise_of(made.matrices, about, learner.data, made.K)
    return made if noise is None else replace(made, K=noise.K, V=noise.V)


def _by_sippy(segments: list[Segment], data: LqReduction, method: str, n: int, feedthrough: bool) -> _Found:
    matrices, K = by_sippy(segments, method, n, data.horizon, feedthrough)
    offset, values = np.zeros(data.n_outputs), subspace(data, _own(method)).singular_values
    noise = noise_of(matrices, segments, data, K)
    return _Found(matrices, offset, noise, values, None, method, refined=False, consistent=False)


def _about(segments: Sequence[Segment], offset: np.ndarray) -> list[Segment]:
    """Segments with the outputs' deviations from the model's offset."""
    return [(u, y - offset) for u, y in segments]


def _own(method: str) -> str:
    """netctrl's weighting closest to a method."""
    name = method.removeprefix("sippy-")
    return name if name in METHODS else "cva"


def _result(
    found: _Found,
    scale: Scale,
    learned: SignalTrace,
    tried: SignalTrace | None,
    segments: list[Segment],
    data: LqReduction,
    choice: OrderChoice | None,
    validation: Validation,
    score: Score | None,
    cloud: np.ndarray | None,
    gains: np.ndarray | None,
    answers: Feedback,
    warnings: list[str],
    argv: Iterable[str],
    files: Iterable[Path],
) -> IdentificationResult:
    A, B, C, D = found.matrices
    fit, vaf, ahead = _tried(found, scale, segments)
    held, held_vaf, held_ahead = (None, None, None) if tried is None else _tried(found, scale, scale.scaled(tried))
    fits = Fits(vaf, ahead, held_vaf, held_ahead)
    gains = None if gains is None else gains * (scale.y_size[:, None] / scale.u_size)
    noise = found.noise
    if noise is not None:
        with np.errstate(over="ignore"):
            K, V = noise.K / scale.y_size, noise.V * scale.y_size * scale.y_size[:, None]
        if not np.isfinite(V).all() or (np.diag(V) < _TINY).any():
            noise = None
            warnings.append("no Kalman gain: squares of the outputs aren't floats; take another unit")
    biased = bool(answers.determined) or (answers.found and not found.consistent)
    warnings += cautions(A, found.guard, found.noise, data, learned, fits, choice, answers, biased, gains)
    how = Identification(
        method=found.method,
        order=len(A),
        horizon=data.horizon,
        samples=len(learned),
        segments=len(learned.starts),
        singular_values=found.singular_values,
        vaf=vaf,
        held_out_vaf=held_vaf,
        left_out_vaf=_shares(None if score is None else score.simulated),
        left_out_predicted_vaf=_shares(None if score is None else score.predicted),
        stabilised=found.guard is not None and found.guard.stabilised != "",
        refined=found.refined,
        feedback=answers.found,
        biased=biased,
        steady_gain_draws=gains,
        warnings=tuple(warnings),
    )
    model = IdentifiedModel(
        A=A,
        B=B / scale.u_size,
        C=C * scale.y_size[:, None],
        D=D * scale.y_size[:, None] / scale.u_size,
        dt=learned.interval_s,
        inputs=learned.inputs,
        outputs=learned.outputs,
        input_offset=scale.u_mean,
        output_offset=scale.y_mean + scale.y_size * found.offset,
        input_range=np.stack([learned.input_values.min(axis=0), learned.input_values.max(axis=0)], axis=1),
        output_range=_visited(learned.output_values, fit),
        K=None if noise is None else K,
        innovation_covariance=None if noise is None else V,
        identification=how,
        provenance=provenance(argv=argv, inputs=files, libraries=("numpy", "scipy", "numba")),
    )
    return IdentificationResult(
        model=model,
        trace=learned,
        simulated=fit,
        predicted_vaf=ahead,
        held_out=tried,
        held_out_simulated=held,
        held_out_predicted_vaf=held_ahead,
        order=choice,
        pole_draws=cloud,
        alternatives=validation.alternatives,
    )


def _shares(left: np.ndarray | None) -> np.ndarray | None:
    """VAF of relative error variances [%]; None where there is none."""
    return None if left is None or not np.isfinite(left).all() else 100.0 * (1.0 - left)


def _tried(found: _Found, scale: Scale, segments: list[Segment]) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Simulated outputs in physical units, their VAF, and that of the prediction one sample ahead."""
    about = _about(segments, found.offset)
    measured = about[0][1] if len(about) == 1 else np.vstack([y for _, y in about])
    fit = simulated(found.matrices, about)
    vaf, ahead = variance_accounted_for(measured, fit), None
    if found.noise is not None:
        ahead = variance_accounted_for(measured, predicted(found.matrices, found.noise.K, about))
    fit *= scale.y_size
    fit += scale.y_mean + scale.y_size * found.offset
    return fit, vaf, ahead


def _visited(measured: np.ndarray, simulated: np.ndarray) -> np.ndarray:
    """(p, 2) range of the simulated outputs, which have no noise, within that of the measured ones."""
    low, high = np.nanmin(measured, axis=0), np.nanmax(measured, axis=0)
    return np.stack([simulated.min(axis=0).clip(low, high), simulated.max(axis=0).clip(low, high)], axis=1)


def _check_options(
    order: object, method: object, focus: object, feedthrough: object, stable: object, refine: object
) -> None:
    if not (isinstance(order, str) and order == "auto"):
        checked_whole("order", order, "a number of states of at least 1, or 'auto'", at_least=1, at_most=1000)
    checked_word("method", method, ALL_METHODS)
    checked_word("focus", focus, FOCUSES)
    for name, value in (("feedthrough", feedthrough), ("stable", stable), ("refine", refine)):
        if not isinstance(value, bool | str) or value not in (True, False, "auto"):
            raise InvalidValue(name, value, "True, False or 'auto'")
