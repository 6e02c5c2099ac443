"""A scenario's `Track` at work: its law's intervals with their references, and the loop over them.

Engines share both, whatever simulates the packets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, isclose
from typing import Any, Literal, NamedTuple

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.core.register import RUNNING_LAWS
from netctrl.core.units import unit_scale
from netctrl.laws.tracking.online_map import OnlineStaticMap, learn, online_schedule
from netctrl.laws.tracking.online_shift import OnlineShift, learn_shift, shifted
from netctrl.laws.tracking.reference_governor import ReferenceGovernor, govern, reference_governor
from netctrl.laws.tracking.schedule import GainSchedule, scheduled
from netctrl.laws.tracking.tracking import (
    TrackingGains,
    TrackingState,
    linearised,
    start_tracking,
    step_tracking,
    tracking_gains,
)
from netctrl.model.design.design import ConnetDesign, MpcDesign, read_design
from netctrl.model.design.mpc import MpcLaw
from netctrl.model.law import TrackingLaw
from netctrl.scenario.network.track import Track, regulator_of, tracked_groups

Measured = Literal["average", "period"]
MBIT, _MS = 1e6, 1e-3
_PER_S = 1e3
"""Milliseconds of a second."""


class Period(NamedTuple):
    """Measurements of one of the law's intervals, taken at its end."""

    delay_ms: float
    """Moving average over received packets of the measured flow, d += (d_i - d)/8; 0 before the first."""
    jitter_ms: float
    """Moving average of |d_i - d_(i-1)|, computed likewise."""
    mean_delay_ms: float
    """Mean over the packets received in the interval; without any, the moving average."""
    mean_jitter_ms: float
    other_bit_per_s: float
    """Throughput of the regulated flows, with headers."""


class TrackedSignal(NamedTuple):
    """An output of a law, as a `Period` has it."""

    name: str
    """Name of the field in a Period."""
    unit: float
    """Unit of the field [bit/s or s]."""
    assumed: float
    """Unit assumed for a law that names none."""


TRACKED_SIGNALS = {
    ("delay", "average"): TrackedSignal("delay_ms", _MS, _MS),
    ("jitter", "average"): TrackedSignal("jitter_ms", _MS, _MS),
    ("throughput", "average"): TrackedSignal("other_bit_per_s", 1.0, MBIT),
    ("delay", "period"): TrackedSignal("mean_delay_ms", _MS, _MS),
    ("jitter", "period"): TrackedSignal("mean_jitter_ms", _MS, _MS),
    ("throughput", "period"): TrackedSignal("other_bit_per_s", 1.0, MBIT),
}


class TrackPlan(NamedTuple):
    """T intervals under a law with m inputs and p outputs."""

    law: TrackingLaw | MpcLaw
    reference: np.ndarray
    """(T, p) [the law's units]."""
    signals: tuple[str, ...]
    """(p,) fields of a Period."""
    scale: np.ndarray
    """(p,) factors from these fields to the law's units."""
    rate_unit: float
    """Unit of the law's first input [bit/s]."""
    state: TrackingState
    """State when the law is switched on."""
    start: int
    """Number of intervals before that, in which each flow sends what it offers."""
    governor: ReferenceGovernor | None
    schedule: GainSchedule | OnlineStaticMap | OnlineShift | None


class Periods(NamedTuple):
    """What T intervals brought; m inputs, p outputs."""

    driven: Sequence[tuple[float, int, Period]]
    """Of each the rate of all tracked flows together [bit/s], the packets of a burst, and what was measured."""
    given: np.ndarray
    """(T, p) references given to the law."""
    measured: np.ndarray
    """(T, p) [the law's units]."""
    commanded: np.ndarray
    """(T, m) before the limits, within them where a static map is learned; NaN while the law was off."""
    curve: OnlineStaticMap | None = None
    """The learned static map."""
    shift: np.ndarray | None = None
    """(T,) the learned shift of the law's curve that it took, at the end of each interval."""


class TrackedFlows(NamedTuple):
    """F flows whose rates a scenario's `Track` sets, in the order of `tracked_groups`."""

    share: np.ndarray
    """(F,) of the rate of all."""
    offered: np.ndarray
    """(F,) greatest rate [bit/s]."""
    burst: np.ndarray
    """(F,) packets of a burst, unless the law sets another number."""

    def rates(self, rate_bit_per_s: float) -> np.ndarray:
        """(F,) rates at a rate of all together [bit/s]; inf: what they offer."""
        return np.minimum(rate_bit_per_s * self.share, self.offered)

    def bursts(self, burst: int) -> np.ndarray:
        """(F,) packets of a burst; 0: as each group has it."""
        return np.full(len(self.burst), burst) if burst else self.burst


