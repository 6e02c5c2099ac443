"""PI laws that people run, each with the arithmetic of the implementation: PIE, FQ-PIE, DOCSIS-PIE, PI2 and DualPI2.

PIE (RFC 8033) scales its gains in steps of a decade of the probability, so that the loop, whose gain falls with p,
keeps its margins (Section 4.2). Linux's sch_pie does so in integers, and spreads its drops: none before the
probabilities of the packets since the last one have summed up to .85, so that 1/1.85 of x is dropped.

DOCSIS-PIE (RFC 8034) is PIE as cable modems must run it, with gains of its own, in real numbers, with these differences
(Appendix A):

- the gains are doubled where the output x is above .1, and eight times as large above 1;
- a packet of b bytes is dropped with the probability x b/1024;
- drops are spread as in Linux;
- the delay is the backlog over the rate at which the modem may send, and no packet's waiting time.

PI2 and DualPI2 (RFC 9332) have no steps: the output p' is squared for classic flows, whose windows go as 1/√p, so that
the loop's gain hardly depends on p'. Scalable flows are marked with k p'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from itertools import pairwise
from math import inf
from typing import Any

from netctrl.certificates.subject import PiSubject, nominal_pi, scaled
from netctrl.core.errors import InvalidValue, checked_number
from netctrl.core.units import TIMES, checked_quantity
from netctrl.laws.aqm.delay_pi import DelayPi
from netctrl.laws.aqm.pie import pie_scale
from netctrl.laws.targets.docsis_pie import MEAN_BYTES, docsis_scale
from netctrl.laws.targets.dualpi2 import DUALPI2_STEP, Dualpi2Law, dualpi2_sent
from netctrl.laws.targets.pie import PIE_FAULT, PIE_SPREAD
from netctrl.laws.targets.pie_law import PieLaw
from netctrl.laws.targets.reading import DelayReading

_RUNGS = tuple(pairwise((0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)))
"""Ranges of the probability in which PIE's gains are constant (RFC 8033, Section 4.2)."""
_STEP_NOTE = "of the scalable queue only the coupling is in the loop, not its step"
_PIE_NOTES = ("PIE's burst allowance, its caps of a step and the jumps of its gain are not in the linear loop",)


def _ladder(gains: Callable[[float], DelayPi]) -> tuple[tuple[float, float, DelayPi], ...]:
    """Ranges of PIE's output with the gains in effect in each, from those at an output."""
    return tuple((low, high, gains((low * high) ** 0.5 if low else 0.5 * high)) for low, high in _RUNGS)


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

    Parameters
    ----------
    target_s, tupdate_s : float
        Target of the delay, and time between updates [s].
    alpha, beta : float
        Gains [1/s].
    implementation : str
        "linux" or "rfc".
    hz : int
        CONFIG_HZ of Linux, by whose ticks the time between updates is rounded.
    dq_rate_estimator : bool
        Whether the delay is that of the backlog at an estimated rate, and not that of the packet which left last.
    ecn : bool
        Whether packets are marked, and not dropped.

    Raises
    ------
    InvalidValue
        A value that the implementation doesn't take, for Linux gains that aren't whole sixteenths.
    """
    parameters = dict(locals())
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
        notes=_PIE_NOTES,
    )


@wraps(pie)
def fq_pie(**parameters: Any) -> PiSubject:
    """PIE in each of Linux's fq_pie's queues: parameters of `pie` but for its implementation."""
    if (whose := parameters.get("implementation", "linux")) != "linux":
        raise InvalidValue("implementation", whose, "linux: fq_pie is Linux's")
    return each_flow(pie(**parameters))


def each_flow(subject: PiSubject) -> PiSubject:
    """Linux's PIE with a queue for each flow."""
    note = "each flow has a queue of its own: the share of the rate per flow counts, not their number"
    return replace(
        subject, name="fq_pie", implementation="Linux sch_fq_pie", per_flow=True, notes=(*subject.notes, note)
    )


