"""PI law on the queueing delay, as in queues of operating systems."""

from __future__ import annotations

from dataclasses import dataclass

from netctrl.core.errors import checked_number


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayPi:
    """Every update, p ← p + integral (D − target) + proportional (D − D_old), with the queueing delay D = q/C.

    Parameters
    ----------
    integral : float
        Above 0: without it the law has no queue that it aims at [1/s].
    proportional : float
        [1/s]
    update_s : float
        Between two updates [s].
    target_s : float
        [s]

    Raises
    ------
    InvalidValue
        A value outside these bounds.
    """

    integral: float
    proportional: float
    update_s: float
    target_s: float

    def __post_init__(self) -> None:
        checked_number("integral", self.integral, "a gain above 0 in 1/s", above=0.0)
        checked_number("proportional", self.proportional, "a gain of at least 0 in 1/s", at_least=0.0)
        checked_number("update_s", self.update_s, "a time above 0 in seconds", above=0.0)
        checked_number("target_s", self.target_s, "a delay above 0 in seconds", above=0.0)
