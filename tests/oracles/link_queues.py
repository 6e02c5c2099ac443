"""A link of several queues, packet by packet with deques: a plain second computation for the packet engine."""

from __future__ import annotations

from collections import deque
from typing import Any

from netctrl.laws.aqm.codel import CodelDrops, CodelParameters, codel_head

Packets = list[tuple[int, int, int]]
"""Time [ns], flow, size [byte]."""


def delivered(came: list[tuple[int, int]], times_ms: list[int], slot: int) -> list[int]:
    """When packets (time [ns], bytes with headers) leave a link of opportunities, one opportunity after the other."""
    waiting: deque[list[int]] = deque()
    left, turn, place, ahead = [], 0, 0, deque(came)
    while ahead or waiting:
        now = (turn * times_ms[-1] + times_ms[place]) * 1_000_000
        place += 1
        if place == len(times_ms):
            place, turn = 0, turn + 1
        while ahead and ahead[0][0] < now:
            waiting.append([ahead.popleft()[1]])
        room = slot
        while room and waiting:
            used = min(room, waiting[0][0])
            room -= used
            waiting[0][0] -= used
            if waiting[0][0] == 0:
                waiting.popleft()
                left.append(now)
    return left


class Queues:
    """Queues of one discipline: "prio", "drr", "fq_codel" or "cake", with a byte limit on all of them."""

    def __init__(self, kind: str, quanta: list[int], limit: int, codel: CodelParameters | None = None) -> None:
        self.kind, self.quanta, self.limit, self.codel = kind, quanta, limit, codel
        self.waiting: list[deque[tuple[int, int]]] = [deque() for _ in quanta]
        self.deficit = list(quanta)
        self.new: list[int] = []
        self.old: list[int] = []
        self.state: list[Any] = []
        for _ in quanta:
            state = CodelDrops()
            for name in ("first_above", "next_drop", "count", "last_count", "dropping"):
                setattr(state, name, 0.0)
            self.state.append(state)
        self.lost = [0] * len(quanta)
        self.waited = 0

    def bytes_of(self, q: int) -> int:
        return sum(size for _, size in self.waiting[q])

    def add(self, time: int, q: int, size: int) -> None:
        self.waiting[q].append((time, size))
        if self.kind != "prio" and q not in self.new + self.old:
            self.deficit[q] = self.quanta[q]
            (self.new if self.codel else self.old).append(q)
        while sum(map(self.bytes_of, range(len(self.waiting)))) > self.limit:
            if self.kind == "prio":
                victim = max(v for v in range(len(self.waiting)) if self.waiting[v])
                self.waiting[victim].pop() if victim == q else self.waiting[victim].popleft()
            else:
                victim = max([q, *self.new, *self.old], key=self.bytes_of)  # the first of equals
                half, dropped = self.bytes_of(victim) / 2, [self.waiting[victim].popleft()[1]]
                while self.kind == "fq_codel" and sum(dropped) < half and len(dropped) < 64:  # Linux's batch
                    dropped.append(self.waiting[victim].popleft()[1])
                self.state[victim].count += len(dropped) if self.kind == "fq_codel" else 0
                self.lost[victim] += len(dropped) - 1
            self.lost[victim] += 1

    def out(self, now: int, q: int, time: int, size: int) -> tuple[int, int]:
        self.waited += now - time
        return q, size

    def take(self, now: int, full: int) -> tuple[int, int] | None:
        """The next packet: its queue and size."""
        if self.kind == "prio":
            q = next((q for q, waiting in enumerate(self.waiting) if waiting), None)
            return None if q is None else self.out(now, q, *self.waiting[q].popleft())
        while self.new or self.old:
            turn = self.new or self.old
            q = turn[0]
            if self.deficit[q] <= 0:
                self.deficit[q] += self.quanta[q]
                self.old.append(turn.pop(0))
                continue
            while self.waiting[q]:
                time, size = self.waiting[q].popleft()
                every = range(len(self.waiting)) if self.kind == "fq_codel" else [q]  # Linux's looks at all
                alone = sum(map(self.bytes_of, every)) <= (0 if self.kind == "cake" else full)
                if self.codel and codel_head(self.state[q], now / 1e9, (now - time) / 1e9, alone, self.codel):
                    self.lost[q] += 1
                    continue
                self.deficit[q] -= size
                return self.out(now, q, time, size)
            turn.pop(0)
            if turn is self.new and self.old:
                self.old.append(q)
        return None


class FairQueues:
    """Self-clocked fair queues: a tag for each packet as it comes, and a byte limit on each queue.

    Source: Golestani, INFOCOM 1994, eq. (3).
    """

    def __init__(self, weights: list[float], limit: int) -> None:
        self.weights, self.limit = weights, limit
        self.waiting: list[tuple[float, int, int, int]] = []
        self.last, self.serving = [0.0] * len(weights), 0.0
        self.lost = [0] * len(weights)
        self.waited = 0
        self.delays: list[list[int]] = [[] for _ in weights]

    def add(self, time: int, q: int, size: int) -> None:
        if size + sum(each[3] for each in self.waiting if each[1] == q) > self.limit:
            self.lost[q] += 1
            return
        self.last[q] = max(self.last[q], self.serving) + size / self.weights[q]
        self.waiting.append((self.last[q], q, time, size))

    def take(self, now: int, full: int) -> tuple[int, int] | None:
        if not self.waiting:
            self.last, self.serving = [0.0] * len(self.weights), 0.0
            return None
        first = min(self.waiting)
        self.waiting.remove(first)
        self.serving, q, time, size = first
        self.waited += now - time
        self.delays[q].append(now - time)
        return q, size


def run(queues: Queues | FairQueues, came: Packets, wire_ns: int, full: int, end: int) -> list[tuple[int, int]]:
    """(time [ns], flow) of what has left by `end`, on a link that takes `wire_ns` for a packet."""
    left, free, ahead = [], 0, deque(came)
    while True:
        while ahead and ahead[0][0] < free:  # what comes when the wire is free comes after
            queues.add(*ahead.popleft())
        chosen = queues.take(free, full)
        if chosen is None:
            if not ahead:
                return left
            free = ahead[0][0]
            queues.add(*ahead.popleft())
            continue
        free += wire_ns
        if free > end:
            return left
        left.append((free, chosen[0]))
