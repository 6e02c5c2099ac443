"""Laws of active queue management in the fluid, one function each, and their parameters as rows of numbers.

Each law is called once a step with one signature and returns the probability that an arrival of this step is marked.
It keeps what it remembers in `state`, a row of its own that starts as zeros. Laws that act once an epoch hold their
probability in between, as a router does. Units: packets, seconds.
"""

from __future__ import annotations

from math import cos, expm1, inf, log1p, sqrt
from typing import NamedTuple

import numpy as np

from netctrl.errors import InvalidValue
from netctrl.jit import njit
from netctrl.laws.aqm.arc import arc_step
from netctrl.laws.aqm.records import (
    ArcQueue,
    AvqQueue,
    CodelQueue,
    DropTailQueue,
    FastArcQueue,
    PieQueue,
    PiQueue,
    Queue,
    RedQueue,
    SfcQueue,
)
from netctrl.laws.link import backlog_step
from netctrl.units import BITS_PER_BYTE

__all__ = [
    "FAST_PROBABILITY",
    "PARAMETERS",
    "PRICE",
    "PROBABILITY",
    "STATES",
    "Sample",
    "arc",
    "avq",
    "codel",
    "epoch_of",
    "fast_arc",
    "law_of",
    "pi",
    "pie",
    "probability",
    "red",
    "sfc",
]

PARAMETERS = 8
"""Length of a row of parameters."""
STATES = 8
"""Length of a row of state."""

# What stands where in a row of state.
PROBABILITY = 0
"""Index in a state row: probability, as the law holds it."""
COUNT = 1  # epochs that have ended
ARRIVED = 2  # enqueued in this epoch
OLD = 3  # the sample of the epoch before
PRICE = 4
"""Index in a state row: price of the FAST extension [s]."""
FAST_PROBABILITY = 5
"""Index in a state row: probability of marking a packet of FAST."""
OWN = 6  # what one law alone needs
OWN2 = 7


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


DROPTAIL, ARC, FAST_ARC, PI, AVQ, SFC, RED, PIE, CODEL = range(9)


_arc_step = njit(cache=True)(arc_step)


@njit(cache=True)
def _epoch_ends(state: np.ndarray, now: float, epoch: float) -> bool:
    """Whether an epoch has ended by `now`; counts it. The margin is for the rounding of multiples of a step."""
    if now < (state[COUNT] + 1.0) * epoch * (1.0 - 1e-12) - 1e-12:
        return False
    state[COUNT] += 1.0
    return True


@njit(cache=True)
def _clip(p: float) -> float:
    return min(max(p, 0.0), 1.0)


@njit(cache=True)
def _error(parameters: np.ndarray, now: float, epoch: float) -> float:
    """Integral of the rate error over the epoch that ends now [packet]."""
    amplitude, w, start = parameters[4], parameters[5], parameters[6]
    if amplitude == 0.0 or now <= start:
        return 0.0
    return amplitude / w * (cos(w * (max(now - epoch, start) - start)) - cos(w * (now - start)))


@njit(cache=True)
def arc(parameters: np.ndarray, state: np.ndarray, seen: Sample) -> float:
    """ARC: p ← p + alpha (b − gamma (d C − (q − q0))) each epoch (ARC paper, Algorithm 2)."""
    alpha, d, gamma, q0 = parameters[0], parameters[1], parameters[2], parameters[3]
    state[ARRIVED] += seen.enqueued
    if _epoch_ends(state, seen.now, d):
        b = state[ARRIVED] + _error(parameters, seen.now, d)
        state[PROBABILITY] = _arc_step(state[PROBABILITY], b, seen.backlog, d * seen.capacity, alpha, gamma, q0)
        state[ARRIVED] = 0.0
    return state[PROBABILITY]


@njit(cache=True)
def fast_arc(parameters: np.ndarray, state: np.ndarray, seen: Sample) -> float:
    """FAST-extended ARC: q_v ← q_v + b − gamma (d C − (q − q0)), price q_v/(gamma C) (ARC paper, Algorithm 3).

    q_v is kept from 0 to 1/alpha, where TCP's probability saturates.
    """
    alpha, d, gamma, q0, phi = parameters[0], parameters[1], parameters[2], parameters[3], parameters[4]
    state[ARRIVED] += seen.enqueued
    if _epoch_ends(state, seen.now, d):
        virtual = state[OWN] + state[ARRIVED] - gamma * (d * seen.capacity - (seen.backlog - q0))
        state[OWN] = min(max(virtual, 0.0), 1.0 / alpha)
        state[PRICE] = state[OWN] / (gamma * seen.capacity)
        state[PROBABILITY] = _clip(alpha * state[OWN])
        state[FAST_PROBABILITY] = 1.0 - phi ** -state[PRICE]
        state[ARRIVED] = 0.0
    return state[PROBABILITY]


