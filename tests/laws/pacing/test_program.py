"""Eq. (7) of the pacing paper: the note's number, a minimiser that knows nothing of it, bounds, units, d*."""

from functools import partial
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pacing_program import PacingProgram, freeze_threshold, program_cost, program_rate
from scipy.optimize import minimize_scalar

NOTE = {"psi": 1.0, "xi": 100.0, "slope": 2.0, "rtt_at_zero": 3.0, "mean_rtt": 5.0, "variance": 0.1, "mean_rate": 2.0}


def test_the_note_s_rate():
    assert program_rate(PacingProgram(**NOTE)) == pytest.approx(1.62, abs=1e-12)


def test_a_minimiser_finds_the_same_in_a_thousand_cases():
    """Either sign of b_1, within bounds and at them."""
    random = np.random.default_rng(7)
    free = low = high = 0
    for _ in range(1000):
        # The range of r is [0, 1]: other units are tested apart.
        b1 = random.choice((-1.0, 1.0)) * 10.0 ** random.uniform(-1.0, 1.0)
        mean = 10.0 ** random.uniform(-0.5, 0.5)
        program = PacingProgram(
            psi=10.0 ** random.uniform(-1.0, 1.0),
            xi=10.0 ** random.uniform(-1.0, 2.0),
            slope=b1,
            rtt_at_zero=mean - b1 * random.uniform(-0.2, 1.2),
            mean_rtt=mean,
            variance=10.0 ** random.uniform(-4.0, -1.0),
            mean_rate=random.uniform(0.1, 1.0),
            max_rate=1.0,
        )
        cost = partial(program_cost, program)
        found = minimize_scalar(cost, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-10})
        rate = program_rate(program)
        # A bounded search never looks at the ends themselves; a parabola's floor is flat to the root of a float.
        assert rate == pytest.approx(found.x, abs=1e-6)
        assert program_cost(program, rate) <= found.fun + 1e-12 * (1.0 + abs(found.fun))
        low, high, free = low + (rate == 0.0), high + (rate == 1.0), free + (0.0 < rate < 1.0)
    assert min(low, high, free) > 50


@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3), st.floats(-0.5, 2.5), st.sampled_from((-2.0, 2.0)))
def test_units_do_not_matter(rtt_unit, rate_unit, left, slope):
    values = NOTE | {"rtt_at_zero": 5.0 - left, "slope": slope}
    scaled = values | {
        "slope": slope * rtt_unit / rate_unit,
        "rtt_at_zero": values["rtt_at_zero"] * rtt_unit,
        "mean_rtt": 5.0 * rtt_unit,
        "variance": 0.1 * rtt_unit**2,
        "mean_rate": 2.0 * rate_unit,
    }
    one, other = (program_rate(PacingProgram(**each)) for each in (values, scaled))
    assert other == pytest.approx(one * rate_unit, rel=1e-9, abs=1e-9 * rate_unit)
    one, other = (freeze_threshold(PacingProgram(**each)) for each in (values, scaled))
    assert other == pytest.approx(one * rtt_unit, rel=1e-9)


@pytest.mark.parametrize(("share", "freezes"), [(0.999, True), (1.001, False)])
def test_below_d_star_a_deviation_dies_and_above_it_grows(share, freezes):
    """Where mu_v is what a deviation d makes it: with d = share of d*, the next is closer to 0, or further off."""
    d_star = freeze_threshold(PacingProgram(**NOTE))
    assert d_star == pytest.approx(4.0 / (50.0 - 0.4))
    assert d_star == pytest.approx(2.0 * 1.0 * 2.0 * 2.0 / 100.0, rel=0.01)  # the note's 2 psi b_1 mu_r / xi
    d = share * d_star
    for _ in range(14):
        program = PacingProgram(**NOTE | {"variance": d * d})
        d = program.rtt_at_zero + program.slope * program_rate(program) - program.mean_rtt
    assert (d < 1e-6 * d_star) if freezes else (d > 1e6 * d_star)


def test_without_a_wish_for_rate_it_always_freezes():
    assert freeze_threshold(PacingProgram(**NOTE | {"xi": 0.5})) == inf
