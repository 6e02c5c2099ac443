"""A curve's shift learned while the law works: a known one found, none taken where none is, capacity that is lost."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tracked_links import tracked

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.ident.curve import identify_curve
from netctrl.ident.excite import random_levels
from netctrl.laws.tracking.online_shift import learn_shift, shifted, start_online_shift
from netctrl.laws.tracking.tracking import tracking_gains
from netctrl.model.identified import IdentifiedModel, InputCurve
from netctrl.scenario.builders import access_link
from netctrl.sim.packet.run import simulate_rates

LEVELS = np.linspace(10.0, 90.0, 17)
NOISE = 0.02


def model_of() -> IdentifiedModel:
    """Behind a lag of 0.3, v of a queue of 100 Mbit/s, with a gain of 0.01."""
    v = np.interp(1.0 / (100.0 - LEVELS), [1.0 / 90.0, 1.0 / 10.0], [10.0, 90.0])
    bands = {"slope_band": np.tile([0.9, 1.1], (16, 1)), "deviation": np.full(17, NOISE)}
    return IdentifiedModel(
        A=[[0.3]],
        B=[[0.7]],
        C=[[0.01]],
        D=[[0.0]],
        dt=1.0,
        inputs=("R",),
        outputs=("delay",),
        input_offset=[40.0],
        output_offset=[1.0],
        input_range=[[10.0, 90.0]],
        K=[[0.0]],
        innovation_covariance=[[NOISE**2]],
        curve=InputCurve(output="delay", shape="convex", inputs=LEVELS, linearised=v, **bands),
    )


MODEL = model_of()
LAW = netctrl.connet(MODEL, input_weight=1.0, accept="stable").law


def learned(shift: float, samples: int = 300, most: float = 90.0, seed: int = 1):
    """After random rates through the model with a moved curve, and noise."""
    random = np.random.default_rng(seed)
    known, state = start_online_shift(LAW, MODEL.curve), np.zeros(1)
    for u in random.uniform(10.0, most, samples):
        y = LAW.output_offset + LAW.C @ state + NOISE * random.standard_normal(1)
        state = LAW.A @ state + LAW.B[:, 0] * (MODEL.curve.linear(u + shift) - LAW.input_offset[0])
        known = learn_shift(known, np.array([u]), y)
    return known


@pytest.mark.parametrize("shift", [15.0, 40.0])
def test_a_known_shift_is_found_and_moves_the_curve(shift):
    known = learned(shift, most=90.0 - shift)
    assert known.used == known.x == pytest.approx(shift, abs=1.0)
    assert shifted(known).points == pytest.approx(tracking_gains(LAW).points - shift, abs=1.0)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.floats(-80.0, 80.0))
def test_it_stays_on_the_curve_and_nothing_is_taken_where_nothing_moved(seed, shift):
    still = learned(0.0, samples=60, seed=seed)
    assert still.used == 0.0
    assert (shifted(still).points == tracking_gains(LAW).points).all()
    known = learned(shift, samples=30, seed=seed)
    assert abs(known.x) <= 80.0
    assert (np.diff(shifted(known).points) > 0.0).all()


def test_a_sample_that_is_missing_teaches_nothing():
    start = start_online_shift(LAW, MODEL.curve)
    after = learn_shift(start, np.array([50.0]), np.array([np.nan]))
    assert (after.x, after.variance) == (start.x, start.variance)
    assert not np.array_equal(after.states, start.states)


def test_what_has_no_curve_is_named():
    with pytest.raises(InvalidValue, match="a law from a model with a curve"):
        start_online_shift(msgspec.structs.replace(LAW, curve=None), MODEL.curve)
    with pytest.raises(InvalidValue, match="the curve of the model"):
        start_online_shift(LAW, msgspec.structs.replace(MODEL.curve, inputs=LEVELS + 1.0))


@pytest.mark.slow
def test_a_link_loses_two_fifths_of_its_capacity_while_the_law_works():
    """From 100 to 60 Mbit/s without a stop: without the shift R swings between 5 and 50 Mbit/s."""
    rates = random_levels(600, (5.0, 92.0), np.random.default_rng(1))[:, 0]
    run = simulate_rates(access_link(duration="600s", control=netctrl.Track()), rates * 1e6)
    model = identify_curve(netctrl.access_link_signals(run, outputs=("delay",)))
    law = netctrl.connet(model, limits=[(0.0, 95.0)]).law
    lost = netctrl.Change(at="300s", link="hop0", capacity="60Mbit")
    link = access_link(duration="600s", changes=(lost,))
    alone = tracked(link, law, [1.4])
    moved = tracked(link, law, [1.4], schedule=start_online_shift(law, model.curve))
    late = slice(400, 600)
    assert alone.rate[late].std() > 10e6
    assert moved.rate[late].std() < 2e6
    assert moved.measured[late, 0].mean() == pytest.approx(1.4, rel=0.02)
    assert ((moved.commanded[late] > law.low) & (moved.commanded[late] < law.high)).all()
    assert moved.tables["signals"]["shift"][late].mean() == pytest.approx(40.0, abs=5.0)
    assert np.abs(moved.tables["signals"]["shift"][100:300]).mean() < 1.0
