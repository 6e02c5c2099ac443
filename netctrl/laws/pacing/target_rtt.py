"""Pacing to a target RTT, one sample at a time; compiled, without checks (see `netctrl.laws.pacing.pacing`).

What is in flight, F, over the delivered rate Ĉ is the RTT that the next packet will see, whatever its delay: so the
prediction needs no history of rates. While a queue stands, the delivered rate is the flow's share of the bottleneck.
"""

from __future__ import annotations

from math import inf, isfinite, log

import numpy as np

from netctrl.core.jit import njit
from netctrl.core.units import BITS_PER_BYTE
from netctrl.laws.pacing.best_rate import best_rate, clipped
from netctrl.laws.pacing.target_state import RING, TargetParameters, TargetQueue, TargetState
from netctrl.laws.record import compiled_view

START, CRUISE, DRAIN, DRAINED = 0.0, 1.0, 2.0, 3.0

BUSY = 0.25  # of the target's queue: from there on one stands
FREE_RTTS = 2.0
_DRAIN_RTTS = 2.0
_MIN_DROP, _MAX_DROP = 0.15, 0.5  # of the delivered rate, by how much there is to drain
_FOREIGN = 2.0  # greatest shares: a queue that never falls below is somebody else's
_STILL_FOREIGN = 0.25  # the same, where it was: after a loss and a drain together little is left
_RISE = 1.001  # times the least RTT, from drain to drain, where others are looked for
_CUBIC_C, _CUBIC_BETA = 0.4, 0.7  # packets/s³; RFC 9438
_CUBIC_MAX = 1.5  # times what is in flight
_SEEN = 1.002  # times the least RTT
KEPT = 0.25  # of the greatest delivered rate of the last two periods
_CUT = 0.5  # of the delivered rate, for a round trip after a loss
_ROOM = 0.5  # of the queue at a loss
_WARY_RTTS = 50.0  # after a loss, until the rate grows as fast as before
_MAX_BDPS, _MAX_PACKETS = 2.0, 4.0  # in flight
_DUE = 1.0 - 1e-6  # times are rounded


@njit(cache=True, error_model="numpy")
def _delivered_rate(state: TargetState, time: float, delivered: float) -> float:
    """Over the last round trip, as near as the ring's marks tell [bit/s]; -1 before they span one. Adds a mark.

    Over less of the first round trip than the whole, a window that came back in one burst would be no rate at all.
    """
    marks = int(state.marks)
    found = -1.0
    for back in range(1, min(marks, RING) + 1):
        at = (marks - back) % RING
        span = time - state.ring_times[at]
        if span > 0.0 and (span >= state.min_rtt or marks >= RING):
            found = BITS_PER_BYTE * (delivered - state.ring_bytes[at]) / span
        if span >= state.min_rtt:
            break
    state.ring_times[marks % RING] = time
    state.ring_bytes[marks % RING] = delivered
    state.marks += 1.0
    return found


@njit(cache=True, error_model="numpy", inline="always")
def _period(state: TargetState, p: TargetParameters) -> float:
    """From drain to drain [s]."""
    return max(p.probe_s, p.probe_rtts * state.min_rtt)


@njit(cache=True, error_model="numpy", inline="always")
def _room(state: TargetState, p: TargetParameters, time: float) -> float:
    """Queue that the buffer is taken to hold [s]: half of what stood at the last loss, all of it a period later."""
    return state.room_s * (1.0 + max(time - state.cut_until_s, 0.0) / _period(state, p))


@njit(cache=True, error_model="numpy")
def _aim(state: TargetState, p: TargetParameters, time: float) -> TargetQueue:
    """d [s], a share of the least RTT that falls with the window, at least a packet's time, and whether the buffer
    bounds it; who has more takes less of what the buffer holds, too."""
    packet = BITS_PER_BYTE * p.packet / state.delivered_rate
    window = max(state.min_rtt / packet, 1.0)
    share = clipped(p.queue_share - p.queue_share_slope * log(window), p.min_queue_share, p.queue_share)
    desired = max(share * state.min_rtt, packet)
    held = share / p.queue_share * _room(state, p, time)
    return TargetQueue(min(desired, held), held < desired)


@njit(cache=True, error_model="numpy", inline="always")
def _next_probe(state: TargetState, p: TargetParameters, time: float) -> float:
    """When the next drain begins [s]."""
    return time + _period(state, p)


