"""CONNET in virtual time, kept in data/results/: `python experiments/full.py virtual-connet [REPEAT ...]`.

The paper's link at its own rates. A repeat has seeds of its own and designs from its own trace.
"""

import os
from dataclasses import asdict
from typing import Any, NamedTuple

import msgspec
import pandas as pd
from connet.links import printed_law
from linux.connet_loop import BASE, WARM, hold, track
from linux.connet_plant import KernelLink, Plant
from linux.connet_tasks import HELD_PIPE, PLAN, PRINTED, Known, Task
from linux.virtual import called
from study import Case, Made, Record, Study, kernel_used, made_by

from netctrl.kernel.build import chosen_kernel
from netctrl.model.io.arrays import array, plain

KEY = ["kind", "way", "repeat"]


class Answer(NamedTuple):
    """What a run gives: a row a period, and the rate of each TCP connection over the last half [Mbit/s]."""

    rows: list[dict[str, Any]]
    transfers: list[float]


def inside(asked: list[Any]) -> Answer:
    """One run, called in the kernel. Sources and controller have no timer slack."""
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    task = msgspec.convert(asked, Task, dec_hook=array)
    plant = task.plant
    event = {} if task.dead is None else {"event": [frozenset(each) for each in task.dead].__getitem__}
    warm = WARM if task.law is not None and task.start == 0 else 0
    with KernelLink(plant, (len(task.wanted) + warm + 1) * plant.interval, task.seed) as link:
        if task.law is None:
            found = hold(link, task.wanted, **event).iloc[task.warm :]
        else:
            law, base = (printed_law(), BASE) if task.law == PRINTED else (task.law, 0.0)
            found = track(link, law, task.wanted, base=base, start=task.start, first=task.first, **event)
        over = len(found) + warm + task.warm
        half = (over - HELD_PIPE / 2) * plant.interval
        transfers = link.transfers(half, over * plant.interval) if plant.cubic and task.law is not None else []
    return Answer(found.to_dict("records"), transfers)


def run(*key: Any) -> Made:
    """From what its repeat has measured before."""
    data, repeat = STUDY.kept(), key[-1]
    known = Known(repeat, pd.DataFrame(columns=KEY) if data is None else data[data["repeat"] == repeat])
    task = PLAN[key[:2]](known)
    answer = called("linux.virtual_connet:inside", msgspec.to_builtins(task, enc_hook=plain), seed=repeat)
    rows, transfers = msgspec.convert(answer, Answer)
    return Made(pd.DataFrame(rows).apply(pd.to_numeric).to_dict("records"), transfers)


def record(before: Record, data: pd.DataFrame, case: Case, transfers: list[float]) -> Record:
    more = [dict(zip(KEY, case, strict=True)) | {"mbit_s": transfers}] if transfers else []
    return before | {
        "transfers": [*before.get("transfers", []), *more],
        "plant": asdict(Plant()),
        "kernel": kernel_used(chosen_kernel()),
        "seed": "repeat",
        "runs": len(data[KEY].drop_duplicates()),
    }


STUDY = Study(
    name="virtual-connet",
    key=KEY,
    repeats=(1, 2, 3),
    cases=lambda repeat: [(*case, repeat) for case in PLAN],
    runs=made_by(run),
    record=record,
    digits=5,
)
"""In the order in which one may need another."""
