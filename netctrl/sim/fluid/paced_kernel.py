"""Fluid of single flows over one queue, each at the rate of its pacing law or of its window; compiled, without checks.

The mean field (`netctrl.sim.fluid.kernel`) has windows that follow the probability of a mark. Here a flow hears of its
own packets, as pacing laws do: all propagation is behind the queue, so what departs is acknowledged a base round trip
later, with the time that it has waited, and what is lost is heard of then, too. With departures D and arrivals A that
were kept, in total until t, a byte that leaves at t came at t − w with A(t − w) = D(t): w is its age, the queueing
delay. The backlog is well mixed: flows depart in proportion to what they have in it.

What finds no room is lost in whole packets, each of a flow that is drawn by what arrives, as in
`netctrl.sim.fluid.loss_kernel`: shared among all it would cut all windows at once, as often as single ones.
Units: bytes, seconds.
"""

from __future__ import annotations

from math import inf, nan
from typing import NamedTuple

import numpy as np

from netctrl.core.jit import INSIDE, njit
from netctrl.core.units import BITS_PER_BYTE
from netctrl.laws.aqm.codel import CodelDrops, CodelParameters, codel_head
from netctrl.laws.link import backlog_step, head_age
from netctrl.laws.pacing.arx import ArxState, arx_step
from netctrl.laws.pacing.own_rate import own_rate_step
from netctrl.laws.pacing.own_rate_state import OwnRateState
from netctrl.laws.record import compiled_view, row_names, width
from netctrl.laws.tcp.bbr import BbrState, bbr_step
from netctrl.laws.tcp.rows import window_acts
from netctrl.laws.tcp.sender import Acked, TcpWindow
from netctrl.sim.fluid.loss_kernel import drawn

WORK_CONSERVING, FIXED, ARX, OWN_RATE, BBR = range(5)
"""Laws of a flow's rate; the first is none, of a window alone."""
NO_WINDOW = -1
_LAW_RATE = row_names(ArxState).index("rate")  # the same place in both laws' states
_MAX_IN_FLIGHT = row_names(OwnRateState).index("most_in_flight")
_BBR_RATE, _BBR_WINDOW = (row_names(BbrState).index(name) for name in ("rate", "window"))
_PACING = 1.2  # times W/RTT, as Linux paces beyond slow start
_USED = (0.5, 0.9)  # of the window, in slow start and beyond: who sends less doesn't need more (RFC 7661, section 4.3)
_CODEL = width(CodelDrops)

_window, _codel = compiled_view(TcpWindow), compiled_view(CodelDrops)
_head = njit(codel_head, error_model="numpy")
_grow, _cut = window_acts(error_model="numpy")


class PacedFlows(NamedTuple):
    """n flows; states and memories are changed."""

    law: np.ndarray
    """(n,) WORK_CONSERVING to BBR."""
    state: np.ndarray
    settings: np.ndarray
    """(n, ·) of the laws, as long as the longest."""
    window: np.ndarray
    """(n,) place in WINDOWS, or NO_WINDOW."""
    memory: np.ndarray
    """(n, ·) rows of the windows."""
    base: np.ndarray
    """(n,) round trip without queueing [s]."""
    start: np.ndarray
    stop: np.ndarray
    noise: np.ndarray
    """(n, N) what is added to round trips that a law sees, in turn [s]."""


class PacedQueue(NamedTuple):
    """The queue, and steps of the run."""

    step: float
    """[s]"""
    capacity: np.ndarray
    """(S,) in each step [byte/s]."""
    buffer: float
    """[byte]"""
    target: float
    """Of CoDel, inf of drop-tail [s]."""
    interval: float
    """Of CoDel [s]."""
    packet: float
    """Of windows, first packets, drops of CoDel and at an overflow [byte]."""
    uniform: np.ndarray
    """Draws from 0 to 1, taken in turn."""


class PacedRecord(NamedTuple):
    """K intervals of `every` steps."""

    every: int
    delivered: np.ndarray
    sent: np.ndarray
    lost: np.ndarray
    """(n, K) [byte]."""
    trip: np.ndarray
    """(n, K) the last round trip that was seen, noise included [s]; NaN: none."""
    delay: np.ndarray
    """(K,) mean age of what leaves [s]."""
    backlog: np.ndarray
    """(2, K) greatest, last [byte]."""


