"""A curve learned while the law works: least squares done at once, a curve that is known, and a link that changed."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tracked_links import driven, tracked

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.laws.tracking.online_map import OnlineStaticMap, curve_values, learn, online_schedule, start_online_map
from netctrl.laws.tracking.schedule import GainSchedule, gain_schedule
from netctrl.model.identified import IdentifiedModel
from netctrl.model.law import TrackingLaw
from netctrl.scenario.builders import access_link

POINTS = [0.0, 4.0, 10.0, 20.0]
A, B, C, D = 0.5, 0.6, np.array([[1.0], [-0.5]]), np.array([[0.8], [-0.1]])
GAIN = (C * B / (1.0 - A) + D)[:, 0]


def law_of(a: float = A, d: np.ndarray = D) -> TrackingLaw:
    """For a plant with a lag and two outputs, one of which falls, around u = 5, y = (3, −1)."""
    model = IdentifiedModel(
        A=[[a]],
        B=[[B]],
        C=C,
        D=d,
        dt=1.0,
        inputs=("u",),
        outputs=("y", "z"),
        input_offset=[5.0],
        output_offset=[3.0, -1.0],
        K=np.full((1, 2), 0.1),
        innovation_covariance=np.diag([0.01, 0.04]),
    )
    return netctrl.connet(model, track="y", limits=[(0.0, 20.0)]).law


LAW, NOISE = law_of(), [0.1, 0.2]


def play(curve: OnlineStaticMap, rates: np.ndarray, at: float, noise: np.ndarray) -> tuple[OnlineStaticMap, np.ndarray]:
    """A plant that is the law's model behind a curve that bends at POINTS, from rest under `at`."""
    heights = np.array([[1.0, 0.0], [3.0, -1.0], [4.0, -2.5], [12.0, -3.0]])
    c = np.column_stack([np.interp([at, *rates], POINTS, column) for column in heights.T])
    states, seen = c[0] * B / (1.0 - A) * C[:, 0] / GAIN, []
    for rate, height, e in zip(rates, c[1:], noise, strict=True):
        y = states + D[:, 0] / GAIN * height + e
        states = A * states + B * C[:, 0] / GAIN * height
        curve = learn(curve, np.array([rate]), y)
        seen.append(y)
    assert heights.shape == curve_values(curve).shape
    return curve, np.array(seen)


def test_a_curve_without_noise_is_found_and_so_are_its_slopes():
    rng = np.random.default_rng(1)
    rates = rng.uniform(-2.0, 22.0, 3000)  # beyond the ends the curve is flat, here as in the plant
    curve, _ = play(
        start_online_map(LAW, NOISE, points=POINTS, at=7.0, forgetting=1.0), rates, 7.0, np.zeros((3000, 2))
    )
    assert curve_values(curve) == pytest.approx(
        np.array([[1.0, 0.0], [3.0, -1.0], [4.0, -2.5], [12.0, -3.0]]), rel=1e-4, abs=1e-4
    )
    schedule = online_schedule(curve)
    assert schedule.points.tolist() == [2.0, 7.0, 15.0]
    slopes = np.array([[0.5, -0.25], [1.0 / 6.0, -0.25], [0.8, -0.05]])
    assert schedule.factors == pytest.approx(GAIN / slopes, rel=1e-3)


def test_recursion_is_least_squares_with_the_model_s_line_as_a_guess():
    rng, T = np.random.default_rng(2), 60
    rates, noise = rng.uniform(0.0, 20.0, T), rng.normal(0.0, [0.1, 0.2], (T, 2))
    start = start_online_map(LAW, NOISE, points=POINTS, at=7.0, forgetting=1.0)
    curve, seen = play(start, rates, 7.0, noise)
    hats = np.column_stack([np.interp([7.0, *rates], POINTS, row) for row in np.eye(4)])
    guess = start.estimates[0].theta[:, 0]
    x, rows = hats[0] * B / (1.0 - A), []
    for h in hats[1:]:
        rows.append((C[0, 0] * x + D[0, 0] * h) / GAIN[0])
        x = A * x + B * h
    Phi = np.array(rows)
    information = np.eye(4) / start.doubt + Phi.T @ Phi
    pull = guess / start.doubt + Phi.T @ (seen[:, 0] / NOISE[0])
    assert curve_values(curve)[:, 0] == pytest.approx(np.linalg.solve(information, pull) * NOISE[0], rel=1e-9)


@given(st.floats(0.0, 3.9), st.integers(1, 40))
def test_points_that_are_never_near_keep_the_model_s_line(rate, samples):
    start = start_online_map(LAW, NOISE, points=POINTS, at=rate)
    curve = start
    for _ in range(samples):
        curve = learn(curve, np.array([rate]), np.array([7.0, 7.0]))
    line = LAW.output_offset + np.outer(np.array(POINTS) - 5.0, GAIN)
    assert curve_values(start) == pytest.approx(line)
    assert curve_values(curve)[2:] == pytest.approx(line[2:], rel=1e-9)
    steps = online_schedule(curve).factors
    assert ((steps >= 1.0 / 20.0) & (steps <= 20.0)).all()


