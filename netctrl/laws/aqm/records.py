"""Records of all kinds of queues in files, and their laws, including those of other packages' entry points."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from netctrl.core.register import QUEUE_LAWS
from netctrl.laws.aqm.law import QueueLaw, QueueRecord


class DropTailQueue(QueueRecord, frozen=True, kw_only=True, tag="droptail"):
    """A buffer and nothing else."""


class DesignQueue(QueueRecord, frozen=True, kw_only=True, tag="design"):
    """A place for the law of a Design file: `--design FILE`."""


LAWS: tuple[QueueLaw, ...] = tuple(QUEUE_LAWS[name] for name in QUEUE_LAWS.usable())
"""Ours first."""

QUEUES = (*(law.record for law in LAWS), DropTailQueue, DesignQueue)

Queue: Any = reduce(or_, QUEUES) | str
"""Every kind of queue; in a file, `kind` tells which."""


def law_record(queue: QueueRecord) -> QueueLaw | None:
    """Law of a queue; None for drop-tail, and for a queue that a Design is to fill."""
    return next((law for law in LAWS if law.record is type(queue)), None)
