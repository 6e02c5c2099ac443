"""Multi-loop disk margin: factors of all loops that may vary at once, each in a disk of its own.

Each loop has a factor f = (1 + delta/2)/(1 − delta/2) with |delta| < alpha, of any phase, independent of the others'.
The loops stay stable up to alpha = 2/max mu(S − T), with mu over diagonal matrices of complex numbers (Seiler, Packard,
Gahinet, "An introduction to disk margins", IEEE Control Systems 40(5), 2020). mu is at most the least norm of
D (S − T) D⁻¹ over diagonal D, and equals it for up to three loops (Packard, Doyle, Automatica 29(1), 1993).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["mu_bound", "multiloop_disk_margin"]

_SWEEPS = 200
_STEPS = 60
_REFINE = 3
_POINTS = 17


def multiloop_disk_margin(
    response: Callable[[np.ndarray], np.ndarray], angles: np.ndarray, matrices: np.ndarray
) -> float:
    """Disk margin of a stable loop of several signals: every margin up to it holds.

    Parameters
    ----------
    response : callable
        Angles (n,) to L, (n, S, S).
    angles : ndarray
        Grid, which is refined around the worst angle; between its points nothing is proved.
    matrices : ndarray, shape (n, S, S)
        L there.
    """
    for _ in range(_REFINE):
        worst = int(np.argmax(_bounds(matrices)))
        low, high = angles[max(worst - 1, 0)], angles[min(worst + 1, len(angles) - 1)]
        angles = np.linspace(low, high, _POINTS)
        matrices = response(angles)
    return 2.0 / float(_bounds(matrices).max())


def _bounds(L: np.ndarray) -> np.ndarray:
    one = np.eye(L.shape[1])
    return mu_bound(np.linalg.solve(one + L, one - L))


def mu_bound(M: np.ndarray) -> np.ndarray:
    """Upper bound of mu for diagonal complex uncertainty, of matrices (n, S, S): (n,).

    D = diag(d) is moved along the gradient of the greatest singular value until that stays; any D gives a bound.
    """
    scale = np.ones(M.shape[:2])
    for _ in range(_SWEEPS):
        scaled = np.abs(M * scale[:, :, None] / scale[:, None, :]) ** 2
        np.einsum("nii->ni", scaled)[:] = 0.0
        rows, columns = scaled.sum(axis=2), scaled.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = np.where((rows > 0.0) & (columns > 0.0), (columns / rows) ** 0.25, 1.0)
        scale *= moved
        if np.abs(moved - 1.0).max() < 1e-6:
            break
    return _descended(M, scale)


def _descended(M: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Least norm along the gradient of its logarithm over those of d, from a first scale on."""
    best = np.full(len(M), np.inf)
    step = np.full(len(M), 0.5)
    u = np.log(scale)
    direction = np.zeros_like(u)
    for _ in range(_STEPS):
        trial = u + step[:, None] * direction
        scaled = M * np.exp(trial)[:, :, None] / np.exp(trial)[:, None, :]
        left, sizes, right = np.linalg.svd(scaled)
        better = sizes[:, 0] < best
        best = np.where(better, sizes[:, 0], best)
        step = np.where(better, 1.5 * step, 0.4 * step)
        u = np.where(better[:, None], trial, u)
        slope = np.abs(left[:, :, 0]) ** 2 - np.abs(right[:, 0, :]) ** 2  # of ln sigma over ln d
        direction = np.where(better[:, None], -slope, direction)
    return best
