"""Which part of a trace each run plays: disjoint windows, so that what counts as independent is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from netctrl.model.trace import RateTrace, read_trace
from netctrl.scenario.network.scenario import NetworkScenario
from netctrl.scenario.network.traffic import TraceTraffic

__all__ = ["scenario_trace", "traffic_samples", "window_starts"]


def scenario_trace(scenario: NetworkScenario) -> RateTrace | None:
    """The trace that a scenario's demands send, over its interval; None where its traffic is drawn.

    Raises
    ------
    FileError
        The trace can't be read.
    """
    if not isinstance(scenario.traffic, TraceTraffic):
        return None
    return read_trace(scenario.traffic.file, interval_s=scenario.interval)


def window_starts(rows: int, steps: int) -> np.ndarray:
    """First rows of the disjoint windows of `steps` rows in a trace of `rows`, shape (W,), W = max(1, ⌊rows/steps⌋).

    They are spread evenly, the first at row 0. A run that is longer than the trace plays it around and around: W = 1.
    """
    windows = max(1, rows // steps)
    return np.arange(windows) * (rows // windows)


def traffic_samples(scenario: NetworkScenario, runs: Sequence[int], trace: RateTrace | None) -> np.ndarray:
    """Number of the independent sample of the traffic that each run meets, shape (R,).

    Drawn traffic is a sample of its own in each run. Run r of a trace plays window r mod W of `window_starts`: more
    runs than windows are no more samples.
    """
    numbers = np.asarray(runs, dtype=np.int64)
    return numbers if trace is None else numbers % len(window_starts(len(trace.rate_bit_per_s), scenario.steps))
