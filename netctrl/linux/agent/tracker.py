"""A tracking law in an agent: measurements in seconds and bit/s to the rate of all regulators together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from netctrl.laws.tracking.reference_governor import ReferenceGovernor, govern, reference_governor
from netctrl.laws.tracking.tracking import TrackingGains, TrackingState, start_tracking, step_tracking, tracking_gains
from netctrl.linux.export.agent_law import TrackingTable
from netctrl.scenario.access.plan import ACCESS_LINK_SIGNALS, MBIT
from netctrl.units import BITS_PER_BYTE, unit_scale

__all__ = ["Tracker", "start_tracker", "step_tracker"]


class Tracker(NamedTuple):
    """What a law remembers, and its governor's last reference."""

    gains: TrackingGains
    state: TrackingState
    given: np.ndarray
    """(p,) [the law's units]."""
    governor: ReferenceGovernor | None


def start_tracker(table: TrackingTable) -> Tracker:
    """At the law's offset, within its limits."""
    governor = reference_governor(table.law) if table.governor else None
    given = table.law.output_offset.copy() if table.governor else np.array(table.reference)
    gains = tracking_gains(table.law)
    return Tracker(gains, start_tracking(gains), given, governor)


def step_tracker(
    table: TrackingTable,
    tracker: Tracker,
    measured: Sequence[float] | None,
    backlog_bytes: int | None,
    sent: float | None,
    in_force: float | None,
) -> tuple[Tracker, float | None]:
    """One sample.

    Parameters
    ----------
    table : TrackingTable
    tracker : Tracker
    measured : sequence of float, length p, optional
        By a peer [s, bit/s]; None where nothing came.
    backlog_bytes : int, optional
        Of the bottleneck, where the agent measures itself.
    sent : float, optional
        By all regulators in the interval that ended [bit/s].
    in_force : float, optional
        Rate that regulators really had [bit/s]: the law is told of limits, whole bytes and dead-bands.

    Returns
    -------
    (Tracker, float or None)
        The rate of all regulators together [bit/s]; None: hold it, nothing was measured.
    """
    law = table.law
    values = list(measured) if measured is not None else None
    if table.measured_by is None:
        values = _own(table, backlog_bytes, sent)
    if values is None or not np.isfinite(values).all():
        return tracker, None
    unit = unit_scale(law.input_units[0]) or MBIT
    scale = [
        unit_scale(name) or ACCESS_LINK_SIGNALS[output, "period"].assumed
        for output, name in zip(law.outputs, law.output_units, strict=True)
    ]
    state = tracker.state
    if in_force is not None:
        state = state._replace(applied=np.clip([in_force / unit], law.low, law.high))
    given = np.array(table.reference)
    if tracker.governor is not None:
        given = govern(tracker.governor, state, tracker.given, given)
    state = step_tracking(tracker.gains, state, np.array(values) / np.array(scale), given)
    return tracker._replace(state=state, given=given), float(state.applied[0]) * unit


def _own(table: TrackingTable, backlog_bytes: int | None, sent: float | None) -> list[float] | None:
    """Delay by Little's law for a busy link: what waits over the rate at which it goes."""
    if backlog_bytes is None or sent is None or table.bottleneck is None:
        return None
    known = {"delay": backlog_bytes * BITS_PER_BYTE / table.bottleneck, "throughput": sent}
    return [known[name] for name in table.law.outputs]
