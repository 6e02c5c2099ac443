"""What all adapters return, take and say when their solver is missing."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from netctrl.errors import InvalidValue
from netctrl.mpc.qp.program import QPStatus

__all__ = ["Answer", "Workspace", "missing"]


class Answer(NamedTuple):
    """Of one solve; x and y mean something where `status` is SOLVED."""

    x: np.ndarray
    """(n,)"""
    multipliers: np.ndarray
    """(n + k,), above 0 at an upper bound."""
    status: QPStatus
    iterations: int
    """0 where the solver doesn't tell."""


class Workspace(Protocol):
    """A program that is set up once, and solved for many g and bounds; H, A and which bounds are infinite stay."""

    def solve(self, g: np.ndarray, lower: np.ndarray, upper: np.ndarray, start: np.ndarray | None = None) -> Answer:
        """g (n,), lower and upper (n + k,), contiguous and writable float64; the guess `start` (n,) may be ignored."""
        ...

    def anew(self, g: np.ndarray, lower: np.ndarray, upper: np.ndarray, start: np.ndarray | None = None) -> Answer:
        """The same from nothing that was kept, and slower but surer: for when `solve`'s answer didn't stand a check."""
        ...


def missing(solver: str, package: str, how: str) -> InvalidValue:
    """The error where a solver isn't installed."""
    takes = f"a solver that is installed; {solver} needs {package}: {how}"
    return InvalidValue("solver", solver, takes)
