"""Messages of rtnetlink as bytes: requests for interfaces, addresses, routes and queues, and the kernel's data of them.

Nothing is sent here: a socket of this machine (`netctrl.linux.kernel.netlink`), a process in another namespace, or
another kernel does that. Each request for a change asks for an acknowledgement; the sender numbers it.

Source: RFC 3549; linux/rtnetlink.h, if_link.h, veth.h, pkt_cls.h, tc_act/tc_mirred.h.
"""

from __future__ import annotations

import socket
import struct
import sys
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Literal

_ATTRIBUTE = struct.Struct("=HH")
_TYPE_MASK = 0x3FFF  # the two upper bits are flags: nested, and network byte order
_NESTED = 0x8000

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

HEAD = struct.Struct("=IHHII")
"""struct nlmsghdr: length, kind, flags, number, port."""
REQUEST, ACK = 0x1, 0x4
_ADD = 0x400
CREATE, REPLACE, CHANGE = _ADD | 0x200, _ADD | 0x100, 0
"""Ways to set a queue: a new one, over an existing one EEXIST; instead of an existing one; other options of it."""
NEWLINK, NEWQDISC, NEWTCLASS, NEWTFILTER = 16, 36, 40, 44
_NEWADDR, _NEWROUTE, _DELQDISC, _DELTFILTER = 20, 24, 37, 45

_IFADDRMSG = struct.Struct("=BBBBi")
_RTMSG = struct.Struct("=BBBBBBBBI")
_UP, _NOARP = 0x1, 0x80
_L_TXQLEN, _L_LINKINFO, _L_NS_FD, _L_MAX_SEGMENTS = 13, 18, 28, 40
_INFO_KIND, _INFO_DATA, _VETH_PEER = 1, 2, 1
_A_ADDRESS, _A_LOCAL = 1, 2
_R_DST, _R_OIF, _R_SOURCE, _R_METRICS, _INITCWND = 1, 4, 7, 8, 11
_MAIN_TABLE, _STATIC, _LINK_SCOPE, _UNICAST = 254, 4, 253, 1
_INGRESS_HANDLE, _INGRESS_CLASS = 0xFFFF0000, 0xFFFF0000
EGRESS = 0xFFFFFFF3
"""Place of classifiers of packets that leave an interface; EGRESS - 1: of those that arrive."""
_ALL_PROTOCOLS = 0x0003
_BPF_FD, _BPF_NAME, _BPF_FLAGS, _BPF_DIRECT = 6, 7, 8, 1
_MATCHALL_ACTION = 2
_U32_SELECTOR, _U32_ACTION = 5, 7
_U32_ANY = struct.pack("=BBB29x", 1, 0, 1)  # terminal; one key, whose mask is 0
_ACT_KIND, _ACT_OPTIONS, _MIRRED_PARMS = 1, 2, 2
_MIRRED = struct.Struct("=IIiiiiI")  # index, capab, action, refcnt, bindcnt, eaction, ifindex
_STOLEN, _REDIRECT = 4, 1  # TC_ACT_STOLEN, TCA_EGRESS_REDIR


def attribute(kind: int, payload: bytes) -> bytes:
    """One attribute, padded to four bytes."""
    length = _ATTRIBUTE.size + len(payload)
    return _ATTRIBUTE.pack(length, kind) + payload + bytes(-length % 4)


def nested(kind: int, *inside: bytes) -> bytes:
    """An attribute that contains attributes."""
    return attribute(kind | _NESTED, b"".join(inside))


def attributes(content: bytes | memoryview, start: int = 0) -> dict[int, bytes]:
    """Payloads by type; the last one of a repeated type.

    Raises
    ------
    ValueError
        Inconsistent lengths.
    """
    found, stop = {}, len(content)
    while start + _ATTRIBUTE.size <= stop:
        length, kind = _ATTRIBUTE.unpack_from(content, start)
        if length < _ATTRIBUTE.size or start + length > stop:
            raise ValueError(f"attribute {kind & _TYPE_MASK} of {length} bytes at {start} ends after {stop}")
        found[kind & _TYPE_MASK] = bytes(content[start + _ATTRIBUTE.size : start + length])
        start += (length + 3) & ~3
    return found


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
    def name(self) -> str:
        """Kind and handle, as in tc(8)."""
        return f"{self.kind} {handle_text(self.handle)}"

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


# --- requests --------------------------------------------------------------------------------------------------------


def message(kind: int, flags: int, body: bytes) -> bytes:
    """A request; what sends it numbers it."""
    return HEAD.pack(HEAD.size + len(body), kind, REQUEST | flags, 1, 0) + body


def _change(kind: int, how: int, body: bytes) -> bytes:
    return message(kind, ACK | how, body)


def _text(kind: int, text: str) -> bytes:
    return attribute(kind, text.encode() + b"\0")


def _u32(kind: int, number: int) -> bytes:
    return attribute(kind, struct.pack("=I", number))


def _described(kind: str, options: bytes) -> bytes:
    return _text(_KIND, kind) + (nested(_OPTIONS, options) if options else b"")


def set_up(index: int, queue: int | None = None) -> bytes:
    """Switch on an interface, such as the loopback, whose index is 1; `queue`: most packets that wait at it."""
    length = b"" if queue is None else _u32(_L_TXQLEN, queue)
    return _change(NEWLINK, 0, IFINFOMSG.pack(0, 0, index, _UP, _UP) + length)


