"""Requests of rtnetlink as bytes, for interfaces, addresses, routes, queues and a redirection of arrivals.

Nothing is sent: a process in another network namespace, or another kernel, does that. Each asks for an acknowledgement.
Source: RFC 3549; linux/rtnetlink.h, if_link.h, veth.h, pkt_cls.h, tc_act/tc_mirred.h.
"""

from __future__ import annotations

import socket
import struct
from ipaddress import IPv4Address

from netctrl.linux.kernel.attributes import attribute, nested
from netctrl.linux.kernel.responses import IFINFOMSG, TCMSG

__all__ = [
    "add_address",
    "add_class",
    "add_dummy_queue",
    "add_queue",
    "add_route",
    "add_veth",
    "change_class",
    "change_queue",
    "classify_departures",
    "redirect_arrivals",
    "set_up",
]

_HEAD = struct.Struct("=IHHII")
_IFADDRMSG = struct.Struct("=BBBBi")
_RTMSG = struct.Struct("=BBBBBBBBI")
_REQUEST, _ACK, _REPLACE, _EXCL, _CREATE = 0x1, 0x4, 0x100, 0x200, 0x400
_NEWLINK, _NEWADDR, _NEWROUTE, _NEWQDISC, _NEWTCLASS, _NEWTFILTER = 16, 20, 24, 36, 40, 44
_UP, _NOARP = 0x1, 0x80
_ETHERNET = 1  # ARPHRD_ETHER
_L_ADDRESS, _L_NAME, _L_LINKINFO, _L_NS_FD, _L_MAX_SEGMENTS = 1, 3, 18, 28, 40
_INFO_KIND, _INFO_DATA, _VETH_PEER = 1, 2, 1
_A_ADDRESS, _A_LOCAL = 1, 2
_R_DST, _R_OIF, _R_METRICS, _INITCWND = 1, 4, 8, 11
_MAIN_TABLE, _STATIC, _LINK_SCOPE, _UNICAST = 254, 4, 253, 1
_KIND, _OPTIONS = 1, 2
_INGRESS, _INGRESS_HANDLE, _INGRESS_CLASS = 0xFFFFFFF1, 0xFFFF0000, 0xFFFF0000
_EGRESS_CLASS = 0xFFFFFFF3
_ALL_PROTOCOLS = 0x0003
_BPF_FD, _BPF_NAME, _BPF_FLAGS, _BPF_DIRECT = 6, 7, 8, 1
_MATCHALL_ACTION = 2
_ACT_KIND, _ACT_OPTIONS, _MIRRED_PARMS = 1, 2, 2
_MIRRED = struct.Struct("=IIiiiiI")  # index, capab, action, refcnt, bindcnt, eaction, ifindex
_STOLEN, _REDIRECT = 4, 1  # TC_ACT_STOLEN, TCA_EGRESS_REDIR
_STRICT = ("dualpi2",)  # refuse options that aren't said to contain attributes, as later disciplines do


def _message(kind: int, flags: int, body: bytes) -> bytes:
    return _HEAD.pack(_HEAD.size + len(body), kind, _REQUEST | _ACK | flags, 1, 0) + body


def _text(kind: int, text: str) -> bytes:
    return attribute(kind, text.encode() + b"\0")


def _u32(kind: int, number: int) -> bytes:
    return attribute(kind, struct.pack("=I", number))


def set_up(index: int) -> bytes:
    """Switch on an interface, such as the loopback, whose index is 1."""
    return _message(_NEWLINK, 0, IFINFOMSG.pack(0, 0, index, _UP, _UP))


def add_veth(
    index: int, name: str, peer_index: int, peer_name: str, peer_namespace: int, address: bytes, segments: int
) -> bytes:
    """Create a pair of connected interfaces, not yet up: the peer in the namespace of that descriptor.

    Both have the same link-layer address and no ARP, so each takes what the other sends, whatever its IP address.
    Both pass at most this number of segments of TCP at once.
    """
    own = attribute(_L_ADDRESS, address) + _u32(_L_MAX_SEGMENTS, segments)
    peer = IFINFOMSG.pack(0, 0, peer_index, _NOARP, _NOARP) + _text(_L_NAME, peer_name) + own
    peer += _u32(_L_NS_FD, peer_namespace)
    info = _text(_INFO_KIND, "veth") + nested(_INFO_DATA, attribute(_VETH_PEER, peer))
    body = IFINFOMSG.pack(0, 0, index, _NOARP, _NOARP) + _text(_L_NAME, name) + own + nested(_L_LINKINFO, info)
    return _message(_NEWLINK, _CREATE | _EXCL, body)


