"""CONNET in virtual time, kept in data/results/: `python experiments/full.py virtual-connet [REPEAT ...]`.

The runs of `connet_study`, which are in wall-clock time, with the same traffic, and the paper's link at its own rates.
A repeat has seeds of its own and designs from its own trace.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import msgspec
import pandas as pd
from linux.connet_loop import WARM, Way, printed, track
from linux.connet_plant import KernelLink, Plant
from linux.connet_study import PRINTED, RESULTS, hold
from linux.connet_tasks import HELD_PIPE, PAPERS_PLANT, PLAN, PRINTED_SCALE, Known, Task
from linux.virtual import called
from study_files import kernel_used, read_runs, with_runs, write_record, write_runs

from netctrl.kernel.build import chosen_kernel
from netctrl.model.io.arrays import array, plain
from netctrl.model.io.provenance import provenance

__all__ = ["KEY", "NAME", "REPEATS", "Repeat", "inside", "kept", "made", "make", "missing"]

NAME = "virtual-connet"
KEY = ["link", "kind", "way", "repeat"]
REPEATS = (1, 2, 3)
OUTSIDE = ["load", "change_us"]
"""Of the machine, which means nothing inside."""


class Repeat(NamedTuple):
    """One that is done."""

    number: int


class Answer(NamedTuple):
    """What a run gives: a row a period, and the rate of each TCP connection over the last half [Mbit/s]."""

    rows: list[dict[str, Any]]
    transfers: list[float]


def inside(asked: list[Any]) -> Answer:
    """One run, called in the kernel. Sources and controller have no timer slack, as in wall-clock time."""
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    task = msgspec.convert(asked, Task, dec_hook=array)
    plant, dead = task.plant, None if task.dead is None else [frozenset(each) for each in task.dead]
    warm = WARM if task.law is not None and task.start == 0 else 0
    with KernelLink(plant, (len(task.wanted) + warm + 1) * plant.interval, task.seed) as link:
        if task.law is None:
            found = hold(link, task.wanted, dead).iloc[task.warm :]
        else:
            scale = (PRINTED_SCALE,) if plant.interval == PAPERS_PLANT.interval else ()
            way = printed(*scale) if task.law == PRINTED else Way(task.law)
            event = {} if dead is None else {"event": dead.__getitem__}
            found = track(link, way, task.wanted, start=task.start, first=task.first, **event)
        over = len(found) + warm + task.warm
        half = (over - HELD_PIPE / 2) * plant.interval
        transfers = link.transfers(half, over * plant.interval) if plant.cubic and task.law is not None else []
    return Answer(found.drop(columns=OUTSIDE).to_dict("records"), transfers)


def kept() -> pd.DataFrame | None:
    return read_runs(RESULTS / f"{NAME}.csv")


def made() -> dict[str, Any]:
    """What the kept runs were made with, and rates of their TCP connections."""
    path = RESULTS / f"{NAME}.json"
    return msgspec.json.decode(path.read_bytes()) if path.exists() else {"study": NAME, "transfers": []}


def keep(key: Sequence[Any], answer: Answer) -> None:
    fresh = pd.DataFrame(answer.rows).apply(pd.to_numeric)
    for place, (name, value) in enumerate(zip(KEY, key, strict=True)):
        fresh.insert(place, name, value)
    data = with_runs(kept(), fresh)
    kernel, record = chosen_kernel(), made()
    if answer.transfers:
        record["transfers"].append(dict(zip(KEY, key, strict=True)) | {"mbit_s": answer.transfers})
    record |= {
        "plants": {"20 Mbit/s": asdict(Plant()), "100 Mbit/s": asdict(PAPERS_PLANT)},
        "kernel": kernel_used(kernel),
        "seed": "repeat",
        "runs": len(data[KEY].drop_duplicates()),
        "provenance": provenance(argv=["experiments/full.py", *sys.argv[1:]], libraries=("numpy", "scipy", "numba")),
    }
    write_runs(RESULTS / f"{NAME}.csv", data, 5)
    write_record(RESULTS / f"{NAME}.json", record)


def desired(repeats: Sequence[int]) -> list[tuple[str, str, str, int]]:
    """Runs that aren't kept, in the order in which one may need another."""
    data = kept()
    done = set() if data is None else set(data[KEY].itertuples(index=False, name=None))
    return [(*case, repeat) for repeat in repeats for case in PLAN if (*case, repeat) not in done]


def missing(repeats: Sequence[int]) -> list[int]:
    """Repeats of which a run isn't kept."""
    return sorted({each[-1] for each in desired(repeats)})


def make(repeats: Sequence[int]) -> Iterator[Repeat]:
    """Run what is missing, one after the other; each run is kept, and told, as soon as it is done."""
    for repeat in repeats:
        for key in desired([repeat]):
            data = kept()
            known = Known(repeat, pd.DataFrame(columns=KEY) if data is None else data[data["repeat"] == repeat])
            task = PLAN[key[:3]](known)
            answer = called("linux.virtual_connet:inside", msgspec.to_builtins(task, enc_hook=plain), seed=repeat)
            keep(key, msgspec.convert(answer, Answer))
            print(f"{', '.join(map(str, key))}: {len(task.wanted)} periods", flush=True)
        yield Repeat(repeat)
