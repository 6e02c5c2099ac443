"""Pacing to a target RTT, one sample at a time, compiled; nothing is checked here (`netctrl.laws.pacing.pacing`).

What is in flight, F, over the delivered rate Ĉ is the RTT that the next packet will see, whatever its delay: so the
prediction needs no history of rates. While a queue stands, the delivered rate is the flow's share of the bottleneck.
"""

from __future__ import annotations

from math import inf, isfinite, log

import numpy as np
from numba import prange

from netctrl.jit import njit
from netctrl.laws.pacing.best_rate import best_rate, clipped
from netctrl.model.law import TargetRttPacer
from netctrl.units import BITS_PER_BYTE

__all__ = ["TARGET_FIELDS", "target_many", "target_settings", "target_start", "target_step"]

_RING = 32
TARGET_FIELDS = (
    *("time_s", "applied_s", "rate", "min_rtt", "target_rtt", "delivered_rate", "prediction", "samples", "phase"),
    *("recent_rtt", "free_since_s", "probe_s", "drain_until_s", "lowest_rtt", "lowest_rtt_before", "highest_rtt"),
    *("highest_rate", "highest_rate_before", "foreign", "marks", "delivered_bytes"),
    *("lost_bytes", "cubic_highest", "cubic_cut_s", "cubic_until_s", "room_s", "cut_until_s", "most_in_flight"),
    *("bad_rtt", "bad_time", "held", "floored", "resets"),
)
"""Names of a state's first places; then rings of 32 times [s] and of bytes delivered by them. Rates are in bit/s, RTTs
in s; from `bad_rtt` on events are counted."""
TIME, APPLIED, RATE, MIN, TARGET, DELIVERED, PREDICTION, SAMPLES, PHASE = range(9)
RECENT, FREE_SINCE, PROBE, DRAIN_UNTIL, LOWEST, LOWEST_BEFORE, HIGHEST = range(9, 16)
HIGHEST_RATE, HIGHEST_RATE_BEFORE, FOREIGN, MARKS, BYTES = range(16, 21)
LOST, CUBIC_HIGHEST, CUBIC_CUT, CUBIC_UNTIL, ROOM, CUT_UNTIL, MAX_IN_FLIGHT = range(21, 28)
BAD_RTT, BAD_TIME, HELD, FLOORED, RESETS = range(28, 33)
HEAD = len(TARGET_FIELDS)
START, CRUISE, DRAIN, DRAINED = 0.0, 1.0, 2.0, 3.0

_PSI, _XI, _PERIOD, _FLOOR, _MAX, _PACKET, _SHARE, _SLOPE, _MIN_SHARE, _INTERVAL, _START_GROWTH = range(11)
_GROWTH, _DECREASE, _PROBE_S, _PROBE_RTTS, _DRAIN_SHARE, _COMPETITIVE, _START_RATE, _HORIZON = range(11, 19)

_BUSY = 0.25  # of the target's queue: from there on one stands
_FREE_RTTS = 2.0
_DRAIN_RTTS = 2.0
_DRAIN_DROPS = (0.15, 0.5)  # of the delivered rate, by how much there is to drain
_FOREIGN = 2.0  # greatest shares: a queue that never falls below is somebody else's
_STILL_FOREIGN = 0.25  # the same, where it was: after a loss and a drain together little is left
_RISE = 1.001  # times the least RTT, from drain to drain, where others are looked for
_CUBIC_C, _CUBIC_BETA = 0.4, 0.7  # packets/s³; RFC 9438
_CUBIC_MAX = 1.5  # times what is in flight
_SEEN = 1.002  # times the least RTT
_KEPT = 0.25  # of the greatest delivered rate of the last two periods
_CUT = 0.5  # of the delivered rate, for a round trip after a loss
_ROOM = 0.5  # of the queue at a loss
_WARY_RTTS = 50.0  # after a loss, until the rate grows as fast as before
_MAX_BDPS, _MAX_PACKETS = 2.0, 4.0  # in flight
_DUE = 1.0 - 1e-6  # times are rounded


def target_settings(law: TargetRttPacer) -> np.ndarray:
    """(19,) what a law's kernel needs."""
    return np.array(
        [
            *(law.psi, law.xi, law.period_s, law.least_rate_bit_per_s, law.max_rate_bit_per_s),
            *(law.packet_size_bytes, law.queue_share, law.queue_share_slope, law.least_queue_share, law.interval_share),
            *(law.start_growth, law.growth, law.decrease, law.probe_s, law.probe_rtts, law.drain_share),
            *(law.competitive, law.start_rate_bit_per_s, law.horizon_rtts),
        ]
    )


