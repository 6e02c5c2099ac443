"""Shared part of `netctrl linux`: options, the plan, signals that end a wait, systemd units."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import stat
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING

import netctrl
from netctrl.cli.app import as_json, check_places, report, say
from netctrl.cli.options import option, positional
from netctrl.core.errors import FileError, InvalidValue, NetctrlError

if TYPE_CHECKING:
    import pwd

    from netctrl.linux.queues.plan import Plan
    from netctrl.linux.systemd import Program

PLAN = positional("PLAN", "a file of desired queues (netctrl.linux/1)")
REPLACE = option("", "replace a root queue made by others; it is restored at the end")
STATE_DIR = option("DIR", "folder of the record of owned queues, the same for all commands")
RUNTIME_DIR = option("DIR", "folder of the locks by which agents own links, the same for all agents")
LOG = option("FILE", "also append events to this file")
OPTIONS = {"interface": "interface of PLAN", "burst": "burst of PLAN", "NETWORK": "NETWORK", "PROGRAM": "PROGRAM"}
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


UNIT = option("", "print a systemd unit for it instead", "--unit")
USER = option("NAME", "user of the unit")


def program(file: str, user: str, *, key: str | None = None) -> Program:
    """This interpreter with this netctrl, as the program of a unit.

    Parameters
    ----------
    file : str
        Path of the plan or configuration.
    user : str
        Name of a user of this machine.
    key : str, optional
        Path of the key from the configuration; relative to the current folder.

    Raises
    ------
    InvalidValue
        No such user, or the user can't read a needed file.
    FileError
        The key doesn't exist, or others than this user can read it.
    """
    import pwd  # not on Windows, where the help of these commands is still shown

    from netctrl.linux.systemd import Program

    try:
        person = pwd.getpwnam(user)
    except KeyError:
        takes = f"a user of this machine; `useradd --system {user}` makes one"
        raise InvalidValue("user", user, takes) from None
    package = Path(netctrl.__file__).resolve().parent
    reads = [Path(sys.prefix), Path(sys.base_prefix), package, *([] if key is None else [Path(key).absolute()])]
    absolute = Path(file).absolute()
    if key is not None:
        _check_key(Path(key).absolute(), person)
    for each in (Path(sys.executable), absolute, *reads):
        _check_readable(each, person)
    relative = key is not None and not Path(key).is_absolute()
    return Program(
        command=(sys.executable, "-m", "netctrl", "linux"),
        file=str(absolute),
        user=user,
        folder=str(Path.cwd()) if relative else None,
        reads=tuple(dict.fromkeys(map(str, reads))),
    )


def _check_key(path: Path, person: pwd.struct_passwd) -> None:
    """Check the key as `netctrl.linux.agent.message.read_key` will."""
    try:
        found = path.stat()
    except OSError as error:
        raise FileError(path, f"the key can't be read: {error.strerror}") from None
    if found.st_uid != person.pw_uid or stat.S_IMODE(found.st_mode) & 0o177:
        whose = f"user {found.st_uid}'s with mode {stat.S_IMODE(found.st_mode):04o}"
        raise FileError(path, f"the key is {whose}; it must belong to user {person.pw_name}, with mode 0600")


def _check_readable(path: Path, person: pwd.struct_passwd) -> None:
    """Check that a user without capabilities can read a path; access lists aren't considered."""
    groups = set(os.getgrouplist(person.pw_name, person.pw_gid))
    for each in dict.fromkeys((path, path.resolve())):
        for place in (*reversed(each.parents), each):
            try:
                found = place.stat()
            except OSError as error:
                raise FileError(place, f"can't be read: {error.strerror}") from None
            needed = 0o5 if place == each and place.is_dir() else 0o1 if place.is_dir() else 0o4
            shift = 6 if found.st_uid == person.pw_uid else 3 if found.st_gid in groups else 0
            if found.st_mode >> shift & needed != needed:
                mode = f"{stat.S_IMODE(found.st_mode):04o}"
                takes = f"a user who can read {path}; {place} has mode {mode} and belongs to user {found.st_uid}"
                raise InvalidValue("user", person.pw_name, takes)
