"""State-space models of a measured frequency response."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from netctrl.core.errors import InvalidValue, checked_flag, checked_number, checked_whole
from netctrl.model.io.display import Shown
from netctrl.model.statespace import StateSpace

_MOST = 10  # states that are tried where the order isn't given
_FOLDS = 3
_ROUNDING = 1e-9  # of the response: errors below it are those of arithmetic
_LARGEST = 1e100  # whose squares are floats
_STEPS, _FEW = 100, 10  # of the refinement: of the model, and of those that are compared
_PATIENCE = 3  # orders without a better one, after which none is tried: a mode takes two


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class ResponseFit(Shown):
    """A state-space model of a frequency response, and how well it fits."""

    plant: StateSpace
    """Discrete model; it may be unstable, as a response measured in a closed loop may be an unstable plant's."""
    error: float
    """Root mean square of the errors over their deviations."""
    singular_values: np.ndarray
    """Singular values of the projected data, in decreasing order: the model has as many states as it keeps."""
    left_out: tuple[float, ...]
    """`error` of 1, 2, ... states at frequencies that they weren't fitted to; empty where the order was given."""

    def __post_init__(self) -> None:
        self.singular_values.setflags(write=False)


@dataclass(frozen=True, slots=True, eq=False)
class _Data:
    """z (f,) on the unit circle, the response and its deviation (f, p, m)."""

    z: np.ndarray
    G: np.ndarray
    deviation: np.ndarray
    direct: bool

    def part(self, kept: np.ndarray) -> _Data:
        return replace(self, z=self.z[kept], G=self.G[kept], deviation=self.deviation[kept])

    def errors(self, A: np.ndarray, B: np.ndarray, C: np.ndarray, D: np.ndarray) -> np.ndarray:
        """(f, p, m) errors over their deviations."""
        return (C @ _resolvent(self.z, A) @ B + D - self.G) / self.deviation


def identify_response(
    frequencies: Any,
    response: Any,
    *,
    dt: float,
    order: int | str = "auto",
    deviation: Any = 1.0,
    feedthrough: bool = True,
    refine: bool = True,
) -> ResponseFit:
    """State-space model of a measured frequency response, at any frequencies.

        G(e^{jω dt}) = C (e^{jω dt} I − A)⁻¹ B + D

    A and C come from the shift of an observability matrix, which a projection of the responses spans; B and D by least
    squares. `refine` then moves all of them to least squared errors. Frequencies are stretched around their median, so
    that narrow and logarithmic grids are as well conditioned as even ones.

    Parameters
    ----------
    frequencies : array_like, shape (f,)
        ω, different, from 0 to π/dt [rad/s].
    response : array_like, shape (f, p, m) or (f,)
        G, complex.
    dt : float
        Sampling interval [s].
    order : int or "auto"
        Number of states; "auto": the fewest that predict frequencies left out as well as the best number up to 10.
    deviation : array_like, broadcast to (f, p, m)
        Standard deviation of the response's noise, sqrt(E |n|²), or anything proportional to it; `abs(response)` for
        relative errors.
    feedthrough : bool
        False keeps D = 0.
    refine : bool
        False stops at the subspace estimate.

    Returns
    -------
    ResponseFit

    Raises
    ------
    InvalidValue
        Shapes that don't fit, entries that aren't finite, frequencies out of range, too few of them for the order.

    Examples
    --------
    A resonance, from twenty frequencies:

    >>> import netctrl, numpy as np
    >>> from netctrl.ident.families.response import identify_response
    >>> omega = np.geomspace(0.5, 30.0, 20)
    >>> z = np.exp(0.1j * omega)
    >>> fit = identify_response(omega, 0.1 / (z**2 - 1.6 * z + 0.9), dt=0.1)
    >>> fit.plant.n_states, np.poly(fit.plant.A).round(6).tolist()
    (2, [1.0, -1.6, 0.9])

    References
    ----------
    McKelvey, Akçay and Ljung, IEEE Trans. Automatic Control 41 (1996) 960-979, algorithm 2.
    """
    refine = checked_flag("refine", refine)
    step = checked_number("dt", dt, "a sampling interval above 0 in seconds", above=0.0)
    data = _checked(frequencies, response, step, deviation, checked_flag("feedthrough", feedthrough))
    most = _most(data)
    if not isinstance(order, str):
        n = checked_whole("order", order, f"1 to {most} states with {len(data.z)} frequencies, or 'auto'", at_least=1)
        if n > most:
            raise InvalidValue("order", order, f"1 to {most} states with {len(data.z)} frequencies, or 'auto'")
        return _fit(data, n, step, refine, ())
    fold = np.arange(len(data.z)) % _FOLDS
    most = min(_MOST, *(_most(data.part(fold != k)) for k in range(_FOLDS)))
    if order != "auto" or most < 1:
        raise InvalidValue("order", order, "'auto', which takes more frequencies, or a number of states")
    floor = (_ROUNDING * np.abs(data.G / data.deviation).max()) ** 2
    left: list[np.ndarray] = []
    while len(left) < most and (len(left) < _PATIENCE or _fewest(left, floor) > len(left) - _PATIENCE):
        left.append(_left_out(data, len(left) + 1, fold, refine))
    told = tuple(float(np.sqrt(each.mean())) for each in left)
    return _fit(data, _fewest(left, floor), step, refine, told)


