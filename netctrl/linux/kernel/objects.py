"""Queues and classes as objects to create, compare and restore: the desired ones, and the earlier ones."""

from __future__ import annotations

import errno
import os
from dataclasses import asdict
from typing import Literal

import msgspec

from netctrl.core.errors import NetctrlError
from netctrl.core.units import BITS_PER_BYTE, format_quantity
from netctrl.linux.export.records import HtbClass, InterfaceQueue, TcFifo, TokenBucket
from netctrl.linux.kernel.messages import INGRESS, ROOT, Qdisc, attributes, classid, handle_text
from netctrl.linux.kernel.netlink import KernelRefusal, RouteSocket
from netctrl.linux.kernel.qdisc import FifoOptions, HtbClassOptions, HtbOptions, TbfOptions
from netctrl.linux.namespace import inside, make_namespace

OWN_HANDLE = 0x7C010000
"""7c01:, handle of the root queues that netctrl creates."""
LEAF_HANDLE = 0x7C020000
"""7c02:, handle of the queue in the only class of an HTB."""

_FIFOS = ("bfifo", "pfifo", "pfifo_head_drop")
_KNOWN = {("qdisc", "tbf"): {1, 4, 5, 8}, ("qdisc", "htb"): {2, 5}, ("class", "htb"): {1, 6, 7, 8}}
_ATM = 2
_FOLLOWS_RATE = ("ceil", "buffer", "ceil_buffer")
_Options = TbfOptions | HtbOptions | HtbClassOptions | FifoOptions
_KINDS_TAKEN = f"tbf, htb, {', '.join(_FIFOS)}"


class Unrestorable(NetctrlError):
    """Queues that can't be restored exactly, and so aren't replaced."""


