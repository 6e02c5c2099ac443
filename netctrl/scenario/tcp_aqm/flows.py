"""Groups of flows: how many, over which links, from when to when, under which sender's law."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from netctrl.errors import InvalidValue, checked_word
from netctrl.laws.rate.records import Sender, read_sender
from netctrl.model.io.fields import (
    Duration,
    Rate,
    Size,
    Span,
    duration,
    flag,
    identifier,
    number,
    optional,
    rate,
    read_fields,
    size,
    span,
    texts,
    whole,
)
from netctrl.model.io.record_file import Record

__all__ = ["GROUPS", "MAX_FLOWS", "BulkFlows", "FastFlows", "FlowDraw", "FlowGroup", "UdpFlows", "WebFlows"]

MAX_FLOWS = 100_000


class _Flows(Record, frozen=True, kw_only=True, tag_field="kind"):
    """What all groups of flows have."""

    id: str
    path: tuple[str, ...]
    """Ids of the links that the data crosses, in order."""
    rtt: Span
    """Round-trip propagation delay of the whole path [s]; a range is drawn from uniformly."""
    start: Span = (0.0, 0.0)
    """When they start [s]; a range is drawn from uniformly."""
    stop: Span | None = None
    """When they stop [s]; null: never."""
    ack_path: tuple[str, ...] = ()
    """Ids of the links that the acknowledgements cross; empty: links that are never busy."""
    ecn: bool = True
    """Can be marked; else it is dropped."""
    sender: Sender = "reno"
    """A window law's name (reno, cubic, htcp, dctcp, vegas), bbr, or a table: `kind = "paced"` or `"cap"`. Senders
    without a window hear no marks, so that their packets can't be marked."""
    priority: int = 0
    """Of its packets in `prio` queues; 0 is first."""
    weight: float = 1.0
    """Of each flow in `drr` queues."""

    @property
    def both_ways(self) -> tuple[str, ...]:
        """Ids of the lines that a packet and its acknowledgement cross; without `ack_path` they are the same ones."""
        return (*self.path, *(self.ack_path or self.path))

    def _read(self, count: str) -> None:
        read_fields(
            self, id=identifier, path=texts, rtt=span, start=span, stop=optional(span), ack_path=texts, ecn=flag
        )
        weight = number("a weight from 0.01 to 100", at_least=0.01, at_most=100.0)
        read_fields(self, priority=whole(0, 63), weight=weight, **{count: whole(1, MAX_FLOWS)})
        read_fields(self, sender=read_sender)
        if self.rtt[0] < 1e-9 and not isinstance(self, UdpFlows):
            raise InvalidValue("rtt", self.rtt, "a round-trip time from 1ns, as in 500ms, or a range of them")
        if self.stop is not None and self.stop[0] <= self.start[1]:
            raise InvalidValue("stop", self.stop, f"times after the last start ({self.start[1]:g} s)")
        if not self.path:
            raise InvalidValue("path", self.path, "the ids of one link or more")


class BulkFlows(_Flows, frozen=True, kw_only=True, tag="bulk"):
    """TCP flows that always have data."""

    count: int
    classes: int | None = None
    """Flows are merged into this many classes of equal size, each with one RTT and one start; null: each its own.
    ns-3 knows no classes and runs `count` flows."""

    def __post_init__(self) -> None:
        self._read("count")
        read_fields(self, classes=optional(whole(1, self.count, "no more classes than flows, a whole number")))


class WebFlows(_Flows, frozen=True, kw_only=True, tag="web"):
    """Sessions that load a page of a few objects, think, and load the next.

    Source: ARC paper, Section IV (Pareto sizes of shape 1.2 and mean 5 kB, exponential think time of 7 s).
    """

    sessions: int
    objects_per_page: int = 2
    mean_object: Size = 5e3
    pareto_shape: float = 1.2
    max_object: Size = 10e6
    """Sizes are cut off here [byte]."""
    think_time: Duration = 7.0
    """Mean of an exponential distribution, from the end of a page to the next [s]."""

    def __post_init__(self) -> None:
        self._read("sessions")
        read_fields(self, mean_object=size, max_object=size, think_time=duration)
        shape = number("a shape above 1 (the mean must exist), to 100", above=1.0, at_most=100.0)
        read_fields(self, objects_per_page=whole(1, 1000), pareto_shape=shape)
        if self.max_object <= self.mean_object:
            raise InvalidValue("max_object", self.max_object, "a size above mean_object")


class FastFlows(_Flows, frozen=True, kw_only=True, tag="fast"):
    """Senders whose rate is max_rate · exp(−gain · price/rtt), with the price that a `fast-arc` queue marks.

    Fluid only. Source: Paganini, Wang, Low, Doyle, INFOCOM 2003 (reference [14] of the ARC paper), static source law.
    """

    count: int
    max_rate: Rate
    gain: float
    """a of the source law."""

    def __post_init__(self) -> None:
        self._read("count")
        read_fields(self, max_rate=rate, gain=number("a gain above 0, to 1e9", above=0.0, at_most=1e9))


class UdpFlows(_Flows, frozen=True, kw_only=True, tag="udp"):
    """Senders of whole packets at a rate that nothing changes, each with a phase of its own. Packet engine only."""

    count: int
    rate: Rate
    """Of each, with headers."""
    spacing: Literal["constant", "poisson"] = "poisson"
    rtt: Span = (0.0, 0.0)
    """Counts for nothing: nobody answers."""

    def __post_init__(self) -> None:
        self._read("count")
        read_fields(self, rate=rate)
        checked_word("spacing", self.spacing, ("constant", "poisson"))


GROUPS = (BulkFlows, WebFlows, FastFlows, UdpFlows)
FlowGroup = BulkFlows | WebFlows | FastFlows | UdpFlows
"""Every kind of flows; in a file, `kind` tells which."""


@dataclass(frozen=True, slots=True, eq=False)
class FlowDraw:
    """The flows of one group, one row each; arrays of one length.

    Parameters
    ----------
    rtt_s : ndarray
        Round-trip propagation delay [s].
    start_s, stop_s : ndarray
        When it starts and stops [s]; stop is inf where it never does.
    flows : ndarray
        How many flows the row stands for; 1 but for merged classes.
    """

    rtt_s: np.ndarray
    start_s: np.ndarray
    stop_s: np.ndarray
    flows: np.ndarray
