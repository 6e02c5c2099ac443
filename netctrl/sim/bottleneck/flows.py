"""Flows of the pacing simulation, and the arrays that its kernel takes."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np

from netctrl.errors import InvalidValue, checked_number, checked_whole
from netctrl.laws.pacing.pacing import pacer, start_pacing
from netctrl.laws.tcp.bbr import BBR_CYCLE, bbr_start
from netctrl.model.law import ArxPacer, PacingLaw, TargetRttPacer
from netctrl.sim.bottleneck.kernel import ARX, BBR, FIXED, TARGET, WORK_CONSERVING
from netctrl.sim.bottleneck.window import NO_WINDOW, WINDOWS, first_window


class PacedFlow(NamedTuple):
    """A flow whose sending rate is set by a pacing law.

    With a congestion window underneath, the law's rate caps what the window would send.

    Examples
    --------
    >>> import netctrl
    >>> from netctrl.sim.bottleneck.run import simulate_bottleneck
    >>> law = netctrl.pacing(mode="target-rtt", rtt_s=0.02, bottleneck_bit_per_s=10e6, buffer_bytes=1e5).law
    >>> run = simulate_bottleneck([netctrl.PacedFlow(law, rtt_s=0.02)], 10e6, buffer_bytes=1e5, duration_s=10.0)
    >>> bool(run.throughput[0, -100:].mean() > 9.5e6), float(run.lost_bytes.sum())
    (True, 0.0)
    """

    law: PacingLaw
    """The pacing law, as in the `law` of a Design by `netctrl.pacing`."""
    rtt_s: float
    """Round-trip time without queueing [s]."""
    start_s: float = 0.0
    """Time of the first packet [s]."""
    stop_s: float = inf
    """Time after which nothing is sent [s]."""
    window: str | None = None
    """Congestion window underneath: "reno", "cubic", "htcp", or None for the law alone."""


class RateCap(NamedTuple):
    """A flow that sends at a fixed rate, or whose congestion window is capped at that rate.

    Examples
    --------
    >>> import netctrl
    >>> from netctrl.sim.bottleneck.run import simulate_bottleneck
    >>> flows = [netctrl.RateCap(4e6, rtt_s=0.02), netctrl.CubicFlow(rtt_s=0.02)]
    >>> run = simulate_bottleneck(flows, 10e6, buffer_bytes=1e5, duration_s=10.0)
    >>> [round(rate / 1e6, 1) for rate in run.throughput[:, -100:].mean(axis=1).tolist()]
    [4.0, 6.0]
    """

    rate_bit_per_s: float
    """The fixed rate, or cap [bit/s]."""
    rtt_s: float
    """Round-trip time without queueing [s]."""
    start_s: float = 0.0
    """Time of the first packet [s]."""
    stop_s: float = inf
    """Time after which nothing is sent [s]."""
    window: str | None = None
    """Congestion window underneath: "reno", "cubic", "htcp", or None for the fixed rate alone."""


class CubicFlow(NamedTuple):
    """A TCP flow with CUBIC's congestion window.

    Examples
    --------
    >>> import netctrl
    >>> from netctrl.sim.bottleneck.run import simulate_bottleneck
    >>> run = simulate_bottleneck([netctrl.CubicFlow(rtt_s=0.02)], 10e6, buffer_bytes=25e3, duration_s=20.0)
    >>> bool(run.throughput[0, -500:].mean() > 9e6)
    True

    References
    ----------
    RFC 9438.
    """

    rtt_s: float
    """Round-trip time without queueing [s]."""
    start_s: float = 0.0
    """Time of the first packet [s]."""
    stop_s: float = inf
    """Time after which nothing is sent [s]."""


class RenoFlow(NamedTuple):
    """A TCP flow with NewReno's congestion window.

    Examples
    --------
    >>> import netctrl
    >>> from netctrl.sim.bottleneck.run import simulate_bottleneck
    >>> flows = [netctrl.RenoFlow(rtt_s=0.02), netctrl.RenoFlow(rtt_s=0.02, start_s=5.0)]
    >>> run = simulate_bottleneck(flows, 10e6, buffer_bytes=25e3, duration_s=20.0)
    >>> run.throughput.shape, bool(run.throughput[1, :200].any())
    ((2, 1000), False)

    References
    ----------
    RFC 5681, RFC 6582.
    """

    rtt_s: float
    """Round-trip time without queueing [s]."""
    start_s: float = 0.0
    """Time of the first packet [s]."""
    stop_s: float = inf
    """Time after which nothing is sent [s]."""


class HTcpFlow(NamedTuple):
    """A TCP flow with H-TCP's congestion window.

    Examples
    --------
    >>> import netctrl
    >>> from netctrl.sim.bottleneck.run import simulate_bottleneck
    >>> run = simulate_bottleneck([netctrl.HTcpFlow(rtt_s=0.02)], 10e6, buffer_bytes=25e3, duration_s=20.0)
    >>> bool(run.throughput[0, -500:].mean() > 9e6)
    True

    References
    ----------
    draft-leith-tcp-htcp-06.
    """

    rtt_s: float
    """Round-trip time without queueing [s]."""
    start_s: float = 0.0
    """Time of the first packet [s]."""
    stop_s: float = inf
    """Time after which nothing is sent [s]."""


class BbrFlow(NamedTuple):
    """A flow with BBR, version 1.

    Examples
    --------
    >>> import netctrl
    >>> from netctrl.sim.bottleneck.run import simulate_bottleneck
    >>> run = simulate_bottleneck([netctrl.BbrFlow(rtt_s=0.02)], 10e6, buffer_bytes=25e3, duration_s=10.0)
    >>> bool(run.throughput[0, -100:].mean() > 9e6), bool(run.delay_s[-100:].mean() < 0.005)
    (True, True)

    References
    ----------
    draft-cardwell-iccrg-bbr-congestion-control-00.
    """

    rtt_s: float
    """Round-trip time without queueing [s]."""
    start_s: float = 0.0
    """Time of the first packet [s]."""
    stop_s: float = inf
    """Time after which nothing is sent [s]."""
    first_place: int = 2
    """Phase, 0 to 7, in which the cycle of gains begins; 1, the drain, is excluded. BBR draws it at random."""


FLOW_TAKES = "PacedFlow with a pacing law, RateCap, BbrFlow, CubicFlow, RenoFlow or HTcpFlow"
PacingFlow = PacedFlow | RateCap | BbrFlow | CubicFlow | RenoFlow | HTcpFlow
OPEN = 1e15
"""A cap that never binds [bit/s]."""
_OWN_WINDOWS: dict[type, str] = {CubicFlow: "cubic", RenoFlow: "reno", HTcpFlow: "htcp"}


def jain_index(shares: Any) -> float:
    """Jain's fairness index (Σx)²/(n Σx²) of n shares: 1 for equal shares, 1/n if one has all."""
    x = np.asarray(shares, dtype=float)
    return float(x.sum() ** 2 / (len(x) * (x @ x)))


