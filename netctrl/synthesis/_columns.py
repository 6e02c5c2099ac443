"""Kernels of the localized synthesis: the links that a column concerns, and its least-squares problem, solved by its
dual in banded form.

A column is the response to a unit at one link's buffer, or in its line, at t = 1. With the rates eliminated it has the
unknowns u_l(t) and b_l(t + 1) and one equation for each link l and time t,

    b_l(t + 1) − b_l(t) + u_l(t) − Σ_k c_lk u_k(t − 1 − n_k) = g_l(t),        E z = g,

whose least cost z'D z is attained at z = D⁻¹E'y with (E D⁻¹E') y = g. Sorted by time, less what the fluid needs from
link to link, the dual's matrix is banded: along a tree whatever the delays are.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
from numba import njit

__all__ = [
    "CUT",
    "DEAF",
    "LATE",
    "SINGULAR",
    "SLOW",
    "SOLVED",
    "Equations",
    "equations",
    "factorise",
    "find_region",
    "hear",
    "respond",
    "travel_time",
]

SOLVED, DEAF, CUT, SLOW, LATE, SINGULAR = range(6)
"""How it went: a link on the route never hears, is out of reach, hears later than the fluid comes, or can't act before
the horizon's end; the equations have no single answer."""


@njit(cache=True, nogil=True)
def hear(
    link: int,
    node: np.ndarray,
    roads: tuple[np.ndarray, np.ndarray, np.ndarray],
    at_node: tuple[np.ndarray, np.ndarray],
    most: int,
    heard: np.ndarray,
) -> None:
    """After how many samples each link's controller hears of `link`, where that is at most `most`; −1: never.

    Parameters
    ----------
    link : int
    node : ndarray, shape (N,)
        Of each link's controller.
    roads : triple of ndarray
        Offsets, ends and samples of the lines that messages take from each node.
    at_node : pair of ndarray
        Offsets and indices of the links whose controller is at each node.
    most : int
    heard : ndarray, shape (N,)
        Is filled.
    """
    heard[:] = -1
    known = np.zeros(len(roads[0]) - 1, np.bool_)
    heap = [(0, node[link])]
    while heap:
        now, here = heappop(heap)
        if known[here]:
            continue
        known[here] = True
        for p in range(at_node[0][here], at_node[0][here + 1]):
            heard[at_node[1][p]] = now
        for p in range(roads[0][here], roads[0][here + 1]):
            if not known[roads[1][p]] and now + roads[2][p] <= most:
                heappush(heap, (now + roads[2][p], roads[1][p]))


@njit(cache=True, nogil=True)
def travel_time(
    link: int, delay: np.ndarray, down: tuple[np.ndarray, np.ndarray, np.ndarray], place: np.ndarray
) -> int:
    """Samples after which word of `link` has to be everywhere that its fluid can come to: the propagation, and two a
    hop. `place` as in `find_region`."""
    links, travel = np.empty(16, np.int64), np.empty(16, np.int64)
    links[0], travel[0] = link, 0
    place[link] = 0
    count, at, longest = 1, 0, 0
    while at < count:
        for p in range(down[0][links[at]], down[0][links[at] + 1]):
            other = down[1][p]
            if place[other] < 0:
                if count == len(links):
                    links, travel = _twice(links), _twice(travel)
                links[count], travel[count] = other, travel[at] + delay[links[at]] + 2
                longest = max(longest, travel[count])
                place[other] = count
                count += 1
        at += 1
    for at in range(count):
        place[links[at]] = -1
    return longest


