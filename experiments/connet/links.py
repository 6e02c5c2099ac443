"""What the figures of the CONNET paper share: its model, its gains as printed, ours, and the pictures."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import netctrl
from netctrl.datasets import model_path
from netctrl.model.identified import read_model
from netctrl.model.law import LqgLaw, TrackingLaw
from netctrl.scenario.access.flows import PremiumFlow, RegulatedFlows
from netctrl.scenario.access.plan import AccessLinkTracking
from netctrl.scenario.access.scenario import access_link
from netctrl.scenario.scenario import Scenario
from netctrl.sim.access.track import track_access_link

PRINTED, LQI = "printed gains", "LQI"
COLOURS = {PRINTED: "#b45f06", LQI: "#1f4e9c"}
LIMITS = [(0.0, 95.0)]
"""Footnote 8 [Mbit/s]."""
SEEDS = (1, 2, 3, 4, 5)


def printed_model() -> netctrl.IdentifiedModel:
    """Eq. (1) with the matrices of Section 3.2."""
    return read_model(model_path("connet-paper"))


def printed_law() -> LqgLaw:
    """K and L as Section 4 prints them."""
    law = netctrl.connet(printed_model(), method="paper", limits=LIMITS).law
    gains = {"K": np.array([[-15.7017, -9.3098]]), "L": np.array([[-0.1020, -0.1649], [0.1008, -0.6491]])}
    return LqgLaw(**{name: getattr(law, name) for name in law.__struct_fields__} | gains)


def laws() -> dict[str, TrackingLaw]:
    """The published law and ours, which tracks the delay."""
    return {PRINTED: printed_law(), LQI: netctrl.connet(printed_model(), track="delay", limits=LIMITS).law}


def link_of(*sources: Mapping[str, Any], **fields: Any) -> Scenario:
    """The paper's link with these regulated sources, by default three equal ones."""
    regulated = (RegulatedFlows(id=f"source{place}", **each) for place, each in enumerate(sources or ({}, {}, {})))
    return access_link(flows=(PremiumFlow(), *regulated), **fields)


def tracked(law: TrackingLaw, scenario: Scenario, reference, **options) -> AccessLinkTracking:
    """As the paper measures for its own law, and with means over periods for ours."""
    return track_access_link(
        scenario, law, reference, measured="average" if isinstance(law, LqgLaw) else "period", **options
    )


def stretch(values: Sequence[Sequence[float]], seconds: float) -> np.ndarray:
    """References that hold for so long each, (T, 2)."""
    return np.repeat(np.asarray(values, dtype=float), round(seconds), axis=0)


def table(runs: Mapping[str, AccessLinkTracking]) -> pd.DataFrame:
    """Series of all runs, one below the other."""
    parts = []
    for name, run in runs.items():
        frame = run.result.to_pandas().assign(run=name)
        frame["delay_reference_ms"], frame["jitter_reference_ms"] = run.reference.T
        parts.append(frame)
    return pd.concat(parts, ignore_index=True)


def picture(title: str, runs: Mapping[str, AccessLinkTracking], said: str, *, top: float | None = None) -> Figure:
    """Delay, jitter and R of runs by name against time, with references."""
    figure = Figure(figsize=(9.0, 7.2), layout="constrained")
    panels = figure.subplots(3, 1, sharex=True)
    for name, run in runs.items():
        result, style = run.result, {"color": COLOURS[name.split(",")[0]], "lw": 1.0, "label": name}
        panels[0].plot(result.time_s, result.mean_delay_ms, **style)
        panels[1].plot(result.time_s, result.mean_jitter_ms, **style)
        rate = np.where(np.isinf(result.rate_bit_per_s), np.nan, result.rate_bit_per_s / 1e6)
        panels[2].plot(result.time_s, rate, **style)
    first = next(iter(runs.values()))
    for axes, column in zip(panels, first.reference.T, strict=False):
        axes.step(first.result.time_s, column, where="pre", color="#222222", lw=1.0, ls="--", label="reference")
    for axes, label in zip(panels, ("delay [ms]", "jitter [ms]", "R [Mbit/s]"), strict=True):
        axes.set_ylabel(label)
        axes.grid(color="#dddddd", lw=0.6)
        axes.set_ylim(bottom=0.0)
    if top is not None:
        panels[0].set_ylim(top=top)
    panels[0].legend(fontsize=8, ncols=3)
    panels[-1].set_xlabel("time [s]")
    figure.suptitle(title, fontsize=12)
    figure.supxlabel(said, fontsize=8.5)
    return figure


def settled(run: AccessLinkTracking, start: int, stop: int) -> tuple[float, float]:
    """Mean delay and jitter of some periods [ms]."""
    result = run.result
    return float(result.mean_delay_ms[start:stop].mean()), float(result.mean_jitter_ms[start:stop].mean())
