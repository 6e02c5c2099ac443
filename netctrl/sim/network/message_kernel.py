"""Kernel of a network with unsynchronised controllers whose messages arrive late, or never; one run at a time.

Time goes in ticks, a whole number of them an interval. Each link measures and acts once an interval, at a tick of its
own. Rates in bit/s, backlogs over the interval.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.core.jit import njit
from netctrl.laws.link import backlog_step
from netctrl.laws.link_rate.distributed_step import (
    LinkMemory,
    LinkRates,
    Measured,
    command_link,
    link_acts,
    measure_link,
)
from netctrl.laws.link_rate.fir import BACKPRESSURE, WORK_CONSERVING
from netctrl.sim.network.demand_kernel import DemandFluid, receive, share_out
from netctrl.sim.network.kernel import ARRIVED, DEPARTED, LOST, RATE_SQUARE, WAITING, WAITING_SQUARE, LinkPlant


class MessageState(NamedTuple):
    """Variables of one run."""

    memory: LinkMemory
    """What links know of each other, and their rates in force, before limits."""
    pipe: np.ndarray
    """(N, tick slots) rates that were sent, by tick."""
    backlog: np.ndarray
    """(N,)"""
    sent: np.ndarray
    """(N,) sum of the rates of the ticks since the link acted."""


@njit(cache=True, error_model="numpy")
def _act(law: LinkRates, state: MessageState, late: np.ndarray, received: np.ndarray, tick: int) -> None:
    """Let the links whose tick it is measure, send messages and set their rates. `late` is (messages,), `received`
    (N,)."""
    for link in range(len(law.nominal)):
        if link_acts(law, state.memory, link, tick):
            seen = Measured(state.sent[link] / law.ticks, state.backlog[link], 0.0, 0.0)
            measure_link(law, state.memory, link, seen, tick, late)
            state.sent[link] = 0.0
    for link in range(len(law.nominal)):
        if link_acts(law, state.memory, link, tick):
            command_link(law, state.memory, link, tick, received[link])


@njit(cache=True, error_model="numpy", nogil=True)
def advance_messages(
    plant: LinkPlant,
    law: LinkRates,
    modes: np.ndarray,
    state: MessageState,
    demand: np.ndarray,
    extra: np.ndarray,
    received: np.ndarray,
    first: int,
    counted_from: int,
    sums: np.ndarray,
    offered: np.ndarray,
    watched: np.ndarray,
    fluid: DemandFluid | None = None,
) -> None:
    """Advance one run by the intervals of `demand`, (steps, I), the first of which is number `first`.

    `modes`, (N,), is what links do with their rates (`netctrl.laws.link_rate.fir`). `extra`, (steps, messages), is by
    how many ticks each message is late, or NEVER; `received`, (steps, N), whether a central controller's command comes.
    `sums`, (6, N), `offered`, (1,), and `watched`, (3, N, T), are as in `netctrl.sim.network.kernel`, with means over
    the ticks of an interval; so is `fluid`, of this run alone.
    """
    N, S = len(plant.capacity), law.ticks
    tick_mask = state.pipe.shape[1] - 1
    share = 1.0 / S
    for k in range(demand.shape[0]):
        sample = first + k
        counts = sample >= counted_from
        if fluid is not None:
            sends = (demand[k] * share).reshape(demand.shape[1], 1)
        for phase in range(S):
            tick = sample * S + phase
            _act(law, state, extra[k], received[k], tick)
            for link in range(N):
                arriving = 0.0
                for j in range(plant.coupled_start[link], plant.coupled_start[link + 1]):
                    at = (tick - (plant.coupled_delay[j] + 1) * S) & tick_mask
                    arriving += plant.coupled_share[j] * state.pipe[plant.coupled_link[j], at]
                if fluid is not None:
                    arriving = receive(fluid, 0, link, tick) * S
                for j in range(plant.injected_start[link], plant.injected_start[link + 1]):
                    entering = plant.injected_share[j] * demand[k, plant.injected_demand[j]]
                    arriving += entering
                    if counts:
                        offered[0] += entering * share
                mode, capacity = modes[link], plant.capacity[link]
                service = state.memory.command[link]
                if mode == BACKPRESSURE:
                    service = state.backlog[link] * S + arriving - state.memory.command[link] * S
                service = capacity if mode == WORK_CONSERVING else min(max(service, 0.0), capacity)
                waiting, rate, lost = backlog_step(
                    state.backlog[link], arriving * share, service * share, plant.buffer[link]
                )
                if fluid is not None:
                    share_out(fluid, 0, link, tick, sends, rate, lost, waiting, counts)
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
