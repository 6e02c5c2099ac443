"""Draws of the steady gain: their spread against Monte Carlo, gains that a trace leaves open, signals of any size."""

import numpy as np
import pytest
from scipy.signal import lfilter

import netctrl
from netctrl.model.identified import settled


def trace(seed: int, samples: int, noise: float, colour: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """A lag with a steady gain of 2.5."""
    random = np.random.default_rng(seed)
    u = netctrl.gbn(samples, (-1.0, 1.0), random, hold=5.0)[:, 0]
    v = lfilter([1.0], [1.0, -colour], random.standard_normal(samples))
    return u, lfilter([0.0, 0.5], [1.0, -0.8], u) + noise * v


def identified(u, y, **options):
    return netctrl.identify(u, y, interval_s=1.0, order=1, refine=True, **options)


@pytest.mark.slow
@pytest.mark.parametrize("colour", [0.0, 0.7])
def test_draws_have_the_spread_of_gains_from_other_traces(colour):
    """40 traces of 400 samples, with white and with coloured noise; draws of each."""
    gains, spreads = [], []
    for seed in range(40):
        model = identified(*trace(seed, 400, 0.5, colour), horizon=5).model
        gains.append(model.state_space.steady_gain()[0, 0])
        draws = model.identification.steady_gain_draws
        assert draws.shape == (40, 1, 1)
        spreads.append(draws.std())
    assert np.mean(gains) == pytest.approx(2.5, abs=4.0 * np.std(gains) / np.sqrt(40))
    assert np.sqrt(np.mean(np.square(spreads))) == pytest.approx(np.std(gains), rel=0.3)  # 11 % of chance in the latter


def test_a_gain_that_the_trace_does_not_determine_is_announced():
    model = identified(*trace(1, 150, 6.0), horizon=4).model
    assert not settled(model.identification.steady_gain_draws[:, 0, 0])
    assert any(
        "doesn't determine the steady gain: 40 draws of y1 to u1" in said for said in model.identification.warnings
    )
    sure = identified(*trace(1, 400, 0.3), horizon=4).model
    assert settled(sure.identification.steady_gain_draws[:, 0, 0])
    assert sure.identification.warnings == ()


def test_draws_of_one_sign_within_two_settle():
    assert settled(np.array([1.0, 1.9])) and settled(np.array([-1.0, -1.9]))
    assert (
        not settled(np.array([1.0, 2.1])) and not settled(np.array([-0.1, 0.1])) and not settled(np.array([0.0, 1.0]))
    )


@pytest.mark.parametrize("size", [1e-200, 1e-150, 1e150, 1e200])
@pytest.mark.parametrize("signal", ["input", "output"])
def test_signals_of_any_size_give_the_scaled_model(size, signal):
    u, y = trace(2, 500, 0.1)
    base = netctrl.identify(u, y, interval_s=1.0, order=1, refine=False).model
    a, b = (size, 1.0) if signal == "input" else (1.0, size)
    model = netctrl.identify(a * u, b * y, interval_s=1.0, order=1, refine=False).model
    assert pytest.approx(base.A, rel=1e-9) == model.A
    assert model.state_space.steady_gain() == pytest.approx(base.state_space.steady_gain() / a * b, rel=1e-9)
    squares = 1e-301 < b * b < 1e301
    assert (model.K is not None) == squares
    assert any("squares of the outputs aren't floats" in said for said in model.identification.warnings) != squares


def test_a_size_beyond_is_refused():
    with pytest.raises(netctrl.InvalidValue, match=r"takes a number from -1e\+250 to 1e\+250"):
        identified(*(1e260 * signal for signal in trace(2, 100, 0.1)))
