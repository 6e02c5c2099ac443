"""Task of the program that sends regulated flows in the kernel, and what it leaves, in the folder of results."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from netctrl.scenario.network.track import GateSettings
from netctrl.scenario.network.tracking import GateDraws, Period, Periods, TrackedFlows, TrackPlan

_TASK, _LEFT = "regulated.pickle", "regulated.npz"


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


class Tracking(NamedTuple):
    """A law at work."""

    plan: TrackPlan
    flows: TrackedFlows
    groups: tuple[int, ...]
    """Tracked ones, as places among the task's groups."""
    measures: int
    """The one whose delay is measured."""


class RegulatedTask(NamedTuple):
    """What the program has to do."""

    groups: tuple[RegulatedGroup, ...]
    packet_size: int
    """With Ethernet's header [byte]."""
    interval_s: float
    """Of the periods."""
    periods: int
    sample_s: float
    """Interval of the time series."""
    samples: int
    changes: tuple[tuple[int, int, float | None], ...]
    """Time [ns], place of a group in `groups`, and its rate [bit/s] until the next; None: what it was or is told."""
    tracking: Tracking | None


class Left(NamedTuple):
    """What the program leaves."""

    series: np.ndarray
    """(groups, samples, 5) sums over arrivals: payload [byte], packets, delays [s], their changes from one packet of a
    flow to its next [s], and how many of these."""
    found: Periods | None
    """Under a law."""


def write_task(task: RegulatedTask, folder: Path) -> None:
    """Write a task where the program finds it."""
    (folder / _TASK).write_bytes(pickle.dumps(task))


def read_task(folder: Path) -> RegulatedTask:
    """The task inside, which only this machine's own process has written."""
    return pickle.loads((folder / _TASK).read_bytes())


def write_left(left: Left, folder: Path) -> None:
    """Leave what came of a run; numbers only."""
    found: dict[str, Any] = {}
    if left.found is not None:
        rates, bursts, measured = zip(*left.found.driven, strict=True)
        found = {
            "rates": np.array(rates),
            "bursts": np.array(bursts),
            "periods": np.array(measured),
            "given": left.found.given,
            "measured": left.found.measured,
            "commanded": left.found.commanded,
        }
    np.savez(folder / _LEFT, series=left.series, **found)


def read_left(folder: Path) -> Left:
    """What the program has left."""
    with np.load(folder / _LEFT, allow_pickle=False) as found:
        if "given" not in found:
            return Left(found["series"], None)
        rows = zip(found["rates"].tolist(), found["bursts"].tolist(), found["periods"].tolist(), strict=True)
        driven = [(rate, burst, Period(*measured)) for rate, burst, measured in rows]
        return Left(found["series"], Periods(driven, found["given"], found["measured"], found["commanded"]))
