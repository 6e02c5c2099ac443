"""ARC paper, Fig. 5: flows double every 200 s, from 10 to 800; and the same without Web and reverse traffic."""

from __future__ import annotations

import pandas as pd
from arc.traffic import (
    ARC,
    ARC_2,
    AVQ,
    BULK,
    DROP_TAIL,
    PI,
    SFC,
    STAIRCASE,
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

LOADED = [f"{n} flows" for n in (50, 100, 200)]


def main(*, full: bool = False) -> Outcome:
    # What is short is the staircase without Web and reverse traffic, up to 200 flows.
    short = shortened(BULK.scenario, 1.0, 8.0 / 9.0)
    found = find(STAIRCASE, short, BULK.phases, (ARC, PI, DROP_TAIL))

    computed = {f"fig5-{name}": value for name, value in compute(found.fluid, LOADED, pooled).items()} | {
        "fig5-avq": pooled(found.fluid, lambda one: ratio(one, "50 flows", "backlog_std_kb", AVQ, ARC)),
        "fig5-droptail": pooled(found.fluid, lambda one: mean(one, DROP_TAIL, "200 flows", "backlog_mean_kb")),
    }
    if found.short is not None:
        computed |= bulk(found.short)
    if found.ns3 is not None:
        computed |= {
            f"fig5-ns3-{name}": value for name, value in compute(found.ns3, [*LOADED, "400 flows"], over_runs).items()
        }
    title = "ARC paper, Fig. 5: 10, 50, 100, 200, 400, 800 FTP flows (doubling every 200 s), Web and reverse traffic"
    return Outcome("fig05", "arc", together(found), picture(title, found.columns, caption("Fig. 5")), computed)


def compute(data: pd.DataFrame, loaded: list[str], over: Over) -> dict[str, float | Measured]:
    """What is asked of the fluid and of packets alike; throughputs at these loads."""

    def growth(one: pd.DataFrame) -> float:
        return mean(one, SFC, "400 flows", "backlog_mean_kb") / mean(one, SFC, "50 flows", "backlog_mean_kb")

    return {
        "throughput": over(data, lambda one: least(one, list(STAIRCASE.schemes), "throughput_mbit_s", loaded)),
        "queue": over(data, lambda one: mean(one, ARC, "800 flows", "backlog_mean_kb")),
        "sfc": over(data, growth),
        "epoch": over(data, lambda one: ratio(one, "50 flows", "backlog_std_kb", ARC_2, ARC)),
    }


def bulk(data: pd.DataFrame) -> dict[str, float]:
    """The short form's: bulk flows alone."""
    return {
        "fig5-bulk-arc": pooled(data, lambda one: most(one, [ARC], "backlog_mean_kb", LOADED)),
        "fig5-bulk-pi": pooled(data, lambda one: most(one, [PI], "backlog_mean_kb", LOADED)),
        "fig5-bulk-utilization": pooled(data, lambda one: least(one, [ARC, PI], "utilization", LOADED)),
        "fig5-bulk-droptail": pooled(data, lambda one: mean(one, DROP_TAIL, "200 flows", "backlog_mean_kb")),
    }
