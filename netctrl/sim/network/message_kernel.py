"""The kernel of a network whose controllers act out of step and hear of each other late, or never: run by run.

Time goes in ticks, a whole number of them an interval. Each link measures and acts once an interval, at a tick of its
own. Rates in bit/s, backlogs over the interval.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.jit import njit
from netctrl.laws.link import backlog_step
from netctrl.laws.link_rate.distributed import BACKLOG_INNOVATION, RATE_INNOVATION
from netctrl.laws.link_rate.fir import BACKLOG, BACKPRESSURE, RATE, WORK_CONSERVING, FirLaw
from netctrl.sim.network.kernel import (
    ARRIVED,
    DEPARTED,
    LOST,
    RATE_SQUARE,
    WAITING,
    WAITING_SQUARE,
    LinkPlant,
)

__all__ = ["NEVER", "MessageState", "Messaging", "advance_messages"]

NEVER = -1
"""A message that was lost."""


class Messaging(NamedTuple):
    """Who hears whom, and when."""

    ticks: int
    """An interval."""
    phase: np.ndarray
    """(N,) tick of the interval at which each link acts."""
    line: np.ndarray
    """(N, N) number of the messages by which link l hears of link k; NEVER where it needs none."""
    least: np.ndarray
    """(N, N) age [sample] from which on link l may use what link k measured; what the law takes earlier isn't heard but
    known (the rates that were sent, from which a central controller predicts)."""
    central: bool


class MessageState(NamedTuple):
    """What changes, in one run."""

    known: np.ndarray
    """(4 N, slots) what each link measured, by sample."""
    arrival: np.ndarray
    """(messages, slots) tick at which the message of a sample is there; NEVER if it was lost."""
    pipe: np.ndarray
    """(N, tick slots) rates that were sent, by tick."""
    backlog: np.ndarray
    """(N,)"""
    command: np.ndarray
    """(N,) raw, of the present interval."""
    sent: np.ndarray
    """(N,) sum of the rates of the ticks since the link acted."""


@njit(inline="always")
def _tell(
    messaging: Messaging,
    state: MessageState,
    nominal: np.ndarray,
    backlog_setpoint: float,
    at: int,
    series: int,
    age: int,
    tick: int,
    sample: int,
) -> float:
    """What link `at` takes a series to have been `age` samples ago: what it heard, or else what is assumed.

    Rates are taken for nominal and news for none; backlogs for what they were the last time that was heard.
    """
    N = len(messaging.phase)
    mask = state.known.shape[1] - 1
    kind, of = series // N, series % N
    message = messaging.line[at, of]
    if message == NEVER or age < messaging.least[at, of]:
        return state.known[series, (sample - age) & mask]
    behind = 1 if messaging.phase[of] > messaging.phase[at] else 0  # it has not acted yet in this interval
    requested = sample - age - behind
    if requested < 0:
        return state.known[series, requested & mask]
    when = state.arrival[message, requested & mask]
    if when != NEVER and when <= tick:
        return state.known[series, requested & mask]
    if kind == BACKLOG:
        for earlier in range(requested - 1, max(requested - mask + age + 1, -1), -1):
            when = state.arrival[message, earlier & mask]
            if when != NEVER and when <= tick:
                return state.known[series, earlier & mask]
        return backlog_setpoint
    return nominal[of] if kind == RATE else 0.0


@njit(cache=True, error_model="numpy")
def _sum(
    taps: FirLaw,
    messaging: Messaging,
    state: MessageState,
    nominal: np.ndarray,
    backlog_setpoint: float,
    link: int,
    tick: int,
    sample: int,
) -> float:
    total = taps.offset[link]
    for j in range(taps.start[link], taps.start[link + 1]):
        heard = _tell(messaging, state, nominal, backlog_setpoint, link, taps.series[j], taps.lag[j], tick, sample)
        total += taps.coefficient[j] * heard
    return total


@njit(cache=True, error_model="numpy")
def _act(
    control: FirLaw,
    predicted: FirLaw,
    plant: LinkPlant,
    messaging: Messaging,
    state: MessageState,
    nominal: np.ndarray,
    extra: np.ndarray,
    told: np.ndarray,
    tick: int,
    sample: int,
) -> None:
    """Those links whose tick it is measure, tell and then set their rates. `extra` is (messages,), `told` (N,)."""
    N, mask = len(messaging.phase), state.known.shape[1] - 1
    now, phase = sample & mask, tick % messaging.ticks
    for link in range(N):
        if messaging.phase[link] != phase:
            continue
        state.known[RATE * N + link, now] = state.sent[link] / messaging.ticks
        state.known[BACKLOG * N + link, now] = state.backlog[link]
        state.sent[link] = 0.0
        if len(predicted.lag):
            foreseen = _sum(predicted, messaging, state, nominal, plant.backlog_setpoint, link, tick, sample)
            state.known[BACKLOG_INNOVATION * N + link, now] = state.backlog[link] - foreseen
            state.known[RATE_INNOVATION * N + link, now] = state.known[RATE * N + link, now] - state.command[link]
        for at in range(N):
            message = messaging.line[at, link]
            if message != NEVER:
                late = extra[message]
                due = tick + messaging.least[at, link] * messaging.ticks + late
                state.arrival[message, now] = NEVER if late == NEVER else due
    for link in range(N):
        if messaging.phase[link] == phase:
            state.command[link] = _sum(control, messaging, state, nominal, plant.backlog_setpoint, link, tick, sample)
            if messaging.central and not told[link]:
                state.command[link] = nominal[link]


@njit(cache=True, error_model="numpy", nogil=True)
def advance_messages(
    plant: LinkPlant,
    control: FirLaw,
    predicted: FirLaw,
    messaging: Messaging,
    state: MessageState,
    nominal: np.ndarray,
    demand: np.ndarray,
    extra: np.ndarray,
    told: np.ndarray,
    first: int,
    counted_from: int,
    sums: np.ndarray,
    offered: np.ndarray,
    watched: np.ndarray,
) -> None:
    """Advance one run by the intervals of `demand`, (steps, I), the first of which is number `first`.

    `extra`, (steps, messages), is by how many ticks each message is late, or NEVER; `told`, (steps, N), whether a
    central controller's command arrives. `sums`, (6, N), `offered`, (1,), and `watched`, (3, N, T), are as in
    `netctrl.sim.network.kernel`, with means over the ticks of an interval.
    """
    N, S = len(plant.capacity), messaging.ticks
    tick_mask = state.pipe.shape[1] - 1
    share = 1.0 / S
    for k in range(demand.shape[0]):
        sample = first + k
        counts = sample >= counted_from
        for phase in range(S):
            tick = sample * S + phase
            _act(control, predicted, plant, messaging, state, nominal, extra[k], told[k], tick, sample)
            for link in range(N):
                arriving = 0.0
                for j in range(plant.coupled_start[link], plant.coupled_start[link + 1]):
                    at = (tick - (plant.coupled_delay[j] + 1) * S) & tick_mask
                    arriving += plant.coupled_share[j] * state.pipe[plant.coupled_link[j], at]
                for j in range(plant.injected_start[link], plant.injected_start[link + 1]):
                    entering = plant.injected_share[j] * demand[k, plant.injected_demand[j]]
                    arriving += entering
                    if counts:
                        offered[0] += entering * share
                mode, capacity = control.mode[link], plant.capacity[link]
                service = state.command[link]
                if mode == BACKPRESSURE:
                    service = state.backlog[link] * S + arriving - state.command[link] * S
                service = capacity if mode == WORK_CONSERVING else min(max(service, 0.0), capacity)
                waiting, rate, lost = backlog_step(
                    state.backlog[link], arriving * share, service * share, plant.buffer[link]
                )
                state.backlog[link] = waiting
                state.pipe[link, tick & tick_mask] = rate * S
                state.sent[link] += rate * S
                if counts:
                    sums[ARRIVED, link] += arriving * share
                    sums[DEPARTED, link] += rate
                    sums[LOST, link] += lost
                    if phase == S - 1:
                        sums[WAITING, link] += waiting
                        sums[WAITING_SQUARE, link] += (waiting - plant.backlog_setpoint) ** 2
                    sums[RATE_SQUARE, link] += (rate * S - plant.nominal[link]) ** 2 * share
                if sample < watched.shape[2]:
                    watched[1, link, sample] += rate
                    watched[2, link, sample] += lost
                    watched[0, link, sample] = waiting
