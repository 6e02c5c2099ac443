"""Runs of CONNET in virtual time, on the paper's link at its own rates.

The paper's regulators release what they let through at instants 2 to 6 ms apart, as tbf does where its timer is the
kernel's tick. That of 2003's kernels was 10 ms; 4 ms in the mean give the paper's curve but for a constant. With
exact timers backlogged regulators send evenly, and nothing waits until the link is full.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from linux.connet_disciplines import LINES
from linux.connet_loop import BASE, OPENED, WARM, designed, exciting, trace
from linux.connet_plant import SIZE, Plant

import netctrl
from netctrl.core.units import BITS_PER_BYTE
from netctrl.model.law import LqiLaw

LQI, PRINTED, STATIC, FIFO = "LQI", "printed gains", "static R", "no control"
COLOURS = {LQI: "#1f4e9c", PRINTED: "#b45f06", STATIC: "#38761d"}
TICKS, EXACT = "released at instants", "released at once"
TCP_SIZE = 1514
PIPE = replace(Plant(), hops=3)
TCP_PIPE = replace(PIPE, cubic=2, size=TCP_SIZE, buffer=100 * TCP_SIZE)
ONE_NODE, THREE_NODES = (BASE + plant.hops * SIZE * BITS_PER_BYTE / plant.capacity / 1e-3 for plant in (Plant(), PIPE))
"""What the paper's delays have and the kernel's lack [ms]: its testbed's base, and a packet's own transmissions, since
tbf passes a packet at once that finds tokens."""
CURVE = (20.0, 30.0, 40.0, 50.0, 55.0, 60.0, 70.0, 75.0, 80.0, 85.0, 90.0, 95.0)
CURVE_PERIODS, CURVE_SKIPPED = 6, 1
TRACE_PERIODS, EXCITED, HELD_OUT = 120, (40.0, 90.0), 0.3
REFERENCES = (20.0, None, 55.0, 80.0, 40.0)
"""R [Mbit/s] at which the paper's references of Figs. 10 and 11 lie on its curve; None: they can't be had."""
INFEASIBLE = (8.0, 4.0)
HELD, SETTLING = (30, 30, 30, 30, 90), 15
"""Periods at each reference, where the paper has 200, and how many count: the last. From 0.8 ms down to 0.13 the loop
takes longest, as the curve is flat there."""
STEPPED, STEP_PERIODS = 85.0, 36
SWITCHED_TO, OPEN_PERIODS, SWITCHED_PERIODS = 40.0, 16, 48
SHARES = (0.5, 0.35, 0.15)
OFFERED = (18.0, 20.0, 40.0, 55.0, 60.0, 80.0, 95.0)
OFFERED_PERIODS = 5
PIPE_REFERENCE, LOW_REFERENCE = 55.0, 18.0
"""R at which the references of Figs. 12, 13 and 15a, and of Fig. 14, lie on the curve of three nodes [Mbit/s]."""
FAILURES = ((24, ()), (20, (0, 1)), (36, (0,)), (36, ()))
"""Periods, and which regulators are dead in them; a dead one lets 50 Mbit/s through, as in the paper."""
PHASES = ("all work", "two dead", "one dead", "all work again")
HELD_PIPE = 40
TCP_SWEEP = (40.0, 55.0, 70.0, 80.0, 90.0, 95.0, 98.0)
SCHEDULING = {"fifo": "FIFO", "cbq": "CBQ (HTB)", "wfq": "WFQ (SFQ)"}


class Task(NamedTuple):
    """A run."""

    plant: Plant
    seed: int
    """Of the traffic."""
    wanted: Sequence[tuple[float, float | None]]
    """Of each period: R [Mbit/s] and the reference [ms] without a law, delay and jitter [ms] with one."""
    law: LqiLaw | str | None = None
    """PRINTED: the paper's."""
    dead: Sequence[Sequence[int]] | None = None
    """Which regulators are, in each period."""
    start: int = 0
    """Period before which regulators are open; 0: some periods at the law's first rate go before the first."""
    first: float | None = None
    """[Mbit/s]"""
    warm: int = 0
    """Periods that don't count, where there is no law."""


class Known(NamedTuple):
    """What one repeat has measured until now."""

    repeat: int
    data: pd.DataFrame

    def part(self, kind: str, way: str = STATIC) -> pd.DataFrame:
        return self.data[(self.data.kind == kind) & (self.data.way == way)]

    def curve(self) -> pd.DataFrame:
        return curve_means(self.part("curve"))

    def pipe(self) -> pd.DataFrame:
        """The curve of three nodes with a FIFO."""
        return curve_means(self.part("scheduling", SCHEDULING["fifo"]))

    def law(self) -> LqiLaw:
        """LQI for the model from the repeat's own trace."""
        plant = Plant()
        law = designed(
            netctrl.identify(trace(self.part("trace"), plant.interval), held_out=HELD_OUT).model, plant.limits
        ).law
        if not isinstance(law, LqiLaw):
            raise TypeError(f"LQI's law has an integrator, this is {type(law).__name__}")
        return law


