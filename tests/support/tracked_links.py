"""Access links under a law or at given rates, in few words."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from netctrl.model.design.design import MpcDesign
from netctrl.model.law import TrackingLaw
from netctrl.scenario.builders import access_link
from netctrl.scenario.network.track import Track, infeasible
from netctrl.scenario.scenario import Scenario
from netctrl.sim.packet.run import simulate_packets, simulate_rates


class Tracked(NamedTuple):
    """What a law did, in its own units: T periods, m inputs, p outputs."""

    measured: np.ndarray
    """(T, p)"""
    given: np.ndarray
    """(T, p)"""
    commanded: np.ndarray
    """(T, m)"""
    rate: np.ndarray
    """(T,) [bit/s]"""
    burst: np.ndarray
    """(T,)"""
    infeasible: list[tuple[float, float]]
    """[s]"""
    tables: Any


def tracked(
    scenario: Scenario, law: TrackingLaw | MpcDesign, reference: Any, *, schedule: Any = None, **control: Any
) -> Tracked:
    """A scenario under a law, which measures means over periods unless `control` says otherwise."""
    asked = Track(**{"reference": np.atleast_2d(reference), "measured": "period"} | control)
    result = simulate_packets(scenario.replace(control=asked), design=law, schedule=schedule)
    signals = result.tables["signals"]
    law = law.law if isinstance(law, MpcDesign) else law

    def columns(what: str, names: Any) -> np.ndarray:
        return np.column_stack([signals[f"{what} {name}"] for name in names])

    return Tracked(
        measured=columns("measured", law.outputs),
        given=columns("given", law.outputs),
        commanded=columns("commanded", law.inputs),
        rate=signals["rate"],
        burst=signals["burst"],
        infeasible=infeasible(signals["at limit"], law.interval_s),
        tables=result.tables,
    )


def driven(rate: Any, burst: Any = 0, **fields: Any) -> Any:
    """Result of an access link at given rates [bit/s]."""
    return simulate_rates(access_link(**{"control": Track()} | fields), rate, burst)
