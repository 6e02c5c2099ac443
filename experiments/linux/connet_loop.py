"""CONNET in the kernel: traces for identification, laws, and a law in the loop."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from connet.links import printed_law
from linux.connet_plant import LIMITS, OPEN, KernelLink, Sample

import netctrl
from netctrl.laws.tracking.tracking import start_tracking, step_tracking, tracking_gains
from netctrl.model.design.design import ConnetDesign
from netctrl.model.law import TrackingLaw
from netctrl.model.signals import SignalTrace

EXCITED = (12.0, 20.0)
HOLD = 3.0
"""Of the binary signal [periods]."""
INPUT_WEIGHT = 1.0
"""The default of 0.01 is for rates five times as high and delays a fifth: here it leaves a disk margin of 0.6."""
WARM = 4
"""Periods until all sources send, before a law begins."""
OPENED = OPEN / 1e6


class Scale(NamedTuple):
    """What a law's signals are on this link."""

    rate: float = 1.0
    """Mbit/s here for one of the law's."""
    delay: float = 1.0
    """ms here for one of the law's."""
    base: float = 0.0
    """What the law's delay has and this link's doesn't [the law's ms]."""

    def outputs(self, here: np.ndarray) -> np.ndarray:
        """Delay and jitter as the law knows them."""
        return here / self.delay + np.array([self.base, 0.0])


BASE = 0.36
"""Delay of the paper's testbed without a queue, by the theory of its curve [ms]; it has no counterpart here."""
PAPERS_LINK = Scale(rate=0.2, delay=5.0, base=BASE)
"""A fifth of the paper's capacity: rates are a fifth, times of packets of the same size five times as long."""


class Way(NamedTuple):
    """How R is set."""

    law: TrackingLaw
    scale: Scale = Scale()


def exciting(periods: int, range_: tuple[float, float], seed: int) -> list[float]:
    """R [Mbit/s] of each period."""
    return netctrl.gbn(periods, range_, np.random.default_rng(seed), hold=HOLD)[:, 0].tolist()


def trace(frame: pd.DataFrame, interval: float) -> SignalTrace:
    """Of rows as `hold` gives; a period without packets, on a machine that stood still, parts segments."""
    outputs = frame[["delay_ms", "jitter_ms"]].to_numpy()
    there = np.isfinite(outputs).all(axis=1)
    begins = there & ~np.concatenate([[False], there[:-1]])
    return SignalTrace(
        interval_s=interval,
        input_values=frame.rate.to_numpy()[there],
        output_values=outputs[there],
        inputs=("rate",),
        outputs=("delay", "jitter"),
        starts=tuple(np.flatnonzero(begins[there]).tolist()),
    )


def designed(
    model: netctrl.IdentifiedModel, limits: tuple[float, float] = LIMITS, input_weight: float | None = INPUT_WEIGHT
) -> ConnetDesign:
    """LQI on the delay, as well as the trace determines the model."""
    return netctrl.connet(model, track="delay", limits=[limits], input_weight=input_weight, accept="stable")


def printed(scale: Scale = PAPERS_LINK) -> Way:
    """The paper's gains, in a link's units."""
    return Way(printed_law(), scale)


def hold(
    link: KernelLink,
    requested: Sequence[tuple[float, float | None]],
    event: Callable[[int], frozenset[int]] = lambda k: frozenset(),
) -> pd.DataFrame:
    """(R [Mbit/s], reference [ms]) of each period, without a law; a row a period as `track` has it."""
    rows = []
    for k, (rate, reference) in enumerate(requested):
        link.failed = event(k)
        time_s = (k + 1) * link.plant.interval
        row = {"time_s": time_s, "reference_ms": reference, "failed": len(link.failed)}
        rows.append(row | link.advance(rate)._asdict())
    return pd.DataFrame(rows)


def track(
    link: KernelLink,
    way: Way,
    reference: Sequence[tuple[float, float]],
    *,
    start: int = 0,
    first: float | None = None,
    event: Callable[[int], frozenset[int]] = lambda k: frozenset(),
) -> pd.DataFrame:
    """Run a law for as many periods as there are references (delay, jitter [ms]); before `start` regulators are open;
    without one, a few periods at the first rate go before.

    A row a period: its Sample, `time_s` of its end, `reference_ms`, `commanded` [Mbit/s] before the limits, `failed`.
    """
    law, scale = way.law, way.scale
    gains = tracking_gains(law)
    state = start_tracking(gains, None if first is None else np.array([first / scale.rate]))
    low, high = np.clip(np.array(link.plant.limits) / scale.rate, law.low[0], law.high[0])
    rows: list[dict[str, float]] = []
    rate = OPENED if start else scale.rate * float(np.clip(state.applied[0], low, high))
    for _ in range(0 if start else WARM):
        link.advance(rate)
    for k, wanted_here in enumerate(reference):
        link.failed = event(k)
        sample: Sample = link.advance(rate)
        commanded = np.nan
        if k + 1 >= start:
            desired = scale.outputs(np.array(wanted_here))
            measured = scale.outputs(np.array([sample.delay_ms, sample.jitter_ms]))
            applied = np.array(
                [min(sample.rate, link.plant.limits[1]) / scale.rate]
            )  # a change within the dead-band wasn't made
            if k + 1 > start:
                state = state._replace(applied=applied)
            if np.isfinite(measured).all():
                state = step_tracking(gains, state, measured, desired)
            commanded = scale.rate * float(state.commanded[0])
            rate = scale.rate * float(np.clip(state.applied[0], low, high))
        time_s = (k + 1) * link.plant.interval
        row = {"time_s": time_s, "reference_ms": wanted_here[0], "commanded": commanded, "failed": len(link.failed)}
        rows.append(row | sample._asdict())
    return pd.DataFrame(rows)
