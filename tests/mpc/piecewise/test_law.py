"""Piecewise-affine tables: MPCC's closed form comes out, all feasible states are covered, the program agrees."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from mpc_problems import double_integrator
from scipy.spatial import ConvexHull, HalfspaceIntersection

from netctrl.core.errors import InvalidValue, NetctrlError
from netctrl.model.statespace import StateSpace
from netctrl.mpc.explicit import queue_gain, window_problem
from netctrl.mpc.formulate import condensed
from netctrl.mpc.parametric import parameters
from netctrl.mpc.piecewise.law import PiecewiseLaw, check_piecewise, piecewise_law
from netctrl.mpc.piecewise.regions import Polyhedra, chebyshev
from netctrl.mpc.problem import MpcProblem
from netctrl.mpc.qp.solve import solve_qp

AGREEMENT = 1e-9
"""Of the inputs' bounds."""


@pytest.fixture(scope="module")
def planar() -> PiecewiseLaw:
    return piecewise_law(double_integrator(horizon=2), -6.0, 6.0)


@pytest.mark.parametrize("horizon", [1, 2, 3])
def test_mpcc_has_a_region_for_each_prefix(horizon: int) -> None:
    """P + 1 of them, whose active bounds are u = −c at the first k steps: the theorem, found by enumeration."""
    B, c, bdp, flows = 1.0 / 3.0, 937.5, 3750.0, 4
    requested = window_problem(
        input_gain=B,
        fair_window_bytes=c,
        bdp_bytes=bdp,
        flows=flows,
        horizon=horizon,
        queue_weight=1.0,
        window_weight=1.0,
    )
    law = piecewise_law(requested, 0.0, (flows - 1) * bdp)
    prefixes = {tuple(f"input 0 at step {i}, lower" for i in range(k)) for k in range(horizon + 1)}
    assert set(law.active) == prefixes
    assert len(law.offset) == horizon + 1
    queues = np.linspace(0.0, (flows - 1) * bdp, 1001)
    inputs, region = law.decide_many(queues[:, None])
    assert (region >= 0).all()
    expected = np.maximum(-queue_gain(B, horizon, 1.0, 1.0) * queues, -c)
    np.testing.assert_allclose(inputs[:, 0], expected, atol=AGREEMENT * bdp)


@pytest.mark.slow
def test_a_table_that_covers_too_much_or_too_little_is_seen(planar: PiecewiseLaw) -> None:
    """Its one region without bounds answers everywhere; half of its regions leave feasible states out."""
    random = np.random.default_rng(0)
    free = planar.active.index(())
    wide = replace(
        planar, rows=np.zeros((1, 2)), right=np.ones(1), first=np.array([0, 1]), active=((),), candidates=1, pruned=0,
        gain=planar.gain[[free]], offset=planar.offset[[free]],
    )  # fmt: skip
    found = check_piecewise(wide, double_integrator(horizon=2), random, samples=400)
    assert found.missed == 0
    assert found.invented == found.samples - found.feasible > 0
    assert found.largest_error > 1e-3
    half = len(planar.offset) // 2
    last = int(planar.first[half])
    less = replace(
        planar, rows=planar.rows[:last], right=planar.right[:last], first=planar.first[: half + 1],
        gain=planar.gain[:half], offset=planar.offset[:half], active=planar.active[:half],
    )  # fmt: skip
    found = check_piecewise(less, double_integrator(horizon=2), random, samples=400)
    assert found.missed > 0 == found.invented


def test_states_in_whole_numbers_are_states(planar: PiecewiseLaw) -> None:
    for whole, real in zip(
        planar.decide_many([[1, 0], [-2, 1]]), planar.decide_many([[1.0, 0.0], [-2.0, 1.0]]), strict=True
    ):
        np.testing.assert_array_equal(whole, real)


def test_largest_balls_in_closed_form() -> None:
    radius, middle = chebyshev(Polyhedra(np.array([[1.0], [-1.0]]), np.array([3.0, 1.0])))
    assert (radius, middle.tolist()) == (2.0, [1.0])
    square = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    radius, middle = chebyshev(Polyhedra(square, np.array([3.0, -1.0, 5.0, -3.0])))
    assert radius == pytest.approx(1.0)
    np.testing.assert_allclose(middle, [2.0, 4.0])
    assert chebyshev(Polyhedra(square, np.array([3.0, -4.0, 5.0, -3.0]))) is None


