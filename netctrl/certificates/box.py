"""Boxes of operating points (flows, round-trip times, rates and senders) and points that are looked at in them.

Coordinates. N flows of window w share a link of C packets a second whose queue stands at the delay D: N w = C (tau + D)
with the round-trip time tau without the queue. A loop at a target delay depends on N and C by C/N alone, since every
response is written in shares of the link's rate. So a box of ranges of N and C has two coordinates: tau, and N in units
of the largest rate, from N_min to N_max C_max/C_min. A window stands for one flow of the rate w/(tau + target), and
smaller windows of a range for more flows of it. Laws whose thresholds are in bytes depend on C itself: they take one
rate, or the points of a grid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any, NamedTuple, Protocol, TypedDict

import msgspec
import numpy as np

from netctrl.certificates.point_records import LEAST_UTILIZATION, MIN_GAIN_DB, MIN_PHASE_DEG, PredictedFigures
from netctrl.certificates.record import CertifyInputs
from netctrl.core.errors import InvalidValue, checked_number
from netctrl.core.units import RATES, SIZES, TIMES, checked_quantity, packets_per_second

__all__ = [
    "MIN_FACTOR",
    "MIN_GAIN_DB",
    "MIN_PHASE_DEG",
    "MIN_WINDOW",
    "NUMBERS",
    "Asked",
    "Box",
    "Ends",
    "Point",
    "Where",
    "axes",
    "between",
    "box_of",
    "ends",
    "kept_up_to",
    "longest_of",
    "points_of",
    "sender_names",
    "several",
    "spread_points",
]

Ends = tuple[float, float]
NUMBERS = (1e-12, 1e18)
"""Bounds of flows and windows, against overflow."""
MIN_FACTOR = 10.0 ** (MIN_GAIN_DB / 20.0)
"""Gain margin of the design rule as a factor."""
MIN_WINDOW = 2.0
"""Least window [packet]: below it TCP waits for time-outs, which the window laws leave out."""
_RATIO = 1.22074408460575947536
"""Root of x^4 = x + 1, of the additive sequence in three dimensions (Roberts 2018)."""


class Where(TypedDict, total=False):
    """Arguments of `netctrl.certify` that make a box."""

    rtt_s: float | Ends
    flows: float | Ends | None
    capacity_bit_per_s: float | Ends | None
    window_packets: float | Ends | None
    packet_size_bytes: float
    senders: str | Iterable[str] | None
    stretches: Sequence[float]


class Asked(Where, total=False):
    """The same, and what is asked of the queue there."""

    p99_s: float | None
    utilization: float


class _Judged(Protocol):
    """Part of a law that a box needs to know."""

    @property
    def name(self) -> str: ...
    @property
    def in_bytes(self) -> bool: ...
    @property
    def target_s(self) -> float: ...


class Box(NamedTuple):
    """Operating points of a loop, in its coordinates."""

    inputs: CertifyInputs
    rate: float
    """Rate C of the loop [packet/s]."""
    flows: Ends
    """Flows of the loop: the number over the capacity's ratio to `rate`."""
    rtt: Ends
    """Round-trip times without the queue [s]."""

    def asked(self, flows: float) -> tuple[float, float] | None:
        """Number of flows and rate of the link [bit/s] inside the ranges that were asked for, of flows of the loop;
        None where the window is given."""
        number, capacity = self.inputs.flows, self.inputs.capacity_bit_per_s
        if number is None or capacity is None:
            return None
        held = min(max(flows, number[0]), number[1])
        return held, min(max(capacity[1] * held / flows, capacity[0]), capacity[1])

    @property
    def point(self) -> tuple[float, float] | None:
        """Flows and round-trip time of a box that is one point."""
        single = self.flows[0] == self.flows[1] and self.rtt[0] == self.rtt[1]
        return (self.flows[0], self.rtt[0]) if single else None

    def with_senders(self, *names: str) -> Box:
        """The same box with other senders."""
        return self._replace(inputs=msgspec.structs.replace(self.inputs, senders=names))