def _fewest(left: list[np.ndarray], floor: float) -> int:
    """States of the smallest model that is as good as the best, by mean squared errors (f,) of 1, 2, ... states."""
    errors = np.array(left)
    # Paired by frequency: the same noise is in both models' errors.
    excess = errors - errors[errors.mean(axis=1).argmin()]
    doubt = excess.std(axis=1) / np.sqrt(errors.shape[1])
    return 1 + int((excess.mean(axis=1) <= np.maximum(doubt, floor)).argmax())


def _checked(frequencies: Any, response: Any, dt: float, deviation: Any, direct: bool) -> _Data:
    try:
        omega, G = np.atleast_1d(np.array(frequencies, float)), np.atleast_1d(np.array(response, complex))
        G = G[:, None, None] if G.ndim == 1 else G
        spread = np.array(np.broadcast_to(np.array(deviation, float).T, G.shape[::-1]).T)
    except (TypeError, ValueError, OverflowError):
        takes = "numbers: frequencies (f,), a response (f, p, m) or (f,), and a deviation that broadcasts to it"
        raise InvalidValue("frequencies, response and deviation", "others", takes) from None
    if omega.ndim != 1 or G.ndim != 3 or len(G) != len(omega) or not G.size:
        raise InvalidValue("response", f"shape {G.shape}", f"(f, p, m), or (f,), with f = {omega.size} frequencies")
    in_range = np.isfinite(omega).all() and omega.min() >= 0.0 and omega.max() * dt <= np.pi * (1.0 + 1e-12)
    if not in_range or len(np.unique(omega)) < len(omega):
        raise InvalidValue("frequencies", "others", f"different ones from 0 to π/dt = {np.pi / dt:.6g} rad/s")
    if not ((np.abs(G) <= _LARGEST).all() and (spread <= _LARGEST).all() and (spread >= 1.0 / _LARGEST).all()):
        raise InvalidValue("response and deviation", "others", "finite numbers below 1e100, and deviations above 0")
    by = np.argsort(omega)
    return _Data(np.exp(1j * dt * omega[by]), G[by], spread[by], direct)


def _most(data: _Data) -> int:
    """Greatest number of states: one more row of blocks than states, and no more rows than columns."""
    f, p, m = data.G.shape
    return 2 * m * f // (m + p) - 1


def _left_out(data: _Data, n: int, fold: np.ndarray, refine: bool) -> np.ndarray:
    """(f,) mean squared errors of models of the other frequencies."""
    found = np.empty(len(fold))
    for k in range(_FOLDS):
        matrices, _ = _estimate(data.part(fold != k), n, _FEW * refine)
        found[fold == k] = np.mean(np.abs(data.part(fold == k).errors(*matrices)) ** 2, axis=(1, 2))
    return found


def _fit(data: _Data, n: int, dt: float, refine: bool, left_out: tuple[float, ...]) -> ResponseFit:
    matrices, sizes = _estimate(data, n, _STEPS * refine)
    error = float(np.sqrt(np.mean(np.abs(data.errors(*matrices)) ** 2)))
    return ResponseFit(plant=StateSpace(*matrices, dt), error=error, singular_values=sizes, left_out=left_out)


def _estimate(data: _Data, n: int, steps: int) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """A, B, C, D and the singular values; of several numbers of block rows the best."""
    most = _most(data) + 1
    try:
        with np.errstate(all="ignore"):
            starts = [_subspace(data, n, q) for q in sorted({min(q, most) for q in (n + 1, 2 * n + 2, 4 * n + 4)})]
            matrices, sizes = min(starts, key=lambda start: float(np.sum(np.abs(data.errors(*start[0])) ** 2)))
            return (_refined(data, steps, *matrices) if steps else matrices), sizes
    except (np.linalg.LinAlgError, ValueError):  # not converged, or no finite numbers
        takes = "frequencies that are a larger share of π/dt, deviations of more similar size, or a lower order"
        raise InvalidValue("response", "numbers whose model rounding spoils", takes) from None


