"""ARC paper, Fig. 7: the capacity grows from 10 to 50 Mbit/s with 200 flows and unchanged gains."""

from __future__ import annotations

from arc.traffic import (
    ARC,
    AVQ,
    CAPACITY,
    DROP_TAIL,
    PI,
    SFC,
    Phase,
    find,
    mean,
    picture,
    shortened,
    together,
    verdicts,
)
from common import Outcome

SHORT = 0.2


def main(*, full: bool = False) -> Outcome:
    short = shortened(CAPACITY.scenario, SHORT, 0.4)  # 10 and 20 Mbit/s
    phases = [Phase(phase.name, SHORT * phase.start, SHORT * phase.stop) for phase in CAPACITY.phases[:2]]
    found = find(CAPACITY, short, phases, (ARC, PI))
    fluid = found.fluid
    late = ("20 Mbit/s", "30 Mbit/s", "40 Mbit/s")

    def least(data, scheme: str, phases=late) -> float:
        return min(mean(data, scheme, phase, "utilization") for phase in phases)

    def widest(data, scheme: str, other: str, column: str) -> float:
        """Of one scheme over another's, at 50 Mbit/s."""
        return mean(data, scheme, "50 Mbit/s", column) / mean(data, other, "50 Mbit/s", column)

    computed = {}
    for prefix, data in (("fig7", fluid), ("fig7-ns3", found.ns3)):
        if data is not None:
            computed |= {
                f"{prefix}-pi": least(data, PI),
                f"{prefix}-arc": least(data, ARC),
                f"{prefix}-arc-queue": max(mean(data, ARC, phase, "backlog_mean_kb") for phase in late),
                f"{prefix}-sfc": widest(data, SFC, ARC, "throughput_mbit_s"),
                f"{prefix}-avq-loss": widest(data, AVQ, DROP_TAIL, "loss"),
            }
    if found.short is not None:
        computed |= {
            "fig7-short-pi": mean(found.short, PI, "20 Mbit/s", "utilization"),
            "fig7-short-arc": mean(found.short, ARC, "20 Mbit/s", "utilization"),
        }
    title = "ARC paper, Fig. 7: 200 FTP flows, 10 to 50 Mbit/s (10 Mbit/s more every 200 s), gains unchanged"
    return Outcome("fig07", "arc", together(found), picture(title, found.columns, verdicts("Fig. 7")), computed)
