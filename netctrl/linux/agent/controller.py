"""Pure logic of an agent: (state, measurements, datagrams) to (state, rates, datagrams).

This module uses no clock and no socket; `netctrl.linux.agent.loop` carries out its decisions. A state's counters and
events record what happened.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from netctrl.core.units import BITS_PER_BYTE
from netctrl.laws.link_rate.controller import Heard, command, measure
from netctrl.laws.link_rate.distributed_step import LinkRates, Measured
from netctrl.linux.agent.message import Dropped, Echo, Entry, Kind, Message, admit, aligned, index_of, pack, unpack
from netctrl.linux.agent.state import (
    MICROSECONDS,
    AgentPlan,
    AgentState,
    Decision,
    Event,
    Neighbour,
    Reading,
    Tracker,
    Trouble,
    counted,
    known,
    step_tracker,
)
from netctrl.linux.export.agent_law import DecidedTable, LinkRateTable, TrackingTable
from netctrl.scenario.network.decided import RateDecider

_PATIENCE = 1.5
"""Intervals without a command after which a link falls back: by then a command is lost, not only late."""
_UNHEARD_S = 10.0
"""Time from the start, and at least `silence` intervals, after which the log names peers without any message."""
_MAX_VALUE = 1e16
"""Largest value accepted in messages [bit/s]: above any link's rate, and small enough to avoid overflow."""


# --- what comes in ---------------------------------------------------------------------------------------------------


def receive(plan: AgentPlan, state: AgentState, peer: int, datagram: bytes, now_us: int) -> tuple[AgentState, Decision]:
    """Handle a datagram from a peer's address: accept it, or drop and count it; a command takes effect at once."""
    found = unpack(datagram, plan.routes[peer], plan.key)
    if isinstance(found, Dropped):
        return counted(state, f"dropped_{found}"), Decision()
    neighbour = state.neighbours[peer]
    window, dropped = admit(neighbour.window, found, state.session)
    if dropped is not None:
        neighbour = neighbour._replace(window=window)
        if dropped == Dropped.UNPROVEN:  # the answer must contain its arrival time
            neighbour = neighbour._replace(echo=Echo(found.session, found.sent_us, 0), heard_us=now_us)
        return counted(known(state, peer, neighbour), f"dropped_{dropped}"), Decision()
    restarted = window.session != neighbour.window.session
    before = Neighbour(sequence=neighbour.sequence) if restarted else neighbour
    alignment = aligned(
        before.alignment,
        plan.interval_us,
        now_us,
        found.sent_us,
        echo_us=found.echo.sent_us,
        held_us=found.echo.held_us if found.echo.session == state.session else None,
    )
    echo = Echo(found.session, found.sent_us, 0)
    neighbour = before._replace(
        window=window, alignment=alignment, echo=echo, heard_us=now_us, trusted_us=now_us, heard=True
    )
    events = () if state.neighbours[peer].heard and not restarted else (_event("peer-heard", plan, peer),)
    state = counted(known(state, peer, neighbour), "messages_received")
    state, decision = _taken(plan, state, peer, found, now_us)
    return state, decision._replace(events=(*events, *decision.events))


