"""Linear state-space models, discrete or continuous."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from netctrl.errors import InvalidValue, checked_number
from netctrl.model.io.display import html_table
from netctrl.model.io.matrix import dense, is_sparse, matrix

if TYPE_CHECKING:
    import control
    import pandas as pd

__all__ = ["StateSpace"]

_MAX_SHOWN = 500  # states whose poles are computed for a notebook


def _zeros(shape: tuple[int, int], like: Any) -> Any:
    return type(like)(shape) if is_sparse(like) else np.zeros(shape)


def _same(one: Any, other: Any) -> bool:
    if is_sparse(one) and is_sparse(other):
        return one.shape == other.shape and (one != other).nnz == 0
    return np.array_equal(dense(one), dense(other))


@dataclass(frozen=True, slots=True, eq=False)
class StateSpace:
    """x' = A x + B u, y = C x + D u; x' is dx/dt when `dt` is 0, else x one sample of `dt` seconds later.

    Parameters
    ----------
    A, B, C, D : array_like, shapes (n, n), (n, m), (p, n), (p, m)
        Real and finite; copied and made read-only. A scipy.sparse matrix stays sparse, as a csr_array. D defaults to
        zeros. For one input, B may be a list of n single-entry rows.
    dt : float
        0 for continuous time, else the sampling interval [s] (python-control's meaning, without its "unspecified").

    Raises
    ------
    InvalidValue
        A shape that doesn't fit, an entry that isn't finite, a negative dt.
    """

    A: Any
    B: Any
    C: Any
    D: Any = None
    dt: float = 0.0

    def __post_init__(self) -> None:
        A = matrix("A", self.A)
        A = matrix("A", A, (A.shape[0], A.shape[0]))
        n = A.shape[0]
        B = matrix("B", self.B, (n, None))
        C = matrix("C", self.C, (None, n))
        shape = (C.shape[0], B.shape[1])
        D = matrix("D", _zeros(shape, like=C) if self.D is None else self.D, shape)
        dt = checked_number(
            "dt", self.dt, "0 (continuous time) or a sampling interval above 0 in seconds", at_least=0.0
        )
        for name, value in zip(("A", "B", "C", "D", "dt"), (A, B, C, D, dt), strict=True):
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StateSpace):
            return NotImplemented
        pairs = zip(self._matrices(), other._matrices(), strict=True)
        return self.dt == other.dt and all(_same(a, b) for a, b in pairs)

    def __reduce__(self) -> tuple[type, tuple[np.ndarray | float, ...]]:
        return StateSpace, (*self._matrices(), self.dt)  # a copy is built, so checked and read-only, again

    __hash__ = None

    def _matrices(self) -> tuple[np.ndarray, ...]:
        return self.A, self.B, self.C, self.D

    @property
    def n_states(self) -> int:
        """Number of states n."""
        return self.A.shape[0]

    @property
    def n_inputs(self) -> int:
        """Number of inputs m."""
        return self.B.shape[1]

    @property
    def n_outputs(self) -> int:
        """Number of outputs p."""
        return self.C.shape[0]

    def steady_gain(self) -> np.ndarray:
        """Outputs that a constant unit of each input settles at in discrete time, C (I − A)⁻¹ B + D, shape (p, m).

        numpy.linalg.LinAlgError where a pole is 1.
        """
        A, B, C, D = map(dense, self._matrices())
        return C @ np.linalg.solve(np.eye(self.n_states) - A, B) + D

    @classmethod
    def from_control(cls, system: control.StateSpace) -> StateSpace:
        """From a python-control StateSpace. `dt=None` or `dt=True` (no sampling time in seconds) is refused."""
        import control

        if not isinstance(system, control.StateSpace):
            raise InvalidValue("system", type(system).__name__, "a python-control StateSpace (control.ss makes one)")
        if system.dt is None or system.dt is True:
            raise InvalidValue(
                "system.dt", system.dt, "0 or a sampling interval in seconds; set it on the system first"
            )
        A, B, C, D = (np.asarray(matrix) for matrix in (system.A, system.B, system.C, system.D))
        return cls(A, B, C, D, float(system.dt))

    def to_control(self) -> control.StateSpace:
        """As a python-control StateSpace with the same matrices and the same dt."""
        import control

        return control.ss(*map(dense, self._matrices()), self.dt)

    def to_pandas(self) -> pd.DataFrame:
        """The matrix [[A, B], [C, D]] as a DataFrame whose labels name states, inputs and outputs."""
        import pandas as pd

        A, B, C, D = map(dense, self._matrices())
        states = [f"x{i}" for i in range(self.n_states)]
        inputs = [f"u{i}" for i in range(self.n_inputs)]
        outputs = [f"y{i}" for i in range(self.n_outputs)]
        return pd.DataFrame(np.block([[A, B], [C, D]]), index=states + outputs, columns=states + inputs)

    def _repr_html_(self) -> str:
        time = "continuous time" if self.dt == 0 else f"dt = {self.dt:g} s"
        rows = [
            ("states, inputs, outputs", f"{self.n_states}, {self.n_inputs}, {self.n_outputs}"),
            ("time", time),
        ]
        if 0 < self.n_states <= _MAX_SHOWN:
            poles = ", ".join(f"{p:.6g}" for p in np.linalg.eigvals(dense(self.A))[:8])
            rows.append(("poles", poles + (", …" if self.n_states > 8 else "")))
        return html_table("StateSpace", rows)
