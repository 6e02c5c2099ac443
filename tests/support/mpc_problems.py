"""Problems of model predictive control that several tests solve."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

from netctrl.model.statespace import StateSpace
from netctrl.mpc.problem import MpcProblem


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
