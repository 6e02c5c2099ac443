"""One controller of link rates, from its measurements and messages: sums of `netctrl.laws.link_rate.distributed`.

A controller measures some links, commands some, and receives messages about others at any time, or never. Its steps are
pure: they take a memory and return another. The sums are added in the simulator's order
(`netctrl.sim.network.message_kernel`), so both give the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from netctrl.laws.link_rate.distributed import BACKLOG_INNOVATION, RATE_INNOVATION, DistributedLaw
from netctrl.laws.link_rate.fir import BACKLOG, RATE, FirLaw

_KINDS = 4

Innovations = tuple[int, int, tuple[float, float, float, float]]
"""Link, sample, and of that sample: rate that was sent, backlog, and by how much both differ from what was foreseen."""


class _Sums(NamedTuple):
    """Taps of M links in sequence, with each link's offset before its taps."""

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


class DistributedController(NamedTuple):
    """Constants. N links, of which M are measured and K commanded by this controller."""

    nominal: np.ndarray
    """(N,) rates around which the law controls [bit/s]."""
    backlog_setpoint: float
    """Backlog around which the law controls, over the interval [bit/s]."""
    least: int
    """Age from which measured rates of other links may be known (a central controller's information delay); for younger
    ones the commanded rates are used."""
    measured: np.ndarray
    """(M,) numbers of links."""
    commanded: np.ndarray
    """(K,) numbers of links."""
    predicted: _Sums
    """Sums of the M measured links."""
    control: _Sums
    """Sums of the K commanded links."""
    takes_innovations: bool
    """Whether the law takes innovations."""
    slots: int
    """Number of samples in memory, a power of 2."""


class DistributedMemory(NamedTuple):
    """Variables of a controller."""

    sample: int
    """The newest."""
    received: np.ndarray
    """(4 N, slots) series of `netctrl.laws.link_rate.distributed`, by sample."""
    valid: np.ndarray
    """(N, slots) whether a link's values are known."""
    estimated: np.ndarray
    """(N, slots) rates used for unknown ones."""
    command: np.ndarray
    """(N,) commands of the newest sample, before limits; nominal rates for links not commanded here."""


def distributed_controller(
    law: DistributedLaw,
    nominal: np.ndarray,
    backlog_setpoint: float,
    *,
    measured: Sequence[int],
    commanded: Sequence[int],
    least: int = 0,
) -> DistributedController:
    """Controller that measures and commands the links with these numbers."""
    places, sent_to = np.array(measured, dtype=np.int64), np.array(commanded, dtype=np.int64)
    memory = max(law.control.memory, law.predicted.memory) + 4
    return DistributedController(
        nominal=np.array(nominal, dtype=float),
        backlog_setpoint=float(backlog_setpoint),
        least=least,
        measured=places,
        commanded=sent_to,
        predicted=_sums(law.predicted, places),
        control=_sums(law.control, sent_to),
        takes_innovations=len(law.predicted.lag) > 0,
        slots=1 << (memory - 1).bit_length(),
    )


def start_hearing(controller: DistributedController) -> DistributedMemory:
    """Memory before sample 0, with all links at their setpoints."""
    N, slots = len(controller.nominal), controller.slots
    received = np.zeros((_KINDS * N, slots))
    received[RATE * N : (RATE + 1) * N] = controller.nominal[:, None]
    received[BACKLOG * N : (BACKLOG + 1) * N] = controller.backlog_setpoint
    estimated = np.repeat(controller.nominal[:, None], slots, axis=1)
    return DistributedMemory(-1, received, np.ones((N, slots), dtype=bool), estimated, controller.nominal.copy())


