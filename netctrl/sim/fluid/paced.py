"""Runs of single flows over one queue, of which each is at the rate of its pacing law or of its window."""

from __future__ import annotations

from math import ceil, inf
from typing import Any, NamedTuple

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.core.units import BITS_PER_BYTE
from netctrl.laws.aqm.codel import CodelQueue
from netctrl.laws.pacing.pacing import pacer, start_pacing
from netctrl.laws.rate.cap import CapSender
from netctrl.laws.rate.records import pacer_of
from netctrl.laws.tcp.bbr import bbr_start
from netctrl.laws.tcp.rows import WINDOWS, first_window
from netctrl.model.io.provenance import Provenance
from netctrl.model.law import OwnRatePacer
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Stream
from netctrl.sim.fluid.paced_kernel import (
    ARX,
    BBR,
    FIXED,
    NO_WINDOW,
    OWN_RATE,
    WORK_CONSERVING,
    PacedFlows,
    PacedQueue,
    PacedRecord,
    advance_paced,
)
from netctrl.sim.fluid.traffic import draw_flows, link_rates

_STEPS_PER_RTT = 40
_MAX_PLACES = 1e8
_NOISES, _DRAWS = 4099, 65_537
_FIRST_PLACE = 2
"""Phase in which BBR's cycle of gains begins, right after the drain; BBR draws it at random."""


class _Sender(NamedTuple):
    """Law of a flow's rate, its state and settings at first, and its window."""

    law: int
    state: np.ndarray
    settings: np.ndarray
    window: int


class PacedProblem(NamedTuple):
    """Arguments of the kernel."""

    flows: PacedFlows
    queue: PacedQueue
    record: PacedRecord


def simulate_paced(scenario: Scenario, made: Provenance) -> Result:
    """Run a scenario of `has_pacers`; cross traffic is a constant rate, the mean of its packets.

    Raises
    ------
    InvalidValue
        As `paced_problem`.
    """
    ready = paced_problem(scenario)
    advance_paced(*ready)
    record, answered = ready.record, [group.answered for group in scenario.flows]
    delivered, sent, lost = record.delivered, record.sent, record.lost
    return Result.of_series(
        scenario,
        "fluid",
        made,
        links={
            "backlog": record.backlog[1:],
            "backlog_most": record.backlog[:1],
            "arrived": sent.sum(axis=0)[None],
            "departed": delivered.sum(axis=0)[None],
            "lost": lost.sum(axis=0)[None],
            "delay": record.delay[None],
        },
        flows={
            "delivered": delivered,
            "pace": BITS_PER_BYTE * sent / scenario.interval,
            "rtt": np.where(np.c_[answered], record.trip, np.nan),
        },
        totals={"sent": sent.sum(axis=1), "resent": lost.sum(axis=1)},
        tables={
            "connections": {
                "flow": np.flatnonzero(answered),
                "start": ready.flows.start[answered],
                "sent": sent[answered].sum(axis=1),
                "resent": lost[answered].sum(axis=1),
            }
        },
    )


def paced_problem(scenario: Scenario) -> PacedProblem:
    """The kernel's arrays for a scenario of `has_pacers`.

    Raises
    ------
    InvalidValue
        A paced flow without a law; more than 1e8 steps of a 40th of the shortest round trip.
    """
    (line,), draws = scenario.links, draw_flows(scenario, merged=False)
    base = np.array([float(draw.rtt_s[0]) for draw in draws])
    shortest = float(base[base > 0.0].min())
    base = np.where(base > 0.0, base, shortest)  # of cross traffic nothing is acknowledged
    every = max(ceil(scenario.interval / shortest * _STEPS_PER_RTT - 1e-9), 1)
    step, samples = scenario.interval / every, int(scenario.duration / scenario.interval * (1.0 + 1e-12))
    n, steps = len(draws), every * samples
    if steps > _MAX_PLACES or n * (float(base.max()) / step + 2.0) > _MAX_PLACES:
        takes = f"at most {_MAX_PLACES:g} steps of {step:g} s, a part of the shortest RTT, in a run and in a round trip"
        raise InvalidValue("duration", scenario.duration, takes)
    senders = [_sender(group, rtt, scenario.packet_size) for group, rtt in zip(scenario.flows, base, strict=True)]
    random = np.random.default_rng(np.random.SeedSequence(scenario.seed, spawn_key=(n + 2,)))
    noise = np.array([group.rtt_noise for group in scenario.flows])
    flows = PacedFlows(
        law=np.array([each.law for each in senders]),
        state=_table([each.state for each in senders]),
        settings=_table([each.settings for each in senders]),
        window=np.array([each.window for each in senders]),
        memory=np.array([first_window(rtt, float(scenario.initial_window)) for rtt in base]),
        base=base,
        start=np.array([float(draw.start_s[0]) for draw in draws]),
        stop=np.array([float(draw.stop_s[0]) for draw in draws]),
        noise=random.exponential(noise[:, None], (n, _NOISES)),
    )
    codel = line.queue if isinstance(line.queue, CodelQueue) else None
    queue = PacedQueue(
        step=step,
        capacity=link_rates(scenario, 0, step, steps) / BITS_PER_BYTE,
        buffer=line.buffer or 0.0,
        target=codel.target if codel else inf,
        interval=codel.interval if codel else 1.0,
        packet=scenario.packet_size,
        uniform=random.random(_DRAWS),
    )
    tables = (np.zeros((n, samples)) for _ in range(3))
    record = PacedRecord(every, *tables, np.full((n, samples), np.nan), np.zeros(samples), np.zeros((2, samples)))
    return PacedProblem(flows, queue, record)


def _sender(group: Flow, rtt: float, packet: float) -> _Sender:
    sender: Any = group.sender
    none = np.zeros(1)
    name = sender if isinstance(sender, str) else getattr(sender, "window", None)
    window = WINDOWS.index(name) if name in WINDOWS else NO_WINDOW
    if isinstance(group.offers, Stream):
        return _Sender(FIXED, none, np.array([group.offers.rate]), window)
    law = pacer_of(sender)
    if law is not None:
        kind = OWN_RATE if isinstance(law, OwnRatePacer) else ARX
        return _Sender(kind, start_pacing(law).values, pacer(law).settings, window)
    if isinstance(sender, CapSender):
        return _Sender(FIXED, none, np.array([sender.rate]), window)
    if sender == "bbr":
        return _Sender(BBR, bbr_start(rtt, packet, _FIRST_PLACE), none, window)
    return _Sender(WORK_CONSERVING, none, none, window)


def _table(rows: list[np.ndarray]) -> np.ndarray:
    """(n, ·) as long as the longest row."""
    table = np.zeros((len(rows), max(map(len, rows))))
    for place, row in zip(table, rows, strict=True):
        place[: len(row)] = row
    return table
