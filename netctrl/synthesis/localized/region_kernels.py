"""Kernels that find the links affected by a disturbance: informed links, downstream links, and links that feed them."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from netctrl.core.jit import njit

SOLVED, DEAF, SLOW, LATE, SINGULAR = range(5)
"""Results: solved, or a link on the route never learns of the disturbance, learns of it later than its
traffic arrives, or can't act before the horizon's end; or the equations are singular."""


@njit(cache=True, nogil=True)
def hear(
    link: int,
    node: np.ndarray,
    roads: tuple[np.ndarray, np.ndarray, np.ndarray],
    at_node: tuple[np.ndarray, np.ndarray],
    most: int,
    heard: np.ndarray,
) -> np.ndarray:
    """Samples after which each link's controller learns of `link`, where at most `most`; −1: never.

    Returns the links that do, so that the next search has not to clear all.

    Parameters
    ----------
    link : int
    node : ndarray, shape (N,)
        Node of each link's controller.
    roads : triple of ndarray
        Offsets, ends and samples of the lines for messages from each node.
    at_node : pair of ndarray
        Offsets and indices of the links whose controller is at each node.
    most : int
    heard : ndarray, shape (N,)
        Filled with −1 before, with the result after.
    """
    links, count = np.empty(64, np.int64), 0
    known = np.zeros(len(roads[0]) - 1, np.bool_)
    heap = [(0, node[link])]
    while heap:
        now, here = heappop(heap)
        if known[here]:
            continue
        known[here] = True
        for p in range(at_node[0][here], at_node[0][here + 1]):
            if count == len(links):
                links = twice(links)
            heard[at_node[1][p]], links[count] = now, at_node[1][p]
            count += 1
        for p in range(roads[0][here], roads[0][here + 1]):
            if not known[roads[1][p]] and now + roads[2][p] <= most:
                heappush(heap, (now + roads[2][p], roads[1][p]))
    return links[:count]


@njit(cache=True, nogil=True)
def travel_time(
    link: int, delay: np.ndarray, down: tuple[np.ndarray, np.ndarray, np.ndarray], place: np.ndarray
) -> int:
    """Samples within which information about `link` must reach all links that its traffic reaches.

    They are the propagation and two samples per hop. `place` is as in `find_region`.
    """
    links, travel = np.empty(16, np.int64), np.empty(16, np.int64)
    links[0], travel[0] = link, 0
    place[link] = 0
    count, at, longest = 1, 0, 0
    while at < count:
        for p in range(down[0][links[at]], down[0][links[at] + 1]):
            other = down[1][p]
            if place[other] < 0:
                if count == len(links):
                    links, travel = twice(links), twice(travel)
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
    place: np.ndarray,
) -> tuple[int, int, np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Region of a disturbance at `link`.

    It has all links that the traffic reaches, and the links that feed one of these, learn of it within `reach`, and
    feed no link that is uninformed.

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
        Samples after which each link learns of `link`, −1: never.
    reach : int
        Greatest information delay of a link that only feeds.
    place : ndarray, shape (N,)
        Filled with −1, before and after.

    Returns
    -------
    status, where : int
        SOLVED, or the reason of the failure and its link.
    links, travel : ndarray, shape (m,)
        `link` first; travel is the traffic's time from `link`, negative for links that feed.
    fed : triple of ndarray
        As `down`, within the region.
    """
    links, travel = np.empty(16, np.int64), np.empty(16, np.int64)
    links[0], travel[0] = link, 0
    place[link] = 0
    count, at = 1, 0
    while at < count:
        i = links[at]
        for side in range(2):
            pointers, indices = (down[0], down[1]) if side == 0 else up
            for p in range(pointers[i], pointers[i + 1]):
                other = indices[p]
                if place[other] >= 0 or heard[other] < 0 or (side == 1 and heard[other] > reach):
                    continue
                if count == len(links):
                    links, travel = twice(links), twice(travel)
                links[count] = other
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
    """Set the traffic's time on its route from the first link; whether all links that it reaches are in the region."""
    route, seen = np.empty(count, np.int64), np.zeros(count, np.bool_)
    route[0], seen[0] = 0, True
    known, next_ = 1, 0
    while next_ < known:
        at = route[next_]
        for p in range(down[0][links[at]], down[0][links[at] + 1]):
            other = down[1][p]
            to = place[other]
            if to < 0:
                return DEAF, other
            if not seen[to]:
                travel[to] = travel[at] + delay[links[at]] + 1
                route[known], seen[to] = to, True
                known += 1
        next_ += 1
    return SOLVED, links[0]


@njit(cache=True, nogil=True)
def _leave_out(links, travel, count, down, place):
    """Remove successively links that feed one outside the region; number of remaining links, and what they feed.

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
    """Whether the traffic of a region's first link reaches each link, (m,)."""
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
def twice(array: np.ndarray) -> np.ndarray:
    """The array with room for twice as many entries."""
    longer = np.empty(2 * len(array), array.dtype)
    for i in range(len(array)):
        longer[i] = array[i]
    return longer
