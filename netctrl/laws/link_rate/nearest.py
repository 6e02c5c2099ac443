"""Shortest paths from many sources to few targets each, in time that doesn't grow with the rest of the network."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from netctrl.core.jit import njit


@njit(cache=True, nogil=True)
def near_paths(
    offsets: np.ndarray,
    ends: np.ndarray,
    lengths: np.ndarray,
    sources: np.ndarray,
    first: np.ndarray,
    targets: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Shortest paths by Dijkstra's algorithm, which stops at the last target.

    Parameters
    ----------
    offsets, ends, lengths : ndarray
        Graph of V nodes as rows of a sparse matrix.
    sources : ndarray, shape (S,)
    first : ndarray, shape (S + 1,)
        Offsets of each source's targets.
    targets : ndarray, shape (T,)

    Returns
    -------
    start : ndarray, shape (T + 1,)
    path : ndarray
        path[start[i]:start[i + 1]] are the nodes before target i, last first, up to its source; empty without a path.
    """
    V = len(offsets) - 1
    away, before, wanted = np.full(V, np.inf), np.empty(V, np.int64), np.zeros(V, np.bool_)
    start, path, n = np.zeros(len(targets) + 1, np.int64), np.empty(1024, np.int64), 0
    for s in range(len(sources)):
        missing = 0
        for i in range(first[s], first[s + 1]):
            if not wanted[targets[i]]:
                wanted[targets[i]] = True
                missing += 1
        away[sources[s]] = 0.0
        seen, heap = [sources[s]], [(0.0, sources[s])]
        while heap and missing:
            length, here = heappop(heap)
            if length > away[here]:
                continue
            if wanted[here]:
                wanted[here] = False
                missing -= 1
            for p in range(offsets[here], offsets[here + 1]):
                other, there = ends[p], length + lengths[p]
                if there < away[other]:
                    if away[other] == np.inf:
                        seen.append(other)
                    away[other], before[other] = there, here
                    heappush(heap, (there, other))
        for i in range(first[s], first[s + 1]):
            node = targets[i]
            while node != sources[s] and away[node] < np.inf and not wanted[targets[i]]:
                node = before[node]
                if n == len(path):
                    path = np.append(path, np.empty(n, np.int64))
                path[n] = node
                n += 1
            start[i + 1] = n
        for i in range(first[s], first[s + 1]):
            wanted[targets[i]] = False
        for node in seen:
            away[node] = np.inf
    return start, path[:n].copy()
