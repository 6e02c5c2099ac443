"""Exact stability of a delayed plant under a sampled integral law.

The law changes its output once per epoch and holds it: p₊ = p + gain · (c·x at the epoch's end). Only p is delayed, and
p is piecewise constant, so the closed loop is finite dimensional. With tau = n d + r the plant sees p of n + 1 epochs
ago until time r of the epoch, and p of n epochs ago afterwards. States that the law reads and clears at every epoch
(a byte counter) are reset. Two matrix exponentials advance a whole epoch, without time steps or Padé approximation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from netctrl.model.loop import SampledLoop

_GRID_PER_EPOCH = 24  # grid points per half turn that each epoch of delay adds to the phase


def spectral_radius(loop: SampledLoop, gain: float) -> float:
    """Largest modulus of one closed loop's eigenvalues over one epoch: stable iff below 1."""
    return float(spectral_radii(loop, gain).item())


def spectral_radii(loop: SampledLoop, gain: ArrayLike) -> np.ndarray:
    """`spectral_radius` for each loop of a batch; `gain` broadcasts with the batch, and the result has its shape."""
    *maps, shape = _flat_maps(loop)
    gains = np.broadcast_to(np.asarray(gain, dtype=float), shape).reshape(-1)
    radii = np.empty(len(gains))
    for members, epochs in _by_epochs(maps[3]):  # whose matrices are of one size
        Phi, G_new, G_old, _ = (a[members] for a in maps)
        eigenvalues = np.linalg.eigvals(_lifted(Phi, G_new, G_old, epochs, gains[members], loop))
        radii[members] = np.abs(eigenvalues).max(axis=-1)
    return radii.reshape(shape)


def gain_limit(loop: SampledLoop) -> float:
    """Least gain above 0 at which one loop has an eigenvalue on the unit circle; 0 where no small gain is stable."""
    return float(gain_limits(loop).item())


