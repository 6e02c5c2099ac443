"""Number of threads for BLAS."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache

from threadpoolctl import ThreadpoolController

_WORTH_THREADS = 256
"""Rows of a matrix above which more than one thread is faster."""


def blas_threads(rows: int) -> AbstractContextManager[object]:
    """Limit BLAS to one thread for matrices of few rows; larger ones use as many as the process has.

    Threads don't speed up small matrices, and where another program keeps a core busy they wait for one another: a call
    of microseconds then takes milliseconds.
    """
    return _controller().limit(limits=1, user_api="blas") if rows < _WORTH_THREADS else nullcontext()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
