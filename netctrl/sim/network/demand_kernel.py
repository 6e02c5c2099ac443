"""Fluid of each demand at a link: arrivals, backlog, departures and losses, first in, first out.

The link's own kernel computes the totals; this one divides them among the demands. Amounts are rates over the
interval [bit/s], as backlogs are there; ages and times are in steps of the kernel that calls.

What arrives in one step is a batch, well mixed, and so is what is lost of it. Batches leave in their order. An amount
carries its age along as amount · age, summed; that of a batch is kept as amount · (age − time of arrival), so that it
need not change while it waits and two batches can be added.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.core.jit import INLINED, njit

AMOUNT, AGE = range(2)
"""What is kept of the fluid of a pair: how much, and amount · age."""

ENTERED, DELIVERED, LOST_OF_DEMAND, DELIVERED_AGE = range(4)
"""Rows of `sums`: amounts that entered the network, left it and were lost, and amount · age of what left it."""

"""How these are compiled: into a kernel, without reference counts, which cost more than all else."""


class DemandRoutes(NamedTuple):
    """Constants. P pairs of a link and a demand on it, link by link; N links, I demands."""

    first: np.ndarray
    """(N + 1,) where each link's pairs begin."""
    demand: np.ndarray
    """(P,)"""
    fed_start: np.ndarray
    """(P + 1,) where the pairs that feed each pair begin."""
    fed_by: np.ndarray
    fed_share: np.ndarray
    """Of what the feeding pair sends."""
    fed_lag: np.ndarray
    """Steps after which what it sends arrives."""
    enters: np.ndarray
    """(P,) share of the demand that enters the network here."""
    ends: np.ndarray
    """(P,) share of what is sent here that is then at its target."""
    propagation: np.ndarray
    """(N,) [step]"""


class DemandState(NamedTuple):
    """Variables of R runs."""

    sent: np.ndarray
    """(R, slots, 2, P) what left in each step; slots are a power of 2 above all lags."""
    batch: np.ndarray
    """(R, K, 2, P) what waits, in a ring of K batches a link; K is a power of 2. No amount waits elsewhere."""
    head: np.ndarray
    """(R, N) oldest batch of each link."""
    count: np.ndarray
    """(R, N) batches that wait."""
    arriving: np.ndarray
    """(R, 2, P)"""
    sums: np.ndarray
    """(R, 4, I) over the steps that count."""


class DemandFluid(NamedTuple):
    """The fluid of demands in R runs."""

    routes: DemandRoutes
    state: DemandState


@njit(**INLINED)
def receive(fluid: DemandFluid, run: int, link: int, step: int) -> float:
    """Arrivals from other links at a link in a step, over all demands."""
    routes, sent, arriving = fluid.routes, fluid.state.sent, fluid.state.arriving
    mask, total = sent.shape[1] - 1, 0.0
    for pair in range(routes.first[link], routes.first[link + 1]):
        amount, age = 0.0, 0.0
        for j in range(routes.fed_start[pair], routes.fed_start[pair + 1]):
            feeding, share, at = routes.fed_by[j], routes.fed_share[j], (step - routes.fed_lag[j]) & mask
            amount += share * sent[run, at, AMOUNT, feeding]
            age += share * sent[run, at, AGE, feeding]
        arriving[run, AMOUNT, pair], arriving[run, AGE, pair] = amount, age
        total += amount
    return total


@njit(**INLINED)
def share_out(
    fluid: DemandFluid,
    run: int,
    link: int,
    step: int,
    entering: np.ndarray,
    departed: float,
    lost: float,
    waiting: float,
    counts: bool,
) -> None:
    """Divide a link's step among the demands, after `receive`.

    `entering`, (I, R), is what demands send in the step; `departed` and `lost` are the link's totals in it, and
    `waiting` that at its end.
    """
    routes, arriving, sums = fluid.routes, fluid.state.arriving, fluid.state.sums
    arrived = 0.0
    for pair in range(routes.first[link], routes.first[link + 1]):
        demand = routes.demand[pair]
        own = routes.enters[pair] * entering[demand, run]
        arriving[run, AMOUNT, pair] += own
        arrived += arriving[run, AMOUNT, pair]
        if counts:
            sums[run, ENTERED, demand] += own
    if arrived > 0.0:
        _append(fluid, run, link, step, 1.0 - lost / arrived, counts)
    _send(fluid, run, link, step, departed, waiting == 0.0, counts)


