"""One controller of link rates, by what it measures and hears: the sums of `netctrl.laws.link_rate.distributed`.

A controller measures some links, commands some, and hears of others when a message comes, or never. Its steps are pure:
they take a memory and return another. The sums are added in the order in which the simulator adds them
(`netctrl.sim.network.message_kernel`), so that both give the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from netctrl.laws.link_rate.distributed import BACKLOG_NEWS, RATE_NEWS, HeardLaw
from netctrl.laws.link_rate.fir import BACKLOG, RATE, Taps

__all__ = ["HeardController", "HeardMemory", "News", "command", "hear", "heard_controller", "measure", "start_hearing"]

_KINDS = 4

News = tuple[int, int, tuple[float, float, float, float]]
"""Link, sample, and of that sample: rate that was sent, backlog, and by how much both differ from what was foreseen."""


class _Sums(NamedTuple):
    """Taps of M links, one after the other, each link's offset before its own."""

    row: np.ndarray
    """(M + P,) which of the M sums."""
    coefficient: np.ndarray
    """(M + P,) offsets among them."""
    place: np.ndarray
    """(P,) where the taps are in `coefficient`."""
    series: np.ndarray
    """(P,)"""
    lag: np.ndarray
    """(P,)"""
    rows: int


class HeardController(NamedTuple):
    """What does not change. N links, of which M are measured here and K commanded."""

    nominal: np.ndarray
    """(N,) rates around which links are controlled [bit/s]."""
    standing: float
    """Backlog around which they are, over the interval [bit/s]."""
    least: int
    """Age from which on rates of links that aren't measured here may be known; younger ones are those that were
    commanded here (a central controller's information delay)."""
    measured: np.ndarray
    """(M,) numbers of links."""
    commanded: np.ndarray
    """(K,) numbers of links."""
    predicted: _Sums
    """Of the M."""
    control: _Sums
    """Of the K."""
    newsworthy: bool
    """Whether the law takes news."""
    slots: int
    """Samples that are remembered, a power of 2."""


class HeardMemory(NamedTuple):
    """What changes."""

    sample: int
    """The newest."""
    known: np.ndarray
    """(4 N, slots) series of `netctrl.laws.link_rate.distributed`, by sample."""
    heard: np.ndarray
    """(N, slots) whether those of a link are known."""
    assumed: np.ndarray
    """(N, slots) rates that are taken for those that aren't."""
    command: np.ndarray
    """(N,) of the newest sample, before limits; of links that aren't commanded here their nominal rates."""


def heard_controller(
    law: HeardLaw,
    nominal: np.ndarray,
    standing: float,
    *,
    measured: Sequence[int],
    commanded: Sequence[int],
    least: int = 0,
) -> HeardController:
    """A controller that measures and commands links of these numbers."""
    places, told = np.array(measured, dtype=np.int64), np.array(commanded, dtype=np.int64)
    memory = max(law.control.memory, law.predicted.memory) + 4
    return HeardController(
        nominal=np.array(nominal, dtype=float),
        standing=float(standing),
        least=least,
        measured=places,
        commanded=told,
        predicted=_sums(law.predicted, places),
        control=_sums(law.control, told),
        newsworthy=len(law.predicted.lag) > 0,
        slots=1 << (memory - 1).bit_length(),
    )


def start_hearing(controller: HeardController) -> HeardMemory:
    """Before sample 0: all was as it is wanted."""
    N, slots = len(controller.nominal), controller.slots
    known = np.zeros((_KINDS * N, slots))
    known[RATE * N : (RATE + 1) * N] = controller.nominal[:, None]
    known[BACKLOG * N : (BACKLOG + 1) * N] = controller.standing
    assumed = np.repeat(controller.nominal[:, None], slots, axis=1)
    return HeardMemory(-1, known, np.ones((N, slots), dtype=bool), assumed, controller.nominal.copy())


def measure(
    controller: HeardController,
    memory: HeardMemory,
    sample: int,
    rate: np.ndarray,
    backlog: np.ndarray,
    *,
    news: Sequence[News] = (),
    lost: Sequence[int] = (),
) -> tuple[HeardMemory, int]:
    """A new sample: what was sent since the last one, and what waits; and how much of the news was of no use.

    Parameters
    ----------
    controller : HeardController
    memory : HeardMemory
        After an earlier sample.
    sample : int
        Its number, above the last one's. Samples between them were missed: rates are taken for those of now then, and
        nothing was news.
    rate, backlog : ndarray, shape (M,)
        Of the links that are measured, over the interval [bit/s].
    news : sequence of News
        What came since the last sample (`hear`).
    lost : sequence of int
        Numbers of links that are measured no more: of them nothing is known from now on.
    """
    N, mask, own = len(controller.nominal), controller.slots - 1, controller.measured
    known, heard, assumed = memory.known.copy(), memory.heard.copy(), memory.assumed.copy()
    first = max(memory.sample + 1, sample - mask)
    between = memory.command if controller.least else controller.nominal
    for missed in range(first, sample + 1):
        slot = missed & mask
        heard[:, slot], known[:, slot], assumed[:, slot] = False, 0.0, between
        heard[own, slot], known[RATE * N + own, slot], known[BACKLOG * N + own, slot] = True, rate, backlog
        heard[list(lost), slot] = False
    useless = _hear(controller, known, heard, sample, news)
    now = memory._replace(sample=sample, known=known, heard=heard, assumed=assumed)
    if controller.newsworthy and len(own):
        foreseen = _evaluated(controller, now, controller.predicted)
        known[BACKLOG_NEWS * N + own, sample & mask] = backlog - foreseen
        known[RATE_NEWS * N + own, sample & mask] = rate - memory.command[own]
    return now, useless


