"""BBR, version 3: BBR's model with bounds of what is in flight, learnt from losses, and probes a few seconds apart.

Bandwidth is the greatest of two cycles, or what losses between probes have left of it (`bandwidth_low`). In flight are
two BDP at most, `high` where a probe lost more than 2 % beyond it, less a share of headroom while cruising, and
`low`, what losses between probes have left.

Source: draft-ietf-ccwg-bbr-03, with the numbers of Google's Linux branch v3. Left out: marks, as its packets aren't
ECN-capable outside of networks where marks mean short queues.
"""

from __future__ import annotations

from math import ceil, floor, inf
from typing import Any

import numpy as np

from netctrl.core.jit import njit
from netctrl.laws.rate.law import Allowed, RateLaw, Sample
from netctrl.laws.rate.pieces import at_once, on_short_path
from netctrl.laws.record import compiled_view, width
from netctrl.laws.tcp.bbr import EXTRA_ROUNDS, EXTRA_S, MARGIN, MARKS, MARKS_PER_RTT, ROUNDING, hear_ahead, mark_before
from netctrl.laws.tcp.bbr3_state import Bbr3State

STARTUP, DRAIN, DOWN, CRUISE, REFILL, UP, PROBE_RTT = range(7)
_NONE, _STARTING, _ANSWERED, _STOPPING, _REFILLING = range(5)
_PACE = (2.77, 1.0 / 2.885, 0.91, 1.0, 1.0, 1.25, 1.0)
_HOLD = (2.0, 2.0, 2.0, 2.0, 2.0, 2.25, 1.0)
_BETA, _HEADROOM, _LOSS = 0.7, 0.15, 0.02
_FULL_GROWTH, _FULL_ROUNDS, _FULL_LOSSES = 1.25, 3.0, 6.0
_FIRST_PACKETS, _MIN_PACKETS = 10.0, 4.0
_RTT_S, _PROBED_S, _PROBE_S, _PROBE_BDP = 10.0, 5.0, 0.2, 0.5
_WAIT_S, _MORE_S, _MOST_ROUNDS = 2.0, 1.0, 63.0
_GOLDEN = 0.6180339887498949

_state = compiled_view(Bbr3State)


@njit(cache=True, error_model="numpy")
def _bandwidth(s: Bbr3State) -> float:
    return min(max(s.bandwidth, s.bandwidth_before), s.bandwidth_low)


@njit(cache=True, error_model="numpy")
def _draw(s: Bbr3State) -> float:
    """The next of evenly spread numbers (Weyl's sequence)."""
    s.random = (s.random + _GOLDEN) % 1.0
    return s.random


@njit(cache=True, error_model="numpy")
def _piece(s: Bbr3State, packet: float) -> float:
    """What leaves at once [packet]."""
    return at_once(s.rate, on_short_path(s.min_rtt), packet, 2.0)


@njit(cache=True, error_model="numpy")
def _to_hold(s: Bbr3State, bandwidth: float, gain: float, extra: float, packet: float) -> float:
    """What may be in flight at a gain: so many BDP, at least three times what leaves at once, and four packets."""
    packets = ceil(gain * bandwidth * s.min_rtt / packet) + floor(extra / packet)
    packets = max(packets, 3.0 * _piece(s, packet), _MIN_PACKETS)
    return (packets + (2.0 if s.phase == UP else 0.0)) * packet


@njit(cache=True, error_model="numpy")
def _target(s: Bbr3State, packet: float) -> float:
    return min(_to_hold(s, _bandwidth(s), 1.0, 0.0, packet), s.window)


@njit(cache=True, error_model="numpy")
def _below_high(s: Bbr3State, packet: float) -> float:
    """`high` less headroom for others."""
    return max(s.high - max(_HEADROOM * s.high, packet), _MIN_PACKETS * packet)


@njit(cache=True, error_model="numpy")
def _look(s: Bbr3State, m: Sample) -> None:
    """Delivered, lost and in flight since what is acknowledged was sent, by the newest mark before that."""
    if s.marks == 0.0:
        s.ring_times[0], s.ring_flight[0] = m.time - m.rtt, m.packet
        s.marks = 1.0
    at = mark_before(s, m.time, m.rtt)
    span = m.time - s.ring_times[at]
    s.passed = m.delivered - s.ring_bytes[at]
    s.sampled = s.passed / span if span > 0.0 else 0.0
    s.gone, s.flight = m.lost - s.ring_lost[at], s.ring_flight[at]
    s.known = 1.0 if s.ring_bytes[at] >= s.limited else 0.0
    if m.time - s.ring_times[int(s.marks - 1.0) % MARKS] >= m.rtt / MARKS_PER_RTT:
        at = int(s.marks) % MARKS
        s.ring_times[at], s.ring_bytes[at], s.ring_lost[at] = m.time, m.delivered, m.lost
        s.ring_flight[at] = m.prior_in_flight
        s.marks += 1.0


