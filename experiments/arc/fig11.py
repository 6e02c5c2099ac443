"""ARC paper, Figs. 11 and 12: five bottlenecks in a row, each with cross and reverse traffic."""

from __future__ import annotations

from arc.traffic import (
    ARC,
    AVQ,
    BOTTLENECKS,
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

SHORT = 0.25


def main(*, full: bool = False) -> Outcome:
    short = shortened(BOTTLENECKS.scenario, 1.0, SHORT)
    found = find(BOTTLENECKS, short, [Phase("all", 0.0, 75.0), Phase("settled", 40.0, 75.0)], (ARC, DROP_TAIL))
    fluid = found.fluid
    managed = (ARC, PI, AVQ, SFC)
    deviations = {scheme: mean(fluid, scheme, "settled", "backlog_std_kb") for scheme in managed}
    computed = {
        "fig11": deviations[ARC] / min(deviations[scheme] for scheme in (PI, AVQ, SFC)),
        "fig11-order": deviations[AVQ] / deviations[SFC],
        "fig12-throughput": min(mean(fluid, scheme, "settled", "throughput_mbit_s") for scheme in managed),
        "fig12-loss": max(mean(fluid, scheme, "settled", "loss") for scheme in managed),
    }
    if found.short is not None:
        computed["fig11-short"] = mean(found.short, ARC, "settled", "backlog_std_kb") / mean(
            found.short, DROP_TAIL, "settled", "backlog_std_kb"
        )
        computed["fig12-short"] = mean(found.short, ARC, "settled", "throughput_mbit_s")
    if found.ns3 is not None:
        packets = {scheme: mean(found.ns3, scheme, "settled", "backlog_std_kb") for scheme in managed}
        computed |= {
            "fig11-ns3": packets[ARC] / min(packets[scheme] for scheme in (PI, AVQ, SFC)),
            "fig12-ns3-throughput": min(mean(found.ns3, scheme, "settled", "throughput_mbit_s") for scheme in managed),
            "fig12-ns3-loss": max(mean(found.ns3, scheme, "settled", "loss") for scheme in managed),
        }
    title = "ARC paper, Figs. 11 and 12: five bottlenecks of 10 Mbit/s"
    return Outcome(
        "fig11", "arc", together(found), picture(title, found.columns, verdicts("Fig. 11", "Fig. 12")), computed
    )