def hear(controller: HeardController, memory: HeardMemory, news: Sequence[News]) -> tuple[HeardMemory, int]:
    """What others measured, in any order; and how much of it was of no use: too old, or of a sample to come."""
    if not news:
        return memory, 0
    known, heard = memory.known.copy(), memory.heard.copy()
    useless = _hear(controller, known, heard, memory.sample, news)
    return memory._replace(known=known, heard=heard), useless


def _hear(controller: HeardController, known: np.ndarray, heard: np.ndarray, newest: int, news: Sequence[News]) -> int:
    N, mask, useless = len(controller.nominal), controller.slots - 1, 0
    for link, sample, values in news:
        if not max(newest - mask, 0) <= sample <= newest:
            useless += 1
            continue
        known[link::N, sample & mask], heard[link, sample & mask] = values, True
    return useless


def command(
    controller: HeardController, memory: HeardMemory, low: np.ndarray | None = None, high: np.ndarray | None = None
) -> tuple[HeardMemory, np.ndarray]:
    """Rates for the interval that begins, (K,), before limits, and the memory with them.

    `low` and `high`, (K,), are the limits that rates will be held to where nobody reports what was sent.
    """
    u = _evaluated(controller, memory, controller.control)
    kept = memory.command.copy()
    kept[controller.commanded] = u if low is None or high is None else np.clip(u, low, high)
    return memory._replace(command=kept), u


def _sums(taps: Taps, links: np.ndarray) -> _Sums:
    rows, coefficients, places = [], [], []
    picked: list[np.ndarray] = []
    total = 0
    for row, link in enumerate(links.tolist()):
        part = np.arange(taps.start[link], taps.start[link + 1])
        picked.append(part)
        rows.append(np.full(len(part) + 1, row))
        coefficients += [taps.offset[link : link + 1], taps.coefficient[part]]
        places.append(total + 1 + np.arange(len(part)))
        total += len(part) + 1
    if not picked:
        none = np.zeros(0, dtype=np.int64)
        return _Sums(none, np.zeros(0), none, none, none, 0)
    chosen = np.concatenate(picked)
    return _Sums(
        np.concatenate(rows),
        np.concatenate(coefficients),
        np.concatenate(places),
        taps.series[chosen],
        taps.lag[chosen],
        len(links),
    )


def _evaluated(controller: HeardController, memory: HeardMemory, sums: _Sums) -> np.ndarray:
    """Offset and taps of each row, one after the other: `bincount` adds in this order."""
    weights = sums.coefficient.copy()
    weights[sums.place] *= _told(controller, memory, sums)
    return np.bincount(sums.row, weights=weights, minlength=sums.rows)


def _told(controller: HeardController, memory: HeardMemory, sums: _Sums) -> np.ndarray:
    """What each tap's series was, or is taken to have been: rates nominal, no news, backlogs what they last were."""
    N, mask = len(controller.nominal), controller.slots - 1
    slot, of = (memory.sample - sums.lag) & mask, sums.series % N
    values = memory.known[sums.series, slot]
    missing = np.flatnonzero(~memory.heard[of, slot])
    if not len(missing):
        return values
    kind, link = sums.series[missing] // N, of[missing]
    rates = np.where(
        sums.lag[missing] < controller.least, memory.assumed[link, slot[missing]], controller.nominal[link]
    )
    values[missing] = np.where(kind == RATE, rates, 0.0)
    for at in missing[kind == BACKLOG].tolist():
        values[at] = _last(controller, memory, int(of[at]), memory.sample - int(sums.lag[at]))
    return values


def _last(controller: HeardController, memory: HeardMemory, link: int, asked: int) -> float:
    """The backlog of a link that was heard last before a sample."""
    N, mask = len(controller.nominal), controller.slots - 1
    for earlier in range(asked - 1, max(memory.sample - mask + 1, -1), -1):
        if memory.heard[link, earlier & mask]:
            return float(memory.known[BACKLOG * N + link, earlier & mask])
    return controller.standing
