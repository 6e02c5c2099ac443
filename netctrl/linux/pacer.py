"""A pacing law at TCP sockets: samples from TCP_INFO, rates by SO_MAX_PACING_RATE; of a transfer, or of a program.

TCP paces itself at the least of that rate and what its congestion control wants; no fq queue is needed. The rate counts
TCP's payload: 95 of it are 99.3 on an Ethernet of 1500 bytes, so that a cap of 99 is above a bottleneck of 100.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from math import inf, isfinite, nan
from pathlib import Path
from typing import Any, NamedTuple

from netctrl.errors import InvalidValue, NetctrlError, checked_number
from netctrl.linux.child import end_program, start_program
from netctrl.linux.tcp_info import ESTABLISHED, TcpInfo, read_tcp_info
from netctrl.linux.traffic import TcpRun, send_tcp
from netctrl.model.gain import ArxPacer, PacingLaw, TargetRttPacer
from netctrl.runtime.pacing import PacingSample, PacingState, pace, pacer, pacing_values, start_pacing
from netctrl.runtime.pacing_target import TARGET_FIELDS
from netctrl.units import BITS_PER_BYTE, MICROSECOND

__all__ = [
    "SO_MAX_PACING_RATE",
    "PacedProgram",
    "RttSamples",
    "SocketPacer",
    "pace_program",
    "paced_transfer",
    "pacing_law",
    "set_pacing_rate",
]

SO_MAX_PACING_RATE = 47
"""Of linux/socket.h; Python before 3.14 has no name for it."""

_SO_COOKIE = 57
_UNLIMITED = (1 << 64) - 1
_OLD = 7.0 / 8.0  # share of the old in the kernel's smoothed RTT (RFC 6298)
_PIDFD_OPEN, _PIDFD_GETFD = 434, 438
_SYN_SENT = 2
_LEAST_RTT = TARGET_FIELDS.index("least_rtt")
_SCAN_S = 0.05  # between two looks at which sockets a program has
_INTERVAL_S = 0.001
_libc = ctypes.CDLL(None, use_errno=True)


def set_pacing_rate(connection: socket.socket, rate_bit_per_s: float) -> None:
    """Cap a socket's pacing rate; inf takes the cap away.

    Raises
    ------
    OSError
        It is no socket that can be paced.
    """
    rate = min(round(rate_bit_per_s / BITS_PER_BYTE), _UNLIMITED) if isfinite(rate_bit_per_s) else _UNLIMITED
    connection.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, struct.pack("=Q", max(rate, 1)))


class RttSamples:
    """RTTs as they were sampled, from the kernel's smoothed one.

    Each acknowledgement leaves s ← 7/8 s + 1/8 ℓ, so that after k of them ℓ = (s − (7/8)^k s_0)/(1 − (7/8)^k) is the
    mean of their samples, the last ones weighing most; for k = 1 it is the sample.
    """

    def __init__(self) -> None:
        self._smoothed = nan
        self._segments = 0
        self.acknowledgements = 1
        """That the last one is the mean of."""

    def take(self, info: TcpInfo) -> float | None:
        """The mean of the samples since the last call [s]; None where there is none."""
        before, segments = self._smoothed, self._segments
        if info.rtt == 0:
            return None
        if info.segs_in is None:  # a kernel before 4.2
            self._smoothed = info.rtt
            return info.rtt_s
        if not before > 0.0:
            self._smoothed, self._segments = float(info.rtt), info.segs_in
            return info.rtt_s
        acknowledgements = (info.segs_in - segments) % (1 << 32)
        if acknowledgements == 0:
            return None
        self._smoothed, self._segments = float(info.rtt), info.segs_in
        self.acknowledgements = acknowledgements
        kept = _OLD**acknowledgements
        sample = (info.rtt - kept * before) / (1.0 - kept)
        # an acknowledgement without a sample makes k too large, never by more than the smoothed one shows
        return MICROSECOND * max(sample, 0.5 * info.rtt)


class _Frame:
    """Looks between two rates of a target-RTT law, as one sample of their means.

    Acknowledgements come in bunches, from media that are shared in turns and from what polls: RTTs then spread upwards
    from what the path and its queue take, and a law that aims at a queue of a hundredth of the RTT would take that for
    one. Its RTT is the mean less twice the kernel's mean deviation (the low end, where all are alike between two ends),
    at least the kernel's least RTT; what is in flight is taken less by the same share (Little's law).
    """

    def __init__(self, law: TargetRttPacer) -> None:
        self._law = law
        self._last = -inf
        self._clear()

    def _clear(self) -> None:
        self._looks, self._samples = 0, 0
        self._time = self._delivered = self._in_flight = self._rtt = self._spread = 0.0

    def add(
        self, sample: PacingSample, info: TcpInfo, acknowledgements: int, state: PacingState
    ) -> PacingSample | None:
        """One look; the frame where it is the last of it."""
        self._looks += 1
        self._time += sample.time_s
        self._delivered += sample.delivered_bytes
        self._in_flight += sample.in_flight_bytes
        if sample.rtt_s > 0.0:
            self._samples += acknowledgements
            self._rtt += acknowledgements * sample.rtt_s
            self._spread += acknowledgements * 2.0 * MICROSECOND * info.rttvar
        if self._samples == 0:
            return None
        mean, time = self._rtt / self._samples, self._time / self._looks
        rtt = min(max(mean - self._spread / self._samples, MICROSECOND * (info.min_rtt or 0.5 * info.rtt)), mean)
        least = min(float(state.values[_LEAST_RTT]), rtt)
        if time - self._last < max(self._law.period_s, self._law.interval_share * least):
            return None
        means = self._delivered / self._looks, self._in_flight / self._looks * rtt / mean
        self._last = time
        self._clear()
        return PacingSample(time, rtt, *means, sample.lost_bytes)


class SocketPacer:
    """A law at one socket: `start` before it connects, then `step` as often as one likes.

    While the program has nothing to send, and until all that it sent before has arrived, what is delivered says
    nothing of the network: the law's clock stands still, and the rate stays as it is.
    """

    def __init__(self, law: PacingLaw) -> None:
        self.law = law
        self.rate_bit_per_s = float(law.start_rate_bit_per_s)
        self._ready = pacer(law)
        self._state: PacingState = start_pacing(law)
        pace(self._ready, self._state, PacingSample(0.0, nan))  # compiled now: later a queue would fill meanwhile
        self._rtts = RttSamples()
        self._frame = _Frame(law) if isinstance(law, TargetRttPacer) else None
        self._seen_s = nan
        self._arrived = 0.0
        self._until = -1.0  # bytes arrived, up to which the program is the limit
        self._idle_s, self._idle_bytes = 0.0, 0.0

    def start(self, connection: socket.socket) -> None:
        """Set the law's first rate: before slow start, which would fill the queue."""
        set_pacing_rate(connection, self.rate_bit_per_s)

    def step(self, connection: socket.socket, now_s: float, info: TcpInfo | None = None) -> float:
        """One sample, and the rate that is then in force [bit/s]; the socket is touched only where it changes."""
        info = read_tcp_info(connection) if info is None else info
        rtt = self._rtts.take(info)
        sample = self._sample(now_s, rtt, info)
        if sample is not None and self._frame is not None:
            sample = self._frame.add(sample, info, self._rtts.acknowledgements, self._state)
        if sample is None:
            return self.rate_bit_per_s
        rate, self._state = pace(self._ready, self._state, sample)
        if rate != self.rate_bit_per_s:
            set_pacing_rate(connection, rate)
            self.rate_bit_per_s = rate
        return rate

    def values(self) -> dict[str, Any]:
        """What the law remembers, by name."""
        return pacing_values(self.law, self._state)

    def _sample(self, now: float, rtt: float | None, info: TcpInfo) -> PacingSample | None:
        """By the law's clock; None while the program is the limit."""
        before, self._seen_s = self._seen_s, now
        since, self._arrived = self._arrived, max(self._arrived, info.arrived_bytes or 0.0)
        if info.notsent_bytes == 0:  # as the kernel has it for its own estimates (tcp_rate.c)
            self._until = self._arrived + info.in_flight_bytes
        if self._arrived <= self._until:
            self._idle_s += now - before if before <= now else 0.0
            self._idle_bytes += self._arrived - since
            return None
        if rtt is None and self._frame is None:
            return None
        known = info.arrived_bytes is not None
        return PacingSample(
            time_s=now - self._idle_s,
            rtt_s=nan if rtt is None else rtt,
            delivered_bytes=self._arrived - self._idle_bytes if known else nan,
            in_flight_bytes=info.in_flight_bytes,
            lost_bytes=nan if info.bytes_retrans is None else float(info.bytes_retrans),
        )


