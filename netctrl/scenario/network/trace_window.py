"""Disjoint windows of a trace that runs play, so that they count as independent samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from netctrl.model.trace import RateTrace, read_trace
from netctrl.scenario.network.routed import demands_of
from netctrl.scenario.network.traffic import TraceTraffic
from netctrl.scenario.scenario import Scenario

__all__ = ["scenario_trace", "traffic_samples", "window_starts"]


def scenario_trace(scenario: Scenario) -> RateTrace | None:
    """The trace that a scenario's demands send, over its interval; None where its traffic is drawn.

    Raises
    ------
    FileError
        The trace can't be read.
    """
    spread = demands_of(scenario).spread
    if not isinstance(spread, TraceTraffic):
        return None
    return read_trace(spread.file, interval_s=scenario.interval)


def window_starts(rows: int, steps: int) -> np.ndarray:
    """First rows of the disjoint windows of `steps` rows in a trace of `rows`, shape (W,), W = max(1, ⌊rows/steps⌋).

    They are evenly spaced, the first at row 0. A run that is longer than the trace repeats it: W = 1.
    """
    windows = max(1, rows // steps)
    return np.arange(windows) * (rows // windows)


def traffic_samples(scenario: Scenario, runs: Sequence[int], trace: RateTrace | None) -> np.ndarray:
    """Index of the independent sample of the traffic in each run, shape (R,).

    Where traffic is drawn each run is a sample. For a trace, run r plays window r mod W of `window_starts`, so more
    runs than windows are no additional samples.
    """
    numbers = np.asarray(runs, dtype=np.int64)
    return numbers if trace is None else numbers % len(window_starts(len(trace.rate_bit_per_s), scenario.steps))
