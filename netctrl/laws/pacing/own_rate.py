"""Pacing to a queue that depends on the own rate alone, one sample at a time; compiled, without checks.

Each flow keeps α(x) = a + c √x packets waiting, x its own rate [packet/s]. All flows of a link see the same queueing
delay q, and q = α(x)/x has one solution x: so all have the same rate, whatever their round trips, and N flows on a
capacity C wait q = α(C/N) N/C (`netctrl.design.pacing.own_rate` certifies it). The window W goes once a round trip to

    W + γ (W ℓ₀/ℓ + α − W),    ℓ₀ the least RTT, ℓ the least of this round trip

What a buffer can't hold is left out of α: each loss cuts the share of α that is kept, time raises it, as under AIMD,
so that all flows come to one share. Only losses beyond what is tolerated limit the window itself.

All flows of the law drain their queue at the same times, to see the least RTT, unless it runs empty by itself, as on
links whose rate varies. A queue that these drains leave is kept by others; beside these a flow has Cubic's window,
until a drain empties the queue.
"""

from __future__ import annotations

from math import floor, inf, isfinite, sqrt

import numpy as np

from netctrl.core.jit import njit
from netctrl.core.units import BITS_PER_BYTE
from netctrl.laws.elementary import cube_root, logarithm
from netctrl.laws.pacing.own_rate_state import FIRST_WINDOW, OwnRateParameters, OwnRateState
from netctrl.laws.record import compiled_view
from netctrl.laws.tcp.cubic import BETA, C, cubic_window

START, CRUISE, DRAIN = 0.0, 1.0, 2.0

_SOON = 8.0  # samples whose least tells of a queue before the round trip ends
_STANDS = 2.0  # targets: a queue that ends the start
FREE = 0.3  # of the target: below it there is none
FREE_ROUNDS, FREE_RAMP = 3.0, 20.0  # round trips without one, until the window grows, and in full
RISE, RISE_PACKETS = 1.25, 0.5  # most that a window grows by in a round trip
_START_SPEED, SPEED = 2.0, 1.01  # pace over W/ℓ
# Packets lost beyond what is tolerated, that are significant: at 2 % of 3 % a rate x [packet/s] loses as many by chance
# about once in 10 s, as an excess of h has the probability exp(-0.8 h).
_LEAST_EXCESS, _EXCESS, _EXCESS_RATE = 3.0, 1.3, 4.0
_START_EXCESS = 2.0
SHARE_CUT, SHARE_RISE, _SHARE_S = 0.8, 0.05, 0.1  # times, at losses no sooner than this [s]; in a second without
LEAST_SHARE, LEAST_QUEUE = 0.1, 1.0  # of α; [packet]
_SLOW_ROOT = 3.0  # √(packet/s), below which the rate under losses grows by a share, as it hears of few
_FASTER_S, _FASTEST_S = 0.25, 5.0  # after which it grows faster, and once more
MAX_STEP = 0.02  # of a window, in a round trip
_TIMER = 0.5  # of a window, lost at once
MAX_BDPS, MAX_PACKETS = 2.0, 4.0  # in flight
_LEAST = 0.1  # window [packet]
_SEEN = 1.01  # times the least RTT: as good as that
# Others' queues: shares of the queue that a drain leaves, at which it is others', and one's own; then Cubic's window.
_LEFT, _GONE = 0.5, 0.1
_TELLING = 3.0  # window [packet], below which what a drain leaves tells nothing, as in an outage
_RARELY = 4.0  # of a competitor's drains, periods
_REMEMBERED = 40.0  # [s] for which the least RTT counts that others' queue hides
_FADES, _PART = 0.9, 0.5  # of the highest rate, from drain to drain; of it, the window that competition begins with
_WORTH, _FEW = 10.0, 4.0  # windows [packet] below which no competition begins, or one ends
_GIVEN_UP = 8.0  # drains after such an end, for which none begins
_PATIENCE = 0.8  # of the time that Cubic takes to come back, between two cuts; half where losses are significant
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
def _compete(state: OwnRateState, time: float, lost: bool, share: float) -> None:
    """Cubic's window. It answers each loss, but not before it is nearly back at its peak: a sender that loses all the
    time, as BBR does in short buffers, would take it down to nothing."""
    W = state.window
    since = time - state.cut_s
    back = cube_root((1.0 - BETA) / C * state.peak)
    if lost and since > max(state.rtt, (0.5 if share > 0.0 else 1.0) * _PATIENCE * back):
        state.peak = W
        state.window = max(min(BETA, 1.0 - share) * W, 1.0)
        state.cut_s = state.limit_s = time
        state.deaf = 1.0
        if W < _FEW:
            _give_up(state)
        return
    state.window = cubic_window(W, state.peak, BETA * state.peak, since, state.rtt, W)


