"""Queue disciplines of links with several queues, as in files; run by the packet engine."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

import msgspec

from netctrl.core.errors import InvalidValue, checked_number
from netctrl.laws.aqm.codel import CodelQueue
from netctrl.laws.aqm.law import QueueRecord
from netctrl.laws.aqm.records import QUEUES, DropTailQueue, Queue
from netctrl.laws.l4s.dualpi2 import DualPi2Queue
from netctrl.model.io.fields import Duration, Size, duration, identifier, optional, read_fields, size, whole


class PrioQueue(QueueRecord, frozen=True, kw_only=True, tag="prio"):
    """Strict priorities: a packet is sent only while no band before its own has one.

    A packet for which the buffer has no room takes that of bands behind its own, from their head.
    """

    bands: int = 2
    """A flow's band is its `priority`, from 0, which is first; what is beyond them is in the last."""

    def __post_init__(self) -> None:
        read_fields(self, bands=whole(1, 64))


class DrrQueue(QueueRecord, frozen=True, kw_only=True, tag="drr"):
    """Deficit round robin: a queue for each flow, which get shares in the ratio of the flows' `weight`.

    Where the buffer has no room, the longest queue loses its first packet. Source: Shreedhar, Varghese, IEEE/ACM
    Transactions on Networking 4(3), 1996.
    """

    quantum: Size | None = None
    """What a flow of weight 1 may send in a round [byte]; null: a packet."""

    def __post_init__(self) -> None:
        read_fields(self, quantum=optional(size))


class WfqQueue(QueueRecord, frozen=True, kw_only=True, tag="wfq"):
    """Weighted fair queueing, self-clocked: a queue for each flow, in shares of the flows' `weight`.

    Each queue has a buffer of its own; what finds no room there is dropped. Source: `netctrl.laws.link`.
    """


class CbqQueue(QueueRecord, frozen=True, kw_only=True, tag="cbq"):
    """Class-based queueing: as `wfq`, with a queue for each class, of which each is sure of a share of the link."""

    shares: tuple[float, ...]
    """Of each class, in any ratio. A flow's class is its `priority`, from 0; what is beyond them is in the last."""

    def __post_init__(self) -> None:
        read_fields(self, shares=_shares)


class FqCodelQueue(QueueRecord, frozen=True, kw_only=True, tag="fq_codel"):
    """FQ-CoDel: flows are hashed to queues with a CoDel each, served in turn; a queue that was empty comes first.

    Where the buffer has no room, the longest queue loses its first packet. Source: RFC 8290.
    """

    target: Duration = 5e-3
    """CoDel's acceptable standing queueing delay [s]."""
    interval: Duration = 100e-3
    """CoDel's interval [s]."""
    quantum: Size | None = None
    """What a queue may send in a round [byte]; null: a packet."""
    buckets: int = 1024
    """Queues that flows are hashed to; 0: each flow has its own."""

    def __post_init__(self) -> None:
        read_fields(self, target=duration, interval=duration, quantum=optional(size), buckets=whole(0, 65536))


def _shares(field: str, value: Any) -> tuple[float, ...]:
    takes = "a list of 2 to 64 shares, each from 1e-6 to 1e6, in any ratio"
    if not isinstance(value, list | tuple) or not 2 <= len(value) <= 64:
        raise InvalidValue(field, value, takes)
    return tuple(
        checked_number(f"{field}[{k}]", each, takes, at_least=1e-6, at_most=1e6) for k, each in enumerate(value)
    )


class KernelQueue(QueueRecord, frozen=True, kw_only=True, tag="qdisc"):
    """A queueing discipline of the Linux kernel, whatever it does: `kernel` engine only, but `pie` on packets, too."""

    discipline: str
    """Name in tc(8), such as cake, fq_pie or dualpi2."""
    parameters: dict[str, float] = msgspec.field(default_factory=dict)
    """By their names in tc(8): times in seconds, sizes in bytes, flags as 0 or 1; the others are the kernel's
    defaults."""

    def __post_init__(self) -> None:
        read_fields(self, discipline=identifier)
        if not isinstance(self.parameters, dict):
            raise InvalidValue("parameters", self.parameters, "a table of names and numbers")
        for name, value in self.parameters.items():
            checked_number(f"parameters.{name}", value, "a number", at_least=0.0, at_most=2.0**32)


DISCIPLINES = (PrioQueue, WfqQueue, CbqQueue, DrrQueue, FqCodelQueue, DualPi2Queue)
"""With several queues; the packet engine runs them."""

LINK_QUEUES = (*QUEUES, *DISCIPLINES, KernelQueue)

LinkQueue: Any = reduce(or_, LINK_QUEUES) | str
"""Every kind of queue that a link may have; in a file, `kind` tells which."""


def queue_in(queue: LinkQueue) -> Queue:
    """Kind of each queue of a discipline; a single queue is returned unchanged."""
    if isinstance(queue, FqCodelQueue):
        return CodelQueue(target=queue.target, interval=queue.interval)
    return DropTailQueue() if isinstance(queue, (*DISCIPLINES, KernelQueue)) else queue
