"""Rates of N links from received measurements, step by step: compiled for the simulator, printed for ns-3.

Time goes in ticks, `ticks` of them an interval; each link measures and acts once an interval, at a tick of its own.
What it hasn't heard is assumed: rates are nominal, innovations 0, backlogs what they were when they were last heard.
Rates in bit/s, and so are backlogs: over the interval. A series is kind · N + link, of the kinds of
`netctrl.laws.link_rate.distributed`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.core.jit import njit
from netctrl.laws.link_rate.credit import Prices, granted
from netctrl.laws.link_rate.distributed import BACKLOG_INNOVATION, RATE_INNOVATION
from netctrl.laws.link_rate.fir import ARRIVAL_INNOVATION, BACKLOG, RATE, SATURATION_ERROR, Feeds, FirSums
from netctrl.laws.record import Grid, Numbers, WholeGrid, WholeNumbers

_KINDS = 4
_REMEMBERED = 16
"""Samples that a message to a law with prices may be late, or lost one after the other."""
NEVER = -1
"""A message that was lost, or that isn't sent."""


class LinkRates(NamedTuple):
    """What does not change."""

    nominal: Numbers
    """(N) rates around which links are controlled"""
    setpoint: float
    """backlog around which they are"""
    control: FirSums
    """of the rates"""
    predicted: FirSums
    """of each link's own backlog, from innovations; no taps where the law takes none"""
    foresees: bool
    """whether the law takes what came unforeseen and what wasn't sent instead: all must be heard in time"""
    expected: Numbers
    """(N) what is foreseen to arrive at each link, beside what others feed"""
    feeds: Feeds
    """of links, by those that feed them"""
    central: bool
    """whether one controller hears of all and tells all links what to send"""
    ticks: int
    """of an interval"""
    messages: int
    """sent in an interval; 0: all is heard in time"""
    line: WholeGrid
    """(N, N) number of the messages by which link l hears of link k; -1: of none"""
    least: WholeGrid
    """(N, N) age from which on link l hears what link k measured; what the law takes earlier is known without"""
    mask: int
    """samples that are remembered, a power of 2, less one"""
    prices: Prices
    """by which links send less than their sums where the next buffers are full"""


def law_by_messages(
    nominal: np.ndarray,
    setpoint: float,
    control: FirSums,
    predicted: FirSums,
    feeds: Feeds,
    prices: Prices,
    line: np.ndarray,
    least: np.ndarray,
    *,
    messages: int,
    central: bool = False,
    ticks: int = 1,
) -> LinkRates:
    """Law of links that hear of each other by messages, with a memory as long as it needs."""
    N, priced = len(nominal), len(prices.link) > 0
    longest = max(int(part.max(initial=0)) for part in (control.lag, predicted.lag, 2 * prices.delay))
    mask = (1 << (longest + priced * _REMEMBERED + 3).bit_length()) - 1
    return LinkRates(
        nominal=nominal,
        setpoint=setpoint,
        control=control,
        predicted=predicted,
        foresees=False,
        expected=np.zeros(N),
        feeds=feeds,
        central=central,
        ticks=ticks,
        messages=messages,
        line=line,
        least=least,
        mask=mask,
        prices=prices,
    )


class Measured(NamedTuple):
    """What a link measured in the interval that ended."""

    rate: float
    """that was sent"""
    backlog: float
    """at its end"""
    arrived: float
    """rate"""
    lost: float
    """rate"""


class LinkMemory(NamedTuple):
    """What changes, in one run."""

    phase: WholeNumbers
    """(N) tick of the interval at which each link acts, the same all the time"""
    measured: Grid
    """(4 N, samples) what each link measured"""
    arrival: WholeGrid
    """(messages, samples) tick at which a message is there; -1: it was lost"""
    command: Numbers
    """(N) rates in force, before limits"""
    forecast: Numbers
    """(E) of the prices' pairs, in the last sample"""


def link_memory(law: LinkRates, phase: np.ndarray) -> LinkMemory:
    """Before the first tick: all was as it is wanted. `phase`, (N,), is the tick at which each link acts."""
    N, slots = len(law.nominal), law.mask + 1
    arrival = np.empty((max(law.messages, 1), slots), dtype=np.int64)
    measured, forecast = np.zeros((_KINDS * N, slots)), np.zeros(len(law.prices.link))
    memory = LinkMemory(np.asarray(phase, dtype=np.int64), measured, arrival, np.empty(N), forecast)
    start_links(law, memory)
    return memory


