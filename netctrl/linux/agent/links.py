"""An agent's links in the kernel: read counters and set rates by netlink, only of unchanged queues.

All links are checked before any change: an unknown interface, another queue or a missing capability is an error. Later
a queue that is gone, or that is not as this agent left it, counts as lost and is never touched again.

At the end links get their base rates back: those in the record of `netctrl linux apply`, so that the last rate of a
killed agent isn't mistaken for the original.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Sequence
from contextlib import ExitStack
from os import PathLike
from typing import Self

from netctrl.core.errors import InvalidValue, NetctrlError
from netctrl.core.units import BITS_PER_BYTE
from netctrl.linux.agent.dead_man import DeadMan, Watched
from netctrl.linux.agent.loop import LinkTrouble, ReadingFailed
from netctrl.linux.agent.queue import LinkQueue, change_rate, link_queue, rate_there
from netctrl.linux.agent.state import Reading, Trouble
from netctrl.linux.export.agent import AgentConfig
from netctrl.linux.export.agent_law import TrackingTable
from netctrl.linux.kernel.messages import ROOT, Qdisc, handle_text
from netctrl.linux.kernel.netlink import KernelRefusal, RouteSocket
from netctrl.linux.kernel.qdisc import rate_bytes
from netctrl.linux.log import event
from netctrl.linux.namespace import check_capability
from netctrl.linux.queues.record import applied_rates
from netctrl.linux.state_files import AGENT_FOLDER, STATE_FOLDER, AgentLock

_GONE = (errno.ENOENT, errno.ENODEV, errno.EINVAL, errno.EOPNOTSUPP, errno.EEXIST)

_PASSING = (errno.ENOBUFS, errno.ENOMEM, errno.ETIMEDOUT, errno.EINTR, errno.EBUSY)
_UNKNOWN = -1
"""Stands for a rate whose change is unconfirmed: the next rate read is accepted."""
_CLASS_LOOKS = 100
"""Number of readings between checks of HTB classes' rates, as each check is a query of its own."""
_STILL_S = 5.0
"""Time without a reading, besides `silence` intervals, after which an agent counts as hung."""


class AgentHung(NetctrlError):
    """The agent read nothing for so long that the watchdog restored its rates."""


