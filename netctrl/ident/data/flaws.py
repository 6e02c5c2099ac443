"""Flaws of measured signals that mislead identification, each found by a test and told in words.

The tests look at the residual e of a regression of each output on its own past and the inputs, whose rows with large
residuals are left out again (ARX with hard rejection), so that steps of the inputs, impulses and resonances, which the
inputs or the past explain, are none. Outliers are told from disturbances that enter the plant by what follows them: a
fault of the sensor leaves -a_k times its size in e after k samples, a disturbance nothing.

Source: Chen and Liu, JASA 88 (1993) 284-297 (outliers); Dickey and Fuller, JASA 74 (1979) 427-431 (unit roots).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from netctrl.ident.descent.kernels import simulate
from netctrl.model.signals import SignalTrace

FlawKind = Literal[
    "duplicate", "collinear", "identity", "outliers", "placeholder", "saturation", "stuck", "drift", "random walk",
    "delay", "quantised",
]  # fmt: skip

_ROWS, _COLUMNS, _LAGS, _OWN = 8000, 200, 40, 8  # of the regression
_LEVEL = 6.0  # deviations of an outlier: in a million Gaussian samples, one such with a probability of 0.2 %
_PILE = 3.0  # the same for values that are ten times as frequent as those beside them
_FLOOR = 2e-3  # least deviation of e, relative to the output's: below, errors of the regression itself
_RARE = 0.1  # greatest share of outliers or placeholders
_TIES = 5  # least number of equal samples that are a pile
_UNIT = 7.0  # N (1 - pole) of an integrated disturbance
_POLES = (0.5, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995)  # of the filters of the inputs, beside the lags


@dataclass(frozen=True, slots=True, eq=False)
class Flaw:
    """One flaw of a channel."""

    kind: FlawKind
    channel: str
    sentence: str
    """Finding, with numbers, and what to do."""
    missing: np.ndarray | None = None
    """(T,) samples that are better treated as missing; None where that is no remedy."""
    other: str = ""
    """Input of a delay."""
    lag: int = 0
    """Samples after which the output responds to it."""


def flaws(trace: SignalTrace) -> list[Flaw]:
    """Flaws of a trace's signals.

    Parameters
    ----------
    trace : SignalTrace
        Inputs and outputs; outputs may have missing samples.

    Returns
    -------
    list of Flaw
        Empty for clean data: among 1,296 records of slow, resonant and delayed plants with white, autocorrelated or no
        noise, those of integrators aside, 3 had one that wasn't there; the tests' levels were set on these records.
        Random walks are found in 3 to 8 of 10 records.

    Examples
    --------
    >>> import netctrl, numpy as np
    >>> from netctrl.ident.data.flaws import flaws
    >>> u = netctrl.gbn(500, (0.0, 1.0), np.random.default_rng(1))[:, 0]
    >>> y = np.convolve(u, [0.0, 1.0, 0.5])[:500] + 0.01 * np.random.default_rng(2).normal(size=500)
    >>> y[100] = 7.0
    >>> [(flaw.kind, flaw.missing.nonzero()[0].tolist()) for flaw in flaws(netctrl.SignalTrace(
    ...     interval_s=1.0, input_values=u, output_values=y))]
    [('outliers', [100])]
    """
    U, Y = _unit(trace.input_values), _unit(trace.output_values)
    found = [*_dependent(trace.inputs, U), *_dependent(trace.outputs, Y)]
    alone, slow = not found, _Slow.of(U, trace.starts)
    for k, name in enumerate(trace.outputs):
        same = _same_as(trace.inputs, U, name, Y[:, k])
        if same is not None:
            found.append(same)
        elif len(trace) >= 50:
            found += _of_output(trace, name, U, Y[:, k], trace.output_values[:, k], alone, slow)
    return found


def _unit(values: np.ndarray) -> np.ndarray:
    """Deviations from the median, of which the greatest is 1: squares of any unit's values are floats."""
    moved = values - np.nanmedian(values, axis=0)
    largest = np.nanmax(np.abs(moved), axis=0)
    return moved / np.where(largest > 0.0, largest, 1.0)


