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

_WEAK = 0.1  # c² below which a coupling isn't worth its work
_KEPT = 0.9999  # share of the filled-in entries that the diagonal loses


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


@njit(cache=True, nogil=True, fastmath={"contract"}, **INSIDE)
def span(region: Region, i: int, relaxed: bool) -> tuple[int, int]:
    """Times of a link's rates: where relaxed also those that act only on other links' equations."""
    if relaxed:
        return region.low[i], region.high[i]
    return max(region.first[i], region.start[i]), region.end[i]


@njit(cache=True, nogil=True, fastmath={"contract"}, **INSIDE)
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


@njit(cache=True, nogil=True, fastmath={"contract"}, **INSIDE)
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


class _Factor(NamedTuple):
    """Incomplete factor of the dual along the flow, M = (D + L) D⁻¹ (D + L')."""

    order: np.ndarray
    """Links as the disturbance arrives."""
    pivot: np.ndarray
    ratio: np.ndarray
    """Inverse pivots and multipliers of each link's tridiagonal block of D."""
    first: np.ndarray
    """(m + 1,) start of each link's couplings to links later in the order."""
    later: np.ndarray
    begin: np.ndarray
    stop: np.ndarray
    """Rows of the link that are coupled, and ..."""
    shift: np.ndarray
    """... how much further the other link's rows are."""
    strength: np.ndarray


@njit(cache=True, nogil=True, fastmath={"contract"})
def _factor(region, net, weight, tail, relaxed):
    """Blocks of single links are tridiagonal; what their elimination fills in goes to the diagonal of later ones.

    On a route the dual is a Laplacian over links and samples, whose condition grows with the square of the length under
    a preconditioner of single links, and with the length itself under this one, which keeps sums of rows. Where traffic
    splits a coupling is c² instead of c, so that the blocks remain diagonally dominant.
    """
    m, edges = region.inside, region.edge[region.inside]
    order, rank = np.argsort(region.start[:m]), np.empty(m, np.int64)
    rank[order] = np.arange(m)
    pivot, ratio = np.zeros(region.offset[-1]), np.zeros(region.offset[-1])
    first = np.zeros(m + 1, np.int64)
    for i in range(m):
        for p in range(region.edge[i], region.edge[i + 1]):
            if region.share[p] ** 2 > _WEAK:
                first[order[min(rank[i], rank[region.to[p]])] + 1] += 1
    first = np.cumsum(first)
    used, later, strength = first.copy(), np.empty(edges, np.int64), np.empty(edges)
    begin, stop, shift = np.empty(edges, np.int64), np.empty(edges, np.int64), np.empty(edges, np.int64)
    for i in range(len(region.links)):
        low, high = span(region, i, relaxed)
        own = region.offset[i] - region.start[i]
        for t in range(max(low, region.start[i]), min(high, region.end[i]) + 1):
            pivot[own + t] += 1.0 / weight[i]
        lag = 1 + net.delay[region.links[i]]
        for p in range(region.edge[i], region.edge[i + 1]):
            j, c = region.to[p], region.share[p] ** 2 / weight[i]
            other = region.offset[j] - region.start[j] + lag
            a, z = max(low, region.start[j] - lag), min(high, region.end[j] - lag)
            for t in range(a, z + 1):
                pivot[other + t] += c
            if i < m and c * weight[i] > _WEAK:
                a, z = max(a, region.start[i]), max(a, min(z, region.end[i]) + 1)
                forth = rank[i] <= rank[j]
                k = i if forth else j
                q = used[k]
                used[k] += 1
                later[q], strength[q] = j if forth else i, c if i != j else 0.0
                begin[q], stop[q] = (own if forth else other) + a, (own if forth else other) + z
                shift[q] = other - own if forth else own - other
    fill, v = np.zeros(len(pivot)), np.zeros(len(pivot))
    for i in order:
        inverse = 1.0 / net.weight[region.links[i]]
        top, bottom = region.offset[i], region.offset[i + 1]
        if relaxed and region.free[i]:
            pivot[top] += inverse
        for row in range(top, bottom):
            least = 0.01 * pivot[row]
            pivot[row] = max(pivot[row] - _KEPT * fill[row], least)
            pivot[row] += (inverse if row > top else 0.0) + (inverse if row < bottom - 1 else 1.0 / tail[i])
            if row > top:
                ratio[row] = inverse * pivot[row - 1]
                pivot[row] -= inverse * ratio[row]
            pivot[row] = 1.0 / pivot[row]
        for q in range(first[i], first[i + 1]):
            for row in range(begin[q], stop[q]):
                v[row] += strength[q]
        _within(top, bottom, pivot, ratio, v)
        for q in range(first[i], first[i + 1]):
            for row in range(begin[q], stop[q]):
                fill[row + shift[q]] += strength[q] * v[row]
    return _Factor(order, pivot, ratio, first, later, begin, stop, shift, strength)


@njit(cache=True, nogil=True, fastmath={"contract"}, **INSIDE)
def _within(top, bottom, pivot, ratio, z):
    """z = D⁻¹z of one link."""
    for row in range(top + 1, bottom):
        z[row] += ratio[row] * z[row - 1]
    z[bottom - 1] *= pivot[bottom - 1]
    for row in range(bottom - 2, top - 1, -1):
        z[row] = z[row] * pivot[row] + ratio[row + 1] * z[row + 1]


@njit(cache=True, nogil=True, fastmath={"contract"}, **INSIDE)
def _precondition(region, factor, r, z, s):
    """z = M⁻¹r."""
    for row in range(len(r)):
        z[row] = r[row]
    for i in factor.order:
        _within(region.offset[i], region.offset[i + 1], factor.pivot, factor.ratio, z)
        for q in range(factor.first[i], factor.first[i + 1]):
            shift, c = factor.shift[q], factor.strength[q]
            for row in range(factor.begin[q], factor.stop[q]):
                z[row + shift] += c * z[row]
    for i in factor.order[::-1]:
        top, bottom = region.offset[i], region.offset[i + 1]
        if factor.first[i] == factor.first[i + 1]:
            continue
        for row in range(top, bottom):
            s[row - top] = 0.0
        for q in range(factor.first[i], factor.first[i + 1]):
            shift, c = factor.shift[q], factor.strength[q]
            for row in range(factor.begin[q], factor.stop[q]):
                s[row - top] += c * z[row + shift]
        _within(0, bottom - top, factor.pivot[top:bottom], factor.ratio[top:bottom], s)
        for row in range(top, bottom):
            z[row] += s[row - top]


@njit(cache=True, nogil=True, fastmath={"contract"})
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
    factor = _factor(region, net, weight, tail, relaxed)
    _product(region, net, weight, tail, relaxed, y, s, r)
    scale = 0.0
    for row in range(rows):
        r[row] = g[row] - r[row]
        scale += g[row] * g[row] * factor.pivot[row]
    z = np.empty(rows)
    _precondition(region, factor, r, z, s)
    p, rz = z.copy(), np.dot(r, z)
    for _ in range(most):
        if rz <= tolerance * tolerance * scale:
            break
        _product(region, net, weight, tail, relaxed, p, s, q)
        step = rz / np.dot(p, q)
        for row in range(rows):
            y[row] += step * p[row]
            r[row] -= step * q[row]
        _precondition(region, factor, r, z, s)
        new = np.dot(r, z)
        turn, rz = new / rz, new
        for row in range(rows):
            p[row] = z[row] + turn * p[row]
    _product(region, net, weight, tail, relaxed, y, s, q)
    return 2.0 * np.dot(g, y) - np.dot(y, q)
