"""The exact sampled loop, against published numbers, a simulation of the hybrid system and its continuous limit."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from netctrl.core.errors import InvalidValue
from netctrl.frequency.margins import gain_band
from netctrl.frequency.sampled import _epoch_map, _exponential, _lifted, gain_limit, spectral_radius
from netctrl.model.design.arc import PLANTS, ArcSetting, Plant
from netctrl.model.loop import DelayLoop, SampledLoop
from netctrl.plants.linearize import arc_loop, arc_sampled_loop


def setting(epoch: float = 1.0, capacity: float = 1250.0, utilization: float = 0.98) -> ArcSetting:
    return ArcSetting(capacity_packet_per_s=capacity, utilization=utilization, epoch_s=epoch)


def simulate(loop: SampledLoop, gain: float, epochs: int, per_epoch: int = 1000) -> np.ndarray:
    """p at each epoch, by stepping the hybrid system in time and looking the delayed p up in its history.

    The delay must be a whole number of steps. Shares nothing with the lifted matrix: no delay states, no z.
    """
    h = loop.epoch / per_epoch
    lag = round(loop.delay / h)
    assert abs(lag * h - loop.delay) < 1e-9
    m = loop.A.shape[0]
    block = np.zeros((m + 1, m + 1))
    block[:m, :m], block[:m, m] = loop.A * h, loop.B * h
    step = scipy.linalg.expm(block)
    x = np.zeros(m)
    p = [1.0]  # a kick in the first epoch; nothing before
    for k in range(epochs):
        for j in range(per_epoch):
            past = k * per_epoch + j - lag
            x = step[:m, :m] @ x + step[:m, m] * (p[past // per_epoch] if past >= 0 else 0.0)
        p.append(p[-1] + gain * float(loop.read @ x))
        x = np.where(loop.keep, x, 0.0)
    return np.array(p)


@pytest.mark.parametrize(("plant", "limit"), [("paper", 1.5707894e-5), ("noq", 2.3128302e-5), ("phys", 7.990529e-5)])
def test_limits_of_input_a_at_one_second(plant: Plant, limit: float) -> None:
    """Reference numbers at d = 1 s, found apart from this code."""
    assert gain_limit(arc_sampled_loop(50.0, 0.5, setting(), plant)) == pytest.approx(limit, rel=1e-6)


def test_the_papers_second_setting_is_unstable() -> None:
    """Reference number: noq at d = 2 s."""
    loop = arc_sampled_loop(50.0, 0.5, setting(2.0), "noq")
    assert spectral_radius(loop, 2.84e-5) == pytest.approx(1.165111, abs=1e-6)


@pytest.mark.parametrize("plant", PLANTS)
@pytest.mark.parametrize(("rtt", "epoch"), [(0.5, 1.0), (0.5, 0.4), (0.3, 0.1), (0.25, 0.25), (1.7, 0.2)])
def test_the_lifted_matrix_is_the_simulated_system(plant: Plant, rtt: float, epoch: float) -> None:
    loop = arc_sampled_loop(50.0, rtt, setting(epoch), plant)
    gain = 0.7 * gain_limit(loop)
    epochs = 12
    M = _lifted(*_epoch_map(loop), gain, loop)
    kept = int(np.count_nonzero(loop.keep))
    state = np.zeros(M.shape[0])
    state[kept] = 1.0
    lifted = [1.0]
    for _ in range(epochs):
        state = M @ state
        lifted.append(state[kept])
    np.testing.assert_allclose(lifted, simulate(loop, gain, epochs), rtol=1e-8, atol=1e-12)


POINTS = {
    "flows": st.floats(5.0, 500.0),
    "rtt": st.floats(0.02, 2.0),
    "epoch": st.floats(0.05, 4.0),
    "plant": st.sampled_from(PLANTS),
}


@given(**POINTS)
@settings(max_examples=60)
def test_the_limit_is_the_first_gain_on_the_circle(flows: float, rtt: float, epoch: float, plant: Plant) -> None:
    loop = arc_sampled_loop(flows, rtt, setting(epoch), plant)
    limit = gain_limit(loop)
    assert spectral_radius(loop, limit) == pytest.approx(1.0, abs=1e-9)
    for part in (1e-4, 0.01, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 0.9999):
        assert spectral_radius(loop, part * limit) < 1.0
    assert spectral_radius(loop, 1.0001 * limit) > 1.0


def test_a_whole_number_of_epochs_is_no_special_case() -> None:
    def limit(rtt: float) -> float:
        return gain_limit(arc_sampled_loop(50.0, rtt, setting(0.1), "noq"))

    assert limit(0.5) == pytest.approx(limit(0.5 - 1e-9), rel=1e-6)
    assert limit(0.5) == pytest.approx(limit(0.5 + 1e-9), rel=1e-6)


@pytest.mark.parametrize(("plant", "order"), [("noq", 1), ("phys", 2)])
def test_short_epochs_approach_the_continuous_loop(plant: Plant, order: int) -> None:
    # noq lags by half an epoch. For phys the queue, read at the epoch's end, is half an epoch ahead of its mean.
    def distance(epoch: float) -> float:
        chosen = setting(epoch)
        continuous = gain_band(arc_loop(50.0, 0.5, chosen, plant)).limit * epoch
        return abs(gain_limit(arc_sampled_loop(50.0, 0.5, chosen, plant)) / continuous - 1.0)

    coarse, fine = distance(0.02), distance(0.01)
    assert fine < 0.05
    assert coarse / fine == pytest.approx(2.0**order, rel=0.1)


def test_a_law_that_pushes_the_wrong_way_has_no_stable_gain() -> None:
    loop = arc_sampled_loop(50.0, 0.5, setting(), "noq")
    wrong = SampledLoop(loop.A, -loop.B, loop.read, loop.keep, loop.delay, loop.epoch)
    assert gain_limit(wrong) == 0.0
    assert spectral_radius(wrong, 1e-9) > 1.0


@pytest.mark.parametrize("size", [1e-3, 0.3, 2.0, 60.0, 3e3])
def test_matrix_exponential_is_scipys(size: float) -> None:
    random = np.random.default_rng(3)
    X = size * (random.normal(size=(4, 4)) - 5.0 * np.eye(4))  # decaying, as a network's modes are
    np.testing.assert_allclose(_exponential(X), scipy.linalg.expm(X), rtol=1e-11, atol=1e-13)


def test_an_epoch_far_below_the_delay_is_refused_with_the_shortest_that_works() -> None:
    with pytest.raises(InvalidValue, match=r"0\.002 s"):
        arc_sampled_loop(50.0, 2.0, setting(1e-4), "noq")


@given(st.floats(4.0, 9.5))
@settings(max_examples=20)
def test_a_slow_plant_sees_the_epoch_as_half_an_epoch_of_delay(decades: float) -> None:
    # A fast link with few flows: TCP's time constant is 5e2 to 2e8 epochs. What p has summed up is the integral itself;
    # holding it lags by half an epoch.
    chosen = setting(1.0, 10.0**decades)
    loop = arc_loop(5.0, 0.5, chosen, "noq")
    later = DelayLoop(gain=loop.gain, delay=0.5 + 0.5, integrators=1, leads=(), lags=loop.lags)
    limit = gain_limit(arc_sampled_loop(5.0, 0.5, chosen, "noq"))
    assert limit == pytest.approx(gain_band(later).limit, rel=1.0 / loop.lags[0])
