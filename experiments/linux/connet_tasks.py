"""Runs of CONNET in virtual time, on the paper's link at its own rates and on one of 20 Mbit/s.

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
from linux import connet_loop as loop
from linux import connet_slower as slower
from linux.connet_disciplines import LINES
from linux.connet_loop import BASE, INPUT_WEIGHT, OPENED, WARM, Scale, designed, exciting, trace
from linux.connet_plant import Plant
from linux.connet_slower import FIFO, LQI, PRINTED, STATIC, curve_means, on_curve, static_rate

import netctrl
from netctrl.model.law import LqiLaw
from netctrl.units import BITS_PER_BYTE

SLOWER, PAPERS = "20 Mbit/s", "100 Mbit/s"
TICKS, EXACT = "released at instants", "released at once"
SIZE, TCP_SIZE, PACKETS = 1042, 1514, 100
RELEASE = (0.002, 0.006)
PAPERS_PLANT = Plant(
    capacity=100e6,
    buffer=PACKETS * SIZE,
    offered=50e6,
    burst=10,
    size=SIZE,
    bucket=10,
    waiting=50,
    limits=(1.0, 95.0),
    flows=2,
    premium_size=SIZE,
    interval=1.0,
    release=RELEASE,
)
PIPE = replace(PAPERS_PLANT, hops=3)
TCP_PIPE = replace(PIPE, cubic=2, size=TCP_SIZE, buffer=PACKETS * TCP_SIZE)
PRINTED_SCALE = Scale(base=BASE)
ONE_NODE, THREE_NODES = (
    BASE + plant.hops * SIZE * BITS_PER_BYTE / plant.capacity / 1e-3 for plant in (PAPERS_PLANT, PIPE)
)
"""What the paper's delays have and the kernel's lack [ms]: its testbed's base, and a packet's own transmissions, since
tbf passes a packet at once that finds tokens."""
CURVE = (20.0, 30.0, 40.0, 50.0, 55.0, 60.0, 70.0, 75.0, 80.0, 85.0, 90.0, 95.0)
CURVE_PERIODS, CURVE_SKIPPED = 6, 1
TRACE_PERIODS, EXCITED = 120, (40.0, 90.0)
REFERENCES = (20.0, None, 55.0, 80.0, 40.0)
"""R [Mbit/s] at which the paper's references of Figs. 10 and 11 lie on its curve; None: they can't be had."""
INFEASIBLE = (8.0, 4.0)
HELD, SETTLING = (30, 30, 30, 30, 90), 15
"""Periods at each reference, where the paper has 200, and how many count: the last. From 0.8 ms down to 0.13 the loop
takes longest, as the curve is flat there."""
STEPPED, STEP_PERIODS = 85.0, 36
FIRST = 14.0
"""First R of a law on the slower link [Mbit/s]."""
SWITCHED_TO, OPEN_PERIODS, SWITCHED_PERIODS = 40.0, 16, 48
SHARES = (0.5, 0.35, 0.15)
OFFERED = (18.0, 20.0, 40.0, 55.0, 60.0, 80.0, 95.0)
OFFERED_PERIODS = 5
PIPE_REFERENCE, LOW_REFERENCE = 55.0, 18.0
"""R at which the references of Figs. 12, 13 and 15a, and of Fig. 14, lie on the curve of three nodes [Mbit/s]."""
FAILURES = ((24, ()), (20, (0, 1)), (36, (0,)), (36, ()))
"""Periods, and which regulators are dead in them; a dead one lets 50 Mbit/s through, as in the paper."""
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

    def part(self, link: str, kind: str, way: str = STATIC) -> pd.DataFrame:
        data = self.data
        return data[(data.link == link) & (data.kind == kind) & (data.way == way)]

    def curve(self, link: str) -> pd.DataFrame:
        return curve_means(self.part(link, "curve"), slower.CURVE_SKIPPED if link == SLOWER else CURVE_SKIPPED)

    def pipe(self) -> pd.DataFrame:
        """The curve of three nodes with a FIFO."""
        return curve_means(self.part(PAPERS, "scheduling", SCHEDULING["fifo"]), CURVE_SKIPPED)

    def law(self, link: str) -> LqiLaw:
        """LQI for the model from the repeat's own trace."""
        plant, weight = (Plant(), INPUT_WEIGHT) if link == SLOWER else (PAPERS_PLANT, None)
        found = netctrl.identify(trace(self.part(link, "trace"), plant.interval), held_out=slower.HELD_OUT)
        law = designed(found.model, plant.limits, weight).law
        if not isinstance(law, LqiLaw):
            raise TypeError(f"LQI's law has an integrator, this is {type(law).__name__}")
        return law


Make = Callable[[Known], Task]


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


