"""Result of a simulation of links, from any engine: time series by link, response times, and a summary."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from netctrl.errors import FileError, InvalidValue, checked_number, optional_import
from netctrl.model.design.design import Provenance
from netctrl.model.io.files import read_bounded, write_atomically
from netctrl.model.io.json_file import decoded
from netctrl.model.io.validation_errors import explained, shown
from netctrl.model.link_trace import trace_bits
from netctrl.scenario.files import nested
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.summary import (
    GroupSummary,
    LinkSummary,
    ResponseSummary,
    SimulationSummary,
    summary_table,
)
from netctrl.units import BITS_PER_BYTE

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SHORT_OBJECT_BYTES", "SimulationResult", "read_result"]

SHORT_OBJECT_BYTES = 12e3
"""Response times are summarised for objects below this size (ARC paper, Fig. 9)."""

_HEADERS = 40.0  # IP and TCP [byte]
_SCHEMA, _OLD_SCHEMA = "netctrl.simulation/2", "netctrl.simulation/1"
_SERIES = ("backlog_bytes", "arrived_bytes", "departed_bytes", "lost_bytes", "marked_bytes", "probability")
_RESPONSES = ("response_start_s", "response_bytes", "response_s")
_MAX_BYTES = 2**31


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SimulationResult(Result):
    """Time series of a simulation of links, with response times.

    The scenario has L links and G groups of flows, in its order; there are T samples and R objects.

    Parameters
    ----------
    scenario : Scenario
        The simulated scenario.
    simulator : str
        "fluid", or "ns-3." with its version.
    time_s : ndarray, shape (T,)
        Ends of the sampling intervals [s], evenly spaced.
    backlog_bytes : ndarray, shape (L, T)
        Backlog of the queue at time_s [byte].
    arrived_bytes, departed_bytes, lost_bytes, marked_bytes : ndarray, shape (L, T)
        Bytes in the interval that ends at time_s [byte]. arrived = departed + lost + growth of the backlog; lost counts
        overflow and drops by the law.
    probability : ndarray, shape (L, T)
        Marking or dropping probability of the law at time_s; 0 for drop-tail.
    carried_bytes : ndarray, shape (G, T)
        Data of each group of flows in the interval: sent (fluid) or received (ns-3) [byte].
    response_start_s, response_bytes, response_s : ndarray, shape (R,)
        Objects of web sessions and flows that end: time of the request [s], size [byte], time to the last byte [s].
    delay_s : ndarray, shape (L, T), optional
        Mean time in the queue of the interval's packets [s]; 0 without packets. None: not measured.
    rtt_s : ndarray, shape (G, T), optional
        Mean of the round-trip times that a group's flows measured in the interval [s]; 0 without samples.
    one_way_s, jitter_s : ndarray, shape (G, T), optional
        For groups whose packets are not acknowledged: mean time from the first queue to the receiver, and mean
        difference from the flow's previous packet [s]; 0 without packets and for other groups. None: not measured.
    provenance : Provenance
        How it was made.

    Raises
    ------
    InvalidValue
        Arrays whose shapes don't fit each other, a value that isn't finite, or samples that aren't evenly spaced.
    """

    scenario: Scenario
    simulator: str
    time_s: np.ndarray
    backlog_bytes: np.ndarray
    arrived_bytes: np.ndarray
    departed_bytes: np.ndarray
    lost_bytes: np.ndarray
    marked_bytes: np.ndarray
    probability: np.ndarray
    carried_bytes: np.ndarray
    response_start_s: np.ndarray
    response_bytes: np.ndarray
    response_s: np.ndarray
    provenance: Provenance
    delay_s: np.ndarray | None = None
    rtt_s: np.ndarray | None = None
    one_way_s: np.ndarray | None = None
    jitter_s: np.ndarray | None = None

    def __post_init__(self) -> None:
        L, G, T, R = len(self.scenario.links), len(self.scenario.flows), len(self.time_s), len(self.response_s)
        shapes = {"time_s": (T,)} | dict.fromkeys(_SERIES, (L, T)) | {"carried_bytes": (G, T)}
        more = {"delay_s": (L, T)} | dict.fromkeys(("rtt_s", "one_way_s", "jitter_s"), (G, T))
        shapes |= {name: shape for name, shape in more.items() if getattr(self, name) is not None}
        for name, shape in (shapes | dict.fromkeys(_RESPONSES, (R,))).items():
            object.__setattr__(self, name, _readonly(name, getattr(self, name), shape))
        even = T > 0 and np.allclose(self.time_s, self.time_s[0] * np.arange(1, T + 1), rtol=1e-6, atol=0.0)
        if not even or self.time_s[0] <= 0.0:
            raise InvalidValue("time_s", self.time_s[:3].tolist(), "ends of one or more intervals of equal length")

    def capacity_bit_per_s(self) -> np.ndarray:
        """Mean capacity of each link in each sampling interval, shape (L, T) [bit/s]."""
        ends = self.time_s
        starts = np.concatenate(([0.0], ends[:-1]))
        latest = {link.id: link.capacity for link in self.scenario.links}
        capacity = np.array([np.full(len(ends), link.capacity) for link in self.scenario.links])
        index = {link.id: row for row, link in enumerate(self.scenario.links)}
        for row, link in enumerate(self.scenario.links):
            if link.trace is not None:
                capacity[row] = np.diff(trace_bits(link.trace, ends), prepend=0.0) / (ends - starts)
        for change in sorted(self.scenario.network.changes, key=lambda change: change.at):
            if change.capacity is not None:
                share = np.clip((ends - change.at) / (ends - starts), 0.0, 1.0)
                capacity[index[change.link]] += share * (change.capacity - latest[change.link])
                latest[change.link] = change.capacity
        return capacity

    def summary(self, start: float | None = None, stop: float | None = None) -> SimulationSummary:
        """Means, quantiles and ratios over an interval of time.

        Parameters
        ----------
        start : float, optional
            Beginning [s]; by default the end of the warm-up.
        stop : float, optional
            End [s]; by default that of the run.

        Returns
        -------
        SimulationSummary

        Raises
        ------
        InvalidValue
            No sample between start and stop.
        """
        first = self.scenario.warmup if start is None else checked_number("start", start, "a time in s", at_least=0.0)
        end = float(self.time_s[-1])
        last = end if stop is None else min(end, checked_number("stop", stop, "a time after start in s", above=first))
        tick = self.time_s[0] * 1e-6
        chosen = (self.time_s > first + tick) & (self.time_s <= last + tick)
        if not chosen.any():
            raise InvalidValue("start", first, f"a time before the last sample ({end:g} s), and a sample before stop")
        seconds = float(chosen.sum() * self.time_s[0])
        capacity = self.capacity_bit_per_s()[:, chosen]
        links = tuple(
            self._of_link(row, link.id, chosen, seconds, float(capacity[row].mean()))
            for row, link in enumerate(self.scenario.links)
        )
        return SimulationSummary(
            scenario=self.scenario.name,
            simulator=self.simulator,
            start_s=first,
            stop_s=last,
            links=links,
            responses=self._of_responses(first, last),
            flows=self._of_groups(chosen, seconds),
        )

    def link_ids(self) -> tuple[str, ...]:
        """Names in `measures` that are links."""
        return tuple(link.id for link in self.scenario.links)

    def measures(self) -> dict[tuple[str, str], float]:
        """Results after the warm-up: (quantity, object) -> value, in SI units; payload for groups of flows."""
        found = self.summary()
        measures: dict[tuple[str, str], float] = {}
        for link in found.links:
            measures["throughput", link.id] = link.throughput_bit_per_s
            measures["backlog", link.id] = link.backlog_mean_bytes
            measures["backlog deviation", link.id] = link.backlog_std_bytes
            measures["loss", link.id] = link.loss_ratio
            measures["marks", link.id] = link.marking_ratio
            if self.delay_s is not None:
                measures["delay", link.id] = link.delay_s or 0.0
        for group in found.flows:
            measures["throughput", group.id] = group.throughput_bit_per_s
            times = {"rtt": group.rtt_s, "one-way delay": group.one_way_s, "jitter": group.jitter_s}
            measures |= {(what, group.id): time for what, time in times.items() if time is not None}
        if found.responses is not None:
            measures["response", "short objects"] = found.responses.mean_s
        return measures

    def _of_groups(self, chosen: np.ndarray, seconds: float) -> tuple[GroupSummary, ...]:
        # The fluid counts whole packets, without separate headers.
        payload = 1.0 - _HEADERS / self.scenario.traffic.packet_size if self.simulator == "fluid" else 1.0
        carried = BITS_PER_BYTE * payload * self.carried_bytes[:, chosen].sum(axis=1) / seconds
        return tuple(
            GroupSummary(group.id, float(rate), *self._times_of_group(row, chosen))
            for row, (group, rate) in enumerate(zip(self.scenario.flows, carried, strict=True))
        )

    def _times_of_group(self, row: int, chosen: np.ndarray) -> tuple[float | None, float | None, float | None]:
        rtt = None if self.rtt_s is None else _mean_of_any(self.rtt_s[row, chosen])
        if self.one_way_s is None or self.jitter_s is None or not (self.one_way_s[row, chosen] > 0.0).any():
            return rtt, None, None
        came = chosen & (self.one_way_s[row] > 0.0)
        return rtt, float(self.one_way_s[row, came].mean()), float(self.jitter_s[row, came].mean())

    def _of_link(self, row: int, name: str, chosen: np.ndarray, seconds: float, capacity: float) -> LinkSummary:
        q, p = self.backlog_bytes[row, chosen], self.probability[row, chosen]
        low, middle, high, most = map(float, np.quantile(q, (0.05, 0.5, 0.95, 1.0)))
        arrived = float(self.arrived_bytes[row, chosen].sum())
        throughput = float(self.departed_bytes[row, chosen].sum()) * BITS_PER_BYTE / seconds
        return LinkSummary(
            id=name,
            backlog_mean_bytes=float(q.mean()),
            backlog_std_bytes=float(q.std()),
            backlog_quantiles_bytes=(low, middle, high, most),
            throughput_bit_per_s=throughput,
            utilization=throughput / capacity,
            loss_ratio=float(self.lost_bytes[row, chosen].sum()) / arrived if arrived else 0.0,
            marking_ratio=float(self.marked_bytes[row, chosen].sum()) / arrived if arrived else 0.0,
            probability_mean=float(p.mean()),
            probability_cv=float(p.std() / p.mean()) if p.mean() > 0.0 else 0.0,
            delay_s=None if self.delay_s is None else _mean_of_any(self.delay_s[row, chosen]),
        )

    def _of_responses(self, first: float, last: float) -> ResponseSummary | None:
        short = self.response_bytes < SHORT_OBJECT_BYTES
        short &= (self.response_start_s >= first) & (self.response_start_s < last)
        times = self.response_s[short]
        if not len(times):
            return None
        median, p95 = np.quantile(times, (0.5, 0.95))
        return ResponseSummary(objects=len(times), mean_s=float(times.mean()), median_s=float(median), p95_s=float(p95))

    def to_pandas(self) -> pd.DataFrame:
        """A DataFrame with one row per link and sample, with time [s] and link as columns."""
        with optional_import():
            import pandas as pd

        T = len(self.time_s)
        names = [link.id for link in self.scenario.links]
        columns = {"time_s": np.tile(self.time_s, len(names)), "link": np.repeat(names, T)}
        return pd.DataFrame(columns | {name: getattr(self, name).ravel() for name in _SERIES})

    def to_json(self) -> str:
        """Text of a result file (scenario, series, response times and provenance), which ends with a newline."""
        content = {"schema": _SCHEMA} | {field.name: getattr(self, field.name) for field in fields(self)}
        return msgspec.json.encode(content, enc_hook=np.ndarray.tolist).decode() + "\n"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a result file atomically, so that no reader sees a part of it.

        Parameters
        ----------
        path : path
            Where to write; an existing file is replaced.
        """
        write_atomically(path, self.to_json().encode())

    def table(self) -> tuple[str, list[tuple[str, str]]]:
        """Title, and rows of (name, text) with the main results."""
        return summary_table(self.summary())


