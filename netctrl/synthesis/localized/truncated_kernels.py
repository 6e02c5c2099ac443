"""Kernels of truncated columns: growth of the region, solution, what is left over, and the bound of the cost."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.core.jit import INSIDE, njit
from netctrl.laws.link_rate.cascade import Table, cascade
from netctrl.synthesis.localized.dual import Tables, rates_of, solve_dual, span
from netctrl.synthesis.localized.growth import carried, first_region, forget, grown, windows
from netctrl.synthesis.localized.region_kernels import SOLVED, hear, twice

_FAR = 1 << 40
_GROWTHS = 14
_ITERATIONS = 400
_ANSWERED = 256  # links whose leaks are answered in full in a round
_SERIES = 60
_ROUGH = 0.03  # relative residual of the dual while the region grows


class Hearing(NamedTuple):
    """Information pattern, as lines or as a matrix (`netctrl.model.network_model.InformationPattern`)."""

    node: np.ndarray
    roads: tuple[np.ndarray, np.ndarray, np.ndarray]
    at_node: tuple[np.ndarray, np.ndarray]
    matrix: np.ndarray
    reach: int
    """Largest delay of a link that the disturbed traffic doesn't reach; −1: any."""


class Wanted(NamedTuple):
    """Accuracy of columns."""

    settle: np.ndarray
    """(N,) length of the windows of a disturbance at each link [samples]."""
    out: float
    """Cost that may be left out of the region, relative to the column's."""
    residual: float
    """Relative residual of the dual."""
    lower: bool
    """Whether the lower bound is computed."""
    most: int
    """Largest number of equations of a column."""
    links: int
    """Number of links in its first region at most."""


class Columns(NamedTuple):
    """Columns in one piece: of each its links, and u and b as tables of links by samples."""

    offset: np.ndarray
    """(n + 1,) start of each column's links."""
    links: np.ndarray
    horizon: np.ndarray
    """(n,) samples of each."""
    start: np.ndarray
    """(n + 1,) start of each column's numbers in u and b."""
    u: np.ndarray
    b: np.ndarray
    norm: np.ndarray
    """‖(u, √mu b)‖ of each column at each of its links."""
    leak_offset: np.ndarray
    """(n + 1,) start of each column's leaks."""
    leak_links: np.ndarray
    leak: np.ndarray
    """ℓ1 norms of what a column leaves over, which is a fresh disturbance where it is."""
    bound: np.ndarray
    """(n,) lower bound of the cost of this disturbance."""
    status: np.ndarray
    """(n, 2) SOLVED, or the reason of the failure and its link."""


@njit(cache=True, nogil=True)
def solve_columns(
    seed_offset: np.ndarray, seeds: np.ndarray, shares: np.ndarray, net: Tables, hearing: Hearing, wanted: Wanted
) -> Columns:
    """Columns of disturbances that each enter at some links, with their shares."""
    n, N = len(seed_offset) - 1, len(net.delay)
    offset, start, leak_offset = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    horizon, bound = np.zeros(n, np.int64), np.zeros(n)
    status = np.zeros((n, 2), np.int64)
    links, norm = np.empty(64, np.int64), np.empty(64)
    u, b = np.empty(1024), np.empty(1024)
    leak_links, leak = np.empty(64, np.int64), np.empty(64)
    heard, place, scratch = np.full(N, -1, np.int64), np.full(N, -1, np.int64), np.zeros(N)
    came = np.empty(0, np.int64)
    last, far = -1, np.int64(4 * wanted.settle.min() + 8)
    for j in range(n):
        own, share = seeds[seed_offset[j] : seed_offset[j + 1]], shares[seed_offset[j] : seed_offset[j + 1]]
        here = own[0] if len(hearing.matrix) else hearing.node[own[0]]
        while True:
            if here != last or hearing.reach >= 0:
                last = here
                if len(hearing.matrix):
                    heard[:] = hearing.matrix[:, here]
                else:
                    heard[came] = -1
                    came = hear(own[0], hearing.node, hearing.roads, hearing.at_node, far, heard)
                if hearing.reach >= 0:
                    _leave_unheard(own, net.down, hearing.reach, heard)
            known = np.int64(_FAR) if len(hearing.matrix) else far
            needs, why, where, found = _column(own, share, net, heard, known, wanted, place, scratch)
            if needs <= known:
                break
            far, last = 2 * needs, -1
        status[j, 0], status[j, 1] = why, where
        region, T, uj, bj, norms, leaking, leaks, bound[j] = found
        horizon[j] = T
        offset[j + 1] = offset[j] + len(region)
        start[j + 1] = start[j] + len(uj)
        leak_offset[j + 1] = leak_offset[j] + len(leaking)
        while len(links) < offset[j + 1]:
            links, norm = twice(links), twice(norm)
        while len(u) < start[j + 1]:
            u, b = twice(u), twice(b)
        while len(leak) < leak_offset[j + 1]:
            leak_links, leak = twice(leak_links), twice(leak)
        links[offset[j] : offset[j + 1]], norm[offset[j] : offset[j + 1]] = region, norms
        u[start[j] : start[j + 1]], b[start[j] : start[j + 1]] = uj, bj
        leak_links[leak_offset[j] : leak_offset[j + 1]], leak[leak_offset[j] : leak_offset[j + 1]] = leaking, leaks
    m, size, leaks_ = offset[n], start[n], leak_offset[n]
    return Columns(
        offset,
        links[:m].copy(),
        horizon,
        start,
        u[:size].copy(),
        b[:size].copy(),
        norm[:m].copy(),
        leak_offset,
        leak_links[:leaks_].copy(),
        leak[:leaks_].copy(),
        bound,
        status,
    )


