"""Run a bottleneck's scenario packet by packet."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from netctrl.laws.pacing.pacing import EVENTS
from netctrl.model.io.provenance import Provenance
from netctrl.model.law import PacingLaw
from netctrl.scenario.bottleneck.network import bottleneck_network
from netctrl.scenario.bottleneck.result import BottleneckResult
from netctrl.scenario.scenario import Scenario
from netctrl.sim.packet.problem import packet_problem
from netctrl.sim.packet.run import packet_result, run_packets
from netctrl.sim.packet.senders.receiver import HEADERS
from netctrl.sim.packet.state import FLOW
from netctrl.sim.tcp_aqm.traffic import draw_flows

__all__ = ["simulate_bottleneck_packets"]


def simulate_bottleneck_packets(
    scenario: Scenario,
    law: PacingLaw | None,
    origin: Provenance,
    *,
    progress: Callable[[float], None] | None = None,
) -> BottleneckResult:
    """The scenario as the packet engine runs it (`bottleneck_network`).

    RTTs are means over the bins, queues are those at their ends; windows and pacing rates aren't kept.

    Raises
    ------
    InvalidValue
        What `bottleneck_network` refuses, or the engine can't hold.
    """
    network = bottleneck_network(scenario, law)
    ready = packet_problem(network)
    state = run_packets(ready, float(network.traffic.initial_window), progress)
    found = packet_result(network, state, origin)
    n, size = len(scenario.flows), scenario.traffic.packet_size
    rtt, delay = np.asarray(found.rtt_s)[:n], np.asarray(found.delay_s)[0]
    flow = state.flow[:n]
    bins, which = np.nonzero(rtt.T > 0.0)
    unknown = np.full((n, len(found.time_s)), np.nan)
    return BottleneckResult(
        scenario=scenario,
        simulator="packet",
        time_s=found.time_s,
        delay_s=delay.copy(),
        queue_bytes=found.backlog_bytes[0],
        dropped_bytes=found.lost_bytes[0],
        arrived_bytes=found.carried_bytes[:n] * (size / (size - HEADERS)),
        rate_bit_per_s=unknown,
        window_bytes=unknown.copy(),
        rtt_flow=which,
        rtt_time_s=found.time_s[bins],
        rtt_s=rtt[which, bins],
        start_s=np.concatenate([draw.start_s for draw in draw_flows(network, merged=False)[:n]]),
        read_bytes=flow[:, FLOW["received"]].astype(float),
        sent_bytes=flow[:, FLOW["sent"]].astype(float),
        again_bytes=flow[:, FLOW["again"]].astype(float),
        events=np.zeros((n, len(EVENTS)), dtype=np.int64),
        provenance=origin,
    )
