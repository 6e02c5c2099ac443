"""PIE: every update, p ← p + s(p) (alpha (D − target) + beta (D − D_old)), with the delay D = q/C. Source: RFC 8033."""

from __future__ import annotations

from typing import NamedTuple

from netctrl.laws.aqm.law import GAIN, GAIN_OR_0, QueueLaw, QueueRecord, Seen, clip
from netctrl.model.io.fields import Duration, duration, instant, read_fields


class PieQueue(QueueRecord, frozen=True, kw_only=True, tag="pie"):
    """PIE: every update, p ← p + s(p) (alpha (D − target) + beta (D − D_old)), with the delay D = q/C.

    Source: RFC 8033, Section 4.2 with its scaling s(p), its caps and its burst allowance.
    """

    target: Duration = 15e-3
    """Target of the queueing delay [s]."""
    update: Duration = 15e-3
    """From one update to the next [s]."""
    alpha: float = 0.125
    """Gain on the delay's error [1/s]."""
    beta: float = 1.25
    """Gain on the delay's change [1/s]."""
    burst: Duration = 150e-3
    """Burst allowance: how long a new queue is spared marks [s]."""

    def __post_init__(self) -> None:
        read_fields(self, target=duration, update=duration, alpha=GAIN, beta=GAIN_OR_0, burst=instant)


class PieParameters(NamedTuple):
    """Parameters of PIE."""

    target: float
    """Delay [s]"""
    alpha: float
    """Gain on the delay [1/s]"""
    beta: float
    """Gain on its change [1/s]"""
    burst: float
    """Allowance [s]"""


class PieState(NamedTuple):
    """State of PIE."""

    probability: float
    """Of marking a packet: 0 while a burst is spared"""
    drop_probability: float
    """RFC 8033's"""
    old_delay: float
    """Of the update before [s]"""
    burst_used: float
    """Of the burst allowance [s]"""


def pie_scale(p: float) -> float:
    """Gains are smaller while p is small (RFC 8033, Section 4.2)."""
    if p < 1e-6:
        return 1.0 / 2048.0
    if p < 1e-5:
        return 1.0 / 512.0
    if p < 1e-4:
        return 1.0 / 128.0
    if p < 1e-3:
        return 1.0 / 32.0
    if p < 1e-2:
        return 1.0 / 8.0
    if p < 1e-1:
        return 1.0 / 2.0
    return 1.0


def pie_step(state: PieState, seen: Seen, p: PieParameters) -> PieState:
    """PIE: p <- p + scale (alpha (D - target) + beta (D - D_old)) each update, D = q/C (RFC 8033, Section 4.2)."""
    delay = seen.backlog / seen.capacity
    rise = (p.alpha * (delay - p.target) + p.beta * (delay - state.old_delay)) * pie_scale(state.drop_probability)
    if state.drop_probability >= 0.1:
        rise = min(rise, 0.02)
    if delay > 0.25:
        rise = 0.02
    drop = clip(state.drop_probability + rise)
    if delay == 0.0 and state.old_delay == 0.0:
        drop = drop * 0.98
    used = min(state.burst_used + seen.elapsed, p.burst)
    if drop == 0.0 and delay < 0.5 * p.target and state.old_delay < 0.5 * p.target:
        used = 0.0
    spared = used < p.burst or (state.old_delay < 0.5 * p.target and drop < 0.2) or seen.backlog <= 2.0
    return PieState(0.0 if spared else drop, drop, delay, used)


def _read(queue: PieQueue, _: float, __: float) -> PieParameters:
    return PieParameters(queue.target, queue.alpha, queue.beta, queue.burst)


PIE = QueueLaw(PieQueue, PieParameters, PieState, _read, pie_step, epoch=lambda queue: queue.update)
