"""Gains of the kernel's `dualpi2` and `pie` as integers: those in effect for what tc sends, and those that tc shows.

`dualpi2` (net/sched/sch_dualpi2.c, Linux 6.17 to 7.2) takes whole multiples n of 1/256 Hz and keeps

    s(n) = floor(floor(n M / 4) / 10^9),    M = 2^32 - 1,

An update adds s(n) D / 64 to the probability, of which M represents 1, with the delay D in nanoseconds. So the gain in
effect is s(n) 10^9 / (64 M) per second. That is 6.87 % below n/256 up to n = 13, and at most 0.45 % below it above 200.
For a query the kernel converts back and rounds down again, floor(4 10^9 s / M): `tc` shows 11/256 after 12/256.

`pie` (net/sched/sch_pie.c, Linux 6.1 to 7.2) takes n sixteenths of 1/s. It rounds down too, but to 56 bits: the gain
in effect is at most one part in 100,000 below n/16 times the scale of RFC 8033.
"""

from __future__ import annotations

__all__ = [
    "DUALPI2_STEP",
    "PIE_STEP",
    "dualpi2_gain",
    "dualpi2_shown",
    "nearest_dualpi2_steps",
    "pie_gain",
]

DUALPI2_STEP = 1.0 / 256.0
"""Steps of the gains that tc sends for `dualpi2` [1/s]."""
PIE_STEP = 1.0 / 16.0
"""Steps of the gains that tc sends for `pie` [1/s]."""

_NS = 10**9
_DUALPI2_ONE = 2**32 - 1  # MAX_PROB
_DUALPI2_SCALING, _DUALPI2_GRANULARITY = 4, 64  # 2^ALPHA_BETA_SCALING, 2^ALPHA_BETA_GRANULARITY
_PIE_ONE = 2**56 - 1  # MAX_PROB
_PIE_TICKS = 15_625_000  # PSCHED_TICKS_PER_SEC


def dualpi2_gain(steps: int) -> float:
    """Gain in effect in `dualpi2` after tc has sent a number of 1/256 Hz [1/s].

    Examples
    --------
    >>> f"{dualpi2_gain(12):.6f} for {12 / 256:.6f}"
    '0.043656 for 0.046875'
    """
    return _scaled(steps) * _NS / (_DUALPI2_GRANULARITY * _DUALPI2_ONE)


def dualpi2_shown(steps: int) -> int:
    """Gain that the kernel reports afterwards, which `tc qdisc show` prints as a multiple of 1/256.

    Examples
    --------
    >>> dualpi2_shown(12)
    11
    """
    return _DUALPI2_SCALING * _NS * _scaled(steps) // _DUALPI2_ONE


def nearest_dualpi2_steps(gain: float) -> int:
    """Number n for tc whose gain in the kernel is nearest to one in 1/s; the smaller of two.

    Examples
    --------
    >>> nearest_dualpi2_steps(12 / 256), nearest_dualpi2_steps(0.16)
    (13, 41)
    """
    about = round(gain / DUALPI2_STEP)
    # The kernel's gain is below n/256 by less than one of its own steps, 0.94 of tc's.
    return min(range(max(about - 1, 0), about + 3), key=lambda steps: abs(dualpi2_gain(steps) - gain))


def pie_gain(steps: int, halvings: int) -> float:
    """Gain in effect in `pie` after tc has sent a number of sixteenths, with the halvings for small probabilities.

    Examples
    --------
    >>> f"{pie_gain(2, 0):.6f}, {pie_gain(2, 1):.6f}"
    '0.125000, 0.062500'
    """
    return (steps * (_PIE_ONE // _PIE_TICKS) >> 4 >> halvings) * _PIE_TICKS / _PIE_ONE


def _scaled(steps: int) -> int:
    return steps * _DUALPI2_ONE // _DUALPI2_SCALING // _NS