@njit(cache=True, error_model="numpy")
def start_links(law: LinkRates, memory: LinkMemory) -> None:
    """Before the first tick all was as it is wanted."""
    N = len(law.nominal)
    for link in range(N):
        memory.command[link] = law.nominal[link]
        for slot in range(law.mask + 1):
            memory.measured[RATE * N + link, slot] = law.nominal[link]
            memory.measured[BACKLOG * N + link, slot] = law.setpoint
    for message in range(law.messages):
        for slot in range(law.mask + 1):
            memory.arrival[message, slot] = NEVER


@njit(inline="always")
def link_acts(law: LinkRates, memory: LinkMemory, link: int, tick: int) -> bool:
    """Whether a link measures and acts at a tick."""
    return memory.phase[link] == tick % law.ticks


@njit(inline="always")
def fir_sum(law: LinkRates, memory: LinkMemory, taps: FirSums, at: int, tick: int) -> float:
    """Link `at`'s sum over what it has heard, or over what is assumed of what it hasn't.

    Arrays have names of their own: to look them up in a record at each tap costs more than the tap.
    """
    N = len(law.nominal)
    sample = tick // law.ticks
    mask = law.mask
    in_time = law.messages == 0
    line = law.line
    least = law.least
    nominal = law.nominal
    phase = memory.phase
    measured = memory.measured
    arrival = memory.arrival
    series = taps.series
    lag = taps.lag
    coefficient = taps.coefficient
    total = taps.offset[at]
    for j in range(taps.start[at], taps.start[at + 1]):
        wanted = sample - lag[j]
        of = series[j] % N
        if in_time or line[at, of] == NEVER or lag[j] < least[at, of]:
            total += coefficient[j] * measured[series[j], wanted & mask]
            continue
        if phase[of] > phase[at]:  # it has not acted yet in this interval
            wanted -= 1
        when = arrival[line[at, of], wanted & mask]
        if wanted < 0 or (when != NEVER and when <= tick):
            total += coefficient[j] * measured[series[j], wanted & mask]
        elif series[j] < N * (RATE + 1):
            total += coefficient[j] * nominal[of]
        elif series[j] < N * (BACKLOG + 1):
            oldest = max(wanted - mask + lag[j] + 1, NEVER)
            while wanted > oldest and (when == NEVER or when > tick):
                wanted -= 1
                when = arrival[line[at, of], wanted & mask]
            total += coefficient[j] * (measured[series[j], wanted & mask] if wanted > oldest else law.setpoint)
    return total


@njit(cache=True, error_model="numpy")
def foreseen(law: LinkRates, memory: LinkMemory, link: int, sample: int) -> float:
    """What was foreseen to arrive at a link in the interval that ended."""
    total = law.expected[link]
    for j in range(law.feeds.start[link], law.feeds.start[link + 1]):
        slot = (sample - 1 - law.feeds.delay[j]) & law.mask
        total += law.feeds.share[j] * memory.measured[RATE * len(law.nominal) + law.feeds.link[j], slot]
    return total


@njit(inline="always")
def measure_link(law: LinkRates, memory: LinkMemory, link: int, seen: Measured, tick: int, late: WholeNumbers) -> None:
    """A link measures, at its tick, and tells others.

    `late`, (messages), is by how many ticks each message of this interval is late; -1: it is lost.
    """
    N = len(law.nominal)
    sample = tick // law.ticks
    now = sample & law.mask
    memory.measured[RATE * N + link, now] = seen.rate
    memory.measured[BACKLOG * N + link, now] = seen.backlog
    if law.foresees:
        if sample == 0:  # what differs from the setpoint came unforeseen, before the start
            memory.measured[ARRIVAL_INNOVATION * N + link, now] = seen.backlog - law.setpoint
        else:
            innovation = seen.arrived - foreseen(law, memory, link, sample) - seen.lost
            memory.measured[ARRIVAL_INNOVATION * N + link, now] = innovation
            memory.measured[SATURATION_ERROR * N + link, now] = memory.command[link] - seen.rate
    elif len(law.predicted.lag) > 0:
        predicted = fir_sum(law, memory, law.predicted, link, tick)
        memory.measured[BACKLOG_INNOVATION * N + link, now] = seen.backlog - predicted
        memory.measured[RATE_INNOVATION * N + link, now] = seen.rate - memory.command[link]
    for at in range(N if law.messages > 0 else 0):
        message = law.line[at, link]
        if message != NEVER:
            if late[message] == NEVER:
                memory.arrival[message, now] = NEVER
            else:
                memory.arrival[message, now] = tick + law.least[at, link] * law.ticks + late[message]


