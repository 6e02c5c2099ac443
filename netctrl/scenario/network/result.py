"""What many runs of a network give: one row a run, one column a link, and their summary with intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from netctrl.errors import InvalidValue
from netctrl.model.design.design import Provenance
from netctrl.model.io.display import html_table, plot
from netctrl.model.io.record_file import Record
from netctrl.scenario.network.scenario import NetworkScenario
from netctrl.units import BITS_PER_BYTE

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["Estimate", "LinkEstimates", "NetworkResult", "NetworkSummary", "TcpEstimates", "TcpResult", "estimate"]


class Estimate(Record, frozen=True):
    """A mean over independent samples of the traffic, and the half width of its 95 % interval by Student's t.

    Each run is a sample where traffic is drawn; of a trace only the disjoint windows are. Null for a single sample.
    """

    mean: float
    half_width: float | None


class LinkEstimates(Record, frozen=True):
    """One link."""

    id: str
    backlog_bytes: Estimate
    throughput_bit_per_s: Estimate
    utilization: Estimate
    loss_ratio: Estimate
    """Of what arrives at the link."""


class TcpEstimates(Record, frozen=True):
    """The TCP of one demand, all flows together."""

    demand: str
    goodput_bit_per_s: Estimate
    """Payload that came to the end, in order."""
    round_trip_s: Estimate
    """TCP's newest sample, mean over acknowledgements."""
    retransmission_ratio: Estimate
    """Sent again, of all payload sent."""


