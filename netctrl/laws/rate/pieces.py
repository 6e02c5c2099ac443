"""Pieces of data that leave a paced sender at once, as in Linux."""

from __future__ import annotations

from math import floor

from netctrl.core.jit import njit

_PER_S, _MOST = 1024.0, 65536.0  # parts of a second; bytes
_HALVES = 512e-6  # so much RTT halves what leaves at once on short paths [s]


@njit(cache=True, error_model="numpy")
def at_once(rate: float, more: float, packet: float, least: float) -> float:
    """A piece [packet]: what a rate [byte/s] sends in 1/1024 s, and `more` bytes, up to 64 KiB; at least `least`."""
    return max(floor(min(rate / _PER_S + more, _MOST) / packet), least)


@njit(cache=True, error_model="numpy")
def on_short_path(min_rtt: float) -> float:
    """Bytes by which a piece is longer where round trips are short. Source: Linux, tcp_tso_autosize."""
    return _MOST * 0.5 ** floor(min_rtt / _HALVES)
