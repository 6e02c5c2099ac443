"""Application of a pacing law: from state and sample to the next rate, for one flow, a trace, or many flows."""

from __future__ import annotations

from math import nan
from typing import Any, NamedTuple

import numpy as np
from numba import prange

from netctrl.core.errors import InvalidValue
from netctrl.core.jit import njit
from netctrl.laws.pacing.arx import ArxState, arx_settings, arx_start, arx_step
from netctrl.laws.pacing.arx_batch import arx_many
from netctrl.laws.pacing.own_rate import own_rate_step
from netctrl.laws.pacing.own_rate_state import OwnRateState, own_rate_settings, own_rate_start
from netctrl.laws.record import as_record, row_names
from netctrl.model.law import ArxPacer, OwnRatePacer, PacingLaw

EVENTS = ("bad_rtt", "bad_time", "held", "floored", "resets")
"""Events counted in a state: invalid RTTs; decreasing times; rates held without a number or an effect; rates limited to
the least one; diverged estimates that were restarted."""


LAWS: dict[type, tuple[type, Any, Any]] = {
    ArxPacer: (ArxState, arx_start, arx_settings),
    OwnRatePacer: (OwnRateState, own_rate_start, own_rate_settings),
}
"""Kinds of pacing laws -> record of their state, and what makes rows of their first state and of their parameters."""


class PacingSample(NamedTuple):
    """What a sender measures with an acknowledgement."""

    time_s: float
    """Time of the acknowledgement [s]."""
    rtt_s: float
    """Round-trip time of this packet [s], not smoothed."""
    delivered_bytes: float = nan
    """Acknowledged since the flow began [byte]; the paper's law doesn't need it."""
    in_flight_bytes: float = nan
    """Sent and neither acknowledged nor lost [byte], where it is known."""
    lost_bytes: float = nan
    """Lost since the flow began [byte], where it is known; the paper's law doesn't need it."""
    marked_bytes: float = nan
    """Of those delivered, the ones whose acknowledgements told of ECN's marks [byte], where it is known; the paper's
    law doesn't need it."""


class PacingState(NamedTuple):
    """State of a pacing law; `pacing_values` names its numbers."""

    values: np.ndarray
    """(s,) read-only."""


class Pacer(NamedTuple):
    """Pacing law prepared for its kernel."""

    law: PacingLaw
    settings: np.ndarray
    places: int
    """Length of its state."""


class PacingRun(NamedTuple):
    """A pacing law applied to T samples."""

    rates: np.ndarray
    """(T,) rate in force after each sample [bit/s]."""
    predictions: np.ndarray
    """(T,) RTT predicted before each sample was measured; of an own-rate law, the next RTT [s]. NaN: no prediction."""
    used: np.ndarray
    """(T,) whether the sample led to a new rate."""
    state: PacingState
    """State after the last sample."""
    events: dict[str, int]
    """Counts of the law's events, by the names in `EVENTS`."""


def pacer(law: PacingLaw) -> Pacer:
    """Prepare a law, once before its first step. Raises InvalidValue for a value that isn't a pacing law."""
    places = len(start_pacing(law).values)
    return Pacer(law, LAWS[type(law)][2](law), places)


def start_pacing(law: PacingLaw) -> PacingState:
    """State of a pacing law before its first sample: the law's start rate is in force.

    Parameters
    ----------
    law : PacingLaw
        As in the `law` of a Design by `netctrl.pacing`.

    Returns
    -------
    PacingState

    Raises
    ------
    InvalidValue
        No pacing law.

    Examples
    --------
    >>> import netctrl
    >>> law = netctrl.pacing(bottleneck_bit_per_s=1e7, max_rate_bit_per_s=2e7).law
    >>> netctrl.start_pacing(law).values.shape
    (27,)
    """
    if type(law) not in LAWS:
        raise InvalidValue("law", law, "a pacing law, such as the law of a Design of netctrl.pacing")
    return _state(LAWS[type(law)][1](law))


