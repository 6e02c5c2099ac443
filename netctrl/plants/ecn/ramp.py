"""Limit cycles of DCTCP and DCQCN where marks rise steeply with the queue, by their fluids in time.

Where the rise is narrower than the queue's own cycle, or the queue stands above it, small deviations say nothing: the
queue swings over the whole of it. The fluid in time doesn't depend on the slope, so that what it shows moves
continuously with the thresholds, down to a step. Source of the fluids: `netctrl.plants.ecn.dctcp` and `dcqcn`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, inf, sqrt

import numpy as np

from netctrl.plants.ecn.dcqcn import DcqcnSender, dcqcn_equilibrium
from netctrl.plants.ecn.dctcp import Cycle

__all__ = ["dcqcn_ramp_cycle", "dctcp_ramp_cycle"]

Points = Sequence[tuple[float, float]]
"""(queue [packet], probability), rising; two at one queue are a jump."""

_STEPS = 40
"""In a round trip."""
_CYCLES = 40
"""Cycles that are left out, and that are described after them."""
_MOST_STEPS = 1_000_000
_REST = 1e-4
"""Swing over the mean queue below which the queue is at rest."""


def dctcp_ramp_cycle(
    flows: float,
    rate: float,
    rtt_s: float,
    marks: Points,
    gain: float = 1.0 / 16.0,
    forgetting: float = 0.0,
    *,
    spaced: bool = False,
) -> Cycle:
    """Where the queue of DCTCP's flows ends below marks that rise with it: a cycle, or rest.

    Parameters
    ----------
    flows, rate, rtt_s : float
        N, C [packet/s] and d without the queue [s].
    marks : sequence of (float, float)
        Points (queue [packet], probability) of the law, straight in between.
    gain : float
        g
    forgetting : float
        −ln(1 − weight) of the average by which packets are marked; 0: the present queue.
    spaced : bool
        Whether 2p/(1 + p) of packets are marked.

    Returns
    -------
    Cycle
        In C d and d; the period is 0 at rest.

    Examples
    --------
    >>> step, narrow = (dctcp_ramp_cycle(4.0, 83333.0, 1e-3, [(20.0, 0.0), (end, 1.0)]) for end in (20.0, 20.001))
    >>> round(step.highest * 83.333, 2), abs(step.highest - narrow.highest) < 1e-4
    (23.98, True)
    """
    from netctrl.plants.ecn.ramp_kernel import run_dctcp_ramp  # Numba loads slowly

    product = rate * rtt_s
    points = np.array([(q / product, p) for q, p in marks])
    b, longest = product / flows, float(points[-1, 0])
    trip = 1.0 + float(points[0, 0])
    # A cycle takes some sqrt(W/2) round trips, in which an average may lag.
    cycle = (3.0 + sqrt(0.5 * b * (1.0 + longest))) * (1.0 + longest)
    cycle += 3.0 / (forgetting * product) if forgetting else 0.0
    h = min(trip / _STEPS, 0.1 / (forgetting * product) if forgetting else inf)
    steps = min(2 * ceil(_CYCLES * cycle / h), _MOST_STEPS)
    return _described(run_dctcp_ramp(b, points, gain, forgetting * product, spaced, points[0, 0], h, steps), h)


def dcqcn_ramp_cycle(
    sender: DcqcnSender, flows: float, rate: float, rtt_s: float, marks: Points, *, arriving: bool = False
) -> Cycle:
    """The same of DCQCN's flows, whose marks overtake the queue unless packets are marked as they come."""
    from netctrl.plants.ecn.ramp_kernel import run_dcqcn_ramp

    each = rate / flows
    points = np.array([(q / flows, p) for q, p in marks])
    at = dcqcn_equilibrium(sender, each)
    start = np.array([points[0, 0], 1.02 * each, float(at.target), float(at.alpha)])
    h = 2.0 * min(rtt_s, sender.notification_s, sender.timer_s, sender.alpha_s) / _STEPS
    # Recovery takes F + 1 increases of either kind, and rates agree with alpha after 1/g updates.
    recovery = min(sender.timer_s, sender.counter / each) * (sender.stages + 1.0)
    cycle = 2.0 * recovery + rtt_s + sender.alpha_s / sender.gain / 10.0
    steps = min(2 * ceil(_CYCLES * cycle / h), _MOST_STEPS)
    found = run_dcqcn_ramp(each, points, tuple(sender), rtt_s, arriving, start, h, steps)
    scale = np.array([flows, flows, 1.0])[:, None]
    found = found * scale / np.array([rate * rtt_s, rate * rtt_s, 1.0])[:, None]
    return _described(found, h / rtt_s)


def _described(found: np.ndarray, h: float) -> Cycle:
    """The second half of a run, in steps of h."""
    queue, unused, marked = found[:, found.shape[1] // 2 :]
    highest, lowest, mean = float(queue.max()), float(queue.min()), float(queue.mean())
    period = 0.0
    if highest - lowest > _REST * mean:
        up = np.flatnonzero((queue[1:] > mean) & (queue[:-1] <= mean))
        period = h * float(up[-1] - up[0]) / (len(up) - 1) if len(up) > 1 else h * len(queue)
    return Cycle(highest, lowest, mean, period, float(marked.mean()), float(unused.mean()) / h)
