"""Linear state-space models, discrete or continuous."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from netctrl.core.errors import InvalidValue, checked_number, optional_import
from netctrl.model.io.display import Rows, Shown
from netctrl.model.io.matrix import dense, is_sparse, matrix

if TYPE_CHECKING:
    import control
    import pandas as pd

_MAX_SHOWN = 500  # largest number of states for which a notebook shows poles


def _same(one: Any, other: Any) -> bool:
    if is_sparse(one) and is_sparse(other):
        return one.shape == other.shape and (one != other).nnz == 0
    return np.array_equal(dense(one), dense(other))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StateSpace(Shown):
    """A linear state-space model in continuous or discrete time.

        x' = A x + B u,  y = C x + D u

    x' is dx/dt when `dt` is 0, else x one sample of `dt` seconds later.

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

    Examples
    --------
    A discrete first-order lag with a steady-state gain of 2.5:

    >>> import netctrl
    >>> plant = netctrl.StateSpace([[0.8]], [[0.5]], [[1.0]], dt=0.1)
    >>> plant.n_states, round(float(plant.steady_gain()[0, 0]), 3)
    (1, 2.5)
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
        D = matrix("D", (type(C)(shape) if is_sparse(C) else np.zeros(shape)) if self.D is None else self.D, shape)
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
        return StateSpace, (*self._matrices(), self.dt)  # a copy is rebuilt, so checked and read-only

    __hash__ = None

    def _matrices(self) -> tuple[np.ndarray, ...]:
        return self.A, self.B, self.C, self.D

    @property
    def n_states(self) -> int:
        """Number of states, n."""
        return self.A.shape[0]

    @property
    def n_inputs(self) -> int:
        """Number of inputs, m."""
        return self.B.shape[1]

    @property
    def n_outputs(self) -> int:
        """Number of outputs, p."""
        return self.C.shape[0]

    def steady_gain(self) -> np.ndarray:
        """Steady-state gain in discrete time: steady outputs for a constant unit of each input.

            G = C (I − A)⁻¹ B + D

        Returns
        -------
        ndarray, shape (p, m)

        Raises
        ------
        numpy.linalg.LinAlgError
            The model has a pole at 1.
        """
        A, B, C, D = map(dense, self._matrices())
        return C @ np.linalg.solve(np.eye(self.n_states) - A, B) + D

    @classmethod
    def from_control(cls, system: control.StateSpace) -> StateSpace:
        """Convert a python-control StateSpace to a netctrl StateSpace.

        Parameters
        ----------
        system : control.StateSpace
            System with a sampling interval in seconds, or 0: `dt=None` and `dt=True` are refused.

        Returns
        -------
        StateSpace

        Raises
        ------
        InvalidValue
            Another type, or no sampling interval in seconds.
        """
        with optional_import():
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
        """The same matrices and sampling interval as a python-control StateSpace."""
        with optional_import():
            import control

        return control.ss(*map(dense, self._matrices()), self.dt)

    def to_pandas(self) -> pd.DataFrame:
        """The matrix [[A, B], [C, D]] as a DataFrame with names of states, inputs and outputs."""
        with optional_import():
            import pandas as pd

        A, B, C, D = map(dense, self._matrices())
        states = [f"x{i}" for i in range(self.n_states)]
        inputs = [f"u{i}" for i in range(self.n_inputs)]
        outputs = [f"y{i}" for i in range(self.n_outputs)]
        return pd.DataFrame(np.block([[A, B], [C, D]]), index=states + outputs, columns=states + inputs)

    def _shown(self) -> Rows:
        time = "continuous time" if self.dt == 0 else f"dt = {self.dt:g} s"
        rows = [("states, inputs, outputs", f"{self.n_states}, {self.n_inputs}, {self.n_outputs}"), ("time", time)]
        if 0 < self.n_states <= _MAX_SHOWN:
            poles = ", ".join(f"{p:.6g}" for p in np.linalg.eigvals(dense(self.A))[:8])
            rows.append(("poles", poles + (", …" if self.n_states > 8 else "")))
        return "StateSpace", rows
