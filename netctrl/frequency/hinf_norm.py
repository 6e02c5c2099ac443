"""Peak gain (H-infinity norm) and bandwidth of a discrete-time system, from exact crossings of a gain level.

Disk margin: how much gain and phase may change together at a plant's input before its loop is unstable.
"""

from __future__ import annotations

from math import atan, degrees, pi, sqrt

import msgspec
import numpy as np
import scipy.linalg as sl

from netctrl.core.errors import InvalidValue
from netctrl.model.io.matrix import dense
from netctrl.model.statespace import StateSpace

_ON_CIRCLE = 1e-6
_AT_LEVEL = 1e-6
_CLOSE = 1e-9  # relative to the peak
_MAX = 60
_HALF_POWER = 1.0 / sqrt(2.0)


def gain_at(system: StateSpace, angle: float) -> float:
    """Largest singular value of G(e^{iθ}), θ in radians per sample."""
    A, B, C, D = (dense(part) for part in (system.A, system.B, system.C, system.D))
    G = C @ np.linalg.solve(np.exp(1j * angle) * np.eye(len(A)) - A, B) + D
    return float(np.linalg.norm(G, 2)) if G.size else 0.0


def level_crossings(system: StateSpace, level: float) -> np.ndarray:
    """All angles θ in [0, π] at which `level` is a singular value of G(e^{iθ}) [rad/sample], ascending.

    θ are the angles of the eigenvalues on the unit circle of the pencil

        z [[I, 0, 0], [0, A', 0], [0, B', 0]] − [[A, 0, B], [−C'C, I, −C'D], [−D'C, 0, γ²I − D'D]],

    which stands for x₊ = A x + B u, p = A'p₊ + C'y, γ²u = B'p₊ + D'y, y = C x + D u. No matrix is inverted.

    Raises
    ------
    InvalidValue
        Continuous time, or a level that isn't above 0.

    Source: Boyd, Balakrishnan, Kabamba, Math. Control Signals Systems 2 (1989) 207-219, for discrete time.
    """
    if system.dt <= 0.0:
        raise InvalidValue("system", "continuous time", "a discrete-time system, with a sampling interval dt > 0")
    if not level > 0.0:
        raise InvalidValue("level", level, "a level above 0")
    A, B, C, D = _balanced(system)
    n, m = B.shape
    E, F = np.zeros((2, 2 * n + m, 2 * n + m))
    E[:n, :n] = np.eye(n)
    E[n:, n : 2 * n] = np.vstack([A.T, B.T])
    F[:n, :n], F[:n, 2 * n :] = A, B
    F[n : 2 * n, :n], F[n : 2 * n, n : 2 * n], F[n : 2 * n, 2 * n :] = -C.T @ C, np.eye(n), -C.T @ D
    F[2 * n :, :n], F[2 * n :, 2 * n :] = -D.T @ C, level**2 * np.eye(m) - D.T @ D
    alpha, beta = sl.eigvals(F, E, homogeneous_eigvals=True)
    size = np.maximum(np.abs(alpha), np.abs(beta))
    apart = np.abs(np.abs(alpha) - np.abs(beta)) > _ON_CIRCLE * np.where(size > 0.0, size, 1.0)
    angles = np.angle(alpha * np.conj(beta))[~apart & (size > 0.0)]
    return np.unique(np.round(angles[angles >= -_ON_CIRCLE].clip(0.0), 12))


def _balanced(system: StateSpace) -> tuple[np.ndarray, ...]:
    """A, B, C, D with states scaled so that rows and columns are of equal size, whatever the units of the states."""
    A, B, C, D = (dense(part) for part in (system.A, system.B, system.C, system.D))
    n = len(A)
    sizes = np.zeros((n + 1, n + 1))
    sizes[:n, :n], sizes[:n, n], sizes[n, :n] = np.abs(A), np.linalg.norm(B, axis=1), np.linalg.norm(C, axis=0)
    _, (scale, _) = sl.matrix_balance(sizes, permute=False, separate=True)
    states = scale[:n] / scale[n]
    return A * states / states[:, np.newaxis], B / states[:, np.newaxis], C * states, D