def measure(
    controller: DistributedController,
    memory: DistributedMemory,
    sample: int,
    rate: np.ndarray,
    backlog: np.ndarray,
    *,
    innovations: Sequence[Innovations] = (),
    lost: Sequence[int] = (),
) -> tuple[DistributedMemory, int]:
    """Memory after a new sample of rates and backlogs, and the number of innovations that were not used.

    Parameters
    ----------
    controller : DistributedController
    memory : DistributedMemory
        After an earlier sample.
    sample : int
        Its number, above the last one's. Missed samples in between count as present rates without innovations.
    rate, backlog : ndarray, shape (M,)
        Values of the measured links, over the interval [bit/s].
    innovations : sequence of Innovations
        Innovations received since the last sample (`hear`).
    lost : sequence of int
        Numbers of links that are no longer measured, whose values are unknown from now on.
    """
    N, mask, own = len(controller.nominal), controller.slots - 1, controller.measured
    received, valid, estimated = memory.received.copy(), memory.valid.copy(), memory.estimated.copy()
    first = max(memory.sample + 1, sample - mask)
    between = memory.command if controller.least else controller.nominal
    for missed in range(first, sample + 1):
        slot = missed & mask
        valid[:, slot], received[:, slot], estimated[:, slot] = False, 0.0, between
        valid[own, slot], received[RATE * N + own, slot], received[BACKLOG * N + own, slot] = True, rate, backlog
        valid[list(lost), slot] = False
    useless = _hear(controller, received, valid, sample, innovations)
    now = memory._replace(sample=sample, received=received, valid=valid, estimated=estimated)
    if controller.takes_innovations and len(own):
        foreseen = _evaluated(controller, now, controller.predicted)
        received[BACKLOG_INNOVATION * N + own, sample & mask] = backlog - foreseen
        received[RATE_INNOVATION * N + own, sample & mask] = rate - memory.command[own]
    return now, useless


def hear(
    controller: DistributedController, memory: DistributedMemory, innovations: Sequence[Innovations]
) -> tuple[DistributedMemory, int]:
    """Memory after others' measurements, in any order, and the number not used (too old, or of a future sample)."""
    if not innovations:
        return memory, 0
    received, valid = memory.received.copy(), memory.valid.copy()
    useless = _hear(controller, received, valid, memory.sample, innovations)
    return memory._replace(received=received, valid=valid), useless


def _hear(
    controller: DistributedController,
    received: np.ndarray,
    valid: np.ndarray,
    newest: int,
    innovations: Sequence[Innovations],
) -> int:
    N, mask, useless = len(controller.nominal), controller.slots - 1, 0
    for link, sample, values in innovations:
        if not max(newest - mask, 0) <= sample <= newest:
            useless += 1
            continue
        received[link::N, sample & mask], valid[link, sample & mask] = values, True
    return useless


def command(
    controller: DistributedController,
    memory: DistributedMemory,
    low: np.ndarray | None = None,
    high: np.ndarray | None = None,
) -> tuple[DistributedMemory, np.ndarray]:
    """Rates for the next interval, (K,), before limits, and the memory with them.

    `low` and `high`, (K,), are the limits of rates where sent rates are not reported.
    """
    u = _evaluated(controller, memory, controller.control)
    kept = memory.command.copy()
    kept[controller.commanded] = u if low is None or high is None else np.clip(u, low, high)
    return memory._replace(command=kept), u


def _sums(taps: FirLaw, links: np.ndarray) -> _Sums:
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


def _evaluated(controller: DistributedController, memory: DistributedMemory, sums: _Sums) -> np.ndarray:
    """Offset plus taps of each row, in the order in which `bincount` adds."""
    weights = sums.coefficient.copy()
    weights[sums.place] *= _measured(controller, memory, sums)
    return np.bincount(sums.row, weights=weights, minlength=sums.rows)


def _measured(controller: DistributedController, memory: DistributedMemory, sums: _Sums) -> np.ndarray:
    """Value of each tap's series, or the assumed one: nominal rates, no innovation, the last backlogs."""
    N, mask = len(controller.nominal), controller.slots - 1
    slot, of = (memory.sample - sums.lag) & mask, sums.series % N
    values = memory.received[sums.series, slot]
    missing = np.flatnonzero(~memory.valid[of, slot])
    if not len(missing):
        return values
    kind, link = sums.series[missing] // N, of[missing]
    rates = np.where(
        sums.lag[missing] < controller.least, memory.estimated[link, slot[missing]], controller.nominal[link]
    )
    values[missing] = np.where(kind == RATE, rates, 0.0)
    for at in missing[kind == BACKLOG].tolist():
        values[at] = _last(controller, memory, int(of[at]), memory.sample - int(sums.lag[at]))
    return values


def _last(controller: DistributedController, memory: DistributedMemory, link: int, requested: int) -> float:
    """A link's last received backlog before a sample."""
    N, mask = len(controller.nominal), controller.slots - 1
    for earlier in range(requested - 1, max(memory.sample - mask + 1, -1), -1):
        if memory.valid[link, earlier & mask]:
            return float(memory.received[BACKLOG * N + link, earlier & mask])
    return controller.backlog_setpoint
