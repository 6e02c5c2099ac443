"""Tables of kernels: named columns, free lists, and growth."""

from __future__ import annotations

import numpy as np


def columns(text: str) -> dict[str, int]:
    """Names, separated by blanks, as columns from 0."""
    return {name: place for place, name in enumerate(text.split())}


def chained(table: np.ndarray, column: int, first: int) -> None:
    """Make a free list of the rows from `first` on."""
    table[first:, column] = np.arange(first + 1, len(table) + 1)
    table[-1, column] = -1


def doubled(table: np.ndarray, least: int = 0) -> np.ndarray:
    """The same rows, followed by as many of zeros or `least`; zeros take no memory until they are written."""
    grown = np.zeros((len(table) + max(len(table), least), *table.shape[1:]), dtype=table.dtype)
    grown[: len(table)] = table
    return grown
