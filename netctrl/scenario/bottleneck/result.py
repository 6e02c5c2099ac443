"""What flows through one bottleneck give: throughput and delay in bins, RTTs of packets, and their summary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from netctrl.errors import InvalidValue
from netctrl.model.io.display import html_table
from netctrl.model.io.provenance import Provenance
from netctrl.model.io.record_file import Record
from netctrl.scenario.bottleneck.scenario import BottleneckScenario
from netctrl.units import BITS_PER_BYTE

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BottleneckResult", "BottleneckSummary", "FlowSummary"]


class FlowSummary(Record, frozen=True):
    """One flow after the warm-up."""

    kind: str
    throughput_bit_per_s: float
    """Of IP packets that came to the receiver."""
    throughput_std_bit_per_s: float
    """Over bins."""
    rtt_mean_s: float | None
    """Over packets that were acknowledged and sent once; null: none was."""
    rtt_median_s: float | None
    rtt_99_s: float | None
    """99th percentile."""
    sent_again: float
    """Share of the bytes sent in the whole run that had been sent before."""


class BottleneckSummary(Record, frozen=True):
    """What came out after the warm-up."""

    scenario: str
    seconds: float
    """Without the warm-up."""
    flows: tuple[FlowSummary, ...]
    utilization: float
    """By the flows, without cross traffic."""
    delay_mean_s: float
    """Of packets in the queue, cross traffic's among them and without the device behind it, mean over bins."""
    queue_most_bytes: float
    dropped_bytes: float
    """In the queue, cross traffic's among them."""
    jain_index: float | None
    """Of the throughputs of two flows or more."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class BottleneckResult:
    """n flows in K bins, with M samples of RTTs.

    Parameters
    ----------
    scenario : BottleneckScenario
    simulator : str
        As in "ns-3.37".
    time_s : ndarray, shape (K,)
        Ends of bins.
    delay_s : ndarray, shape (K,)
        Mean time in the queue of packets that left it in a bin, without the device behind it, which holds a packet and
        sends another; 0 where none did.
    queue_bytes : ndarray, shape (K,)
        The longest queue.
    dropped_bytes : ndarray, shape (K,)
    arrived_bytes : ndarray, shape (n, K)
        IP packets that came to the receiver.
    rate_bit_per_s : ndarray, shape (n, K)
        Pacing rate in force at the bins' ends, of whole packets; 0: nothing paces them.
    window_bytes : ndarray, shape (n, K)
        Of payload.
    rtt_flow, rtt_time_s, rtt_s : ndarray, shape (M,)
        Of packets that were acknowledged and sent once, as time goes on.
    start_s : ndarray, shape (n,)
    read_bytes, sent_bytes, again_bytes : ndarray, shape (n,)
        Payload that the receiver read; that was sent; of this what had been sent before.
    events : ndarray, shape (n, 5)
        Of laws, in the order of `netctrl.laws.pacing.pacing.EVENTS`.
    provenance : Provenance
    """

    scenario: BottleneckScenario
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
        """(n, K) of IP packets that came to the receiver [bit/s]."""
        return BITS_PER_BYTE * self.arrived_bytes / self.scenario.bin

    def rtts(self, flow: int, *, from_s: float | None = None) -> np.ndarray:
        """A flow's RTTs [s] from a time on; by default without the warm-up."""
        first = self.scenario.warmup if from_s is None else from_s
        return self.rtt_s[(self.rtt_flow == flow) & (self.rtt_time_s > first)]

    @property
    def _settled(self) -> np.ndarray:
        """(K,) bins that begin after the warm-up."""
        return self.time_s - self.scenario.bin >= self.scenario.warmup * (1.0 - 1e-9)

    def summary(self) -> BottleneckSummary:
        """What came out after the warm-up."""
        settled = self._settled
        flows = tuple(self._flow(place) for place in range(len(self.scenario.flows)))
        shares = np.array([flow.throughput_bit_per_s for flow in flows])
        squares = float(shares @ shares)
        fair = float(shares.sum() ** 2 / (len(shares) * squares)) if len(shares) > 1 and squares > 0.0 else None
        return BottleneckSummary(
            scenario=self.scenario.name,
            seconds=self.scenario.duration - self.scenario.warmup,
            flows=flows,
            utilization=float(shares.sum() / self.scenario.bottleneck),
            delay_mean_s=float(self.delay_s[settled].mean()),
            queue_most_bytes=float(self.queue_bytes[settled].max()),
            dropped_bytes=float(self.dropped_bytes[settled].sum()),
            jain_index=fair,
        )

    def _flow(self, place: int) -> FlowSummary:
        throughput, rtts = self.throughput[place, self._settled], self.rtts(place)
        mean, median, p99 = (rtts.mean(), *np.percentile(rtts, (50.0, 99.0))) if len(rtts) else (None, None, None)
        return FlowSummary(
            kind=self.scenario.flows[place].kind,
            throughput_bit_per_s=float(throughput.mean()),
            throughput_std_bit_per_s=float(throughput.std()),
            rtt_mean_s=None if mean is None else float(mean),
            rtt_median_s=None if median is None else float(median),
            rtt_99_s=None if p99 is None else float(p99),
            sent_again=float(self.again_bytes[place] / max(self.sent_bytes[place], 1.0)),
        )

    def measures(self) -> dict[tuple[str, str], float]:
        """(quantity, of what) -> value after the warm-up, in SI units; flows by their places."""
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
        """One row a bin; a flow's columns end with its number, from 0."""
        import pandas as pd

        columns = {name: getattr(self, name) for name in ("time_s", "delay_s", "queue_bytes", "dropped_bytes")}
        for place in range(len(self.scenario.flows)):
            columns |= {
                f"{name}_{place}": getattr(self, name)[place]
                for name in ("arrived_bytes", "rate_bit_per_s", "window_bytes")
            }
        return pd.DataFrame(columns)

    def table(self) -> tuple[str, list[tuple[str, str]]]:
        """A title, and what a person wants to know first as (name, text) rows."""
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

    def _repr_html_(self) -> str:
        return html_table(*self.table())
