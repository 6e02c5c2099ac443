"""An MPC problem solved once, from a measured state."""

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
"""Name: what makes the program. condensed suits the active-set solvers, sparse suits osqp and long horizons."""


@dataclass(frozen=True, slots=True, eq=False)
class MpcPlan:
    """The least-cost inputs, and where they lead by the model."""

    inputs: np.ndarray
    """(P, m) u_0 .. u_{P−1} [the plant's units]; u_0 is what to apply."""
    states: np.ndarray
    """(P + 1, n) x_0 .. x_P; x_0 is the state after the delay."""
    excess: np.ndarray
    """(P + 1, n) how far states are out of their bounds; 0 but for soft ones, where the first is what it is."""
    solution: QPSolution
    """Of the scaled program, with its residuals."""
    residuals: PlanResiduals
    """Of the problem as it stands, stage by stage: a plan for which they aren't small is refused."""

    def __post_init__(self) -> None:
        for part in (self.inputs, self.states, self.excess):
            part.setflags(write=False)


def formulated(problem: MpcProblem, form: str = "condensed") -> ParametricProgram:
    """The program of a problem in one of FORMS; InvalidValue for another name."""
    return FORMS[checked_word("form", form, FORMS)](problem)


def solve_mpc(
    problem: MpcProblem, state: Any, *, past_inputs: Any = None, solver: str = "daqp", form: str = "condensed"
) -> MpcPlan:
    """Plan the inputs from one measured state.

    Parameters
    ----------
    problem : MpcProblem
    state : array_like, shape (n,)
        Measured now.
    past_inputs : array_like, shape (at least d, m), optional
        Given before and under way, oldest first; needed with a delay or a rate weight.
    solver : str
        Of `netctrl.register.QP_SOLVERS`.
    form : {"condensed", "sparse"}

    Raises
    ------
    InfeasibleProgram
        Which bounds exclude each other, by state or input and step.
    InvalidValue, NetctrlError
        What the parts refuse.
    """
    program = formulated(problem, form)
    theta = parameters(problem, state, past_inputs)
    solution = solve_qp(program.program(theta), solver=solver)
    inputs, states = program.plan(solution.x, theta)
    residuals = plan_residuals(problem, program, inputs, states, solution.multipliers)
    if not residuals.solved:
        raise NetctrlError(
            f"{solver}'s plan isn't the problem's solution by {residuals.worst:.1e}: try another solver or form, or"
            " scale the problem"
        )
    states = np.ascontiguousarray(states[:, : problem.plant.n_states])
    excess = np.maximum(states - problem.state_upper, 0.0) + np.maximum(problem.state_lower - states, 0.0)
    return MpcPlan(inputs, states, excess, solution, residuals)