def pacing_law(design: object) -> PacingLaw:
    """Of a Design; InvalidValue where it is not for a sender."""
    law = getattr(design, "law", None)
    if isinstance(law, ArxPacer | TargetRttPacer):
        return law
    method = getattr(design, "method", type(design).__name__)
    raise InvalidValue("design", method, "a Design of pacing, as `python -m netctrl.design pacing -o FILE` makes it")


def paced_transfer(
    law: PacingLaw | float | None,
    address: str,
    port: int,
    seconds: float,
    *,
    congestion: str | None = None,
    interval_s: float = _INTERVAL_S,
) -> tuple[TcpRun, list[float]]:
    """A transfer of our own (`send_tcp`) under a law, a fixed cap [bit/s], or nothing; and the rate after each look."""
    rates: list[float] = []
    if law is None:
        run = send_tcp(address, port, seconds, congestion=congestion, every_s=interval_s)
        return run, [nan] * len(run.infos)
    if isinstance(law, ArxPacer | TargetRttPacer):
        one = SocketPacer(law)

        def watch(connection: socket.socket, now: float, info: TcpInfo) -> None:
            rates.append(one.step(connection, now, info))

        prepare: Callable[[socket.socket], object] = one.start
    else:
        cap = checked_number("law", law, "a pacing law, or a cap above 0 in bit/s", above=0.0)

        def watch(connection: socket.socket, now: float, info: TcpInfo) -> None:
            rates.append(cap)

        def prepare(connection: socket.socket) -> None:
            set_pacing_rate(connection, cap)

    run = send_tcp(address, port, seconds, congestion=congestion, every_s=interval_s, watch=watch, prepare=prepare)
    return run, rates


