"""One controller of link rates: the law of `netctrl.laws.link_rate.distributed_step` by what this controller heard.

It measures and commands some links, and hears of others at any time, or never. A sample is a tick, and whatever was
heard of one is known. Its steps are pure: they take a memory and return another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from netctrl.laws.link_rate.distributed_step import (
    NEVER,
    LinkMemory,
    LinkRates,
    command_links,
    link_memory,
    measure_links,
)
from netctrl.laws.link_rate.fir import BACKLOG, RATE

Innovations = tuple[int, int, tuple[float, float, float, float]]
"""Link, sample, and of that sample: rate that was sent, backlog, and by how much both differ from what was foreseen."""

_THERE, _ACTS = 0, 0


class Heard(NamedTuple):
    """Variables of a controller of N links."""

    sample: int
    """The newest."""
    links: LinkMemory
    """A link has one message, which all of the controller's links hear; phase -1: it isn't of this controller."""


def by_hearing(law: LinkRates, least: int = 0) -> LinkRates:
    """The law for a controller, to which each link tells what it measured by one message.

    `least` is the age from which measured rates of other links may be known, a central controller's information delay;
    of younger ones the commanded rates are used.
    """
    N = len(law.nominal)
    line, age = np.tile(np.arange(N), (N, 1)), np.full((N, N), least)
    return law._replace(central=False, ticks=1, messages=N, line=line, least=age)


def start_hearing(law: LinkRates, links: Sequence[int]) -> Heard:
    """Memory before sample 0, all as it is wanted, of a controller that measures or commands the links."""
    N = len(law.nominal)
    phase = np.full(N, NEVER)
    phase[list(links)] = _ACTS
    heard = Heard(-1, link_memory(law, phase))
    some = np.array(links[:1], dtype=np.int64)
    command(law, measure(law, heard, 0, some, np.zeros(len(some)), np.zeros(len(some)))[0])  # compiles both
    return heard


def measure(
    law: LinkRates,
    heard: Heard,
    sample: int,
    links: np.ndarray,
    rate: np.ndarray,
    backlog: np.ndarray,
    *,
    innovations: Sequence[Innovations] = (),
    lost: Sequence[int] = (),
) -> tuple[Heard, int]:
    """Memory after a new sample of rates and backlogs, and the number of innovations that were not used.

    Parameters
    ----------
    law : LinkRates
        As of `by_hearing`.
    heard : Heard
        After an earlier sample.
    sample : int
        Its number, above the last one's. Missed samples in between count as present rates without innovations.
    links : ndarray, shape (M,)
        Numbers of the measured links.
    rate, backlog : ndarray, shape (M,)
        Their values, over the interval [bit/s].
    innovations : sequence of Innovations
        Those received since the last sample, in any order; too old ones and those of a future sample aren't used.
    lost : sequence of int
        Numbers of links that are no longer measured, whose values are unknown from now on.
    """
    N, mask = len(law.nominal), law.mask
    memory = LinkMemory(*(part.copy() for part in heard.links))
    slots = np.arange(max(heard.sample + 1, sample - mask), sample + 1) & mask
    memory.measured[:, slots], memory.arrival[:, slots] = 0.0, NEVER
    memory.measured[RATE * N : (RATE + 1) * N, slots] = memory.command[:, None]  # rates that may not be known yet
    for link, sent, waits in zip(links.tolist(), rate.tolist(), backlog.tolist(), strict=True):
        memory.measured[RATE * N + link, slots], memory.measured[BACKLOG * N + link, slots] = sent, waits
    seen, late = np.zeros((4, N)), np.full(N, NEVER)
    seen[0, links], seen[1, links], late[links] = rate, backlog, 0
    late[list(lost)] = NEVER
    memory.arrival[late != NEVER, slots[:, None]] = _THERE
    useless = 0
    for link, at, values in innovations:
        if max(sample - mask, 0) <= at <= sample:
            memory.measured[link::N, at & mask], memory.arrival[link, at & mask] = values, _THERE
        else:
            useless += 1
    if len(links):
        measure_links(law, memory, sample, seen, late)
    return Heard(sample, memory), useless


def command(law: LinkRates, heard: Heard) -> tuple[Heard, np.ndarray]:
    """The memory with rates of the controller's links for the next interval, and these, among all (N,), unlimited."""
    memory = heard.links._replace(command=heard.links.command.copy(), forecast=heard.links.forecast.copy())
    command_links(law, memory, heard.sample, np.ones(len(law.nominal), dtype=np.int64))
    return heard._replace(links=memory), memory.command.copy()