@njit(cache=True, nogil=True)
def _leave_unheard(seeds, down, reach, heard):
    """Mark as uninformed the links beyond `reach` that the traffic of `seeds` doesn't get to."""
    reached, stack = np.zeros(len(heard), np.bool_), [np.int64(seed) for seed in seeds]
    for seed in seeds:
        reached[seed] = True
    while stack:
        k = stack.pop()
        for p in range(down[0][k], down[0][k + 1]):
            if not reached[down[1][p]]:
                reached[down[1][p]] = True
                stack.append(down[1][p])
    for link in range(len(heard)):
        if not reached[link] and heard[link] > reach:
            heard[link] = -1


@njit(cache=True, nogil=True)
def _column(seeds, shares, net, heard, far, wanted, place, scratch):
    """Grow the region until little is left out, then bound and solve; `needs` more than `far` asks for more hearing."""
    links, when = first_region(seeds, shares, net, heard, np.sqrt(wanted.out), wanted.links, place)
    early, extra = np.zeros(len(links), np.int64), np.zeros(len(links), np.int64)
    y, old = np.zeros(0), (np.zeros(1, np.int64), np.zeros(0, np.int64))
    nothing, none = np.zeros(0, np.int64), np.zeros(0)
    failed = (nothing, 1, none, none, none, nothing, none, 0.0)
    initial, settle = 0.0, np.int64(0)
    for i in range(len(seeds)):
        settle = max(settle, wanted.settle[seeds[i]])
        initial += net.weight[seeds[i]] * shares[i] ** 2
    growth, rough = 0, max(_ROUGH, wanted.residual)
    while True:
        why, where, needs, region = windows(
            links, len(seeds), net, heard, far, settle, early, extra, when, old, place, scratch
        )
        if why != SOLVED or needs > far:
            forget(links, place)
            return needs, why, where, failed
        last = growth == _GROWTHS or region.offset[-1] > wanted.most
        rows = region.offset[-1]
        g = np.zeros(rows)
        for i in range(len(seeds)):
            g[region.offset[i]] = shares[i]
        y = carried(y, old, region)
        weight, tail = np.ones(len(region.links)), net.weight[region.links[: region.inside]]
        old = (region.offset, region.start[: region.inside])
        value = solve_dual(region, net, weight, tail, True, g, y, rough, _ITERATIONS)
        links, early, extra, more = grown(region, net, y, wanted.out * value, place, scratch)
        if last or not more:
            if last or rough == wanted.residual:
                break
            rough = wanted.residual  # what is far has been reached by the dual only now
        growth += 1
    forget(links[region.inside :], place)
    bound, links = 0.0, region.links[: region.inside]
    if wanted.lower:
        bound = initial + value
    weight, tail = _priced(region, net, place)
    solve_dual(region, net, weight, tail, False, g, y, wanted.residual, _ITERATIONS)
    found = _respond(region, net, weight, y, seeds, shares, place, bound)
    forget(links, place)
    return needs, np.int64(SOLVED), links[0], found


@njit(cache=True, nogil=True)
def _priced(region, net, place):
    """Weights of the controller: what leaves the region or its windows has a price."""
    weight, tail = np.ones(len(region.links)), np.empty(region.inside)
    for i in range(region.inside):
        k = region.links[i]
        for p in range(net.down[0][k], net.down[0][k + 1]):
            if place[net.down[1][p]] < 0:
                weight[i] += net.down[2][p] ** 2 * net.price[net.down[1][p]]
        tail[i] = net.weight[k] + net.price[k]
    return weight, tail


