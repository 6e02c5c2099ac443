"""BBR, version 1, as a fluid: its rate and its limit of data in flight, without checks; and as a rate sender's law.

As Linux has it, with an allowance for what leaves at once. Left out of the fluid, which has no such thing: the one for
acknowledgements that come late, together, and the bound of what is in flight while losses are repaired. Where a flow's
cycle begins is given, not drawn.
"""

from __future__ import annotations

from math import ceil, floor, inf
from typing import Annotated, Any

import numpy as np

from netctrl.core.jit import njit
from netctrl.laws.rate.law import Allowed, RateLaw, Sample
from netctrl.laws.rate.pieces import at_once
from netctrl.laws.record import compiled_view, row_names, width

_ROUNDS, MARKS = 10, 64


class BbrState:
    """State of BBR, in bytes, byte/s and s."""

    phase: float
    """0: startup; 1: drain; 2: probe bandwidth; 3: probe RTT"""
    rate: float
    """[byte/s]"""
    window: float
    """What may be in flight [byte]"""
    bandwidth: float
    """Greatest of the last round trips [byte/s]"""
    min_rtt: float
    """[s]"""
    least_rtt_s: float
    """When it was seen [s]"""
    full_bandwidth: float
    """[byte/s]"""
    full_rounds: float
    """Round trips without a quarter more"""
    filled: float
    """1: the pipe is full"""
    round_end: float
    """Delivered or lost by when a round trip ends [byte]"""
    rounds: float
    place: float
    """Of the cycle"""
    place_s: float
    """When it began [s]"""
    probe_end_s: float
    """0: not known yet [s]"""
    probe_round: float
    """1: a round trip of it is over"""
    window_before: float
    """What it is again after four packets at most, or after losses [byte]"""
    lost: float
    """[byte]"""
    delivered: float
    """[byte]"""
    marks: float
    """That the rings were given"""
    mark: float
    """The one that was an RTT old, in their order"""
    first_place: float
    limited: float
    """Rates of what was sent before tell nothing [byte]"""
    recovering: float
    """1: losses are repaired; 2: since a timeout"""
    conserving: float
    """1: as much is sent as arrives, in the first round trip of repairing"""
    idle: float
    """1: nothing was under way when the next packet was sent"""
    ahead_s: float
    """Since when acknowledgements are ahead of the bandwidth [s]"""
    ahead: float
    """Acknowledged since then [byte]"""
    ahead_rounds: float
    """Round trips that the newer of these has seen"""
    extra: float
    """Greatest of what came beyond the bandwidth, in the newest round trips, five at most [byte]"""
    extra_before: float
    """In the five before [byte]"""
    round_rates: Annotated[np.ndarray, 10]
    """Greatest of the last round trips [byte/s]"""
    ring_times: Annotated[np.ndarray, 64]
    """Of the newest marks [s]"""
    ring_bytes: Annotated[np.ndarray, 64]
    """Delivered by then [byte]"""


STARTUP, DRAIN, PROBE_BW, PROBE_RTT = 0.0, 1.0, 2.0, 3.0