def box_of(
    subject: _Judged,
    rtt_s: float | Ends,
    flows: float | Ends | None = None,
    capacity_bit_per_s: float | Ends | None = None,
    window_packets: float | Ends | None = None,
    packet_size_bytes: float = 1500.0,
    senders: str | Iterable[str] | None = None,
    stretches: Sequence[float] = (1.0,),
    p99_s: float | None = None,
    utilization: float = LEAST_UTILIZATION,
) -> Box:
    """The box in the coordinates of a loop.

    Parameters
    ----------
    subject : Subject or EcnSubject
        The law, whose target gives the round-trip time with the queue.
    rtt_s, flows, capacity_bit_per_s, window_packets, packet_size_bytes, senders, stretches, p99_s, utilization
        As of `netctrl.certify`; no senders stand for "reno".

    Raises
    ------
    InvalidValue
        A value outside its bounds, or arguments that exclude each other.
    """
    rtt = ends("rtt", rtt_s, "a round-trip time above 0 in seconds, or a range", TIMES)
    size = checked_quantity("packet_size", packet_size_bytes, "a size in bytes", SIZES)
    names = sender_names("reno" if senders is None else senders)
    if not names:
        raise InvalidValue("sender", names, "at least one sender")
    stretched = tuple(
        checked_number("stretches", s, "factors above 0", above=0.0) for s in several("stretches", stretches)
    )
    if not stretched:
        raise InvalidValue("stretches", stretches, "at least one factor above 0")
    asked = None if p99_s is None else checked_quantity("p99", p99_s, "a delay above 0 in seconds", TIMES)
    used = checked_number("utilization", utilization, "a share of the link from 0 to 1", at_least=0.0, at_most=1.0)
    given: dict[str, Any] = {"rtt_s": rtt, "packet_size_bytes": size, "senders": names, "stretches": stretched}
    given |= {"p99_s": asked, "utilization": used}
    if window_packets is not None:
        if subject.in_bytes:
            takes = f"flows and a capacity instead: the thresholds of {subject.name} are in bytes"
            raise InvalidValue("window", window_packets, takes)
        if flows is not None or capacity_bit_per_s is not None:
            raise InvalidValue("window", window_packets, "no flows and no capacity beside it")
        if rtt[0] != rtt[1]:
            raise InvalidValue("rtt", rtt, "one round-trip time with a window; give flows and a capacity for a range")
        if len(stretched) > 1 or any("+" in name for name in names):
            raise InvalidValue("window", window_packets, "one class of flows; give flows and a capacity for several")
        window = ends("window", window_packets, "a window above 0 in packets, or a range")
        rate = window[1] / (rtt[0] * stretched[0] + subject.target_s)  # of one flow
        inputs = CertifyInputs(flows=None, capacity_bit_per_s=None, window_packets=window, **given)
        return Box(inputs, rate, (1.0, window[1] / window[0]), rtt)
    if flows is None or capacity_bit_per_s is None:
        missing = "flows" if flows is None else "capacity"
        raise InvalidValue(missing, None, "flows and a capacity, or a window")
    number = ends("flows", flows, "a number of flows above 0, or a range")
    capacity = ends("capacity", capacity_bit_per_s, "a rate above 0 in bit/s, or a range", RATES)
    if subject.in_bytes and capacity[0] != capacity[1]:
        raise InvalidValue("capacity", capacity, f"one rate: the thresholds of {subject.name} are in bytes")
    inputs = CertifyInputs(flows=number, capacity_bit_per_s=capacity, window_packets=None, **given)
    rate = packets_per_second(capacity[1], size)
    return Box(inputs, rate, (number[0], number[1] * (capacity[1] / capacity[0])), rtt)


def sender_names(senders: str | Iterable[str]) -> tuple[str, ...]:
    """Names of senders, of one or of several; InvalidValue for anything else."""
    found = (senders,) if isinstance(senders, str) else several("sender", senders)
    for each in found:
        if not isinstance(each, str):
            raise InvalidValue("sender", each, "names of senders")
    return found


def several(argument: str, values: object) -> tuple[Any, ...]:
    """Members of a sequence; InvalidValue for what is none."""
    if not isinstance(values, Iterable):
        raise InvalidValue(argument, values, "a sequence")
    try:
        return tuple(values)
    except (TypeError, OSError):  # an object that only looks like one
        raise InvalidValue(argument, values, "a sequence") from None


