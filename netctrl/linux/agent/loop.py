"""Control loop: waits for deadlines and datagrams, reads counters, and carries out the `controller`'s decisions.

Deadlines are absolute, by a monotonic clock: a late step doesn't delay later ones, and jumps of the wall clock don't
matter. The loop accesses the machine through two protocols, so it runs in tests as on a router.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from netctrl.core.errors import NetctrlError
from netctrl.linux.agent.controller import applied, receive, step, trouble
from netctrl.linux.agent.message import new_session
from netctrl.linux.agent.metrics import AgentMetrics
from netctrl.linux.agent.state import MICROSECONDS, AgentPlan, AgentState, Decision, Reading, Trouble, start
from netctrl.linux.log import AgentLog

_MAX_DATAGRAMS = 64
"""Datagrams of a peer per interval: bounds the cost of a flood; honest peers send far fewer."""
_DROPS_S = 10.0
"""Time between log lines about dropped datagrams."""
_LONGEST_WAIT_S = 0.25
"""Time between checks whether to stop."""


class LinkTrouble(Exception):
    """A rate that can't be set any more, and the reason."""

    def __init__(self, found: Trouble) -> None:
        self.found = found
        super().__init__(found.why)


class ReadingFailed(NetctrlError):
    """The kernel did not deliver the counters this time."""


class Links(Protocol):
    """Queues with rates to set."""

    def read(self) -> tuple[Sequence[Reading | Trouble], Reading | None]:
        """Readings of all links, in the config's order, and of the bottleneck that a tracking law measures itself.

        Raises ReadingFailed where there are none this time.
        """
        ...

    def set_rate(self, link: int, rate: float) -> float:
        """Set a link's rate [bit/s]; the kernel's value, NaN if unknown. Raises LinkTrouble where it can't be set."""
        ...

    def restore(self) -> None:
        """Restore the original rates of all links that are still ours."""
        ...


class Surroundings(Protocol):
    """Time and peers."""

    def now(self) -> float:
        """Time of a monotonic clock [s]."""
        ...

    def wait(self, until: float, most: int) -> Sequence[tuple[int, bytes]]:
        """Wait until `until` [s] or the first datagrams; datagrams by peer, limited in number for each."""
        ...

    def sleep(self, until: float) -> None:
        """Sleep until a time, whatever arrives."""
        ...

    def send(self, peer: int, datagram: bytes) -> bool:
        """Send a datagram; whether it left."""
        ...

    def publish(self, text: Callable[[], str]) -> None:
        """Set the function that answers requests for metrics."""
        ...


class Outcome(NamedTuple):
    """Result of a run."""

    state: AgentState
    metrics: AgentMetrics


def run_agent(
    plan: AgentPlan,
    links: Links,
    surroundings: Surroundings,
    log: AgentLog,
    *,
    stop: Callable[[], bool] = lambda: False,
    duration_s: float | None = None,
    session: int | None = None,
) -> Outcome:
    """Control until `stop()`, for a duration, or until no link is left; then restore the original rates.

    Parameters
    ----------
    plan : AgentPlan
    links : Links
    surroundings : Surroundings
    log : AgentLog
    stop : callable
        Called at least four times a second.
    duration_s : float, optional
        [s]
    session : int, optional
        Drawn by default.
    """
    loop = _Loop(plan, links, surroundings, log, new_session() if session is None else session)
    why = "stopped"
    log.event("agent-started", agent=plan.config.name, links=len(plan.numbers), interval_s=plan.config.interval_s)
    try:
        while not stop():
            if duration_s is not None and loop.elapsed() >= duration_s:
                why = "time is up"
                break
            if plan.numbers and all(loop.state.lost):
                why = "no link is left"
                break
            loop.turn(None if duration_s is None else loop.origin + duration_s)
    except BaseException as error:
        why = type(error).__name__
        raise
    finally:
        links.restore()
        log.event("agent-ended", agent=plan.config.name, why=why, steps=loop.state.counts.get("steps", 0))
    return Outcome(loop.state, loop.metrics)


