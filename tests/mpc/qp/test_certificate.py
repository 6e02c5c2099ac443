"""No verdict without a proof: random programs of which the truth is known by construction, and solvers that lie."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from netctrl.core.errors import NetctrlError
from netctrl.core.register import QP_SOLVERS
from netctrl.model.statespace import StateSpace
from netctrl.mpc.problem import MpcProblem
from netctrl.mpc.qp.certificate import Optimality, farkas, is_farkas, is_ray, ray
from netctrl.mpc.qp.program import Answer, QPStatus, QuadraticProgram
from netctrl.mpc.qp.scaling import balance, balanced
from netctrl.mpc.qp.solve import open_solver, solve_qp
from netctrl.mpc.receding import receding_controller, start_receding, step_receding

DRAWS = {"daqp": 80, "qpoases": 80, "osqp": 48, "clarabel": 30}


def in_other_units(rng: np.random.Generator, program: QuadraticProgram, decades: float) -> QuadraticProgram:
    """Variables, rows and cost times powers of 2, which round nothing."""
    n, k = program.n_variables, program.n_rows
    s, t, c = (2.0 ** np.round(rng.uniform(-decades, decades, size) / np.log10(2.0)) for size in (n, k, 1))
    bounds = np.concatenate([1.0 / s, t])
    return QuadraticProgram(
        c * program.H * s[:, None] * s,
        c * program.g * s,
        t[:, None] * program.A * s,
        program.lower * bounds,
        program.upper * bounds,
    )


def drawn(seed: int) -> tuple[str, QuadraticProgram]:
    """A program of small integers, and what it is: exactly so, as none of its arithmetic rounds."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(1, 10)), int(rng.integers(2, 14))
    kind = ("solvable", "infeasible", "unbounded", "almost unbounded")[seed % 4]
    A = rng.integers(-4, 5, (k, n)).astype(float)
    M = rng.integers(-3, 4, (n + 2, n)).astype(float)
    H, g = M.T @ M + 0.5 * np.eye(n), rng.integers(-9, 10, n).astype(float)
    at, room = np.vstack([np.eye(n), A]) @ rng.integers(-2, 3, n), 2.0 ** rng.integers(-12, 5, n + k)
    lower = np.where(rng.random(n + k) < 0.6, at - room, -np.inf)
    upper = np.where(rng.random(n + k) < 0.6, at + room, np.inf)
    if kind == "infeasible":  # the last row is the negative of a sum of others, with a bound that they can't leave
        w = rng.integers(0, 4, k - 1).astype(float)
        w[0] += 1.0
        A[-1], lower[n:], upper[n:] = -(w @ A[:-1]), -np.inf, 5.0
        upper[-1] = -(w @ upper[n:-1]) - 2.0**-8
        lower[:n], upper[:n] = -np.inf, np.inf
    if kind.endswith("unbounded"):  # along one variable there is no curvature, or hardly any, and no bound
        i = int(rng.integers(n))
        H[i], H[:, i] = 0.0, 0.0
        H[i, i], g[i] = (2.0**-27 if kind.startswith("almost") else 0.0), -1.0
        lower = np.where(np.concatenate([np.eye(n)[i], A[:, i]]) < 0.0, -np.inf, lower)
        upper = np.where(np.concatenate([np.eye(n)[i], A[:, i]]) > 0.0, np.inf, upper)
    program = QuadraticProgram(H, g, A, lower, upper)
    return kind, in_other_units(rng, program, 4.0 if rng.random() < 0.5 else 0.0)


@pytest.mark.parametrize("solver", QP_SOLVERS)
def test_no_false_verdict(solver: str) -> None:
    """Undecided (FAILED) is allowed, and rare; false is not."""
    may = {
        "solvable": QPStatus.SOLVED,
        "infeasible": QPStatus.INFEASIBLE,
        "unbounded": QPStatus.UNBOUNDED,
        "almost unbounded": QPStatus.SOLVED,
    }
    undecided = 0
    for seed in range(DRAWS[solver]):
        kind, program = drawn(seed)
        found = solve_qp(program, solver=solver, strict=False)
        assert found.status in (may[kind], QPStatus.FAILED), (seed, kind, found.status)
        undecided += found.status is QPStatus.FAILED and kind != "almost unbounded"
    assert undecided <= 0.05 * DRAWS[solver]


