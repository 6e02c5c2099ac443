"""Jiffies: conversions against C with the kernel's reciprocals, and the wheel of timers simulated tick by tick."""

from math import gcd

import numpy as np
import pytest
from c_support import replayed, spread

from netctrl.core.errors import InvalidValue
from netctrl.laws.targets.jiffies import checked_hz, jiffies_of_us, longest_us, timer_period, us_of_jiffies

# Of kernel/time/timeconst.bc at 300 Hz, as the kernel's build writes it: multiplier, adjustment, shift.
MULTIPLIER_300 = (0x9D495183, 0x7FFCB923A29, 43)


@pytest.mark.needs("compiler")
@pytest.mark.parametrize("hz", [100, 250, 300, 1000])
def test_conversions_as_in_c(hz, tmp_path):
    random = np.random.default_rng(hz)
    times = [spread(random, longest_us(hz)) for _ in range(25_000)]
    ticks = [spread(random, 2**62 - 2) for _ in times]
    constants = MULTIPLIER_300
    rows = [(hz, t, j, gcd(hz, 10**6), *constants) for t, j in zip(times, ticks, strict=True)]
    found = replayed("linux_jiffies.c", 7, 2, rows, tmp_path)
    mine = [(jiffies_of_us(t, hz), us_of_jiffies(j, hz)) for t, j in zip(times, ticks, strict=True)]
    assert np.array_equal(found, np.array(mine, dtype=np.uint64))


def fired_after(jiffies):
    """Ticks from a handler at tick 0 to the next one, in a wheel with levels of 64 slots, each 8 times coarser."""
    clock, expires = 1, jiffies  # the wheel has advanced past the handler's tick
    grain = 1
    while expires - clock >= 63 * grain:
        grain *= 8
    slot = expires // grain + 1
    return next(tick for tick in range(clock, 10**6) if tick % grain == 0 and tick // grain == slot)


def test_periods_of_a_timer():
    for jiffies in (1, 2, 4, 15, 16, 62, 63, 64, 100, 503, 504, 505, 4031, 4032, 5000, 40_000):
        assert timer_period(jiffies) == fired_after(jiffies), jiffies
    assert timer_period(0) == 1


# tupdate of `pie` -> time between changes of its probability, in ms: Linux 7.2.13 at 1000 Hz, in virtual time.
LINUX_7_2_PIE = {1: 2, 15: 16, 16: 17, 30: 31, 63: 64, 64: 72, 100: 104}


def test_periods_are_the_kernel_s():
    assert {tupdate: timer_period(jiffies_of_us(tupdate * 1000, 1000)) for tupdate in LINUX_7_2_PIE} == LINUX_7_2_PIE


def test_hz():
    assert checked_hz(300) == 300
    for wrong in (True, 200, "250", np.array([250.0, np.nan])):
        with pytest.raises(InvalidValue, match="hz"):
            checked_hz(wrong)
