"""Array types of laws' arguments: NumPy arrays in Python, the types of netctrl-arrays.h in C++."""

from __future__ import annotations

from typing import Annotated

import numpy as np

__all__ = ["Grid", "Matrix", "Numbers", "Vector", "WholeGrid", "WholeNumbers"]

Vector = Annotated[np.ndarray, "vector"]
"""(k,)"""
Matrix = Annotated[np.ndarray, "matrix"]
"""(k, n)"""

Numbers = Annotated[np.ndarray, "floats"]
"""(k,) that are looked up one by one, and may be changed."""
WholeNumbers = Annotated[np.ndarray, "int64"]
"""(k,)"""
Grid = Annotated[np.ndarray, "floats", 2]
"""(k, n)"""
WholeGrid = Annotated[np.ndarray, "int64", 2]
"""(k, n)"""
