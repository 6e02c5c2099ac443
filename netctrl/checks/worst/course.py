"""The round trips of the network and of one or two flows' laws, as relations; time in RTTs without queue, data in
bandwidth-delay products.

What the link doesn't serve at once waits in order. A burst comes at any time within its round trip, at once: so the
link serves at least what it would without, and what is left of it is any part. Flows send evenly within a round trip.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from netctrl.checks.worst.laws import Seen, StepLaw
from netctrl.checks.worst.relations import Affine, Relations


class Course(NamedTuple):
    """What comes of all round trips."""

    served: list[Affine]
    """Of each flow."""
    left: Affine
    """What the link could have served but the bursts of which it did."""
    queues: list[Affine]
    """One of which is the longest."""
    holds: list[list[Affine]]
    """Of each flow's acknowledgements, by round trip."""
    bursts: list[Affine]


class _Flow(NamedTuple):
    """A flow after a round trip; data since the beginning, the newest last."""

    sent: list[Affine]
    served: list[Affine]
    heard: list[Affine]
    state: dict[str, Any]
    hold: Affine


def course(relations: Relations, law: StepLaw, flows: int, jitter: float, burst: float, round_trips: int) -> Course:
    """All round trips, from rest."""
    state, waits = law.rest(relations)
    rate = relations.constant(min(state["rate"].high, 1.0 / flows))
    nothing = relations.constant(0.0)
    each = [_Flow([waits - rate, waits], [-rate, nothing], [rate * -2.0, -rate], state, nothing)] * flows
    through, others, waiting = nothing, nothing, nothing  # of the link; bursts that came, and what waits of them
    queues, peaks, holds, bursts = [waits * flows], [], [], []
    for step in range(1, round_trips + 1):
        relations.part(round_trips + 1 - step)
        each = [_sent(relations, flow, relations.variable(0.0, jitter), burst) for flow in relations.alike(each)]
        bursts.append(relations.variable(0.0, burst) if burst > 0.0 else nothing)
        came = sum((flow.sent[-1] for flow in each), others) - through
        more = relations.minimum(came, relations.constant(1.0))
        if burst > 0.0:
            least, more = more, relations.variable(0.0, 1.0)
            relations.at_most(least, more)
            relations.at_most(more, came + bursts[-1])
        through, others = through + relations.settle(more, 0.0, 1.0), others + bursts[-1]
        queue = relations.settle(sum((flow.sent[-1] for flow in each), others) - through, 0.0)
        left, hidden = [queue], waiting
        if flows > 1 or burst > 0.0:
            *left, waiting = _left(relations, each, bursts[-1], waiting, queues[-1], queue)
        after = []
        for flow, still in relations.alike(zip(each, left, strict=True)):
            delivered = relations.settle(flow.heard[-1] - flow.heard[-2])
            queued = queues[-1]
            if burst > 0.0:  # the least RTT of a round trip may be that of a packet before the burst
                missed = relations.variable(0.0, max(hidden.high, 0.0))
                relations.at_most(missed, hidden)
                queued = queued - missed
            decided = law.decide(relations, flow.state, Seen(step, queued + flow.hold + 1.0, delivered))
            after.append(flow._replace(served=[flow.served[-1], flow.sent[-1] - still], state=decided))
        holds.append([flow.hold for flow in after])
        peaks += [queue] if burst == 0.0 else [queue, queues[-1] + bursts[-1]]
        queues.append(queue)
        each = after
        windows = [flow.state["window"] for flow in each if "window" in flow.state]
        if windows:  # by which searches over the newest parts know of the older ones
            relations.settle(sum(windows[1:], windows[0]) - queue)
    return Course([flow.served[-1] for flow in each], waiting - others + round_trips, peaks, holds, bursts)


def _sent(relations: Relations, flow: _Flow, hold: Affine, burst: float) -> _Flow:
    """What acknowledgements that are held tell a flow, and what it sends on them.

    Holds change once a round trip: a search finds more with holds that are timed to a part of it, but packets don't
    keep such times.
    """
    before, served = flow.served
    if burst == 0.0:
        back = relations.product(hold, served - before)  # held back: hold times the rate
    else:  # by a burst it may be served late in its round trip, at the capacity, or early
        back = relations.variable(0.0, hold.high)
        relations.at_most(back, hold)
        relations.at_most(back, served - before)
    heard = served - back
    relations.at_most(flow.heard[-1], heard)
    more = flow.state["rate"]
    if "window" in flow.state:
        room = relations.maximum(heard + flow.state["window"] - flow.sent[-1], relations.constant(0.0))
        more = relations.minimum(more, room)
    sent = flow.sent[-1] + relations.settle(more)
    return flow._replace(sent=[flow.sent[-1], sent], heard=[flow.heard[-1], heard], hold=hold)


def _left(
    relations: Relations, flows: list[_Flow], burst: Affine, waiting: Affine, before: Affine, queue: Affine
) -> list[Affine]:
    """What is queued of each flow, and of bursts, in order: of this round trip, in which flows send evenly, one share
    of what each sends, and any part of the burst; of what was queued before it nothing, up to what a round trip takes.
    """
    sent = [flow.sent[-1] - flow.sent[-2] for flow in flows]
    least = relations.settle(sum(sent[1:], sent[0])).low
    share = relations.variable(0.0, queue.high / max(queue.high, least))
    left = [relations.settle(relations.product(share, each), 0.0) for each in relations.alike(sent)]
    left.append(relations.variable(0.0, burst.high))
    relations.at_most(left[-1], burst)
    if before.high > 1.0:
        old = [relations.variable(0.0, before.high - 1.0) for _ in left]
        late = [*(flow.sent[-2] - flow.served[-1] for flow in flows), waiting]
        for each, most in zip(old, late, strict=True):
            relations.at_most(each, most)
        # at most max(before - 1, 0), below its chord
        slope = (before.high - 1.0) / (before.high - min(before.low, 1.0))
        relations.at_most(sum(old[1:], old[0]), (before - min(before.low, 1.0)) * slope)
        left = [relations.settle(new + each, 0.0) for new, each in zip(left, old, strict=True)]
    relations.equal(sum(left[1:], left[0]), queue)
    return left
