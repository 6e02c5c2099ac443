"""ARC paper, Fig. 5: flows double every 200 s, from 10 to 800; and the same without Web and reverse traffic."""

from __future__ import annotations

from arc.traffic import (
    ARC,
    ARC_2,
    AVQ,
    BULK,
    DROP_TAIL,
    PI,
    SFC,
    STAIRCASE,
    find,
    mean,
    picture,
    shortened,
    together,
    verdicts,
)
from common import Outcome

LOADED = [f"{n} flows" for n in (50, 100, 200)]


def main(*, full: bool = False) -> Outcome:
    # What is short is the staircase without Web and reverse traffic, up to 200 flows.
    short = shortened(BULK.scenario, 1.0, 8.0 / 9.0)
    found = find(STAIRCASE, short, BULK.phases, (ARC, PI, DROP_TAIL))
    fluid = found.fluid

    def of(data, scheme: str, column: str, phases=LOADED) -> list[float]:
        return [mean(data, scheme, phase, column) for phase in phases]

    computed = {
        "fig5-throughput": min(min(of(fluid, scheme, "throughput_mbit_s")) for scheme in STAIRCASE.schemes),
        "fig5-sfc": mean(fluid, SFC, "400 flows", "backlog_mean_kb") / mean(fluid, SFC, "50 flows", "backlog_mean_kb"),
        "fig5-avq": mean(fluid, AVQ, "50 flows", "backlog_std_kb") / mean(fluid, ARC, "50 flows", "backlog_std_kb"),
        "fig5-droptail": mean(fluid, DROP_TAIL, "200 flows", "backlog_mean_kb"),
        "fig5-queue": mean(fluid, ARC, "800 flows", "backlog_mean_kb"),
        "fig5-epoch": mean(fluid, ARC_2, "50 flows", "backlog_std_kb") / mean(fluid, ARC, "50 flows", "backlog_std_kb"),
    }
    if found.short is not None:
        computed |= {
            "fig5-bulk-arc": max(of(found.short, ARC, "backlog_mean_kb")),
            "fig5-bulk-pi": max(of(found.short, PI, "backlog_mean_kb")),
            "fig5-bulk-utilization": min(min(of(found.short, scheme, "utilization")) for scheme in (ARC, PI)),
            "fig5-bulk-droptail": mean(found.short, DROP_TAIL, "200 flows", "backlog_mean_kb"),
        }
    if found.ns3 is not None:
        packets = found.ns3
        loaded = [*LOADED, "400 flows"]
        computed |= {
            "fig5-ns3-throughput": min(
                min(of(packets, scheme, "throughput_mbit_s", loaded)) for scheme in STAIRCASE.schemes
            ),
            "fig5-ns3-queue": mean(packets, ARC, "800 flows", "backlog_mean_kb"),
            "fig5-ns3-sfc": mean(packets, SFC, "400 flows", "backlog_mean_kb")
            / mean(packets, SFC, "50 flows", "backlog_mean_kb"),
            "fig5-ns3-epoch": mean(packets, ARC_2, "50 flows", "backlog_std_kb")
            / mean(packets, ARC, "50 flows", "backlog_std_kb"),
        }
    title = "ARC paper, Fig. 5: 10, 50, 100, 200, 400, 800 FTP flows (doubling every 200 s), Web and reverse traffic"
    return Outcome("fig05", "arc", together(found), picture(title, found.columns, verdicts("Fig. 5")), computed)
