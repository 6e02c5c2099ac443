"""qpOASES through CasADi, the online active-set method that the MPCC thesis uses; dense programs.

Source: Ferreau, Bock, Diehl, Int. J. Robust Nonlinear Control 18 (2008) 816-830.
"""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np

from netctrl.core.errors import optional_import
from netctrl.model.io.matrix import dense
from netctrl.mpc.qp.program import Answer, QPStatus, QuadraticProgram

_SETTINGS = {"printLevel": "none", "error_on_fail": False, "nWSR": 10000}
# Slower and safer: all tests of linear independence, new factors each time, and more steps of refinement.
_ANEW = _SETTINGS | {
    "enableFullLITests": True,
    "enableDriftCorrection": 1,
    "enableCholeskyRefactorisation": 1,
    "numRefinementSteps": 3,
    "numRegularisationSteps": 3,
    "enableFarBounds": False,
}
_FAILURES = {"infeasib": QPStatus.INFEASIBLE, "unbound": QPStatus.UNBOUNDED}


class QpoasesWorkspace:
    """CasADi function over persistent buffers, the fastest way to call it from Python."""

    __slots__ = ("_anew", "_program", "_usual")

    def __init__(self, program: QuadraticProgram) -> None:
        self._program, self._usual = program, _Buffered(program, _SETTINGS)
        self._anew: _Buffered | None = None

    def solve(self, g: np.ndarray, lower: np.ndarray, upper: np.ndarray, start: np.ndarray | None = None) -> Answer:
        """See `Workspace`; `start` is ignored, as CasADi's interface restarts qpOASES each time."""
        return self._usual.solve(g, lower, upper)

    def anew(self, g: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> Answer:
        """See `Workspace`: with qpOASES's checks and refinements."""
        if self._anew is None:
            self._anew = _Buffered(self._program, _ANEW)
        return self._anew.solve(g, lower, upper)


class _Buffered:
    """qpOASES with given settings."""

    __slots__ = ("_buffer", "_call", "_function", "_inputs", "_outputs")

    def __init__(self, program: QuadraticProgram, settings: dict[str, Any]) -> None:
        with optional_import():
            import casadi
        n, k = program.n_variables, program.n_rows
        shapes = {"h": casadi.Sparsity.dense(n, n), "a": casadi.Sparsity.dense(k, n)}
        with contextlib.redirect_stdout(io.StringIO()):  # it prints its name
            self._function = casadi.conic("qp", "qpoases", shapes, settings)
            self._buffer, self._call = self._function.buffer()
        sizes = {"g": n, "lba": k, "uba": k, "lbx": n, "ubx": n}
        constant = {"h": np.array(dense(program.H)), "a": np.array(dense(program.A))}
        self._inputs = {name: each.ravel(order="F") for name, each in constant.items()}
        self._inputs |= {name: np.zeros(size) for name, size in sizes.items()}
        self._outputs = {"x": np.zeros(n), "lam_x": np.zeros(n), "lam_a": np.zeros(k)}
        # A buffer takes a memoryview, or an address with its size; CasADi's annotations have only the latter.
        give: Any = self._buffer.set_arg
        take: Any = self._buffer.set_res
        for name, array in self._inputs.items():
            if array.size:
                give(self._function.index_in(name), array.data)
        for name, array in self._outputs.items():
            if array.size:
                take(self._function.index_out(name), array.data)

    def solve(self, g: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> Answer:
        """See `Workspace`."""
        n, inputs, outputs = len(g), self._inputs, self._outputs
        inputs["g"][:] = g
        inputs["lbx"][:], inputs["lba"][:] = lower[:n], lower[n:]
        inputs["ubx"][:], inputs["uba"][:] = upper[:n], upper[n:]
        self._call()
        # Reading statistics takes longer than a small program, so it is done after failures only.
        status = QPStatus.SOLVED if self._buffer.ret() == 0 else _status(str(self._buffer.stats()["return_status"]))
        return Answer(outputs["x"].copy(), np.concatenate([outputs["lam_x"], outputs["lam_a"]]), status, 0)


def _status(said: str) -> QPStatus:
    return next((status for word, status in _FAILURES.items() if word in said.lower()), QPStatus.FAILED)
