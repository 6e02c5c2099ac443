"""A tracking law on an access link, packet by packet: what it was designed for, outside of its linear model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import Any, Literal, NamedTuple

import numpy as np

from netctrl.errors import InvalidValue, checked_whole
from netctrl.model.artifact import provenance
from netctrl.model.fifo_result import FifoResult, FifoSample, fifo_result
from netctrl.model.fifo_scenario import FifoScenario
from netctrl.model.gain import TrackingLaw
from netctrl.model.signals import SignalTrace
from netctrl.runtime.governor import ReferenceGovernor, govern
from netctrl.runtime.learning import LearnedCurve, learn, learned_schedule
from netctrl.runtime.schedule import GainSchedule, scheduled
from netctrl.runtime.tracking import start_tracking, step_tracking
from netctrl.sim.fifo_run import FifoLink
from netctrl.units import unit_scale

__all__ = ["FifoTracking", "fifo_signals", "track_fifo"]

Measured = Literal["average", "period"]
_MBIT, _MS = 1e6, 1e-3


class _Field(NamedTuple):
    name: str
    """In a FifoSample."""
    unit: float
    """Of the field [bit/s or s]."""
    assumed: float
    """Of a law that names no unit."""


_FIELDS = {
    ("delay", "average"): _Field("delay_ms", _MS, _MS),
    ("jitter", "average"): _Field("jitter_ms", _MS, _MS),
    ("throughput", "average"): _Field("other_bit_per_s", 1.0, _MBIT),
    ("delay", "period"): _Field("mean_delay_ms", _MS, _MS),
    ("jitter", "period"): _Field("mean_jitter_ms", _MS, _MS),
    ("throughput", "period"): _Field("other_bit_per_s", 1.0, _MBIT),
}


class FifoTracking(NamedTuple):
    """T periods of a link under a law with m inputs and p outputs."""

    result: FifoResult
    reference: np.ndarray
    """(T, p) what was asked for [the law's units]."""
    given: np.ndarray
    """(T, p) what the law was given: the same without a governor."""
    measured: np.ndarray
    """(T, p) what it measured."""
    commanded: np.ndarray
    """(T, m) its inputs before the limits; NaN while it was off."""
    curve: LearnedCurve | None = None
    """What was learned by the end, where the schedule was learned."""

    def infeasible(self, law: TrackingLaw, least_s: float = 20.0) -> list[tuple[float, float]]:
        """Times [s] through which an input was at its limit for `least_s` or longer: the reference can't be had."""
        at_limit = ((self.commanded > law.high) | (self.commanded < law.low)).any(axis=1)
        edges = np.flatnonzero(np.diff(np.concatenate([[False], at_limit, [False]]).astype(int)))
        spans = zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
        tau = law.interval_s
        return [(tau * first, tau * last) for first, last in spans if tau * (last - first) >= least_s]


def track_fifo(
    scenario: FifoScenario,
    law: TrackingLaw,
    reference: Any,
    *,
    measured: Measured = "average",
    governor: ReferenceGovernor | None = None,
    schedule: GainSchedule | LearnedCurve | None = None,
    start: int = 0,
    first_rate: float | None = None,
    argv: Iterable[str] = (),
) -> FifoTracking:
    """Run a link with a law in the loop.

    Parameters
    ----------
    scenario : FifoScenario
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
        Stands before the law (`netctrl.runtime.governor`).
    schedule : GainSchedule or LearnedCurve, optional
        Makes the law as fast at all points of the curve (`netctrl.runtime.schedule`); a `LearnedCurve` goes on learning
        from each period (`netctrl.runtime.learning`).
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
    T, m, p = scenario.periods, len(law.inputs), len(law.outputs)
    checked_whole("start", start, f"a number of periods from 0 to {T}", at_most=T)
    if abs(law.interval_s - scenario.interval) > 1e-9 * scenario.interval:
        raise InvalidValue("law", f"interval {law.interval_s:g} s", f"one for this link's {scenario.interval:g} s")
    if m > 2 or not all((name, measured) in _FIELDS for name in law.outputs):
        takes = "inputs rate or rate and burst, outputs delay, jitter, throughput; measured is average or period"
        raise InvalidValue("law", f"{', '.join(law.inputs)} -> {', '.join(law.outputs)}, {measured}", takes)
    wanted = np.asarray(reference, dtype=float)
    wanted = np.tile(wanted, (T, 1)) if wanted.shape == (p,) else wanted
    if wanted.shape != (T, p) or not np.isfinite(wanted).all():
        raise InvalidValue("reference", wanted.shape, f"finite numbers of shape ({p},) or ({T}, {p})")
    in_bit_per_s = unit_scale(law.input_units[0]) or _MBIT
    read = [_FIELDS[name, measured] for name in law.outputs]
    units = [unit_scale(unit) or field.assumed for field, unit in zip(read, law.output_units, strict=True)]
    scale = np.array([field.unit for field in read]) / np.array(units)
    first = law.input_offset.copy()
    if first_rate is not None:
        first[0] = first_rate
    state = start_tracking(law, None if first_rate is None else first)
    link, samples = FifoLink(scenario), []
    curve, factors = (schedule, None) if isinstance(schedule, LearnedCurve) else (None, schedule)
    given, seen, commanded = np.array(wanted), np.empty((T, p)), np.full((T, m), np.nan)
    cut = law.output_offset.copy()
    for k in range(T):
        if k < start:
            samples.append(link.advance(inf))
            seen[k] = _read(samples[-1], read) * scale
            continue
        rate = float(state.applied[0]) * in_bit_per_s
        burst = max(1, round(float(state.applied[1]))) if m > 1 else 0
        samples.append(link.advance(max(rate, 0.0), burst))
        seen[k], commanded[k] = _read(samples[-1], read) * scale, state.commanded
        if governor is not None:
            cut, _ = govern(governor, state, cut, wanted[k])
            given[k] = cut
        if curve is not None:
            curve = learn(curve, state.applied, seen[k])
            factors = learned_schedule(curve)
        shown = seen[k] if factors is None else scheduled(factors, seen[k], given[k], state.applied)
        state = step_tracking(law, state, shown, given[k])
    record = provenance(argv=argv, seed=scenario.seed, libraries=("numpy", "numba"))
    return FifoTracking(fifo_result(scenario, samples, record), wanted, given, seen, commanded, curve)


def fifo_signals(
    result: FifoResult,
    *,
    outputs: Sequence[str] = ("delay", "jitter"),
    burst: bool = False,
    measured: Measured = "period",
) -> SignalTrace:
    """A run's R [Mbit/s] and what came of it, from which `netctrl.identify` makes a model.

    Parameters
    ----------
    result : FifoResult
        Of `simulate_fifo` with rates that excite, such as `netctrl.gbn`'s.
    outputs : sequence of {"delay", "jitter", "throughput"}
        In ms and Mbit/s.
    burst : bool
        Whether bursts [packets] are a second input.
    measured : {"average", "period"}
        As in `track_fifo`.

    Raises
    ------
    InvalidValue
        Regulators were open: R is no number then; or an output that isn't known.
    """
    if not np.isfinite(result.rate_bit_per_s).all():
        raise InvalidValue("result", "open regulators", "a run in which R has a value in every period")
    if not outputs or not all((name, measured) in _FIELDS for name in outputs):
        raise InvalidValue("outputs", (*outputs, measured), "some of delay, jitter, throughput; average or period")
    fields = [_FIELDS[name, measured] for name in outputs]
    inputs = {"R": result.rate_bit_per_s / _MBIT} | ({"burst": result.burst.astype(float)} if burst else {})
    return SignalTrace(
        interval_s=result.scenario.interval,
        input_values=np.column_stack(list(inputs.values())),
        output_values=np.column_stack([getattr(result, each.name) * (each.unit / each.assumed) for each in fields]),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
    )


def _read(sample: FifoSample, fields: Sequence[_Field]) -> np.ndarray:
    return np.array([getattr(sample, field.name) for field in fields])