def _slower(kind: str, way: str, offset: int, known: Known) -> Task:
    """A run on the slower link."""
    curve, seed, plant = known.curve(SLOWER), 100 * known.repeat + offset, Plant()
    law = known.law(SLOWER) if way == LQI else PRINTED if way == PRINTED else None
    if kind == "activation":
        wanted = [on_curve(curve, slower.SWITCHED_REFERENCE)] * slower.SWITCHED_PERIODS
        return Task(replace(plant, offered=slower.LOADED), seed, wanted, law, start=slower.SWITCHED, first=FIRST)
    if kind == "failure":
        dead = [sorted(each) for periods, each in slower.FAILURES for _ in range(periods)]
        reference, rate = on_curve(curve, slower.FAILURE_REFERENCE), static_rate(curve, slower.FAILURE_REFERENCE)
        pair = reference if law else (rate, reference[0])
        return Task(plant, seed, [pair] * len(dead), law, dead, first=FIRST)
    if way == FIFO:
        return Task(plant, seed, [(OPENED, None)] * slower.FIFO_PERIODS)
    if way == STATIC:
        wanted = [(static_rate(curve, each), each) for each in slower.REFERENCES for _ in range(slower.SHORT_HELD)]
        return Task(plant, seed, wanted)
    return Task(
        plant, seed, [on_curve(curve, each) for each in slower.REFERENCES for _ in range(slower.HELD)], law, first=FIRST
    )


def _track(
    plant: Plant,
    way: str,
    known: Known,
    *,
    offset: int,
    wanted: Callable[[Known], list[tuple[float, float]]],
    **options: Any,
) -> Task:
    law = known.law(PAPERS) if way == LQI else way
    return Task(plant, 100 * known.repeat + offset, wanted(known), law, **({"first": PIPE_REFERENCE} | options))


def _changing(known: Known) -> list[tuple[float, float]]:
    curve = known.curve(PAPERS)
    pairs = [INFEASIBLE if rate is None else on_curve_at(curve, rate) for rate in REFERENCES]
    return [each for each, periods in zip(pairs, HELD, strict=True) for _ in range(periods)]


def _at(rate: float, periods: int, known: Known) -> list[tuple[float, float]]:
    return [on_curve_at(known.curve(PAPERS), rate)] * periods


def _in_pipe(rate: float, periods: int, known: Known) -> list[tuple[float, float]]:
    return [on_curve_at(known.pipe(), rate)] * periods


_DEAD = [each for periods, each in FAILURES for _ in range(periods)]
_HELD_PIPE = partial(_in_pipe, PIPE_REFERENCE, HELD_PIPE)
_TRACKED: dict[str, tuple[Plant, dict[str, Any]]] = {
    "step": (PAPERS_PLANT, {"offset": 25, "wanted": partial(_at, STEPPED, STEP_PERIODS)}),
    "activation": (
        replace(PAPERS_PLANT, offered=70e6 / 3.0),
        {"offset": 26, "wanted": partial(_at, SWITCHED_TO, SWITCHED_PERIODS), "start": OPEN_PERIODS},
    ),
    "failure": (PIPE, {"offset": 31, "wanted": partial(_in_pipe, PIPE_REFERENCE, len(_DEAD)), "dead": _DEAD}),
    "uneven": (replace(PIPE, shares=SHARES), {"offset": 32, "wanted": _HELD_PIPE}),
}
PLAN: dict[tuple[str, str, str], Make] = {
    (PAPERS, "curve", STATIC): partial(_rates, PAPERS_PLANT, 21, CURVE, CURVE_PERIODS),
    (PAPERS, "trace", STATIC): partial(_trace, PAPERS_PLANT, 22, TRACE_PERIODS, EXCITED),
    **{
        (PAPERS, "scheduling", SCHEDULING[name]): partial(
            _rates, replace(PIPE, discipline=name), 30, OFFERED, OFFERED_PERIODS
        )
        for name in LINES
    },
    **{
        (PAPERS, "references", way): partial(
            _track, PAPERS_PLANT, way, offset=offset, wanted=_changing, first=REFERENCES[0]
        )
        for offset, way in ((23, LQI), (24, PRINTED))
    },
    **{(PAPERS, kind, LQI): partial(_track, plant, LQI, **rest) for kind, (plant, rest) in _TRACKED.items()},
    (PAPERS, "scheduling", LQI): partial(
        _track, PIPE, LQI, offset=30, wanted=partial(_in_pipe, LOW_REFERENCE, HELD_PIPE), first=LOW_REFERENCE
    ),
    **{
        (PAPERS, "tcp", way): partial(_track, TCP_PIPE, way, offset=offset, wanted=_HELD_PIPE)
        for offset, way in ((33, LQI), (34, PRINTED))
    },
    **{
        (PAPERS, "tcp curve", way): partial(_rates, replace(TCP_PIPE, release=release), 35, TCP_SWEEP, OFFERED_PERIODS)
        for way, release in ((TICKS, RELEASE), (EXACT, None))
    },
    **{(PAPERS, kind, PRINTED): partial(_track, plant, PRINTED, **rest) for kind, (plant, rest) in _TRACKED.items()},
    (PAPERS, "scheduling", FIFO): partial(_rates, PIPE, 30, (OPENED,), OFFERED_PERIODS),
    (SLOWER, "curve", STATIC): partial(_rates, Plant(), 1, slower.CURVE, slower.CURVE_PERIODS),
    (SLOWER, "trace", STATIC): partial(_trace, Plant(), 2, slower.TRACE_PERIODS, loop.EXCITED),
    **{
        (SLOWER, kind, way): partial(_slower, kind, way, offset)
        for offset, kind, way in (
            (3, "references", LQI),
            (4, "references", PRINTED),
            (5, "references", STATIC),
            (6, "references", FIFO),
            (7, "activation", LQI),
            (8, "failure", LQI),
            (9, "failure", STATIC),
        )
    },
}
"""By link, kind and way; a run may need those before it."""
