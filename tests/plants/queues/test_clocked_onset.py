"""Loops of senders that acknowledgements clock begin to oscillate where a fluid that counts packets does."""

from __future__ import annotations

import numpy as np
import pytest
from clocked_fluid import loop_growth

from netctrl.frequency.sampled_stability import stable_gains
from netctrl.plants.queues.queue_laws import SampledPi, WindowClass
from netctrl.plants.queues.queue_loop import QueueLoop
from netctrl.plants.queues.window_response import LINUX_CRENO, LINUX_RENO, RFC_CRENO, RFC_RENO

RATE = 1250.0
CLOCKED = (LINUX_RENO, RFC_RENO, LINUX_CRENO, RFC_CRENO)


def drawn(seed: int, ratio: float) -> tuple[QueueLoop, float, float]:
    """A loop of two senders with small gains, its flows and its round-trip time; gains and marks as of PIE, PI2 and
    DualPI2."""
    rng = np.random.default_rng([31, seed])
    kind, senders = seed % 3, rng.permutation(4)[:2]
    update, target, rtt, window = (
        10.0 ** rng.uniform(*ends) for ends in ((-2.3, -1.5), (-2.3, -1.5), (-2.0, -1.0), (0.8, 2.0))
    )
    share, power = rng.uniform(0.3, 0.7), 1.0 if kind == 0 else 2.0
    classes = (
        WindowClass(CLOCKED[senders[0]], share, power=power),
        WindowClass(CLOCKED[senders[1]], 1.0 - share, ratio, power=power),
    )
    law = SampledPi(1e-12, 1e-12 * 10.0 ** rng.uniform(0.5, 2.0), update, target)
    loop = QueueLoop(classes, law, RATE, age_queues=0.0 if kind == 1 else 1.0, marked_leaving=kind == 2)
    return loop, RATE * (0.5 * rtt * (1.0 + ratio) + target) / window, rtt


@pytest.mark.parametrize("ratio", [1.0, 1.3, 2.0, 3.0])
@pytest.mark.parametrize("seed", range(12))
def test_the_fluid_begins_to_oscillate_at_the_limit(seed: int, ratio: float) -> None:
    loop, flows, rtt = drawn(seed, ratio)
    found = stable_gains(loop, flows, rtt)
    period = 2.0 * np.pi * loop.law.update_s / found.upper_angle
    assert loop_growth(loop, flows, rtt, 0.97 * found.upper, 60.0, period) < 0.0
    assert loop_growth(loop, flows, rtt, 1.03 * found.upper, 60.0, period) > 0.0
