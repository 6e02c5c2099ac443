"""Bound of a queue's loop at high frequencies: above the response at every frequency from there on, and not far."""

from __future__ import annotations

import numpy as np
import pytest

from netctrl.plants.queues.queue_laws import Averaged, SampledPi, WindowClass
from netctrl.plants.queues.queue_loop import QueueLoop, tail_bound
from netctrl.plants.queues.window_response import CRENO, DCTCP, LINUX_RENO, LINUX_RENO_NOECN, RENO, RFC_CRENO

RATE = 1250.0


@pytest.mark.parametrize("seed", range(30))
def test_the_bound_holds_in_the_whole_box_and_is_near_at_a_point(seed: int) -> None:
    rng = np.random.default_rng(seed)
    classes = [
        (WindowClass(RENO),),
        (WindowClass(DCTCP),),
        (WindowClass(RENO, 0.6), WindowClass(DCTCP, 0.4, 2.0)),
        (WindowClass(CRENO, 0.5), WindowClass(RENO, 0.5, 0.3)),
        (WindowClass(LINUX_RENO, 0.5), WindowClass(RFC_CRENO, 0.5)),
        (WindowClass(LINUX_RENO_NOECN),),
    ][seed % 6]
    law = Averaged(10.0 ** rng.uniform(-1, 1), [np.inf, 5.0][seed // 6 % 2], 0.01, spaced=bool(seed % 3))
    rtt, flows = np.sort(10.0 ** rng.uniform(-2.0, -0.5, 2)), np.sort(rng.uniform(3.0, 30.0, 2))
    shortest = rtt[0] * min(k.stretch for k in classes)
    for omega in (5.0 / shortest, 50.0 / shortest):
        loop = QueueLoop(classes, law, RATE, age_s=0.5 / RATE, continuous_s=np.pi / omega)
        bound = tail_bound(loop, omega, tuple(flows), tuple(rtt))
        n, tau = rng.uniform(*flows, 2000), rng.uniform(*rtt, 2000)
        angles = np.pi * 10.0 ** rng.uniform(0.0, 1.5, 2000)
        assert np.abs(loop.at(angles, n, tau)).max() <= bound
        middle = float(flows.mean()), float(rtt.mean())
        at = tail_bound(loop, omega, (middle[0],) * 2, (middle[1],) * 2)
        assert at <= 12.0 * np.abs(loop.at(np.pi * np.linspace(1.0, 1.3, 200), *middle)).max()


def test_nothing_is_bounded_below_the_corners_and_nothing_is_left_out_of_the_range() -> None:
    loop = QueueLoop((WindowClass(RENO),), Averaged(3.0, 8.0, 0.004), RATE, within=(0.0, 0.01))
    assert float(loop.output(2.0, 0.1)) < 0.01
    assert tail_bound(loop, 0.1, (2.0, 2.0), (0.1, 0.1)) == np.inf
    assert float(loop.output(200.0, 0.01)) > 0.01
    assert tail_bound(loop, 1e3, (200.0, 200.0), (0.01, 0.01)) == 0.0
    with pytest.raises(TypeError):
        tail_bound(
            QueueLoop((WindowClass(RENO),), SampledPi(0.01, 0.2, 0.016, 0.015), RATE), 1e3, (20.0, 20.0), (0.1, 0.1)
        )