class QueueObject(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Queue or class with the data that create it."""

    what: Literal["qdisc", "class"]
    handle: int
    parent: int
    kind: str
    options: bytes
    """Options as sent to the kernel."""
    raw: bytes | None = None
    """Options of an earlier queue as the kernel reported them."""

    @property
    def name(self) -> str:
        """Kind and handle, as in tc(8)."""
        return f"{self.kind} {handle_text(self.handle)}"

    @property
    def shown(self) -> _Options:
        """Options as a record; raises ValueError for an unknown kind."""
        return shown(self.what, self.kind, self.options)


def desired_objects(entry: InterfaceQueue) -> tuple[QueueObject, ...]:
    """Objects of an interface's desired queue, in order of creation."""
    match entry.queue:
        case TokenBucket(rate=rate, burst=burst, limit=limit, overhead=overhead):
            options = TbfOptions.desired(rate, burst, limit, overhead).encode(burst)
            return (_qdisc(OWN_HANDLE, ROOT, "tbf", options),)
        case HtbClass(rate=rate, burst=burst, limit=limit, overhead=overhead):
            one = HtbClassOptions.desired(rate, burst, overhead).encode()
            minor = classid(OWN_HANDLE, 1)
            return (
                _qdisc(OWN_HANDLE, ROOT, "htb", HtbOptions(1).encode()),
                QueueObject(what="class", handle=minor, parent=OWN_HANDLE, kind="htb", options=one),
                _qdisc(LEAF_HANDLE, minor, "bfifo", FifoOptions(limit).encode()),
            )
        case TcFifo(limit=limit, unit=unit):
            kind = "bfifo" if unit == "bytes" else "pfifo"
            return (_qdisc(OWN_HANDLE, ROOT, kind, FifoOptions(limit).encode()),)


def egress(queues: tuple[Qdisc, ...]) -> tuple[Qdisc, ...]:
    """Queues without those for incoming packets (ingress, clsact), which are never touched."""
    return tuple(each for each in queues if each.parent != INGRESS)


def saved(socket: RouteSocket, index: int) -> tuple[tuple[QueueObject, ...], str]:
    """Objects at an interface's root that were created by others, in order of creation, and the root's kind ("" without
    a root).

    Empty with the kernel's default queue.

    Raises
    ------
    Unrestorable
        An object that can't be recreated exactly; the message says which and why.
    """
    queues = egress(socket.qdiscs(index))
    root = next((each for each in queues if each.parent == ROOT), None)
    requested = [each for each in queues if not each.is_default]
    if not requested:
        return (), "" if root is None else root.kind
    if root is None or root.is_default:
        raise Unrestorable(f"{requested[0].name} is below a default queue, and both together can't be restored")
    classes = socket.classes(index)
    for each in (*requested, *classes):
        count = socket.filters(index, each.handle)
        if count:
            raise Unrestorable(f"{each.name} has {count} filter(s), which can't be restored exactly")
    objects = [_object("qdisc", each) for each in requested]
    objects += [_object("class", each) for each in classes if each.kind != "tbf"]  # TBF's own class comes with it
    return _ordered(objects), root.kind


def make(socket: RouteSocket, index: int, objects: tuple[QueueObject, ...], replace: bool) -> None:
    """Create objects in their order; the root with `replace` instead of the present one."""
    for each in objects:
        if each.what == "class":
            socket.add_class(index, each.parent, each.handle, each.kind, each.options)
        else:
            socket.add_qdisc(index, each.parent, each.handle, each.kind, each.options, replace and each.parent == ROOT)


def as_desired(socket: RouteSocket, index: int, objects: tuple[QueueObject, ...]) -> list[str]:
    """Differences between these objects and the present ones, in words; empty without differences."""
    there = {("qdisc", each.handle): each for each in egress(socket.qdiscs(index))}
    there |= {("class", each.handle): each for each in socket.classes(index)}
    wrong = []
    for each in objects:
        name = f"{each.kind} {each.what} {handle_text(each.handle)}"
        found = there.get((each.what, each.handle))
        if found is None:
            wrong.append(f"{name} is missing")
        elif found.kind != each.kind:
            wrong.append(f"{name} is {found.kind}")
        elif not same(each, found):
            wrong.append(f"{name} has {_differences(each.shown, shown(each.what, found.kind, found.options))}")
    return wrong


def alike(some: tuple[QueueObject, ...], others: tuple[QueueObject, ...]) -> bool:
    """Whether two objects have the same data of creation; counters among their options are ignored."""

    def key(each: QueueObject) -> tuple[object, ...]:
        return each.what, each.handle, each.parent, each.kind, each.options

    return sorted(map(key, some)) == sorted(map(key, others))


def same(desired: QueueObject, found: Qdisc) -> bool:
    """Whether a queue or class is this one, with these options after the kernel's rounding."""
    if (desired.kind, desired.handle) != (found.kind, found.handle):
        return False
    try:
        return desired.shown == shown(desired.what, found.kind, found.options)
    except ValueError:
        return False


def shown(what: str, kind: str, options: bytes) -> _Options:
    """Options as a record; raises ValueError for another kind."""
    if kind in _FIFOS:
        return FifoOptions.decode(options)
    if kind == "tbf":
        return TbfOptions.decode(options)
    if kind == "htb" and what == "class":
        return HtbClassOptions.decode(options)
    if kind == "htb":
        found = HtbOptions.decode(options)
        return HtbOptions(found.default_class, found.rate_to_quantum)  # its direct queue follows the interface
    raise ValueError(f"{kind} isn't one of {_KINDS_TAKEN}")


def _differences(desired: _Options, found: _Options) -> str:
    """Differences of options from the requested ones, rates in bit/s; ceilings and buckets follow from rates."""
    pairs = {name: (getattr(found, name), value) for name, value in asdict(desired).items()}
    differing = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    if "rate" in differing:
        differing = {name: pair for name, pair in differing.items() if name not in _FOLLOWS_RATE}
    return " and ".join(
        "rate {}, applied with {}".format(*(format_quantity(BITS_PER_BYTE * each, "bit/s") for each in pair))
        if name == "rate"
        else f"{name} {pair[0]}, applied with {pair[1]}"
        for name, pair in differing.items()
    )


def _qdisc(handle: int, parent: int, kind: str, options: bytes) -> QueueObject:
    return QueueObject(what="qdisc", handle=handle, parent=parent, kind=kind, options=options)


def _object(what: Literal["qdisc", "class"], found: Qdisc) -> QueueObject:
    """Data to recreate an object; raises Unrestorable where they are incomplete."""
    name = found.name
    if found.kind not in (*_FIFOS, "tbf", "htb"):
        raise Unrestorable(f"{name} can't be restored exactly; netctrl can restore {_KINDS_TAKEN}")
    if found.extras:
        raise Unrestorable(f"{name} has {' and '.join(found.extras)}, which the kernel doesn't report in full")
    known = _KNOWN.get((what, found.kind))
    unknown = set() if known is None else attributes(found.options).keys() - known
    if unknown:
        raise Unrestorable(f"{name} has options that netctrl doesn't know (attributes {sorted(unknown)})")
    if found.kind == "htb" and what == "qdisc":
        options = HtbOptions.decode(found.options)
    else:
        options = shown(what, found.kind, found.options)
    if _ATM in (getattr(options, "link_layer", 0), getattr(options, "ceil_link_layer", 0)):
        raise Unrestorable(f"{name} counts ATM cells, whose bursts the kernel doesn't report in full")
    parent = classid(found.handle, 0) if found.parent == ROOT and what == "class" else found.parent
    return QueueObject(
        what=what, handle=found.handle, parent=parent, kind=found.kind, options=options.encode(), raw=found.options
    )


def _ordered(objects: list[QueueObject]) -> tuple[QueueObject, ...]:
    """Objects with parents before their children."""
    rest, done, ordered = objects, {ROOT}, []
    while rest:
        ready = [each for each in rest if each.parent in done]
        if not ready:
            raise Unrestorable(f"{rest[0].name} has a parent that the kernel doesn't report")
        ordered += ready
        done |= {each.handle for each in ready}
        done |= {classid(each.handle, 1) for each in ready if each.kind == "tbf"}
        rest = [each for each in rest if each not in ready]
    return tuple(ordered)


def has_qdisc(kind: str) -> bool:
    """Whether the kernel has a queueing discipline, built in or as a loadable module; needs root.

    Raises
    ------
    NetctrlError
        No privilege to create a namespace, or a kernel without namespaces.
    """
    namespace = make_namespace()
    try:
        with inside(namespace), RouteSocket() as route:
            index = route.links()[0].index  # the loopback of every namespace
            try:
                route.add_qdisc(index, ROOT, OWN_HANDLE, kind)
            except KernelRefusal as refusal:
                if refusal.number in (errno.EPERM, errno.EACCES):
                    raise
                return refusal.number != errno.ENOENT  # other errors: it exists, and its options are missing
            return True
    finally:
        os.close(namespace)
