"""BBR's rate and its bound of what is in flight, as a fluid; version 1, nothing is checked here.

Left out, as a fluid has none of it: allowances for packets that are sent in one piece, and the bound of what is in
flight for one round trip after a loss. Where a flow's cycle begins is given, not drawn.
"""

from __future__ import annotations

from math import inf

import numpy as np

from netctrl.jit import njit

__all__ = ["BBR_CYCLE", "BBR_FIELDS", "bbr_start", "bbr_step"]

_ROUNDS, _MARKS = 10, 64
BBR_FIELDS = (
    *("phase", "rate", "window", "bandwidth", "min_rtt", "least_rtt_s", "full_bandwidth", "full_rounds", "filled"),
    *("round_end", "rounds", "place", "place_s", "probe_end_s", "probe_round", "window_before", "lost", "delivered"),
    *("marks", "first_place", "limited"),
)
"""Names of a state's first places, in bytes, byte/s and s; then the greatest rates of the last 10 round trips, then
rings of 64 times and of bytes delivered by them."""
PHASE, RATE, WINDOW, BANDWIDTH, MIN, MIN_AT, FULL, FULL_ROUNDS, FILLED = range(9)
ROUND_END, ROUNDS, PLACE, PLACE_AT, PROBE_END, PROBE_ROUND, BEFORE, LOST, DELIVERED, MARKS, FIRST_PLACE, LIMITED = (
    range(9, 21)
)
HEAD = len(BBR_FIELDS)
STARTUP, DRAIN, PROBE_BW, PROBE_RTT = 0.0, 1.0, 2.0, 3.0