def flow_arrays(
    flows: Sequence[PacingFlow], packet: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Kinds of laws (n,), states and settings (n, ·) as long as the longest, kinds of windows (n,), memories (n, 10) of
    windows."""
    made = [_law(flow, packet) for flow in flows]
    states, settings = (np.zeros((len(made), max(len(each[place]) for each in made))) for place in (1, 2))
    for i, (_, state, setting) in enumerate(made):
        states[i, : len(state)], settings[i, : len(setting)] = state, setting
    kinds, windows = np.array([each[0] for each in made]), np.array([_window(flow) for flow in flows])
    return kinds, states, settings, windows, np.array([first_window(flow.rtt_s) for flow in flows])


def is_lone_window(flow: PacingFlow) -> bool:
    """Whether a flow has a window and nothing paces it."""
    if isinstance(flow, RateCap):
        return flow.window is not None and flow.rate_bit_per_s >= OPEN
    return type(flow) in _OWN_WINDOWS


def _window(flow: PacingFlow) -> int:
    name = _OWN_WINDOWS.get(type(flow), getattr(flow, "window", None))
    if name is None:
        return NO_WINDOW
    if not isinstance(name, str) or name not in WINDOWS:
        raise InvalidValue("flows", f"the window {name!r}", f"one of {', '.join(WINDOWS)}, or None")
    return WINDOWS.index(name)


def _law(flow: PacingFlow, packet: float) -> tuple[int, np.ndarray, np.ndarray]:
    if type(flow) in _OWN_WINDOWS:
        return WORK_CONSERVING, np.zeros(1), np.zeros(1)
    if isinstance(flow, RateCap):
        takes = "a rate above 0 in bit/s"
        return FIXED, np.zeros(1), np.array([checked_number("flows", flow.rate_bit_per_s, takes, above=0.0)])
    if isinstance(flow, BbrFlow):
        takes = f"a place of the cycle from 0 to {len(BBR_CYCLE) - 1}, other than 1"
        place = checked_whole("flows", flow.first_place, takes, at_least=0, at_most=len(BBR_CYCLE) - 1)
        if place == 1:
            raise InvalidValue("flows", place, takes)
        return BBR, bbr_start(flow.rtt_s, packet, place), np.zeros(1)
    if isinstance(flow, PacedFlow) and isinstance(flow.law, ArxPacer | TargetRttPacer):
        kind = ARX if isinstance(flow.law, ArxPacer) else TARGET
        return kind, start_pacing(flow.law).values, pacer(flow.law).settings
    raise InvalidValue("flows", type(flow).__name__, FLOW_TAKES)
