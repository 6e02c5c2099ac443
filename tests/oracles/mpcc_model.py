"""MPCC from its model, without a table: windows for any packet, and queues predicted from what is under way."""

from __future__ import annotations

import numpy as np

from netctrl.laws.window.explicit import decide_window
from netctrl.laws.window.riccati import riccati_gain


def decide_from_model(
    queue: float,
    flows: int,
    window: float,
    packet: float,
    rtt: float,
    rate_in: float,
    rate_out: float,
    bdp: float,
    horizon: int,
    queue_weight: float,
    window_weight: float,
) -> float:
    """The same without a table: dt and B follow from the window of now, floored at one packet [byte, s, bit/s]."""
    dt = packet * rtt / max(window, packet)
    B = dt * flows * rate_in / (8.0 * bdp)
    c = min(rate_out * bdp / (rate_in * flows), bdp)
    return decide_window(queue, riccati_gain(B, horizon, queue_weight, window_weight), c, B, flows, bdp)


def predict_queue(queue: float, inputs: np.ndarray, input_gain: float) -> float:
    """Q̄ = Q + B Σ u of the inputs under way, oldest first, (τ,) [byte]: never below 0 on the way.

    Source: MPCC thesis (3.7); its printed sum lets the queue go below 0.
    """
    for u in inputs:
        queue = max(queue + input_gain * u, 0.0)
    return queue
