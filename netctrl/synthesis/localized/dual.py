"""Dual of one column's equations: its product, its preconditioner and conjugate gradients.

A column is the response to a unit in one link's buffer at t = 1. Link i of its region has an equation for each t in a
window,

    b_i(t + 1) − b_i(t) + u_i(t) − Σ_k c_ik u_k(t − 1 − n_k) = g_i(t),        E z = g,

with cost z'D z. Any y gives the lower bound 2 g'y − y'E D⁻¹E'y of the least cost under these equations, and so under
all: equations that are left out only raise it (weak duality). z = D⁻¹E'y is the response.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.core.jit import INSIDE, njit


class Tables(NamedTuple):
    """A network of N links as its columns need it."""

    delay: np.ndarray
    """(N,) n_l."""
    weight: np.ndarray
    """(N,) mu_l."""
    price: np.ndarray
    """(N,) cost of a unit in each link's buffer, estimated: what a leak costs."""
    down: tuple[np.ndarray, np.ndarray, np.ndarray]
    """Offsets, indices and c_lk of the links that each link feeds."""
    up: tuple[np.ndarray, np.ndarray, np.ndarray]
    """Offsets, indices and c_kl of the links that feed each."""


class Region(NamedTuple):
    """Links of a region, their windows, and who feeds whom within it; then the links outside that feed one of them."""

    inside: int
    """Number of links with equations."""
    links: np.ndarray
    first: np.ndarray
    """First time at which each may act on the disturbance."""
    start: np.ndarray
    end: np.ndarray
    """First and last time of each link's equations."""
    offset: np.ndarray
    """Their place among all equations."""
    free: np.ndarray
    """Whether the backlog before the first equation may differ from 0."""
    low: np.ndarray
    high: np.ndarray
    """Times of the rates among the unknowns."""
    edge: np.ndarray
    to: np.ndarray
    share: np.ndarray
    """Edges within the region, link by link."""


@njit(cache=True, nogil=True, **INSIDE)
def span(region: Region, i: int, relaxed: bool) -> tuple[int, int]:
    """Times of a link's rates: where relaxed also those that act only on other links' equations."""
    if relaxed:
        return region.low[i], region.high[i]
    return max(region.first[i], region.start[i]), region.end[i]


@njit(cache=True, nogil=True, **INSIDE)
def rates_of(region: Region, net: Tables, i: int, low: int, high: int, y: np.ndarray, s: np.ndarray) -> None:
    """E'y at the rates of link i, at times `low` to `high`."""
    for q in range(high - low + 1):
        s[q] = 0.0
    a, z = max(low, region.start[i]), min(high, region.end[i])
    shift = region.offset[i] - region.start[i]
    for t in range(a, z + 1):
        s[t - low] = y[shift + t]
    lag = 1 + net.delay[region.links[i]]
    for p in range(region.edge[i], region.edge[i + 1]):
        j, c = region.to[p], region.share[p]
        a, z = max(low, region.start[j] - lag), min(high, region.end[j] - lag)
        shift = region.offset[j] - region.start[j] + lag
        for t in range(a, z + 1):
            s[t - low] -= c * y[shift + t]


@njit(cache=True, nogil=True, **INSIDE)
def _product(region, net, weight, tail, relaxed, y, s, out):
    """out = E D⁻¹E'y."""
    for i in range(region.inside):
        inverse = 1.0 / net.weight[region.links[i]]
        begin, stop = region.offset[i], region.offset[i + 1]
        for row in range(begin, stop):
            out[row] = 0.0
        if relaxed and region.free[i]:
            out[begin] += inverse * y[begin]
        for row in range(begin, stop - 1):
            d = inverse * (y[row] - y[row + 1])
            out[row] += d
            out[row + 1] -= d
        out[stop - 1] += y[stop - 1] / tail[i]
    for i in range(len(region.links)):
        low, high = span(region, i, relaxed)
        if high < low:
            continue
        rates_of(region, net, i, low, high, y, s)
        scale = 1.0 / weight[i]
        for q in range(high - low + 1):
            s[q] *= scale
        a, z = max(low, region.start[i]), min(high, region.end[i])
        shift = region.offset[i] - region.start[i]
        for t in range(a, z + 1):
            out[shift + t] += s[t - low]
        lag = 1 + net.delay[region.links[i]]
        for p in range(region.edge[i], region.edge[i + 1]):
            j, c = region.to[p], region.share[p]
            a, z = max(low, region.start[j] - lag), min(high, region.end[j] - lag)
            shift = region.offset[j] - region.start[j] + lag
            for t in range(a, z + 1):
                out[shift + t] -= c * s[t - low]


