"""Linux's laws with the parameters of `netctrl certify`, as the kernel holds them."""

from __future__ import annotations

from netctrl.errors import InvalidValue, checked_number
from netctrl.laws.targets.dualpi2 import Dualpi2Law, dualpi2_sent
from netctrl.laws.targets.pie_law import PieLaw
from netctrl.units import TIMES, checked_quantity

__all__ = ["linux_dualpi2", "linux_pie"]


def linux_pie(target_s: float, tupdate_s: float, alpha: float, beta: float, hz: int, dq_rate_estimator: bool) -> PieLaw:
    """Linux's pie with parameters of `pie`; InvalidValue for what tc or the kernel doesn't take."""
    return PieLaw.sent(
        target_us=_micro("target", target_s),
        tupdate_us=_micro("tupdate", tupdate_s),
        alpha=_steps("alpha", alpha, 16),
        beta=_steps("beta", beta, 16),
        dq_rate_estimator=dq_rate_estimator,
        hz=hz,
    )


def linux_dualpi2(
    target_s: float, tupdate_s: float, alpha: float, beta: float, coupling: int, step_s: float, drop_early: bool
) -> Dualpi2Law:
    """Linux's dualpi2 with parameters of `dualpi2`; InvalidValue for what tc or the kernel doesn't take."""
    return Dualpi2Law.sent(
        target_us=_micro("target", target_s),
        tupdate_us=_micro("tupdate", tupdate_s),
        alpha=dualpi2_sent(checked_number("alpha", alpha, "a gain above 0 in 1/s", above=0.0)),
        beta=dualpi2_sent(checked_number("beta", beta, "a gain above 0 in 1/s", above=0.0)),
        coupling=coupling,
        step_us=_micro("step", step_s),
        drop_early=drop_early,
    )


def _micro(argument: str, seconds: float) -> int:
    checked_quantity(argument, seconds, "a time above 0 in seconds", TIMES)
    return round(seconds * 1e6)


def _steps(argument: str, gain: float, per: int) -> int:
    checked_number(argument, gain, "a gain of at least 0 in 1/s", at_least=0.0)
    steps = round(gain * per)
    if abs(steps - gain * per) > 1e-9 * max(steps, 1):
        raise InvalidValue(argument, gain, f"a whole multiple of 1/{per} in 1/s, as Linux takes it")
    return steps