def pace(ready: Pacer, state: PacingState, sample: PacingSample) -> tuple[float, PacingState]:
    """Apply a pacing law to one sample: the rate until the next sample, and the new state.

    A sample that can't be used (an RTT that isn't above 0, a time that goes backwards, a value that isn't a number)
    leaves the rate as it is, and is counted.

    Parameters
    ----------
    ready : Pacer
        The law, as `netctrl.laws.pacing.pacing.pacer` prepares it.
    state : PacingState
        From `netctrl.start_pacing`, or from the sample before.
    sample : PacingSample
        What was measured.

    Returns
    -------
    rate : float
        [bit/s]
    state : PacingState

    Raises
    ------
    InvalidValue
        Not a Pacer, not a state of its law, or not a PacingSample of numbers.

    Examples
    --------
    The first sample leaves the start rate in force, half of the highest rate:

    >>> import netctrl
    >>> from netctrl.laws.pacing.pacing import PacingSample, pacer
    >>> law = netctrl.pacing(bottleneck_bit_per_s=1e7, max_rate_bit_per_s=2e7).law
    >>> rate, state = netctrl.pace(pacer(law), netctrl.start_pacing(law), PacingSample(time_s=0.0, rtt_s=0.02))
    >>> rate
    10000000.0
    """
    try:
        values = state.values.copy()
        time, rtt, *seen = map(float, tuple(sample) if isinstance(sample, tuple) else ())
        delivered, in_flight, lost, marked = seen
        settings, kind, places = ready.settings, type(ready.law), ready.places
    except (AttributeError, TypeError, ValueError, OverflowError):
        raise _refused(ready, state, sample) from None
    if values.shape != (places,):
        raise _refused(ready, state, sample)
    if kind is ArxPacer:
        rate = arx_step(values, settings, time, rtt)
    else:
        rate = own_rate_step(values, settings, time, rtt, delivered, in_flight, lost, marked)
    return rate, PacingState(values)


def _refused(ready: object, state: object, sample: object) -> InvalidValue:
    """Exception for the wrong one of `pace`'s arguments."""
    if not isinstance(ready, Pacer):
        return InvalidValue("ready", ready, "the result of netctrl.pacer for a law")
    if not isinstance(state, PacingState) or np.shape(state.values) != (ready.places,):
        return InvalidValue("state", state, "the result of start_pacing for the same law, or of pace after it")
    return InvalidValue("sample", sample, "a PacingSample of numbers, nan for unknown ones")


