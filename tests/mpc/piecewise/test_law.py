"""Piecewise-affine tables: MPCC's closed form comes out, all feasible states are covered, the program agrees, and an
enumeration of all active sets finds the same regions."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpc_problems import check_piecewise, double_integrator, random_problem
from scipy.optimize import linprog
from scipy.spatial import ConvexHull, HalfspaceIntersection

from netctrl.core.errors import InvalidValue, NetctrlError
from netctrl.model.statespace import StateSpace
from netctrl.mpc.explicit import queue_gain, window_problem
from netctrl.mpc.formulate import condensed, sparse
from netctrl.mpc.parametric import parameters
from netctrl.mpc.piecewise.geometry import extent, facet_ball, largest_ball, maximise, necessary
from netctrl.mpc.piecewise.law import PiecewiseLaw, piecewise_law, search_tree
from netctrl.mpc.piecewise.search import Bounds
from netctrl.mpc.plan import solve_mpc
from netctrl.mpc.problem import MpcProblem
from netctrl.mpc.qp.solve import solve_qp
from netctrl.mpc.stages import Given

AGREEMENT = 1e-9
"""Of the inputs' bounds."""


@pytest.fixture(scope="module")
def planar() -> PiecewiseLaw:
    return piecewise_law(double_integrator(horizon=2), -6.0, 6.0)


@pytest.mark.parametrize("horizon", [1, 2, 3])
def test_mpcc_has_a_region_for_each_prefix(horizon: int) -> None:
    """P + 1 of them, whose active bounds are u = −c at the first k steps: the theorem, found by the search.

    Merged, two are left: one without bounds, and W = 0.
    """
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
    merged = piecewise_law(requested, 0.0, (flows - 1) * bdp)
    assert set(merged.active) == {(), ("input 0 at step 0, lower",)}
    law = piecewise_law(requested, 0.0, (flows - 1) * bdp, merge=False)
    prefixes = {tuple(f"input 0 at step {i}, lower" for i in range(k)) for k in range(horizon + 1)}
    assert set(law.active) == prefixes
    assert len(law.offset) == horizon + 1
    queues = np.linspace(0.0, (flows - 1) * bdp, 1001)
    expected = np.maximum(-queue_gain(B, horizon, 1.0, 1.0) * queues, -c)
    for each in (law, merged):
        inputs, region = each.decide_many(queues[:, None])
        assert (region >= 0).all()
        np.testing.assert_allclose(inputs[:, 0], expected, atol=AGREEMENT * bdp)


@pytest.mark.slow
def test_a_table_that_covers_too_much_or_too_little_is_seen(planar: PiecewiseLaw) -> None:
    """Its one region without bounds answers everywhere; half of its regions leave feasible states out."""
    random = np.random.default_rng(0)
    free = planar.active.index(())
    wide = of_regions(planar, np.zeros((1, 2)), np.ones(1), np.zeros(1, dtype=bool), np.array([0, 1]), [free])
    found = check_piecewise(wide, double_integrator(horizon=2), random, samples=400)
    assert found.missed == 0
    assert found.invented == found.samples - found.feasible > 0
    assert found.largest_error > 1e-3
    half = len(planar.offset) // 2
    last = int(planar.first[half])
    rows, right, edge = planar.rows[:last], planar.right[:last], planar.edge[:last]
    less = of_regions(planar, rows, right, edge, planar.first[: half + 1], list(range(half)))
    found = check_piecewise(less, double_integrator(horizon=2), random, samples=400)
    assert found.missed > 0 == found.invented


def of_regions(
    law: PiecewiseLaw, rows: np.ndarray, right: np.ndarray, edge: np.ndarray, first: np.ndarray, kept: list[int]
) -> PiecewiseLaw:
    """A law with other regions, and the gains of some of its own."""
    return replace(
        law, rows=rows, right=right, edge=edge, first=first, gain=law.gain[kept], offset=law.offset[kept],
        active=tuple(law.active[i] for i in kept), tree=search_tree(rows, right, edge, first),
    )  # fmt: skip


def test_states_in_whole_numbers_are_states(planar: PiecewiseLaw) -> None:
    for whole, real in zip(
        planar.decide_many([[1, 0], [-2, 1]]), planar.decide_many([[1.0, 0.0], [-2.0, 1.0]]), strict=True
    ):
        np.testing.assert_array_equal(whole, real)


SQUARE = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])