def target_start(law: TargetRttPacer) -> np.ndarray:
    """The state before the first sample."""
    state = np.zeros(HEAD + 2 * _RING)
    state[TIME] = state[APPLIED] = -inf
    state[RATE] = law.start_rate_bit_per_s
    state[MIN] = state[RECENT] = state[LOWEST] = state[LOWEST_BEFORE] = inf
    state[ROOM] = state[MAX_IN_FLIGHT] = inf
    state[CUT_UNTIL] = -inf
    state[LOST] = -1.0  # not known yet
    return state


@njit(cache=True, error_model="numpy")
def _delivered_rate(state: np.ndarray, time: float, delivered: float) -> float:
    """Over the last round trip, as near as the ring's marks tell [bit/s]; −1 before they span one. Adds a mark.

    Over less of the first round trip than the whole, a window that came back in one burst would be no rate at all.
    """
    marks = int(state[MARKS])
    found = -1.0
    for back in range(1, min(marks, _RING) + 1):
        at = (marks - back) % _RING
        span = time - state[HEAD + at]
        if span > 0.0 and (span >= state[MIN] or marks >= _RING):
            found = BITS_PER_BYTE * (delivered - state[HEAD + _RING + at]) / span
        if span >= state[MIN]:
            break
    at = marks % _RING
    state[HEAD + at] = time
    state[HEAD + _RING + at] = delivered
    state[MARKS] += 1.0
    return found


@njit(cache=True, error_model="numpy", inline="always")
def _period(state: np.ndarray, settings: np.ndarray) -> float:
    return max(settings[_PROBE_S], settings[_PROBE_RTTS] * state[MIN])


@njit(cache=True, error_model="numpy", inline="always")
def _room(state: np.ndarray, settings: np.ndarray, time: float) -> float:
    """Queue that the buffer is taken to hold [s]: half of what stood at the last loss, all of it a period later."""
    return state[ROOM] * (1.0 + max(time - state[CUT_UNTIL], 0.0) / _period(state, settings))


@njit(cache=True, error_model="numpy")
def _target_queue(state: np.ndarray, settings: np.ndarray, time: float) -> tuple[float, bool]:
    """d [s], a share of the least RTT that falls with the window, at least a packet's time, and whether the buffer
    bounds it; who has more takes less of what the buffer holds, too."""
    packet = BITS_PER_BYTE * settings[_PACKET] / state[DELIVERED]
    window = max(state[MIN] / packet, 1.0)
    share = settings[_SHARE] - settings[_SLOPE] * log(window)
    share = clipped(share, settings[_MIN_SHARE], settings[_SHARE])
    desired, held = max(share * state[MIN], packet), share / settings[_SHARE] * _room(state, settings, time)
    return min(desired, held), held < desired


@njit(cache=True, error_model="numpy", inline="always")
def _next_probe(state: np.ndarray, settings: np.ndarray, time: float) -> float:
    return time + _period(state, settings)


@njit(cache=True, error_model="numpy")
def _next_period(state: np.ndarray, settings: np.ndarray, time: float) -> None:
    """After a drain: the least RTT is that of this period and the one before."""
    base = state[MIN]
    empty = (_FOREIGN if state[FOREIGN] == 0.0 else _STILL_FOREIGN) * settings[_SHARE] * base
    foreign = settings[_COMPETITIVE] > 0.0 and state[LOWEST] - base > empty
    if foreign and state[FOREIGN] == 0.0:  # begins on its plateau
        state[CUBIC_HIGHEST] = state[DELIVERED] * state[TARGET] / (BITS_PER_BYTE * settings[_PACKET])
        state[CUBIC_CUT] = time - ((1.0 - _CUBIC_BETA) * state[CUBIC_HIGHEST] / _CUBIC_C) ** (1.0 / 3.0)
    state[FOREIGN] = 1.0 if foreign else 0.0
    if not foreign:
        # Over long pipes Cubic's queue grows by less from drain to drain than would be noticed.
        most = _RISE * base if settings[_COMPETITIVE] > 0.0 else inf
        state[MIN] = min(state[LOWEST], state[LOWEST_BEFORE], most)
    state[LOWEST_BEFORE] = state[LOWEST]
    state[HIGHEST_RATE_BEFORE] = state[HIGHEST_RATE]
    state[LOWEST] = inf
    state[HIGHEST] = state[HIGHEST_RATE] = 0.0
    state[PROBE] = _next_probe(state, settings, time)


