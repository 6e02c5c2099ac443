"""Rate senders on rows of numbers, as kernels keep them: a function for all laws, compiled."""

from __future__ import annotations

from typing import Any

from netctrl.core.jit import by_number, njit
from netctrl.laws.rate.law import Allowed
from netctrl.laws.rate.records import RATE_LAWS
from netctrl.laws.record import compiled_view, fields_of, width

ALLOWED, ALLOWED_WIDTH = {name: place for place, name in enumerate(fields_of(Allowed))}, width(Allowed)
"""Columns of a row of what is allowed."""
_LAWS = {number: each.law() for number, each in enumerate(RATE_LAWS, 1)}


def _on_row(function: Any, options: dict[str, Any]) -> Any:
    """What a law does, on the row of what it allows."""
    view, act = compiled_view(Allowed), njit(function, **options)

    def on_row(row, *given):
        act(view(row), *given)

    return njit(on_row, **options)


def rate_acts(**options: Any) -> tuple[Any, Any]:
    """`begin(number, row, state, settings, rtt, packet)` and `step(number, row, state, settings, sample)`: the law of
    this number in RATE_LAWS, from 1; `options` are numba's."""
    begin = {number: _on_row(law.begin, options) for number, law in _LAWS.items()}
    step = {number: _on_row(law.step, options) for number, law in _LAWS.items()}
    return (
        by_number(begin, "row, state, settings, rtt, packet", **options),
        by_number(step, "row, state, settings, sample", **options),
    )
