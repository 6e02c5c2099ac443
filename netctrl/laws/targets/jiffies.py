"""Jiffies: ticks of the kernel's clock, and how often a timer fires that a law sets again each time it acts.

A time t in microseconds becomes the number of jiffies that covers it, and a timer that is set for n jiffies ahead from
its own handler fires after more than n. The wheel of timers never fires early, so it takes the next slot: n + 1
jiffies for n up to 63, and beyond that the next multiple of the level's granularity, 8 jiffies up to 504, then 64.

| HZ | 15 ms in jiffies | as `tc` shows it | interval in effect |
|---|---|---|---|
| 100 | 2 | 20 ms | 30 ms |
| 250 | 4 | 16 ms | 20 ms |
| 300 | 5 | 16.666 ms | 20 ms |
| 1000 | 15 | 15 ms | 16 ms |

Sources: Linux 6.1 and 7.2, include/linux/jiffies.h and kernel/time/timeconst.bc (conversions), kernel/time/timer.c
(`calc_wheel_index`), kernel/Kconfig.hz (the four frequencies; 250 Hz is its default and Debian's for amd64).
"""

from __future__ import annotations

from math import gcd
from numbers import Real

from netctrl.core.errors import InvalidValue
from netctrl.laws.targets.integers import u32, u64

HZ = 250
"""Ticks in a second where nothing else is said (CONFIG_HZ): Kconfig's default and that of Debian's amd64 kernels."""
KNOWN_HZ = (100, 250, 300, 1000)
"""Frequencies that a kernel can have."""
HZ_TAKES = "CONFIG_HZ of the kernel: 100, 250, 300 or 1000"
_US = 1_000_000
_ENDLESS = 2**62 - 2  # MAX_JIFFY_OFFSET
_LEVELS, _FIRST, _SHIFT = 8, 63, 3  # LVL_DEPTH, LVL_SIZE - 1, LVL_CLK_SHIFT


def checked_hz(hz: object) -> int:
    """A frequency of the kernel's clock, else InvalidValue."""
    for known in KNOWN_HZ:
        if isinstance(hz, Real) and not isinstance(hz, bool) and hz == known:
            return known
    raise InvalidValue("hz", hz, HZ_TAKES)


def jiffies_of_us(microseconds: int, hz: int) -> int:
    """Jiffies that cover a time, as `usecs_to_jiffies` computes them, for times up to `longest_us`.

    Examples
    --------
    >>> [jiffies_of_us(15_000, hz) for hz in (100, 250, 300, 1000)]
    [2, 4, 5, 15]
    """
    if _US % hz == 0:
        return (microseconds + _US // hz - 1) // (_US // hz)
    shift = next(k for k in range(64) if _rounded_up(k, hz) >= 2**31)  # multiplication in place of a division
    part = _US // gcd(hz, _US)
    return u64(_rounded_up(shift, hz) * microseconds + 2**shift * (part - 1) // part) >> shift


def longest_us(hz: int) -> int:
    """Longest time that becomes jiffies; the kernel takes a longer one as endless, and a timer never fires.

    Its bound is the longest number of jiffies in microseconds, in 32 bits: 24 minutes at 300 Hz, else 71.

    Examples
    --------
    >>> [longest_us(hz) for hz in (100, 250, 300, 1000)]
    [4294947296, 4294959296, 1431649098, 4294965296]
    """
    return us_of_jiffies(_ENDLESS, hz)


def us_of_jiffies(jiffies: int, hz: int) -> int:
    """Microseconds of a number of jiffies, rounded down, as `jiffies_to_usecs` computes them.

    Examples
    --------
    >>> [us_of_jiffies(jiffies_of_us(15_000, hz), hz) for hz in (100, 250, 300, 1000)]
    [20000, 16000, 16666, 15000]
    """
    common = gcd(_US, hz)
    return u32(u64(jiffies * (_US // common)) // (hz // common))


def timer_period(jiffies: int) -> int:
    """Jiffies from one call of a timer's handler to the next where it sets the timer again for `jiffies` ahead.

    Examples
    --------
    >>> [timer_period(n) for n in (0, 1, 4, 15, 63, 64, 100)]
    [1, 2, 5, 16, 64, 72, 104]
    """
    if jiffies == 0:  # already due: at the next tick
        return 1
    ahead = jiffies - 1  # from the wheel's clock, which is one tick ahead of the handler's
    level = next((k for k in range(_LEVELS - 1) if ahead < _FIRST << _SHIFT * k), _LEVELS - 1)
    return ((jiffies >> _SHIFT * level) + 1) << _SHIFT * level


def _rounded_up(shift: int, hz: int) -> int:
    return (2**shift * hz + _US - 1) // _US
