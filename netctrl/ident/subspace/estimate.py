"""Stable candidates for A and C from a subspace.

No method from Γ to A and C is best on all data: the shift of Γ, the regression of states and the closed shift are each
best on some, and the first two may be unstable.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from netctrl.ident.subspace.methods import Subspace, shift, states_regressed

INSIDE = 1.0 - 1e-9
"""Greatest modulus of a stable pole."""
_CIRCLES = 0.999, 0.99999  # radii to which poles from outside are moved


def stable_versions(A: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """A where it is stable; otherwise A with unstable poles mirrored, and with them moved just inside the circle.

    Each pole gets a circle of its own, as one output observes only one of two modes with the same pole.
    """
    values, vectors = np.linalg.eig(A)
    outside = np.abs(values) >= INSIDE
    if not outside.any():
        yield "", A
        return
    if np.linalg.cond(vectors) < 1e10:
        size = np.maximum(np.abs(values), 1.0 / _CIRCLES[0])
        ways = [("mirrored", values / size**2)]
        moduli = np.round(np.abs(values), 12)
        place = np.searchsorted(np.unique(moduli[outside]), moduli) + 1.0
        unit = values / np.maximum(np.abs(values), 1e-9)
        ways += [("moved inside", unit * (1.0 - (1.0 - radius) * place)) for radius in _CIRCLES]
        for said, moved in ways:
            yield said, (vectors * np.where(outside, moved, values) @ np.linalg.inv(vectors)).real


def candidates(found: Subspace, order: int, feedthrough: bool) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """(action of the stability guard, A, C) by each way from the subspace to them."""
    gamma, p = found.gamma(order), found.n_outputs
    raw, closed, C = shift(gamma, p), shift(gamma, p, closed=True), gamma[:p]
    made = [*((said, A, C) for said, A in stable_versions(raw)), ("closed shift", closed, C)]
    for with_u in (True, False) if feedthrough else (False,):
        A, other = states_regressed(found, order, with_u)
        made += [(said, version, other) for said, version in stable_versions(A)]
    return made
