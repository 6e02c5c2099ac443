"""CONNET in the kernel: traces for identification, laws, and a law in the loop."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from linux.connet_plant import OPEN, KernelLink, Sample

import netctrl
from netctrl.laws.tracking.tracking import start_tracking, step_tracking, tracking_gains
from netctrl.model.design.design import ConnetDesign
from netctrl.model.law import TrackingLaw
from netctrl.model.signals import SignalTrace

HOLD = 3.0
"""Of the binary signal [periods]."""
WARM = 4
"""Periods until all sources send, before a law begins."""
OPENED = OPEN / 1e6
BASE = 0.36
"""Delay of the paper's testbed without a queue, by the theory of its curve [ms]; it has no counterpart here."""


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


def designed(model: netctrl.IdentifiedModel, limits: tuple[float, float]) -> ConnetDesign:
    """LQI on the delay, as well as the trace determines the model."""
    return netctrl.connet(model, track="delay", limits=[limits], accept="stable")


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
    law: TrackingLaw,
    reference: Sequence[tuple[float, float]],
    *,
    base: float = 0.0,
    start: int = 0,
    first: float | None = None,
    event: Callable[[int], frozenset[int]] = lambda k: frozenset(),
) -> pd.DataFrame:
    """Run a law for as many periods as there are references (delay, jitter [ms]); before `start` regulators are open;
    without one, a few periods at the first rate go before. The law's delays have `base` that the link's lack [ms].

    A row a period: its Sample, `time_s` of its end, `reference_ms`, `commanded` [Mbit/s] before the limits, `failed`.
    """
    gains, offset = tracking_gains(law), np.array([base, 0.0])
    state = start_tracking(gains, None if first is None else np.array([first]))
    low, high = np.clip(np.array(link.plant.limits), law.low[0], law.high[0])
    rows: list[dict[str, float]] = []
    rate = OPENED if start else float(np.clip(state.applied[0], low, high))
    for _ in range(0 if start else WARM):
        link.advance(rate)
    for k, pair in enumerate(reference):
        link.failed = event(k)
        sample: Sample = link.advance(rate)
        commanded = np.nan
        if k + 1 >= start:
            measured = np.array([sample.delay_ms, sample.jitter_ms]) + offset
            if k + 1 > start:  # a change within the dead-band wasn't made
                state = state._replace(applied=np.array([min(sample.rate, link.plant.limits[1])]))
            if np.isfinite(measured).all():
                state = step_tracking(gains, state, measured, np.array(pair) + offset)
            commanded = float(state.commanded[0])
            rate = float(np.clip(state.applied[0], low, high))
        time_s = (k + 1) * link.plant.interval
        row = {"time_s": time_s, "reference_ms": pair[0], "commanded": commanded, "failed": len(link.failed)}
        rows.append(row | sample._asdict())
    return pd.DataFrame(rows)