@pytest.mark.parametrize("solver", QP_SOLVERS)
def test_a_row_of_zeros_is_no_reason_to_refuse(solver: str) -> None:
    """0 x ≤ −7e-18, as rounding leaves it in LIPMWALK4 of the public MPC set, whose other bounds are near 0.1."""
    program = QuadraticProgram(
        np.eye(2), [-1.0, 0.5], [[0.0, 0.0], [1.0, 1.0]], np.full(4, -np.inf), [1.0, 1.0, -6.9e-18, 0.065]
    )
    found = solve_qp(program, solver=solver)
    np.testing.assert_allclose(found.x, [0.7825, -0.7175], atol=1e-6)
    beyond = program.changed(program.g, program.lower, np.array([1.0, 1.0, -1e-3, 0.065]))
    assert solve_qp(beyond, solver=solver, strict=False).status is QPStatus.INFEASIBLE


def lying(monkeypatch: pytest.MonkeyPatch, status: QPStatus, x: float = 0.0, y: float = 0.0) -> None:
    """Replace DAQP by a solver that always says the same."""

    class Liar:
        def __init__(self, program: QuadraticProgram) -> None:
            self._size = program.n_variables, len(program.lower)

        def solve(self, *_: Any) -> Answer:
            return Answer(np.full(self._size[0], x), np.full(self._size[1], y), status, 1)

        anew = solve

    module = ModuleType("liar")
    module.Liar = Liar  # ty: ignore[unresolved-attribute]
    monkeypatch.setitem(sys.modules, "liar", module)
    monkeypatch.setitem(QP_SOLVERS._ours, "daqp", "liar:Liar")


@pytest.mark.parametrize("status", [QPStatus.INFEASIBLE, QPStatus.UNBOUNDED, QPStatus.SOLVED, QPStatus.FAILED])
def test_a_solver_s_word_is_not_enough(status: QPStatus, monkeypatch: pytest.MonkeyPatch) -> None:
    """In `solve_qp` and in a receding loop, where the refinement finds the plan that the solver doesn't."""
    lying(monkeypatch, status, x=0.3)
    program = QuadraticProgram(np.eye(2), [-1.0, 2.0], [[1.0, 1.0]], [-5.0, -5.0, -1.0], [5.0, 5.0, 1.0])
    assert solve_qp(program, strict=False).status is QPStatus.FAILED
    with pytest.raises(NetctrlError, match="stopped before its tolerance"):
        solve_qp(program)
    plant = StateSpace([[1.0]], [[1.0]], [[1.0]], dt=1.0)
    problem = MpcProblem(plant=plant, horizon=3, state_weight=1.0, input_weight=1.0, input_lower=-1.0, input_upper=1.0)
    controller = receding_controller(problem)._replace(near=None)  # without the active set, which needs no solver
    state = step_receding(controller, start_receding(controller), np.array([0.5]))
    assert state.failures == 0
    np.testing.assert_allclose(state.applied, [-0.5 * 8.0 / 13.0], rtol=1e-12)  # Riccati: X = 1, 3/2, 8/5; 8/13
    monkeypatch.setattr("netctrl.mpc.plan.refined", lambda *_: None)
    state = step_receding(controller, start_receding(controller), np.array([0.5]))
    assert (state.status, state.failures) == (QPStatus.FAILED, 1)


def test_what_is_infeasible_is_proved_whatever_the_solver_says(monkeypatch: pytest.MonkeyPatch) -> None:
    lying(monkeypatch, QPStatus.SOLVED)
    program = QuadraticProgram(np.eye(2), np.zeros(2), [[1.0, 1.0]], [-1.0, -1.0, 3.0], [1.0, 0.5, 9.0])
    assert solve_qp(program, strict=False).status is QPStatus.INFEASIBLE


