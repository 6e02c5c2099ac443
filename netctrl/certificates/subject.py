"""Laws that `netctrl certify` judges, as subjects: the common interface, and PI laws on a queue's delay.

A subject makes loops of a law and classes of flows. Its output x is what the law computes; a class of flows sees marks
with the probability p = factor x^power (`seen_by`):

- a law that marks or drops by x itself has factor 1 and power 1;
- one that squares it for classic flows, and couples it to scalable ones, power 2, and factor k with power 1 (RFC 9332);
- one that spaces its drops, so that only a share 1/thinning of x is dropped, factor 1/thinning.

A PI law moves its output every T seconds by the queue's delay D,

    x⁺ = x + integral (D − target) + proportional (D − D_old),

with gains that may be scaled in steps of x; `PiSubject.rungs` are the ranges of x with constant gains, and each gives a
loop. Gains are those in effect, after the implementation's own rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import NamedTuple, Protocol

from netctrl.core.errors import checked_number
from netctrl.core.units import TIMES, checked_quantity
from netctrl.laws.aqm.delay_pi import DelayPi
from netctrl.laws.targets.reading import DelayReading
from netctrl.plants.queues.queue_laws import SampledPi, WindowClass
from netctrl.plants.queues.queue_loop import QueueLoop
from netctrl.plants.queues.window_response import Sender


class LinearLaw(NamedTuple):
    """Continuous law from the queueing delay to the output, gain · Π(1 + z s)/(sᵐ Π(1 + T s))."""

    gain: float
    """[1/s^(1 + m)]"""
    integrators: int
    lags: tuple[float, ...]
    """T [s]"""
    leads: tuple[float, ...]
    """z [s]"""


class Subject(Protocol):
    """A queue's law that can be certified."""

    @property
    def name(self) -> str: ...

    @property
    def implementation(self) -> str:
        """Whose arithmetic."""

    @property
    def parameters(self) -> Mapping[str, float | int | str | bool]:
        """Arguments of the function that makes the subject, in SI units."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Effects that the loop leaves out."""

    @property
    def in_bytes(self) -> bool:
        """Whether thresholds are in bytes, so that more than the rate per flow counts."""

    @property
    def target_s(self) -> float:
        """Standing delay of the queue at every load; 0 where it depends on the load [s]."""

    @property
    def greatest(self) -> float:
        """Output beyond which the law acts differently."""

    @property
    def beyond(self) -> str:
        """What it does there."""

    @property
    def gains(self) -> dict[str, float]:
        """As computed, for the certificate."""

    @property
    def read(self) -> str:
        """Which delay the law reads, in words."""

    @property
    def marked(self) -> str:
        """Where packets are marked or dropped, in words."""

    @property
    def drops(self) -> bool:
        """Whether packets are dropped and not marked."""

    @property
    def per_flow(self) -> bool:
        """Whether each flow has a queue of its own, with its share of the rate."""

    @property
    def jumps(self) -> bool:
        """Whether the law jumps, so that its loop bounds it and doesn't tell how the queue moves."""

    def seen_by(self, sender: Sender) -> WindowClass:
        """All flows of one sender under this law."""

    def loops(self, classes: tuple[WindowClass, ...], rate: float, packet_bytes: float) -> list[QueueLoop]:
        """One loop for each range of the output with gains of its own; the rate in packets a second."""

    def usual(self, sender: Sender, p: float, rate: float, packet_bytes: float) -> tuple[float, LinearLaw]:
        """Output at a sender's marking probability, and the law there, as they are usually given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PiSubject:
    """PI law on a queue's delay, with what its implementation makes of it."""

    name: str
    implementation: str
    parameters: Mapping[str, float | int | str | bool]
    """As given, in SI units: arguments of the function that makes the subject."""
    nominal: DelayPi
    """Gains, target and interval as given, before any arithmetic."""
    rungs: tuple[tuple[float, float, DelayPi], ...]
    """(from, to, gains in effect) for ranges of the law's output."""
    unscaled: DelayPi | None = None
    """Gains in effect where nothing scales them; None: those of the last range."""
    power: float = 1.0
    """Of the output in the probability of classic flows."""
    coupling: float = 1.0
    """Factor of the output in the probability of scalable flows."""
    apart: bool = False
    """Whether scalable flows wait in a queue of their own, which is served first."""
    apart_delay_s: float = 0.0
    """Delay of that queue: its step [s]."""
    thinning: float = 1.0
    """Output over probability."""
    per_bytes: float | None = None
    """Packet size at which that holds; the probability of others is in proportion to their size [byte]. None: all."""
    reading: DelayReading = DelayReading.BACKLOG
    marked_leaving: bool = False
    greatest: float = 1.0
    """Output beyond which the law acts differently."""
    beyond: str = "it acts otherwise"
    drops: bool = False
    """Whether packets are dropped and not marked."""
    per_flow: bool = False
    """Whether each flow has a queue of its own, with its share of the rate."""
    jumps: bool = False
    """Whether the law jumps, and its gains are those of the steepest secant."""
    notes: tuple[str, ...] = field(default=())
    in_bytes: bool = False

    @property
    def sampled(self) -> DelayPi:
        """Gains in effect where nothing scales them."""
        return self.unscaled or self.rungs[-1][2]

    @property
    def target_s(self) -> float:
        """Standing delay of the queue [s]."""
        return self.nominal.target_s

    @property
    def gains(self) -> dict[str, float]:
        """As computed where nothing scales them, and the time between updates."""
        gains = self.sampled
        return {"integral": gains.integral, "proportional": gains.proportional, "update": gains.update_s}

    @property
    def read(self) -> str:
        """Which delay the law reads, in words."""
        return self.reading.value

    @property
    def marked(self) -> str:
        """Where packets are marked or dropped, in words."""
        return "as packets leave" if self.marked_leaving else "as packets come"

    def seen_by(self, sender: Sender) -> WindowClass:
        """All flows of one sender under this law."""
        queued = not (self.apart and sender.scalable)
        coupled = sender.scalable and self.power != 1.0
        return WindowClass(
            sender,
            factor=(self.coupling if coupled else 1.0) / self.thinning,
            power=1.0 if sender.scalable else self.power,
            queued=queued,
            other_delay_s=0.0 if queued else self.apart_delay_s,
        )

    def loops(self, classes: tuple[WindowClass, ...], rate: float, packet_bytes: float) -> list[QueueLoop]:
        """One loop for each range of the output with gains of its own.

        Parameters
        ----------
        classes : tuple of WindowClass
        rate, packet_bytes : float
            C [packet/s], and the size of packets [byte].
        """
        if self.per_bytes is not None:
            classes = tuple(k._replace(factor=k.factor * packet_bytes / self.per_bytes) for k in classes)
        found = []
        for low, high, gains in self.rungs:
            law = SampledPi(gains.integral, gains.proportional, gains.update_s, gains.target_s)
            if self.thinning != 1.0:  # the first packet that may be dropped has a whole number: half a packet later
                law = law._replace(spaced=0.5 * classes[0].factor)
            if law.reached(low) == inf:
                break
            found.append(
                QueueLoop(
                    classes,
                    law,
                    rate,
                    age_queues=self.reading.age_s(1.0),
                    marked_leaving=self.marked_leaving,
                    within=(law.reached(low), law.reached(high)),
                )
            )
        return found

    def usual(self, sender: Sender, p: float, rate: float, packet_bytes: float) -> tuple[float, LinearLaw]:
        """Output at a sender's marking probability, and the law there, as they are usually given: in continuous time,
        x = (integral/T)(1 + s proportional T/integral)/s (D − target), with the nominal gains scaled as at x.

        Parameters
        ----------
        sender : Sender
        p : float
            Its marking probability.
        rate, packet_bytes : float
            C [packet/s], and the size of packets [byte].
        """
        kind, law = self.seen_by(sender), self.nominal
        x = (p / (kind.factor * self.thinning)) ** (1.0 / kind.power)
        held = min(x, self.rungs[-1][1])
        scale = next(g.integral for low, high, g in self.rungs if low <= held <= high) / self.sampled.integral
        leads = (law.proportional * law.update_s / law.integral,) if law.proportional else ()
        return x, LinearLaw(scale * law.integral / law.update_s, 1, (), leads)


def nominal_pi(target_s: float, tupdate_s: float, alpha: float, beta: float) -> DelayPi:
    """A PI law as given: target and time between updates [s], gains [1/s]; InvalidValue where one isn't above 0.

    Parameters
    ----------
    target_s, tupdate_s : float
        Target of the delay, and time between updates [s].
    alpha, beta : float
        Integral and proportional gain of an update [1/s].
    """
    checked_quantity("target", target_s, "a delay above 0 in seconds", TIMES)
    checked_quantity("tupdate", tupdate_s, "a time above 0 in seconds", TIMES)
    checked_number("alpha", alpha, "a gain above 0 in 1/s", above=0.0)
    checked_number("beta", beta, "a gain of at least 0 in 1/s", at_least=0.0)
    return DelayPi(integral=alpha, proportional=beta, update_s=tupdate_s, target_s=target_s)


def scaled(gains: DelayPi, factor: float) -> DelayPi:
    """Both gains times a factor."""
    return replace(gains, integral=gains.integral * factor, proportional=gains.proportional * factor)