def peak_gain(system: StateSpace) -> tuple[float, float]:
    """Largest gain of a stable system over all frequencies, and its angle [rad/sample].

    Raises
    ------
    InvalidValue
        The system isn't stable.

    Source: Bruinsma, Steinbuch, Systems & Control Letters 14 (1990) 287-293.
    """
    poles = np.linalg.eigvals(dense(system.A)) if system.n_states else np.empty(0)
    if (radius := float(np.abs(poles).max(initial=0.0))) >= 1.0:
        raise InvalidValue(
            "system", f"spectral radius {radius:.9g}", "a stable system, with all poles within the circle"
        )
    candidates = np.unique(np.concatenate([[0.0, pi], np.abs(np.angle(poles))]))
    best = max((gain_at(system, angle), angle) for angle in candidates)
    for _ in range(_MAX):
        if best[0] == 0.0:
            break
        crossed = level_crossings(system, best[0] * (1.0 + _CLOSE))
        ends = np.unique(np.concatenate([[0.0], crossed, [pi]]))
        found = max((gain_at(system, angle), angle) for angle in 0.5 * (ends[1:] + ends[:-1]))
        if found[0] <= best[0] * (1.0 + _CLOSE):
            break
        best = found
    return best[0], float(best[1])


def bandwidth(system: StateSpace) -> float | None:
    """Lowest frequency [Hz] at which the gain of a stable system is 1/√2 of its gain at 0; None where there is none.

    The gain at frequency 0 must not be 0. The band ends at half the sampling rate.
    """
    steady = gain_at(system, 0.0)
    if steady == 0.0:
        return None
    level = steady * _HALF_POWER
    for angle in level_crossings(system, level):
        if abs(gain_at(system, angle) - level) <= _AT_LEVEL * level:
            return float(angle / (2.0 * pi * system.dt))
    return None


CAREFUL_ALPHA = 2.0 / 3.0
"""Disk margin that designs ask for: a gain twice as high, or 37 degrees."""


class DiskMargin(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Disk margin at the plant's input: any factor f = (1 + δ/2)/(1 − δ/2), |δ| < α, leaves the loop stable.

    f is complex and, with several inputs, may differ between them.
    """

    alpha: float
    """α = 2/‖S − T‖∞, S and T the sensitivities at the plant's input."""
    lowest_gain: float
    """(2 − α)/(2 + α): factor to which the gain may fall; 0 or less: it may vanish."""
    highest_gain: float | None
    """(2 + α)/(2 − α): factor to which the gain may rise; null: without limit."""
    phase_deg: float
    """2 atan(α/2): phase that may be lost or gained."""
    frequency_hz: float
    """Frequency at which the loop is nearest to its limit."""


def diagonal_disk_margin(difference: StateSpace) -> DiskMargin:
    """Disk margin with a factor of its own at each input, whatever their units, as for `discrete_disk_margin`.

    For any diagonal D ‖D (S − T) D⁻¹‖∞ bounds what factors may do; D is chosen so that the bound is small.

    Source: Seiler, Packard, Gahinet, IEEE Control Systems Magazine 40 (2020) 78-95, for several inputs.
    """
    from scipy.optimize import minimize

    B, C, D = (np.asarray(part, dtype=float) for part in (difference.B, difference.C, difference.D))
    m = len(C)

    def scaled(logs: np.ndarray) -> StateSpace:
        scale = np.exp(np.append(0.0, logs))
        return StateSpace(difference.A, B / scale, C * scale[:, None], D * scale[:, None] / scale, difference.dt)

    if m == 1:
        return discrete_disk_margin(difference)
    # Equal off-diagonal gains at frequency 0 to begin with, so that units don't matter.
    gain = np.abs(D + C @ np.linalg.solve(1.001 * np.eye(len(difference.A)) - np.asarray(difference.A), B))
    start = np.zeros(m)
    for _ in range(50):
        for i in range(m):
            others = np.arange(m) != i
            scale = np.exp(start)
            into, out = gain[i, others] @ (1.0 / scale[others]), gain[others, i] @ scale[others]
            if into > 0.0 and out > 0.0:
                start[i] = 0.5 * np.log(out / into)
    start = start[1:] - start[0]
    found = minimize(
        lambda logs: np.log(peak_gain(scaled(logs))[0]),
        start,
        method="Nelder-Mead",
        options={"maxfev": 60 * m, "xatol": 1e-4, "fatol": 1e-6},
    )
    return discrete_disk_margin(scaled(found.x))


def discrete_disk_margin(difference: StateSpace) -> DiskMargin:
    """Disk margin from S − T, the response of u + w − (−u) = 2u + w to a disturbance w at the plant's input.

    Raises
    ------
    InvalidValue
        The closed loop isn't stable.

    Source: Seiler, Packard, Gahinet, IEEE Control Systems Magazine 40 (2020) 78-95, with skew 0.
    """
    peak, angle = peak_gain(difference)
    alpha = 2.0 / peak if peak > 0.0 else np.inf
    return DiskMargin(
        alpha=alpha,
        lowest_gain=(2.0 - alpha) / (2.0 + alpha),
        highest_gain=(2.0 + alpha) / (2.0 - alpha) if alpha < 2.0 else None,
        phase_deg=degrees(2.0 * atan(0.5 * alpha)),
        frequency_hz=angle / (2.0 * pi * difference.dt),
    )
