"""Laws that `netctrl certify` judges, each with the arithmetic of the implementation that runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from itertools import pairwise
from math import inf
from typing import Any, NamedTuple, Protocol

from netctrl.certificates.linux import linux_dualpi2, linux_pie
from netctrl.errors import InvalidValue, checked_number
from netctrl.laws.aqm.delay_pi import DelayPi
from netctrl.laws.aqm.pie import pie_scale
from netctrl.laws.targets.dualpi2 import DUALPI2_STEP, Dualpi2Law
from netctrl.laws.targets.pie import PIE_FAULT, PIE_SPREAD
from netctrl.laws.targets.pie_law import PieLaw
from netctrl.laws.targets.reading import DelayReading
from netctrl.plants.queues.queue_laws import SampledPi, WindowClass
from netctrl.plants.queues.queue_loop import QueueLoop
from netctrl.plants.queues.window_response import Sender
from netctrl.units import TIMES, checked_quantity

__all__ = [
    "PIE_NOTES",
    "RUNGS",
    "SUBJECTS",
    "LinearLaw",
    "PiSubject",
    "Subject",
    "dualpi2",
    "each_flow",
    "fq_pie",
    "nominal_pi",
    "pi2",
    "pie",
    "scaled",
]

RUNGS = tuple(pairwise((0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)))
"""Ranges of the probability in which PIE's gains are constant (RFC 8033, Section 4.2)."""
_STEP_NOTE = "of the scalable queue only the coupling is in the loop, not its step"
PIE_NOTES = ("PIE's burst allowance, its caps of a step and the jumps of its gain are not in the linear loop",)


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
        ...

    @property
    def parameters(self) -> Mapping[str, float | int | str | bool]:
        """Arguments of the function that makes the subject, in SI units."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Effects that the loop leaves out."""
        ...

    @property
    def in_bytes(self) -> bool:
        """Whether thresholds are in bytes, so that more than the rate per flow counts."""
        ...

    @property
    def target_s(self) -> float:
        """Standing delay of the queue at every load; 0 where it depends on the load [s]."""
        ...

    @property
    def greatest(self) -> float:
        """Output beyond which the law acts differently."""
        ...

    @property
    def beyond(self) -> str:
        """What it does there."""
        ...

    @property
    def gains(self) -> dict[str, float]:
        """As computed, for the certificate."""
        ...

    @property
    def read(self) -> str:
        """Which delay the law reads, in words."""
        ...

    @property
    def marked(self) -> str:
        """Where packets are marked or dropped, in words."""
        ...

    @property
    def drops(self) -> bool:
        """Whether packets are dropped and not marked."""
        ...

    def seen_by(self, sender: Sender) -> WindowClass:
        """All flows of one sender under this law."""
        ...

    def loops(self, classes: tuple[WindowClass, ...], rate: float, packet_bytes: float) -> list[QueueLoop]:
        """One loop for each range of the output with gains of its own; the rate in packets a second."""
        ...

    def usual(self, sender: Sender, p: float, rate: float, packet_bytes: float) -> tuple[float, LinearLaw]:
        """Output at a sender's marking probability, and the law there, as they are usually given."""
        ...


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
        """One loop for each range of the output with gains of its own."""
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
        """Output at a sender's marking probability, and the law there, as they are usually given."""
        kind, law = self.seen_by(sender), self.nominal
        x = (p / (kind.factor * self.thinning)) ** (1.0 / kind.power)
        held = min(x, self.rungs[-1][1])
        scale = next(g.integral for low, high, g in self.rungs if low <= held <= high) / self.sampled.integral
        leads = (law.proportional * law.update_s / law.integral,) if law.proportional else ()
        return x, LinearLaw(scale * law.integral / law.update_s, 1, (), leads)


def pie(
    *,
    target_s: float = 0.015,
    tupdate_s: float = 0.015,
    alpha: float = 0.125,
    beta: float = 1.25,
    implementation: str = "linux",
    hz: int = 250,
    dq_rate_estimator: bool = False,
    ecn: bool = False,
) -> PiSubject:
    """PIE with the gains of RFC 8033 [1/s], as Linux's sch_pie runs it or as in the RFC.

    Raises
    ------
    InvalidValue
        A value that the implementation doesn't take, for Linux gains that aren't whole sixteenths.
    """
    parameters = {
        "target_s": target_s,
        "tupdate_s": tupdate_s,
        "alpha": alpha,
        "beta": beta,
        "implementation": implementation,
        "hz": hz,
        "dq_rate_estimator": dq_rate_estimator,
        "ecn": ecn,
    }
    nominal = nominal_pi(target_s, tupdate_s, alpha, beta)
    if implementation == "linux":
        law = replace(linux_pie(target_s, tupdate_s, alpha, beta, hz, dq_rate_estimator), ecn=ecn)
        return pie_as_linux(law, parameters, nominal)
    if implementation != "rfc":
        raise InvalidValue("implementation", implementation, "linux or rfc")
    return PiSubject(
        name="pie",
        implementation="RFC 8033",
        parameters=parameters,
        nominal=nominal,
        rungs=_ladder(lambda p: scaled(nominal, pie_scale(p))),
        reading=DelayReading.SOJOURN if not dq_rate_estimator else DelayReading.BACKLOG,
        drops=not ecn,
        notes=PIE_NOTES,
    )


