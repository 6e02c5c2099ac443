"""ARC paper, Fig. 6: the round-trip time grows from 0.3 to 2.4 s with 5 flows."""

from __future__ import annotations

import numpy as np
from arc.traffic import ARC, PI, ROUND_TRIP, Phase, find, mean, picture, shortened, together, verdicts
from common import Outcome

SHORT = 0.2


def main(*, full: bool = False) -> Outcome:
    short = shortened(ROUND_TRIP.scenario, SHORT)
    phases = [Phase(phase.name, SHORT * phase.start, SHORT * phase.stop) for phase in ROUND_TRIP.phases]
    found = find(ROUND_TRIP, short, phases, (ARC,))
    names = [phase.name for phase in ROUND_TRIP.phases]

    def overall(data, scheme: str, column: str) -> float:
        return float(np.mean([mean(data, scheme, name, column) for name in names]))

    computed = {
        "fig6-queue": overall(found.fluid, ARC, "backlog_mean_kb"),
        "fig6-pi": overall(found.fluid, PI, "throughput_mbit_s") / overall(found.fluid, ARC, "throughput_mbit_s"),
        "fig6-pi-longest": mean(found.fluid, PI, "2.4 s", "throughput_mbit_s")
        / mean(found.fluid, ARC, "2.4 s", "throughput_mbit_s"),
    }
    if found.ns3 is not None:
        computed |= {
            "fig6-ns3-queue": overall(found.ns3, ARC, "backlog_mean_kb"),
            "fig6-ns3-pi": overall(found.ns3, PI, "throughput_mbit_s") / overall(found.ns3, ARC, "throughput_mbit_s"),
        }
    if found.short is not None:
        computed["fig6-short-queue"] = overall(found.short, ARC, "backlog_mean_kb")
    title = "ARC paper, Fig. 6: 5 FTP flows, round trips of 0.3 to 2.4 s (one more 0.3 s every 200 s)"
    return Outcome("fig06", "arc", together(found), picture(title, found.columns, verdicts("Fig. 6")), computed)
