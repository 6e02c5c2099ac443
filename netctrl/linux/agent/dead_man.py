"""Watchdog that restores the rates of an agent's links when the agent is killed or hangs.

It runs as a process of its own (`python -m netctrl linux.agent.dead_man ...`) with the agent's capability. It shares a
page of memory with the agent, which increments a counter there at each reading and notes each rate before setting it,
without a system call. When the agent is gone, or its counter stands still for too long, the process gives each link its
base rate. It leaves a link alone where the kernel shows a rate that the agent didn't set.
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

from netctrl.core.errors import NetctrlError
from netctrl.core.units import BITS_PER_BYTE
from netctrl.linux.agent.queue import LinkQueue, change_rate, rate_there
from netctrl.linux.kernel.messages import handle_text
from netctrl.linux.kernel.netlink import RouteSocket
from netctrl.linux.log import event, log_to
from netctrl.linux.queues.watchdog import attend, start_watcher

_WORD = struct.Struct("=Q")
_COUNT, _FIRED, _LINKS = 0, 8, 16
_ROW = 16  # bytes per link: the rate in force, and the rate about to be set [byte/s]
_LEFT_ALONE = 2**64 - 1


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of the process."""

    agent: str
    seconds: float
    """Time without a sign of life after which it acts [s]."""
    links: tuple[LinkQueue, ...]


class DeadMan:
    """The agent's side of the watchdog process, which watches from construction on.

    Parameters
    ----------
    watched : Watched
    locks : sequence of int
        Descriptors of locks that the process holds too, so that no other agent starts before it is done.

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
        """Whether the process has restored the rates."""
        return _read(self._memory, _FIRED) != 0

    def alive(self) -> bool:
        """Whether the process is still watching."""
        return self._process.alive()

    def beat(self) -> None:
        """Give a sign of life."""
        self._count += 1
        _WORD.pack_into(self._memory, _COUNT, self._count)

    def may_be(self, link: int, rate: int) -> None:
        """Note a rate about to be set [byte/s]."""
        _WORD.pack_into(self._memory, _LINKS + _ROW * link + 8, rate)

    def is_in_force(self, link: int, rate: int) -> None:
        """Note a rate that was set or read [byte/s]."""
        _WORD.pack_into(self._memory, _LINKS + _ROW * link, rate)
        self.may_be(link, rate)

    def leave_alone(self, link: int) -> None:
        """Exclude a link that the agent no longer controls."""
        self.is_in_force(link, _LEFT_ALONE)

    def end(self) -> None:
        """End the process, as there is nothing to restore."""
        self._process.end(release=True)
        self._memory.close()


def main(arguments: Sequence[str]) -> int:
    """Watch and restore; the exit status says whether nothing is left to restore."""
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
    """Whether a counter has stood still for a time, by a clock that stops while the machine sleeps."""

    def __init__(self, memory: mmap.mmap, seconds: float) -> None:
        self._memory, self._seconds = memory, seconds
        self._count, self._since = -1, time.monotonic()

    def __call__(self) -> bool:
        count, now = _read(self._memory, _COUNT), time.monotonic()
        if count != self._count:
            self._count, self._since = count, now
        return now - self._since > self._seconds


def _put_back(route: RouteSocket, memory: mmap.mmap, link: int, queue: LinkQueue) -> bool:
    """Give a link its base rate; whether it has it, or is not ours to change."""
    place = _LINKS + _ROW * link
    ours = {_read(memory, place), _read(memory, place + 8)}
    where = {"interface": queue.index, "handle": handle_text(queue.handle)}
    try:
        root = next(each for each in route.qdiscs(queue.index) if each.parent == queue.parent)
        rate = rate_there(route, queue, root)
        if root.handle != queue.handle or rate not in ours:
            event("rate-not-touched", logging.WARNING, **where, why="it is not as the agent left it")
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