BBR_CYCLE = (1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
_HIGH_GAIN = 2.885  # 2/ln 2
_WINDOW_GAIN = 2.0
_FULL_GROWTH, _FULL_ROUNDS = 1.25, 3.0
_MIN_S, _PROBE_S = 10.0, 0.2
_FIRST_PACKETS, _MIN_PACKETS = 10.0, 4.0
_MARKS_PER_RTT = 16.0
_ROUNDING = 0.1  # packets: bytes are sums over the whole flow


def bbr_start(rtt: float, packet: float, first_place: int) -> np.ndarray:
    """The state before the first acknowledgement: 10 packets in flight, sent at 2.885 times 10 a round trip of `rtt`
    [s]; the cycle is to begin at `first_place`."""
    state = np.zeros(HEAD + _ROUNDS + 2 * _MARKS)
    state[MIN] = inf
    state[WINDOW] = _FIRST_PACKETS * packet
    state[RATE] = _HIGH_GAIN * state[WINDOW] / rtt
    state[FIRST_PLACE] = first_place
    return state


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
    """One RTT [s] at a time [s], bytes delivered so far, in flight, sent and lost so far; changes the state in place
    and gives the rate [byte/s]. `window`, the bound of what is in flight, is a place of the state.

    Source: draft-cardwell-iccrg-bbr-congestion-control-00, sections 4.1 to 4.3.
    """
    round_starts = delivered + lost >= state[ROUND_END]
    if round_starts:
        state[ROUND_END] = sent
    _measure(state, time, rtt, delivered, round_starts)
    expired = state[MIN] < inf and time > state[MIN_AT] + _MIN_S
    if rtt <= state[MIN] or expired:
        state[MIN], state[MIN_AT] = rtt, time
    pipe = state[BANDWIDTH] * state[MIN]
    _fill(state, time, in_flight, pipe, round_starts)
    if state[PHASE] == PROBE_BW:
        _advance_cycle(state, time, in_flight, pipe, lost > state[LOST])
    _probe_rtt(state, time, in_flight, sent, packet, round_starts, expired)
    gain = _gain(state)
    if state[FILLED] > 0.0 or gain * state[BANDWIDTH] > state[RATE]:
        state[RATE] = gain * state[BANDWIDTH]
    _bound(state, delivered, pipe, packet)
    state[LOST], state[DELIVERED] = lost, delivered
    return state[RATE]


@njit(cache=True)
def _gain(state: np.ndarray) -> float:
    if state[PHASE] == STARTUP:
        return _HIGH_GAIN
    if state[PHASE] == DRAIN:
        return 1.0 / _HIGH_GAIN
    return BBR_CYCLE[int(state[PLACE])] if state[PHASE] == PROBE_BW else 1.0


@njit(cache=True, error_model="numpy")
def _measure(state: np.ndarray, time: float, rtt: float, delivered: float, round_starts: bool) -> None:
    """The greatest of the rates delivered over an RTT, of the last 10 round trips; where four packets were all that was
    sent, a rate tells nothing, unless it is greater."""
    times, bytes_ = HEAD + _ROUNDS, HEAD + _ROUNDS + _MARKS
    if state[MARKS] == 0.0:  # nothing was delivered by when what is acknowledged now was sent
        state[times], state[bytes_] = time - rtt, 0.0
        state[MARKS] = 1.0
    marks = int(state[MARKS])
    found = first = 0.0
    for back in range(1, min(marks, _MARKS) + 1):
        at = (marks - back) % _MARKS
        span = time - state[times + at]
        if span > 0.0:
            first = state[bytes_ + at]
            found = (delivered - first) / span
        if span >= rtt:
            break
    if time - state[times + (marks - 1) % _MARKS] >= rtt / _MARKS_PER_RTT:
        state[times + marks % _MARKS], state[bytes_ + marks % _MARKS] = time, delivered
        state[MARKS] += 1.0
    if (state[PHASE] == PROBE_RTT or first < state[LIMITED]) and found < state[BANDWIDTH]:
        return
    state[ROUNDS] += round_starts
    at = HEAD + int(state[ROUNDS]) % _ROUNDS
    state[at] = found if round_starts else max(state[at], found)
    state[BANDWIDTH] = state[HEAD : HEAD + _ROUNDS].max()


@njit(cache=True)
def _fill(state: np.ndarray, time: float, in_flight: float, pipe: float, round_starts: bool) -> None:
    """Out of STARTUP after three round trips without a quarter more; out of DRAIN when a BDP is in flight."""
    if round_starts and state[FILLED] == 0.0:
        if state[BANDWIDTH] >= _FULL_GROWTH * state[FULL]:
            state[FULL], state[FULL_ROUNDS] = state[BANDWIDTH], 0.0
        else:
            state[FULL_ROUNDS] += 1.0
            state[FILLED] = 1.0 if state[FULL_ROUNDS] >= _FULL_ROUNDS else 0.0
    if state[PHASE] == STARTUP and state[FILLED] > 0.0:
        state[PHASE] = DRAIN
    if state[PHASE] == DRAIN and in_flight <= pipe:
        _enter_cycle(state, time)


@njit(cache=True)
def _enter_cycle(state: np.ndarray, time: float) -> None:
    state[PHASE] = PROBE_BW
    state[PLACE], state[PLACE_AT] = state[FIRST_PLACE], time


@njit(cache=True)
def _advance_cycle(state: np.ndarray, time: float, in_flight: float, pipe: float, losing: bool) -> None:
    """A place lasts a least RTT; probing until its gain is in flight, draining no longer than to a BDP."""
    gain, due = _gain(state), time - state[PLACE_AT] > state[MIN]
    if gain > 1.0:
        due = due and (losing or in_flight >= gain * pipe)
    elif gain < 1.0:
        due = due or in_flight <= pipe
    if due:
        state[PLACE], state[PLACE_AT] = (state[PLACE] + 1.0) % len(BBR_CYCLE), time


@njit(cache=True)
def _probe_rtt(
    state: np.ndarray, time: float, in_flight: float, sent: float, packet: float, round_starts: bool, expired: bool
) -> None:
    """Where no RTT as low was seen for 10 s: four packets in flight for 0.2 s and a round trip."""
    if state[PHASE] != PROBE_RTT:
        if not expired:
            return
        state[PHASE], state[BEFORE], state[PROBE_END] = PROBE_RTT, state[WINDOW], 0.0
    state[LIMITED] = sent - state[LOST] + _ROUNDING * packet
    if state[PROBE_END] == 0.0:
        if in_flight <= (_MIN_PACKETS + _ROUNDING) * packet:
            state[PROBE_END], state[PROBE_ROUND], state[ROUND_END] = time + _PROBE_S, 0.0, sent
        return
    if round_starts:
        state[PROBE_ROUND] = 1.0
    if state[PROBE_ROUND] > 0.0 and time > state[PROBE_END]:
        state[MIN_AT] = time
        state[WINDOW] = max(state[WINDOW], state[BEFORE])
        if state[FILLED] > 0.0:
            _enter_cycle(state, time)
        else:
            state[PHASE] = STARTUP


@njit(cache=True)
def _bound(state: np.ndarray, delivered: float, pipe: float, packet: float) -> None:
    """What may be in flight: up to 2.885 BDP until the pipe is full, then 2; 4 packets at least."""
    acknowledged = delivered - state[DELIVERED]
    early = state[PHASE] == STARTUP or state[PHASE] == DRAIN
    most = (_HIGH_GAIN if early else _WINDOW_GAIN) * pipe
    if state[FILLED] > 0.0:
        state[WINDOW] = min(state[WINDOW] + acknowledged, most)
    elif state[WINDOW] < most or delivered < _FIRST_PACKETS * packet:
        state[WINDOW] += acknowledged
    state[WINDOW] = max(state[WINDOW], _MIN_PACKETS * packet)
    if state[PHASE] == PROBE_RTT:
        state[WINDOW] = min(state[WINDOW], _MIN_PACKETS * packet)
