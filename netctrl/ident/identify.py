"""Identification of a model from a trace: check, scale, compress, estimate, validate, and return to physical units."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import numpy as np

from netctrl.core.errors import InvalidValue, checked_whole, checked_word
from netctrl.ident.cautions import Fits, cautions, feedback
from netctrl.ident.flaws import flaws
from netctrl.ident.innovations import Noise, noise_of
from netctrl.ident.signals import Samples, Signals, check_complete, check_excitation, excitation, signals_of
from netctrl.ident.subspace.estimate import Estimate, estimate, settled
from netctrl.ident.subspace.lq_reduction import LqReduction, Segment, lq_reduce
from netctrl.ident.subspace.methods import METHODS, choose_order, subspace
from netctrl.ident.subspace.sippy_ import SIPPY_METHODS, by_sippy
from netctrl.ident.uncertainty import bootstrap_poles, gain_draws
from netctrl.ident.validate import Matrices, predicted, simulated, variance_accounted_for
from netctrl.model.design.design import provenance
from netctrl.model.fit import IdentificationResult, OrderChoice
from netctrl.model.identified import Identification, IdentifiedModel
from netctrl.model.signals import SignalTrace

if TYPE_CHECKING:
    from typing import Unpack

    from netctrl.core.names import IdentMethod
    from netctrl.ident.signals import Columns, Experiments, Options, Reading, Table

ALL_METHODS = (*METHODS, *SIPPY_METHODS)

_MAX_HORIZON, _MAX_ORDER = 20, 20
_COLUMNS_A_ROW = 3  # columns per row that a default horizon leaves
_TINY = float(np.finfo(float).tiny)
_RIGID = 1e-12  # relative to a channel's size: a channel that moves less is constant


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
    method: IdentMethod = "n4sid",
    horizon: int | None = None,
    feedthrough: bool = True,
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
        One of netctrl's weightings "n4sid", "moesp" and "cva", or a method of SIPPY ("sippy-...", one segment only).
    horizon : int, optional
        Samples i of the past and the future that are regressed on one another; above `order`. By default 20 or less.
    feedthrough : bool
        Whether D is estimated; 0 otherwise.
    held_out : float or SignalTrace, optional
        Share of the trace, at its end, that is kept for validation; or another trace for validation.
    refine : bool or "auto"
        Whether all parameters are refined for the least simulation error. "auto": if that improves the fit on
        left-out thirds of the trace, and the trace has at most 50,000 samples.
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
    _check_options(order, method, feedthrough, refine)
    draws = checked_whole("bootstrap", bootstrap, "a number of draws from 0 to 10000", at_most=10_000)
    random = np.random.default_rng(checked_whole("seed", seed, "a whole number of at least 0"))
    learned, tried = _parted(trace, held_out)
    check_complete(learned, tried)
    scale = _Scale.of(learned)
    parts = scale.scaled(learned)
    desired = None if order == "auto" else order
    i = _horizon(parts, horizon, desired)
    data = lq_reduce(parts, i)
    if desired is not None:
        n, choice = desired, None
    else:
        most = min(i - 1, _MAX_ORDER, max(1, excitation(data) - 1))  # the inputs can't determine more states
        choice = choose_order(data, random, most=most)
        n = choice.order
    told = (flaw.sentence for flaw in flaws(learned))
    warnings = [*learned.notes, *told, *check_excitation(data, learned.inputs, n)]
    found = _found(parts, data, method, n, i, feedthrough, refine)
    around = np.linalg.eigvals(found.matrices[0])
    around = around[np.lexsort((-around.imag, -np.abs(around)))]
    cloud = bootstrap_poles(data, _own(method), n, draws, random, around) if draws else None
    if draws and cloud is None:
        warnings.append(
            "no uncertainty of the poles: the trace is too short for the bootstrap, or the horizon too long"
        )
    gains = gain_draws(found.matrices, _about(parts, found.offset), random)
    return _result(found, scale, learned, tried, parts, data, choice, cloud, gains, method, warnings, argv, files)


@dataclass(frozen=True, slots=True, eq=False)
class _Scale:
    """Means and standard deviations of the signals used for a model."""

    u_mean: np.ndarray
    u_size: np.ndarray
    y_mean: np.ndarray
    y_size: np.ndarray

    @classmethod
    def of(cls, trace: SignalTrace) -> _Scale:
        parts: list[np.ndarray] = []
        for names, values in ((trace.inputs, trace.input_values), (trace.outputs, trace.output_values)):
            largest = np.abs(values).max(axis=0)
            unit = np.where(largest > 0.0, largest, 1.0)  # squares of any float's share of it are floats
            mean, size = values.mean(axis=0), (values / unit).std(axis=0) * unit
            for k, name in enumerate(names):
                if size[k] <= _RIGID * largest[k]:
                    takes = "a signal that varies: leave this column out, or record while it varies"
                    raise InvalidValue(f"column {name!r}", f"{values[0, k]:.6g} in all samples", takes)
            parts += [mean, size]
        return cls(*parts)

    def scaled(self, trace: SignalTrace) -> list[Segment]:
        return [((u - self.u_mean) / self.u_size, (y - self.y_mean) / self.y_size) for u, y in trace.segments()]


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """Identified model in scaled units."""

    matrices: Matrices
    offset: np.ndarray
    noise: Noise | None
    singular_values: np.ndarray
    own: Estimate | None


def _found(
    segments: list[Segment], data: LqReduction, method: str, n: int, i: int, feedthrough: bool, refine: Any
) -> _Found:
    if method in SIPPY_METHODS:
        matrices, K = by_sippy(segments, method, n, i, feedthrough)
        offset, values, made = np.zeros(data.n_outputs), subspace(data, _own(method)).singular_values, None
    else:
        made = estimate(segments, data, method, n, feedthrough, refine)
        fitted = settled(made.fitted)
        matrices, K, offset = (fitted.A, fitted.B, fitted.C, fitted.D), None, fitted.offset
        values = made.found.singular_values
    return _Found(matrices, offset, noise_of(matrices, _about(segments, offset), data, K), values, made)


def _about(segments: list[Segment], offset: np.ndarray) -> list[Segment]:
    """Segments with the outputs' deviations from the model's offset."""
    return [(u, y - offset) for u, y in segments]


def _own(method: str) -> str:
    """netctrl's weighting closest to a method."""
    name = method.removeprefix("sippy-")
    return name if name in METHODS else "cva"


