"""Region of one column: its links, found by the fluid and then by the dual's residual, and the samples of each."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from netctrl.core.jit import njit
from netctrl.synthesis.localized.dual import Region, Tables, rates_of
from netctrl.synthesis.localized.region_kernels import DEAF, SLOW, SOLVED, twice

_FAR = 1 << 40


@njit(cache=True, nogil=True)
def first_region(
    seeds: np.ndarray,
    shares: np.ndarray,
    net: Tables,
    heard: np.ndarray,
    threshold: float,
    limit: int,
    place: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Links that a share of the fluid above `threshold` passes (forward push), and links that feed it as much.

    Also the mean time at which it passes, 0 where none does.
    """
    links, passed, moment = np.empty(16, np.int64), np.zeros(16), np.zeros(16)
    waiting, soon = np.zeros(16), np.zeros(16)
    count = len(seeds)
    while len(links) < count:
        links, passed, moment, waiting, soon = twice(links), twice(passed), twice(moment), twice(waiting), twice(soon)
    heap = [(-1.0, np.int64(0))]
    heap.pop()
    for i in range(count):
        links[i], passed[i], moment[i], waiting[i], soon[i] = seeds[i], 0.0, 0.0, shares[i], shares[i]
        place[seeds[i]] = i
        heappush(heap, (-shares[i], np.int64(i)))
    most = 64 * len(net.delay)
    while heap and most > 0:
        x, i = heappop(heap)
        if -x != waiting[i] or waiting[i] < threshold:
            continue
        most -= 1
        mass, when = waiting[i], soon[i] / waiting[i] + 1 + net.delay[links[i]]
        passed[i], moment[i] = passed[i] + mass, moment[i] + soon[i]
        waiting[i] = soon[i] = 0.0
        for p in range(net.down[0][links[i]], net.down[0][links[i] + 1]):
            m, y = net.down[1][p], mass * net.down[2][p]
            if heard[m] < 0 or (place[m] < 0 and (y < 0.1 * threshold or count >= limit)):
                continue
            if place[m] < 0:
                if count == len(links):
                    links, passed, moment = twice(links), twice(passed), twice(moment)
                    waiting, soon = twice(waiting), twice(soon)
                links[count], passed[count], moment[count], waiting[count], soon[count] = m, 0.0, 0.0, 0.0, 0.0
                place[m] = count
                count += 1
            waiting[place[m]] += y
            soon[place[m]] += y * when
            if waiting[place[m]] >= threshold:
                heappush(heap, (-waiting[place[m]], place[m]))
    kept = 0
    for i in range(count):
        place[links[i]] = -1
        if i < len(seeds) or passed[i] > 0.0:
            links[kept], passed[kept], moment[kept], place[links[i]] = links[i], passed[i], moment[i], kept
            kept += 1
    count = kept
    for i in range(kept):
        m = links[i]
        for p in range(net.up[0][m], net.up[0][m + 1]):
            k = net.up[1][p]
            if count < limit and place[k] < 0 and heard[k] >= 0 and passed[i] * net.up[2][p] >= threshold:
                if count == len(links):
                    links, passed, moment = twice(links), twice(passed), twice(moment)
                links[count], passed[count], moment[count], place[k] = k, 0.0, 0.0, count
                count += 1
    return links[:count].copy(), (moment[:count] / np.maximum(passed[:count], 1e-300)).astype(np.int64)


