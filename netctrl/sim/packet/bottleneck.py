"""Run a bottleneck's scenario packet by packet."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from netctrl.model.io.provenance import Provenance
from netctrl.model.law import PacingLaw
from netctrl.scenario.bottleneck.network import bottleneck_network
from netctrl.scenario.bottleneck.packets import FlowCounts, bottleneck_result
from netctrl.scenario.result import Result
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
) -> Result:
    """The scenario as the packet engine runs it (`bottleneck_network`).

    What is known of it is in `netctrl.scenario.bottleneck.packets.bottleneck_result`.

    Raises
    ------
    InvalidValue
        What `bottleneck_network` refuses, or the engine can't hold.
    """
    network = bottleneck_network(scenario, law)
    ready = packet_problem(network)
    state = run_packets(ready, float(network.initial_window), progress)
    found = packet_result(network, state, origin)
    starts = np.concatenate([draw.start_s for draw in draw_flows(network, merged=False)])
    read, sent, again = (state.flow[:, FLOW[name]].astype(float) for name in ("received", "sent", "again"))
    payload = scenario.packet_size - HEADERS
    return bottleneck_result(scenario, found, FlowCounts(starts, read, payload * sent, payload * again))
