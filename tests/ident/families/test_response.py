"""Models of a frequency response: exact without noise, near the Cramér-Rao bound with it, and as from time data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import block_diag
from scipy.signal import dlsim

import netctrl
from netctrl import InvalidValue, StateSpace
from netctrl.ident.families.response import identify_response


def system(random: np.random.Generator, n: int, m: int, p: int) -> StateSpace:
    modes: list[np.ndarray] = []
    while (left := n - sum(map(len, modes))) > 0:
        turn, size = random.uniform(0.1, 2.5), random.uniform(0.5, 0.97)
        pair = size * np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
        modes.append(pair if left > 1 and random.random() < 0.6 else np.array([[random.uniform(-0.5, 0.97)]]))
    Q = np.linalg.qr(random.standard_normal((n, n)))[0]
    B, C, D = (random.standard_normal(shape) for shape in ((n, m), (p, n), (p, m)))
    return StateSpace(Q @ block_diag(*modes) @ Q.T, B, C, D, 1.0)


def response(plant: StateSpace, omega: np.ndarray) -> np.ndarray:
    z = np.exp(1j * plant.dt * omega)[:, None, None]
    return plant.C @ np.linalg.solve(z * np.eye(plant.n_states) - plant.A, plant.B.astype(complex)) + plant.D


def noise(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Circular, of variance 1."""
    return (random.standard_normal(shape) + 1j * random.standard_normal(shape)) / np.sqrt(2.0)


@given(st.integers(0, 2**32), st.integers(1, 6), st.integers(1, 3), st.integers(1, 3), st.integers(0, 2), st.booleans())
@settings(max_examples=40)
def test_without_noise_it_is_exact_on_any_grid(seed, n, m, p, kind, refine) -> None:
    random = np.random.default_rng(seed)
    plant = system(random, n, m, p)
    grids = np.linspace(0, np.pi, 40), np.sort(random.uniform(0, np.pi, 40)), np.geomspace(0.01, 3.0, 40)
    found = identify_response(grids[kind], response(plant, grids[kind]), dt=1.0, order=n, refine=refine)
    between = np.linspace(0.02, 3.1, 50)
    wanted = response(plant, between)
    assert np.abs(response(found.plant, between) - wanted).max() <= 1e-5 * np.abs(wanted).max()
    assert found.error <= 1e-6 * np.abs(wanted).max()


@pytest.mark.parametrize("n", [1, 3, 6])
def test_frequencies_left_out_tell_the_order(n) -> None:
    random = np.random.default_rng(n)
    plant, omega = system(random, n, 1, 2), np.linspace(0.0, np.pi, 60)
    G = response(plant, omega)
    for size in (0.0, 0.02):
        fit = identify_response(omega, G + size * noise(random, G.shape), dt=1.0)
        assert fit.plant.n_states == n
        assert len(fit.left_out) >= n
        assert np.diff(fit.singular_values).max() <= 0.0


@pytest.mark.parametrize("count", [40, 160])
def test_errors_are_those_that_no_unbiased_estimate_is_below(count) -> None:
    """The mean over the grid of the variance of an efficient estimate of d real parameters is d / 2 per number."""
    ratios = []
    for seed in range(10):
        random = np.random.default_rng(seed)
        n, m, p = 1 + seed % 4, 1 + seed % 2, 1 + seed % 3
        plant, omega = system(random, n, m, p), np.linspace(0.0, np.pi, count)
        G = response(plant, omega)
        deviation = 0.03 * np.abs(G) * random.uniform(0.3, 3.0, (count, 1, 1))  # another at each frequency
        fit = identify_response(omega, G + deviation * noise(random, G.shape), dt=1.0, order=n, deviation=deviation)
        errors = np.abs((response(fit.plant, omega) - G) / deviation) ** 2
        ratios.append(errors.sum() / (0.5 * (n * (m + p) + p * m)))
        assert fit.error == pytest.approx(1.0, abs=0.25)
    assert np.median(ratios) == pytest.approx(1.0, abs=0.3)


def test_as_good_as_from_time_data_of_a_periodic_input() -> None:
    """Within the square root of 6/5, as the first of six periods, a transient, is left out, and chance."""
    plant = StateSpace([[1.5, -0.7], [1.0, 0.0]], [[1.0], [0.0]], [[0.5, 0.3]], dt=0.1)
    omega = np.fft.rfftfreq(256, 0.1) * 2.0 * np.pi
    errors = []
    for seed in range(6):
        random = np.random.default_rng(seed)
        period = random.standard_normal(256)
        u = np.tile(period, 6)
        y = dlsim((plant.A, plant.B, plant.C, plant.D, 0.1), u)[1][:, 0] + 0.3 * random.standard_normal(len(u))
        U, Y = np.fft.rfft(period), np.fft.rfft(y[256:].reshape(5, 256).mean(axis=0))
        fit = identify_response(omega, Y / U, dt=0.1, order=2, deviation=1.0 / np.abs(U), feedthrough=False)
        trace = netctrl.SignalTrace(interval_s=0.1, input_values=u, output_values=y)
        other = netctrl.identify(trace, order=2, method="n4sid", feedthrough=False).model.state_space
        assert fit.plant.D.tolist() == [[0.0]]
        errors.append(
            [np.mean(np.abs(response(each, omega) - response(plant, omega)) ** 2) for each in (fit.plant, other)]
        )
    one, two = np.sqrt(np.mean(errors, axis=0))
    assert max(one, two) < 0.02
    assert one < 1.3 * two


def test_an_unstable_plant_stays_one() -> None:
    omega = np.linspace(0.1, 3.0, 20)
    fit = identify_response(omega, 1.0 / (np.exp(1j * omega) - 1.1), dt=1.0, order=1)
    assert pytest.approx(np.array([[1.1]])) == fit.plant.A


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"order": 9}, "order: got 9, takes 1 to 8 states with 9 frequencies"),
        ({"order": "best"}, "'auto'"),
        ({"frequencies": np.linspace(0.0, 32.0, 9)}, "from 0 to π/dt = 31.4159 rad/s"),
        ({"frequencies": np.zeros(9)}, "different ones"),
        ({"response": np.ones(8)}, r"response: got 'shape \(8, 1, 1\)'.*9 frequencies"),
        ({"response": np.full(9, np.nan)}, "finite numbers"),
        ({"deviation": 0.0}, "deviations above 0"),
        ({"deviation": np.ones(4)}, "a deviation that broadcasts"),
        ({"dt": 0.0}, "dt: got 0.0"),
    ],
)
def test_refusals_name_the_argument(change, said) -> None:
    usual = {"frequencies": np.linspace(0.0, 30.0, 9), "response": np.ones(9), "dt": 0.1, "order": 1}
    with pytest.raises(InvalidValue, match=said):
        identify_response(**usual | change)
