"""Hammerstein models: a static monotone curve of one input, convex or concave, in front of a linear model.

    v = f(u),  x₊ = A x + B (v − v₀) + K e,  y − y₀ = C x + D (v − v₀) + e

f is a sum of rising functions with weights of at least 0: the straight line and poles beyond the ends of what the trace
visited, 1/(c − u), as queues have them, or their mirror images. Least squares with such weights keep f monotone, and
convex or concave, with few weights other than 0.

The noise of a queue grows tenfold along its curve, and least squares that don't know take it for slow modes. So the
linear model is chosen by errors over their deviation: a response to a few past inputs, or that of `netctrl.identify`.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
import numpy as np

from netctrl.core.errors import InvalidValue, checked_kind
from netctrl.ident.data.flaws import flaws
from netctrl.ident.data.signals import Scale
from netctrl.ident.identify import identify
from netctrl.ident.subspace.dependence import dependence
from netctrl.ident.subspace.horizon import horizon_of
from netctrl.ident.subspace.lq_reduction import lq_reduce
from netctrl.ident.validate import variance_accounted_for
from netctrl.model.identified import IdentifiedModel, InputCurve
from netctrl.model.signals import SignalTrace
from netctrl.model.statespace import StateSpace

_LEVELS, _LEVEL = 8, 0.001  # least number of input levels; level of the test of dependence on the input
_BEYOND = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""Poles' distances from the ends, over the range of inputs."""
_DRAWS, _KNOTS, _ROUNDS = 80, 12, 2
_TIE = 0.02  # of the mean log likelihood of a sample
_FOLDS = 5
_PAST = 4  # inputs
_SURE = 3.0  # standard errors of the curve's level
_NEAR, _FAR, _FAULTY = 31, 15.0, 0.1  # samples near a level; deviations of an outlier there; most of all samples
_MEDIAN = 0.6745  # of the size of a Gaussian value of deviation 1
_QUIET = 1e-3  # least deviation over the greatest, so that no level has all the weight


class _Fit(NamedTuple):
    shape: str
    weights: np.ndarray
    """Constant first."""
    deviation: np.ndarray
    """Deviation of each complete sample around the curve."""


