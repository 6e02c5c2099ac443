"""Test of feedback: false alarms by Monte Carlo, loops that it must see, laws without a reference."""

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import binom

import netctrl
from netctrl.ident.subspace.dependence import FEEDBACK_LEVEL, SURE, feedback
from netctrl.ident.subspace.lq_reduction import lq_reduce

SAMPLES, HORIZON, RUNS = 600, 10, 60


def scaled(signal: np.ndarray) -> np.ndarray:
    return ((signal - signal.mean()) / signal.std())[:, None]


def response(u: np.ndarray, y: np.ndarray):
    return feedback(lq_reduce([(scaled(u), scaled(y))], HORIZON), u[:, None])


def loop(k: float, noise: float, seed: int, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """u = r - k y around a plant of gain 6.67, r a GBN, as in `identification.md`'s case."""
    random = np.random.default_rng(seed)
    reference = netctrl.gbn(samples, [-1.0, 1.0], np.random.default_rng(500 + seed), hold=5)[:, 0]
    x, u, y = np.zeros(2), np.empty(samples), np.empty(samples)
    for t in range(samples):
        e = noise * random.standard_normal()
        y[t] = x[0] + e
        u[t] = reference[t] - k * y[t]
        x = np.array([0.9 * x[0] + 0.2 * x[1] + 0.3 * e, 0.7 * x[1] + u[t] + 0.2 * e])
    return u, y


INPUTS = {
    "white": lambda random: random.standard_normal(SAMPLES),
    "gbn": lambda random: netctrl.gbn(SAMPLES, (-1.0, 1.0), random, hold=5.0)[:, 0],
    "multisine": lambda random: netctrl.multisine(SAMPLES, (-1.0, 1.0), random)[:, 0],
    "walk": lambda random: np.cumsum(random.standard_normal(SAMPLES)),
}
NOISES = {"white": [1.0], "lag": [1.0, -0.9], "drift": [1.0, -0.99]}


@pytest.mark.slow
@pytest.mark.parametrize("kind", INPUTS)
def test_false_alarms_come_as_often_as_stated(kind):
    """180 traces in open loop, at levels of 5 % and 0.1 %: alarms within chance's bound of 1e-4."""
    random = np.random.default_rng(7)
    chances = []
    for noise in NOISES.values():
        for _ in range(RUNS):
            u = INPUTS[kind](random)
            x, v = lfilter([0.0, 0.3], [1.0, -0.95], u), lfilter([1.0], noise, random.standard_normal(SAMPLES))
            found = response(u, x + 0.5 * x.std() / v.std() * v)
            assert not found.determined and not found.laws
            chances.append(found.chance)
    for level in (FEEDBACK_LEVEL, SURE):
        assert np.sum(np.array(chances) < level) <= binom.isf(1e-4, len(chances), level)


@pytest.mark.parametrize("noise", [1.0, 3.0])
def test_a_loop_around_the_plant_is_seen(noise):
    assert all(response(*loop(0.3, noise, seed, 4000)).found for seed in range(3))
    assert all(response(*loop(0.3, noise, seed, 1000)).found for seed in range(3))


def test_identify_warns_of_feedback_and_not_of_the_same_plant_without():
    closed = netctrl.identify(*loop(0.3, 1.0, 0, 3000), interval_s=1.0, order=2, refine=False).how
    assert closed.feedback
    assert any(said.startswith("feedback: later inputs") for said in closed.warnings)
    opened = netctrl.identify(*loop(0.0, 1.0, 0, 3000), interval_s=1.0, order=2, refine=False).how
    assert (opened.feedback, opened.warnings) == (False, ())


@pytest.mark.parametrize("delay", [0, 1])
def test_a_law_without_a_reference_is_seen(delay):
    """u = -0.3 y: identified is -1/0.3 with a VAF of 100 %."""
    random = np.random.default_rng(3)
    x, u, y = 0.0, np.zeros(1500), np.zeros(1500)
    for t in range(1, 1500):
        y[t] = x + random.standard_normal()
        u[t] = -0.3 * y[t - delay]
        x = 0.9 * x + u[t]
    assert response(u[1:], y[1:]).found
    found = netctrl.identify(u[1:], y[1:], interval_s=1.0, order=1, refine=False)
    assert found.how.feedback
    assert any("feedback" in said for said in found.how.warnings)


def test_a_gbn_to_a_plant_without_noise_is_no_law():
    u = netctrl.gbn(500, (-1.0, 1.0), np.random.default_rng(1))[:, 0]
    assert not response(u, lfilter([0.4, 0.3], [1.0, -0.8], u)).found
