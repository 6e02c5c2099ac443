"""Problems of model predictive control that several tests solve."""

from __future__ import annotations

from typing import Any

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
