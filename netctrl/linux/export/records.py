"""Desired queues of a machine's interfaces, which exporters write and `netctrl.linux` applies."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from netctrl.core.errors import InvalidValue, checked_whole
from netctrl.core.units import parse_size
from netctrl.model.io.fields import Label, Rate, label, one_of, optional, rate, read_fields, record, records, whole
from netctrl.model.io.record_file import FileRecord, read_record

if TYPE_CHECKING:
    Bytes = int
else:  # as in netctrl.model.io.fields: the reader says what is taken
    Bytes = Any

ETHERNET_HEADER = 14
"""Bytes that the kernel counts in addition to an IP packet."""
HTB_QUANTUM = 1514
"""Quantum of an HTB's only class [byte], set because the kernel warns about its own default; it has no other effect."""
_MAX_BYTES = 16 * 2**20
_MAX_U32 = 2**32 - 1
_BYTES_TAKES = "whole bytes from 1 to 4294967295, or with a unit (B, kB, MB, GB, KiB, MiB, GiB), as in 3000 or 200kB"
_LIMIT_TAKES = "a whole number (of bytes, text with a unit too, as in 200kB)"
INTERFACE_TAKES = "the name of an interface: 1 to 15 characters, without '/' and white space"
ADDRESS_TAKES = "a link-layer address as in 02:00:5e:10:00:01"

_ADDRESS = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")


class _Shaper(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind"):
    rate: Rate
    """Rate of Ethernet frames [bit/s]; the kernel keeps whole bytes per second."""
    burst: Bytes
    """[byte]"""
    limit: Bytes
    """Limit of the queue in bytes, above 0."""
    overhead: Bytes = 0
    """Bytes added to each packet's length."""

    def __post_init__(self) -> None:
        read_fields(self, rate=rate, burst=_whole_bytes, limit=_whole_bytes, overhead=whole(0, 65535, "whole bytes"))


class TokenBucket(_Shaper, frozen=True, kw_only=True, tag="tbf"):
    """A root TBF: packets leave at `rate`, after at most `burst` bytes at once; a longer packet is dropped.

    The kernel counts Ethernet headers.
    """


class HtbClass(_Shaper, frozen=True, kw_only=True, tag="htb"):
    """A root HTB with one class, where all packets go, and a bfifo in it; `rate` is also the ceiling."""


class TcFifo(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind", tag="fifo"):
    """A root bfifo or pfifo: a queue with a limit, and no rate."""

    limit: Bytes
    """Limit of the queue in bytes or packets."""
    unit: Literal["bytes", "packets"] = "bytes"

    def __post_init__(self) -> None:
        read_fields(self, unit=one_of("bytes", "packets"))
        read_fields(self, limit=_whole_bytes if self.unit == "bytes" else whole(1, _MAX_U32, _LIMIT_TAKES))


class InterfaceQueue(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Root queue of one interface."""

    interface: str
    """Name as in `ip link`."""
    queue: TokenBucket | HtbClass | TcFifo
    link: Label | None = None
    """Link of the Design's network, for people and for the agent."""
    address: str | None = None
    """Required link-layer address of the interface, so that a plan for another machine is rejected."""

    def __post_init__(self) -> None:
        read_fields(self, interface=interface_name, queue=record(TokenBucket, HtbClass, TcFifo))
        read_fields(self, link=optional(label), address=optional(_address))


class QueuePlan(FileRecord, frozen=True, kw_only=True):
    """Desired state of a machine's interfaces; interfaces that it doesn't name are left alone."""

    schema: Literal["netctrl.linux/1"] = "netctrl.linux/1"
    name: Label = "plan"
    interfaces: tuple[InterfaceQueue, ...]

    def __post_init__(self) -> None:
        read_fields(self, name=label, interfaces=records(InterfaceQueue))
        names = [each.interface for each in self.interfaces]
        twice = sorted({name for name in names if names.count(name) > 1})
        if not names or twice:
            got = f"{twice[0]} more than once" if twice else "none"
            raise InvalidValue("interfaces", got, "at least one, each once")


def read_queue_plan(path: str | os.PathLike[str]) -> QueuePlan:
    """Read a file of desired queues strictly; raises FileError as `netctrl.model.io.record_file.read_record`."""
    return read_record(path, QueuePlan, schema="netctrl.linux/1", what="plan of queues", max_bytes=_MAX_BYTES)


def interface_name(field: str, value: Any) -> str:
    """Check a name for an interface by the kernel's rules; InvalidValue names the field."""
    good = isinstance(value, str) and 1 <= len(value.encode()) <= 15 and value not in (".", "..")
    if not good or "/" in value or ":" in value or not value.isprintable() or any(map(str.isspace, value)):
        raise InvalidValue(field, value, INTERFACE_TAKES)
    return value


def _address(field: str, value: Any) -> str:
    if not isinstance(value, str) or not _ADDRESS.fullmatch(value.lower()):
        raise InvalidValue(field, value, ADDRESS_TAKES)
    return value.lower()


def _whole_bytes(field: str, value: Any) -> int:
    try:
        number = parse_size(value) if isinstance(value, str) else value
    except ValueError:
        raise InvalidValue(field, value, _BYTES_TAKES) from None
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    return checked_whole(field, number, _BYTES_TAKES, at_least=1, at_most=_MAX_U32)
