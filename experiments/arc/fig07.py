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
    short = shortened(CAPACITY.scenario, SHORT, 0.6)
    phases = [Phase(phase.name, SHORT * phase.start, SHORT * phase.stop) for phase in CAPACITY.phases[:3]]
    found = find(CAPACITY, short, phases, (ARC, PI))
    fluid = found.fluid
    late = ("20 Mbit/s", "30 Mbit/s", "40 Mbit/s")

    def least(data, scheme: str, phases=late) -> float:
        return min(mean(data, scheme, phase, "utilization") for phase in phases)

    computed = {
        "fig7-pi": least(fluid, PI),
        "fig7-arc": least(fluid, ARC),
        "fig7-arc-queue": max(mean(fluid, ARC, phase, "backlog_mean_kb") for phase in late),
        "fig7-sfc": mean(fluid, SFC, "50 Mbit/s", "throughput_mbit_s")
        / mean(fluid, ARC, "50 Mbit/s", "throughput_mbit_s"),
        "fig7-avq-loss": mean(fluid, AVQ, "50 Mbit/s", "loss") / mean(fluid, DROP_TAIL, "50 Mbit/s", "loss"),
    }
    if found.ns3 is not None:
        computed |= {"fig7-ns3-pi": least(found.ns3, PI), "fig7-ns3-arc": least(found.ns3, ARC)}
    if found.short is not None:
        computed |= {
            "fig7-short-pi": mean(found.short, PI, "20 Mbit/s", "utilization"),
            "fig7-short-arc": mean(found.short, ARC, "20 Mbit/s", "utilization"),
        }
    title = "ARC paper, Fig. 7: 200 FTP flows, 10 to 50 Mbit/s (10 Mbit/s more every 200 s), gains unchanged"
    return Outcome("fig07", "arc", together(found), picture(title, found.columns, verdicts("Fig. 7")), computed)
