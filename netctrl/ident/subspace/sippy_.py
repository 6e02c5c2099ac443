"""SIPPY's subspace methods behind guards, as a second opinion.

SIPPY 1.0 has these problems. An unknown method ends the process. An order that isn't an int gives a zero model, and one
above the horizon is reduced silently. PARSIM with different horizons is wrong. Centring offsets are lost. It prints,
and it may change its caller's arrays. A constant channel or NaN fails inside NumPy. K may be an empty list.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from netctrl.core.errors import InvalidValue, NetctrlError, optional_import
from netctrl.ident.subspace.lq_reduction import Segment

SIPPY_METHODS = {"sippy-n4sid": "N4SID", "sippy-moesp": "MOESP", "sippy-cva": "CVA", "sippy-parsim-k": "PARSIM-K"}

Matrices = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def by_sippy(
    segments: Sequence[Segment], method: str, order: int, horizon: int, feedthrough: bool
) -> tuple[Matrices, np.ndarray | None]:
    """A, B, C, D by a method of SIPPY_METHODS from centred and scaled data, and K where it gives one.

    Raises
    ------
    InvalidValue
        Several segments, or an order above the horizon.
    NetctrlError
        SIPPY fails, or gives a model that isn't finite.
    """
    if len(segments) > 1:
        takes = "one segment for SIPPY's methods; n4sid, moesp and cva take several"
        raise InvalidValue("segments", len(segments), takes)
    if order > horizon:
        raise InvalidValue("order", order, f"at most the horizon, {horizon}: a lower order or a longer horizon")
    with optional_import():
        from sippy_unipi import system_identification
    u, y = (np.array(signal.T, order="C") for signal in segments[0])
    options = {"SS_f": int(horizon), "SS_p": int(horizon), "SS_fixed_order": int(order), "SS_D_required": feedthrough}
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = system_identification(y, u, SIPPY_METHODS[method], tsample=1.0, **options)
    except SystemExit as error:
        raise _failed(method, f"{error} {said.getvalue()}") from None
    except (ArithmeticError, LookupError, TypeError, ValueError, np.linalg.LinAlgError) as error:
        raise _failed(method, str(error)) from None
    m, p = len(u), len(y)
    shapes = {"A": (order, order), "B": (order, m), "C": (p, order), "D": (p, m)}
    matrices = [np.array(getattr(found, name), dtype=float, order="C") for name in shapes]
    fit = all(each.shape == shape for each, shape in zip(matrices, shapes.values(), strict=True))
    if not fit or not all(np.isfinite(each).all() for each in matrices):
        raise _failed(method, "its model isn't finite, or has another order")
    A, B, C, D = matrices
    return (A, B, C, D), _gain(found.K, A, C)


def _gain(K: Any, A: np.ndarray, C: np.ndarray) -> np.ndarray | None:
    """K where it gives a stable filter; on data without noise SIPPY's K is meaningless."""
    found = np.array(K, dtype=float) if np.size(K) else np.zeros((0, 0))
    if found.shape != C.T.shape or not np.isfinite(found).all():
        return None
    return found if np.abs(np.linalg.eigvals(A - found @ C)).max() < 1.0 else None


def _failed(method: str, why: str) -> NetctrlError:
    shown = " ".join(why.split())[:200]
    return NetctrlError(f"{method} failed inside SIPPY: {shown}; try n4sid, moesp or cva, or another horizon")
