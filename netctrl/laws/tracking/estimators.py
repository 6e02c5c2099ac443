"""Recursive estimation of slowly varying parameters of y = Θ'φ + e: least squares with forgetting, gradient steps.

`energy` and `correct_lms` are the gradient steps for one output, compiled and without checks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from netctrl.core.errors import InvalidValue, checked_number
from netctrl.core.jit import njit
from netctrl.model.io.matrix import dense_matrix


@njit(cache=True, error_model="numpy", inline="always")
def energy(values: np.ndarray, at: int, k: int) -> float:
    """|φ|² of φ = values[at : at + k]; places instead of slices, which cost as much as the sum."""
    total = 0.0
    for i in range(at, at + k):
        total += values[i] * values[i]
    return total


@njit(cache=True, error_model="numpy", inline="always")
def correct_lms(values: np.ndarray, theta: int, phi: int, k: int, change: float) -> float:
    """θ ← θ + change φ in place, for θ and φ that begin at these places of `values`; gives |θ|² after it."""
    total = 0.0
    for i in range(k):
        after = values[theta + i] + change * values[phi + i]
        values[theta + i] = after
        total += after * after
    return total


@dataclass(frozen=True, slots=True, eq=False)
class RecursiveEstimate:
    """Estimate after some samples."""

    theta: np.ndarray
    """(k, p) Θ."""
    P: np.ndarray
    """(k, k) inverse of the weighted sum of φφ', in φ's units."""

    def __post_init__(self) -> None:
        for array in (self.theta, self.P):
            array.setflags(write=False)


def recursive_start(theta: Any, *, doubt: float = 1e6) -> RecursiveEstimate:
    """A first guess Θ, shape (k, p), held with P = `doubt` I: the greater, the sooner data overrule it."""
    guess = dense_matrix("theta", theta)
    size = checked_number("doubt", doubt, "a number above 0", above=0.0)
    return RecursiveEstimate(guess, size * np.eye(len(guess)))


def recursive_step(
    known: RecursiveEstimate, phi: Any, y: Any, *, forgetting: float = 0.99, most: float = 1e9
) -> tuple[RecursiveEstimate, np.ndarray]:
    """After one sample more: what is known, and the prediction's error y − Θ'φ, shape (p,).

    k = P φ / (λ + φ'P φ), Θ₊ = Θ + k (y − Θ'φ)', P₊ = (P − k φ'P) / λ: the least of Σ λ^{T−t} ‖y_t − Θ'φ_t‖². Where no
    sample tells about a direction, forgetting lets P grow there until a single one upsets Θ; `most` bounds it.

    Parameters
    ----------
    known : RecursiveEstimate
    phi, y : array_like, shapes (k,), (p,)
        Regressors, as (y_{t−1}, u_{t−1}, ...) of an ARX model, and what they are to tell.
    forgetting : float
        λ, above 0, at most 1: weight of a sample against the next; 1 / (1 − λ) samples count.
    most : float
        Greatest eigenvalue of P.

    Raises
    ------
    InvalidValue
        Shapes that don't fit, entries that aren't finite, a λ or bound out of range.

    Source: Ljung 1999, section 11.2.
    """
    if not isinstance(known, RecursiveEstimate):
        raise InvalidValue("known", type(known).__name__, "a RecursiveEstimate, as recursive_start gives")
    weight = checked_number("forgetting", forgetting, "a number above 0, at most 1", above=0.0, at_most=1.0)
    bound = checked_number("most", most, "a number above 0", above=0.0)
    k, p = known.theta.shape
    row = dense_matrix("phi", phi, (1, k))[0]
    error = dense_matrix("y", y, (1, p))[0] - row @ known.theta
    moved = known.P @ row
    if not np.isfinite(row @ moved):
        raise InvalidValue("phi", row.tolist(), "regressors whose squares are floats: scale the signals")
    gain = moved / (weight + row @ moved)
    P = (known.P - np.outer(gain, moved)) / weight
    sizes, directions = np.linalg.eigh(0.5 * (P + P.T))
    P = (directions * np.clip(sizes, 0.0, bound)) @ directions.T
    return RecursiveEstimate(known.theta + np.outer(gain, error), 0.5 * (P + P.T)), error


def sgd_step(theta: Any, phi: Any, y: Any, *, step: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """After one sample more: Θ + α φ e' and the prediction's error e = y − Θ'φ, as the pacing paper prints it.

    e is multiplied by 1 − α |φ|² for the same sample: stable only for α |φ|² < 2, which depends on the signals' units
    (`sgd_step_limit`). Nothing stops it where that fails; `nlms_step` is stable in any unit.

    Parameters
    ----------
    theta : array_like, shape (k, p)
    phi, y : array_like, shapes (k,), (p,)
        Regressors, and what they are to tell.
    step : float
        α, above 0.

    Returns
    -------
    theta, error : ndarray, shapes (k, p), (p,)

    Raises
    ------
    InvalidValue
        Shapes that don't fit, entries that aren't finite, a step out of range.

    Source: pacing paper, eq. (2).
    """
    alpha = checked_number("step", step, "a number above 0", above=0.0)
    known, row, error = _sample(theta, phi, y)
    return known + np.outer(alpha * row, error), error


def nlms_step(theta: Any, phi: Any, y: Any, *, step: float = 0.5, least: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """`sgd_step` with α / (ε + |φ|²): the error shrinks by 1 − α in any unit; φ = 0 tells nothing and leaves Θ.

    Parameters
    ----------
    theta : array_like, shape (k, p)
    phi, y : array_like, shapes (k,), (p,)
    step : float
        α, above 0 and below 2, where it is stable.
    least : float
        ε, at least 0, in φ's units squared: regressors that are small against it move Θ little.

    Returns
    -------
    theta, error
        As from `sgd_step`.

    Raises
    ------
    InvalidValue
        As `sgd_step`; regressors whose squares aren't floats.

    Source: Haykin, Adaptive Filter Theory, the normalized LMS; its stability for 0 < α < 2.
    """
    takes = "a number above 0 and below 2: beyond it the estimate diverges"
    alpha = checked_number("step", step, takes, above=0.0, at_most=float(np.nextafter(2.0, 0.0)))
    epsilon = checked_number("least", least, "a number of at least 0", at_least=0.0)
    known, row, error = _sample(theta, phi, y)
    size = float(row @ row)
    if not np.isfinite(size):
        raise InvalidValue("phi", row.tolist(), "regressors whose squares are floats: scale the signals")
    if size + epsilon == 0.0:
        return known, error
    return known + np.outer(row * (alpha / (epsilon + size)), error), error


def sgd_step_limit(phi: Any) -> float:
    """2 / |φ|²: `sgd_step` with φ like this one, shape (k,), is stable for steps below it; inf for φ = 0."""
    row = dense_matrix("phi", phi)[0]
    size = float(row @ row)
    return 2.0 / size if size > 0.0 else float("inf")


def _sample(theta: Any, phi: Any, y: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Θ, φ and y − Θ'φ, checked."""
    known = dense_matrix("theta", theta)
    k, p = known.shape
    row = dense_matrix("phi", phi, (1, k))[0]
    return known, row, dense_matrix("y", y, (1, p))[0] - row @ known
