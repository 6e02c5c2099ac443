"""DualPI2 packet by packet with deques, after the pseudocode of RFC 9332, Appendix A: a plain second computation.

Where Linux's dualpi2 differs it is followed: a step instead of a ramp, which a packet's arrival decides on; round robin
by a credit; nothing of the PI law while less than two packets are left. A packet that leaves a queue takes one number.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

NOT_ECT, ECT0, ECT1 = range(3)


class Waiting(NamedTuple):
    came: int
    flow: int
    size: int
    stepped: bool


class DualQueue:
    """Times in ns, sizes in bytes."""

    def __init__(self, codepoints: Sequence[int], limit: int, full: int, draw: Callable[[], float]) -> None:
        self.codepoints, self.limit, self.full, self.draw = codepoints, limit, full, draw
        self.lq: deque[Waiting] = deque()
        self.cq: deque[Waiting] = deque()
        self.k, self.target, self.alpha, self.beta = 2.0, 0.015, 0.16, 3.2
        self.t_update, self.step, self.min_packets, self.classic_percent = 16_000_000, 1_000_000, 1, 10
        self.p_base, self.prevq, self.next_update = 0.0, 0.0, 16_000_000
        self.credit = 0
        self.fates: list[tuple[int, int, str]] = []
        """When, of which flow, and what: "full", "drop", "mark" or "send"."""
        self.regimes: set[str] = set()

    def update_until(self, now: int, included: bool) -> None:
        while self.next_update < now or (included and self.next_update == now):
            ages = [(self.next_update - q[0].came) / 1e9 for q in (self.lq, self.cq) if q]
            curq = max(ages, default=0.0)
            p = self.p_base + self.alpha * (curq - self.target) + self.beta * (curq - self.prevq)
            self.p_base = 0.0 if p < 0.0 else 1.0 if p > 1.0 else p
            self.prevq = curq
            self.next_update += self.t_update

    def bytes_of(self, *queues: deque[Waiting]) -> int:
        return sum(packet.size for q in queues for packet in q)

    def add(self, now: int, flow: int, size: int) -> None:
        self.update_until(now, True)
        if self.bytes_of(self.lq, self.cq) + size > self.limit:
            self.fates.append((now, flow, "full"))
            return
        scalable = self.codepoints[flow] == ECT1
        stepped = scalable and len(self.lq) >= self.min_packets
        (self.lq if scalable else self.cq).append(Waiting(now, flow, size, stepped))

    def schedule(self) -> deque[Waiting] | None:
        if not self.lq and not self.cq:
            self.credit = self.full * (2 * self.classic_percent - 100)
            return None
        if self.lq and (not self.cq or self.credit <= 0):
            return self.lq
        return self.cq

    def take(self, now: int, _: int) -> tuple[int, int] | None:
        self.update_until(now, False)
        while (queue := self.schedule()) is not None:
            packet = queue.popleft()
            fate = self.judge(now, packet, queue is self.lq)
            self.fates.append((now, packet.flow, fate))
            if fate == "drop":
                continue
            if self.lq and queue is self.cq:
                self.credit -= (100 - self.classic_percent) * packet.size
            if self.cq and queue is self.lq:
                self.credit += self.classic_percent * packet.size
            return packet.flow, packet.size
        return None

    def judge(self, now: int, packet: Waiting, low: bool) -> str:
        u = self.draw()
        p_cl, p_c = self.k * self.p_base, self.p_base**2
        acts = self.bytes_of(self.lq, self.cq) >= 2 * self.full
        native = packet.stepped and now - packet.came > self.step
        if low:
            if acts and p_cl >= 1.0:
                self.regimes.add("overload")
                return "drop" if u < p_c else "mark"
            if native:
                self.regimes.add("step")
            p_l = 1.0 if native else p_cl if acts else 0.0
            if not native and u < p_l:
                self.regimes.add("coupled")
            return "mark" if u < p_l else "send"
        if not acts or u >= p_c:
            return "send"
        return "mark" if self.codepoints[packet.flow] == ECT0 and p_cl < 1.0 else "drop"
