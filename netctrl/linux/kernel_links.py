"""An agent's links in the kernel: counters read and rates set by netlink, only of queues that are what they were.

Before anything is changed all links are looked at: an unknown interface, another queue or a missing capability is an
error then. Later a queue that is gone, or that isn't as this agent left it, is trouble: it is never touched again.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from netctrl.errors import InvalidValue, NetctrlError
from netctrl.export.agent import AgentConfig, ControlledLink
from netctrl.export.agent_law import TrackingTable
from netctrl.linux.agent import LinkTrouble, ReadingFailed
from netctrl.linux.agent_state import Reading, Trouble
from netctrl.linux.link_queue import LinkQueue, change_rate, link_queue, rate_there
from netctrl.linux.netlink import ROOT, KernelRefusal, Qdisc, RouteSocket, handle_text
from netctrl.linux.qdisc import rate_bytes
from netctrl.units import BITS_PER_BYTE

__all__ = ["KernelLinks", "MissingCapability", "check_capability"]

_NET_ADMIN = 12  # CAP_NET_ADMIN, linux/capability.h
_GONE = (errno.ENOENT, errno.ENODEV, errno.EINVAL, errno.EOPNOTSUPP, errno.EEXIST)

_PASSING = (errno.ENOBUFS, errno.ENOMEM, errno.ETIMEDOUT, errno.EINTR, errno.EBUSY)
_UNKNOWN = -1
"""A rate that may have been set or not: what is read next is taken for it."""
_CLASS_LOOKS = 100
"""Readings from one look at the rates of HTB classes to the next: each is a question by itself."""


class MissingCapability(NetctrlError):
    """What this process may not do."""


def check_capability() -> None:
    """MissingCapability where this process may not change queues."""
    for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name == "CapEff" and not int(value, 16) >> _NET_ADMIN & 1:
            raise MissingCapability(
                "rates of queues can't be changed: this process lacks CAP_NET_ADMIN; run it as root, or by systemd "
                "with AmbientCapabilities=CAP_NET_ADMIN"
            )


class KernelLinks:
    """`netctrl.linux.agent.Links` of this network namespace, to be used as a context.

    Raises
    ------
    MissingCapability
    InvalidValue
        An interface that isn't there, another queue than the config's, one whose options an agent would lose, or one
        that another agent controls. Nothing was changed then.
    KernelRefusal
        Queues can't be read.
    """

    def __init__(self, config: AgentConfig) -> None:
        self._config = config
        self._locks: list[socket.socket] = []
        self._socket: RouteSocket | None = None
        self._places: list[LinkQueue] = []
        self._options: list[bytes] = []
        """Of a token bucket filter, as last seen; b"" after a change by us."""
        self._expected: list[int] = []
        """[byte/s]"""
        self._touched: set[int] = set()
        self._lost: set[int] = set()
        self._reads = 0
        self._elsewhere: int | None = None

    def __enter__(self) -> Self:
        try:
            check_capability()
            self._socket = RouteSocket()
            self._find()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for lock in self._locks:
            lock.close()
        if self._socket is not None:
            self._socket.close()

    def read(self) -> tuple[Sequence[Reading | Trouble], Reading | None]:
        """One question for all queues of the namespace."""
        try:
            found = {(each.index, each.parent): each for each in self._route.qdiscs()}
        except KernelRefusal as refusal:
            raise ReadingFailed(str(refusal)) from None
        self._reads += 1
        readings = [self._reading(link, found.get((at.index, at.parent))) for link, at in enumerate(self._places)]
        if self._elsewhere is None:
            return readings, None
        bottleneck = found.get((self._elsewhere, ROOT))
        return readings, None if bottleneck is None else _read(bottleneck)

    def set_rate(self, link: int, rate: float) -> float:
        """By a message of which only the rate is written; NaN where the kernel had no room, and it is as it was."""
        if link in self._lost:
            raise LinkTrouble(Trouble("gone", "it was lost before"))
        try:
            change_rate(self._route, self._places[link], self._config.links[link], rate)
        except KernelRefusal as refusal:
            if refusal.number in _GONE:
                self._lost.add(link)
                raise LinkTrouble(Trouble("gone", str(refusal))) from None
            if refusal.number not in _PASSING:
                raise
            self._touched.add(link)
            self._options[link], self._expected[link] = b"", _UNKNOWN
            return float("nan")
        self._touched.add(link)
        self._options[link], self._expected[link] = b"", rate_bytes(rate)
        return float(self._expected[link] * BITS_PER_BYTE)

    def restore(self) -> None:
        """The rates that were found, of links that were changed and are still as this agent left them."""
        try:
            readings, _ = self.read()
            ours = [isinstance(reading, Reading) for reading in readings]
        except ReadingFailed:  # a change names its handle: another queue isn't touched even so
            ours = [link not in self._lost for link in range(len(self._places))]
        for link, mine in enumerate(ours):
            if link in self._touched and mine:
                at, rate = self._places[link], float(self._places[link].rate * BITS_PER_BYTE)
                try:
                    change_rate(self._route, at, self._config.links[link], rate)
                except KernelRefusal as refusal:
                    if refusal.number not in _GONE:
                        raise

    @property
    def _route(self) -> RouteSocket:
        if self._socket is None:
            raise NetctrlError("KernelLinks is used outside of its context")
        return self._socket

    def _find(self) -> None:
        index = {link.name: link.index for link in self._route.links()}
        queues = {(each.index, each.parent): each for each in self._route.qdiscs()}
        for number, link in enumerate(self._config.links):
            where = f"links[{number}].interface"
            at = _interface(where, link.interface, index)
            self._places.append(link_queue(self._route, f"links[{number}]", link, at, queues))
            self._options.append(b"")
            self._expected.append(self._places[-1].rate)
            self._locks.append(_locked(where, link))
        table = self._config.law
        if isinstance(table, TrackingTable) and table.measured_by is None and table.measured_at is not None:
            self._elsewhere = _interface("law.measured_at", table.measured_at, index)

    def _reading(self, link: int, queue: Qdisc | None) -> Reading | Trouble:
        at, wanted = self._places[link], self._config.links[link]
        if queue is None or queue.is_default:
            self._lost.add(link)
            return Trouble("gone", f"no queue is at {wanted.parent} of {wanted.interface}, or the interface is gone")
        if queue.kind != wanted.kind or queue.handle != at.handle:
            self._lost.add(link)
            return Trouble("foreign", f"{queue.kind} {handle_text(queue.handle)} is there now")
        if link in self._lost:
            return Trouble("gone", "it was lost before")
        return self._changed(link, queue) or _read(queue)

    def _changed(self, link: int, queue: Qdisc) -> Trouble | None:
        """Whether its rate is another than was set: each time of a token bucket filter, whose options came along."""
        at, known = self._places[link], queue.options == self._options[link]
        if known if at.leaf is None else self._reads % _CLASS_LOOKS:
            return None
        try:
            rate = rate_there(self._route, at, queue)
        except KernelRefusal as refusal:
            self._lost.add(link)
            return Trouble("gone", str(refusal))
        if self._expected[link] == _UNKNOWN:
            self._expected[link] = rate
        if rate != self._expected[link]:
            self._lost.add(link)
            set_to = f"{rate * BITS_PER_BYTE} bit/s, {self._expected[link] * BITS_PER_BYTE} expected"
            return Trouble("changed", f"someone else set its rate: {set_to}")
        self._options[link] = queue.options
        return None


def _read(queue: Qdisc) -> Reading:
    return Reading(queue.counters.bytes, queue.counters.backlog_bytes, queue.counters.drops)


def _interface(argument: str, name: str, index: dict[str, int]) -> int:
    if name not in index:
        raise InvalidValue(argument, name, f"an interface of this namespace: {', '.join(sorted(index))}")
    return index[name]


def _locked(argument: str, link: ControlledLink) -> socket.socket:
    """An abstract name in the network namespace, which goes with the process however it ends."""
    lock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        lock.bind(f"\0netctrl-agent:{link.interface}:{link.parent}")
    except OSError:
        lock.close()
        raise InvalidValue(argument, link.interface, "a link that no other agent controls") from None
    return lock
