"""One solution of an MPC problem, from a measured state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from netctrl.errors import NetctrlError, checked_word
from netctrl.mpc.formulate import condensed, sparse
from netctrl.mpc.parametric import ParametricProgram, parameters
from netctrl.mpc.problem import MpcProblem
from netctrl.mpc.qp.program import QPSolution
from netctrl.mpc.qp.solve import solve_qp
from netctrl.mpc.verify import PlanResiduals, plan_residuals

__all__ = ["FORMS", "MpcPlan", "formulated", "solve_mpc"]

FORMS = {"condensed": condensed, "sparse": sparse}
"""Forms of the program by name: condensed for active-set solvers, sparse for osqp and long horizons."""


@dataclass(frozen=True, slots=True, eq=False)
class MpcPlan:
    """Optimal inputs of an MPC problem, and the predicted states."""

    inputs: np.ndarray
    """(P, m) u_0 .. u_{P−1} [the plant's units]; u_0 is to be applied."""
    states: np.ndarray
    """(P + 1, n) x_0 .. x_P; x_0 is the state after the delay."""
    excess: np.ndarray
    """(P + 1, n) violation of state bounds; 0 except for soft bounds, and for x_0, which no input changes."""
    solution: QPSolution
    """Solution of the scaled quadratic program."""
    residuals: PlanResiduals
    """Residuals of the problem itself, stage by stage; a plan with large ones is rejected."""

    def __post_init__(self) -> None:
        for part in (self.inputs, self.states, self.excess):
            part.setflags(write=False)


def formulated(problem: MpcProblem, form: str = "condensed") -> ParametricProgram:
    """Program of a problem in one of FORMS; raises InvalidValue for another name."""
    return FORMS[checked_word("form", form, FORMS)](problem)


def solve_mpc(
    problem: MpcProblem, state: Any, *, past_inputs: Any = None, solver: str = "daqp", form: str = "condensed"
) -> MpcPlan:
    """Solve an MPC problem from a measured state.

    Parameters
    ----------
    problem : MpcProblem
        n states, m inputs, delay d.
    state : array_like, shape (n,)
        Measured state.
    past_inputs : array_like, shape (at least d, m), optional
        Inputs applied before, oldest first; needed with a delay or a rate weight.
    solver : str
        One of `netctrl.register.QP_SOLVERS`.
    form : {"condensed", "sparse"}
        Quadratic program in the inputs alone, or in inputs and states.

    Returns
    -------
    MpcPlan

    Raises
    ------
    InfeasibleProgram
        No plan meets all bounds; the message names the conflicting bounds by state or input and step.
    InvalidValue
        Shapes that don't fit, an unknown solver or form.
    NetctrlError
        The solver fails.

    Examples
    --------
    >>> import netctrl
    >>> plant = netctrl.StateSpace([[1.0]], [[1.0]], [[1.0]], dt=1.0)
    >>> problem = netctrl.MpcProblem(plant=plant, horizon=5, state_weight=1.0, input_weight=1.0)
    >>> plan = netctrl.solve_mpc(problem, [2.0])
    >>> round(float(plan.inputs[0, 0]), 3), plan.states.shape
    (-1.236, (6, 1))
    """
    program = formulated(problem, form)
    theta = parameters(problem, state, past_inputs)
    solution = solve_qp(program.program(theta), solver=solver)
    inputs, states = program.plan(solution.x, theta)
    residuals = plan_residuals(problem, program, inputs, states, solution.multipliers)
    if not residuals.solved:
        raise NetctrlError(
            f"the plan of {solver} differs from the problem's solution by {residuals.worst:.1e}: try another solver or "
            "form, or scale the problem"
        )
    states = np.ascontiguousarray(states[:, : problem.plant.n_states])
    excess = np.maximum(states - problem.state_upper, 0.0) + np.maximum(problem.state_lower - states, 0.0)
    return MpcPlan(inputs, states, excess, solution, residuals)
