"""Impulse responses of a trace, regularised: no order to choose, and bands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from netctrl.core.errors import InvalidValue, checked_kind, checked_whole
from netctrl.ident.subspace.lq_reduction import triangular
from netctrl.model.io.display import Shown
from netctrl.model.signals import SignalTrace

_LONGEST, _FEWEST = 100, 10  # samples by default; rows of the regression
_MOST = 2000  # coefficients of an output
_TRIED = [(size, decay) for size in (1e-3, 0.1, 10.0) for decay in (0.5, 0.8, 0.95)]
_BOUNDS = (-25.0, 25.0), (np.log(1e-4), np.log(5.0))  # of log c and log(−log λ)
_EXACT = 1e-20  # least mean square of what is left, relative to the output's variance


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class ImpulseFit(Shown):
    """Impulse responses with what the trace leaves open of them."""

    response: np.ndarray
    """(L, p, m) outputs at 0, 1, ... samples after a unit impulse of each input."""
    deviation: np.ndarray
    """(L, p, m) their standard deviation, given the noise's and the prior's."""
    size: np.ndarray
    """(p, m) c of the prior, whose covariances are c λ^max(a, b) for samples a, b = 1, ..., L."""
    decay: np.ndarray
    """(p, m) λ."""
    noise: np.ndarray
    """(p,) standard deviation of what is left of each output."""
    dt: float
    """Sampling interval [s]."""


def identify_impulse(trace: SignalTrace, *, length: int | None = None) -> ImpulseFit:
    """Impulse responses from each input to each output, by regularised least squares.

    The prior says that they decay and are smooth: Gaussian with covariances c λ^max(a, b). Its c and λ, one pair for
    each input and output, and the noise, taken as white, have the greatest marginal likelihood. For inputs that don't
    respond to the outputs.

    Parameters
    ----------
    trace : SignalTrace
        Inputs and outputs; rows with a missing output aren't used.
    length : int, optional
        L; by default a quarter of the samples, at most 100.

    Returns
    -------
    ImpulseFit

    Raises
    ------
    InvalidValue
        Too few samples for the length, or a signal that doesn't vary.

    Examples
    --------
    >>> import netctrl, numpy as np
    >>> from netctrl.ident.families.impulse import identify_impulse
    >>> random = np.random.default_rng(1)
    >>> u = random.normal(size=400)
    >>> y = np.convolve(u, 0.8 ** np.arange(60))[:400] + random.normal(size=400)
    >>> fit = identify_impulse(netctrl.SignalTrace(interval_s=1.0, input_values=u, output_values=y), length=50)
    >>> bool((abs(fit.response[:, 0, 0] - 0.8 ** np.arange(50)) < 3.0 * fit.deviation[:, 0, 0]).all())
    True

    References
    ----------
    Chen, Ohlsson, Ljung, Automatica 48 (2012) 1525-1535 (the kernel TC); Chen, Ljung, Automatica 49 (2013) 2213-2220
    (likelihood by QR).
    """
    checked_kind("trace", trace, SignalTrace)
    m, p = len(trace.inputs), len(trace.outputs)
    takes = f"1 to {_MOST // m} samples, fewer than a segment's"
    L = max(1, min(_LONGEST, len(trace) // 4)) if length is None else checked_whole("length", length, takes, at_least=1)
    parts = [(u, y[L - 1 :]) for u, y in trace.segments() if len(u) >= L]
    if L * m > _MOST or sum(len(y) for _, y in parts) < _FEWEST:
        raise InvalidValue("length", L, takes)
    view = np.lib.stride_tricks.sliding_window_view
    X = np.vstack([view(u, L, axis=0)[:, :, ::-1].reshape(-1, m * L) for u, _ in parts])
    Y = np.vstack([y for _, y in parts])
    per = np.nanstd(trace.input_values, axis=0)
    response, deviation = np.empty((2, L, p, m))
    size, decay, noise = np.empty((p, m)), np.empty((p, m)), np.empty(p)
    for k, name in enumerate(trace.outputs):
        there = np.isfinite(Y[:, k])
        rows = np.column_stack([X[there] / np.repeat(per, L), Y[there, k]]) if there.any() and per.all() else X[:0]
        rows = rows - rows.mean(axis=0) if len(rows) else rows  # as with a constant that isn't regularised
        unit = np.sqrt(np.mean(rows[:, -1] ** 2)) if len(rows) else 0.0
        if len(rows) < _FEWEST or not unit > 0.0:
            raise InvalidValue("trace", f"{name} with {len(rows)} usable rows", "signals that vary, in more samples")
        rows[:, -1] /= unit
        c, decay[k], left, g, spread = _fitted(triangular(rows), m, len(rows) - 1)
        scale = unit / per
        size[k], noise[k] = c * scale**2, left * unit
        response[:, k], deviation[:, k] = g.T * scale, spread.T * scale
    return ImpulseFit(response=response, deviation=deviation, size=size, decay=decay, noise=noise, dt=trace.interval_s)


def _fitted(R: np.ndarray, m: int, samples: int) -> tuple[np.ndarray, np.ndarray, float, np.ndarray, np.ndarray]:
    """c, λ (m,), the noise's deviation, responses and their deviations (m, L), from a factor R of [Φ y]."""
    from scipy.linalg import solve_triangular
    from scipy.optimize import minimize

    L = (R.shape[1] - 1) // m
    prefixes = R[:, :-1].reshape(len(R), m, L).cumsum(axis=2)  # R1 U, with U the upper triangle of ones

    def roots(x: np.ndarray) -> np.ndarray:
        """(m, L) w^½ of c λ^max(a, b) = U diag(w) U', c in units of the noise's variance."""
        powers = np.exp(x[:m, None] - np.exp(x[m:, None]) * np.arange(1.0, L + 1.0))
        return np.sqrt(powers - np.hstack([powers[:, 1:], np.zeros((m, 1))]))

    def factor(x: np.ndarray) -> np.ndarray:
        n = m * L
        stacked = np.zeros((len(R) + n, n + 1))
        stacked[: len(R), :n] = (prefixes * roots(x)).reshape(len(R), n)
        stacked[: len(R), n] = R[:, -1]
        stacked[len(R) :, :n] = np.eye(n)
        return triangular(stacked)

    def variance(F: np.ndarray) -> float:
        return max(float(F[-1, -1] ** 2) / samples, _EXACT)

    def cost(x: np.ndarray) -> float:
        F = factor(x)
        return float(np.log(variance(F)) + 2.0 * np.log(np.abs(np.diag(F)[:-1])).sum() / samples)

    starts = [np.repeat([np.log(size), np.log(-np.log(decay))], m) for size, decay in _TRIED]
    x = minimize(cost, min(starts, key=cost), method="L-BFGS-B", bounds=np.repeat(_BOUNDS, m, axis=0)).x
    F, w = factor(x), roots(x)
    inverse = solve_triangular(F[:-1, :-1], np.eye(m * L)) * np.sqrt(variance(F))

    def through(values: np.ndarray) -> np.ndarray:
        """U diag(w^½) times columns (m L, k), as (m, L, k)."""
        return (w[:, :, None] * values.reshape(m, L, -1))[:, ::-1].cumsum(axis=1)[:, ::-1]

    g = through(solve_triangular(F[:-1, :-1], F[:-1, -1:]))[:, :, 0]
    left = variance(F)
    return np.exp(x[:m]) * left, np.exp(-np.exp(x[m:])), left**0.5, g, np.sqrt((through(inverse) ** 2).sum(axis=2))
