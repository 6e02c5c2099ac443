"""Records to matplotlib figures. Figures are made without pyplot: nothing global changes and no window opens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matplotlib.figure import Figure

from netctrl.errors import InvalidValue
from netctrl.frequency.stability_map import StabilityMap
from netctrl.model.artifact import ArcDesign, ConnetDesign, HftracDesign, MpccDesign, PacingDesign
from netctrl.model.fabric_result import FabricResult
from netctrl.model.fit import IdentificationResult
from netctrl.model.identified import IdentifiedModel
from netctrl.model.loop import DelayLoop
from netctrl.model.network_result import NetworkResult
from netctrl.model.simulation import SimulationResult
from netctrl.plotting.fabrics import fabric_figure, fabric_result
from netctrl.plotting.identification import identification_figure, model_figure
from netctrl.plotting.loops import arc_bode, arc_figure, bode, stability_map
from netctrl.plotting.networks import network_figure, network_series
from netctrl.plotting.pacing import pacing_figure
from netctrl.plotting.simulation import result_series, time_series
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
    "network_series",
    "pacing_figure",
    "stability_map",
    "time_series",
    "tracking_figure",
    "window_figure",
]

_FIGURES: dict[type, Callable[..., Figure]] = {
    ArcDesign: arc_bode,
    HftracDesign: network_figure,
    ConnetDesign: tracking_figure,
    MpccDesign: window_figure,
    PacingDesign: pacing_figure,
    DelayLoop: bode,
    StabilityMap: stability_map,
    SimulationResult: result_series,
    NetworkResult: network_series,
    FabricResult: fabric_result,
    IdentificationResult: identification_figure,
    IdentifiedModel: model_figure,
}


def draw(record: Any, **options: Any) -> Figure:
    """The figure of one record: of a design, a loop, a map, a model, an identification or a run."""
    for kind, figure in _FIGURES.items():
        if isinstance(record, kind):
            return figure(record, **options)
    raise InvalidValue("record", type(record).__name__, f"one of {', '.join(kind.__name__ for kind in _FIGURES)}")
