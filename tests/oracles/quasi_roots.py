"""Closed-loop poles of loops with delays by root finding, apart from netctrl: what margins are held against.

1 + L = 0 is p0(s) ξ + Σ p_k(s) e^(−s t_k) ξ = 0. ξ's chain of integrators is driven by w = −Σ z_k(t − t_k), with
z_k = p_k(d/dt) ξ = C_k x + d_k w, and each z_k travels along a line of Chebyshev nodes (pseudospectral, no Padé). The
eigenvalues are then polished by Newton's method on the quasi-polynomial itself. Only the record's fields are read.
"""

from __future__ import annotations

import numpy as np

from netctrl.model.open_loop import OpenLoop

_STEPS = 1 << 20  # along an arc, and along the axis


def characteristic(loop: OpenLoop, gain: float = 1.0, delay: float = 0.0) -> list[tuple[float, np.ndarray]]:
    """(delay, coefficients) of denominator + gain·numerator·e^(−s·delay), the least delay taken out, delays rising."""
    total: dict[float, np.ndarray] = {}
    for more, factor, terms in ((0.0, 1.0, loop.denominator), (delay, gain, loop.numerator)):
        for own, p in terms:
            total[own + more] = np.polyadd(total.get(own + more, np.zeros(1)), factor * np.array(p))
    least = min(total)
    return [(t - least, np.trim_zeros(p, "f")) for t, p in sorted(total.items()) if np.any(p)]


def closed_loop_poles(
    loop: OpenLoop, gain: float = 1.0, delay: float = 0.0, tried: tuple[float, ...] = ()
) -> np.ndarray:
    """Poles at and near the right half plane (near and outside the circle), as many as the nodes resolve.

    tried : frequencies from which Newton's method begins as well, where poles may be too fast for the nodes.
    """
    terms = characteristic(loop, gain, delay)
    if loop.dt:
        least = max(round(t / loop.dt) for t, _ in terms)
        total = np.zeros(1)
        for t, p in terms:
            total = np.polyadd(total, np.concatenate([p, np.zeros(least - round(t / loop.dt))]))
        return np.roots(total)
    if len(terms) == 1:
        return np.roots(terms[0][1])
    unit = 1.0 / terms[-1][0]
    # s = unit·S: the longest delay is 1.
    terms = [(t * unit, p * unit ** np.arange(len(p))[::-1]) for t, p in terms]
    guesses = np.concatenate([_pseudospectral(terms), 1j * np.array(tried) / unit])
    return _polished(terms, guesses) * unit


def _pseudospectral(terms: list[tuple[float, np.ndarray]]) -> np.ndarray:
    p0 = terms[0][1]
    n = len(p0) - 1
    A = np.zeros((n, n))
    A[:-1, 1:] = np.eye(max(n - 1, 0))
    b = np.zeros(n)
    if n:
        A[-1] = -p0[1:][::-1] / p0[0]
        b[-1] = 1.0
    top = max(len(p) for _, p in terms)  # beyond this |S| the highest power outweighs the rest (Cauchy's bound)
    size_of = sum(np.pad(np.abs(p), (top - len(p), 0)) for _, p in terms) / abs(p0[0])
    reach = 1.0 + 2.0 * float(np.max(size_of[1:] ** (1.0 / np.arange(1, top)), initial=0.0))
    late = terms[1:]
    nodes = [int(np.clip(18 + 0.7 * t * min(reach, 80.0), 18, 48)) for t, _ in late]
    size = n + sum(nodes)
    big = np.zeros((size, size))
    big[:n, :n] = A
    ends = n + np.cumsum(nodes)
    w = np.zeros(size)
    w[ends - 1] = -1.0  # w = −Σ z_k(t − t_k), the last node of each line
    if n:
        big[n - 1] += w
    for (t, p), m, end in zip(late, nodes, ends, strict=True):
        D = _differentiation(m) * (2.0 / t)
        full = np.zeros(n + 1)
        full[: len(p)] = p[::-1] / p0[0]  # rising powers
        head = full[n] * w
        if n:
            head[:n] += full[:n] - full[n] * p0[1:][::-1] / p0[0]
        big[end - m : end, end - m : end] += D[1:, 1:]
        big[end - m : end] += np.outer(D[1:, 0], head)
    return np.linalg.eigvals(big)