@njit(**INLINED)
def _append(fluid: DemandFluid, run: int, link: int, step: int, kept: float, counts: bool) -> None:
    """Append a batch of arrivals, of which a share is kept and the rest is lost."""
    routes, batch, arriving, sums = fluid.routes, fluid.state.batch, fluid.state.arriving, fluid.state.sums
    head, count = fluid.state.head, fluid.state.count
    if count[run, link] == batch.shape[1]:
        _join_neighbours(fluid, run, link)
    at = (head[run, link] + count[run, link]) & (batch.shape[1] - 1)
    count[run, link] += 1
    for pair in range(routes.first[link], routes.first[link + 1]):
        amount = arriving[run, AMOUNT, pair]
        batch[run, at, AMOUNT, pair] = kept * amount
        batch[run, at, AGE, pair] = kept * (arriving[run, AGE, pair] - amount * step)
        if counts:
            sums[run, LOST_OF_DEMAND, routes.demand[pair]] += amount - kept * amount


@njit(**INLINED)
def _join_neighbours(fluid: DemandFluid, run: int, link: int) -> None:
    """Halve the number of batches by joining pairs: order is kept between batches, not within one."""
    routes, batch, head = fluid.routes, fluid.state.batch, fluid.state.head[run, link]
    mask, half = batch.shape[1] - 1, batch.shape[1] // 2
    for pair in range(routes.first[link], routes.first[link + 1]):
        for kind in range(2):
            for k in range(half):
                older, newer = (
                    batch[run, (head + 2 * k) & mask, kind, pair],
                    batch[run, (head + 2 * k + 1) & mask, kind, pair],
                )
                batch[run, (head + k) & mask, kind, pair] = older + newer
            for k in range(half, 2 * half):
                batch[run, (head + k) & mask, kind, pair] = 0.0
    fluid.state.count[run, link] = half


@njit(**INLINED)
def _send(fluid: DemandFluid, run: int, link: int, step: int, departed: float, empties: bool, counts: bool) -> None:
    """Departures, from the oldest batch on; all of it where the link empties, whatever the rounding."""
    routes, state = fluid.routes, fluid.state
    sent, batch, head, count, sums = state.sent, state.batch, state.head, state.count, state.sums
    now, later = step & (sent.shape[1] - 1), step + routes.propagation[link]
    first, last = routes.first[link], routes.first[link + 1]
    for pair in range(first, last):
        sent[run, now, AMOUNT, pair] = sent[run, now, AGE, pair] = 0.0
    left = departed
    while count[run, link] > 0:
        at, total = head[run, link], 0.0
        for pair in range(first, last):
            total += batch[run, at, AMOUNT, pair]
        whole = empties or total <= left
        share = 1.0 if whole else max(left, 0.0) / total
        for pair in range(first, last):
            amount, age = share * batch[run, at, AMOUNT, pair], share * batch[run, at, AGE, pair]
            sent[run, now, AMOUNT, pair] += amount
            sent[run, now, AGE, pair] += age + amount * later
            batch[run, at, AMOUNT, pair] -= amount
            batch[run, at, AGE, pair] -= age
        if not whole:
            break
        left -= total
        count[run, link] -= 1
        head[run, link] = (at + 1) & (batch.shape[1] - 1) if count[run, link] > 0 else 0  # which is in the cache
    if counts:
        for pair in range(first, last):
            demand, share = routes.demand[pair], routes.ends[pair]
            sums[run, DELIVERED, demand] += share * sent[run, now, AMOUNT, pair]
            sums[run, DELIVERED_AGE, demand] += share * sent[run, now, AGE, pair]
