"""Active queue management laws in the fluid: for each link a number, a row of parameters and a row of state.

Each law is called once a step and holds its probability until it acts again, as a router does. Columns of a row that
the fluid itself uses come first; a law's own state stands behind them, in the order of its record. Units: packets,
seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from math import cos, inf
from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from netctrl.core.errors import InvalidValue
from netctrl.core.jit import by_number, njit
from netctrl.core.units import BITS_PER_BYTE
from netctrl.laws.aqm.arc import ArcQueue
from netctrl.laws.aqm.law import QueueLaw, Seen
from netctrl.laws.aqm.records import LAWS, DropTailQueue, Queue, law_record
from netctrl.laws.codegen import helpers

PROBABILITY, PRICE, FAST_PROBABILITY, SCALABLE_PROBABILITY, PASSED = range(5)
"""Columns of a row of state that every law may have: probability, price [s], probabilities of FAST's packets and of
scalable senders', and what has passed since the last choice of a law that spreads them."""
_EPOCHS, ARRIVED, _OWN = range(5, 8)
"""Columns of a row of state: epochs that have ended, packets enqueued in this one, the first of the law's own."""
_EPOCH, _AMPLITUDE, _FREQUENCY, _START, FIRST = range(5)
"""Columns of a row of parameters: epoch [s], 0 for a law that acts at each step; error of the measured arrivals."""
_SHARED = {
    "probability": PROBABILITY,
    "price": PRICE,
    "fast_probability": FAST_PROBABILITY,
    "scalable_probability": SCALABLE_PROBABILITY,
    "passed": PASSED,
}
STATES = _OWN + max(len([field for field in each.state._fields if field not in _SHARED]) for each in LAWS)
"""Length of a row of state: what the law with the most needs."""
PARAMETERS = FIRST + max(len(each.parameters._fields) for each in LAWS)
"""Length of a row of parameters, likewise."""


class Sample(NamedTuple):
    """What a law may see in one step."""

    now: float
    """Beginning of the step [s]."""
    step: float
    """Its length [s]."""
    backlog: float
    """At its beginning [packet]."""
    enqueued: float
    """Enqueued in the step before [packet]."""
    arrivals: float
    """On their way in, in this step [packet]."""
    capacity: float
    """C [packet/s]."""


def column(of: QueueLaw, name: str) -> int:
    """Position of a field of a law's state in its row."""
    own = [field for field in of.state._fields if field not in _SHARED]
    return _SHARED[name] if name in _SHARED else _OWN + own.index(name)


def on_rows(of: QueueLaw, step: Any, **options: Any) -> Callable[..., None]:
    """Step of a law on rows of numbers: f(parameters, state, seen) sets the state; `options` are numba's."""
    for function in helpers(step).values():
        (register_jitable(**options) if options else register_jitable)(function)
    fields = of.state._fields
    given = ", ".join(f"state[{column(of, name)}]" for name in fields)
    values = ", ".join(f"parameters[{FIRST + k}]" for k in range(len(of.parameters._fields)))
    kept = "; ".join(f"state[{column(of, name)}] = after.{name}" for name in fields)
    call = f"after = step(State({given}), seen, Parameters({values}))"
    names: dict[str, Any] = {"State": of.state, "Parameters": of.parameters, "step": njit(step, **options)}
    exec(f"def rows(parameters, state, seen):\n    {call}\n    {kept}\n", names)
    return njit(names["rows"], **options)


_act = by_number(
    {number: on_rows(each, each.fluid or each.step) for number, each in enumerate(LAWS, 1)}, "parameters, state, seen"
)


@njit(cache=True)
def _epoch_ends(state: np.ndarray, now: float, epoch: float) -> bool:
    """Whether an epoch has ended by `now`; counts it. The margin is for the rounding of multiples of a step."""
    if now < (state[_EPOCHS] + 1.0) * epoch * (1.0 - 1e-12) - 1e-12:
        return False
    state[_EPOCHS] += 1.0
    return True


@njit(cache=True)
def rate_error(parameters: np.ndarray, now: float, epoch: float) -> float:
    """Integral of the rate error over the epoch that ends now [packet]."""
    amplitude, w, start = parameters[_AMPLITUDE], parameters[_FREQUENCY], parameters[_START]
    if amplitude == 0.0 or now <= start:
        return 0.0
    return amplitude / w * (cos(w * (max(now - epoch, start) - start)) - cos(w * (now - start)))


@njit(cache=True)
def probability(kind: int, parameters: np.ndarray, state: np.ndarray, sample: Sample) -> float:
    """Probability that an arrival of this step is marked, under the law that `kind` names.

    `kind` and `parameters` come from `law_of`; `state` is zeros of length STATES before the first step, and is changed.
    """
    if kind == 0:
        return 0.0
    epoch = parameters[_EPOCH]
    elapsed, arrived = sample.step, sample.enqueued
    if epoch > 0.0:
        state[ARRIVED] += sample.enqueued
        if not _epoch_ends(state, sample.now, epoch):
            return state[PROBABILITY]
        elapsed, arrived = epoch, state[ARRIVED] + rate_error(parameters, sample.now, epoch)
        state[ARRIVED] = 0.0
    seen = Seen(elapsed, arrived, sample.arrivals, sample.backlog, sample.capacity)
    _act(kind, parameters, state, seen)
    return state[PROBABILITY]


def epoch_of(queue: Queue) -> float | None:
    """Time between a law's actions [s]; None for a continuous law."""
    found = law_record(queue)
    return None if found is None or found.epoch is None else found.epoch(queue)


def law_of(queue: Queue, packet_size: float, buffer: float | None) -> tuple[int, np.ndarray]:
    """Number of a queue's law, and its row of parameters in packets and seconds.

    Parameters
    ----------
    queue : Queue
    packet_size : float
        [byte]
    buffer : float or None
        Of the link [byte]; None is unlimited.

    Raises
    ------
    InvalidValue
        A queue without a law: a place for a Design that hasn't been filled, or AVQ with nothing to bound it.
    """
    row = np.zeros(PARAMETERS)
    if isinstance(queue, DropTailQueue):
        return 0, row
    found = law_record(queue)
    if found is None:
        raise InvalidValue("queue", "design", "a kind with a law; `--design FILE` fills the place")
    row[_EPOCH] = epoch_of(queue) or 0.0
    if isinstance(queue, ArcQueue) and (error := queue.rate_error) is not None:
        row[_AMPLITUDE:FIRST] = error.amplitude / BITS_PER_BYTE / packet_size, error.frequency_rad_s, error.start
    values = found.read(queue, packet_size, inf if buffer is None else buffer)
    row[FIRST : FIRST + len(values)] = values
    return 1 + LAWS.index(found), row
