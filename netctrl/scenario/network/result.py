"""Results of many runs of a network: one row a run, one column a link, and a summary with intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from netctrl.errors import InvalidValue, optional_import
from netctrl.model.design.design import Provenance
from netctrl.scenario.network.demand_result import DemandResult
from netctrl.scenario.network.routed import tcp_of
from netctrl.scenario.network.summary import (
    DemandEstimates,
    Estimate,
    LinkEstimates,
    NetworkSummary,
    TcpEstimates,
)
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.units import BITS_PER_BYTE

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "NetworkResult",
    "TcpResult",
    "estimate",
]

_ROWS = 10
"""Largest number of demands in a table."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TcpResult:
    """Results of R runs for M demands that are TCP, in the scenario's order; arrays (R, M)."""

    goodput_bit_per_s: np.ndarray
    """Payload that came to the end, in order [bit/s]."""
    round_trip_s: np.ndarray
    """TCP's newest sample, mean over acknowledgements [s]."""
    retransmission_ratio: np.ndarray
    """Sent again, of all payload sent."""

    def __post_init__(self) -> None:
        for name in ("goodput_bit_per_s", "round_trip_s", "retransmission_ratio"):
            values = getattr(self, name)
            if values.shape != self.goodput_bit_per_s.shape or values.ndim != 2:
                raise InvalidValue(name, values.shape, "an array of shape (runs, demands of TCP)")
            values.setflags(write=False)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class NetworkResult(Result):
    """Result of R runs of a network with N controlled links, after the warm-up.

    Parameters
    ----------
    scenario : Scenario
        The simulated scenario.
    simulator : str
        "fluid", "packet", or such as "ns-3.37".
    links : tuple of str
        Ids of the N links.
    capacity_bit_per_s : ndarray, shape (N,)
        Capacities [bit/s].
    weight : ndarray, shape (N,), or None
        Weights mu_l of the cost.
    seconds : float
        Evaluated time of each run [s].
    sample : ndarray of int, shape (R,)
        Index of the independent sample of the traffic in each run
        (`netctrl.scenario.network.trace_window.traffic_samples`).
    offered_bytes, delivered_bytes : ndarray, shape (R,)
        Traffic that demands sent into the network, and that left it at its ends [byte].
    arrived_bytes, departed_bytes, lost_bytes, growth_bytes : ndarray, shape (R, N)
        arrived = departed + lost + growth of the backlog [byte].
    backlog_bytes : ndarray, shape (R, N)
        Mean over the samples [byte].
    rate_square : ndarray, shape (R, N)
        Mean of (f_l − f*_l)² [(bit/s)²].
    backlog_square : ndarray, shape (R, N)
        Mean of (b_l − backlog setpoint)², over the interval [(bit/s)²].
    watched_time_s : ndarray, shape (T,)
        Times of `watched` [s].
    watched : ndarray, shape (3, N, T)
        Series of the first run from its very beginning: backlog [byte], rate [bit/s] and loss [byte] of each interval.
    provenance : Provenance
        How it was made.
    tcp : TcpResult or None
        Results of TCP demands; None without TCP.
    demands : DemandResult or None
        Results by demand; None where demands aren't tracked separately: in the fluid unless the network is
        `per_demand`, on packets if some are TCP, and in ns-3.
    """

    scenario: Scenario
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
    demands: DemandResult | None = None

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
        """Share of the offered traffic that each run loses, shape (R,)."""
        return _ratio(self.lost_bytes.sum(axis=1), self.offered_bytes)

    @property
    def cost(self) -> np.ndarray | None:
        """Cost of each run, Σ_l E f_l² + mu_l E b_l², shape (R,) [(bit/s)²]."""
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
            demands=() if self.demands is None else self._demand_estimates(self.demands, estimated),
        )

    def _demand_estimates(
        self, found: DemandResult, estimated: Callable[[np.ndarray], Estimate]
    ) -> tuple[DemandEstimates, ...]:
        throughput = found.delivered_bytes * (BITS_PER_BYTE / self.seconds)
        loss = _ratio(found.lost_bytes, found.offered_bytes)
        return tuple(
            DemandEstimates(
                id=demand.id,
                throughput_bit_per_s=estimated(throughput[:, i]),
                loss_ratio=estimated(loss[:, i]),
                delay_s=None if np.isnan(found.delay_s[:, i]).any() else estimated(found.delay_s[:, i]),
            )
            for i, demand in enumerate(self.scenario.network.graph.demands)
        )

    def link_ids(self) -> tuple[str, ...]:
        """Names in `measures` that are links."""
        return self.links

    def measures(self) -> dict[tuple[str, str], float]:
        """Results: (quantity, object) -> mean over all runs, in SI units; of a link where a demand has the same id."""
        found = self.summary()
        measures = {
            ("throughput", "network"): found.throughput_bit_per_s.mean,
            ("backlog", "network"): found.backlog_bytes.mean,
            ("loss", "network"): found.loss_ratio.mean,
        }
        for each in found.demands:
            measures["throughput", each.id] = each.throughput_bit_per_s.mean
            measures["loss", each.id] = each.loss_ratio.mean
            if each.delay_s is not None:
                measures["delay", each.id] = each.delay_s.mean
        for link in found.links:
            measures["throughput", link.id] = link.throughput_bit_per_s.mean
            measures["backlog", link.id] = link.backlog_bytes.mean
            measures["loss", link.id] = link.loss_ratio.mean
        for each in found.tcp:
            measures["throughput", each.demand] = each.goodput_bit_per_s.mean
            measures["rtt", each.demand] = each.round_trip_s.mean
        return measures

    def to_pandas(self) -> pd.DataFrame:
        """A DataFrame with one row per run and link."""
        with optional_import():
            import pandas as pd

        names = ("arrived_bytes", "departed_bytes", "lost_bytes", "growth_bytes", "backlog_bytes")
        more = ("rate_square", "backlog_square")
        columns = {"run": np.repeat(np.arange(self.runs), len(self.links)), "link": list(self.links) * self.runs}
        return pd.DataFrame(columns | {name: getattr(self, name).ravel() for name in (*names, *more)})

    def table(self) -> tuple[str, list[tuple[str, str]]]:
        """Title, and rows of (name, text) with the main results."""
        return network_table(self.summary())


