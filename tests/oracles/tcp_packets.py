"""TCP flows through one droptail link, as plainly as can be: sets instead of rings, sums instead of counters.

Sources: RFC 5681, 6298, 8985 (RACK-TLP), 6937 (PRR); receivers acknowledge each segment, with the run that it ends, and
tell whether it was sent again and whether it came twice. Links keep the order.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from math import inf
from types import SimpleNamespace
from typing import Any

import numpy as np

from netctrl.laws.record import as_record, width
from netctrl.laws.tcp.sender import SLOW_STARTS, Acked
from netctrl.laws.tcp.slow_start import SlowStart, slow_start

HEADER = 40
NS = 1e9
NS_1, LEAST, SOON = 1_000_000_000, 200_000_000, 2_000_000


@dataclass
class Flow:
    """A sender and its receiver; times in ns, sequence numbers in segments."""

    law: Any
    line: int
    state: Any = None
    start: Any = None
    connected: bool = False
    una: int = 0
    next: int = 0
    sacked: set = field(default_factory=set)
    missing: set = field(default_factory=set)
    """To be sent again."""
    ever: set = field(default_factory=set)
    waited: set = field(default_factory=set)
    """Sent again, and nothing is known since."""
    sent_at: dict = field(default_factory=dict)
    newest: tuple = (0, 0)
    """Of the received segment that was sent last: when, and which."""
    took: int = 0
    probe: int = 0
    repeated: bool = False
    """The probe was nothing new."""
    wrong: Any = None
    """How to undo the last cut."""
    prior: int = 0
    delivered: int = 0
    out: int = 0
    room: int = 0
    steps: int = 1
    heard: int = 0
    persists: int = 0
    silence: int = 0
    """When the timer ends: a timeout's `deadline`, or before it."""
    recover: int = 0
    mode: str = "normal"
    srtt: int = 0
    rttvar: int = 0
    rto: int = NS_1
    backoff: int = 0
    deadline: int = 0
    came: set = field(default_factory=set)
    expected: int = 0
    sent: int = 0
    again: int = 0
    cuts: int = 0
    timeouts: int = 0

    def pipe(self) -> int:
        """Segments that are under way."""
        return self.next - self.una - len(self.sacked) - len(self.missing)

    def find_lost(self, now: int, timeout: bool = False) -> int:
        """What was sent before the newest received segment, and as long ago as that took; in what time all else is."""
        few = self.mode not in ("recovery", "timeout") and len(self.sacked) < 3
        leeway = min(int(0.25e9 * self.state.min_rtt) * self.steps, self.srtt) if few and not timeout else 0
        head, wait = self.una in self.waited and self.sent_at[self.una], 0
        for s in range(self.una, self.next):
            time = self.sent_at[s]
            if s in self.sacked or s in self.missing or (not timeout and (time, s) > self.newest):
                continue
            forced = timeout and (s == self.una or (head and s in self.waited and time < head))
            if forced or time + self.took + leeway <= now:
                self.missing.add(s)
                self.waited.discard(s)
            else:
                wait = leeway
        return wait

    def doubtful(self) -> bool:
        """Whether a segment may be missing."""
        older = self.una < self.next and self.sent_at[self.una] < self.newest[0]
        return older or bool(self.waited) or self.pipe() != self.next - self.una

    def undone(self, late: bool) -> bool:
        """Whether the last cut is undone."""
        if self.wrong is None or not self.wrong.since or not (late or self.wrong.left == 0):
            return False
        self.state.window = max(self.state.window, self.wrong.window)
        self.state.threshold = max(self.state.threshold, self.wrong.threshold)
        self.waited |= self.missing & self.ever
        self.missing, self.wrong, self.mode, self.backoff = set(), None, "normal", 0
        return True


