"""Many senders' windows in one CoDel queue, each by itself: kernel of `netctrl.plants.codel.cycle.codel_flows`.

Time is that of `netctrl.plants.codel.kernel`. Whose packet is dropped is drawn, in proportion to what flows have
in flight; bursts of single flows are smooth in the sum of many.
"""

from __future__ import annotations

from math import floor, inf

import numpy as np

from netctrl.core.jit import njit
from netctrl.laws.aqm.codel import CodelDrops, CodelParameters, codel_head
from netctrl.laws.record import compiled_view
from netctrl.laws.tcp.rows import window_acts
from netctrl.laws.tcp.sender import Acked, TcpWindow

_window, _codel = compiled_view(TcpWindow), compiled_view(CodelDrops)
_head = njit(codel_head, error_model="numpy")
_grow, _cut = window_acts(error_model="numpy")
_PENDING = 1 << 14
_ACKS = 3.0
_STEPS = 8.0
_TINY = 1e-9
_FACTOR, _SUMMAND = np.uint64(6364136223846793005), np.uint64(1442695040888963407)
"""Of a linear congruential generator modulo 2^64 (Knuth, MMIX), whose upper bits are used."""


@njit(cache=True, error_model="numpy")
def run_flows(
    law: int,
    rows: np.ndarray,
    head: np.ndarray,
    kept: np.ndarray,
    rate: float,
    path: float,
    codel: CodelParameters,
    spread: bool,
    marks: bool,
    warm: float,
    end: float,
) -> tuple[int, float, int]:
    """Pieces that were kept, time in which the link was busy in them [s], and cuts of windows in it.

    Parameters
    ----------
    law : int
        Place of the senders in WINDOWS.
    rows, head : (N, k), (k,) array
        Their windows, and CoDel's state; changed.
    kept : (n, 2) array
        Delay and duration of pieces [s], written; n is the greatest number of steps.
    rate, path : float
        C [packet/s], and the round trip without waiting [s].
    codel : CodelParameters
    spread, marks : bool
        As in `codel_cycle`.
    warm, end : float
        Times from which and until which pieces are kept [s].
    """
    N, draws = len(rows), np.uint64(1)
    drops = _codel(head)
    heard, sent, whose = np.empty(_PENDING), np.empty(_PENDING), np.empty(_PENDING, dtype=np.int64)
    first, pending = 0, 0
    cut, until, flight, fall = np.full(N, -inf), np.zeros(N), np.zeros(N), np.ones(N)
    fill = rate * path
    time, n, used, cuts = 0.0, 0, 0.0, 0
    for _ in range(len(kept)):
        total = 0.0
        for i in range(N):
            flight[i] = max(flight[i], floor(_window(rows[i]).window))
            total += flight[i]
        missing = 0.0 if marks else float(pending)
        delay = max(total - missing - fill, 0.0) / rate
        trip, leaves = path + delay, time + delay
        while pending < _PENDING and _head(drops, leaves, delay, rate * delay < 2.0 - _TINY, codel):
            draws = draws * _FACTOR + _SUMMAND
            draw, i = float(draws >> np.uint64(11)) * 2.0**-53 * total, 0
            while i < N - 1 and draw >= flight[i]:
                draw -= flight[i]
                i += 1
            k = (first + pending) % _PENDING
            heard[k] = leaves + path + (0.0 if marks else _ACKS * trip / max(flight[i], 1.0))
            sent[k], whose[k] = time, i
            pending += 1
        while pending and heard[first] <= time:
            i, lost = whose[first], sent[first]
            first, pending = (first + 1) % _PENDING, pending - 1
            if not marks and time < until[i] and lost <= cut[i]:
                until[i] = time + trip
            if lost > cut[i] and time >= until[i]:
                state = _window(rows[i])
                cut[i], until[i] = time, time + trip
                state.cut_s, state.rtt = time, trip
                _cut(law, rows[i])
                cuts += 1 if time >= warm else 0
                state.threshold = state.window
                fall[i] = max(1.0 - state.window / flight[i], 0.1) if spread else 1.0
        h = trip / _STEPS
        if pending:
            h = min(h, heard[first] - time)
        if delay >= codel.target:
            due = drops.next_drop if drops.dropping == 1.0 else drops.first_above
            if due > leaves:
                h = min(h, due - leaves)
        h = max(h, 1e-4 * path)
        for i in range(N):
            state = _window(rows[i])
            acked = h * flight[i] / trip
            if flight[i] > floor(state.window):
                flight[i] = max(flight[i] - fall[i] * acked, floor(state.window))
            if time >= until[i]:
                _grow(law, rows[i], Acked(acked, time + h - state.cut_s, trip, True))
        if time >= warm:
            kept[n, 0], kept[n, 1] = delay, h
            n += 1
            used += h * min((total - missing) / fill, 1.0)
        time += h
        if time >= end:
            break
    return n, used, cuts
