"""ARC paper, Figs. 11 and 12: five bottlenecks in a row, each with cross and reverse traffic."""

from __future__ import annotations

import pandas as pd
from arc.traffic import (
    ARC,
    AVQ,
    BOTTLENECKS,
    DROP_TAIL,
    PI,
    SFC,
    Phase,
    caption,
    find,
    least,
    mean,
    most,
    picture,
    ratio,
    shortened,
    together,
)
from common import Measured, Outcome, Over, over_runs, pooled

SHORT = 0.25
MANAGED = (ARC, PI, AVQ, SFC)


def main(*, full: bool = False) -> Outcome:
    short = shortened(BOTTLENECKS.scenario, 1.0, SHORT)
    found = find(BOTTLENECKS, short, [Phase("all", 0.0, 75.0), Phase("settled", 40.0, 75.0)], (ARC, DROP_TAIL))
    computed = compute(found.fluid, "", pooled)
    computed["fig11-order"] = pooled(found.fluid, lambda one: ratio(one, "settled", "backlog_std_kb", AVQ, SFC))
    if found.short is not None:
        swing = pooled(found.short, lambda one: ratio(one, "settled", "backlog_std_kb", ARC, DROP_TAIL))
        carried = pooled(found.short, lambda one: mean(one, ARC, "settled", "throughput_mbit_s"))
        computed |= {"fig11-short": swing, "fig12-short": carried}
    if found.ns3 is not None:
        computed |= compute(found.ns3, "-ns3", over_runs)
    title = "ARC paper, Figs. 11 and 12: five bottlenecks of 10 Mbit/s"
    return Outcome(
        "fig11", "arc", together(found), picture(title, found.columns, caption("Fig. 11", "Fig. 12")), computed
    )


def compute(data: pd.DataFrame, place: str, over: Over) -> dict[str, float | Measured]:
    """What is asked of the fluid and of packets alike, at the third link."""
    settled, others = ["settled"], (PI, AVQ, SFC)

    def swing(one: pd.DataFrame) -> float:
        return mean(one, ARC, "settled", "backlog_std_kb") / least(one, others, "backlog_std_kb", settled)

    return {
        f"fig11{place}": over(data, swing),
        f"fig12{place}-throughput": over(data, lambda one: least(one, MANAGED, "throughput_mbit_s", settled)),
        f"fig12{place}-loss": over(data, lambda one: most(one, MANAGED, "loss", settled)),
    }
