"""A bottleneck under paced flows and Cubic flows, as a fluid, compiled; nothing is checked here (`pacing_run`).

All of a flow's propagation is behind the bottleneck: what departs is acknowledged one base RTT later, with the queueing
delay that it saw. What waits is well mixed: flows depart in proportion to what they have waiting.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from netctrl.fluid.cubic import cubic_cut, cubic_window
from netctrl.fluid.link import backlog_step
from netctrl.runtime.pacing_arx import ARX_FIELDS, arx_step
from netctrl.runtime.pacing_target import target_step

__all__ = ["ARX", "CUBIC", "FIXED", "TARGET", "advance_pacing"]

ARX, TARGET, CUBIC, FIXED = range(4)
_WINDOW, _HIGHEST, _CUT, _THRESHOLD, _RTT, _RECOVERED = range(6)
_LAW_RATE = ARX_FIELDS.index("rate")  # the same place in both laws' states


@njit(cache=True, error_model="numpy")
def _acknowledge_cubic(values: np.ndarray, time: float, rtt: float, acked: float, lost: float, packet: float) -> float:
    """The window's rate after acknowledgements and losses [byte/s]."""
    values[_RTT] = rtt
    if lost > 0.0 and time >= values[_RECOVERED]:
        values[_WINDOW], values[_HIGHEST] = cubic_cut(values[_WINDOW], values[_HIGHEST])
        values[_CUT], values[_THRESHOLD] = time, values[_WINDOW]
        values[_RECOVERED] = time + rtt
    elif acked > 0.0:
        values[_WINDOW] = cubic_window(
            values[_WINDOW], values[_HIGHEST], time - values[_CUT], rtt, acked / packet, values[_THRESHOLD]
        )
    return values[_WINDOW] * packet / rtt


@njit(cache=True)
def _first_rate(kind: int, state: np.ndarray, settings: np.ndarray, packet: float, base: float) -> float:
    """[byte/s]"""
    if kind == CUBIC:
        return state[_WINDOW] * packet / base
    return (settings[0] if kind == FIXED else state[_LAW_RATE]) / 8.0


@njit(cache=True, error_model="numpy")
def advance_pacing(
    kinds: np.ndarray,
    states: np.ndarray,
    settings: np.ndarray,
    base: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
    capacity: np.ndarray,
    buffer: float,
    step: float,
    packet: float,
    noise: np.ndarray,
    per_bin: int,
    delivered: np.ndarray,
    delay: np.ndarray,
    highest: np.ndarray,
    lost: np.ndarray,
    rates: np.ndarray,
) -> None:
    """Run n flows for T steps; fills bins of `per_bin` steps.

    kinds, base, starts, stops (n,) and states, settings (n, ·) are of flows [s]; capacity (T,) [bit/s]; buffer,
    packet [byte]; noise (n, N) is added to RTTs in turn [s]. delivered, lost (n, K) [byte], delay (K,) mean queueing
    delay of the link, highest (K,) backlog [byte], rates (n, K) mean sending rates [bit/s].
    """
    n, T = len(kinds), len(capacity)
    lags = np.empty(n, dtype=np.int64)
    for i in range(n):
        lags[i] = max(round(base[i] / step), 1)
    depth = lags.max() + 1
    departed, waited, dropped = np.zeros((n, depth)), np.zeros(depth), np.zeros((n, depth))
    waiting, sent, acked, gone = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    rate, arrivals = np.zeros(n), np.zeros(n)
    backlog = 0.0
    for t in range(T):
        time, k, at = t * step, t // per_bin, t % depth
        total = 0.0
        for i in range(n):
            on = starts[i] <= time < stops[i]
            if on:
                back = (t - lags[i]) % depth
                got, fell = (departed[i, back], dropped[i, back]) if t >= lags[i] else (0.0, 0.0)
                rtt = base[i] + (waited[back] if t >= lags[i] else 0.0)
                seen = rtt + noise[i, t % noise.shape[1]]
                # With what is acknowledged now, so that it is rate times RTT where nothing changes.
                flight = sent[i] - acked[i] - gone[i]
                acked[i] += got
                gone[i] += fell
                if rate[i] == 0.0:  # before the first RTT
                    rate[i] = _first_rate(kinds[i], states[i], settings[i], packet, base[i])
                if kinds[i] == CUBIC:
                    if got > 0.0 or fell > 0.0:
                        rate[i] = _acknowledge_cubic(states[i], time, rtt, got, fell, packet)
                    # A window bounds what is in flight, whatever its rate.
                    room = max(states[i, _WINDOW] * packet - flight, 0.0)
                    arrivals[i] = min(1.2 * rate[i] * step, room)
                elif got > 0.0 and kinds[i] == ARX:
                    rate[i] = arx_step(states[i], settings[i], time, seen) / 8.0
                elif got > 0.0 and kinds[i] == TARGET:
                    rate[i] = target_step(states[i], settings[i], time, seen, acked[i], flight, gone[i]) / 8.0
                if kinds[i] != CUBIC:
                    arrivals[i] = rate[i] * step
            else:
                arrivals[i] = 0.0
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
        waited[at] = 8.0 * backlog / capacity[t]
        delay[k] += waited[at] / per_bin
        highest[k] = max(highest[k], backlog)