def identify_curve(trace: SignalTrace, *, output: str | None = None, seed: int = 0, **options: Any) -> IdentifiedModel:
    """Identify the curve of a trace's one input, and the linear model behind it.

    In turn, the curve is fitted through the model's dynamics, and the model from v = f(u). Samples count by the inverse
    of their variance, which changes along the curve. Of responses to the last one to four inputs, without poles, and
    the model of `netctrl.identify`, the one with the least Bayesian information criterion is taken. The shape is
    convex, concave or merely monotone: the one with the least error on fifths of the trace left out, and on a tie the
    first. Bands are from a bootstrap over blocks: 95 % intervals of the slope, three standard errors of the level.

    Parameters
    ----------
    trace : SignalTrace
        One input of eight levels or more, such as `netctrl.ident.excite.random_levels` makes.
    output : str, optional
        Output whose curve it is; the first by default.
    seed : int
        Of the bootstrap.
    **options
        For `netctrl.identify`, whose model is then taken.

    Returns
    -------
    IdentifiedModel
        With `curve`; its `input_offset` is v₀.

    Raises
    ------
    InvalidValue
        Two inputs, an unknown output, or an input of few levels, which can't show a curve.

    Examples
    --------
    >>> import netctrl, numpy as np
    >>> from netctrl.ident.curve import identify_curve
    >>> rng = np.random.default_rng(1)
    >>> u = np.repeat(rng.uniform(0.0, 80.0, 200), 3)
    >>> y = 1.0 + 10.0 / (100.0 - u) + 0.01 * rng.standard_normal(600)
    >>> trace = netctrl.SignalTrace(interval_s=1.0, input_values=u, output_values=y, outputs=("delay",))
    >>> model = identify_curve(trace, order=1)
    >>> model.curve.shape, bool(model.curve.slopes[-1] > 10.0 * model.curve.slopes[0])
    ('convex', True)

    References
    ----------
    Narendra, Gallman, IEEE Trans. Automatic Control 11 (1966) 546-550 (iteration); Lawson, Hanson, Solving Least
    Squares Problems, 1974, chapter 23 (weights of at least 0).
    """
    checked_kind("trace", trace, SignalTrace)
    name = trace.outputs[0] if output is None else output
    if len(trace.inputs) != 1:
        raise InvalidValue("trace", f"{len(trace.inputs)} inputs", "one: a curve has one input")
    if name not in trace.outputs:
        raise InvalidValue("output", name, f"one of {', '.join(trace.outputs)}")
    u, place = trace.input_values[:, 0], trace.outputs.index(name)
    levels = len(np.unique(u))
    if levels < _LEVELS:
        takes = f"{_LEVELS} or more: {levels} can't show a curve; record 600 samples at levels of `netctrl excite`"
        raise InvalidValue("trace", f"an input of {levels} levels", takes)
    trace, told = _without_faults(trace, place)
    y, there = trace.output_values[:, place], _complete(trace)
    if _chance(u, y, trace) > _LEVEL:  # a curve that is to rise, or fall, has its sign from noise as well
        raise _hidden()
    sign = 1.0 if np.corrcoef(u[there], y[there])[0, 1] >= 0.0 else -1.0
    plant = found = None
    for _ in range(_ROUNDS):
        fit = _fitted(trace, sign * y, plant)
        v = _straight(u, _columns(fit.shape, u, u) @ fit.weights, *_ends(fit, u))
        found = _linear(replace(trace, input_values=v), place, fit, options)
        plant = _unit(found, place)
    fit = _fitted(trace, sign * y, plant)
    (least, most), grid = _ends(fit, u), _grid(u, fit)
    draws = _drawn(trace, sign * y, plant, fit, np.random.default_rng(seed))
    table = _columns(fit.shape, grid, u)
    values = table @ fit.weights
    error = np.sqrt(((draws @ table.T - values) ** 2).mean(axis=0)) * np.ptp(u) / (most - least)
    order = np.argsort(u[there])
    linear = _straight(grid, values, least, most)
    curve = InputCurve(
        output=name,
        shape=fit.shape if sign > 0.0 else {"convex": "concave", "concave": "convex"}.get(fit.shape, fit.shape),
        inputs=grid,
        linearised=linear,
        slope_band=_bands(draws, fit, grid, u),
        level_band=np.column_stack([linear - _SURE * error, linear + _SURE * error]),
        deviation=np.interp(grid, u[there][order], fit.deviation[order]),
    )
    model = _scaled(
        found, place, curve, sign * np.array([least, most]), draws @ np.ptp(table[[0, -1]], axis=0) / (most - least)
    )
    how = model.identification
    return msgspec.structs.replace(
        model, identification=how and msgspec.structs.replace(how, warnings=(*told, *how.warnings))
    )


def _complete(trace: SignalTrace) -> np.ndarray:
    """(T,) whether all outputs of a sample are there."""
    return np.array(np.isfinite(trace.output_values).all(axis=1))


def _past(trace: SignalTrace, k: int) -> np.ndarray:
    """(T,) index of the sample k samples ago; before a segment's first that one."""
    return np.maximum(np.arange(len(trace)) - k, np.repeat(trace.starts, np.diff([*trace.starts, len(trace)])))


