"""What an identified model says: simulation, prediction, comparison, tests of what is left, Bode plot and step.

The methods of `IdentifiedModel` and `IdentificationResult` find these functions in `netctrl.core.register.ANSWERS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np

from netctrl.core.errors import InvalidValue, checked_whole
from netctrl.ident.data.missing import without_faults
from netctrl.ident.descent.kernels import predict as run_predictor
from netctrl.ident.descent.kernels import simulate as run_model
from netctrl.ident.validate import Matrices, initial_state, variance_accounted_for
from netctrl.model.answers import Bode, FitComparison, Residuals, StepResponse
from netctrl.model.fit import Draws, IdentificationResult
from netctrl.model.identified import IdentifiedModel
from netctrl.model.signals import SignalTrace

LAGS = 25
LEVEL = 0.01
"""Level of the tests of what is left."""

_BAND = 2.5758  # standard normal: 99 % are within
_EXACT = 1e-12  # relative to the output's variance: innovations below are rounding
_RANK = 1e-9  # relative eigenvalue below which lagged inputs are linearly dependent
_SHOWN = 1000  # most samples of a step response by default


def simulate(model: IdentifiedModel, u: Any, x0: Any = None) -> np.ndarray:
    """Outputs (T, p) from the inputs alone."""
    return _physical(model, run_model(*_matrices(model), _state(model, x0), _linear(model, _signal("u", u, model))))


def predict(model: IdentifiedModel, u: Any, y: Any, horizon: float = 1, x0: Any = None) -> np.ndarray:
    """Outputs (T, p) predicted from the outputs at least `horizon` samples before."""
    v, about = _linear(model, _signal("u", u, model)), _signal("y", y, model, outputs=True) - model.output_offset
    if len(v) != len(about):
        raise InvalidValue("y", f"{len(about)} samples", f"as many as u, {len(v)}")
    k = _horizon(horizon)
    return _physical(model, _ahead(_matrices(model), _gain(model), _state(model, x0), v, about, k))


def compare(result: IdentificationResult, others: Sequence[Any], horizon: float = 10) -> FitComparison:
    """Fits of the result and of other models on a trace."""
    traces = [other for other in others if isinstance(other, SignalTrace)]
    models = [result, *(other for other in others if not isinstance(other, SignalTrace))]
    if len(traces) > 1:
        raise InvalidValue("others", f"{len(traces)} traces", "one trace at most: compare on each in turn")
    trace, where = _tried_on(result) if not traces else (traces[0], "the given trace")
    k = _horizon(horizon)
    names: list[str] = []
    found = []
    for each in models:
        model = each.model if isinstance(each, IdentificationResult) else each
        if not isinstance(model, IdentifiedModel):
            raise InvalidValue("others", each, "results of netctrl.identify, identified models and one SignalTrace")
        how = model.identification
        name = f"{len(model.A)} states" if how is None else f"{how.method}, order {how.order}"
        names.append(name if name not in names else f"{name} ({len(names) + 1})")
        found.append(_fits(model, trace, k))
    simulated = np.stack([each[0] for each in found])
    y = trace.output_values
    vaf = np.array([[variance_accounted_for(y, fit) for fit in each] for each in found])
    return FitComparison(models=tuple(names), trace=trace, where=where, horizon=k, vaf=vaf, simulated=simulated)


def residuals(result: IdentificationResult, trace: SignalTrace | None = None) -> Residuals:
    """Tests of what the model leaves for what a better model would explain.

    Whiteness is the innovations'. Past inputs are tested on these too where the model is of greatest likelihood; one of
    least simulation error makes the error of its simulation free of inputs, whatever colour that has.
    """
    own, model, how = trace is None, result.model, result.how
    trace, *_ = without_faults(result.trace if trace is None else trace)
    _check_fits(model, trace)
    K, scale = _gain(model), _size(trace)
    simulates = "likelihood" not in how.method or "noise state" in how.method
    ahead, alone, inputs = [], [], []
    for v, y in _segments(model, trace):
        ahead.append(y - _ahead(_matrices(model), K, _start(model, K, v, y, scale), v, y, 1))
        if simulates:
            still = np.zeros_like(K)
            alone.append(y - _ahead(_matrices(model), still, _start(model, still, v, y, scale), v, y, 1))
        inputs.append(v)
    T, most = len(trace), min(LAGS, max(1, len(trace) // 4))
    e, u = (_normalised(each, most, T * _EXACT * size**2) for each, size in ((ahead, scale), (inputs, np.zeros(1))))
    left = _normalised(alone, most, T * _EXACT * scale**2) if simulates else e
    lags = np.arange(most + 1)
    auto = np.array([(e[lag:] * e[: len(e) - lag]).sum(axis=0) for lag in lags])
    cross = np.array([left[lag:].T @ u[: len(u) - lag] for lag in lags])
    first = 1 if how.feedback else 0  # under feedback u_t responds to e_t
    from scipy.special import chdtrc

    # Ljung and Box 1978; the fit takes one degree of freedom for each of the n gains of K that whiten an output
    portmanteau = T * (T + 2) * (auto[1:] ** 2 / (T - lags[1:, None])).sum(axis=0)
    white = np.where(e.any(axis=0), chdtrc(max(1, most - (len(model.A) if own else 0)), portmanteau), 1.0)
    p, m = cross.shape[1:]
    explained, caused = np.zeros((p, m)), np.ones((p, m))
    for i, j in np.ndindex(p, m):
        if left[:, i].any():
            values = cross[first:, i, j]
            explained[i, j] = _squares(_covariance(u[:, j], np.zeros(0), most - first), values)[0]
            total, many = _squares(_covariance(u[:, j], left[:, i] if simulates else np.zeros(0), most - first), values)
            caused[i, j] = chdtrc(many, T * total) if many else 1.0
    verdict = _verdict(trace, auto, cross, white, caused, explained, first, model.K is not None)
    return Residuals(
        outputs=trace.outputs,
        inputs=trace.inputs,
        autocorrelation=auto,
        cross_correlation=cross,
        band=_BAND / np.sqrt(T),
        white=white,
        unexplained=caused,
        verdict=verdict,
    )


def _normalised(parts: list[np.ndarray], most: int, least: np.ndarray) -> np.ndarray:
    """Deviations from the mean, with squares that sum to 1; zeros for missing samples, between segments, and where the
    squares are too few."""
    whole = np.vstack(parts)
    mean = np.nanmean(whole, axis=0)
    apart = [np.vstack([np.nan_to_num(each - mean), np.zeros((most, whole.shape[1]))]) for each in parts]
    power = sum((each**2).sum(axis=0) for each in apart)
    return np.vstack(apart) / np.sqrt(np.where(power > least, power, inf))


def _covariance(u: np.ndarray, left: np.ndarray, most: int) -> np.ndarray:
    """(L + 1, L + 1) of T correlations at lags up to L with what is left of an output, Σ R(τ) R_u(τ + k − l).

    Without `left` it is taken as white. Source: Bartlett 1946; Ljung 1999, section 16.6.
    """
    wide = int(len(left) ** 0.5)
    of_u = np.array([u[: len(u) - lag] @ u[lag:] for lag in range(most + wide + 1)])
    rows = of_u[: most + 1].copy()
    for lag in range(1, wide + 1):
        weight = (1.0 - lag / (wide + 1.0)) * (left[lag:] @ left[: len(left) - lag])
        around = np.arange(most + 1)
        rows += weight * (of_u[around + lag] + of_u[np.abs(around - lag)])
    return rows[np.abs(np.subtract.outer(np.arange(most + 1), np.arange(most + 1)))]


def _squares(covariance: np.ndarray, values: np.ndarray) -> tuple[float, int]:
    """Sum of the squares of values with a covariance, made white, and their number."""
    sizes, vectors = np.linalg.eigh(covariance)
    kept = sizes > _RANK * max(float(sizes[-1]), _RANK)
    return float((((vectors[:, kept].T @ values) ** 2) / sizes[kept]).sum()), int(kept.sum())


def _verdict(
    trace: SignalTrace,
    auto: np.ndarray,
    cross: np.ndarray,
    white: np.ndarray,
    caused: np.ndarray,
    explained: np.ndarray,
    first: int,
    predicts: bool,
) -> str:
    """One sentence, by Bonferroni's bound over the outputs, and over the pairs of output and input."""
    p, m = caused.shape
    band, said = _BAND / np.sqrt(len(trace)), []
    for i, j in np.argwhere(caused < LEVEL / (p * m)):
        out = first + np.flatnonzero(np.abs(cross[first:, i, j]) > band)
        when = f"{trace.inputs[j]} of {_span(out)} samples ago" if len(out) else f"past {trace.inputs[j]}"
        share = 100.0 * explained[i, j]
        said.append(f"{when} still explains {share:.2g} % of what is left of {trace.outputs[i]}")
    if said:
        return f"{'; '.join(said)}: raise the order"
    coloured = np.flatnonzero(white < LEVEL / p) if predicts else []
    if len(coloured):
        of = ", ".join(trace.outputs[i] for i in coloured)
        return f"what is left of {of} is not white: past outputs still explain it; raise the order"
    return "what is left is noise" if predicts else "past inputs explain nothing of what is left"