def test_rows_that_are_almost_parallel_meet_far_away() -> None:
    """x ≤ −1 + y, −(1 − 1e-7) x ≤ −y: at x near −1e7 both hold, where a solver's tolerance sees a contradiction."""
    A = [[1.0, -1.0], [-(1.0 - 1e-7), 1.0]]
    program = QuadraticProgram(np.eye(2), np.zeros(2), A, np.full(4, -np.inf), [np.inf, np.inf, -1.0, 0.0])
    assert not is_farkas(program, np.array([0.0, 0.0, 1.0, 1.0]))
    assert farkas(program) is None
    boxed = program.changed(program.g, np.array([-1e3, -1e3, -np.inf, -np.inf]), np.array([1e3, 1e3, -1.0, 0.0]))
    assert is_farkas(boxed, np.array([0.0, 0.0, 1.0, 1.0]))  # within the box they don't
    for solver in QP_SOLVERS:
        assert solve_qp(program, solver=solver, strict=False).status in (QPStatus.SOLVED, QPStatus.FAILED)
        assert solve_qp(boxed, solver=solver, strict=False).status is QPStatus.INFEASIBLE


def test_a_ray_needs_no_curvature_no_bound_and_a_feasible_start() -> None:
    free = np.full(3, np.inf)
    for curvature, upper, expected in ((0.0, np.inf, True), (1e-12, np.inf, False), (0.0, 1e9, False)):
        program = QuadraticProgram(np.diag([1.0, curvature]), [0.0, -1.0], [[1.0, 0.0]], -free, [np.inf, upper, np.inf])
        assert is_ray(program, np.array([0.0, 1.0])) is expected
        assert (ray(program) is not None) is expected
    assert not is_ray(program, np.array([0.0, -1.0]))
    nowhere = QuadraticProgram(
        np.zeros((2, 2)), [0.0, -1.0], [[1.0, 0.0], [1.0, 0.0]], [-np.inf, -np.inf, 1.0, -np.inf], [*free[:3], 0.0]
    )
    assert ray(nowhere) is None
    assert solve_qp(nowhere, strict=False).status is QPStatus.INFEASIBLE


def test_optimality_does_not_depend_on_units() -> None:
    """The right point stands and a wrong one doesn't, in units that differ by up to eight decades."""
    rng = np.random.default_rng(7)
    for seed in range(0, 80, 4):
        _, program = drawn(seed)
        other = in_other_units(rng, program, 4.0)
        found = solve_qp(other, strict=False)
        if found.status is not QPStatus.SOLVED:
            continue
        scaling = balance(other.H, other.A)
        holds = Optimality(other.H, other.A, scaling).holds
        data = (other.g, other.lower, other.upper)
        assert holds(*data, found.x, found.multipliers)
        assert not holds(
            *data,
            found.x + 1e-2 * scaling.columns * max(1.0, np.abs(found.x / scaling.columns).max()),
            found.multipliers,
        )
        assert not holds(*data, np.full(len(found.x), np.nan), found.multipliers)


def test_balanced_programs_are_the_same_program() -> None:
    for seed in range(12):
        _, program = drawn(seed)
        scaling = balance(program.H, program.A)
        scaled = balanced(program, scaling)
        x = np.random.default_rng(seed).standard_normal(program.n_variables)
        there = scaling.point(x)
        assert 0.5 * x @ scaled.H @ x + scaled.g @ x == pytest.approx(
            scaling.cost * (0.5 * there @ program.H @ there + program.g @ there), rel=1e-12
        )
        largest = np.abs(scaled.H).max(axis=0)
        assert (largest[largest > 0.0] <= 1024.0).all()


def test_a_workspace_starts_where_it_is_told() -> None:
    """At x = 0 where nothing moves it: exact, and no solver is asked."""
    program = QuadraticProgram(np.eye(2), np.zeros(2), [[1.0, 1.0]], -np.ones(3), np.ones(3))
    found = open_solver(program).solve(program.g.copy(), program.lower.copy(), program.upper.copy())
    assert (found.status, found.iterations) == (QPStatus.SOLVED, 0)
    np.testing.assert_array_equal(found.x, [0.0, 0.0])