def test_largest_balls_in_closed_form() -> None:
    radius, middle = largest_ball(np.array([[1.0], [-1.0]]), np.array([3.0, 1.0]))
    assert (radius, middle.tolist()) == (2.0, [1.0])
    radius, middle = largest_ball(SQUARE, np.array([3.0, -1.0, 5.0, -3.0]))
    assert radius == pytest.approx(1.0)
    np.testing.assert_allclose(middle, [2.0, 4.0])
    assert largest_ball(SQUARE, np.array([3.0, -4.0, 5.0, -3.0]))[0] == pytest.approx(-0.5)
    radius, middle = facet_ball(SQUARE[1:], np.array([0.0, 0.75, 0.25]), SQUARE[0], 0.5)
    assert radius == pytest.approx(0.5)
    np.testing.assert_allclose(middle, [0.5, 0.25])


@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(0, 20))
def test_polyhedra_against_highs(seed: int, q: int, extra: int) -> None:
    """Programs, extents, largest balls and necessary rows of random polyhedra in a box, some rows of them twice."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((extra, q))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    right = rng.uniform(0.05, 1.0, extra)
    rows = np.vstack([rows, rows[: extra // 4], np.eye(q), -np.eye(q)])
    right = np.concatenate([right, right[: extra // 4], np.ones(2 * q)])
    cost = rng.standard_normal(q)
    free = [(None, None)] * (q + 1)
    best = linprog(-cost, rows, right, bounds=free[:q])
    assert cost @ maximise(cost, rows, right) == pytest.approx(-best.fun, abs=1e-9)
    assert extent(rows, right, np.zeros(q), cost)[1] == pytest.approx(-best.fun, abs=1e-9)
    ball = linprog(np.append(np.zeros(q), -1.0), np.column_stack([rows, np.ones(len(rows))]), right, bounds=free)
    assert largest_ball(rows, right)[0] == pytest.approx(-ball.fun, abs=1e-9)
    needed = necessary(rows, right, np.zeros(q))
    for i in np.flatnonzero(~needed):  # without them all rows still hold
        assert -linprog(-rows[i], rows[needed], right[needed], bounds=free[:q]).fun <= right[i] + 1e-8
    for i in np.flatnonzero(needed):  # and without one of the others it doesn't
        rest = needed & (np.arange(len(rows)) != i)
        without = linprog(-rows[i], rows[rest], right[rest], bounds=[(-9.0, 9.0)] * q)
        assert -without.fun > right[i] + 1e-11


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


def test_costs_without_a_unique_minimum_and_repeated_equalities_are_refused() -> None:
    flat = double_integrator(horizon=2, state_weight=np.diag([1.0, 0.0]))
    with pytest.raises(InvalidValue, match="a direction without cost"):
        piecewise_law(sparse(flat), -6.0, 6.0)
    twice = StateSpace(np.zeros((2, 2)), np.ones((2, 1)), np.eye(2), dt=1.0)
    same = MpcProblem(plant=twice, horizon=1, state_weight=1.0, input_weight=1.0, state_lower=0.5, state_upper=0.5)
    with pytest.raises(InvalidValue, match=r"state 0 at step 1, equality, state 1 at step 1, equality.*depend"):
        piecewise_law(same, -1.0, 1.0)


def test_large_problems_are_refused() -> None:
    with pytest.raises(NetctrlError, match="shorten the horizon"):
        piecewise_law(double_integrator(horizon=10), -5.0, 5.0, max_regions=6)


def test_a_box_without_a_feasible_point() -> None:
    with pytest.raises(NetctrlError, match="no point of the box is feasible"):
        piecewise_law(double_integrator(horizon=2), 20.0, 30.0)


def enumerated(problem: MpcProblem, half: float) -> set[frozenset[str]]:
    """Active sets with an interior, by trying all sets of independent rows: optimality conditions over (t, v, λ)."""
    program = condensed(problem)
    bounds = Bounds(program, np.zeros(program.n_parameters), np.full(program.n_parameters, half))
    n, q, count = len(program.g), program.n_parameters, len(bounds.w)
    F = np.asarray(program.F) * half
    found = set()
    for size in range(n + 1):
        for active in combinations(range(count), size):
            at, rest = list(active), [i for i in range(count) if i not in active]
            if size and np.linalg.svd(bounds.G[at], compute_uv=False)[-1] < 1e-7:
                continue
            # Largest r with slacks and multipliers of at least r; the solution is linear in t, so only t is free.
            kkt = np.block([[program.H, bounds.G[at].T], [bounds.G[at], np.zeros((size, size))]])
            moved = np.linalg.solve(kkt, np.vstack([-F, bounds.S[at]]))
            still = np.linalg.solve(kkt, np.concatenate([-program.g, bounds.w[at]]))
            rows = np.vstack([bounds.G[rest] @ moved[:n] - bounds.S[rest], -moved[n:], np.eye(q), -np.eye(q)])
            right = np.concatenate([bounds.w[rest] - bounds.G[rest] @ still[:n], still[n:], np.ones(2 * q)])
            length = np.linalg.norm(rows, axis=1)
            ball = linprog(
                np.append(np.zeros(q), -1.0), np.column_stack([rows, length]), right, bounds=[(None, None)] * (q + 1)
            )
            if ball.status == 0 and ball.x[-1] > 1e-7:
                found.add(frozenset(bounds.names[i] for i in active))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("n", "m", "horizon"), [(1, 1, 3), (2, 1, 2), (2, 1, 3), (2, 2, 1), (3, 1, 2)])
def test_regions_are_those_of_an_enumeration(n: int, m: int, horizon: int) -> None:
    for seed in range(3):
        problem = random_problem(seed, n, m, horizon)
        law = piecewise_law(problem, -3.0, 3.0, merge=False)
        assert {frozenset(each) for each in law.active} == enumerated(problem, 3.0)
        assert len(set(law.active)) == len(law.active)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from([(1, 1, 9), (2, 1, 8), (2, 2, 3), (3, 1, 6), (3, 2, 2), (4, 1, 4), (5, 1, 3)]),
)
def test_the_program_agrees_for_random_plants(seed: int, shape: tuple[int, int, int]) -> None:
    """Solver and table say the same at random states; merged or not, and by the tree or by all regions in turn."""
    problem = random_problem(seed, *shape)
    single, law = (piecewise_law(problem, -3.0, 3.0, merge=merge) for merge in (False, True))
    random = np.random.default_rng(seed)
    found = check_piecewise(law, problem, random, samples=150)
    assert (found.missed, found.invented) == (0, 0)
    assert found.largest_error <= AGREEMENT
    assert len(law.offset) <= len(single.offset)
    thetas = random.uniform(-3.0, 3.0, (2000, shape[0])) * random.uniform(0.0, 1.0, (2000, 1))
    inputs, region = law.decide_many(thetas)
    others, before = single.decide_many(thetas)
    np.testing.assert_array_equal(region >= 0, before >= 0)
    np.testing.assert_allclose(inputs, others, atol=AGREEMENT)
    for each, of in ((law, region), (single, before)):
        inside = [
            (each.rows[a:b] @ (thetas / 3.0).T <= each.right[a:b, None] + 1e-9).all(axis=0)
            for a, b in pairwise(each.first)
        ]
        np.testing.assert_array_equal(np.any(inside, axis=0), of >= 0)


@pytest.mark.slow
def test_thousands_of_regions() -> None:
    problem = random_problem(2, 5, 1, 6)
    law = piecewise_law(problem, -3.0, 3.0, merge=False)
    assert len(law.offset) > 1000
    assert law.facets.covered < 0.2 * law.facets.shared  # of the others the neighbour follows from the active set
    assert law.most_tests < 160  # of about 8,000 rows
    found = check_piecewise(law, problem, np.random.default_rng(3), samples=1500)
    assert (found.missed, found.invented) == (0, 0)
    assert found.largest_error <= AGREEMENT


def test_degenerate_programs_are_covered_piece_by_piece() -> None:
    """Each bound twice, by a state that is a copy of another one: on each facet two rows are 0 at once."""
    plant = StateSpace([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]], [[0.5], [1.0], [0.5]], np.eye(3), dt=1.0)
    bound = np.array([2.0, 5.0, 2.0])
    problem = MpcProblem(
        plant=plant, horizon=3, state_weight=np.diag([1.0, 1.0, 0.0]), input_weight=0.1, state_lower=-bound,
        state_upper=bound, input_lower=-1.0, input_upper=1.0,
    )  # fmt: skip
    law = piecewise_law(problem, [-3.0, -3.0, -1.0], [3.0, 3.0, 1.0])
    assert law.facets.covered > 0
    found = check_piecewise(law, problem, np.random.default_rng(1), samples=400)
    assert found.feasible > 100
    assert (found.missed, found.invented) == (0, 0)
    assert found.largest_error <= AGREEMENT


@pytest.mark.parametrize(
    ("seed", "shape"), [(1976, (2, 1, 8)), (289, (2, 1, 10)), (416, (2, 1, 12)), (1306, (2, 1, 12)), (683, (3, 1, 6))]
)
def test_bounds_that_almost_depend_on_each_other_leave_slivers(seed: int, shape: tuple[int, int, int]) -> None:
    """At a border of the feasible set; 1e-8 wide of the box in some of these problems, 1e-6 in others."""
    problem = random_problem(seed, *shape)
    law = piecewise_law(problem, -3.0, 3.0)
    found = check_piecewise(law, problem, np.random.default_rng(seed), samples=300)
    assert (found.missed, found.invented) == (0, 0)
    # Up to 14 terms of a law in a sliver reach 1e7, and cancel: which last bits are left differs between processors.
    assert found.largest_error <= AGREEMENT + 14.0 * np.finfo(float).eps * 1e7


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([(1, 2, 4), (2, 1, 5), (2, 2, 2), (3, 1, 3)]), st.booleans())
def test_the_program_agrees_for_all_kinds_of_bounds(seed: int, shape: tuple[int, int, int], whole: bool) -> None:
    """Soft states, outputs, changes and a reference; plants of whole numbers have facets with several neighbours."""
    rng = np.random.default_rng(seed)
    n, m, horizon = shape
    A, B = rng.standard_normal((n, n)), rng.standard_normal((n, m))
    A *= rng.uniform(0.3, 1.5) / np.abs(np.linalg.eigvals(A)).max()
    A, B = (np.round(2.0 * A) / 2.0, np.round(B)) if whole else (A, B)
    kinds: list[dict[str, Any]] = [
        {"rate_lower": -0.5, "rate_upper": 0.5, "rate_weight": 0.3},
        {"state_lower": -3.0, "state_upper": 3.0, "soft_weight": 5.0, "soft_linear": rng.choice([0.0, 0.3, 10.0])},
        {"output_lower": -2.0, "output_upper": 1.0},
    ]
    asked = {name: value for kind in kinds if rng.random() < 0.5 for name, value in kind.items()}
    plant = StateSpace(A, B, np.eye(n)[:1], dt=1.0)
    problem = MpcProblem(
        plant=plant, horizon=horizon, state_weight=0.1, output_weight=1.0, input_weight=0.1, input_lower=-1.0,
        input_upper=0.5, **asked,
    )  # fmt: skip
    program = condensed(problem, Given(reference="constant"))
    try:
        law = piecewise_law(program, -3.0, 3.0, max_regions=600)
    except NetctrlError as refused:
        assert "more than 600 regions" in str(refused)
        return
    found = check_piecewise(law, program, rng, samples=150)
    assert (found.missed, found.invented) == (0, 0)
    assert found.largest_error <= AGREEMENT


def test_a_bound_without_width_is_an_equality() -> None:
    """A second input held at 0.25 is no region's choice: the table is that of the other input alone."""
    plant = StateSpace([[1.1, 0.2], [0.0, 0.9]], [[0.5, 1.0], [1.0, 0.3]], np.eye(2), dt=1.0)
    problem = MpcProblem(
        plant=plant, horizon=3, state_weight=1.0, input_weight=0.1, input_lower=[-1.0, 0.25], input_upper=[1.0, 0.25]
    )
    law = piecewise_law(problem, -4.0, 4.0)
    assert all(sum("equality" in name for name in each) == 3 for each in law.active)
    found = check_piecewise(law, problem, np.random.default_rng(1), samples=300)
    assert (found.feasible, found.missed) == (300, 0)
    assert found.largest_error <= AGREEMENT
    np.testing.assert_allclose(law.gain[:, 1], 0.0, atol=1e-12)
    np.testing.assert_allclose(law.offset[:, 1], 0.25)


