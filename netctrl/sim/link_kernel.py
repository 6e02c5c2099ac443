"""The kernel of a network whose links' rates are set at each sample: many runs side by side, step by step.

All rates in bit/s, and so are backlogs: b over the interval. Arrays end with the runs, so that the inner loops are
vectorised over them; each run's arithmetic is the same in whatever company it is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from netctrl.fluid.link import backlog_step
from netctrl.runtime.taps import SHORTFALL, SURPLUS, UNPACED, YIELDING, Taps

__all__ = [
    "ARRIVED",
    "DEPARTED",
    "LOST",
    "RATE_SQUARE",
    "WAITING",
    "WAITING_SQUARE",
    "LinkPlant",
    "LinkState",
    "advance_links",
]

ARRIVED, DEPARTED, LOST, WAITING, RATE_SQUARE, WAITING_SQUARE = range(6)
"""Rows of `sums`: rates that arrived, were sent and lost, b, (f − f*)² and (b − b*)², over the steps that count."""


class LinkPlant(NamedTuple):
    """What does not change. N links, I demands; sparse matrices as rows of (column, value)."""

    capacity: np.ndarray
    """(N,)"""
    buffer: np.ndarray
    """(N,) over the interval; inf is no bound."""
    nominal: np.ndarray
    """(N,) f*."""
    standing: float
    """Backlog around which the squares are taken."""
    coupled_start: np.ndarray
    """(N + 1,)"""
    coupled_link: np.ndarray
    coupled_delay: np.ndarray
    """[sample] n_k of the link that feeds."""
    coupled_share: np.ndarray
    injected_start: np.ndarray
    """(N + 1,)"""
    injected_demand: np.ndarray
    injected_share: np.ndarray


class LinkState(NamedTuple):
    """What changes, for R runs."""

    history: np.ndarray
    """(4 N, slots, R) the series of `netctrl.runtime.taps`; (2 N, slots, R) where no tap takes the others. Slots
    are a power of 2 above all lags and delays."""
    present: np.ndarray
    """(4 N, slots), or (2 N, ...), whether a series has anything but 0 in a slot."""
    sums: np.ndarray
    """(6, N, R)"""
    offered: np.ndarray
    """(R,) what entered the network, rates over the steps that count."""


@njit(inline="always")
def _slot(step: int, mask: np.uint64) -> np.uint64:
    return np.uint64(step) & mask


@njit(cache=True, error_model="numpy")
def _command(taps: Taps, state: LinkState, step: int, command: np.ndarray) -> None:
    """u_l(n) of all links and runs. Four taps at a time, so that the sum is loaded and stored more seldom."""
    h, present = state.history, state.present
    mask, R = np.uint64(h.shape[1] - 1), command.shape[1]
    for link in range(np.uint64(len(taps.offset))):
        for r in range(R):
            command[link, r] = taps.offset[link]
        j, end = np.uint64(taps.start[link]), np.uint64(taps.start[link + 1])
        four, one = np.uint64(4), np.uint64(1)
        while j + four <= end:
            s0, n0 = np.uint64(taps.series[j]), _slot(step - taps.lag[j], mask)
            s1, n1 = np.uint64(taps.series[j + 1]), _slot(step - taps.lag[j + 1], mask)
            s2, n2 = np.uint64(taps.series[j + 2]), _slot(step - taps.lag[j + 2], mask)
            s3, n3 = np.uint64(taps.series[j + 3]), _slot(step - taps.lag[j + 3], mask)
            if present[s0, n0] or present[s1, n1] or present[s2, n2] or present[s3, n3]:
                c0, c1 = taps.coefficient[j], taps.coefficient[j + 1]
                c2, c3 = taps.coefficient[j + 2], taps.coefficient[j + 3]
                for r in range(R):
                    command[link, r] += (c0 * h[s0, n0, r] + c1 * h[s1, n1, r]) + (
                        c2 * h[s2, n2, r] + c3 * h[s3, n3, r]
                    )
            j += four
        while j < end:
            c0, s0, n0 = taps.coefficient[j], np.uint64(taps.series[j]), _slot(step - taps.lag[j], mask)
            for r in range(R):
                command[link, r] += c0 * h[s0, n0, r]
            j += one


# Loops over runs touch few arrays each: of many, LLVM doesn't check that they are apart, and then it doesn't use
# vector instructions. That is why `_saturate` asks `backlog_step` twice. And they index whole arrays: slices cost more.


@njit(inline="always")
def _saturate(
    history: np.ndarray, N: np.uint64, link: int, now: np.uint64, after: np.uint64, scratch: np.ndarray, buffer: float
) -> None:
    for r in range(scratch.shape[1]):
        history[N + link, after, r], history[link, after, r], _ = backlog_step(
            history[N + link, now, r], scratch[0, r], scratch[1, r], buffer
        )
    for r in range(scratch.shape[1]):
        scratch[2, r] = backlog_step(history[N + link, now, r], scratch[0, r], scratch[1, r], buffer)[2]


@njit(cache=True, error_model="numpy")
def _move(
    plant: LinkPlant,
    taps: Taps,
    state: LinkState,
    demand: np.ndarray,
    command: np.ndarray,
    step: int,
    counts: bool,
    innovations: bool,
    watched: np.ndarray,
) -> None:
    """One step of all links and runs: demand is (I, R), command (N, R)."""
    history, present, sums, offered = state.history, state.present, state.sums, state.offered
    N, R = np.uint64(len(plant.capacity)), command.shape[1]
    mask = np.uint64(history.shape[1] - 1)
    now, after = _slot(step, mask), _slot(step + 1, mask)
    x = np.empty((3, R))
    for link in range(N):
        capacity, mode = plant.capacity[link], taps.mode[link]
        for r in range(R):
            x[0, r] = 0.0
        for j in range(plant.coupled_start[link], plant.coupled_start[link + 1]):
            share, k, slot = (
                plant.coupled_share[j],
                np.uint64(plant.coupled_link[j]),
                _slot(step - plant.coupled_delay[j], mask),
            )
            for r in range(R):
                x[0, r] += share * history[k, slot, r]
        p, s = np.uint64(SURPLUS) * N + link, np.uint64(SHORTFALL) * N + link
        if innovations:
            expected = taps.expected[link]
            for r in range(R):
                history[p, after, r] = expected + (0.0 if taps.alone else x[0, r])
        for j in range(plant.injected_start[link], plant.injected_start[link + 1]):
            share, k = plant.injected_share[j], np.uint64(plant.injected_demand[j])
            for r in range(R):
                x[0, r] += share * demand[k, r]
            if counts:
                for r in range(R):
                    offered[r] += share * demand[k, r]
        if mode == UNPACED:
            for r in range(R):
                x[1, r] = capacity
        elif mode == YIELDING:
            for r in range(R):
                x[1, r] = min(max(history[N + link, now, r] + x[0, r] - command[link, r], 0.0), capacity)
        else:
            for r in range(R):
                x[1, r] = min(max(command[link, r], 0.0), capacity)
        _saturate(history, N, link, now, after, x, plant.buffer[link])
        if innovations:
            came, stayed = 0, 0
            for r in range(R):
                history[p, after, r] = x[0, r] - history[p, after, r] - x[2, r]
                came |= history[p, after, r] != 0.0
            for r in range(R):
                history[s, after, r] = command[link, r] - history[link, after, r]
                stayed |= history[s, after, r] != 0.0
            present[p, after], present[s, after] = came, stayed
        if counts:
            nominal, standing = plant.nominal[link], plant.standing
            for r in range(R):
                sums[ARRIVED, link, r] += x[0, r]
            for r in range(R):
                sums[LOST, link, r] += x[2, r]
            for r in range(R):
                sums[DEPARTED, link, r] += history[link, after, r]
            for r in range(R):
                sums[WAITING, link, r] += history[N + link, after, r]
            for r in range(R):
                away = history[link, after, r] - nominal
                sums[RATE_SQUARE, link, r] += away * away
            for r in range(R):
                away = history[N + link, after, r] - standing
                sums[WAITING_SQUARE, link, r] += away * away
        if step < watched.shape[2]:
            watched[0, link, step], watched[1, link, step] = history[N + link, after, 0], history[link, after, 0]
            watched[2, link, step] = x[2, 0]


@njit(cache=True, error_model="numpy", nogil=True)
def advance_links(
    plant: LinkPlant,
    taps: Taps,
    state: LinkState,
    demand: np.ndarray,
    first: int,
    counted_from: int,
    watched: np.ndarray,
) -> None:
    """Advance by the steps of `demand`, (steps, I, R), the first of which is number `first`.

    Steps from number `counted_from` on are added to the sums. `watched`, (3, N, T), takes backlog, rate and loss of the
    first run at each step's end while T lasts.
    """
    N, R = len(plant.capacity), state.history.shape[2]
    innovations = state.history.shape[0] > 2 * N
    command = np.empty((N, R))
    for k in range(demand.shape[0]):
        step = first + k
        _command(taps, state, step, command)
        _move(plant, taps, state, demand[k], command, step, step >= counted_from, innovations, watched)
