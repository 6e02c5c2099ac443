"""Kernels of the localized synthesis: a column's least-squares problem, solved by its dual in banded form.

A column is the response to a unit at one link's buffer, or in its line, at t = 1. With the rates eliminated it has the
unknowns u_l(t) and b_l(t + 1) and one equation for each link l and time t,

    b_l(t + 1) − b_l(t) + u_l(t) − Σ_k c_lk u_k(t − 1 − n_k) = g_l(t),        E z = g,

whose least cost z'D z is attained at z = D⁻¹E'y with (E D⁻¹E') y = g. Sorted by time, less what the fluid needs from
link to link, the dual's matrix is banded: along a tree whatever the delays are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.core.jit import njit
from netctrl.synthesis.localized.region_kernels import reached


class Equations(NamedTuple):
    """E z = g of one region over T samples: rates and then backlogs as unknowns, the matrix by columns."""

    place: np.ndarray
    """(m, T + 1) number of the equation of a link and a time, −1 for none."""
    offset: np.ndarray
    row: np.ndarray
    value: np.ndarray
    weight: np.ndarray
    """D's diagonal."""
    link: np.ndarray
    time: np.ndarray
    """Of each unknown."""
    rates: int
    """Number of unknowns that are rates."""


@njit(cache=True, nogil=True)
def equations(
    delay: np.ndarray,
    heard: np.ndarray,
    travel: np.ndarray,
    weight: np.ndarray,
    fed: tuple[np.ndarray, np.ndarray, np.ndarray],
    horizon: int,
    free: bool,
) -> tuple[int, Equations, np.ndarray]:
    """Equations of a region, and the lower half of E D⁻¹E': band[j, i] is the entry (j + i, j).

    Parameters
    ----------
    delay, heard, travel : ndarray, shape (m,)
        n_l; samples after which a link learns of the first one; the traffic's time from it.
    weight : ndarray, shape (m,)
        mu_l of b_l².
    fed : triple of ndarray
        Offsets and indices of the links that each feeds, and c_lk.
    horizon : int
        T: at T + 1 all links are at rest again.
    free : bool
        Whether the state after T is free: the least cost is then a lower bound.

    Returns
    -------
    where : int
        A link that can't act in time, or −1.
    equations : Equations
    band : ndarray, shape (rows, width)
    """
    m, T = len(delay), horizon
    final = T - 1 if free else T  # time of the last equation
    first, last, end = np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m, np.int64)
    for i in range(m):
        first[i], last[i], end[i] = heard[i] + 1, (T - 1 if free else T - 1 - delay[i]), final
    start, where, route = _start(first, last, delay, fed, final), -1, reached(fed)
    for i in range(m):
        if free or where >= 0 or start[i] > final or first[i] <= last[i]:
            continue
        if route[i]:
            where = i
            start[:] = final + 1
        else:
            end[i] -= (
                1  # it can't act but receives what was withheld from it: its last equation follows from the others
            )
    place, rows = _places(start, end, _moments(delay, fed, travel), final)
    offset, row, value, link, time, rates = _unknowns(delay, fed, first, last, start, end, place, T)
    cost_of = np.empty(len(link))
    for j in range(len(link)):
        cost_of[j] = 1.0 if j < rates else weight[link[j]]
    band = _gram(offset, row, value, cost_of, rows)
    return where, Equations(place, offset, row, value, cost_of, link, time, rates), band