def pie_as_linux(law: PieLaw, parameters: Mapping[str, Any], nominal: DelayPi) -> PiSubject:
    """PIE with the kernel's own numbers.

    Parameters
    ----------
    law : PieLaw
    parameters : mapping
        As they stand in the certificate.
    nominal : DelayPi
        Gains before the kernel's arithmetic.
    """
    return PiSubject(
        name="pie",
        implementation="Linux sch_pie",
        parameters=parameters,
        nominal=nominal,
        rungs=_ladder(law.gains),
        thinning=PIE_SPREAD,
        reading=law.reading,
        drops=not law.ecn,
        notes=(*_PIE_NOTES, PIE_FAULT) if law.ecn else _PIE_NOTES,
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

    Parameters
    ----------
    target_s, tupdate_s : float
        Target of the delay, and time between updates [s].
    alpha, beta : float
        Gains [1/s].
    coupling : int
        Factor k of scalable flows' marks.
    step_s : float
        Delay from which on the scalable queue marks by itself [s].
    drop_early : bool
        Whether packets are marked as they come, and not as they leave.

    The defaults are those of a queue without these options, 41/256 and 819/256 per second; of 0.16 tc sends 40/256.
    """
    parameters = dict(locals())
    return dualpi2_as_linux(linux_dualpi2(**parameters), parameters, nominal_pi(target_s, tupdate_s, alpha, beta))


def dualpi2_as_linux(law: Dualpi2Law, parameters: Mapping[str, Any], nominal: DelayPi) -> PiSubject:
    """DualPI2 with the kernel's own numbers.

    Parameters
    ----------
    law : Dualpi2Law
    parameters : mapping
        As they stand in the certificate.
    nominal : DelayPi
        Gains before the kernel's arithmetic.
    """
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
    """PI2 in one queue (RFC 9332, Appendix A without its second queue), in real numbers, on the backlog's delay.

    Parameters
    ----------
    target_s, tupdate_s : float
        Target of the delay, and time between updates [s].
    alpha, beta : float
        Gains [1/s].
    coupling : float
        Factor k of scalable flows' marks.
    """
    parameters = dict(locals())
    nominal = nominal_pi(target_s, tupdate_s, alpha, beta)
    checked_number("coupling", coupling, "a factor above 0", above=0.0)
    return PiSubject(
        name="pi2",
        implementation="real numbers",
        parameters=parameters,
        nominal=nominal,
        rungs=((0.0, inf, nominal),),
        power=2.0,
        coupling=coupling,
        greatest=1.0,
    )


_DOCSIS_RUNGS = (*(rung for rung in _RUNGS if rung[1] <= 0.1), (0.1, 1.0), (1.0, 10.0), (10.0, inf))
"""Ranges of the output in which the gains are constant."""
_LARGEST_BYTES = 1500.0
_CAP = 0.85
"""Probability of a packet beyond which it no longer grows."""


def docsis_pie(
    *, target_s: float = 0.010, tupdate_s: float = 0.016, alpha: float = 0.25, beta: float = 2.5
) -> PiSubject:
    """DOCSIS-PIE with RFC 8034's values.

    Parameters
    ----------
    target_s, tupdate_s : float
        LATENCY_TARGET and INTERVAL [s].
    alpha, beta : float
        A and B [1/s].

    Raises
    ------
    InvalidValue
        A value that is not above 0.
    """
    parameters = dict(locals())
    nominal = nominal_pi(**parameters)
    return PiSubject(
        name="docsis-pie",
        implementation="RFC 8034",
        parameters=parameters,
        nominal=nominal,
        rungs=tuple((a, b, scaled(nominal, docsis_scale(a or 0.5 * b))) for a, b in _DOCSIS_RUNGS),
        unscaled=nominal,
        thinning=PIE_SPREAD,
        per_bytes=MEAN_BYTES,
        reading=DelayReading.BACKLOG,
        drops=True,
        greatest=_CAP * MEAN_BYTES / _LARGEST_BYTES,
        beyond="the probability of large packets no longer grows",
        notes=_PIE_NOTES,
    )


def linux_pie(target_s: float, tupdate_s: float, alpha: float, beta: float, hz: int, dq_rate_estimator: bool) -> PieLaw:
    """Linux's pie as the kernel holds it; parameters of `pie`, InvalidValue for what tc or the kernel doesn't take."""
    sixteenths = []
    for argument, gain in (("alpha", alpha), ("beta", beta)):
        checked_number(argument, gain, "a gain of at least 0 in 1/s", at_least=0.0)
        sixteenths.append(round(16.0 * gain))
        if abs(sixteenths[-1] - 16.0 * gain) > 1e-9 * max(sixteenths[-1], 1):
            raise InvalidValue(argument, gain, "a whole multiple of 1/16 in 1/s, as Linux takes it")
    return PieLaw.sent(
        target_us=_micro("target", target_s),
        tupdate_us=_micro("tupdate", tupdate_s),
        alpha=sixteenths[0],
        beta=sixteenths[1],
        dq_rate_estimator=dq_rate_estimator,
        hz=hz,
    )


def linux_dualpi2(
    target_s: float, tupdate_s: float, alpha: float, beta: float, coupling: int, step_s: float, drop_early: bool
) -> Dualpi2Law:
    """Linux's dualpi2 as the kernel holds it; parameters of `dualpi2`, InvalidValue for what it doesn't take."""
    return Dualpi2Law.sent(
        target_us=_micro("target", target_s),
        tupdate_us=_micro("tupdate", tupdate_s),
        alpha=dualpi2_sent(checked_number("alpha", alpha, "a gain above 0 in 1/s", above=0.0)),
        beta=dualpi2_sent(checked_number("beta", beta, "a gain above 0 in 1/s", above=0.0)),
        coupling=coupling,
        step_us=_micro("step", step_s),
        drop_early=drop_early,
    )


def _micro(argument: str, seconds: float) -> int:
    checked_quantity(argument, seconds, "a time above 0 in seconds", TIMES)
    return round(seconds * 1e6)
