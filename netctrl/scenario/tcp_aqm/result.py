"""What a simulation gives, whichever simulator ran it: time series by link, response times, and their summary."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from netctrl.errors import FileError, InvalidValue, checked_number
from netctrl.model.design.design import Provenance
from netctrl.model.io.display import html_table, plot
from netctrl.model.io.files import read_bounded, write_atomically
from netctrl.model.io.json_file import decoded
from netctrl.model.io.record_file import Record
from netctrl.model.io.validation_errors import explained, shown
from netctrl.model.link_trace import trace_bits
from netctrl.scenario.tcp_aqm.scenario import Scenario
from netctrl.units import BITS_PER_BYTE, format_quantity

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = [
    "SHORT_OBJECT_BYTES",
    "GroupSummary",
    "LinkSummary",
    "ResponseSummary",
    "SimulationResult",
    "SimulationSummary",
    "read_result",
    "summary_table",
]

SHORT_OBJECT_BYTES = 12e3
"""Response times are summarised for objects below this size (ARC paper, Fig. 9)."""

_HEADERS = 40.0  # of IP and TCP [byte]
_SCHEMA = "netctrl.simulation/1"
_SERIES = ("backlog_bytes", "arrived_bytes", "departed_bytes", "lost_bytes", "marked_bytes", "probability")
_RESPONSES = ("response_start_s", "response_bytes", "response_s")
_MAX_BYTES = 2**31


class LinkSummary(Record, frozen=True):
    """One link over the time that is summarised; the backlog from its samples."""

    id: str
    backlog_mean_bytes: float
    backlog_std_bytes: float
    backlog_quantiles_bytes: tuple[float, float, float, float]
    """5 %, 50 %, 95 % and the greatest."""
    throughput_bit_per_s: float
    utilization: float
    """Of the capacity that the link had at each moment."""
    loss_ratio: float
    """Lost of arrived bytes: overflow, and what a law dropped since it couldn't mark it."""
    marking_ratio: float
    """Marked of arrived bytes."""
    probability_mean: float
    probability_cv: float
    """Standard deviation of the marking probability over its mean; 0 where the mean is 0."""
    delay_s: float | None = None
    """Mean time in the queue; null: not known."""


class ResponseSummary(Record, frozen=True):
    """Response times of objects below 12 kB that were asked for in the time that is summarised."""

    objects: int
    mean_s: float
    median_s: float
    p95_s: float


class GroupSummary(Record, frozen=True):
    """One group of flows over the time that is summarised."""

    id: str
    throughput_bit_per_s: float
    """Of the payload, of all its flows together."""
    rtt_s: float | None
    """Mean of intervals; null: not known."""


