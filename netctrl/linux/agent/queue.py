"""Queue of a controlled link: a token bucket filter, or the only class of an HTB; lookup, check and change.

Each change of rate refills a token bucket filter; an HTB class keeps its tokens.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from netctrl.core.errors import InvalidValue
from netctrl.linux.kernel.messages import ROOT, Qdisc, classid, handle_text
from netctrl.linux.kernel.netlink import KernelRefusal, RouteSocket
from netctrl.linux.kernel.qdisc import FifoOptions, HtbClassOptions, TbfOptions, largest_burst

if TYPE_CHECKING:
    from netctrl.linux.export.agent import ControlledLink

_TOLERANCE = 0.01
"""Tolerance of a burst: the kernel reports ticks, to which bytes may have been rounded."""
_TICKS = 15.625e6  # per second


class LinkQueue(NamedTuple):
    """Place of a link's queue, the data for a change of its rate, and its earlier rates."""

    index: int
    """Of the interface."""
    parent: int
    handle: int
    leaf: int | None
    """The class of an HTB; None of a token bucket filter."""
    burst: int
    """[byte]"""
    limit: int
    """[byte]"""
    found: int
    """Rate at the start [byte/s]."""
    base: int
    """Rate at the end [byte/s]: that of the applied plan, else `found`."""


def link_queue(
    route: RouteSocket, argument: str, link: ControlledLink, index: int, queues: Mapping[tuple[int, int], Qdisc]
) -> LinkQueue:
    """A link's queue in the namespace, by interface and parent.

    Raises
    ------
    InvalidValue
        A queue other than the link's, or one of which a change of rate would change other options.
    """
    parent, handle = _parent(link.parent), int(link.handle.rstrip(":"), 16) << 16
    queue = queues.get((index, parent))
    what = "a token bucket filter" if link.kind == "tbf" else "an htb"
    takes = f"{what} {link.handle} at {link.parent} of {link.interface}, as created by netctrl linux apply"
    if queue is None or queue.kind != link.kind:
        raise InvalidValue(argument, "no queue" if queue is None else f"a queue {queue.kind}", takes)
    if queue.handle != handle:
        raise InvalidValue(argument, queue.name, takes)
    if link.kind == "tbf":
        rate, burst, limit, plain = _token_bucket(queue)
    else:
        rate, burst, limit, plain = _class(route, argument, takes, queue, queues)
    if not plain or queue.extras:
        raise InvalidValue(argument, f"{link.kind} with more than a rate and a burst", f"{takes}: plain")
    if abs(burst - link.burst) > _TOLERANCE * burst:
        raise InvalidValue(f"{argument}.burst", link.burst, f"{burst}, as the queue has")
    if limit != int(link.limit):
        raise InvalidValue(f"{argument}.limit", link.limit, f"{limit}, as the queue has")
    leaf = None if link.kind == "tbf" else classid(handle, 1)
    return LinkQueue(index, parent, handle, leaf, int(link.burst), int(link.limit), found=rate, base=rate)


def change_rate(route: RouteSocket, queue: LinkQueue, rate: float) -> None:
    """Set a rate [bit/s]; raises KernelRefusal, also where the queue is gone."""
    if queue.leaf is None:
        route.change_tbf(queue.index, queue.parent, queue.handle, rate, queue.burst, queue.limit)
    else:
        route.change_htb_class(queue.index, queue.handle, queue.leaf, rate, queue.burst)


def rate_there(route: RouteSocket, queue: LinkQueue, found: Qdisc) -> int:
    """Rate in force [byte/s]; raises KernelRefusal where a class is gone."""
    if queue.leaf is None:
        return TbfOptions.decode(found.options).rate
    for each in route.classes(queue.index):
        if each.handle == queue.leaf:
            return HtbClassOptions.decode(each.options).rate
    raise KernelRefusal(f"read class {handle_text(queue.leaf)} of interface {queue.index}", errno.ENOENT)


def _token_bucket(queue: Qdisc) -> tuple[int, int, int, bool]:
    """Rate [byte/s], burst and limit [byte] of a token bucket filter, and whether it has no other options."""
    options = TbfOptions.decode(queue.options)
    plain = not (options.peak_rate or options.mpu or options.overhead)
    return options.rate, largest_burst(options.buffer, options.rate), options.limit, plain


def _class(
    route: RouteSocket, argument: str, takes: str, queue: Qdisc, queues: Mapping[tuple[int, int], Qdisc]
) -> tuple[int, int, int, bool]:
    """The same for the only class of an HTB."""
    classes = route.classes(queue.index)
    one = classid(queue.handle, 1)
    if [each.handle for each in classes] != [one]:
        got = ", ".join(handle_text(each.handle) for each in classes) or "none"
        raise InvalidValue(argument, f"an htb with classes {got}", f"{takes}, with the class {handle_text(one)} alone")
    leaf = queues.get((queue.index, one))
    if leaf is None or leaf.kind != "bfifo":
        raise InvalidValue(argument, "another queue in the class", f"{takes}, with a bfifo in it")
    options = HtbClassOptions.decode(classes[0].options)
    plain = options.ceil == options.rate and not (options.overhead or options.mpu or options.priority)
    burst = round(options.buffer * options.rate / _TICKS)
    return options.rate, burst, FifoOptions.decode(leaf.options).limit, plain


def _parent(text: str) -> int:
    if text == "root":
        return ROOT
    major, _, minor = text.partition(":")
    return int(major, 16) << 16 | int(minor, 16)
