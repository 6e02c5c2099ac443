"""The fluid's kernel: steps between two updates of a queue's law.

Flows of class i have the window W, the base round trip B and the delay d of their queue, R = B + d. Windows follow

    W' = a/R − b W (W/R)(t−R) p,   or of scalable senders   W' = a/R − b W m/R,   m' = (g/R) (p − m),

with the marks p of packets that came a round trip ago, or left the queue a base round trip ago, and the queue

    q' = Σ n W/R − C,   0 ≤ q ≤ buffer, what overflows is lost.

RED marks by an average of the queue, to which each arrival adds its weight w, at the rate A of arrivals,

    avg' = −ln(1 − w) A (q − avg),   of an empty queue with C in place of A: it falls as if packets came and left.

Explicit midpoint in steps that divide the time between updates; marks are constant within a step. Units: packets,
seconds. Source: Misra, Gong and Towsley, SIGCOMM 2000; Alizadeh, Javanmard and Prabhakar, SIGMETRICS 2011; Floyd and
Jacobson, IEEE/ACM Transactions on Networking 1(4), 1993, Section 4.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.core.jit import njit
from netctrl.laws.aqm.red import RedParameters, red_share
from netctrl.laws.link import backlog_step, head_age

CLASSIC, SCALABLE = range(2)
"""Rows of `State.marks`."""
_LEAST_WINDOW = 1.0
_NO_RED = RedParameters(0.0, 1.0, 0.0, -1.0, 0.0, 0.0, 0.0)
_share = njit(red_share)


class Plant(NamedTuple):
    """Constants; K classes."""

    step: float
    """[s]"""
    rate: float
    """C [packet/s]."""
    buffer: float
    """[packet]"""
    leaving: bool
    """Whether packets are marked as they leave the queue."""
    flows: np.ndarray
    """(K,)"""
    base: np.ndarray
    """(K,) B [s]."""
    other: np.ndarray
    """(K,) delay of another queue [s]; below 0: the class waits in this one."""
    increase: np.ndarray
    decrease: np.ndarray
    averaging: np.ndarray
    """(K,) g of a scalable sender's average."""
    scalable: np.ndarray
    """(K,)"""


class State(NamedTuple):
    """Variables, changed in place; histories are rings of n slots, one a step."""

    window: np.ndarray
    """(K,) [packet]"""
    marked: np.ndarray
    """(K,) average of marks of scalable senders."""
    rate: np.ndarray
    """(K, n) history of W/R [packet/s]."""
    delay: np.ndarray
    """(n,) history of q/C [s]."""
    arrived: np.ndarray
    """(n,) history of what had been enqueued by the end of each step [packet]."""
    marks: np.ndarray
    """(2, n) history of the probabilities for classic and scalable packets."""
    average: np.ndarray
    """(1,) RED's average of the queue [packet]."""
    now: np.ndarray
    """(2,) number of the next step, and of the step in which the packet that now leaves came."""


class Marking(NamedTuple):
    """What a law does until its next update."""

    classic: float
    """Probability."""
    scalable: float
    """Probability."""
    spared_delay: float = 0.0
    """Delay that the law reads below which nothing is marked [s]."""
    spared_packets: float = 0.0
    """Backlog below which nothing is marked [packet]."""
    most: float = 0.0
    """Above 0: RED marks instead, by its average, and this is its probability at the upper threshold."""
    red: RedParameters = _NO_RED


@njit(cache=True)
def _at(history: np.ndarray, now: int, back: float) -> float:
    """Value `back` steps before `now`, between two slots."""
    n = len(history)
    whole = int(np.floor(back))
    newer, older = history[(now - whole) % n], history[(now - whole - 1) % n]
    return newer + (back - whole) * (older - newer)


@njit(cache=True)
def _waited(state: State, plant: Plant) -> float:
    """How long the packet at the head has waited [s]."""
    now, n = state.now[0], len(state.delay)
    gone = state.arrived[(now - 1) % n] - state.delay[now % n] * plant.rate
    age, state.now[1] = head_age(state.arrived, state.now[1], now, gone)
    return age * plant.step


