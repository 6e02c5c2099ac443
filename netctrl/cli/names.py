"""Arguments that are a file, or the name of one that comes with netctrl; shells complete the names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from netctrl.datasets import models, networks, scenarios, sweeps, traces

__all__ = ["ModelName", "NetworkName", "ScenarioName", "SweepName", "TraceName"]

if TYPE_CHECKING:
    ModelName = NetworkName = ScenarioName = SweepName = TraceName = str
else:  # any text is taken: cyclopts tries str first
    ModelName = str | Literal[models()]
    NetworkName = str | Literal[networks()]
    ScenarioName = str | Literal[scenarios()]
    SweepName = str | Literal[sweeps()]
    TraceName = str | Literal[traces()]