@njit(cache=True, nogil=True)
def _respond(region, net, weight, y, seeds, shares, place, bound):
    """The response: rates by the dual, backlogs by the plant's own equation, and what is left over where."""
    m, T, most, closed = region.inside, np.int64(1), np.int64(0), True
    for i in range(m):
        k = region.links[i]
        T, most = max(T, region.end[i]), max(most, net.delay[k])
        closed = closed and region.edge[i + 1] - region.edge[i] == net.down[0][k + 1] - net.down[0][k]
    if closed:  # then all is sent on until it has left
        gone = region.end[:m] + 1
        for i in np.argsort(region.start[:m]):
            for p in range(region.edge[i], region.edge[i + 1]):
                later = gone[i] + net.delay[region.links[i]] + 2
                gone[region.to[p]] = max(gone[region.to[p]], later)
        T = max(T, gone.max())
    u, b, arrive = np.zeros((m, T)), np.zeros((m, T)), np.zeros((m, T + most + 2))
    s = np.empty(T + 1)
    outside, n = np.empty(64, np.int64), 0
    for i in range(m):
        low, high = span(region, i, False)
        if high >= low:
            rates_of(region, net, i, low, high, y, s)
            for t in range(low, high + 1):
                u[i, t - 1] = s[t - low] / weight[i]
        lag = 1 + net.delay[region.links[i]]
        for p in range(region.edge[i], region.edge[i + 1]):
            for t in range(low, high + 1):
                arrive[region.to[p], t + lag - 1] += region.share[p] * u[i, t - 1]
    now, over, size = np.zeros(m), np.zeros(m), np.zeros(m)
    now[: len(seeds)] = shares
    energy = net.weight[region.links[:m]] * now**2
    for t in range(1, T + most + 3):
        for i in range(m):
            came, sent, kept = arrive[i, t - 1], 0.0, region.start[i] <= t < region.end[i]
            if t <= T:
                if closed and t > region.end[i]:
                    sent = u[i, t - 1] = now[i]
                    for p in range(region.edge[i], region.edge[i + 1]):
                        arrive[region.to[p], t + net.delay[region.links[i]]] += region.share[p] * sent
                b[i, t - 1], sent = now[i], u[i, t - 1]
                kept = kept or (closed and t < T)
            energy[i] += sent * sent
            size[i] += abs(now[i]) + abs(came) + abs(sent)
            now[i] += came - sent
            if not kept:  # the last equation's backlog, and whatever comes before and after, is a fresh disturbance
                over[i] += abs(now[i])
                now[i] = 0.0
            energy[i] += net.weight[region.links[i]] * now[i] ** 2
    norm, leaks, leaking = np.sqrt(energy), over + 1e-15 * size, region.links[:m]  # rounding leaks too
    # What arrives at links outside, with its sign.
    for i in range(m):
        k = region.links[i]
        for p in range(net.down[0][k], net.down[0][k + 1]):
            other = net.down[1][p]
            if place[other] == -1:
                if n == len(outside):
                    outside = twice(outside)
                place[other] = -2 - n
                outside[n] = other
                n += 1
    comes = np.zeros((n, T + most + 2))
    for i in range(m):
        k = region.links[i]
        lag = 1 + net.delay[k]
        for p in range(net.down[0][k], net.down[0][k + 1]):
            at = -2 - place[net.down[1][p]]
            if at >= 0:
                for t in range(T):
                    comes[at, t + lag] += net.down[2][p] * u[i, t]
    forget(outside[:n], place)
    masses = np.abs(comes).sum(axis=1) * (1.0 + 1e-14)
    some = masses > 0.0
    leaking, leaks = np.append(leaking, outside[:n][some]), np.append(leaks, masses[some])
    return region.links[:m].copy(), T, u.ravel(), b.ravel(), norm, leaking, leaks, bound