class _Loop:
    """Data of a run besides the agent's state."""

    def __init__(self, plan: AgentPlan, links: Links, surroundings: Surroundings, log: AgentLog, session: int) -> None:
        self.plan, self.links, self.surroundings, self.log = plan, links, surroundings, log
        self.state = start(plan, session)
        self.metrics = AgentMetrics()
        self.number = 0
        self.unread = 0
        self.origin = surroundings.now()
        self._told_drops: dict[str, int] = {}
        self._drops_at = 0.0
        surroundings.publish(lambda: self.metrics.text(plan, self.state))

    def elapsed(self) -> float:
        """Monotonic time since the start [s]."""
        return self.surroundings.now() - self.origin

    def _us(self) -> int:
        return int(self.elapsed() * MICROSECONDS)

    def turn(self, end: float | None) -> None:
        """Run until the next deadline, the end, or the next check whether to stop, and do what is due."""
        tau = self.plan.config.interval_s
        deadline = self.origin + self.number * tau
        until = min(deadline, self.surroundings.now() + _LONGEST_WAIT_S, deadline if end is None else end)
        flooded = self._listen(until)
        now = self.surroundings.now()
        if now < deadline:
            return
        number = max(self.number, int((now - self.origin) / tau))
        self.metrics.lateness.add(max(now - (self.origin + self.number * tau), 0.0))
        if not flooded:
            self._hear(self.surroundings.wait(now, _MAX_DATAGRAMS))  # datagrams that arrived during the sleep
        try:
            readings, elsewhere = self.links.read()
            self.unread = 0
        except ReadingFailed as error:
            self.unread += 1
            self.metrics.unread += 1
            self.log.event("counters-not-read", why=str(error))
            if self.unread > self.plan.config.silence:
                raise
            self.number = number + 1
            return
        self.state, decision = step(self.plan, self.state, number, self._us(), readings, elsewhere=elsewhere)
        self._do(decision)
        self.number = number + 1
        self.metrics.duration.add(self.surroundings.now() - now)
        if now - self._drops_at >= _DROPS_S:
            drops = {name: count for name, count in self.state.counts.items() if name.startswith("dropped_")}
            fresh = {name: count - self._told_drops.get(name, 0) for name, count in drops.items()}
            if any(fresh.values()):
                self.log.event("messages-dropped", **{name: count for name, count in fresh.items() if count})
                self._told_drops, self._drops_at = drops, now

    def _listen(self, until: float) -> bool:
        """Receive datagrams within a budget; the kernel drops the rest of a flood."""
        budget = _MAX_DATAGRAMS * max(1, len(self.plan.config.peers))
        while budget > 0 and self.surroundings.now() < until:
            came = self.surroundings.wait(until, _MAX_DATAGRAMS)
            budget -= len(came)
            self._hear(came)
        if budget > 0:
            return False
        self.metrics.flooded += 1
        self.surroundings.sleep(until)
        return True

    def _hear(self, came: Sequence[tuple[int, bytes]]) -> None:
        now_us = self._us()
        for peer, datagram in came:
            self.state, decision = receive(self.plan, self.state, peer, datagram, now_us)
            self._do(decision)

    def _do(self, decision: Decision) -> None:
        for link, rate in decision.rates:
            try:
                self.state = applied(self.state, link, self.links.set_rate(link, rate))
            except LinkTrouble as error:
                self.state, more = trouble(self.plan, self.state, link, error.found)
                self._say(more)
        for peer, datagram in decision.datagrams:
            if not self.surroundings.send(peer, datagram):
                self.metrics.unsent += 1
        self._say(decision)

    def _say(self, decision: Decision) -> None:
        for name, fields in decision.events:
            self.log.event(name, **dict(fields))