def tracked_flows(scenario: Any) -> TrackedFlows:
    """The flows of a scenario with a control of kind track."""
    groups = tracked_groups(scenario)
    counts, gates = [group.count for group in groups], [regulator_of(group) for group in groups]
    shares = scenario.control.shares or (1.0 / len(groups),) * len(groups)
    return TrackedFlows(
        share=np.repeat(np.array(shares) / counts, counts),
        offered=np.repeat([gate.rate for gate in gates if gate], counts),
        burst=np.repeat([gate.burst for gate in gates if gate], counts),
    )


class GateDraws(NamedTuple):
    """What F flows of a group draw that send as their regulators let them."""

    opens: np.ndarray
    """(F,) when the first packet goes [ns]."""
    random: np.ndarray
    """(F,) states of the generators of their pauses (`netctrl.sim.packet.state.chance`)."""


def track_plan(
    scenario: Any,
    design: ConnetDesign | MpcDesign | TrackingLaw | None = None,
    schedule: GainSchedule | OnlineStaticMap | OnlineShift | None = None,
) -> TrackPlan:
    """Intervals of a scenario's `Track` under a law.

    Parameters
    ----------
    scenario : Scenario
    design : ConnetDesign, MpcDesign or TrackingLaw, optional
        In place of the file that the control names.
    schedule : GainSchedule, OnlineStaticMap or OnlineShift, optional
        Gives the law the same speed at all points of the curve (`netctrl.laws.tracking.schedule`); an `OnlineStaticMap`
        also learns from each interval (`netctrl.laws.tracking.online_map`), an `OnlineShift` how far a law's own curve
        has moved (`netctrl.laws.tracking.online_shift`).

    Raises
    ------
    InvalidValue
        No law, a law that doesn't fit the control, or a duration that isn't a whole number of its intervals.
    FileError
        The Design file can't be read.
    """
    control = scenario.control
    design = _design(control, design)
    whole = isinstance(design, ConnetDesign)
    law: TrackingLaw | MpcLaw = design.law if whole or isinstance(design, MpcDesign) else design
    interval = law.interval_s
    T = round(scenario.duration / interval)
    if T < 1 or not isclose(T * interval, scenario.duration, rel_tol=1e-6):
        raise InvalidValue("duration", scenario.duration, f"a whole number of the law's intervals of {interval:g} s")
    rows = control.reference
    if not rows and isinstance(law, MpcLaw):
        rows = (tuple(law.reference.tolist()),)
    if not rows and not whole:
        raise InvalidValue("control.reference", rows, "references, with a law that isn't a Design's")
    paper = whole and design.inputs.law == "paper"
    measured = control.measured or ("average" if paper else "period")
    own = getattr(law, "curve", None) is not None
    if schedule is not None and isinstance(law, MpcLaw):
        raise InvalidValue("schedule", type(schedule).__name__, "None under an MPC Design")
    if schedule is not None and own != isinstance(schedule, OnlineShift):
        takes = "none or an OnlineShift: this law has a curve, and its gain follows it" if own else "a law with a curve"
        raise InvalidValue("schedule", type(schedule).__name__, takes)
    first = law.input_offset.copy()
    unit = unit_scale(law.input_units[0]) or MBIT
    if control.first_rate is not None:
        first[0] = control.first_rate / unit
    read, scale = _read_signals(law, measured)
    p = len(law.outputs)
    desired = in_turn(rows or design.inputs.references or (middle(design),), T)
    if desired.shape != (T, p):
        raise InvalidValue("control.reference", desired.shape, f"finite numbers of shape ({p},) or ({T}, {p})")
    return TrackPlan(
        law=law,
        reference=desired,
        signals=tuple(signal.name for signal in read),
        scale=scale,
        rate_unit=unit,
        state=_first_state(law, None if control.first_rate is None else first),
        start=round(control.start / interval),
        governor=_governor(law) if control.governor else None,
        schedule=schedule,
    )


