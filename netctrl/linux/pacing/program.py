"""Pacing of another program's TCP connections by a law, through duplicates of its sockets."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from math import nan
from pathlib import Path
from typing import NamedTuple

from netctrl.core.errors import NetctrlError, checked_number
from netctrl.linux.pacing.socket import SocketPacer, set_pacing_rate
from netctrl.linux.pacing.tcp import ESTABLISHED, TcpInfo, read_tcp_info
from netctrl.linux.processes import end_program, start_program
from netctrl.model.law import PacingLaw

_SO_COOKIE = 57
_PIDFD_OPEN, _PIDFD_GETFD = 434, 438  # of asm-generic/unistd.h
_SYN_SENT = 2
_FAMILY_S, _SCAN_S = 0.05, 0.005  # time between scans for processes, and for their sockets
_INTERVAL_S = 0.001
_libc = ctypes.CDLL(None, use_errno=True)


class PacedProgram(NamedTuple):
    """Result of a program with paced sockets."""

    status: int
    """Exit status of the program."""
    sockets: int
    """Number of its TCP connections found."""
    changes: int
    """Number of rates set."""
    held: int
    """Number of samples that the laws could not use."""
    receivers: int
    """Number of connections that received more than they sent, which the other end paces."""
    received_bytes: int
    """Payload that these connections received [byte]."""


def pace_program(law: PacingLaw | float, argv: Sequence[str], *, interval_s: float = _INTERVAL_S) -> PacedProgram:
    """Run a program with a law, or a fixed cap [bit/s], on each TCP connection of it and its children, until it ends.

    Its sockets are duplicated briefly for each look (pidfd_getfd), so a connection that the program closes ends as
    usual. A connection is found some milliseconds after it was opened.

    Raises
    ------
    NetctrlError
        The program can't be started, or its sockets can't be reached, which needs the right to trace it.
    """
    interval = checked_number("interval_s", interval_s, "a time from 0.1 ms to 1 s", at_least=1e-4, at_most=1.0)
    if not isinstance(law, float | int):
        SocketPacer(law)  # compiled before the first connection
    child = start_program(argv)
    found: dict[int, SocketPacer | None] = {}
    told: dict[int, TcpInfo] = {}
    changes, family, places = 0, [child.pid], []
    again = scan = 0.0
    try:
        due = time.monotonic()
        shared = time.time() - due  # laws whose drains are those of all senders need a clock that hosts share
        while child.poll() is None:
            now = time.monotonic()
            if now >= again:
                family, again = _family(child.pid), now + _FAMILY_S
            if now >= scan:
                places, scan = list(sockets_of(family)), now + _SCAN_S
            for pid, descriptor in places:
                changes += _look(found, told, law, pid, descriptor, now + shared)
            due = max(due + interval, now)
            time.sleep(max(due - time.monotonic(), 0.0))
    finally:
        end_program(child)
    held = sum(int(each.values()["held"]) for each in found.values() if each is not None)
    counts = [(info.bytes_received or 0, info.bytes_acked or 0) for info in told.values()]
    received = [came for came, left in counts if came > left]
    return PacedProgram(child.returncode, len(found), changes, held, len(received), sum(received))


def _look(
    found: dict[int, SocketPacer | None],
    told: dict[int, TcpInfo],
    law: PacingLaw | float,
    pid: int,
    descriptor: int,
    now: float,
) -> int:
    """One look at one descriptor of a program: 1 where a rate was set, else 0. `told` keeps each connection's last."""
    connection = borrow_socket(pid, descriptor)
    if connection is None:
        return 0
    with connection:
        try:
            info = read_tcp_info(connection)
            cookie = int.from_bytes(connection.getsockopt(socket.SOL_SOCKET, _SO_COOKIE, 8), "little")
            sends = info.state in (ESTABLISHED, _SYN_SENT)
            if sends or cookie in found:
                told[cookie] = info
            if not sends:
                return 0
            if cookie not in found:
                rate = law if isinstance(law, float | int) else law.start_rate_bit_per_s
                set_pacing_rate(connection, rate)  # at once, as the next steps may compile
                found[cookie] = None if isinstance(law, float | int) else SocketPacer(law)
                return 1
            one = found[cookie]
            before = nan if one is None else one.rate_bit_per_s
            return int(one is not None and one.step(connection, now, info) != before)
        except OSError:  # not a TCP socket, or gone by now
            return 0


def borrow_socket(pid: int, descriptor: int) -> socket.socket | None:
    """Duplicate of another process's socket; None where it is gone.

    Raises
    ------
    NetctrlError
        Its sockets can't be reached, which needs the right to trace it.
    """
    holder = _libc.syscall(_PIDFD_OPEN, pid, 0)
    if holder < 0:
        return None
    try:
        copy = _libc.syscall(_PIDFD_GETFD, holder, descriptor, 0)
        number = ctypes.get_errno()
    finally:
        os.close(holder)
    if copy >= 0:
        try:
            return socket.socket(fileno=copy)
        except OSError:  # the descriptor is another object by now
            with suppress(OSError):
                os.close(copy)
            return None
    if number == errno.EPERM:
        raise NetctrlError(
            f"the sockets of process {pid} can't be reached: pidfd_getfd needs the right to trace it (CAP_SYS_PTRACE,"
            " or kernel.yama.ptrace_scope of 0 or 1)"
        )
    if number == errno.ENOSYS:
        raise NetctrlError("this kernel has no pidfd_getfd (5.6 or later is needed)")
    return None


def sockets_of(family: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Pairs (pid, descriptor) of the sockets of some processes, one per socket."""
    seen: set[str] = set()
    for each in family:
        folder = Path(f"/proc/{each}/fd")
        try:
            entries = [entry.name for entry in folder.iterdir()]
        except OSError:
            continue
        for name in entries:
            try:
                target = str((folder / name).readlink())
            except OSError:
                continue
            if target.startswith("socket:") and target not in seen:
                seen.add(target)
                yield each, int(name)


def _family(pid: int) -> list[int]:
    """A process and all its descendants."""
    children: dict[int, list[int]] = {}
    for place in Path("/proc").iterdir():
        if place.name.isdecimal():
            with suppress(OSError):  # it has ended
                parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(place.name))
    found = [pid]
    for each in found:
        found.extend(children.get(each, ()))
    return found
