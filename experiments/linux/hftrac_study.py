"""HFTraC in the kernel, kept in data/results/: `python experiments/full.py linux-hftrac [REPEAT ...]`, as root.

Each run has a testbed of its own, ways take turns within a repeat, `AT_ONCE` testbeds run side by side, and what is
kept isn't run again. Runs that the machine's other work disturbed are made again, up to three times; all are kept, with
a mark.
"""

import os
import platform
from functools import partial
from typing import Any

import pandas as pd
from linux.hftrac_agents import URGENT
from linux.hftrac_bed import WARM_UP, measured
from linux.hftrac_cases import FIGURES, cases
from linux.hftrac_network import INTERVAL, SLOWER, Case
from study import Made, Record, Study, in_a_process, made_by

KEY = ["figure", "x", "way", "value", "run"]
REPEATS = range(5)
AT_ONCE = 2
"""Testbeds, which take a third of a core each."""
TRIES = 3
MAX_LATE = 0.5
"""Of an interval: a source that was later, sometimes, was kept from its work."""
MAX_LATE_BEFORE = 3.0
"""The same of what doesn't count: a host whose buffer is infinite works long on what came at once."""
MAX_MISSED = 0.01
"""Share of intervals that an agent may leave out."""


def disturbed(row: dict[str, Any] | pd.Series, interval: float = INTERVAL) -> bool:
    """Whether other work of the machine kept sources, agents or looks from theirs: nothing that depends on losses."""
    for name, most in (("sender_late_ms", MAX_LATE), ("warm_up_late_ms", MAX_LATE_BEFORE)):
        if row[name] > 1e3 * most * interval:
            return True
    steps, missed = (row.get(f"agent_{name}", 0.0) for name in ("steps", "missed"))
    return bool(missed > MAX_MISSED * (steps + missed)) if steps == steps else False


def one(*key: Any) -> Made:
    case, (run, attempt) = Case(*key[:-2]), key[-2:]
    seconds = FIGURES[case.figure].seconds
    found = {"attempt": attempt, "seconds": seconds} | measured(case, run, seconds)
    found |= {"disturbed": disturbed(found)}
    print(", ".join(f"{name} {found[name]:.4g}" for name in ("loss", "queue_kbit", "load")), flush=True)
    return Made([found])


def cases_of(run: int) -> list[tuple[Any, ...]]:
    """All of a repeat that weren't run undisturbed, with the number of the attempt; ways in turns."""
    data = STUDY.kept()
    made: dict[tuple, tuple[int, bool]] = {}
    if data is not None:
        for row in data.to_dict("records"):
            key = tuple(row[name] for name in KEY)
            tries, good = made.get(key, (0, False))
            made[key] = tries + 1, good or not row["disturbed"]
    found = []
    for figure in FIGURES:
        every = cases(figure)
        turn = run * 7 % len(every)
        for case in every[turn:] + every[:turn]:
            tries, good = made.get((*case, run), (0, False))
            if not good and tries < TRIES:
                found.append((*case, run, tries))
    return found


def record(before: Record, data: pd.DataFrame, case: tuple[Any, ...], about: None) -> Record:
    return before | {
        "slower": SLOWER,
        "interval_s": INTERVAL,
        "warm_up_s": WARM_UP,
        "real_time_priority": URGENT,
        "at_once": AT_ONCE,
        "kernel": platform.release(),
        "cores": os.cpu_count(),
        "load": {"least": float(data.load.min()), "mean": float(data.load.mean()), "most": float(data.load.max())},
        "runs": data.groupby("figure").size().to_dict(),
        "disturbed": data.groupby("figure").disturbed.sum().to_dict(),
    }


STUDY = Study(
    name="linux-hftrac",
    key=(*KEY, "attempt"),
    repeats=REPEATS,
    cases=cases_of,
    runs=made_by(partial(in_a_process, one), AT_ONCE),
    record=record,
    sort=(*KEY, "attempt"),
    text=("figure",),
    tries=TRIES,
)
"""All runs, also disturbed ones."""
