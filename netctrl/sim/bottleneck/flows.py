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

__all__ = [
    "FLOW_TAKES",
    "BbrFlow",
    "CubicFlow",
    "HTcpFlow",
    "PacedFlow",
    "PacingFlow",
    "RateCap",
    "RenoFlow",
    "flow_arrays",
    "jain_index",
]


class PacedFlow(NamedTuple):
    """A flow whose rate a law sets; with a window, the law's rate is a cap on what the window would send."""

    law: PacingLaw
    rtt_s: float
    start_s: float = 0.0
    stop_s: float = inf
    window: str | None = None
    """"reno", "cubic" or "htcp", as where a sender's pacing rate is set beside its congestion control; None: there is
    nothing but the law."""


class RateCap(NamedTuple):
    """A flow with a fixed cap, and nothing else or a window underneath, as `PacedFlow` has it."""

    rate_bit_per_s: float
    rtt_s: float
    start_s: float = 0.0
    stop_s: float = inf
    window: str | None = None


class CubicFlow(NamedTuple):
    """A flow with Cubic's window, RFC 9438."""

    rtt_s: float
    start_s: float = 0.0
    stop_s: float = inf


class RenoFlow(NamedTuple):
    """A flow with NewReno's window, RFC 5681 and 6582."""

    rtt_s: float
    start_s: float = 0.0
    stop_s: float = inf


class HTcpFlow(NamedTuple):
    """A flow with H-TCP's window, draft-leith-tcp-htcp-06."""

    rtt_s: float
    start_s: float = 0.0
    stop_s: float = inf


class BbrFlow(NamedTuple):
    """A flow with BBR, version 1, draft-cardwell-iccrg-bbr-congestion-control-00."""

    rtt_s: float
    start_s: float = 0.0
    stop_s: float = inf
    first_place: int = 2
    """Of 8, where its cycle of gains begins; 1, the drain, excluded. BBR draws it; here nothing is drawn."""


FLOW_TAKES = "PacedFlow with a pacing law, RateCap, BbrFlow, CubicFlow, RenoFlow or HTcpFlow"
PacingFlow = PacedFlow | RateCap | BbrFlow | CubicFlow | RenoFlow | HTcpFlow
_OWN_WINDOWS: dict[type, str] = {CubicFlow: "cubic", RenoFlow: "reno", HTcpFlow: "htcp"}


def jain_index(shares: Any) -> float:
    """(Σx)²/(n Σx²) of n shares: 1 where all are alike, 1/n where one has all."""
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