@njit(cache=True, error_model="numpy")
def _next_period(state: TargetState, p: TargetParameters, time: float) -> None:
    """After a drain: the least RTT is that of this period and the one before."""
    base = state.min_rtt
    empty = (_FOREIGN if state.foreign == 0.0 else _STILL_FOREIGN) * p.queue_share * base
    foreign = p.competitive > 0.0 and state.lowest_rtt - base > empty
    if foreign and state.foreign == 0.0:  # begins on its plateau
        state.cubic_highest = state.delivered_rate * state.target_rtt / (BITS_PER_BYTE * p.packet)
        state.cubic_cut_s = time - ((1.0 - _CUBIC_BETA) * state.cubic_highest / _CUBIC_C) ** (1.0 / 3.0)
    state.foreign = 1.0 if foreign else 0.0
    if not foreign:
        # Over long pipes Cubic's queue grows by less from drain to drain than would be noticed.
        most = _RISE * base if p.competitive > 0.0 else inf
        state.min_rtt = min(state.lowest_rtt, state.lowest_rtt_before, most)
    state.lowest_rtt_before = state.lowest_rtt
    state.highest_rate_before = state.highest_rate
    state.lowest_rtt = inf
    state.highest_rtt = 0.0
    state.highest_rate = 0.0
    state.probe_s = _next_probe(state, p, time)


@njit(cache=True, error_model="numpy")
def _cubic_target(state: TargetState, p: TargetParameters, time: float, rtt: float) -> float:
    """RTT that Cubic's window would make of this flow's share, as it would be now [s]."""
    highest = state.cubic_highest
    since = time - state.cubic_cut_s
    past = since - ((1.0 - _CUBIC_BETA) * highest / _CUBIC_C) ** (1.0 / 3.0)
    friendly = 3.0 * (1.0 - _CUBIC_BETA) / (1.0 + _CUBIC_BETA) * since / rtt
    window = highest + max(_CUBIC_C * (past * past * past), friendly - (1.0 - _CUBIC_BETA) * highest)
    return min(BITS_PER_BYTE * p.packet * window / state.delivered_rate, _CUBIC_MAX * state.prediction)


@njit(cache=True, error_model="numpy")
def _hear_loss(state: TargetState, p: TargetParameters, time: float, rtt: float, lost: float, in_flight: float) -> None:
    """A loss halves the rate for a round trip, or cuts Cubic's window; once a round trip."""
    before = state.lost_bytes
    if not lost > before:
        return
    state.lost_bytes = lost
    if before < 0.0:  # what was lost before the first sample is no news
        return
    if state.foreign > 0.0:
        if time >= state.cubic_until_s and isfinite(in_flight):
            state.cubic_highest = in_flight / p.packet
            state.cubic_cut_s = time
            state.cubic_until_s = time + state.target_rtt
    elif time >= state.cut_until_s and state.delivered_rate > 0.0:
        full = state.highest_rtt - state.min_rtt
        if state.phase == START:
            state.phase = CRUISE
            state.probe_s = _next_probe(state, p, time)
        if p.competitive > 0.0 and full > _FOREIGN * p.queue_share * state.min_rtt:
            return  # no queue of this law's: the next drain tells whose
        state.room_s = _ROOM * (min(full, _room(state, p, time)) if _aim(state, p, time).bound else full)
        state.cut_until_s = time + rtt
        state.free_since_s = time + rtt
        state.highest_rtt = 0.0
        state.highest_rate = 0.0
        state.highest_rate_before = 0.0
        state.applied_s = -inf  # a rate is due


@njit(cache=True, error_model="numpy")
def _rate_desired(state: TargetState, p: TargetParameters, time: float, queue: float, in_flight: float) -> float:
    """By phase: growth until a queue is seen; eq. (7); growth where none is left; a drain."""
    C = state.delivered_rate
    base = state.min_rtt
    desired = _aim(state, p, time).delay
    state.target_rtt = base + desired
    if state.phase == START:
        if queue <= desired:
            return p.start_growth * C
        state.phase = CRUISE
        state.probe_s = _next_probe(state, p, time)
    if queue > BUSY * desired:
        state.free_since_s = time
    horizon = p.horizon_rtts * base
    state.prediction = BITS_PER_BYTE * in_flight / C
    if not isfinite(in_flight):  # the RTT of now, which doesn't tell what is under way: half as fast
        horizon = 2.0 * p.horizon_rtts * base
        state.prediction = base + queue
    if state.foreign > 0.0:
        state.target_rtt = max(state.target_rtt, _cubic_target(state, p, time, base + queue))
    if time < state.cut_until_s:
        return _CUT * C
    standing = state.target_rtt - base
    drop = clipped(0.5 * standing / base, _MIN_DROP, _MAX_DROP)
    if state.phase == CRUISE and time >= state.probe_s:
        state.phase = DRAIN
        state.drain_until_s = time + _DRAIN_RTTS * base + 2.0 * min(standing, _DRAIN_RTTS * base) / drop
    if state.phase == DRAIN and state.prediction <= p.drain_share * base:
        state.phase = DRAINED  # its effect is seen a round trip later
        state.drain_until_s = min(state.drain_until_s, time + base)
    if state.phase >= DRAIN:
        if time < state.drain_until_s:
            return C if state.phase == DRAINED else (1.0 - drop) * C
        state.phase = CRUISE
        state.free_since_s = time
        _next_period(state, p, time)
    wary = 1.0 if state.foreign > 0.0 else min((time - state.cut_until_s) / (_WARY_RTTS * base), 1.0)
    growth = 1.0 + wary * (p.growth - 1.0)
    if time - state.free_since_s > FREE_RTTS * base:
        return growth * C
    spread = p.min_queue_share * base
    free = best_rate(p.psi, p.xi, horizon / C, state.prediction - horizon, state.target_rtt, spread * spread, C)
    return clipped(free, p.decrease * C, growth * C)