@njit(cache=True, nogil=True)
def upper_costs(
    seed_offset: np.ndarray,
    seeds: np.ndarray,
    shares: np.ndarray,
    table: Table,
    columns: Columns,
    wide: np.ndarray,
    weight: np.ndarray,
    size: np.ndarray,
    scale: float,
    ratio: float,
    least: float,
    fine: float,
    rounds: int,
) -> np.ndarray:
    """Upper bounds of the costs of disturbances under a law of truncated columns, (n, 2): in all, and of the rates.

    What columns leave over is answered in full `rounds` times (`netctrl.laws.link_rate.cascade`). Of the answers to the
    rest those are added exactly that may raise the cost by more than `fine`, at links where the response is large: few
    of them, yet nearly all of what the bound would lose. Beyond, only the ℓ1 and ℓ2 norms are followed. The norm of a
    convolution is at most the ℓ1 norm of one factor times the ℓ2 norm of the other, either way (Young), so link m adds
    at most (G (ℓ + L ℓ + L² ℓ + ...))_m with L the ℓ1 norms of the leaks, and G and ℓ the columns' ℓ2 norms and what is
    left over in ℓ1, or the columns' ℓ1 norms `wide` and what is left over in ℓ2, which is far less where it arrives
    over many samples. `size` > 0 has size'L ≤ ratio size' with ratio < 1 and bounds the end of the series, as columns'
    norms are at most `scale` times it.
    """
    n, N = len(seed_offset) - 1, len(weight)
    place, norm = np.full(N, -1, np.int64), np.zeros(N)
    now, after, slow, then = np.zeros(N), np.zeros(N), np.zeros(N), np.zeros(N)
    found, longest = np.zeros((n, 2)), columns.horizon.max()
    for j in range(n):
        own = seeds[seed_offset[j] : seed_offset[j + 1]]
        share = shares[seed_offset[j] : seed_offset[j + 1]]
        links, u, b, missed = cascade(own, share, table, least, _ANSWERED, rounds, place)
        touched, waiting, rest = [np.int64(0)], [np.int64(0)], 0.0
        touched.pop()
        waiting.pop()
        m, T = u.shape
        whole = np.zeros((2, m, T + longest + 1))
        whole[0, :, :T], whole[1, :, :T] = u, b
        own_norm = np.empty(m)
        for i in range(m):
            place[links[i]] = i
            own_norm[i] = np.sqrt(np.sum(u[i] ** 2) + weight[links[i]] * np.sum(b[i] ** 2))
            rounding = 1e-15 * np.sum(np.abs(u[i]) + np.abs(b[i]))
            now[links[i]] = np.sum(np.abs(missed[i])) + rounding
            slow[links[i]] = np.sqrt(np.sum(missed[i] ** 2)) + rounding
            if now[links[i]] > 0.0:
                waiting.append(links[i])
        for turn in range(_SERIES):
            following = [np.int64(0)]
            following.pop()
            for k in waiting:
                mass, now[k] = now[k], 0.0
                power, slow[k] = slow[k], 0.0
                if mass < 1e-6 * least:
                    rest += mass * size[k]
                    continue
                begin = columns.start[k]
                for p in range(columns.offset[k], columns.offset[k + 1]):
                    link = columns.links[p]
                    more, i = min(mass * columns.norm[p], power * wide[p]), place[link]
                    if turn == 0 and i >= 0 and more * own_norm[i] > fine:
                        _add(whole[0, i], missed[place[k]], columns.u, begin, columns.horizon[k])
                        _add(whole[1, i], missed[place[k]], columns.b, begin, columns.horizon[k])
                    else:
                        if norm[link] == 0.0:
                            touched.append(link)
                        norm[link] += more
                    begin += columns.horizon[k]
                for p in range(columns.leak_offset[k], columns.leak_offset[k + 1]):
                    link = columns.leak_links[p]
                    if after[link] == 0.0:
                        following.append(link)
                    after[link] += mass * columns.leak[p]
                    then[link] += power * columns.leak[p]
            now, after, slow, then = after, now, then, slow
            waiting = following
        for k in waiting:
            rest += now[k] * size[k]
            now[k] = slow[k] = 0.0
        total = 0.0
        for i in range(m):
            rate, queue = np.sum(whole[0, i] ** 2), weight[links[i]] * np.sum(whole[1, i] ** 2)
            found[j, 1] += rate
            total += (np.sqrt(rate + queue) + norm[links[i]]) ** 2
            norm[links[i]], place[links[i]] = 0.0, -1
        for link in touched:
            total += norm[link] ** 2
            norm[link] = 0.0
        found[j, 0] = (np.sqrt(total) + scale * rest / (1.0 - ratio)) ** 2 * (1.0 + 1e-12)
    return found


@njit(cache=True, nogil=True, **INSIDE)
def _add(row, by, column, begin, T):
    """Add a column's answer to a leak, which is in the buffer a sample later."""
    for t in range(len(by)):
        size = by[t]
        if size != 0.0:
            for s in range(T):
                row[t + 1 + s] += size * column[begin + s]
