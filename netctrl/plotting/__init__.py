"""matplotlib figures of records, made without pyplot: no global state changes and no window opens."""

from __future__ import annotations

from netctrl.model.io.display import plot as draw
from netctrl.plotting.fabrics import fabric_figure
from netctrl.plotting.identification import identification_figure, model_figure
from netctrl.plotting.loops import arc_figure, bode, stability_map
from netctrl.plotting.networks import network_figure
from netctrl.plotting.pacing import pacing_figure
from netctrl.plotting.results import time_series
from netctrl.plotting.tracking import tracking_figure
from netctrl.plotting.windows import window_figure

__all__ = [
    "arc_figure",
    "bode",
    "draw",
    "fabric_figure",
    "identification_figure",
    "model_figure",
    "network_figure",
    "pacing_figure",
    "stability_map",
    "time_series",
    "tracking_figure",
    "window_figure",
]
