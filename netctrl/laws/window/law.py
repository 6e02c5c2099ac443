"""Interface of a data centre's window laws: a record in files, named parameters and state, and a pure step.

A step is `step(state, seen, path, parameters)`, called at each acknowledgement; it returns the next state, whose first
fields are `window` [byte] and `rate` [bit/s]. It is written in the subset that `netctrl.laws.codegen` turns into C++.
Times are nanoseconds, sizes bytes, rates bit/s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from types import FunctionType
from typing import Any, NamedTuple

import msgspec
import numpy as np

from netctrl.model.io.fields import number

SHARE = number("a share above 0, to 1", above=0.0, at_most=1.0)
MAX_HOPS = 5
"""Switch ports on a path."""


class SchemeRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind"):
    """How senders set their windows and rates, as files have it; `kind` tells which."""


class Hop(NamedTuple):
    """What a switch port says of itself when a packet leaves it."""

    queue: float
    """That waits behind the packet [byte]"""
    flows: float
    """That pass it"""
    sent: float
    """So far, this packet included [byte]"""
    time: float
    """[ns]"""


Hops = tuple[Hop, Hop, Hop, Hop, Hop]
"""Of the ports on the way, in order; zeros behind the last."""
Rates = tuple[float, float, float, float, float]
_NO_HOP = Hop(0.0, 0.0, 0.0, 0.0)
SILENT: Hops = (_NO_HOP, _NO_HOP, _NO_HOP, _NO_HOP, _NO_HOP)


class Acknowledged(NamedTuple):
    """What a sender knows when an acknowledgement comes."""

    now: float
    """[ns]"""
    una: float
    """First byte that isn't acknowledged"""
    next_byte: float
    """First byte that wasn't sent"""
    newly: float
    """Bytes that it acknowledges for the first time"""
    rtt: float
    """From its packet's departure to now [ns]"""
    marked: bool
    """Its packet was (ECN)"""
    notified: bool
    """It carries a notification (CNP)"""
    lost: bool
    """It says that a packet is missing"""
    hops: Hops
    """Telemetry of its packet, for a law that asks for it"""


class Path(NamedTuple):
    """A kind of path."""

    base_rtt: float
    """Round trip without queues [ns]"""
    bdp: float
    """The round trip in bytes at line rate"""
    line_rate: float
    """The sender's [bit/s]"""
    hops: float
    """Switch ports on it"""
    rates: Rates
    """Theirs [bit/s]"""


class Packet(NamedTuple):
    """What a law's parameters may depend on besides its record."""

    payload: float
    """Of a full packet [byte]."""
    wire: float
    """The same with all that is around it [byte]."""
    longest: float
    """Round trip of the longest path without queues [ns]."""


class Marking(NamedTuple):
    """ECN at switch ports: above `low` with a probability that rises to `most` at `high`, where all are marked."""

    low: float
    """[byte], of a queue at a link of `rate`; in proportion to the rate of others."""
    high: float
    most: float
    rate: float
    """[bit/s]"""


class Telemetry(IntEnum):
    """What switch ports write into packets."""

    NONE = 0
    QUEUES = 1
    """And bytes and times."""
    FLOWS = 2
    """Also how many flows pass them."""


def _bdp(_: Any, path: Path) -> float:
    return path.bdp


@dataclass(frozen=True, slots=True)
class WindowLaw:
    """A law, from its record in files to its step."""

    record: Any
    parameters: Any
    """A NamedTuple of floats; a line of text behind each field says what it is, with its unit."""
    state: Any
    """A NamedTuple that starts as zeros, but for `window` and `rate`; a field may be `Hops`."""
    read: Callable[[Any, Packet], Any]
    """(record, sizes of a packet) -> parameters."""
    step: FunctionType
    """Arguments: state, seen, path, p, and those that it needs of `table` and `memory`."""
    start: Callable[[Any, Path], float] = _bdp
    """(record, path) -> the first window [byte]; inf is no limit. The first rate is line rate."""
    sent: FunctionType | None = None
    """`sent(state, now, count, path, p)`: the next state when a packet of `count` bytes leaves."""
    telemetry: Telemetry = Telemetry.NONE
    marking: Callable[[Any], Marking] | None = None
    notification: Callable[[Any], float] | None = None
    """record -> least time between two notifications of marks (CNP) [s]; None: there are none."""
    path: Callable[[Any, Path], Path] | None = None
    """(record, path) -> what the law takes the path for, where that isn't the path itself."""
    table: Callable[[Any, Path, float, int], np.ndarray] | None = None
    """(record, path, full packet [byte], most flows) -> numbers that the step looks up, the same for all flows."""
    memory: Callable[[Any, Path, float], int] | None = None
    """(record, path, full packet [byte]) -> how many numbers the step keeps besides its state, zeros at first."""

    @property
    def name(self) -> str:
        """As in files."""
        return self.record.__struct_config__.tag