def _without_faults(trace: SignalTrace, place: int) -> tuple[SignalTrace, list[str]]:
    """The trace with NaN for faulty samples, and what is said of them.

    The lowest value of a queue is its curve's, and its noise grows along the curve: outliers are told by the deviation
    of the samples at levels near theirs, of what a regression on functions of the last inputs leaves. That is robust,
    and the regression is repeated without them.
    """
    values, said = trace.output_values.copy(), []
    for flaw in flaws(trace):
        if flaw.missing is not None and flaw.kind in ("placeholder", "stuck") and flaw.missing.mean() <= _FAULTY:
            values[flaw.missing, trace.outputs.index(flaw.channel)] = np.nan
            said.append(flaw.sentence)
    u, y = trace.input_values[:, 0], values[:, place]
    bent = _columns("monotone", u, u)[:, 1::2]
    columns = np.hstack([np.ones((len(u), 1)), *(bent[_past(trace, k)] for k in range(_PAST + 1))])
    there = np.isfinite(y)
    order = np.argsort(u, kind="stable")
    near = np.lib.stride_tricks.sliding_window_view(np.pad(order, _NEAR // 2, mode="reflect"), _NEAR)
    bad = np.zeros(len(u), bool)
    for _ in range(_ROUNDS + 1):
        left = y - columns @ np.linalg.lstsq(columns[there], y[there], rcond=1e-9)[0]
        size = np.empty(len(u))
        size[order] = np.nanmedian(np.abs(left)[near], axis=1) / _MEDIAN
        bad = np.logical_or(bad, np.abs(left) > _FAR * size.clip(_QUIET * size.max()))
        there = np.isfinite(y) & ~bad
    if bad.any() and bad.mean() <= _FAULTY:
        values[bad, place] = np.nan
        rows = ", ".join(map(str, np.flatnonzero(bad)[:3] + 1)) + (", ..." if bad.sum() > 3 else "")
        said.append(f"{trace.outputs[place]}: {bad.sum()} outliers, in row {rows}: they count as missing")
    return replace(trace, output_values=values), said


def _chance(u: np.ndarray, y: np.ndarray, trace: SignalTrace) -> float:
    """p-value: probability that an input without influence would explain as much of the output."""
    there, at = np.isfinite(y), np.arange(len(y))
    y = np.interp(at, at[there], y[there])
    one = SignalTrace(interval_s=trace.interval_s, input_values=u, output_values=y, starts=trace.starts)
    parts = Scale.of(one).scaled(one)
    return float(dependence(lq_reduce(parts, horizon_of(parts, None, None)))[0])


def _ends(fit: _Fit, u: np.ndarray) -> tuple[float, float]:
    """Fitted values at the ends of what was visited; InvalidValue where they don't rise."""
    low, high = _columns(fit.shape, np.array([u.min(), u.max()]), u) @ fit.weights
    if not high > low:
        raise _hidden()
    return float(low), float(high)


def _hidden() -> InvalidValue:
    return InvalidValue("trace", "outputs whose noise hides the input", "a trace whose output follows its input")


def _linear(trace: SignalTrace, place: int, fit: _Fit, options: dict[str, Any]) -> IdentifiedModel:
    """The linear model behind the curve, from the trace of v: that of `identify`, or a response to a few inputs."""
    # Inputs of many levels are made, not a law's: a response within the sample is the link's.
    open_loop: dict[str, Any] = {"feedthrough": True, "stable": True}
    result = identify(trace, **(open_loop | options))
    found, how = result.model, result.how
    if {"order", "method"} & set(options):
        return found
    v, there, weight = trace.input_values[:, 0], _complete(trace), 1.0 / fit.deviation[:, None]
    T, plant, y = len(v), _unit(found, place), trace.output_values[there]
    score = np.inf
    if plant is not None:
        columns = np.column_stack([np.ones(T), _through(trace, v[:, None], plant)])[there]
        score = _criterion(weight * columns, weight[:, 0] * y[:, place], 2 * len(found.A))
    for k in range(1, _PAST + 1):
        columns = np.column_stack([np.ones(T), *(v[_past(trace, j)] for j in range(k + 1))])[there]
        other = _criterion(weight * columns, weight[:, 0] * y[:, place], 0)
        taps = np.linalg.lstsq(weight * columns, weight * y, rcond=None)[0]
        if other < score:
            score, left = other, y - columns @ taps
            found = msgspec.structs.replace(
                found,
                A=np.eye(k, k=-1),
                B=np.eye(k, 1),
                C=taps[2:].T,
                D=taps[1:2].T,
                input_offset=[v.mean()],
                output_offset=taps[0] + taps[1:].sum(axis=0) * v.mean(),
                K=np.zeros((k, y.shape[1])),
                innovation_covariance=left.T @ left / len(y),
                identification=msgspec.structs.replace(
                    how,
                    method=f"least squares over deviations, {k} past input{'s' * (k > 1)}",
                    order=k,
                    vaf=variance_accounted_for(y, y - left),
                    held_out_vaf=None,
                    refined=False,
                    stabilised=False,
                    warnings=tuple(flaw.sentence for flaw in flaws(trace)),
                ),
            )
    return found


def _criterion(columns: np.ndarray, y: np.ndarray, more: int) -> float:
    """Bayesian information criterion of a regression with some parameters more."""
    left = y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0]
    return len(y) * np.log(max(np.mean(left**2), np.finfo(float).tiny)) + (columns.shape[1] + more) * np.log(len(y))


def _scaled(
    model: IdentifiedModel, place: int, curve: InputCurve, ends: np.ndarray, ratios: np.ndarray
) -> IdentifiedModel:
    """The model with the steady outputs that the curve has at its ends, and the draws of its rise over its own."""
    scale, rise = np.ones((len(model.C), 1)), (ends[1] - ends[0]) / np.ptp(curve.inputs)
    gain = model.state_space.steady_gain()
    scale[place] = rise / gain[place]
    offset = np.array(model.output_offset)
    offset[place] = ends[0] + rise * (np.asarray(model.input_offset)[0] - curve.inputs[0])
    how = model.identification and msgspec.structs.replace(
        model.identification, steady_gain_draws=ratios[:, None, None] * scale * gain
    )
    return msgspec.structs.replace(
        model, C=scale * model.C, D=scale * model.D, output_offset=offset, curve=curve, identification=how
    )


def _columns(shape: str, at: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Constant and rising functions at inputs, each from 0 to 1 over the range of u."""
    low, span = u.min(), np.ptp(u)
    share = (at - low) / span
    bent = [(1.0 / (1.0 + c - share) - 1.0 / (1.0 + c)) / (1.0 / c - 1.0 / (1.0 + c)) for c in _BEYOND]
    risen = [1.0 - (1.0 / (c + share) - 1.0 / (1.0 + c)) / (1.0 / c - 1.0 / (1.0 + c)) for c in _BEYOND]
    taken = {"convex": bent, "concave": risen, "monotone": bent + risen}[shape]
    return np.column_stack([np.ones_like(share), share, *taken])


def _solve(columns: np.ndarray, y: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Weights of at least 0 but for the constant's."""
    from scipy.optimize import nnls

    scaled, target = columns / deviation[:, None], y / deviation
    first = scaled[:, :1]
    away = first / (first**2).sum()
    rest = scaled[:, 1:] - first @ (away.T @ scaled[:, 1:])
    weights = nnls(rest, target - first[:, 0] * (away[:, 0] @ target), maxiter=30 * rest.shape[1])[0]
    return np.concatenate([[away[:, 0] @ (target - scaled[:, 1:] @ weights)], weights])


def _through(trace: SignalTrace, columns: np.ndarray, plant: StateSpace | None) -> np.ndarray:
    """Responses to functions of the input, by a plant of unit gain that begins each segment at rest."""
    if plant is None:
        return columns
    answered, edges = np.empty_like(columns), [*trace.starts, len(trace)]
    for start, stop in pairwise(edges):
        x = np.linalg.solve(np.eye(plant.n_states) - plant.A, plant.B) @ columns[start : start + 1]
        for t in range(start, stop):
            answered[t] = (plant.C @ x + plant.D @ columns[t : t + 1])[0]
            x = plant.A @ x + plant.B @ columns[t : t + 1]
    return answered


def _fitted(trace: SignalTrace, y: np.ndarray, plant: StateSpace | None) -> _Fit:
    """Of the shapes the first whose held-out log likelihood no other exceeds by more than a tie."""
    there = _complete(trace)
    every = trace.input_values[:, 0]
    u, y = every[there], y[there]
    fold = np.arange(len(u)) * _FOLDS // len(u)
    fits, errors = [], []
    for shape in ("convex", "concave", "monotone"):
        columns = _through(trace, _columns(shape, every, every), plant)[there]
        deviation = np.ones(len(u))
        for _ in range(3):
            deviation = _deviation(u, y - columns @ _solve(columns, y, deviation))
        error = np.empty(len(u))
        for k in range(_FOLDS):
            inside = fold != k
            error[~inside] = y[~inside] - columns[~inside] @ _solve(columns[inside], y[inside], deviation[inside])
        fits.append(_Fit(shape, _solve(columns, y, deviation), deviation))
        errors.append(float(np.mean(np.log(deviation) + 0.5 * (error / deviation) ** 2)))
    return fits[int(np.argmax(np.array(errors) <= min(errors) + _TIE))]


def _deviation(u: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """Deviation by level: root mean square over the neighbouring twentieth of the samples, in the order of u."""
    order = np.argsort(u, kind="stable")
    width = max(len(u) // 20, 8)
    squares = np.convolve(np.pad(residual[order] ** 2, width // 2, mode="reflect"), np.ones(width) / width, "same")
    found = np.empty(len(u))
    found[order] = np.sqrt(squares[width // 2 : width // 2 + len(u)])
    return found.clip(max(_QUIET * found.max(), np.finfo(float).tiny))


def _grid(u: np.ndarray, fit: _Fit) -> np.ndarray:
    """Knots of the table: even in u, and even in v."""
    even = np.linspace(u.min(), u.max(), 20 * _KNOTS)
    values = _columns(fit.shape, even, u) @ fit.weights
    by_value = np.interp(np.linspace(values[0], values[-1], _KNOTS), values, even)
    return np.unique(np.concatenate([even[:: 20 * _KNOTS // _KNOTS], by_value, even[-1:]]).round(12))


def _straight(at: np.ndarray, f: np.ndarray, least: float, most: float) -> np.ndarray:
    """V: f scaled to run over the range of inputs; a least slope keeps it rising."""
    low, span = at.min(), np.ptp(at)
    return low + span * ((1.0 - _QUIET) * (f - least) / (most - least) + _QUIET * (at - low) / span)


def _unit(model: IdentifiedModel, place: int) -> StateSpace | None:
    """The model's dynamics from v to one output, with a steady gain of 1."""
    gain = float(model.state_space.steady_gain()[place, 0])
    if gain == 0.0:
        return None
    row = slice(place, place + 1)
    return StateSpace(model.A, model.B, model.C[row] / gain, model.D[row] / gain, model.dt)


def _drawn(
    trace: SignalTrace, y: np.ndarray, plant: StateSpace | None, fit: _Fit, rng: np.random.Generator
) -> np.ndarray:
    """(draws, k) weights from blocks of the trace, drawn with return."""
    u, there = trace.input_values[:, 0], _complete(trace)
    columns, y, u = _through(trace, _columns(fit.shape, u, u), plant)[there], y[there], u[there]
    length = max(round(len(u) ** (1.0 / 3.0)), 3)
    draws = []
    for _ in range(_DRAWS):
        rows = (rng.integers(0, len(u) - length, len(u) // length)[:, None] + np.arange(length)).ravel()
        draws.append(_solve(columns[rows], y[rows], fit.deviation[rows]))
    return np.array(draws)


def _bands(draws: np.ndarray, fit: _Fit, grid: np.ndarray, u: np.ndarray) -> np.ndarray:
    """(k − 1, 2) quantiles of slopes at both ends of each piece, over the table's slope."""
    width = np.diff(grid)
    own = np.diff(_columns(fit.shape, grid, u) @ fit.weights)
    least = _QUIET * own.sum() * width / width.sum()  # as in the table
    step = 1e-3 * np.diff(grid)
    left, right = (grid[:-1], grid[:-1] + step), (grid[1:] - step, grid[1:])
    ends = [(_columns(fit.shape, b, u) - _columns(fit.shape, a, u)) / step[:, None] for a, b in (left, right)]
    ratios = np.array([(draws @ each.T * width + least) / (own + least) for each in ends])
    low, high = np.quantile(ratios.min(axis=0), 0.025, axis=0), np.quantile(ratios.max(axis=0), 0.975, axis=0)
    return np.column_stack([low.clip(_QUIET, 1.0), high.clip(1.0)])
