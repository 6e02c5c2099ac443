"""HFTraC in the kernel, kept in data/results/: `python experiments/linux/hftrac_runs.py [6a 7 10 13] [--repeats N]`.

As root; each run has a testbed of its own, ways take turns within a repeat, and what is kept isn't run again. With
`--at-once N` several testbeds run side by side. Runs that the machine's other work disturbed are made again, up to
three times, and all are kept with a mark; `--programs` starts agents by the command line instead of as children.
"""

from __future__ import annotations

import os
import platform
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
from hftrac_agents import URGENT
from hftrac_bed import WARM_UP, measured
from hftrac_cases import FIGURES, cases
from hftrac_network import INTERVAL, SLOWER, Case

from netctrl.model.files import write_atomically
from netctrl.model.provenance import provenance

__all__ = ["NAME", "RESULTS", "disturbed", "kept"]

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "data" / "results"
NAME = "linux-hftrac"
KEY = ["figure", "x", "way", "value", "run"]
REPEATS = 5
TRIES = 3
MOST_LATE = 1.0
"""Of an interval: a source that was later, sometimes, was kept from its work."""
MOST_MISSED = 0.01
"""Share of intervals that an agent may leave out."""


def disturbed(row: dict[str, Any] | pd.Series) -> bool:
    """Whether other work of the machine kept sources, agents or looks from theirs: nothing that depends on losses."""
    if row["sender_late_ms"] > 1e3 * MOST_LATE * INTERVAL:
        return True
    steps, missed = (row.get(f"agent_{name}", 0.0) for name in ("steps", "missed"))
    return bool(missed > MOST_MISSED * (steps + missed)) if steps == steps else False


def kept() -> pd.DataFrame | None:
    """All runs, also disturbed ones."""
    path = RESULTS / f"{NAME}.csv"
    return pd.read_csv(path, dtype={"figure": str}) if path.exists() else None


def one(case: Case, run: int, attempt: int, seconds: float, programs: bool) -> dict[str, Any]:
    found: dict[str, Any] = {**case._asdict(), "run": run, "attempt": attempt, "seconds": seconds}
    found |= measured(case, run, seconds, programs=programs)
    return found | {"disturbed": disturbed(found)}


def wanted(figures: Sequence[str], repeats: int) -> list[tuple[Case, int, int, float]]:
    """Runs that are missing, or were disturbed and may be tried again: repeat by repeat, ways in turns."""
    data = kept()
    made: dict[tuple, tuple[int, bool]] = {}
    if data is not None:
        for row in data.to_dict("records"):
            key = tuple(row[name] for name in KEY)
            tries, good = made.get(key, (0, False))
            made[key] = tries + 1, good or not row["disturbed"]
    found = []
    for run in range(repeats):
        for figure in figures:
            every = cases(figure)
            turn = run * 7 % len(every)
            for case in every[turn:] + every[:turn]:
                tries, good = made.get((*case, run), (0, False))
                if not good and tries < TRIES:
                    found.append((case, run, tries, FIGURES[figure].seconds))
    return found


def keep(rows: list[dict[str, Any]], at_once: int) -> None:
    data = kept()
    fresh = pd.DataFrame(rows)
    data = fresh if data is None else pd.concat([data, fresh], ignore_index=True)
    data = data.sort_values([*KEY, "attempt"], kind="stable")
    RESULTS.mkdir(parents=True, exist_ok=True)
    record = {
        "study": NAME,
        "slower": SLOWER,
        "interval_s": INTERVAL,
        "warm_up_s": WARM_UP,
        "real_time_priority": URGENT,
        "at_once": at_once,
        "kernel": platform.release(),
        "cores": os.cpu_count(),
        "load": {"least": float(data.load.min()), "mean": float(data.load.mean()), "most": float(data.load.max())},
        "runs": {figure: int(count) for figure, count in data.groupby("figure").size().items()},
        "disturbed": {figure: int(count) for figure, count in data.groupby("figure").disturbed.sum().items()},
        "provenance": provenance(
            argv=["experiments/linux/hftrac_runs.py", *sys.argv[1:]], libraries=("numpy", "numba")
        ),
    }
    write_atomically(RESULTS / f"{NAME}.csv", data.to_csv(index=False, float_format="%.6g").encode())
    write_atomically(RESULTS / f"{NAME}.json", msgspec.json.format(msgspec.json.encode(record)) + b"\n")


def main(argv: list[str]) -> int:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("figures", nargs="*", default=list(FIGURES))
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--programs", action="store_true")
    asked = parser.parse_args(argv)
    unknown = sorted(set(asked.figures) - set(FIGURES))
    if unknown:
        parser.error(f"no figure {unknown[0]!r}; there are {', '.join(FIGURES)}")
    for _ in range(TRIES):
        lacking = wanted(asked.figures, asked.repeats)
        print(f"{len(lacking)} runs to do", flush=True)
        with ProcessPoolExecutor(asked.at_once, mp_context=get_context("spawn")) as pool:
            runs = {pool.submit(one, *each, asked.programs): each for each in lacking}
            for done in as_completed(runs):
                case, run, *_ = runs[done]
                row = done.result()
                keep([row], asked.at_once)
                said = ", ".join(f"{name} {row[name]:.4g}" for name in ("loss", "queue_kbit", "sender_late_ms", "load"))
                print(f"{' '.join(map(str, case))} run {run}: {said}{', disturbed' * row['disturbed']}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
