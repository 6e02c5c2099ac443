"""Quantized values of an implementation: the nearest whole number of its steps, beside the requested value."""

from __future__ import annotations

import math

import msgspec

from netctrl.errors import InvalidValue, checked_number

__all__ = ["QuantizedValue", "nearest"]


class QuantizedValue(msgspec.Struct, frozen=True, kw_only=True):
    """Value as quantized by an implementation, with the requested one."""

    what: str
    requested: float
    implemented: float
    unit: str
    bound: float | None = None
    """Largest relative difference allowed; None: other criteria apply, such as margins."""

    @property
    def difference(self) -> float:
        """Relative difference; 0 where 0 was requested and implemented."""
        if self.requested == self.implemented:
            return 0.0
        return math.inf if self.requested == 0.0 else self.implemented / self.requested - 1.0


def nearest(
    what: str,
    requested: float,
    *,
    step: float,
    unit: str,
    least: int = 1,
    most: int = 2**32 - 1,
    bound: float | None,
) -> tuple[int, QuantizedValue]:
    """Nearest whole number of steps, and the quantized value.

    Parameters
    ----------
    what : str
        Names the value in messages.
    asked : float
        Requested value in `unit`.
    step : float
        Size of a step in `unit`.
    least, most : int
        Range of steps that the implementation takes.
    bound : float or None
        Largest relative difference allowed; None: any.

    Raises
    ------
    InvalidValue
        A number of steps out of range, or a difference beyond the bound.
    """
    takes = f"{least * step:.6g} to {most * step:.6g} {unit} in steps of {step:.6g}"
    checked_number(what, requested, takes)
    steps = round(requested / step)
    if not least <= steps <= most:
        raise InvalidValue(what, requested, takes)
    figure = QuantizedValue(what=what, requested=requested, implemented=steps * step, unit=unit, bound=bound)
    if bound is not None and abs(figure.difference) > bound:
        takes += f", within {100.0 * bound:g} %; the nearest is {figure.implemented:.6g}"
        raise InvalidValue(what, requested, takes)
    return steps, figure
