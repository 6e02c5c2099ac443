"""CoDel: after the delay has been above target for an interval, a mark every interval/√count. Source: RFC 8289.

On packets it chooses at the head of the queue, `codel_head`, as does COBALT, CAKE's CoDel, whose count falls while the
delay is below the target; its BLUE, for flows that don't respond, is left out. In a fluid the marks are spread over the
packets of the time between two of them, `codel_step`; where a fluid's queue drops packets,
`netctrl.sim.fluid.paced_kernel`.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from netctrl.laws.aqm.law import HeadLaw, QueueLaw, QueueRecord, Seen
from netctrl.model.io.fields import Duration, duration, read_fields


class CodelQueue(QueueRecord, frozen=True, kw_only=True, tag="codel"):
    """CoDel: once the delay has stood above target for an interval, a mark each interval/√count.

    Source: RFC 8289; the fluid model spreads the marks over the packets of the time between two of them.
    """

    target: Duration = 5e-3
    """Acceptable standing queueing delay [s]."""
    interval: Duration = 100e-3
    """How long the delay has to stand above `target` before the first mark [s]."""

    def __post_init__(self) -> None:
        read_fields(self, target=duration, interval=duration)


class CodelParameters(NamedTuple):
    """Parameters of CoDel."""

    target: float
    """Delay [s]"""
    interval: float
    """[s]"""
    cobalt: float = 0.0
    """1: COBALT on packets"""


def raised(p: CodelParameters, rate: float) -> CodelParameters:
    """COBALT's times below CAKE's shaper of `rate` packets a second: the target is at least 1.5 packets, the interval
    two targets, and nothing that waits for less than four packets is dropped.

    Source: `cake_set_rate` of Linux, net/sched/sch_cake.c.
    """
    target = max(p.target, 1.5 / rate)
    return CodelParameters(max(target, 4.0 / rate), max(p.interval + target - p.target, 2.0 * target), 1.0)


class CodelState(NamedTuple):
    """State of CoDel."""

    probability: float
    """Of marking a packet"""
    above: float
    """Time above target [s]"""
    count: float
    """Marks since"""


def codel_step(state: CodelState, seen: Seen, p: CodelParameters) -> CodelState:
    """CoDel-like: after an interval above target, sqrt(count)/interval marks a second among C packets that leave."""
    if seen.backlog / seen.capacity < p.target or seen.backlog <= 1.0:
        return CodelState(0.0, 0.0, max(state.count - 2.0, 1.0) if state.count > 0.0 else 0.0)
    above = state.above + seen.elapsed
    if above < p.interval:
        return CodelState(state.probability, above, state.count)
    count = max(state.count, 1.0)
    marks = sqrt(count) / p.interval
    return CodelState(min(marks / seen.capacity, 1.0), above, count + marks * seen.elapsed)


class CodelDrops:
    """State of CoDel's drops, or COBALT's; zeros at first."""

    first_above: float
    """When the sojourn time will have been above the target for an interval; 0: it isn't above [s]"""
    next_drop: float
    """[s]"""
    count: float
    """Drops since it began to drop; of COBALT less those that time has taken back"""
    last_count: float
    """The same, when it began"""
    dropping: float
    """1: yes; of COBALT, the delay is above the target"""


_RECENT = 16.0  # intervals: whoever drops again so soon goes on where it was


def codel_head(state: CodelDrops, time: float, sojourn: float, alone: bool, p: CodelParameters) -> bool:
    """Whether the packet at the queue's head is dropped, or marked, instead of being sent; changes the state in place.

    The first is dropped once the sojourn time was above the target for an interval, the next ones interval/√count after
    the one before, until it is below. A packet that is all that waits (`alone`) stays.

    COBALT's next ones are on the same schedule, and below the target its count falls on it, too, so that who is soon
    above it goes on from there.

    Source: RFC 8289, sections 5.3 to 5.6; `cobalt_should_drop` of the same file.
    """
    if p.cobalt > 0.0:
        due = state.count > 0.0 and time >= state.next_drop
        if sojourn > p.target:
            if state.dropping == 0.0:
                state.dropping = 1.0
                state.next_drop = time + p.interval / sqrt(max(state.count, 1.0))
            state.count = max(state.count, 1.0)
        else:
            state.dropping = 0.0
        chosen = due and state.dropping == 1.0
        if chosen:
            state.count += 1.0
            state.next_drop += p.interval / sqrt(state.count)
        else:
            while due:
                state.count -= 1.0
                state.next_drop += p.interval / sqrt(max(state.count, 1.0))
                due = state.count > 0.0 and time >= state.next_drop
        if state.count == 0.0:
            state.next_drop = time + p.interval
        elif time > state.next_drop and not chosen:
            state.next_drop = time
        return chosen and not alone
    if sojourn < p.target or alone:
        state.first_above = 0.0
        state.dropping = 0.0
        return False
    if state.first_above == 0.0:
        state.first_above = time + p.interval
        return False
    if state.dropping == 0.0:
        if time < state.first_above:
            return False
        state.dropping = 1.0
        since = state.count - state.last_count
        again = since > 1.0 and time - state.next_drop < _RECENT * p.interval
        state.count = since if again else 1.0
        state.last_count = state.count
        state.next_drop = time + p.interval / sqrt(state.count)
        return True
    if time >= state.next_drop:
        state.count += 1.0
        state.next_drop += p.interval / sqrt(state.count)
        return True
    return False


def _read(queue: CodelQueue, _: float, __: float) -> CodelParameters:
    return CodelParameters(queue.target, queue.interval)


CODEL = QueueLaw(CodelQueue, CodelParameters, CodelState, _read, codel_step, head=HeadLaw(CodelDrops, codel_head))
