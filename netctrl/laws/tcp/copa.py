"""Copa: a window that keeps 1/δ of a flow's packets in the queue on average, and lets it run empty every few round
trips; where it doesn't run empty others keep it filled, and 1/δ grows as Reno's window until losses halve it.

Source: Arun, Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet", NSDI 2018, sections 2 and
4; at a timeout the window begins anew.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from netctrl.core.jit import njit
from netctrl.laws.rate.law import Allowed, RateLaw, Sample
from netctrl.laws.record import compiled_view, width


class CopaState:
    """State of Copa; of each least or greatest RTT one half of its span stands beside the half before [s]."""

    window: float
    """[packet]"""
    delta: float
    """δ [1/packet]"""
    starting: float
    """1: slow start"""
    velocity: float
    """v: how fast the window changes"""
    direction: float
    """1: it grew in this round trip; -1: it shrank"""
    steady: float
    """Round trips in this direction"""
    round_s: float
    """When this round trip began [s]"""
    round_window: float
    """The window then [packet]"""
    rtt: float
    """Smoothed [s]"""
    min_rtt: float
    min_before: float
    min_s: float
    standing: float
    standing_before: float
    standing_s: float
    highest: float
    highest_before: float
    highest_s: float
    empty_s: float
    """When the queue was nearly empty last [s]"""
    competing: float
    """1: it hasn't been for five round trips"""
    lost: float
    """[byte]"""
    cut_s: float
    """When 1/δ was halved last [s]"""
    recovering: float
    """Of `Sample`"""


_DELTA = 0.5
_PACE = 2.0  # times window over standing RTT
_STANDING_RTTS, _MIN_S, _HIGHEST_RTTS = 0.75, 10.0, 4.0
_EMPTY, _EMPTY_RTTS = 0.1, 5.0  # of the greatest queueing delay; round trips
_DRAIN_RTTS = 15.0  # round trips in which the queue of slow starts may go; the paper is silent
_STEADY = 3.0  # round trips in one direction, after which v doubles
_FIRST, _LEAST = 10.0, 2.0  # packets
_SMOOTHING = 0.125

_state = compiled_view(CopaState)


@njit(cache=True, error_model="numpy")
def _see(s: CopaState, now: float, rtt: float) -> None:
    """Least RTT of 10 s, standing one of half a round trip, greatest of four."""
    s.rtt += _SMOOTHING * (rtt - s.rtt)
    if now - s.min_s > 0.5 * _MIN_S:
        s.min_s, s.min_before, s.min_rtt = now, s.min_rtt, inf
    s.min_rtt = min(s.min_rtt, rtt)
    if now - s.standing_s > 0.5 * _STANDING_RTTS * s.rtt:
        s.standing_s, s.standing_before, s.standing = now, s.standing, inf
    s.standing = min(s.standing, rtt)
    if now - s.highest_s > 0.5 * _HIGHEST_RTTS * s.rtt:
        s.highest_s, s.highest_before, s.highest = now, s.highest, 0.0
    s.highest = max(s.highest, rtt)


@njit(cache=True, error_model="numpy")
def _compete(s: CopaState, now: float, queueing: float, min_rtt: float, losing: bool, may: bool) -> None:
    """δ as the queue's life says."""
    if queueing <= _EMPTY * (max(s.highest, s.highest_before) - min_rtt):
        s.empty_s = max(s.empty_s, now)
    elif s.starting > 0.0:
        s.empty_s = now + _DRAIN_RTTS * s.rtt
    competing = 1.0 if may and now - s.empty_s > _EMPTY_RTTS * s.rtt else 0.0
    if competing == 0.0:
        s.delta = _DELTA
    elif losing and now - s.cut_s > s.rtt:
        s.delta, s.cut_s = min(2.0 * s.delta, _DELTA), now
    s.competing = competing


@njit(cache=True, error_model="numpy")
def _turn(s: CopaState, now: float) -> None:
    """Once a round trip: v doubles while the window goes one way."""
    if now - s.round_s < s.rtt:
        return
    direction = 1.0 if s.window > s.round_window else -1.0
    if direction == s.direction:
        s.steady += 1.0
        if s.steady >= _STEADY:
            s.velocity *= 2.0
    else:
        s.direction, s.steady, s.velocity = direction, 0.0, 1.0
    if s.competing > 0.0:
        s.delta = 1.0 / (1.0 / s.delta + 1.0)
    s.round_s, s.round_window = now, s.window


def _read(sender: Any, random: np.random.Generator) -> tuple[np.ndarray, int]:
    """The record's flag."""
    return np.array([float(sender.compete)]), width(CopaState)


def _begin(allowed: Allowed, state: np.ndarray, settings: np.ndarray, rtt: float, packet: float) -> None:
    state[:] = 0.0
    s = _state(state)
    s.window, s.delta, s.starting, s.velocity = _FIRST, _DELTA, 1.0, 1.0
    s.rtt = rtt
    s.min_rtt = s.min_before = s.standing = s.standing_before = inf  # data take longer on their way than a handshake
    allowed.rate, allowed.in_flight = _PACE * s.window * packet / rtt, s.window * packet


def _step(allowed: Allowed, state: np.ndarray, settings: np.ndarray, sample: Sample) -> None:
    s, now, packet = _state(state), sample.time, sample.packet
    if s.round_s == 0.0:
        s.min_s = s.standing_s = s.highest_s = s.round_s = s.empty_s = now
        s.round_window = s.window
    acknowledged = max(sample.prior_in_flight - sample.in_flight - max(sample.lost - s.lost, 0.0), packet) / packet
    _see(s, now, sample.rtt)
    min_rtt, standing = min(s.min_rtt, s.min_before), min(s.standing, s.standing_before)
    queueing = standing - min_rtt
    _compete(s, now, queueing, min_rtt, sample.lost > s.lost, settings[0] > 0.0)
    s.lost = sample.lost
    if sample.recovering == 2.0 and s.recovering != 2.0:
        s.window, s.starting, s.velocity = _LEAST, 1.0, 1.0
    s.recovering = sample.recovering
    grows = s.window * s.delta * queueing <= standing  # λ ≤ 1/(δ d)
    if s.starting > 0.0 and not grows:
        s.starting = 0.0
    if s.starting > 0.0:
        s.window += acknowledged
    else:
        if grows != (s.direction > 0.0) and s.velocity > 1.0:
            s.velocity, s.steady = 1.0, 0.0
        step = min(s.velocity / (s.delta * s.window), 1.0) * acknowledged
        s.window = max(s.window + (step if grows else -step), _LEAST)
        _turn(s, now)
    allowed.rate = _PACE * s.window * packet / standing
    allowed.in_flight = s.window * packet


COPA_ROWS = RateLaw(_read, _begin, _step)