def test_a_sample_that_is_missing_teaches_nothing_but_time_goes_on():
    start = start_online_map(LAW, NOISE, points=POINTS)
    curve = learn(start, np.array([9.0]), np.array([np.nan, 1.0]))
    assert curve.estimates is start.estimates
    assert not np.array_equal(curve.states, start.states)


@pytest.mark.slow
def test_on_a_link_that_lost_two_fifths_of_its_capacity_what_was_learned_stays_calm():
    """Schedules of the old link make R swing; that which learns has the new link's slopes."""
    models = []
    for seed, low in enumerate((5.0, 20.0, 35.0, 50.0, 65.0, 80.0)):
        rates = netctrl.gbn(2000, (low, low + 10.0), np.random.default_rng(seed))[:, 0]
        run = driven(rates * 1e6, duration="2000s", seed=seed)  # of half as many, one gain isn't determined
        models.append(netctrl.identify(netctrl.access_link_signals(run), order=1).model)
    model = models[3]
    law = netctrl.connet(model, track="delay", limits=[(0.0, 95.0)]).law
    reference = np.repeat([[1.0, 0.5], [0.6, 0.3], [1.6, 1.0]] * 2, 150, axis=0)
    spread = {}
    learning = start_online_map(law, np.sqrt(np.diag(model.innovation_covariance)), at=50.0)
    for name, schedule in (("made before", gain_schedule(law, models)), ("learned", learning)):
        swings = []
        for seed in range(3):
            link = access_link(duration="900s", seed=20 + seed, capacity=6e7)
            run = tracked(link, law, reference, schedule=schedule, first_rate=50e6)
            assert ("curve" not in run.tables) == (name == "made before")
            swings.append([run.rate[825:].std(), run.rate[675:750].std()])
            if name == "learned":
                assert run.measured[825:, 0].mean() == pytest.approx(1.6, rel=0.03)
                assert run.measured[675:750, 0].mean() == pytest.approx(0.6, rel=0.03)
        spread[name] = np.mean(swings)
    assert spread["learned"] < 0.25 * spread["made before"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"noise": [0.1]}, "noise"),
        ({"noise": [0.1, 0.0]}, "above 0"),
        ({"points": [1.0]}, "two or more"),
        ({"points": [2.0, 1.0]}, "rising"),
        ({"points": [1.0, np.nan]}, "points"),
        ({"forgetting": 1.5}, "forgetting"),
        ({"law": msgspec.structs.replace(LAW, inputs=("u", "v"))}, "a curve has one input"),
        ({"law": msgspec.structs.replace(LAW, high=np.array([np.inf]))}, "limits on both sides"),
        ({"law": msgspec.structs.replace(LAW, A=np.eye(1))}, "pole at 1"),
        ({"law": msgspec.structs.replace(LAW, C=0.0 * C, D=0.0 * D)}, "steady gain of 0"),
    ],
)
def test_what_cannot_be_learned_is_named(change, said):
    given_ = {"law": LAW, "noise": NOISE} | change
    with pytest.raises(InvalidValue, match=said):
        start_online_map(given_.pop("law"), given_.pop("noise"), **given_)
    assert isinstance(online_schedule(start_online_map(LAW, NOISE)), GainSchedule)


def test_a_link_of_two_hops_is_not_swung_from_rail_to_rail():
    """40 Mbit/s, a reference on the steep part, a model as identified (the link responds within a period, so that D is
    most of the gain): without the map R has a deviation of 14 Mbit/s and -100 is commanded."""
    link = access_link(hops=2, capacity="40Mbit", limit=200, interval=0.5, duration="200s")
    model = IdentifiedModel(
        A=[[0.27]],
        B=[[0.1]],
        C=[[0.1]],
        D=[[0.138]],
        dt=0.5,
        inputs=("R",),
        outputs=("delay",),
        input_units=("Mbit/s",),
        output_units=("ms",),
        input_offset=[20.0],
        output_offset=[2.7],
        K=[[0.0]],
        innovation_covariance=[[5.0]],
    )
    law = netctrl.connet(model, limits=[(0.0, 40.0)]).law
    learning = start_online_map(law, [5.0**0.5])
    alone, learned = (tracked(link, law, [5.0], schedule=each) for each in (None, learning))
    assert alone.commanded.min() < -30.0
    assert ((learned.commanded >= 0.0) & (learned.commanded <= 40.0)).all()
    late = slice(200, None)
    assert learned.rate[late].std() < 0.6 * alone.rate[late].std()
    values = learned.tables["curve"]["delay"]
    assert (np.diff(values) >= 0.0).all()


def test_a_slope_that_was_never_seen_stays_the_model_s_while_others_are_learned():
    """A curve with half the model's slope up to 4, and rates that never leave that part."""
    rates = np.random.default_rng(4).uniform(0.0, 4.0, 2000)
    curve, _ = play(start_online_map(LAW, NOISE, points=POINTS, at=2.0), rates, 2.0, np.zeros((2000, 2)))
    factors = online_schedule(curve).factors
    assert factors[0] == pytest.approx(GAIN / [0.5, -0.25], rel=1e-2)
    assert factors[2].tolist() == [1.0, 1.0]
