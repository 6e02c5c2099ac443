"""What is measured of a flow's packets, and the pauses between bursts of regulated ones.

Times in any one unit.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from netctrl.core.jit import njit
from netctrl.laws.record import Numbers

AVERAGE_GAIN = 0.125
"""Of the moving averages of delay and jitter (CONNET paper, Section 3.2)."""
DELAY, JITTER, LAST_DELAY, DELAY_SUM, JITTER_SUM, MEASURED = range(6)
"""What is measured of premium packets: moving averages, the last delay, sums over the period, packets in it."""


class PremiumReading(NamedTuple):
    """What premium packets saw in a period."""

    delay: float
    """Moving average; 0 before the first packet"""
    jitter: float
    mean_delay: float
    """Over the period; the moving average where no packet came"""
    mean_jitter: float
    received: float
    """In the period"""


@njit(cache=True)
def pause_mean(rate: float, burst: float, size: float, spacing: float) -> float:
    """Mean time from a burst's last packet to the next burst's first: b s/r - (b - 1) spacing; inf for rate 0.

    Parameters
    ----------
    rate : float
        Mean rate of the flow.
    burst : float
        Packets in a burst, a whole number.
    size : float
        Of a packet; size over rate is a time.
    spacing : float
        Between packets of a burst; at most size/rate, so that pauses are above 0.
    """
    return inf if rate == 0.0 else burst * (size / rate) - (burst - 1) * spacing


@njit(cache=True)
def averaged(average: float, value: float) -> float:
    """Moving average after one more packet: d += (d_i - d)/8.

    Source: CONNET paper, Section 3.2; RFC 3550, Section 6.4.1, has a gain of 1/16.
    """
    return average + AVERAGE_GAIN * (value - average)


@njit(cache=True, error_model="numpy", nogil=True, forceinline=True)
def observe(measured: Numbers, delay: float, first: bool) -> None:
    """One more premium packet, and its difference from the one before."""
    if first:
        measured[DELAY] = delay
        measured[LAST_DELAY] = delay
    change = abs(delay - measured[LAST_DELAY])
    measured[DELAY] = averaged(measured[DELAY], delay)
    measured[JITTER] = averaged(measured[JITTER], change)
    measured[LAST_DELAY] = delay
    measured[DELAY_SUM] += delay
    measured[JITTER_SUM] += change
    measured[MEASURED] += 1.0


def read_premium(measured: Numbers, base: float, empty: bool) -> PremiumReading:
    """Averages of a period, `base` being added to each delay; empty: no packet has come since the beginning."""
    count = measured[MEASURED]
    delay = 0.0 if empty else measured[DELAY] + base
    mean_delay = measured[DELAY_SUM] / count + base if count > 0.0 else delay
    mean_jitter = measured[JITTER_SUM] / count if count > 0.0 else measured[JITTER]
    return PremiumReading(delay, measured[JITTER], mean_delay, mean_jitter, count)