def _tcp_estimates(
    scenario: Scenario, tcp: TcpResult, estimated: Callable[[np.ndarray], Estimate]
) -> tuple[TcpEstimates, ...]:
    return tuple(
        TcpEstimates(
            demand=each.demand,
            goodput_bit_per_s=estimated(tcp.goodput_bit_per_s[:, column]),
            round_trip_s=estimated(tcp.round_trip_s[:, column]),
            retransmission_ratio=estimated(tcp.retransmission_ratio[:, column]),
        )
        for column, each in enumerate(tcp_of(scenario))
    )


def estimate(values: np.ndarray, sample: np.ndarray | None = None) -> Estimate:
    """Mean of independent values, and the half width of its 95 % interval by Student's t.

    Values with the same index in `sample` are not independent: their mean counts as one value.
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
    """Title, and rows of (name, text)."""
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
    worst = sorted(summary.demands, key=lambda each: each.loss_ratio.mean, reverse=True)
    shown = summary.demands if len(worst) <= _ROWS else worst[:_ROWS]
    rows += [(f"demand {each.id}", _demand_text(each)) for each in shown]
    if len(worst) > _ROWS:
        rows.append(("demands", f"{len(worst)}, of which those that lose the most are above"))
    what = f"{summary.runs} run{'s' if summary.runs > 1 else ''} of {summary.seconds:g} s"
    return f"{summary.scenario} ({summary.simulator}), {what}, {_intervals(summary)}", rows


def _demand_text(each: DemandEstimates) -> str:
    delay = "" if each.delay_s is None else f", delay {_text(each.delay_s, 1e-3, 'ms')}"
    throughput, loss = _text(each.throughput_bit_per_s, 1e6, "Mbit/s"), _text(each.loss_ratio, 1e-2, "%")
    return f"throughput {throughput}, loss {loss}{delay}"


def _intervals(summary: NetworkSummary) -> str:
    """Description of the samples behind a summary's intervals."""
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
