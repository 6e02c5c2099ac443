"""ARC paper, Figs. 8 and 9: a flash crowd of 1000 Web sessions comes and goes; queues, throughput, service times."""

from __future__ import annotations

import pandas as pd
from arc.traffic import (
    ARC,
    AVQ,
    DROP_TAIL,
    FLASH_CROWD,
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

# In ns-3 the crowd comes fifty times as fast, and the run ends when what was asked for at the peak has come.
SHORT, END = 0.02, 10000.0
MANAGED = (ARC, PI, AVQ, SFC)


def main(*, full: bool = False) -> Outcome:
    short = shortened(FLASH_CROWD.scenario, SHORT, END / FLASH_CROWD.scenario.duration)
    phases = [Phase(phase.name, SHORT * phase.start, SHORT * phase.stop) for phase in FLASH_CROWD.phases]
    found = find(FLASH_CROWD, short, phases, (ARC, DROP_TAIL))
    computed = compute(found.fluid, pooled)
    if found.ns3 is not None:
        computed |= {name.replace("-", "-ns3-", 1): value for name, value in compute(found.ns3, over_runs).items()}
    if found.short is not None:
        brief, peak = found.short, "peak"
        computed |= {
            "fig8-short-throughput": pooled(brief, lambda one: mean(one, ARC, peak, "throughput_mbit_s")),
            "fig9-short-peak": pooled(brief, lambda one: ratio(one, peak, "response_mean_s", DROP_TAIL, ARC)),
            "fig8-short-queue": pooled(brief, lambda one: ratio(one, peak, "backlog_mean_kb", DROP_TAIL, ARC)),
        }
    title = "ARC paper, Figs. 8 and 9: 25 FTP flows, 300 to 1300 Web sessions"
    rows = ("backlog_kb", "throughput_mbit_s", "loss_percent", "response_s")
    return Outcome(
        "fig08", "arc", together(found), picture(title, found.columns, caption("Fig. 8", "Fig. 9"), rows), computed
    )


def compute(data: pd.DataFrame, over: Over) -> dict[str, float | Measured]:
    """What is asked of the fluid and of packets alike."""
    phases = [phase.name for phase in FLASH_CROWD.phases]

    def droptail(phase: str, column: str) -> float | Measured:
        """Drop-tail over the worst of the others."""
        return over(data, lambda one: mean(one, DROP_TAIL, phase, column) / most(one, MANAGED, column, [phase]))

    return {
        "fig8-throughput": over(data, lambda one: least(one, MANAGED, "throughput_mbit_s", phases)),
        "fig8-queue": droptail("peak", "backlog_mean_kb"),
        "fig8-loss": droptail("peak", "loss"),
        "fig9-before": droptail("before", "response_mean_s"),
        "fig9-peak": droptail("peak", "response_mean_s"),
        "fig9-avq": over(data, lambda one: ratio(one, "before", "response_mean_s", AVQ, ARC)),
    }
