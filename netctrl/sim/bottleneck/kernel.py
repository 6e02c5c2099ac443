"""Fluid kernel of a bottleneck with paced and window-based flows; compiled, without checks.

All of a flow's propagation is behind the bottleneck: departures are acknowledged one base RTT later, with their
queueing delay. The backlog is well mixed: flows depart in proportion to their backlogs.
"""

from __future__ import annotations

from math import inf

import numpy as np

from netctrl.jit import INSIDE, njit
from netctrl.laws.aqm.codel import CodelDrops
from netctrl.laws.link import backlog_step
from netctrl.laws.pacing.arx import ArxState, arx_step
from netctrl.laws.pacing.target_rtt import target_step
from netctrl.laws.pacing.target_state import TargetState
from netctrl.laws.record import row_names, width
from netctrl.laws.tcp.bbr import BbrState, bbr_step
from netctrl.sim.bottleneck.codel_packets import codel_drops
from netctrl.sim.bottleneck.window import NO_WINDOW, acknowledge, paced_window, window_room

WORK_CONSERVING, FIXED, ARX, TARGET, BBR = range(5)
_LAW_RATE = row_names(ArxState).index("rate")  # the same place in both laws' states
_MAX_IN_FLIGHT = row_names(TargetState).index("most_in_flight")
_CODEL = width(CodelDrops)
_BBR_RATE, _BBR_WINDOW = (row_names(BbrState).index(name) for name in ("rate", "window"))


@njit(**INSIDE)
def _first_rate(kind: int, state: np.ndarray, settings: np.ndarray) -> float:
    """[byte/s]"""
    if kind == WORK_CONSERVING:
        return inf
    if kind == BBR:
        return state[_BBR_RATE]
    return (settings[0] if kind == FIXED else state[_LAW_RATE]) / 8.0


@njit(**INSIDE)
def _law_rate(
    kind: int,
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
    if kind == ARX:
        return arx_step(state, settings, time, rtt) / 8.0
    if kind == TARGET:
        return target_step(state, settings, time, rtt, acked, flight, gone) / 8.0
    if kind == BBR:
        return bbr_step(state, time, rtt, acked, flight, sent, gone, packet)
    return before


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


@njit(**INSIDE)
def _age(entered: np.ndarray, place: int, t: int, left: float) -> tuple[float, int]:
    """How long ago what leaves now arrived, in steps, and the step in which it did; entered (T,) is what had arrived
    and was kept by the end of each step, `left` what has gone of it, `place` the step of the last time [byte]."""
    while place < t and entered[place] < left:
        place += 1
    before = entered[place - 1] if place > 0 else 0.0
    came = entered[place] - before
    part = min(max((left - before) / came, 0.0), 1.0) if came > 0.0 else 1.0
    return max(t - place + 1.0 - part, 0.0) if left < entered[t] else 0.0, place


@njit(cache=True, error_model="numpy")
def advance_pacing(
    kinds: np.ndarray,
    states: np.ndarray,
    settings: np.ndarray,
    windows: np.ndarray,
    memories: np.ndarray,
    base: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
    capacity: np.ndarray,
    buffer: float,
    codel_target: float,
    codel_interval: float,
    step: float,
    packet: float,
    noise: np.ndarray,
    per_bin: int,
    delivered: np.ndarray,
    delay: np.ndarray,
    highest: np.ndarray,
    lost: np.ndarray,
    rates: np.ndarray,
    rtts: np.ndarray,
) -> None:
    """Run n flows for T steps; fills bins of `per_bin` steps.

    kinds, windows, base, starts, stops (n,) and states, settings, memories (n, ·) are of flows [s]; capacity (T,)
    [bit/s]; buffer, packet [byte]; CoDel's target is inf where there is none [s]; noise (n, N) is added to RTTs in turn
    [s]. delivered, lost (n, K) [byte], delay (K,) mean queueing delay of the link, highest (K,) backlog [byte], rates
    (n, K) mean sending rates [bit/s], rtts (n, K) the last that were seen [s].
    """
    n, T = len(kinds), len(capacity)
    lags = np.empty(n, dtype=np.int64)
    for i in range(n):
        lags[i] = max(round(base[i] / step), 1)
    depth = lags.max() + 1
    departed, waited, dropped = np.zeros((n, depth)), np.zeros(depth), np.zeros((n, depth))
    waiting, sent, acked, gone = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    rate, arrivals, credits = np.zeros(n), np.zeros(n), np.zeros(n)
    codel = np.zeros(_CODEL)
    entered, kept, place = np.zeros(T), 0.0, 0
    backlog = 0.0
    for t in range(T):
        time, k, at = t * step, t // per_bin, t % depth
        total = 0.0
        for i in range(n):
            arrivals[i] = 0.0
            if not starts[i] <= time < stops[i]:
                continue
            back = (t - lags[i]) % depth
            got, fell = (departed[i, back], dropped[i, back]) if t >= lags[i] else (0.0, 0.0)
            rtt = base[i] + (waited[back] if t >= lags[i] else 0.0)
            seen = rtt + noise[i, t % noise.shape[1]]
            # With what is acknowledged now, so that it is rate times RTT where nothing changes.
            flight = sent[i] - acked[i] - gone[i]
            acked[i] += got
            gone[i] += fell
            if rate[i] == 0.0:  # before the first RTT
                rate[i] = _first_rate(kinds[i], states[i], settings[i])
            if got > 0.0:
                rtts[i, k] = seen
                rate[i] = _law_rate(
                    *(kinds[i], states[i], settings[i], rate[i], time, seen, acked[i], flight, sent[i], gone[i], packet)
                )
            arrivals[i] = rate[i] * step
            if windows[i] != NO_WINDOW:
                if got > 0.0 or fell > 0.0:
                    acknowledge(windows[i], memories[i], time, rtt, got, fell, flight, packet)
                paced = min(rate[i], paced_window(memories[i], packet)) * step
                arrivals[i] = min(paced, window_room(memories[i], flight, packet))
            elif kinds[i] == BBR or kinds[i] == TARGET:
                most = states[i, _BBR_WINDOW if kinds[i] == BBR else _MAX_IN_FLIGHT]
                arrivals[i] = min(arrivals[i], max(most - flight, 0.0))
            sent[i] += arrivals[i]
            total += arrivals[i]
            rates[i, k] += 8.0 * arrivals[i] / (step * per_bin)
        service = capacity[t] * step / 8.0
        offered = backlog + total
        backlog, departures, loss = backlog_step(backlog, total, service, buffer)
        for i in range(n):
            share_lost = loss * arrivals[i] / total if total > 0.0 else 0.0
            mine = waiting[i] + arrivals[i]
            out = departures * mine / offered if offered > 0.0 else 0.0
            waiting[i] = max(mine - out - share_lost, 0.0)
            departed[i, at], dropped[i, at] = out, share_lost
            delivered[i, k] += out
            lost[i, k] += share_lost
        kept += total - loss
        entered[t] = kept
        age, place = _age(entered, place, t, kept - backlog)
        if codel_target < inf:
            sojourn, packet_time = age * step, 8.0 * packet / capacity[t]
            for _ in range(codel_drops(codel, time, sojourn, packet_time, codel_target, codel_interval)):
                i = _whose_turn(credits, waiting, backlog)
                out = min(packet, waiting[i])
                waiting[i] -= out
                backlog -= out
                dropped[i, at] += out
                lost[i, k] += out
        waited[at] = age * step
        delay[k] += waited[at] / per_bin
        highest[k] = max(highest[k], backlog)
