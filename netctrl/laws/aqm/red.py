"""RED: gentle or not, adaptive or not, and with the present queue WRED of switches.

Sources: Floyd, Jacobson 1993; Floyd, "Recommendation on using the gentle variant of RED", 2000; Floyd, Gummadi,
Shenker, "Adaptive RED", 2001, Figure 1; Linux, include/net/red.h; SAI, inc/saiwred.h (`spaced` off, a weight of 1).
"""

from __future__ import annotations

from math import expm1, log1p
from typing import NamedTuple

from netctrl.core.errors import checked_flag
from netctrl.laws.aqm.law import CHOSEN, PROBABILITY, Arriving, QueueLaw, QueueRecord, Seen
from netctrl.model.io.fields import Size, number, read_fields, size

_PRESENT = -1e9
"""Stands for ln(1 - weight) of a weight of 1: the average is the present queue."""


class RedQueue(QueueRecord, frozen=True, kw_only=True, tag="red"):
    """RED: p grows with the average queue, from 0 at min to max_probability at max, and if gentle to 1 at 2 max.

    Not gentle, it marks every packet from max on. WRED of switches is `gentle` and `spaced` off and a weight of 1.
    Sources: Floyd, Jacobson 1993; Floyd, "Recommendation on using the gentle variant of RED", 2000; Floyd, Gummadi,
    Shenker, "Adaptive RED", 2001.
    """

    min_threshold: Size = 25e3
    """Average queue above which packets are marked [byte]."""
    max_threshold: Size = 75e3
    """Average queue at which `max_probability` is reached [byte]."""
    max_probability: float = 0.1
    """Probability at `max_threshold`."""
    weight: float = 0.002
    """Of one packet in the moving average; 1: the present queue."""
    gentle: bool = True
    """Whether p rises to 1 at 2 max; else it is 1 from max on."""
    adaptive: bool = False
    """Whether max_probability moves between .01 and .5, each half second, to keep the average in the middle."""
    spaced: bool = True
    """Whether marks come after 1 to 1/p packets, so that 2p/(1 + p) of packets are marked; else each by chance p."""

    def __post_init__(self) -> None:
        read_fields(self, min_threshold=size, max_threshold=size, max_probability=PROBABILITY)
        read_fields(self, weight=number("a weight in (0, 1]", above=0.0, at_most=1.0))
        for name in ("gentle", "adaptive", "spaced"):
            checked_flag(name, getattr(self, name))
        number("a threshold above min_threshold", above=self.min_threshold)("max_threshold", self.max_threshold)


class RedParameters(NamedTuple):
    """Parameters of RED."""

    min_threshold: float
    """[packet]"""
    max_threshold: float
    """[packet]"""
    max_probability: float
    """At max_threshold"""
    log_forgetting: float
    """ln(1 - weight) of one packet in the moving average"""
    gentle: float
    """1: p rises to 1 at 2 max; 0: it is 1 from max on"""
    adaptive: float
    """1: max_probability moves; 0: it stays"""
    spaced: float
    """1: 2 p/(1 + p) of the packets are marked; 0: p"""


class RedState(NamedTuple):
    """State of RED."""

    probability: float
    """Of marking a packet"""
    average: float
    """Of the queue [packet]"""
    adapted: float
    """Present max_probability; 0: that of the parameters"""
    since: float
    """Since it moved last [s]"""
    passed: float = 0.0
    """Packets since the last mark"""


def red_share(average: float, most: float, low: float, high: float, gentle: float, spaced: float) -> float:
    """Share of packets that RED marks at an average; `most` is its probability at the upper threshold.

    Spaced marks come after 1 to 1/p packets, each number with the same chance: 2 p/(1 + p) (1993, Section 7).
    """
    if average < low:
        base = 0.0
    elif average < high:
        base = most * (average - low) / (high - low)
    elif gentle > 0.0:
        base = min(most + (1.0 - most) * (average - high) / high, 1.0)
    else:
        base = 1.0
    if spaced > 0.0:
        return 2.0 * base / (1.0 + base)
    return base


def red_adapted(average: float, most: float, low: float, high: float) -> float:
    """Adaptive RED's probability at max after half a second: up by .01 at most, or down by a tenth.

    It stays where the average is between .4 and .6 of the way from min to max. Source: Adaptive RED, Figure 1; Linux,
    include/net/red.h, red_adaptative_algo.
    """
    width = high - low
    if average > low + 0.6 * width and most <= 0.5:
        return most + min(0.01, 0.25 * most)
    if average < low + 0.4 * width and most >= 0.01:
        return 0.9 * most
    return most


def red_step(state: RedState, seen: Seen, p: RedParameters) -> RedState:
    """RED: the average follows the queue, and decides which share of packets is marked.

    The average follows the queue with -ln(1 - weight) C; it stands half a step after the backlog that is seen.
    """
    if p.log_forgetting > -1e8:
        kept = p.log_forgetting * seen.capacity * seen.elapsed
        average = state.average - expm1(kept) * (seen.backlog - state.average)
    else:
        average = seen.backlog
    most = state.adapted if state.adapted > 0.0 else p.max_probability
    since = state.since + seen.elapsed
    if p.adaptive > 0.0 and since >= 0.5:
        most = red_adapted(average, most, p.min_threshold, p.max_threshold)
        since = 0.0
    share = red_share(average, most, p.min_threshold, p.max_threshold, p.gentle, p.spaced)
    return RedState(share, average, most, since, state.passed)


def red_spreads(state: RedState, packet: Arriving, p: RedParameters) -> RedState:
    """Where marks are spaced, the c-th packet since the last one is marked with the chance p/(1 − (c − 1) p) (1993)."""
    share = state.probability
    base = share / (1.0 + p.spaced * (1.0 - share))
    passed = p.spaced * max(state.passed, 0.0)
    after = passed + 1.0 if base > 0.0 else 0.0
    if packet.draw * (1.0 - passed * base) < base:
        after = CHOSEN
    return RedState(state.probability, state.average, state.adapted, state.since, after)


def log_forgetting(weight: float) -> float:
    """ln(1 - weight), finite for a weight of 1 as well."""
    return log1p(-weight) if weight < 1.0 else _PRESENT


def _read(queue: RedQueue, packet: float, _: float) -> RedParameters:
    low, high = queue.min_threshold / packet, queue.max_threshold / packet
    flags = (float(flag) for flag in (queue.gentle, queue.adaptive, queue.spaced))
    return RedParameters(low, high, queue.max_probability, log_forgetting(queue.weight), *flags)


RED = QueueLaw(RedQueue, RedParameters, RedState, _read, red_step, spreads=red_spreads)
