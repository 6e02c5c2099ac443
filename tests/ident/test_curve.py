"""Curves of an input: what is found, in which shape, with which bands; what can't show one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.ident.curve import identify_curve
from netctrl.model.identified import InputCurve, read_model


def trace_of(curve, *, lag: float = 0.0, noise: float = 0.02, samples: int = 600, seed: int = 1) -> netctrl.SignalTrace:
    """Random levels from 0 to 80 through a curve, then through y+ = lag y + (1 - lag) c(u)."""
    random = np.random.default_rng(seed)
    u = np.repeat(random.uniform(0.0, 80.0, samples // 4), 4)
    y = np.empty(samples)
    state = curve(u[0])
    for k in range(samples):
        state = lag * state + (1.0 - lag) * curve(u[k])
        y[k] = state
    y += noise * random.standard_normal(samples)
    return netctrl.SignalTrace(interval_s=1.0, input_values=u, output_values=y, inputs=("R",), outputs=("delay",))


def queue(u):
    """As a queue's delay depends on load."""
    return 1.0 + 30.0 / (100.0 - u)


@pytest.mark.parametrize(
    ("curve", "shape"),
    [(queue, "convex"), (lambda u: 3.0 - 30.0 / (20.0 + u), "concave"), (lambda u: 2.0 - 0.02 * u, "concave")],
)
def test_the_curve_and_its_shape(curve, shape):
    model = identify_curve(trace_of(curve), order=1)
    found = model.curve
    gain = model.state_space.steady_gain()[0, 0]
    steady = model.output_offset[0] + gain * (found.linearised - model.input_offset[0])
    truth = np.array([curve(u) for u in found.inputs])
    assert found.shape == shape
    assert np.abs(steady - truth).max() < 0.03 * np.ptp(truth)
    assert found.inputs[[0, -1]] == pytest.approx(found.linearised[[0, -1]])
    assert np.sign(gain) == np.sign(truth[-1] - truth[0])


def test_dynamics_are_told_from_the_curve():
    """A lag of 0.6 behind the curve: the model's pole, and slopes within their bands."""
    model = identify_curve(trace_of(queue, lag=0.6, samples=1200), order=1, feedthrough=True)
    assert np.linalg.eigvals(model.A) == pytest.approx([0.6], abs=0.05)
    gain = model.state_space.steady_gain()[0, 0]
    middles = 0.5 * (model.curve.inputs[1:] + model.curve.inputs[:-1])
    ratio = 30.0 / (100.0 - middles) ** 2 / (gain * model.curve.slopes)
    inside = (ratio >= model.curve.slope_band[:, 0]) & (ratio <= model.curve.slope_band[:, 1])
    assert inside.mean() > 0.8


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (lambda y, at: np.where(np.isin(np.arange(len(y)), at), np.nan, y), None),
        (lambda y, at: y + 5.0 * np.isin(np.arange(len(y)), at), "outliers, in row"),
        (lambda y, at: y - 3.0 * np.isin(np.arange(len(y)), at), "outliers, in row"),
        (lambda y, at: np.where(np.abs(np.arange(len(y)) - 300) < 25, np.nan, y), None),
        (lambda y, at: y * ~np.isin(np.arange(len(y)), at), "8 samples are 0"),
        (lambda y, at: np.where(np.abs(np.arange(len(y)) - 300) < 25, y[300], y), "stands still"),
    ],
    ids=["missing", "too high", "too low", "a gap", "zeros", "stuck"],
)
def test_faulty_samples_leave_the_curve_as_it_is_and_are_told(fault, says):
    clean = trace_of(queue)
    at = np.random.default_rng(5).choice(600, 8, replace=False)
    y = fault(clean.output_values[:, 0], at)
    named = {"inputs": ("R",), "outputs": ("delay",)}
    faulty = netctrl.SignalTrace(interval_s=1.0, input_values=clean.input_values, output_values=y, **named)
    model, curve = identify_curve(faulty, order=1), identify_curve(clean, order=1).curve
    R = np.linspace(0.0, 80.0, 9)
    assert model.curve.linear(R) == pytest.approx(curve.linear(R), abs=1.5)
    told = [each for each in model.identification.warnings if says and says in each]
    assert len(told) == (says is not None)
    assert not any("outliers" in each for each in identify_curve(clean, order=1).identification.warnings)


def test_few_levels_show_no_curve():
    two = netctrl.gbn(400, (20.0, 80.0), np.random.default_rng(1))
    with pytest.raises(InvalidValue, match=r"2 levels.*can't show a curve"):
        identify_curve(netctrl.SignalTrace(interval_s=1.0, input_values=two, output_values=queue(two)))


def test_a_model_with_a_curve_comes_back(tmp_path):
    model = identify_curve(trace_of(queue), order=1)
    model.save(tmp_path / "m.json")
    back = read_model(tmp_path / "m.json").curve
    assert back is not None
    assert (back.linearised == model.curve.linearised).all()
    assert back.output == "delay"


def test_wrong_curves_are_named():
    right = {"output": "y", "shape": "convex", "inputs": [0, 1], "linearised": [0, 1]}
    with pytest.raises(InvalidValue, match="both rising"):
        InputCurve(**right | {"linearised": [1, 0]}, slope_band=[[1, 1]], deviation=[1, 1])
    with pytest.raises(InvalidValue, match="lowest ratio above 0"):
        InputCurve(**right, slope_band=[[1.0, 0.5]], deviation=[1, 1])


@pytest.mark.parametrize("seed", range(4))
def test_noise_that_hides_the_input_is_told(seed):
    """Of noise alone a rising curve would be found, with a sign that all of its draws share."""
    with pytest.raises(InvalidValue, match="noise hides the input"):
        identify_curve(trace_of(lambda u: 1.0 + 0.0 * u, noise=1.0, samples=160, seed=seed))


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**31), st.floats(0.0, 0.1))
def test_the_table_rises_whatever_the_trace(seed, noise):
    found = identify_curve(trace_of(queue, noise=noise, samples=160, seed=seed), order=1).curve
    assert (found.slopes > 0.0).all()
    assert (found.slope_band[:, 0] <= 1.0).all()
    assert (found.slope_band[:, 1] >= 1.0).all()
    assert found.inverse(found.linear(found.inputs)) == pytest.approx(found.inputs, abs=1e-6)
