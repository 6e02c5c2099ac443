"""BLUE: the marking probability rises while the queue is long and falls while the link is idle, a step a freeze time.

Source: Feng, Shin, Kandlur, Saha, "The BLUE active queue management algorithms", IEEE/ACM ToN 10 (2002), Figure 3, with
the queue's length for the event of a loss, as its Section III has it for marking.
"""

from typing import NamedTuple

from netctrl.laws.aqm.law import GAIN, QueueLaw, QueueRecord, Seen, clip
from netctrl.model.io.fields import Duration, Size, backlog, duration, read_fields


class BlueQueue(QueueRecord, frozen=True, kw_only=True, tag="blue"):
    """BLUE: at most once a freeze time, p rises by `increase` above `long_queue`, and falls by `decrease` if idle."""

    increase: float = 0.0025
    decrease: float = 0.00025
    freeze_time: Duration = 0.1
    long_queue: Size = 40e3

    def __post_init__(self) -> None:
        read_fields(self, increase=GAIN, decrease=GAIN, freeze_time=duration, long_queue=backlog)


class BlueParameters(NamedTuple):
    increase: float
    """d1"""
    decrease: float
    """d2"""
    freeze_time: float
    """Between two changes [s]"""
    long_queue: float
    """L [packet]"""


class BlueState(NamedTuple):
    probability: float
    """Of marking a packet"""
    waited: float
    """Since the last change [s]"""


def blue_step(state: BlueState, seen: Seen, p: BlueParameters) -> BlueState:
    """BLUE (Feng, Shin, Kandlur, Saha 2002, Figure 3)."""
    waited = state.waited + seen.elapsed
    if waited < p.freeze_time or (seen.backlog < p.long_queue and seen.backlog > 0.0):
        return BlueState(state.probability, waited)
    change = p.increase if seen.backlog > 0.0 else -p.decrease
    return BlueState(clip(state.probability + change), 0.0)


def _read(queue: BlueQueue, packet: float, _: float) -> BlueParameters:
    return BlueParameters(queue.increase, queue.decrease, queue.freeze_time, queue.long_queue / packet)


BLUE = QueueLaw(BlueQueue, BlueParameters, BlueState, _read, blue_step)
