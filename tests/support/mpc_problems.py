"""Problems of model predictive control that several tests solve."""

from __future__ import annotations

from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np

from netctrl.model.statespace import StateSpace
from netctrl.mpc.formulate import condensed
from netctrl.mpc.parametric import ParametricProgram
from netctrl.mpc.piecewise.law import PiecewiseLaw
from netctrl.mpc.problem import MpcProblem
from netctrl.mpc.qp.program import QPStatus
from netctrl.mpc.qp.solve import open_solver


def double_integrator(**changed: Any) -> MpcProblem:
    requested: dict[str, Any] = {
        "plant": StateSpace([[1.0, 1.0], [0.0, 1.0]], [[0.5], [1.0]], [[1.0, 0.0]], dt=1.0),
        "horizon": 3,
        "state_weight": np.eye(2),
        "input_weight": 0.1,
        "state_lower": -5.0,
        "state_upper": 5.0,
        "input_lower": -1.0,
        "input_upper": 1.0,
    }
    return MpcProblem(**(requested | changed))


def random_problem(seed: int, n: int, m: int, horizon: int, **more: Any) -> MpcProblem:
    """Unstable plant with bounds on all states and inputs."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n))
    A *= 1.05 / np.abs(np.linalg.eigvals(A)).max()
    requested: dict[str, Any] = {"state_weight": 1.0, "input_weight": 0.1, "state_lower": -3.0, "state_upper": 3.0}
    requested |= {"input_lower": -1.0, "input_upper": 1.0}
    plant = StateSpace(A, rng.standard_normal((n, m)), np.eye(n), dt=1.0)
    return MpcProblem(plant=plant, horizon=horizon, **(requested | more))


def by_cvxpy(problem: MpcProblem, theta: np.ndarray, tolerance: float = 1e-12) -> np.ndarray:
    """The problem written down as it stands, stage by stage, in the plant's units."""
    plant, P = problem.plant, problem.horizon
    n, m = plant.n_states, plant.n_inputs
    x, u, slack = cp.Variable((P + 1, n)), cp.Variable((P, m)), cp.Variable((P, n), nonneg=True)
    last = theta[n:] if problem.has_rate else np.zeros(m)

    def square(vector: Any, weight: np.ndarray) -> Any:
        return cp.quad_form(vector, cp.psd_wrap(weight))

    cost, model = square(x[P], problem.terminal_weight), [x[0] == theta[:n]]
    for k in range(P):
        cost += square(x[k], problem.state_weight) + square(u[k], problem.input_weight)
        cost += square(plant.C @ x[k] + plant.D @ u[k], problem.output_weight)
        cost += square(u[k] - (u[k - 1] if k else last), problem.rate_weight)
        model += [x[k + 1] == plant.A @ x[k] + plant.B @ u[k]]
        for j in range(m):
            model += [u[k, j] >= problem.input_lower[j]] if np.isfinite(problem.input_lower[j]) else []
            model += [u[k, j] <= problem.input_upper[j]] if np.isfinite(problem.input_upper[j]) else []
        for i in range(n):
            eased = slack[k, i] if problem.soft[i] else 0.0
            model += [x[k + 1, i] >= problem.state_lower[i] - eased] if np.isfinite(problem.state_lower[i]) else []
            model += [x[k + 1, i] <= problem.state_upper[i] + eased] if np.isfinite(problem.state_upper[i]) else []
            if problem.soft[i]:
                cost += problem.soft_weight[i] * cp.square(slack[k, i]) + problem.soft_linear[i] * slack[k, i]
    tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tolerance)
    cp.Problem(cp.Minimize(cost), model).solve(solver=cp.CLARABEL, **tight)
    return u.value


TOLERANCE = 1e-11
"""Of the solver's bounds, as a distance of points; in slivers it is seen, as gains reach 1e6."""


class Coverage(NamedTuple):
    """Results of a table's check at random points."""

    samples: int
    feasible: int
    """Number of points at which the program has a solution."""
    missed: int
    """Number of feasible points outside all regions; 0 for a complete table."""
    invented: int
    """Number of infeasible points in a region."""
    largest_error: float
    """Largest difference from the program's inputs, in units of their bounds, without what `TOLERANCE` explains."""


def check_piecewise(
    law: PiecewiseLaw, problem: MpcProblem | ParametricProgram, rng: np.random.Generator, *, samples: int = 1000
) -> Coverage:
    """Compare a table with the program at random points of its box, half of them near planes of facets."""
    program = problem if isinstance(problem, ParametricProgram) else condensed(problem)
    points = rng.uniform(-1.0, 1.0, (samples, len(law.centre)))
    if len(law.right):
        at = rng.integers(0, len(law.right), samples // 2)
        far = np.einsum("ij,ij->i", law.rows[at], points[: len(at)]) - law.right[at]
        beyond = np.where(law.edge[at], -1e-5, rng.choice([-1e-5, 0.0, 1e-5], len(at)))
        points[: len(at)] += (beyond - far)[:, None] * law.rows[at]
    thetas = law.centre + law.half * np.clip(points, -1.0, 1.0)
    inputs, region = law.decide_many(thetas)
    workspace = open_solver(program.program(law.centre))
    solved, worst = np.zeros(samples, dtype=bool), 0.0
    for i, theta in enumerate(thetas):
        shift = program.E @ theta
        answer = workspace.solve(program.g + program.F @ theta, program.lower + shift, program.upper + shift)
        solved[i] = answer.status is QPStatus.SOLVED
        if solved[i] and region[i] >= 0:
            error = np.abs(program.first_input(answer.x, theta) - inputs[i])
            error = (error - TOLERANCE * np.abs(law.gain[region[i]]).sum(axis=1)) / program.input_scale
            worst = max(worst, float(error.max()))
    missed, invented = int((solved & (region < 0)).sum()), int((~solved & (region >= 0)).sum())
    return Coverage(samples, int(solved.sum()), missed, invented, worst)
