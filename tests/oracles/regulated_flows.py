"""Regulated flows through FIFO links in tandem, an event at a time: each step looks through all that may come next.

In whole nanoseconds. Events at one time come in this order: changes of the scenario, packets from links' wires by link,
flows' packets by flow, and at last what a control commands at that time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf, log


@dataclass
class Flow:
    """A regulator: a burst of packets `within` apart, then a pause."""

    first: int
    """Hop at which it enters."""
    last: int
    size: int
    rate: float
    burst: int
    within: int
    variation: float
    start: int
    """Of the pause before its first packet."""
    begins: int
    """Its first packet, unless its rate changes."""
    draws: Iterator[float]
    fixed: float | None = None
    """Rate of a change that holds."""
    commanded: float = 0.0
    due: float = 0
    left: int = 0
    pausing: bool = True
    rest: float = 0.0
    """Of the pause over its mean, at rate 0."""
    sent: int = 0
    lost: int = 0
    delays: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.due, self.left, self.commanded = self.begins, self.burst, self.rate

    def mean(self, rate: float, burst: int) -> float:
        """Mean pause at a rate."""
        return inf if rate == 0.0 else max(round(8e9 * self.size * burst / rate - (burst - 1.0) * self.within), 1)

    def set(self, now: int, rate: float, burst: int) -> None:
        """A new rate stretches what is left of a pause."""
        before, after = self.mean(self.rate, self.burst), self.mean(rate, burst)
        if (before, self.burst) == (after, burst):
            return
        self.rate, self.burst = rate, burst
        if not self.pausing:
            return
        self.left, since = burst, max(now, self.start)
        if self.due > since:
            self.pause(since, self.rest if before == inf else (self.due - since) / before)

    def pause(self, now: int, share: float) -> None:
        """So much of the mean pause from now on."""
        mean = self.mean(self.rate, self.burst)
        self.rest, self.due = share, inf if mean == inf else now + max(round(share * mean), 1)

    def send(self, now: int) -> None:
        """The packet that is due; when the next one is."""
        self.sent += 1
        self.left -= 1
        self.pausing = self.left == 0
        if not self.pausing:
            self.due = now + self.within
            return
        self.left = self.burst
        v = self.variation
        self.pause(now, 1.0 - v + v * -log(1.0 - next(self.draws)) if v > 0.0 else 1.0)


@dataclass
class Hop:
    """A FIFO link whose buffer counts packets that wait, not the one that is being sent."""

    rate: float
    delay: int
    buffer: int
    waiting: deque = field(default_factory=deque)
    """Sizes and starts of packets that don't start before now."""
    free: int = 0
    wire: deque = field(default_factory=deque)
    """Arrival at the other end, flow, and when the packet was sent."""

    def take(self, now: int, size: int, flow: int, sent: int) -> bool:
        """Whether a packet is let in."""
        while self.waiting and self.waiting[0][0] <= now:
            self.waiting.popleft()
        if sum(each[1] for each in self.waiting) + size > self.buffer:
            return False
        start = max(now, self.free)
        self.waiting.append((start, size))
        if start == now:
            self.waiting.pop()
        self.free = start + round(8e9 * size / self.rate)
        self.wire.append((self.free + self.delay, flow, sent))
        return True


@dataclass
class Tandem:
    """Hops in a row, and what flows through them."""

    hops: list[Hop]
    flows: list[Flow]
    changes: list[tuple[int, int, float | None]]
    """Time, flow and rate of changes, in order of time; None: what is commanded."""

    def command(self, now: int, rates: dict[int, float], burst: int) -> None:
        """A control sets rates of flows."""
        for f, rate in rates.items():
            flow = self.flows[f]
            flow.commanded = rate
            flow.set(now, rate if flow.fixed is None else flow.fixed, burst)

    def advance(self, end: int) -> None:
        """All that happens up to a time, this included."""
        while True:
            steps = [(self.changes[0][0], 0, 0)] if self.changes else []
            steps += [(hop.wire[0][0], 1, h) for h, hop in enumerate(self.hops) if hop.wire]
            steps += [(flow.due, 2, f) for f, flow in enumerate(self.flows)]
            now, kind, place = min(steps)
            if now > end:
                return
            if kind == 0:
                _, f, rate = self.changes.pop(0)
                flow = self.flows[f]
                flow.fixed = rate
                flow.set(now, flow.commanded if rate is None else rate, flow.burst)
            elif kind == 1:
                _, f, sent = self.hops[place].wire.popleft()
                if place == self.flows[f].last:
                    self.flows[f].delays.append(now - sent)
                else:
                    self._enter(place + 1, f, now, sent)
            else:
                self.flows[place].send(now)
                self._enter(self.flows[place].first, place, now, now)

    def _enter(self, hop: int, f: int, now: int, sent: int) -> None:
        if not self.hops[hop].take(now, self.flows[f].size, f, sent):
            self.flows[f].lost += 1
