"""Every kind of queue, as files have it, and the law of each. Gains are per packet of the scenario's size."""

from __future__ import annotations

from typing import get_args

from netctrl.laws.aqm.arc import ARC, ArcQueue
from netctrl.laws.aqm.avq import AVQ, AvqQueue
from netctrl.laws.aqm.codel import CODEL, CodelQueue
from netctrl.laws.aqm.fast_arc import FAST_ARC, FastArcQueue
from netctrl.laws.aqm.law import QueueLaw, QueueRecord
from netctrl.laws.aqm.pi import PI, PiQueue
from netctrl.laws.aqm.pie import PIE, PieQueue
from netctrl.laws.aqm.red import RED, RedQueue
from netctrl.laws.aqm.sfc import SFC, SfcQueue

__all__ = ["LAWS", "QUEUES", "DesignQueue", "DropTailQueue", "Queue", "law_record"]


class DropTailQueue(QueueRecord, frozen=True, kw_only=True, tag="droptail"):
    """A buffer and nothing else."""


class DesignQueue(QueueRecord, frozen=True, kw_only=True, tag="design"):
    """A place for the law of a Design file: `--design FILE`."""


Queue = (
    ArcQueue
    | FastArcQueue
    | PiQueue
    | AvqQueue
    | SfcQueue
    | RedQueue
    | PieQueue
    | CodelQueue
    | DropTailQueue
    | DesignQueue
)
"""Every kind of queue; in a file, `kind` tells which."""

QUEUES = get_args(Queue)

LAWS = (ARC, FAST_ARC, PI, AVQ, SFC, RED, PIE, CODEL)


def law_record(queue: Queue) -> QueueLaw | None:
    """The law of a queue; None of drop-tail, and of a place that a Design is to fill."""
    return next((law for law in LAWS if law.record is type(queue)), None)
