"""Conflicting bounds of an infeasible program, and the size of the conflict."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.errors import checked_kind
from netctrl.mpc.qp.program import QuadraticProgram

__all__ = ["Conflict", "conflict"]

_ZERO = 1e-9
_MAX_SAID = 6


class Conflict(NamedTuple):
    """Bounds that can't all hold; dropping any one of them removes the conflict."""

    names: tuple[str, ...]
    """Names of the bounds, with "lower" or "upper"; the bound that needs the least widening comes first."""
    shortfall: np.ndarray
    """Widening of each bound that alone would remove the conflict [the program's `units`; an MPC's are its plant's]."""

    @property
    def message(self) -> str:
        """The conflict in words, with the remedy."""
        if len(self.names) == 1:
            return f"the program is infeasible: {self.names[0]} can't hold; widen it"
        said = [f"{name} (off by {by:.4g})" for name, by in zip(self.names, self.shortfall, strict=True)][:_MAX_SAID]
        more = len(self.names) - len(said)
        listed = "; ".join(said) + (f"; and {more} more" if more else "")
        return (
            f"the program is infeasible: these bounds can't all hold: {listed}. Widen one of them by its amount, or "
            "make a state's bound soft (soft_weight)"
        )


def conflict(program: QuadraticProgram) -> Conflict | None:
    """Minimal set of bounds that no x meets; None where some x meets all.

    By Farkas' lemma there is no x with G x ≤ h iff there is y ≥ 0 with G'y = 0, h'y = −1, and the vertices of this set
    are the minimal conflicts. Bound i of a conflict is violated by at least 1/y_i where all others hold.

    Source: Gleeson, Ryan, ORSA J. Computing 2 (1990) 61-63.
    """
    import scipy.sparse as sp
    from scipy.optimize import linprog

    n = checked_kind("program", program, QuadraticProgram).n_variables
    rows = sp.vstack([sp.eye_array(n), sp.csr_array(program.A)], format="csr")
    high, low = (np.flatnonzero(np.isfinite(bound)) for bound in (program.upper, program.lower))
    G = sp.vstack([rows[high], -rows[low]], format="csr")
    h = np.concatenate([program.upper[high], -program.lower[low]])
    # With rows of equal length the least sum of y gives the worst conflict in these units.
    length = np.sqrt(np.asarray(G.multiply(G).sum(axis=1)).ravel())
    length[length == 0.0] = 1.0
    farkas = sp.vstack([(sp.diags_array(1.0 / length) @ G).T, sp.csr_array((h / length)[None, :])], format="csc")
    right = np.zeros(n + 1)
    right[-1] = -1.0
    found = linprog(np.ones(len(h)), A_eq=farkas, b_eq=right, bounds=(0.0, None), method="highs-ds")
    if found.status != 0:
        return None
    y = found.x / length
    chosen = np.flatnonzero(found.x > _ZERO * found.x.max())
    chosen = chosen[np.argsort(-y[chosen], kind="stable")]
    of, sides = np.concatenate([high, low]), np.repeat(["upper", "lower"], [len(high), len(low)])
    names = tuple(f"{program.names[of[i]]}, {sides[i]}" for i in chosen)
    return Conflict(names, program.units[of[chosen]] / y[chosen])
