"""HFTraC in the kernel, kept in data/results/: `python experiments/full.py linux-hftrac [REPEAT ...]`, as root.

Each run has a testbed of its own, ways take turns within a repeat, `AT_ONCE` testbeds run side by side, and what is
kept isn't run again. Runs that the machine's other work disturbed are made again, up to three times; all are kept, with
a mark.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from linux.hftrac_agents import URGENT
from linux.hftrac_bed import WARM_UP, measured
from linux.hftrac_cases import FIGURES, cases
from linux.hftrac_network import INTERVAL, SLOWER, Case
from study_files import RESULTS, read_runs, with_runs, write_record, write_runs

from netctrl.model.io.provenance import provenance

__all__ = ["KEY", "NAME", "REPEATS", "RESULTS", "Repeat", "disturbed", "kept", "make", "missing"]

ROOT = Path(__file__).resolve().parents[2]
NAME = "linux-hftrac"
KEY = ["figure", "x", "way", "value", "run"]
REPEATS = tuple(range(5))
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


def kept() -> pd.DataFrame | None:
    """All runs, also disturbed ones."""
    return read_runs(RESULTS / f"{NAME}.csv", dtype={"figure": str})


def one(case: Case, run: int, attempt: int, seconds: float) -> dict[str, Any]:
    found: dict[str, Any] = {**case._asdict(), "run": run, "attempt": attempt, "seconds": seconds}
    found |= measured(case, run, seconds)
    return found | {"disturbed": disturbed(found)}


def desired(figures: Sequence[str], repeats: Sequence[int]) -> list[tuple[Case, int, int, float]]:
    """Runs that are missing, or were disturbed and may be tried again: repeat by repeat, ways in turns."""
    data = kept()
    made: dict[tuple, tuple[int, bool]] = {}
    if data is not None:
        for row in data.to_dict("records"):
            key = tuple(row[name] for name in KEY)
            tries, good = made.get(key, (0, False))
            made[key] = tries + 1, good or not row["disturbed"]
    found = []
    for run in repeats:
        for figure in figures:
            every = cases(figure)
            turn = run * 7 % len(every)
            for case in every[turn:] + every[:turn]:
                tries, good = made.get((*case, run), (0, False))
                if not good and tries < TRIES:
                    found.append((case, run, tries, FIGURES[figure].seconds))
    return found


def keep(rows: list[dict[str, Any]]) -> None:
    data = with_runs(kept(), pd.DataFrame(rows))
    data = data.sort_values([*KEY, "attempt"], kind="stable")
    record = {
        "study": NAME,
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
        "provenance": provenance(argv=["experiments/full.py", *sys.argv[1:]], libraries=("numpy", "numba")),
    }
    write_runs(RESULTS / f"{NAME}.csv", data)
    write_record(RESULTS / f"{NAME}.json", record)


class Repeat(NamedTuple):
    """One that is done."""

    number: int


def missing(repeats: Sequence[int]) -> list[int]:
    """Repeats of which a run isn't kept."""
    return sorted({run for _, run, _, _ in desired(list(FIGURES), repeats)})


def make(repeats: Sequence[int]) -> Iterator[Repeat]:
    """Run what is missing, one repeat after the other; each run is kept, and told, as soon as it is done."""
    for number in repeats:
        for _ in range(TRIES):
            lacking = desired(list(FIGURES), [number])
            with ProcessPoolExecutor(AT_ONCE, mp_context=get_context("spawn")) as pool:
                runs = {pool.submit(one, *each): each for each in lacking}
                for done in as_completed(runs):
                    row = done.result()
                    keep([row])
                    print(told(row), flush=True)
        yield Repeat(number)


def told(row: dict[str, Any]) -> str:
    point = " ".join(str(row[name]) for name in KEY)
    numbers = ", ".join(f"{name} {row[name]:.4g}" for name in ("loss", "queue_kbit", "sender_late_ms", "load"))
    return f"{point}: {numbers}{', disturbed' * row['disturbed']}"
