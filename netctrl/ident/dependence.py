"""F-test of an output's dependence on the inputs, beyond what its own past explains."""

from __future__ import annotations

import numpy as np

from netctrl.ident.subspace.lq_reduction import LqReduction, triangular

__all__ = ["dependence"]

_EXACT = 1e-18  # relative to an output's variance: residual of its own past below which it is exact


def dependence(data: LqReduction) -> np.ndarray:
    """p-values (p,): probability that inputs without influence would explain as much of each output as these do.

    y_t is regressed on y_{t−1}, ..., y_{t−i}, and on these and u_t, ..., u_{t−i} of all inputs, i = horizon.
    With the output's own past the regression's noise is nearly white, whatever the colour of the output's noise.

    Source: Granger 1969; Lütkepohl 2005, section 3.6.
    """
    i, m, p = data.horizon, data.n_inputs, data.n_outputs
    q, N = m + p, float(data.columns.sum())
    inputs = [t * q + j for t in range(i + 1) for j in range(m)]
    found = np.zeros(p)
    for k in range(p):
        own = [t * q + m + k for t in range(i)]
        last = triangular(data.factor[:, [*own, *inputs, i * q + m + k]])[:, -1] ** 2
        told, left, free = last[i:-1].sum(), last[-1], N - 1.0 - i - len(inputs)
        if told + left > _EXACT * last.sum() and free > 0.0:
            found[k] = _above(told / len(inputs), left / free, len(inputs), free)
    return found


def _above(told: float, left: float, many: int, free: float) -> float:
    from scipy.special import fdtrc

    return float(fdtrc(many, free, told / left)) if left > 0.0 else 0.0