def _mean_of_any(values: np.ndarray) -> float | None:
    """Mean over the intervals with a value; None without any."""
    return float(values[values > 0.0].mean()) if (values > 0.0).any() else None


class _File(msgspec.Struct, forbid_unknown_fields=True):
    schema: Literal["netctrl.simulation/1", "netctrl.simulation/2"]
    scenario: Scenario
    simulator: str
    time_s: list[float]
    backlog_bytes: list[list[float]]
    arrived_bytes: list[list[float]]
    departed_bytes: list[list[float]]
    lost_bytes: list[list[float]]
    marked_bytes: list[list[float]]
    probability: list[list[float]]
    carried_bytes: list[list[float]]
    response_start_s: list[float]
    response_bytes: list[float]
    response_s: list[float]
    provenance: Provenance
    delay_s: list[list[float]] | None = None
    rtt_s: list[list[float]] | None = None
    one_way_s: list[list[float]] | None = None
    jitter_s: list[list[float]] | None = None


def read_result(path: str | os.PathLike[str]) -> SimulationResult:
    """Read a result file strictly.

    Raises
    ------
    FileError
        The file can't be read or isn't a complete result.
    """
    text = read_bounded(path, _MAX_BYTES, f"larger than the {_MAX_BYTES // 2**30} GiB allowed for a result")
    try:
        content = decoded(path, _today(text), _File)
        parts = {name: getattr(content, name) for name in content.__struct_fields__ if name != "schema"}
        return SimulationResult(**parts)
    except msgspec.ValidationError as error:
        raise FileError(path, f"not a simulation result: {_why(error, text)}") from None
    except InvalidValue as error:
        why = f"{error.argument}: got {shown(error.got)}, takes {error.takes}"
        raise FileError(path, f"not a simulation result: {why}") from None


def _today(text: bytes) -> bytes:
    """The file's text with its scenario in today's parts."""
    if _OLD_SCHEMA.encode() not in text[:64]:
        return text
    try:
        content = msgspec.json.decode(text)
        return msgspec.json.encode(content | {"scenario": nested(content["scenario"])})
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError, KeyError, AttributeError):
        return text  # the reader reports the error


def _why(error: msgspec.ValidationError, text: bytes) -> str:
    try:
        return explained(error, msgspec.json.decode(text), _File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # the rest isn't even JSON
        return " ".join(str(error).split())


def _readonly(name: str, values: Any, shape: tuple[int, ...]) -> np.ndarray:
    """A read-only copy as an array of floats; InvalidValue for another shape or values that aren't finite."""
    try:
        array = np.array(values, dtype=float)
    except (ValueError, TypeError):
        raise InvalidValue(name, "values that are not a table of numbers", f"an array of shape {shape}") from None
    if array.shape != shape:
        raise InvalidValue(name, array.shape, f"an array of shape {shape}")
    if not np.isfinite(array).all():
        raise InvalidValue(name, float(array[~np.isfinite(array)][0]), "finite numbers")
    array.flags.writeable = False
    return array
