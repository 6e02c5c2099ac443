"""Plan and state of an agent: the constants from its file, and the variables from interval to interval.

Times are microseconds since the agent's interval number 0 began, by its monotonic clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from netctrl.core.units import BITS_PER_BYTE, unit_scale
from netctrl.laws.link_rate.controller import Heard, Innovations, start_hearing
from netctrl.laws.link_rate.distributed_step import LinkRates
from netctrl.laws.tracking.reference_governor import ReferenceGovernor, govern, reference_governor
from netctrl.laws.tracking.tracking import TrackingGains, TrackingState, start_tracking, step_tracking, tracking_gains
from netctrl.linux.agent.message import Alignment, Echo, Route, Window, digest
from netctrl.linux.export.agent import AgentConfig
from netctrl.linux.export.agent_law import DecidedTable, LinkRateTable, TrackingTable
from netctrl.scenario.network.decided import RateDecider
from netctrl.scenario.network.tracking import MBIT, TRACKED_SIGNALS

MICROSECONDS = 1_000_000
"""A second."""


class Tracker(NamedTuple):
    """State of a law, and its governor's last reference."""

    gains: TrackingGains
    state: TrackingState
    given: np.ndarray
    """(p,) [the law's units]."""
    governor: ReferenceGovernor | None


def start_tracker(table: TrackingTable) -> Tracker:
    """State at the law's offset, within its limits."""
    governor = reference_governor(table.law) if table.governor else None
    given = table.law.output_offset.copy() if table.governor else np.array(table.reference)
    gains = tracking_gains(table.law)
    return Tracker(gains, start_tracking(gains), given, governor)


def step_tracker(
    table: TrackingTable,
    tracker: Tracker,
    measured: Sequence[float] | None,
    backlog_bytes: int | None,
    sent: float | None,
    in_force: float | None,
) -> tuple[Tracker, float | None]:
    """One sample of the law.

    Parameters
    ----------
    table : TrackingTable
    tracker : Tracker
    measured : sequence of float, length p, optional
        Outputs measured by a peer [s, bit/s]; None without a message.
    backlog_bytes : int, optional
        Backlog of the bottleneck, where the agent measures itself.
    sent : float, optional
        Rate sent by all regulators in the last interval [bit/s].
    in_force : float, optional
        Actual rate of the regulators [bit/s], which accounts for limits, whole bytes and dead-bands.

    Returns
    -------
    (Tracker, float or None)
        Total rate of all regulators [bit/s]; None holds the rate, as there is no measurement.
    """
    law = table.law
    values = list(measured) if measured is not None else None
    if table.measured_by is None:
        values = None
        if backlog_bytes is not None and sent is not None and table.bottleneck is not None:
            # Delay by Little's law for a busy link: backlog over departure rate.
            known = {"delay": backlog_bytes * BITS_PER_BYTE / table.bottleneck, "throughput": sent}
            values = [known[name] for name in law.outputs]
    if values is None or not np.isfinite(values).all():
        return tracker, None
    unit = unit_scale(law.input_units[0]) or MBIT
    scale = [
        unit_scale(name) or TRACKED_SIGNALS[output, "period"].assumed
        for output, name in zip(law.outputs, law.output_units, strict=True)
    ]
    state = tracker.state
    if in_force is not None:
        state = state._replace(applied=np.clip([in_force / unit], law.low, law.high))
    given = np.array(table.reference)
    if tracker.governor is not None:
        given = govern(tracker.governor, state, tracker.given, given)
    state = step_tracking(tracker.gains, state, np.array(values) / np.array(scale), given)
    return tracker._replace(state=state, given=given), float(state.applied[0]) * unit


class Reading(NamedTuple):
    """Counters of a queue since its creation."""

    sent_bytes: int
    backlog_bytes: int
    dropped: int = 0


class Trouble(NamedTuple):
    """Reason why a link can't be controlled any more."""

    kind: str
    """"gone", "foreign" (another queue is there) or "changed" (by another program)."""
    why: str


class Event(NamedTuple):
    """Event for the log."""

    name: str
    fields: tuple[tuple[str, Any], ...] = ()


class Neighbour(NamedTuple):
    """State of a peer."""

    window: Window = Window()
    alignment: Alignment = Alignment()
    echo: Echo = Echo()
    heard_us: int = 0
    """Arrival time of the message in `echo`, its last one."""
    trusted_us: int = 0
    """Arrival time of the last accepted message."""
    heard: bool = False
    """Whether it counts as present."""
    sequence: int = 0
    """Sequence number of the last message to it."""
    told_step: int = -1
    """Step of its last command."""
    told_unheard: bool = False
    """Whether the log has reported that no message came from it."""


class AgentPlan(NamedTuple):
    """Constants of an agent with K links."""

    config: AgentConfig
    key: bytes
    routes: tuple[Route, ...]
    """Route of each peer's messages."""
    interval_us: float
    law: LinkRates | None
    """None with a tracking law."""
    memory: Heard | None
    """Of the law, at the start."""
    numbers: tuple[int, ...]
    """(K,) numbers of the links in the law."""
    told: tuple[tuple[int, ...], ...]
    """Numbers of the links that each peer measures."""
    low: np.ndarray
    """(K,) [bit/s]"""
    high: np.ndarray
    fallback: np.ndarray
    paced: np.ndarray
    """(K,) bool"""
    commanded: bool
    """Whether a central controller commands the rates."""