def _span(lags: np.ndarray) -> str:
    return f"{lags[0]}" if len(lags) == 1 else f"{lags[0]} to {lags[-1]}"


def bode(result: IdentificationResult, frequencies: Any = None) -> Bode:
    """Frequency response, with bands of the draws."""
    model = result.model
    nyquist = 0.5 / model.dt
    if frequencies is None:
        corner = -np.log(np.clip(np.abs(result.poles).max(), 1e-3, 1.0 - 1e-4)) / np.pi  # of the slowest pole
        f = np.geomspace(nyquist * min(0.1, corner / 30.0), nyquist, 200)
    else:
        f = np.atleast_1d(np.asarray(frequencies, dtype=float))
        if f.ndim != 1 or not len(f) or not (f > 0.0).all() or not (f <= nyquist * (1.0 + 1e-9)).all():
            raise InvalidValue("frequencies", frequencies, f"frequencies in Hz above 0 and up to {nyquist:g}")
    radians = 2.0 * np.pi * f * model.dt
    response = _alone(model).responses(radians)[0]
    gain_band = phase_band = None
    phase = np.degrees(np.unwrap(np.angle(response), axis=0))
    if (draws := result.draws) is not None:
        drawn = draws.responses(radians)
        around = np.degrees(np.angle(drawn * response.conj()))
        gain_band = np.array(draws.band(np.abs(drawn)))
        phase_band = phase + np.array(draws.band(around))
    names = {"inputs": model.inputs, "outputs": model.outputs}
    return Bode(frequency_hz=f, response=response, phase_deg=phase, gain_band=gain_band, phase_band=phase_band, **names)


