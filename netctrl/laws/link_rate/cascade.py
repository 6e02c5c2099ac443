"""Responses of truncated columns: what they leave over is a fresh disturbance where it is, and is answered there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.core.jit import njit


class Table(NamedTuple):
    """Columns of N links in one piece, and the plant."""

    offset: np.ndarray
    """(N + 1,) start of each column's links."""
    links: np.ndarray
    horizon: np.ndarray
    """(N,) samples of each column."""
    start: np.ndarray
    """(N + 1,) start of each column's numbers in u and b, tables of links by samples."""
    u: np.ndarray
    b: np.ndarray
    delay: np.ndarray
    """(N,) n_l."""
    down: tuple[np.ndarray, np.ndarray, np.ndarray]
    """Offsets, indices and c_lk of the links that each link feeds."""


@njit(cache=True, nogil=True)
def cascade(
    seeds: np.ndarray, shares: np.ndarray, table: Table, least: float, most: int, rounds: int, place: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Response to a disturbance at some links, with what columns leave over answered where it is.

    The columns (u, b) of a law with x̂(n + 1) = Σ R(t + 2) δ(n − t) miss the plant's equation by
    Δ_l(t) = b_l(t) + Σ_k c_lk u_k(t − 1 − n_k) − u_l(t) − b_l(t + 1), so that δ has Δ δ beside the disturbance: the
    responses are (R, M)(I − Δ)⁻¹. Each round answers all that is missed, where it sums to `least` or more.

    Parameters
    ----------
    seeds, shares : ndarray
        Links and sizes of the disturbance at t = 1.
    table : Table
    least : float
        ℓ1 norm of what is missed at a link from which on it is answered.
    most, rounds : int
        Number of links answered in a round, those that miss most first; number of rounds.
    place : ndarray, shape (N,)
        Filled with −1, before and after.

    Returns
    -------
    links : ndarray, shape (m,)
    u, b, missed : ndarray, shape (m, T)
        Rates, backlogs and what is missed, at t = 1, ..., T; in b at t = 1 what is in the buffers then.
    """
    slowest = 0
    for link in table.delay:
        slowest = max(slowest, link)
    links, count = np.empty(64, np.int64), 0
    T = 1
    for seed in seeds:
        T = max(T, table.horizon[seed] + slowest + 2)
    u, b, missed = np.zeros((64, T)), np.zeros((64, T)), np.zeros((64, T))
    for n in range(len(seeds)):
        links, u, b, missed, count = _answer(seeds[n], shares[n], 0, table, links, u, b, missed, count, place)
    for turn in range(rounds + 1):
        links, u, b, missed, count = _miss(table, links, u, b, missed, count, place)
        if turn == rounds:
            break
        sizes = np.empty(count)
        for i in range(count):
            sizes[i] = np.sum(np.abs(missed[i]))
        worth = least if count <= most else max(least, np.sort(sizes)[count - most])
        longest = -1
        for i in range(count):
            if sizes[i] >= worth:
                longest = max(longest, table.horizon[links[i]])
        if longest < 0:
            break
        more, tiny = longest + slowest + 2, 0.1 * least / u.shape[1]
        u, b, missed = _wider(u, more), _wider(b, more), _wider(missed, more)
        for i in range(len(sizes)):
            if sizes[i] >= worth:
                for t in range(u.shape[1] - more):
                    if abs(missed[i, t]) > tiny:
                        links, u, b, missed, count = _answer(
                            links[i], missed[i, t], t + 1, table, links, u, b, missed, count, place
                        )
    for i in range(count):
        place[links[i]] = -1
    return links[:count].copy(), u[:count].copy(), b[:count].copy(), missed[:count].copy()


@njit(cache=True, nogil=True)
def _wider(array, more):
    wider = np.zeros((array.shape[0], array.shape[1] + more))
    wider[:, : array.shape[1]] = array
    return wider


@njit(cache=True, nogil=True)
def _row(link, links, u, b, missed, count, place):
    """The same with a row for the link."""
    if place[link] < 0:
        if count == len(links):
            more = np.zeros(u.shape)
            links = np.append(links, np.zeros(len(links), np.int64))
            u, b, missed = np.concatenate((u, more)), np.concatenate((b, more)), np.concatenate((missed, more))
        links[count], place[link] = link, count
        count += 1
    return links, u, b, missed, count


@njit(cache=True, nogil=True)
def _answer(link, size, shift, table, links, u, b, missed, count, place):
    """Add a link's column, `shift` samples later."""
    T, begin = table.horizon[link], table.start[link]
    for p in range(table.offset[link], table.offset[link + 1]):
        links, u, b, missed, count = _row(table.links[p], links, u, b, missed, count, place)
        i = place[table.links[p]]
        for t in range(T):
            u[i, t + shift] += size * table.u[begin + t]
            b[i, t + shift] += size * table.b[begin + t]
        begin += T
    return links, u, b, missed, count


@njit(cache=True, nogil=True)
def _miss(table, links, u, b, missed, count, place):
    """What the plant's equation misses, at all links and times."""
    T = u.shape[1]
    for i in range(count):
        for t in range(T):
            missed[i, t] = b[i, t] - u[i, t] - (b[i, t + 1] if t + 1 < T else 0.0)
    for i in range(count):
        k = links[i]
        lag = 1 + table.delay[k]
        for p in range(table.down[0][k], table.down[0][k + 1]):
            links, u, b, missed, count = _row(table.down[1][p], links, u, b, missed, count, place)
            j = place[table.down[1][p]]
            for t in range(T - lag):
                missed[j, t + lag] += table.down[2][p] * u[i, t]
    return links, u, b, missed, count
