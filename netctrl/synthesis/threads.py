"""How many threads BLAS may take."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache

from threadpoolctl import ThreadpoolController

__all__ = ["blas_threads"]

_WORTH_THREADS = 256
"""Rows of a matrix from which on more than one thread pays."""


def blas_threads(rows: int) -> AbstractContextManager[object]:
    """One thread while matrices of so few rows are worked on, else as many as the process has.

    Threads gain nothing there, and where another program keeps a core busy they wait for one another: a call of
    microseconds then takes milliseconds.
    """
    return _controller().limit(limits=1, user_api="blas") if rows < _WORTH_THREADS else nullcontext()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
