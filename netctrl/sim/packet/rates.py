"""Rates of links on packets, set by a law: at each tick links measure, hear of each other and set their pace.

The law is that of the fluid with messages and of ns-3 (`netctrl.laws.link_rate.distributed_step`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from netctrl.core.jit import INSIDE, njit
from netctrl.laws.link_rate.distributed_step import (
    LinkRates,
    Measured,
    command_link,
    link_acts,
    link_memory,
    measure_link,
)
from netctrl.scenario.network.decided import DecidedRates, RateDecider
from netctrl.scenario.network.plan import FlowLinks, RunDraws
from netctrl.scenario.network.policy import static_rates
from netctrl.scenario.scenario import Scenario
from netctrl.sim.packet.kernel import advance_packets
from netctrl.sim.packet.links.links import pace_link, settle
from netctrl.sim.packet.state import LINK, META, NEVER, PacketState

ARRIVED, DEPARTED, LOST, BACKLOG = range(4)
"""Rows of counts of N links [byte]."""
L_ARRIVED, L_DEPARTED, L_LOST, L_BYTES = (LINK[name] for name in ("arrived", "departed", "lost", "bytes"))
M_HEAP = META["heap"]
_NANOBITS = 8e9  # of a byte


class RateControl(NamedTuple):
    """What does not change. N links of the law."""

    law: LinkRates | DecidedRates
    place: np.ndarray
    """(N,) rows of the links among all links."""
    paced: np.ndarray
    """(N,) whether a link sends at its law's rate; else at its capacity."""
    draws: RunDraws
    interval: int
    """tau [ns]."""
    steps: int
    """Intervals."""


class RateMemory(NamedTuple):
    """What changes."""

    law: Any
    """A `LinkMemory`, or the `RateDecider` of a law that isn't compiled."""
    tick: np.ndarray
    """(1,) the next one."""
    now: np.ndarray
    """(4, N) counts at the last tick."""
    acted: np.ndarray
    """(4, N) when each link last acted."""


def rate_memory(control: RateControl) -> RateMemory:
    """Before the first tick."""
    now, acted = np.zeros((2, 4, len(control.place)), dtype=np.int64)
    if isinstance(control.law, DecidedRates):
        law = RateDecider.of(control.law)
    else:
        law = link_memory(control.law, control.draws.phase)
    return RateMemory(law, np.zeros(1, dtype=np.int64), now, acted)


def start_pacing(link: np.ndarray, rows: np.ndarray, rates: np.ndarray) -> None:
    """Rows of links that are paced serve by events, at first at these rates [bit/s]."""
    link[rows, LINK["served"]] = 1
    link[rows, LINK["pace"]] = np.maximum(np.rint(rates), 1.0)


def rate_control(scenario: Scenario, link: np.ndarray, found: FlowLinks | None) -> RateControl | None:
    """What sets the rates of a scenario's links from one interval to the next, or None; links that are paced are told.

    Parameters
    ----------
    scenario : Scenario
    link : ndarray
        Rows of its links, which are changed.
    found : FlowLinks or None
        Links under a law.
    """
    if found is not None:
        plan, place = found.plan, found.place
        start_pacing(link, place[plan.paced], plan.law.nominal[plan.paced])
        return RateControl(plan.law, place, plan.paced, found.draws, round(found.interval * 1e9), found.steps)
    rates = static_rates(scenario)
    rows = [row for row, each in enumerate(scenario.links) if each.id in rates]
    start_pacing(link, np.array(rows, dtype=np.int64), np.array([*rates.values()]))
    return None


# --- compiled ---------------------------------------------------------------------------------------------------------


@njit(cache=True, error_model="numpy", nogil=True)
def _count(net: PacketState, place: np.ndarray, now: np.ndarray, time: int) -> None:
    for link in range(len(place)):
        row = place[link]
        settle(net, row, time)
        now[ARRIVED, link], now[DEPARTED, link] = net.link[row, L_ARRIVED], net.link[row, L_DEPARTED]
        now[LOST, link], now[BACKLOG, link] = net.link[row, L_LOST], net.link[row, L_BYTES]


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
def _tick(net: PacketState, control: RateControl, memory: RateMemory, time: int) -> None:
    """Links measure and act."""
    tick = memory.tick[0]
    if tick < control.steps * control.law.ticks:
        _count(net, control.place, memory.now, time)
        _act(net, control, memory, tick, time)
    memory.tick[0] += 1


@njit(cache=True, error_model="numpy", nogil=True)
def _pace(net: PacketState, row: int, time: int, rate: float) -> None:
    pace_link(net, row, time, rate)


def _decide(net: PacketState, control: RateControl, memory: RateMemory, time: int) -> None:
    """The same tick of a link whose law isn't compiled into the kernel."""
    step, now, acted = int(memory.tick[0]), memory.now, memory.acted
    if step < control.steps:
        _count(net, control.place, now, time)
        arrived, departed, lost, _ = _NANOBITS / control.interval * (now - acted)[:, 0]
        acted[:] = now
        seen = Measured(departed, _NANOBITS / control.interval * now[BACKLOG, 0], arrived, lost)
        _pace(net, control.place[0], time, max(memory.law.decide(step, seen), 0.0))
    memory.tick[0] += 1


def advance_rates(
    net: PacketState, control: RateControl, memory: RateMemory, sample: int, full: int, first_window: float, end: int
) -> bool:
    """Advance to `end` [ns], tick by tick; other arguments and the answer are those of `advance_packets`.

    A loop in Python, so that `advance_packets` is compiled once: a call of a kernel takes 4 microseconds.
    """
    ticks, interval = control.law.ticks, control.interval
    act = _decide if isinstance(memory.law, RateDecider) else _tick
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
        act(net, control, memory, time)