@wraps(pie)
def fq_pie(**parameters: Any) -> PiSubject:
    """PIE in each of Linux's fq_pie's queues: parameters of `pie` but for its implementation."""
    if (whose := parameters.get("implementation", "linux")) != "linux":
        raise InvalidValue("implementation", whose, "linux: fq_pie is Linux's")
    return each_flow(pie(**parameters))


def each_flow(subject: PiSubject) -> PiSubject:
    """Linux's PIE with a queue for each flow."""
    notes = (
        *subject.notes,
        "each flow has a queue of its own: the share of the rate per flow counts, not their number",
    )
    return replace(subject, name="fq_pie", implementation="Linux sch_fq_pie", notes=notes)


def pie_as_linux(law: PieLaw, parameters: Mapping[str, Any], nominal: DelayPi) -> PiSubject:
    """PIE with the kernel's own numbers."""
    return PiSubject(
        name="pie",
        implementation="Linux sch_pie",
        parameters=parameters,
        nominal=nominal,
        rungs=_ladder(law.gains),
        thinning=PIE_SPREAD,
        reading=law.reading,
        drops=not law.ecn,
        notes=(*PIE_NOTES, PIE_FAULT) if law.ecn else PIE_NOTES,
    )


def dualpi2(
    *,
    target_s: float = 0.015,
    tupdate_s: float = 0.016,
    alpha: float = 41.0 * DUALPI2_STEP,
    beta: float = 819.0 * DUALPI2_STEP,
    coupling: int = 2,
    step_s: float = 0.001,
    drop_early: bool = False,
) -> PiSubject:
    """DualPI2 as Linux's sch_dualpi2 runs it; gains in 1/s, as tc takes them.

    The defaults are those of a queue without these options, 41/256 and 819/256 per second; of 0.16 tc sends 40/256.
    """
    parameters = {
        "target_s": target_s,
        "tupdate_s": tupdate_s,
        "alpha": alpha,
        "beta": beta,
        "coupling": coupling,
        "step_s": step_s,
        "drop_early": drop_early,
    }
    return dualpi2_as_linux(linux_dualpi2(**parameters), parameters, nominal_pi(target_s, tupdate_s, alpha, beta))


def dualpi2_as_linux(law: Dualpi2Law, parameters: Mapping[str, Any], nominal: DelayPi) -> PiSubject:
    """DualPI2 with the kernel's own numbers."""
    return PiSubject(
        name="dualpi2",
        implementation="Linux sch_dualpi2",
        parameters=parameters,
        nominal=nominal,
        rungs=((0.0, inf, law.gains),),
        power=2.0,
        coupling=float(law.coupling),
        apart=True,
        apart_delay_s=0.0 if law.step_in_packets else law.step_threshold * 1e-9,
        reading=law.reading,
        marked_leaving=not law.drop_early,
        greatest=1.0 / law.coupling,
        notes=("the timer's latency is not counted", _STEP_NOTE),
    )


def pi2(
    *, target_s: float = 0.015, tupdate_s: float = 0.016, alpha: float = 0.16, beta: float = 3.2, coupling: float = 2.0
) -> PiSubject:
    """PI2 in one queue (RFC 9332, Appendix A without its second queue), in real numbers, on the backlog's delay."""
    nominal = nominal_pi(target_s, tupdate_s, alpha, beta)
    checked_number("coupling", coupling, "a factor above 0", above=0.0)
    return PiSubject(
        name="pi2",
        implementation="real numbers",
        parameters={"target_s": target_s, "tupdate_s": tupdate_s, "alpha": alpha, "beta": beta, "coupling": coupling},
        nominal=nominal,
        rungs=((0.0, inf, nominal),),
        power=2.0,
        coupling=coupling,
        greatest=1.0,
    )


SUBJECTS: dict[str, Callable[..., PiSubject]] = {"pie": pie, "dualpi2": dualpi2, "pi2": pi2}
"""Name -> function that makes a law's subject from its parameters."""


def nominal_pi(target_s: float, tupdate_s: float, alpha: float, beta: float) -> DelayPi:
    """A PI law as given: target and time between updates [s], gains [1/s]; InvalidValue where one isn't above 0."""
    checked_quantity("target", target_s, "a delay above 0 in seconds", TIMES)
    checked_quantity("tupdate", tupdate_s, "a time above 0 in seconds", TIMES)
    checked_number("alpha", alpha, "a gain above 0 in 1/s", above=0.0)
    checked_number("beta", beta, "a gain of at least 0 in 1/s", at_least=0.0)
    return DelayPi(integral=alpha, proportional=beta, update_s=tupdate_s, target_s=target_s)


def _ladder(gains: Callable[[float], DelayPi]) -> tuple[tuple[float, float, DelayPi], ...]:
    return tuple((low, high, gains((low * high) ** 0.5 if low else 0.5 * high)) for low, high in RUNGS)


def scaled(gains: DelayPi, factor: float) -> DelayPi:
    """Both gains times a factor."""
    return replace(gains, integral=gains.integral * factor, proportional=gains.proportional * factor)
