"""Tracking law on an access link, simulated packet by packet beyond the law's linear model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from netctrl.errors import InvalidValue, checked_flag, checked_kind, checked_names, checked_word
from netctrl.laws.tracking.online_map import OnlineStaticMap
from netctrl.laws.tracking.reference_governor import ReferenceGovernor
from netctrl.laws.tracking.schedule import GainSchedule
from netctrl.model.design.design import Provenance, provenance
from netctrl.model.law import TrackingLaw
from netctrl.model.signals import SignalTrace
from netctrl.scenario.access.network import AccessLine
from netctrl.scenario.access.periods import run_periods, tracking_result
from netctrl.scenario.access.plan import (
    ACCESS_LINK_SIGNALS,
    MBIT,
    AccessLinkPlan,
    AccessLinkTracking,
    Measured,
    access_link_plan,
)
from netctrl.scenario.access.result import AccessLinkResult
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario, checked_network
from netctrl.sim.access.run import AccessLink
from netctrl.sim.packet.tracking import tracking_signals


def track_access_link(
    scenario: Scenario,
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
    """Run a link with a tracking law in the loop.

    Parameters
    ----------
    scenario : Scenario
        Scenario of an access link, with the law's interval.
    law : LqgLaw or LqiLaw
        Its first input is the rate of all regulators together, a second one the packets that a flow releases at once;
        its outputs are some of `delay`, `jitter` and `throughput` (of all regulated traffic). A law without units means
        Mbit/s and ms.
    reference : array_like, shape (p,) or (T, p)
        References in the law's units; with a row for each period, the one at its end.
    measured : {"average", "period"}
        Moving averages over packets at the end of a period (as in the paper), or means over the period, which have a
        third of the noise.
    governor : ReferenceGovernor, optional
        Governor of the references (`netctrl.laws.tracking.reference_governor`).
    schedule : GainSchedule or OnlineStaticMap, optional
        Gives the law the same speed at all points of the curve (`netctrl.laws.tracking.schedule`); an `OnlineStaticMap`
        also learns from each period (`netctrl.laws.tracking.online_map`).
    start : int
        Periods with open regulators, before the law is switched on.
    first_rate : float, optional
        First input of the law when it is switched on; by default its model's operating point, within the limits.
    argv : iterable of str
        Command line, for the provenance.

    Raises
    ------
    InvalidValue
        A law for another interval or with other signals, or a reference of another shape.
    """
    checked_network(scenario, AccessLine)
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


def track(scenario: Scenario, plan: AccessLinkPlan, origin: Provenance) -> AccessLinkTracking:
    """Run a link under the law of a plan."""
    return tracking_result(scenario, plan, run_periods(plan, AccessLink(scenario).advance), origin)


def access_link_signals(
    result: AccessLinkResult | Result,
    *,
    outputs: Sequence[str] = ("delay", "jitter"),
    burst: bool = False,
    measured: Measured = "period",
) -> SignalTrace:
    """Rate, delay and jitter of a simulated access link as signals, for `netctrl.identify`.

    Parameters
    ----------
    result : AccessLinkResult or Result
        Result of `netctrl.sim.packet.run.simulate_rates` or `netctrl.sim.access.run.simulate_access_link` with rates
        that excite the link, such as those of `netctrl.gbn`.
    outputs : sequence of {"delay", "jitter", "throughput"}
        Outputs, in ms and Mbit/s.
    burst : bool
        Whether bursts [packets] are a second input.
    measured : {"average", "period"}
        Delays and jitters: moving averages over packets at the end of a period (as in the CONNET paper), or means over
        the period.

    Returns
    -------
    SignalTrace
        Inputs "R" [Mbit/s] and, with `burst`, "burst" [packets].

    Raises
    ------
    InvalidValue
        Open regulators, so that R is infinite; or an unknown output.

    Examples
    --------
    >>> import netctrl, numpy as np
    >>> from netctrl.scenario.builders import access_link
    >>> from netctrl.sim.packet.run import simulate_rates
    >>> link = access_link(duration="200s", control=netctrl.Track())
    >>> run = simulate_rates(link, netctrl.gbn(200, (20e6, 80e6), np.random.default_rng(1))[:, 0])
    >>> trace = netctrl.access_link_signals(run)
    >>> trace.inputs, trace.outputs, len(trace)
    (('R',), ('delay', 'jitter'), 200)
    """
    checked_kind("result", result, AccessLinkResult | Result)
    checked_names("outputs", outputs, "some of delay, jitter, throughput")
    checked_word("measured", measured, ("average", "period"))
    checked_flag("burst", burst)
    if not outputs or not all((name, measured) in ACCESS_LINK_SIGNALS for name in outputs):
        raise InvalidValue("outputs", (*outputs, measured), "some of delay, jitter, throughput; average or period")
    if isinstance(result, Result):
        if "signals" not in result.tables:
            raise InvalidValue("result", "no signals", "a run with a control of kind track")
        return tracking_signals(result, outputs, burst, measured)
    if not np.isfinite(result.rate_bit_per_s).all():
        raise InvalidValue("result", "open regulators", "a run in which R has a value in every period")
    fields = [ACCESS_LINK_SIGNALS[name, measured] for name in outputs]
    inputs = {"R": result.rate_bit_per_s / MBIT} | ({"burst": result.burst.astype(float)} if burst else {})
    return SignalTrace(
        interval_s=result.scenario.interval,
        input_values=np.column_stack(list(inputs.values())),
        output_values=np.column_stack([getattr(result, each.name) * (each.unit / each.assumed) for each in fields]),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
    )