@njit(cache=True, error_model="numpy")
def _reset_full(s: Bbr3State, bandwidth: float) -> None:
    s.full, s.full_rounds, s.full_now = bandwidth, 0.0, 0.0


@njit(cache=True, error_model="numpy")
def _begin_phase(s: Bbr3State, phase: float, feedback: float, m: Sample) -> None:
    s.phase, s.feedback, s.round_end = phase, feedback, m.sent


@njit(cache=True, error_model="numpy")
def _go_down(s: Bbr3State, m: Sample) -> None:
    """After a probe, and what losses say from now on isn't of it. The next one comes after 2 to 3 s, or as many round
    trips as Reno takes to come back from a loss."""
    s.losing = s.bandwidth_latest = s.delivered_latest = 0.0
    s.per_packet = inf
    s.rounds, s.wait_s, s.phase_s = floor(2.0 * _draw(s)), _WAIT_S + _MORE_S * _draw(s), m.time
    _begin_phase(s, DOWN, _STOPPING, m)


@njit(cache=True, error_model="numpy")
def _refill(s: Bbr3State, m: Sample) -> None:
    s.bandwidth_low = s.low = inf
    s.growth = s.counted = s.risky = 0.0
    _begin_phase(s, REFILL, _REFILLING, m)


@njit(cache=True, error_model="numpy")
def _raise_faster(s: Bbr3State, packet: float) -> None:
    s.per_packet = max(s.window / 2.0**s.growth, packet)
    s.growth = min(s.growth + 1.0, 30.0)


@njit(cache=True, error_model="numpy")
def _hear(s: Bbr3State, m: Sample) -> None:
    """The round trip's greatest rate, and what its losses leave of bandwidth and window, but while probing."""
    new = m.lost - s.lost
    if new > 0.0:
        if s.losing == 0.0:
            s.loss_round_end = m.sent
        s.losing = 1.0
    s.bandwidth_latest = max(s.bandwidth_latest, s.sampled)
    s.delivered_latest = max(s.delivered_latest, s.passed)
    if m.delivered + m.lost >= s.loss_round_end:
        s.loss_round_end = m.sent
        s.loss_round_starts = 1.0
    if s.known > 0.0 or s.sampled >= max(s.bandwidth, s.bandwidth_before):
        s.bandwidth = max(s.bandwidth, s.sampled)
    if s.loss_round_starts > 0.0:
        if s.losing > 0.0 and s.phase not in (STARTUP, REFILL, UP):
            if s.bandwidth_low == inf:
                s.bandwidth_low = max(s.bandwidth, s.bandwidth_before)
            if s.low == inf:
                s.low = max(s.window, s.window_before if m.recovering == 2.0 else 0.0)
            s.bandwidth_low = max(s.bandwidth_latest, _BETA * s.bandwidth_low)
            s.low = max(s.delivered_latest, _BETA * s.low)
        s.losing = 0.0
    _find_full(s, m, new)


@njit(cache=True, error_model="numpy")
def _too_many_lost(s: Bbr3State) -> bool:
    return s.gone > 0.0 and s.gone > _LOSS * s.flight


@njit(cache=True, error_model="numpy")
def _find_full(s: Bbr3State, m: Sample, new: float) -> None:
    """Startup ends where the rate stops growing, or where a round trip of repairs lost too much, six times."""
    if s.filled == 0.0:
        if new > 0.0:
            s.loss_events += 1.0
        if s.loss_round_starts > 0.0:
            if m.recovering == 1.0 and s.loss_events >= _FULL_LOSSES and _too_many_lost(s):
                s.filled = 1.0
                s.high = max(_to_hold(s, max(s.bandwidth, s.bandwidth_before), 1.0, 0.0, m.packet), s.delivered_latest)
            s.loss_events = 0.0
    if s.full_now == 0.0 and s.known > 0.0:
        if s.sampled >= _FULL_GROWTH * s.full:
            _reset_full(s, s.sampled)
        elif s.round_starts > 0.0:
            s.full_rounds += 1.0
            if s.full_rounds >= _FULL_ROUNDS:
                s.full_now = s.filled = 1.0
    if s.phase == STARTUP and s.filled > 0.0:
        s.phase = DRAIN
        s.losing = s.bandwidth_latest = s.delivered_latest = 0.0
    if s.phase == DRAIN and m.in_flight <= _to_hold(s, max(s.bandwidth, s.bandwidth_before), 1.0, 0.0, m.packet):
        _go_down(s, m)