class NetworkSummary(Record, frozen=True):
    """What came out, in numbers."""

    scenario: str
    simulator: str
    runs: int
    samples: int
    """Independent samples of the traffic among the runs: disjoint windows of a trace, else all runs."""
    seconds: float
    """That count, of each run."""
    loss_ratio: Estimate
    """Lost anywhere, of what demands offer."""
    backlog_bytes: Estimate
    """Mean over time of all backlogs together."""
    throughput_bit_per_s: Estimate
    """What leaves the network."""
    cost: Estimate | None
    """Σ_l E f_l² + mu_l E b_l² around nominal rates and the standing backlog [(bit/s)²]; null without mu."""
    links: tuple[LinkEstimates, ...]
    tcp: tuple[TcpEstimates, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TcpResult:
    """What R runs gave of M demands that are TCP, in the scenario's order; each (R, M)."""

    goodput_bit_per_s: np.ndarray
    round_trip_s: np.ndarray
    retransmission_ratio: np.ndarray

    def __post_init__(self) -> None:
        for name in ("goodput_bit_per_s", "round_trip_s", "retransmission_ratio"):
            values = getattr(self, name)
            if values.shape != self.goodput_bit_per_s.shape or values.ndim != 2:
                raise InvalidValue(name, values.shape, "an array of shape (runs, demands of TCP)")
            values.setflags(write=False)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class NetworkResult:
    """R runs of a network's N controlled links, over the time that counts.

    Parameters
    ----------
    scenario : NetworkScenario
    simulator : str
    links : tuple of str
        Ids, (N,).
    capacity_bit_per_s : ndarray, shape (N,)
    weight : ndarray, shape (N,), or None
        mu_l of the cost.
    seconds : float
        Of each run.
    sample : ndarray of int, shape (R,)
        Independent sample of the traffic that each run met (`netctrl.scenario.network.trace_window.traffic_samples`).
    offered_bytes, delivered_bytes : ndarray, shape (R,)
        What demands sent into the network, and what left it at its ends.
    arrived_bytes, departed_bytes, lost_bytes, growth_bytes : ndarray, shape (R, N)
        arrived = departed + lost + growth of the backlog.
    backlog_bytes : ndarray, shape (R, N)
        Mean over the samples.
    rate_square : ndarray, shape (R, N)
        Mean of (f_l − f*_l)² [(bit/s)²].
    backlog_square : ndarray, shape (R, N)
        Mean of (b_l − standing backlog)², over the interval [(bit/s)²].
    watched_time_s : ndarray, shape (T,)
    watched : ndarray, shape (3, N, T)
        Of the first run from its very beginning: backlog [byte], rate [bit/s] and loss [byte] of each interval.
    provenance : Provenance
    tcp : TcpResult or None
        None without TCP.
    """

    scenario: NetworkScenario
    simulator: str
    links: tuple[str, ...]
    capacity_bit_per_s: np.ndarray
    weight: np.ndarray | None
    seconds: float
    sample: np.ndarray
    offered_bytes: np.ndarray
    delivered_bytes: np.ndarray
    arrived_bytes: np.ndarray
    departed_bytes: np.ndarray
    lost_bytes: np.ndarray
    growth_bytes: np.ndarray
    backlog_bytes: np.ndarray
    rate_square: np.ndarray
    backlog_square: np.ndarray
    watched_time_s: np.ndarray
    watched: np.ndarray
    provenance: Provenance
    tcp: TcpResult | None = None

    def __post_init__(self) -> None:
        R, N = self.backlog_bytes.shape
        per_link = ("arrived_bytes", "departed_bytes", "lost_bytes", "growth_bytes", "rate_square", "backlog_square")
        shapes = dict.fromkeys(per_link, (R, N)) | dict.fromkeys(("sample", "offered_bytes", "delivered_bytes"), (R,))
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise InvalidValue(name, getattr(self, name).shape, f"an array of shape {shape}")
        for name in (*shapes, "backlog_bytes", "capacity_bit_per_s", "watched", "watched_time_s"):
            getattr(self, name).setflags(write=False)

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.offered_bytes)

    @property
    def loss_ratio(self) -> np.ndarray:
        """(R,) lost anywhere, of what demands offer."""
        return _ratio(self.lost_bytes.sum(axis=1), self.offered_bytes)

    @property
    def cost(self) -> np.ndarray | None:
        """(R,) Σ_l E f_l² + mu_l E b_l² [(bit/s)²], as the summary has it."""
        if self.weight is None:
            return None
        return self.rate_square.sum(axis=1) + self.backlog_square @ self.weight

    def summary(self) -> NetworkSummary:
        """Means over the samples of the traffic with their 95 % intervals."""

        def estimated(values: np.ndarray) -> Estimate:
            return estimate(values, self.sample)

        cost = self.cost
        throughput = self.departed_bytes * (BITS_PER_BYTE / self.seconds)
        ratio = _ratio(self.lost_bytes, self.arrived_bytes)
        links = tuple(
            LinkEstimates(
                id=name,
                backlog_bytes=estimated(self.backlog_bytes[:, row]),
                throughput_bit_per_s=estimated(throughput[:, row]),
                utilization=estimated(throughput[:, row] / self.capacity_bit_per_s[row]),
                loss_ratio=estimated(ratio[:, row]),
            )
            for row, name in enumerate(self.links)
        )
        return NetworkSummary(
            scenario=self.scenario.name,
            simulator=self.simulator,
            runs=self.runs,
            samples=len(np.unique(self.sample)),
            seconds=self.seconds,
            loss_ratio=estimated(self.loss_ratio),
            backlog_bytes=estimated(self.backlog_bytes.sum(axis=1)),
            throughput_bit_per_s=estimated(self.delivered_bytes * (BITS_PER_BYTE / self.seconds)),
            cost=None if cost is None else estimated(cost),
            links=links,
            tcp=() if self.tcp is None else _tcp_estimates(self.scenario, self.tcp, estimated),
        )

    def measures(self) -> dict[tuple[str, str], float]:
        """(quantity, of what) -> mean over all runs, in SI units."""
        found = self.summary()
        measures = {
            ("throughput", "network"): found.throughput_bit_per_s.mean,
            ("backlog", "network"): found.backlog_bytes.mean,
            ("loss", "network"): found.loss_ratio.mean,
        }
        for link in found.links:
            measures["throughput", link.id] = link.throughput_bit_per_s.mean
            measures["backlog", link.id] = link.backlog_bytes.mean
            measures["loss", link.id] = link.loss_ratio.mean
        for each in found.tcp:
            measures["throughput", each.demand] = each.goodput_bit_per_s.mean
            measures["rtt", each.demand] = each.round_trip_s.mean
        return measures

    def to_pandas(self) -> pd.DataFrame:
        """One row a run and link."""
        import pandas as pd

        names = ("arrived_bytes", "departed_bytes", "lost_bytes", "growth_bytes", "backlog_bytes")
        more = ("rate_square", "backlog_square")
        columns = {"run": np.repeat(np.arange(self.runs), len(self.links)), "link": list(self.links) * self.runs}
        return pd.DataFrame(columns | {name: getattr(self, name).ravel() for name in (*names, *more)})

    def plot(self, **options: Any) -> Figure:
        """Backlog, rate and loss of the first run against time (`netctrl.register.FIGURES`)."""
        return plot(self, **options)

    def table(self) -> tuple[str, list[tuple[str, str]]]:
        """A title, and what a person wants to know first as (name, text) rows."""
        return network_table(self.summary())

    def _repr_html_(self) -> str:
        return html_table(*self.table())