def run(
    law: Any,
    lines: list[int],
    rate: int,
    delay: int,
    buffer: int,
    size: int,
    first: float,
    end: int,
    slow_start_by: str,
) -> Any:
    """`lines`: what acknowledgements of each flow take [ns]; flows start at k ms. Returns flows, and the link."""
    flows, number = [Flow(law, line) for line in lines], SLOW_STARTS.index(slow_start_by)
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

    def restart(now, flow):
        flow.deadline = now + min(flow.rto << min(flow.backoff, 6), 60 * NS_1)

    def probes(flow):
        return flow.mode == "normal" and not flow.probe and flow.srtt > 0 and not flow.doubtful()

    def arm(now, flow, f, wait=0, kept=False):
        before, flow.silence = flow.silence, flow.deadline
        if flow.deadline and wait:
            flow.silence = min(flow.deadline, now + wait + SOON)
        elif flow.deadline and kept and before > now:
            flow.silence = min(flow.deadline, before)
        elif flow.deadline and probes(flow):
            more = LEAST if flow.next - flow.una == 1 else SOON
            flow.silence = min(flow.deadline, now + 2 * flow.srtt + more)
        if flow.silence:
            plan(flow.silence, 4, f)

    def measure(flow, rtt):
        if flow.srtt == 0:
            flow.srtt, flow.rttvar = rtt, rtt // 2
        else:
            flow.rttvar += (abs(flow.srtt - rtt) - flow.rttvar) // 4
            flow.srtt += (rtt - flow.srtt) // 8
        flow.rto = flow.srtt + max(4 * flow.rttvar, LEAST)
        state = flow.state
        state.rtt, state.min_rtt = rtt / NS, min(state.min_rtt, rtt / NS)
        state.max_rtt = max(state.max_rtt, rtt / NS)

    def cut(now, flow):
        flow.law.cut(flow.state)
        flow.state.threshold = flow.state.window
        flow.state.cut_s = now / NS
        flow.recover = flow.next
        flow.cuts += 1

    def segment(now, flow, f, s, again):
        flow.sent_at[s] = now
        flow.sent += 1
        flow.out += 1
        if again:
            flow.again += 1
            flow.ever.add(s)
            flow.waited.add(s)
            if flow.wrong:
                flow.wrong.left += 1
                flow.wrong.since = flow.wrong.since or now
        if flow.deadline == 0 or (again and s == flow.una):
            restart(now, flow)
        send(now, f, ("data", s, now, again), size)

    def new(now, flow, f):
        flow.next += 1
        segment(now, flow, f, flow.next - 1, False)

    def offer(now, flow, f):
        while flow.connected:
            allowed = flow.room if flow.mode == "recovery" else flow.state.window
            if flow.pipe() + 1.0 > allowed:
                return
            if flow.missing:
                first = min(flow.missing)
                flow.missing.remove(first)
                segment(now, flow, f, first, True)
            else:
                new(now, flow, f)

    def begin(now, flow):
        """Losses are repaired from now on."""
        if flow.mode == "normal":
            remembered(flow)
            cut(now, flow)
        flow.recover = flow.next
        flow.mode, flow.delivered, flow.out, flow.probe = "recovery", 0, 0, 0

    def remembered(flow):
        flow.wrong = SimpleNamespace(window=flow.state.window, threshold=flow.state.threshold, since=0, left=0)
        flow.wrong.window = round(1024 * flow.state.window) / 1024
        flow.prior = int(flow.state.window)

    def reduce(flow, delivered, clean):
        """PRR, with the choice between its bounds of Linux."""
        flow.delivered += delivered
        threshold, pipe = int(flow.state.threshold), flow.pipe()
        if pipe > threshold:
            count = -(-threshold * flow.delivered // max(flow.prior, 1)) - flow.out
        else:
            count = min(threshold - pipe, max(flow.delivered - flow.out, delivered) + clean)
        flow.room = pipe + max(count, 0 if flow.out else 1)

    def acknowledged(now, flow, f, seq, upto, run, again, twice):
        una, in_flight, out, late = flow.una, flow.next - flow.una, flow.pipe() + len(flow.missing), False
        if seq >= una and seq not in flow.sacked:
            if seq in flow.ever and not again:
                late = True
            else:
                if (flow.sent_at[seq], seq) > flow.newest:
                    flow.newest, flow.took = (flow.sent_at[seq], seq), now - flow.sent_at[seq]
                if seq not in flow.ever:
                    measure(flow, now - flow.sent_at[seq])
                late = not again and bool(flow.wrong) and flow.sent_at[seq] < flow.wrong.since
        newly = upto - una
        if newly > 0:
            flow.una, flow.backoff = upto, 0
            if flow.una == flow.next:
                flow.deadline = 0
            else:
                restart(now, flow)
        if run > 0 and seq >= flow.una:
            flow.sacked |= set(range(max(seq - run + 1, flow.una), seq + 1))
        flow.sacked = {s for s in flow.sacked if s >= flow.una}
        for kept in (flow.missing, flow.waited):
            kept -= flow.sacked | {s for s in kept if s < flow.una}
        if twice and flow.wrong and flow.wrong.left:
            flow.wrong.left -= 1
        if twice and flow.una >= flow.heard:
            flow.heard, flow.steps, flow.persists = flow.next, min(flow.steps + 1, 255), 16
        delivered, before, already = out - flow.pipe() - len(flow.missing), flow.mode, len(flow.missing)
        if flow.probe and flow.una >= flow.probe:
            if flow.repeated and again and not twice and seq == flow.probe - 1:
                cut(now, flow)
                flow.wrong = None
            flow.probe = 0
        repairs, held = before in ("recovery", "timeout"), False
        if before != "normal" and flow.una >= flow.recover:
            if repairs and not flow.undone(late and newly > 0) and flow.persists:
                flow.persists -= 1
                flow.steps = flow.steps if flow.persists else 1
            flow.mode = "normal"
        elif repairs and late and newly > 0 and flow.wrong and flow.wrong.since:
            held = bool(flow.waited) or not flow.undone(True)
        elif twice:
            flow.undone(False)
        quiet, wait = held or now - flow.newest[0] != flow.took, 0
        kept = quiet and not held and newly <= 0 and flow.doubtful()
        if not quiet:
            wait = flow.find_lost(now)
        window = flow.state.window
        if flow.missing and flow.mode not in ("recovery", "timeout"):
            begin(now, flow)
        elif newly > 0 and before != "recovery":
            slow = window < flow.state.threshold
            if before == "timeout" or (2.0 * in_flight >= window if slow else in_flight + 1.0 > window):
                most = newly if not slow else 1 if before == "timeout" else 2
                acked = Acked(float(min(newly, most)), now / NS - flow.state.cut_s, flow.state.rtt, True)
                ends = inf
                if slow:
                    packets, ends = slow_start(number, flow.start, flow.state, acked, float(newly))
                    acked = acked._replace(packets=packets)
                flow.law.grow(flow.state, acked)
                flow.state.threshold = min(flow.state.threshold, ends)
        if flow.mode == "recovery":
            reduce(flow, delivered, newly > 0 and len(flow.missing) <= already)
        offer(now, flow, f)
        arm(now, flow, f, wait, kept)

    def timed_out(now, flow, f):
        if flow.silence != now:
            return
        if now < flow.deadline:
            wait = 0
            if probes(flow):
                flow.repeated = False  # there is always more to send
                new(now, flow, f)
                flow.probe = flow.next
                restart(now, flow)
            else:
                wait = flow.find_lost(now)
                if flow.missing and flow.mode not in ("recovery", "timeout"):
                    begin(now, flow)
                if flow.mode == "recovery":
                    reduce(flow, 0, False)
                offer(now, flow, f)
            arm(now, flow, f, wait)
            return
        flow.timeouts += 1
        flow.backoff += 1
        if not flow.connected:
            restart(now, flow)
            arm(now, flow, f)
            send(now, f, ("syn", 0, now, False), HEADER)
            return
        if flow.mode == "normal":
            remembered(flow)
            cut(now, flow)
        elif flow.mode != "timeout":
            flow.state.threshold = max(flow.state.window, 2.0)
        flow.mode, flow.recover, flow.probe = "timeout", flow.next, 0
        flow.find_lost(now, timeout=True)
        flow.state.window, flow.state.cut_s, flow.state.timed_out = flow.pipe() + 1.0, now / NS, 1.0
        restart(now, flow)
        offer(now, flow, f)
        arm(now, flow, f)

    for f, flow in enumerate(flows):
        flow.state = as_record(law.state, np.zeros(width(law.state)))
        flow.state.window, flow.state.threshold, flow.state.min_rtt = first, inf, inf
        flow.start = as_record(SlowStart, np.zeros(width(SlowStart)))
        plan(f * 1_000_000, -1, f)
    while events and events[0][0] <= end:
        now, kind, place, _, what = heapq.heappop(events)
        if kind == -1:
            restart(now, flows[place])
            arm(now, flows[place], place)
            send(now, place, ("syn", 0, now, False), HEADER)
        elif kind == 4:
            timed_out(now, flows[place], place)
        elif place == 0:  # at the receiver
            f, (name, seq, back, again) = what
            flow, run, twice = flows[f], 0, False
            if name == "data":
                twice = seq in flow.came
                flow.came.add(seq)
                while flow.expected in flow.came:
                    flow.expected += 1
                if seq >= flow.expected:
                    run = 1
                    while seq - run in flow.came:
                        run += 1
            arrives = max(now + flow.line, last[f])
            last[f] = arrives
            plan(arrives, 0, 1 + f, (name, seq, back, flow.expected, run, again, twice))
        else:
            flow, (name, seq, back, upto, run, again, twice) = flows[place - 1], what
            if name == "data":
                acknowledged(now, flow, place - 1, seq, upto, run, again, twice)
            elif not flow.connected:
                flow.connected, flow.deadline, flow.backoff = True, 0, 0
                measure(flow, now - back)
                offer(now, flow, place - 1)
                arm(now, flow, place - 1)
    return flows, link
