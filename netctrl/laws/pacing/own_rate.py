"""Pacing to a queue that depends on the own rate alone, one sample at a time; compiled, without checks.

Each flow keeps α(x) = a + c √x packets waiting, x its own rate [packet/s]. All flows of a link see the same queueing
delay q, and q = α(x)/x has one solution x: so all have the same rate, whatever their round trips, and N flows on a
capacity C wait q = α(C/N) N/C (`netctrl.design.pacing.own_rate` certifies it). The window W goes once a round trip to

    W + γ (W ℓ₀/ℓ + α − W),    ℓ₀ the least RTT, ℓ the least of this round trip

What a buffer can't hold is left out of α: each loss cuts the share of α that is kept, time raises it, as under AIMD,
so that all flows come to one share. Only losses beyond what is tolerated limit the window itself.

A mark (ECN) also cuts the share of α, and the window once hardly any is left. The marks of L4S set the window's limit
as TCP Prague's: W (1 - m/2) after marks, m their average share, once in a virtual round trip of 25 ms and a true one.

All flows of the law drain their queue at the same times, to see the least RTT, unless it runs empty by itself, as on
links whose rate varies. A queue that these drains leave is kept by others; beside these a flow has Cubic's window,
until a drain empties the queue. Jitter that keeps packets in order makes the least RTT of each round trip longer than
ℓ₀: what it adds is seen in drains, and counts as no queue.
"""

from __future__ import annotations

from math import floor, inf, isfinite, sqrt

import numpy as np

from netctrl.core.jit import njit
from netctrl.core.units import BITS_PER_BYTE
from netctrl.laws.pacing.competition import compete, suspect
from netctrl.laws.pacing.losses import LEAST_SHARE, hear_timer, judge, keep_room, marks_cut
from netctrl.laws.pacing.own_rate_state import CRUISE, DRAIN, FIRST_WINDOW, START, OwnRateParameters, OwnRateState
from netctrl.laws.record import compiled_view
from netctrl.laws.tcp.prague import virtual_trips

_SOON = 8.0  # samples whose least tells of a queue before the round trip ends
_STANDS = 2.0  # targets: a queue that ends the start
FREE = 0.3  # of the target: below it there is none
FREE_ROUNDS, FREE_RAMP = 3.0, 20.0  # round trips without one, until the window grows, and in full
RISE, RISE_PACKETS = 1.25, 0.5  # most that a window grows by in a round trip
_START_SPEED, SPEED = 2.0, 1.02  # pace over W/ℓ; at 1.01 what is in flight follows a raised window late, and swings
LEAST_QUEUE = 1.0  # [packet]
_SLOW_ROOT = 3.0  # √(packet/s), below which the rate under losses grows by a share, as it hears of few
_FASTER_S, _FASTEST_S = 0.25, 5.0  # after which it grows faster, and once more
MAX_STEP = 0.02  # of a window, in a round trip
MAX_BDPS, MAX_PACKETS = 2.0, 4.0  # in flight
_LEAST = 0.1  # window [packet]
# With marks at random, of a share p, Prague's window of W packets is cut 1/p packets after a virtual round trip V, and
# grows by (R/V)² in each of R: it rests at (1 + √3) R/(p V). Here it is cut once in V + R: so its growth is less.
_MARKED_GROWTH = 0.5 * (1.0 + sqrt(3.0))
_WANDERS = 3.0  # spreads of RTTs in a round trip: at most so much of the least one is jitter, not a queue
_STILL = 0.2  # of what jitter adds: that may be no queue either
_PACED = 2.0  # times the RTT aimed at: the longest one that slows the pace, as the window bounds what is in flight
_OUTAGE = 4.0  # RTTs, for a round trip whose rate isn't the link's
_SEEN = 1.01  # times the least RTT: as good as that
_FADES = 0.9  # of the highest rate, from drain to drain
_RARELY = 4.0  # of a competitor's drains, periods
_REMEMBERED = 40.0  # [s] for which the least RTT counts that others' queue hides
_LASTS = 0.125  # of the period, and two round trips: a drain
# A queue that runs empty once a period, where the buffer holds it, needs none. Beside BBR 3 it does in four of five.
_EMPTIED, _WHOLE = 2.0, 0.5
_FORGET = 10.0  # periods without losses, after which their window is forgotten


