"""A sender's window in a CoDel queue, from one event to the next: kernel of `netctrl.plants.codel.cycle`.

Time is that at which packets come to the queue: who comes at u while D waits leaves at u + D. Then the law judges it,
and its sender hears of it the path's delay later. A drop shortens the wait of those behind it until it is sent again.
"""

from __future__ import annotations

from math import floor, inf

import numpy as np

from netctrl.core.jit import njit
from netctrl.laws.aqm.codel import CodelDrops, CodelParameters, codel_head
from netctrl.laws.record import compiled_view, width
from netctrl.laws.tcp.rows import window_acts
from netctrl.laws.tcp.sender import Acked, TcpWindow

_window, _codel = compiled_view(TcpWindow), compiled_view(CodelDrops)
_head = njit(codel_head, error_model="numpy")
_grow, _cut = window_acts(error_model="numpy")
STATES = width(CodelDrops)
"""Length of a row of the law's state."""
_BEHIND = (2.0 - 1e-9, 1.0 - 1e-9)
"""Packets behind one that is dropped, at least: of all queues below CoDel, of its own below COBALT."""
_PENDING = 64
_ACKS = 3.0
"""Later packets that are acknowledged before a missing one counts as lost."""
_STEPS, _BURST_STEPS = 8.0, 4.0
"""In a round trip, and in a burst."""
_TINY = 1e-9


@njit(cache=True, error_model="numpy")
def run_codel(
    law: int,
    row: np.ndarray,
    head: np.ndarray,
    kept: np.ndarray,
    rate: float,
    path: float,
    shared: float,
    codel: CodelParameters,
    spread: bool,
    marks: bool,
    warm: int,
    cuts: int,
) -> tuple[int, float, float, int]:
    """Pieces that were kept, time in which the link was busy in them, mean time between their cuts [s], and all cuts.

    Parameters
    ----------
    law : int
        Place of the sender in WINDOWS.
    row, head : (k,) array
        Its window, and the law's state; changed. They are the caller's, since numba frees what only a view refers to.
    kept : (n, 2) array
        Delay and duration of pieces [s], written; n is the greatest number of steps.
    rate, path, shared : float
        C [packet/s], the round trip without waiting [s], and the rate of all queues [packet/s].
    codel : CodelParameters
    spread, marks : bool
        As in `codel_cycle`.
    warm, cuts : int
        Cuts before pieces are kept, and cuts of which they are.
    """
    state, drops, cobalt = _window(row), _codel(head), codel.cobalt > 0.0
    heard, sent = np.empty(_PENDING), np.empty(_PENDING)
    first, pending = 0, 0
    fill, tiny = rate * path, _TINY * path
    time, flight, until, cut, fall = 0.0, 0.0, 0.0, -inf, 1.0
    # Packets that are on the path without waiting: all of it, or the burst that is under way since `began`.
    base, began, silent, drained = fill, 0.0, False, 0.0
    done, n, used, start, end = 0, 0, 0.0, 0.0, 0.0
    before = row.copy()
    for _ in range(len(kept)):
        missing = 0.0 if marks else float(pending)
        whole = floor(state.window)
        flight = max(flight, whole)
        delay = max(flight - missing - base - drained, 0.0) / rate
        trip, leaves = path + delay, time + delay
        if not silent and pending < _PENDING:
            alone = rate * delay < _BEHIND[1] and not marks if cobalt else shared * delay < _BEHIND[0]
            if _head(drops, leaves, delay, alone, codel):
                k = (first + pending) % _PENDING
                heard[k], sent[k] = leaves + path + (0.0 if marks else _ACKS / rate), time
                pending += 1
                continue
        if pending and heard[first] <= time:
            lost = sent[first]
            first, pending = (first + 1) % _PENDING, pending - 1
            if not marks and time < until and lost <= cut:  # the sender recovers until all of these are sent again
                until = time + trip
            if lost > cut and time >= until:  # one cut for all of which it hears until then
                cut, until = time, time + trip
                state.cut_s, state.rtt = time, trip
                _cut(law, row)
                state.threshold = state.window
                fall = max(1.0 - state.window / flight, 0.1) if spread else 1.0
                silent, drained = False, 0.0
                done += 1
                start = time if done == warm else start
                end = time
                if done == warm + cuts:
                    break
            continue
        falls = flight > whole
        if falls and spread and flight - missing <= fill:  # what the path lacks of then on is lost at once
            flight = whole
            continue
        h, busy = trip / _STEPS, 1.0
        if falls:
            to = max(whole, fill + missing) if spread else whole
            h = min(h, (flight - to) / (fall * rate))
            h = min(h, delay / fall) if delay > 0.0 else h
            busy = 1.0 if delay > 0.0 or spread else 0.0
        elif spread:
            busy = min(flight / fill, 1.0)
        elif base < fill:
            ends = began + (path if silent else base / rate)
            if ends - time < tiny and silent:
                silent, began, drained, time = False, ends, 0.0, ends
                base = min(fill, max(flight - missing, 0.0))
                continue
            if ends - time < tiny:
                silent = True
                continue
            busy = 1.0 if delay > 0.0 or not silent else 0.0
            h = min(ends - time, base / rate / _BURST_STEPS if not silent else delay if delay > 0.0 else path)
        if pending:
            h = min(h, heard[first] - time)
        if time < until:
            h = min(h, until - time)
        if delay >= codel.target and not silent:
            due = drops.next_drop if cobalt or drops.dropping == 1.0 else drops.first_above
            if due > leaves:
                h = min(h, due - leaves)
        h = max(h, tiny)
        if time >= until and not silent:  # grows, at most to where the target is reached
            before[:] = row
            level = floor(base + rate * codel.target + missing) + 1.0
            for attempt in range(2):
                _grow(law, row, Acked(h * rate * busy, time + h - state.cut_s, trip, True))
                if attempt == 1 or before[0] >= level or state.window <= level:
                    break
                h = max(h * (level - before[0]) / (state.window - before[0]), tiny)
                row[:] = before
        if done >= warm:
            kept[n, 0], kept[n, 1] = delay, h
            n += 1
            used += h * busy
        if falls:
            flight -= fall * rate * h
            if not spread and flight <= whole + _TINY:
                flight, base, began = whole, min(fill, whole), time + h
        elif silent and delay > 0.0:
            drained += rate * h
        time += h
    return n, used, (end - start) / max(done - warm, 1), done