class KernelLinks:
    """`netctrl.linux.agent.loop.Links` of this network namespace, used as a context manager.

    Parameters
    ----------
    config : AgentConfig
    state_dir : path
        Folder of the record of applied queues (`netctrl.linux.queues.record`).
    runtime_dir : path
        Folder of the agents' locks (`netctrl.linux.state_files`).
    watch : bool
        Whether another process restores the rates when this one is killed, or reads nothing for 5 s and `silence`
        intervals (`netctrl.linux.agent.dead_man`).

    Raises
    ------
    MissingCapability
    InvalidValue
        An unknown interface, a queue other than the config's, one whose options an agent would lose, or one that
        another agent controls. Nothing was changed.
    FileError
        The folder of locks can't be used, or the record can't be read.
    KernelRefusal
        Queues can't be read.
    """

    def __init__(
        self,
        config: AgentConfig,
        *,
        state_dir: str | PathLike[str] = STATE_FOLDER,
        runtime_dir: str | PathLike[str] = AGENT_FOLDER,
        watch: bool = True,
    ) -> None:
        self._config = config
        self._state_dir, self._runtime_dir, self._watch = state_dir, runtime_dir, watch
        self._dead_man: DeadMan | None = None
        self._socket: RouteSocket | None = None
        self._places: list[LinkQueue] = []
        self._options: list[bytes] = []
        """Options of a token bucket filter as last read; b"" after a change by this agent."""
        self._expected: list[int] = []
        """[byte/s]"""
        self._touched: set[int] = set()
        self._lost: set[int] = set()
        self._unwatched = False
        self._reads = 0
        self._elsewhere: int | None = None

    def __enter__(self) -> Self:
        with ExitStack() as held:  # closed in reverse order, also after a failure
            if self._config.links:  # a controller sets no rate
                check_capability()
            self._socket = held.enter_context(RouteSocket())
            self._find()
            if self._places:
                lock = AgentLock(self._runtime_dir)
                held.callback(lock.close)
                taken = lock.take([(at.index, at.parent) for at in self._places])
                if taken is not None:
                    interface = self._config.links[taken].interface
                    raise InvalidValue(f"links[{taken}].interface", interface, "a link that no other agent controls")
                self._base()
                if self._watch:
                    still = max(_STILL_S, self._config.silence * self._config.interval_s)
                    watched = Watched(agent=self._config.name, seconds=still, links=tuple(self._places))
                    self._dead_man = DeadMan(watched, [lock.descriptor])
                    held.callback(self._dead_man.end)
            self._held = held.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def read(self) -> tuple[Sequence[Reading | Trouble], Reading | None]:
        """Read all queues of the namespace in one query.

        Raises
        ------
        ReadingFailed
            The kernel did not answer this time.
        AgentHung
            The last reading is so long ago that the rates were restored.
        """
        if not self._places:
            return (), None
        self._live()
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
        """Set a rate; NaN where the kernel had no room and the rate is unchanged."""
        if link in self._lost:
            raise LinkTrouble(Trouble("gone", "it was lost before"))
        if self._dead_man is not None:
            self._dead_man.may_be(link, rate_bytes(rate))
        try:
            change_rate(self._route, self._places[link], rate)
            set_to = rate_bytes(rate)
        except KernelRefusal as refusal:
            if refusal.number in _GONE:
                self._lose(link)
                raise LinkTrouble(Trouble("gone", str(refusal))) from None
            if refusal.number not in _PASSING:
                raise
            set_to = _UNKNOWN
        self._touched.add(link)
        self._options[link], self._expected[link] = b"", set_to
        if set_to == _UNKNOWN:
            return float("nan")
        self._in_force(link)
        return float(set_to * BITS_PER_BYTE)

    def restore(self) -> None:
        """Restore the base rates of changed links that are still as this agent, or one before it, left them."""
        try:
            readings, _ = self.read()
            ours = [isinstance(reading, Reading) for reading in readings]
        except AgentHung:
            return
        except ReadingFailed:  # a change names its handle, so another queue isn't touched
            ours = [link not in self._lost for link in range(len(self._places))]
        for link, mine in enumerate(ours):
            if link in self._touched and mine:
                at = self._places[link]
                if self._dead_man is not None:
                    self._dead_man.may_be(link, at.base)
                try:
                    change_rate(self._route, at, float(at.base * BITS_PER_BYTE))
                except KernelRefusal as refusal:
                    if refusal.number not in _GONE:
                        raise

    @property
    def _route(self) -> RouteSocket:
        if self._socket is None:
            raise NetctrlError("KernelLinks is used outside of its context")
        return self._socket

    def base_rates(self) -> tuple[float, ...]:
        """Rates of the links at the end [bit/s]."""
        return tuple(float(at.base * BITS_PER_BYTE) for at in self._places)

    def _live(self) -> None:
        """Give a sign of life; raises AgentHung where it comes too late."""
        if self._dead_man is None:
            return
        if self._dead_man.fired:
            raise AgentHung(
                f"agent {self._config.name} read nothing for so long that its rates were restored; start it "
                "again, on a busy machine with a real-time priority (--unit --realtime)"
            )
        self._dead_man.beat()
        if not self._unwatched and not self._dead_man.alive():
            self._unwatched = True
            event("dead-man-gone", logging.WARNING, why="from now on rates stay as last set after a kill -9")

    def _lose(self, link: int) -> None:
        self._lost.add(link)
        if self._dead_man is not None:
            self._dead_man.leave_alone(link)

    def _in_force(self, link: int) -> None:
        if self._dead_man is not None:
            self._dead_man.is_in_force(link, self._expected[link])

    def _find(self) -> None:
        index = {link.name: link.index for link in self._route.links()}
        queues = {(each.index, each.parent): each for each in self._route.qdiscs()}
        for number, link in enumerate(self._config.links):
            where = f"links[{number}].interface"
            at = _interface(where, link.interface, index)
            self._places.append(link_queue(self._route, f"links[{number}]", link, at, queues))
            self._options.append(b"")
        table = self._config.law
        if isinstance(table, TrackingTable) and table.measured_by is None and table.measured_at is not None:
            self._elsewhere = _interface("law.measured_at", table.measured_at, index)

    def _base(self) -> None:
        """Rates to restore at the end, once no other agent changes them."""
        planned, unknown = applied_rates(self._state_dir), []
        for link, at in enumerate(self._places):
            name = self._config.links[link].interface
            queue = next((each for each in self._route.qdiscs(at.index) if each.parent == at.parent), None)
            if queue is None or queue.handle != at.handle:
                raise KernelRefusal(f"read queue {handle_text(at.handle)} of interface {at.index}", errno.ENOENT)
            found = rate_there(self._route, at, queue)
            base = planned.get((at.index, at.handle), found)
            self._places[link] = at._replace(found=found, base=base)
            self._expected.append(found)
            if (at.index, at.handle) not in planned:
                unknown.append(name)
            if base != found:
                self._touched.add(link)
                rates = {"rate": found * BITS_PER_BYTE, "base": base * BITS_PER_BYTE}
                event("rate-left-behind", logging.WARNING, interface=name, **rates)
        if unknown:
            why = f"no record in {self._state_dir} has them: at the end they get their present rates back"
            event("base-rate-unknown", logging.WARNING, interfaces=",".join(unknown), why=why)

    def _reading(self, link: int, queue: Qdisc | None) -> Reading | Trouble:
        at, desired = self._places[link], self._config.links[link]
        if queue is None or queue.is_default:
            self._lose(link)
            return Trouble("gone", f"no queue is at {desired.parent} of {desired.interface}, or the interface is gone")
        if queue.kind != desired.kind or queue.handle != at.handle:
            self._lose(link)
            return Trouble("foreign", f"{queue.name} is there now")
        if link in self._lost:
            return Trouble("gone", "it was lost before")
        return self._changed(link, queue) or _read(queue)

    def _changed(self, link: int, queue: Qdisc) -> Trouble | None:
        """Whether the rate differs from the one set; a token bucket filter's is checked at each reading."""
        at, known = self._places[link], queue.options == self._options[link]
        if known if at.leaf is None else self._reads % _CLASS_LOOKS:
            return None
        try:
            rate = rate_there(self._route, at, queue)
        except KernelRefusal as refusal:
            self._lose(link)
            return Trouble("gone", str(refusal))
        if self._expected[link] == _UNKNOWN:
            self._expected[link] = rate
            self._in_force(link)
        if rate != self._expected[link]:
            self._lose(link)
            set_to = f"{rate * BITS_PER_BYTE} bit/s, {self._expected[link] * BITS_PER_BYTE} expected"
            return Trouble("changed", f"another program set its rate: {set_to}")
        self._options[link] = queue.options
        return None


def _read(queue: Qdisc) -> Reading:
    return Reading(queue.counters.bytes, queue.counters.backlog_bytes, queue.counters.drops)


def _interface(argument: str, name: str, index: dict[str, int]) -> int:
    if name not in index:
        raise InvalidValue(argument, name, f"an interface of this namespace: {', '.join(sorted(index))}")
    return index[name]
