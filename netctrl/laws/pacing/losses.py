"""What an own-rate law makes of losses and marks: significance, the share of its queue, what marks of L4S cut."""

from __future__ import annotations

from math import isfinite

from netctrl.core.jit import njit
from netctrl.laws.elementary import logarithm
from netctrl.laws.pacing.own_rate_state import FIRST_WINDOW, START, OwnRateParameters, OwnRateState
from netctrl.laws.tcp.dctcp import AVERAGING
from netctrl.laws.tcp.prague import virtual_trips

# Packets lost beyond what is tolerated, that are significant: at 2 % of 3 % a rate x [packet/s] loses as many by chance
# about once in 10 s, as an excess of h has the probability exp(-0.8 h).
_LEAST_EXCESS, _EXCESS, _EXCESS_RATE = 3.0, 1.3, 4.0
_START_EXCESS = 2.0
LEAST_SHARE = 0.1  # of α
SHARE_CUT, SHARE_RISE, _SHARE_S = 0.8, 0.05, 0.1  # times, at losses no sooner than this [s]; in a second without
_TIMER = 0.5  # of a window, lost at once


@njit(cache=True, error_model="numpy")
def hear_timer(state: OwnRateState, p: OwnRateParameters, delivered: float, lost: float) -> None:
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
def judge(state: OwnRateState, p: OwnRateParameters, delivered: float, lost: float) -> float:
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
def keep_room(state: OwnRateState, time: float, span: float, gone: float, marked: bool) -> None:
    """The share of α that is kept: cut at any loss or mark, raised in time, so that all flows come to one share. Random
    losses leave a shorter queue, no lower rate."""
    if gone <= state.round_lost and not marked:
        state.share = min(state.share + SHARE_RISE * span, 1.0)
    elif time - state.share_s > _SHARE_S:
        state.share = max(SHARE_CUT * state.share, LEAST_SHARE)
        state.share_s = time
    state.round_lost = gone


@njit(cache=True, error_model="numpy")
def marks_cut(state: OwnRateState, told: float, time: float) -> float:
    """What marks of L4S cut: half of their average share, 1 until the first; once for what was sent in a virtual round
    trip, of which marks may come in two rounds."""
    if told > 0.0 or state.marks < 1.0:
        state.marks += AVERAGING / virtual_trips(state.rtt) * (min(told, 1.0) - state.marks)
    heard = time - state.limit_s > (virtual_trips(state.rtt) + 0.5) * state.rtt
    return 0.5 * state.marks if told > 0.0 and heard else 0.0
