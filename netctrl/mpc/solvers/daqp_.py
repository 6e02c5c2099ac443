"""DAQP, a dual active-set method: exact on small dense programs, and the fastest solver there.

Source: Arnström, Bemporad, Axehill, IEEE Trans. Automatic Control 67 (2022) 4362-4369.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from netctrl.core.errors import optional_import
from netctrl.model.io.matrix import dense
from netctrl.mpc.qp.program import Answer, QPStatus, QuadraticProgram

# By default DAQP leaves bounds violated by 1e-6, and a singular Hessian shifted by 1e-6 after one proximal step.
_SETTINGS = {"primal_tol": 1e-11, "eta_prox": 1e-12}
_ANEW = {"primal_tol": 1e-9, "eps_prox": 1e-3, "eta_prox": 1e-12}
# -6: equalities that contradict each other.
_STATUS = {1: QPStatus.SOLVED, -1: QPStatus.INFEASIBLE, -6: QPStatus.INFEASIBLE, -3: QPStatus.UNBOUNDED}


class DaqpWorkspace:
    """Keeps DAQP's factors; each solve starts from the bounds that were active last.

    A failed solve is repeated from the start, without the last active set, before the program counts as infeasible.
    """

    __slots__ = ("_A", "_H", "_make", "_solve", "_update")

    def __init__(self, program: QuadraticProgram) -> None:
        with optional_import():
            self._make: Any = import_module("daqp").Model  # a compiled module, which type checkers don't see
        self._solve: Any = None
        self._update: Any = None
        self._H, self._A = (np.array(dense(part), order="C") for part in (program.H, program.A))

    def solve(self, g: np.ndarray, lower: np.ndarray, upper: np.ndarray, start: np.ndarray | None = None) -> Answer:
        """See `Workspace`; `start` is ignored, as the last active set is better."""
        # A failed update (such as an infeasible row of zeros) leaves old data behind, so its flag is checked too.
        if self._update is not None and self._update(None, g, None, upper, lower) >= 0:
            x, _, flag, info = self._solve()
            if flag == 1:
                return Answer(x, info["lam"], QPStatus.SOLVED, info["iterations"])
        return self._started(g, lower, upper, _SETTINGS)

    def anew(self, g: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> Answer:
        """See `Workspace`: with larger proximal steps, for Hessians that are almost singular."""
        return self._started(g, lower, upper, _ANEW)

    def _started(self, g: np.ndarray, lower: np.ndarray, upper: np.ndarray, settings: dict[str, float]) -> Answer:
        model = self._make()
        model.settings = settings
        always = np.where(lower == upper, 5, 0).astype(np.intc)  # equalities stay active
        flag, _ = model.setup(self._H, g, self._A, upper, lower, always)
        x, y, iterations = np.full(len(g), np.nan), np.full(len(lower), np.nan), 0
        if flag >= 0:
            x, _, flag, info = model.solve()
            y, iterations = info["lam"], info["iterations"]
        self._update, self._solve = (model.update, model.solve) if flag == 1 else (None, None)
        return Answer(x, y, _STATUS.get(flag, QPStatus.FAILED), iterations)
