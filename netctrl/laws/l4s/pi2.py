"""PI2: a PI law on the delay sets p'; classic packets are marked with p'², those of scalable senders with k p'.

A classic window is about √(2/p) packets, a scalable one 2/p: with p'² and k p' they are √2/p' and 2/(k p').
Sources: De Schepper et al., "PI²: A linearized AQM for both classic and scalable TCP", CoNEXT 2016; RFC 9332.
"""

from __future__ import annotations

from typing import NamedTuple

from netctrl.laws.aqm.law import GAIN, GAIN_OR_0, QueueLaw, QueueRecord, Seen, clip
from netctrl.model.io.fields import Duration, duration, number, read_fields

COUPLING = number("a coupling factor from 1 to 255, as in 2", at_least=1.0, at_most=255.0)


class Pi2Queue(QueueRecord, frozen=True, kw_only=True, tag="pi2"):
    """PI2: every update, p' ← p' + alpha (D − target) + beta (D − D_old), with the delay D = q/C.

    Classic packets are marked, or dropped, with p'², packets of scalable senders with k p'. Source: De Schepper et al.,
    CoNEXT 2016, Section 4; defaults of RFC 9332, Appendix A, in the form of Linux's dualpi2.
    """

    target: Duration = 15e-3
    """Target of the queueing delay [s]."""
    update: Duration = 16e-3
    """From one update to the next [s]."""
    alpha: float = 0.16
    """Gain on the delay's error [1/s]."""
    beta: float = 3.2
    """Gain on the delay's change [1/s]."""
    coupling: float = 2.0
    """k: packets of scalable senders are marked with k p'."""

    def __post_init__(self) -> None:
        read_fields(self, target=duration, update=duration, alpha=GAIN, beta=GAIN_OR_0, coupling=COUPLING)


class Pi2Parameters(NamedTuple):
    """Parameters of PI2."""

    target: float
    """Delay [s]"""
    alpha: float
    """Gain on the delay [1/s]"""
    beta: float
    """Gain on its change [1/s]"""
    coupling: float
    """k"""


class Pi2State(NamedTuple):
    """State of PI2."""

    probability: float
    """Of marking a classic packet, p'²"""
    scalable_probability: float
    """Of marking a packet of a scalable sender, k p', at most 1"""
    base_probability: float
    """p'"""
    old_delay: float
    """Of the update before [s]"""


def pi2_base(base: float, delay: float, old_delay: float, target: float, alpha: float, beta: float) -> float:
    """p' <- p' + alpha (D - target) + beta (D - D_old), from 0 to 1 (RFC 9332, Appendix A)."""
    return clip(base + alpha * (delay - target) + beta * (delay - old_delay))


def pi2_step(state: Pi2State, seen: Seen, p: Pi2Parameters) -> Pi2State:
    """PI2: p' from D = q/C; p'^2 for classic packets, k p' for those of scalable senders (De Schepper et al. 2016)."""
    delay = seen.backlog / seen.capacity
    base = pi2_base(state.base_probability, delay, state.old_delay, p.target, p.alpha, p.beta)
    return Pi2State(base * base, min(p.coupling * base, 1.0), base, delay)


def _read(queue: Pi2Queue, _: float, __: float) -> Pi2Parameters:
    return Pi2Parameters(queue.target, queue.alpha, queue.beta, queue.coupling)


PI2 = QueueLaw(Pi2Queue, Pi2Parameters, Pi2State, _read, pi2_step, epoch=lambda queue: queue.update)
