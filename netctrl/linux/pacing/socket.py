"""Pacing law on a TCP socket: samples from TCP_INFO, rates by SO_MAX_PACING_RATE.

TCP paces itself at the lower of that rate and its congestion control's; no fq queue is needed. The rate counts TCP's
payload: 95 Mbit/s of it are 99.3 Mbit/s on Ethernet with 1500 bytes, so a cap of 99 exceeds a bottleneck of 100.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from math import isfinite, nan
from typing import Any

from netctrl.core.errors import InvalidValue, checked_number
from netctrl.core.units import BITS_PER_BYTE, MICROSECOND
from netctrl.laws.pacing.own_rate import SPEED
from netctrl.laws.pacing.own_rate_state import OwnRateState
from netctrl.laws.pacing.pacing import PacingSample, PacingState, pace, pacer, pacing_values, start_pacing
from netctrl.laws.record import row_names
from netctrl.linux.pacing.tcp import TcpInfo, TcpRun, read_tcp_info, send_tcp
from netctrl.model.law import OwnRatePacer, PacingLaw

SO_MAX_PACING_RATE = 47
"""From linux/socket.h; Python 3.11 has no name for it."""

_UNLIMITED = (1 << 64) - 1
_OLD = 7.0 / 8.0  # weight of the old value in the kernel's smoothed RTT (RFC 6298)
_MOST = row_names(OwnRateState).index("most_in_flight")
_LEAST = 0.1  # of a rate, while more is in flight than may be
_INTERVAL_S = 0.001


def set_pacing_rate(connection: socket.socket, rate_bit_per_s: float) -> None:
    """Cap a socket's pacing rate; inf removes the cap.

    Raises
    ------
    OSError
        The socket can't be paced.
    """
    rate = min(round(rate_bit_per_s / BITS_PER_BYTE), _UNLIMITED) if isfinite(rate_bit_per_s) else _UNLIMITED
    connection.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, struct.pack("=Q", max(rate, 1)))


class RttSamples:
    """RTT samples recovered from the kernel's smoothed RTT.

    Each acknowledgement leaves s ← 7/8 s + 1/8 ℓ, so that after k of them ℓ = (s − (7/8)^k s_0)/(1 − (7/8)^k) is a
    weighted mean of their samples, with most weight on the last ones; for k = 1 it is the sample.
    """

    def __init__(self) -> None:
        self._smoothed = nan
        self._segments = 0

    def take(self, info: TcpInfo) -> float | None:
        """Mean of the samples since the last call [s]; None without a sample."""
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
        kept = _OLD**acknowledgements
        sample = (info.rtt - kept * before) / (1.0 - kept)
        # an acknowledgement without a sample makes k too large, by no more than the smoothed RTT shows
        return MICROSECOND * max(sample, 0.5 * info.rtt)


class SocketPacer:
    """Law on one socket: `start` before it connects, then any number of `step`.

    While the program has nothing to send, and until all data sent before have arrived, the delivered rate doesn't
    measure the network: the law's clock stops, and the rate is constant. A socket takes no window, which an own-rate
    law has: while more is in flight the rate is less, by as much as brings it down to the window in a round trip.
    """

    def __init__(self, law: PacingLaw) -> None:
        if getattr(law, "l4s", False):
            raise InvalidValue(
                "l4s", True, "false: Linux's receivers echo a mark until the window is cut, not each one"
            )
        self.law = law
        self.rate_bit_per_s = float(law.start_rate_bit_per_s)
        self._ready = pacer(law)
        self._state: PacingState = start_pacing(law)
        pace(self._ready, self._state, PacingSample(0.0, nan))  # compiled now, as later a queue would fill meanwhile
        self._rtts = RttSamples()
        self._seen_s = nan
        self._arrived = 0.0
        self._until = -1.0  # arrived bytes up to which the program limits the rate
        self._idle_s, self._idle_bytes = 0.0, 0.0

    def start(self, connection: socket.socket) -> None:
        """Set the law's first rate before slow start, which would fill the queue."""
        set_pacing_rate(connection, self.rate_bit_per_s)

    def step(self, connection: socket.socket, now_s: float, info: TcpInfo | None = None) -> float:
        """Take one sample; returns the rate in force [bit/s]. The socket is written only where the rate changes."""
        info = read_tcp_info(connection) if info is None else info
        rtt = self._rtts.take(info)
        sample = self._sample(now_s, rtt, info)
        if sample is None:
            return self.rate_bit_per_s
        rate, self._state = pace(self._ready, self._state, sample)
        if isinstance(self.law, OwnRatePacer):
            over = sample.in_flight_bytes / float(self._state.values[_MOST])
            rate *= min(max(2.0 - over, _LEAST), 1.0) / SPEED
        if rate != self.rate_bit_per_s:
            set_pacing_rate(connection, rate)
            self.rate_bit_per_s = rate
        return rate

    def values(self) -> dict[str, Any]:
        """State of the law, by name."""
        return pacing_values(self.law, self._state)

    def _sample(self, now: float, rtt: float | None, info: TcpInfo) -> PacingSample | None:
        """Sample by the law's clock; None while the program limits the rate."""
        before, self._seen_s = self._seen_s, now
        since, self._arrived = self._arrived, max(self._arrived, info.arrived_bytes or 0.0)
        if info.notsent_bytes == 0:  # as in the kernel's own estimates (tcp_rate.c)
            self._until = self._arrived + info.in_flight_bytes
        if self._arrived <= self._until:
            self._idle_s += now - before if before <= now else 0.0
            self._idle_bytes += self._arrived - since
            return None
        if rtt is None:
            return None
        known = info.arrived_bytes is not None
        return PacingSample(
            time_s=now - self._idle_s,
            rtt_s=rtt,
            delivered_bytes=self._arrived - self._idle_bytes if known else nan,
            in_flight_bytes=info.in_flight_bytes,
            lost_bytes=nan if info.bytes_retrans is None else float(info.bytes_retrans),
            marked_bytes=nan if info.delivered_ce is None else float(info.snd_mss * info.delivered_ce),
        )


def pacing_law(design: object) -> PacingLaw:
    """Law of a Design; raises InvalidValue where it is not for a sender."""
    law = getattr(design, "law", None)
    if isinstance(law, PacingLaw):
        return law
    method = getattr(design, "method", type(design).__name__)
    raise InvalidValue("design", method, "a Design of pacing, as from `python -m netctrl.design pacing -o FILE`")


def paced_transfer(
    law: PacingLaw | float | None,
    address: str,
    port: int,
    seconds: float,
    *,
    congestion: str | None = None,
    interval_s: float = _INTERVAL_S,
) -> tuple[TcpRun, list[float]]:
    """Transfer of test data (`send_tcp`) with a law, a fixed cap [bit/s], or unpaced, and the rate after each look."""
    rates: list[float] = []
    if law is None:
        run = send_tcp(address, port, seconds, congestion=congestion, every_s=interval_s)
        return run, [nan] * len(run.infos)
    if isinstance(law, PacingLaw):
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
