"""K, V and the warnings of identification: prediction never worse than simulation, V of the errors it really makes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from netctrl import SignalTrace, gbn, identify
from netctrl.ident.cautions import dependence
from netctrl.ident.descent.kernels import simulate
from netctrl.ident.subspace.lq_reduction import lq_reduce
from netctrl.ident.validate import variance_accounted_for
from netctrl.model.fit import IdentificationResult

SLACK = 1e-6  # per cent, of rounding


def mode(size: float, angle: float) -> list[float]:
    """Denominator of a damped oscillation."""
    return [1.0, -2.0 * size * np.cos(angle), size * size]


def servo(seed: int, samples: int = 700) -> SignalTrace:
    """A 2×2 arm with six poles, a slow load disturbance in front of one mode and coloured noise of the sensors."""
    random = np.random.default_rng(seed)
    u = lfilter([0.3], [1.0, -0.7], random.standard_normal((samples, 2)), axis=0)
    load = lfilter([0.05], [1.0, -0.995], random.standard_normal(samples))
    first = lfilter([0.0, 0.02], mode(0.995, 0.08), u[:, 0] + load)
    second = lfilter([0.0, 0.1], mode(0.98, 0.5), u[:, 1])
    third = lfilter([0.0, 0.2], mode(0.9, 1.4), u[:, 0] - u[:, 1])
    sensors = lfilter([0.01, 0.008], [1.0, -0.3], random.standard_normal((samples, 2)), axis=0)
    return SignalTrace(
        interval_s=0.01, input_values=u, output_values=np.stack([first + third, second + 0.3 * first], 1) + sensors
    )


def integrator(seed: int, samples: int = 800) -> SignalTrace:
    random = np.random.default_rng(seed)
    u = gbn(samples, [-1.0, 1.0], random, hold=8.0)
    y = np.cumsum(0.1 * u + 0.05 * random.standard_normal((samples, 1)), axis=0) + 40.0
    return SignalTrace(interval_s=1.0, input_values=u, output_values=y + 0.02 * random.standard_normal(y.shape))


def innovations(found: IdentificationResult, trace: SignalTrace) -> np.ndarray:
    """Errors of the predictor that stands in the model file, run step by step from its best initial state."""
    model = found.model
    assert model.K is not None and model.innovation_covariance is not None
    u, y = trace.input_values - model.input_offset, trace.output_values - model.output_offset
    x, T = np.zeros(len(model.A)), np.eye(len(model.A))
    errors, responses = [], []
    for now, seen in zip(u, y, strict=True):
        errors.append(seen - model.C @ x - model.D @ now)
        responses.append(model.C @ T)
        x = model.A @ x + model.B @ now + model.K @ errors[-1]
        T = (model.A - model.K @ model.C) @ T
    size = np.sqrt(np.diag(model.innovation_covariance))
    rows, right = np.array(responses) / size[:, None], np.array(errors) / size
    start = np.linalg.lstsq(rows.reshape(-1, len(T)), right.reshape(-1), rcond=1e-12)[0]
    return np.array(errors) - np.array(responses) @ start


def check(found: IdentificationResult) -> None:
    """What holds of every model with noise, whatever it is made from."""
    model = found.model
    assert found.predicted_vaf is not None and model.K is not None and model.innovation_covariance is not None
    assert (found.predicted_vaf >= found.how.vaf - SLACK).all()
    assert np.abs(np.linalg.eigvals(model.A - model.K @ model.C)).max() < 1.0
    errors = innovations(found, found.trace)
    size = np.sqrt(np.diag(model.innovation_covariance))
    assert np.cov(errors.T, bias=True) / np.outer(size, size) == pytest.approx(
        model.innovation_covariance / np.outer(size, size), abs=0.01
    )
    ahead = variance_accounted_for(found.trace.output_values, found.trace.output_values - errors)
    assert found.predicted_vaf == pytest.approx(ahead, abs=0.01 * (100.0 - ahead).max())


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, 4, 8])
def test_the_prediction_of_a_servo_is_never_worse_than_its_simulation(order) -> None:
    found = identify(servo(0), order=order, held_out=0.3)
    check(found)
    assert found.held_out_predicted_vaf is not None and found.how.held_out_vaf is not None
    assert (found.held_out_predicted_vaf >= found.how.held_out_vaf - 0.1).all()


@pytest.mark.parametrize("order", [1, 2, 4])
def test_an_integrator_is_predicted_and_its_pole_announced(order) -> None:
    found = identify(integrator(1), order=order, held_out=0.3)
    check(found)
    assert found.predicted_vaf is not None and found.held_out_predicted_vaf is not None
    assert found.predicted_vaf[0] > 99.9
    assert found.held_out_predicted_vaf[0] > 99.8
    assert any("time constant" in each and "integrator" in each for each in found.how.warnings)


def test_a_drifting_output_beside_a_clean_one_takes_nothing_from_it() -> None:
    """The likelihood would trade the one for the other."""
    random = np.random.default_rng(5)
    u = gbn(900, [[-1.0, 1.0]] * 2, random)
    clean = lfilter([0.0, 1.0], [1.0, -0.8], u[:, 0]) + 0.01 * random.standard_normal(900)
    drifting = lfilter([0.0, 1.0], [1.0, -0.9], u[:, 1]) + np.cumsum(random.standard_normal(900))
    trace = SignalTrace(interval_s=1.0, input_values=u, output_values=np.stack([clean, drifting], axis=1))
    for order in (1, 2):
        check(identify(trace, order=order))


@pytest.mark.parametrize("seed", range(4))
def test_of_random_plants_and_noises_the_prediction_is_never_worse(seed) -> None:
    random = np.random.default_rng(seed)
    n, m, p, samples = (int(random.integers(low, high)) for low, high in ((1, 5), (1, 4), (1, 4), (300, 700)))
    u = gbn(samples, [[-1.0, 1.0]] * m, random, hold=4.0)
    y = np.zeros((samples, p))
    for k in range(p):
        poles = np.poly(random.uniform(-0.3, 0.98, n))
        y[:, k] = lfilter(random.standard_normal(n + 1), poles, u @ random.standard_normal(m))
    noise = lfilter([1.0], [1.0, -random.uniform(0.0, 1.0)], random.standard_normal((samples, p)), axis=0)
    y += noise * y.std(axis=0) / noise.std(axis=0) * 10.0 ** (-random.uniform(0.0, 60.0) / 20.0)
    trace = SignalTrace(interval_s=1.0, input_values=u, output_values=y)
    for order in {1, n}:
        check(identify(trace, order=order, refine=bool(seed % 2)))


# Closed forms


def test_the_innovation_form_of_one_state_is_found_again() -> None:
    """x₊ = .9 x + u + .5 e, y = x + e: A and the product C K are free of coordinates; V = .04."""
    random = np.random.default_rng(0)
    u, e = gbn(12_000, [-1.0, 1.0], random)[:, 0], 0.2 * random.standard_normal(12_000)
    y = lfilter([0.0, 1.0], [1.0, -0.9], u) + lfilter([1.0, -0.4], [1.0, -0.9], e)
    found = identify(SignalTrace(interval_s=1.0, input_values=u, output_values=y), order=1, feedthrough=False)
    model = found.model
    assert model.K is not None and model.innovation_covariance is not None
    assert model.A[0, 0] == pytest.approx(0.9, abs=0.003)
    assert (model.C @ model.K)[0, 0] == pytest.approx(0.5, abs=3.0 * np.sqrt((1.0 - 0.4**2) / 12_000))
    assert model.innovation_covariance[0, 0] == pytest.approx(0.04, rel=4.0 * np.sqrt(2.0 / 12_000))


def test_white_noise_of_the_sensor_has_no_kalman_gain() -> None:
    random = np.random.default_rng(1)
    u = gbn(3000, [-1.0, 1.0], random)
    y = lfilter([0.0, 1.0], [1.0, -0.8], u, axis=0) + 0.5 * random.standard_normal(u.shape)
    found = identify(SignalTrace(interval_s=1.0, input_values=u, output_values=y), order=1)
    assert found.model.K is not None and not found.model.K.any()
    assert found.predicted_vaf == pytest.approx(found.how.vaf, abs=SLACK)
    assert found.model.innovation_covariance == pytest.approx(np.array([[0.25]]), rel=4.0 * np.sqrt(2.0 / 3000))


def test_the_innovations_are_those_of_a_long_regression() -> None:
    """Where the order is right, V is that of the noise drawn; an ARX model of 20 lags, too few here, leaves more."""
    random = np.random.default_rng(2)
    A = np.array([[0.9, 0.3, 0.0], [-0.3, 0.8, 0.1], [0.0, 0.0, 0.5]])
    B, C, K = random.standard_normal((3, 1)), random.standard_normal((2, 3)), 0.2 * random.standard_normal((3, 2))
    assert np.abs(np.linalg.eigvals(A - K @ C)).max() < 0.99
    u, e = gbn(4000, [-1.0, 1.0], random), random.standard_normal((4000, 2))
    y = simulate(A, np.hstack([B, K]), C, np.hstack([np.zeros((2, 1)), np.eye(2)]), np.zeros(3), np.hstack([u, e]))
    model = identify(SignalTrace(interval_s=1.0, input_values=u, output_values=y), order=3, refine=False).model
    rows = np.hstack([np.ones((3980, 1)), u[20:], *(np.hstack([u, y])[20 - k : 4000 - k] for k in range(1, 21))])
    left = y[20:] - rows @ np.linalg.lstsq(rows, y[20:], rcond=None)[0]
    assert model.innovation_covariance is not None
    found, of_arx = np.diag(model.innovation_covariance), (left**2).sum(axis=0) / (len(rows) - rows.shape[1])
    assert found == pytest.approx(e.var(axis=0), rel=0.01)
    assert (found < 1.001 * of_arx).all()
    assert model.innovation_covariance == pytest.approx(np.eye(2), abs=0.1)


def test_segments_have_predictors_with_states_of_their_own() -> None:
    trace = integrator(3, 900)
    jumps = np.repeat([[0.0], [500.0], [-80.0]], 300, axis=0)
    parts = SignalTrace(
        interval_s=1.0, input_values=trace.input_values, output_values=trace.output_values + jumps, starts=(0, 300, 600)
    )
    found = identify(parts, order=1)
    assert found.predicted_vaf is not None and (found.predicted_vaf >= found.how.vaf - SLACK).all()
    assert found.predicted_vaf[0] > 99.9


# Whether outputs depend on the inputs


def test_the_f_test_is_that_of_two_regressions() -> None:
    random = np.random.default_rng(0)
    u, y = random.standard_normal((500, 2)), random.standard_normal((500, 1))
    y[1:] += 0.2 * u[:-1, :1]
    i, N = 4, 500 - 7  # the block Hankel matrix has 2 i samples a column
    own = np.hstack([np.ones((N, 1)), *(y[i - k : i - k + N] for k in range(1, i + 1))])
    both = np.hstack([own, *(u[i - k : i - k + N] for k in range(i + 1))])
    least = [np.linalg.lstsq(rows, y[i : i + N], rcond=None)[1].item() for rows in (own, both)]
    f = (least[0] - least[1]) / 10 / (least[1] / (N - both.shape[1]))
    from scipy.stats import f as distribution

    expected = distribution.sf(f, 10, N - both.shape[1])
    assert dependence(lq_reduce([(u, y)], i))[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("colour", [[1.0], [1.0, -0.95], [1.0, -1.0], [1.0, -1.8, 0.9]], ids=str)
def test_the_f_test_keeps_its_level_for_noise_of_any_colour(colour) -> None:
    chances = []
    for seed in range(60):
        random = np.random.default_rng(seed)
        u, v = gbn(600, [-1.0, 1.0], random), lfilter([1.0], colour, random.standard_normal((600, 1)), axis=0)
        chances.append(dependence(lq_reduce([(u, v)], 8))[0])
    assert np.mean(np.array(chances) < 0.05) < 0.15
    assert np.mean(np.array(chances) < 0.5) > 0.3


def test_an_output_that_the_inputs_dont_move_is_announced() -> None:
    random = np.random.default_rng(4)
    u = gbn(1500, [-1.0, 1.0], random)
    noise = lfilter([1.0], [1.0, -0.9], random.standard_normal(1500))
    moved = lfilter([0.0, 1.0], [1.0, -0.7], u[:, 0]) + 0.3 * random.standard_normal(1500)
    outputs = {"input_values": u, "output_values": np.stack([moved, noise], axis=1), "outputs": ("moved", "noise")}
    said = identify(SignalTrace(interval_s=1.0, **outputs), order=2).how.warnings
    assert any(each.startswith("noise: no measurable dependence on the inputs") for each in said)
    assert not any(each.startswith("moved:") for each in said)


def test_a_model_that_misses_what_the_inputs_do_is_announced() -> None:
    """A resonance far above one real pole: the inputs matter, and the model has nothing of it."""
    random = np.random.default_rng(6)
    u = gbn(3000, [-1.0, 1.0], random, hold=20.0)
    y = lfilter([0.0, 1.0], mode(0.999, 2.5), np.diff(u[:, 0], prepend=0.0))
    found = identify(SignalTrace(interval_s=1.0, input_values=u, output_values=y), order=1, feedthrough=False)
    assert found.how.vaf[0] < 1.0
    assert any("of its variance in this model" in each for each in found.how.warnings)


def test_held_out_noise_of_another_kind_is_announced() -> None:
    random = np.random.default_rng(7)
    u, e = gbn(2000, [-1.0, 1.0], random), random.standard_normal(2000)
    noise = np.where(np.arange(2000) < 1400, lfilter([1.0], [1.0, -0.95], e), 3.0 * e)
    y = lfilter([0.0, 1.0], [1.0, -0.9], u[:, 0]) + noise
    found = identify(SignalTrace(interval_s=1.0, input_values=u, output_values=y), order=1, held_out=0.3)
    check(found)
    assert any("worse than the simulation" in each for each in found.how.warnings)