@njit(cache=True, error_model="numpy")
def _give_up(state: OwnRateState) -> None:
    state.competing = 0.0
    state.foreign = -_GIVEN_UP


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
def _judge(state: OwnRateState, p: OwnRateParameters, delivered: float, lost: float) -> float:
    """Share that was lost since the excess over what is tolerated was last 0, if this excess is significant; else 0.

    A one-sided cumulative sum, in which n packets may lose p n.
    """
    if not isfinite(lost):
        return 0.0
    sent = delivered + lost
    packets = (sent - state.sent_base) / p.packet
    gone = (lost - state.lost_base) / p.packet
    excess = gone - p.tolerated_loss * packets
    heard = state.deaf == 0.0
    state.deaf = max(state.deaf - 1.0, 0.0)
    if heard and excess > 0.0:
        significant = _START_EXCESS
        if state.phase != START:
            significant = max(_EXCESS * logarithm(1.0 + state.window / (_EXCESS_RATE * state.rtt)), _LEAST_EXCESS)
        if excess < significant:
            return 0.0
    state.lost_base = lost
    state.sent_base = sent
    return gone / packets if heard and excess > 0.0 else 0.0


@njit(cache=True, error_model="numpy")
def _hear_timer(state: OwnRateState, p: OwnRateParameters, delivered: float, lost: float) -> None:
    """Half a window that is lost at once is a timer's guess, and what was lost before the first sample is no news."""
    if not isfinite(lost):
        return
    if state.lost_bytes < 0.0:
        state.lost_base = lost
        state.sent_base = delivered + lost
    elif lost > state.lost_bytes and lost - state.lost_bytes > _TIMER * max(state.window, FIRST_WINDOW) * p.packet:
        state.lost_base += lost - state.lost_bytes
        state.sent_base += lost - state.lost_bytes
    state.lost_bytes = lost


@njit(cache=True, error_model="numpy")
def _room(state: OwnRateState, time: float, span: float, gone: float) -> None:
    """The share of α that is kept: cut at any loss, raised in time, so that all flows come to one share. Random losses
    leave a shorter queue, no lower rate."""
    if gone <= state.round_lost:
        state.share = min(state.share + SHARE_RISE * span, 1.0)
    elif time - state.share_s > _SHARE_S:
        state.share = max(SHARE_CUT * state.share, LEAST_SHARE)
        state.share_s = time
    state.round_lost = gone


@njit(cache=True, error_model="numpy")
def _end_start(state: OwnRateState, pipe: float, alpha: float) -> None:
    state.phase = CRUISE
    state.window = min(state.window, max(pipe + alpha, 2.0))
    state.deaf = 2.0  # what this round and the next hear of was sent by the start


@njit(cache=True, error_model="numpy")
def _lose(state: OwnRateState, p: OwnRateParameters, time: float, share: float) -> None:
    """Significant losses: what came through, at most a cut below the window, is its limit."""
    state.limit = max((1.0 - max(share, p.cut)) * state.window, _LEAST)
    state.limit_s = time
    state.deaf = 1.0
    state.window = min(state.window, state.limit)


