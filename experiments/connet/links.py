"""What the figures of the CONNET paper share: its model, its gains as printed, ours, and the pictures."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

import netctrl
from netctrl.model.datasets import model_path
from netctrl.model.identified import read_model
from netctrl.model.law import LqgLaw, TrackingLaw
from netctrl.scenario.builders import access_link
from netctrl.scenario.network.track import Track, infeasible
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.offers import Bursts, Stream
from netctrl.sim.packet.run import simulate_packets, simulate_rates

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


class Run(NamedTuple):
    """A link under a law: means of each period of 1 s, T of them."""

    time_s: np.ndarray
    mean_delay_ms: np.ndarray
    mean_jitter_ms: np.ndarray
    rate_bit_per_s: np.ndarray
    """Commanded to all regulators together; inf: they were open."""
    other_bit_per_s: np.ndarray
    """Throughput of all regulated traffic."""
    reference: np.ndarray
    """(T, 2) [ms]"""
    infeasible: list[tuple[float, float]]
    """Times in which the reference can't be had [s]."""


def source(place: int, *, offered: float = 1e8, sender: Mapping[str, Any] | None = None) -> netctrl.Flow:
    """A host with two flows behind regulators, of UDP unless a sender is given."""
    common = {"id": f"source{place}", "count": 2, "ecn": False, "priority": 1}
    if sender is not None:
        return netctrl.Flow(**common, rtt=2e-3, sender={"rate": offered / 2.0, **sender})
    return netctrl.Flow(**common, offers=Bursts(rate=offered / 2.0))


def link_of(*sources: Mapping[str, Any], **fields: Any) -> Scenario:
    """The paper's link with these regulated sources, by default three equal ones."""
    flows = [source(place, **each) for place, each in enumerate(sources or ({}, {}, {}))]
    premium = netctrl.Flow(id="premium", ecn=False, offers=Stream(rate=1e6, spacing="constant"))
    return access_link(**{"flows": (premium, *flows), "control": Track()} | fields)


def tracked(law: TrackingLaw, scenario: Scenario, reference: ArrayLike, start: float = 0.0) -> Run:
    """As the paper measures for its own law, and with means over periods for ours."""
    measured = "average" if isinstance(law, LqgLaw) else "period"
    asked = {"measured": measured, "reference": np.atleast_2d(np.asarray(reference)), "start": start}
    control = msgspec.structs.replace(scenario.control, **asked)
    return of_signals(law, simulate_packets(scenario.replace(control=control), design=law))


def of_signals(law: TrackingLaw, result: Result) -> Run:
    """A run from the table of a result."""
    signals = result.tables["signals"]
    return Run(
        signals["time"],
        1e3 * signals["mean delay"],
        1e3 * signals["mean jitter"],
        signals["rate"],
        signals["throughput"],
        np.column_stack([signals[f"reference {name}"] for name in law.outputs]),
        infeasible(signals["at limit"], law.interval_s),
    )


def opened(scenario: Scenario, rate: float = np.inf) -> dict[str, np.ndarray]:
    """Signals of a link whose regulators let a rate through [bit/s]."""
    return dict(simulate_rates(scenario, rate).tables["signals"])


def stretch(values: Sequence[Sequence[float]], seconds: float) -> np.ndarray:
    """References that hold for so long each, (T, 2)."""
    return np.repeat(np.asarray(values, dtype=float), round(seconds), axis=0)


def table(runs: Mapping[str, Run]) -> pd.DataFrame:
    """Series of all runs, one below the other."""
    parts = []
    for name, run in runs.items():
        columns = ("time_s", "rate_bit_per_s", "mean_delay_ms", "mean_jitter_ms", "other_bit_per_s")
        frame = pd.DataFrame({column: getattr(run, column) for column in columns}).assign(run=name)
        frame["delay_reference_ms"], frame["jitter_reference_ms"] = run.reference.T
        parts.append(frame)
    return pd.concat(parts, ignore_index=True)


def picture(title: str, runs: Mapping[str, Run], said: str, *, top: float | None = None) -> Figure:
    """Delay, jitter and R of runs by name against time, with references."""
    figure = Figure(figsize=(9.0, 7.2), layout="constrained")
    panels = figure.subplots(3, 1, sharex=True)
    for name, run in runs.items():
        style = {"color": COLOURS[name.split(",")[0]], "lw": 1.0, "label": name}
        panels[0].plot(run.time_s, run.mean_delay_ms, **style)
        panels[1].plot(run.time_s, run.mean_jitter_ms, **style)
        rate = np.where(np.isinf(run.rate_bit_per_s), np.nan, run.rate_bit_per_s / 1e6)
        panels[2].plot(run.time_s, rate, **style)
    first = next(iter(runs.values()))
    for axes, column in zip(panels, first.reference.T, strict=False):
        axes.step(first.time_s, column, where="pre", color="#222222", lw=1.0, ls="--", label="reference")
    finish(figure, panels, title, said, columns=3)
    if top is not None:
        panels[0].set_ylim(top=top)
    return figure


def finish(figure: Figure, panels: Sequence[Axes], title: str, said: str, *, columns: int) -> None:
    """Labels, grids and legend of delay, jitter and R against time, once all is drawn: axes begin at 0."""
    for axes, label in zip(panels, ("delay [ms]", "jitter [ms]", "R [Mbit/s]"), strict=True):
        axes.set_ylabel(label)
        axes.grid(color="#dddddd", lw=0.6)
        axes.set_ylim(bottom=0.0)
    panels[0].legend(fontsize=8, ncols=columns)
    panels[-1].set_xlabel("time [s]")
    figure.suptitle(title, fontsize=12)
    figure.supxlabel(said, fontsize=8.5)


def settled(run: Run, start: int, stop: int) -> tuple[float, float]:
    """Mean delay and jitter of some periods [ms]."""
    return float(run.mean_delay_ms[start:stop].mean()), float(run.mean_jitter_ms[start:stop].mean())
