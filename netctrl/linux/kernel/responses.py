"""The kernel's data of interfaces and queues: frozen records, decoded from rtnetlink's bytes."""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass

from netctrl.linux.kernel.attributes import attributes

__all__ = [
    "IFINFOMSG",
    "INGRESS",
    "ROOT",
    "TCMSG",
    "Counters",
    "Link",
    "Qdisc",
    "classid",
    "handle_text",
    "read_link",
    "read_qdisc",
]

ROOT = 0xFFFFFFFF
"""TC_H_ROOT, the parent of an interface's outermost queue."""
INGRESS = 0xFFFFFFF1
"""TC_H_INGRESS, the parent of queues for incoming packets."""

TCMSG = struct.Struct("=BxxxiIII")
"""struct tcmsg: family, interface, handle, parent, info."""
IFINFOMSG = struct.Struct("=BxHiII")
"""struct ifinfomsg: family, kind, index, flags, change."""

_ADDRESS, _NAME, _MTU = 1, 3, 4  # IFLA_*, then TCA_*, TCA_STATS_*
_KIND, _OPTIONS, _STATS2, _STAB, _INGRESS_BLOCK, _EGRESS_BLOCK = 1, 2, 7, 8, 13, 14
_BASIC, _RATE_EST, _QUEUE, _APP, _PKT64 = 1, 2, 3, 4, 8
_UP = 1


@dataclass(frozen=True, slots=True)
class Link:
    """An interface."""

    index: int
    name: str
    mtu: int
    """Largest IP packet [byte]."""
    address: str
    """Link-layer address, "" where there is none."""
    kind: int
    """ARPHRD_*: 1 Ethernet, 772 loopback, 65534 none."""
    up: bool


@dataclass(frozen=True, slots=True)
class Counters:
    """Counters of a queue since its creation, and its backlog."""

    bytes: int
    packets: int
    drops: int
    overlimits: int
    requeues: int
    backlog_bytes: int
    backlog_packets: int


@dataclass(frozen=True, slots=True)
class Qdisc:
    """Queueing discipline of an interface, or a class of one."""

    index: int
    """Index of the interface."""
    handle: int
    """0: the kernel's default queue."""
    parent: int
    """`ROOT`, `INGRESS`, or a class."""
    kind: str
    options: bytes
    """Options as the kernel reports them (`netctrl.linux.kernel.qdisc`)."""
    counters: Counters
    leaf: int = 0
    """For a class the handle of the queue in it, for a queue its number of uses."""
    extras: tuple[str, ...] = ()
    """Data that are not in the options: a size table, shared filter blocks, an estimator."""
    xstats: bytes = b""
    """Counters of this kind of queue alone (`netctrl.linux.kernel.queue_options.queue_counts`)."""

    @property
    def is_default(self) -> bool:
        """Whether the kernel created it by itself."""
        return self.handle == 0


def classid(handle: int, minor: int) -> int:
    """Class 1:2 of the queue 1:0."""
    return handle & 0xFFFF0000 | minor


def handle_text(handle: int) -> str:
    """Handle as in tc(8): "1:" or "1:2"; "root" for `ROOT`."""
    if handle in (ROOT, INGRESS):
        return "root" if handle == ROOT else "ingress"
    return f"{handle >> 16:x}:{handle & 0xFFFF:x}" if handle & 0xFFFF else f"{handle >> 16:x}:"


def read_link(body: bytes) -> Link:
    """Interface from the body of RTM_NEWLINK."""
    _, kind, index, flags, _ = IFINFOMSG.unpack_from(body)
    found = attributes(body, IFINFOMSG.size)
    return Link(
        index=index,
        name=found[_NAME].split(b"\0")[0].decode(errors="surrogateescape"),
        mtu=int.from_bytes(found.get(_MTU, b""), sys.byteorder),
        address=":".join(f"{byte:02x}" for byte in found.get(_ADDRESS, b"")),
        kind=kind,
        up=bool(flags & _UP),
    )


def read_qdisc(body: bytes) -> Qdisc:
    """Queue or class from the body of RTM_NEWQDISC or RTM_NEWTCLASS."""
    _, index, handle, parent, info = TCMSG.unpack_from(body)
    found = attributes(body, TCMSG.size)
    stats = attributes(found.get(_STATS2, b""))
    names = {_STAB: "a size table", _INGRESS_BLOCK: "a shared ingress block", _EGRESS_BLOCK: "a shared egress block"}
    extras = [what for number, what in names.items() if number in found]
    return Qdisc(
        index=index,
        handle=handle,
        parent=parent,
        kind=found[_KIND].split(b"\0")[0].decode(),
        options=found.get(_OPTIONS, b""),
        counters=_counters(stats),
        leaf=info,
        extras=(*extras, *(["a rate estimator"] if _RATE_EST in stats else [])),
        xstats=stats.get(_APP, b""),
    )


def _counters(stats: dict[int, bytes]) -> Counters:
    sent, packets = struct.unpack_from("=QI", stats.get(_BASIC, b"").ljust(12, b"\0"))
    if _PKT64 in stats:
        (packets,) = struct.unpack_from("=Q", stats[_PKT64])
    waiting, backlog, drops, requeues, overlimits = struct.unpack_from("=5I", stats.get(_QUEUE, b"").ljust(20, b"\0"))
    return Counters(sent, packets, drops, overlimits, requeues, backlog, waiting)