def _result(
    found: _Found,
    scale: _Scale,
    learned: SignalTrace,
    tried: SignalTrace | None,
    segments: list[Segment],
    data: LqReduction,
    choice: OrderChoice | None,
    cloud: np.ndarray | None,
    gains: np.ndarray | None,
    method: str,
    warnings: list[str],
    argv: Iterable[str],
    files: Iterable[Path],
) -> IdentificationResult:
    A, B, C, D = found.matrices
    fit, vaf, ahead = _tried(found, scale, segments)
    held, held_vaf, held_ahead = (None, None, None) if tried is None else _tried(found, scale, scale.scaled(tried))
    fits = Fits(vaf, ahead, held_vaf, held_ahead)
    answers = feedback(data, learned.input_values, bool(D.any()))
    gains = None if gains is None else gains * (scale.y_size[:, None] / scale.u_size)
    noise = found.noise
    if noise is not None:
        with np.errstate(over="ignore"):
            K, V = noise.K / scale.y_size, noise.V * scale.y_size * scale.y_size[:, None]
        if not np.isfinite(V).all() or (np.diag(V) < _TINY).any():
            noise = None
            warnings.append("no Kalman gain: squares of the outputs aren't floats; take another unit")
    warnings += cautions(found.matrices[0], found.own, found.noise, data, learned, fits, choice, answers, gains)
    how = Identification(
        method=method,
        order=len(A),
        horizon=data.horizon,
        samples=len(learned),
        segments=len(learned.starts),
        singular_values=found.singular_values,
        vaf=vaf,
        held_out_vaf=held_vaf,
        stabilised=found.own is not None and found.own.stabilised != "",
        refined=found.own is not None and found.own.refined,
        feedback=answers.found,
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
    )


