"""Metrics of an agent in Prometheus' text format (exposition format 0.0.4)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from math import isnan

from netctrl.linux.agent.state import AgentPlan, AgentState

__all__ = ["LATENESS_BOUNDS_S", "AgentMetrics", "Histogram"]

LATENESS_BOUNDS_S = (1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.5, 1.0)
"""Upper bounds of the histograms' bins [s]."""

_HELP = {
    "steps": "Intervals with a control decision.",
    "missed_steps": "Intervals skipped because the previous one took too long.",
    "rate_changes": "Rates set in the kernel.",
    "rates_in_dead_band": "Rates not set because they were too close to the one in force.",
    "rates_clipped": "Rates of the law that were clipped to their limits.",
    "rates_not_finite": "Rates that were not numbers, replaced by the fallback.",
    "fallback_steps": "Intervals without a command from the central controller.",
    "held_steps": "Intervals without a measurement, in which the rate was held.",
    "messages_sent": "Datagrams sent to peers.",
    "messages_received": "Datagrams accepted.",
    "peers_lost": "Peers lost after a long time without messages.",
    "links_gone": "Links whose interface or queue is gone.",
    "links_foreign": "Links whose queue was replaced by another one.",
    "links_changed": "Links whose rate another program set.",
}
_DROPPED = "dropped_"


class Histogram:
    """Counts by bin, of constant size."""

    def __init__(self, bounds: tuple[float, ...] = LATENESS_BOUNDS_S) -> None:
        self.bounds, self.counts, self.sum = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, value: float) -> None:
        """Count one observation [s]."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def quantile(self, share: float) -> float:
        """Upper bound of a quantile: that of its bin; inf beyond the last bin, 0 without observations."""
        desired, total = share * sum(self.counts), 0
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            total += count
            if total and total >= desired:
                return bound
        return 0.0


class AgentMetrics:
    """Times, and events that never reach an agent's state, in addition to the state's counters."""

    def __init__(self) -> None:
        self.lateness, self.duration = Histogram(), Histogram()
        self.flooded = 0
        """Intervals with more datagrams than are processed."""
        self.unread = 0
        """Intervals without counters from the kernel."""
        self.unsent = 0
        """Datagrams that the kernel rejected."""

    def late(self, seconds: float) -> None:
        """Count the delay of a step after its deadline."""
        self.lateness.add(max(seconds, 0.0))

    def took(self, seconds: float) -> None:
        """Count the duration of a step."""
        self.duration.add(seconds)

    def text(self, plan: AgentPlan, state: AgentState) -> str:
        """All metrics of one agent."""
        counts = dict.fromkeys(_HELP, 0) | {name: n for name, n in state.counts.items() if name in _HELP}
        lines: list[str] = []
        for name, help_text in _HELP.items():
            lines += _family(f"netctrl_agent_{name}_total", "counter", help_text, [((), counts[name])])
        drops = [((("reason", name[len(_DROPPED) :]),), n) for name, n in state.counts.items() if _DROPPED in name]
        lines += _family("netctrl_agent_dropped_total", "counter", "Datagrams dropped.", sorted(drops))
        lines += _family("netctrl_agent_flooded_total", "counter", "Intervals with a flood.", [((), self.flooded)])
        lines += _family("netctrl_agent_unsent_total", "counter", "Datagrams not sent.", [((), self.unsent)])
        lines += _family("netctrl_agent_unread_total", "counter", "Intervals without counters.", [((), self.unread)])
        falling = [((), float(state.falling_back))]
        lines += _family("netctrl_agent_fallback", "gauge", "1: no messages from the central controller.", falling)
        lines += _links(plan, state)
        lines += _peers(plan, state)
        lines += _histogram("netctrl_agent_lateness_seconds", "Time from a deadline to its step.", self.lateness)
        lines += _histogram("netctrl_agent_step_seconds", "Duration of a step.", self.duration)
        return "\n".join(lines) + "\n"


Labels = tuple[tuple[str, str], ...]


def _links(plan: AgentPlan, state: AgentState) -> list[str]:
    names = [link.id for link in plan.config.links]
    interval, lines = plan.config.interval_s, []
    for name, help_text, values in (
        ("rate_bit_per_s", "Rate sent in the last interval.", state.rate.tolist()),
        ("desired_bit_per_s", "Rate of the law, within limits.", state.desired.tolist()),
        ("in_force_bit_per_s", "Rate in force.", state.in_force.tolist()),
        ("backlog_bytes", "Backlog, smoothed.", (state.backlog * interval / 8.0).tolist()),
        ("controlled", "0: no longer controlled after a problem.", [float(not lost) for lost in state.lost]),
    ):
        rows = [((("link", link),), value) for link, value in zip(names, values, strict=True) if not isnan(value)]
        lines += _family(f"netctrl_link_{name}", "gauge", help_text, rows)
    return lines


def _peers(plan: AgentPlan, state: AgentState) -> list[str]:
    pairs = [((("peer", peer.name),), each) for peer, each in zip(plan.config.peers, state.neighbours, strict=True)]
    heard = [(labels, float(each.heard)) for labels, each in pairs]
    trips = [(labels, each.alignment.rtt_us) for labels, each in pairs]
    moved = [(labels, each.alignment.moved) for labels, each in pairs]
    known = [(labels, trip / 1e6) for labels, trip in trips if trip is not None]
    return [
        *_family("netctrl_peer_heard", "gauge", "1: messages received recently.", heard),
        *_family("netctrl_peer_round_trip_seconds", "gauge", "Shortest of the last exchanges.", known),
        *_family("netctrl_peer_realigned_total", "counter", "Times that its intervals were renumbered.", moved),
    ]


def _family(name: str, kind: str, help_text: str, rows: Iterable[tuple[Labels, float]]) -> Iterator[str]:
    yield f"# HELP {name} {help_text}"
    yield f"# TYPE {name} {kind}"
    for labels, value in rows:
        yield f"{name}{_labels(labels)} {value:.10g}"


def _histogram(name: str, help_text: str, histogram: Histogram) -> list[str]:
    lines, total = [f"# HELP {name} {help_text}", f"# TYPE {name} histogram"], 0
    for bound, count in zip((*histogram.bounds, None), histogram.counts, strict=True):
        total += count
        lines.append(f'{name}_bucket{{le="{"+Inf" if bound is None else f"{bound:g}"}"}} {total}')
    return [*lines, f"{name}_sum {histogram.sum:.10g}", f"{name}_count {total}"]


def _labels(labels: Labels) -> str:
    parts = [f'{name}="{_escaped(value)}"' for name, value in labels]
    return f"{{{','.join(parts)}}}" if parts else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
