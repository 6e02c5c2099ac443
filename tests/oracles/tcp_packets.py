"""TCP flows through one droptail link, as plainly as can be: sets instead of rings, sums instead of counters.

Sources: RFC 5681, 6298, 6675; receivers acknowledge each segment, with the run that it ends.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from math import inf
from types import SimpleNamespace
from typing import Any

from netctrl.laws.record import fields_of
from netctrl.laws.tcp.sender import Acked

HEADER = 40
NS = 1e9


@dataclass
class Flow:
    """A sender and its receiver; times in ns, sequence numbers in segments."""

    law: Any
    line: int
    state: Any = None
    connected: bool = False
    una: int = 0
    next: int = 0
    sacked: set = field(default_factory=set)
    resent: set = field(default_factory=set)
    ever: set = field(default_factory=set)
    given_up: set = field(default_factory=set)
    """At a timeout: all that isn't acknowledged."""
    sent_at: dict = field(default_factory=dict)
    recover: int = 0
    mode: str = "normal"
    srtt: int = 0
    rttvar: int = 0
    rto: int = 1_000_000_000
    backoff: int = 0
    deadline: int = 0
    came: set = field(default_factory=set)
    expected: int = 0
    sent: int = 0
    again: int = 0
    cuts: int = 0
    timeouts: int = 0

    def lost(self) -> list[int]:
        """Segments that are to be sent again."""
        ranked = sorted(self.sacked, reverse=True)
        third = self.third if len(ranked) < 3 else max(self.third, ranked[2])
        self.third = third
        return [
            s
            for s in range(self.una, self.next)
            if s not in self.sacked and s not in self.resent and (s < third or s in self.given_up)
        ]

    third: int = -1

    def pipe(self) -> int:
        """Segments that are under way."""
        lost = set(self.lost())
        return sum(1 for s in range(self.una, self.next) if s not in self.sacked and s not in lost)


