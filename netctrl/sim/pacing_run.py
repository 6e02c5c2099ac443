"""Paced flows, Cubic flows and fixed caps through one bottleneck, as a fluid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, inf
from typing import Any, NamedTuple

import numpy as np

from netctrl.errors import InvalidValue, checked_number
from netctrl.model.gain import ArxPacer, PacingLaw, TargetRttPacer
from netctrl.runtime.pacing import pacer, start_pacing
from netctrl.sim.pacing_kernel import ARX, CUBIC, FIXED, TARGET, advance_pacing
from netctrl.units import BITS_PER_BYTE

__all__ = ["CubicFlow", "FixedRate", "PacedFlow", "PacedLink", "jain_index", "simulate_pacing"]

_STEPS_PER_RTT = 40
_NOISES = 4099
_FIRST_WINDOW = 10.0  # packets, RFC 6928


class PacedFlow(NamedTuple):
    """A flow whose rate a law sets."""

    law: PacingLaw
    rtt_s: float
    start_s: float = 0.0
    stop_s: float = inf


class CubicFlow(NamedTuple):
    """A flow with Cubic's window."""

    rtt_s: float
    start_s: float = 0.0
    stop_s: float = inf


class FixedRate(NamedTuple):
    """A flow with a fixed cap, and nothing else."""

    rate_bit_per_s: float
    rtt_s: float
    start_s: float = 0.0
    stop_s: float = inf


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
    """Of the laws at the end; of other flows, what their kernel kept."""


def jain_index(shares: Any) -> float:
    """(Σx)²/(n Σx²) of n shares: 1 where all are alike, 1/n where one has all."""
    x = np.asarray(shares, dtype=float)
    return float(x.sum() ** 2 / (len(x) * (x @ x)))


def simulate_pacing(
    flows: Sequence[PacedFlow | CubicFlow | FixedRate],
    capacity: float | Callable[[np.ndarray], np.ndarray],
    buffer_bytes: float,
    duration_s: float,
    *,
    bin_s: float | None = None,
    noise_s: float = 0.0,
    packet_size_bytes: float = 1500.0,
    random: np.random.Generator | None = None,
) -> PacedLink:
    """Run flows through one drop-tail bottleneck.

    Parameters
    ----------
    flows : sequence of PacedFlow, CubicFlow, FixedRate
        At least one; their RTTs are without queueing.
    capacity : float or callable
        Of the bottleneck [bit/s]; or from times (T,) [s] to capacities (T,), all above 0.
    buffer_bytes : float
        What may wait.
    duration_s : float
    bin_s : float, optional
        Of the result; by default the longest RTT.
    noise_s : float
        Mean of what is added to each RTT sample, exponentially distributed.
    packet_size_bytes : float
        Of Cubic's windows and of first packets.
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
    if noise > 0.0 and random is None:
        raise InvalidValue("random", None, "a numpy.random.Generator, where there is noise")
    step = float(base.min()) / _STEPS_PER_RTT
    width = float(base.max()) if bin_s is None else checked_number("bin_s", bin_s, seconds, above=0.0)
    per_bin = max(round(width / step), 1)
    K = max(ceil(duration / step / per_bin), 1)
    T, n = K * per_bin, len(flows)
    times = step * np.arange(T)
    link = np.full(T, float(capacity)) if not callable(capacity) else np.array(capacity(times), dtype=float)
    if link.shape != (T,) or not (np.isfinite(link) & (link > 0.0)).all():
        raise InvalidValue("capacity", "values that aren't", "rates above 0 in bit/s, one for each time")
    kinds, states, settings = _flows(flows)
    noises = np.zeros((n, 1)) if random is None else random.exponential(noise, (n, _NOISES))
    tables = {name: np.zeros((n, K)) for name in ("delivered", "lost", "rates")}
    delay, highest = np.zeros(K), np.zeros(K)
    advance_pacing(
        kinds,
        states,
        settings,
        base,
        np.array([flow.start_s for flow in flows]),
        np.array([flow.stop_s for flow in flows]),
        link,
        buffer,
        step,
        packet_size_bytes,
        noises,
        per_bin,
        tables["delivered"],
        delay,
        highest,
        tables["lost"],
        tables["rates"],
    )
    width = step * per_bin
    return PacedLink(
        time_s=width * np.arange(1, K + 1),
        throughput=BITS_PER_BYTE * tables["delivered"] / width,
        rates=tables["rates"],
        delay_s=delay,
        backlog_bytes=highest,
        lost_bytes=tables["lost"],
        capacity=link.reshape(K, per_bin).mean(axis=1),
        states=tuple(states),
    )


def _flows(flows: Sequence[PacedFlow | CubicFlow | FixedRate]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Kinds (n,), states and settings (n, ·), as long as the longest."""
    made = [_flow(flow) for flow in flows]
    states, settings = (np.zeros((len(made), max(len(each[place]) for each in made))) for place in (1, 2))
    for i, (_, state, setting) in enumerate(made):
        states[i, : len(state)], settings[i, : len(setting)] = state, setting
    return np.array([each[0] for each in made]), states, settings


def _flow(flow: PacedFlow | CubicFlow | FixedRate) -> tuple[int, np.ndarray, np.ndarray]:
    if isinstance(flow, CubicFlow):
        return CUBIC, np.array([_FIRST_WINDOW, 0.0, 0.0, inf, flow.rtt_s, 0.0]), np.zeros(1)
    if isinstance(flow, FixedRate):
        takes = "a rate above 0 in bit/s"
        return FIXED, np.zeros(1), np.array([checked_number("flows", flow.rate_bit_per_s, takes, above=0.0)])
    if isinstance(flow.law, ArxPacer | TargetRttPacer):
        kind = ARX if isinstance(flow.law, ArxPacer) else TARGET
        return kind, start_pacing(flow.law).values, pacer(flow.law).settings
    raise InvalidValue("flows", type(flow).__name__, "PacedFlow, CubicFlow or FixedRate")
