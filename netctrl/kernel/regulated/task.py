"""Task of the program that sends regulated flows in the kernel, and what it leaves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.laws.rate.gate import Gate, mean_pause, pass_gate, set_gate
from netctrl.laws.tracking.schedule import GainSchedule
from netctrl.plants.access import MEASURED, observe
from netctrl.scenario.network.track import GateSettings
from netctrl.scenario.network.tracking import GateDraws, Periods, TrackedFlows, TrackPlan


class RegulatedGroup(NamedTuple):
    """F flows of a group, which go from one host to one address."""

    group: int
    """Place among the scenario's groups."""
    gate: GateSettings
    draws: GateDraws
    start_ns: np.ndarray
    """(F,) from when on rates can change."""
    stop_ns: np.ndarray
    """(F,)"""
    host: int
    """Namespace."""
    address: int
    end: int
    """Namespace of the address."""


class GivenPlan(TrackPlan):
    """Plan whose schedule, if it has one, is made before the run: msgspec reads no union of two NamedTuples."""

    schedule: GainSchedule | None  # ty: ignore[invalid-named-tuple-override]


class Tracking(NamedTuple):
    """A law at work."""

    plan: GivenPlan
    flows: TrackedFlows
    groups: tuple[int, ...]
    """Tracked ones, as places among the task's groups."""
    measures: int
    """The one whose delay is measured."""


class RegulatedTask(NamedTuple):
    """Groups, periods and changes for the program, with the law that it steps."""

    groups: tuple[RegulatedGroup, ...]
    packet_size: int
    """With Ethernet's header [byte]."""
    interval_s: float
    """Length of a period [s]."""
    periods: int
    sample_s: float
    """Interval of the time series."""
    samples: int
    changes: tuple[tuple[int, int, float | None], ...]
    """Time [ns], place of a group in `groups`, and its rate [bit/s] until the next; None: what it was or is told."""
    tracking: Tracking | None

    def warm_up(self) -> None:
        """Compile what the program calls, since what is compiled inside isn't kept."""
        observe(np.zeros(MEASURED + 1), 0.0, True)
        gate = Gate(0, mean_pause(1.0, 1, 1, 1), 1, 1, 1, 0.0)
        pass_gate(set_gate(gate, 1, 1, 0, 1.0, 1), 1, 0.0, 0, 0.0)


class Left(NamedTuple):
    """Sums of the arrivals, and the periods of a law."""

    series: np.ndarray
    """(groups, samples, 5) sums over arrivals: payload [byte], packets, delays [s], their changes from one packet of a
    flow to its next [s], and how many of these."""
    found: Periods | None
    """Under a law."""
