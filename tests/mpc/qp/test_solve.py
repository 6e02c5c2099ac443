"""Quadratic programs: one set of problems for all solvers, residuals, conflicts, and what the door refuses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog, minimize

from netctrl.core.errors import InfeasibleProgram, InvalidValue, MissingLibrary, NetctrlError
from netctrl.core.register import QP_SOLVERS
from netctrl.mpc.qp.certificate import conflict
from netctrl.mpc.qp.program import QPSolution, QPStatus, QuadraticProgram
from netctrl.mpc.qp.solve import open_solver, solve_qp

# What each solver reaches on the problem set: worst residual, and distance of x from the exact one, absolute. Where a
# bound is met without a multiplier, interior points are right to the root of their tolerance (1e-11).
TOLERANCE = {"daqp": (1e-11, 1e-9), "qpoases": (1e-11, 1e-9), "osqp": (1e-7, 1e-6), "clarabel": (1e-8, 1e-5)}


def spd(rng: np.random.Generator, size: int) -> np.ndarray:
    root = rng.standard_normal((size, size))
    return root @ root.T


def programs() -> dict[str, QuadraticProgram]:
    """One set for all solvers: small, without rows, with equalities, fixed variables, degenerate, badly conditioned."""
    rng = np.random.default_rng(5)
    H = spd(rng, 6) + 0.1 * np.eye(6)
    A, at = rng.standard_normal((4, 6)), rng.standard_normal(6)
    wide = np.full(6, 2.0)
    hilbert = 1.0 / (np.arange(6)[:, None] + np.arange(6) + 1.0) + 1e-6 * np.eye(6)
    low, high = A @ at - 0.1, A @ at + 0.1
    return {
        "bounds": QuadraticProgram(H, rng.standard_normal(6), np.zeros((0, 6)), -0.1 * wide, 0.1 * wide),
        "rows": QuadraticProgram(H, 5.0 * rng.standard_normal(6), A, np.r_[-wide, low], np.r_[wide, high]),
        "one-sided": QuadraticProgram(
            H, 5.0 * rng.standard_normal(6), A, np.r_[np.full(6, -np.inf), low], np.full(10, np.inf)
        ),
        "equalities": QuadraticProgram(
            H, rng.standard_normal(6), A[:2], np.r_[-wide, A[:2] @ at], np.r_[wide, A[:2] @ at]
        ),
        "fixed": QuadraticProgram(
            H, rng.standard_normal(6), A, np.r_[0.3, -wide[1:], low - 3.0], np.r_[0.3, wide[1:], high + 3.0]
        ),
        "degenerate": QuadraticProgram(
            np.eye(6), -np.ones(6), np.ones((3, 6)), np.full(9, -np.inf), np.r_[np.full(6, 0.5), np.full(3, 3.0)]
        ),
        "hilbert": QuadraticProgram(hilbert, rng.standard_normal(6), A, np.r_[-wide, low], np.r_[wide, high]),
    }


PROGRAMS = programs()
INFEASIBLE = QuadraticProgram(
    np.eye(2), np.zeros(2), [[1.0, 1.0]], [-1.0, -1.0, 3.0], [1.0, 0.5, 9.0], ("left", "right", "sum")
)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("solver", QP_SOLVERS)
def test_residuals(name: str, solver: str) -> None:
    found = solve_qp(PROGRAMS[name], solver=solver)
    assert found.residuals.worst <= TOLERANCE[solver][0]


@pytest.mark.parametrize("name", PROGRAMS)
def test_scipy_finds_nothing_better(name: str) -> None:
    """SLSQP, which shares nothing with the solvers, started at the solution and away from it."""
    program, found = PROGRAMS[name], solve_qp(PROGRAMS[name])
    stacked = np.vstack([np.eye(program.n_variables), program.A])
    constraints = []
    for bound, sign in ((program.upper, -1.0), (program.lower, 1.0)):
        at = np.isfinite(bound)
        if at.any():
            G, h = sign * stacked[at], sign * bound[at]
            constraints.append({"type": "ineq", "fun": lambda x, G=G, h=h: G @ x - h, "jac": lambda x, G=G: G})
    for start in (found.x, np.zeros(program.n_variables)):
        other = minimize(
            lambda x: 0.5 * x @ program.H @ x + program.g @ x,
            start,
            jac=lambda x: program.H @ x + program.g,
            constraints=constraints,
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert found.cost <= other.fun + 1e-7 * max(1.0, abs(other.fun))


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    free = QuadraticProgram(np.eye(2), np.ones(2), np.zeros((0, 2)), np.full(2, -9.0), np.full(2, 9.0))
    for solver in QP_SOLVERS:
        for program in (free, PROGRAMS["rows"], INFEASIBLE):
            solve_qp(program, solver=solver, strict=False)
    said = capfd.readouterr()
    assert (said.out, said.err) == ("", "")


@pytest.mark.parametrize("solver", QP_SOLVERS)
def test_a_workspace_is_updated(solver: str) -> None:
    """New g and bounds give what a new workspace gives, after an infeasible one as well."""
    first = PROGRAMS["rows"]
    workspace = open_solver(first, solver)
    rng = np.random.default_rng(1)
    for k in range(12):
        g, by = first.g + 0.5 * rng.standard_normal(6), 0.05 * rng.standard_normal(10)
        lower, upper = first.lower + by, first.upper + by
        if k == 5:
            lower[0], upper[0] = 100.0, 100.0  # no row allows that
        new = QuadraticProgram(first.H, g, first.A, lower, upper)
        answer, reference = workspace.solve(g, lower, upper), solve_qp(new, solver=solver, strict=False)
        assert answer.status is reference.status is (QPStatus.INFEASIBLE if k == 5 else QPStatus.SOLVED)
        if k != 5:
            np.testing.assert_allclose(answer.x, reference.x, atol=TOLERANCE[solver][1])


@pytest.mark.parametrize("solver", QP_SOLVERS)
def test_rows_of_zeros_and_equalities_that_repeat(solver: str) -> None:
    """Met and not met, in any order, in one workspace."""
    A = np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 1.0]])

    def bounds(*rows: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
        low, high = zip((-1.0, 1.0), (-1.0, 1.0), *rows, strict=True)
        return np.array(low), np.array(high)

    met = bounds((-1.0, 1.0), (0.3, 0.3), (0.3, 0.3))
    zeros = bounds((1.0, 2.0), (0.3, 0.3), (0.3, 0.3))
    repeat = bounds((-1.0, 1.0), (0.3, 0.3), (0.4, 0.4))
    workspace = open_solver(QuadraticProgram(np.eye(2), np.zeros(2), A, *met), solver)
    for lower, upper in (met, zeros, met, repeat, met):
        answer = workspace.solve(np.zeros(2), lower, upper)
        if lower[2] == -1.0 and lower[4] == 0.3:
            assert answer.status is QPStatus.SOLVED
            np.testing.assert_allclose(answer.x, 0.15, atol=TOLERANCE[solver][1])
        else:
            assert answer.status is QPStatus.INFEASIBLE


@pytest.mark.parametrize("solver", QP_SOLVERS)
def test_sparse_programs_are_the_same(solver: str) -> None:
    dense = PROGRAMS["rows"]
    same = QuadraticProgram(sp.csc_array(dense.H), dense.g, sp.csr_array(dense.A), dense.lower, dense.upper)
    found = solve_qp(same, solver=solver)
    np.testing.assert_allclose(found.x, solve_qp(dense).x, atol=TOLERANCE[solver][1])
    assert found.residuals.worst <= TOLERANCE[solver][0]


def test_residuals_see_what_is_wrong() -> None:
    program = PROGRAMS["rows"]
    good = solve_qp(program)

    def worst(x: np.ndarray, y: np.ndarray) -> tuple[float, ...]:
        return QPSolution(program, x, y, QPStatus.SOLVED, "by hand", 0).residuals

    moved, pulled = good.x.copy(), good.multipliers.copy()
    moved[0] += 10.0
    assert worst(moved, good.multipliers.copy()).primal > 0.1
    assert worst(moved, good.multipliers.copy()).dual > 0.1
    slack = int(np.argmin(np.abs(pulled)))
    pulled[slack] += 1.0
    assert worst(good.x.copy(), pulled).complementarity > 1e-3
    assert worst(good.x.copy(), pulled).gap > 1e-3
    assert np.isnan(worst(np.full(6, np.nan), pulled).worst)


@pytest.mark.parametrize("solver", QP_SOLVERS)
def test_an_infeasible_program_names_its_bounds(solver: str) -> None:
    with pytest.raises(InfeasibleProgram) as refusal:
        solve_qp(INFEASIBLE, solver=solver)
    found = refusal.value.conflict
    assert set(found.names) == {"left, upper", "right, upper", "sum, lower"}
    np.testing.assert_allclose(found.shortfall, 1.5)
    for name in found.names:
        assert name in str(refusal.value)
    assert solve_qp(INFEASIBLE, solver=solver, strict=False).status is QPStatus.INFEASIBLE


def test_a_conflict_is_minimal_and_its_shortfall_exact() -> None:
    """All of it excludes each other; without any one of its bounds, or with that one wider, the rest can hold."""
    rng = np.random.default_rng(2)
    for _ in range(30):
        A = rng.standard_normal((8, 4))
        lower, upper = -np.ones(12), np.ones(12)
        lower[4:], upper[4:] = 1.5, 4.0  # all rows above 1.5 is too much to ask
        program = QuadraticProgram(np.eye(4), np.zeros(4), A, lower, upper)
        found = conflict(program)
        G = np.vstack([np.eye(4), A])
        free = linprog(np.zeros(4), A_ub=np.vstack([G, -G]), b_ub=np.r_[upper, -lower], bounds=(None, None)).status == 0
        assert (found is None) == free
        if found is None:
            continue
        rows, right = [], []
        for name in found.names:
            of, side = name.split(", ")
            at, sign = program.names.index(of), 1.0 if side == "upper" else -1.0
            rows.append(sign * G[at])
            right.append(sign * (upper if side == "upper" else lower)[at])
        rows, right = np.array(rows), np.array(right)

        def feasible(keep: np.ndarray, right: np.ndarray = right, rows: np.ndarray = rows) -> bool:
            return linprog(np.zeros(4), A_ub=rows[keep], b_ub=right[keep], bounds=(None, None)).status == 0

        everyone = np.ones(len(rows), dtype=bool)
        assert not feasible(everyone)
        for i, short in enumerate(found.shortfall):
            without = everyone.copy()
            without[i] = False
            assert feasible(without)
            for factor, expected in ((1.0 + 1e-6, True), (1.0 - 1e-3, False)):
                wider = right.copy()
                wider[i] += factor * short
                assert feasible(everyone, wider) is expected


def test_a_feasible_program_has_no_conflict() -> None:
    assert conflict(PROGRAMS["rows"]) is None


@pytest.mark.parametrize("solver", ["daqp", "osqp", "clarabel"])
def test_a_cost_without_end(solver: str) -> None:
    endless = QuadraticProgram(np.diag([1.0, 0.0]), [0.0, -1.0], np.zeros((0, 2)), [-1.0, -1.0], [1.0, np.inf])
    assert solve_qp(endless, solver=solver, strict=False).status is QPStatus.UNBOUNDED
    with pytest.raises(NetctrlError, match="unbounded below"):
        solve_qp(endless, solver=solver)


def test_importing_mpc_loads_no_solver_and_no_compiler(tmp_path: Path) -> None:
    names = ("problem", "formulate", "plan", "receding", "piecewise.law", "explicit", "qp.certificate", "qp.solve")
    code = f"import sys; import {', '.join(f'netctrl.mpc.{name}' for name in names)}; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    loaded = set(ran.stdout.split())
    assert loaded & {"numba", "cvxpy", "osqp", "casadi", "daqp", "scipy.optimize", "scipy.sparse", "pandas"} == set()


def test_an_unknown_solver_lists_the_known_ones() -> None:
    with pytest.raises(InvalidValue, match="daqp, qpoases, osqp, clarabel"):
        open_solver(PROGRAMS["rows"], "gurobi")


@pytest.mark.parametrize(
    ("solver", "library"), [("daqp", "daqp"), ("qpoases", "casadi"), ("osqp", "osqp"), ("clarabel", "cvxpy")]
)
def test_a_solver_that_is_not_installed_says_how_to_get_it(
    solver: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingLibrary, match=f"{library} is not installed: pip install {library}"):
        open_solver(PROGRAMS["rows"], solver)


@pytest.mark.parametrize(
    ("changed", "argument", "said"),
    [
        ({"H": [[1.0, 0.0], [0.0, -1.0]]}, "H", "convex"),
        ({"H": [[1.0, 2.0], [0.0, 1.0]]}, "H", "symmetric"),
        ({"H": [[1.0, np.nan], [0.0, 1.0]]}, "H", "finite"),
        ({"g": [1.0]}, "g", "2 numbers"),
        ({"g": [1.0, np.inf]}, "g", "finite"),
        ({"A": [[1.0]]}, "A", "shape"),
        ({"lower": [0.0, 2.0, 0.0]}, "lower, upper", r"2 to 1 for x\[1\]"),
        ({"lower": [0.0, 0.0, np.nan]}, "lower, upper", "NaN for row 0"),
        ({"upper": [0.0, -np.inf, 0.0]}, "lower, upper", "not above"),
        ({"names": ("a",)}, "names", "3 names"),
    ],
)
def test_the_door(changed: dict, argument: str, said: str) -> None:
    good = {"H": np.eye(2), "g": np.zeros(2), "A": [[1.0, 1.0]], "lower": [0.0, -1.0, -1.0], "upper": [1.0, 1.0, 1.0]}
    QuadraticProgram(**good)
    with pytest.raises(InvalidValue, match=said) as refusal:
        QuadraticProgram(**(good | changed))
    assert refusal.value.argument == argument
