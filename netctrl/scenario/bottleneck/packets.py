"""Result of a bottleneck whose flows ran as a scenario of links, packet by packet."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario

__all__ = ["FlowCounts", "bottleneck_result"]


class FlowCounts(NamedTuple):
    """Of all flows in the whole run, each (n,)."""

    start_s: np.ndarray
    read_bytes: np.ndarray
    """Payload that the receiver has."""
    sent_bytes: np.ndarray
    """Payload sent, and the part of it that had been sent before."""
    again_bytes: np.ndarray


def bottleneck_result(scenario: Scenario, found: Result, counts: FlowCounts) -> Result:
    """Flows through one bottleneck, from the result of `bottleneck_network`, without its cross traffic.

    Parameters
    ----------
    scenario : Scenario
        The bottleneck's.
    found : Result
    counts : FlowCounts
    """
    n, series = len(scenario.flows), found.series
    start, read, sent, again = (each[:n] for each in counts)
    return Result.of_series(
        scenario,
        found.simulator,
        found.provenance,
        links=series.over("link", "time"),
        flows={name: array[:n] for name, array in series.over("flow", "time").items()},
        totals={"sent": sent, "resent": again},
        tables={"connections": {"start": start, "read": read, "sent": sent, "resent": again}},
    )