def _taken(plan: AgentPlan, state: AgentState, peer: int, message: Message, now_us: int) -> tuple[AgentState, Decision]:
    if message.kind == Kind.COMMAND and plan.commanded:
        return _commanded(plan, state, peer, message, now_us)
    if message.kind == Kind.MEASURED and plan.law is None:
        p = len(plan.config.law.reference) if isinstance(plan.config.law, TrackingTable) else 0
        values = dict(message.entries)
        if sorted(values) != list(range(p)):
            return counted(state, "dropped_malformed"), Decision()
        return state._replace(measured=tuple(values[i][0] for i in range(p))), Decision()
    if message.kind != Kind.STATE or plan.law is None or plan.commanded:
        return counted(state, "dropped_unasked"), Decision()
    index = index_of(state.neighbours[peer].alignment, message.step, int(now_us // plan.interval_us) + 1)
    allowed = plan.told[peer]
    innovations = tuple(
        (link, index, values)
        for link, values in message.entries
        if link in allowed and index is not None and max(map(abs, values)) < _MAX_VALUE
    )
    if len(innovations) < len(message.entries):
        state = counted(state, "dropped_unasked")
    room = 4 * max(1, len(plan.law.nominal)) * (plan.law.mask + 1)  # more than honest peers fill
    return state._replace(inbox=(*state.inbox, *innovations)[-room:]), Decision()


def _commanded(
    plan: AgentPlan, state: AgentState, peer: int, message: Message, now_us: int
) -> tuple[AgentState, Decision]:
    """Apply a central controller's command; one older than the last is ignored."""
    neighbour = state.neighbours[peer]
    if message.step <= neighbour.told_step:
        return counted(state, "dropped_late"), Decision()
    state = known(state, peer, neighbour._replace(told_step=message.step))
    values = {link: row[0] for link, row in message.entries}
    requested = np.array([values.get(number, np.nan) for number in plan.numbers])
    events = (_event("commands-again", plan, peer),) if state.falling_back else ()
    state, rates = _bounded(plan, state._replace(command_us=now_us, falling_back=False), requested)
    state, changes = _changes(plan, state, rates)
    return state, Decision(rates=changes, events=events)


# --- a step ----------------------------------------------------------------------------------------------------------


def step(
    plan: AgentPlan,
    state: AgentState,
    number: int,
    now_us: int,
    readings: Sequence[Reading | Trouble],
    *,
    elsewhere: Reading | None = None,
) -> tuple[AgentState, Decision]:
    """End of an interval: measure, send messages, decide.

    Parameters
    ----------
    plan : AgentPlan
    state : AgentState
    number : int
        Number of the interval that begins, above the last one's; the numbers between were missed.
    now_us : int
        Time of the readings.
    readings : sequence of Reading or Trouble
        Readings of the K links.
    elsewhere : Reading, optional
        Reading of the bottleneck that a tracking law measures itself.
    """
    state = counted(state, "steps")
    if state.step >= 0 and number > state.step + 1:
        state = counted(state, "missed_steps", number - state.step - 1)
    events: list[Event] = []
    for link, reading in enumerate(readings):
        if isinstance(reading, Trouble):
            state, found = trouble(plan, state, link, reading)
            events += found.events
    state, quiet = _silence(plan, state, now_us)
    state = _read(plan, state, now_us, readings)
    first, state = state.step < 0, state._replace(step=number, at_us=now_us)
    if isinstance(plan.config.law, TrackingTable) and state.tracker is not None:
        state, rates = _track(plan, state, plan.config.law, state.tracker, elsewhere, first)
    elif plan.law is not None and state.memory is not None:
        state, rates, said = _obey(plan, state, plan.law, state.memory, now_us)
        quiet = (*quiet, *said)
    elif isinstance(plan.config.law, DecidedTable) and state.decider is not None:
        state, rates = _decide(plan, state, plan.config.law.growth, state.decider)
    else:
        rates = state.desired
    state, datagrams = _told(plan, state, now_us, rates)
    changes: tuple[tuple[int, float], ...] = ()
    if len(plan.numbers) and (state.falling_back or not plan.commanded):  # a command has taken effect on arrival
        state, changes = _changes(plan, state, rates)
    return state, Decision(changes, datagrams, (*events, *quiet))


def applied(state: AgentState, link: int, rate: float) -> AgentState:
    """State after a rate was set; `rate` is the kernel's rounded value [bit/s]."""
    in_force = state.in_force.copy()
    in_force[link] = rate
    return counted(state._replace(in_force=in_force), "rate_changes")


def trouble(plan: AgentPlan, state: AgentState, link: int, found: Trouble) -> tuple[AgentState, Decision]:
    """State after a link became uncontrollable: the link is left alone, the others go on."""
    if state.lost[link]:
        return state, Decision()
    lost = tuple(each or row == link for row, each in enumerate(state.lost))
    where = plan.config.links[link]
    fields = (("link", where.id), ("interface", where.interface), ("kind", found.kind), ("why", found.why))
    return counted(state._replace(lost=lost), f"links_{found.kind}"), Decision(events=(Event("link-lost", fields),))


def _silence(plan: AgentPlan, state: AgentState, now_us: int) -> tuple[AgentState, tuple[Event, ...]]:
    """Mark peers without recent messages as gone; log once those without any message."""
    events: list[Event] = []
    longest = plan.config.silence * plan.interval_us
    unheard = max(_UNHEARD_S * MICROSECONDS, longest)
    for peer, neighbour in enumerate(state.neighbours):
        never = not neighbour.heard and not neighbour.trusted_us and not neighbour.told_unheard
        if never and now_us > unheard:
            state = known(state, peer, neighbour._replace(told_unheard=True))
            where = plan.config.peers[peer]
            why = f"no message from {where.address} port {where.port}"
            if neighbour.echo.session:
                why = f"messages arrive but don't answer ours: ours don't reach {where.address} port {where.port}"
            seconds = f"{unheard / MICROSECONDS:g}"
            events.append(Event("peer-never-heard", (("peer", where.name), ("seconds", seconds), ("why", why))))
        if neighbour.heard and now_us - neighbour.trusted_us > longest:
            state = counted(known(state, peer, neighbour._replace(heard=False)), "peers_lost")
            events.append(_event("peer-lost", plan, peer))
    return state, tuple(events)


def _read(plan: AgentPlan, state: AgentState, now_us: int, readings: Sequence[Reading | Trouble]) -> AgentState:
    """Rates sent since the last step, and backlogs, smoothed."""
    rate, backlog, queued = state.rate.copy(), state.backlog.copy(), state.queued.copy()
    kept: list[Reading | None] = []
    scale = BITS_PER_BYTE / plan.config.interval_s
    for link, (reading, before) in enumerate(zip(readings, state.readings, strict=True)):
        if isinstance(reading, Trouble):
            kept.append(None)
            continue
        kept.append(reading)
        waiting, weight = reading.backlog_bytes * scale, plan.config.smoothing
        earlier = backlog[link]
        backlog[link] = waiting if np.isnan(earlier) else earlier + weight * (waiting - earlier)
        if before is not None and now_us > state.at_us:
            unit = BITS_PER_BYTE * MICROSECONDS / (now_us - state.at_us)
            sent = max(reading.sent_bytes - before.sent_bytes, 0)
            rate[link] = sent * unit
            queued[link] = max(sent + reading.backlog_bytes - before.backlog_bytes, 0) * unit
    return state._replace(readings=tuple(kept), rate=rate, backlog=backlog, queued=queued)


def _obey(
    plan: AgentPlan, state: AgentState, law: LinkRates, memory: Heard, now_us: int
) -> tuple[AgentState, np.ndarray, tuple[Event, ...]]:
    """The law's rates within limits, (K,), or, of a controller, all links', (N,)."""
    numbers = np.array(plan.numbers, dtype=np.int64)
    unknown = np.isnan(state.rate)
    rate = np.where(unknown, law.nominal[numbers], state.rate)
    backlog = np.where(np.isnan(state.backlog), law.setpoint, state.backlog)
    now = [innovations for innovations in state.inbox if innovations[1] <= state.step]
    later = tuple(innovations for innovations in state.inbox if innovations[1] > state.step)
    gone = [number for number, lost in zip(plan.numbers, state.lost, strict=True) if lost]
    memory, useless = measure(law, memory, state.step, numbers, rate, backlog, innovations=now, lost=gone)
    state = counted(state._replace(inbox=later), "dropped_useless", useless)
    if plan.commanded:
        # Its last command, or the fallback after a lost one (HFTraC: the nominal rate).
        state = state._replace(memory=memory)
        if now_us - state.command_us <= _PATIENCE * plan.interval_us:
            return state, state.desired, ()
        events = () if state.falling_back else (Event("fallback", (("why", "no command was received"),)),)
        state = counted(state._replace(falling_back=True), "fallback_steps")
        return state, np.where(plan.paced, plan.fallback, plan.high), events
    heard, u = command(law, memory)
    finite = np.where(np.isfinite(u), u, law.nominal)
    table, kept = plan.config.law, finite
    if plan.config.role == "controller" and isinstance(table, LinkRateTable):
        kept = np.clip(finite, 0.0, table.capacity)  # a controller commands within the limits that agents apply
    state = state._replace(memory=heard._replace(links=heard.links._replace(command=kept)))
    if plan.config.role == "controller":
        return state, finite, ()
    state, rates = _bounded(plan, state, u[numbers])
    return state, rates, ()


def _track(
    plan: AgentPlan, state: AgentState, table: TrackingTable, tracker: Tracker, elsewhere: Reading | None, first: bool
) -> tuple[AgentState, np.ndarray]:
    """CONNET: without a measurement the rate is held."""
    share = np.array([link.share for link in plan.config.links])
    controlled = ~np.array(state.lost, dtype=bool)
    sent = float(np.nansum(state.rate[controlled]))
    in_force = state.in_force[controlled]
    total = float(in_force.sum() / share[controlled].sum()) if len(in_force) and np.isfinite(in_force).all() else None
    backlog = None if elsewhere is None else elsewhere.backlog_bytes
    after, rate = step_tracker(table, tracker, state.measured, backlog, None if first else sent, total)
    if rate is None:
        return counted(state, "held_steps"), state.desired
    state, rates = _bounded(plan, state._replace(tracker=after, measured=None), rate * share)
    return state, rates


def _decide(plan: AgentPlan, state: AgentState, growth: float, decider: RateDecider) -> tuple[AgentState, np.ndarray]:
    """MPC: from the second reading on, by what came into the queue; without a reading the rate is held."""
    seen = np.array([state.rate[0], state.backlog[0], state.queued[0]]) / growth
    if not np.isfinite(seen).all() or state.lost[0]:
        return counted(state, "held_steps"), state.desired
    rate, backlog, queued = seen.tolist()
    return _bounded(plan, state, np.array([growth * decider.decide(state.step, Measured(rate, backlog, queued, 0.0))]))


# --- what goes out ---------------------------------------------------------------------------------------------------


def _bounded(plan: AgentPlan, state: AgentState, u: np.ndarray) -> tuple[AgentState, np.ndarray]:
    """Rates within limits; the fallback replaces values that are not numbers."""
    bad, out = ~np.isfinite(u), (u < plan.low) | (u > plan.high)
    state = counted(state, "rates_not_finite", int((bad & plan.paced).sum()))
    state = counted(state, "rates_clipped", int((out & plan.paced & ~bad).sum()))
    held = np.clip(np.where(bad, plan.fallback, u), plan.low, plan.high)
    return state, np.where(plan.paced, held, plan.high)


def _changes(plan: AgentPlan, state: AgentState, rates: np.ndarray) -> tuple[AgentState, tuple[tuple[int, float], ...]]:
    """Rates that differ enough from those in force: each change refills a token bucket."""
    differs = ~(np.abs(rates - state.in_force) <= plan.config.dead_band * np.abs(state.in_force))
    changes = tuple((link, float(rates[link])) for link in np.flatnonzero(differs).tolist() if not state.lost[link])
    kept = len(rates) - len(changes) - sum(state.lost)
    return counted(state._replace(desired=rates), "rates_in_dead_band", max(kept, 0)), changes


def _told(
    plan: AgentPlan, state: AgentState, now_us: int, rates: np.ndarray
) -> tuple[AgentState, tuple[tuple[int, bytes], ...]]:
    """Message to each peer: the state of the links here, or commands for the peer's links."""
    datagrams = []
    for peer, neighbour in enumerate(state.neighbours):
        kind, entries = _entries(plan, state, peer, rates)
        echo = Echo()
        if neighbour.window.answer and neighbour.echo.session == neighbour.window.answer:
            echo = neighbour.echo._replace(held_us=now_us - neighbour.heard_us)
        sequence = neighbour.sequence + 1
        message = Message(kind, state.session, sequence, state.step, now_us, echo, entries)
        datagrams.append((peer, pack(message, plan.routes[peer].back(), plan.key)))
        state = known(state, peer, neighbour._replace(sequence=sequence))
    return counted(state, "messages_sent", len(datagrams)), tuple(datagrams)


def _entries(plan: AgentPlan, state: AgentState, peer: int, rates: np.ndarray) -> tuple[Kind, tuple[Entry, ...]]:
    if plan.config.role == "controller":
        return Kind.COMMAND, tuple((link, (float(rates[link]), 0.0, 0.0, 0.0)) for link in plan.told[peer])
    if plan.law is None or state.memory is None:
        return Kind.STATE, ()
    N, slot = len(plan.law.nominal), state.step & plan.law.mask
    entries: list[Entry] = []
    for link, number in enumerate(plan.numbers):
        if not state.lost[link]:
            a, b, c, d = state.memory.links.measured[number::N, slot].tolist()
            entries.append((number, (a, b, c, d)))
    return Kind.STATE, tuple(entries)


def _event(name: str, plan: AgentPlan, peer: int) -> Event:
    return Event(name, (("peer", plan.config.peers[peer].name),))