def _dependent(names: tuple[str, ...], V: np.ndarray) -> Iterator[Flaw]:
    """Signals that are one another's copies or sums."""
    V = V[np.isfinite(V).all(axis=1)]
    V = V - V.mean(axis=0)
    size = np.sqrt((V**2).sum(axis=0))
    V, names = V[:, size > 0.0] / size[size > 0.0], tuple(np.array(names)[size > 0.0])
    R, left = V.T @ V, list(range(V.shape[1]))
    for a in range(len(names)):
        for b in range(a + 1, len(names)):
            if a in left and b in left and 1.0 - abs(R[a, b]) < 1e-9:
                left.remove(b)
                yield Flaw("duplicate", names[b], f"{names[b]} is {names[a]} but for unit and offset: leave one out")
    if len(left) > 2 and len(V) > len(left):
        _, s, Vt = np.linalg.svd(V[:, left], full_matrices=False)
        if s[-1] < 1e-6 * s[0]:
            named = [names[left[j]] for j in np.flatnonzero(np.abs(Vt[-1]) > 1e-3)]
            said = f"{', '.join(named)} are linearly dependent: a sum of these is constant. Leave one out"
            yield Flaw("collinear", named[-1], said)


def _same_as(inputs: tuple[str, ...], U: np.ndarray, name: str, y: np.ndarray) -> Flaw | None:
    there = np.isfinite(y)
    for j, other in enumerate(inputs):
        u, v = U[there, j] - U[there, j].mean(), y[there] - y[there].mean()
        size = np.sqrt((u @ u) * (v @ v))
        if size > 0.0 and 1.0 - abs(u @ v) / size < 1e-9:
            said = f"{name} is {other} at the same sample but for unit and offset, without noise: it is no response"
            return Flaw("identity", name, f"{said}. Check that the columns are the ones meant")
    return None


@dataclass(frozen=True, slots=True, eq=False)
class _Arx:
    """y_t = c + Σ a_k y_{t-k} + Σ b_jk u_{j,t-k} + e_t."""

    a: np.ndarray
    b: np.ndarray
    """(m, lags), from lag 0."""
    b_deviation: np.ndarray
    e: np.ndarray
    """(T,) with NaN where samples are missing."""
    noise: float
    """Robust standard deviation of e."""
    deviation: float
    """The same, at least `_FLOOR` of the output's."""


