"""Records of a network: its nodes, directed links, and demands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from netctrl.core.errors import InvalidValue, checked_number
from netctrl.model.io.fields import (
    Duration,
    Label,
    Rate,
    Size,
    instant,
    label,
    number,
    optional,
    rate,
    rate_or_0,
    read_fields,
    shares,
    size,
)
from netctrl.model.io.record_file import Record

if TYPE_CHECKING:
    Place = tuple[float, float]
    Number = float
    Split = dict[str, float]
else:  # files may hold any type, and networkx NumPy numbers: the readers below check them
    Place = Number = Split = Any


class Node(Record, frozen=True, kw_only=True):
    """A switch, router or host."""

    id: Label
    """Unique among the nodes."""
    name: str | None = None
    """Display name."""
    pos: Place | None = None
    """Position in drawings: longitude and latitude, or any x and y."""

    def __post_init__(self) -> None:
        read_fields(self, id=label, name=optional(text), pos=optional(_place))


class Link(Record, frozen=True, kw_only=True):
    """One direction of a line, with its buffer at `source`."""

    source: Label
    """Node that the link leaves (the HFTraC paper's tail)."""
    target: Label
    """Node that the link enters (the HFTraC paper's head)."""
    capacity: Rate
    """Rate of the link [bit/s]."""
    id: Label = ""
    """Unique among the links; "source->target" by default."""
    delay: Duration = 0.0
    """Propagation delay, one way [s]."""
    buffer: Size | None = None
    """Size of the buffer [byte]; null is unlimited."""
    weight: Number | None = None
    """lambda of HFTraC [1/s²]: cost of a squared backlog [bit²] relative to a squared rate [(bit/s)²]."""

    def __post_init__(self) -> None:
        read_fields(self, source=label, target=label, capacity=rate, delay=instant, buffer=optional(size))
        read_fields(self, weight=optional(number("a weight of at least 0, in 1/s²", at_least=0.0)))
        if self.id is None or self.id == "":  # 0 is a valid id
            msgspec.structs.force_setattr(self, "id", f"{self.source}->{self.target}")
        read_fields(self, id=label)
        if self.source == self.target:
            raise InvalidValue("target", self.target, "a node other than source")


class Demand(Record, frozen=True, kw_only=True):
    """Traffic from one node to another: its mean rate and standard deviation."""

    source: Label
    """Node at which the traffic enters the network."""
    target: Label
    """Node at which the traffic leaves the network."""
    mean: Rate
    """Mean rate [bit/s]."""
    std: Rate = 0.0
    """Standard deviation of the rate, averaged over a sampling interval [bit/s]."""
    id: Label = ""
    """Unique among the demands; "source=>target" by default."""
    split: Split | None = None
    """Link id -> share of the demand's traffic at the link's source that takes it; null: the path of least delay."""

    def __post_init__(self) -> None:
        read_fields(self, source=label, target=label, mean=rate, std=rate_or_0, split=optional(shares))
        if self.id is None or self.id == "":
            msgspec.structs.force_setattr(self, "id", f"{self.source}=>{self.target}")
        read_fields(self, id=label)
        if self.source == self.target:
            raise InvalidValue("target", self.target, "a node other than source")


def text(field: str, value: Any) -> str:
    """Text; InvalidValue names the field."""
    if not isinstance(value, str):
        raise InvalidValue(field, value, "text")
    return value


def _place(field: str, value: Any) -> tuple[float, float]:
    takes = "two finite numbers, as longitude and latitude"
    try:
        x, y = (checked_number(field, each, takes) for each in value)
    except (TypeError, ValueError):  # InvalidValue, not iterable, or not two numbers
        raise InvalidValue(field, value, takes) from None
    return x, y