class SimulationSummary(Record, frozen=True):
    """What came out, in numbers."""

    scenario: str
    simulator: str
    start_s: float
    stop_s: float
    links: tuple[LinkSummary, ...]
    responses: ResponseSummary | None
    """None where no short object was asked for."""
    flows: tuple[GroupSummary, ...] = ()
    """Groups of flows."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SimulationResult:
    """Time series of a simulation. L links in the order of the scenario, T samples, G groups of flows, R objects.

    Parameters
    ----------
    scenario : Scenario
        What was simulated.
    simulator : str
        "fluid", or "ns-3." with its version.
    time_s : ndarray, shape (T,)
        Ends of the sampling intervals [s], evenly spaced.
    backlog_bytes : ndarray, shape (L, T)
        What waits in the queue at time_s [byte].
    arrived_bytes, departed_bytes, lost_bytes, marked_bytes : ndarray, shape (L, T)
        In the interval that ends at time_s [byte]. arrived = departed + lost + growth of the backlog; lost counts
        overflow and drops by the law.
    probability : ndarray, shape (L, T)
        Of marking or dropping, as the law has it at time_s; 0 for drop-tail.
    carried_bytes : ndarray, shape (G, T)
        Data of each group of flows in the interval: sent (fluid) or received (ns-3) [byte].
    response_start_s, response_bytes, response_s : ndarray, shape (R,)
        Objects of web sessions: when asked for [s], size [byte], time to the last byte [s].
    delay_s : ndarray, shape (L, T), optional
        Mean time in the queue of the packets of the interval; 0 where there were none. None: not known.
    rtt_s : ndarray, shape (G, T), optional
        Mean of the round-trip times that the flows of a group measured in the interval; 0 where there were none.
    provenance : Provenance

    Raises
    ------
    InvalidValue
        Arrays whose shapes don't fit each other, a value that isn't finite, samples that aren't evenly spaced.
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

    def __post_init__(self) -> None:
        L, G, T, R = len(self.scenario.links), len(self.scenario.flows), len(self.time_s), len(self.response_s)
        shapes = {"time_s": (T,)} | dict.fromkeys(_SERIES, (L, T)) | {"carried_bytes": (G, T)}
        more = {"delay_s": (L, T), "rtt_s": (G, T)}
        shapes |= {name: shape for name, shape in more.items() if getattr(self, name) is not None}
        for name, shape in (shapes | dict.fromkeys(_RESPONSES, (R,))).items():
            object.__setattr__(self, name, _readonly(name, getattr(self, name), shape))
        even = T > 0 and np.allclose(self.time_s, self.time_s[0] * np.arange(1, T + 1), rtol=1e-6, atol=0.0)
        if not even or self.time_s[0] <= 0.0:
            raise InvalidValue("time_s", self.time_s[:3].tolist(), "ends of one interval or more, all of one length")

    def capacity_bit_per_s(self) -> np.ndarray:
        """Capacity of each link, the mean of each sampling interval, shape (L, T) [bit/s]."""
        ends = self.time_s
        starts = np.concatenate(([0.0], ends[:-1]))
        latest = {link.id: link.capacity for link in self.scenario.links}
        capacity = np.array([np.full(len(ends), link.capacity) for link in self.scenario.links])
        index = {link.id: row for row, link in enumerate(self.scenario.links)}
        for row, link in enumerate(self.scenario.links):
            if link.trace is not None:
                capacity[row] = np.diff(trace_bits(link.trace, ends), prepend=0.0) / (ends - starts)
        for change in sorted(self.scenario.changes, key=lambda change: change.at):
            if change.capacity is not None:
                share = np.clip((ends - change.at) / (ends - starts), 0.0, 1.0)
                capacity[index[change.link]] += share * (change.capacity - latest[change.link])
                latest[change.link] = change.capacity
        return capacity

    def summary(self, start: float | None = None, stop: float | None = None) -> SimulationSummary:
        """Means, quantiles and ratios from `start` (the scenario's warm-up) to `stop` (the end) [s]."""
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

    def measures(self) -> dict[tuple[str, str], float]:
        """(quantity, of what) -> value after the warm-up, in SI units; of a group of flows the payload's throughput."""
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
            if group.rtt_s is not None:
                measures["rtt", group.id] = group.rtt_s
        if found.responses is not None:
            measures["response", "short objects"] = found.responses.mean_s
        return measures

    def _of_groups(self, chosen: np.ndarray, seconds: float) -> tuple[GroupSummary, ...]:
        # The fluid has no headers apart: it counts whole packets.
        payload = 1.0 - _HEADERS / self.scenario.packet_size if self.simulator == "fluid" else 1.0
        carried = BITS_PER_BYTE * payload * self.carried_bytes[:, chosen].sum(axis=1) / seconds
        return tuple(
            GroupSummary(group.id, float(rate), None if self.rtt_s is None else _mean_of_any(self.rtt_s[row, chosen]))
            for row, (group, rate) in enumerate(zip(self.scenario.flows, carried, strict=True))
        )

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
        """The time series of all links, one row a link and sample, with time [s] and link as columns."""
        import pandas as pd

        T = len(self.time_s)
        names = [link.id for link in self.scenario.links]
        columns = {"time_s": np.tile(self.time_s, len(names)), "link": np.repeat(names, T)}
        return pd.DataFrame(columns | {name: getattr(self, name).ravel() for name in _SERIES})

    def to_json(self) -> str:
        """The result's file: scenario, series, response times and provenance; ends with a newline."""
        content = {"schema": _SCHEMA} | {field.name: getattr(self, field.name) for field in fields(self)}
        return msgspec.json.encode(content, enc_hook=np.ndarray.tolist).decode() + "\n"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result's file; never half of it."""
        write_atomically(path, self.to_json().encode())

    def plot(self, **options: Any) -> Figure:
        """Backlog, throughput, probability and loss against time, as a matplotlib Figure."""
        return plot(self, **options)

    def table(self) -> tuple[str, list[tuple[str, str]]]:
        """A title, and what a person wants to know first as (name, text) rows."""
        return summary_table(self.summary())

    def _repr_html_(self) -> str:
        return html_table(*self.table())