@njit(cache=True, error_model="numpy", inline="always")
def own_queue(packets: float, per_root: float, rate: float) -> float:
    """α = a + c √x [packet] of a rate x [packet/s]."""
    return packets + per_root * sqrt(max(rate, 0.0))


@njit(cache=True, error_model="numpy", inline="always")
def _next(state: OwnRateState, p: OwnRateParameters, time: float) -> float:
    """Drains begin at multiples of the period on a clock that all share, so that they are those of all."""
    period = p.probe_s * (_RARELY if state.competing > 0.0 else 1.0)
    return (floor(time / period) + 1.0) * period


@njit(cache=True, error_model="numpy")
def _listen(state: OwnRateState, time: float, rtt: float) -> None:
    """A sample's part in the least RTTs and the round trip's mean."""
    state.min_rtt = min(state.min_rtt, rtt)
    if rtt <= _SEEN * state.min_rtt:
        state.seen_s = time
    state.lowest_rtt = min(state.lowest_rtt, rtt)
    if state.phase == DRAIN and time - rtt >= state.drain_s:
        state.drain_rtt = min(state.drain_rtt, rtt)
    state.round_rtt = min(state.round_rtt, rtt)
    state.round_sum += rtt
    state.samples += 1.0
    if state.phase == START:
        state.recent_rtt = min(state.recent_rtt, rtt)
        state.recent += 1.0


@njit(cache=True, error_model="numpy")
def _end_start(state: OwnRateState, pipe: float, alpha: float) -> None:
    state.phase = CRUISE
    state.window = min(state.window, max(pipe + alpha, 2.0))
    state.deaf = 2.0  # what this round and the next hear of was sent by the start


@njit(cache=True, error_model="numpy")
def _lose(state: OwnRateState, time: float, cut: float) -> None:
    """Significant losses, or marks: the window less a cut is its limit."""
    state.limit = max((1.0 - cut) * state.window, _LEAST)
    state.limit_s = time
    state.window = min(state.window, state.limit)


@njit(cache=True, error_model="numpy")
def _cruise(state: OwnRateState, p: OwnRateParameters, time: float, cut: float, alpha: float) -> None:
    """The window of the next round trip; after losses its limit's rate x grows by c √x each second,
    squared, whatever the round trip: with the cuts, which take a share, flows become equal as under AIMD."""
    W = state.window
    wanted = W + p.gain * (W * min((state.min_rtt + state.wander) / state.rtt, 1.0) + alpha - W)
    if state.free >= FREE_ROUNDS:  # α fills what an overshoot left, so growth comes gradually
        wanted = max(wanted, W + (p.growth - 1.0) * W * min((state.free - FREE_ROUNDS) / FREE_RAMP, 1.0))
    state.window = min(wanted, RISE * W + RISE_PACKETS)
    if cut > 0.0:
        state.window = min(wanted, W)
        _lose(state, time, cut)
    if state.limit < inf and (cut == 0.0 or state.marks < 1.0):  # as Prague, which grows by what has no mark
        root = sqrt(state.limit / state.rtt)
        since = time - state.limit_s
        faster = 1.0 + since * since / (_FASTEST_S * _FASTEST_S)
        if state.marks < 1.0:
            trips = virtual_trips(state.rtt)
            state.limit += _MARKED_GROWTH / (trips * (trips + 1.0)) * faster
        else:
            steeper = p.packets_per_root * root / (root + _SLOW_ROOT) * (1.0 + since / _FASTER_S) * faster
            state.limit += state.limit * min(steeper / root * state.rtt, MAX_STEP)
        if since > _FORGET * p.probe_s:
            state.limit = inf
        state.window = min(state.window, state.limit)


@njit(cache=True, error_model="numpy")
def _renew(state: OwnRateState, p: OwnRateParameters, time: float) -> None:
    """The least RTT is that of this period and the one before."""
    state.fastest *= _FADES
    lowest = min(state.lowest_rtt, state.lowest_before)
    if (state.foreign <= 0.0 and state.competing == 0.0) or time - state.seen_s > _REMEMBERED:
        state.min_rtt = lowest
        state.seen_s = time
    state.lowest_before = state.lowest_rtt
    state.lowest_rtt = inf
    state.emptied *= 0.5
    state.probe_s = _next(state, p, time)