@njit(cache=True, error_model="numpy")
def _bound_above(s: Bbr3State, m: Sample) -> bool:
    """What probes say of `high`. Returns whether the next probe has begun."""
    if s.feedback == _STARTING and s.round_starts > 0.0:
        s.feedback = _ANSWERED
    if s.feedback == _STOPPING and s.round_starts > 0.0:
        s.probing, s.feedback = 0.0, _NONE
        if DOWN <= s.phase <= UP:
            if s.known > 0.0 and s.bandwidth > 0.0:
                s.bandwidth_before, s.bandwidth = s.bandwidth, 0.0
            if s.risky > 0.0 and s.too_high == 0.0:
                _refill(s, m)
                return True
    if _too_many_lost(s):
        if s.probing > 0.0:
            s.too_high, s.probing = 1.0, 0.0
            if s.known > 0.0:
                s.high = max(s.flight, _BETA * _target(s, m.packet))
            if s.phase == UP:
                _go_down(s, m)
        return False
    if s.high < inf:
        s.high = max(s.high, s.flight)
        if s.phase == UP and s.window >= s.high and m.prior_in_flight + m.packet > s.window:
            s.counted += m.delivered - s.delivered
            if s.counted >= s.per_packet:
                more = floor(s.counted / s.per_packet)
                s.counted -= more * s.per_packet
                s.high += more * m.packet
            if s.round_starts > 0.0:
                _raise_faster(s, m.packet)
    return False


@njit(cache=True, error_model="numpy")
def _advance(s: Bbr3State, m: Sample) -> None:
    """Down until the pipe holds a BDP and leaves headroom; cruise; refill for a round trip; up."""
    if s.filled == 0.0 or _bound_above(s, m):
        return
    flight = m.prior_in_flight
    if s.phase in (DOWN, CRUISE):
        reno = min(_MOST_ROUNDS, _target(s, m.packet) / m.packet)
        if m.time > s.phase_s + s.wait_s or s.rounds >= reno:
            _refill(s, m)
        elif s.phase == DOWN and flight <= min(
            _below_high(s, m.packet), _to_hold(s, max(s.bandwidth, s.bandwidth_before), 1.0, 0.0, m.packet)
        ):
            s.low = s.low if s.low == inf else min(s.low, s.high)
            s.phase = CRUISE
    elif s.phase == REFILL:
        if s.round_starts > 0.0:
            s.probing, s.phase_s = 1.0, m.time
            _begin_phase(s, UP, _STARTING, m)
            _reset_full(s, s.sampled)
            _raise_faster(s, m.packet)
    elif s.phase == UP:
        done = s.full_now > 0.0
        if s.too_high > 0.0 and flight + _piece(s, m.packet) * m.packet >= s.high:
            s.risky, done = 1.0, True
        elif m.prior_in_flight + m.packet > s.window >= s.high:
            _reset_full(s, s.sampled)
            done = False
        if done:
            s.too_high = 0.0
            _go_down(s, m)


@njit(cache=True, error_model="numpy")
def _probe_rtt(s: Bbr3State, m: Sample) -> None:
    """Where no RTT as low was seen for 5 s: half a BDP in flight for .2 s and a round trip."""
    expired = m.time > s.probed_s + _PROBED_S
    if m.rtt < s.probed_rtt or expired:
        s.probed_rtt, s.probed_s = m.rtt, m.time
    if s.probed_rtt <= s.min_rtt or m.time > s.min_rtt_s + _RTT_S:
        s.min_rtt, s.min_rtt_s = s.probed_rtt, s.probed_s
    if expired and s.phase != PROBE_RTT and m.prior_in_flight > m.packet:
        s.window_before, s.probe_end_s = s.window, 0.0
        _begin_phase(s, PROBE_RTT, _STOPPING, m)
    if s.phase != PROBE_RTT:
        return
    s.limited = m.sent - m.lost + ROUNDING * m.packet
    if s.probe_end_s == 0.0:
        if m.in_flight <= _few(s, m.packet) + ROUNDING * m.packet:
            s.probe_end_s, s.probe_round, s.round_end = m.time + _PROBE_S, 0.0, m.sent
        return
    if s.round_starts > 0.0:
        s.probe_round = 1.0
    if s.probe_round > 0.0 and m.time > s.probe_end_s:
        s.probed_s, s.window = m.time, max(s.window, s.window_before)
        s.bandwidth_low = s.low = inf
        if s.filled > 0.0:
            _go_down(s, m)
            s.phase = CRUISE
        else:
            s.phase = STARTUP


