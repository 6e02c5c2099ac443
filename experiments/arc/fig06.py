"""ARC paper, Fig. 6: the round-trip time grows from 0.3 to 2.4 s with 5 flows."""

from __future__ import annotations

import numpy as np
import pandas as pd
from arc.traffic import ARC, PI, ROUND_TRIP, Phase, caption, find, mean, picture, ratio, shortened, together
from common import Measured, Outcome, Over, over_runs, pooled

SHORT = 0.2


def main(*, full: bool = False) -> Outcome:
    short = shortened(ROUND_TRIP.scenario, SHORT)
    phases = [Phase(phase.name, SHORT * phase.start, SHORT * phase.stop) for phase in ROUND_TRIP.phases]
    found = find(ROUND_TRIP, short, phases, (ARC,))
    names = [phase.name for phase in ROUND_TRIP.phases]

    def overall(one: pd.DataFrame, scheme: str, column: str) -> float:
        return float(np.mean([mean(one, scheme, name, column) for name in names]))

    def compute(data: pd.DataFrame, over: Over) -> dict[str, float | Measured]:
        carried = "throughput_mbit_s"
        return {
            "queue": over(data, lambda one: overall(one, ARC, "backlog_mean_kb")),
            "pi": over(data, lambda one: overall(one, PI, carried) / overall(one, ARC, carried)),
        }

    computed = {f"fig6-{name}": value for name, value in compute(found.fluid, pooled).items()}
    computed["fig6-pi-longest"] = pooled(found.fluid, lambda one: ratio(one, "2.4 s", "throughput_mbit_s", PI, ARC))
    if found.ns3 is not None:
        computed |= {f"fig6-ns3-{name}": value for name, value in compute(found.ns3, over_runs).items()}
    if found.short is not None:
        computed["fig6-short-queue"] = pooled(found.short, lambda one: overall(one, ARC, "backlog_mean_kb"))
    title = "ARC paper, Fig. 6: 5 FTP flows, round trips of 0.3 to 2.4 s (one more 0.3 s every 200 s)"
    return Outcome("fig06", "arc", together(found), picture(title, found.columns, caption("Fig. 6")), computed)
