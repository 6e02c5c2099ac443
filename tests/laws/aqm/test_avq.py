"""AVQ at packets: the virtual queue of its paper; and its fluid, which is the limit of small packets."""

from __future__ import annotations

import numpy as np

from netctrl.laws.aqm.avq import AvqParameters, AvqState, avq_fluid, avq_step
from netctrl.laws.aqm.law import Seen


def test_it_is_the_virtual_queue_of_its_paper() -> None:
    gamma, damping, buffer, capacity = 0.98, 0.15, 30.0, 1250.0
    rng = np.random.default_rng(3)
    time = np.cumsum(rng.exponential(0.75e-3, 20000))
    size = rng.choice([0.04, 1.0], 20000, p=[0.1, 0.9])
    link = np.where(time < time[-1] / 2, capacity, 750.0)
    state, law = AvqState(0.0, 0.0, 0.0, 0.0), AvqParameters(gamma, damping, buffer)
    # Kunniyur and Srikant's Figure 2.
    virtual, queue, last, found, expected = capacity, 0.0, 0.0, [], []
    for t, b, c in zip(time, size, link, strict=True):
        state = avq_step(state, Seen(t - last, 0.0, b, 0.0, c), law)
        queue = max(queue - virtual * (t - last), 0.0)
        mark = queue + b > buffer
        queue += 0.0 if mark else b
        virtual = max(min(virtual + damping * gamma * c * (t - last), c) - damping * b, 0.0)
        last = t
        found.append(state[:3])
        expected.append((mark, queue, virtual))
    assert 0 < sum(mark for mark, _, _ in expected) < len(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-9)


def test_the_fluid_marks_what_small_packets_are_marked() -> None:
    """Both under the same arrivals, 3 % above what AVQ lets through: the share that is marked, over 20 s."""
    capacity, rate, seconds = 1250.0, 1260.0, 20.0
    law = AvqParameters(0.98, 0.15, 50.0)
    shares = []
    for step, packets in ((avq_step, 200_000), (avq_fluid, 20_000)):
        size, gap = rate * seconds / packets, seconds / packets
        state, marked = AvqState(0.0, 0.0, 0.98 * capacity, 1.0), 0.0
        for _ in range(packets):
            state = step(state, Seen(gap, 0.0, size, 0.0, capacity), law)
            marked += state.probability * size
        shares.append(marked / (rate * seconds))
    assert shares[0] > 0.005
    assert abs(shares[0] / shares[1] - 1.0) < 0.01