@njit(cache=True, error_model="numpy")
def _max_rate(state: TargetState, p: TargetParameters, interval: float, in_flight: float) -> float:
    """Rate that brings what is in flight to two bandwidth-delay products, or four packets, by the next rate [bit/s], or
    as much of the delivered rate as is always kept: at less a sender's timer would sleep for many round trips."""
    if state.foreign > 0.0:  # Cubic's window bounds it
        state.most_in_flight = inf
        return inf
    # A start's first windows come in bursts: what has been delivered once can be again.
    C = max(state.delivered_rate, state.highest_rate) if state.phase == START else state.delivered_rate
    packets = _MAX_PACKETS * p.packet
    state.most_in_flight = max(_MAX_BDPS * C * state.min_rtt / BITS_PER_BYTE, packets)
    if not isfinite(in_flight):
        return inf
    return max(C + BITS_PER_BYTE * (state.most_in_flight - in_flight) / interval, KEPT * C)


@njit(cache=True, error_model="numpy")
def _listen(state: TargetState, p: TargetParameters, time: float, rtt: float) -> None:
    """What every sample adds, between two rates too. Who sees the least RTT need not drain: so all drain together."""
    if rtt <= _SEEN * state.min_rtt:
        state.probe_s = _next_probe(state, p, time)
    state.samples += 1.0
    state.recent_rtt = min(state.recent_rtt, rtt)
    state.lowest_rtt = min(state.lowest_rtt, rtt)
    state.min_rtt = min(state.min_rtt, rtt)
    state.highest_rtt = max(state.highest_rtt, rtt)


@njit(cache=True, error_model="numpy")
def target_rtt_step(
    state: TargetState, p: TargetParameters, time: float, rtt: float, delivered: float, in_flight: float, lost: float
) -> float:
    """One RTT [s] at a time [s], bytes delivered so far, in flight, and lost so far (NaN: not known);
    changes the state in place and gives the rate in force [bit/s]."""
    if not 0.0 < rtt < inf:
        state.bad_rtt += 1.0
        return state.rate
    if not (isfinite(time) and time >= state.time_s):
        state.bad_time += 1.0
        return state.rate
    if not (isfinite(delivered) and delivered >= state.delivered_bytes):
        state.held += 1.0
        return state.rate
    state.time_s = time
    state.delivered_bytes = delivered
    _listen(state, p, time, rtt)
    _hear_loss(state, p, time, rtt, lost, in_flight)
    interval = max(p.period, p.interval_share * state.min_rtt)
    if time - state.applied_s < _DUE * interval:
        return state.rate
    queue = state.recent_rtt - state.min_rtt
    state.applied_s = time
    state.recent_rtt = inf
    seen = _delivered_rate(state, time, delivered)
    if seen <= 0.0:
        if seen == 0.0:
            state.held += 1.0
        return state.rate
    state.highest_rate = max(state.highest_rate, seen)
    busy = state.target_rtt > 0.0 and queue > BUSY * (state.target_rtt - state.min_rtt)
    known = busy or state.phase == START or time < state.cut_until_s
    state.delivered_rate = seen if known else max(seen, state.delivered_rate)
    rate = _rate_desired(state, p, time, queue, in_flight)
    kept = max(p.min_rate, KEPT * max(state.highest_rate, state.highest_rate_before))
    if rate < kept:
        state.floored += 1.0
    most = min(p.max_rate, _max_rate(state, p, interval, in_flight))
    state.rate = max(clipped(rate, kept, most), p.min_rate)
    return state.rate


_state, _parameters = compiled_view(TargetState), compiled_view(TargetParameters)


@njit(cache=True, error_model="numpy")
def target_step(
    state: np.ndarray, settings: np.ndarray, time: float, rtt: float, delivered: float, in_flight: float, lost: float
) -> float:
    """`target_rtt_step` on a row of state and one of parameters."""
    return target_rtt_step(_state(state), _parameters(settings), time, rtt, delivered, in_flight, lost)
