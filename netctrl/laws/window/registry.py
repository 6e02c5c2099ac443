"""Every law of a data centre's senders, by number: what a kernel calls, and how a scheme's record becomes its row."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np

from netctrl.jit import njit
from netctrl.laws.window.dcqcn import dcqcn
from netctrl.laws.window.dctcp import dctcp
from netctrl.laws.window.explicit import riccati_gain
from netctrl.laws.window.hpcc import hpcc
from netctrl.laws.window.interface import BASE_RTT, BDP, LINE_RATE, PARAMETERS, Acknowledged
from netctrl.laws.window.mpcc import mpcc
from netctrl.laws.window.records import VARIANTS, Dcqcn, Dctcp, FixedWindow, Hpcc, Mpcc, Scheme, Timely
from netctrl.laws.window.timely import timely

__all__ = ["DCQCN", "LAWS", "law_of", "law_paths", "mpcc_gains", "parameters_of", "start_window", "step_law"]

FIXED, MPCC, HPCC, DCTCP, TIMELY, DCQCN = range(6)

LAWS: dict[type, int] = {FixedWindow: FIXED, Mpcc: MPCC, Hpcc: HPCC, Dctcp: DCTCP, Timely: TIMELY, Dcqcn: DCQCN}
"""Record of a scheme -> the number that `step_law` takes."""

_NS = 1e9


@njit(cache=True, error_model="numpy", nogil=True)
def step_law(
    law: int,
    parameters: np.ndarray,
    paths: np.ndarray,
    gains: np.ndarray,
    state: np.ndarray,
    history: np.ndarray,
    seen: Acknowledged,
    hops: np.ndarray,
) -> None:
    """One acknowledgement to the law of this number."""
    if law == MPCC:
        mpcc(parameters, paths, gains, state, history, seen, hops)
    elif law == HPCC:
        hpcc(parameters, paths, gains, state, history, seen, hops)
    elif law == DCTCP:
        dctcp(parameters, paths, gains, state, history, seen, hops)
    elif law == TIMELY:
        timely(parameters, paths, gains, state, history, seen, hops)
    elif law == DCQCN:
        dcqcn(parameters, paths, gains, state, history, seen, hops)


def law_of(scheme: Scheme) -> int:
    """The number of a scheme's law."""
    return LAWS[type(scheme)]


def parameters_of(scheme: Scheme, *, payload: float, wire: float, rtt_ns: float) -> np.ndarray:
    """A scheme's row of parameters, (PARAMETERS,).

    Parameters
    ----------
    payload, wire : float
        Of a full packet [byte].
    rtt_ns : float
        Of the longest path without queues.
    """
    row = np.zeros(PARAMETERS)
    values = _PARAMETERS[type(scheme)](scheme, payload, wire, rtt_ns)
    row[: len(values)] = values
    return row


def _fixed(scheme: FixedWindow, payload: float, wire: float, longest: float) -> tuple[float, ...]:
    return ()


def _mpcc(scheme: Mpcc, payload: float, wire: float, longest: float) -> tuple[float, ...]:
    packet, window = scheme.packet_size or wire, scheme.window or 0.0
    return VARIANTS.index(scheme.variant), packet, window, scheme.horizon, scheme.queue_weight, scheme.window_weight


def _hpcc(scheme: Hpcc, payload: float, wire: float, longest: float) -> tuple[float, ...]:
    T = longest if scheme.rtt is None else scheme.rtt * _NS
    return scheme.target, scheme.stages, scheme.increase, T, scheme.paced


def _dctcp(scheme: Dctcp, payload: float, wire: float, longest: float) -> tuple[float, ...]:
    return scheme.gain, payload, scheme.slow_start


def _timely(scheme: Timely, payload: float, wire: float, longest: float) -> tuple[float, ...]:
    times = scheme.low * _NS, scheme.high * _NS
    return scheme.patched, scheme.smoothing, scheme.decrease, *times, scheme.increase, scheme.segment, scheme.fast_after


def _dcqcn(scheme: Dcqcn, payload: float, wire: float, longest: float) -> tuple[float, ...]:
    times = scheme.alpha_interval * _NS, scheme.increase_interval * _NS
    rates = scheme.increase, scheme.hyper_increase, scheme.least_rate
    return scheme.gain, *times, scheme.increase_bytes, scheme.fast_stages, *rates


_PARAMETERS: dict[type, Callable[..., tuple[float, ...]]] = {
    FixedWindow: _fixed,
    Mpcc: _mpcc,
    Hpcc: _hpcc,
    Dctcp: _dctcp,
    Timely: _timely,
    Dcqcn: _dcqcn,
}


def law_paths(scheme: Scheme, paths: np.ndarray) -> np.ndarray:
    """The kinds of path as a scheme takes them: MPCC's record may have a P_BD and a D of its own."""
    if not isinstance(scheme, Mpcc):
        return paths
    own = paths.copy()
    if scheme.rtt is not None:
        own[:, BASE_RTT] = scheme.rtt * _NS
        own[:, BDP] = own[:, LINE_RATE] * scheme.rtt / 8.0
    if scheme.bdp is not None:
        own[:, BDP] = scheme.bdp
    return own


def mpcc_gains(scheme: Scheme, paths: np.ndarray, wire: float, most: int) -> np.ndarray:
    """K[N] of MPCC for each kind of path, shape (C, most + 1), with its `window` as W of (A.1); of other schemes zeros.

    B = Δt N R_in/(8 P_BD) with Δt = packet · D/W, (3.4) and (A.1).
    """
    if not isinstance(scheme, Mpcc) or scheme.window is None:
        return np.zeros((len(paths), 2))
    gains = np.zeros((len(paths), most + 1))
    weights = scheme.horizon, scheme.queue_weight, scheme.window_weight
    for row, path in enumerate(paths):
        step = (scheme.packet_size or wire) * path[BASE_RTT] / scheme.window
        for flows in range(1, most + 1):
            gains[row, flows] = riccati_gain(step * flows * path[LINE_RATE] / (8.0 * _NS * path[BDP]), *weights)
    return gains


def start_window(scheme: Scheme, path: np.ndarray) -> float:
    """W of a new flow [byte]; inf is no limit. All start at line rate."""
    if isinstance(scheme, FixedWindow | Dcqcn):
        return inf if scheme.window is None else scheme.window
    if isinstance(scheme, Mpcc | Dctcp) and scheme.initial_window is not None:
        return scheme.initial_window
    if isinstance(scheme, Timely):
        return inf
    if isinstance(scheme, Hpcc) and scheme.rtt is not None:
        return path[LINE_RATE] * scheme.rtt / 8.0
    return path[BDP]
