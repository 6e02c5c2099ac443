"""Points of HFTraC's Figs. 6a, 7, 10, 13 and 14 in the kernel, with mu and factors that the fluid finds best."""

from functools import lru_cache
from typing import NamedTuple

import msgspec
import numpy as np
import pandas as pd
from linux.hftrac_network import FRAME, PUBLISHED, SAME, WAYS, Case, scenario

import netctrl
from netctrl.core.units import BITS_PER_BYTE
from netctrl.model.network import Link
from netctrl.scenario.result import Result
from netctrl.sim.network.run import simulate_network

TRIED_S, TRIED = 100.0, 8
"""Runs of the fluid by which a mu or a factor is chosen; their numbers are none that the kernel runs."""
FIRST_TRIED = 1000
MUS = tuple(float(f"{mu:.3g}") for mu in np.geomspace(0.01, 30.0, 9))
FACTORS = (1.01, 1.02, 1.03, 1.05, 1.07, 1.1, 1.15, 1.2, 1.3, 1.5)


class Figure(NamedTuple):
    """What is swept."""

    x: tuple[float, ...]
    ways: tuple[str, ...]
    seconds: float
    """That count, of each run."""


FIGURES = {
    "6a": Figure((0.95,), WAYS, 24.0),
    "7": Figure((0.85, 0.95), WAYS, 16.0),
    "10": Figure((1.1, 1.2), WAYS, 16.0),
    "13": Figure((15.0, 25.0), WAYS, 16.0),
    "10b": Figure((SAME, PUBLISHED), ("fifo", "static", "god", "coordinated"), 16.0),
    "14": Figure((30.0, 34.0, 37.0), ("fifo", "static", "coordinated"), 12.0),
}
SWEPT = (0.01, 0.1)
"""mu of Fig. 6a."""
SWEPT_FACTORS = (1.05,)
BESIDE_TCP = {"static": 1.2, "god": 0.1, "coordinated": 0.1, "centralized": 0.1, "myopic": 0.1}
"""Fig. 13: what its runs in ns-3 show to be good at all levels."""
BELIEVED = 0.95
"""Utilization of Fig. 10."""


def cases(figure: str) -> list[Case]:
    """All points of a figure, FIFO first."""
    plan = FIGURES[figure]
    found = []
    for x in plan.x:
        for way in plan.ways:
            found += [Case(figure, x, way, value) for value in _values(figure, x, way)]
    return found


def _values(figure: str, x: float, way: str) -> tuple[float, ...]:
    if way == "fifo":
        return (0.0,)
    if figure == "6a":
        return SWEPT_FACTORS if way == "static" else SWEPT
    if figure == "13":
        return (BESIDE_TCP[way],)
    return (tuned("7", BELIEVED, way) if figure == "10" else tuned(figure, x, way),)


@lru_cache(maxsize=64)
def tuned(figure: str, x: float, way: str) -> float:
    """The mu, or factor, that loses least in the fluid at a point with the testbed's own buffers; of equal ones that of
    the least queue."""

    def price(value: float) -> tuple[float, float]:
        found = foreseen(Case(figure, x, way, value), TRIED_S, 3.0, TRIED, FIRST_TRIED)
        return float(found.figures()["loss", "network"].mean()), float(found.totals["backlog"].sum(axis=1).mean())

    return min(FACTORS if way == "static" else MUS, key=price)


def foreseen(
    case: Case, seconds: float, warmup: float, runs: int, first_run: int = 0, *, whole: bool = False
) -> Result:
    """The fluid's, with the kernel's very demands; with `whole` its buffers are rounded down to whole frames."""
    requested = scenario(case, seconds, warmup)
    if whole:
        links = (each if each.buffer is None else _whole(each) for each in requested.links)
        requested = requested.replace(links=tuple(links))
    return simulate_network(requested, netctrl.scenario_law(requested), runs=runs, first_run=first_run, watch=False)


def _whole(link: Link) -> Link:
    return msgspec.structs.replace(link, buffer=float((link.buffer or 0.0) // FRAME * FRAME))


def foreseen_rows(case: Case, seconds: float, warmup: float, runs: int) -> pd.DataFrame:
    """Loss [%] and mean queue of a link [kbit] of each run in the fluid."""
    found = foreseen(case, seconds, warmup, runs)
    queue = found.totals["backlog"].mean(axis=1) * BITS_PER_BYTE / 1e3
    rows = {"run": range(runs), "fluid_loss": 100.0 * found.figures()["loss", "network"], "fluid_queue_kbit": queue}
    return pd.DataFrame(rows).assign(**case._asdict())
