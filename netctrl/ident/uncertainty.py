"""How sure the poles are: those of a block bootstrap over pieces of the trace."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from netctrl.errors import InvalidValue
from netctrl.ident.compress import Compressed
from netctrl.ident.subspace import shift, subspace

__all__ = ["bootstrap_poles"]

_LEAST_PIECES = 8


def bootstrap_poles(
    data: Compressed, method: str, order: int, draws: int, random: np.random.Generator, around: np.ndarray
) -> np.ndarray:
    """(draws, order) poles of the subspace step on pieces drawn with replacement, each column near one of `around`.

    The pieces are long beside the plant's memory, so that dependence between them counts little. Refinement and guard
    aren't repeated on the draws: the cloud is that of the subspace's poles, moved so that its middle is `around`.

    Raises
    ------
    InvalidValue
        The trace is in fewer than 8 pieces.

    Source: Künsch 1989 (block bootstrap); Bittanti and Lovera 2000 (of subspace models).
    """
    F = len(data.columns)
    if F < _LEAST_PIECES:
        takes = f"at least {_LEAST_PIECES}, each 4 horizon (m + p) samples long: a longer trace, a shorter"
        raise InvalidValue("bootstrap", f"a trace of {F} pieces", f"{takes} horizon, or bootstrap=0")
    own = _matched(_poles(data, method, order, None), around)
    found = np.empty((draws, order), dtype=complex)
    for k, weights in enumerate(random.multinomial(F, np.full(F, 1.0 / F), size=draws)):
        found[k] = _matched(_poles(data, method, order, weights), own)
    return found - own + around


def _poles(data: Compressed, method: str, order: int, weights: np.ndarray | None) -> np.ndarray:
    found = subspace(data, method, data.total(weights))
    return np.linalg.eigvals(shift(found.gamma(order), data.n_outputs))


def _matched(poles: np.ndarray, around: np.ndarray) -> np.ndarray:
    """In the order of `around`: least sum of squared distances."""
    _, order = linear_sum_assignment(np.abs(around[:, None] - poles[None, :]) ** 2)
    return poles[order]
