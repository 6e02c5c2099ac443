"""A tracking law on an access link, packet by packet: what it was designed for, outside of its linear model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import Any

import numpy as np

from netctrl.errors import InvalidValue, checked_flag, checked_kind, checked_names, checked_word
from netctrl.laws.tracking.online_map import OnlineStaticMap, learn, online_schedule
from netctrl.laws.tracking.reference_governor import ReferenceGovernor, govern
from netctrl.laws.tracking.schedule import GainSchedule, scheduled
from netctrl.laws.tracking.tracking import step_tracking, tracking_gains
from netctrl.model.design.design import Provenance, provenance
from netctrl.model.law import TrackingLaw
from netctrl.model.signals import SignalTrace
from netctrl.scenario.access.plan import (
    ACCESS_LINK_SIGNALS,
    MBIT,
    AccessLinkPlan,
    AccessLinkTracking,
    Measured,
    access_link_plan,
)
from netctrl.scenario.access.result import AccessLinkResult, AccessLinkSample, access_link_result
from netctrl.scenario.access.scenario import AccessLinkScenario
from netctrl.sim.access.run import AccessLink

__all__ = ["access_link_signals", "track", "track_access_link"]


def track_access_link(
    scenario: AccessLinkScenario,
    law: TrackingLaw,
    reference: Any,
    *,
    measured: Measured = "average",
    governor: ReferenceGovernor | None = None,
    schedule: GainSchedule | OnlineStaticMap | None = None,
    start: int = 0,
    first_rate: float | None = None,
    argv: Iterable[str] = (),
) -> AccessLinkTracking:
    """Run a link with a law in the loop.

    Parameters
    ----------
    scenario : AccessLinkScenario
        Whose interval is the law's.
    law : LqgLaw or LqiLaw
        Its first input is the rate of all regulators together, a second one the packets that a flow releases at once;
        its outputs are some of `delay`, `jitter` and `throughput` (of all regulated traffic). A law without units means
        Mbit/s and ms.
    reference : array_like, shape (p,) or (T, p)
        In the law's units; with a row for each period, that at its end.
    measured : {"average", "period"}
        Moving averages over packets as they stand at the end of a period (the paper's), or means over the period, which
        are three times quieter.
    governor : ReferenceGovernor, optional
        Stands before the law (`netctrl.laws.tracking.reference_governor`).
    schedule : GainSchedule or OnlineStaticMap, optional
        Makes the law as fast at all points of the curve (`netctrl.laws.tracking.schedule`); a `OnlineStaticMap` goes on
        learning from each period (`netctrl.laws.tracking.online_map`).
    start : int
        Periods in which regulators are open, before the law is switched on.
    first_rate : float, optional
        What the law's first input is when it is switched on; by default its model's middle, within the limits.
    argv : iterable of str
        Command line, for the provenance.

    Raises
    ------
    InvalidValue
        A law for another interval or of other signals, a reference of another shape.
    """
    checked_kind("scenario", scenario, AccessLinkScenario)
    checked_kind("law", law, TrackingLaw)
    plan = access_link_plan(
        scenario,
        law,
        reference,
        measured=measured,
        governor=governor,
        schedule=schedule,
        start=start,
        first_rate=first_rate,
    )
    return track(scenario, plan, provenance(argv=argv, seed=scenario.seed, libraries=("numpy", "numba")))


def track(scenario: AccessLinkScenario, plan: AccessLinkPlan, origin: Provenance) -> AccessLinkTracking:
    """Run a link under a plan's law."""
    law, governor, schedule = plan.law, plan.governor, plan.schedule
    desired, state = plan.reference, plan.state
    (T, p), m = desired.shape, len(law.inputs)
    link, samples = AccessLink(scenario), []
    curve, factors = (schedule, None) if isinstance(schedule, OnlineStaticMap) else (None, schedule)
    given, seen, commanded = np.array(desired), np.empty((T, p)), np.full((T, m), np.nan)
    gains, cut = tracking_gains(law), law.output_offset.copy()
    for k in range(T):
        if k < plan.start:
            samples.append(link.advance(inf))
            seen[k] = _read(samples[-1], plan)
            continue
        rate = float(state.applied[0]) * plan.rate_unit
        burst = max(1, round(float(state.applied[1]))) if m > 1 else 0
        samples.append(link.advance(max(rate, 0.0), burst))
        seen[k], commanded[k] = _read(samples[-1], plan), state.commanded
        if governor is not None:
            given[k] = cut = govern(governor, state, cut, desired[k])
        if curve is not None:
            curve = learn(curve, state.applied, seen[k])
            factors = online_schedule(curve)
        shown = seen[k] if factors is None else scheduled(factors, seen[k], given[k], state.applied)
        state = step_tracking(gains, state, shown, given[k])
    result = access_link_result(scenario, samples, origin)
    return AccessLinkTracking(result, law, desired, given, seen, commanded, curve)


def access_link_signals(
    result: AccessLinkResult,
    *,
    outputs: Sequence[str] = ("delay", "jitter"),
    burst: bool = False,
    measured: Measured = "period",
) -> SignalTrace:
    """A run's R [Mbit/s] and what came of it, from which `netctrl.identify` makes a model.

    Parameters
    ----------
    result : AccessLinkResult
        Of `simulate_access_link` with rates that excite, such as `netctrl.gbn`'s.
    outputs : sequence of {"delay", "jitter", "throughput"}
        In ms and Mbit/s.
    burst : bool
        Whether bursts [packets] are a second input.
    measured : {"average", "period"}
        As in `track_access_link`.

    Raises
    ------
    InvalidValue
        Regulators were open: R is no number then; or an output that isn't known.
    """
    checked_kind("result", result, AccessLinkResult)
    if not np.isfinite(result.rate_bit_per_s).all():
        raise InvalidValue("result", "open regulators", "a run in which R has a value in every period")
    checked_names("outputs", outputs, "some of delay, jitter, throughput")
    checked_word("measured", measured, ("average", "period"))
    checked_flag("burst", burst)
    if not outputs or not all((name, measured) in ACCESS_LINK_SIGNALS for name in outputs):
        raise InvalidValue("outputs", (*outputs, measured), "some of delay, jitter, throughput; average or period")
    fields = [ACCESS_LINK_SIGNALS[name, measured] for name in outputs]
    inputs = {"R": result.rate_bit_per_s / MBIT} | ({"burst": result.burst.astype(float)} if burst else {})
    return SignalTrace(
        interval_s=result.scenario.interval,
        input_values=np.column_stack(list(inputs.values())),
        output_values=np.column_stack([getattr(result, each.name) * (each.unit / each.assumed) for each in fields]),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
    )


def _read(sample: AccessLinkSample, plan: AccessLinkPlan) -> np.ndarray:
    return np.array([getattr(sample, name) for name in plan.signals]) * plan.scale