@njit(cache=True, error_model="numpy")
def _end_drain(state: OwnRateState, p: OwnRateParameters, time: float) -> None:
    state.phase = CRUISE
    state.window = state.saved
    state.free = 0.0  # the drain's own doing
    if state.drain_rtt < inf and state.drained > 0.0:
        suspect(state, p, time, state.drain_rtt - state.min_rtt, _WANDERS * state.spread)
    _renew(state, p, time)
    wander = 0.0
    if state.drain_rounds > 0.0:
        wander = max(state.drain_sum / state.drain_rounds - state.min_rtt, 0.0)
        wander = min(wander, _WANDERS * state.drain_spread / state.drain_rounds)
    state.wander = min(wander, state.wander_before)
    state.wander_before = wander


@njit(cache=True, error_model="numpy")
def _end_round(
    state: OwnRateState,
    p: OwnRateParameters,
    time: float,
    delivered: float,
    in_flight: float,
    lost: float,
    marked: float,
) -> None:
    """A round trip is over: the window of the next."""
    packet = p.packet
    span = time - state.round_s
    gone = lost if isfinite(lost) else 0.0
    got = delivered - state.round_bytes
    told = max(marked - state.marked, 0.0) / max(got, packet) if isfinite(marked) else 0.0
    state.marked = marked if isfinite(marked) else state.marked
    state.rtt = state.round_rtt
    spread = state.round_sum / max(state.samples - state.round_samples, 1.0) - state.rtt
    state.rate_before = state.delivered_rate
    state.delivered_rate = BITS_PER_BYTE * got / span
    state.fastest = max(state.fastest, state.delivered_rate)
    drained = state.round_s < state.drain_until_s + state.rtt  # RTTs of packets of a drain
    many = state.samples - state.round_samples >= _SOON
    if state.phase == DRAIN and many and state.round_s >= state.drain_s + state.rtt:
        state.drain_rounds += 1.0
        state.drain_sum += state.rtt
        state.drain_spread += spread
    state.round_s = time
    state.round_bytes = delivered
    state.round_end = delivered + gone + (in_flight if isfinite(in_flight) else state.window * packet)
    state.round_rtt = inf
    state.round_sum = 0.0
    state.round_samples = state.samples
    state.applied_s = time
    base = state.min_rtt + state.wander
    queue = state.rtt - base
    before = state.round_lost
    W = state.window
    x = W / state.rtt
    fresh = told > 0.0 and state.deaf == 0.0  # marks are echoed until a round trip after the cut
    keep_room(state, time, span, gone, fresh and p.scalable == 0.0)
    alpha = max(state.share * own_queue(p.packets, p.packets_per_root, x), LEAST_QUEUE)
    state.target_rtt = base + alpha / x
    if state.phase != START:
        alpha += p.noise_share * spread * x
    empty = queue * x < FREE * alpha + _STILL * state.wander * x
    state.free = state.free + 1.0 if empty else 0.0
    if state.free == 1.0 and state.drain_until_s > 0.0 and not drained:
        state.emptied += 1.0
    share = judge(state, p, delivered, lost)
    cut = max(share, p.cut) if share > 0.0 else 0.0
    if p.scalable > 0.0:
        cut = max(cut, marks_cut(state, told, time))
    elif fresh and (state.share <= LEAST_SHARE or alpha <= LEAST_QUEUE):
        cut = max(cut, p.cut)  # RFC 8511 has as much for Cubic
    if share > 0.0 or (cut > 0.0 and p.scalable == 0.0):
        state.deaf = 1.0
    pipe = state.delivered_rate * base / (BITS_PER_BYTE * packet)
    if state.phase == START:
        state.flat = state.flat + 1.0 if state.delivered_rate < 1.25 * state.rate_before else 0.0
        stands = _STANDS * alpha + state.spread * x
        state.spread = spread
        if share > 0.0 or told > 0.0 or state.flat >= FREE_ROUNDS or queue * x > stands:
            _end_start(state, pipe, alpha)
        else:
            state.window = min(2.0 * state.window, max(4.0 * got / packet, 2.0 * FIRST_WINDOW))
    elif state.phase == CRUISE:
        if state.competing > 0.0:
            compete(state, time, gone > before or fresh, share)
        elif cut > 0.0 or not drained:
            _cruise(state, p, time, cut, alpha)
        alone = state.competing == 0.0 and state.foreign <= 0.0
        empties = alone and state.emptied >= _EMPTIED and state.share >= _WHOLE
        if time >= state.probe_s and (empties or state.marks < 1.0):
            _renew(state, p, time)
        elif time >= state.probe_s and span * min(W, 1.0) < _OUTAGE * state.rtt:
            state.phase = DRAIN
            state.saved = state.window
            state.window = min(state.window, p.drain_share * pipe * state.min_rtt / base)
            state.drain_until_s = time + _LASTS * p.probe_s + 2.0 * min(state.rtt, _PACED * state.target_rtt)
            state.drained = 0.0 if empty else state.rtt - state.min_rtt
            state.drain_rounds = state.drain_sum = state.drain_spread = 0.0
            state.drain_rtt = inf
            state.drain_s = time
            state.spread = spread
    elif cut > 0.0:
        state.saved *= 1.0 - cut
        state.limit = state.saved
        state.limit_s = time
    fast = max(state.delivered_rate, state.rate_before) / (BITS_PER_BYTE * packet)
    if state.phase != START and state.competing == 0.0:
        state.window = min(state.window, MAX_BDPS * (fast * base + alpha) + MAX_PACKETS)
    state.window = max(state.window, _LEAST)