@njit(**INSIDE)
def _first_rate(law: int, state: np.ndarray, settings: np.ndarray) -> float:
    """[byte/s]"""
    if law == WORK_CONSERVING:
        return inf
    if law == BBR:
        return state[_BBR_RATE]
    return (settings[0] if law == FIXED else state[_LAW_RATE]) / BITS_PER_BYTE


@njit(**INSIDE)
def _law_rate(
    law: int,
    state: np.ndarray,
    settings: np.ndarray,
    before: float,
    time: float,
    rtt: float,
    acked: float,
    flight: float,
    sent: float,
    gone: float,
    packet: float,
) -> float:
    """After an acknowledgement [byte/s]."""
    if law == ARX:
        return arx_step(state, settings, time, rtt) / BITS_PER_BYTE
    if law == OWN_RATE:
        return own_rate_step(state, settings, time, rtt, acked, flight, gone, nan) / BITS_PER_BYTE
    if law == BBR:
        return bbr_step(state, time, rtt, acked, flight, sent, gone, packet)
    return before


@njit(cache=True, error_model="numpy")
def _acknowledge(
    window: int, row: np.ndarray, time: float, rtt: float, acked: float, lost: float, flight: float, packet: float
) -> None:
    """What acknowledgements and losses do to a window; losses cut it once a round trip."""
    state = _window(row)
    state.rtt = rtt
    state.min_rtt = min(state.min_rtt, rtt)
    state.max_rtt = max(state.max_rtt, rtt)
    if lost > 0.0 and time >= state.recovered_s:
        _cut(window, row)
        state.cut_s = time
        state.threshold = state.window
        state.recovered_s = time + rtt
        return
    used = flight / (state.window * packet)
    if acked > 0.0 and used >= (_USED[0] if state.window < state.threshold else _USED[1]):
        _grow(window, row, Acked(acked / packet, time - state.cut_s, rtt, time >= state.recovered_s))


@njit(cache=True, error_model="numpy")
def _window_sends(row: np.ndarray, rate: float, step: float, flight: float, packet: float) -> float:
    """What a window sends in a step: at 1.2 W/RTT or the law's rate if that is less, as far as W has room."""
    state = _window(row)
    paced = min(rate, _PACING * (state.window * packet / state.rtt)) * step
    return min(paced, max(state.window * packet - flight, 0.0))


@njit(cache=True, error_model="numpy")
def codel_drops(
    state: np.ndarray, time: float, sojourn: float, packet_time: float, target: float, interval: float
) -> int:
    """Number of packets that CoDel drops now at a fluid's queue, by its law of packets; changes the state in place.

    Parameters
    ----------
    state : ndarray
        Row of `CodelDrops`.
    time, sojourn : float
        [s]; of a byte that would depart now.
    packet_time : float
        What a packet takes on the link: by so much a drop shortens the sojourn [s].
    target, interval : float
        [s]; 5 and 100 ms in the source.
    """
    drops = 0
    while _head(_codel(state), time, sojourn, sojourn <= packet_time, CodelParameters(target, interval, 0.0)):
        drops += 1
        sojourn -= packet_time
    return drops


@njit(**INSIDE)
def _whose_turn(credits: np.ndarray, waiting: np.ndarray, total: float) -> int:
    """Flow that loses a dropped packet: in turn, in proportion to its share of the backlog."""
    found = 0
    for i in range(len(waiting)):
        credits[i] += waiting[i] / total
        if credits[i] > credits[found]:
            found = i
    credits[found] -= 1.0
    return found


