"""Laws that set links' rates as a record of ns-3's program, and one that is written as C beside it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.laws.link_rate.distributed_step import LinkRates
from netctrl.ns3.program import LINK_LAW
from netctrl.ns3.records import record_line, record_values, word
from netctrl.scenario.network.decided import DecidedRates
from netctrl.scenario.network.plan import LinkPlan

_MAX_TAPS = 200_000
_BESIDE = "netctrl-link-law.c"


def check_law(plan: LinkPlan) -> None:
    """InvalidValue for a law of more numbers than a program takes."""
    if isinstance(plan.law, DecidedRates):
        taps, fewer = len(plan.law.announced), "a longer interval or a shorter duration"
    else:
        taps, fewer = len(plan.law.control.lag) + len(plan.law.predicted.lag), 'horizon = "exact" or a larger mu'
    if taps > _MAX_TAPS:
        takes = f"a law of at most {_MAX_TAPS} numbers in a program; {fewer} has fewer"
        raise InvalidValue("control", f"{taps} numbers", takes)


def control_record(plan: LinkPlan, interval: int, *, late: bool = False) -> str:
    """The record of a plan's law, which acts each `interval` [ns]; `late`: messages between links may be."""
    where = {"interval": interval, "links": map(word, plan.links)}
    if not isinstance(plan.law, DecidedRates):
        return record_line("control", "", *record_values(LinkRates, plan.law), late=late, **where)
    law = plan.law.read()
    announced = ",".join(map(repr, plan.law.announced.tolist()))
    lines = [("announced", announced, "in each interval [bit/s]")] if announced else []
    late_by, age = int(np.max(law.problem.get("delay", 0))), law.problem.get("measurement_delay", 0)
    return record_line("control", "decided", *lines, seconds=law.interval_s, late=late_by, age=age, **where)


def law_files(made: Mapping[str, str]) -> dict[str, str]:
    """Files of a program for a law of one link, from those of the law as C, whose function is `LINK_LAW`."""
    found = {name: text for name, text in made.items() if name.startswith(LINK_LAW)}
    return {_BESIDE: (files("netctrl.ns3") / "network" / _BESIDE).read_text(encoding="utf-8"), **found}