class PacedProgram(NamedTuple):
    """What came of a program whose sockets were paced."""

    status: int
    """Its exit status."""
    sockets: int
    """TCP connections of it that were found."""
    changes: int
    """Rates that were set."""
    held: int
    """Samples that the laws could not use."""


def pace_program(
    law: PacingLaw | float, argv: Sequence[str], *, interval_s: float = _INTERVAL_S, namespace: int | None = None
) -> PacedProgram:
    """Run a program, and its children, with a law, or a fixed cap [bit/s], at each of its TCP connections; returns when
    it ends.

    Its sockets are borrowed for the moment of a look (pidfd_getfd): when it closes one, the connection ends as it
    would have. A connection is found some milliseconds after it was made.

    Raises
    ------
    NetctrlError
        The program can't be started, or its sockets can't be reached: that takes the right to trace it.
    """
    interval = checked_number("interval_s", interval_s, "a time from 0.1 ms to 1 s", at_least=1e-4, at_most=1.0)
    if not isinstance(law, float | int):
        SocketPacer(law)  # compiled before the first connection
    child = start_program(namespace, argv)
    found: dict[int, SocketPacer | None] = {}
    changes, places, scan = 0, [], 0.0
    try:
        due = time.monotonic()
        while child.poll() is None:
            now = time.monotonic()
            if now >= scan:
                places = list(_sockets(child.pid))
                scan = now + (_SCAN_S if places else interval)
            for pid, descriptor in places:
                changes += _look(found, law, pid, descriptor, now)
            due = max(due + interval, now)
            time.sleep(max(due - time.monotonic(), 0.0))
    finally:
        end_program(child)
    held = sum(int(each.values()["held"]) for each in found.values() if each is not None)
    return PacedProgram(child.returncode, len(found), changes, held)


def _look(found: dict[int, SocketPacer | None], law: PacingLaw | float, pid: int, descriptor: int, now: float) -> int:
    """One look at one descriptor of a program: 1 where a rate was set."""
    connection = _borrow(pid, descriptor)
    if connection is None:
        return 0
    with connection:
        try:
            info = read_tcp_info(connection)
            if info.state not in (ESTABLISHED, _SYN_SENT):
                return 0
            cookie = int.from_bytes(connection.getsockopt(socket.SOL_SOCKET, _SO_COOKIE, 8), "little")
            if cookie not in found:
                rate = law if isinstance(law, float | int) else law.start_rate_bit_per_s
                set_pacing_rate(connection, rate)  # at once: what follows may compile
                found[cookie] = None if isinstance(law, float | int) else SocketPacer(law)
                return 1
            one = found[cookie]
            before = nan if one is None else one.rate_bit_per_s
            return int(one is not None and one.step(connection, now, info) != before)
        except OSError:  # a socket that is no TCP, or is gone by now
            return 0


def _borrow(pid: int, descriptor: int) -> socket.socket | None:
    """A duplicate of another process's socket; None where it is gone."""
    holder = _libc.syscall(_PIDFD_OPEN, pid, 0)
    if holder < 0:
        return None
    try:
        copy = _libc.syscall(_PIDFD_GETFD, holder, descriptor, 0)
        number = ctypes.get_errno()
    finally:
        os.close(holder)
    if copy >= 0:
        return _as_socket(copy)
    if number == 1:  # EPERM
        raise NetctrlError(
            f"the sockets of process {pid} can't be reached: pidfd_getfd needs the right to trace it (CAP_SYS_PTRACE,"
            " or kernel.yama.ptrace_scope of 0 or 1)"
        )
    if number == 38:  # ENOSYS
        raise NetctrlError("this kernel has no pidfd_getfd (5.6 or later is needed)")
    return None


def _as_socket(descriptor: int) -> socket.socket | None:
    try:
        return socket.socket(fileno=descriptor)
    except OSError:  # it was another thing by then
        with suppress(OSError):
            os.close(descriptor)
        return None


def _sockets(pid: int) -> Iterator[tuple[int, int]]:
    """(pid, descriptor) of each socket of a process and its children's children, one for each socket."""
    seen: set[str] = set()
    for each in _family(pid):
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
    """A process and all that descend from it."""
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