def _differentiation(m: int) -> np.ndarray:
    """d/dθ on m + 1 Chebyshev nodes from 1 (now) to −1 (a delay ago)."""
    theta = np.cos(np.pi * np.arange(m + 1) / m)
    c = np.ones(m + 1)
    c[[0, -1]] = 2.0
    c *= (-1.0) ** np.arange(m + 1)
    D = np.outer(c, 1.0 / c) / (theta[:, None] - theta[None, :] + np.eye(m + 1))
    return D - np.diag(D.sum(axis=1))


def _value(terms: list[tuple[float, np.ndarray]], s: np.ndarray) -> np.ndarray:
    return sum(np.polyval(p, s) * np.exp(-s * t) for t, p in terms)


def _polished(terms: list[tuple[float, np.ndarray]], guesses: np.ndarray) -> np.ndarray:
    """What Newton's method makes of the guesses that are not far to the left, each root once."""
    s = guesses[(guesses.real > -3.0) & (guesses.imag >= -1e-6) & (np.abs(guesses) < 1e6)].astype(complex)
    with np.errstate(all="ignore"):
        for _ in range(60):
            value = _value(terms, s)
            slope = sum((np.polyval(np.polyder(p), s) - t * np.polyval(p, s)) * np.exp(-s * t) for t, p in terms)
            s = s - value / slope
        value = _value(terms, s)
        size = sum(np.polyval(np.abs(p), np.abs(s)) * np.exp(-s.real * t) for t, p in terms)
        s = s[np.isfinite(s) & (np.abs(value) < 1e-9 * size)]
    s = np.where(s.imag < 0.0, s.conj(), s)
    kept: list[complex] = []
    for root in sorted(s, key=lambda z: -z.real):
        if all(abs(root - other) > 1e-7 * max(1.0, abs(root)) for other in kept):
            kept.append(complex(root))
    return np.array([*kept, *(z.conjugate() for z in kept if z.imag > 1e-9 * max(1.0, abs(z)))])


def rightmost(loop: OpenLoop, gain: float = 1.0, delay: float = 0.0, tried: tuple[float, ...] = ()) -> float:
    """Largest real part (continuous) or |z| − 1 (discrete) of the closed loop's poles, over the size of that pole."""
    poles = closed_loop_poles(loop, gain, delay, tried)
    if not poles.size:
        return -1.0
    return float((np.abs(poles) - 1.0).max() if loop.dt else (poles.real / np.maximum(np.abs(poles), 1e-12)).max())


def unstable_count(loop: OpenLoop, gain: float = 1.0, delay: float = 0.0) -> int:
    poles = closed_loop_poles(loop, gain, delay)
    return int(np.count_nonzero(np.abs(poles) > 1.0) if loop.dt else np.count_nonzero(poles.real > 0.0))


def encircled(loop: OpenLoop, gain: float = 1.0, delay: float = 0.0) -> int | None:
    """Unstable poles by the principle of the argument along a half disk that holds all of them, also those too fast for
    the nodes; None where that can't be told."""
    if loop.dt:
        return unstable_count(loop, gain, delay)
    terms = characteristic(loop, gain, delay)
    top = max(len(p) for _, p in terms)
    sizes = sum(np.pad(np.abs(p), (top - len(p), 0)) for _, p in terms)
    lead = abs(terms[0][1][0]) if len(terms[0][1]) == top else 0.0
    outweighs = 2.0 * lead - sizes[0]  # the highest power without delay, less those with one
    if outweighs <= 0.0:
        return None
    reach = 2.0 * float(np.max((top * sizes[1:] / outweighs) ** (1.0 / np.arange(1, top)), initial=1.0))
    edge = np.concatenate(
        [reach * np.exp(0.5j * np.pi * np.linspace(0.0, 1.0, _STEPS)), 1j * np.linspace(reach, 0.0, _STEPS)]
    )
    value = _value(terms, edge)
    turns = np.angle(value[1:] / value[:-1])
    return round(float(turns.sum()) / np.pi) if np.abs(turns).max() < 1.0 else None