@njit(cache=True, nogil=True)
def respond(
    delay: np.ndarray,
    fed: tuple[np.ndarray, np.ndarray, np.ndarray],
    weight: np.ndarray,
    horizon: int,
    backlog: np.ndarray,
    ready: Equations,
    band: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Responses at a region's first link, from the factor in `band`.

    Parameters
    ----------
    delay, fed, weight, horizon
        As of `equations`.
    backlog : ndarray, shape (q, m)
        A column each: what is in the buffers at t = 1. Where q is 0, n_0 + 2 columns: a unit in the first link's
        buffer, and one in each place of its line, newest first.
    ready : Equations
    band : ndarray, shape (rows, width)
        Cholesky's factor.

    Returns
    -------
    u, b : ndarray, shape (q, m, T)
        Rates and backlogs at t = 1, ..., T.
    cost : ndarray, shape (q, 2)
        Σ u² and Σ mu b².
    """
    m, lines = len(delay), len(backlog) == 0
    q = delay[0] + 2 if lines else len(backlog)
    u, b, cost = np.zeros((q, m, horizon)), np.zeros((q, m, horizon)), np.zeros((q, 2))
    y = np.empty((len(band), 4))  # four columns at a time, whose arithmetic the processor does at once
    for start in range(0, q, 4):
        y[:] = 0.0
        for lane in range(min(4, q - start)):
            column = start + lane
            if not lines:
                for i in range(m):
                    b[column, i, 0] = backlog[column, i]
            elif column == 0:
                b[0, 0, 0] = 1.0
            else:
                t = 2 + delay[0] - column  # when what is at age column − 1 comes to the line's end
                for p in range(fed[0][0], fed[0][1]):
                    y[ready.place[fed[1][p], t], lane] = fed[2][p]
            for i in range(m):
                if b[column, i, 0] != 0.0:
                    y[ready.place[i, 1], lane] += b[column, i, 0]
                    cost[column, 1] += weight[i] * b[column, i, 0] ** 2
        _substitute(band, y)
        for j in range(len(ready.link)):
            z0 = z1 = z2 = z3 = 0.0
            for p in range(ready.offset[j], ready.offset[j + 1]):
                value, row = ready.value[p], ready.row[p]
                z0 += value * y[row, 0]
                z1 += value * y[row, 1]
                z2 += value * y[row, 2]
                z3 += value * y[row, 3]
            z = (z0, z1, z2, z3)
            kind = 0 if j < ready.rates else 1
            into = u if kind == 0 else b
            for lane in range(min(4, q - start)):
                x = z[lane] / ready.weight[j]
                cost[start + lane, kind] += ready.weight[j] * x * x
                into[start + lane, ready.link[j], ready.time[j] - 1] = x
    return u, b, cost


@njit(cache=True, nogil=True)
def _start(first, last, delay, fed, final):
    """First time at which each link may leave its rest."""
    m = len(delay)
    start = np.empty(m, np.int64)
    for i in range(m):
        start[i] = first[i] if first[i] <= min(last[i], final) else final + 1
    start[0] = 1
    for k in range(m):
        for p in range(fed[0][k], fed[0][k + 1]):
            if k == 0:  # the traffic in its line may arrive at once
                start[fed[1][p]] = 1
            elif first[k] <= last[k]:
                start[fed[1][p]] = min(start[fed[1][p]], first[k] + delay[k] + 1)
    return start


@njit(cache=True, nogil=True)
def _moments(delay, fed, travel):
    """Times p of the links that minimise the largest |p_l − p_k − (n_k + 1)| over links k that feed l.

    The minimum is 0 for a tree, and at best the mean of n_k + 1 around a cycle. By bisection with Bellman and Ford's
    algorithm.
    """
    m = len(delay)
    best, high = travel, 0
    for k in range(m):
        for p in range(fed[0][k], fed[0][k + 1]):
            high = max(high, abs(travel[fed[1][p]] - travel[k] - delay[k] - 1))
    low = 0
    while low < high:
        slack = (low + high) // 2
        moment = np.zeros(m, np.int64)
        for _ in range(m + 1):
            changed = False
            for k in range(m):
                for p in range(fed[0][k], fed[0][k + 1]):
                    i, lag = fed[1][p], delay[k] + 1
                    if moment[i] > moment[k] + lag + slack:
                        moment[i] = moment[k] + lag + slack
                        changed = True
                    if moment[k] > moment[i] - lag + slack:
                        moment[k] = moment[i] - lag + slack
                        changed = True
            if not changed:
                break
        if changed:
            low = slack + 1
        else:
            best, high = moment, slack
    return best


@njit(cache=True, nogil=True)
def _places(start, end, moment, final):
    """Position of the equation of each link and time: sorted by time minus the link's moment, then by link."""
    place = np.empty((len(start), final + 1), np.int64)
    place[:] = -1
    rows, soonest, latest = 0, final, 0
    for i in range(len(start)):
        soonest, latest = min(soonest, start[i] - moment[i]), max(latest, final - moment[i])
    for slot in range(soonest, latest + 1):
        for i in range(len(start)):
            t = slot + moment[i]
            if start[i] <= t <= end[i]:
                place[i, t] = rows
                rows += 1
    return place, rows


@njit(cache=True, nogil=True)
def _unknowns(delay, fed, first, last, start, end, place, T):
    """Columns of E as offsets, rows and values; link and time of each; number of rates, which come first."""
    m = len(delay)
    times = 0
    for i in range(m):
        times += (3 + fed[0][i + 1] - fed[0][i]) * (T - start[i] + 1)
    most = 2 * place.size
    offset, link, time = np.zeros(most + 1, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    row, value = np.empty(times, np.int64), np.empty(times)
    j = n = 0
    for i in range(m):
        for t in range(max(first[i], start[i]), min(last[i], end[i]) + 1):
            row[n], value[n] = place[i, t], 1.0
            n += 1
            for p in range(fed[0][i], fed[0][i + 1]):
                if t + 1 + delay[i] <= end[fed[1][p]]:
                    row[n], value[n] = place[fed[1][p], t + 1 + delay[i]], -fed[2][p]
                    n += 1
            link[j], time[j] = i, t
            j += 1
            offset[j] = n
    rates = j
    for i in range(m):
        for t in range(start[i], min(end[i], T - 1) + 1):
            row[n], value[n] = place[i, t], 1.0
            n += 1
            if t < end[i]:
                row[n], value[n] = place[i, t + 1], -1.0
                n += 1
            link[j], time[j] = i, t + 1
            j += 1
            offset[j] = n
    return offset[: j + 1], row[:n], value[:n], link[:j], time[:j], rates


@njit(cache=True, nogil=True)
def _gram(offset, row, value, cost_of, rows):
    """E D⁻¹ E', lower half: band[j, i] is the entry (j + i, j)."""
    width = 0
    for j in range(len(cost_of)):
        for p in range(offset[j], offset[j + 1]):
            for o in range(offset[j], p):
                width = max(width, abs(row[p] - row[o]))
    band = np.zeros((rows, width + 1))
    for j in range(len(cost_of)):
        for p in range(offset[j], offset[j + 1]):
            for o in range(offset[j], p + 1):
                low = min(row[p], row[o])
                band[low, abs(row[p] - row[o])] += value[p] * value[o] / cost_of[j]
    return band


@njit(cache=True, nogil=True)
def factorise(band: np.ndarray) -> bool:
    """Cholesky factor of a narrow band, in place; False where the matrix isn't positive definite."""
    rows, width = band.shape
    for j in range(rows):
        if not band[j, 0] > 0.0:
            return False
        band[j, 0] = np.sqrt(band[j, 0])
        most = min(width, rows - j)
        for i in range(1, most):
            band[j, i] /= band[j, 0]
        for k in range(1, most):
            factor = band[j, k]
            if factor != 0.0:
                for i in range(most - k):
                    band[j + k, i] -= factor * band[j, k + i]
    return True


@njit(cache=True, nogil=True)
def _substitute(band, y):
    """Solve L L' y = y in place, for four columns y."""
    rows, width = band.shape
    for j in range(rows):
        scale = 1.0 / band[j, 0]
        y0, y1, y2, y3 = y[j, 0] * scale, y[j, 1] * scale, y[j, 2] * scale, y[j, 3] * scale
        y[j, 0], y[j, 1], y[j, 2], y[j, 3] = y0, y1, y2, y3
        for i in range(1, min(width, rows - j)):
            factor = band[j, i]
            y[j + i, 0] -= factor * y0
            y[j + i, 1] -= factor * y1
            y[j + i, 2] -= factor * y2
            y[j + i, 3] -= factor * y3
    for j in range(rows - 1, -1, -1):
        y0, y1, y2, y3 = y[j, 0], y[j, 1], y[j, 2], y[j, 3]
        for i in range(1, min(width, rows - j)):
            factor = band[j, i]
            y0 -= factor * y[j + i, 0]
            y1 -= factor * y[j + i, 1]
            y2 -= factor * y[j + i, 2]
            y3 -= factor * y[j + i, 3]
        scale = 1.0 / band[j, 0]
        y[j, 0], y[j, 1], y[j, 2], y[j, 3] = y0 * scale, y1 * scale, y2 * scale, y3 * scale
