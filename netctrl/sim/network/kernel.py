"""The kernel of a network whose links' rates are set at each sample: many runs side by side, step by step.

All rates in bit/s, and so are backlogs: b over the interval. Arrays end with the runs, so that the inner loops are
vectorised over them; each run's arithmetic is the same in whatever company it is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.core.jit import INLINED, njit
from netctrl.laws.link import backlog_step
from netctrl.laws.link_rate.fir import ARRIVAL_INNOVATION, BACKPRESSURE, SATURATION_ERROR, WORK_CONSERVING, FirLaw
from netctrl.sim.network.blocked_fir import BlockedFir
from netctrl.sim.network.demand_kernel import DemandFluid, receive, share_out

LANES = 128
"""Largest number of parallel runs: enough to fill vector instructions, and few enough that a small network's history
stays in the cache."""

ARRIVED, DEPARTED, LOST, WAITING, RATE_SQUARE, WAITING_SQUARE = range(6)
"""Rows of `sums`: rates that arrived, were sent and lost, b, (f − f*)² and (b − b*)², over the steps that count."""


class LinkPlant(NamedTuple):
    """Constants. N links, I demands; sparse matrices as rows of (column, value)."""

    capacity: np.ndarray
    """(N,)"""
    buffer: np.ndarray
    """(N,) over the interval; inf is no bound."""
    nominal: np.ndarray
    """(N,) f*."""
    backlog_setpoint: float
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
    """Variables of R runs."""

    history: np.ndarray
    """(4 N, slots, R) the series of `netctrl.laws.link_rate.fir`; (2 N, slots, R) where no tap takes the others. Slots
    are a power of 2 above all lags and delays."""
    present: np.ndarray
    """(4 N, slots), or (2 N, ...), whether a series has anything but 0 in a slot."""
    sums: np.ndarray
    """(N, 6, LANES) of which R are of use."""
    command: np.ndarray
    """(N + WIDE - 1, LANES) u_l(n); rows beyond the N links are padding."""
    scratch: np.ndarray
    """(3 LANES,)"""
    offered: np.ndarray
    """(R,) what entered the network, rates over the steps that count."""


@njit(inline="always")
def _slot(step: int, mask: np.uint64) -> np.uint64:
    return np.uint64(step) & mask


# Callees of a step are inlined: passing so many arrays costs a small network half of a step with few runs.


@njit(**INLINED)
def command_links(taps: FirLaw, wide: BlockedFir, narrow: BlockedFir, state: LinkState, step: int) -> None:
    """u_l(n) of all links and runs, into `state.command`."""
    command = state.command
    for link in range(len(taps.offset)):
        for r in range(state.history.shape[2]):
            command[link, r] = taps.offset[link]
    _add_wide(wide, state, step)
    _add_narrow(narrow, state, step)


@njit(inline="always")
def _sample(tiles: BlockedFir, tile: int, k: int, step: int, mask: np.uint64) -> tuple[np.uint64, np.uint64]:
    return np.uint64(tiles.series[tile, k]), _slot(step - tiles.lag[tile, k], mask)


@njit(**INLINED)
def _add_wide(tiles: BlockedFir, state: LinkState, step: int) -> None:
    """Add tiles of WIDE links. Rates lie LANES apart, as LLVM is told: it then knows that their sums are."""
    h, present, c, u = state.history, state.present, tiles.coefficient, state.command.reshape(state.command.size)
    mask, R = np.uint64(h.shape[1] - 1), h.shape[2]
    for tile in range(np.uint64(len(tiles.link))):
        s0, n0 = _sample(tiles, tile, 0, step, mask)
        s1, n1 = _sample(tiles, tile, 1, step, mask)
        s2, n2 = _sample(tiles, tile, 2, step, mask)
        s3, n3 = _sample(tiles, tile, 3, step, mask)
        if not (present[s0, n0] or present[s1, n1] or present[s2, n2] or present[s3, n3]):
            continue
        a0, a1, a2, a3 = c[tile, 0, 0], c[tile, 0, 1], c[tile, 0, 2], c[tile, 0, 3]
        b0, b1, b2, b3 = c[tile, 1, 0], c[tile, 1, 1], c[tile, 1, 2], c[tile, 1, 3]
        c0, c1, c2, c3 = c[tile, 2, 0], c[tile, 2, 1], c[tile, 2, 2], c[tile, 2, 3]
        d0, d1, d2, d3 = c[tile, 3, 0], c[tile, 3, 1], c[tile, 3, 2], c[tile, 3, 3]
        e0, e1, e2, e3 = c[tile, 4, 0], c[tile, 4, 1], c[tile, 4, 2], c[tile, 4, 3]
        first = np.uint64(tiles.link[tile] * LANES)
        for r in range(R):
            x0, x1, x2, x3 = h[s0, n0, r], h[s1, n1, r], h[s2, n2, r], h[s3, n3, r]
            at = first + np.uint64(r)
            u[at] += (a0 * x0 + a1 * x1) + (a2 * x2 + a3 * x3)
            u[at + np.uint64(LANES)] += (b0 * x0 + b1 * x1) + (b2 * x2 + b3 * x3)
            u[at + np.uint64(2 * LANES)] += (c0 * x0 + c1 * x1) + (c2 * x2 + c3 * x3)
            u[at + np.uint64(3 * LANES)] += (d0 * x0 + d1 * x1) + (d2 * x2 + d3 * x3)
            u[at + np.uint64(4 * LANES)] += (e0 * x0 + e1 * x1) + (e2 * x2 + e3 * x3)


@njit(**INLINED)
def _add_narrow(tiles: BlockedFir, state: LinkState, step: int) -> None:
    """Add tiles of one link."""
    h, present, c, command = state.history, state.present, tiles.coefficient, state.command
    mask, R = np.uint64(h.shape[1] - 1), h.shape[2]
    for tile in range(np.uint64(len(tiles.link))):
        link = np.uint64(tiles.link[tile])
        s0, n0 = _sample(tiles, tile, 0, step, mask)
        s1, n1 = _sample(tiles, tile, 1, step, mask)
        s2, n2 = _sample(tiles, tile, 2, step, mask)
        s3, n3 = _sample(tiles, tile, 3, step, mask)
        if not (present[s0, n0] or present[s1, n1] or present[s2, n2] or present[s3, n3]):
            continue
        c0, c1, c2, c3 = c[tile, 0, 0], c[tile, 0, 1], c[tile, 0, 2], c[tile, 0, 3]
        for r in range(R):
            command[link, r] += (c0 * h[s0, n0, r] + c1 * h[s1, n1, r]) + (c2 * h[s2, n2, r] + c3 * h[s3, n3, r])


# Loops over runs touch few places each: of many, LLVM doesn't check that they are apart, and then it doesn't use vector
# instructions. Places that lie LANES apart are one. And they index whole arrays: slices cost more.


@njit(**INLINED)
def _move(
    plant: LinkPlant,
    taps: FirLaw,
    state: LinkState,
    demand: np.ndarray,
    step: int,
    counts: bool,
    innovations: bool,
    watched: np.ndarray,
    fluid: DemandFluid | None,
) -> None:
    """One step of all links and runs: demand is (I, R)."""
    history, present, offered, command, x = state.history, state.present, state.offered, state.command, state.scratch
    sums = state.sums.reshape(state.sums.size)
    N, R = np.uint64(len(plant.capacity)), demand.shape[1]
    mask = np.uint64(history.shape[1] - 1)
    now, after = _slot(step, mask), _slot(step + 1, mask)
    to_send, lost = np.uint64(LANES), np.uint64(2 * LANES)  # in x, where what arrives is the first
    for link in range(N):
        capacity, mode = plant.capacity[link], taps.mode[link]
        for r in range(R):
            x[r] = 0.0
        for j in range(plant.coupled_start[link], plant.coupled_start[link + 1]):
            share, k, slot = (
                plant.coupled_share[j],
                np.uint64(plant.coupled_link[j]),
                _slot(step - plant.coupled_delay[j], mask),
            )
            for r in range(R):
                x[r] += share * history[k, slot, r]
        p, s = np.uint64(ARRIVAL_INNOVATION) * N + link, np.uint64(SATURATION_ERROR) * N + link
        if innovations:
            expected = taps.expected[link]
            for r in range(R):
                history[p, after, r] = expected + (0.0 if taps.alone else x[r])
        if fluid is not None:  # a law foresees nominal shares; other ones come
            for r in range(R):
                x[r] = receive(fluid, r, link, step)
        for j in range(plant.injected_start[link], plant.injected_start[link + 1]):
            share, k = plant.injected_share[j], np.uint64(plant.injected_demand[j])
            for r in range(R):
                x[r] += share * demand[k, r]
            if counts:
                for r in range(R):
                    offered[r] += share * demand[k, r]
        if mode == WORK_CONSERVING:
            for r in range(R):
                x[to_send + np.uint64(r)] = capacity
        elif mode == BACKPRESSURE:
            for r in range(R):
                x[to_send + np.uint64(r)] = min(max(history[N + link, now, r] + x[r] - command[link, r], 0.0), capacity)
        else:
            for r in range(R):
                x[to_send + np.uint64(r)] = min(max(command[link, r], 0.0), capacity)
        buffer = plant.buffer[link]
        for r in range(R):
            history[N + link, after, r], history[link, after, r], x[lost + np.uint64(r)] = backlog_step(
                history[N + link, now, r], x[r], x[to_send + np.uint64(r)], buffer
            )
        if fluid is not None:
            for r in range(R):
                f, b = history[link, after, r], history[N + link, after, r]
                share_out(fluid, r, link, step, demand, f, x[lost + np.uint64(r)], b, counts)
        if innovations:
            came, stayed = 0, 0
            for r in range(R):
                history[p, after, r] = x[r] - history[p, after, r] - x[lost + np.uint64(r)]
                came |= history[p, after, r] != 0.0
            for r in range(R):
                history[s, after, r] = command[link, r] - history[link, after, r]
                stayed |= history[s, after, r] != 0.0
            present[p, after], present[s, after] = came, stayed
        if counts:
            nominal, backlog_setpoint = plant.nominal[link], plant.backlog_setpoint
            first = link * np.uint64(6 * LANES)
            for r in range(R):
                at = first + np.uint64(r)
                f, b = history[link, after, r], history[N + link, after, r]
                sums[at + np.uint64(ARRIVED * LANES)] += x[r]
                sums[at + np.uint64(DEPARTED * LANES)] += f
                sums[at + np.uint64(LOST * LANES)] += x[lost + np.uint64(r)]
                sums[at + np.uint64(WAITING * LANES)] += b
                sums[at + np.uint64(RATE_SQUARE * LANES)] += (f - nominal) * (f - nominal)
                sums[at + np.uint64(WAITING_SQUARE * LANES)] += (b - backlog_setpoint) * (b - backlog_setpoint)
        if step < watched.shape[2]:
            watched[0, link, step], watched[1, link, step] = history[N + link, after, 0], history[link, after, 0]
            watched[2, link, step] = x[lost]


@njit(cache=True, error_model="numpy", nogil=True)
def advance_links(
    plant: LinkPlant,
    taps: FirLaw,
    wide: BlockedFir,
    narrow: BlockedFir,
    state: LinkState,
    demand: np.ndarray,
    first: int,
    counted_from: int,
    watched: np.ndarray,
    fluid: DemandFluid | None = None,
) -> None:
    """Advance by the steps of `demand`, (steps, I, R), the first of which is number `first`.

    Steps from number `counted_from` on are added to the sums. `watched`, (3, N, T), takes backlog, rate and loss of the
    first run at each step's end while T lasts. `fluid` keeps the demands apart; without it what a link sends goes on in
    nominal shares.
    """
    N = len(plant.capacity)
    innovations = state.history.shape[0] > 2 * N
    for k in range(demand.shape[0]):
        step = first + k
        command_links(taps, wide, narrow, state, step)
        _move(plant, taps, state, demand[k], step, step >= counted_from, innovations, watched, fluid)
