"""COBALT, CAKE's CoDel: a count that falls while the delay is below the target. Source: Linux, net/sched/sch_cake.c.

Left out is its BLUE, which drops by chance once the queue's memory overflows.
"""

from __future__ import annotations

from math import sqrt

from netctrl.laws.aqm.codel import CodelParameters


class CobaltDrops:
    """State of COBALT's drops; zeros at first."""

    next_drop: float
    """[s]"""
    count: float
    """Drops since it began to drop, less those that time has taken back"""
    dropping: float
    """1: the delay is above the target"""


def cobalt_head(state: CobaltDrops, time: float, sojourn: float, p: CodelParameters) -> bool:
    """Whether the packet at the queue's head is dropped, or marked, instead of being sent; changes the state in place.

    The first is dropped an interval after the delay rose above the target, the next ones interval/√count after the one
    before. Below the target the count falls on the same schedule, so that who is soon above it goes on from there.

    Source: `cobalt_should_drop` there.
    """
    due = state.count > 0.0 and time >= state.next_drop
    if sojourn > p.target:
        if state.dropping == 0.0:
            state.dropping = 1.0
            state.next_drop = time + p.interval / sqrt(max(state.count, 1.0))
        state.count = max(state.count, 1.0)
    else:
        state.dropping = 0.0
    dropped = due and state.dropping == 1.0
    if dropped:
        state.count += 1.0
        state.next_drop += p.interval / sqrt(state.count)
    else:
        while due:
            state.count -= 1.0
            state.next_drop += p.interval / sqrt(max(state.count, 1.0))
            due = state.count > 0.0 and time >= state.next_drop
    if state.count == 0.0:
        state.next_drop = time + p.interval
    elif time > state.next_drop and not dropped:
        state.next_drop = time
    return dropped
