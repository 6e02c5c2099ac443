"""Boxes of operating points: flows, round-trip times, rates and senders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypedDict

from netctrl.certificates.record import MIN_GAIN_DB, MIN_PHASE_DEG, CertifyInputs
from netctrl.errors import InvalidValue, checked_number
from netctrl.units import RATES, SIZES, TIMES, checked_quantity, packets_per_second

__all__ = [
    "MIN_FACTOR",
    "MIN_GAIN_DB",
    "MIN_PHASE_DEG",
    "MIN_WINDOW",
    "NUMBERS",
    "Box",
    "Ends",
    "Judged",
    "Where",
    "box_of",
    "ends",
    "sender_names",
    "several",
]

Ends = tuple[float, float]
NUMBERS = (1e-12, 1e18)
"""Bounds of flows and windows, against overflow."""
MIN_FACTOR = 10.0 ** (MIN_GAIN_DB / 20.0)
"""Gain margin of the design rule as a factor."""
MIN_WINDOW = 2.0
"""Least window [packet]: below it TCP waits for time-outs, which the window laws leave out."""


class Judged(Protocol):
    """Part of a law that a box needs to know."""

    @property
    def name(self) -> str: ...

    @property
    def in_bytes(self) -> bool: ...

    @property
    def target_s(self) -> float: ...


class Where(TypedDict, total=False):
    """Arguments of `netctrl.certify` that make a box."""

    rtt_s: float | Ends
    flows: float | Ends | None
    capacity_bit_per_s: float | Ends | None
    window_packets: float | Ends | None
    packet_size_bytes: float
    senders: str | Iterable[str] | None
    stretches: Sequence[float]


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


def box_of(
    subject: Judged,
    rtt_s: float | Ends,
    flows: float | Ends | None = None,
    capacity_bit_per_s: float | Ends | None = None,
    window_packets: float | Ends | None = None,
    packet_size_bytes: float = 1500.0,
    senders: str | Iterable[str] | None = None,
    stretches: Sequence[float] = (1.0,),
) -> Box:
    """The box in the coordinates of a loop. Only the rate per flow counts, so a range of rates is one of flows."""
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
    given = {"rtt_s": rtt, "packet_size_bytes": size, "senders": names, "stretches": stretched}
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
        trip = rtt[0] * stretched[0] + subject.target_s
        rate = window[1] / trip  # of one flow
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
    """A value or a range (low, high) within limits as a range, else InvalidValue."""
    both = tuple(value) if isinstance(value, Sequence) else (value, value)
    if len(both) != 2:
        raise InvalidValue(argument, value, takes)
    low, high = (checked_quantity(argument, end, takes, limits) for end in both)
    if low > high:
        raise InvalidValue(argument, value, f"{takes}; this range is empty")
    return low, high