@njit(cache=True, error_model="numpy")
def _cruise(state: OwnRateState, p: OwnRateParameters, time: float, share: float, alpha: float) -> None:
    """The window of the next round trip; after losses its limit's rate x grows by c √x each second,
    squared, whatever the round trip: with the cuts, which take a share, flows become equal as under AIMD."""
    W = state.window
    wanted = W + p.gain * (W * state.min_rtt / state.rtt + alpha - W)
    if state.free >= FREE_ROUNDS:  # α fills what an overshoot left, so growth comes gradually
        wanted = max(wanted, W + (p.growth - 1.0) * W * min((state.free - FREE_ROUNDS) / FREE_RAMP, 1.0))
    state.window = min(wanted, RISE * W + RISE_PACKETS)
    if share > 0.0:
        state.window = min(wanted, W)
        _lose(state, p, time, share)
    elif state.limit < inf:
        root = sqrt(state.limit / state.rtt)
        since = time - state.limit_s
        faster = (1.0 + since / _FASTER_S) * (1.0 + since * since / (_FASTEST_S * _FASTEST_S))
        steeper = p.packets_per_root * root / (root + _SLOW_ROOT) * faster
        state.limit += state.limit * min(steeper / root * state.rtt, MAX_STEP)
        if since > _FORGET * p.probe_s:
            state.limit = inf
        state.window = min(state.window, state.limit)


@njit(cache=True, error_model="numpy")
def _suspect(state: OwnRateState, p: OwnRateParameters, time: float, left: float) -> None:
    """A queue that the drains of all flows of this law leave, several times in a row, is kept by others."""
    if state.competing > 0.0:
        if left < _GONE * state.drained:
            state.competing = 0.0
            state.foreign = p.patience_drains - 1.0
    elif left <= _LEFT * state.drained + state.spread or state.window < _TELLING:
        state.foreign = min(state.foreign, 0.0)
    else:
        state.foreign += 1.0
        if state.foreign >= p.patience_drains > 0.0 and state.window >= 1.0:
            state.competing = 1.0
            state.peak = max(state.window, _PART * state.fastest * state.rtt / (BITS_PER_BYTE * p.packet))
            state.cut_s = time
            if state.peak < _WORTH:
                _give_up(state)


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
        _suspect(state, p, time, state.drain_rtt - state.min_rtt)
    _renew(state, p, time)


@njit(cache=True, error_model="numpy")
def _end_round(
    state: OwnRateState, p: OwnRateParameters, time: float, delivered: float, in_flight: float, lost: float
) -> None:
    """A round trip is over: the window of the next."""
    packet = p.packet
    span = time - state.round_s
    gone = lost if isfinite(lost) else 0.0
    got = delivered - state.round_bytes
    state.rtt = state.round_rtt
    spread = state.round_sum / max(state.samples - state.round_samples, 1.0) - state.rtt
    state.rate_before = state.delivered_rate
    state.delivered_rate = BITS_PER_BYTE * got / span
    state.fastest = max(state.fastest, state.delivered_rate)
    drained = state.round_s < state.drain_until_s + state.rtt  # RTTs of packets of a drain
    state.round_s = time
    state.round_bytes = delivered
    state.round_end = delivered + gone + (in_flight if isfinite(in_flight) else state.window * packet)
    state.round_rtt = inf
    state.round_sum = 0.0
    state.round_samples = state.samples
    state.applied_s = time
    base = state.min_rtt
    queue = state.rtt - base
    before = state.round_lost
    x = state.window / state.rtt
    _room(state, time, span, gone)
    alpha = max(state.share * own_queue(p.packets, p.packets_per_root, x), LEAST_QUEUE)
    state.target_rtt = base + alpha / x
    if state.phase != START:
        alpha += p.noise_share * spread * x
    state.free = state.free + 1.0 if queue * x < FREE * alpha else 0.0
    if state.free == 1.0 and state.drain_until_s > 0.0 and not drained:
        state.emptied += 1.0
    share = _judge(state, p, delivered, lost)
    pipe = state.delivered_rate * base / (BITS_PER_BYTE * packet)
    if state.phase == START:
        state.flat = state.flat + 1.0 if state.delivered_rate < 1.25 * state.rate_before else 0.0
        if share > 0.0 or state.flat >= FREE_ROUNDS or queue * x > _STANDS * alpha:
            _end_start(state, pipe, alpha)
        else:
            state.window = min(2.0 * state.window, max(4.0 * got / packet, 2.0 * FIRST_WINDOW))
    elif state.phase == CRUISE:
        if state.competing > 0.0:
            _compete(state, time, gone > before, share)
        elif share > 0.0 or not drained:
            _cruise(state, p, time, share, alpha)
        alone = state.competing == 0.0 and state.foreign <= 0.0
        if time >= state.probe_s and alone and state.emptied >= _EMPTIED and state.share >= _WHOLE:
            _renew(state, p, time)
        elif time >= state.probe_s:
            state.phase = DRAIN
            state.saved = state.window
            state.window = min(state.window, p.drain_share * pipe)
            state.drain_until_s = time + _LASTS * p.probe_s + 2.0 * state.rtt
            state.drained = queue if queue * x > FREE * alpha else 0.0
            state.drain_rtt = inf
            state.drain_s = time
            state.spread = spread
    elif share > 0.0:
        state.saved *= 1.0 - max(share, p.cut)
        state.limit = state.saved
        state.limit_s = time
        state.deaf = 1.0
    fast = max(state.delivered_rate, state.rate_before) / (BITS_PER_BYTE * packet)
    if state.phase != START and state.competing == 0.0:
        state.window = min(state.window, MAX_BDPS * (fast * base + alpha) + MAX_PACKETS)
    state.window = max(state.window, _LEAST)