def _subspace(data: _Data, n: int, q: int) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """A, B, C, D and the singular values from q block rows."""
    from scipy.linalg import solve_triangular

    _, p, m = data.G.shape
    # z̃ = (z − a) / (1 − a z) has its angle at π/2 for the median frequency; the model in z̃ has as many states.
    t = np.tan(0.5 * np.clip(np.median(np.angle(data.z)), 1e-6, np.pi - 1e-6))
    a = (1.0 - t) / (1.0 + t)
    powers = ((data.z - a) / (1.0 - a * data.z)) ** np.arange(q)[:, None]
    # A column is a frequency's response to one input, over its deviation.
    weight = 1.0 / np.sqrt(np.mean(data.deviation**2, axis=1))
    inputs = np.einsum("qf,fj,ij->qifj", powers, weight, np.eye(m)).reshape(q * m, -1)
    outputs = np.einsum("qf,fj,fij->qifj", powers, weight, data.G).reshape(q * p, -1)
    rows = np.vstack([inputs, outputs])
    R = np.linalg.qr(np.hstack([rows.real, rows.imag]).T)[1].T
    noise = np.einsum("qf,rf,fij->qri", powers, powers.conj(), (data.deviation * weight[:, None]) ** 2).real
    covariance = np.einsum("qri,ij->qirj", noise, np.eye(p)).reshape(q * p, q * p)
    K = np.linalg.cholesky(covariance + 1e-12 * np.trace(covariance) * np.eye(q * p))
    U, sizes, _ = np.linalg.svd(solve_triangular(K, R[q * m :, q * m :], lower=True))
    span = K @ U[:, :n]
    turned = np.linalg.lstsq(span[:-p], span[p:], rcond=None)[0]
    A = np.linalg.solve(np.eye(n) + a * turned, a * np.eye(n) + turned)
    C = span[:p] @ (np.eye(n) - a * A)
    return (A, *_inputs(data, A, C)), sizes


def _resolvent(z: np.ndarray, A: np.ndarray) -> np.ndarray:
    return np.linalg.inv(z[:, None, None] * np.eye(len(A)) - A)


def _inputs(data: _Data, A: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """B, C and D of least squared errors, each input by itself."""
    n, p, m = len(A), len(C), data.G.shape[2]
    states = C @ _resolvent(data.z, A)
    direct = np.broadcast_to(np.eye(p) if data.direct else np.zeros((p, 0)), (len(states), p, p * data.direct))
    rows = np.concatenate([states, direct], axis=2)
    found = np.zeros((n + p, m))
    for j in range(m):
        scaled = (rows / data.deviation[:, :, j, None]).reshape(-1, rows.shape[2])
        size = np.linalg.norm(scaled, axis=0)
        target = _real((data.G[:, :, j] / data.deviation[:, :, j]).reshape(-1, 1))[:, 0]
        found[: rows.shape[2], j] = np.linalg.lstsq(_real(scaled / size), target, rcond=None)[0] / size
    return found[:n], C, found[n:]


def _refined(data: _Data, steps: int, *start: np.ndarray) -> tuple[np.ndarray, ...]:
    """A, B, C, D from which no small step lowers the squared errors."""
    from scipy.optimize import least_squares

    _, p, m = data.G.shape
    moved = start if data.direct else start[:3]
    ends = np.cumsum([part.size for part in moved])

    def matrices(x: np.ndarray) -> tuple[np.ndarray, ...]:
        parts = [part.reshape(old.shape) for part, old in zip(np.split(x, ends[:-1]), moved, strict=True)]
        return (*parts, *start[len(parts) :])

    def errors(x: np.ndarray) -> np.ndarray:
        return _real(data.errors(*matrices(x)).reshape(-1, 1))[:, 0]

    def slopes(x: np.ndarray) -> np.ndarray:
        A, B, C, _ = matrices(x)
        X = _resolvent(data.z, A)
        left, right, shape = C @ X, X @ B, (*data.G.shape, -1)
        by = [
            np.einsum("fia,fbj->fijab", left, right).reshape(shape),
            np.einsum("fia,jb->fijab", left, np.eye(m)).reshape(shape),
            np.einsum("ia,fbj->fijab", np.eye(p), right).reshape(shape),
            np.broadcast_to(np.eye(p * m).reshape(p, m, -1), (len(X), p, m, p * m)),
        ]
        J = np.concatenate(by[: len(moved)], axis=3) / data.deviation[..., None]
        return _real(J.reshape(-1, J.shape[3]))

    x = np.concatenate([part.ravel() for part in moved])
    # All entries move, more than the response has parameters: Levenberg-Marquardt takes the shortest of equal steps.
    method = "lm" if data.G.size * 2 >= x.size else "trf"
    return matrices(least_squares(errors, x, slopes, method=method, x_scale="jac", max_nfev=steps).x)


def _real(values: np.ndarray) -> np.ndarray:
    return np.vstack([values.real, values.imag])