@njit(cache=True, error_model="numpy")
def advance_paced(flows: PacedFlows, queue: PacedQueue, record: PacedRecord) -> None:
    """Run n flows for S steps; states, memories and the record are changed.

    A round trip is a whole number of steps and a part of one, between whose ends what departed is shared.
    """
    states, settings, memories, base = flows.state, flows.settings, flows.memory, flows.base
    step, packet = queue.step, queue.packet
    n, depth = len(base), int(base.max() / step) + 3
    departed, waited, dropped = np.zeros((n, depth)), np.zeros(depth), np.zeros((n, depth))
    waiting, sent, acked, gone = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    rate, arrivals, credits = np.zeros(n), np.zeros(n), np.zeros(n)
    codel = np.zeros(_CODEL)
    entered, kept, place = np.zeros(len(queue.capacity)), 0.0, 0
    backlog, part, hit, draws = 0.0, 0.0, 0, 0
    for t in range(len(queue.capacity)):
        time, k, at = t * step, t // record.every, t % depth
        total = 0.0
        for i in range(n):
            arrivals[i] = 0.0
            if not flows.start[i] <= time < flows.stop[i]:
                continue
            lag = max(base[i] / step, 1.0)
            whole = int(lag + 1e-9)
            older = max(lag - whole, 0.0) if lag - whole > 1e-9 else 0.0
            newer, back, before = 1.0 - older, (t - whole) % depth, (t - whole - 1) % depth  # 0 before the beginning
            got = newer * departed[i, back] + older * departed[i, before]
            fell = newer * dropped[i, back] + older * dropped[i, before]
            rtt = base[i] + newer * waited[back] + older * waited[before]
            seen = rtt + flows.noise[i, t % flows.noise.shape[1]]
            # With what is acknowledged now, so that it is rate times RTT where nothing changes.
            flight = sent[i] - acked[i] - gone[i]
            acked[i] += got
            gone[i] += fell
            if rate[i] == 0.0:  # before the first RTT
                rate[i] = _first_rate(flows.law[i], states[i], settings[i])
            if got > 0.0:
                record.trip[i, k] = seen
                rate[i] = _law_rate(
                    *(flows.law[i], states[i], settings[i], rate[i]),
                    *(time, seen, acked[i], flight, sent[i], gone[i], packet),
                )
            arrivals[i] = rate[i] * step
            if flows.window[i] != NO_WINDOW:
                if got > 0.0 or fell > 0.0:
                    _acknowledge(flows.window[i], memories[i], time, rtt, got, fell, flight, packet)
                arrivals[i] = _window_sends(memories[i], rate[i], step, flight, packet)
            elif flows.law[i] == OWN_RATE or flows.law[i] == BBR:
                most = states[i, _MAX_IN_FLIGHT if flows.law[i] == OWN_RATE else _BBR_WINDOW]
                arrivals[i] = min(arrivals[i], max(most - flight, 0.0))
            sent[i] += arrivals[i]
            total += arrivals[i]
            record.sent[i, k] += arrivals[i]
        offered = backlog + total
        backlog, departures, loss = backlog_step(backlog, total, queue.capacity[t] * step, queue.buffer)
        for i in range(n):
            mine = waiting[i] + arrivals[i]
            out = departures * mine / offered if offered > 0.0 else 0.0
            waiting[i] = max(mine - out, 0.0)
            departed[i, at], dropped[i, at] = out, 0.0
            record.delivered[i, k] += out
        part = part if loss > 0.0 else 0.0
        left = loss
        while left > 0.0:
            if part <= 0.0:
                hit, part = drawn(arrivals, queue.uniform[draws % len(queue.uniform)] * total), packet
                draws += 1
            if waiting[hit] <= 0.0:
                hit = int(np.argmax(waiting))
            fell = min(left, part, waiting[hit])
            waiting[hit] -= fell
            dropped[hit, at] += fell
            record.lost[hit, k] += fell
            part -= fell
            left -= fell
        kept += total - loss
        entered[t] = kept
        age, place = head_age(entered, place, t + 1, kept - backlog)
        if queue.target < inf:
            sojourn, packet_time = age * step, packet / queue.capacity[t]
            for _ in range(codel_drops(codel, time, sojourn, packet_time, queue.target, queue.interval)):
                i = _whose_turn(credits, waiting, backlog)
                out = min(packet, waiting[i])
                waiting[i] -= out
                backlog -= out
                dropped[i, at] += out
                record.lost[i, k] += out
        waited[at] = age * step
        record.delay[k] += waited[at] / record.every
        record.backlog[0, k] = max(record.backlog[0, k], backlog)
        record.backlog[1, k] = backlog
