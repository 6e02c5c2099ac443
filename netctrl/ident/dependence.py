"""F-tests of an output's dependence on the inputs, and of the inputs' dependence on the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from netctrl.ident.subspace.lq_reduction import LqReduction

FEEDBACK_LEVEL = 0.001  # of the test of feedback

_EXACT = 1e-18  # relative to an output's variance: residual of its own past below which it is exact
_RANK = 1e-10  # relative singular value below which regressors are linearly dependent
_DETERMINED = 1e-6  # share of an input's innovation below which the outputs determine it
_LATER = 5  # later inputs in the test of feedback [samples]


class Feedback(NamedTuple):
    """Evidence that the inputs respond to the outputs."""

    chance: float
    """p-value: probability that a trace without feedback would show as much, by Bonferroni's bound over the outputs."""
    determined: tuple[int, ...]
    """Inputs that present and past outputs determine: a law without a reference, or outputs without noise."""

    @property
    def found(self) -> bool:
        """Whether the trace shows feedback, at a level of 0.1 % for the test."""
        return bool(self.determined) or self.chance < FEEDBACK_LEVEL


def dependence(data: LqReduction) -> np.ndarray:
    """p-values (p,): probability that inputs without influence would explain as much of each output as these do.

    y_t is regressed on y_{t−1}, ..., y_{t−i}, and on these and u_t, ..., u_{t−i} of all inputs, i = horizon.
    With the output's own past the regression's noise is nearly white, whatever the colour of the output's noise.

    Source: Granger 1969; Lütkepohl 2005, section 3.6.
    """
    i, m = data.horizon, data.n_inputs
    inputs = _inputs(data, range(i + 1))
    return np.array([_chance(data, _own(data, k), inputs, i * (m + data.n_outputs) + m + k) for k in _outputs(data)])


def feedback(data: LqReduction, inputs: np.ndarray, feedthrough: bool) -> Feedback:
    """Test of whether the past innovations of the outputs explain present inputs, as feedback makes them do.

    y_t is regressed on y_{t−1}, ..., y_{t−i} and u_t, ..., u_{t−i}, which leaves its innovation, and on u_{t+1}, ...,
    u_{t+5} in addition: later inputs tell of an innovation only where they respond to it. Given the inputs this is an
    F-test for any signal, periodic or random. Without feedthrough u_t is among the tested inputs.

    A law without a reference, such as u = −k y, can't be tested so: y is an exact function of u too. An input is
    `determined` where the outputs leave 1e-6 of the variance that the inputs' past leaves. A signal that repeats its
    values, such as a GBN, is no law's: `inputs`, shape (T, m), are its samples.

    Source: Haugh 1976 and Sims 1972 (the hypothesis); Geweke, Meese and Dent 1983 (the regression with y's past).
    """
    i, m, p = data.horizon, data.n_inputs, data.n_outputs
    q = m + p
    known = _inputs(data, range(i + feedthrough))
    later = _inputs(data, range(i + feedthrough, min(2 * i, i + 1 + _LATER)))
    chances = [_chance(data, [*_own(data, k), *known], later, i * q + m + k, exact=1.0) for k in _outputs(data)]
    past, outputs = _inputs(data, range(i)), [t * q + m + k for t in range(i + 1) for k in range(p)]
    determined = []
    for j in (j for j in range(m) if 2 * len(np.unique(inputs[:, j])) > len(inputs)):
        target = data.factor[:, i * q + j]
        alone = _left(data.factor[:, past], target)
        left = _left(data.factor[:, [*past, *outputs]], target)
        if alone @ alone > _DETERMINED * (target @ target) and left @ left < _DETERMINED * (alone @ alone):
            determined.append(j)
    return Feedback(min(1.0, p * min(chances)), tuple(determined))


def _outputs(data: LqReduction) -> range:
    return range(data.n_outputs)


def _own(data: LqReduction, k: int) -> list[int]:
    """Columns of an output's own past."""
    return [t * (data.n_inputs + data.n_outputs) + data.n_inputs + k for t in range(data.horizon)]


def _inputs(data: LqReduction, times: range) -> list[int]:
    return [t * (data.n_inputs + data.n_outputs) + j for t in times for j in range(data.n_inputs)]


def _chance(
    data: LqReduction, known: Sequence[int], tested: Sequence[int], target: int, *, exact: float = 0.0
) -> float:
    """p-value of the F-test that `tested` columns explain nothing of the target beyond the `known` ones; `exact` where
    these explain all of it."""
    from scipy.special import fdtrc

    R, y = data.factor, data.factor[:, target]
    without, whole = _basis(R[:, known]), _basis(R[:, [*known, *tested]])
    alone, left = y - without @ (without.T @ y), y - whole @ (whole.T @ y)
    many, free = whole.shape[1] - without.shape[1], float(data.columns.sum()) - 1.0 - whole.shape[1]
    if many <= 0 or free <= 0.0:
        return 1.0
    told = alone @ alone - left @ left
    if alone @ alone <= _EXACT * (y @ y):
        return exact
    return float(fdtrc(many, free, max(told, 0.0) / many / (left @ left / free))) if left.any() else 0.0


def _left(columns: np.ndarray, target: np.ndarray) -> np.ndarray:
    basis = _basis(columns)
    return target - basis @ (basis.T @ target)


def _basis(columns: np.ndarray) -> np.ndarray:
    """Orthonormal basis of the columns' range; dependent columns, as a law's inputs are, add nothing."""
    U, s, _ = np.linalg.svd(columns, full_matrices=False)
    return U[:, s > _RANK * s[0]]
