"""Fields of all groups of flows, and of those without acknowledgements."""

from __future__ import annotations

from typing import ClassVar

from netctrl.errors import InvalidValue
from netctrl.laws.rate.records import Sender, read_sender, scheme_of, sender_name
from netctrl.model.io.fields import Span, flag, identifier, number, optional, read_fields, record, span, texts, whole
from netctrl.model.io.record_file import Record
from netctrl.scenario.tcp_aqm.host import Host

__all__ = ["MAX_FLOWS", "Datagrams", "Flows"]

MAX_FLOWS = 100_000


class Flows(Record, frozen=True, kw_only=True, tag_field="kind"):
    """Fields of all groups of flows."""

    id: str
    """Unique among the groups of flows."""
    path: tuple[str, ...]
    """Ids of the links that the data crosses, in order."""
    rtt: Span
    """Round-trip propagation delay of the whole path [s]; a range is sampled uniformly."""
    start: Span = (0.0, 0.0)
    """Start times [s]; a range is sampled uniformly."""
    stop: Span | None = None
    """Stop times [s]; null: never."""
    ack_path: tuple[str, ...] = ()
    """Ids of the links that the acknowledgements cross; empty: uncongested links."""
    ecn: bool = True
    """Whether packets can be marked; otherwise they are dropped."""
    sender: Sender = "reno"
    """A window law's name (reno, cubic, htcp, dctcp, vegas, prague), bbr, a data centre's law (hpcc, timely, dcqcn,
    mpcc, fixed), or a table: `kind = "paced"`, `"cap"` or a data centre's law with its parameters. Packets of senders
    that don't use marks can't be marked."""
    host: Host | None = None
    """Host of a data-centre law; null: `Host` with its defaults."""
    priority: int = 0
    """Priority in `prio` queues, where 0 is first, and class in `cbq` queues."""
    weight: float = 1.0
    """Weight of each flow in `drr` and `wfq` queues."""
    answered: ClassVar[bool] = True
    """Whether packets are acknowledged."""

    @property
    def both_ways(self) -> tuple[str, ...]:
        """Ids of the links that a packet and its acknowledgement cross; without `ack_path` those of `path`, twice."""
        return (*self.path, *(self.ack_path or self.path))

    def read(self, count: str) -> None:
        """Read the fields of all groups; `count` is the field with the number of flows."""
        read_fields(
            self, id=identifier, path=texts, rtt=span, start=span, stop=optional(span), ack_path=texts, ecn=flag
        )
        weight = number("a weight from 0.01 to 100", at_least=0.01, at_most=100.0)
        read_fields(self, priority=whole(0, 63), weight=weight, **{count: whole(1, MAX_FLOWS)})
        read_fields(self, sender=read_sender, host=optional(record(Host)))
        if self.host is not None and scheme_of(self.sender) is None:
            takes = f"nothing: flows of {sender_name(self.sender)} have no host port"
            raise InvalidValue("host", "a host", takes)
        if self.answered and self.rtt[0] < 1e-9:
            raise InvalidValue("rtt", self.rtt, "a round-trip time from 1ns, as in 500ms, or a range of them")
        if self.stop is not None and self.stop[0] <= self.start[1]:
            raise InvalidValue("stop", self.stop, f"times after the last start ({self.start[1]:g} s)")
        if not self.path:
            raise InvalidValue("path", self.path, "the ids of one or more links")


class Datagrams(Flows, frozen=True, kw_only=True):
    """Senders of whole packets without acknowledgements."""

    count: int = 1
    """How many senders."""
    rtt: Span = (0.0, 0.0)
    """No effect."""
    answered: ClassVar[bool] = False
