"""Rates of links on packets, set by a law: at each tick links measure, hear of each other and set their pace.

The law is that of the fluid with messages and of ns-3 (`netctrl.laws.link_rate.distributed_step`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.core.jit import INSIDE, njit
from netctrl.laws.link_rate.distributed_step import (
    LinkMemory,
    LinkRates,
    Measured,
    command_link,
    link_acts,
    link_memory,
    measure_link,
)
from netctrl.model.design.design import HftracDesign
from netctrl.scenario.network.plan import LinkPlan
from netctrl.scenario.network.policy import StaticPacing
from netctrl.scenario.scenario import Scenario
from netctrl.sim.network.flow_links import flow_links
from netctrl.sim.network.plan import RunDraws
from netctrl.sim.packet.kernel import advance_packets
from netctrl.sim.packet.links.links import pace_link, settle
from netctrl.sim.packet.senders.demands import begin_interval
from netctrl.sim.packet.state import FLOW, LINK, META, NEVER, PacketState

ARRIVED, DEPARTED, LOST, BACKLOG = range(4)
"""Rows of counts of N links [byte]."""
WAITING, RATE_SQUARE, WAITING_SQUARE = range(3)
"""Rows of sums over intervals: b, (f - f*)² and (b - b*)², backlogs over the interval [bit/s]."""
L_ARRIVED, L_DEPARTED, L_LOST, L_BYTES = (LINK[name] for name in ("arrived", "departed", "lost", "bytes"))
M_HEAP, M_OFFERED, M_DELIVERED = META["heap"], META["offered"], META["delivered"]
_NANOBITS = 8e9  # of a byte


class RateControl(NamedTuple):
    """What does not change. N links of the law; the first I flows are the demands."""

    law: LinkRates
    place: np.ndarray
    """(N,) rows of the links among all links."""
    paced: np.ndarray
    """(N,) whether a link sends at its law's rate; else at its capacity."""
    nominal: np.ndarray
    """(N,) f*, around which squares are taken [bit/s]."""
    draws: RunDraws
    interval: int
    """tau [ns]."""
    steps: int
    """Intervals."""
    counted_from: int
    """Intervals that don't count."""


class RateMemory(NamedTuple):
    """What changes."""

    law: LinkMemory
    tick: np.ndarray
    """(1,) the next one."""
    now: np.ndarray
    """(4, N) counts at the last tick."""
    began: np.ndarray
    """(4, N) when the interval began."""
    acted: np.ndarray
    """(4, N) when each link last acted."""
    counted: np.ndarray
    """(4, N) when counting began."""
    ends: np.ndarray
    """(2,) what was sent into the network and came out of it by then [byte]."""
    flow: np.ndarray
    """(F, ...) flows then."""
    sums: np.ndarray
    """(3, N) over the intervals that count."""
    watched: np.ndarray
    """(3, N, T) backlog [byte], rate [bit/s] and loss [byte] of each interval."""


def rate_control(
    plan: LinkPlan, draws: RunDraws, place: np.ndarray, interval: int, steps: int, counted_from: int = 0
) -> RateControl:
    """A plan at work on the links of these rows; `interval` [ns]."""
    return RateControl(plan.law, place, plan.paced, plan.nominal, draws, interval, steps, counted_from)


def rate_memory(control: RateControl, flows: int, watched: int = 0) -> RateMemory:
    """Before the first tick; `watched` intervals are kept."""
    N = len(control.place)
    now, began, acted, counted = np.zeros((4, 4, N), dtype=np.int64)
    return RateMemory(
        law=link_memory(control.law, control.draws.phase),
        tick=np.zeros(1, dtype=np.int64),
        now=now,
        began=began,
        acted=acted,
        counted=counted,
        ends=np.zeros(2, dtype=np.int64),
        flow=np.zeros((flows, len(FLOW)), dtype=np.int64),
        sums=np.zeros((3, N)),
        watched=np.zeros((3, N, watched)),
    )


def start_pacing(link: np.ndarray, rows: np.ndarray, rates: np.ndarray) -> None:
    """Rows of links that are paced serve by events, at first at these rates [bit/s]."""
    link[rows, LINK["served"]] = 1
    link[rows, LINK["pace"]] = np.maximum(np.rint(rates), 1.0)


# --- the links of a scenario of flows ---------------------------------------------------------------------------------


def scenario_control(scenario: Scenario, link: np.ndarray, design: HftracDesign | None) -> RateControl | None:
    """What sets the rates of a scenario's links from one interval to the next, or None; links that are paced are told.

    Parameters
    ----------
    scenario : Scenario
    link : ndarray
        Rows of its links, which are changed.
    design : HftracDesign or None
        In place of the file that the scenario names.

    Raises
    ------
    InvalidValue
        A Design of another method, or for other links.
    FileError
        The Design file can't be read.
    """
    policy = scenario.control
    found = flow_links(scenario, design)
    if isinstance(policy, StaticPacing):
        rows = np.array([k for k, each in enumerate(scenario.links) if not policy.links or each.id in policy.links])
        start_pacing(link, rows, policy.factor * link[rows, LINK["rate"]])
    if found is None:
        return None
    plan, place = found.plan, found.place
    start_pacing(link, place[plan.paced], plan.law.nominal[plan.paced])
    return rate_control(plan, found.draws, place, round(found.interval * 1e9), found.steps)


