"""The gate of a regulator: a burst of packets, then a pause, whose mean a rate sets. Times in ns.

A gate lets a flow's next packet through at one time, `opens`. A change of the rate stretches what is left of a pause by
the ratio of the mean pauses, which keeps exponential pauses exponential and even ones in proportion; a burst that has
begun is finished as it began. At rate 0 the remaining share of the mean pause is kept instead.
"""

from __future__ import annotations

from math import log
from typing import NamedTuple

from netctrl.core.jit import njit

SHUT = 1 << 62  # a time after all others [ns]
_BITS = 8e9  # of a byte in a second, in bit/s and ns
_LONGEST = 1e17  # a longer mean pause is that of rate 0 [ns]


class Gate(NamedTuple):
    """When the next packet of a flow goes."""

    opens: int
    """[ns]; SHUT at rate 0"""
    mean: int
    """pause [ns]; SHUT at rate 0"""
    burst: int
    """[packet]"""
    left: int
    """packets of the burst"""
    pausing: int
    """1 while the next packet is the first of a burst"""
    held: float
    """what is left of a pause at rate 0, over the mean"""


@njit(cache=True, error_model="numpy", nogil=True)
def mean_pause(rate: float, burst: int, full: int, within: int) -> int:
    """Mean time from the last packet of a burst to the first of the next [ns], at least 1; SHUT at rate 0.

    Parameters
    ----------
    rate : float
        Mean rate of the flow [bit/s].
    burst : int
        Packets of a burst.
    full : int
        Size of a packet [byte].
    within : int
        Time between packets of a burst [ns].
    """
    bits = _BITS * float(full) * float(burst)
    if rate <= 0.0 or bits > _LONGEST * rate:
        return SHUT
    return max(round(bits / rate - float((burst - 1) * within)), 1)


@njit(cache=True, error_model="numpy", nogil=True)
def paused(gate: Gate, since: int, share: float) -> Gate:
    """So much of the mean pause is left from a time on."""
    if gate.mean >= SHUT:
        return Gate(SHUT, gate.mean, gate.burst, gate.left, 1, share)
    return Gate(since + max(round(share * float(gate.mean)), 1), gate.mean, gate.burst, gate.left, 1, gate.held)


@njit(cache=True, error_model="numpy", nogil=True)
def pass_gate(gate: Gate, within: int, variation: float, now: int, drawn: float) -> Gate:
    """A packet goes through: the next one after a while, after a burst a pause.

    The pause is mean · (1 − v + v · exponential) with v its variation; `drawn` is even in [0, 1).
    """
    if gate.left > 1:
        return Gate(now + within, gate.mean, gate.burst, gate.left - 1, 0, gate.held)
    share = 1.0 - variation + variation * -log(1.0 - drawn)
    return paused(Gate(gate.opens, gate.mean, gate.burst, gate.burst, 1, gate.held), now, share)


@njit(cache=True, error_model="numpy", nogil=True)
def set_gate(gate: Gate, within: int, full: int, since: int, rate: float, burst: int) -> Gate:
    """Another rate [bit/s] and burst [packet], of a pause from `since` on."""
    mean = mean_pause(rate, burst, full, within)
    if gate.pausing == 0 or (mean == gate.mean and burst == gate.burst):
        return Gate(gate.opens, mean, burst, gate.left, gate.pausing, gate.held)
    changed = Gate(gate.opens, mean, burst, burst, 1, gate.held)
    if gate.opens <= since:  # its packet may go now
        return changed
    share = gate.held
    if gate.mean < SHUT:
        share = float(gate.opens - since) / float(gate.mean)
    return paused(changed, since, share)