@njit(cache=True)
def pi(parameters: np.ndarray, state: np.ndarray, seen: Sample) -> float:
    """PI: p ← p + alpha (q − q_ref) − beta (q_old − q_ref) (Hollot, Misra, Towsley, Gong, INFOCOM 2001)."""
    alpha, beta, d, reference = parameters[0], parameters[1], parameters[2], parameters[3]
    if _epoch_ends(state, seen.now, d):
        rise = alpha * (seen.backlog - reference) - beta * (state[OLD] - reference)
        state[PROBABILITY] = _clip(state[PROBABILITY] + rise)
        state[OLD] = seen.backlog
    return state[PROBABILITY]


@njit(cache=True)
def avq(parameters: np.ndarray, state: np.ndarray, seen: Sample) -> float:
    """AVQ: marks what overflows a virtual queue of capacity C~, C~' = damping (gamma C − arrivals), 0 ≤ C~ ≤ C.

    Source: Kunniyur, Srikant, SIGCOMM 2001, eq. (1) and Section 3.
    """
    gamma, damping, buffer = parameters[0], parameters[1], parameters[2]
    if state[COUNT] == 0.0:  # C~ starts at gamma C
        state[COUNT], state[OWN] = 1.0, gamma * seen.capacity
    served = 0.5 * seen.step * state[OWN]
    desired = state[OWN] + damping * (gamma * seen.capacity * seen.step - seen.arrivals)
    state[OWN] = min(max(desired, 0.0), seen.capacity)
    served += 0.5 * seen.step * state[OWN]
    state[OWN2], _, marked = backlog_step(state[OWN2], seen.arrivals, served, buffer)
    state[PROBABILITY] = marked / seen.arrivals if marked > 0.0 else 0.0
    return state[PROBABILITY]


@njit(cache=True)
def sfc(parameters: np.ndarray, state: np.ndarray, seen: Sample) -> float:
    """SFC: p = k1 (q − q0) + k2 (r/C − 1) each epoch, the rate r counted over it (Gao, Hou, INFOCOM 2003; assumed)."""
    k1, k2, d, q0 = parameters[0], parameters[1], parameters[2], parameters[3]
    state[ARRIVED] += seen.enqueued
    if _epoch_ends(state, seen.now, d):
        state[PROBABILITY] = _clip(k1 * (seen.backlog - q0) + k2 * (state[ARRIVED] / (d * seen.capacity) - 1.0))
        state[ARRIVED] = 0.0
    return state[PROBABILITY]


@njit(cache=True)
def red(parameters: np.ndarray, state: np.ndarray, seen: Sample) -> float:
    """RED, gentle. Marks are spread evenly: 2 p/(1 + p) of the packets are marked (Floyd, Jacobson 1993, Section 7).

    The average follows the queue with −ln(1 − weight) C; it stands half a step after the backlog that it is given.
    """
    low, high, top, forget = parameters[0], parameters[1], parameters[2], parameters[3]
    state[OWN] += -expm1(forget * seen.capacity * seen.step) * (seen.backlog - state[OWN])
    average = state[OWN]
    if average < low:
        base = 0.0
    elif average < high:
        base = top * (average - low) / (high - low)
    else:
        base = min(top + (1.0 - top) * (average - high) / high, 1.0)
    state[PROBABILITY] = 2.0 * base / (1.0 + base)
    return state[PROBABILITY]


@njit(cache=True)
def _pie_scale(p: float) -> float:
    """RFC 8033, Section 4.2: small steps while p is small."""
    for bound, scale in ((1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)):
        if p < bound:
            return 1.0 / scale
    return 1.0


@njit(cache=True)
def pie(parameters: np.ndarray, state: np.ndarray, seen: Sample) -> float:
    """PIE: p ← p + scale (alpha (D − target) + beta (D − D_old)) each update, D = q/C (RFC 8033, Section 4.2).

    state[OWN] is RFC 8033's drop probability, state[OWN2] what has been used of the burst allowance.
    """
    target, d, alpha, beta, burst = parameters[0], parameters[1], parameters[2], parameters[3], parameters[4]
    if _epoch_ends(state, seen.now, d):
        delay, p = seen.backlog / seen.capacity, state[OWN]
        rise = (alpha * (delay - target) + beta * (delay - state[OLD])) * _pie_scale(p)
        if p >= 0.1:
            rise = min(rise, 0.02)
        if delay > 0.25:
            rise = 0.02
        p = _clip(p + rise)
        if delay == 0.0 and state[OLD] == 0.0:
            p *= 0.98
        state[OWN2] = min(state[OWN2] + d, burst)
        if p == 0.0 and delay < 0.5 * target and state[OLD] < 0.5 * target:
            state[OWN2] = 0.0
        spared = state[OWN2] < burst or (state[OLD] < 0.5 * target and p < 0.2) or seen.backlog <= 2.0
        state[PROBABILITY] = 0.0 if spared else p
        state[OWN], state[OLD] = p, delay
    return state[PROBABILITY]


