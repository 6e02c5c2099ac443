"""RED and WRED for `netctrl certify`: marks in proportion to a queue's length, averaged or not, between two thresholds.

A line of RED is p = slope (average − start) in bytes. In Linux and in Floyd and Jacobson's RED marks are spaced, and
2p/(1 + p) of packets are marked (`netctrl.laws.targets.red`); the share that is marked is the law's output here, and
its local rise is the loop's gain. WRED of switches chooses packets independently, by the present queue.

"Gentle" RED rises from P at the upper threshold to 1 at twice the threshold (Floyd, "Recommendation on using the
'gentle_' variant of RED", 2000); Linux marks or drops every packet from the upper threshold on. Adaptive RED moves P
between .01 and .5 (Floyd, Gummadi, Shenker, "Adaptive RED", 2001; Linux, include/net/red.h, red_adaptative_algo), much
slower than the queue: the loop is looked at for values of P over this range.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, log1p
from typing import NamedTuple

import numpy as np

from netctrl.certificates.subject import LinearLaw
from netctrl.core.errors import InvalidValue
from netctrl.laws.targets.red import RedLaw
from netctrl.laws.targets.wred import WredLaw
from netctrl.plants.queues.queue_laws import Averaged, WindowClass
from netctrl.plants.queues.queue_loop import QueueLoop
from netctrl.plants.queues.window_response import Sender

_ADAPTED = tuple(float(p) for p in np.geomspace(0.01, 0.5, 9))
"""Probabilities at the upper threshold between which adaptive RED moves."""
_ONE = 2**32
_STEP = "more than min: with equal thresholds the law is a step, which no linear loop describes"


class RedLine(NamedTuple):
    """Probability that rises with the queue, p = slope (queue − start), from one value to another."""

    slope: float
    """[1/byte]"""
    start_bytes: float
    """Where it would be 0; may be below 0 for a line that begins above 0."""
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RedSubject:
    """Law by thresholds of a queue in bytes."""

    name: str
    implementation: str
    parameters: Mapping[str, float | int | str | bool]
    lines: tuple[RedLine, ...]
    """The last one leads to the greatest output."""
    weight: float = 1.0
    """Of an arrival in the average; 1: the present queue."""
    spaced: bool = False
    """Whether 2p/(1 + p) of packets are marked."""
    drops: bool = False
    """Whether packets are dropped and not marked."""
    per_flow: bool = False
    jumps: bool = False
    beyond: str = "every packet is marked or dropped"
    notes: tuple[str, ...] = ()
    in_bytes: bool = True
    target_s: float = 0.0
    """The standing delay depends on the load."""
    marked: str = "as packets come"

    @property
    def marks(self) -> list[tuple[float, float]]:
        """Points (queue [byte], probability) of the law, straight in between; two at one queue are a jump."""
        ends = [[(line.start_bytes + p / line.slope, p) for p in (line.low, line.high)] for line in self.lines]
        points = [point for line in ends for point in line]
        return points if points[-1][1] >= 1.0 else [*points, (points[-1][0], 1.0)]

    @property
    def steps(self) -> bool:
        """Whether the thresholds are equal, so that no linear loop describes the law."""
        return self.lines[0].slope == inf

    @property
    def greatest(self) -> float:
        """Share of packets that is marked at the end of the last line."""
        return self._share(self.lines[-1].high)

    @property
    def gains(self) -> dict[str, float]:
        """Slope of the steepest line and the weight."""
        slope = {} if self.steps else {"slope_per_byte": max(line.slope for line in self.lines)}
        return {**slope, "weight": self.weight}

    @property
    def read(self) -> str:
        """Which queue the law reads, in words."""
        return "queue at the packet's arrival" if self.weight == 1.0 else "average of the queue at packets' arrivals"

    def seen_by(self, sender: Sender) -> WindowClass:
        """All flows of one sender: all senders see the same probability."""
        return WindowClass(sender)

    def loops(self, classes: tuple[WindowClass, ...], rate: float, packet_bytes: float) -> list[QueueLoop]:
        """One loop for each line; the rate in packets a second. InvalidValue for a step.

        Parameters
        ----------
        classes : tuple of WindowClass
        rate, packet_bytes : float
            C [packet/s], and the size of packets [byte].
        """
        if self.steps:
            takes = f"{_STEP}: judged in time for dctcp alone, with ecn"
            raise InvalidValue("max", self.parameters["max_bytes"], takes)
        return [
            QueueLoop(
                classes,
                self._averaged(line, rate, packet_bytes),
                rate,
                age_s=0.5 / rate,
                within=(self._share(line.low), self._share(line.high)),
            )
            for line in self.lines
        ]

    def usual(self, sender: Sender, p: float, rate: float, packet_bytes: float) -> tuple[float, LinearLaw]:
        """The probability, and the steepest line as in Hollot, Misra, Towsley, Gong (INFOCOM 2001): no spacing.

        Parameters
        ----------
        sender : Sender
        p : float
            Its marking probability.
        rate, packet_bytes : float
            C [packet/s], and the size of packets [byte].
        """
        line = max(self.lines, key=lambda each: each.slope)
        law = self._averaged(line, rate, packet_bytes)
        return p, LinearLaw(law.slope, 0, () if law.corner == inf else (1.0 / law.corner,), ())

    def _share(self, p: float) -> float:
        """Share of packets that is marked: with a mark after 1 to 1/p packets, evenly, their mean distance is
        (1 + 1/p)/2, so 2p/(1 + p) of packets are marked."""
        return 2.0 * p / (1.0 + p) if self.spaced else p

    def _averaged(self, line: RedLine, rate: float, packet_bytes: float) -> Averaged:
        """The line over the queue's delay, and the average as a lag: at each packet (1 − weight) of it stays, so it
        forgets at the rate −ln(1 − weight) C."""
        bytes_a_second = rate * packet_bytes
        corner = inf if self.weight == 1.0 else -log1p(-self.weight) * rate
        return Averaged(line.slope * bytes_a_second, corner, line.start_bytes / bytes_a_second, self.spaced)


def red(
    *,
    limit_bytes: int,
    min_bytes: int | None = None,
    max_bytes: int | None = None,
    average_packet: int = 1000,
    burst: int | None = None,
    probability: float = 0.02,
    ecn: bool = False,
    adaptive: bool = False,
    gentle: bool = False,
    weight_log: int | None = None,
) -> RedSubject:
    """RED as Linux's sch_red runs it after `tc ... red` with these values, or with `gentle` in real numbers.

    A `weight_log` w stands for the weight 2^-w, in place of `average_packet` and `burst`.

    Parameters
    ----------
    limit_bytes, min_bytes, max_bytes : int
        Limit and thresholds of the queue [byte]; tc chooses the thresholds where they aren't given.
    average_packet, burst : int
        Packet size [byte] and burst [packet], from which tc computes the weight of the average.
    probability : float
        Greatest probability below the upper threshold.
    ecn, adaptive, gentle : bool
        Marks in place of drops; a probability that adapts; a second line up to twice the upper threshold.
    weight_log : int, optional
        w of the weight 2^-w.

    Raises
    ------
    InvalidValue
        A value that tc or the kernel doesn't take, or thresholds that make a step.
    """
    law = RedLaw.sent(
        limit_bytes=limit_bytes,
        average_packet=average_packet,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        burst=burst,
        probability=probability,
        ecn=ecn,
        adaptive=adaptive,
    )
    if weight_log is not None:
        law = replace(law, weight_log=weight_log)
    return _gentle(law) if gentle else red_as_linux(law)


def red_as_linux(law: RedLaw) -> RedSubject:
    """RED with the kernel's own numbers: a slope in units of 2⁻³², and every packet from the upper threshold on."""
    width = law.max_bytes - law.min_bytes
    top = min(law.max_bytes, law.limit_bytes)
    lines = []
    for most in _most(law):
        slope = max(int(most * _ONE) // width, 1) / _ONE if width else inf
        lines.append(RedLine(slope, float(law.min_bytes), 0.0, slope * (top - law.min_bytes) if width else most))
    end = "marked" if law.ecn and not law.harddrop else "dropped"
    beyond = f"the average is at the upper threshold, where every packet is {end}"
    return _red_subject(law, "Linux sch_red", lines, beyond, gentle=False)


def _gentle(law: RedLaw) -> RedSubject:
    """RED with a second line from (max, P) to (2 max, 1), in real numbers; both end where the queue is at its limit."""
    width = law.max_bytes - law.min_bytes
    if not width:
        raise InvalidValue("max", law.max_bytes, _STEP)
    lines = []
    for most in _most(law):
        end = min(most, most * (law.limit_bytes - law.min_bytes) / width)
        lines.append(RedLine(most / width, float(law.min_bytes), 0.0, end))
        if law.limit_bytes > law.max_bytes:
            slope = (1.0 - most) / law.max_bytes
            start = law.max_bytes - most / slope
            lines.append(RedLine(slope, start, most, min(1.0, slope * (law.limit_bytes - start))))
    beyond = "the average is at twice the upper threshold, or the queue at its limit"
    return _red_subject(law, "real numbers", lines, beyond, gentle=True)


def _most(law: RedLaw) -> tuple[float, ...]:
    """Probabilities P at the upper threshold; InvalidValue for a limit below the lower one."""
    if law.limit_bytes <= law.min_bytes:
        takes = f"more than min, {law.min_bytes} bytes: a shorter queue is never marked"
        raise InvalidValue("limit", law.limit_bytes, takes)
    return _ADAPTED if law.adaptive else (law.max_probability / _ONE,)


def _red_subject(law: RedLaw, implementation: str, lines: list[RedLine], beyond: str, *, gentle: bool) -> RedSubject:
    notes = ["the average of an idle queue is not in the linear loop"]
    if law.adaptive:
        notes.append(
            f"the probability at the upper threshold moves from .01 to .5: the worst of {len(_ADAPTED)} values is "
            "given, and between them nothing is proved"
        )
    return RedSubject(
        name="red",
        implementation=implementation,
        parameters={
            "limit_bytes": law.limit_bytes,
            "min_bytes": law.min_bytes,
            "max_bytes": law.max_bytes,
            "weight_log": law.weight_log,
            "probability": law.max_probability / _ONE,
            "ecn": law.ecn,
            "adaptive": law.adaptive,
            "gentle": gentle,
        },
        lines=tuple(lines),
        weight=law.weight,
        spaced=True,
        drops=not law.ecn,
        beyond=beyond,
        notes=tuple(notes),
    )


def wred(*, min_bytes: int, max_bytes: int, max_percent: float, ecn: bool = False, weight_log: int = 0) -> RedSubject:
    """WRED of a switch, for one colour.

    Parameters
    ----------
    min_bytes, max_bytes : int
        Thresholds [byte].
    max_percent : float
        Probability at the upper one [%].
    ecn : bool
        Whether packets are marked, and not dropped.
    weight_log : int
        n of the weight 2^-n of an arrival in the average; 0: the present queue.

    Raises
    ------
    InvalidValue
        A value outside its bounds.
    """
    return wred_as_switch(
        WredLaw(min_bytes=min_bytes, max_bytes=max_bytes, max_percent=max_percent, ecn=ecn, weight_log=weight_log)
    )


def wred_as_switch(law: WredLaw) -> RedSubject:
    """WRED of one colour with its numbers."""
    if law.max_percent == 0:
        raise InvalidValue("probability", 0, "a probability above 0 in percent: with 0 the law does nothing below max")
    queue = "the average" if law.weight_log else "the present queue"
    return RedSubject(
        name="wred",
        implementation="WRED of a switch, in real numbers",
        parameters={
            "min_bytes": law.min_bytes,
            "max_bytes": law.max_bytes,
            "max_percent": law.max_percent,
            "ecn": law.ecn,
            **({"weight_log": law.weight_log} if law.weight_log else {}),
        },
        lines=(RedLine(law.slope, float(law.min_bytes), 0.0, law.max_percent / 100.0),),
        weight=0.5**law.weight_log,
        drops=not law.ecn,
        beyond="the queue is above the upper threshold, where every packet is marked or dropped",
        notes=(f"the switch's own arithmetic isn't published: packets are chosen independently, by {queue}",),
    )
