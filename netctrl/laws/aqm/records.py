"""Every kind of queue, as files have it, and the law of each: ours, and those of other packages' entry points."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from netctrl.laws.aqm.codel import CodelQueue
from netctrl.laws.aqm.law import QueueLaw, QueueRecord
from netctrl.model.io.fields import Duration, Size, duration, optional, read_fields, size, whole
from netctrl.register import QUEUE_LAWS

__all__ = [
    "DISCIPLINES",
    "LAWS",
    "LINK_QUEUES",
    "QUEUES",
    "DesignQueue",
    "DropTailQueue",
    "DrrQueue",
    "FqCodelQueue",
    "LinkQueue",
    "PrioQueue",
    "Queue",
    "law_record",
    "queue_in",
]


class DropTailQueue(QueueRecord, frozen=True, kw_only=True, tag="droptail"):
    """A buffer and nothing else."""


class DesignQueue(QueueRecord, frozen=True, kw_only=True, tag="design"):
    """A place for the law of a Design file: `--design FILE`."""


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


LAWS: tuple[QueueLaw, ...] = tuple(QUEUE_LAWS[name] for name in QUEUE_LAWS)
"""Ours first."""

QUEUES = (*(law.record for law in LAWS), DropTailQueue, DesignQueue)

Queue: Any = reduce(or_, QUEUES)
"""Every kind of one queue; in a file, `kind` tells which."""

DISCIPLINES = (PrioQueue, DrrQueue, FqCodelQueue)

LINK_QUEUES = (*QUEUES, *DISCIPLINES)

LinkQueue: Any = reduce(or_, LINK_QUEUES)
"""Every kind of queue that a link may have; in a file, `kind` tells which."""


def law_record(queue: QueueRecord) -> QueueLaw | None:
    """The law of a queue; None of drop-tail, and of a place that a Design is to fill."""
    return next((law for law in LAWS if law.record is type(queue)), None)


def queue_in(queue: LinkQueue) -> Queue:
    """The kind of each of a discipline's queues; another queue as it is."""
    if isinstance(queue, FqCodelQueue):
        return CodelQueue(target=queue.target, interval=queue.interval)
    return DropTailQueue() if isinstance(queue, DISCIPLINES) else queue
