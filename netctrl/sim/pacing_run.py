"""Paced flows, TCP's flows and fixed caps through one bottleneck, as a fluid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, inf
from typing import NamedTuple

import numpy as np

from netctrl.errors import InvalidValue, checked_number
from netctrl.sim.pacing_flows import (
    BbrFlow,
    CubicFlow,
    FixedRate,
    HTcpFlow,
    PacedFlow,
    PacingFlow,
    RenoFlow,
    flow_arrays,
    jain_index,
)
from netctrl.sim.pacing_kernel import advance_pacing
from netctrl.units import BITS_PER_BYTE

__all__ = [
    "BbrFlow",
    "CoDel",
    "CubicFlow",
    "FixedRate",
    "HTcpFlow",
    "PacedFlow",
    "PacedLink",
    "RenoFlow",
    "jain_index",
    "simulate_pacing",
]

_STEPS_PER_RTT = 40
_NOISES = 4099


class CoDel(NamedTuple):
    """A queue that drops packets once they wait for longer than a target, RFC 8289; beyond the buffer it drops too."""

    target_s: float = 0.005
    interval_s: float = 0.1


class PacedLink(NamedTuple):
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


def simulate_pacing(
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
) -> PacedLink:
    """Run flows through one bottleneck.

    Parameters
    ----------
    flows : sequence of PacedFlow, FixedRate, BbrFlow, CubicFlow, RenoFlow, HTcpFlow
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
        An argument out of its bounds; noise without a generator.
    """
    if not flows:
        raise InvalidValue("flows", "none", "at least one flow")
    seconds = "a time above 0, in seconds"
    base = np.array([checked_number("flows", flow.rtt_s, f"an RTT: {seconds}", above=0.0) for flow in flows])
    duration = checked_number("duration_s", duration_s, seconds, above=0.0)
    buffer = checked_number("buffer_bytes", buffer_bytes, "a size above 0 in bytes", above=0.0)
    noise = checked_number("noise_s", noise_s, "a time of at least 0, in seconds", at_least=0.0)
    packet = checked_number("packet_size_bytes", packet_size_bytes, "a size above 0 in bytes", above=0.0)
    if noise > 0.0 and random is None:
        raise InvalidValue("random", None, "a numpy.random.Generator, where there is noise")
    step = float(base.min()) / _STEPS_PER_RTT
    width = float(base.max()) if bin_s is None else checked_number("bin_s", bin_s, seconds, above=0.0)
    per_bin = max(round(width / step), 1)
    K = max(ceil(duration / step / per_bin), 1)
    T, n = K * per_bin, len(flows)
    link = _capacities(capacity, step * np.arange(T))
    kinds, states, settings, windows, memories = flow_arrays(flows, packet)
    noises = np.zeros((n, 1)) if random is None else random.exponential(noise, (n, _NOISES))
    tables = {name: np.zeros((n, K)) for name in ("delivered", "lost", "rates")}
    delay, highest, rtts = np.zeros(K), np.zeros(K), np.full((n, K), np.nan)
    advance_pacing(
        *(kinds, states, settings, windows, memories, base),
        *(np.array([getattr(flow, name) for flow in flows], dtype=float) for name in ("start_s", "stop_s")),
        *(link, buffer, *_codel(queue), step, packet, noises, per_bin),
        *(tables["delivered"], delay, highest, tables["lost"], tables["rates"], rtts),
    )
    width = step * per_bin
    laws = [isinstance(flow, PacedFlow | FixedRate | BbrFlow) for flow in flows]
    return PacedLink(
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


def _capacities(capacity: float | Callable[[np.ndarray], np.ndarray], times: np.ndarray) -> np.ndarray:
    """(T,) [bit/s]"""
    given = capacity(times) if callable(capacity) else np.full(len(times), float(capacity))
    link = np.array(given, dtype=float)
    if link.shape != times.shape or not (np.isfinite(link) & (link > 0.0)).all():
        raise InvalidValue("capacity", "values that aren't", "rates above 0 in bit/s, one for each time")
    return link


def _codel(queue: str | CoDel) -> tuple[float, float]:
    """CoDel's target and interval; a target of inf: there is none."""
    if queue == "droptail":
        return inf, 1.0
    asked = CoDel() if queue == "codel" else queue
    if not isinstance(asked, CoDel):
        raise InvalidValue("queue", queue, "droptail, codel, or a CoDel")
    target, interval = (checked_number("queue", value, "times above 0, in seconds", above=0.0) for value in asked)
    return target, interval
