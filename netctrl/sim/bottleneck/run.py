"""Paced flows, TCP's flows and fixed caps through one bottleneck, as a fluid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, inf
from typing import NamedTuple

import numpy as np

from netctrl.errors import InvalidValue, checked_number
from netctrl.sim.bottleneck.flows import (
    FLOW_TAKES,
    BbrFlow,
    CubicFlow,
    HTcpFlow,
    PacedFlow,
    PacingFlow,
    RateCap,
    RenoFlow,
    flow_arrays,
    jain_index,
)
from netctrl.sim.bottleneck.kernel import advance_pacing
from netctrl.units import BITS_PER_BYTE

__all__ = [
    "BbrFlow",
    "BottleneckLink",
    "CoDel",
    "CubicFlow",
    "HTcpFlow",
    "PacedFlow",
    "RateCap",
    "RenoFlow",
    "jain_index",
    "simulate_bottleneck",
]

_STEPS_PER_RTT = 40
_MAX_PLACES = 1e8
_MAX_S, _MAX_RATE = 1e9, 1e15
_NOISES = 4099


class CoDel(NamedTuple):
    """A queue that drops packets once they wait for longer than a target, RFC 8289; beyond the buffer it drops too."""

    target_s: float = 0.005
    interval_s: float = 0.1


class BottleneckLink(NamedTuple):
    """What n flows did, in K bins."""

    time_s: np.ndarray
    """(K,) where bins end."""
    throughput: np.ndarray
    """(n, K) [bit/s]"""
    rates: np.ndarray
    """(n, K) what was sent [bit/s]."""
    delay_s: np.ndarray
    """(K,) mean queueing delay."""
    backlog_bytes: np.ndarray
    """(K,) the highest."""
    lost_bytes: np.ndarray
    """(n, K)"""
    capacity: np.ndarray
    """(K,) mean [bit/s]."""
    states: tuple[np.ndarray, ...]
    """Of the laws at the end; of flows without one, what is remembered of their window."""
    rtt_s: np.ndarray
    """(n, K) the last RTT that each flow saw in a bin, with its noise; NaN: none."""


def simulate_bottleneck(
    flows: Sequence[PacingFlow],
    capacity: float | Callable[[np.ndarray], np.ndarray],
    buffer_bytes: float,
    duration_s: float,
    *,
    queue: str | CoDel = "droptail",
    bin_s: float | None = None,
    noise_s: float = 0.0,
    packet_size_bytes: float = 1500.0,
    random: np.random.Generator | None = None,
) -> BottleneckLink:
    """Run flows through one bottleneck.

    Parameters
    ----------
    flows : sequence of PacedFlow, RateCap, BbrFlow, CubicFlow, RenoFlow, HTcpFlow
        At least one; their RTTs are without queueing.
    capacity : float or callable
        Of the bottleneck [bit/s]; or from times (T,) [s] to capacities (T,), all above 0.
    buffer_bytes : float
        What may wait.
    duration_s : float
    queue : str or CoDel
        "droptail", "codel" as its RFC has it, or a CoDel of one's own.
    bin_s : float, optional
        Of the result; by default the longest RTT.
    noise_s : float
        Mean of what is added to each RTT sample that a law or BBR sees, exponentially distributed.
    packet_size_bytes : float
        Of windows, of first packets, and of what CoDel drops.
    random : numpy.random.Generator, optional
        Where there is noise.

    Raises
    ------
    InvalidValue
        An argument out of its bounds; noise without a generator; more than 1e8 steps of a 40th of the shortest RTT.
    """
    if not isinstance(flows, Sequence) or not flows:
        raise InvalidValue("flows", flows, "a sequence of at least one flow")
    seconds = f"a time above 0, and at most {_MAX_S:g}, in seconds"
    base, starts, stops = np.array([_times(flow) for flow in flows]).T
    duration = checked_number("duration_s", duration_s, seconds, above=0.0, at_most=_MAX_S)
    buffer = checked_number("buffer_bytes", buffer_bytes, "a size above 0 in bytes", above=0.0)
    noise = checked_number("noise_s", noise_s, "a time of at least 0, in seconds", at_least=0.0)
    packet = checked_number("packet_size_bytes", packet_size_bytes, "a size above 0 in bytes", above=0.0)
    if not isinstance(random, np.random.Generator) and (noise > 0.0 or random is not None):
        raise InvalidValue("random", random, "a numpy.random.Generator, where there is noise")
    step = float(base.min()) / _STEPS_PER_RTT
    width = float(base.max()) if bin_s is None else checked_number("bin_s", bin_s, seconds, above=0.0, at_most=_MAX_S)
    per_bin = max(round(width / step), 1)
    K = max(ceil(duration / step / per_bin), 1)
    T, n = K * per_bin, len(flows)
    if T > _MAX_PLACES or n * (float(base.max()) / step + 2.0) > _MAX_PLACES:
        takes = f"at most {_MAX_PLACES:g} steps of a 40th of the shortest RTT, {step:g} s"
        raise InvalidValue("duration_s", duration_s, f"{takes}, in a run, and for each flow's longest RTT")
    codel = _codel(queue)
    link = _capacities(capacity, step * np.arange(T))
    kinds, states, settings, windows, memories = flow_arrays(flows, packet)
    noises = np.zeros((n, 1)) if random is None else random.exponential(noise, (n, _NOISES))
    tables = {name: np.zeros((n, K)) for name in ("delivered", "lost", "rates")}
    delay, highest, rtts = np.zeros(K), np.zeros(K), np.full((n, K), np.nan)
    advance_pacing(
        *(kinds, states, settings, windows, memories, base),
        *(starts, stops, link, buffer, *codel, step, packet, noises, per_bin),
        *(tables["delivered"], delay, highest, tables["lost"], tables["rates"], rtts),
    )
    width = step * per_bin
    laws = [isinstance(flow, PacedFlow | RateCap | BbrFlow) for flow in flows]
    return BottleneckLink(
        time_s=width * np.arange(1, K + 1),
        throughput=BITS_PER_BYTE * tables["delivered"] / width,
        rates=tables["rates"],
        delay_s=delay,
        backlog_bytes=highest,
        lost_bytes=tables["lost"],
        capacity=link.reshape(K, per_bin).mean(axis=1),
        states=tuple(states[i] if law else memories[i] for i, law in enumerate(laws)),
        rtt_s=rtts,
    )


def _times(flow: PacingFlow) -> tuple[float, float, float]:
    """RTT, start and end of a flow [s]; the end may be inf."""
    if not isinstance(flow, PacingFlow):
        raise InvalidValue("flows", type(flow).__name__, FLOW_TAKES)
    rtt = checked_number("flows", flow.rtt_s, "an RTT from 1 ns to 1e6 s, in seconds", at_least=1e-9, at_most=1e6)
    start = checked_number("flows", flow.start_s, "a start_s: a time in seconds")
    return rtt, start, inf if flow.stop_s == inf else checked_number("flows", flow.stop_s, "a stop_s: a time, or inf")


def _capacities(capacity: float | Callable[[np.ndarray], np.ndarray], times: np.ndarray) -> np.ndarray:
    """(T,) [bit/s]"""
    takes = f"a rate above 0, and at most {_MAX_RATE:g}, in bit/s, or a function of times (T,) to such rates (T,)"
    if not callable(capacity):
        return np.full(len(times), checked_number("capacity", capacity, takes, above=0.0, at_most=_MAX_RATE))
    try:
        link = np.array(capacity(times), dtype=float)
    except (TypeError, ValueError) as error:
        raise InvalidValue("capacity", f"a function that fails: {error}", takes) from None
    if link.shape != times.shape or not ((link > 0.0) & (link <= _MAX_RATE)).all():
        raise InvalidValue("capacity", "values that aren't", "rates above 0 in bit/s, one for each time")
    return link


def _codel(queue: str | CoDel) -> tuple[float, float]:
    """CoDel's target and interval; a target of inf: there is none."""
    if isinstance(queue, str) and queue == "droptail":
        return inf, 1.0
    requested = CoDel() if isinstance(queue, str) and queue == "codel" else queue
    if not isinstance(requested, CoDel):
        raise InvalidValue("queue", queue, "droptail, codel, or a CoDel")
    target, interval = (checked_number("queue", value, "times above 0, in seconds", above=0.0) for value in requested)
    return target, interval
