"""Loop of a tracking law over an access link's periods, whatever simulates a period."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from netctrl.laws.tracking.online_map import OnlineStaticMap, learn, online_schedule
from netctrl.laws.tracking.reference_governor import govern
from netctrl.laws.tracking.schedule import scheduled
from netctrl.laws.tracking.tracking import TrackingGains, TrackingState, step_tracking, tracking_gains
from netctrl.model.io.provenance import Provenance
from netctrl.scenario.access.plan import AccessLinkPlan, AccessLinkTracking
from netctrl.scenario.access.result import AccessLinkSample, access_link_result
from netctrl.scenario.scenario import Scenario

Sample = TypeVar("Sample")
"""Measurements of a period, by the names of `netctrl.scenario.access.plan.ACCESS_LINK_SIGNALS`."""


class Periods(NamedTuple, Generic[Sample]):
    """What T periods brought; m inputs, p outputs."""

    samples: Sequence[Sample]
    given: np.ndarray
    """(T, p) references given to the law."""
    measured: np.ndarray
    """(T, p) [the law's units]."""
    commanded: np.ndarray
    """(T, m) before the limits, within them where a static map is learned; NaN while the law was off."""
    curve: OnlineStaticMap | None = None
    """The learned static map."""


def run_periods(plan: AccessLinkPlan, advance: Callable[[float, int], Sample]) -> Periods[Sample]:
    """Run all periods of a plan.

    Parameters
    ----------
    plan : AccessLinkPlan
    advance : callable
        Simulates a period with a rate of all regulators together [bit/s], inf opens them, and the packets that a flow
        releases at once, 0 for each source's own.
    """
    law, governor, schedule = plan.law, plan.governor, plan.schedule
    desired, state = plan.reference, plan.state
    (T, p), m = desired.shape, len(law.inputs)
    samples: list[Sample] = []
    curve, factors = (schedule, None) if isinstance(schedule, OnlineStaticMap) else (None, schedule)
    given, seen, commanded = np.array(desired), np.empty((T, p)), np.full((T, m), np.nan)
    gains, cut = tracking_gains(law), law.output_offset.copy()
    for k in range(T):
        if k < plan.start:
            samples.append(advance(inf, 0))
            seen[k] = _read(samples[-1], plan)
            continue
        rate = float(state.applied[0]) * plan.rate_unit
        burst = max(1, round(float(state.applied[1]))) if m > 1 else 0
        samples.append(advance(max(rate, 0.0), burst))
        seen[k], commanded[k] = _read(samples[-1], plan), state.commanded if curve is None else state.applied
        if governor is not None:
            given[k] = cut = govern(governor, state, cut, desired[k])
        if curve is not None:
            curve = learn(curve, state.applied, seen[k])
            factors = online_schedule(curve)
        shown = seen[k] if factors is None else scheduled(factors, seen[k], given[k], state.applied)
        if curve is not None:
            shown = _answered(gains, state, shown, given[k])
        state = step_tracking(gains, state, shown, given[k])
    return Periods(samples, given, seen, commanded, curve)


def tracking_result(
    scenario: Scenario,
    plan: AccessLinkPlan,
    found: Periods[AccessLinkSample],
    provenance: Provenance,
    simulator: str = "netctrl",
) -> AccessLinkTracking:
    """Result of a plan's periods."""
    result = access_link_result(scenario, found.samples, provenance, simulator)
    return AccessLinkTracking(
        result, plan.law, plan.reference, found.given, found.measured, found.commanded, found.curve
    )


def _answered(gains: TrackingGains, state: TrackingState, shown: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Outputs between the reference and what the law is shown, as near to these as inputs answer within limits."""
    none, whole = (step_tracking(gains, state, each, reference).commanded for each in (reference, shown))
    change = whole - none
    room = np.where(change > 0.0, gains.high, gains.low) - none
    with np.errstate(divide="ignore", invalid="ignore"):
        share = float(np.where(change != 0.0, room / change, 1.0).min().clip(0.0, 1.0))
    return reference + share * (shown - reference)


def _read(sample: object, plan: AccessLinkPlan) -> np.ndarray:
    return np.array([getattr(sample, name) for name in plan.signals]) * plan.scale
