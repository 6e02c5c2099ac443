"""DCTCP, one acknowledgement at a time. Source: Alizadeh et al., SIGCOMM 2010, (1), (2) and section 3.1."""

from __future__ import annotations

from typing import NamedTuple

from netctrl.laws.window.law import SHARE, Acknowledged, Marking, Packet, Path, SchemeRecord, WindowLaw
from netctrl.model.io.fields import Rate, Size, flag, optional, rate, read_fields, size


class Dctcp(SchemeRecord, frozen=True, kw_only=True, tag="dctcp"):
    """Data center TCP: the window shrinks by the marked part of its packets.

    Source: Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, (1), (2) and section 3.4.
    """

    gain: float = 1.0 / 16.0
    """g of the moving average of the marked part."""
    threshold: Size = 30e3
    """K [byte], of a queue at a link of `threshold_rate`; in proportion to the rate of others."""
    threshold_rate: Rate = 1e10
    """Rate of the link that `threshold` is for [bit/s]."""
    initial_window: Size | None = None
    """[byte]; null: the path's bandwidth-delay product."""
    slow_start: bool = False
    """Whether the window doubles each round trip until the first mark."""

    def __post_init__(self) -> None:
        read_fields(self, gain=SHARE, threshold=size, threshold_rate=rate)
        read_fields(self, initial_window=optional(size), slow_start=flag)


class DctcpParameters(NamedTuple):
    """Parameters of DCTCP."""

    gain: float
    """g of the moving average"""
    packet: float
    """Payload of a full one [byte]"""
    slow_start: float
    """1: until the first mark"""


class DctcpState(NamedTuple):
    """State of DCTCP."""

    window: float
    """[byte]"""
    rate: float
    """[bit/s]"""
    alpha: float
    """Moving average of the marked part"""
    acknowledged: float
    """In this window [byte]"""
    marked: float
    """Of these [byte]"""
    window_end: float
    """First byte behind this window"""
    reduced: float
    """Until this byte is acknowledged it isn't reduced again"""
    started: float
    """0: not yet; 1: yes; 2: slow start"""


def dctcp_step(state: DctcpState, seen: Acknowledged, path: Path, p: DctcpParameters) -> DctcpState:
    """DCTCP: alpha <- (1 - g) alpha + g F once a window; W <- W (1 - alpha/2) at most once a window; else TCP's growth.

    Source: Alizadeh et al., SIGCOMM 2010, (1), (2) and section 3.1.
    """
    started = state.started
    alpha = state.alpha
    end = state.window_end
    if started == 0.0:
        # alpha = 1: the first mark halves the window, as for TCP.
        started = 1.0 + p.slow_start
        alpha = 1.0
        end = seen.next_byte
    acknowledged = state.acknowledged + seen.newly
    marked = state.marked
    if seen.marked:
        marked += seen.newly
        started = 1.0
    if seen.una > end:
        if acknowledged > 0.0:
            alpha += p.gain * (marked / acknowledged - alpha)
        acknowledged = 0.0
        marked = 0.0
        end = seen.next_byte
    window = state.window
    reduced = state.reduced
    if seen.lost or (seen.marked and seen.una > reduced):
        window *= 0.5 if seen.lost else 1.0 - 0.5 * alpha
        reduced = seen.next_byte
    elif not seen.marked and seen.newly > 0.0:
        window += seen.newly if started == 2.0 else p.packet * seen.newly / window
    return DctcpState(max(window, p.packet), state.rate, alpha, acknowledged, marked, end, reduced, started)


def _start(scheme: Dctcp, path: Path) -> float:
    return path.bdp if scheme.initial_window is None else scheme.initial_window


def _read(scheme: Dctcp, packet: Packet) -> DctcpParameters:
    return DctcpParameters(scheme.gain, packet.payload, float(scheme.slow_start))


def _marking(scheme: Dctcp) -> Marking:
    return Marking(scheme.threshold, scheme.threshold, 0.0, scheme.threshold_rate)


DCTCP = WindowLaw(Dctcp, DctcpParameters, DctcpState, _read, dctcp_step, start=_start, marking=_marking)