def step(result: IdentificationResult, samples: int | None = None) -> StepResponse:
    """Response of each output to a unit step of each input, with a band of the draws."""
    model = result.model
    if samples is None:
        radius = float(np.abs(result.poles).max())
        settles = 5.0 / -np.log(min(max(radius, 0.1), 1.0 - 1e-6))
        count = int(min(max(10.0, settles), _SHOWN))
    else:
        count = checked_whole("samples", samples, "a number of samples from 1 to a million", at_least=1, at_most=10**6)
    draws = result.draws
    band = None if draws is None else np.array(draws.band(draws.steps(count)))
    y = _alone(model).steps(count)[0]
    return StepResponse(dt=model.dt, response=y, band=band, inputs=model.inputs, outputs=model.outputs)


def _alone(model: IdentifiedModel) -> Draws:
    return Draws(A=model.A[None], B=model.B[None], C=model.C[None], D=model.D[None])


def _ahead(model: Matrices, K: np.ndarray, x: np.ndarray, u: np.ndarray, y: np.ndarray, horizon: float) -> np.ndarray:
    """ŷ of the outputs up to t − k: that of one sample ahead without the later innovations' Σ C A^(j−1) K e_(t−j)."""
    if horizon >= len(u) or not K.any():
        return run_model(*model, x, u)
    found = run_predictor(*model, K, x, u, y)
    e, gain = np.nan_to_num(y - found), K
    for j in range(1, int(horizon)):
        found[j:] -= e[:-j] @ (model[2] @ gain).T
        gain = model[0] @ gain
    return found