@njit(cache=True, error_model="numpy")
def _cubic_target(state: np.ndarray, settings: np.ndarray, time: float, rtt: float) -> float:
    """RTT that Cubic's window would make of this flow's share, as it would be now [s]."""
    highest, since = state[CUBIC_HIGHEST], time - state[CUBIC_CUT]
    K = ((1.0 - _CUBIC_BETA) * highest / _CUBIC_C) ** (1.0 / 3.0)
    friendly = 3.0 * (1.0 - _CUBIC_BETA) / (1.0 + _CUBIC_BETA) * since / rtt
    window = highest + max(_CUBIC_C * (since - K) ** 3, friendly - (1.0 - _CUBIC_BETA) * highest)
    return min(BITS_PER_BYTE * settings[_PACKET] * window / state[DELIVERED], _CUBIC_MAX * state[PREDICTION])


@njit(cache=True, error_model="numpy")
def _hear_loss(state: np.ndarray, settings: np.ndarray, time: float, rtt: float, lost: float, in_flight: float) -> None:
    """A loss halves the rate for a round trip, or cuts Cubic's window; once a round trip."""
    before = state[LOST]
    if not lost > before:
        return
    state[LOST] = lost
    if before < 0.0:  # what was lost before the first sample is no news
        return
    if state[FOREIGN] > 0.0:
        if time >= state[CUBIC_UNTIL] and isfinite(in_flight):
            state[CUBIC_HIGHEST] = in_flight / settings[_PACKET]
            state[CUBIC_CUT] = time
            state[CUBIC_UNTIL] = time + state[TARGET]
    elif time >= state[CUT_UNTIL] and state[DELIVERED] > 0.0:
        full, (_, bound) = state[HIGHEST] - state[MIN], _target_queue(state, settings, time)
        if state[PHASE] == START:
            state[PHASE] = CRUISE
            state[PROBE] = _next_probe(state, settings, time)
        if settings[_COMPETITIVE] > 0.0 and full > _FOREIGN * settings[_SHARE] * state[MIN]:
            return  # no queue of this law's: the next drain tells whose
        state[ROOM] = _ROOM * (min(full, _room(state, settings, time)) if bound else full)
        state[CUT_UNTIL] = state[FREE_SINCE] = time + rtt
        state[HIGHEST] = state[HIGHEST_RATE] = state[HIGHEST_RATE_BEFORE] = 0.0
        state[APPLIED] = -inf  # a rate is due


@njit(cache=True, error_model="numpy")
def _rate_desired(state: np.ndarray, settings: np.ndarray, time: float, queue: float, in_flight: float) -> float:
    """By phase: growth until a queue is seen; eq. (7); growth where none is left; a drain."""
    C, base = state[DELIVERED], state[MIN]
    desired, _ = _target_queue(state, settings, time)
    state[TARGET] = base + desired
    if state[PHASE] == START:
        if queue <= desired:
            return settings[_START_GROWTH] * C
        state[PHASE] = CRUISE
        state[PROBE] = _next_probe(state, settings, time)
    if queue > _BUSY * desired:
        state[FREE_SINCE] = time
    if isfinite(in_flight):
        state[PREDICTION], horizon = BITS_PER_BYTE * in_flight / C, settings[_HORIZON] * base
    else:  # the RTT of now, which doesn't tell what is under way: half as fast
        state[PREDICTION], horizon = base + queue, 2.0 * settings[_HORIZON] * base
    if state[FOREIGN] > 0.0:
        state[TARGET] = max(state[TARGET], _cubic_target(state, settings, time, base + queue))
    if time < state[CUT_UNTIL]:
        return _CUT * C
    standing = state[TARGET] - base
    drop = clipped(0.5 * standing / base, _DRAIN_DROPS[0], _DRAIN_DROPS[1])
    if state[PHASE] == CRUISE and time >= state[PROBE]:
        state[PHASE] = DRAIN
        state[DRAIN_UNTIL] = time + _DRAIN_RTTS * base + 2.0 * min(standing, _DRAIN_RTTS * base) / drop
    if state[PHASE] == DRAIN and state[PREDICTION] <= settings[_DRAIN_SHARE] * base:
        state[PHASE] = DRAINED  # its effect is seen a round trip later
        state[DRAIN_UNTIL] = min(state[DRAIN_UNTIL], time + base)
    if state[PHASE] >= DRAIN:
        if time < state[DRAIN_UNTIL]:
            return C if state[PHASE] == DRAINED else (1.0 - drop) * C
        state[PHASE] = CRUISE
        state[FREE_SINCE] = time
        _next_period(state, settings, time)
    wary = 1.0 if state[FOREIGN] > 0.0 else min((time - state[CUT_UNTIL]) / (_WARY_RTTS * base), 1.0)
    growth = 1.0 + wary * (settings[_GROWTH] - 1.0)
    if time - state[FREE_SINCE] > _FREE_RTTS * base:
        return growth * C
    free = best_rate(
        settings[_PSI],
        settings[_XI],
        horizon / C,
        state[PREDICTION] - horizon,
        state[TARGET],
        (settings[_MIN_SHARE] * base) ** 2,
        C,
    )
    return clipped(free, settings[_DECREASE] * C, growth * C)


