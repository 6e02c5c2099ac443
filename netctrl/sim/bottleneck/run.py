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
    is_lone_window,
    jain_index,
)
from netctrl.sim.bottleneck.kernel import advance_pacing
from netctrl.sim.bottleneck.losses import WindowFlows, run_windows
from netctrl.units import BITS_PER_BYTE, packets_per_second

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

_STEPS_PER_RTT, _STEPS_OF_WINDOWS = 40, 10
_MAX_PLACES = 1e8
_MAX_S, _MAX_RATE = 1e9, 1e15
_NOISES = 4099


class CoDel(NamedTuple):
    """Queue that drops packets once they wait for longer than a target, RFC 8289, or when its buffer is full."""

    target_s: float = 0.005
    interval_s: float = 0.1


class BottleneckLink(NamedTuple):
    """Time series of n flows through one bottleneck, in K bins.

    `netctrl.sim.bottleneck.run.simulate_bottleneck` returns it.

    Examples
    --------
    >>> import netctrl
    >>> from netctrl.sim.bottleneck.run import simulate_bottleneck
    >>> flows = [netctrl.CubicFlow(rtt_s=0.02), netctrl.RenoFlow(rtt_s=0.02)]
    >>> run = simulate_bottleneck(flows, 10e6, buffer_bytes=25e3, duration_s=20.0)
    >>> run.throughput.shape, bool(run.throughput.sum(axis=0).max() <= 10.001e6)
    ((2, 1000), True)
    """

    time_s: np.ndarray
    """(K,) ends of the bins [s]."""
    throughput: np.ndarray
    """(n, K) delivered by each flow [bit/s]."""
    rates: np.ndarray
    """(n, K) sent by each flow [bit/s]."""
    delay_s: np.ndarray
    """(K,) mean queueing delay [s]."""
    backlog_bytes: np.ndarray
    """(K,) largest backlog [byte]."""
    lost_bytes: np.ndarray
    """(n, K) lost by each flow [byte]."""
    capacity: np.ndarray
    """(K,) mean capacity [bit/s]."""
    states: tuple[np.ndarray, ...]
    """State of each flow's law at the end; for a flow without a law, the state of its congestion window."""
    rtt_s: np.ndarray
    """(n, K) last RTT that each flow measured in a bin, noise included [s], with windows alone the mean; NaN where it
    measured none."""


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

    Where all flows have windows that nothing paces and the queue is drop-tail, losses are single packets of flows drawn
    at random (`netctrl.sim.bottleneck.loss_kernel`), else what overflows is lost by all in proportion.

    Parameters
    ----------
    flows : sequence of PacedFlow, RateCap, BbrFlow, CubicFlow, RenoFlow, HTcpFlow
        At least one; their RTTs are without queueing.
    capacity : float or callable
        Capacity of the bottleneck [bit/s], or a function from times (T,) [s] to capacities (T,), all above 0.
    buffer_bytes : float
        What may wait.
    duration_s : float
    queue : str or CoDel
        "droptail", "codel" with its RFC's parameters, or a `CoDel` with others.
    bin_s : float, optional
        Bin of the result; by default the longest RTT.
    noise_s : float
        Mean of the exponential noise added to each RTT sample of a law or BBR.
    packet_size_bytes : float
        Packet size of windows, of first packets, and of CoDel's drops.
    random : numpy.random.Generator, optional
        Required with noise. Of losses at random: by default a generator with seed 0.

    Raises
    ------
    InvalidValue
        An argument out of bounds; noise without a generator; more than 1e8 steps of a 40th of the shortest RTT, or of a
        tenth with windows alone; windows alone over a drop-tail buffer below 16 packets.
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
        raise InvalidValue("random", random, "a numpy.random.Generator, required with noise")
    codel = _codel(queue)
    kinds, states, settings, windows, memories = flow_arrays(flows, packet)
    alone = codel[0] == inf and all(map(is_lone_window, flows))
    width = float(base.max()) if bin_s is None else checked_number("bin_s", bin_s, seconds, above=0.0, at_most=_MAX_S)
    step = float(base.min()) / (_STEPS_OF_WINDOWS if alone else _STEPS_PER_RTT)
    per_bin = max(ceil(width / step * (1.0 - 1e-9)) if alone else round(width / step), 1)
    step = width / per_bin if alone else step
    K = max(ceil(duration / step / per_bin), 1)
    T, n = K * per_bin, len(flows)
    if T > _MAX_PLACES or n * (float(base.max()) / step + 2.0) > _MAX_PLACES:
        takes = f"at most {_MAX_PLACES:g} steps of {step:g} s, a part of the shortest RTT"
        raise InvalidValue("duration_s", duration_s, f"{takes}, in a run, and for each flow's longest RTT")
    link = _capacities(capacity, step * np.arange(T))
    if alone:
        senders = WindowFlows(windows, memories, base, starts, stops, np.arange(n))
        random = np.random.default_rng(0) if random is None else random
        found = _windows_alone(senders, link, buffer / packet, step, per_bin, packet, random)
        return found._replace(rtt_s=found.rtt_s + random.exponential(noise, found.rtt_s.shape))
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


def _windows_alone(
    flows: WindowFlows,
    link: np.ndarray,
    buffer: float,
    step: float,
    per_bin: int,
    packet: float,
    random: np.random.Generator,
) -> BottleneckLink:
    """Windows over a drop-tail queue; `link` in bit/s, `buffer` in packets."""
    capacity = packets_per_second(link, packet)
    record = run_windows(flows, capacity, np.zeros(len(link)), buffer, step, per_bin, random)
    delivered, lost = record.delivered * packet, record.lost * packet
    width, K = step * per_bin, len(record.arrived)
    rtts = np.full(delivered.shape, np.nan)
    np.divide(record.trip, record.delivered, out=rtts, where=record.delivered > 0.0)
    return BottleneckLink(
        time_s=width * np.arange(1, K + 1),
        throughput=BITS_PER_BYTE * delivered / width,
        rates=BITS_PER_BYTE * (delivered + lost) / width,
        delay_s=record.waited,
        backlog_bytes=record.backlog[0] * packet,
        lost_bytes=lost,
        capacity=link.reshape(K, per_bin).mean(axis=1),
        states=tuple(flows.row),
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
        raise InvalidValue("capacity", "other values", "rates above 0 in bit/s, one for each time")
    return link


def _codel(queue: str | CoDel) -> tuple[float, float]:
    """CoDel's target and interval; a target of inf means no CoDel."""
    if isinstance(queue, str) and queue == "droptail":
        return inf, 1.0
    requested = CoDel() if isinstance(queue, str) and queue == "codel" else queue
    if not isinstance(requested, CoDel):
        raise InvalidValue("queue", queue, "droptail, codel, or a CoDel")
    target, interval = (checked_number("queue", value, "times above 0, in seconds", above=0.0) for value in requested)
    return target, interval
