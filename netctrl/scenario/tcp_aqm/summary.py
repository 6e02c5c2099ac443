"""Summary of a simulation over a time range: links, groups of flows and short objects."""

from __future__ import annotations

from netctrl.model.io.record_file import Record
from netctrl.units import format_quantity

__all__ = ["GroupSummary", "LinkSummary", "ResponseSummary", "SimulationSummary", "summary_table"]


class LinkSummary(Record, frozen=True):
    """Figures of one link over the summarised time; the backlog from its samples."""

    id: str
    backlog_mean_bytes: float
    backlog_std_bytes: float
    backlog_quantiles_bytes: tuple[float, float, float, float]
    """5 %, 50 %, 95 % and the maximum."""
    throughput_bit_per_s: float
    utilization: float
    """Share of the link's actual, possibly varying capacity."""
    loss_ratio: float
    """Lost over arrived bytes: overflow, and drops of packets that a law couldn't mark."""
    marking_ratio: float
    """Marked over arrived bytes."""
    probability_mean: float
    probability_cv: float
    """Standard deviation of the marking probability over its mean; 0 where the mean is 0."""
    delay_s: float | None = None
    """Mean time in the queue; null: not measured."""


class ResponseSummary(Record, frozen=True):
    """Response times of objects below 12 kB requested in the summarised time."""

    objects: int
    mean_s: float
    median_s: float
    p95_s: float


class GroupSummary(Record, frozen=True):
    """Figures of one group of flows over the summarised time."""

    id: str
    throughput_bit_per_s: float
    """Rate of the payload, of all its flows together."""
    rtt_s: float | None
    """Mean over intervals; null: not measured, or flows without acknowledgements."""
    one_way_s: float | None = None
    """Time of datagrams from their first queue to their receiver, mean over intervals; null: not measured, or flows
    with acknowledgements."""
    jitter_s: float | None = None
    """Difference in delay between consecutive datagrams of a flow, mean over intervals."""


class SimulationSummary(Record, frozen=True):
    """Main figures of a simulation."""

    scenario: str
    simulator: str
    start_s: float
    stop_s: float
    links: tuple[LinkSummary, ...]
    responses: ResponseSummary | None
    """None where no short object was requested."""
    flows: tuple[GroupSummary, ...] = ()
    """Groups of flows."""


def summary_table(summary: SimulationSummary) -> tuple[str, list[tuple[str, str]]]:
    """Title, and rows of (name, text)."""
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
    known = {"RTT": group.rtt_s, "one way": group.one_way_s, "jitter": group.jitter_s}
    times = [f", {what} {1e3 * time:.4g} ms" for what, time in known.items() if time is not None]
    return f"{format_quantity(group.throughput_bit_per_s, 'bit/s')} of payload{''.join(times)}"
