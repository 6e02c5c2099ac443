"""ARC paper, Fig. 7: the capacity grows from 10 to 50 Mbit/s with 200 flows and unchanged gains."""

from __future__ import annotations

import pandas as pd
from arc.traffic import (
    ARC,
    AVQ,
    CAPACITY,
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

SHORT = 0.2


def main(*, full: bool = False) -> Outcome:
    short = shortened(CAPACITY.scenario, SHORT, 0.4)  # 10 and 20 Mbit/s
    phases = [Phase(phase.name, SHORT * phase.start, SHORT * phase.stop) for phase in CAPACITY.phases[:2]]
    found = find(CAPACITY, short, phases, (ARC, PI))
    computed = {f"fig7-{name}": value for name, value in compute(found.fluid, pooled).items()}
    if found.ns3 is not None:
        computed |= {f"fig7-ns3-{name}": value for name, value in compute(found.ns3, over_runs).items()}
    if found.short is not None:
        for name, scheme in (("pi", PI), ("arc", ARC)):
            used = pooled(found.short, lambda one, scheme=scheme: mean(one, scheme, "20 Mbit/s", "utilization"))
            computed[f"fig7-short-{name}"] = used
    title = "ARC paper, Fig. 7: 200 FTP flows, 10 to 50 Mbit/s (10 Mbit/s more every 200 s), gains unchanged"
    return Outcome("fig07", "arc", together(found), picture(title, found.columns, caption("Fig. 7")), computed)


def compute(data: pd.DataFrame, over: Over) -> dict[str, float | Measured]:
    """What is asked of the fluid and of packets alike."""
    late, last = ("20 Mbit/s", "30 Mbit/s", "40 Mbit/s"), "50 Mbit/s"
    return {
        "pi": over(data, lambda one: least(one, [PI], "utilization", late)),
        "arc": over(data, lambda one: least(one, [ARC], "utilization", late)),
        "arc-queue": over(data, lambda one: most(one, [ARC], "backlog_mean_kb", late)),
        "sfc": over(data, lambda one: ratio(one, last, "throughput_mbit_s", SFC, ARC)),
        "avq-loss": over(data, lambda one: ratio(one, last, "loss", AVQ, DROP_TAIL)),
    }
