"""F-tests on compressed signals: an output's dependence on the inputs, and the inputs' dependence on the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from netctrl.ident.subspace.lq_reduction import LqReduction

FEEDBACK_LEVEL = 0.05
"""Of the test of feedback."""
SURE = 0.001
"""Level of the tests of the marks of feedback within the sample."""

_EXACT = 1e-18  # relative to a signal's variance: residual below which it is explained exactly
_RANK = 1e-10  # relative singular value below which regressors are linearly dependent
_DETERMINED = 1e-6  # share of an input's innovation below which the outputs determine it
_LATER = 5  # later inputs in the test of feedback [samples]


class Feedback(NamedTuple):
    """Evidence that the inputs respond to the outputs."""

    chance: float
    """p-value: probability that a trace without feedback would show as much, by Bonferroni's bound over the outputs."""
    determined: tuple[int, ...]
    """Inputs that present and past outputs determine: a law without a reference, or outputs without noise."""
    laws: tuple[int, ...]
    """Inputs that are a reference's noise beside a function of the present outputs."""

    @property
    def found(self) -> bool:
        """Whether the trace shows feedback, at a level of 5 % for the test."""
        return bool(self.determined or self.laws) or self.chance < FEEDBACK_LEVEL

    @property
    def sure(self) -> bool:
        """Whether it does so at a level of .1 %, so that an unstable plant is believed, and no response at once is."""
        return bool(self.determined or self.laws) or self.chance < SURE


def dependence(data: LqReduction) -> np.ndarray:
    """p-values (p,): probability that inputs without influence would explain as much of each output as these do.

    y_t is regressed on y_{t−1}, ..., y_{t−i}, and on these and u_t, ..., u_{t−i} of all inputs, i = horizon.
    With the output's own past the regression's noise is nearly white, whatever the colour of the output's noise.

    Source: Granger 1969; Lütkepohl 2005, section 3.6.
    """
    R, i = data.factor, data.horizon
    inputs = R[:, _inputs(data, range(i + 1))]
    return np.array([_chance(data, R[:, _own(data, k)], inputs, R[:, _now(data, k)]) for k in range(data.n_outputs)])


def feedback(data: LqReduction, inputs: np.ndarray) -> Feedback:
    """Test of whether the innovations of the outputs explain present inputs, as feedback makes them do.

    y_t is regressed on y_{t−1}, ..., y_{t−i} and u_t, ..., u_{t−i}, which leaves its innovation, and on u_{t+1}, ...,
    u_{t+5} in addition: later inputs tell of an innovation only where they respond to it. Given the inputs this is an
    F-test for any signal, periodic or random.

    It doesn't see a law of the present output alone, u_t = r_t − k y_t with white r, around a plant whose noise is
    white: u_t may as well be the cause. Its marks are tested instead (`_is_law`). And a law without a reference, such
    as u = −k y, can't be tested at all, as y is an exact function of u too: an input is `determined` where the outputs
    leave 1e-6 of the variance that the inputs' past leaves. A signal that repeats its values, such as a GBN, is no
    law's: `inputs`, shape (T, m), are its samples.

    Source: Haugh 1976 and Sims 1972 (the hypothesis); Geweke, Meese and Dent 1983 (the regression with y's past).
    """
    R, i, m, p = data.factor, data.horizon, data.n_inputs, data.n_outputs
    known, later = R[:, _inputs(data, range(i + 1))], R[:, _inputs(data, range(i + 1, min(2 * i, i + 1 + _LATER)))]
    chances = [
        _chance(data, np.hstack([R[:, _own(data, k)], known]), later, R[:, _now(data, k)], exact=1.0) for k in range(p)
    ]
    free = [j for j in range(m) if 2 * len(np.unique(inputs[:, j])) > len(inputs)]
    past, outputs = _inputs(data, range(i)), [t * (m + p) + m + k for t in range(i + 1) for k in range(p)]
    determined = []
    for j in free:
        target = R[:, i * (m + p) + j]
        alone = _left(R[:, past], target)
        left = _left(R[:, [*past, *outputs]], target)
        if alone @ alone > _DETERMINED * (target @ target) and left @ left < _DETERMINED * (alone @ alone):
            determined.append(j)
    laws = [j for j in free if j not in determined and _is_law(data, j)]
    return Feedback(min(1.0, p * min(chances)), tuple(determined), tuple(laws))


