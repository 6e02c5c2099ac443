"""DAQP, a dual active-set method: exact on small dense programs, and the fastest of ours there.

Source: Arnström, Bemporad, Axehill, IEEE Trans. Automatic Control 67 (2022) 4362-4369.
"""

from __future__ import annotations

import numpy as np

from netctrl.model.matrix import dense
from netctrl.mpc.qp import QPStatus, QuadraticProgram
from netctrl.mpc.solvers.answer import Answer, missing

__all__ = ["DaqpWorkspace"]

# By default it leaves bounds broken by 1e-6. Its own multipliers' tolerance is 1e-12 already.
_SETTINGS = {"primal_tol": 1e-11}
_STATUS = {1: QPStatus.SOLVED, -1: QPStatus.INFEASIBLE, -3: QPStatus.UNBOUNDED}


class DaqpWorkspace:
    """Keeps DAQP's factors; each solve starts from the bounds that were active last."""

    __slots__ = ("_model", "_solve", "_update")

    def __init__(self, program: QuadraticProgram) -> None:
        try:
            from daqp import Model
        except ImportError:
            raise missing("daqp", "daqp") from None
        self._model = Model()
        self._model.settings = _SETTINGS
        H, A = (np.array(dense(part), order="C") for part in (program.H, program.A))
        g, lower, upper = (part.copy() for part in (program.g, program.lower, program.upper))
        # 5 means an equality that is always active; as a pair of inequalities it would be found active each time.
        sense = np.where(lower == upper, 5, 0).astype(np.intc)
        self._model.setup(H, g, A, upper, lower, sense)
        self._update, self._solve = self._model.update, self._model.solve

    def solve(self, g: np.ndarray, lower: np.ndarray, upper: np.ndarray, start: np.ndarray | None = None) -> Answer:
        """Of `Workspace`; `start` is ignored, as the last active set is better."""
        self._update(None, g, None, upper, lower)
        x, _, flag, info = self._solve()
        return Answer(x, info["lam"], _STATUS.get(flag, QPStatus.FAILED), info["iterations"])
