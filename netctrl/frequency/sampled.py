"""Exact stability of a delayed plant under a sampled integral law.

The law changes its output once per epoch and holds it: p₊ = p + gain · (c·x at the epoch's end). Only p is delayed, and
p is piecewise constant, so the closed loop is finite dimensional. With tau = n d + r the plant sees p of n + 1 epochs
ago until time r of the epoch, and p of n epochs ago afterwards. States that the law reads and clears at every epoch
(a byte counter) are reset. Two matrix exponentials advance a whole epoch, without time steps or Padé approximation.
"""

from __future__ import annotations

import math

import numpy as np

from netctrl.model.loop import SampledLoop

_GRID_PER_EPOCH = 24  # grid points per half turn that each epoch of delay adds to the phase


def spectral_radius(loop: SampledLoop, gain: float) -> float:
    """Largest modulus of the closed loop's eigenvalues over one epoch: stable iff below 1."""
    return float(np.abs(np.linalg.eigvals(_lifted(*_epoch_map(loop), gain, loop))).max())


def gain_limit(loop: SampledLoop) -> float:
    """Least gain above 0 at which the loop has an eigenvalue on the unit circle; 0 where no small gain is stable.

    1 − gain·g(z) = 0 on |z| = 1 needs g real: the phase crossings of g on the unit circle are bracketed on a grid that
    resolves every corner and every turn of the delay, then refined by bisection. The limit is the least 1/g there.
    """
    maps, read = _epoch_map(loop), loop.read
    Phi, G_new, G_old, n = maps
    # A small gain moves the eigenvalue at z = 1 by gain · (static reading): inwards only if the reading is negative.
    if not read @ np.linalg.solve(np.eye(len(Phi)) - Phi, G_new + G_old) < 0.0:
        return 0.0
    angles = _angles(n, loop)
    g = _transfer(*maps, angles, read)
    # At z = −1 the response is real, so it is always a candidate. Round-off in its imaginary part is not a crossing.
    negative = np.signbit(np.append(g.imag[:-1], g.imag[-2]))
    (columns,) = np.nonzero(negative[1:] != negative[:-1])
    low, high = angles[columns], angles[columns + 1]
    for _ in range(60):
        middle = 0.5 * (low + high)
        same = np.signbit(_transfer(*maps, middle, read).imag) == negative[columns]
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    greatest = max(g[-1].real, _transfer(*maps, 0.5 * (low + high), read).real.max(initial=0.0))
    return float(1.0 / greatest) if greatest > 0.0 else math.inf


def _lifted(
    Phi: np.ndarray, G_new: np.ndarray, G_old: np.ndarray, n: int, gain: float, loop: SampledLoop
) -> np.ndarray:
    """Matrix of a whole epoch. The state is x and the n + 2 last outputs of the law, p of this epoch first; the law's
    row is p₊ = p + gain · read x₊, the others move on, and states that the law clears are left out."""
    m = len(Phi)
    M = np.zeros((m + n + 2, m + n + 2))
    M[:m, :m] = Phi
    M[:m, m + n] = G_new
    M[:m, m + n + 1] += G_old
    M[m] = gain * (loop.read @ M[:m])
    M[m, m] += 1.0
    M[m + 1 :, m:-1] = np.eye(n + 1)
    stays = np.concatenate([loop.keep, np.ones(n + 2, dtype=bool)])
    return M[stays][:, stays]


def _epoch_map(loop: SampledLoop) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """x₊ = Phi x + G_new p_(k−n) + G_old p_(k−n−1), with the columns of cleared states set to 0."""
    m, d, tau = len(loop.A), loop.epoch, loop.delay
    n = math.floor(tau / d)
    r = min(max(tau - n * d, 0.0), d)
    augmented = np.zeros((m + 1, m + 1))
    augmented[:m, :m] = loop.A
    # The result is linear in B, so B is scaled to the size of A: a large B must not set the exponential's scaling.
    size = np.abs(loop.B).max() / (np.abs(loop.A).max() or 1.0)
    augmented[:m, m] = loop.B / size
    early, late = (_exponential(augmented * time) for time in (r, d - r))
    G_old = late[:m, :m] @ early[:m, m]
    return late[:m, :m] @ early[:m, :m] * loop.keep, late[:m, m] * size, G_old * size, n


def _exponential(X: np.ndarray) -> np.ndarray:
    """e^X of a small matrix, by Taylor's series after scaling, squared back.

    SciPy's expm is general and slow here: a 4 x 4 matrix through LAPACK takes milliseconds
    while another process keeps BLAS's threads waiting, and importing it takes longer than a whole design.
    """
    norm = float(np.abs(X).sum(axis=-1).max(initial=0.0))
    squarings = max(0, math.frexp(norm)[1] + 1)  # then the norm is at most 1/2, and 0.5^15/15! is below round-off
    X = X / 2.0**squarings
    identity = np.eye(X.shape[-1])
    E = identity + X / 14.0
    for n in range(13, 0, -1):
        E = identity + (X @ E) / n
    for _ in range(squarings):
        E = E @ E
    return E


def _angles(n: int, loop: SampledLoop) -> np.ndarray:
    """Grid on (0, pi]: geometric from well below the slowest corner, joined with a uniform one for the delay's
    turns."""
    even = np.linspace(0.0, np.pi, _GRID_PER_EPOCH * (n + 3) + 1)[1:]
    rates = np.abs(np.linalg.eigvals(loop.A))
    slowest = rates[rates > 1e-9 * rates.max()].min() * loop.epoch
    geometric = np.geomspace(min(1e-2 * slowest, 1e-2 * even[0]), even[0], 65)[:-1]
    return np.concatenate([geometric, even])


def _transfer(
    Phi: np.ndarray, G_new: np.ndarray, G_old: np.ndarray, n: int, angles: np.ndarray, read: np.ndarray
) -> np.ndarray:
    """Response g(z) = z/(z − 1) · c (zI − Phi)⁻¹ (G_new z^−n + G_old z^−(n+1)) at z = e^(i·angle), (k,)."""
    z = np.exp(1j * angles)
    forced = np.exp(-1j * angles * n)[:, None] * (G_new + G_old / z[:, None])
    resolvent = z[:, None, None] * np.eye(len(Phi)) - Phi
    return z / (z - 1.0) * (np.linalg.solve(resolvent, forced[..., None])[..., 0] @ read)
