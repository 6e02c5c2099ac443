"""A pacing law at work: (state, sample) to the rate until the next one, for one flow, a trace of it, or many flows."""

from __future__ import annotations

from math import nan
from typing import Any, NamedTuple

import numpy as np

from netctrl.errors import InvalidValue
from netctrl.laws.pacing.arx import ArxState, arx_settings, arx_start, arx_step
from netctrl.laws.pacing.arx_batch import arx_many
from netctrl.laws.pacing.target_rtt import target_many, target_step
from netctrl.laws.pacing.target_state import TargetState, target_settings, target_start
from netctrl.laws.record import as_record, row_names
from netctrl.model.law import ArxPacer, PacingLaw, TargetRttPacer

__all__ = [
    "EVENTS",
    "Pacer",
    "PacingRun",
    "PacingSample",
    "PacingState",
    "arx_state",
    "pace",
    "pace_many",
    "pace_trace",
    "pacer",
    "pacing_values",
    "start_pacing",
]

EVENTS = ("bad_rtt", "bad_time", "held", "floored", "resets")
"""Counted in a state: RTTs that are none; times that go backwards; rates held for want of a number or of an effect;
rates that would have been below the least one; estimates that exploded and started again."""


class PacingSample(NamedTuple):
    """What a sender sees with an acknowledgement."""

    time_s: float
    rtt_s: float
    """As sampled: a smoothed one hides what is to be learned."""
    delivered_bytes: float = nan
    """Acknowledged since the flow began; the paper's law needs none."""
    in_flight_bytes: float = nan
    """Sent and not yet acknowledged or lost, where it is known."""
    lost_bytes: float = nan
    """Lost since the flow began, where it is known: at each loss a target-RTT law halves its rate. NaN: none."""


class PacingState(NamedTuple):
    """What a law remembers; `pacing_values` names it."""

    values: np.ndarray
    """(s,) read-only."""


class Pacer(NamedTuple):
    """A law made ready for its kernel."""

    law: PacingLaw
    settings: np.ndarray
    paper: bool
    """Whether it is the paper's law."""
    places: int
    """Length of its state."""


class PacingRun(NamedTuple):
    """A law over T samples."""

    rates: np.ndarray
    """(T,) in force after each sample [bit/s]."""
    predictions: np.ndarray
    """(T,) of the RTT, made before it was seen [s]; of a target-RTT law, of the RTT to come. NaN: there is none."""
    used: np.ndarray
    """(T,) whether the sample was used for a new rate."""
    state: PacingState
    events: dict[str, int]


def pacer(law: PacingLaw) -> Pacer:
    """Make a law ready: once, before its first step. Raises InvalidValue for what is no pacing law."""
    places = len(start_pacing(law).values)
    if isinstance(law, ArxPacer):
        return Pacer(law, arx_settings(law), True, places)
    return Pacer(law, target_settings(law), False, places)


def start_pacing(law: PacingLaw) -> PacingState:
    """Before the first sample: the law's start rate is in force. Raises InvalidValue for what is no pacing law."""
    if not isinstance(law, ArxPacer | TargetRttPacer):
        raise InvalidValue("law", law, "a pacing law: the law of a Design that netctrl.pacing made")
    return _state(arx_start(law) if isinstance(law, ArxPacer) else target_start(law))


def pace(ready: Pacer, state: PacingState, sample: PacingSample) -> tuple[float, PacingState]:
    """One sample: the rate until the next one [bit/s], and what is remembered.

    A sample that can't be used (an RTT that isn't above 0, a time that goes backwards, what isn't a number) leaves the
    rate as it is and is counted.

    Raises
    ------
    InvalidValue
        What isn't a Pacer, a state of its law, or a PacingSample of numbers.
    """
    try:
        values = state.values.copy()
        time, rtt, delivered, in_flight, lost = map(float, tuple(sample) if isinstance(sample, tuple) else ())
        settings, paper, places = ready.settings, ready.paper, ready.places
    except (AttributeError, TypeError, ValueError, OverflowError):
        raise _refused(ready, state, sample) from None
    if values.shape != (places,):
        raise _refused(ready, state, sample)
    if paper:
        rate = arx_step(values, settings, time, rtt)
    else:
        rate = target_step(values, settings, time, rtt, delivered, in_flight, lost)
    return rate, PacingState(values)


def _refused(ready: object, state: object, sample: object) -> InvalidValue:
    """Which of `pace`'s arguments is wrong."""
    if not isinstance(ready, Pacer):
        return InvalidValue("ready", ready, "what netctrl.pacer gives for a law")
    if not isinstance(state, PacingState) or np.shape(state.values) != (ready.places,):
        return InvalidValue("state", state, "what start_pacing gives for the same law, or pace after it")
    return InvalidValue("sample", sample, "a PacingSample of numbers; nan where one isn't known")