@njit(cache=True, nogil=True)
def windows(
    links: np.ndarray,
    seeds: int,
    net: Tables,
    heard: np.ndarray,
    far: int,
    settle: int,
    sooner: np.ndarray,
    extra: np.ndarray,
    when: np.ndarray,
    before: tuple[np.ndarray, np.ndarray],
    place: np.ndarray,
    scratch: np.ndarray,
) -> tuple[np.int64, np.int64, np.int64, Region]:
    """Windows of a region's links: a few samples before the fluid can arrive until it has settled."""
    m = len(links)
    first, arrive, start, end = np.empty(m, np.int64), np.full(m, _FAR), np.empty(m, np.int64), np.empty(m, np.int64)
    why, where = np.int64(SOLVED), links[0]
    heap = [(np.int64(1), np.int64(0))]
    for i in range(m):
        first[i] = heard[links[i]] + 1
        if i < seeds:
            arrive[i] = 1
            if i > 0:
                heappush(heap, (np.int64(1), np.int64(i)))
    needs, order = np.int64(0), np.empty(m, np.int64)
    reached = 0
    edges = 0
    for i in range(m):
        edges += net.down[0][links[i] + 1] - net.down[0][links[i]]
    edge, to, share = np.zeros(m + 1, np.int64), np.empty(edges, np.int64), np.empty(edges)
    n = 0
    for i in range(m):
        for p in range(net.down[0][links[i]], net.down[0][links[i] + 1]):
            j = place[net.down[1][p]]
            if j >= 0:
                to[n], share[n] = j, net.down[2][p]
                n += 1
                if first[j] - 1 > heard[links[i]] + net.delay[links[i]] + 2:
                    why, where = np.int64(SLOW), links[j]
        edge[i + 1] = n
    done = np.zeros(m, np.bool_)
    while heap:
        x, i = heappop(heap)
        if done[i]:
            continue
        done[i] = True
        order[reached] = i
        reached += 1
        k = links[i]
        for p in range(net.down[0][k], net.down[0][k + 1]):
            other = net.down[1][p]
            if heard[other] < 0 or heard[other] > heard[k] + net.delay[k] + 2:
                if heard[other] < 0 and heard[k] + net.delay[k] + 2 > far:
                    needs = max(needs, heard[k] + net.delay[k] + 2)
                else:
                    why, where = np.int64(DEAF if heard[other] < 0 else SLOW), other
            j = place[other]
            if j >= 0 and not done[j]:
                t = max(x, first[i]) + 1 + net.delay[k]
                if t < arrive[j]:
                    arrive[j] = t
                    heappush(heap, (t, j))
    ahead = settle // 2 + 1
    soonest = np.empty(m, np.int64)  # when anything about the disturbance can be in the buffer's equation
    for i in range(m):
        soonest[i] = first[i]
        for p in range(net.up[0][links[i]], net.up[0][links[i] + 1]):
            k = net.up[1][p]
            if heard[k] >= 0:
                soonest[i] = min(soonest[i], heard[k] + 2 + net.delay[k])
        if i < seeds:
            soonest[i] = 1
        start[i], end[i] = max(soonest[i], arrive[i] - ahead), arrive[i] + settle
        if i < len(when):
            end[i] = max(end[i], when[i] + settle)
    # Links that feed: from the first time at which what they withhold is missed, until it has been sent.
    for i in range(m):
        if done[i]:
            for p in range(edge[i], edge[i + 1]):
                j, lag = to[p], 1 + net.delay[links[i]]
                if done[j] and arrive[j] < arrive[i]:
                    start[i] = min(start[i], max(first[i], arrive[j] - ahead - lag))
                    end[i] = max(end[i], arrive[j] + settle - lag)
    changed, rounds = True, 0
    while changed and rounds < m + 1:
        changed, rounds = False, rounds + 1
        for i in range(m):
            if done[i]:
                continue
            soon, later = np.int64(_FAR), np.int64(0)
            for p in range(edge[i], edge[i + 1]):
                if end[to[p]] < _FAR:
                    soon = min(soon, start[to[p]] - 1 - net.delay[links[i]])
                    later = max(later, end[to[p]] - 1 - net.delay[links[i]])
            if soon < _FAR:
                s = max(first[i], soon)
                e = max(later, s) + 2
                if end[i] >= _FAR or s < start[i]:
                    start[i], end[i], changed = s, e, True
    # Links outside that feed one inside have no equations: in the lower bound they withhold at the cost of their rate.
    outside, most = np.empty(16, np.int64), n
    total = m
    for i in range(m):
        for p in range(net.up[0][links[i]], net.up[0][links[i] + 1]):
            k = net.up[1][p]
            if place[k] < 0 and heard[k] >= 0:
                if scratch[k] == 0.0:
                    if total - m == len(outside):
                        outside = twice(outside)
                    outside[total - m] = k
                    total += 1
                scratch[k] = 1.0
                most += 1
    links = np.append(links, outside[: total - m])
    edge, to, share = np.append(edge, np.zeros(total - m, np.int64)), _longer(to, most), _longer(share, most)
    offset, free = np.zeros(total + 1, np.int64), np.zeros(total, np.bool_)
    first, start, end = _longer(first, total), _longer(start, total), _longer(end, total)
    for i in range(m, total):
        k = links[i]
        scratch[k] = 0.0
        first[i] = heard[k] + 1
        start[i], end[i] = first[i], first[i] - 1
        for p in range(net.down[0][k], net.down[0][k + 1]):
            if place[net.down[1][p]] >= 0:
                to[n], share[n] = place[net.down[1][p]], net.down[2][p]
                n += 1
        edge[i + 1] = n
    for i in range(m):
        if end[i] >= _FAR:  # it feeds nothing in the region any more
            start[i], end[i] = first[i], first[i] + 2
        if i < len(before[1]):  # windows only grow, so that the bound does
            start[i] = min(start[i], before[1][i] - sooner[i])
            end[i] = max(end[i], before[1][i] + before[0][i + 1] - before[0][i] - 1 + extra[i])
        free[i] = start[i] > soonest[i]
        needs = max(needs, end[i])
    low, high = start.copy(), end.copy()
    for i in range(total):
        offset[i + 1] = offset[i] + end[i] - start[i] + 1
        for p in range(edge[i], edge[i + 1]):
            lag = 1 + net.delay[links[i]]
            low[i] = min(low[i], start[to[p]] - lag)
            high[i] = max(high[i], end[to[p]] - lag)
        low[i] = max(low[i], first[i])
    region = Region(m, links, first, start, end, offset, free, low, high, edge, to, share)
    return why, where, needs, region