def _arx(U: np.ndarray, y: np.ndarray, starts: tuple[int, ...], cleaned: np.ndarray) -> _Arx:
    """Fit on at most 8,000 rows; `cleaned` is y with outliers replaced, whose past explains y."""
    T, m = U.shape
    lags = max(2, min(_LAGS, _COLUMNS // m, (T // 8 - _OWN) // m))
    own = min(_OWN, max(2, T // 30))
    begin = np.array(starts)[np.searchsorted(starts, np.arange(T), side="right") - 1]
    good = np.isfinite(y) & (np.arange(T) - begin >= max(own, lags))
    for k in range(1, own + 1):
        good[k:] &= np.isfinite(cleaned[:-k])
    whole = np.flatnonzero(good)
    rows, theta = whole[:_ROWS], np.zeros(own + m * lags + 1)

    past = [cleaned[rows - k] for k in range(1, own + 1)]
    X = np.column_stack([*past, *(U[rows - k, j] for j in range(m) for k in range(lags)), np.ones(len(rows))])
    floor, target = _FLOOR * (float(y[good].std()) if good.any() else 0.0), y[rows]
    kept, whole_G = np.ones(len(rows), bool), X.T @ X
    inverse, deviation = np.eye(len(theta)), np.inf
    for _ in range(4):
        if kept.sum() < len(theta) + 10:
            break
        G = whole_G - X[~kept].T @ X[~kept]
        scale = 1.0 / np.sqrt(np.maximum(np.diag(G), 1e-300))
        inverse = np.linalg.pinv(G * scale * scale[:, None], rcond=1e-12, hermitian=True) * scale * scale[:, None]
        theta = inverse @ (X[kept].T @ target[kept])
        deviation = max(_spread(target - X @ theta), floor)
        kept = np.abs(target - X @ theta) <= 4.0 * deviation
    e = np.full(T, np.nan)
    b = theta[own:-1].reshape(m, lags)
    told = np.convolve(cleaned, np.concatenate([[0.0], theta[:own]]))[:T] + theta[-1]
    for u, response in zip(U.T, b, strict=True):
        told += np.convolve(u, response)[:T]
    e[whole] = (y - told)[whole]
    errors = deviation * np.sqrt(np.maximum(np.diag(inverse), 0.0))
    sure = errors[own:-1].reshape(m, lags)
    noise = _spread(e[whole])
    return _Arx(theta[:own], b, sure, e, noise, max(noise, floor, 1e-300))


def _spread(values: np.ndarray) -> float:
    """Robust standard deviation; the quantile of 90 % counts for signals that mostly stand still."""
    if len(values) == 0:
        return 0.0
    size = np.abs(values - np.median(values))
    return float(max(1.4826 * np.median(size), np.quantile(size, 0.9) / 1.6449))


def _of_output(
    trace: SignalTrace, name: str, U: np.ndarray, y: np.ndarray, raw: np.ndarray, alone: bool, slow: _Slow | None
) -> Iterator[Flaw]:
    """Flaws of one output y, `raw` in its own unit."""
    fit = _arx(U, y, trace.starts, y)
    bad = np.zeros(len(y), bool)
    held = _placeholder(name, y, raw, fit)
    if held is not None and held.missing is not None:
        yield held
        y = np.where(held.missing, np.nan, y)
        fit = _arx(U, y, trace.starts, y)
    cleaned = y
    for _ in range(4):
        new = _additive(fit, bad) & ~bad
        if not new.any():
            break
        bad = bad | new
        cleaned = np.where(new, y - fit.e, cleaned)
        fit = _arx(U, y, trace.starts, cleaned)
    bad &= bad.mean() <= _RARE
    if bad.any():
        size = np.abs(fit.e[bad]) / fit.deviation
        said = f"{name}: {bad.sum()} outliers, {np.nanmin(size):.3g} to {np.nanmax(size):.3g} deviations from what the"
        yield Flaw("outliers", name, f"{said} other samples tell (the first in row {bad.argmax() + 1})", bad)
    step = _quantum(y)
    yield from _piles(name, y, raw, fit, step)
    yield from _stuck(trace, name, y, raw, fit, step)
    clean = np.where(bad, np.nan, y)
    if step > 0.35 * np.nanstd(clean) and np.nanstd(fit.e) > 0.1 * step:
        share = (step / np.nanstd(clean)) ** 2 / 12.0
        unit = step * np.nanmax(np.abs(raw - np.nanmedian(raw)))  # in the output's own
        said = f"{name}: its steps of {unit:.3g} are coarse, rounding is {share:.0%} of its variance: use a finer unit"
        yield Flaw("quantised", name, said)
    untold = bad.any() & np.isnan(fit.e)  # the first rows, too, may have outliers
    if slow is not None:
        yield from _wandering(name, slow, np.where(untold, np.nan, clean))
    if alone:
        yield from _delays(trace, name, fit)


def _additive(fit: _Arx, known: np.ndarray) -> np.ndarray:
    """(T,) samples where a fault of that sample alone explains e better than a disturbance of the plant does."""
    e, weights = np.where(known, 0.0, np.nan_to_num(fit.e)), np.concatenate([[1.0], -fit.a])
    matched = np.convolve(e, weights[::-1])[len(weights) - 1 :]  # Σ weights_k e_{t+k}
    norm = np.sqrt(weights @ weights)
    told, own = np.abs(matched) / (norm * fit.deviation), np.abs(e) / fit.deviation
    around = np.max([np.roll(told, k) for k in range(-3, 4) if k], axis=0)
    return (own > _LEVEL) & ((told >= own) | (norm < 1.1)) & (told >= around)


def _placeholder(name: str, y: np.ndarray, raw: np.ndarray, fit: _Arx) -> Flaw | None:
    """A value such as 0, -1 or 999 that the output jumps to, again and again."""
    values, counts = np.unique(raw[np.isfinite(raw)], return_counts=True)
    if len(values) < 12:
        return None
    for value in dict.fromkeys([*values[np.argsort(-counts)][:3], values[0], values[-1]]):
        there = raw == value
        enters = there & ~np.r_[False, there[:-1]]
        place = int(np.searchsorted(values, value))
        beside = np.r_[counts[max(0, place - 2) : place], counts[place + 1 : place + 3]].max()
        pile = there.sum() >= 10 and there.sum() >= 10 * beside
        jumps = np.abs(fit.e[enters & np.isfinite(fit.e)]) > (_PILE if pile else _LEVEL) * fit.deviation
        if len(jumps) >= 3 and jumps.mean() > 0.8 and there.mean() <= 3.0 * _RARE:
            said = f"{name}: {there.sum()} samples are {value:g}, far from their neighbours, as where none was taken"
            return Flaw("placeholder", name, f"{said}: they count as missing", there)
    return None


def _quantum(y: np.ndarray) -> float:
    """Least difference between two values."""
    steps = np.diff(np.unique(y[np.isfinite(y)]))
    steps = steps[steps > 1e-12]
    return float(steps.min()) if len(steps) else 0.0


def _piles(name: str, y: np.ndarray, raw: np.ndarray, fit: _Arx, step: float) -> Iterator[Flaw]:
    """Saturation: the least or greatest value is more frequent than those beside, other than where a plant settles."""
    values, counts = np.unique(y[np.isfinite(y)], return_counts=True)
    if len(values) < 6:
        return
    for end, where in ((0, "lowest"), (-1, "greatest")):
        beside = counts[1:3] if end == 0 else counts[-3:-1]
        if counts[end] < _TIES or counts[end] <= 3 * beside.max():
            continue
        at = y == values[end]
        e = fit.e[at & np.isfinite(fit.e)] * (1.0 if end else -1.0)  # beyond the end: negative
        if len(e) < _TIES:
            continue
        noisy = fit.noise > step and np.sqrt(np.mean(e**2)) > 0.3 * fit.deviation
        cut = e.mean() < -max(0.5 * step, 4.0 * fit.deviation / np.sqrt(len(e))) if not noisy else True
        if cut:
            said = f"{name}: {at.sum()} samples ({at.mean():.2g}) are exactly {raw[at][0]:g}, its {where} value"
            yield Flaw("saturation", name, f"{said}: it is cut off there, and the gain is too small", at)


def _stuck(trace: SignalTrace, name: str, y: np.ndarray, raw: np.ndarray, fit: _Arx, step: float) -> Iterator[Flaw]:
    """Longest run of one value, where noise or the inputs would have moved the output."""
    same = np.zeros(len(y), bool)
    same[1:] = y[1:] == y[:-1]
    same[list(trace.starts)] = False
    edges = np.flatnonzero(~same)
    lengths = np.diff([*edges, len(y)])
    first, length = int(edges[lengths.argmax()]), int(lengths.max())
    run = np.zeros(len(y), bool)
    run[first : first + length] = True
    if length < 8 or y[first] in (np.nanmin(y), np.nanmax(y)):
        return
    share = max(0.1, (same.sum() - length + 1) / len(y))
    unlikely = share < 0.9 and fit.noise > step and length > np.log(1e-4 / len(y)) / np.log(share)
    moved = np.abs(fit.e[run]) > max(2.0 * step, _LEVEL * fit.deviation)
    if unlikely or moved.sum() >= 2:
        said = f"{name}: stands still at {raw[first]:g} for {length} samples from row {first + 1}"
        yield Flaw("stuck", name, f"{said}, though the noise or the inputs move it elsewhere", run)


class _Slow(NamedTuple):
    """What inputs may do to an output's means over `many` samples of the longest segment."""

    segment: slice
    many: int
    lags: np.ndarray
    """(means, any) of the inputs at some lags, and 1."""
    banks: list[np.ndarray]
    """(means, any) of the inputs through a slow pole, and of its free response, by pole."""

    @classmethod
    def of(cls, U: np.ndarray, starts: tuple[int, ...]) -> _Slow | None:
        first, last = max(pairwise([*starts, len(U)]), key=lambda edge: edge[1] - edge[0])
        T, U = last - first, U[first:last] - U[first:last].mean(axis=0)
        if T < 300:
            return None
        many, zeros, one = T // 150, np.zeros_like(U), np.eye(U.shape[1])
        lags = [k for k in (*range(7), 8, 10, 12, 16, 24, 32) if k < T // 20]
        lagged = [_means(np.vstack([zeros[:k], U[: T - k]]), many) for k in lags]
        banks = []
        for p in (pole for pole in _POLES if pole < 1.0 - 3.0 / T):
            free, driven = p ** np.arange(T)[:, None], simulate(p * one, p * one, one, one, zeros[0], U)
            banks.append(_means(np.hstack([driven, free]), many))
        return cls(slice(first, last), many, np.hstack([*lagged, np.ones((len(lagged[0]), 1))]), banks)


def _wandering(name: str, slow: _Slow, y: np.ndarray) -> Iterator[Flaw]:
    """Drift or random walk in what the inputs don't explain, from about 150 means over the longest segment.

    The inputs' effects, by some lags and two slow poles, are estimated from differences 1 - (1 - 7/N) q^-1 of the N
    means: from the means themselves they would explain much of a random walk too.

    Source: Elliott, Rothenberg and Stock, Econometrica 64 (1996) 813-836.
    """
    y = y[slow.segment]
    mean = _means(y, slow.many)
    there = np.isfinite(mean)
    if there.sum() < 30:
        return
    mean = mean[there]
    past = 1.0 - 7.0 / len(mean)

    def differences(x: np.ndarray) -> np.ndarray:
        return np.concatenate([x[:1], x[1:] - past * x[:-1]])

    X, target, w = slow.lags[there], differences(mean), mean
    banks = [each[there] for each in slow.banks]
    for more in ([X[:, :0]], banks, banks):
        tried = [np.column_stack([X, each]) for each in more]
        fits = [np.linalg.lstsq(differences(each), target, rcond=1e-10)[0] for each in tried]
        left = [mean - each @ theta for each, theta in zip(tried, fits, strict=True)]
        best = int(np.argmin([np.sum(differences(each) ** 2) for each in left]))
        X, w = tried[best], left[best]
    if w.std() < 0.1 * np.nanstd(y):
        return
    t = np.linspace(-1.0, 1.0, len(w))
    slope = (t @ w) / (t @ t)
    straight = 1.0 - np.var(w - slope * t) / np.var(w)
    if _normalised_bias(w) > -_UNIT:
        rise = 2.0 * abs(slope) / np.nanstd(y)
        if straight > 0.8 and _normalised_bias(w - slope * t) < -2.0 * _UNIT:
            said = f"{name}: drifts by {rise:.2g} of its deviations over the record, beyond what the inputs explain"
            yield Flaw("drift", name, f"{said}: remove the trend, or the gain absorbs it")
        else:
            said = f"{name}: wanders by {w.std() / np.nanstd(y):.2g} of its deviations beyond what the inputs explain,"
            said = f"{said} as a random walk or an integrator's output does: the steady gain isn't determined. Take"
            yield Flaw("random walk", name, f"{said} differences of inputs and outputs, or model integrated noise")


def _means(values: np.ndarray, many: int) -> np.ndarray:
    """Means over `many` samples each, along the first axis; NaN where all are missing."""
    parts = values[: len(values) // many * many].reshape(-1, many, *values.shape[1:])
    there = np.isfinite(parts)
    with np.errstate(invalid="ignore"):
        return np.where(there, parts, 0.0).sum(axis=1) / there.sum(axis=1)


def _normalised_bias(w: np.ndarray) -> float:
    """N (pole - 1) of the means' regression on their past, with a difference beside it."""
    d = np.diff(w)
    theta = np.linalg.lstsq(np.column_stack([w[1:-1], d[:-1]]), d[1:], rcond=None)[0]
    return float(len(w) * theta[0] / max(1.0 - theta[1], 0.1))


def _delays(trace: SignalTrace, name: str, fit: _Arx) -> Iterator[Flaw]:
    """First lag whose coefficient is sure, where all before it are not only unsure but surely smaller."""
    for j, other in enumerate(trace.inputs):
        ratio = np.abs(fit.b[j]) / np.maximum(fit.b_deviation[j], 1e-300)
        first = int((ratio > 4.0).argmax())
        sharp = ratio[first] > 8.0 and 6.0 * fit.b_deviation[j, :first].max(initial=0.0) < abs(fit.b[j, first])
        if first >= 3 and sharp:
            said = f"{name} responds to {other} only after {first} samples ({first * trace.interval_s:.4g} s)"
            yield Flaw("delay", name, f"{said}, a pure delay", other=other, lag=first)
