"""Plan and result of a tracking law on an access link: references, signals, units and start.

Engines share the plan, whatever simulates the packets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from netctrl.errors import InvalidValue, checked_numbers, checked_whole, checked_word
from netctrl.laws.tracking.online_map import OnlineStaticMap
from netctrl.laws.tracking.reference_governor import ReferenceGovernor
from netctrl.laws.tracking.schedule import GainSchedule
from netctrl.laws.tracking.tracking import TrackingState, start_tracking, tracking_gains
from netctrl.model.design.design import ConnetDesign
from netctrl.model.io.provenance import Provenance
from netctrl.model.law import TrackingLaw
from netctrl.scenario.access.kind_result import KindResult
from netctrl.scenario.access.result import AccessLinkResult, AccessLinkSummary
from netctrl.scenario.network.track import infeasible
from netctrl.scenario.scenario import Scenario
from netctrl.units import unit_scale

if TYPE_CHECKING:
    import pandas as pd

Measured = Literal["average", "period"]
MBIT, _MS = 1e6, 1e-3


class AccessLinkSignal(NamedTuple):
    """An output of a law, as measured at a link."""

    name: str
    """Name of the field in an AccessLinkSample."""
    unit: float
    """Unit of the field [bit/s or s]."""
    assumed: float
    """Unit assumed for a law that names none."""


ACCESS_LINK_SIGNALS = {
    ("delay", "average"): AccessLinkSignal("delay_ms", _MS, _MS),
    ("jitter", "average"): AccessLinkSignal("jitter_ms", _MS, _MS),
    ("throughput", "average"): AccessLinkSignal("other_bit_per_s", 1.0, MBIT),
    ("delay", "period"): AccessLinkSignal("mean_delay_ms", _MS, _MS),
    ("jitter", "period"): AccessLinkSignal("mean_jitter_ms", _MS, _MS),
    ("throughput", "period"): AccessLinkSignal("other_bit_per_s", 1.0, MBIT),
}


class AccessLinkPlan(NamedTuple):
    """T periods of a link under a law with m inputs and p outputs."""

    law: TrackingLaw
    reference: np.ndarray
    """(T, p) [the law's units]."""
    signals: tuple[str, ...]
    """(p,) fields of an AccessLinkSample."""
    scale: np.ndarray
    """(p,) factors from these fields to the law's units."""
    rate_unit: float
    """Unit of the law's first input [bit/s]."""
    state: TrackingState
    """State when the law is switched on."""
    start: int
    """Number of periods before that, in which regulators are open."""
    governor: ReferenceGovernor | None
    schedule: GainSchedule | OnlineStaticMap | None


@dataclass(frozen=True, slots=True, eq=False)
class AccessLinkTracking(KindResult):
    """Result of an access link under a tracking law: T periods, m inputs, p outputs."""

    result: AccessLinkResult
    """Measurements of the link."""
    law: TrackingLaw
    """The law in the loop."""
    reference: np.ndarray
    """(T, p) requested references [the law's units]."""
    given: np.ndarray
    """(T, p) references given to the law: the requested ones unless a governor changes them."""
    measured: np.ndarray
    """(T, p) outputs that the law measured."""
    commanded: np.ndarray
    """(T, m) the law's inputs before their limits, within them where a static map is learned; NaN while it was off."""
    curve: OnlineStaticMap | None = None
    """The learned static map at the end, where the gain schedule was learned."""

    @property
    def scenario(self) -> Scenario:
        """The simulated scenario."""
        return self.result.scenario

    @property
    def simulator(self) -> str:
        """Engine that ran it."""
        return self.result.simulator

    @property
    def provenance(self) -> Provenance:
        """How the result was made."""
        return self.result.provenance

    def summary(self) -> AccessLinkSummary:
        """Means of the link over the run."""
        return self.result.summary()

    def to_pandas(self) -> pd.DataFrame:
        """A DataFrame with one row per period, as for the link's result."""
        return self.result.to_pandas()

    def _settled(self) -> list[tuple[str, str, float, float]]:
        """Name, unit, measured and desired mean of each output over the second half of the run."""
        half = len(self.reference) // 2
        means = self.measured[half:].mean(axis=0).tolist(), self.reference[half:].mean(axis=0).tolist()
        return list(zip(self.law.outputs, self.law.output_units, *means, strict=True))

    @property
    def links(self) -> tuple[str, ...]:
        """Names in `measures` that are links."""
        return self.result.links

    def measures(self) -> dict[tuple[str, str], float]:
        """Results of the link, and each output's mean over the second half of the run in the law's units."""
        return self.result.measures() | {(f"{name} [{unit}]", "second half"): y for name, unit, y, _ in self._settled()}

    def table(self) -> tuple[str, list[tuple[str, str]]]:
        """Title, and rows of (name, text): link, outputs in the second half, times with infeasible references."""
        title, rows = self.result.table()
        for name, unit, found, desired in self._settled():
            rows.append((f"{name}, second half", f"{found:.4g}, requested {desired:.4g} {unit}".rstrip()))
        return title, rows + [("infeasible", f"{first:g} to {last:g} s") for first, last in self.infeasible()]

    def infeasible(self, min_s: float = 20.0) -> list[tuple[float, float]]:
        """Intervals in which an input was at its limit throughout, so that the reference is infeasible.

        Parameters
        ----------
        min_s : float
            Shortest interval that is listed [s].

        Returns
        -------
        list of (float, float)
            Beginning and end of each interval [s].
        """
        law = self.law
        at_limit = ((self.commanded >= law.high) | (self.commanded <= law.low)).any(axis=1)
        return infeasible(at_limit, law.interval_s, min_s)


def access_link_plan(
    scenario: Scenario,
    law: TrackingLaw,
    reference: Any,
    *,
    measured: Measured = "average",
    governor: ReferenceGovernor | None = None,
    schedule: GainSchedule | OnlineStaticMap | None = None,
    start: int = 0,
    first_rate: float | None = None,
) -> AccessLinkPlan:
    """Check that a law and its references fit a link.

    Parameters and errors are those of `netctrl.sim.access.track.track_access_link`.
    """
    if abs(law.interval_s - scenario.interval) > 1e-9 * scenario.interval:
        raise InvalidValue("law", f"interval {law.interval_s:g} s", f"one for this link's {scenario.interval:g} s")
    return tracking_plan(
        scenario.steps,
        law,
        reference,
        measured=measured,
        governor=governor,
        schedule=schedule,
        start=start,
        first_rate=first_rate,
    )


def tracking_plan(
    periods: int,
    law: TrackingLaw,
    reference: Any,
    *,
    measured: Measured,
    governor: ReferenceGovernor | None,
    schedule: GainSchedule | OnlineStaticMap | None,
    start: int,
    first_rate: float | None,
) -> AccessLinkPlan:
    """The plan of so many periods of the law's interval; parameters as of `track_access_link`.

    Raises
    ------
    InvalidValue
        A law with other signals, or a reference of another shape.
    """
    T, m, p = periods, len(law.inputs), len(law.outputs)
    checked_word("measured", measured, ("average", "period"))
    checked_whole("start", start, f"a number of periods from 0 to {T}", at_most=T)
    if m > 2 or not all((name, measured) in ACCESS_LINK_SIGNALS for name in law.outputs):
        takes = "inputs rate or rate and burst, outputs delay, jitter, throughput; measured average or period"
        raise InvalidValue("law", f"{', '.join(law.inputs)} -> {', '.join(law.outputs)}, {measured}", takes)
    desired = checked_numbers("reference", reference, f"finite numbers of shape ({p},) or ({T}, {p})")
    desired = np.tile(desired, (T, 1)) if desired.shape == (p,) else desired
    if desired.shape != (T, p) or not np.isfinite(desired).all():
        raise InvalidValue("reference", desired.shape, f"finite numbers of shape ({p},) or ({T}, {p})")
    read = [ACCESS_LINK_SIGNALS[name, measured] for name in law.outputs]
    units = [unit_scale(unit) or signal.assumed for signal, unit in zip(read, law.output_units, strict=True)]
    first = law.input_offset.copy()
    if first_rate is not None:
        first[0] = first_rate
    return AccessLinkPlan(
        law=law,
        reference=desired,
        signals=tuple(signal.name for signal in read),
        scale=np.array([signal.unit for signal in read]) / np.array(units),
        rate_unit=unit_scale(law.input_units[0]) or MBIT,
        state=start_tracking(tracking_gains(law), None if first_rate is None else first),
        start=start,
        governor=governor,
        schedule=schedule,
    )


def in_turn(references: Any, periods: int) -> np.ndarray:
    """(T, p) successive references of equal length; only the first ones if there are more than periods."""
    held = np.array(references)[:periods]
    return held[np.arange(periods) * len(held) // periods]


def middle(design: ConnetDesign) -> np.ndarray:
    """(p,) steady outputs of a Design's model in the middle of its inputs' limits."""
    law = design.law
    offset = 0.5 * (law.low + law.high) - law.input_offset
    return law.output_offset + np.array(design.certificate.plant_dc_gain) @ offset