def _design(control: Track, design: Any) -> Any:
    if design is None and control.file:
        design = read_design(control.file)
        if not isinstance(design, ConnetDesign | MpcDesign):
            takes = f"a CONNET or MPC Design; this one is of method {design.method}"
            raise InvalidValue("control.file", control.file, takes)
    if not isinstance(design, ConnetDesign | MpcDesign | TrackingLaw):
        got = None if design is None else type(design).__name__
        raise InvalidValue("design", got, "a CONNET or MPC Design, unless control.file names its file")
    return design


def _first_state(law: TrackingLaw | MpcLaw, applied: np.ndarray | None) -> TrackingState:
    """What a law that is switched on remembers; of one of model predictive control that runs, the inputs alone."""
    if not isinstance(law, MpcLaw):
        return start_tracking(tracking_gains(law), applied)
    given = law.problem
    if given.get("measured") or np.any(given.get("delay", 0)) or given.get("measurement_delay", 0) != 1:
        takes = "one whose measurements are a sample old (measurement_delay = 1), and without other delays"
        raise InvalidValue("design", "an MPC Design of another plant", f"{takes} and measured disturbances")
    first = np.clip(law.safe_input if applied is None else applied, law.low, law.high)
    return TrackingState(np.zeros(0), np.zeros(0), first, first)


def _governor(law: TrackingLaw | MpcLaw) -> ReferenceGovernor:
    if isinstance(law, MpcLaw):
        raise InvalidValue("control.governor", True, "false: MPC keeps to its bounds by itself")
    return reference_governor(law)


def _read_signals(law: TrackingLaw | MpcLaw, measured: Measured) -> tuple[list[TrackedSignal], np.ndarray]:
    """What a law reads, and factors to its units."""
    if len(law.inputs) > 2 or not all((name, measured) in TRACKED_SIGNALS for name in law.outputs):
        takes = "inputs rate or rate and burst, outputs delay, jitter, throughput; measured average or period"
        raise InvalidValue("law", f"{', '.join(law.inputs)} -> {', '.join(law.outputs)}, {measured}", takes)
    read = [TRACKED_SIGNALS[name, measured] for name in law.outputs]
    units = [unit_scale(unit) or signal.assumed for signal, unit in zip(read, law.output_units, strict=True)]
    return read, np.array([signal.unit for signal in read]) / np.array(units)