@njit(cache=True, error_model="numpy")
def _max_rate(state: np.ndarray, settings: np.ndarray, interval: float, in_flight: float) -> float:
    """Rate that brings what is in flight to two bandwidth-delay products, or four packets, by the next rate [bit/s], or
    as much of the delivered rate as is always kept: at less a sender's timer would sleep for many round trips."""
    if state[FOREIGN] > 0.0:  # Cubic's window bounds it
        state[MAX_IN_FLIGHT] = inf
        return inf
    # A start's first windows come in bursts: what has been delivered once can be again.
    C = max(state[DELIVERED], state[HIGHEST_RATE]) if state[PHASE] == START else state[DELIVERED]
    packets = _MAX_PACKETS * settings[_PACKET]
    state[MAX_IN_FLIGHT] = max(_MAX_BDPS * C * state[MIN] / BITS_PER_BYTE, packets)
    if not isfinite(in_flight):
        return inf
    return max(C + BITS_PER_BYTE * (state[MAX_IN_FLIGHT] - in_flight) / interval, _KEPT * C)


@njit(cache=True, error_model="numpy")
def _listen(state: np.ndarray, settings: np.ndarray, time: float, rtt: float) -> None:
    """What every sample adds, between two rates too. Who sees the least RTT need not drain: so all drain together."""
    if rtt <= _SEEN * state[MIN]:
        state[PROBE] = _next_probe(state, settings, time)
    state[SAMPLES] += 1.0
    state[RECENT] = min(state[RECENT], rtt)
    state[LOWEST] = min(state[LOWEST], rtt)
    state[MIN] = min(state[MIN], rtt)
    state[HIGHEST] = max(state[HIGHEST], rtt)


@njit(cache=True, error_model="numpy")
def target_step(
    state: np.ndarray, settings: np.ndarray, time: float, rtt: float, delivered: float, in_flight: float, lost: float
) -> float:
    """One RTT [s] at a time [s], bytes delivered so far, in flight, and lost so far (NaN: not known);
    changes the state in place and gives the rate in force [bit/s]."""
    if not 0.0 < rtt < inf:
        state[BAD_RTT] += 1.0
        return state[RATE]
    if not (isfinite(time) and time >= state[TIME]):
        state[BAD_TIME] += 1.0
        return state[RATE]
    if not (isfinite(delivered) and delivered >= state[BYTES]):
        state[HELD] += 1.0
        return state[RATE]
    state[TIME] = time
    state[BYTES] = delivered
    _listen(state, settings, time, rtt)
    _hear_loss(state, settings, time, rtt, lost, in_flight)
    interval = max(settings[_PERIOD], settings[_INTERVAL] * state[MIN])
    if time - state[APPLIED] < _DUE * interval:
        return state[RATE]
    queue = state[RECENT] - state[MIN]
    state[APPLIED] = time
    state[RECENT] = inf
    seen = _delivered_rate(state, time, delivered)
    if seen <= 0.0:
        state[HELD] += seen == 0.0
        return state[RATE]
    state[HIGHEST_RATE] = max(state[HIGHEST_RATE], seen)
    busy = state[TARGET] > 0.0 and queue > _BUSY * (state[TARGET] - state[MIN])
    known = busy or state[PHASE] == START or time < state[CUT_UNTIL]
    state[DELIVERED] = seen if known else max(seen, state[DELIVERED])
    rate = _rate_desired(state, settings, time, queue, in_flight)
    kept = max(settings[_FLOOR], _KEPT * max(state[HIGHEST_RATE], state[HIGHEST_RATE_BEFORE]))
    if rate < kept:
        state[FLOORED] += 1.0
    most = min(settings[_MAX], _max_rate(state, settings, interval, in_flight))
    state[RATE] = max(clipped(rate, kept, most), settings[_FLOOR])
    return state[RATE]


@njit(cache=True, parallel=True, error_model="numpy")
def target_many(
    states: np.ndarray,
    settings: np.ndarray,
    times: np.ndarray,
    rtts: np.ndarray,
    delivered: np.ndarray,
    in_flight: np.ndarray,
    lost: np.ndarray,
    rates: np.ndarray,
) -> None:
    """`target_step` of many flows: states (n, s), times (T,), the others (n, T); fills rates (n, T) [bit/s]."""
    for flow in prange(len(states)):
        state = states[flow]
        for t in range(len(times)):
            rates[flow, t] = target_step(
                state, settings, times[t], rtts[flow, t], delivered[flow, t], in_flight[flow, t], lost[flow, t]
            )