def ends(argument: str, value: Any, takes: str, limits: Ends = NUMBERS) -> Ends:
    """A value or a range as a range (low, high), else InvalidValue.

    Parameters
    ----------
    argument : str
        Name in messages.
    value : float or (float, float)
    takes : str
        Accepted values in words.
    limits : (float, float)
        Bounds of both ends.
    """
    both = tuple(value) if isinstance(value, Sequence) else (value, value)
    if len(both) != 2:
        raise InvalidValue(argument, value, takes)
    low, high = (checked_quantity(argument, end, takes, limits) for end in both)
    if low > high:
        raise InvalidValue(argument, value, f"{takes}; this range is empty")
    return low, high


class Point(NamedTuple):
    """Operating point of a law that has no bound over cells of a box."""

    flows: float
    rtt_s: float
    """[s]"""
    rate: float
    """C [packet/s]."""


def between(ends: Ends, count: int) -> list[float]:
    """A range's ends and values between in equal ratios; one value where the ends are equal."""
    low, high = ends
    return [low] if low == high else [low, *map(float, np.geomspace(low, high, count)[1:-1]), high]


def axes(box: Box, name: str) -> tuple[Ends, Ends, Ends]:
    """Flows, round-trip times [s] and rates [packet/s] of a box; InvalidValue where a window is given.

    Parameters
    ----------
    box : Box
    name : str
        Of the law, for the message.
    """
    inputs = box.inputs
    if inputs.flows is None or inputs.capacity_bit_per_s is None:
        takes = f"flows and a capacity instead: {name} has a queue in packets"
        raise InvalidValue("window", inputs.window_packets, takes)
    low, high = (float(packets_per_second(end, inputs.packet_size_bytes)) for end in inputs.capacity_bit_per_s)
    return inputs.flows, inputs.rtt_s, (low, high)


def points_of(box: Box, name: str, counts: Sequence[int]) -> list[Point]:
    """Points of a box on a grid, its corners among them.

    Parameters
    ----------
    box : Box
    name : str
        Of the law, for messages.
    counts : sequence of int
        Numbers of flows, of round-trip times and of rates.

    Raises
    ------
    InvalidValue
        A window in place of flows and a capacity, or groups of round-trip times.
    """
    if box.inputs.stretches != (1.0,):
        raise InvalidValue("stretches", box.inputs.stretches, f"one round-trip time for {name}, whose flows are alike")
    values = (between(ends, count) for ends, count in zip(axes(box, name), counts, strict=True))
    return [Point(*each) for each in product(*values)]


def spread_points(box: Box, name: str, count: int) -> list[Point]:
    """Points inside a box, spread evenly in the ratios of flows, round-trip times and rates; always the same.

    The k-th point is frac(1/2 + k phi^-j) in dimension j, where phi^4 = phi + 1: it falls on no grid (M. Roberts, "The
    unreasonable effectiveness of quasirandom sequences", 2018).

    Parameters
    ----------
    box : Box
    name : str
        Of the law, for messages.
    count : int
    """
    found = []
    for k in range(1, count + 1):
        shares = ((0.5 + k * _RATIO**-j) % 1.0 for j in (1, 2, 3))
        values = (low * (high / low) ** u for (low, high), u in zip(axes(box, name), shares, strict=True))
        found.append(Point(*values))
    return found


def kept_up_to(kept: Callable[[float], bool], start: float, step: float, far: float, halvings: int) -> float | None:
    """Greatest value up to which all values that are looked at are kept; None: not even the first.

    Parameters
    ----------
    kept : callable
    start, step, far : float
        First value, factor from one to the next, and where the search ends.
    halvings : int
        Of the ratio between the last value that is kept and the first that isn't.
    """
    if not kept(start):
        return None
    low = start
    while kept(high := low * step):
        low = high
        if low >= far:
            return low
    for _ in range(halvings):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if kept(middle) else (low, middle)
    return low


def worst_of(found: Sequence[PredictedFigures]) -> PredictedFigures:
    """Figures whose 99th percentile is longest beside what is asked, with the least utilization of all."""
    return msgspec.structs.replace(longest_of(found), utilization=min(each.utilization for each in found))


def longest_of(found: Sequence[PredictedFigures]) -> PredictedFigures:
    """Figures whose 99th percentile is longest beside what is asked."""
    return max(found, key=lambda each: each.delay_p99_s / each.most_p99_s)