def run(law: Any, lines: list[int], rate: int, delay: int, buffer: int, size: int, first: float, end: int) -> Any:
    """`lines`: what acknowledgements of each flow take [ns]; flows start at k ms. Returns flows, and the link."""
    flows = [Flow(law, line) for line in lines]
    events: list[tuple] = []
    serial = 0
    waiting: list[tuple[int, int]] = []
    link = SimpleNamespace(free=0, dropped=0, hops=0)
    last = [0] * len(flows)

    def plan(time, kind, place, what=None):
        nonlocal serial
        serial += 1
        heapq.heappush(events, (time, kind, place, serial, what))

    def send(now, f, what, bytes_):
        waiting[:] = [(start, b) for start, b in waiting if start > now]
        if sum(b for _, b in waiting) + bytes_ > buffer:
            link.dropped += 1
            return
        start = max(now, link.free)
        link.free = start + (bytes_ * 8_000_000_000 + rate // 2) // rate
        if start > now:
            waiting.append((start, bytes_))
        link.hops += 1
        plan(link.free + delay, 0, 0, (f, what))

    def arm(now, flow, f):
        flow.deadline = now + min(flow.rto << min(flow.backoff, 6), 60_000_000_000)
        plan(flow.deadline, 4, f)

    def measure(flow, rtt):
        if flow.srtt == 0:
            flow.srtt, flow.rttvar = rtt, rtt // 2
        else:
            flow.rttvar += (abs(flow.srtt - rtt) - flow.rttvar) // 4
            flow.srtt += (rtt - flow.srtt) // 8
        flow.rto = max(flow.srtt + max(4 * flow.rttvar, 1_000_000), 1_000_000_000)
        state = flow.state
        state.rtt, state.min_rtt = rtt / NS, min(state.min_rtt, rtt / NS)
        state.max_rtt = max(state.max_rtt, rtt / NS)

    def cut(now, flow):
        flow.law.cut(flow.state)
        flow.state.threshold = flow.state.window
        flow.state.cut_s = now / NS
        flow.recover = flow.next
        flow.cuts += 1

    def segment(now, flow, f, s):
        flow.sent_at[s] = now
        flow.sent += 1
        if flow.deadline == 0:
            arm(now, flow, f)
        send(now, f, ("data", s, now), size)

    def resend(now, flow, f):
        s = flow.lost()[0]
        flow.resent.add(s)
        flow.ever.add(s)
        flow.again += 1
        segment(now, flow, f, s)

    def offer(now, flow, f):
        while flow.connected and flow.pipe() + 1.0 <= flow.state.window:
            if flow.lost():
                resend(now, flow, f)
            else:
                flow.next += 1
                segment(now, flow, f, flow.next - 1)

    def acknowledged(now, flow, f, seq, upto, run):
        una, in_flight = flow.una, flow.next - flow.una
        if seq >= una and seq not in flow.ever and seq not in flow.sacked:
            measure(flow, now - flow.sent_at[seq])
        newly = upto - una
        if newly > 0:
            flow.una, flow.backoff = upto, 0
            if flow.una == flow.next:
                flow.deadline = 0
            else:
                arm(now, flow, f)
        if run > 0 and seq >= flow.una:
            flow.sacked |= set(range(max(seq - run + 1, flow.una), seq + 1))
        before = flow.mode
        if before != "normal" and flow.una >= flow.recover:
            flow.mode = "normal"
        window = flow.state.window
        if flow.lost() and flow.mode not in ("recovery", "timeout"):
            cut(now, flow)
            flow.mode = "recovery"
            resend(now, flow, f)
        elif newly > 0 and before != "recovery":
            slow = window < flow.state.threshold
            if before == "timeout" or (2.0 * in_flight >= window if slow else in_flight + 1.0 > window):
                most = newly if not slow else 1 if before == "timeout" else 2
                acked = Acked(float(min(newly, most)), now / NS - flow.state.cut_s, flow.state.rtt, True)
                flow.law.grow(flow.state, acked)
        flow.sacked = {s for s in flow.sacked if s >= flow.una}
        offer(now, flow, f)

    def timed_out(now, flow, f):
        if flow.deadline != now:
            return
        flow.deadline = 0
        flow.timeouts += 1
        flow.backoff += 1
        if not flow.connected:
            arm(now, flow, f)
            send(now, f, ("syn", 0, now), HEADER)
            return
        if flow.mode == "normal":
            cut(now, flow)
        elif flow.mode != "timeout":
            flow.state.threshold = max(flow.state.window, 2.0)
        flow.mode, flow.recover = "timeout", flow.next
        flow.state.window, flow.state.cut_s = 1.0, now / NS
        flow.resent, flow.given_up = set(), set(range(flow.una, flow.next))
        offer(now, flow, f)

    for f, flow in enumerate(flows):
        flow.state = SimpleNamespace(**dict.fromkeys(fields_of(law.state), 0.0))
        flow.state.window, flow.state.threshold, flow.state.min_rtt = first, inf, inf
        plan(f * 1_000_000, -1, f)
    while events and events[0][0] <= end:
        now, kind, place, _, what = heapq.heappop(events)
        if kind == -1:
            arm(now, flows[place], place)
            send(now, place, ("syn", 0, now), HEADER)
        elif kind == 4:
            timed_out(now, flows[place], place)
        elif place == 0:  # at the receiver
            f, (name, seq, back) = what
            flow, run = flows[f], 0
            if name == "data":
                flow.came.add(seq)
                while flow.expected in flow.came:
                    flow.expected += 1
                if seq >= flow.expected:
                    run = 1
                    while seq - run in flow.came:
                        run += 1
            arrives = max(now + flow.line, last[f])
            last[f] = arrives
            plan(arrives, 0, 1 + f, (name, seq, back, flow.expected, run))
        else:
            flow, (name, seq, back, upto, run) = flows[place - 1], what
            if name == "data":
                acknowledged(now, flow, place - 1, seq, upto, run)
            elif not flow.connected:
                flow.connected, flow.deadline, flow.backoff = True, 0, 0
                measure(flow, now - back)
                offer(now, flow, place - 1)
    return flows, link
