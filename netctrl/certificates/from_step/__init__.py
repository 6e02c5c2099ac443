"""Subjects of laws that nobody linearised: the linear loop of a queue's law, found from its own step.

The step is called around an equilibrium, as a router calls it, with a backlog that is held or moved. Two families have
loops (`netctrl.plants.queues.queue_laws`), and a law is one of them if all its answers are, else it is refused:

- **It sums up errors**: a field x of its state moves every T by r(q), and r is 0 at one backlog q*. From r's slope
  there and from what a backlog that has moved adds come the integral and the proportional gain; a sequence of backlogs
  from which neither was taken must give the outputs that both predict. Gains may change with x in steps (PIE): each
  range of x is a loop. Marks go as factor x^power (PI2: power 2).
- **It answers the backlog**: held, its probability settles at p(q), which is made of straight lines (RED), and
  approaches it by the same share with each packet.

**Laws that jump.** BLUE's r is 0 between an idle link and a long queue, where it jumps: slopes are 0 or infinite. Its
loop has instead the greatest secant of r from the middle q0 of that band, k = max r(q)/(q − q0). Each answer of the law
lies between those of the gains 0 and k, so a loop that holds at every gain up to k has no oscillation by the
describing function. Where the queue has settled before each update, q = q0 − s (x − x0), the loop says 1 − k s > −1, so
jump < width/s: the exact condition that a jump doesn't cross the whole band.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise
from math import isclose, log2, sqrt
from typing import Any, NamedTuple

import msgspec
import numpy as np

from netctrl.certificates.from_step.probe import HALVINGS, LONG, NO_LOOP, Probe, refuse_arrivals, summing
from netctrl.certificates.red import RedLine, RedSubject
from netctrl.certificates.subject import LinearLaw, PiSubject
from netctrl.core.errors import InvalidValue
from netctrl.laws.aqm.delay_pi import DelayPi
from netctrl.laws.aqm.law import QueueLaw
from netctrl.plants.queues.queue_laws import WindowClass
from netctrl.plants.queues.queue_loop import QueueLoop
from netctrl.plants.queues.window_response import Sender

_LINKS = (1e3, 1500.0), (1.7e4, 1000.0)
"""Rates [packet/s] and packets [byte] of two links, at which a law shows whether its gains depend on the link."""
_BUFFER = 1e12
"""Buffer of the link, which no queue fills [byte]."""
_SAME = 1e-6
"""Relative difference up to which two gains are the same."""
_PIECES = 24
"""Most ranges of constant gains, or lines."""
_OWN = "its step, in real numbers"
_LIMITS = "limits and jumps of the law's step aren't in the linear loop"


class Settled(NamedTuple):
    """Range of backlogs at which a law leaves its output where it is [packet]."""

    low: float
    high: float


def by_step(law: QueueLaw, **parameters: Any) -> PiSubject | RedSubject:
    """Subject of a law from its step, in real numbers.

    Parameters
    ----------
    law : QueueLaw
    **parameters
        Fields of its record.

    Raises
    ------
    InvalidValue
        A value that the record refuses, or a law that neither sums up errors of the queue nor answers it along lines.

    Examples
    --------
    >>> from netctrl.certificates.from_step import by_step
    >>> from netctrl.laws.aqm.pie import PIE
    >>> [(round(high, 9), round(gains.integral, 9)) for _, high, gains in by_step(PIE).rungs][:3]
    [(1e-06, 6.1035e-05), (1e-05, 0.000244141), (0.0001, 0.000976562)]
    """
    record = law.record(**parameters)

    @cache
    def at(rate: float, packet_bytes: float) -> PiSubject | RedSubject:
        return _subject(law, record, rate, packet_bytes)

    one, other = (at(*link) for link in _LINKS)
    if isinstance(one, RedSubject) or isinstance(other, RedSubject):
        if not (isinstance(one, RedSubject) and isinstance(other, RedSubject) and _same_lines(one, other)):
            raise InvalidValue("law", law.name, f"{NO_LOOP}; its lines over bytes depend on the link")
        return one
    if _alike(one, other):
        return one
    fields: dict[str, Any] = {name: getattr(one, name) for name in PiSubject.__dataclass_fields__}
    fields["in_bytes"] = True
    return PacketPi(**fields, at=at)


@dataclass(frozen=True, slots=True, kw_only=True)
class PacketPi(PiSubject):
    """PI law whose gains or target are those of a queue in packets, so that they depend on the link."""

    at: Callable[[float, float], Any]
    """Function of (C [packet/s], packet [byte]) that returns the law there as a law of the queue's delay."""

    @property
    def target_s(self) -> float:
        """0: the standing delay depends on the link."""
        return 0.0

    def loops(self, classes: tuple[WindowClass, ...], rate: float, packet_bytes: float) -> list[QueueLoop]:
        """One loop for each range of the output with gains of its own, as of the law at this link.

        Parameters
        ----------
        classes : tuple of WindowClass
        rate, packet_bytes : float
            C [packet/s], and the size of packets [byte].
        """
        return self.at(rate, packet_bytes).loops(classes, rate, packet_bytes)

    def usual(self, sender: Sender, p: float, rate: float, packet_bytes: float) -> tuple[float, LinearLaw]:
        """Output at a sender's marking probability and the law there, as of the law at this link.

        Parameters
        ----------
        sender : Sender
        p : float
            Its marking probability.
        rate, packet_bytes : float
            C [packet/s], and the size of packets [byte].
        """
        return self.at(rate, packet_bytes).usual(sender, p, rate, packet_bytes)


