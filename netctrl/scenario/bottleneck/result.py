"""Result of flows through one bottleneck: throughput and delay in bins, RTTs of packets, and a summary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from netctrl.errors import InvalidValue, optional_import
from netctrl.model.io.provenance import Provenance
from netctrl.model.io.record_file import Record
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.units import BITS_PER_BYTE

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BottleneckResult", "BottleneckSummary", "FlowSummary"]


class FlowSummary(Record, frozen=True):
    """Figures of one flow after the warm-up."""

    kind: str
    throughput_bit_per_s: float
    """Rate of IP packets at the receiver."""
    throughput_std_bit_per_s: float
    """Standard deviation over bins."""
    rtt_mean_s: float | None
    """Mean over acknowledged packets that were sent once; null: there were none."""
    rtt_median_s: float | None
    rtt_99_s: float | None
    """99th percentile."""
    sent_again: float
    """Share of the bytes sent in the whole run that had been sent before."""


class BottleneckSummary(Record, frozen=True):
    """Figures after the warm-up."""

    scenario: str
    seconds: float
    """Duration without the warm-up [s]."""
    flows: tuple[FlowSummary, ...]
    utilization: float
    """Share used by the flows, without cross traffic."""
    delay_mean_s: float
    """Mean over bins of the time that packets wait, including cross traffic."""
    queue_most_bytes: float
    dropped_bytes: float
    """Bytes dropped in the queue, including cross traffic."""
    jain_index: float | None
    """Jain's index of the throughputs of two or more flows."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class BottleneckResult(Result):
    """Result of flows through one bottleneck: n flows in K bins, with M samples of RTTs.

    Parameters
    ----------
    scenario : Scenario
        The simulated scenario.
    simulator : str
        Such as "ns-3.37".
    time_s : ndarray, shape (K,)
        Ends of bins [s].
    delay_s : ndarray, shape (K,)
        Mean time that packets waited until their transmission began in a bin [s]; 0 without packets.
    queue_bytes : ndarray, shape (K,)
        Longest queue [byte].
    dropped_bytes : ndarray, shape (K,)
        Bytes dropped in each bin [byte].
    arrived_bytes : ndarray, shape (n, K)
        IP packets received [byte].
    rate_bit_per_s : ndarray, shape (n, K)
        Pacing rate at the bins' ends, for whole packets [bit/s]; 0: no pacing.
    window_bytes : ndarray, shape (n, K)
        Congestion window, payload only [byte].
    rtt_flow, rtt_time_s, rtt_s : ndarray, shape (M,)
        Flow, time and RTT [s] of acknowledged packets that were sent once, in order of time.
    start_s : ndarray, shape (n,)
        When each flow starts [s].
    read_bytes, sent_bytes, again_bytes : ndarray, shape (n,)
        Payload that the receiver read, payload sent, and the part of it that had been sent before [byte].
    events : ndarray, shape (n, 5)
        Counts of the laws' events, in the order of `netctrl.laws.pacing.pacing.EVENTS`.
    provenance : Provenance
        How it was made.
    """

    scenario: Scenario
    simulator: str
    time_s: np.ndarray
    delay_s: np.ndarray
    queue_bytes: np.ndarray
    dropped_bytes: np.ndarray
    arrived_bytes: np.ndarray
    rate_bit_per_s: np.ndarray
    window_bytes: np.ndarray
    rtt_flow: np.ndarray
    rtt_time_s: np.ndarray
    rtt_s: np.ndarray
    start_s: np.ndarray
    read_bytes: np.ndarray
    sent_bytes: np.ndarray
    again_bytes: np.ndarray
    events: np.ndarray
    provenance: Provenance

    def __post_init__(self) -> None:
        n, K, M = len(self.scenario.flows), len(self.time_s), len(self.rtt_s)
        bins, samples, flows = (K,), (M,), (n,)
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("time_s", "delay_s", "queue_bytes", "dropped_bytes"), bins)
        shapes |= dict.fromkeys(("arrived_bytes", "rate_bit_per_s", "window_bytes"), (n, K))
        shapes |= dict.fromkeys(("rtt_flow", "rtt_time_s", "rtt_s"), samples)
        shapes |= dict.fromkeys(("start_s", "read_bytes", "sent_bytes", "again_bytes"), flows) | {"events": (n, 5)}
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise InvalidValue(name, getattr(self, name).shape, f"an array of shape {shape}")
            getattr(self, name).setflags(write=False)

    @property
    def throughput(self) -> np.ndarray:
        """Rate of IP packets at the receiver, shape (n, K) [bit/s]."""
        return BITS_PER_BYTE * self.arrived_bytes / self.scenario.interval

    def rtts(self, flow: int, *, from_s: float | None = None) -> np.ndarray:
        """RTTs of a flow from a given time on.

        Parameters
        ----------
        flow : int
            Number of the flow, from 0.
        from_s : float, optional
            Time [s]; by default the end of the warm-up.

        Returns
        -------
        ndarray
            RTTs [s].
        """
        first = self.scenario.warmup if from_s is None else from_s
        return self.rtt_s[(self.rtt_flow == flow) & (self.rtt_time_s > first)]

    @property
    def _settled(self) -> np.ndarray:
        """(K,) whether a bin begins after the warm-up."""
        return self.time_s - self.scenario.interval >= self.scenario.warmup * (1.0 - 1e-9)

    def summary(self) -> BottleneckSummary:
        """Means and ratios after the warm-up."""
        settled = self._settled
        flows = tuple(self._flow(place) for place in range(len(self.scenario.flows)))
        shares = np.array([flow.throughput_bit_per_s for flow in flows])
        squares = float(shares @ shares)
        fair = float(shares.sum() ** 2 / (len(shares) * squares)) if len(shares) > 1 and squares > 0.0 else None
        return BottleneckSummary(
            scenario=self.scenario.name,
            seconds=self.scenario.duration - self.scenario.warmup,
            flows=flows,
            utilization=float(shares.sum() / self.scenario.network.capacity),
            delay_mean_s=float(self.delay_s[settled].mean()),
            queue_most_bytes=float(self.queue_bytes[settled].max()),
            dropped_bytes=float(self.dropped_bytes[settled].sum()),
            jain_index=fair,
        )

    def _flow(self, place: int) -> FlowSummary:
        throughput, rtts = self.throughput[place, self._settled], self.rtts(place)
        mean, median, p99 = (rtts.mean(), *np.percentile(rtts, (50.0, 99.0))) if len(rtts) else (None, None, None)
        return FlowSummary(
            kind=self.scenario.flows[place].sender,
            throughput_bit_per_s=float(throughput.mean()),
            throughput_std_bit_per_s=float(throughput.std()),
            rtt_mean_s=None if mean is None else float(mean),
            rtt_median_s=None if median is None else float(median),
            rtt_99_s=None if p99 is None else float(p99),
            sent_again=float(self.again_bytes[place] / max(self.sent_bytes[place], 1.0)),
        )

    def link_ids(self) -> tuple[str, ...]:
        """Names of objects in `measures` that are links."""
        return ("bottleneck",)

    def measures(self) -> dict[tuple[str, str], float]:
        """Results after the warm-up: (quantity, object) -> value, in SI units; flows are named by number."""
        found = self.summary()
        measures = {
            ("utilization", "bottleneck"): found.utilization,
            ("delay", "bottleneck"): found.delay_mean_s,
            ("lost bytes", "bottleneck"): found.dropped_bytes,
        }
        for place, flow in enumerate(found.flows):
            measures["throughput", f"{place} {flow.kind}"] = flow.throughput_bit_per_s
            if flow.rtt_mean_s is not None:
                measures["rtt", f"{place} {flow.kind}"] = flow.rtt_mean_s
        if found.jain_index is not None:
            measures["Jain's index", "flows"] = found.jain_index
        return measures

    def to_pandas(self) -> pd.DataFrame:
        """A DataFrame with one row per bin; a flow's columns end with its number, from 0."""
        with optional_import():
            import pandas as pd

        columns = {name: getattr(self, name) for name in ("time_s", "delay_s", "queue_bytes", "dropped_bytes")}
        for place in range(len(self.scenario.flows)):
            columns |= {
                f"{name}_{place}": getattr(self, name)[place]
                for name in ("arrived_bytes", "rate_bit_per_s", "window_bytes")
            }
        return pd.DataFrame(columns)

    def table(self) -> tuple[str, list[tuple[str, str]]]:
        """Title, and rows of (name, text) with the main results."""
        found = self.summary()
        rows = [("simulator", self.simulator)]
        for place, flow in enumerate(found.flows):
            rate = f"{flow.throughput_bit_per_s / 1e6:.4g} ± {flow.throughput_std_bit_per_s / 1e6:.2g} Mbit/s"
            trips = "no RTT"
            if flow.rtt_mean_s is not None and flow.rtt_99_s is not None:
                trips = f"RTT {1e3 * flow.rtt_mean_s:.4g} ms, 99 % {1e3 * flow.rtt_99_s:.4g} ms"
            rows.append((f"{place} {flow.kind}", f"{rate}, {trips}, {100.0 * flow.sent_again:.2g} % sent again"))
        queue = f"delay {1e3 * found.delay_mean_s:.4g} ms, at most {found.queue_most_bytes / 1e3:.4g} kB"
        rows += [("queue", f"{queue}, {found.dropped_bytes / 1e3:.4g} kB dropped")]
        rows += [("utilization", f"{found.utilization:.4f}")]
        if found.jain_index is not None:
            rows.append(("Jain's index", f"{found.jain_index:.4f}"))
        return f"{found.scenario}, {self.scenario.warmup:g} to {self.scenario.duration:g} s", rows
