"""Admissible points of random stability maps, each designed by itself, with the nonlinear fluid.

`NETCTRL_RANDOM_MAPS=100 python -m pytest tests/frequency/test_random_maps.py` draws that many maps, of 40 points each.
"""

from __future__ import annotations

import math
import os

import numpy as np
import pytest

import netctrl
from netctrl.core.errors import NoAdmissibleDesign, Status
from netctrl.design.arc.design import arc_stability_map
from netctrl.frequency.stability_map import ADMISSIBLE, INFEASIBLE, THIN, UNSTABLE
from netctrl.model.design.design import ArcDesign

MAPS = int(os.environ.get("NETCTRL_RANDOM_MAPS", "3"))
DRAWN = 40 if MAPS > 3 else 3
"""Of a map's admissible points, and as many of its others."""


def drawn(seed: int) -> ArcDesign:
    """The first admissible one of a seed's draws: windows 1.5 to 200, epochs .05 to 5 RTTs; odd seeds with a queue."""
    random = np.random.default_rng([11, seed])
    while True:
        rtt, window = math.exp(random.uniform(math.log(2e-3), math.log(2.0))), math.exp(random.uniform(0.4, 5.3))
        flows, epoch = math.exp(random.uniform(0.0, 6.0)), rtt * math.exp(random.uniform(-3.0, 1.6))
        rate = flows * window / rtt
        queue = {"utilization": 1.0, "target_queue_packets": rate * rtt * random.uniform(0.02, 0.7)}
        none = {"utilization": random.uniform(0.5, 0.995), "target_queue_packets": 0.0}
        try:
            return netctrl.arc(flows, rtt, 8e3 * rate, epoch_s=epoch, **(queue if seed % 2 else none))
        except NoAdmissibleDesign:
            continue


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(MAPS))
def test_points_of_a_map_are_what_the_design_finds_there(seed: int) -> None:
    design = drawn(seed)
    inputs, alpha = design.inputs, design.law.alpha_per_packet
    same = {name: getattr(inputs, name) for name in ("utilization", "epoch_s", "target_queue_packets")}
    drawn_map = arc_stability_map(design, points=24)
    random = np.random.default_rng(seed)
    for kind in (ADMISSIBLE, THIN, UNSTABLE, INFEASIBLE):
        points = np.argwhere(drawn_map.classes == kind)
        for i, j in random.permutation(points)[:DRAWN]:
            flows, rtt = float(drawn_map.flows[j]), float(drawn_map.rtt_s[i])
            if inputs.epoch_s > 100.0 * rtt:  # the design refuses such an epoch
                assert kind != ADMISSIBLE
                continue
            try:
                found = netctrl.arc(
                    flows, rtt, inputs.capacity_bit_per_s, alpha_per_packet=alpha, simulation=kind == ADMISSIBLE, **same
                ).certificate
            except NoAdmissibleDesign as refused:
                found = refused.design.certificate
            at = (flows, rtt, str(found.status), found.warnings)
            # Points on a border, to a part in a thousand, are drawn on its worse side.
            limit = found.sampled.alpha_limit
            if kind == ADMISSIBLE:
                assert found.status is Status.ADMISSIBLE, at
            elif kind == UNSTABLE:
                assert limit < 1.001 * alpha, at
            elif kind == INFEASIBLE:
                assert found.status is Status.INFEASIBLE, at
            else:
                assert found.stable, at