@njit(cache=True, error_model="numpy")
def own_rate_law_step(
    state: OwnRateState, p: OwnRateParameters, time: float, rtt: float, delivered: float, in_flight: float, lost: float
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
    gone = lost if isfinite(lost) else 0.0
    first = state.samples == 0.0
    changed = first
    state.time_s = time
    state.delivered_bytes = delivered
    _listen(state, time, rtt)
    if first:
        state.rtt = rtt
        state.round_s = time - rtt
        state.round_bytes = 0.0
        state.round_end = FIRST_WINDOW * p.packet + gone
        state.probe_s = _next(state, p, time)
        state.seen_s = time
    if state.phase == DRAIN and time >= state.drain_until_s:
        _end_drain(state, p, time)
        changed = True
    _hear_timer(state, p, delivered, lost)
    if state.phase == START and state.recent >= _SOON:
        x = state.window / rtt
        alpha = own_queue(p.packets, p.packets_per_root, x)
        span = time - state.round_s
        if (state.recent_rtt - state.min_rtt) * x > _STANDS * alpha and span >= 0.5 * rtt:
            now = BITS_PER_BYTE * (delivered - state.round_bytes) / span
            _end_start(state, max(now, state.delivered_rate) * state.min_rtt / (BITS_PER_BYTE * p.packet), alpha)
            changed = True
        state.recent = 0.0
        state.recent_rtt = inf
    if delivered + gone >= state.round_end and time - state.round_s >= 0.5 * state.min_rtt:
        _end_round(state, p, time, delivered, in_flight, lost)
        changed = True
    if not changed:
        return state.rate
    speed = _START_SPEED if state.phase == START else SPEED
    state.most_in_flight = max(state.window, 1.0) * p.packet
    rate = speed * BITS_PER_BYTE * state.window * p.packet / state.rtt
    if rate < p.min_rate:
        state.floored += 1.0
    state.rate = min(max(rate, p.min_rate), p.max_rate)
    state.prediction = state.window * p.packet * BITS_PER_BYTE / max(state.delivered_rate, p.min_rate)
    return state.rate


_state, _parameters = compiled_view(OwnRateState), compiled_view(OwnRateParameters)


@njit(cache=True, error_model="numpy")
def own_rate_step(
    state: np.ndarray, settings: np.ndarray, time: float, rtt: float, delivered: float, in_flight: float, lost: float
) -> float:
    """`own_rate_law_step` on a row of state and one of parameters."""
    return own_rate_law_step(_state(state), _parameters(settings), time, rtt, delivered, in_flight, lost)