Make = Callable[[Known], Task]


def curve_means(series: pd.DataFrame) -> pd.DataFrame:
    """Delay and jitter [ms] and other traffic [Mbit/s] by R, once the queue has settled."""
    counted = series[series.groupby("rate").cumcount() >= CURVE_SKIPPED]
    return counted.groupby("rate")[["delay_ms", "jitter_ms", "other_mbit_s"]].mean()


def on_curve_at(curve: pd.DataFrame, rate: float) -> tuple[float, float]:
    """Delay and jitter of a curve at R [ms]."""
    found = [float(np.interp(rate, curve.index, curve[name])) for name in ("delay_ms", "jitter_ms")]
    return found[0], found[1]


def _rates(plant: Plant, offset: int, rates: Sequence[float], periods: int, known: Known) -> Task:
    """Each R for so many periods, without a law."""
    return Task(plant, 100 * known.repeat + offset, [(rate, None) for rate in rates for _ in range(periods)])


def _trace(plant: Plant, offset: int, periods: int, range_: tuple[float, float], known: Known) -> Task:
    seed = 100 * known.repeat + offset
    return Task(plant, seed, [(rate, None) for rate in exciting(periods + WARM, range_, seed)], warm=WARM)


def _track(
    plant: Plant,
    way: str,
    known: Known,
    *,
    offset: int,
    wanted: Callable[[Known], list[tuple[float, float]]],
    **options: Any,
) -> Task:
    law = known.law() if way == LQI else way
    return Task(plant, 100 * known.repeat + offset, wanted(known), law, **({"first": PIPE_REFERENCE} | options))


def _changing(known: Known) -> list[tuple[float, float]]:
    curve = known.curve()
    pairs = [INFEASIBLE if rate is None else on_curve_at(curve, rate) for rate in REFERENCES]
    return [each for each, periods in zip(pairs, HELD, strict=True) for _ in range(periods)]


def _at(rate: float, periods: int, known: Known) -> list[tuple[float, float]]:
    return [on_curve_at(known.curve(), rate)] * periods


def _in_pipe(rate: float, periods: int, known: Known) -> list[tuple[float, float]]:
    return [on_curve_at(known.pipe(), rate)] * periods


_DEAD = [each for periods, each in FAILURES for _ in range(periods)]
_HELD_PIPE = partial(_in_pipe, PIPE_REFERENCE, HELD_PIPE)
_TRACKED: dict[str, tuple[Plant, dict[str, Any]]] = {
    "step": (Plant(), {"offset": 25, "wanted": partial(_at, STEPPED, STEP_PERIODS)}),
    "activation": (
        replace(Plant(), offered=70e6 / 3.0),
        {"offset": 26, "wanted": partial(_at, SWITCHED_TO, SWITCHED_PERIODS), "start": OPEN_PERIODS},
    ),
    "failure": (PIPE, {"offset": 31, "wanted": partial(_in_pipe, PIPE_REFERENCE, len(_DEAD)), "dead": _DEAD}),
    "uneven": (replace(PIPE, shares=SHARES), {"offset": 32, "wanted": _HELD_PIPE}),
}
PLAN: dict[tuple[str, str], Make] = {
    ("curve", STATIC): partial(_rates, Plant(), 21, CURVE, CURVE_PERIODS),
    ("trace", STATIC): partial(_trace, Plant(), 22, TRACE_PERIODS, EXCITED),
    **{
        ("scheduling", SCHEDULING[name]): partial(_rates, replace(PIPE, discipline=name), 30, OFFERED, OFFERED_PERIODS)
        for name in LINES
    },
    **{
        ("references", way): partial(_track, Plant(), way, offset=offset, wanted=_changing, first=REFERENCES[0])
        for offset, way in ((23, LQI), (24, PRINTED))
    },
    **{(kind, LQI): partial(_track, plant, LQI, **rest) for kind, (plant, rest) in _TRACKED.items()},
    ("scheduling", LQI): partial(
        _track, PIPE, LQI, offset=30, wanted=partial(_in_pipe, LOW_REFERENCE, HELD_PIPE), first=LOW_REFERENCE
    ),
    **{
        ("tcp", way): partial(_track, TCP_PIPE, way, offset=offset, wanted=_HELD_PIPE)
        for offset, way in ((33, LQI), (34, PRINTED))
    },
    **{
        ("tcp curve", way): partial(_rates, replace(TCP_PIPE, release=release), 35, TCP_SWEEP, OFFERED_PERIODS)
        for way, release in ((TICKS, Plant().release), (EXACT, None))
    },
    **{(kind, PRINTED): partial(_track, plant, PRINTED, **rest) for kind, (plant, rest) in _TRACKED.items()},
    ("scheduling", FIFO): partial(_rates, PIPE, 30, (OPENED,), OFFERED_PERIODS),
}
"""By kind and way; a run may need those before it."""