@njit(cache=True, nogil=True)
def _blocks(region, net, weight, tail, relaxed):
    """Cholesky factors of each link's own tridiagonal block: inverse pivots and multipliers."""
    pivot, ratio = np.zeros(region.offset[-1]), np.zeros(region.offset[-1])
    for i in range(len(region.links)):
        low, high = span(region, i, relaxed)
        shift = region.offset[i] - region.start[i]
        for t in range(max(low, region.start[i]), min(high, region.end[i]) + 1):
            pivot[shift + t] += 1.0 / weight[i]
        lag = 1 + net.delay[region.links[i]]
        for p in range(region.edge[i], region.edge[i + 1]):
            j, c = region.to[p], region.share[p] ** 2 / weight[i]
            shift = region.offset[j] - region.start[j] + lag
            for t in range(max(low, region.start[j] - lag), min(high, region.end[j] - lag) + 1):
                pivot[shift + t] += c
    for i in range(region.inside):
        inverse = 1.0 / net.weight[region.links[i]]
        begin, stop = region.offset[i], region.offset[i + 1]
        if relaxed and region.free[i]:
            pivot[begin] += inverse
        for row in range(begin, stop):
            pivot[row] += (inverse if row > begin else 0.0) + (inverse if row < stop - 1 else 1.0 / tail[i])
            if row > begin:
                ratio[row] = inverse * pivot[row - 1]
                pivot[row] -= inverse * ratio[row]
            pivot[row] = 1.0 / pivot[row]
    return pivot, ratio


@njit(cache=True, nogil=True, **INSIDE)
def _precondition(region, pivot, ratio, r, z):
    for i in range(region.inside):
        begin, stop = region.offset[i], region.offset[i + 1]
        z[begin] = r[begin]
        for row in range(begin + 1, stop):
            z[row] = r[row] + ratio[row] * z[row - 1]
        z[stop - 1] *= pivot[stop - 1]
        for row in range(stop - 2, begin - 1, -1):
            z[row] = z[row] * pivot[row] + ratio[row + 1] * z[row + 1]


@njit(cache=True, nogil=True)
def solve_dual(
    region: Region,
    net: Tables,
    weight: np.ndarray,
    tail: np.ndarray,
    relaxed: bool,
    g: np.ndarray,
    y: np.ndarray,
    tolerance: float,
    most: int,
) -> float:
    """Conjugate gradients for E D⁻¹E'y = g from y, in place; 2 g'y − y'E D⁻¹E'y."""
    rows, longest = len(g), 0
    for i in range(len(region.links)):
        longest = max(longest, region.high[i] - region.low[i] + 1, region.end[i] - region.start[i] + 1)
    s, r, q = np.empty(longest), np.empty(rows), np.empty(rows)
    pivot, ratio = _blocks(region, net, weight, tail, relaxed)
    _product(region, net, weight, tail, relaxed, y, s, r)
    scale = 0.0
    for row in range(rows):
        r[row] = g[row] - r[row]
        scale += g[row] * g[row] * pivot[row]
    z = np.empty(rows)
    _precondition(region, pivot, ratio, r, z)
    p, rz = z.copy(), np.dot(r, z)
    for _ in range(most):
        if rz <= tolerance * tolerance * scale:
            break
        _product(region, net, weight, tail, relaxed, p, s, q)
        step = rz / np.dot(p, q)
        for row in range(rows):
            y[row] += step * p[row]
            r[row] -= step * q[row]
        _precondition(region, pivot, ratio, r, z)
        new = np.dot(r, z)
        turn, rz = new / rz, new
        for row in range(rows):
            p[row] = z[row] + turn * p[row]
    _product(region, net, weight, tail, relaxed, y, s, q)
    return 2.0 * np.dot(g, y) - np.dot(y, q)