def _alike(one: PiSubject, other: PiSubject) -> bool:
    """Whether a law is the same law of the delay at two links."""
    pairs = zip(one.rungs, other.rungs, strict=False)
    gains = [
        (a, b)
        for (_, _, g), (_, _, h) in pairs
        for a, b in ((g.integral, h.integral), (g.proportional, h.proportional), (g.target_s, h.target_s))
    ]
    return len(one.rungs) == len(other.rungs) and all(isclose(a, b, rel_tol=_SAME, abs_tol=1e-12) for a, b in gains)


def _same_lines(one: RedSubject, other: RedSubject) -> bool:
    """Whether a law has the same lines over bytes, and the same average, at two links."""
    numbers = ([each.weight, each.spaced, *chain.from_iterable(each.lines)] for each in (one, other))
    return len(one.lines) == len(other.lines) and all(
        isclose(a, b, rel_tol=1e-5, abs_tol=1e-9) for a, b in zip(*numbers, strict=True)
    )


def _subject(law: QueueLaw, record: Any, rate: float, packet_bytes: float) -> PiSubject | RedSubject:
    if law.head is not None:
        raise InvalidValue("law", law.name, f"{NO_LOOP}; it chooses packets at the head of the queue")
    parameters = law.read(record, packet_bytes, _BUFFER)
    every = 1.0 / rate if law.epoch is None else law.epoch(record)
    acting = Probe(law, parameters, rate, every)
    given = {name: value for name, value in msgspec.to_builtins(record).items() if name != "kind" and value is not None}
    found = summing(acting)
    return _lines(acting, given, packet_bytes) if found is None else _pi(found, given)


# A law that sums up errors


def _pi(of: Probe, given: dict[str, Any]) -> PiSubject:
    """PI law on the queue's delay with the gains that the step shows."""
    refuse_arrivals(of)
    band = _band(of, 0.3)
    middle = 0.5 * (band.low + band.high)
    jumps = band.high - band.low > _SAME * band.high or not _is_straight(of, 0.3, middle)
    rungs = [(0.0, 1.0, (_secant(of, band, middle), 0.0))] if jumps else list(_rungs(of, middle))
    ends = {name: _power(of, middle, name) for name in ("probability", "scalable_probability") if name in _fields(of)}
    factor, power = ends["probability"]
    if not isclose(factor, 1.0, rel_tol=_SAME):
        raise InvalidValue("law", of.law.name, f"{NO_LOOP}; it marks {factor:.3g} of what it sums up")
    note = _jump_note(of, band, rungs[0][2][0]) if jumps else _LIMITS
    pi = [
        (
            low,
            high,
            DelayPi(integral=a * of.rate, proportional=b * of.rate, update_s=of.every, target_s=middle / of.rate),
        )
        for low, high, (a, b) in rungs
    ]
    return PiSubject(
        name=of.law.name,
        implementation=_OWN,
        parameters=given,
        nominal=pi[-1][2],
        rungs=tuple(pi),
        power=power,
        coupling=ends.get("scalable_probability", (1.0, 1.0))[0],
        greatest=1.0,
        beyond="every packet is marked or dropped",
        jumps=jumps,
        notes=(note,),
    )


def _fields(of: Probe) -> tuple[str, ...]:
    return of.law.state._fields


