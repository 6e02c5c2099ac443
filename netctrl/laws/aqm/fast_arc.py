"""ARC extended for FAST senders: a virtual queue is the price; TCP is marked in proportion to it, FAST by REM's code.

Source: ARC paper, Algorithm 3, which leaves out the "1 −" (theory: REM, reference [6] of the paper).
"""

from __future__ import annotations

from typing import NamedTuple

from netctrl.laws.aqm.law import GAIN, UTILIZATION, QueueLaw, QueueRecord, Seen, clip
from netctrl.model.io.fields import Duration, Size, backlog, duration, number, read_fields


class FastArcQueue(QueueRecord, frozen=True, kw_only=True, tag="fast-arc"):
    """FAST-extended ARC: every epoch, q_v ← q_v + b − gamma (d C − (q − q0)); TCP is marked with alpha q_v,
    FAST with 1 − phi^(−q_v/(gamma C)) (REM's coding of the price q_v/(gamma C)).

    Source: ARC paper, Algorithm 3, which leaves out the "1 −" (theory: REM, reference [6] of the paper).
    """

    alpha: float = 1.42e-5
    """Gain [per packet]."""
    epoch: Duration = 1.0
    """d, from one update to the next [s]."""
    target_utilization: float = 0.98
    """gamma, share of the capacity that is aimed at."""
    target_queue: Size = 0.0
    """q0, backlog that is aimed at [byte]."""
    phi: float = 1.5
    """REM's constant, above 1; price in seconds."""

    def __post_init__(self) -> None:
        read_fields(self, alpha=GAIN, epoch=duration, target_utilization=UTILIZATION, target_queue=backlog)
        read_fields(self, phi=number("REM's constant, above 1, to 1e9", above=1.0, at_most=1e9))


class FastArcParameters(NamedTuple):
    """Parameters of ARC for FAST."""

    alpha: float
    """Gain [1/packet]"""
    utilization: float
    """Target utilization gamma"""
    target_queue: float
    """q0 [packet]"""
    phi: float
    """REM's constant"""


class FastArcState(NamedTuple):
    """State of ARC for FAST."""

    probability: float
    """Of marking a packet of TCP"""
    price: float
    """q_v/(gamma C) [s]"""
    fast_probability: float
    """Of marking a packet of FAST"""
    virtual_queue: float
    """q_v [packet], from 0 to 1/alpha, where TCP's probability saturates"""


def fast_arc_step(state: FastArcState, seen: Seen, p: FastArcParameters) -> FastArcState:
    """FAST-extended ARC: q_v <- q_v + b - gamma (d C - (q - q0)), price q_v/(gamma C) (ARC paper, Algorithm 3)."""
    excess = seen.backlog - p.target_queue
    queue = state.virtual_queue + seen.arrived - p.utilization * (seen.elapsed * seen.capacity - excess)
    queue = min(max(queue, 0.0), 1.0 / p.alpha)
    price = queue / (p.utilization * seen.capacity)
    return FastArcState(clip(p.alpha * queue), price, 1.0 - p.phi**-price, queue)


def _read(queue: FastArcQueue, packet: float, _: float) -> FastArcParameters:
    return FastArcParameters(queue.alpha, queue.target_utilization, queue.target_queue / packet, queue.phi)


FAST_ARC = QueueLaw(
    FastArcQueue, FastArcParameters, FastArcState, _read, fast_arc_step, epoch=lambda queue: queue.epoch
)