def add_veth(
    index: int,
    name: str,
    peer_index: int,
    peer_name: str,
    peer_namespace: int | None,
    address: bytes,
    segments: int | None = None,
) -> bytes:
    """Create a pair of connected interfaces, not yet up: the peer in the namespace of that descriptor, or here.

    Both have the same link-layer address and no ARP, so each takes what the other sends, whatever its IP address.
    Both pass at most this number of segments of TCP at once; None: the kernel's own number.
    """
    own = attribute(_ADDRESS, address) + (b"" if segments is None else _u32(_L_MAX_SEGMENTS, segments))
    peer = IFINFOMSG.pack(0, 0, peer_index, _NOARP, _NOARP) + _text(_NAME, peer_name) + own
    if peer_namespace is not None:
        peer += _u32(_L_NS_FD, peer_namespace)
    info = _text(_INFO_KIND, "veth") + nested(_INFO_DATA, attribute(_VETH_PEER, peer))
    body = IFINFOMSG.pack(0, 0, index, _NOARP, _NOARP) + _text(_NAME, name) + own + nested(_L_LINKINFO, info)
    return _change(NEWLINK, CREATE, body)


def add_dummy_queue(index: int, name: str) -> bytes:
    """Create an `ifb` interface, which is up: what is redirected to it leaves it as it came, after its queue."""
    info = _text(_INFO_KIND, "ifb")
    body = IFINFOMSG.pack(0, 0, index, _UP, _UP) + _text(_NAME, name) + nested(_L_LINKINFO, info)
    return _change(NEWLINK, CREATE, body)


def add_address(index: int, address: IPv4Address, prefix: int = 32) -> bytes:
    """Give an interface an IPv4 address, of its own or in a network that it reaches."""
    body = _IFADDRMSG.pack(socket.AF_INET, prefix, 0, 0, index)
    body += attribute(_A_LOCAL, address.packed) + attribute(_A_ADDRESS, address.packed)
    return _change(_NEWADDR, CREATE, body)


def add_route(
    address: IPv4Address, index: int, first_window: int | None = None, source: IPv4Address | None = None
) -> bytes:
    """Send packets for an IPv4 address out of an interface, TCP's with this initial window [packet].

    `source` is the address of what is sent from here.
    """
    body = _RTMSG.pack(socket.AF_INET, 32, 0, 0, _MAIN_TABLE, _STATIC, _LINK_SCOPE, _UNICAST, 0)
    body += attribute(_R_DST, address.packed) + _u32(_R_OIF, index)
    if source is not None:
        body += attribute(_R_SOURCE, source.packed)
    if first_window is not None:
        body += nested(_R_METRICS, _u32(_INITCWND, first_window))
    return _change(_NEWROUTE, CREATE, body)


def set_queue(index: int, parent: int, handle: int, kind: str, options: bytes = b"", how: int = CREATE) -> bytes:
    """Create, replace or change a queueing discipline at a place; `options` is the payload of TCA_OPTIONS."""
    return _change(NEWQDISC, how, TCMSG.pack(0, index, handle, parent, 0) + _described(kind, options))


def set_class(index: int, parent: int, handle: int, kind: str, options: bytes, how: int = CREATE) -> bytes:
    """Create or change a class of a queueing discipline."""
    return _change(NEWTCLASS, how, TCMSG.pack(0, index, handle, parent, 0) + _described(kind, options))


def delete_queue(index: int, parent: int, handle: int) -> bytes:
    """Remove the queue at a place if it has this handle."""
    return _change(_DELQDISC, 0, TCMSG.pack(0, index, handle, parent, 0))


def redirect_arrivals(index: int, target: int, by: Literal["matchall", "u32"] = "matchall") -> tuple[bytes, bytes]:
    """Two requests: packets that arrive at an interface leave by another one, `by` a classifier that takes all."""
    parms = attribute(_MIRRED_PARMS, _MIRRED.pack(0, 0, _STOLEN, 0, 0, _REDIRECT, target))
    actions = nested(1, _text(_ACT_KIND, "mirred") + nested(_ACT_OPTIONS, parms))
    if by == "u32":
        options = attribute(_U32_SELECTOR, _U32_ANY) + nested(_U32_ACTION, actions)
    else:
        options = nested(_MATCHALL_ACTION, actions)
    put = _change(NEWTFILTER, CREATE, _filter_place(index, _INGRESS_CLASS, 0, 1) + _described(by, options))
    return set_queue(index, INGRESS, _INGRESS_HANDLE, "ingress"), put


def classify_departures(index: int, program: int, handle: int = 0, priority: int = 1) -> tuple[bytes, bytes]:
    """Two requests: a classifier, by its descriptor, decides on packets that leave an interface, before any queue.

    The second replaces a classifier with this handle and priority.
    """
    options = _u32(_BPF_FD, program) + _text(_BPF_NAME, "netctrl") + _u32(_BPF_FLAGS, _BPF_DIRECT)
    put = _change(NEWTFILTER, _ADD, _filter_place(index, EGRESS, handle, priority) + _described("bpf", options))
    return set_queue(index, INGRESS, _INGRESS_HANDLE, "clsact"), put


def stop_classifying(index: int, handle: int, priority: int) -> tuple[bytes, bytes]:
    """Two requests that remove such a classifier, and clsact."""
    remove = _change(_DELTFILTER, 0, _filter_place(index, EGRESS, handle, priority) + _described("bpf", b""))
    return remove, delete_queue(index, INGRESS, _INGRESS_HANDLE)


def _filter_place(index: int, parent: int, handle: int, priority: int) -> bytes:
    return TCMSG.pack(0, index, handle, parent, priority << 16 | socket.htons(_ALL_PROTOCOLS))