def pace_trace(
    law: PacingLaw, times: Any, rtts: Any, *, delivered: Any = None, in_flight: Any = None, lost: Any = None
) -> PacingRun:
    """The law over samples that were measured under other rates: what it predicts, and what it would set.

    Parameters
    ----------
    law : PacingLaw
    times, rtts : array_like, shape (T,)
        [s]
    delivered, in_flight, lost : array_like, shape (T,), optional
        [byte]

    Returns
    -------
    PacingRun
        Empty, with the start state, for T = 0.

    Raises
    ------
    InvalidValue
        What is no pacing law; shapes that don't fit.
    """
    ready, state = pacer(law), start_pacing(law).values.copy()
    time, rtt = _column("times", times, None), _column("rtts", rtts, None)
    T = len(time)
    if len(rtt) != T:
        raise InvalidValue("rtts", f"{len(rtt)} samples", f"as many as times, {T}")
    bytes_, flight, gone = (
        _column(name, np.full(T, nan) if values is None else values, T)
        for name, values in (("delivered", delivered), ("in_flight", in_flight), ("lost", lost))
    )
    names = row_names(ArxState if isinstance(law, ArxPacer) else TargetState)
    applied, prediction, samples = (names.index(name) for name in ("applied_s", "prediction", "samples"))
    rates, predictions, used = np.empty(T), np.full(T, nan), np.zeros(T, dtype=bool)
    for t in range(T):
        before = state[applied], state[samples]
        if isinstance(law, ArxPacer):
            rates[t] = arx_step(state, ready.settings, time[t], rtt[t])
            used[t] = state[samples] > before[1]
            if used[t] and before[1] > 0.0:
                predictions[t] = state[prediction] * state[names.index("rtt_unit")]
        else:
            rates[t] = target_step(state, ready.settings, time[t], rtt[t], bytes_[t], flight[t], gone[t])
            used[t] = state[applied] > before[0]
            if used[t] and state[prediction] > 0.0:
                predictions[t] = state[prediction]
    end = _state(state)
    values = pacing_values(law, end)
    return PacingRun(rates, predictions, used, end, {name: int(values[name]) for name in EVENTS})


def pace_many(
    law: PacingLaw,
    states: Any,
    times: Any,
    rtts: Any,
    *,
    delivered: Any = None,
    in_flight: Any = None,
    lost: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Many flows of one law at once: states (n, s), times (T,), the others (n, T), as `pace_trace` takes them.

    Returns
    -------
    rates, states : ndarray, shapes (n, T), (n, s)

    Raises
    ------
    InvalidValue
        What is no pacing law; shapes that don't fit.
    """
    _, settings, _, places = pacer(law)
    after = _numbers("states", states, f"numbers, a row of {places} for each flow")
    if after.ndim != 2 or after.shape[1] != places:
        raise InvalidValue("states", f"shape {after.shape}", f"a row of {places} for each flow")
    time = _column("times", times, None)
    shape = (len(after), len(time))
    takes = f"numbers of shape {shape}, a row a flow and a column a time"
    tables, unknown = [], np.full((1, 1) if isinstance(law, ArxPacer) else shape, nan)
    for name, values in (("rtts", rtts), ("delivered", delivered), ("in_flight", in_flight), ("lost", lost)):
        table = unknown if values is None and name != "rtts" else _numbers(name, values, takes)
        if table is not unknown and table.shape != shape:
            raise InvalidValue(name, f"shape {table.shape}", takes)
        tables.append(table)
    rates = np.empty(shape)
    if isinstance(law, ArxPacer):
        arx_many(after, settings, time, tables[0], rates)
    else:
        target_many(after, settings, time, *tables, rates)
    return rates, after


def pacing_values(law: PacingLaw, state: PacingState) -> dict[str, Any]:
    """A state by names: numbers, and for the paper's law `theta` (a, then b) and `phi` (RTTs, then rates)."""
    names = row_names(ArxState if isinstance(law, ArxPacer) else TargetState)
    named: dict[str, Any] = {name: float(value) for name, value in zip(names, state.values, strict=False)}
    if isinstance(law, ArxPacer):
        k = law.past_rtts + law.past_rates
        named["theta"] = state.values[len(names) : len(names) + k]
        named["phi"] = state.values[len(names) + k :]
    return named


def arx_state(
    law: ArxPacer, *, theta: Any, phi: Any, rate: float, mean_rtt: float, variance: float, mean_rate: float
) -> PacingState:
    """A state in the middle of things, for the paper's law: θ and φ (k,) and averages in the law's units, the rate in
    force in bit/s."""
    k = law.past_rtts + law.past_rates
    values = arx_start(law)
    state = as_record(ArxState, values)
    state.rate, state.mean_rtt, state.variance, state.mean_rate = rate, mean_rtt, variance, mean_rate
    state.samples = k
    values[-2 * k :] = np.concatenate([_column("theta", theta, k), _column("phi", phi, k)])
    return _state(values)


def _state(values: np.ndarray) -> PacingState:
    values.setflags(write=False)
    return PacingState(values)


def _numbers(argument: str, values: Any, takes: str) -> np.ndarray:
    """A copy, as floats."""
    try:
        if np.iscomplexobj(values):
            raise TypeError
        return np.array(values, dtype=float, order="C")
    except (ValueError, TypeError, OverflowError):
        raise InvalidValue(argument, "no array of numbers", takes) from None


def _column(argument: str, values: Any, length: int | None) -> np.ndarray:
    takes = "an array of numbers of one dimension" + ("" if length is None else f", {length} of them")
    found = _numbers(argument, values, takes)
    if found.ndim != 1 or (length is not None and len(found) != length):
        raise InvalidValue(argument, f"shape {found.shape}", takes)
    return found
