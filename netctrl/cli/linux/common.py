"""Shared part of the commands for queues: options, the plan, signals that end a wait, tables."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING

from netctrl.cli.app import as_json, check_places, report, say
from netctrl.cli.options import option, positional
from netctrl.errors import NetctrlError

if TYPE_CHECKING:
    from netctrl.linux.queues.plan import Plan

__all__ = [
    "LOG",
    "OPTIONS",
    "PLAN",
    "REPLACE",
    "RUNTIME_DIR",
    "STATE_DIR",
    "Stop",
    "Stopped",
    "logged",
    "planned",
    "show",
    "stoppable",
]

PLAN = positional("PLAN", "a file of desired queues (netctrl.linux/1)")
REPLACE = option("", "replace a root queue made by others; it is restored at the end")
STATE_DIR = option("DIR", "folder of the record of owned queues, the same for all commands")
RUNTIME_DIR = option("DIR", "folder of the locks by which agents own links, the same for all agents")
LOG = option("FILE", "also append events to this file")
OPTIONS = {
    "interface": "interface of PLAN",
    "burst": "burst of PLAN",
    "NETWORK": "NETWORK",
    "PROGRAM": "PROGRAM",
}
_LOOK_S = 0.1


class Stopped(NetctrlError):
    """A signal arrived."""


class Stop:
    """A signal that is kept until it is asked for, so that no step is left half done."""

    def __init__(self) -> None:
        self.number = 0
        self._read, self._write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def close(self) -> None:
        """Close the pipe."""
        os.close(self._read)
        os.close(self._write)

    def take(self, number: int, frame: object) -> None:
        """Signal handler."""
        self.number = self.number or number
        with contextlib.suppress(BlockingIOError):
            os.write(self._write, b"!")

    def between(self, phase: str) -> None:
        """Raise Stopped between two steps of a change, but not while changes are undone."""
        if self.number and not phase.startswith(("restor", "forgotten")):
            raise Stopped(f"{signal.Signals(self.number).name} arrived: all changes were undone")

    def wait(self, until: Callable[[], bool], seconds: float | None = None, key: bool = False) -> bool:
        """Whether `until` became true, or with `key` Enter was pressed, within `seconds`; Stopped at a signal."""
        end = None if seconds is None else time.monotonic() + seconds
        keys = [sys.stdin] if key and sys.stdin is not None and sys.stdin.isatty() else []
        while not until():
            left = _LOOK_S if end is None else min(_LOOK_S, end - time.monotonic())
            if left <= 0.0:
                return False
            ready = select.select([self._read, *keys], [], [], left)[0]
            self.between("waiting")
            if any(each in ready for each in keys) and sys.stdin.readline():
                return True
        return True


@contextlib.contextmanager
def stoppable() -> Generator[Stop]:
    """Context in which SIGINT, SIGTERM and SIGHUP are kept for `Stop`."""
    stop = Stop()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    earlier = {number: signal.signal(number, stop.take) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
        stop.close()


@contextlib.contextmanager
def logged(path: str | None) -> Generator[None]:
    """Context in which events go to stderr and, if named, are appended to a file."""
    from netctrl.linux.log import LOG as log
    from netctrl.linux.log import log_to

    check_places({"log": path})
    handlers = [log_to(None), *([] if path is None else [log_to(path)])]
    try:
        yield
    finally:
        for handler in handlers:
            log.removeHandler(handler)
            handler.close()


def planned(path: str, replace: bool) -> Plan:
    """The plan of a file, checked against this machine."""
    from netctrl.linux.export.records import read_queue_plan
    from netctrl.linux.kernel.netlink import RouteSocket
    from netctrl.linux.queues.plan import plan_queues

    desired = read_queue_plan(path)
    with RouteSocket() as socket:
        return plan_queues(socket, desired, replace=replace)


def show(plan: Plan, title: str, json: bool) -> int:
    """Print the plan, as a table or as JSON."""
    if json:
        return say(as_json({"plan": plan.desired, "entries": plan.entries}))
    return say(report(f"{plan.desired.name}: {title}", plan.rows()))