def _band(of: Probe, x: float) -> Settled:
    """Backlogs between those at which the output falls and those at which it rises, by bisection [packet]."""

    def edge(low: float, high: float, *, above: bool) -> tuple[float, float]:
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            is_high = of.rise(x, middle) > 0.0 if above else of.rise(x, middle) >= 0.0
            low, high = (low, middle) if is_high else (middle, high)
        return low, high

    high = edge(0.0, of.rate * LONG, above=True)[1]
    low = edge(0.0, high, above=False)[0] if of.rise(x, 0.0) < 0.0 else 0.0
    return Settled(low, high)


def _is_straight(of: Probe, x: float, target: float) -> bool:
    """Whether the rise is a line through 0 at the target."""
    h = 1e-3 * target
    slopes = [of.rise(x, target + k * h) / (k * h) for k in (-1.0, -0.125, 0.125, 1.0)]
    return max(slopes) - min(slopes) <= _SAME * abs(max(slopes))


def _secant(of: Probe, band: Settled, middle: float) -> float:
    """Greatest secant of the rise from the middle of a band [1/packet]."""
    if band.high - band.low <= _SAME * band.high:
        takes = f"{NO_LOOP}; its output jumps at {band.high:.4g} packets, where it has no slope"
        raise InvalidValue("law", of.law.name, takes)
    for backlog in (0.0, band.high, 2.0 * band.high):
        rise = of.rise(0.3, backlog)
        if of.rise(0.3, backlog, middle) != rise:
            raise InvalidValue("law", of.law.name, f"{NO_LOOP}; it jumps, and answers changes of the queue")
        if not isclose(of.rise(0.6, backlog), rise, rel_tol=_SAME):
            raise InvalidValue("law", of.law.name, f"{NO_LOOP}; it jumps, by more or less with its output")
    above = band.high + middle * np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 200)])
    below = band.low * np.linspace(0.0, 1.0, 100)
    return max(abs(of.rise(0.3, float(q)) / (float(q) - middle)) for q in (*above, *below))


def _jump_note(of: Probe, band: Settled, secant: float) -> str:
    delays = " to ".join(f"{1e3 * q / of.rate:.3g}" for q in band)
    return (
        f"{of.law.name} leaves its output alone between {band.low:.3g} and {band.high:.3g} packets ({delays} ms at "
        f"{of.rate:g} packets/s), and jumps outside: the loop has the steepest secant, {secant:.3g} a packet, and the "
        "queue may stand anywhere between"
    )


def _gains(of: Probe, x: float, target: float) -> tuple[float, float]:
    """Integral and proportional gain of an update at an output [1/packet]; InvalidValue for no PI law.

    The backlog moves by so little that the output moves by a hundredth: far from limits, and far from rounding.
    """
    h = 1e-3 * target
    h *= min(1.0, 1e-2 * x / max(abs(of.rise(x, target + h, target)), 1e-300))
    a = (of.rise(x, target + h) - of.rise(x, target - h)) / (2.0 * h)
    b = (of.rise(x, target + h, target) - of.rise(x, target - h, target)) / (2.0 * h) - a
    state, before = of.held(x, target), target
    for backlog in target + h * np.random.default_rng(1).uniform(-0.5, 0.5, 12):
        state, move = of.act(state, backlog), a * (backlog - target) + b * (backlog - before)
        if abs(getattr(state, of.field) - x - move) > 1e-8 * x:
            raise InvalidValue("law", of.law.name, f"{NO_LOOP}; it remembers more than the queue at its last update")
        state, before = state._replace(**{of.field: x}), backlog
    return a, b


def _rungs(of: Probe, target: float) -> Iterator[tuple[float, float, tuple[float, float]]]:
    """Ranges of the output with the gains in each; their ends by bisection."""

    def same(one: tuple[float, float], other: tuple[float, float]) -> bool:
        return all(isclose(a, b, rel_tol=_SAME, abs_tol=1e-30) for a, b in zip(one, other, strict=True))

    points = [float(x) for x in np.geomspace(1e-7, 0.9, 100)]
    gains = [_gains(of, x, target) for x in points]
    low, count = 0.0, 0
    for (x, here), (y, there) in pairwise(zip(points, gains, strict=True)):
        if same(here, there):
            continue
        for _ in range(60):
            middle = sqrt(x * y)
            x, y = (middle, y) if same(_gains(of, middle, target), here) else (x, middle)
        count += 1
        if count == _PIECES or not same(_gains(of, y * (1.0 + 1e-9), target), there):
            raise InvalidValue("law", of.law.name, f"{NO_LOOP}; its gains change with its output without steps")
        yield low, y, here
        low = y
    yield low, 1.0, gains[-1]


