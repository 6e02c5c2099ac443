"""What flows send: times of UDP packets, and the pages of Web sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from netctrl.linux.testbed.scenario import sending_times
from netctrl.linux.testbed.schedules import series_times
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import DemandFlows, FlowDraw, UdpFlows, WebFlows

__all__ = ["page_draws", "udp_times"]


def udp_times(
    scenario: Scenario, group: UdpFlows | DemandFlows, draw: FlowDraw, first: int, demands: Mapping[str, np.ndarray]
) -> Sequence[np.ndarray]:
    """Sending times of a group's flows [s], each of which is (n,).

    Parameters
    ----------
    scenario : Scenario
    group : UdpFlows or DemandFlows
    draw : FlowDraw
        Of its flows.
    first : int
        Number of its first flow among all flows.
    demands : mapping
        Rates of the flows of each group of demands, by its id, (intervals, count) [bit/s].
    """
    if isinstance(group, UdpFlows):
        return sending_times(scenario, group, draw, first)
    desired, found = demands[group.id], []
    begins = group.interval_s * np.arange(len(desired))
    for rates, start, stop in zip(desired.T, draw.start_s, draw.stop_s, strict=True):
        length = min(float(stop), scenario.duration) - float(start)
        if length > 0.0:
            found.append(float(start) + series_times(begins, rates, scenario.traffic.packet_size, length))
    return found


def page_draws(scenario: Scenario, group: WebFlows, number: int, session: int) -> tuple[np.ndarray, np.ndarray]:
    """Pauses [s] before a session's pages and sizes of their objects [byte], more than fit in the time.

    A session begins with a pause, as in the packet engine; sizes are Pareto, cut off.
    """
    random = np.random.default_rng(np.random.SeedSequence(scenario.seed, spawn_key=(1 << 21, number, session)))
    pauses, total = [], 0.0
    while total <= scenario.duration:
        pauses.append(random.exponential(group.think_time))
        total += pauses[-1]
    scale = group.mean_object * (group.pareto_shape - 1.0) / group.pareto_shape
    shape = len(pauses), group.objects_per_page
    sizes = np.minimum(scale * (1.0 - random.random(shape)) ** (-1.0 / group.pareto_shape), group.max_object)
    return np.array(pauses), np.ceil(sizes)