def _tcp_estimates(
    scenario: NetworkScenario, tcp: TcpResult, estimated: Callable[[np.ndarray], Estimate]
) -> tuple[TcpEstimates, ...]:
    return tuple(
        TcpEstimates(
            demand=each.demand,
            goodput_bit_per_s=estimated(tcp.goodput_bit_per_s[:, column]),
            round_trip_s=estimated(tcp.round_trip_s[:, column]),
            retransmission_ratio=estimated(tcp.retransmission_ratio[:, column]),
        )
        for column, each in enumerate(scenario.tcp)
    )


def estimate(values: np.ndarray, sample: np.ndarray | None = None) -> Estimate:
    """Mean of independent values, and the half width of its 95 % interval by Student's t.

    Values of one `sample`, an array of numbers beside them, are no two observations: their mean is one.
    """
    if sample is not None:
        _, row, count = np.unique(sample, return_inverse=True, return_counts=True)
        values = np.bincount(row, values) / count
    if len(values) < 2:
        return Estimate(mean=float(values.mean()), half_width=None)
    from scipy.special import stdtrit

    spread = float(values.std(ddof=1)) / sqrt(len(values))
    return Estimate(mean=float(values.mean()), half_width=float(stdtrit(len(values) - 1, 0.975)) * spread)


def network_table(summary: NetworkSummary) -> tuple[str, list[tuple[str, str]]]:
    """A title, and (name, text) rows for people."""
    rows = [
        ("loss", _text(summary.loss_ratio, 1e-2, "% of what demands offer")),
        ("backlog", _text(summary.backlog_bytes, 1e3, "kB in all")),
        ("throughput", _text(summary.throughput_bit_per_s, 1e6, "Mbit/s")),
    ]
    if summary.cost is not None:
        rows.append(("cost", _text(summary.cost, 1e12, "(Mbit/s)²")))
    rows += [
        (
            link.id,
            f"utilization {link.utilization.mean:.4f}, loss {_text(link.loss_ratio, 1e-2, '%')}, "
            f"backlog {_text(link.backlog_bytes, 1e3, 'kB')}",
        )
        for link in summary.links
    ]
    rows += [
        (
            f"TCP of {each.demand}",
            f"goodput {_text(each.goodput_bit_per_s, 1e6, 'Mbit/s')}, "
            f"round trip {_text(each.round_trip_s, 1e-3, 'ms')}, "
            f"sent again {_text(each.retransmission_ratio, 1e-2, '%')}",
        )
        for each in summary.tcp
    ]
    what = f"{summary.runs} run{'s' if summary.runs > 1 else ''} of {summary.seconds:g} s"
    return f"{summary.scenario} ({summary.simulator}), {what}, {_intervals(summary)}", rows


def _intervals(summary: NetworkSummary) -> str:
    """What the intervals of a summary rest on."""
    if summary.runs == 1:
        return "no interval"
    if summary.samples == 1:
        return "all on the same window of the trace: no interval"
    of = f" over {summary.samples} disjoint windows of the trace" if summary.samples < summary.runs else ""
    return f"95 % intervals{of}"


def _text(value: Estimate, unit: float, name: str) -> str:
    band = "" if value.half_width is None else f" ± {value.half_width / unit:.2g}"
    return f"{value.mean / unit:.4g}{band} {name}"


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0.0)
