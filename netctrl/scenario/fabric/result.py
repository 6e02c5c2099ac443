"""What a data centre's run gives: flows, queues, series of what was watched, and their summary."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from netctrl.errors import InvalidValue
from netctrl.model.io.display import html_table, plot
from netctrl.model.io.provenance import Provenance
from netctrl.model.io.record_file import Record
from netctrl.scenario.fabric.scenario import FabricScenario
from netctrl.units import BITS_PER_BYTE

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["ACKNOWLEDGEMENTS", "SIZE_BINS", "FabricResult", "FabricSummary", "SlowDown", "jain_index"]

SIZE_BINS = (0.0, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6, 3e6, 1e7, 1e13)
"""Edges of flow sizes [byte]."""

ACKNOWLEDGEMENTS = (
    "time_ns", "flow", "queue_bytes", "flows", "hop", "left_ns", "window_bytes", "rate_bit_per_s", "rtt_ns",
)  # fmt: skip
"""Columns of a log: queue of the fullest hop, its flows and place, when the packet left it, window and rate after."""

_NS = 1e9


class SlowDown(Record, frozen=True):
    """Completion times over those of the same flows alone, of flows above `low` to `high` bytes."""

    low: float
    high: float
    flows: int
    """That are done."""
    mean: float
    median: float
    percentile_95: float
    percentile_99: float


class FabricSummary(Record, frozen=True):
    """What came out, in numbers."""

    scenario: str
    scheme: str
    seconds: float
    flows: int
    completed: int
    slow_down: SlowDown | None
    """Of all flows; null: none is done."""
    slow_down_by_size: tuple[SlowDown, ...]
    queue_median_bytes: float
    """Of samples of all switch ports."""
    queue_95_bytes: float
    queue_99_bytes: float
    queue_most_bytes: float
    queue_mean_bytes: float
    """Over time, of the port with the longest."""
    utilization: float
    """Of the busiest switch port, all bytes on the wire."""
    jain_index: float | None
    """Mean over the throughput bins of the watched flows; null without."""
    dropped_packets: int
    pauses: int
    paused_seconds: float
    """Of all ports together."""
    retransmitted_packets: int


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FabricResult:
    """F flows through P ports, V of them and W ports watched.

    Parameters
    ----------
    scenario : FabricScenario
    source, target : ndarray, shape (F,)
        Hosts.
    size_bytes, start_ns : ndarray, shape (F,)
    finish_ns : ndarray, shape (F,)
        When the last byte arrived; −1: not yet.
    ideal_ns : ndarray, shape (F,)
        What the flow takes from start to finish alone.
    incast : ndarray, shape (F,)
        Whether it was part of an incast.
    ports : tuple of str
        Names, (P,).
    switch_port : ndarray, shape (P,)
        Whether it is a switch's.
    rate_bit_per_s, sent_bytes, queue_mean_bytes, queue_most_bytes, drops, pauses, paused_ns : ndarray, shape (P,)
        Queues without the packet that is being sent.
    histogram : ndarray, shape (H,)
        Samples of all switch queues; entry 0 counts empty ones, entry i those above (i − 1) to i
        times `histogram_bytes`.
    histogram_bytes : int
    queue_bytes : ndarray, shape (W, T)
        Samples of watched ports, every `watch.interval` from time 0.
    acknowledgements : ndarray, shape (L, 9)
        Of watched flows; columns as `ACKNOWLEDGEMENTS`, `flow` counts within `watch.flows`.
    arrived_bytes : ndarray, shape (V, B)
        On the wire, of watched flows, in each `watch.bin`.
    counts : dict
        Packets and bytes: sent, received, dropped, under way at the end; packet hops, events, most packets at a time.
    provenance : Provenance
    simulator : str
        "packet", or as in "ns-3.37".
    """

    scenario: FabricScenario
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
        """(F,) whether all of a flow arrived."""
        return self.finish_ns >= 0

    @property
    def slow_down(self) -> np.ndarray:
        """(F,) completion time over the one alone, at least 1; nan where a flow isn't done."""
        return np.where(self.done, (self.finish_ns - self.start_ns) / self.ideal_ns, np.nan)

    @property
    def residual(self) -> tuple[int, int]:
        """(packets, bytes) that were sent and neither came, nor were dropped, nor are under way: zeros."""
        n = self.counts
        packets = n["sent"] - n["received"] - n["dropped"] - n["under_way"]
        return packets, n["sent_bytes"] - n["received_bytes"] - n["dropped_bytes"] - n["under_way_bytes"]

    def port(self, name: str) -> int:
        """A port's place in the arrays.

        Raises
        ------
        InvalidValue
            There is none of this name.
        """
        if name not in self.ports:
            raise InvalidValue("port", name, f"one of {', '.join(self.ports[:40])}")
        return self.ports.index(name)

    def queue_cdf(self) -> tuple[np.ndarray, np.ndarray]:
        """(queue [byte], share of samples that are at most so long), over all switch ports."""
        total = max(int(self.histogram.sum()), 1)
        last = int(np.flatnonzero(self.histogram)[-1]) if self.histogram.any() else 0
        return np.arange(last + 1) * float(self.histogram_bytes), np.cumsum(self.histogram[: last + 1]) / total

    def queue_quantile(self, share: float) -> float:
        """The queue that a share of all samples doesn't exceed [byte], to the width of a bin."""
        size, below = self.queue_cdf()
        return float(size[min(int(np.searchsorted(below, share)), len(size) - 1)])

    def throughput(self) -> np.ndarray:
        """(V, B) of watched flows [bit/s], on the wire."""
        return self.arrived_bytes * (BITS_PER_BYTE / self.scenario.watch.bin)

    def fairness(self) -> np.ndarray:
        """(B,) Jain's index in each bin, over the watched flows from which something came; nan where there is none."""
        return np.array([jain_index(column[column > 0]) for column in self.arrived_bytes.T])

    def utilization(self) -> np.ndarray:
        """(P,) of each port, all bytes on the wire."""
        return self.sent_bytes * BITS_PER_BYTE / (self.rate_bit_per_s * self.scenario.duration)

    def slow_down_by_size(self, edges: tuple[float, ...] = SIZE_BINS) -> tuple[SlowDown, ...]:
        """Median and percentiles of the slow-down in bins of flow size [byte]; empty bins are left out."""
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
        """What came out, in numbers."""
        fair = self.fairness() if len(self.arrived_bytes) else np.zeros(0)
        switch = self.switch_port
        return FabricSummary(
            scenario=self.scenario.name,
            scheme=str(type(self.scenario.scheme).__struct_config__.tag),
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

    def measures(self) -> dict[tuple[str, str], float]:
        """(quantity, of what) -> value, in SI units."""
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

    def to_pandas(self) -> pd.DataFrame:
        """One row a flow."""
        import pandas as pd

        names = ("source", "target", "size_bytes", "start_ns", "finish_ns", "ideal_ns", "incast", "slow_down")
        return pd.DataFrame({name: getattr(self, name) for name in names})

    def acknowledged(self) -> pd.DataFrame:
        """The log of watched flows, one row an acknowledgement; `flow` is the flow's number."""
        import pandas as pd

        frame = pd.DataFrame(self.acknowledgements, columns=list(ACKNOWLEDGEMENTS))
        whole = [name for name in ACKNOWLEDGEMENTS if name not in ("window_bytes", "rate_bit_per_s")]
        frame = frame.astype(dict.fromkeys(whole, "int64"))
        numbers = np.array(self.scenario.watch.flows, dtype=np.int64)
        return frame.assign(flow=numbers[frame["flow"].to_numpy()] if len(frame) else frame["flow"])

    def plot(self, **options: Any) -> Figure:
        """Slow-down against flow size, queues and throughput (`netctrl.register.FIGURES`)."""
        return plot(self, **options)

    def table(self) -> tuple[str, list[tuple[str, str]]]:
        """A title, and what a person wants to know first as (name, text) rows."""
        title, rows = fabric_table(self.summary())
        return title, [("simulator", self.simulator), *rows]

    def _repr_html_(self) -> str:
        return html_table(*self.table())


def jain_index(values: np.ndarray) -> float:
    """Jain's fairness index (Σ x)²/(n Σ x²): 1 if all are equal, 1/n if one has all; nan of none."""
    total = float(np.sum(values))
    return total * total / (len(values) * float(np.sum(np.square(values)))) if total > 0.0 else float("nan")


def fabric_table(summary: FabricSummary) -> tuple[str, list[tuple[str, str]]]:
    """A title, and (name, text) rows for people."""
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
