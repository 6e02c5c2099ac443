"""What functions of mpc, synthesis and frequency say of arguments of another kind: which one, never a foreign error."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from netctrl.core.errors import InvalidValue
from netctrl.frequency.delayed_integrator import gain_limit, integrator_margins
from netctrl.model.statespace import StateSpace
from netctrl.mpc.explicit import queue_gain
from netctrl.mpc.formulate import condensed, sparse
from netctrl.mpc.parametric import parameters
from netctrl.mpc.problem import MpcProblem
from netctrl.mpc.qp.certificate import conflict
from netctrl.mpc.qp.program import QuadraticProgram
from netctrl.mpc.qp.solve import open_solver, solve_qp
from netctrl.mpc.receding import explain_failure, receding_controller, start_receding, step_receding
from netctrl.synthesis.localized.coordinated import coordinated
from netctrl.synthesis.localized.localized import localized, settling_time
from netctrl.synthesis.myopic.fir import myopic_fir
from netctrl.synthesis.myopic.static import myopic
from netctrl.synthesis.riccati.dare import solve_dare
from netctrl.synthesis.riccati.tracking import integral_regulator, tracking_loop

PLANT = StateSpace([[0.9]], [[1.0]], [[1.0]], dt=1.0)
PROBLEM = MpcProblem(plant=PLANT, horizon=2, state_weight=1.0, input_weight=1.0)
PROGRAM = QuadraticProgram(np.eye(1), [0.0], np.zeros((0, 1)), [-1.0], [1.0])
MATRIX = np.eye(2)


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("program", lambda: solve_qp(MATRIX)),
        ("program", lambda: open_solver(None)),
        ("solver", lambda: open_solver(PROGRAM, MATRIX)),
        ("program", lambda: conflict(MATRIX)),
        ("names", lambda: QuadraticProgram(np.eye(1), [0.0], np.zeros((0, 1)), [-1.0], [1.0], 3.0)),
        ("problem", lambda: condensed("abc")),
        ("problem", lambda: sparse(None)),
        ("problem", lambda: receding_controller(MATRIX)),
        ("controller", lambda: start_receding(PROBLEM)),
        ("state", lambda: step_receding(receding_controller(PROBLEM), "abc", [0.0])),
        ("measured", lambda: step_receding(*_loop(), "abc")),
        ("controller", lambda: explain_failure(None, None)),
        ("problem", lambda: parameters(PROGRAM, [0.0])),
        ("state", lambda: parameters(PROBLEM, "abc")),
        ("past_inputs", lambda: parameters(PROBLEM, [0.0], ["a"])),
        ("input_gain", lambda: queue_gain(object(), 5, 1.0, 1.0)),
        ("method", lambda: solve_dare(MATRIX, MATRIX, MATRIX, MATRIX, method=MATRIX)),
        ("weight", lambda: settling_time(MATRIX, 0.1)),
        ("delay", lambda: gain_limit(1j)),
        ("predicts", lambda: integrator_margins(0.1, 3, predicts=np.zeros(0))),
        ("plant", lambda: integral_regulator(MATRIX, MATRIX)),
        ("plant", lambda: tracking_loop(MATRIX, None)),
        ("model", lambda: myopic(MATRIX, MATRIX, MATRIX, MATRIX, 1.0)),
        ("model", lambda: coordinated(MATRIX, 1.0, None)),
        ("model", lambda: localized(MATRIX, 1.0, None, tolerance=0.1)),
        ("model", lambda: myopic_fir(MATRIX, 1.0, tolerance=0.1)),
    ],
)
def test_the_argument_is_named(argument: str, call: Callable[[], object]) -> None:
    with pytest.raises(InvalidValue) as refusal:
        call()
    assert refusal.value.argument == argument


def _loop() -> tuple:
    controller = receding_controller(PROBLEM)
    return controller, start_receding(controller)