def summary_table(summary: SimulationSummary) -> tuple[str, list[tuple[str, str]]]:
    """A title, and (name, text) rows for people."""
    rows = []
    for link in summary.links:
        low, middle, high, most = (format_quantity(x, "B") for x in link.backlog_quantiles_bytes)
        mean, std = format_quantity(link.backlog_mean_bytes, "B"), format_quantity(link.backlog_std_bytes, "B")
        throughput = format_quantity(link.throughput_bit_per_s, "bit/s")
        rows += [
            (link.id, f"{throughput}, utilization {link.utilization:.4f}"),
            ("  backlog", f"mean {mean}, std {std}; 5 % {low}, median {middle}, 95 % {high}, greatest {most}"),
            ("  loss", f"{link.loss_ratio:.3%} of what arrives; marked {link.marking_ratio:.3%}"),
            ("  probability", f"mean {link.probability_mean:.4g}, coefficient of variation {link.probability_cv:.3f}"),
        ]
    if len(summary.flows) > 1:
        rows += [(group.id, _of_group(group)) for group in summary.flows]
    if summary.responses is not None:
        r = summary.responses
        rows.append(
            (
                "short objects",
                f"{r.objects}: response mean {r.mean_s:.3f} s, median {r.median_s:.3f}, 95 % {r.p95_s:.3f}",
            )
        )
    return f"{summary.scenario} ({summary.simulator}), {summary.start_s:g} to {summary.stop_s:g} s", rows


def _of_group(group: GroupSummary) -> str:
    rtt = "" if group.rtt_s is None else f", RTT {1e3 * group.rtt_s:.4g} ms"
    return f"{format_quantity(group.throughput_bit_per_s, 'bit/s')} of payload{rtt}"


def _mean_of_any(values: np.ndarray) -> float | None:
    """Mean of the intervals that have a value."""
    return float(values[values > 0.0].mean()) if (values > 0.0).any() else None


class _File(msgspec.Struct, forbid_unknown_fields=True):
    schema: Literal["netctrl.simulation/1"]
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


def read_result(path: str | os.PathLike[str]) -> SimulationResult:
    """Read a result's file, strictly.

    Raises
    ------
    FileError
        It can't be read, or isn't a whole result.
    """
    text = read_bounded(path, _MAX_BYTES, f"is larger than a result may be ({_MAX_BYTES // 2**30} GiB)")
    try:
        content = decoded(path, text, _File)
        parts = {name: getattr(content, name) for name in content.__struct_fields__ if name != "schema"}
        return SimulationResult(**parts)
    except msgspec.ValidationError as error:
        raise FileError(path, f"is no result of a simulation: {_why(error, text)}") from None
    except InvalidValue as error:
        why = f"{error.argument}: got {shown(error.got)}, takes {error.takes}"
        raise FileError(path, f"is no result of a simulation: {why}") from None


def _why(error: msgspec.ValidationError, text: bytes) -> str:
    try:
        return explained(error, msgspec.json.decode(text), _File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # what comes after isn't even JSON
        return " ".join(str(error).split())


def _readonly(name: str, values: Any, shape: tuple[int, ...]) -> np.ndarray:
    """A copy as a read-only array of floats; InvalidValue where it has another shape or isn't finite."""
    try:
        array = np.array(values, dtype=float)
    except (ValueError, TypeError):
        raise InvalidValue(name, "no table of numbers", f"an array of shape {shape}") from None
    if array.shape != shape:
        raise InvalidValue(name, array.shape, f"an array of shape {shape}")
    if not np.isfinite(array).all():
        raise InvalidValue(name, float(array[~np.isfinite(array)][0]), "finite numbers")
    array.flags.writeable = False
    return array