@njit(cache=True, error_model="numpy")
def own_rate_law_step(
    state: OwnRateState,
    p: OwnRateParameters,
    time: float,
    rtt: float,
    delivered: float,
    in_flight: float,
    lost: float,
    marked: float,
) -> float:
    """One RTT [s] at a time [s], bytes delivered so far, in flight, lost, and of those delivered the ones whose
    acknowledgements told of marks (NaN: not known); changes the state in place and gives the rate in force [bit/s]."""
    if not 0.0 < rtt < inf:
        state.bad_rtt += 1.0
        return state.rate
    if not (isfinite(time) and time >= state.time_s):
        state.bad_time += 1.0
        return state.rate
    if not (isfinite(delivered) and delivered >= state.delivered_bytes):
        state.held += 1.0
        return state.rate
    gone = lost if isfinite(lost) else 0.0
    first = state.samples == 0.0
    changed = first
    state.time_s = time
    state.delivered_bytes = delivered
    _listen(state, time, rtt)
    if first:
        state.rtt = state.target_rtt = rtt
        state.round_s = time - rtt
        state.round_bytes = 0.0
        state.round_end = FIRST_WINDOW * p.packet + gone
        state.probe_s = _next(state, p, time)
        state.seen_s = time
    if state.phase == DRAIN and time >= state.drain_until_s:
        _end_drain(state, p, time)
        changed = True
    hear_timer(state, p, delivered, lost)
    if state.phase == START and state.recent >= _SOON:
        x = state.window / rtt
        alpha = own_queue(p.packets, p.packets_per_root, x)
        span = time - state.round_s
        stands = _STANDS * alpha + state.spread * x
        if (state.recent_rtt - state.min_rtt) * x > stands and span >= 0.5 * rtt:
            now = BITS_PER_BYTE * (delivered - state.round_bytes) / span
            _end_start(state, max(now, state.delivered_rate) * state.min_rtt / (BITS_PER_BYTE * p.packet), alpha)
            changed = True
        state.recent = 0.0
        state.recent_rtt = inf
    if delivered + gone >= state.round_end and time - state.round_s >= 0.5 * state.min_rtt:
        _end_round(state, p, time, delivered, in_flight, lost, marked)
        changed = True
    if not changed:
        return state.rate
    speed = _START_SPEED if state.phase == START else SPEED
    trip = state.rtt  # as it was: after an outage the pace of what is sent again would be none
    if state.phase != START:
        trip = min(trip, _PACED * state.target_rtt)
    state.most_in_flight = max(state.window, 1.0) * p.packet
    rate = speed * BITS_PER_BYTE * state.window * p.packet / trip
    if rate < p.min_rate:
        state.floored += 1.0
    state.rate = min(max(rate, p.min_rate), p.max_rate)
    state.prediction = state.window * p.packet * BITS_PER_BYTE / max(state.delivered_rate, p.min_rate)
    return state.rate


_state, _parameters = compiled_view(OwnRateState), compiled_view(OwnRateParameters)


@njit(cache=True, error_model="numpy")
def own_rate_step(
    state: np.ndarray,
    settings: np.ndarray,
    time: float,
    rtt: float,
    delivered: float,
    in_flight: float,
    lost: float,
    marked: float,
) -> float:
    """`own_rate_law_step` on a row of state and one of parameters."""
    return own_rate_law_step(_state(state), _parameters(settings), time, rtt, delivered, in_flight, lost, marked)
