"""Longest delay of CoDel's queue, against the fluid from random starts at random points of boxes."""

from __future__ import annotations

import numpy as np
import pytest

from netctrl.laws.aqm.codel import CodelParameters
from netctrl.plants.codel.cycle import codel_cycle
from netctrl.plants.codel.tube import longest_delay


def test_the_fluid_stays_below_it_at_random_points_of_random_boxes():
    random, shares, boxes = np.random.default_rng(4), [], 0
    while boxes < 12:
        rate, rtt = 10.0 ** random.uniform(6.0, 8.5) / 12e3, np.exp(random.uniform(np.log(2e-3), np.log(0.2)))
        codel = CodelParameters(float(np.exp(random.uniform(np.log(2e-3), np.log(20e-3)))), random.uniform(0.05, 0.2))
        rates, rtts = (rate, rate * random.uniform(1.0, 1.5)), (rtt, rtt * random.uniform(1.0, 1.5))
        sender, spread = str(random.choice(["reno", "cubic"])), bool(random.integers(2))
        path = (rtts[0] + 1.0 / rates[1], rtts[1] + 1.0 / rates[0])
        bound = longest_delay(sender, rates, path, codel, spread=spread)
        if bound is None:
            continue
        boxes += 1
        for _ in range(8):
            r, d = random.uniform(*rates), random.uniform(*rtts)
            cobalt, marks = (bool(k) for k in random.integers(2, size=2))
            found = codel_cycle(
                sender,
                r,
                d + 1.0 / r,
                codel._replace(cobalt=float(cobalt)),
                marks=marks,
                spread=spread,
                start_s=random.uniform(0.0, 2.0 * bound),
            )
            if found is not None:
                shares.append(found.longest_s / bound)
    assert len(shares) > 80
    assert max(shares) < 1.0
    assert np.median(shares) > 0.7


def test_reno_s_is_the_fixed_point_of_a_line():
    """D = T + (I + D + d + 4/C)/(C (d + T)) + 1/C."""
    rate, path, codel = 1e4, 0.1, CodelParameters(5e-3, 0.1)
    slope = 1.0 / (rate * (path + codel.target))
    aim = (codel.target + slope * (codel.interval + path + 4.0 / rate) + 1.0 / rate) / (1.0 - slope)
    assert longest_delay("reno", (rate, rate), (path, path), codel) == pytest.approx(aim, rel=2e-4)


@pytest.mark.parametrize(
    ("sender", "rate", "path", "spread"), [("reno", 80.0, 0.01, True), ("cubic", 416.0, 0.3, False)]
)
def test_it_is_not_claimed_for_tiny_windows_and_bursts(sender, rate, path, spread):
    assert longest_delay(sender, (rate, rate), (path, path), CodelParameters(5e-3, 0.1), spread=spread) is None