@njit(cache=True, nogil=True)
def _longer(array, size):
    longer = np.zeros(size, array.dtype)
    longer[: len(array)] = array[:size]
    return longer


@njit(cache=True, nogil=True)
def carried(y: np.ndarray, old: tuple[np.ndarray, np.ndarray], region: Region) -> np.ndarray:
    """The dual of a smaller region as the start in a larger one."""
    new = np.zeros(region.offset[-1])
    for i in range(len(old[1])):
        for row in range(old[0][i], old[0][i + 1]):
            t = row - old[0][i] + old[1][i]
            if region.start[i] <= t <= region.end[i]:
                new[region.offset[i] + t - region.start[i]] = y[row]
    return new


@njit(cache=True, nogil=True)
def grown(
    region: Region, net: Tables, y: np.ndarray, budget: float, place: np.ndarray, scratch: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
    """The region with the links and samples whose equations are hurt most, so that less than `budget` is left out.

    What an equation that is left out would add to the bound is about its residual squared over its diagonal: the fluid
    that arrives at a link outside or after a window, and what a feeder outside withholds without having to send it
    later. Sums over feeders are those of norms.
    """
    m, total = region.inside, len(region.links)
    longest = 1
    for i in range(total):
        longest = max(longest, region.high[i] - region.low[i] + 1)
    s = np.empty(longest)
    outside, seen = np.empty(64, np.int64), 0
    early, late = np.zeros(m), np.zeros(m)
    for i in range(m):
        k = region.links[i]
        low, high = region.low[i], region.high[i]
        energy, lag = 0.0, 1 + net.delay[k]
        if high >= low:
            rates_of(region, net, i, low, high, y, s)
            for t in range(low, high + 1):
                energy += s[t - low] ** 2
                if t < region.start[i]:
                    early[i] += s[t - low] ** 2
        norm = np.sqrt(energy)
        for p in range(net.down[0][k], net.down[0][k + 1]):
            other, c = net.down[1][p], net.down[2][p]
            j = place[other]
            if j < 0:
                if scratch[other] == 0.0:
                    if seen == len(outside):
                        outside = twice(outside)
                    outside[seen] = other
                    seen += 1
                scratch[other] += c * norm * np.sqrt(net.price[other]) + 1e-300
            else:
                for t in range(max(low, region.end[j] - lag + 1), high + 1):
                    late[j] += net.price[other] * (c * s[t - low]) ** 2
        # what remains in the buffer at the end
        rest = y[region.offset[i + 1] - 1] / net.weight[k]
        late[i] += net.price[k] * rest * rest
    for i in range(m, total):
        k = region.links[i]
        rates_of(region, net, i, region.low[i], region.high[i], y, s)
        norm = 0.0
        for t in range(region.low[i], region.high[i] + 1):
            norm += s[t - region.low[i]] ** 2
        if scratch[k] == 0.0:
            if seen == len(outside):
                outside = twice(outside)
            outside[seen] = k
            seen += 1
        scratch[k] += np.sqrt(norm * net.weight[k] / (1.0 + net.weight[k])) + 1e-300
    cost = np.empty(seen + 2 * m)
    for j in range(seen):
        cost[j] = scratch[outside[j]] ** 2
        scratch[outside[j]] = 0.0
    cost[seen : seen + m], cost[seen + m :] = early, late
    sooner, longer = np.zeros(m, np.int64), np.zeros(m, np.int64)
    if cost.sum() <= budget:
        return region.links[:m], sooner, longer, False
    order, total_out, kept = np.argsort(cost), 0.0, 0
    for j in order:  # the least ones stay out
        total_out += cost[j]
        if total_out > 0.5 * budget:
            break
        kept += 1
    most = max(8, m)
    added = np.empty(most, np.int64)
    n = 0
    for at in range(len(order) - 1, kept - 1, -1):
        j = order[at]
        i = (j - seen) % m
        size = max(4, (region.end[i] - region.start[i]) // 2)
        if j >= seen + m:
            longer[i] = size
        elif j >= seen:
            sooner[i] = min(size, region.start[i] - region.low[i])
        elif n < most:
            added[n] = outside[j]
            place[outside[j]] = m + n
            n += 1
    return np.append(region.links[:m], added[:n]), _longer(sooner, m + n), _longer(longer, m + n), True


@njit(cache=True, nogil=True)
def forget(links: np.ndarray, place: np.ndarray) -> None:
    """Set the links' places to −1."""
    for link in links:
        place[link] = -1
