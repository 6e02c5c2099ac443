"""Identification of a model from a trace: check, scale, compress, estimate, validate, and return to physical units."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast, overload

import numpy as np

from netctrl.core.errors import InvalidValue, checked_whole, checked_word
from netctrl.ident.data.delays import delays_of, shifted
from netctrl.ident.data.missing import completed, without_faults
from netctrl.ident.data.signals import Samples, Scale, Signals, check_excitation, excitation, parted, signals_of
from netctrl.ident.result import Evidence, result_of
from netctrl.ident.search.choice import FOCUSES, Validation, by_information, choose
from netctrl.ident.search.found import candidate_of, found_by, of_sippy
from netctrl.ident.search.learner import Learner
from netctrl.ident.subspace.dependence import feedback, instant
from netctrl.ident.subspace.horizon import horizon_of
from netctrl.ident.subspace.lq_reduction import lq_reduce
from netctrl.ident.subspace.methods import METHODS, choose_order
from netctrl.ident.subspace.sippy_ import SIPPY_METHODS
from netctrl.ident.uncertainty import draws_of
from netctrl.model.fit import IdentificationResult
from netctrl.model.signals import SignalTrace

if TYPE_CHECKING:
    from typing import Unpack

    from netctrl.core.names import Focus, IdentMethod
    from netctrl.ident.data.signals import Columns, Experiments, Options, Reading, Table

ALL_METHODS = ("auto", *METHODS, "pbsid", *SIPPY_METHODS)

_MAX_ORDER = 20
_PLANT = 4.0  # ratio of variances from which a response at once is the plant's, unless feedback is sure


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
    delay: int | Sequence[int] | Literal["auto"] = "auto",
    feedthrough: bool | Literal["auto"] = "auto",
    stable: bool | Literal["auto"] = "auto",
    held_out: float | SignalTrace | None = None,
    refine: bool | Literal["auto"] = "auto",
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
        States n, those of pure delays aside. "auto": by `method`; for a method by name, as many as the canonical
        correlations of past and future that exceed those of noise alone.
    method : str
        "auto": the best of those below on stretches left out, refined or not, with noise states or without. Otherwise
        a subspace weighting "n4sid", "moesp" or "cva", "pbsid" (greatest likelihood, without bias under feedback), or a
        method of SIPPY ("sippy-...", one segment only).
    focus : {"both", "simulation", "prediction"}
        What "auto" compares: simulation, prediction one sample ahead, or the latter among models that simulate as well
        as the best.
    horizon : int, optional
        Samples i of the past and the future that are regressed on one another; above `order`. By default 20 or less.
    delay : int, sequence of int or "auto"
        Samples by which each input is delayed, which are states beside the `order`. "auto": where all outputs respond
        to an input only after three samples or more.
    feedthrough : bool or "auto"
        Whether D is estimated; 0 otherwise. "auto": unless the trace shows feedback, which D would stand for; where
        that is not sure (at .1 %), a D that explains three quarters of what the past leaves stays.
    stable : bool or "auto"
        Whether only stable models are taken. "auto": unless the trace surely shows feedback (at .1 %), which may hold
        the plant.
    held_out : float or SignalTrace, optional
        Share of the trace, at its end, that is kept for validation; or another trace for validation.
    refine : bool or "auto"
        Whether all parameters of a method other than "auto" are refined: for the least simulation error, or for
        "pbsid" to the greatest likelihood. "auto": if that improves the fit on stretches left out.
    seed : int
        Seed of the draws of models that the trace allows.
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
    random = np.random.default_rng(checked_whole("seed", seed, "a whole number of at least 0"))
    learned, tried = parted(trace, held_out)
    Scale.of(learned)  # refuses signals that don't vary, before tests of their flaws
    given, (learned, found, told) = learned, without_faults(learned)
    if tried is not None:
        tried, _, said = without_faults(tried)
        told += [f"held out: {each}" for each in said]
    delays = delays_of(delay, learned, found)
    learned, tried = shifted(learned, delays), None if tried is None else shifted(tried, delays)
    if focus == "both" and any(flaw.kind == "random walk" for flaw in found):
        focus = "prediction"  # a simulation says nothing of an integrated disturbance
    scale = Scale.of(learned)
    parts = scale.scaled(learned)
    desired = None if order == "auto" else order
    i = horizon_of(parts, horizon, desired)
    filled = completed(parts, i) if np.isnan(learned.output_values).any() else None
    data = lq_reduce(filled or parts, i)
    most = min(i - 1, _MAX_ORDER, max(1, excitation(data) - 1))  # the inputs can't determine more states
    answers = feedback(data, learned.input_values)
    law = answers.sure or (answers.found and instant(data) < _PLANT)
    direct = not law if feedthrough == "auto" else bool(feedthrough)
    held = not answers.sure if stable == "auto" else bool(stable)
    learner = Learner(parts, i, direct, held, data_=data, filled=filled)
    validation = Validation.of(parts, i, direct, held, filled)
    candidate, choice = None, None
    if method == "auto" and (answers.found or not validation.possible):
        candidate = by_information(learner, most, desired)
    elif method == "auto":
        candidate = choose(validation, most, focus, desired).candidate
    if candidate is None and desired is None:
        choice = choose_order(data, random, most=most)
    n = candidate.order if candidate else cast(int, choice.order if choice else desired)
    if candidate is None and method not in SIPPY_METHODS:
        candidate = candidate_of(method, n, refine, validation, len(learned))
    score = validation.score(candidate) if candidate and validation.possible else None
    warnings = [*learned.notes, *told, *check_excitation(data, learned.inputs, n)]
    made = of_sippy(filled or parts, data, method, n, direct) if candidate is None else found_by(learner, candidate)
    likely = candidate is not None and (candidate.refinement == "likelihood" or isinstance(candidate.noise, int))
    allowed = draws_of(made.matrices, made.noise if likely else None, parts, learner.direct, random, filled)
    evidence = Evidence(given, tried, delays, scale, parts, data, answers, choice, validation, score)
    return result_of(made, evidence, allowed, warnings, argv, files)


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
