"""A group of flows around the equilibrium of a network: shares of links' rates, and delays of its marks."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any

from netctrl.plants.queue_networks.equilibrium import NetworkEquilibrium
from netctrl.plants.queues.clocked_response import ClockedMode
from netctrl.plants.queues.cubic_response import CubicMode
from netctrl.plants.queues.window_response import Sender

__all__ = ["GroupResponse", "group_response"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupResponse:
    """A group of flows around the equilibrium; tables have a row for each queueing link of its path.

    Numbers are floats, or functions over cells (`netctrl.plants.queues.mean_value`).

    Parameters
    ----------
    sender : Sender
    trip : float
        R [s].
    damping : float
        a/w.
    mode : CubicMode or ClockedMode, optional
        Of a sender with a curve.
    at : tuple of int
        Places of the links in the network's order.
    shares : tuple of float
        y.
    queued : tuple of bool
        Whether the group waits in the queue that the law reads.
    ahead : tuple of float
        g [s].
    back : tuple of float
        m [s].
    marks : tuple of float
        r · n; 0 where the link doesn't mark.
    """

    sender: Sender
    trip: Any
    damping: Any
    at: tuple[int, ...]
    shares: tuple[Any, ...]
    queued: tuple[bool, ...]
    ahead: tuple[float, ...]
    back: tuple[Any, ...]
    marks: tuple[Any, ...]
    mode: CubicMode | ClockedMode | None = None


def group_response(found: NetworkEquilibrium, number: int) -> GroupResponse:
    """A group's response at the queueing links of its path."""
    group, order = found.network.groups[number], found.order
    trip, marked = float(found.trips[number]), float(found.marked[number])
    rate = group.flows * float(found.windows[number]) / trip
    at, shares, queued, ahead, back, marks = [], [], [], [], [], []
    first, passed = None, 0.0
    for k, seen in zip(group.path, group.seen, strict=True):
        link = found.network.links[k]
        if k in order:
            first = passed if first is None else first
            p = found.probability(group, k)
            leaving = float(seen.wait(found.delays[k])) if link.marked_leaving else 0.0
            at.append(order.index(k))
            shares.append(rate / link.rate)
            queued.append(seen.queued)
            ahead.append(passed - first)
            back.append(trip - (passed - first) - leaving)
            marks.append(p / marked * (1.0 - marked) / (1.0 - p) * seen.power)
        passed += link.delay_s + (float(found.delays[k]) if seen.queued else seen.other_delay_s)
    return GroupResponse(
        sender=group.sender,
        trip=trip,
        damping=group.sender.increase / float(found.windows[number]),
        at=tuple(at),
        shares=tuple(shares),
        queued=tuple(queued),
        ahead=tuple(ahead),
        back=tuple(back),
        marks=tuple(marks),
        mode=group.sender.mode(log(marked), log(trip))[1] if marked > 0.0 else None,
    )