def gain_limits(loop: SampledLoop) -> np.ndarray:
    """`gain_limit` for each loop of a batch, shape of the batch.

    1 − gain·g(z) = 0 on |z| = 1 needs g real: the phase crossings of g on the unit circle are bracketed on a grid that
    resolves every corner and every turn of the delay, then refined by bisection. The limit is the least 1/g there.
    """
    *maps, shape = _flat_maps(loop)
    limits = np.empty(len(maps[0]))
    for members, epochs in _by_epochs(maps[3]):  # loops with the same number of epochs of delay share one grid
        angles = _angles(epochs, loop)
        block = max(1, 400_000 // len(angles))
        for i in range(0, len(members), block):
            part = members[i : i + block]
            limits[part] = _limits_of(*(a[part] for a in maps), angles, loop.read)
    return limits.reshape(shape)


def _by_epochs(n: np.ndarray) -> Iterator[tuple[np.ndarray, int]]:
    for epochs in np.unique(n):
        yield np.flatnonzero(n == epochs), int(epochs)


def _flat_maps(loop: SampledLoop):
    """`_epoch_map` with one leading axis, and the shape of the batch."""
    Phi, G_new, G_old, n = _epoch_map(loop)
    shape, m = Phi.shape[:-2], Phi.shape[-1]
    flat_n = np.broadcast_to(n, shape).reshape(-1)
    return Phi.reshape(-1, m, m), G_new.reshape(-1, m), G_old.reshape(-1, m), flat_n, shape


def _lifted(Phi, G_new, G_old, n: int, gain, loop: SampledLoop) -> np.ndarray:
    """Matrix of a whole epoch. The state is x and the n + 2 last outputs of the law, p of this epoch first; the law's
    row is p₊ = p + gain · read x₊, the others move on, and states that the law clears are left out."""
    m = Phi.shape[-1]
    M = np.zeros((*Phi.shape[:-2], m + n + 2, m + n + 2))
    M[..., :m, :m] = Phi
    M[..., :m, m + n] = G_new
    M[..., :m, m + n + 1] += G_old
    M[..., m, :] = np.asarray(gain)[..., None] * (loop.read @ M[..., :m, :])
    M[..., m, m] += 1.0
    M[..., m + 1 :, m:-1] = np.eye(n + 1)
    stays = np.concatenate([loop.keep, np.ones(n + 2, dtype=bool)])
    return M[..., stays, :][..., stays]


def _epoch_map(loop: SampledLoop):
    """x₊ = Phi x + G_new p_(k−n) + G_old p_(k−n−1), with the columns of cleared states set to 0."""
    A, B = np.asarray(loop.A, dtype=float), np.asarray(loop.B, dtype=float)
    d, tau = loop.epoch, np.asarray(loop.delay, dtype=float)
    m = A.shape[-1]
    shape = np.broadcast_shapes(A.shape[:-2], B.shape[:-1], tau.shape)
    n = np.floor(tau / d).astype(int)
    r = np.clip(tau - n * d, 0.0, d)

    augmented = np.zeros((*shape, m + 1, m + 1))
    augmented[..., :m, :m] = A
    # The result is linear in B, so B is scaled to the size of A: a large B must not set the exponential's scaling.
    largest = np.abs(A).max(axis=(-2, -1))[..., None]
    size = np.abs(B).max(axis=-1, keepdims=True) / np.where(largest > 0.0, largest, 1.0)
    augmented[..., :m, m] = B / size
    early = _exponential(augmented * np.broadcast_to(r, shape)[..., None, None])
    late = _exponential(augmented * np.broadcast_to(d - r, shape)[..., None, None])
    Phi = late[..., :m, :m] @ early[..., :m, :m]
    G_old = (late[..., :m, :m] @ early[..., :m, m:])[..., 0]
    G_new = late[..., :m, m]
    return Phi * np.asarray(loop.keep, dtype=float), G_new * size, G_old * size, n


def _exponential(X: np.ndarray) -> np.ndarray:
    """e^X of a batch of small matrices, by Taylor's series after scaling, squared back.

    SciPy's expm is general and slow here: it passes each 4 x 4 matrix to LAPACK separately (milliseconds each while
    another process keeps BLAS's threads waiting), and importing it takes longer than a whole design.
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
    rates = np.abs(np.linalg.eigvals(np.asarray(loop.A, dtype=float))).ravel()
    slowest = rates[rates > 1e-9 * rates.max()].min() * loop.epoch
    geometric = np.geomspace(min(1e-2 * slowest, 1e-2 * even[0]), even[0], 65)[:-1]
    return np.concatenate([geometric, even])


def _transfer(Phi, G_new, G_old, n, angles, read) -> np.ndarray:
    """Response g(z) = z/(z − 1) · c (zI − Phi)⁻¹ (G_new z^−n + G_old z^−(n+1)) at z = e^(i·angle); angles (loops,
    k)."""
    z = np.exp(1j * angles)
    m = Phi.shape[-1]
    turns = np.exp(-1j * angles * n[:, None])
    forced = turns[..., None] * (G_new[:, None, :] + G_old[:, None, :] / z[..., None])
    resolvent = z[..., None, None] * np.eye(m) - Phi[:, None, :, :]
    states = np.linalg.solve(resolvent, forced[..., None])[..., 0]
    return z / (z - 1.0) * (states @ read)


def _limits_of(Phi, G_new, G_old, n, angles, read) -> np.ndarray:
    core = (Phi, G_new, G_old, n)
    grid = np.broadcast_to(angles, (len(n), len(angles)))
    g = _transfer(*core, grid, read)
    # At z = −1 the response is real, so it is always a candidate. Round-off in its imaginary part is not a crossing.
    end = g[:, -1].real
    limits = np.where(end > 0.0, 1.0 / np.where(end > 0.0, end, 1.0), np.inf)
    imaginary = g.imag.copy()
    imaginary[:, -1] = imaginary[:, -2]
    rows, columns = np.nonzero(np.signbit(imaginary[:, 1:]) != np.signbit(imaginary[:, :-1]))
    low, high = angles[columns], angles[columns + 1]
    at = tuple(a[rows] for a in core)
    low_sign = np.signbit(imaginary[rows, columns])
    for _ in range(60):
        middle = 0.5 * (low + high)
        same = np.signbit(_transfer(*at, middle[:, None], read)[:, 0].imag) == low_sign
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    crossing = _transfer(*at, (0.5 * (low + high))[:, None], read)[:, 0].real
    positive = crossing > 0.0
    np.minimum.at(limits, rows[positive], 1.0 / crossing[positive])
    # A small gain moves the eigenvalue at z = 1 by gain · (static reading): inwards only if the reading is negative.
    m = Phi.shape[-1]
    static = np.linalg.solve(np.eye(m) - Phi, (G_new + G_old)[..., None])[..., 0] @ read
    return np.where(static < 0.0, limits, 0.0)
