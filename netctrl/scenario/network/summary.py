"""Summary of a network's runs: means over independent samples of the traffic, with intervals."""

from __future__ import annotations

from netctrl.model.io.record_file import Record

__all__ = ["DemandEstimates", "Estimate", "LinkEstimates", "NetworkSummary", "TcpEstimates"]


class Estimate(Record, frozen=True):
    """A mean over independent samples of the traffic, and the half width of its 95 % interval by Student's t.

    Each run is a sample where traffic is drawn; for a trace only its disjoint windows are. Null for a single sample.
    """

    mean: float
    """Mean of the samples."""
    half_width: float | None
    """Half width of the mean's 95 % interval; null for a single sample."""


class LinkEstimates(Record, frozen=True):
    """Figures of one link."""

    id: str
    """Id of the link."""
    backlog_bytes: Estimate
    """Mean backlog [byte]."""
    throughput_bit_per_s: Estimate
    """Rate of what leaves it [bit/s]."""
    utilization: Estimate
    """Throughput over capacity."""
    loss_ratio: Estimate
    """Share of the link's arrivals that is lost."""


class DemandEstimates(Record, frozen=True):
    """Figures of one demand."""

    id: str
    """Id of the demand."""
    throughput_bit_per_s: Estimate
    """Rate at its target."""
    loss_ratio: Estimate
    """Share of the demand's offered traffic that is lost at any link."""
    delay_s: Estimate | None
    """Mean time from source to target of delivered traffic; null where a run delivered none."""


class TcpEstimates(Record, frozen=True):
    """Figures of the TCP flows of one demand, together."""

    demand: str
    """Id of the demand."""
    goodput_bit_per_s: Estimate
    """Payload delivered in order."""
    round_trip_s: Estimate
    """Mean over acknowledgements of TCP's newest RTT sample."""
    retransmission_ratio: Estimate
    """Share of the sent payload that was retransmitted."""


class NetworkSummary(Record, frozen=True):
    """Main figures of the runs."""

    scenario: str
    """Name of the scenario."""
    simulator: str
    """Engine, with its version."""
    runs: int
    """Number of runs."""
    samples: int
    """Number of independent samples of the traffic among the runs: disjoint windows of a trace, else all runs."""
    seconds: float
    """Evaluated time of each run."""
    loss_ratio: Estimate
    """Share of the offered traffic that is lost at any link."""
    backlog_bytes: Estimate
    """Mean over time of the sum of all backlogs."""
    throughput_bit_per_s: Estimate
    """Rate of traffic that leaves the network."""
    cost: Estimate | None
    """Σ_l E f_l² + mu_l E b_l² around nominal rates and the backlog setpoint [(bit/s)²]; null without mu."""
    links: tuple[LinkEstimates, ...]
    """One each, in the network's order."""
    tcp: tuple[TcpEstimates, ...] = ()
    """One each of the demands that are TCP."""
    demands: tuple[DemandEstimates, ...] = ()
    """Demands in the network's order; empty where they aren't tracked separately."""