def _fits(model: IdentifiedModel, trace: SignalTrace, horizon: float) -> list[np.ndarray]:
    """Outputs simulated, predicted one sample ahead and `horizon` ahead, each from the initial state that suits it."""
    _check_fits(model, trace)
    matrices, K, scale = _matrices(model), _gain(model), _size(trace)
    parts = []
    for v, y in _segments(model, trace):
        alone, state = (_start(model, gain, v, y, scale) for gain in (np.zeros_like(K), K))
        ahead = [_ahead(matrices, K, state, v, y, k) for k in (1, horizon)]
        parts.append((run_model(*matrices, alone, v), *ahead))
    return [_physical(model, np.vstack(each)) for each in zip(*parts, strict=True)]


def _start(model: IdentifiedModel, K: np.ndarray, v: np.ndarray, y: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Initial state by least squares of the errors relative to the outputs' deviations."""
    A, B, C, D = _matrices(model)
    scaled = (A, B, C / scale[:, None], D / scale[:, None])
    return initial_state(scaled, K * scale, (v, np.ascontiguousarray(y / scale)))


def _tried_on(result: IdentificationResult) -> tuple[SignalTrace, str]:
    return (result.trace, "the whole trace") if result.held_out is None else (result.held_out, "the held-out part")


def _check_fits(model: IdentifiedModel, trace: SignalTrace) -> None:
    if not isinstance(trace, SignalTrace):
        raise InvalidValue("trace", trace, "a SignalTrace")
    named = [[*each.inputs, "->", *each.outputs] for each in (trace, model)]
    if named[0] != named[1] or abs(trace.interval_s / model.dt - 1.0) > 1e-6:
        got, takes = (" ".join(each) for each in named)
        raise InvalidValue(
            "trace", f"{got} every {trace.interval_s:g} s", f"{takes} every {model.dt:g} s, as the model"
        )


def _segments(model: IdentifiedModel, trace: SignalTrace) -> list[tuple[np.ndarray, np.ndarray]]:
    """Deviations of the linear model's inputs and outputs from u₀ and y₀."""
    return [(_linear(model, u), y - model.output_offset) for u, y in trace.segments()]


def _size(trace: SignalTrace) -> np.ndarray:
    size = np.nanstd(trace.output_values, axis=0)
    return np.where(size > 0.0, size, 1.0)


def _matrices(model: IdentifiedModel) -> Matrices:
    return model.A, model.B, model.C, model.D


def _gain(model: IdentifiedModel) -> np.ndarray:
    return np.zeros((len(model.A), len(model.C))) if model.K is None else model.K


def _linear(model: IdentifiedModel, u: np.ndarray) -> np.ndarray:
    return (u if model.curve is None else model.curve.linear(u)) - model.input_offset


def _physical(model: IdentifiedModel, y: np.ndarray) -> np.ndarray:
    return y + model.output_offset


def _state(model: IdentifiedModel, x0: Any) -> np.ndarray:
    n = len(model.A)
    return np.zeros(n) if x0 is None else _numbers("x0", x0, f"a state of {n} finite numbers", (n,)).copy()


def _signal(name: str, value: Any, model: IdentifiedModel, *, outputs: bool = False) -> np.ndarray:
    """(T, columns) of a signal, which may be one-dimensional where the model has one."""
    count = len(model.outputs if outputs else model.inputs)
    takes = f"finite numbers of shape (T, {count}){' or (T,)' if count == 1 else ''}"
    found = _numbers(name, value, takes)
    found = found[:, None] if found.ndim == 1 and count == 1 else found
    if found.ndim != 2 or found.shape[1] != count or not len(found):
        raise InvalidValue(name, f"shape {found.shape}", takes)
    return found


def _numbers(name: str, value: Any, takes: str, shape: tuple[int, ...] | None = None) -> np.ndarray:
    try:
        found = np.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InvalidValue(name, value, takes) from None
    if not np.isfinite(found).all() or (shape is not None and found.shape != shape):
        raise InvalidValue(name, value, takes)
    return found


def _horizon(horizon: float) -> float:
    if isinstance(horizon, float) and horizon == inf:
        return inf
    return checked_whole("horizon", horizon, "a number of samples of at least 1, or math.inf", at_least=1)