class AgentState(NamedTuple):
    """Variables of an agent."""

    session: int
    step: int
    at_us: int
    """Time of the last step."""
    memory: Heard | None
    tracker: Tracker | None
    decider: RateDecider | None
    """A link's law of model predictive control, with its memory."""
    readings: tuple[Reading | None, ...]
    """(K,) readings of the last step."""
    backlog: np.ndarray
    """(K,) smoothed backlogs, over the interval [bit/s]."""
    rate: np.ndarray
    """(K,) rates sent in the last interval [bit/s]."""
    queued: np.ndarray
    """(K,) rates that came into the queues in the last interval [bit/s]."""
    desired: np.ndarray
    """(K,) rates of the law within limits [bit/s]."""
    in_force: np.ndarray
    """(K,) rates in force [bit/s]; NaN before one was set."""
    lost: tuple[bool, ...]
    """(K,) whether a link isn't controlled any more."""
    neighbours: tuple[Neighbour, ...]
    inbox: tuple[Innovations, ...]
    measured: tuple[float, ...] | None
    """A tracking law's outputs in the last message."""
    command_us: int
    """Arrival time of the last command; far in the past before the first."""
    falling_back: bool
    counts: Mapping[str, int]


class Decision(NamedTuple):
    """Actions of a step."""

    rates: tuple[tuple[int, float], ...] = ()
    """Link (of K), rate [bit/s]."""
    datagrams: tuple[tuple[int, bytes], ...] = ()
    """Peer, content."""
    events: tuple[Event, ...] = ()


def plan(config: AgentConfig, key: bytes = b"") -> AgentPlan:
    """Constants that follow from an agent's file."""
    table, links = config.law, config.links
    law, numbers, paced, commanded = None, tuple(range(len(links))), [True] * len(links), False
    told: tuple[tuple[int, ...], ...] = ((),) * len(config.peers)
    about = f"tracking {config.name}"
    if isinstance(table, LinkRateTable):
        row = {name: number for number, name in enumerate(table.links)}
        numbers = tuple(row[link.id] for link in links)
        told = tuple(tuple(row[name] for name in peer.links) for peer in config.peers)
        commanded = table.central and config.role == "agent"
        law = table.as_law(table.information_delay if config.role == "controller" else 0)
        paced = [table.paced[number] > 0.0 for number in numbers]
        about = f"{config.interval_s!r} {table.links} {table.nominal.tolist()}"
    elif isinstance(table, TrackingTable) and table.measured_by is not None:
        about = f"tracking {table.measured_by}"
    routes = tuple(Route(digest(peer.name), digest(config.name), digest(about)) for peer in config.peers)
    return AgentPlan(
        config=config,
        key=key,
        routes=routes,
        interval_us=config.interval_s * MICROSECONDS,
        law=law,
        memory=None if law is None else start_hearing(law, numbers or range(len(law.nominal))),
        numbers=numbers,
        told=told,
        low=np.array([link.least_rate for link in links]),
        high=np.array([link.greatest_rate for link in links]),
        fallback=np.array([link.fallback_rate for link in links]),
        paced=np.array(paced, dtype=bool),
        commanded=commanded,
    )


def start(plan: AgentPlan, session: int) -> AgentState:
    """State before the first step; `session` from `netctrl.linux.agent.message.new_session`."""
    K, table = len(plan.numbers), plan.config.law
    return AgentState(
        session=session,
        step=-1,
        at_us=0,
        memory=plan.memory,
        tracker=start_tracker(table) if isinstance(table, TrackingTable) else None,
        decider=_decider(plan, table) if isinstance(table, DecidedTable) else None,
        readings=(None,) * K,
        backlog=np.full(K, np.nan),
        rate=np.full(K, np.nan),
        queued=np.full(K, np.nan),
        desired=np.where(plan.paced, plan.fallback, plan.high),
        in_force=np.full(K, np.nan),
        lost=(False,) * K,
        neighbours=(Neighbour(),) * len(plan.config.peers),
        inbox=(),
        measured=None,
        command_us=-(2**62),
        falling_back=False,
        counts={},
    )


def _decider(plan: AgentPlan, table: DecidedTable) -> RateDecider:
    """The law, at the link's fallback rate; announcements don't reach an agent."""
    return RateDecider(table.law, float(plan.fallback[0]) / table.growth, np.zeros(0), acts_late=False)


def known(state: AgentState, peer: int, neighbour: Neighbour) -> AgentState:
    """State with changed data of a peer."""
    return state._replace(neighbours=(*state.neighbours[:peer], neighbour, *state.neighbours[peer + 1 :]))


def counted(state: AgentState, what: str, by: int = 1) -> AgentState:
    """State with an incremented counter."""
    return state._replace(counts={**state.counts, what: state.counts.get(what, 0) + by}) if by else state