@pytest.mark.slow
def test_the_program_agrees_at_random_states(planar: PiecewiseLaw) -> None:
    found = check_piecewise(planar, double_integrator(horizon=2), np.random.default_rng(0), samples=1500)
    assert found.feasible > 500
    assert found.feasible < found.samples
    assert (found.missed, found.invented) == (0, 0)
    assert found.largest_error <= AGREEMENT


def test_regions_fill_the_feasible_set_without_overlap(planar: PiecewiseLaw) -> None:
    """Areas add up to that of the projection of {(x, u): all bounds}, computed from its own vertices."""
    total = 0.0
    for first, last in pairwise(planar.first):
        rows = np.vstack([planar.rows[first:last], np.eye(2), -np.eye(2)])
        right = np.concatenate([planar.right[first:last], np.ones(4)])
        total += area(rows, right)
    program = condensed(double_integrator(horizon=2))
    G = np.vstack([np.eye(len(program.g)), program.A])
    both = [np.hstack([G, -program.E * planar.half]), -np.hstack([G, -program.E * planar.half])]
    bounds = [program.upper, -program.lower]
    n = len(program.g)
    box = np.hstack([np.zeros((4, n)), np.vstack([np.eye(2), -np.eye(2)])])
    rows, right = np.vstack([*both, box]), np.concatenate([*bounds, np.ones(4)])
    shift = np.concatenate([program.E @ planar.centre, -(program.E @ planar.centre), np.zeros(4)])
    cut = HalfspaceIntersection(np.hstack([rows, -(right + shift)[:, None]]), np.zeros(n + 2))
    assert total == pytest.approx(ConvexHull(cut.intersections[:, n:]).volume, rel=1e-9)


def area(rows: np.ndarray, right: np.ndarray) -> float:
    """Of rows t ≤ right in the plane, by all pairs of rows."""
    corners = []
    for i in range(len(rows)):
        for j in range(i):
            pair = rows[[i, j]]
            if abs(np.linalg.det(pair)) > 1e-12:
                t = np.linalg.solve(pair, right[[i, j]])
                if (rows @ t <= right + 1e-9).all():
                    corners.append(t)
    return ConvexHull(np.array(corners)).volume


def test_two_inputs_soft_bounds_and_a_rate_weight() -> None:
    """θ is the state and the last input; slacks are variables like others."""
    model = StateSpace([[0.9]], [[1.0, 0.5]], [[1.0]], dt=1.0)
    requested = MpcProblem(
        plant=model,
        horizon=1,
        state_weight=1.0,
        input_weight=0.2,
        rate_weight=0.5,
        state_upper=0.5,
        soft_weight=10.0,
        soft_linear=0.2,
        input_lower=-1.0,
        input_upper=1.0,
    )
    law = piecewise_law(requested, [-3.0, -1.0, -1.0], [3.0, 1.0, 1.0])
    found = check_piecewise(law, requested, np.random.default_rng(2), samples=400)
    assert found.feasible == 400
    assert (found.missed, found.invented) == (0, 0)
    assert found.largest_error <= AGREEMENT
    theta = parameters(requested, np.array([2.0]), np.array([[0.1, -0.3]]))
    program = condensed(requested)
    expected = program.first_input(solve_qp(program.program(theta)).x, theta)
    np.testing.assert_allclose(law.decide(theta), expected, atol=1e-9)


def test_what_is_not_in_the_table_is_refused(planar: PiecewiseLaw) -> None:
    for theta in ([5.9, 5.9], [7.0, 0.0]):
        with pytest.raises(InvalidValue, match="solve the program instead"):
            planar.decide(theta)
    for theta in ([np.nan, 0.0], [1.0]):
        with pytest.raises(InvalidValue, match="finite numbers of shape"):
            planar.decide(theta)
    inputs, region = planar.decide_many([[5.9, 5.9], [0.0, 0.0]])
    assert region.tolist()[0] == -1
    np.testing.assert_allclose(inputs, 0.0, atol=1e-15)


@pytest.mark.parametrize(
    ("lower", "upper", "said"), [(1.0, 1.0, "lower below"), (-np.inf, 1.0, "finite"), ([0.0] * 3, 1.0, "2 numbers")]
)
def test_the_door(lower: Any, upper: Any, said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        piecewise_law(double_integrator(horizon=2), lower, upper)


def test_large_problems_are_refused() -> None:
    with pytest.raises(NetctrlError, match="shorten the horizon"):
        piecewise_law(double_integrator(horizon=10), -5.0, 5.0, max_candidates=60)


def test_a_box_without_a_feasible_point() -> None:
    with pytest.raises(NetctrlError, match="no point of the box is feasible"):
        piecewise_law(double_integrator(horizon=2), 20.0, 30.0)
