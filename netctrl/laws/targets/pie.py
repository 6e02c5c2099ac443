"""PIE as Linux computes it, in integers: sch_pie, and sch_fq_pie for each of its flows.

Time is in ticks of 64 ns, a probability of 1 is M = 2^56 - 1. Gains come in sixteenths of 1/s, and the kernel keeps

    a = floor(alpha floor(M / 15625000) / 16) 2^-h,   b likewise from beta,

with h halvings, rounded down, while the probability p is small: 1 below M/10, 3 below M/100, ..., 11 below M/10^6. At
each update, with the delay D,

    p <- p + a (D - target) + b (D - D_old)   (mod 2^64)

in steps of at most M/50 where p >= M/10, and M/50 more where D is above 250 ms. Below 0 it is set to 0. **Above 1 it
isn't limited** before 2^64 = 256 M, so p winds up in a long overload. It loses 1/64 of itself at an update with D and
D_old of 0.

Packets are chosen by an accumulated probability, so that choices are spread: none before the sum of p since the last
one has reached .85, each with probability p then, and surely from 8.5 on. About 1.85/p packets pass from one to the
next: **the rate of drops is p/1.85** (`pie_drop_rate`, `PIE_SPREAD`). A choice at 8.5 doesn't set the sum back to 0 if
the packet is marked, so that **every packet is marked from there on**, until one is dropped, p is 0, the queue has been
idle, or the sum overflows at 256, which takes 247.5/p packets. That begins once in some 2100 marks.

Sources: Linux 6.1 and 7.2, net/sched/sch_pie.c, include/net/pie.h, net/sched/sch_fq_pie.c; RFC 8033.
"""

from __future__ import annotations

from math import exp
from typing import NamedTuple

from netctrl.laws.targets.integers import U64, s64, u32, u64
from netctrl.laws.targets.pie_law import PIE_ONE, PieLaw, gains_in_effect

PIE_SPREAD = 0.85 + 1.0 - exp(-7.65)
"""Limit for small p of p over the rate of drops: the sum at a drop is .85 and an exponential of mean 1, up to 8.5."""

PIE_FAULT = (
    "after some 2100 marks Linux's pie marks every packet for a while, which drops would end: not in the linear loop"
)
"""Warning of a certificate where Linux's pie marks."""

_BURST = 150_000_000 >> 6
_PANIC = 250_000_000 >> 6
_UNSET = U64
_RATE_SHIFT = 8  # PIE_SCALE
_SPARED, _SURE = PIE_ONE // 100 * 85, PIE_ONE // 2 * 17


class PieState(NamedTuple):
    """Variables of one PIE queue, as the kernel has them; those of a new queue by default."""

    prob: int = 0
    """Of choosing a packet; PIE_ONE is 1"""
    qdelay: int = 0
    """Delay read last [tick]"""
    qdelay_old: int = 0
    """Delay of the update before [tick]"""
    burst_time: int = _BURST
    """Allowance left [tick]"""
    accu_prob: int = 0
    """Sum of probabilities since the last choice"""
    dq_tstamp: int = _UNSET
    """Of the last departure, or of the measurement's begin [tick]"""
    dq_count: int = _UNSET
    """Departed in the measurement of the rate [byte]"""
    avg_dq_rate: int = 0
    """Measured rate of departures [byte/tick/256]"""
    backlog_old: int = 0
    """At the last update [byte]"""


PIE_START = PieState()
"""State of a new queue."""


def pie_step(law: PieLaw, state: PieState, delay_ns: int, backlog_bytes: int = 1) -> PieState:
    """State after one update at a queueing delay.

    Parameters
    ----------
    law : PieLaw
    state : PieState
    delay_ns : int
        Queueing delay that the queue reads [ns]; with `dq_rate_estimator` it reads the backlog instead.
    backlog_bytes : int
        Waiting [byte].
    """
    if not law.dq_rate_estimator:
        state = state._replace(qdelay=delay_ns >> 6)
    return pie_update(law, state, backlog_bytes)


def pie_update(law: PieLaw, state: PieState, backlog_bytes: int) -> PieState:
    """State after one update of the probability, from the delay that departures left in the state.

    Parameters
    ----------
    law : PieLaw
    state : PieState
    backlog_bytes : int
        Waiting, of the flow for fq_pie [byte], below 2^32.
    """
    if law.dq_rate_estimator:
        old = state.qdelay
        delay = u32(backlog_bytes << _RATE_SHIFT) // state.avg_dq_rate if state.avg_dq_rate else 0
        state = state._replace(qdelay_old=old)
    else:
        delay, old = state.qdelay, state.qdelay_old
    change = _change(law, state.prob, delay, old)
    prob = u64(state.prob + change)
    held = delay == 0 and backlog_bytes != 0
    if change > 0 and prob < state.prob:
        prob, held = PIE_ONE, True
    elif change <= 0 and prob > state.prob:
        prob = 0
    if delay == 0 and old == 0 and not held:
        prob -= prob // 64
    state = state._replace(prob=prob, qdelay=delay, backlog_old=backlog_bytes)
    low = delay < law.target_ticks // 2 and state.qdelay_old < law.target_ticks // 2
    if low and prob == 0 and (not law.dq_rate_estimator or state.avg_dq_rate > 0):
        state = PIE_START._replace(prob=prob, qdelay=delay, qdelay_old=state.qdelay_old, backlog_old=state.backlog_old)
    return state if law.dq_rate_estimator else state._replace(qdelay_old=delay)


def _change(law: PieLaw, prob: int, delay: int, old: int) -> int:
    alpha, beta = gains_in_effect(law.alpha, prob), gains_in_effect(law.beta, prob)
    change = s64(alpha * (delay - law.target_ticks) + beta * (delay - old))
    if change > PIE_ONE // 50 and prob >= PIE_ONE // 10:
        change = PIE_ONE // 100 * 2
    return s64(change + PIE_ONE // 50) if delay > _PANIC else change


def pie_drop_rate(probability: float) -> float:
    """Mean share of packets that is dropped at a constant probability p of PIE.

    The m-th packet is the first with m p >= .85, the M-th the first with M p >= 8.5. The number of packets from one
    drop to the next is m - 1 + (1 - (1 - p)^(M - m + 1))/p on average, some 1.85/p for small p.

    Parameters
    ----------
    probability : float
        From 0 to 1.

    Examples
    --------
    >>> f"{pie_drop_rate(0.01):.5f}, {pie_drop_rate(1.0):.5f}"
    '0.00544, 1.00000'
    """
    if probability <= 0.0:
        return 0.0
    prob = min(max(round(probability * PIE_ONE), 1), PIE_ONE)
    return drop_share(prob / PIE_ONE, float(_ceil_div(_SPARED, prob)), float(_ceil_div(_SURE, prob)))


def spread_chooses(total: float, p: float, draw: float) -> bool:
    """Whether a packet of probability p is chosen where choices are spread: by chance from a `total` of .85 on, which
    is the sum with it, and surely from 8.5 on."""
    return total >= 8.5 or (total >= 0.85 and draw < p)


def drop_share(p: float, first: float, sure: float) -> float:
    """Mean share of packets that is dropped: each with the probability p from the `first` after a drop on, surely at
    the number `sure`."""
    return 1.0 / (first - 1.0 + (1.0 - (1.0 - p) ** (sure - first + 1.0)) / p)


def _ceil_div(value: int, by: int) -> int:
    """Quotient of two positive integers, rounded up."""
    return -(-value // by)
