"""Types of what a law of vectors and matrices takes: arrays for Python, in C++ the types of netctrl-matrix.h."""

from __future__ import annotations

from typing import Annotated

import numpy as np

__all__ = ["Matrix", "Vector"]

Vector = Annotated[np.ndarray, "vector"]
"""(k,)"""
Matrix = Annotated[np.ndarray, "matrix"]
"""(k, n)"""
