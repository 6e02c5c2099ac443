"""Stability map of one ARC gain over flows and round-trip time, from the loop that decides a design."""

from __future__ import annotations

import math

import numpy as np

from netctrl.design.arc.loop import AIMS_DEG, RULE, most_flows
from netctrl.frequency.branch_bound import Sector
from netctrl.frequency.sampled_gain import gains_at
from netctrl.frequency.stability_map import StabilityMap
from netctrl.model.design.design import ArcDesign
from netctrl.plants.linearize import standing_queue
from netctrl.plants.tcp_response import arc_response

MAP_POINTS = 90
_LONG_EPOCH, _SHORT_EPOCH = 0.25, 0.05
"""Epochs in round trips from which the fluid comes to rest wherever the rule holds, and wherever 45 degrees are kept.

None of 80 and of 30 random loops set exactly to that rule oscillated (windows of 1.5 to 200 packets); of 40 with epochs
of 0.1 to 0.2 round trips and 30 degrees one did. Below these limits no point is called admissible without a
simulation.
"""


def arc_stability_map(design: ArcDesign, *, points: int = MAP_POINTS) -> StabilityMap:
    """Stability map of the design's gain, over flows and round-trip times around its operating point and box.

    Each point uses the sampled loop of `arc` itself: a point drawn as admissible is one that `arc` with this gain calls
    admissible too. Points on a border, to a part in a thousand, are drawn on its worse side.

    Parameters
    ----------
    design : ArcDesign
    points : int
        Number of points on each axis; 90 take some seconds.
    """
    inputs, alpha = design.inputs, design.law.alpha_per_packet
    flows = np.geomspace(min(inputs.flows[0] / 10.0, 5.0), max(inputs.flows[1] * 10.0, 500.0), points)
    rtt = np.geomspace(inputs.rtt_s[0] / 8.0, inputs.rtt_s[1] * 5.0, points)
    response = arc_response(inputs.setting)
    feasible = flows <= np.array([most_flows(tau, inputs.setting) for tau in rtt])[:, None]
    feasible &= (rtt > standing_queue(inputs.setting) / inputs.setting.capacity_packet_per_s)[:, None]
    limit, kept, aim = np.full((3, points, points), np.nan)
    rows, columns = np.nonzero(feasible)
    sectors = [Sector(), RULE, Sector(RULE.gain, math.radians(AIMS_DEG[0]))]
    limit[rows, columns], kept[rows, columns], aim[rows, columns] = gains_at(
        response, flows[columns], rtt[rows], sectors
    )
    # Epochs in round trips: limit cycles despite good margins occurred only where these are few.
    epochs = (inputs.epoch_s / rtt)[:, None]
    rests = np.where(epochs >= _LONG_EPOCH, kept, np.where(epochs >= _SHORT_EPOCH, aim, np.where(feasible, 0.0, kept)))
    return StabilityMap(flows, rtt, limit, kept, rests, alpha, f"plant {'phys' if response.queue else 'noq'}")
