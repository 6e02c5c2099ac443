"""DOCSIS-PIE: PIE as cable modems run it (RFC 8034, Appendix A).

It differs from PIE (RFC 8033) by these rules. The delay is the backlog over the rate at which the modem may send, as
for a modem without credit of its token bucket. Gains keep growing above an output x of .1. A packet of b bytes is
dropped with the probability min(x b/1024, .85), and drops are spread: none before the sum of these probabilities since
the last drop is .85, and surely from 8.5 on. Nothing is dropped before the queue has once filled a third of the buffer
(INACTIVE); the first drop after that (QUIESCENT) begins 142 ms in which nothing is dropped and x is 0 (ACTIVE). A queue
that is quiet for more than a second becomes INACTIVE again.

In the packet engine each packet is dropped as in the RFC (`docsis_spreads`). Elsewhere the law acts by intervals:
whether the queue has filled its third, and whether a drop is due, is looked at when an interval ends, and packets are
dropped by chance with the mean rate of spread drops (`spread_rate`).
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from netctrl.laws.aqm.law import CHOSEN, GAIN, GAIN_OR_0, Arriving, QueueLaw, QueueRecord, Seen
from netctrl.laws.aqm.pie import pie_scale
from netctrl.laws.targets.pie import drop_share, spread_chooses
from netctrl.model.io.fields import Duration, duration, instant, read_fields

MEAN_BYTES = 1024.0
"""MEAN_PKTSIZE."""
ACTIVE = 2.0
"""`DocsisPieState.activity` while packets are dropped."""


class DocsisPieQueue(QueueRecord, frozen=True, kw_only=True, tag="docsis-pie"):
    """DOCSIS-PIE of cable modems: PIE with larger gains at high loss, spread drops and a burst protection of its own.

    A third of the link's buffer has to fill before it acts for the first time. Source: RFC 8034, Appendix A.
    """

    latency_target: Duration = 10e-3
    """LATENCY_TARGET, of the queueing delay [s]."""
    interval: Duration = 16e-3
    """INTERVAL, from one update to the next [s]."""
    alpha: float = 0.25
    """A, gain on the delay's error [1/s]."""
    beta: float = 2.5
    """B, gain on the delay's change [1/s]."""
    max_burst: Duration = 142e-3
    """MAX_BURST: time without drops after the first one [s]."""

    def __post_init__(self) -> None:
        read_fields(self, latency_target=duration, interval=duration, alpha=GAIN, beta=GAIN_OR_0, max_burst=instant)


class DocsisPieParameters(NamedTuple):
    """Parameters of DOCSIS-PIE."""

    target: float
    """Delay [s]"""
    alpha: float
    """Gain on the delay [1/s]"""
    beta: float
    """Gain on its change [1/s]"""
    max_burst: float
    """Time without drops after the first one [s]"""
    size: float
    """Of a packet over 1024 bytes"""
    spared: float
    """Backlog up to which nothing is dropped [packet]"""
    third: float
    """Of the buffer [packet]"""


class DocsisPieState(NamedTuple):
    """State of DOCSIS-PIE."""

    probability: float
    """Of dropping a packet: 0 while drops are suppressed"""
    drop_probability: float
    """RFC 8034's drop_prob_, up to 13.6"""
    old_delay: float
    """Of the update before [s]"""
    allowance: float
    """Left of the time without drops [s]"""
    reset: float
    """How long the queue has been quiet [s]"""
    activity: float
    """0: INACTIVE, 1: QUIESCENT, 2: ACTIVE"""
    due: float
    """Expected number of drops while QUIESCENT"""
    passed: float = 0.0
    """Sum of probabilities since the last drop, on packets"""


def docsis_scale(p: float) -> float:
    """Factor of the gains at an output: PIE's below .1, and larger ones above it.

    Examples
    --------
    >>> [docsis_scale(p) for p in (0.05, 0.5, 5.0, 13.0)]
    [0.5, 2.0, 8.0, 32.0]
    """
    if p < 0.1:
        return pie_scale(p)
    if p < 1.0:
        return 2.0
    if p < 10.0:
        return 8.0
    return 32.0


def spread_rate(p: float) -> float:
    """Mean share of packets that is dropped where each has the probability p, at most .85, and drops are spread.

    The m-th packet since a drop is the first with m p >= .85, the M-th the first with M p >= 8.5; from one drop to the
    next it is m - 1 + (1 - (1 - p)^(M - m + 1))/p packets on average, some 1.85/p for small p.

    Examples
    --------
    >>> f"{spread_rate(0.01):.5f}, {spread_rate(0.85):.5f}"
    '0.00544, 0.85000'
    """
    if p < 1e-9:
        return p / 1.85
    first = float(int(0.85 / p))
    if first * p < 0.85:
        first = first + 1.0
    sure = float(int(8.5 / p))
    if sure * p < 8.5:
        sure = sure + 1.0
    return drop_share(p, first, sure)


