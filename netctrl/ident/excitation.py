"""Order of persistent excitation of the inputs, and the inputs that excite too little."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from netctrl.errors import InvalidValue
from netctrl.ident.subspace.lq_reduction import LqReduction

__all__ = ["check_excitation", "excitation"]

_NOTHING = 1e-7  # relative to the greatest singular value: rounding of the measurements
_WEAK = 0.03
_REMEDY = "a GBN or a multisine (netctrl.ident.excite), with each input on its own"


def excitation(data: LqReduction, inputs: Sequence[int] | None = None, *, least: float = _NOTHING) -> int:
    """Order of persistent excitation of some inputs together (by default all), at most twice the horizon.

    It is the greatest k for which k successive samples have a covariance matrix of full rank: the least singular value
    of their block Hankel matrix exceeds `least` times the greatest.
    """
    m, q = data.n_inputs, data.n_inputs + data.n_outputs
    chosen = range(m) if inputs is None else inputs
    R = data.factor

    def full(k: int) -> bool:
        s = np.linalg.svd(R[:, [t * q + j for t in range(k) for j in chosen]], compute_uv=False)
        return bool(s[-1] > least * s[0])

    low, high = 0, 2 * data.horizon
    while low < high:  # an order of excitation implies all lower ones
        middle = -(-(low + high) // 2)
        low, high = (middle, high) if full(middle) else (low, middle - 1)
    return low


def check_excitation(data: LqReduction, names: Sequence[str], order: int) -> list[str]:
    """Warnings about inputs with too little excitation.

    Raises
    ------
    InvalidValue
        The order of excitation is below order + 1, so that any model would fit.
    """
    most, needed = 2 * data.horizon, order + 1
    found = excitation(data)
    if found >= most:
        if excitation(data, least=_WEAK) < needed:
            said = f"{_named(data, names, _WEAK, needed)} hardly"
            return [f"{said} above order {excitation(data, least=_WEAK)}: fast poles are uncertain; better {_REMEDY}"]
        return []
    said = f"{_named(data, names, _NOTHING, most)} only up to order {found}"
    if found < needed:
        raise InvalidValue("inputs", said, f"inputs that excite order {needed} at least: {_REMEDY}")
    return [f"{said}, below {most}, twice the horizon: better {_REMEDY}, or a shorter horizon"]


def _named(data: LqReduction, names: Sequence[str], least: float, needed: int) -> str:
    poor = [name for j, name in enumerate(names) if excitation(data, [j], least=least) < needed]
    return f"{', '.join(poor)}: excites" if poor else f"{', '.join(names)}: move together, excite"