BBR_CYCLE = (1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
_HIGH_GAIN = 2.885  # 2/ln 2
_WINDOW_GAIN = 2.0
_FULL_GROWTH, _FULL_ROUNDS = 1.25, 3.0
_MIN_S, _PROBE_S = 10.0, 0.2
_FIRST_PACKETS, _MIN_PACKETS = 10.0, 4.0
MARKS_PER_RTT = 16.0
ROUNDING = 0.1  # packets: bytes are sums over the whole flow
# Of Linux. Pace over bandwidth. Three times what leaves at once may be in flight beyond a BDP: what 1/1024 s sends, two
# packets at least, or one. And what came beyond the bandwidth in up to ten round trips, but not more than .1 s of it.
MARGIN = 0.99
_SLOW, _PIECES = 150e3, 3.0
EXTRA_ROUNDS, EXTRA_S = 5.0, 0.1

_state = compiled_view(BbrState)


@njit(cache=True)
def bbr_begin(row: np.ndarray, rtt: float, packet: float, first_place: float) -> float:
    """The state before the first acknowledgement, in a row of zeros: 10 packets in flight, sent at 2.885 times 10 a
    round trip of `rtt` [s], which is the rate [byte/s]; the cycle is to begin at `first_place`."""
    state = _state(row)
    state.min_rtt = inf
    state.window = _FIRST_PACKETS * packet
    state.rate = MARGIN * _HIGH_GAIN * state.window / rtt
    state.first_place = first_place
    return state.rate


def bbr_start(rtt: float, packet: float, first_place: int) -> np.ndarray:
    """The row of the state that `bbr_begin` makes."""
    row = np.zeros(width(BbrState))
    bbr_begin(row, rtt, packet, float(first_place))
    return row


@njit(cache=True, error_model="numpy")
def bbr_sender(
    state: BbrState,
    time: float,
    rtt: float,
    delivered: float,
    in_flight: float,
    sent: float,
    lost: float,
    packet: float,
) -> float:
    """One RTT [s] at a time [s], bytes delivered so far, in flight, sent and lost so far; changes the state in place
    and gives the rate [byte/s]. `window`, the bound of what is in flight, is a place of the state.

    Source: draft-cardwell-iccrg-bbr-congestion-control-00, sections 4.1 to 4.3.
    """
    round_starts = delivered + lost >= state.round_end
    if round_starts:
        state.round_end = sent
    known = _measure(state, time, rtt, delivered, round_starts)
    expired = state.min_rtt < inf and time > state.least_rtt_s + _MIN_S
    if rtt <= state.min_rtt or expired:
        state.min_rtt, state.least_rtt_s = rtt, time
    _fill(state, time, in_flight, packet, round_starts and known)
    if state.phase == PROBE_BW:
        _advance_cycle(state, time, in_flight, packet, lost > state.lost)
    _probe_rtt(state, time, in_flight, sent, packet, round_starts, expired)
    rate = MARGIN * _gain(state) * state.bandwidth
    if state.filled > 0.0 or rate > state.rate:
        state.rate = rate
    _bound(state, delivered, packet)
    state.lost, state.delivered = lost, delivered
    return state.rate


@njit(cache=True)
def _gain(state: BbrState) -> float:
    if state.phase == STARTUP:
        return _HIGH_GAIN
    if state.phase == DRAIN:
        return 1.0 / _HIGH_GAIN
    return BBR_CYCLE[int(state.place)] if state.phase == PROBE_BW else 1.0


@njit(cache=True, error_model="numpy")
def mark_before(state: Any, time: float, rtt: float) -> int:
    """Place of the newest of the last marks that is an RTT old, or of the oldest; from the one before a few steps."""
    times, marks = state.ring_times, int(state.marks)
    oldest = max(marks - MARKS, 0)
    at = max(int(state.mark), oldest)
    while at + 1 < marks and time - times[(at + 1) % MARKS] >= rtt:
        at += 1
    while at > oldest and time - times[at % MARKS] < rtt:
        at -= 1
    state.mark = float(at)
    return at % MARKS


@njit(cache=True, error_model="numpy")
def _piece(state: BbrState, packet: float) -> float:
    return at_once(state.rate, 0.0, packet, 1.0 if state.rate < _SLOW else 2.0)


@njit(cache=True, error_model="numpy")
def _to_hold(state: BbrState, gain: float, extra: float, packet: float) -> float:
    """What may be in flight at a gain: so many BDP and what leaves at once, in pairs of packets [byte]."""
    packets = ceil(gain * state.bandwidth * state.min_rtt / packet) + floor(extra / packet)
    packets += _PIECES * _piece(state, packet)
    more = 2.0 if state.phase == PROBE_BW and state.place == 0.0 else 0.0
    return (2.0 * ceil(0.5 * packets) + more) * packet


@njit(cache=True, error_model="numpy")
def hear_ahead(
    state: Any, bandwidth: float, rounds: float, time: float, acknowledged: float, round_starts: bool
) -> None:
    """What is acknowledged beyond the bandwidth, since it was last not ahead of it: links and receivers hold answers
    back. The greatest is kept for so many round trips and as many more. Source: Linux, `bbr_update_ack_aggregation`."""
    if round_starts:
        state.ahead_rounds += 1.0
        if state.ahead_rounds >= rounds:
            state.ahead_rounds, state.extra_before, state.extra = 0.0, state.extra, 0.0
    expected = bandwidth * (time - state.ahead_s)
    if state.ahead <= expected:
        state.ahead_s, state.ahead, expected = time, 0.0, 0.0
    state.ahead += acknowledged
    state.extra = max(state.extra, min(state.ahead - expected, state.window))


@njit(cache=True, error_model="numpy")
def _measure(state: BbrState, time: float, rtt: float, delivered: float, round_starts: bool) -> bool:
    """The greatest of the rates delivered over an RTT, of the last 10 round trips; where four packets were all that was
    sent, or all that there was, a rate tells nothing, unless it is greater. Returns whether it tells of the network."""
    if state.marks == 0.0:  # nothing was delivered by when what is acknowledged now was sent
        state.ring_times[0], state.ring_bytes[0] = time - rtt, 0.0
        state.marks = 1.0
    marks = int(state.marks)
    at = mark_before(state, time, rtt)
    first, span = state.ring_bytes[at], time - state.ring_times[at]
    found = (delivered - first) / span if span > 0.0 else 0.0
    if time - state.ring_times[(marks - 1) % MARKS] >= rtt / MARKS_PER_RTT:
        state.ring_times[marks % MARKS], state.ring_bytes[marks % MARKS] = time, delivered
        state.marks += 1.0
    known = state.phase != PROBE_RTT and first >= state.limited
    if not known and found < state.bandwidth:
        return known
    state.rounds += round_starts
    at = int(state.rounds) % _ROUNDS
    if not round_starts:
        state.round_rates[at] = max(state.round_rates[at], found)
        state.bandwidth = max(state.bandwidth, found)
        return known
    state.round_rates[at], state.bandwidth = found, 0.0
    for i in range(_ROUNDS):
        state.bandwidth = max(state.bandwidth, state.round_rates[i])
    return known


@njit(cache=True)
def _fill(state: BbrState, time: float, in_flight: float, packet: float, tells: bool) -> None:
    """Out of STARTUP after three round trips that tell, without a quarter more; of DRAIN when a BDP is in flight."""
    if tells and state.filled == 0.0:
        if state.bandwidth >= _FULL_GROWTH * state.full_bandwidth:
            state.full_bandwidth, state.full_rounds = state.bandwidth, 0.0
        else:
            state.full_rounds += 1.0
            state.filled = 1.0 if state.full_rounds >= _FULL_ROUNDS else 0.0
    if state.phase == STARTUP and state.filled > 0.0:
        state.phase = DRAIN
    if state.phase == DRAIN and in_flight <= _to_hold(state, 1.0, 0.0, packet):
        _enter_cycle(state, time)


@njit(cache=True)
def _enter_cycle(state: BbrState, time: float) -> None:
    state.phase = PROBE_BW
    state.place, state.place_s = state.first_place, time


@njit(cache=True)
def _advance_cycle(state: BbrState, time: float, in_flight: float, packet: float, losing: bool) -> None:
    """A place lasts a least RTT; probing until its gain is in flight, draining no longer than to a BDP."""
    gain, due = _gain(state), time - state.place_s > state.min_rtt
    if gain > 1.0:
        soon = in_flight + _piece(state, packet) * packet  # with what leaves next
        due = due and (losing or soon >= _to_hold(state, gain, 0.0, packet))
    elif gain < 1.0:
        due = due or in_flight <= _to_hold(state, 1.0, 0.0, packet)
    if due:
        state.place, state.place_s = (state.place + 1.0) % len(BBR_CYCLE), time


@njit(cache=True)
def _probe_rtt(
    state: BbrState, time: float, in_flight: float, sent: float, packet: float, round_starts: bool, expired: bool
) -> None:
    """Where no RTT as low was seen for 10 s: four packets in flight for 0.2 s and a round trip."""
    if state.phase != PROBE_RTT:
        if not expired or state.idle > 0.0:
            return
        before = state.window_before if state.recovering > 0.0 else 0.0
        state.phase, state.window_before, state.probe_end_s = PROBE_RTT, max(before, state.window), 0.0
    state.limited = sent - state.lost + ROUNDING * packet
    if state.probe_end_s == 0.0:
        if in_flight <= (_MIN_PACKETS + ROUNDING) * packet:
            state.probe_end_s, state.probe_round, state.round_end = time + _PROBE_S, 0.0, sent
        return
    if round_starts:
        state.probe_round = 1.0
    if state.probe_round > 0.0 and time > state.probe_end_s:
        state.least_rtt_s = time
        state.window = max(state.window, state.window_before)
        if state.filled > 0.0:
            _enter_cycle(state, time)
        else:
            state.phase = STARTUP


@njit(cache=True)
def _bound(state: BbrState, delivered: float, packet: float) -> None:
    """What may be in flight: up to 2.885 BDP until the pipe is full, then 2, and the allowances; 4 packets at least."""
    acknowledged = delivered - state.delivered
    early = state.phase <= DRAIN
    extra = 0.0
    if state.filled > 0.0:
        extra = min(max(state.extra, state.extra_before), EXTRA_S * state.bandwidth)
    most = _to_hold(state, _HIGH_GAIN if early else _WINDOW_GAIN, extra, packet)
    if state.filled > 0.0:
        state.window = min(state.window + acknowledged, most)
    elif state.window < most or delivered < _FIRST_PACKETS * packet:
        state.window += acknowledged
    state.window = max(state.window, _MIN_PACKETS * packet)
    if state.phase == PROBE_RTT:
        state.window = min(state.window, _MIN_PACKETS * packet)


@njit(cache=True, error_model="numpy")
def bbr_step(
    state: np.ndarray,
    time: float,
    rtt: float,
    delivered: float,
    in_flight: float,
    sent: float,
    lost: float,
    packet: float,
) -> float:
    """`bbr_sender` on a row of state."""
    return bbr_sender(_state(state), time, rtt, delivered, in_flight, sent, lost, packet)


_WINDOW = row_names(BbrState).index("window")


def _read(_: Any, random: np.random.Generator) -> tuple[np.ndarray, int]:
    """The cycle begins anywhere but in its drain."""
    place = int(random.integers(len(BBR_CYCLE) - 1))
    return np.array([float(place + (place > 0))]), width(BbrState)


def _begin(allowed: Allowed, state: np.ndarray, settings: np.ndarray, rtt: float, packet: float) -> None:
    state[:] = 0.0
    allowed.rate = bbr_begin(state, rtt, packet, settings[0])
    allowed.in_flight = state[_WINDOW]


def _step(allowed: Allowed, state: np.ndarray, settings: np.ndarray, sample: Sample) -> None:
    """What is in flight counts as before the acknowledgement, as in Linux (`prior_in_flight`)."""
    in_flight, sent, lost = sample.prior_in_flight, sample.sent, sample.lost
    view = _state(state)
    view.limited = max(view.limited, sample.limited)
    acknowledged = sample.delivered - view.delivered
    arrived = sample.in_flight + max(acknowledged, 0.0)
    _recover(view, sample, arrived)
    starts = sample.delivered + lost >= view.round_end
    hear_ahead(view, view.bandwidth, EXTRA_ROUNDS, sample.time, acknowledged, starts)
    held = view.window
    allowed.rate = bbr_sender(view, sample.time, sample.rtt, sample.delivered, in_flight, sent, lost, sample.packet)
    if view.conserving > 0.0 and view.phase != PROBE_RTT:
        view.window = max(held, arrived)
    view.idle = 1.0 if sample.in_flight <= 0.0 else 0.0
    allowed.in_flight = view.window


@njit(cache=True)
def _recover(state: BbrState, sample: Sample, arrived: float) -> None:
    """What may be in flight while losses are repaired: less by what is lost, and in their first round trip as much is
    sent as arrives: `arrived` stays in flight [byte]. Then it is again as before.

    Source: the draft's section 4.2.3.4, BBRModulateCwndForRecovery.
    """
    window = state.window
    state.window = max(window - max(sample.lost - state.lost, 0.0), sample.packet)
    if sample.recovering > state.recovering:
        if state.recovering == 0.0:
            state.window_before = window if state.phase != PROBE_RTT else max(state.window_before, window)
        state.conserving = 1.0 if sample.recovering == 1.0 else 0.0
        state.window, state.round_end = arrived, sample.sent
    elif sample.recovering == 0.0 and state.recovering > 0.0:
        state.window, state.conserving = max(state.window, state.window_before), 0.0
    elif sample.delivered + sample.lost >= state.round_end:
        state.conserving = 0.0
    state.recovering = sample.recovering


BBR_ROWS = RateLaw(_read, _begin, _step)
