"""Gain margins over grids: those of single points, also across ends of stability and where crossings come and go."""

from __future__ import annotations

import numpy as np
import pytest

from netctrl.frequency import margin_grid
from netctrl.frequency.margin_grid import gain_factors, gain_grid
from netctrl.frequency.sampled_stability import stable_gains
from netctrl.plants.queues.queue_laws import Averaged, SampledPi, WindowClass
from netctrl.plants.queues.queue_loop import QueueLoop
from netctrl.plants.queues.window_response import CRENO, CUBIC, DCTCP, RENO

RATE = 8333.0
PI2 = SampledPi(0.16 * 0.016, 3.2 * 0.016, 0.016, 0.015)
LOOPS = {
    "cubic": QueueLoop((WindowClass(CUBIC, power=2.0),), PI2, RATE, age_queues=1.0),
    "reno": QueueLoop((WindowClass(RENO, power=2.0),), PI2, RATE, age_queues=1.0, marked_leaving=True),
    "fast": QueueLoop((WindowClass(RENO, power=2.0),), PI2._replace(update_s=0.2, proportional=0.5), RATE),
    "mixed": QueueLoop(
        (
            WindowClass(RENO, 0.5, power=2.0),
            WindowClass(CRENO, 0.2, 2.0, power=2.0),
            WindowClass(DCTCP, 0.3, factor=2.0),
        ),
        PI2,
        RATE,
        age_queues=1.0,
    ),
    "averaged": QueueLoop((WindowClass(RENO),), Averaged(1.0, 2.0, 0.01), RATE, within=(0.0, 0.1), continuous_s=0.01),
}
FLOWS, RTT = np.geomspace(1.0, 400.0, 150), np.geomspace(0.005, 0.4, 110)


@pytest.fixture(scope="module", params=LOOPS)
def gridded(request):
    loop = LOOPS[request.param]
    x = loop.output(FLOWS, RTT[:, None])
    wanted = (loop.windows_of(x, RTT[:, None]).min(axis=0) >= 2.0) & (x <= loop.within[1])
    looked = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            margin_grid, "gain_factors", lambda loop, n, tau: looked.append(n.size) or gain_factors(loop, n, tau)
        )
        return loop, wanted, gain_grid(loop, FLOWS, RTT, wanted), sum(looked)


@pytest.mark.slow
def test_margins_are_those_of_single_points(gridded) -> None:
    loop, wanted, found, _ = gridded
    rng = np.random.default_rng(5)
    rows, columns = (rng.permuted(a)[:80] for a in np.nonzero(wanted))
    ours = found[rows, columns]
    ours = ours[wanted[rows, columns]]
    places = [(i, k) for i, k in zip(rows, columns, strict=True) if wanted[i, k]]
    each = [stable_gains(loop, float(FLOWS[k]), float(RTT[i])).factor for i, k in places]
    assert len(each) > 40
    np.testing.assert_allclose(20.0 * np.log10(ours), 20.0 * np.log10(each), atol=0.05)


def test_points_that_are_not_wanted_are_left_out(gridded) -> None:
    _, wanted, found, _ = gridded
    assert np.isfinite(found[wanted]).all()
    assert (found[~wanted] == np.inf).all()


def test_most_points_are_followed_and_not_looked_at_anew(gridded, request) -> None:
    """In `fast` the crossing at z = −1 appears and disappears."""
    _, wanted, _, looked = gridded
    assert looked < {"fast": 0.35, "cubic": 0.03}.get(request.node.callspec.params["gridded"], 0.02) * wanted.sum()


def test_a_grid_may_have_one_point_or_one_row() -> None:
    loop = LOOPS["reno"]
    for flows, rtt in ((FLOWS[:1], RTT[80:81]), (FLOWS, RTT[80:81]), (FLOWS[:1], RTT)):
        found = gain_grid(loop, flows, rtt, np.ones((len(rtt), len(flows)), dtype=bool))
        np.testing.assert_allclose(found, gain_factors(loop, flows, rtt[:, None]), rtol=1e-3)


@pytest.mark.parametrize("flows", [10.0, 18.0, 30.0])
def test_crossings_of_delays_of_many_epochs_are_found(flows: float) -> None:
    """With a gain at which several crossings are below 1, the deciding one is at a high angle."""
    loop = QueueLoop((WindowClass(RENO),), Averaged(400.0, np.inf, 0.01), RATE, continuous_s=0.01)
    point = stable_gains(loop, flows, 0.5)
    assert point.unstable_poles >= 8
    found = gain_factors(loop, np.array([flows, flows]), 0.5)
    np.testing.assert_allclose(found, point.factor, rtol=1e-3)
