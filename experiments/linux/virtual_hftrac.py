"""HFTraC in the kernel in virtual time, kept in data/results/: `python experiments/full.py virtual-hftrac [RUN ...]`.

A run gives the same numbers on any machine. Fig. 6a, whose runs are the longest, is last.
"""

from typing import Any

import numpy as np
import pandas as pd
from linux.hftrac_agents import AGENTS
from linux.hftrac_bed import WARM_UP, measured
from linux.hftrac_cases import FIGURES, cases
from linux.hftrac_network import PAPER_INTERVAL, Case, slower
from linux.virtual import called
from study import Made, Record, Study, kernel_used, made_by

from netctrl.kernel.build import chosen_kernel

KEY = ["figure", "x", "way", "value", "run"]
ORDER = ("7", "10", "13", "14", "10b", "6a")
ALIGNED, DRAWN = "aligned", "drawn"
"""When agents' intervals begin: all with the demands' as computing takes no time, or at times that are drawn, as on
machines that aren't synchronised."""
PHASES = {"7": (DRAWN, ALIGNED), "10b": (DRAWN,), "14": (DRAWN,)}
"""Of agents; by default aligned."""


def inside(case: list[Any], run: int, seconds: float, phase: str) -> dict[str, float]:
    """One run, called in the kernel."""
    phases = np.random.default_rng(run) if phase == DRAWN else None
    return measured(Case(*case), run, seconds, phases=phases)


def one(*key: Any) -> Made:
    *case, run, phase = key
    seconds = FIGURES[case[0]].seconds
    found = called("linux.virtual_hftrac:inside", case, run, seconds, phase, seed=run + 1)
    return Made([{"seconds": seconds} | found])


def cases_of(run: int) -> list[tuple[Any, ...]]:
    """Figure by figure."""
    return [
        (*case, run, phase)
        for name in ORDER
        for case in cases(name)
        for phase in (PHASES.get(name, (ALIGNED,)) if case.way in AGENTS else (ALIGNED,))
    ]


def record(before: Record, data: pd.DataFrame, case: tuple[Any, ...], about: None) -> Record:
    return before | {
        "slower": {figure: slower(figure) for figure in FIGURES},
        "paper_interval_s": PAPER_INTERVAL,
        "warm_up_s": WARM_UP,
        "kernel": kernel_used(chosen_kernel()),
        "seed": "run + 1",
        "runs": data.groupby("figure").size().to_dict(),
    }


STUDY = Study(
    name="virtual-hftrac",
    key=(*KEY, "phase"),
    repeats=(0, 1, 2),
    cases=cases_of,
    runs=made_by(one, at_once=2),
    record=record,
    sort=(*KEY, "phase"),
    text=("figure",),
)
