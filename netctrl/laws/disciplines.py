"""Queue disciplines: links with several queues, as files have them. The packet engine runs them."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from netctrl.laws.aqm.codel import CodelQueue
from netctrl.laws.aqm.law import QueueRecord
from netctrl.laws.aqm.records import QUEUES, DropTailQueue, Queue
from netctrl.model.io.fields import Duration, Size, duration, optional, read_fields, size, whole

__all__ = ["DISCIPLINES", "LINK_QUEUES", "DrrQueue", "FqCodelQueue", "LinkQueue", "PrioQueue", "queue_in"]


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


class FqCodelQueue(QueueRecord, frozen=True, kw_only=True, tag="fq_codel"):
    """FQ-CoDel: flows are hashed to queues with a CoDel each, served in turn; a queue that was empty comes first.

    Where the buffer has no room, the longest queue loses its first packet. Source: RFC 8290.
    """

    target: Duration = 5e-3
    interval: Duration = 100e-3
    quantum: Size | None = None
    """What a queue may send in a round [byte]; null: a packet."""
    buckets: int = 1024
    """Queues that flows are hashed to; 0: each flow has its own."""

    def __post_init__(self) -> None:
        read_fields(self, target=duration, interval=duration, quantum=optional(size), buckets=whole(0, 65536))


DISCIPLINES = (PrioQueue, DrrQueue, FqCodelQueue)

LINK_QUEUES = (*QUEUES, *DISCIPLINES)

LinkQueue: Any = reduce(or_, LINK_QUEUES)
"""Every kind of queue that a link may have; in a file, `kind` tells which."""


def queue_in(queue: LinkQueue) -> Queue:
    """The kind of each of a discipline's queues; another queue as it is."""
    if isinstance(queue, FqCodelQueue):
        return CodelQueue(target=queue.target, interval=queue.interval)
    return DropTailQueue() if isinstance(queue, DISCIPLINES) else queue
