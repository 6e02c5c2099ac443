"""Result of a bottleneck whose flows ran as a scenario of links, packet by packet."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.laws.pacing.pacing import EVENTS
from netctrl.scenario.bottleneck.result import BottleneckResult
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.result import SimulationResult
from netctrl.units import BITS_PER_BYTE

__all__ = ["FlowCounts", "bottleneck_result"]


class FlowCounts(NamedTuple):
    """Of all flows in the whole run, each (n,)."""

    start_s: np.ndarray
    read_bytes: np.ndarray
    """Payload that the receiver has."""
    sent_bytes: np.ndarray
    """Payload sent, and the part of it that had been sent before."""
    again_bytes: np.ndarray


def bottleneck_result(
    scenario: Scenario, found: SimulationResult, counts: FlowCounts, payload_share: float
) -> BottleneckResult:
    """Flows through one bottleneck, from the result of `bottleneck_network`.

    RTTs are means over the bins, queues are those at their ends, as are delays where the engine has no waiting times;
    windows, pacing rates and the laws' events aren't known.

    Parameters
    ----------
    scenario : Scenario
        The bottleneck's.
    found : SimulationResult
    counts : FlowCounts
    payload_share : float
        Payload of a packet over its size.
    """
    n = len(scenario.flows)
    rtt = np.asarray(found.rtt_s)[:n]
    bins, which = np.nonzero(rtt.T > 0.0)
    waiting = found.backlog_bytes * (BITS_PER_BYTE / scenario.network.capacity)
    unknown = np.full((n, len(found.time_s)), np.nan)
    return BottleneckResult(
        scenario=scenario,
        simulator=found.simulator,
        time_s=found.time_s,
        delay_s=np.array((waiting if found.delay_s is None else found.delay_s)[0]),
        queue_bytes=found.backlog_bytes[0],
        dropped_bytes=found.lost_bytes[0],
        arrived_bytes=found.carried_bytes[:n] / payload_share,
        rate_bit_per_s=unknown,
        window_bytes=unknown.copy(),
        rtt_flow=which,
        rtt_time_s=found.time_s[bins],
        rtt_s=rtt[which, bins],
        start_s=counts.start_s[:n],
        read_bytes=counts.read_bytes[:n],
        sent_bytes=counts.sent_bytes[:n],
        again_bytes=counts.again_bytes[:n],
        events=np.zeros((n, len(EVENTS)), dtype=np.int64),
        provenance=found.provenance,
    )
