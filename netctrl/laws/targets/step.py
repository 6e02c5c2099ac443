"""Step of marks above a threshold as targets keep it: whole packets, whole bytes, or whole microseconds.

A queue marks each packet that finds more than K waiting, or that waits longer than K. Targets compare differently, and
each export says the same in its target's terms:

- WRED of switches, Linux's RED and ns-3's RED mark from their threshold on. K + 1 makes "from K + 1 on" of it, which is
  "more than K" in whole packets or bytes. A switch that compares with "more than" does the same where packets are of
  equal size, since no backlog ends between K and K + 1.
- CoDel's `ce_threshold` compares the packet's own wait, in units of 1024 ns, with "longer than". The mark is on the
  packet that would have been marked on its arrival, as its wait is K/C where it finds K. Sources: Linux,
  include/net/codel.h (CODEL_SHIFT) and codel_impl.h; ns-3, codel-queue-disc.cc.
- DualPI2's `step_thresh` in time compares the wait in ns (Linux, sch_dualpi2.c, do_step_aqm). In packets it compares
  what is left behind a packet when it leaves: another law, whose marks are earlier by the wait, and not this step.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, floor
from typing import Any, Literal, NamedTuple

from netctrl.core.errors import InvalidValue

CODEL_UNIT_NS = 1024
"""Unit of CoDel's times [ns]."""
STEP_LIMIT = 16
"""Longest queue over the threshold where a target wants one: slow start passes the threshold by far, and is marked."""

STEP_OFF_S = 1.0
"""CoDel's target and interval with which its own law never acts, at least [s]: no packet waits that long."""

StepUnit = Literal["packets", "bytes", "time"]
_KEYS: dict[str, StepUnit] = {"k_packets": "packets", "k_bytes": "bytes", "k_s": "time"}


class StepLaw(NamedTuple):
    """A threshold in its unit."""

    unit: StepUnit
    threshold: float
    """K [packet], [byte] or [s]."""

    @property
    def marked_from(self) -> int:
        """Smallest backlog that is marked, in whole packets or bytes; 0 for a threshold in time."""
        return 0 if self.unit == "time" else floor(self.threshold) + 1

    @property
    def limit(self) -> int:
        """Longest queue where a target wants one, in whole packets or bytes; 0 for a threshold in time."""
        return 0 if self.unit == "time" else ceil(STEP_LIMIT * self.threshold)


def step_law(parameters: Mapping[str, Any], *units: StepUnit) -> StepLaw:
    """The threshold in parameters of the law "dctcp", in one of the units that a target has.

    Raises
    ------
    InvalidValue
        A threshold in another unit.

    Examples
    --------
    >>> step_law({"k_bytes": 75_000, "g": 0.0625}, "bytes").marked_from
    75001
    """
    key = next(name for name in _KEYS if name in parameters)
    found = StepLaw(_KEYS[key], float(parameters[key]))
    if found.unit not in units:
        takes = f"a threshold in {' or '.join(units)}, as netctrl design ecn --unit {units[0]} makes it"
        raise InvalidValue("law", f"a threshold in {found.unit}", takes)
    return found


def codel_units(seconds: float) -> int:
    """Whole units of CoDel's time that are at least as long as a threshold."""
    return ceil(round(seconds * 1e9, 3) / CODEL_UNIT_NS)


def codel_threshold_us(seconds: float) -> int:
    """Whole microseconds of `ce_threshold` with which Linux's CoDel marks no packet that waits less.

    The kernel divides by 1.024 us and drops the rest, so the threshold is rounded up to its units first. A wait is a
    difference of rounded times, which may be a unit too long or too short, so that it is marked for sure from one unit
    more on.

    Examples
    --------
    >>> codel_threshold_us(60e-6), codel_threshold_us(60e-6) * 1000 // 1024 * 1.024
    (61, 60.416)
    """
    return ceil(codel_units(seconds) * CODEL_UNIT_NS / 1000.0)