def mean_spread_rate(p: float) -> float:
    """Share of packets that is dropped where sizes and x vary: `spread_rate` without its steps.

    The first packet whose sum reaches .85 has a whole number: .85/p + 1/2 on average over a range of p. At a constant p
    the share jumps, by a tenth where p passes .85/6, around which a fluid without noise would cycle.

    Examples
    --------
    >>> f"{mean_spread_rate(0.01):.5f}, {mean_spread_rate(0.1416):.4f}"
    '0.00542, 0.0796'
    >>> f"{spread_rate(0.1416):.4f}, {spread_rate(0.1417):.4f}"
    '0.0766, 0.0829'
    """
    if p < 1e-9 or p >= 0.85:
        return spread_rate(p)
    return drop_share(p, 0.85 / p + 0.5, 8.5 / p + 0.5)


def docsis_step(state: DocsisPieState, seen: Seen, p: DocsisPieParameters) -> DocsisPieState:
    """DOCSIS-PIE: x <- x + scale (A (D - target) + B (D - D_old)) each interval, D = q/C (RFC 8034, Appendix A)."""
    delay = seen.backlog / seen.capacity
    activity = state.activity
    allowance = state.allowance
    due = state.due
    if activity == 0.0 and seen.backlog >= p.third:
        activity = 1.0
        due = 0.0
    elif activity == 1.0:
        due = due + state.probability * seen.arrived
        if due >= 1.0:
            activity = 2.0
            allowance = p.max_burst
    x = 0.0
    if allowance > 0.0:
        allowance = max(allowance - seen.elapsed, 0.0)
    else:
        x = state.drop_probability
        rise = (p.alpha * (delay - p.target) + p.beta * (delay - state.old_delay)) * docsis_scale(x)
        if x >= 0.1:
            rise = min(rise, 0.02)
        x = x + rise
        if delay < 0.005 and state.old_delay < 0.005:
            x = x * 0.98
        elif delay > 0.2:
            x = x + 0.02
        x = min(max(x, 0.0), 13.6)
    reset = state.reset
    if delay < 0.5 * p.target and state.old_delay < 0.5 * p.target and x == 0.0 and allowance == 0.0:
        if activity == 2.0:
            activity = 1.0
            reset = 0.0
            due = 0.0
        elif activity == 1.0:
            reset = reset + seen.elapsed
            if reset > 1.0:
                activity = 0.0
                reset = 0.0
    elif activity == 1.0:
        reset = 0.0
    rate = spread_rate(min(x * p.size, 0.85))
    if allowance > 0.0 or activity == 0.0 or seen.backlog <= p.spared or (delay < 0.5 * p.target and x < 0.2):
        rate = 0.0
    return DocsisPieState(rate, x, delay, allowance, reset, activity, due, state.passed)


def docsis_spreads(state: DocsisPieState, packet: Arriving, p: DocsisPieParameters) -> DocsisPieState:
    """What a packet does that comes: it is dropped by min(x b/1024, .85), spread (RFC 8034, Appendix A)."""
    x = state.drop_probability
    passed = max(state.passed, 0.0)
    activity = state.activity
    allowance = state.allowance
    if activity == 0.0 and packet.backlog >= p.third:
        activity = 1.0
    if activity > 0.0 and allowance <= 0.0:
        own = min(x * p.size * packet.size, 0.85)
        passed = passed + own if x > 0.0 else 0.0
        spared = packet.backlog <= p.spared or (state.old_delay < 0.5 * p.target and x < 0.2)
        if not spared and spread_chooses(passed, own, packet.draw):
            passed = CHOSEN
            if activity == 1.0:
                activity = 2.0
                allowance = p.max_burst
    return DocsisPieState(state.probability, x, state.old_delay, allowance, state.reset, activity, 0.0, passed)


def _read(queue: DocsisPieQueue, packet: float, buffer: float) -> DocsisPieParameters:
    return DocsisPieParameters(
        target=queue.latency_target,
        alpha=queue.alpha,
        beta=queue.beta,
        max_burst=queue.max_burst,
        size=packet / MEAN_BYTES,
        spared=2.0 * MEAN_BYTES / packet,
        third=0.0 if buffer == inf else buffer / packet / 3.0,
    )


DOCSIS_PIE = QueueLaw(
    DocsisPieQueue,
    DocsisPieParameters,
    DocsisPieState,
    _read,
    docsis_step,
    epoch=lambda queue: queue.interval,
    spreads=docsis_spreads,
)