@njit(cache=True, error_model="numpy")
def _few(s: Bbr3State, packet: float) -> float:
    """In flight while the RTT is probed."""
    return max(_PROBE_BDP * _bandwidth(s) * s.min_rtt, _MIN_PACKETS * packet)


@njit(cache=True, error_model="numpy")
def _control(s: Bbr3State, m: Sample) -> None:
    """Pace and window, from the model."""
    bandwidth, phase = _bandwidth(s), int(s.phase)
    rate = MARGIN * _PACE[phase] * bandwidth
    if s.filled > 0.0 or rate > s.rate:
        s.rate = rate
    extra = min(max(s.extra, s.extra_before), EXTRA_S * bandwidth)
    most, acknowledged = _to_hold(s, bandwidth, _HOLD[phase], extra, m.packet), m.delivered - s.delivered
    if s.filled > 0.0:
        s.window = min(s.window + acknowledged, most)
    elif s.window < max(most, 2.0 * _FIRST_PACKETS * m.packet):
        s.window += acknowledged
    cap = s.low
    if s.phase in (CRUISE, PROBE_RTT):
        cap = min(cap, _below_high(s, m.packet))
    elif s.phase >= DOWN:
        cap = min(cap, s.high)
    if s.phase == PROBE_RTT:
        cap = min(cap, _few(s, m.packet))
    s.window = max(min(s.window, cap), _MIN_PACKETS * m.packet)


def _read(_: Any, random: np.random.Generator) -> tuple[np.ndarray, int]:
    """When probes come is drawn."""
    return np.array([random.uniform()]), width(Bbr3State)


def _begin(allowed: Allowed, state: np.ndarray, settings: np.ndarray, rtt: float, packet: float) -> None:
    state[:] = 0.0
    s = _state(state)
    s.min_rtt = s.probed_rtt = s.bandwidth_low = s.high = s.low = s.per_packet = inf
    s.window, s.random = _FIRST_PACKETS * packet, settings[0]
    s.loss_round_end = packet
    s.rate = MARGIN * _PACE[STARTUP] * s.window / rtt
    allowed.rate, allowed.in_flight = s.rate, s.window


def _step(allowed: Allowed, state: np.ndarray, settings: np.ndarray, sample: Sample) -> None:
    s = _state(state)
    s.limited = max(s.limited, sample.limited)
    if sample.recovering == 2.0 and s.recovering != 2.0:  # since a timeout: from what is in flight it grows again
        s.window_before, s.window = max(s.window_before, s.window), sample.in_flight + sample.packet
    elif sample.recovering == 0.0 and s.recovering == 2.0:
        s.window = max(s.window, s.window_before)
    s.recovering = sample.recovering
    s.round_starts = s.loss_round_starts = 0.0
    if sample.delivered + sample.lost >= s.round_end:
        s.round_end, s.round_starts = sample.sent, 1.0
        s.rounds += 1.0
    _look(s, sample)
    if s.min_rtt == inf:
        s.min_rtt = s.probed_rtt = sample.rtt
        s.min_rtt_s = s.probed_s = s.ahead_s = sample.time
    _hear(s, sample)
    rounds = EXTRA_ROUNDS if s.filled > 0.0 else 1.0
    hear_ahead(s, _bandwidth(s), rounds, sample.time, sample.delivered - s.delivered, s.round_starts > 0.0)
    _advance(s, sample)
    _probe_rtt(s, sample)
    _control(s, sample)
    if s.loss_round_starts > 0.0:
        s.bandwidth_latest, s.delivered_latest = s.sampled, s.passed
    s.lost, s.delivered = sample.lost, sample.delivered
    allowed.rate, allowed.in_flight = s.rate, s.window


BBR3_ROWS = RateLaw(_read, _begin, _step)
