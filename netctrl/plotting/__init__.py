"""matplotlib figures of records, made without pyplot: no global state changes and no window opens."""

from __future__ import annotations

from netctrl.model.io.display import plot as draw
from netctrl.plotting.loops import arc_figure, bode, stability_map
from netctrl.plotting.networks import network_figure
from netctrl.plotting.senders import pacing_figure, window_figure
from netctrl.plotting.simulations import slow_down_figure, time_series
from netctrl.plotting.tracking import identification_figure, model_figure, tracking_figure

__all__ = [
    "arc_figure",
    "bode",
    "draw",
    "identification_figure",
    "model_figure",
    "network_figure",
    "pacing_figure",
    "slow_down_figure",
    "stability_map",
    "time_series",
    "tracking_figure",
    "window_figure",
]