def add_dummy_queue(index: int, name: str) -> bytes:
    """Create an `ifb` interface, which is up: what is redirected to it leaves it as it came, after its queue."""
    info = _text(_INFO_KIND, "ifb")
    body = IFINFOMSG.pack(0, 0, index, _UP, _UP) + _text(_L_NAME, name) + nested(_L_LINKINFO, info)
    return _message(_NEWLINK, _CREATE | _EXCL, body)


def add_address(index: int, address: IPv4Address) -> bytes:
    """Give an interface an IPv4 address of its own, without a network."""
    body = _IFADDRMSG.pack(socket.AF_INET, 32, 0, 0, index)
    return _message(
        _NEWADDR,
        _CREATE | _EXCL,
        body + attribute(_A_LOCAL, address.packed) + attribute(_A_ADDRESS, address.packed),
    )


def add_route(address: IPv4Address, index: int, first_window: int | None = None) -> bytes:
    """Send packets for an IPv4 address out of an interface, TCP's with this initial window [packet]."""
    body = _RTMSG.pack(socket.AF_INET, 32, 0, 0, _MAIN_TABLE, _STATIC, _LINK_SCOPE, _UNICAST, 0)
    body += attribute(_R_DST, address.packed) + _u32(_R_OIF, index)
    if first_window is not None:
        body += nested(_R_METRICS, _u32(_INITCWND, first_window))
    return _message(_NEWROUTE, _CREATE | _EXCL, body)


def add_queue(index: int, parent: int, handle: int, kind: str, options: bytes = b"") -> bytes:
    """Create a queueing discipline at a place; `options` is the payload of TCA_OPTIONS."""
    return _message(_NEWQDISC, _CREATE | _EXCL, _queue(index, parent, handle, kind, options))


def change_queue(index: int, parent: int, handle: int, kind: str, options: bytes) -> bytes:
    """Change the options of an existing queueing discipline, which keeps its packets."""
    return _message(_NEWQDISC, 0, _queue(index, parent, handle, kind, options))


def add_class(index: int, parent: int, handle: int, kind: str, options: bytes) -> bytes:
    """Create a class of a queueing discipline."""
    return _message(_NEWTCLASS, _CREATE | _EXCL, _queue(index, parent, handle, kind, options))


def change_class(index: int, parent: int, handle: int, kind: str, options: bytes) -> bytes:
    """Change the options of an existing class."""
    return _message(_NEWTCLASS, 0, _queue(index, parent, handle, kind, options))


def redirect_arrivals(index: int, target: int) -> tuple[bytes, bytes]:
    """Two requests: packets that arrive at an interface pass the queue of an `ifb` interface first."""
    place = TCMSG.pack(0, index, _INGRESS_HANDLE, _INGRESS, 0)
    ingress = _message(_NEWQDISC, _CREATE | _EXCL, place + _text(_KIND, "ingress"))
    parms = attribute(_MIRRED_PARMS, _MIRRED.pack(0, 0, _STOLEN, 0, 0, _REDIRECT, target))
    action = _text(_ACT_KIND, "mirred") + nested(_ACT_OPTIONS, parms)
    options = nested(_OPTIONS, nested(_MATCHALL_ACTION, nested(1, action)))
    where = TCMSG.pack(0, index, 0, _INGRESS_CLASS, 1 << 16 | socket.htons(_ALL_PROTOCOLS))
    return ingress, _message(_NEWTFILTER, _CREATE | _EXCL, where + _text(_KIND, "matchall") + options)


def classify_departures(index: int, program: int) -> tuple[bytes, bytes]:
    """Two requests: a classifier, by its descriptor, decides on packets that leave an interface, before any queue."""
    place = TCMSG.pack(0, index, _INGRESS_HANDLE, _INGRESS, 0)
    options = _u32(_BPF_FD, program) + _text(_BPF_NAME, "netctrl") + _u32(_BPF_FLAGS, _BPF_DIRECT)
    where = TCMSG.pack(0, index, 0, _EGRESS_CLASS, 1 << 16 | socket.htons(_ALL_PROTOCOLS))
    return (
        _message(_NEWQDISC, _CREATE | _EXCL, place + _text(_KIND, "clsact")),
        _message(_NEWTFILTER, _CREATE | _EXCL, where + _text(_KIND, "bpf") + nested(_OPTIONS, options)),
    )


def _queue(index: int, parent: int, handle: int, kind: str, options: bytes) -> bytes:
    body = TCMSG.pack(0, index, handle, parent, 0) + _text(_KIND, kind)
    if not options:
        return body
    return body + (nested if kind in _STRICT else attribute)(_OPTIONS, options)