def _power(of: Probe, backlog: float, name: str) -> tuple[float, float]:
    """(factor, power) of the output in a probability; InvalidValue where it isn't factor x^power."""
    one, two, four = (of.marks(x, backlog, name) for x in (0.1, 0.2, 0.4))
    power = log2(two / one) if one > 0.0 else 0.0
    if power <= 0.0 or not isclose(four, min(one * 4.0**power, 1.0), rel_tol=_SAME):
        raise InvalidValue("law", of.law.name, f"{NO_LOOP}; its {name} isn't a power of what it sums up")
    return one / 0.1**power, power


# A law that answers the backlog


def _lines(acting: Probe, given: dict[str, Any], packet_bytes: float) -> RedSubject:
    """Law along lines, with the share by which a packet moves its average."""
    refuse_arrivals(acting)
    try:
        spaced, lines = False, _straight(acting, spaced=False)
    except InvalidValue:
        spaced, lines = True, _straight(acting, spaced=True)
    first = lines[0]
    low, high = (first.start_bytes + share * first.high / first.slope for share in (0.45, 0.55))
    begins, ends = (_share(acting.settled(q), spaced=spaced) for q in (low, high))
    moved = _share(acting.act(acting.settled(low), high), spaced=spaced)
    weight = (moved - begins) / (ends - begins)
    if not 0.0 < weight <= 1.0 + _SAME:
        raise InvalidValue("law", acting.law.name, f"{NO_LOOP}; its answer isn't an average of the queue")
    return RedSubject(
        name=acting.law.name,
        implementation=_OWN,
        parameters=given,
        lines=tuple(
            line._replace(slope=line.slope / packet_bytes, start_bytes=line.start_bytes * packet_bytes)
            for line in lines
        ),
        weight=min(weight, 1.0),
        spaced=spaced,
        notes=(_LIMITS,),
    )


def _share(state: Any, *, spaced: bool) -> float:
    """b of the probability b, or of the probability p = 2b/(1 + b) of marks after 1 to 1/b packets."""
    p = state.probability
    return p / (2.0 - p) if spaced else p


def _straight(acting: Probe, *, spaced: bool) -> list[RedLine]:
    """The lines of which b is made at a held queue in packets, from the first mark on; they meet, or end at 1."""

    def share(backlog: float) -> float:
        return _share(acting.settled(backlog), spaced=spaced)

    def last(holds: Callable[[float], bool], low: float) -> float:
        high = acting.rate * LONG
        for _ in range(80):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if holds(middle) else (low, middle)
        return low

    low, lines, why = last(lambda q: share(q) == 0.0, 0.0), [], "its probability isn't made of a few lines that meet"
    for _ in range(_PIECES):
        h = 1e-4 * max(low, 1.0)
        begins, third, whole = (share(low + k * h) for k in (1e-7, 1.0 / 3.0, 1.0))
        slope = (whole - begins) / h
        if slope <= 0.0 or not isclose(slope, 3.0 * (third - begins) / h, rel_tol=1e-4):
            why = f"its probability isn't a line from {low:.4g} packets on"
            break

        def near(q: float, low: float = low, begins: float = begins, slope: float = slope) -> bool:
            return abs(share(q) - begins - slope * (q - low)) <= 1e-5 * share(q)

        end = last(near, low + h)
        one, other = low + 0.25 * (end - low), low + 0.75 * (end - low)  # its ends aren't sharp
        slope = (share(other) - share(one)) / (other - one)
        start = one - share(one) / slope
        if lines:  # they meet where both are the same
            before = lines[-1]
            meets = (start * slope - before.start_bytes * before.slope) / (slope - before.slope)
            begins = slope * (meets - start)
            lines[-1] = before._replace(high=begins)
            if not isclose(meets, low, rel_tol=1e-3):
                break
        lines.append(RedLine(slope, start, begins if begins > 1e-6 else 0.0, min(slope * (end - start), 1.0)))
        if share(end * (1.0 + 1e-4)) >= 1.0:
            return lines
        low = end
    raise InvalidValue("law", acting.law.name, f"{NO_LOOP}; {why}")
