"""Metrics of an agent in Prometheus' text format (exposition format 0.0.4)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from math import isnan

from netctrl.core.units import BITS_PER_BYTE
from netctrl.linux.agent.state import AgentPlan, AgentState

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

    def text(self, plan: AgentPlan, state: AgentState) -> str:
        """All metrics of one agent."""
        counts = {name: (said, state.counts.get(name, 0)) for name, said in _HELP.items()}
        counts["flooded"] = ("Intervals with a flood.", self.flooded)
        counts["unsent"] = ("Datagrams not sent.", self.unsent)
        counts["unread"] = ("Intervals without counters.", self.unread)
        lines: list[str] = []
        for name, (said, count) in counts.items():
            lines += _family(f"netctrl_agent_{name}_total", "counter", said, {"": count})
        drops = {name[len(_DROPPED) :]: n for name, n in sorted(state.counts.items()) if _DROPPED in name}
        lines += _family("netctrl_agent_dropped_total", "counter", "Datagrams dropped.", drops, "reason")
        falling = {"": float(state.falling_back)}
        lines += _family("netctrl_agent_fallback", "gauge", "1: no messages from the central controller.", falling)
        links = [link.id for link in plan.config.links]
        waiting = (state.backlog * plan.config.interval_s / BITS_PER_BYTE).tolist()
        for name, said, values in (
            ("rate_bit_per_s", "Rate sent in the last interval.", state.rate.tolist()),
            ("desired_bit_per_s", "Rate of the law, within limits.", state.desired.tolist()),
            ("in_force_bit_per_s", "Rate in force.", state.in_force.tolist()),
            ("backlog_bytes", "Backlog, smoothed.", waiting),
            ("controlled", "0: no longer controlled after a problem.", [float(not lost) for lost in state.lost]),
        ):
            known = {link: value for link, value in zip(links, values, strict=True) if not isnan(value)}
            lines += _family(f"netctrl_link_{name}", "gauge", said, known, "link")
        peers = {peer.name: each for peer, each in zip(plan.config.peers, state.neighbours, strict=True)}
        heard = {name: float(each.heard) for name, each in peers.items()}
        lines += _family("netctrl_peer_heard", "gauge", "1: messages received recently.", heard, "peer")
        trips = {name: each.alignment.rtt_us for name, each in peers.items()}
        shortest = {name: trip / 1e6 for name, trip in trips.items() if trip is not None}
        said = "Shortest of the last exchanges."
        lines += _family("netctrl_peer_round_trip_seconds", "gauge", said, shortest, "peer")
        moved = {name: each.alignment.moved for name, each in peers.items()}
        said = "Times that its intervals were renumbered."
        lines += _family("netctrl_peer_realigned_total", "counter", said, moved, "peer")
        lines += _histogram("netctrl_agent_lateness_seconds", "Time from a deadline to its step.", self.lateness)
        lines += _histogram("netctrl_agent_step_seconds", "Duration of a step.", self.duration)
        return "\n".join(lines) + "\n"


def _family(name: str, kind: str, said: str, rows: Mapping[str, float], label: str = "") -> Iterator[str]:
    """Lines of one metric: a number, or one for each value of a label."""
    yield f"# HELP {name} {said}"
    yield f"# TYPE {name} {kind}"
    for each, value in rows.items():
        escaped = each.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        shown = f'{{{label}="{escaped}"}}' if label else ""
        yield f"{name}{shown} {value:.10g}"


def _histogram(name: str, said: str, histogram: Histogram) -> list[str]:
    lines, total = [f"# HELP {name} {said}", f"# TYPE {name} histogram"], 0
    for bound, count in zip((*histogram.bounds, None), histogram.counts, strict=True):
        total += count
        lines.append(f'{name}_bucket{{le="{"+Inf" if bound is None else f"{bound:g}"}"}} {total}')
    return [*lines, f"{name}_sum {histogram.sum:.10g}", f"{name}_count {total}"]
