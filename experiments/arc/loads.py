"""ARC paper, Figs. 5 to 9, 11 and 12: six schemes under loads that change, in the fluid and in ns-3.

Each claim is a value of one table of phases: pooled in the fluid and in the short form, run by run in ns-3.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from arc import traffic
from arc.traffic import ARC, ARC_2, AVQ, DROP_TAIL, PI, SFC, Phase, Traffic, mean, shortened
from common import Computed, Outcome, over_runs, pooled

from netctrl.scenario.scenario import Scenario

QUEUE, DEVIATION, CARRIED, RESPONSE = "backlog_mean_kb", "backlog_std_kb", "throughput_mbit_s", "response_mean_s"
MANAGED = (ARC, PI, AVQ, SFC)
SHORT = 0.2
"""Times of Figs. 6 and 7 in the short form over the paper's."""
CROWD, END = 0.02, 10000.0
"""In ns-3's short form the crowd comes fifty times as fast, and the run ends when what was asked for at the peak has
come."""

Value = Callable[[pd.DataFrame], float]
"""Of a table of phases."""


class Brief(NamedTuple):
    """The form that runs in ns-3 whenever the figure is drawn."""

    scenario: Scenario
    phases: Sequence[Phase]
    schemes: Sequence[str]


def at(scheme: str, phase: str, column: str) -> Value:
    return lambda data: mean(data, scheme, phase, column)


def least(schemes: Iterable[str], column: str, phases: Sequence[str]) -> Value:
    """Of the means of some schemes in some phases."""
    return lambda data: min(mean(data, scheme, phase, column) for scheme in schemes for phase in phases)


def most(schemes: Iterable[str], column: str, phases: Sequence[str]) -> Value:
    return lambda data: max(mean(data, scheme, phase, column) for scheme in schemes for phase in phases)


def overall(study: Traffic, scheme: str, column: str) -> Value:
    """Mean over all phases."""
    return lambda data: float(np.mean([mean(data, scheme, phase.name, column) for phase in study.phases]))


def over(one: Value, other: Value) -> Value:
    return lambda data: one(data) / other(data)


def ratio(phase: str, column: str, one: str, other: str) -> Value:
    """The mean under one scheme over that under another, in a phase."""
    return over(at(one, phase, column), at(other, phase, column))


def scaled(study: Traffic, factor: float, number: int | None = None) -> list[Phase]:
    return [Phase(phase.name, factor * phase.start, factor * phase.stop) for phase in study.phases[:number]]


def outcome(
    study: Traffic,
    brief: Brief,
    title: str,
    places: Sequence[str],
    both: Mapping[str, Value],
    fluid: Mapping[str, Value],
    short: Mapping[str, Value],
    ns3: Mapping[str, Value] | None = None,
    **picture: Sequence[str],
) -> Outcome:
    """Values asked of both simulators, of the fluid, of the short form; `ns3` are other ones of `both` there."""
    found = traffic.find(study, brief.scenario, brief.phases, brief.schemes)
    computed: Computed = {name: pooled(found.fluid, value) for name, value in {**both, **fluid}.items()}
    if found.short is not None:
        computed |= {name: pooled(found.short, value) for name, value in short.items()}
    if found.ns3 is not None:
        values = {**both, **(ns3 or {})}
        computed |= {re.sub(r"^fig\d+", r"\g<0>-ns3", name): over_runs(found.ns3, values[name]) for name in values}
    figure = traffic.picture(f"ARC paper, {title}", found.columns, traffic.caption(*places), **picture)
    return Outcome(study.name.removeprefix("arc-"), "arc", traffic.together(found), figure, computed)


def fig05(*, full: bool = False) -> Outcome:
    """Flows double every 200 s, from 10 to 800; in short without Web and reverse traffic, up to 200 flows."""
    study, bulk = traffic.STAIRCASE, traffic.BULK
    loaded = [f"{n} flows" for n in (50, 100, 200)]
    return outcome(
        study,
        Brief(shortened(bulk.scenario, 1.0, 8.0 / 9.0), bulk.phases, (ARC, PI, DROP_TAIL)),
        "Fig. 5: 10, 50, 100, 200, 400, 800 FTP flows (doubling every 200 s), Web and reverse traffic",
        ("Fig. 5",),
        both={
            "fig5-throughput": least(study.schemes, CARRIED, loaded),
            "fig5-queue": at(ARC, "800 flows", QUEUE),
            "fig5-sfc": over(at(SFC, "400 flows", QUEUE), at(SFC, "50 flows", QUEUE)),
            "fig5-epoch": ratio("50 flows", DEVIATION, ARC_2, ARC),
        },
        fluid={"fig5-avq": ratio("50 flows", DEVIATION, AVQ, ARC), "fig5-droptail": at(DROP_TAIL, "200 flows", QUEUE)},
        short={
            "fig5-bulk-arc": most([ARC], QUEUE, loaded),
            "fig5-bulk-pi": most([PI], QUEUE, loaded),
            "fig5-bulk-utilization": least([ARC, PI], "utilization", loaded),
            "fig5-bulk-droptail": at(DROP_TAIL, "200 flows", QUEUE),
        },
        ns3={"fig5-throughput": least(study.schemes, CARRIED, [*loaded, "400 flows"])},
    )


