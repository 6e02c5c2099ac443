"""Rates of an agent's links put back when it is killed, or hangs: `python -m netctrl.linux.agent.dead_man ...`.

A process of its own, with the agent's capability. It shares a page of memory with the agent, which counts there at each
reading and notes each rate before it is set, without a system call. When the agent is gone, or its count has stood for
longer than agreed, the process gives each link its base rate, unless the kernel shows a rate that the agent didn't set:
that is somebody else's.
"""

from __future__ import annotations

import logging
import mmap
import os
import struct
import sys
import time
from collections.abc import Sequence

import msgspec

from netctrl.errors import NetctrlError
from netctrl.linux.agent.queue import LinkQueue, change_rate, rate_there
from netctrl.linux.kernel.netlink import RouteSocket, handle_text
from netctrl.linux.queues.log import event, log_to
from netctrl.linux.queues.watchdog import attend, start_watcher
from netctrl.units import BITS_PER_BYTE

__all__ = ["DeadMan", "Watched", "main"]

_WORD = struct.Struct("=Q")
_COUNT, _FIRED, _LINKS = 0, 8, 16
_ROW = 16  # of a link: the rate that is in force, and the one that may be [byte/s]
_LEFT_ALONE = 2**64 - 1


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """What the process is told at its start."""

    agent: str
    seconds: float
    """Without a sign of life [s]."""
    links: tuple[LinkQueue, ...]


class DeadMan:
    """The agent's end; the process watches from here on.

    Parameters
    ----------
    watched : Watched
    locks : sequence of int
        Descriptors of locks that the process holds too, so that no other agent begins before it is done.

    Raises
    ------
    NetctrlError
        The process could not be started.
    """

    def __init__(self, watched: Watched, locks: Sequence[int]) -> None:
        self._count = 0
        shared = os.memfd_create("netctrl-dead-man", os.MFD_CLOEXEC)
        try:
            os.ftruncate(shared, _size(len(watched.links)))
            self._memory = mmap.mmap(shared, 0)
            for link, queue in enumerate(watched.links):
                self.is_in_force(link, queue.found)
            told = msgspec.json.encode(watched).decode()
            self._process = start_watcher("netctrl.linux.agent.dead_man", str(shared), told, inherit=(shared, *locks))
        finally:
            os.close(shared)

    @property
    def fired(self) -> bool:
        """Whether it has taken the agent for dead."""
        return _read(self._memory, _FIRED) != 0

    def alive(self) -> bool:
        """Whether the process still watches."""
        return self._process.alive()

    def beat(self) -> None:
        """A sign of life."""
        self._count += 1
        _WORD.pack_into(self._memory, _COUNT, self._count)

    def may_be(self, link: int, rate: int) -> None:
        """Before a rate is set [byte/s]."""
        _WORD.pack_into(self._memory, _LINKS + _ROW * link + 8, rate)

    def is_in_force(self, link: int, rate: int) -> None:
        """After it was set, or read."""
        _WORD.pack_into(self._memory, _LINKS + _ROW * link, rate)
        self.may_be(link, rate)

    def leave_alone(self, link: int) -> None:
        """A link that isn't the agent's any more."""
        self.is_in_force(link, _LEFT_ALONE)

    def end(self) -> None:
        """There is nothing to put back."""
        self._process.end(release=True)
        self._memory.close()


def main(arguments: Sequence[str]) -> int:
    """Watch, and put back; the exit status says whether there is nothing left to do."""
    shared, watched = int(arguments[0]), msgspec.json.decode(arguments[1], type=Watched)
    log_to(None)
    with mmap.mmap(shared, _size(len(watched.links))) as memory:
        ended = attend(_Stillness(memory, watched.seconds))
        if ended == "released":
            return 0
        _WORD.pack_into(memory, _FIRED, 1)
        event("agent-" + ended, logging.WARNING, agent=watched.agent)
        with RouteSocket() as route:
            done = [_put_back(route, memory, link, queue) for link, queue in enumerate(watched.links)]
    return 0 if all(done) else 1


class _Stillness:
    """Whether a count hasn't moved for so long, by a clock that stands while the machine sleeps."""

    def __init__(self, memory: mmap.mmap, seconds: float) -> None:
        self._memory, self._seconds = memory, seconds
        self._count, self._since = -1, time.monotonic()

    def __call__(self) -> bool:
        count, now = _read(self._memory, _COUNT), time.monotonic()
        if count != self._count:
            self._count, self._since = count, now
        return now - self._since > self._seconds


def _put_back(route: RouteSocket, memory: mmap.mmap, link: int, queue: LinkQueue) -> bool:
    """Whether a link has its base rate, or isn't ours to change."""
    place = _LINKS + _ROW * link
    ours = {_read(memory, place), _read(memory, place + 8)}
    where = {"interface": queue.index, "handle": handle_text(queue.handle)}
    try:
        root = next(each for each in route.qdiscs(queue.index) if each.parent == queue.parent)
        rate = rate_there(route, queue, root)
        if root.handle != queue.handle or rate not in ours:
            event("rate-not-touched", logging.WARNING, **where, why="it isn't as the agent left it")
            return True
        if rate != queue.base:
            change_rate(route, queue, float(queue.base * BITS_PER_BYTE))
            event("rate-put-back", **where, rate=queue.base * BITS_PER_BYTE)
    except StopIteration:
        event("rate-not-touched", logging.WARNING, **where, why="its queue is gone")
    except (NetctrlError, ValueError) as error:
        event("rate-not-put-back", logging.ERROR, **where, why=error)
        return False
    return True


def _size(links: int) -> int:
    return _LINKS + _ROW * links


def _read(memory: mmap.mmap, place: int) -> int:
    (value,) = _WORD.unpack_from(memory, place)
    return value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