def pace_trace(
    law: PacingLaw,
    times: Any,
    rtts: Any,
    *,
    delivered: Any = None,
    in_flight: Any = None,
    lost: Any = None,
    marked: Any = None,
) -> PacingRun:
    """Apply a pacing law to recorded samples: the RTTs that it predicts and the rates that it would set.

    The samples were measured under other rates: the law's own have no effect on them.

    Parameters
    ----------
    law : PacingLaw
        As in the `law` of a Design by `netctrl.pacing`.
    times, rtts : array_like, shape (T,)
        Times of the acknowledgements and their round-trip times [s].
    delivered, in_flight, lost, marked : array_like, shape (T,), optional
        As in `netctrl.laws.pacing.pacing.PacingSample` [byte].

    Returns
    -------
    PacingRun
        Empty, with the start state, for T = 0.

    Raises
    ------
    InvalidValue
        No pacing law, or shapes that don't fit.

    Examples
    --------
    >>> import netctrl, numpy as np
    >>> from netctrl.laws.pacing.pacing import pace_trace
    >>> law = netctrl.pacing(bottleneck_bit_per_s=1e7, max_rate_bit_per_s=2e7).law
    >>> run = pace_trace(law, times=0.02 * np.arange(100), rtts=np.full(100, 0.02))
    >>> round(float(run.predictions[-1]), 4), int(run.used.sum()), run.events["bad_rtt"]
    (0.02, 100, 0)
    """
    ready, state = pacer(law), start_pacing(law).values.copy()
    time, rtt = _column("times", times, None), _column("rtts", rtts, None)
    T = len(time)
    if len(rtt) != T:
        raise InvalidValue("rtts", f"{len(rtt)} samples", f"as many as times, {T}")
    bytes_, flight, gone, told = (
        _column(name, np.full(T, nan) if values is None else values, T)
        for name, values in (("delivered", delivered), ("in_flight", in_flight), ("lost", lost), ("marked", marked))
    )
    names = row_names(LAWS[type(law)][0])
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
            rates[t] = own_rate_step(state, ready.settings, time[t], rtt[t], bytes_[t], flight[t], gone[t], told[t])
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
    marked: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Apply a pacing law to recorded samples of many flows at once.

    Parameters
    ----------
    law : PacingLaw
        As in the `law` of a Design by `netctrl.pacing`.
    states : array_like, shape (n, s)
        State of each flow: `start_pacing(law).values`, or what an earlier call returned.
    times : array_like, shape (T,)
        Times of the acknowledgements, the same for all flows [s].
    rtts : array_like, shape (n, T)
        Round-trip times [s].
    delivered, in_flight, lost, marked : array_like, shape (n, T), optional
        As in `netctrl.laws.pacing.pacing.PacingSample` [byte].

    Returns
    -------
    rates : ndarray, shape (n, T)
        Rate in force after each sample [bit/s].
    states : ndarray, shape (n, s)
        After the last sample.

    Raises
    ------
    InvalidValue
        No pacing law, or shapes that don't fit.

    Examples
    --------
    >>> import netctrl, numpy as np
    >>> from netctrl.laws.pacing.pacing import pace_many
    >>> law = netctrl.pacing(bottleneck_bit_per_s=1e7, max_rate_bit_per_s=2e7).law
    >>> states = np.tile(netctrl.start_pacing(law).values, (3, 1))
    >>> rates, states = pace_many(law, states, times=0.02 * np.arange(100), rtts=np.full((3, 100), 0.02))
    >>> rates.shape, states.shape
    ((3, 100), (3, 27))
    """
    _, settings, places = pacer(law)
    after = _numbers("states", states, f"numbers, in a row of {places} for each flow")
    if after.ndim != 2 or after.shape[1] != places:
        raise InvalidValue("states", f"shape {after.shape}", f"a row of {places} for each flow")
    time = _column("times", times, None)
    shape = (len(after), len(time))
    takes = f"numbers of shape {shape}, one row per flow and one column per time"
    tables, unknown = [], np.full((1, 1) if isinstance(law, ArxPacer) else shape, nan)
    given = {"rtts": rtts, "delivered": delivered, "in_flight": in_flight, "lost": lost, "marked": marked}
    for name, values in given.items():
        table = unknown if values is None and name != "rtts" else _numbers(name, values, takes)
        if table is not unknown and table.shape != shape:
            raise InvalidValue(name, f"shape {table.shape}", takes)
        tables.append(table)
    rates = np.empty(shape)
    if isinstance(law, ArxPacer):
        arx_many(after, settings, time, tables[0], rates)
    else:
        _many(after, settings, time, *tables, rates)
    return rates, after


@njit(cache=True, parallel=True, error_model="numpy")
def _many(
    states: np.ndarray,
    settings: np.ndarray,
    times: np.ndarray,
    rtts: np.ndarray,
    delivered: np.ndarray,
    in_flight: np.ndarray,
    lost: np.ndarray,
    marked: np.ndarray,
    rates: np.ndarray,
) -> None:
    """Steps of many flows under the own-rate law: states (n, s), times (T,), the others (n, T); fills rates (n, T)
    [bit/s]."""
    for flow in prange(len(states)):
        state = states[flow]
        for t in range(len(times)):
            given = times[t], rtts[flow, t], delivered[flow, t], in_flight[flow, t], lost[flow, t], marked[flow, t]
            rates[flow, t] = own_rate_step(state, settings, *given)


def pacing_values(law: PacingLaw, state: PacingState) -> dict[str, Any]:
    """A state by names: numbers, and for the paper's law `theta` (a, then b) and `phi` (RTTs, then rates)."""
    names = row_names(LAWS[type(law)][0])
    named: dict[str, Any] = {name: float(value) for name, value in zip(names, state.values, strict=False)}
    if isinstance(law, ArxPacer):
        k = law.past_rtts + law.past_rates
        named["theta"] = state.values[len(names) : len(names) + k]
        named["phi"] = state.values[len(names) + k :]
    return named


def arx_state(
    law: ArxPacer, *, theta: Any, phi: Any, rate: float, mean_rtt: float, variance: float, mean_rate: float
) -> PacingState:
    """State of the paper's law from given values: θ and φ (k,) and averages in the law's units, the rate in bit/s."""
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
