"""Interface of all solver adapters."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from netctrl.mpc.qp.program import QPStatus

__all__ = ["Answer", "Workspace"]


class Answer(NamedTuple):
    """Result of one solve; x and y are valid where `status` is SOLVED."""

    x: np.ndarray
    """(n,)"""
    multipliers: np.ndarray
    """(n + k,), above 0 at an upper bound."""
    status: QPStatus
    iterations: int
    """0 where the solver doesn't report it."""


class Workspace(Protocol):
    """Program set up once, and solved for many g and bounds; H, A and the set of infinite bounds are fixed."""

    def solve(self, g: np.ndarray, lower: np.ndarray, upper: np.ndarray, start: np.ndarray | None = None) -> Answer:
        """Solution for g (n,), lower and upper (n + k,), contiguous writable float64; `start` (n,) may be ignored."""
        ...

    def anew(self, g: np.ndarray, lower: np.ndarray, upper: np.ndarray, start: np.ndarray | None = None) -> Answer:
        """Solution without any kept data, by slower but safer settings, for answers of `solve` that fail the check."""
        ...