@njit(cache=True, nogil=True)
def find_region(
    link: int,
    delay: np.ndarray,
    down: tuple[np.ndarray, np.ndarray, np.ndarray],
    up: tuple[np.ndarray, np.ndarray],
    heard: np.ndarray,
    reach: int,
    hops: int,
    place: np.ndarray,
) -> tuple[int, int, np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The links that a disturbance at `link` concerns: all that its fluid can come to, and those that feed one of them,
    hear of it within `reach`, and feed no link that is beyond `hops` or doesn't hear.

    Parameters
    ----------
    link : int
    delay : ndarray, shape (N,)
        n_l.
    down : triple of ndarray
        Offsets, indices and c_lk of the links that each link feeds.
    up : pair of ndarray
        Offsets and indices of the links that feed each.
    heard : ndarray, shape (N,)
        Samples after which each link hears of `link`, −1: never.
    reach, hops : int
        Greatest information delay of a link that only feeds; how many links away the region ends.
    place : ndarray, shape (N,)
        Filled with −1; is left so.

    Returns
    -------
    status, where : int
        SOLVED, or what is wrong and with which link.
    links, travel : ndarray, shape (m,)
        `link` first; travel is the fluid's time from `link`, negative for links that feed.
    fed : triple of ndarray
        As `down`, within the region.
    """
    links, travel, away = np.empty(16, np.int64), np.empty(16, np.int64), np.empty(16, np.int64)
    links[0], travel[0], away[0] = link, 0, 0
    place[link] = 0
    count, at = 1, 0
    while at < count:
        i = links[at]
        for side in range(2):
            pointers, indices = (down[0], down[1]) if side == 0 else up
            for p in range(pointers[i], pointers[i + 1]):
                other = indices[p]
                if place[other] >= 0 or heard[other] < 0 or away[at] >= hops or (side == 1 and heard[other] > reach):
                    continue
                if count == len(links):
                    links, travel, away = _twice(links), _twice(travel), _twice(away)
                links[count], away[count] = other, away[at] + 1
                travel[count] = travel[at] + delay[i] + 1 if side == 0 else travel[at] - delay[other] - 1
                place[other] = count
                count += 1
        at += 1
    status, where = _follow(links, travel, count, delay, down, heard, place)
    count, inner = _leave_out(links, travel, count, down, place)
    offset, index, share = np.zeros(count + 1, np.int64), np.empty(inner, np.int64), np.empty(inner)
    n = 0
    for at in range(count if status == SOLVED else 0):
        i = links[at]
        for p in range(down[0][i], down[0][i + 1]):
            other = down[1][p]
            if heard[other] > heard[i] + delay[i] + 2:
                status, where = SLOW, other
                break
            index[n], share[n] = place[other], down[2][p]
            n += 1
        offset[at + 1] = n
    for at in range(count):
        place[links[at]] = -1
    return status, where, links[:count].copy(), travel[:count].copy(), (offset, index[:n], share[:n])


@njit(cache=True, nogil=True)
def _follow(links, travel, count, delay, down, heard, place):
    """Set the fluid's time on its own way from the first link; and whether all that it comes to are in the region."""
    route, seen = np.empty(count, np.int64), np.zeros(count, np.bool_)
    route[0], seen[0] = 0, True
    known, next_ = 1, 0
    while next_ < known:
        at = route[next_]
        for p in range(down[0][links[at]], down[0][links[at] + 1]):
            other = down[1][p]
            to = place[other]
            if to < 0:
                return DEAF if heard[other] < 0 else CUT, other
            if not seen[to]:
                travel[to] = travel[at] + delay[links[at]] + 1
                route[known], seen[to] = to, True
                known += 1
        next_ += 1
    return SOLVED, links[0]


@njit(cache=True, nogil=True)
def _leave_out(links, travel, count, down, place):
    """Take out, one after the other, links that feed one that isn't in the region; how many remain, and what they feed.

    The first link stays.
    """
    changed = True
    while changed:
        changed = False
        for at in range(1, count):
            i = links[at]
            for p in range(down[0][i], down[0][i + 1]):
                if place[i] >= 0 and place[down[1][p]] < 0:
                    place[i], changed = -1, True
    kept = inner = 0
    for at in range(count):
        i = links[at]
        if place[i] >= 0:
            links[kept], travel[kept], place[i] = i, travel[at], kept
            kept += 1
            inner += down[0][i + 1] - down[0][i]
    return kept, inner


@njit(cache=True, nogil=True)
def reached(fed: tuple[np.ndarray, np.ndarray, np.ndarray]) -> np.ndarray:
    """(m,) whether the fluid of a region's first link comes to each."""
    m = len(fed[0]) - 1
    found, order = np.zeros(m, np.bool_), np.zeros(m, np.int64)
    found[0] = True
    count, at = 1, 0
    while at < count:
        for p in range(fed[0][order[at]], fed[0][order[at] + 1]):
            if not found[fed[1][p]]:
                found[fed[1][p]] = True
                order[count] = fed[1][p]
                count += 1
        at += 1
    return found


@njit(cache=True, nogil=True)
def _twice(array):
    longer = np.empty(2 * len(array), array.dtype)
    for i in range(len(array)):
        longer[i] = array[i]
    return longer


class Equations(NamedTuple):
    """E z = g of one region over T samples: rates and then backlogs as unknowns, the matrix by columns."""

    place: np.ndarray
    """(m, T + 1) which equation is that of a link and a time, −1 for none."""
    offset: np.ndarray
    row: np.ndarray
    value: np.ndarray
    weight: np.ndarray
    """D's diagonal."""
    link: np.ndarray
    time: np.ndarray
    """Of each unknown."""
    rates: int
    """How many unknowns are rates."""


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
    """The equations of a region, and the lower half of E D⁻¹E': band[j, i] is the entry (j + i, j).

    Parameters
    ----------
    delay, heard, travel : ndarray, shape (m,)
        n_l; samples after which a link hears of the first one; the fluid's time from it.
    weight : ndarray, shape (m,)
        mu_l of b_l².
    fed : triple of ndarray
        Offsets and indices of the links that each feeds, and c_lk.
    horizon : int
        T: at T + 1 all is at rest again.
    free : bool
        Whether what is left after T doesn't matter: the least cost is then a bound from below.

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
            end[i] -= 1  # it can't act, but gets back what was kept from it: its last equation follows from the others
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
    """The responses at a region's first link, from the factor in `band`.

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
    y = np.empty(len(band))
    for column in range(q):
        for j in range(len(y)):
            y[j] = 0.0
        if not lines:
            for i in range(m):
                b[column, i, 0] = backlog[column, i]
        elif column == 0:
            b[0, 0, 0] = 1.0
        else:
            t = 2 + delay[0] - column  # when what is at age column − 1 comes to the line's end
            for p in range(fed[0][0], fed[0][1]):
                y[ready.place[fed[1][p], t]] = fed[2][p]
        for i in range(m):
            if b[column, i, 0] != 0.0:
                y[ready.place[i, 1]] += b[column, i, 0]
                cost[column, 1] += weight[i] * b[column, i, 0] ** 2
        _substitute(band, y)
        for j in range(len(ready.link)):
            z = 0.0
            for p in range(ready.offset[j], ready.offset[j + 1]):
                z += ready.value[p] * y[ready.row[p]]
            z /= ready.weight[j]
            kind = 0 if j < ready.rates else 1
            cost[column, kind] += ready.weight[j] * z * z
            if kind == 0:
                u[column, ready.link[j], ready.time[j] - 1] = z
            else:
                b[column, ready.link[j], ready.time[j] - 1] = z
    return u, b, cost


@njit(cache=True, nogil=True)
def _start(first, last, delay, fed, final):
    """From when on each link may be off its rest."""
    m = len(delay)
    start = np.empty(m, np.int64)
    for i in range(m):
        start[i] = first[i] if first[i] <= min(last[i], final) else final + 1
    start[0] = 1
    for k in range(m):
        for p in range(fed[0][k], fed[0][k + 1]):
            if k == 0:  # what is in its line may come at once
                start[fed[1][p]] = 1
            elif first[k] <= last[k]:
                start[fed[1][p]] = min(start[fed[1][p]], first[k] + delay[k] + 1)
    return start


@njit(cache=True, nogil=True)
def _moments(delay, fed, travel):
    """Times p of the links that make the largest |p_l − p_k − (n_k + 1)|, k feeding l, least: 0 where the links are a
    tree, the mean of n_k + 1 around a circle at best. By bisection of Bellman-Ford's algorithm."""
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
    """Where the equation of each link and time stands: sorted by time minus the link's moment, then by link."""
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
    """The columns of E, as offsets, rows and values; link and time of each, and how many are rates: they come first."""
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
    """Cholesky's factor of a narrow band, in place; False where the matrix isn't positive definite."""
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
    """Solve L L' y = y in place."""
    rows, width = band.shape
    for j in range(rows):
        y[j] /= band[j, 0]
        for i in range(1, min(width, rows - j)):
            y[j + i] -= band[j, i] * y[j]
    for j in range(rows - 1, -1, -1):
        for i in range(1, min(width, rows - j)):
            y[j] -= band[j, i] * y[j + i]
        y[j] /= band[j, 0]