@njit(inline="always")
def newest_heard(law: LinkRates, memory: LinkMemory, at: int, of: int, lag: int, tick: int) -> int:
    """Newest sample of link `of`, at least `lag` old, that link `at` has heard; none if it is out of memory."""
    wanted = tick // law.ticks - lag
    if law.messages == 0 or at == of:
        return wanted
    if memory.phase[of] > memory.phase[at]:  # it has not acted yet in this interval
        wanted -= 1
    oldest = max(tick // law.ticks - law.mask + lag, NEVER)
    when = memory.arrival[law.line[at, of], wanted & law.mask]
    while wanted > oldest and (when == NEVER or when > tick):
        wanted -= 1
        when = memory.arrival[law.line[at, of], wanted & law.mask]
    return wanted


@njit(inline="always")
def priced_rate(law: LinkRates, memory: LinkMemory, link: int, tick: int, most: float) -> float:
    """Rate of a link by its prices, up to `most`: what it hasn't heard is nominal, or forecast from older samples."""
    N = len(law.nominal)
    sample = tick // law.ticks
    oldest = max(sample - law.mask + law.prices.delay[link], NEVER)
    here = memory.measured[BACKLOG * N + link, sample & law.mask] + law.prices.enters[link]
    for j in range(law.feeds.start[link], law.feeds.start[link + 1]):
        feeder = law.feeds.link[j]
        wanted = sample - law.prices.lag[feeder] + 1
        if memory.phase[feeder] > memory.phase[link]:
            wanted -= 1
        heard = newest_heard(law, memory, link, feeder, law.feeds.delay[j], tick)
        rate = memory.measured[RATE * N + feeder, wanted & law.mask] if heard >= wanted else law.nominal[feeder]
        here += law.feeds.share[j] * rate
    for j in range(law.prices.start[link], law.prices.start[link + 1]):
        following = law.prices.link[j]
        heard = newest_heard(law, memory, link, following, law.prices.delay[link], tick)
        waits = memory.measured[BACKLOG * N + following, heard & law.mask] if heard > oldest else law.setpoint
        if memory.phase[following] > memory.phase[link]:  # after this link's sample of that number, before the next one
            heard += 1
        for arrives in range(heard, sample + law.prices.lag[link]):
            sent = memory.measured[RATE * N + link, (arrives - law.prices.lag[link] + 1) & law.mask]
            waits = max(waits + law.prices.other[j] + law.prices.share[j] * sent, 0.0)
        memory.forecast[j] = waits + law.prices.other[j]
    return granted(law.prices, memory.forecast, link, here, most)


@njit(inline="always")
def command_link(law: LinkRates, memory: LinkMemory, link: int, tick: int, received: bool) -> None:
    """The rate of a link from its tick on, before limits; `received`: whether a central controller's command comes."""
    if law.central and not received:
        memory.command[link] = law.nominal[link]
    else:
        memory.command[link] = fir_sum(law, memory, law.control, link, tick)
        if law.prices.start[link + 1] > law.prices.start[link]:
            memory.command[link] = priced_rate(law, memory, link, tick, memory.command[link])


@njit(cache=True, error_model="numpy")
def measure_links(law: LinkRates, memory: LinkMemory, tick: int, seen: Grid, late: WholeNumbers) -> None:
    """All links whose tick it is measure, and tell.

    `seen`, (4, N), has what each measured in the order of `Measured`; `late`, (messages), is as in `measure_link`.
    """
    for link in range(len(law.nominal)):
        if link_acts(law, memory, link, tick):
            measured = Measured(seen[0, link], seen[1, link], seen[2, link], seen[3, link])
            measure_link(law, memory, link, measured, tick, late)


@njit(cache=True, error_model="numpy")
def command_links(law: LinkRates, memory: LinkMemory, tick: int, received: WholeNumbers) -> None:
    """All links whose tick it is decide their rates, which `memory.command` then has.

    `received`, (N): whether a central controller's command comes.
    """
    for link in range(len(law.nominal)):
        if link_acts(law, memory, link, tick):
            command_link(law, memory, link, tick, received[link] != 0)