def _tried(found: _Found, scale: _Scale, segments: list[Segment]) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
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
    low, high = measured.min(axis=0), measured.max(axis=0)
    return np.stack([simulated.min(axis=0).clip(low, high), simulated.max(axis=0).clip(low, high)], axis=1)


def _check_options(order: object, method: object, feedthrough: object, refine: object) -> None:
    if not (isinstance(order, str) and order == "auto"):
        checked_whole("order", order, "a number of states of at least 1, or 'auto'", at_least=1, at_most=1000)
    checked_word("method", method, ALL_METHODS)
    if not isinstance(feedthrough, bool):
        raise InvalidValue("feedthrough", feedthrough, "True or False")
    if not isinstance(refine, bool | str) or refine not in (True, False, "auto"):
        raise InvalidValue("refine", refine, "True, False or 'auto'")


def _parted(trace: SignalTrace, held_out: object) -> tuple[SignalTrace, SignalTrace | None]:
    """Segments for estimation and for validation."""
    if held_out is None:
        return trace, None
    if not isinstance(held_out, SignalTrace):
        try:
            learned, tried = trace.split(cast(float, held_out))
        except InvalidValue as error:
            raise InvalidValue("held_out", held_out, error.takes) from None
    else:
        learned, tried = trace, held_out
        if (tried.inputs, tried.outputs) != (trace.inputs, trace.outputs) or tried.interval_s != trace.interval_s:
            raise InvalidValue("held_out", "other signals", "a trace of the same inputs, outputs and interval")
    still = [
        name for name, spread in zip(tried.outputs, np.ptp(tried.output_values, axis=0), strict=True) if not spread
    ]
    if still:
        raise InvalidValue(
            "held_out", f"a constant {still[0]!r}", "samples in which all outputs vary: choose another share"
        )
    return learned, tried


def _horizon(segments: Sequence[Segment], horizon: object, order: int | None) -> int:
    """Requested horizon, or the longest up to 20 that leaves 3 columns per row; InvalidValue if there is none."""
    m, p = segments[0][0].shape[1], segments[0][1].shape[1]
    least = 2 if order is None else order + 1

    def columns(i: int) -> int:
        return sum(max(0, len(u) - 2 * i + 1) for u, _ in segments)

    if horizon is None:
        usual = max(_MAX_HORIZON, least)
        for i in range(usual, least - 1, -1):
            if columns(i) >= _COLUMNS_A_ROW * 2 * i * (m + p):
                return i
        need = _COLUMNS_A_ROW * 2 * least * (m + p) + 2 * least - 1
        raise InvalidValue("samples", sum(len(u) for u, _ in segments), _too_short(need, order, m, p))
    takes = f"a number of samples of at least {least}, above the order"
    i = checked_whole("horizon", horizon, f"{takes}; lower the order or lengthen the horizon", at_least=least)
    if columns(i) < (need := 2 * i * (m + p)):
        most = next((k for k in range(i, least - 1, -1) if columns(k) >= 2 * k * (m + p)), None)
        if most is None:
            raise InvalidValue("samples", sum(len(u) for u, _ in segments), _too_short(need, order, m, p))
        raise InvalidValue("horizon", i, f"at most {most} with a trace of this length, or a longer trace")
    return i


def _too_short(need: int, order: int | None, m: int, p: int) -> str:
    states = "" if order is None else f" and {order} states"
    return f"at least about {need} in segments that aren't short, for {m} inputs, {p} outputs{states}: record longer"
