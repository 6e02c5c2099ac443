"""Uncertainty of the poles, by a block bootstrap over pieces of the trace."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from netctrl.ident.subspace.lq_reduction import LqReduction
from netctrl.ident.subspace.methods import shift, subspace

__all__ = ["bootstrap_poles"]

_MIN_PIECES = 8


def bootstrap_poles(
    data: LqReduction, method: str, order: int, draws: int, random: np.random.Generator, around: np.ndarray
) -> np.ndarray | None:
    """Poles (draws, order) of the subspace step on pieces drawn with replacement, each column near one of `around`.

    None where a trace has fewer than 8 pieces of 4 horizon (m + p) samples. The pieces are long compared with the
    plant's memory, so dependence between them matters little. Refinement and guard aren't repeated on the draws: the
    cloud is that of the subspace's poles, shifted so that its centre is `around`.

    Source: Künsch 1989 (block bootstrap); Bittanti and Lovera 2000 (of subspace models).
    """
    F = len(data.columns)
    if F < _MIN_PIECES:
        return None
    own = _matched(_poles(data, method, order, None), around)
    found = np.empty((draws, order), dtype=complex)
    for k, weights in enumerate(random.multinomial(F, np.full(F, 1.0 / F), size=draws)):
        found[k] = _matched(_poles(data, method, order, weights), own)
    return found - own + around


def _poles(data: LqReduction, method: str, order: int, weights: np.ndarray | None) -> np.ndarray:
    found = subspace(data, method, None if weights is None else data.drawn(weights))
    return np.linalg.eigvals(shift(found.gamma(order), data.n_outputs))


def _matched(poles: np.ndarray, around: np.ndarray) -> np.ndarray:
    """Poles in the order of `around`, by the least sum of squared distances."""
    _, order = linear_sum_assignment(np.abs(around[:, None] - poles[None, :]) ** 2)
    return poles[order]
