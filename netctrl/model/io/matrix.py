"""Checked matrices, dense or sparse, of a given shape, real and finite."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from netctrl.core.errors import InvalidValue

ROUNDING = 1e-10
"""Relative tolerance for the symmetry and positive semidefiniteness of a covariance."""

Shape = tuple[int | None, int | None]
"""Numbers of rows and columns; None stands for any number."""


def is_sparse(value: object) -> bool:
    """Whether a value is a scipy.sparse matrix."""
    sparse = sys.modules.get("scipy.sparse")  # not imported here: a caller with a sparse matrix has imported it
    return sparse is not None and sparse.issparse(value)


def dense(value: Any) -> np.ndarray:
    """A matrix as a dense array."""
    return value.toarray() if is_sparse(value) else value


def matrix(argument: str, value: Any, shape: Shape = (None, None)) -> Any:
    """A read-only copy: a csr_array of a sparse matrix, else an array.

    Raises
    ------
    InvalidValue
        Another shape, or entries that aren't finite real numbers.
    """
    if is_sparse(value):
        return _sparse(argument, value, shape)
    found = dense_matrix(argument, value, shape)
    found.setflags(write=False)
    return found


def dense_matrix(argument: str, value: Any, shape: Shape = (None, None)) -> np.ndarray:
    """A read-only copy as a dense array.

    Raises
    ------
    InvalidValue
        Another shape, or entries that aren't finite real numbers.
    """
    value = dense(value)
    try:
        if np.iscomplexobj(value):
            raise TypeError("complex entries")
        found = np.array(value, dtype=float, ndmin=2)
    except (AttributeError, OverflowError, TypeError, ValueError):  # ragged lists
        raise InvalidValue(argument, value, _takes(shape)) from None
    if not _fits(shape, found):
        raise InvalidValue(argument, f"shape {found.shape}", _takes(shape))
    if not np.isfinite(found).all():
        raise InvalidValue(argument, "an entry that is not finite", _takes(shape))
    return found


def square_matrix(argument: str, value: Any) -> np.ndarray:
    """`dense_matrix` with as many rows as columns."""
    found = dense_matrix(argument, value)
    if found.shape[0] != found.shape[1]:
        raise InvalidValue(argument, f"shape {found.shape}", "a square matrix")
    return found


def covariance(argument: str, value: Any, size: int, *, below: float = ROUNDING) -> np.ndarray:
    """`dense_matrix` of this size that is symmetric within rounding and positive semidefinite; made symmetric.

    `below`: how far an eigenvalue may lie below 0, relative to the largest entry.
    """
    found = dense_matrix(argument, value, (size, size))
    takes = "a covariance, symmetric and positive semidefinite"
    largest = np.abs(found).max(initial=0.0)
    if np.abs(found - found.T).max(initial=0.0) > ROUNDING * largest:
        raise InvalidValue(argument, "a matrix that isn't symmetric", takes)
    least = float(np.linalg.eigvalsh(found).min(initial=0.0))
    if least < -below * largest:
        raise InvalidValue(argument, f"an eigenvalue of {least:.3g}", takes)
    return 0.5 * (found + found.T)


def _sparse(argument: str, value: Any, shape: Shape) -> Any:
    import scipy.sparse as sp

    if not _fits(shape, value):
        raise InvalidValue(argument, f"shape {value.shape}", _takes(shape))
    if np.iscomplexobj(value):
        raise InvalidValue(argument, "complex entries", _takes(shape))
    found = sp.csr_array(value, dtype=float, copy=True)
    found.sum_duplicates()
    if not np.isfinite(found.data).all():
        raise InvalidValue(argument, "an entry that is not finite", _takes(shape))
    for part in (found.data, found.indices, found.indptr):
        part.setflags(write=False)
    return found


def _fits(shape: Shape, found: Any) -> bool:
    return found.ndim == 2 and all(n is None or n == got for n, got in zip(shape, found.shape, strict=True))


def _takes(shape: Shape) -> str:
    return f"a finite real matrix of shape ({', '.join('any' if n is None else str(n) for n in shape)})"