def in_turn(references: Any, periods: int) -> np.ndarray:
    """(T, p) successive references of equal length; only the first ones if there are more than periods."""
    held = np.array(references)[:periods]
    return held[np.arange(periods) * len(held) // periods]


def middle(design: ConnetDesign) -> np.ndarray:
    """(p,) steady outputs of a Design's model in the middle of its inputs' limits."""
    law = design.law
    offset = 0.5 * (linearised(law, law.low) + linearised(law, law.high)) - law.input_offset
    return law.output_offset + np.array(design.certificate.plant_dc_gain) @ offset


def run_periods(plan: TrackPlan, advance: Callable[[float, int], Period]) -> Periods:
    """Run all intervals of a plan.

    Parameters
    ----------
    plan : TrackPlan
    advance : callable
        Simulates an interval with a rate of all tracked flows together [bit/s], inf: what they offer, and the packets
        that a flow releases at once, 0 for each group's own.
    """
    if isinstance(plan.law, MpcLaw):
        return _run_mpc(plan, plan.law, advance)
    law, governor, schedule = plan.law, plan.governor, plan.schedule
    desired, state = plan.reference, plan.state
    (T, p), m = desired.shape, len(law.inputs)
    driven: list[tuple[float, int, Period]] = []
    curve = schedule if isinstance(schedule, OnlineStaticMap) else None
    factors = schedule if isinstance(schedule, GainSchedule) else None
    shift = schedule if isinstance(schedule, OnlineShift) else None
    moved = np.zeros(T)
    given, seen, commanded = np.array(desired), np.empty((T, p)), np.full((T, m), np.nan)
    gains, cut = tracking_gains(law), law.output_offset.copy()
    for k in range(T):
        driven.append(_driven(plan, k, state.applied, advance))
        seen[k] = _seen(plan, driven[-1][-1])
        if k < plan.start:
            continue
        commanded[k] = state.commanded if curve is None else state.applied
        if governor is not None:
            given[k] = cut = govern(governor, state, cut, desired[k])
        if curve is not None:
            curve = learn(curve, state.applied, seen[k])
            factors = online_schedule(curve)
        shown = seen[k] if factors is None else scheduled(factors, seen[k], given[k], state.applied)
        if shift is not None:
            shift = learn_shift(shift, state.applied, seen[k])
            gains, moved[k] = shifted(shift), shift.used
        if curve is not None:
            shown = _answered(gains, state, shown, given[k])
        state = step_tracking(gains, state, shown, given[k])
    return Periods(driven, given, seen, commanded, curve, None if shift is None else moved)


def _run_mpc(plan: TrackPlan, law: MpcLaw, advance: Callable[[float, int], Period]) -> Periods:
    """The same under a law of model predictive control."""
    desired, applied = plan.reference, plan.state.applied
    running: Any = RUNNING_LAWS["mpc"](law, applied)
    driven: list[tuple[float, int, Period]] = []
    seen, commanded = np.empty(desired.shape), np.full((len(desired), len(applied)), np.nan)
    for k in range(len(desired)):
        driven.append(_driven(plan, k, applied, advance))
        seen[k] = _seen(plan, driven[-1][-1])
        if k >= plan.start:
            commanded[k] = applied
            # With preview it is told what will be asked for in the intervals that follow, the last one held.
            rows = desired[k + 1 : k + 1 + running.lead] if law.preview else desired[k : k + 1]
            applied = running.decide(seen[k], reference=rows if len(rows) else desired[-1:])
    return Periods(driven, np.array(desired), seen, commanded)


def _driven(
    plan: TrackPlan, k: int, applied: np.ndarray, advance: Callable[[float, int], Period]
) -> tuple[float, int, Period]:
    """An interval with these inputs, if the law is on by then: rate, burst, what was measured."""
    on = k >= plan.start
    rate = max(float(applied[0]) * plan.rate_unit, 0.0) if on else inf
    burst = max(1, round(float(applied[1]))) if on and len(applied) > 1 else 0
    return rate, burst, advance(rate, burst)


def _seen(plan: TrackPlan, period: Period) -> np.ndarray:
    """(p,) what was measured [the law's units]."""
    return np.array([getattr(period, name) for name in plan.signals]) * plan.scale


def _answered(gains: TrackingGains, state: TrackingState, shown: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Outputs between the reference and what the law is shown, as near to these as inputs answer within limits."""
    none, whole = (step_tracking(gains, state, each, reference).commanded for each in (reference, shown))
    change = whole - none
    room = np.where(change > 0.0, gains.high, gains.low) - none
    with np.errstate(divide="ignore", invalid="ignore"):
        share = float(np.where(change != 0.0, room / change, 1.0).min().clip(0.0, 1.0))
    return reference + share * (shown - reference)


def driven_columns(interval: float, driven: Sequence[tuple[float, int, Period]]) -> dict[str, np.ndarray]:
    """Columns of the table `signals`: of each interval its end, the rate of all tracked flows together (inf: what they
    offer) and the packets of a burst (0: each group's own), and what was measured, in SI units.

    `delay` and `jitter` are moving averages at the interval's end, `mean delay` and `mean jitter` means over it.
    """
    rates, bursts, found = zip(*driven, strict=True)
    delay, jitter, mean_delay, mean_jitter, throughput = np.array(found).T
    return {
        "time": interval * np.arange(1, len(found) + 1),
        "rate": np.array(rates),
        "burst": np.array(bursts, dtype=float),
        "delay": delay / _PER_S,
        "jitter": jitter / _PER_S,
        "mean delay": mean_delay / _PER_S,
        "mean jitter": mean_jitter / _PER_S,
        "throughput": throughput,
    }


def law_columns(plan: TrackPlan, found: Periods) -> dict[str, np.ndarray]:
    """Columns of the table `signals`, in the law's units: measured outputs, their references, those that a governor
    gives, a learned shift of its curve, the inputs that the law commands, before their limits (NaN while it was off),
    and whether one is at its limit."""
    law, columns = plan.law, {}
    for place, name in enumerate(law.outputs):
        columns[f"measured {name}"] = found.measured[:, place]
        columns[f"reference {name}"] = plan.reference[:, place]
        columns[f"given {name}"] = found.given[:, place]
    if found.shift is not None:
        columns["shift"] = found.shift
    columns |= {f"commanded {name}": found.commanded[:, place] for place, name in enumerate(law.inputs)}
    width = law.high - law.low
    room = 1e-9 * np.where(np.isfinite(width), width, 0.0)  # a solver's rounding
    at_limit = (found.commanded >= law.high - room) | (found.commanded <= law.low + room)
    return columns | {"at limit": at_limit.any(axis=1).astype(float)}
