"""ARC paper, Figs. 8 and 9: a flash crowd of 1000 Web sessions comes and goes; queues, throughput, service times."""

from __future__ import annotations

from arc.traffic import (
    ARC,
    AVQ,
    DROP_TAIL,
    FLASH_CROWD,
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

# In ns-3 the crowd comes fifty times as fast, and the run ends when what was asked for at the peak has come.
SHORT, END = 0.02, 10000.0


def main(*, full: bool = False) -> Outcome:
    short = shortened(FLASH_CROWD.scenario, SHORT, END / FLASH_CROWD.scenario.duration)
    phases = [Phase(phase.name, SHORT * phase.start, SHORT * phase.stop) for phase in FLASH_CROWD.phases]
    found = find(FLASH_CROWD, short, phases, (ARC, DROP_TAIL))
    fluid = found.fluid
    managed = (ARC, PI, AVQ, SFC)

    def ratio(data, phase: str, column: str, schemes=managed) -> float:
        """Drop-tail over the worst of the others."""
        return mean(data, DROP_TAIL, phase, column) / max(mean(data, scheme, phase, column) for scheme in schemes)

    computed = {
        "fig8-throughput": min(
            mean(fluid, scheme, phase.name, "throughput_mbit_s") for scheme in managed for phase in FLASH_CROWD.phases
        ),
        "fig8-queue": ratio(fluid, "peak", "backlog_mean_kb"),
        "fig9-before": ratio(fluid, "before", "response_mean_s"),
        "fig9-peak": ratio(fluid, "peak", "response_mean_s"),
        "fig9-avq": mean(fluid, AVQ, "before", "response_mean_s") / mean(fluid, ARC, "before", "response_mean_s"),
        "fig8-loss": ratio(fluid, "peak", "loss"),
    }
    if found.short is not None:
        computed |= {
            "fig8-short-throughput": mean(found.short, ARC, "peak", "throughput_mbit_s"),
            "fig9-short-peak": ratio(found.short, "peak", "response_mean_s", (ARC,)),
            "fig8-short-queue": ratio(found.short, "peak", "backlog_mean_kb", (ARC,)),
        }
    if found.ns3 is not None:
        packets = found.ns3
        computed |= {
            "fig8-ns3-throughput": min(
                mean(packets, scheme, phase.name, "throughput_mbit_s")
                for scheme in managed
                for phase in FLASH_CROWD.phases
            ),
            "fig8-ns3-queue": ratio(packets, "peak", "backlog_mean_kb"),
            "fig8-ns3-loss": ratio(packets, "peak", "loss"),
            "fig9-ns3-before": ratio(packets, "before", "response_mean_s"),
            "fig9-ns3-peak": ratio(packets, "peak", "response_mean_s"),
            "fig9-ns3-avq": mean(packets, AVQ, "before", "response_mean_s")
            / mean(packets, ARC, "before", "response_mean_s"),
        }
    title = "ARC paper, Figs. 8 and 9: 25 FTP flows, 300 to 1300 Web sessions"
    rows = ("backlog_kb", "throughput_mbit_s", "loss_percent", "response_s")
    return Outcome(
        "fig08", "arc", together(found), picture(title, found.columns, verdicts("Fig. 8", "Fig. 9"), rows), computed
    )
