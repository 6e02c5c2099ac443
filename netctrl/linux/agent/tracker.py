"""Tracking law in an agent: from measurements in seconds and bit/s to the total rate of all regulators."""

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
    """State of a law, and its governor's last reference."""

    gains: TrackingGains
    state: TrackingState
    given: np.ndarray
    """(p,) [the law's units]."""
    governor: ReferenceGovernor | None


def start_tracker(table: TrackingTable) -> Tracker:
    """State at the law's offset, within its limits."""
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
    """One sample of the law.

    Parameters
    ----------
    table : TrackingTable
    tracker : Tracker
    measured : sequence of float, length p, optional
        Outputs measured by a peer [s, bit/s]; None without a message.
    backlog_bytes : int, optional
        Backlog of the bottleneck, where the agent measures itself.
    sent : float, optional
        Rate sent by all regulators in the last interval [bit/s].
    in_force : float, optional
        Actual rate of the regulators [bit/s], which accounts for limits, whole bytes and dead-bands.

    Returns
    -------
    (Tracker, float or None)
        Total rate of all regulators [bit/s]; None holds the rate, as there is no measurement.
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
    """Delay by Little's law for a busy link: backlog over departure rate."""
    if backlog_bytes is None or sent is None or table.bottleneck is None:
        return None
    known = {"delay": backlog_bytes * BITS_PER_BYTE / table.bottleneck, "throughput": sent}
    return [known[name] for name in table.law.outputs]
