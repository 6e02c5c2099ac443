"""From a trace to a model: checked, scaled, compressed, estimated, validated, and back in physical units."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from netctrl.errors import InvalidValue, checked_whole
from netctrl.ident.cautions import Fits, cautions
from netctrl.ident.excitation import check_excitation, excitation
from netctrl.ident.innovations import Noise, noise_of
from netctrl.ident.subspace.estimate import Estimate, estimate, settled
from netctrl.ident.subspace.lq_reduction import LqReduction, Segment, lq_reduce
from netctrl.ident.subspace.methods import METHODS, subspace
from netctrl.ident.subspace.order import choose_order
from netctrl.ident.subspace.sippy_ import SIPPY_METHODS, by_sippy
from netctrl.ident.uncertainty import bootstrap_poles
from netctrl.ident.validate import Matrices, predicted, simulated, variance_accounted_for
from netctrl.model.design.design import provenance
from netctrl.model.fit import IdentificationResult, OrderChoice
from netctrl.model.identified import Identification, IdentifiedModel
from netctrl.model.signals import SignalTrace

__all__ = ["ALL_METHODS", "identify"]

ALL_METHODS = (*METHODS, *SIPPY_METHODS)

_MAX_HORIZON, _MAX_ORDER = 20, 20
_COLUMNS_A_ROW = 3  # that a horizon chosen here leaves
_RIGID = 1e-12  # of a channel's size: what moves less is constant


def identify(
    trace: SignalTrace,
    order: int | Literal["auto"] = "auto",
    *,
    method: str = "n4sid",
    horizon: int | None = None,
    feedthrough: bool = True,
    held_out: float | SignalTrace | None = None,
    refine: bool | Literal["auto"] = "auto",
    bootstrap: int = 0,
    seed: int = 0,
    argv: Iterable[str] = (),
    files: Iterable[Path] = (),
) -> IdentificationResult:
    """The linear model x₊ = A x + B u + K e, y = C x + D u + e of a trace, around the means of its signals.

    Offsets and scales are taken off before and put back after: the model is in the units of the trace. It is stable:
    where the data alone say otherwise, a guard acts, and a warning says so.

    Parameters
    ----------
    trace : SignalTrace
        Of one or several segments; those shorter than two horizons tell nothing.
    order : int or "auto"
        States n. "auto" counts the canonical correlations of past and future that noise alone wouldn't give.
    method : str
        A weighting of ours, "n4sid", "moesp" or "cva", or one of SIPPY's methods as it is ("sippy-...": one segment).
    horizon : int, optional
        Samples i of the past, and of the future, that are regressed on one another; above `order`. By default 20, or
        what a short trace allows.
    feedthrough : bool
        Whether D is estimated; 0 otherwise.
    held_out : float or SignalTrace, optional
        The share of the trace, at its end, that the model is not made from but tried on; or another trace.
    refine : bool or "auto"
        Whether all parameters go on to the least simulated error. "auto": where that does better on thirds of the trace
        left out, and the trace has at most 50,000 samples.
    bootstrap : int
        Draws for the uncertainty of the poles.
    seed : int
        Of these draws.
    argv, files
        For the provenance.

    Raises
    ------
    InvalidValue
        An argument that can't be used, a constant channel, inputs too poor, a trace too short; it says what to change.
    NetctrlError
        SIPPY fails.

    Source: van Overschee and De Moor 1996; Verhaegen and Verdult 2007.
    """
    if not isinstance(trace, SignalTrace):
        raise InvalidValue("trace", type(trace).__name__, "a SignalTrace (netctrl.read_signals reads one)")
    _check_options(order, method, feedthrough, refine)
    draws = checked_whole("bootstrap", bootstrap, "a number of draws from 0 to 10000", at_most=10_000)
    random = np.random.default_rng(checked_whole("seed", seed, "a whole number from 0 on"))
    learned, tried = _parted(trace, held_out)
    scale = _Scale.of(learned)
    segments = scale.scaled(learned)
    desired = None if order == "auto" else order
    i = _horizon(segments, horizon, desired)
    data = lq_reduce(segments, i)
    if desired is not None:
        n, choice = desired, None
    else:
        most = min(i - 1, _MAX_ORDER, max(1, excitation(data) - 1))  # more states than the inputs show would be chance
        choice = choose_order(data, random, most=most)
        n = choice.order
    warnings = check_excitation(data, learned.inputs, n)
    found = _found(segments, data, method, n, i, feedthrough, refine)
    around = np.linalg.eigvals(found.matrices[0])
    around = around[np.lexsort((-around.imag, -np.abs(around)))]
    cloud = bootstrap_poles(data, _own(method), n, draws, random, around) if draws else None
    if draws and cloud is None:
        warnings.append("no uncertainty of the poles: the trace is too short to draw from, or the horizon too long")
    return _result(found, scale, learned, tried, segments, data, choice, cloud, method, warnings, argv, files)


@dataclass(frozen=True, slots=True, eq=False)
class _Scale:
    """Means and standard deviations of the signals that a model is made from."""

    u_mean: np.ndarray
    u_size: np.ndarray
    y_mean: np.ndarray
    y_size: np.ndarray

    @classmethod
    def of(cls, trace: SignalTrace) -> _Scale:
        parts: list[np.ndarray] = []
        for names, values in ((trace.inputs, trace.input_values), (trace.outputs, trace.output_values)):
            mean, size = values.mean(axis=0), values.std(axis=0)
            for k, name in enumerate(names):
                if size[k] <= _RIGID * np.abs(values[:, k]).max():
                    takes = "a signal that moves: leave this column out, or record while it does"
                    raise InvalidValue(f"column {name!r}", f"{values[0, k]:.6g} in all samples", takes)
            parts += [mean, size]
        return cls(*parts)

    def scaled(self, trace: SignalTrace) -> list[Segment]:
        return [((u - self.u_mean) / self.u_size, (y - self.y_mean) / self.y_size) for u, y in trace.segments()]


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """A model in scaled units."""

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
    """With the outputs' deviations from the model's offset."""
    return [(u, y - offset) for u, y in segments]


def _own(method: str) -> str:
    """The weighting of ours that is nearest to a method."""
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
    method: str,
    warnings: list[str],
    argv: Iterable[str],
    files: Iterable[Path],
) -> IdentificationResult:
    A, B, C, D = found.matrices
    fit, vaf, ahead = _tried(found, scale, segments)
    held, held_vaf, held_ahead = (None, None, None) if tried is None else _tried(found, scale, scale.scaled(tried))
    fits = Fits(vaf, ahead, held_vaf, held_ahead)
    warnings += cautions(found.matrices[0], found.own, found.noise, data, learned, fits, choice)
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
        K=None if found.noise is None else found.noise.K / scale.y_size,
        innovation_covariance=None if found.noise is None else found.noise.V * np.outer(scale.y_size, scale.y_size),
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
    measured, fit = _outputs(about), simulated(found.matrices, about)
    vaf, ahead = variance_accounted_for(measured, fit), None
    if found.noise is not None:
        ahead = variance_accounted_for(measured, predicted(found.matrices, found.noise.K, about))
    fit *= scale.y_size
    fit += scale.y_mean + scale.y_size * found.offset
    return fit, vaf, ahead


def _outputs(segments: list[Segment]) -> np.ndarray:
    return segments[0][1] if len(segments) == 1 else np.vstack([y for _, y in segments])


def _check_options(order: object, method: object, feedthrough: object, refine: object) -> None:
    if not (isinstance(order, str) and order == "auto"):
        checked_whole("order", order, "a number of states from 1 on, or 'auto'", at_least=1, at_most=1000)
    if not (isinstance(method, str) and method in ALL_METHODS):
        raise InvalidValue("method", method, f"one of {', '.join(ALL_METHODS)}")
    if not isinstance(feedthrough, bool):
        raise InvalidValue("feedthrough", feedthrough, "True or False")
    if not isinstance(refine, bool | str) or refine not in (True, False, "auto"):
        raise InvalidValue("refine", refine, "True, False or 'auto'")


def _parted(trace: SignalTrace, held_out: object) -> tuple[SignalTrace, SignalTrace | None]:
    """What the model is made from, and what it is tried on."""
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
        raise InvalidValue("held_out", f"a constant {still[0]!r}", "samples in which all outputs move: another share")
    return learned, tried


def _horizon(segments: Sequence[Segment], horizon: object, order: int | None) -> int:
    """The horizon asked for, or the longest up to 20 that leaves 3 columns a row; InvalidValue where there is none."""
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
    takes = f"samples, at least {least}: above the order"
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