@njit(cache=True)
def codel(parameters: np.ndarray, state: np.ndarray, seen: Sample) -> float:
    """CoDel-like: after an interval above target, √count/interval marks a second among the C packets that leave.

    state[OWN] is the time above target, state[COUNT] the marks since. Source: RFC 8289, Section 5, without packets.
    """
    target, interval = parameters[0], parameters[1]
    if seen.backlog / seen.capacity < target or seen.backlog <= 1.0:
        state[OWN] = state[PROBABILITY] = 0.0
        state[COUNT] = max(state[COUNT] - 2.0, 1.0) if state[COUNT] > 0.0 else 0.0
        return 0.0
    state[OWN] += seen.step
    if state[OWN] >= interval:
        state[COUNT] = max(state[COUNT], 1.0)
        marks = sqrt(state[COUNT]) / interval
        state[COUNT] += marks * seen.step
        state[PROBABILITY] = min(marks / seen.capacity, 1.0)
    return state[PROBABILITY]


@njit(cache=True)
def probability(kind: int, parameters: np.ndarray, state: np.ndarray, seen: Sample) -> float:
    """Probability that an arrival of this step is marked, under the law that `kind` names.

    `kind` and `parameters` come from `law_of`; `state` is zeros of length STATES before the first step, and is changed.
    """
    if kind == ARC:
        return arc(parameters, state, seen)
    if kind == FAST_ARC:
        return fast_arc(parameters, state, seen)
    if kind == PI:
        return pi(parameters, state, seen)
    if kind == AVQ:
        return avq(parameters, state, seen)
    if kind == SFC:
        return sfc(parameters, state, seen)
    if kind == RED:
        return red(parameters, state, seen)
    if kind == PIE:
        return pie(parameters, state, seen)
    if kind == CODEL:
        return codel(parameters, state, seen)
    return 0.0


def epoch_of(queue: Queue) -> float | None:
    """How often a law acts [s]; None for one that acts all the time."""
    match queue:
        case ArcQueue() | FastArcQueue() | SfcQueue():
            return queue.epoch
        case PiQueue():
            return 1.0 / queue.frequency_hz
        case PieQueue():
            return queue.update
    return None


def law_of(queue: Queue, packet_size: float, buffer: float | None) -> tuple[int, np.ndarray]:
    """The number of a queue's law, and its row of parameters in packets and seconds.

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
    kind, values = _row(queue, packet_size, inf if buffer is None else buffer)
    parameters = np.zeros(PARAMETERS)
    parameters[: len(values)] = values
    return kind, parameters


def _row(queue: Queue, packet: float, buffer: float) -> tuple[int, tuple[float, ...]]:
    match queue:
        case ArcQueue(alpha=alpha, epoch=d, target_utilization=gamma, target_queue=q0, rate_error=error):
            values = alpha, d, gamma, q0 / packet
            if error is None:
                return ARC, values
            return ARC, (*values, error.amplitude / BITS_PER_BYTE / packet, error.frequency_rad_s, error.start)
        case FastArcQueue(alpha=alpha, epoch=d, target_utilization=gamma, target_queue=q0, phi=phi):
            return FAST_ARC, (alpha, d, gamma, q0 / packet, phi)
        case PiQueue(alpha=alpha, beta=beta, frequency_hz=f, reference_queue=reference):
            return PI, (alpha, beta, 1.0 / f, reference / packet)
        case AvqQueue(target_utilization=gamma, damping=damping, virtual_buffer=own):
            virtual = buffer if own is None else own
            if virtual == inf:
                raise InvalidValue("virtual_buffer", own, "a size, where the link's buffer is unlimited")
            return AVQ, (gamma, damping, virtual / packet)
        case SfcQueue(k1=k1, k2=k2, epoch=d, target_queue=q0):
            return SFC, (k1, k2, d, q0 / packet)
        case RedQueue(min_threshold=low, max_threshold=high, max_probability=top, weight=weight):
            return RED, (low / packet, high / packet, top, log1p(-weight))
        case PieQueue(target=target, update=d, alpha=alpha, beta=beta, burst=burst):
            return PIE, (target, d, alpha, beta, burst)
        case CodelQueue(target=target, interval=interval):
            return CODEL, (target, interval)
        case DropTailQueue():
            return DROPTAIL, ()
    raise InvalidValue("queue", "design", "a kind with a law; `--design FILE` fills the place")
