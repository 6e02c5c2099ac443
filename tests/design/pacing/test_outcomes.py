"""What becomes of the paper's law in closed loops: its map."""

import numpy as np
import pytest
from one_link import paced, run

import netctrl
from netctrl.design.pacing.design import pacing_map
from netctrl.model.design.pacing import FREEZES, INACTIVE, PINNED

RATE, RTT = 1e10, 4e-3
RATIOS, XIS = (0.5, 1.0, 2.0, 4.0), (1.0, 10.0, 100.0, 1000.0)


def outcome(psi: float, xi: float, ratio: float, deviation: float) -> tuple[int, int, float]:
    """The map's, the simulation's, and d* over the deviation: RTTs are up by this share of them, on average."""
    R = ratio * RATE
    design = netctrl.pacing(psi=psi, xi=xi, max_rate_bit_per_s=R, rtt_s=RTT, bottleneck_bit_per_s=RATE)
    drawn = pacing_map(design, psi=[psi], xi=[xi], ratios=(ratio,))
    found = run([paced(design.law, RTT)], RATE, 5e6, 20.0, noise=deviation * RTT, interval=0.1)
    runs = found.rates[0, found.time_s > 10.0].mean() > 0.95 * R
    seen = FREEZES if not runs else PINNED if ratio <= 1.0 else INACTIVE
    if seen == INACTIVE:
        assert found.delay_s[-1] == pytest.approx(5e6 * 8.0 / RATE)  # the buffer is full
    return int(drawn.outcomes(deviation)[0, 0, 0]), seen, float(drawn.thresholds[0, 0, 0]) / deviation


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("deviation", [0.02, 0.1, 0.25])
def test_closed_loops_end_as_the_map_says(ratio, deviation):
    """On a grid of ψ and ξ, at R/2 at first."""
    psis = (0.1, 1.0, 10.0) if deviation == 0.1 else (1.0,)
    for psi in psis:
        for xi in XIS:
            says, seen, _ = outcome(psi, xi, ratio, deviation)
            assert says == seen, (psi, xi)


@pytest.mark.parametrize("ratio", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("deviation", [0.05, 0.25])
def test_the_map_s_edge_is_within_a_factor_of_five(ratio, deviation):
    """Where d* is from a fifth of the deviation to twice it, a rate may be on its way either way."""
    for xi in np.logspace(0.0, 3.0, 13):
        says, seen, d_star = outcome(1.0, xi, ratio, deviation)
        assert says == seen or 0.2 < d_star < 2.0
