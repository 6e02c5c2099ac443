"""Result of a data centre: flows, queues, recorded series and a summary."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from netctrl.errors import InvalidValue, optional_import
from netctrl.model.io.provenance import Provenance
from netctrl.model.io.record_file import Record
from netctrl.scenario.fabric.flows import common_sender
from netctrl.scenario.kind_result import KindResult
from netctrl.scenario.scenario import Scenario
from netctrl.units import BITS_PER_BYTE

if TYPE_CHECKING:
    import pandas as pd

SIZE_BINS = (0.0, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6, 3e6, 1e7, 1e13)
"""Edges of flow sizes [byte]."""

ACKNOWLEDGEMENTS = (
    "time_ns", "flow", "queue_bytes", "flows", "hop", "left_ns", "window_bytes", "rate_bit_per_s", "rtt_ns",
)  # fmt: skip
"""Columns of a log: queue of the fullest hop, its flows and place, when the packet left it, window and rate after."""

_NS = 1e9


class SlowDown(Record, frozen=True):
    """Completion times relative to those of the same flows alone, for flows above `low` to `high` bytes."""

    low: float
    high: float
    flows: int
    """Number of completed flows."""
    mean: float
    median: float
    percentile_95: float
    percentile_99: float


class FabricSummary(Record, frozen=True):
    """Main figures of a run."""

    scenario: str
    scheme: str
    seconds: float
    flows: int
    completed: int
    slow_down: SlowDown | None
    """Slow-down of all flows; null: none completed."""
    slow_down_by_size: tuple[SlowDown, ...]
    queue_median_bytes: float
    """Over samples of all switch ports."""
    queue_95_bytes: float
    queue_99_bytes: float
    queue_most_bytes: float
    queue_mean_bytes: float
    """Mean over time at the port with the longest queue."""
    utilization: float
    """Utilization of the busiest switch port, counting all bytes on the wire."""
    jain_index: float | None
    """Mean over the throughput bins of the watched flows; null without watched flows."""
    dropped_packets: int
    pauses: int
    paused_seconds: float
    """Total over all ports."""
    retransmitted_packets: int


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FabricResult(KindResult):
    """Result of a data centre: F flows through P ports, with V flows and W ports recorded in detail.

    Parameters
    ----------
    scenario : Scenario
        The simulated scenario.
    source, target : ndarray, shape (F,)
        Hosts of each flow.
    size_bytes, start_ns : ndarray, shape (F,)
        Size [byte] and start [ns] of each flow.
    finish_ns : ndarray, shape (F,)
        Arrival time of the last byte [ns]; −1: not completed.
    ideal_ns : ndarray, shape (F,)
        Duration of the flow without other flows [ns].
    incast : ndarray, shape (F,)
        Whether the flow was part of an incast.
    ports : tuple of str
        Names of the P ports.
    switch_port : ndarray, shape (P,)
        Whether the port is a switch's.
    rate_bit_per_s, sent_bytes, queue_mean_bytes, queue_most_bytes, drops, pauses, paused_ns : ndarray, shape (P,)
        Values of each port; queues without the packet being sent.
    histogram : ndarray, shape (H,)
        Number of samples of all switch queues by length: entry 0 counts empty queues, entry i those above (i − 1)
        to i times `histogram_bytes`.
    histogram_bytes : int
        Width of a bin of `histogram` [byte].
    queue_bytes : ndarray, shape (W, T)
        Samples of watched ports, every `scenario.interval` from time 0 [byte].
    acknowledgements : ndarray, shape (L, 9)
        Log of watched flows; columns as in `ACKNOWLEDGEMENTS`, `flow` is an index in `watch.flows`.
    arrived_bytes : ndarray, shape (V, B)
        Bytes of watched flows on the wire, in each `watch.bin` [byte].
    counts : dict
        Packets and bytes: sent, received, dropped, in flight at the end; packet hops, events, most packets at a time.
    provenance : Provenance
        How it was made.
    simulator : str
        "packet", or such as "ns-3.37".
    """

    scenario: Scenario
    source: np.ndarray
    target: np.ndarray
    size_bytes: np.ndarray
    start_ns: np.ndarray
    finish_ns: np.ndarray
    ideal_ns: np.ndarray
    incast: np.ndarray
    ports: tuple[str, ...]
    switch_port: np.ndarray
    rate_bit_per_s: np.ndarray
    sent_bytes: np.ndarray
    queue_mean_bytes: np.ndarray
    queue_most_bytes: np.ndarray
    drops: np.ndarray
    pauses: np.ndarray
    paused_ns: np.ndarray
    histogram: np.ndarray
    histogram_bytes: int
    queue_bytes: np.ndarray
    acknowledgements: np.ndarray
    arrived_bytes: np.ndarray
    counts: dict[str, int]
    provenance: Provenance
    simulator: str = "packet"

    def __post_init__(self) -> None:
        F, P = len(self.size_bytes), len(self.ports)
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(
            ("source", "target", "size_bytes", "start_ns", "finish_ns", "ideal_ns", "incast"), (F,)
        )
        per_port = ("switch_port", "rate_bit_per_s", "sent_bytes", "queue_mean_bytes", "queue_most_bytes")
        shapes |= dict.fromkeys((*per_port, "drops", "pauses", "paused_ns"), (P,))
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise InvalidValue(name, getattr(self, name).shape, f"an array of shape {shape}")
        for name in (*shapes, "histogram", "queue_bytes", "acknowledgements", "arrived_bytes"):
            getattr(self, name).setflags(write=False)

    @property
    def done(self) -> np.ndarray:
        """Whether a flow is complete, shape (F,)."""
        return self.finish_ns >= 0

    @property
    def slow_down(self) -> np.ndarray:
        """Completion time over that of the flow alone, at least 1, shape (F,); NaN where a flow isn't complete."""
        return np.where(self.done, (self.finish_ns - self.start_ns) / self.ideal_ns, np.nan)

    @property
    def residual(self) -> tuple[int, int]:
        """Packets and bytes sent that are neither received, dropped nor in flight: always zeros."""
        n = self.counts
        packets = n["sent"] - n["received"] - n["dropped"] - n["under_way"]
        return packets, n["sent_bytes"] - n["received_bytes"] - n["dropped_bytes"] - n["under_way_bytes"]

    def port(self, name: str) -> int:
        """Index of a port in the arrays.

        Parameters
        ----------
        name : str
            One of `ports`.

        Returns
        -------
        int

        Raises
        ------
        InvalidValue
            Unknown name.
        """
        if name not in self.ports:
            raise InvalidValue("port", name, f"one of {', '.join(self.ports[:40])}")
        return self.ports.index(name)

    def queue_cdf(self) -> tuple[np.ndarray, np.ndarray]:
        """Queue lengths [byte], and the share of samples of all switch ports up to each length."""
        total = max(int(self.histogram.sum()), 1)
        last = int(np.flatnonzero(self.histogram)[-1]) if self.histogram.any() else 0
        return np.arange(last + 1) * float(self.histogram_bytes), np.cumsum(self.histogram[: last + 1]) / total

    def queue_quantile(self, share: float) -> float:
        """Quantile of the queue over all samples of all switch ports, to the width of a bin.

        Parameters
        ----------
        share : float
            Share of the samples that don't exceed the quantile, from 0 to 1.

        Returns
        -------
        float
            Quantile [byte].
        """
        size, below = self.queue_cdf()
        return float(size[min(int(np.searchsorted(below, share)), len(size) - 1)])

    def throughput(self) -> np.ndarray:
        """Throughput of watched flows on the wire, shape (V, B) [bit/s]."""
        return self.arrived_bytes * (BITS_PER_BYTE / self.scenario.watch.bin)

    def fairness(self) -> np.ndarray:
        """Jain's index in each bin over the watched flows that received data, shape (B,); NaN where none did."""
        return np.array([jain_index(column[column > 0]) for column in self.arrived_bytes.T])

    def utilization(self) -> np.ndarray:
        """Utilization of each port, counting all bytes on the wire, shape (P,)."""
        return self.sent_bytes * BITS_PER_BYTE / (self.rate_bit_per_s * self.scenario.duration)

    def slow_down_by_size(self, edges: tuple[float, ...] = SIZE_BINS) -> tuple[SlowDown, ...]:
        """Mean, median and percentiles of the slow-down by flow size.

        Parameters
        ----------
        edges : tuple of float
            Edges of the bins, in increasing order [byte]; empty bins are left out.

        Returns
        -------
        tuple of SlowDown
        """
        found = (self._slow_down(low, high) for low, high in pairwise(edges))
        return tuple(each for each in found if each is not None)

    def _slow_down(self, low: float, high: float) -> SlowDown | None:
        chosen = self.slow_down[self.done & (self.size_bytes > low) & (self.size_bytes <= high)]
        if not len(chosen):
            return None
        median, p95, p99 = np.percentile(chosen, (50.0, 95.0, 99.0)).tolist()
        return SlowDown(
            low=low,
            high=high,
            flows=len(chosen),
            mean=float(chosen.mean()),
            median=median,
            percentile_95=p95,
            percentile_99=p99,
        )

    def summary(self) -> FabricSummary:
        """Main results, as a record."""
        fair = self.fairness() if len(self.arrived_bytes) else np.zeros(0)
        switch = self.switch_port
        return FabricSummary(
            scenario=self.scenario.name,
            scheme=str(common_sender(self.scenario).__struct_config__.tag),
            seconds=self.scenario.duration,
            flows=len(self.size_bytes),
            completed=int(self.done.sum()),
            slow_down=self._slow_down(SIZE_BINS[0], SIZE_BINS[-1]),
            slow_down_by_size=self.slow_down_by_size(),
            queue_median_bytes=self.queue_quantile(0.5),
            queue_95_bytes=self.queue_quantile(0.95),
            queue_99_bytes=self.queue_quantile(0.99),
            queue_most_bytes=float(self.queue_most_bytes[switch].max()),
            queue_mean_bytes=float(self.queue_mean_bytes[switch].max()),
            utilization=float(self.utilization()[switch].max()),
            jain_index=float(np.nanmean(fair)) if np.isfinite(fair).any() else None,
            dropped_packets=self.counts["dropped"],
            pauses=int(self.pauses.sum()),
            paused_seconds=float(self.paused_ns.sum()) / _NS,
            retransmitted_packets=self.counts["again"],
        )

    @property
    def links(self) -> tuple[str, ...]:
        """Names in `measures` that are links."""
        return "longest port", "busiest port", "all ports"

    def measures(self) -> dict[tuple[str, str], float]:
        """Results: (quantity, object) -> value, in SI units."""
        found = self.summary()
        measures = {
            ("queue mean", "longest port"): found.queue_mean_bytes,
            ("queue 99 %", "all ports"): found.queue_99_bytes,
            ("utilization", "busiest port"): found.utilization,
            ("completed", "flows"): float(found.completed),
            ("dropped packets", "all ports"): float(found.dropped_packets),
        }
        if found.slow_down is not None:
            measures["slow-down", "flows"] = found.slow_down.mean
        if found.jain_index is not None:
            measures["Jain's index", "watched flows"] = found.jain_index
        return measures

    def links_table(self) -> pd.DataFrame:
        """A DataFrame with one row per port: `link`, utilization, queue without the packet being sent [byte], drops."""
        with optional_import():
            import pandas as pd

        queues = {"queue mean": self.queue_mean_bytes, "queue most": self.queue_most_bytes}
        columns = {"link": self.ports, "utilization": self.utilization(), **queues, "dropped packets": self.drops}
        return pd.DataFrame(columns)

    def flows_table(self) -> pd.DataFrame:
        """A DataFrame with one row per flow (`flow`, its number); `throughput` [bit/s], NaN of incomplete flows."""
        took = np.where(self.done, self.finish_ns - self.start_ns, np.nan) / _NS
        flows = self.to_pandas().assign(throughput=BITS_PER_BYTE * self.size_bytes / took)
        return flows.rename_axis("flow").reset_index()

    def to_pandas(self) -> pd.DataFrame:
        """A DataFrame with one row per flow."""
        with optional_import():
            import pandas as pd

        names = ("source", "target", "size_bytes", "start_ns", "finish_ns", "ideal_ns", "incast", "slow_down")
        return pd.DataFrame({name: getattr(self, name) for name in names})

    def acknowledged(self) -> pd.DataFrame:
        """A DataFrame with one row per acknowledgement of a watched flow; `flow` is the flow's number."""
        with optional_import():
            import pandas as pd

        frame = pd.DataFrame(self.acknowledgements, columns=list(ACKNOWLEDGEMENTS))
        whole = [name for name in ACKNOWLEDGEMENTS if name not in ("window_bytes", "rate_bit_per_s")]
        frame = frame.astype(dict.fromkeys(whole, "int64"))
        numbers = np.array(self.scenario.watch.flows, dtype=np.int64)
        return frame.assign(flow=numbers[frame["flow"].to_numpy()] if len(frame) else frame["flow"])

    def table(self) -> tuple[str, list[tuple[str, str]]]:
        """Title, and rows of (name, text) with the main results."""
        title, rows = fabric_table(self.summary())
        return title, [("simulator", self.simulator), *rows]


