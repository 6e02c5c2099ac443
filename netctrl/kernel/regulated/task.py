"""Task of the program that sends regulated flows in the kernel, and what it leaves, in the folder of results."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from netctrl.laws.tracking.schedule import GainSchedule
from netctrl.scenario.network.track import GateSettings
from netctrl.scenario.network.tracking import GateDraws, Period, Periods, TrackedFlows, TrackPlan

_TASK, _LEFT = "regulated.msgpack", "regulated.npz"
_ARRAY = 1
"""Code of an array in the task's file, as `numpy.save` writes it: all bits and the type of its numbers."""


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


class Left(NamedTuple):
    """Sums of the arrivals, and the periods of a law."""

    series: np.ndarray
    """(groups, samples, 5) sums over arrivals: payload [byte], packets, delays [s], their changes from one packet of a
    flow to its next [s], and how many of these."""
    found: Periods | None
    """Under a law."""


def write_task(task: RegulatedTask, folder: Path) -> None:
    """Write a task where the program finds it."""
    (folder / _TASK).write_bytes(msgspec.msgpack.encode(task, enc_hook=_written))


def read_task(folder: Path) -> RegulatedTask:
    """The task inside."""
    content = (folder / _TASK).read_bytes()
    return msgspec.msgpack.decode(content, type=RegulatedTask, ext_hook=_array, dec_hook=lambda _, value: value)


def _written(value: Any) -> Any:
    """What msgspec doesn't know of a task: arrays, and numbers of NumPy."""
    if isinstance(value, np.generic):
        return value.item()
    content = BytesIO()
    np.save(content, value, allow_pickle=False)
    return msgspec.msgpack.Ext(_ARRAY, content.getvalue())


def _array(_: int, content: memoryview) -> np.ndarray:
    return np.load(BytesIO(content), allow_pickle=False)


def write_left(left: Left, folder: Path) -> None:
    """Write sums and periods; numbers only."""
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
    """Sums and periods of a run that has ended."""
    with np.load(folder / _LEFT, allow_pickle=False) as found:
        if "given" not in found:
            return Left(found["series"], None)
        rows = zip(found["rates"].tolist(), found["bursts"].tolist(), found["periods"].tolist(), strict=True)
        driven = [(rate, burst, Period(*measured)) for rate, burst, measured in rows]
        return Left(found["series"], Periods(driven, found["given"], found["measured"], found["commanded"]))