# --- compiled ---------------------------------------------------------------------------------------------------------


@njit(**INSIDE)
def _copy(table: np.ndarray, to: np.ndarray) -> None:
    """Number by number: assigning arrays takes long to compile."""
    for i in range(table.shape[0]):
        for k in range(table.shape[1]):
            to[i, k] = table[i, k]


@njit(**INSIDE)
def _count(net: PacketState, control: RateControl, now: np.ndarray, time: int) -> None:
    for link in range(len(control.place)):
        row = control.place[link]
        settle(net, row, time)
        now[ARRIVED, link], now[DEPARTED, link] = net.link[row, L_ARRIVED], net.link[row, L_DEPARTED]
        now[LOST, link], now[BACKLOG, link] = net.link[row, L_LOST], net.link[row, L_BYTES]


@njit(**INSIDE)
def _end_interval(net: PacketState, control: RateControl, memory: RateMemory, step: int) -> None:
    """Number `step` begins; what the one before it brought is added."""
    now, began, sums, watched = memory.now, memory.began, memory.sums, memory.watched
    unit = _NANOBITS / control.interval
    for link in range(len(control.place) if step > 0 else 0):
        rate = unit * (now[DEPARTED, link] - began[DEPARTED, link])
        waiting = unit * now[BACKLOG, link]
        if step > control.counted_from:
            sums[WAITING, link] += waiting
            sums[RATE_SQUARE, link] += (rate - control.nominal[link]) ** 2
            sums[WAITING_SQUARE, link] += (waiting - control.law.setpoint) ** 2
        if step <= watched.shape[2]:
            watched[0, link, step - 1], watched[1, link, step - 1] = now[BACKLOG, link], rate
            watched[2, link, step - 1] = now[LOST, link] - began[LOST, link]
    _copy(now, began)
    if step == control.counted_from:
        _copy(now, memory.counted)
        _copy(net.flow, memory.flow)
        memory.ends[0], memory.ends[1] = net.meta[M_OFFERED], net.meta[M_DELIVERED]


@njit(**INSIDE)
def _act(net: PacketState, control: RateControl, memory: RateMemory, tick: int, time: int) -> None:
    """Links whose tick it is measure, tell, and then set their rates."""
    law, now, acted, draws = control.law, memory.now, memory.acted, control.draws
    step, share = tick // law.ticks, tick % law.ticks / law.ticks
    unit = _NANOBITS / control.interval
    for link in range(len(control.place)):
        if link_acts(law, memory.law, link, tick):
            rate = unit * (now[DEPARTED, link] - acted[DEPARTED, link])
            if step == 0:  # before the start all sent at the rates with which they begin
                rate += (1.0 - share) * law.nominal[link]
            arrived, lost = now[ARRIVED, link] - acted[ARRIVED, link], now[LOST, link] - acted[LOST, link]
            seen = Measured(rate, unit * now[BACKLOG, link], unit * arrived, unit * lost)
            for count in range(len(acted)):
                acted[count, link] = now[count, link]
            measure_link(law, memory.law, link, seen, tick, draws.late[step])
    for link in range(len(control.place)):
        if link_acts(law, memory.law, link, tick):
            command_link(law, memory.law, link, tick, draws.received[step, link])
            if control.paced[link]:
                pace_link(net, control.place[link], time, max(memory.law.command[link], 0.0))


@njit(cache=True, error_model="numpy", nogil=True)
def _tick(net: PacketState, control: RateControl, memory: RateMemory, time: int, full: int) -> None:
    """Links measure and act, and where an interval begins the demands are told their rates."""
    ticks, tick, rates = control.law.ticks, memory.tick[0], control.draws.rates
    step, phase = tick // ticks, tick % ticks
    _count(net, control, memory.now, time)
    if phase == 0:
        _end_interval(net, control, memory, step)
    if step < control.steps:
        _act(net, control, memory, tick, time)
        for f in range(rates.shape[1] if phase == 0 else 0):
            begin_interval(net, f, rates[step, f], time, time + control.interval, full)
    memory.tick[0] += 1


def advance_rates(
    net: PacketState, control: RateControl, memory: RateMemory, sample: int, full: int, first_window: float, end: int
) -> bool:
    """Advance to `end` [ns], tick by tick; other arguments and the answer are those of `advance_packets`.

    A loop in Python, so that `advance_packets` is compiled once: a call of a kernel takes 4 microseconds.
    """
    ticks, interval = control.law.ticks, control.interval
    while True:
        tick = int(memory.tick[0])
        step, phase = divmod(tick, ticks)
        time = step * interval + phase * interval // ticks if tick <= control.steps * ticks else NEVER
        if time > end:
            return advance_packets(net, sample, full, first_window, end)
        if net.meta[M_HEAP] + len(net.link) + len(net.flow) + 64 > len(net.heap):
            return False
        if not advance_packets(net, sample, full, first_window, time):
            return False
        _tick(net, control, memory, time, full)
