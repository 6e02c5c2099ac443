"""Copa: a window that keeps 1/δ of a flow's packets in the queue on average and moves faster the longer it moves one
way.

Source: Arun, Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet", NSDI 2018, section 2.1;
where it is asked for, as deployments don't, also the mode of section 2.2 beside senders that fill buffers. After a
timeout the window begins anew.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from netctrl.core.jit import njit
from netctrl.laws.rate.law import Allowed, RateLaw, Sample
from netctrl.laws.record import compiled_view, width


class CopaState:
    """State of Copa; of each least RTT one half of its span stands beside the half before [s]."""

    window: float
    """[packet]"""
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
    lost: float
    """[byte]"""
    aim: float
    """1/δ [packet]"""
    most: float
    """Greatest RTT of half its span, beside the half before, as of the least [s]"""
    most_before: float
    most_s: float
    empty_s: float
    """When the queue was nearly empty last [s]"""
    raised_s: float
    """When the aim was raised last, beside senders that fill buffers [s]"""
    halved_s: float
    recovering: float
    """Of `Sample`"""


_AIM = 2.0  # packets
_PACE = 2.0  # times window over standing RTT
_STANDING_RTTS, _MIN_S = 0.5, 10.0
_STEADY = 3.0  # round trips in one direction, after which v doubles
_FIRST, _LEAST = 10.0, 2.0  # packets
_SMOOTHING = 0.125
_EMPTY, _MOST_RTTS, _EMPTY_RTTS = 0.1, 4.0, 5.0  # of section 2.2

_state = compiled_view(CopaState)


@njit(cache=True, error_model="numpy")
def _see(s: CopaState, now: float, rtt: float) -> None:
    """Least RTT of 10 s, and standing one of half a round trip, which bunches of acknowledgements don't hide."""
    s.rtt += _SMOOTHING * (rtt - s.rtt)
    if now - s.min_s > 0.5 * _MIN_S:
        s.min_s, s.min_before, s.min_rtt = now, s.min_rtt, inf
    s.min_rtt = min(s.min_rtt, rtt)
    if now - s.standing_s > 0.5 * _STANDING_RTTS * s.rtt:
        s.standing_s, s.standing_before, s.standing = now, s.standing, inf
    s.standing = min(s.standing, rtt)


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
    s.round_s, s.round_window = now, s.window


@njit(cache=True, error_model="numpy")
def _compete(s: CopaState, now: float, rtt: float, queueing: float, losing: bool) -> None:
    """Unless the queue was nearly empty within five round trips, 1/δ is a Reno's window, of at least 2 packets.

    Nearly empty: at a tenth of the RTTs' range in four round trips. Copa's own queue is, once in five.
    """
    if now - s.most_s > 0.5 * _MOST_RTTS * s.rtt:
        s.most_s, s.most_before, s.most = now, s.most, 0.0
    s.most = max(s.most, rtt)
    if queueing < _EMPTY * (max(s.most, s.most_before) - min(s.min_rtt, s.min_before)):
        s.empty_s = now
    if now - s.empty_s <= _EMPTY_RTTS * s.rtt:
        s.aim = _AIM
    elif losing and now - s.halved_s > s.rtt:
        s.aim, s.halved_s = max(0.5 * s.aim, _AIM), now
    elif now - s.raised_s > s.rtt:
        s.aim, s.raised_s = s.aim + 1.0, now


def _read(record: Any, random: np.random.Generator) -> tuple[np.ndarray, int]:
    return np.array([float(record.competitive)]), width(CopaState)


def _begin(allowed: Allowed, state: np.ndarray, settings: np.ndarray, rtt: float, packet: float) -> None:
    state[:] = 0.0
    s = _state(state)
    s.window, s.starting, s.velocity, s.rtt, s.aim = _FIRST, 1.0, 1.0, rtt, _AIM
    s.min_rtt = s.min_before = s.standing = s.standing_before = inf  # data take longer on their way than a handshake
    allowed.rate, allowed.in_flight = _PACE * s.window * packet / rtt, s.window * packet


def _step(allowed: Allowed, state: np.ndarray, settings: np.ndarray, sample: Sample) -> None:
    s, now, packet = _state(state), sample.time, sample.packet
    if s.round_s == 0.0:
        s.min_s = s.standing_s = s.round_s = s.most_s = s.empty_s = now
        s.round_window = s.window
    acknowledged = max(sample.prior_in_flight - sample.in_flight - max(sample.lost - s.lost, 0.0), packet) / packet
    losing = sample.lost > s.lost
    s.lost = sample.lost
    _see(s, now, sample.rtt)
    standing = min(s.standing, s.standing_before)
    queueing = standing - min(s.min_rtt, s.min_before)
    if settings[0] > 0.0:
        _compete(s, now, sample.rtt, queueing, losing)
    if sample.recovering == 2.0 and s.recovering != 2.0:
        s.window, s.starting, s.velocity = _LEAST, 1.0, 1.0
    s.recovering = sample.recovering
    grows = s.window * queueing <= s.aim * standing  # the rate is at most 1/(δ d), d the queueing delay
    if not grows:
        s.starting = 0.0
    if s.starting > 0.0:
        s.window += acknowledged
    else:
        step = min(s.velocity * s.aim / s.window, 1.0) * acknowledged
        s.window = max(s.window + (step if grows else -step), _LEAST)
        _turn(s, now)
    allowed.rate = _PACE * s.window * packet / standing
    allowed.in_flight = s.window * packet


COPA_ROWS = RateLaw(_read, _begin, _step)
