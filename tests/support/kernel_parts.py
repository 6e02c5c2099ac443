"""Parts of kernels, which only compiled code calls (`netctrl.core.jit.INSIDE`), called from Python."""

from __future__ import annotations

from typing import Any

from numba import njit


def called(part: Any) -> Any:
    """A compiled function that calls a part with its own arguments."""

    @njit
    def call(*arguments):
        return part(*arguments)

    return call