def test_no_point_takes_more_tests_than_is_promised(planar: PiecewiseLaw) -> None:
    """Hyperplanes counted on the way down the tree and in its leaf, where a region is left at its first row missed."""
    tree, most = planar.tree, 0
    for t in np.random.default_rng(4).uniform(-1.0, 1.0, (500, 2)):
        node, tests = 0, 0
        while node >= 0:
            node, tests = tree.child[node, int(tree.split[node] @ t > tree.value[node])], tests + 1
        for r in tree.leaf[tree.leaf_first[-1 - node] : tree.leaf_first[-node]]:
            at = slice(planar.first[r], planar.first[r + 1])
            missed = np.flatnonzero(planar.rows[at] @ t > planar.right[at] + 1e-9)
            tests += int(missed[0]) + 1 if len(missed) else at.stop - at.start
            if not len(missed):
                break
        most = max(most, tests)
    assert 0.5 * planar.most_tests < most <= planar.most_tests < len(planar.rows)


@pytest.mark.parametrize("growth", [1.1, 3.0])
def test_references_are_parameters_too(growth: float) -> None:
    """At 3 the mode grows by 243 over the horizon: the variables are then corrections of a law of the state alone."""
    plant = StateSpace([[growth]], [[1.0]], [[1.0]], dt=1.0)
    problem = MpcProblem(plant=plant, horizon=5, output_weight=1.0, rate_weight=0.1, input_lower=-4.0, input_upper=4.0)
    program = condensed(problem, Given(reference="constant"))
    law = piecewise_law(program, [-1.5, -1.0, -0.5], [1.5, 1.0, 0.5])
    assert program.gains.any() == (growth > 2.0)
    for x, u, r in np.random.default_rng(3).uniform(-1.0, 1.0, (40, 3)) * [1.5, 1.0, 0.5]:
        plan = solve_mpc(problem, [x], past_inputs=[[u]], reference=[r])
        assert law.decide([x, u, r]) == pytest.approx(plan.inputs[0], abs=1e-7)
