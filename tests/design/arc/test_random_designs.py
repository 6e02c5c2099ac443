"""Random designs of ARC against what netctrl's certificate does not use: the simulator's fluid and a delay equation.

`NETCTRL_RANDOM_DESIGNS=300 python -m pytest tests/design/arc/test_random_designs.py` draws that many.
"""

from __future__ import annotations

import math
import os
from itertools import count

import numpy as np
import pytest
from hybrid_tcp import growth

import netctrl
from netctrl.core.errors import NoAdmissibleDesign
from netctrl.laws.aqm.arc import ArcQueue
from netctrl.model.design.design import ArcDesign
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow

RANDOM = int(os.environ.get("NETCTRL_RANDOM_DESIGNS", "9"))
PACKET = 1000.0  # bytes
PLANTS = ("paper", "noq", "phys")
STEPS = 4e7
"""Of a run of the fluid, at most."""


def log_uniform(random: np.random.Generator, low: float, high: float) -> float:
    return math.exp(random.uniform(math.log(low), math.log(high)))


def drawn(seed: int) -> ArcDesign:
    """The first admissible one of a seed's draws: windows 1.5 to 200, epochs .05 to 5 RTTs, RTTs 2 ms to 2 s."""
    random = np.random.default_rng([10, seed])
    plant = PLANTS[seed % len(PLANTS)]
    for _ in count():
        flows = int(log_uniform(random, 1.0, 400.0))
        window, rtt = log_uniform(random, 1.5, 200.0), log_uniform(random, 2e-3, 2.0)
        epoch, rate = rtt * log_uniform(random, 0.05, 5.0), flows * window / rtt
        if plant == "phys":
            gamma, target = 1.0, rate * rtt * random.uniform(0.02, 0.7)
        else:
            gamma, target = random.uniform(0.5, 0.995), 0.0
        more = {"utilization": gamma, "epoch_s": epoch, "target_queue_packets": target, "plant": plant}
        try:
            return netctrl.arc(flows, rtt, 8.0 * PACKET * rate / gamma, **more)
        except NoAdmissibleDesign:
            continue


def settled_cv(design: ArcDesign) -> float:
    """cv(p) over the last third of a cold start in the simulator."""
    inputs, found = design.inputs, design.certificate.sampled
    setting, rtt = inputs.setting, inputs.rtt_s[0]
    C, d = float(setting.capacity_packet_per_s), setting.epoch_s
    standing = setting.target_queue_packets if found.plant == "phys" else 0.0
    window = C * setting.utilization * rtt / inputs.flows[0]
    slowest = d / -math.log(found.spectral_radius)
    duration = 3.0 * (2.0 * window * rtt + 12.0 * slowest + 12.0 * 2.0 * math.pi / found.crossover_rad_s)
    steps_per_epoch = math.ceil(50.0 * d / rtt)
    assert duration / d * steps_per_epoch < STEPS
    queue = ArcQueue(
        alpha=design.law.alpha_per_packet,
        epoch=d,
        target_utilization=setting.utilization,
        target_queue=setting.target_queue_packets * PACKET,
    )
    line = Link(
        id="link",
        source="a",
        target="b",
        capacity=8.0 * PACKET * C,
        buffer=10.0 * PACKET * (standing + C * (rtt + d)),
        queue=queue,
    )
    path = rtt - standing / C
    result = netctrl.simulate(
        Scenario(
            name="random",
            duration=duration,
            interval=d,
            step=d / steps_per_epoch,
            links=(line,),
            flows=(Flow(id="tcp", path=("link",), rtt=(path, path), classes=1, count=int(inputs.flows[0])),),
        )
    )
    marking = result.series["probability"][0]
    late = marking[2 * len(marking) // 3 :]
    return float(late.std() / late.mean())


def grows(design: ArcDesign, alpha: float, late: float = 0.0) -> float:
    inputs, found = design.inputs, design.certificate.sampled
    setting, rtt = inputs.setting, inputs.rtt_s[0]
    d = setting.epoch_s
    at = found.crossover_rad_s if late else found.phase_crossover_rad_s
    epochs = int(max(200.0, 40.0 * 2.0 * math.pi / (at * d)))
    return growth(
        inputs.flows[0],
        rtt,
        float(setting.capacity_packet_per_s) * setting.utilization,
        d,
        alpha,
        queue=found.plant == "phys",
        gamma=setting.utilization,
        late=late,
        epochs=epochs,
        per_rtt=40,
    )


@pytest.mark.parametrize("seed", range(RANDOM))
def test_a_designed_gain_keeps_what_its_certificate_says(seed: int) -> None:
    design = drawn(seed)
    found, alpha = design.certificate.sampled, design.law.alpha_per_packet
    assert grows(design, 1.1 * found.alpha_limit) > 1.0
    assert grows(design, 0.97 * found.alpha_limit) < 1.0
    assert grows(design, alpha, 0.99 * found.delay_margin_s) < 1.0
    assert grows(design, alpha, 1.01 * found.delay_margin_s) > 1.0
    assert settled_cv(design) < 0.05