def jain_index(values: np.ndarray) -> float:
    """Jain's fairness index (Σ x)²/(n Σ x²): 1 if all are equal, 1/n if one has all; NaN without values."""
    total = float(np.sum(values))
    return total * total / (len(values) * float(np.sum(np.square(values)))) if total > 0.0 else float("nan")


def fabric_table(summary: FabricSummary) -> tuple[str, list[tuple[str, str]]]:
    """Title, and rows of (name, text)."""
    rows = [("flows", f"{summary.completed} of {summary.flows} done")]
    rows += [
        (
            f"slow-down to {each.high / 1e3:g} kB" if each.high < SIZE_BINS[-1] else "slow-down above",
            f"median {each.median:.3g}, 95 % {each.percentile_95:.3g}, 99 % {each.percentile_99:.3g} "
            f"({each.flows} flows)",
        )
        for each in summary.slow_down_by_size
    ]
    rows += [
        (
            "queues",
            f"median {summary.queue_median_bytes / 1e3:.4g}, 95 % {summary.queue_95_bytes / 1e3:.4g}, "
            f"99 % {summary.queue_99_bytes / 1e3:.4g}, most {summary.queue_most_bytes / 1e3:.4g} kB",
        ),
        ("busiest port", f"utilization {summary.utilization:.4f}"),
        ("dropped", f"{summary.dropped_packets} packets, {summary.retransmitted_packets} sent again"),
        ("pauses", f"{summary.pauses}, {summary.paused_seconds * 1e3:.4g} ms in all"),
    ]
    if summary.jain_index is not None:
        rows.append(("Jain's index", f"{summary.jain_index:.4f}"))
    return f"{summary.scenario} ({summary.scheme}), {summary.seconds:g} s", rows
