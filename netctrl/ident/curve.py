"""Hammerstein models: a static monotone curve of one input, convex or concave, in front of a linear model.

    v = f(u),  x₊ = A x + B (v − v₀) + K e,  y − y₀ = C x + D (v − v₀) + e

f is a sum of rising functions with weights of at least 0: the straight line and poles beyond the ends of what the trace
visited, 1/(c − u), as queues have them, or their mirror images. Least squares with such weights keep f monotone, and
convex or concave, with few weights other than 0.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
import numpy as np

from netctrl.core.errors import InvalidValue, checked_kind
from netctrl.ident.identify import identify
from netctrl.model.identified import IdentifiedModel, InputCurve
from netctrl.model.signals import SignalTrace
from netctrl.model.statespace import StateSpace

_LEVELS = 8
_BEYOND = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""Poles' distances from the ends, over the range of inputs."""
_DRAWS, _KNOTS, _ROUNDS = 80, 12, 2
_TIE = 0.02  # of the mean log likelihood of a sample
_FOLDS = 5
_QUIET = 1e-3  # least deviation over the greatest, so that no level has all the weight


class _Fit(NamedTuple):
    shape: str
    weights: np.ndarray
    """Constant first."""
    deviation: np.ndarray
    """(T,) of each sample around the curve."""


def identify_curve(trace: SignalTrace, *, output: str | None = None, seed: int = 0, **options: Any) -> IdentifiedModel:
    """Identify the curve of a trace's one input, and the linear model behind it.

    In turn, the curve is fitted through the model's dynamics, and the model from v = f(u). Samples count by the inverse
    of their variance, which changes along the curve. The shape is convex, concave or merely monotone: the one with the
    least error on fifths of the trace left out, and on a tie the first. Bands of the slope are the 95 % intervals of a
    bootstrap over blocks.

    Parameters
    ----------
    trace : SignalTrace
        One input of eight levels or more, such as `netctrl.multisine` or random levels held for some samples.
    output : str, optional
        Output whose curve it is; the first by default.
    seed : int
        Of the bootstrap.
    **options
        For `netctrl.identify`.

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
    u, y = trace.input_values[:, 0], trace.output_values[:, trace.outputs.index(name)]
    levels = len(np.unique(u))
    if levels < _LEVELS:
        takes = f"{_LEVELS} or more: {levels} can't show a curve; send netctrl.multisine or random levels, each held"
        raise InvalidValue("trace", f"an input of {levels} levels", takes)
    sign = 1.0 if np.corrcoef(u, y)[0, 1] >= 0.0 else -1.0
    place, plant = trace.outputs.index(name), None
    for _ in range(_ROUNDS):
        fit = _fitted(trace, sign * y, plant)
        grid = _grid(u, fit)
        values = _columns(fit.shape, grid, u) @ fit.weights
        v = _straight(u, _columns(fit.shape, u, u) @ fit.weights, values, grid)
        found = identify(replace(trace, input_values=v), **options).model
        plant = _unit(found, place)
    bands = _bands(trace, sign * y, plant, fit, grid, np.random.default_rng(seed))
    order = np.argsort(u)
    curve = InputCurve(
        output=name,
        shape=fit.shape if sign > 0.0 else {"convex": "concave", "concave": "convex"}.get(fit.shape, fit.shape),
        inputs=grid,
        linearised=_straight(grid, values, values, grid),
        slope_band=bands,
        deviation=np.interp(grid, u[order], fit.deviation[order]),
    )
    return msgspec.structs.replace(found, curve=curve)


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
    u = trace.input_values[:, 0]
    fold = np.arange(len(u)) * _FOLDS // len(u)
    fits, errors = [], []
    for shape in ("convex", "concave", "monotone"):
        columns = _through(trace, _columns(shape, u, u), plant)
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
    if not values[-1] > values[0]:
        raise InvalidValue("trace", "outputs that don't depend on the input", "a trace whose output follows its input")
    by_value = np.interp(np.linspace(values[0], values[-1], _KNOTS), values, even)
    return np.unique(np.concatenate([even[:: 20 * _KNOTS // _KNOTS], by_value, even[-1:]]).round(12))


def _straight(at: np.ndarray, f: np.ndarray, values: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """V: f scaled to run over the range of inputs; a least slope keeps it rising."""
    share = (f - values[0]) / (values[-1] - values[0])
    span = grid[-1] - grid[0]
    return grid[0] + span * ((1.0 - _QUIET) * share + _QUIET * (at - grid[0]) / span)


def _unit(model: IdentifiedModel, place: int) -> StateSpace | None:
    """The model's dynamics from v to one output, with a steady gain of 1."""
    gain = float(model.state_space.steady_gain()[place, 0])
    if gain == 0.0:
        return None
    row = slice(place, place + 1)
    return StateSpace(model.A, model.B, model.C[row] / gain, model.D[row] / gain, model.dt)


def _bands(
    trace: SignalTrace, y: np.ndarray, plant: StateSpace | None, fit: _Fit, grid: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """(k − 1, 2) quantiles of slopes at both ends of each piece, over the table's slope."""
    u = trace.input_values[:, 0]
    columns = _through(trace, _columns(fit.shape, u, u), plant)
    width = np.diff(grid)
    own = np.diff(_columns(fit.shape, grid, u) @ fit.weights)
    least = _QUIET * own.sum() * width / width.sum()  # as in the table
    length = max(round(len(u) ** (1.0 / 3.0)), 3)
    step = 1e-3 * np.diff(grid)
    left, right = (grid[:-1], grid[:-1] + step), (grid[1:] - step, grid[1:])
    ends = [(_columns(fit.shape, b, u) - _columns(fit.shape, a, u)) / step[:, None] for a, b in (left, right)]
    ratios = np.empty((_DRAWS, 2, len(own)))
    for draw in ratios:
        rows = (rng.integers(0, len(u) - length, len(u) // length)[:, None] + np.arange(length)).ravel()
        weights = _solve(columns[rows], y[rows], fit.deviation[rows])
        draw[:] = [(each @ weights * width + least) / (own + least) for each in ends]
    low, high = np.quantile(ratios.min(axis=1), 0.025, axis=0), np.quantile(ratios.max(axis=1), 0.975, axis=0)
    return np.column_stack([low.clip(_QUIET, 1.0), high.clip(1.0)])
