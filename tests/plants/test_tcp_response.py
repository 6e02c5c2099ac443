"""The response of the loop that runs: against the lifted matrix, against itself with more aliases, and its discs."""

from __future__ import annotations

import numpy as np
import pytest
from arc_points import POINT, loop
from hypothesis import given, settings
from hypothesis import strategies as st

from netctrl.frequency.sampled import _epoch_map, _transfer
from netctrl.model.design.arc import ArcSetting
from netctrl.plants.linearize import arc_sampled_loop
from netctrl.plants.tcp_response import TcpResponse, arc_response


@given(**POINT, theta=st.floats(0.02, np.pi))
@settings(max_examples=60)
def test_undelayed_it_is_the_lifted_matrixs(theta: float, **drawn) -> None:
    """Hollot's window makes the loop finite dimensional: matrix exponentials give the same response."""
    setting, flows, rtt = loop(**drawn)
    found = arc_response(setting, delayed_window=False).at(theta, flows, rtt)
    plant = arc_sampled_loop(flows, rtt, setting, "phys" if drawn["standing"] else "noq")
    expected = -_transfer(*_epoch_map(plant), np.array([theta]), plant.read)[0]
    assert abs(found - expected) <= 1e-8 * abs(expected)


class ManyAliases(TcpResponse):
    def _aliases(self, window: np.ndarray, delta: np.ndarray) -> np.ndarray:
        return np.full(window.shape, 4096)


@given(**POINT, theta=st.floats(0.02, 3.1), extra=st.floats(0.0, 3.0))
@settings(max_examples=30)
def test_more_aliases_change_nothing(theta: float, extra: float, **drawn) -> None:
    setting, flows, rtt = loop(**drawn)
    one = arc_response(setting)
    many = ManyAliases(one.queue, one.rate, one.epoch, one.proportional, one.integral)
    found, expected = (each.at(theta, flows, rtt, extra * rtt) for each in (one, many))
    assert abs(found - expected) <= 1e-8 * abs(expected)


@pytest.mark.slow
@given(
    queue=st.booleans(),
    window=st.floats(0.2, 6.0),
    epochs=st.floats(-1.3, 1.5),
    theta=st.floats(-7.0, 0.49),
    extra=st.sampled_from([0.0, 0.3, 1.0, 800.0]),
)
@settings(max_examples=60)
def test_the_sum_of_forty_thousand_aliases(queue: bool, window: float, epochs: float, theta: float, extra: float):
    """Windows to a million packets and angles to 1e-7, where the closed forms once cancelled (3 % off at 1e-6)."""
    rtt, flows = 0.1, 7.0
    w, d, x = 10.0**window, 10.0**epochs, 10.0**theta
    found = TcpResponse(queue, flows * w / rtt, d * rtt, integral=0.9 if queue else 0.0).at(x, flows, rtt, extra * rtt)
    s = 1j * (np.longdouble(x) + 2.0 * np.arccos(np.longdouble(-1)) * np.arange(-20_000, 20_001)) / d
    echo = np.exp(-s)
    D = s * (w * s * s + (w + 1.0) * s + 2.0 + s * echo) if queue else s * s * (w * s + 1.0 + echo)
    counted = -np.expm1(-1j * np.longdouble(x)) + (0.9 if queue else 0.0)
    expected = 0.5 * flows * w**3 / d * counted * (np.exp(-(1.0 + extra) * s) / D).sum()
    assert abs(found - expected) <= 2e-9 * abs(expected)


@given(**POINT, seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_discs_hold_what_the_response_does_in_their_cells(seed: int, **drawn) -> None:
    setting, flows, rtt = loop(**drawn)
    response, random = arc_response(setting), np.random.default_rng(seed)
    theta = 10.0 ** random.uniform(-3.0, 0.49, 12)
    sizes = 10.0 ** random.uniform(-5.0, -1.0, (12, 4)) * random.integers(0, 2, (12, 4))
    half = sizes * np.array([1.0, 0.5, 0.5, rtt])
    half[:, 0] = theta * np.maximum(sizes[:, 0], 1e-5)
    extra = half[:, 3] + rtt * random.uniform(0.0, 2.0, 12)
    centre = np.stack([theta, np.full(12, np.log(flows)), np.full(12, np.log(rtt)), extra], axis=1)
    found = response.disc(centre, half)
    radius = found.parts.sum(axis=1)
    for _ in range(8):
        x = centre + half * random.choice([-1.0, -0.4, 0.7, 1.0], size=centre.shape)
        value = response.at(x[:, 0], np.exp(x[:, 1]), np.exp(x[:, 2]), x[:, 3])
        factor = np.exp(x[:, 1] - centre[:, 1])  # 1/N of the response is the real factor
        assert np.all(np.abs(np.log(factor)) <= found.stretch.sum(axis=1) * (1.0 + 1e-9))
        off = np.abs(value * factor - found.centre)
        assert np.all(off <= radius * (1.0 + 1e-9) + 1e-9 * np.abs(found.centre))


@given(**POINT)
@settings(max_examples=40)
def test_below_the_least_angle_it_is_an_integrator(**drawn) -> None:
    setting, flows, rtt = loop(**drawn)
    response = arc_response(setting)
    lowest = response.min_angle((flows, flows), (rtt, rtt))
    values = response.at(lowest * np.array([1.0, 0.5, 0.1]), flows, rtt)
    assert np.all(np.abs(np.angle(values) + 0.5 * np.pi) <= 0.06)


@pytest.mark.parametrize(("flows", "epoch", "ratio"), [(50, 1.0, 0.9843), (200, 0.25, 0.9034), (300, 0.1, 0.8400)])
def test_the_windows_delay_matters_where_windows_are_small(flows: int, epoch: float, ratio: float) -> None:
    """Ratios of the limits in the theory note certify, section 2."""
    from netctrl.frequency.branch_bound import Sector
    from netctrl.frequency.sampled_gain import gains_at

    setting = ArcSetting(capacity_packet_per_s=1250.0, epoch_s=epoch)
    delayed, undelayed = (
        gains_at(arc_response(setting, delayed_window=each), np.array([flows]), np.array([0.5]), [Sector()])[0, 0]
        for each in (True, False)
    )
    assert delayed / undelayed == pytest.approx(ratio, abs=1e-4)
