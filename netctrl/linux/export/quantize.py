"""Values as a carrier has them: the nearest whole number of its steps, beside what was asked for."""

from __future__ import annotations

import math

import msgspec

from netctrl.errors import InvalidValue, checked_number

__all__ = ["QuantizedValue", "nearest"]


class QuantizedValue(msgspec.Struct, frozen=True, kw_only=True):
    """One number that is handed on."""

    what: str
    requested: float
    implemented: float
    unit: str
    bound: float | None
    """Relative difference up to which it passes; None: something else judges, as margins do."""

    @property
    def difference(self) -> float:
        """Relative; 0 where 0 was asked for and is carried."""
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
    """The nearest whole number of steps, and the figure that says what it cost.

    Parameters
    ----------
    what : str
        Names the value in messages.
    asked : float
        In `unit`.
    step : float
        What one is in `unit`.
    least, most : int
        Steps that the carrier takes.
    bound : float or None
        Relative difference up to which it passes; None: any.

    Raises
    ------
    InvalidValue
        Fewer or more steps than the carrier takes, or a difference beyond the bound.
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