def instant(data: LqReduction) -> float:
    """Greatest ratio over the outputs of what the past leaves of y_t and what the past and u_t leave."""
    R, i, m = data.factor, data.horizon, data.n_inputs
    now = i * (m + data.n_outputs)
    ratios = [1.0]
    for k in range(data.n_outputs):
        y = R[:, _now(data, k)]
        with_u, without = (_left(R[:, :end], y) for end in (now + m, now))
        ratios.append(float(without @ without / max(with_u @ with_u, _EXACT * (y @ y))))
    return max(ratios)


def _is_law(data: LqReduction, j: int) -> bool:
    """Whether input j is white noise beside a function of the present outputs, u_t = r_t − k y_t.

    With ŷ_t and y_t − ŷ_t of the past alone: ŷ_t explains u_t; the past explains nothing more of it, as it would of
    an input with dynamics of its own; and y_t − ŷ_t explains it too. So it is with y_t = D u_t + e_t, where ŷ_t tells
    nothing of y_t once u_t is known, as it does under a law.
    """
    R, i, m, p = data.factor, data.horizon, data.n_inputs, data.n_outputs
    now = i * (m + p)
    past, u, Y = R[:, :now], R[:, now + j], R[:, now + m : now + m + p]
    basis = _basis(past)
    told = basis @ (basis.T @ Y)
    return (
        _chance(data, past[:, :0], told, u) < SURE
        and _chance(data, told, past, u) > SURE
        and _chance(data, past, Y - told, u) < SURE
        and _tells(data, j) < FEEDBACK_LEVEL
    )


def _tells(data: LqReduction, j: int) -> float:
    """p-value: probability that ŷ_t tells as much of y_t beside u_t by chance; ŷ_t is from the other half's pieces.

    From its own half's it would contain some of y_t's noise. Bonferroni's bound over halves and outputs.
    """
    m, p = data.n_inputs, data.n_outputs
    now, odd = data.horizon * (m + p), np.arange(len(data.columns)) % 2
    chances = [1.0]
    for half in (0, 1):
        there, other = odd == half, odd != half
        count = float(there @ data.columns)
        if min(count, float(other @ data.columns)) > 2 * now:
            R, learned = data.drawn(there * 1.0), data.drawn(other * 1.0)
            theta = np.linalg.lstsq(learned[:, :now], learned[:, now + m : now + m + p], rcond=1e-12)[0]
            told, u, Y = R[:, :now] @ theta, R[:, now + j : now + j + 1], R[:, now + m : now + m + p]
            chances += [2 * p * _chance(data, u, told, y, columns=count) for y in Y.T]
    return min(chances)


def _own(data: LqReduction, k: int) -> list[int]:
    """Columns of an output's own past."""
    return [t * (data.n_inputs + data.n_outputs) + data.n_inputs + k for t in range(data.horizon)]


def _now(data: LqReduction, k: int) -> int:
    """Column of a present output."""
    return data.horizon * (data.n_inputs + data.n_outputs) + data.n_inputs + k


def _inputs(data: LqReduction, times: Sequence[int]) -> list[int]:
    return [t * (data.n_inputs + data.n_outputs) + j for t in times for j in range(data.n_inputs)]


def _chance(
    data: LqReduction,
    known: np.ndarray,
    tested: np.ndarray,
    target: np.ndarray,
    *,
    exact: float = 0.0,
    columns: float | None = None,
) -> float:
    """p-value of the F-test that `tested` columns explain nothing of the target beyond the `known` ones; `exact` where
    these explain all of it."""
    from scipy.special import fdtrc

    without, whole = _basis(known), _basis(np.hstack([known, tested]))
    alone, left = target - without @ (without.T @ target), target - whole @ (whole.T @ target)
    many, free = whole.shape[1] - without.shape[1], float(columns or data.columns.sum()) - 1.0 - whole.shape[1]
    if many <= 0 or free <= 0.0:
        return 1.0
    told = alone @ alone - left @ left
    if alone @ alone <= _EXACT * (target @ target):
        return exact
    return float(fdtrc(many, free, max(told, 0.0) / many / (left @ left / free))) if left.any() else 0.0


def _left(columns: np.ndarray, target: np.ndarray) -> np.ndarray:
    basis = _basis(columns)
    return target - basis @ (basis.T @ target)


def _basis(columns: np.ndarray) -> np.ndarray:
    """Orthonormal basis of the columns' range; dependent columns, as a law's inputs are, add nothing."""
    if not columns.shape[1]:
        return columns
    U, s, _ = np.linalg.svd(columns, full_matrices=False)
    return U[:, s > _RANK * s[0]]