def fig06(*, full: bool = False) -> Outcome:
    """The round-trip time grows from 0.3 to 2.4 s with 5 flows."""
    study = traffic.ROUND_TRIP
    return outcome(
        study,
        Brief(shortened(study.scenario, SHORT), scaled(study, SHORT), (ARC,)),
        "Fig. 6: 5 FTP flows, round trips of 0.3 to 2.4 s (one more 0.3 s every 200 s)",
        ("Fig. 6",),
        both={
            "fig6-queue": overall(study, ARC, QUEUE),
            "fig6-pi": over(overall(study, PI, CARRIED), overall(study, ARC, CARRIED)),
        },
        fluid={"fig6-pi-longest": ratio("2.4 s", CARRIED, PI, ARC)},
        short={"fig6-short-queue": overall(study, ARC, QUEUE)},
    )


def fig07(*, full: bool = False) -> Outcome:
    """The capacity grows from 10 to 50 Mbit/s with 200 flows and unchanged gains; in short to 20 Mbit/s."""
    study, late, last = traffic.CAPACITY, ("20 Mbit/s", "30 Mbit/s", "40 Mbit/s"), "50 Mbit/s"
    return outcome(
        study,
        Brief(shortened(study.scenario, SHORT, 0.4), scaled(study, SHORT, 2), (ARC, PI)),
        "Fig. 7: 200 FTP flows, 10 to 50 Mbit/s (10 Mbit/s more every 200 s), gains unchanged",
        ("Fig. 7",),
        both={
            "fig7-pi": least([PI], "utilization", late),
            "fig7-arc": least([ARC], "utilization", late),
            "fig7-arc-queue": most([ARC], QUEUE, late),
            "fig7-sfc": ratio(last, CARRIED, SFC, ARC),
            "fig7-avq-loss": ratio(last, "loss", AVQ, DROP_TAIL),
        },
        fluid={},
        short={
            "fig7-short-pi": at(PI, "20 Mbit/s", "utilization"),
            "fig7-short-arc": at(ARC, "20 Mbit/s", "utilization"),
        },
    )


def fig08(*, full: bool = False) -> Outcome:
    """Figs. 8 and 9: a flash crowd of 1000 Web sessions comes and goes; queues, throughput, service times."""
    study = traffic.FLASH_CROWD

    def droptail(phase: str, column: str) -> Value:
        """Drop-tail over the worst of the others."""
        return over(at(DROP_TAIL, phase, column), most(MANAGED, column, [phase]))

    return outcome(
        study,
        Brief(shortened(study.scenario, CROWD, END / study.scenario.duration), scaled(study, CROWD), (ARC, DROP_TAIL)),
        "Figs. 8 and 9: 25 FTP flows, 300 to 1300 Web sessions",
        ("Fig. 8", "Fig. 9"),
        both={
            "fig8-throughput": least(MANAGED, CARRIED, [phase.name for phase in study.phases]),
            "fig8-queue": droptail("peak", QUEUE),
            "fig8-loss": droptail("peak", "loss"),
            "fig9-before": droptail("before", RESPONSE),
            "fig9-peak": droptail("peak", RESPONSE),
            "fig9-avq": ratio("before", RESPONSE, AVQ, ARC),
        },
        fluid={},
        short={
            "fig8-short-throughput": at(ARC, "peak", CARRIED),
            "fig9-short-peak": ratio("peak", RESPONSE, DROP_TAIL, ARC),
            "fig8-short-queue": ratio("peak", QUEUE, DROP_TAIL, ARC),
        },
        rows=("backlog_kb", "throughput_mbit_s", "loss_percent", "response_s"),
    )


def fig11(*, full: bool = False) -> Outcome:
    """Figs. 11 and 12: five bottlenecks in a row, each with cross and reverse traffic; at the third link."""
    study, phase = traffic.BOTTLENECKS, "settled"
    return outcome(
        study,
        Brief(
            shortened(study.scenario, 1.0, 0.25), [Phase("all", 0.0, 75.0), Phase(phase, 40.0, 75.0)], (ARC, DROP_TAIL)
        ),
        "Figs. 11 and 12: five bottlenecks of 10 Mbit/s",
        ("Fig. 11", "Fig. 12"),
        both={
            "fig11": over(at(ARC, phase, DEVIATION), least((PI, AVQ, SFC), DEVIATION, [phase])),
            "fig12-throughput": least(MANAGED, CARRIED, [phase]),
            "fig12-loss": most(MANAGED, "loss", [phase]),
        },
        fluid={"fig11-order": ratio(phase, DEVIATION, AVQ, SFC)},
        short={"fig11-short": ratio(phase, DEVIATION, ARC, DROP_TAIL), "fig12-short": at(ARC, phase, CARRIED)},
    )
