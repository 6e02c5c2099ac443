"""HFTraC in the kernel in virtual time, kept in data/results/: `python experiments/full.py virtual-hftrac [RUN ...]`.

The same runs as `hftrac_study`'s, which are in wall-clock time, without what the machine's other work does to them: a
run needs no second attempt, and gives the same numbers on any machine. Fig. 6a, whose runs are the longest, is last.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

import numpy as np
import pandas as pd
from linux.hftrac_agents import AGENTS
from linux.hftrac_bed import WARM_UP, measured
from linux.hftrac_cases import FIGURES, ONLY_VIRTUAL, cases
from linux.hftrac_network import PAPER_INTERVAL, Case, slower
from linux.hftrac_study import KEY, RESULTS, Repeat, disturbed
from linux.virtual import called
from study_files import kernel_used, read_runs, with_runs, write_record, write_runs

from netctrl.kernel.build import chosen_kernel
from netctrl.model.io.provenance import provenance

__all__ = ["KEY", "NAME", "REPEATS", "inside", "kept", "make", "missing"]

NAME = "virtual-hftrac"
REPEATS = (0, 1, 2)
AT_ONCE = 2
ORDER = ("7", "10", "13", "14", "10b", "6a")
PLANS = FIGURES | ONLY_VIRTUAL
ALIGNED, DRAWN = "aligned", "drawn"
"""When agents' intervals begin: all with the demands' as computing takes no time, or at times that are drawn, as on
machines that aren't synchronised."""
PHASES = {"7": (DRAWN, ALIGNED), "10b": (DRAWN,), "14": (DRAWN,)}
"""Of agents; by default aligned."""
OUTSIDE = "load"
"""Of the machine, which means nothing inside."""


def inside(case: list[Any], run: int, seconds: float, phase: str) -> dict[str, float]:
    """One run, called in the kernel."""
    phases = np.random.default_rng(run) if phase == DRAWN else None
    found = measured(Case(*case), run, seconds, phases=phases)
    return {name: value for name, value in found.items() if name != OUTSIDE}


def one(case: Case, run: int, seconds: float, phase: str) -> dict[str, Any]:
    found = called("linux.virtual_hftrac:inside", list(case), run, seconds, phase, seed=run + 1)
    row = {**case._asdict(), "run": run, "phase": phase, "seconds": seconds} | found
    return row | {"disturbed": disturbed(row, case.interval)}


def kept() -> pd.DataFrame | None:
    return read_runs(RESULTS / f"{NAME}.csv", dtype={"figure": str})


def keep(row: dict[str, Any]) -> None:
    data = with_runs(kept(), pd.DataFrame([row]))
    data = data.sort_values([*KEY, "phase"], kind="stable")
    kernel = chosen_kernel()
    record = {
        "study": NAME,
        "slower": {figure: slower(figure) for figure in PLANS},
        "paper_interval_s": PAPER_INTERVAL,
        "warm_up_s": WARM_UP,
        "kernel": kernel_used(kernel),
        "seed": "run + 1",
        "runs": data.groupby("figure").size().to_dict(),
        "disturbed": data.groupby("figure").disturbed.sum().to_dict(),
        "provenance": provenance(argv=["experiments/full.py", *sys.argv[1:]], libraries=("numpy", "numba")),
    }
    write_runs(RESULTS / f"{NAME}.csv", data)
    write_record(RESULTS / f"{NAME}.json", record)


def desired(repeats: Sequence[int]) -> list[tuple[Case, int, float, str]]:
    """Runs that aren't kept: figure by figure, repeat by repeat."""
    data = kept()
    made = set() if data is None else set(data[[*KEY, "phase"]].itertuples(index=False, name=None))
    plan = [
        (case, run, PLANS[name].seconds, phase)
        for name in ORDER
        for run in repeats
        for case in cases(name)
        for phase in (PHASES.get(name, (ALIGNED,)) if case.way in AGENTS else (ALIGNED,))
    ]
    return [each for each in plan if (*each[0], each[1], each[3]) not in made]


def missing(repeats: Sequence[int]) -> list[int]:
    """Repeats of which a run isn't kept."""
    return sorted({run for _, run, _, _ in desired(repeats)})


def make(repeats: Sequence[int]) -> Iterator[Repeat]:
    """Run what is missing; each run is kept, and told, as soon as it is done."""
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        for done in as_completed([pool.submit(one, *each) for each in desired(repeats)]):
            row = done.result()
            keep(row)
            point = " ".join(str(row[name]) for name in KEY)
            print(f"{point} {row['phase']}: loss {row['loss']:.4g}, queue_kbit {row['queue_kbit']:.4g}", flush=True)
    finally:
        pool.shutdown(cancel_futures=True)  # a stop waits for those that run, and starts no other
    yield from map(Repeat, repeats)