@njit(cache=True)
def _slopes(
    plant: Plant, state: State, window: np.ndarray, marked: np.ndarray, delay: float, half: float, out: np.ndarray
) -> float:
    """Slopes of windows and averages in (2, K); returns the rate of arrivals, `half` steps after the last slot."""
    arrivals, now, n = 0.0, state.now[0], state.marks.shape[1]
    for i in range(len(window)):
        queued = plant.other[i] < 0.0
        trip = plant.base[i] + (delay if queued else plant.other[i])
        lag = (plant.base[i] if plant.leaving else trip) / plant.step
        row = SCALABLE if plant.scalable[i] else CLASSIC
        p = state.marks[row, (now - 1 - int(np.floor(lag - half))) % n]
        W = window[i]
        if plant.scalable[i]:
            out[1, i] = plant.averaging[i] / trip * (p - marked[i])
            out[0, i] = (plant.increase[i] - plant.decrease[i] * W * marked[i]) / trip
        else:
            before = _at(state.rate[i], now, trip / plant.step - half)
            out[1, i] = 0.0
            out[0, i] = plant.increase[i] / trip - plant.decrease[i] * W * before * p
        arrivals += plant.flows[i] * W / trip
    return arrivals


@njit(cache=True)
def _followed(red: RedParameters, packets: float) -> float:
    """Share of the way to the queue that RED's average goes with these arrivals."""
    return -np.expm1(red.log_forgetting * packets)


@njit(cache=True)
def advance(plant: Plant, state: State, marking: Marking, reads_head: bool, steps: int) -> tuple:
    """Advance by a number of steps under one marking.

    Returns
    -------
    tuple
        Delay that the law reads at the end, least and greatest delay of the queue [s], and what was served [packet].
    """
    h, C = plant.step, plant.rate
    n = len(state.delay)
    first, second = np.zeros((2, len(state.window))), np.zeros((2, len(state.window)))
    least, most, served = np.inf, 0.0, 0.0
    read = _waited(state, plant) if reads_head else state.delay[state.now[0] % n]
    for _ in range(steps):
        now = state.now[0]
        slot, following = now % n, (now + 1) % n
        delay = state.delay[slot]
        spared = read < marking.spared_delay or delay * C < marking.spared_packets
        state.marks[CLASSIC, slot] = 0.0 if spared else marking.classic
        state.marks[SCALABLE, slot] = 0.0 if spared else marking.scalable
        arrivals = _slopes(plant, state, state.window, state.marked, delay, 0.0, first)
        middle = np.maximum(state.window + 0.5 * h * first[0], _LEAST_WINDOW)
        average = state.marked + 0.5 * h * first[1]
        halfway = max(delay + 0.5 * h * (arrivals / C - 1.0), 0.0)
        if marking.most > 0.0:
            came = 0.5 * h * (arrivals if delay > 0.0 else C)
            seen = state.average[0] + _followed(marking.red, came) * (halfway * C - state.average[0])
            red = marking.red
            state.marks[:, slot] = _share(
                seen, marking.most, red.min_threshold, red.max_threshold, red.gentle, red.spaced
            )
        arrivals = _slopes(plant, state, middle, average, halfway, 0.5, second)
        came = h * (arrivals if delay > 0.0 else C)
        state.average[0] += _followed(marking.red, came) * (halfway * C - state.average[0])
        left, departed, lost = backlog_step(delay * C, h * arrivals, h * C, plant.buffer)
        if lost > 0.0:
            share = lost / (h * arrivals)
            for row in range(2):
                state.marks[row, slot] = 1.0 - (1.0 - state.marks[row, slot]) * (1.0 - share)
        served += departed
        state.arrived[slot] = state.arrived[(now - 1) % n] + h * arrivals - lost
        state.now[0] = now + 1
        state.delay[following] = left / C
        for i in range(len(state.window)):
            state.window[i] = max(state.window[i] + h * second[0, i], _LEAST_WINDOW)
            state.marked[i] = min(max(state.marked[i] + h * second[1, i], 0.0), 1.0)
            wait = left / C if plant.other[i] < 0.0 else plant.other[i]
            state.rate[i, following] = state.window[i] / (plant.base[i] + wait)
        read = _waited(state, plant) if reads_head else left / C
        least, most = min(least, left / C), max(most, left / C)
    return read, least, most, served
