"""Slow start that ends before a loss: HyStart by hand, HyStart++ against RFC 9406's pseudocode."""

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netctrl.laws.record import as_record, width
from netctrl.laws.tcp.reno import RENO
from netctrl.laws.tcp.sender import SLOW_STARTS, Acked, TcpWindow
from netctrl.laws.tcp.slow_start import SlowStart, slow_start

HYSTART, HYSTART_PLUS = SLOW_STARTS.index("hystart"), SLOW_STARTS.index("hystart++")


class Sender:
    """Reno's window in slow start."""

    def __init__(self, number: int, window: float, min_rtt: float = inf) -> None:
        self.number = number
        self.start = as_record(SlowStart, np.zeros(width(SlowStart)))
        self.window = as_record(TcpWindow, np.zeros(width(TcpWindow)))
        self.window.window, self.window.threshold, self.window.min_rtt = window, inf, min_rtt

    def hear(self, time: float, rtt: float, newly: float = 1.0) -> None:
        packets, threshold = slow_start(
            self.number, self.start, self.window, Acked(min(newly, 2.0), time, rtt, True), newly
        )
        RENO.grow(self.window, Acked(packets, time, rtt, True))
        self.window.threshold = min(self.window.threshold, threshold)


def in_slow_start(window: float, rtts: list[float], spacing: float) -> Sender:
    """After acknowledgements in one round trip, of which the first tells the least RTT of all [s]."""
    sender = Sender(HYSTART, window, rtts[0])
    for k, rtt in enumerate(rtts):
        sender.hear(1.0 + k * spacing, rtt)
    return sender


def test_hystart_ends_when_acknowledgements_come_for_half_a_round_trip():
    """Closely one after the other, with RTTs of 40 ms, and 90 · .04/W < 1 ms: after 20 ms and that. 2.1 ms apart they
    aren't a train, and a window below 16 is never full."""
    for packets, ends in ((21, False), (22, True)):
        sender = in_slow_start(5000.0, [0.04] * packets, 1e-3)
        assert sender.start.full == ends
        assert sender.window.threshold == (5021.0 if ends else inf)
    assert in_slow_start(5000.0, [0.04] * 18, 2.1e-3).start.full == 0.0
    assert in_slow_start(4.0, [0.04] * 11, 1.9e-3).start.full == 0.0


def test_hystart_ends_when_a_round_trip_is_an_eighth_above_the_least():
    """By 4 ms at least, once eight were seen: 40 ms, then a round trip of 44.9 or 45.1; once, but for time-outs."""
    for later, ends in ((0.0449, False), (0.0451, True)):
        sender = in_slow_start(20.0, [0.04], 0.0)
        for k in range(9):
            assert sender.start.full == 0.0
            sender.hear(1.05 + 2.5e-3 * k, later)
        assert sender.start.full == ends
    sender.window.threshold = inf
    sender.hear(1.1, 0.06)
    assert (sender.start.full, sender.window.threshold) == (1.0, inf)
    sender.window.timed_out = 1.0
    sender.hear(1.1, 0.06)
    assert sender.start.full == 0.0


SMSS, TICK = 1000, 2.0**-14  # byte, s


class Rfc9406:
    """Sections 4.2 and 4.3 in bytes and by sequence numbers."""

    def __init__(self, segments: int) -> None:
        self.cwnd, self.ssthresh, self.window_end = segments * SMSS, inf, 0
        self.last_round = self.this_round = self.baseline = inf
        self.samples = self.rounds = 0
        self.conservative = False
        self.resumed = 0

    def ack(self, upto: int, next_: int, newly: int, rtt: float) -> None:
        if upto > self.window_end:
            self.window_end, self.samples = next_, 0
            self.last_round, self.this_round = self.this_round, inf
            self.rounds += self.conservative
        grown = min(newly, 8 * SMSS)
        self.this_round = min(self.this_round, rtt)
        self.samples += 1
        if not self.conservative:
            self.cwnd += grown
            if self.samples >= 8 and inf not in (self.this_round, self.last_round):
                threshold = max(4e-3, min(self.last_round / 8, 16e-3))
                if self.this_round >= self.last_round + threshold:
                    self.baseline, self.conservative, self.rounds = self.this_round, True, 0
            return
        self.cwnd += grown / 4
        if self.samples >= 8 and self.this_round < self.baseline:
            self.baseline, self.conservative = inf, False
            self.resumed += 1
        elif self.rounds == 5:
            self.ssthresh = self.cwnd


def follow(seed: int, base: int, slope: float, noise: int, most: int) -> Rfc9406:
    """A path whose RTT rises by so much with each segment in flight, and by noise, in 16 ticks."""
    random = np.random.default_rng(seed)
    sender, rfc = Sender(HYSTART_PLUS, 10.0), Rfc9406(10)
    sent, una, now = [], 0, 1 << 14
    while una < 20_000 and rfc.ssthresh == inf:
        sent += [now] * (int(sender.window.window) - len(sent) + una)
        newly = min(int(random.integers(1, most + 1)), len(sent) - una)
        una += newly
        rtt = 16 * base + int(16 * slope * (len(sent) - una)) + int(random.integers(0, 16 * noise + 1))
        now = max(now + 1, sent[una - 1] + rtt)  # in order
        taken = (now - sent[una - 1]) * TICK
        sender.hear(now * TICK, taken, float(newly))
        rfc.ack(una * SMSS, len(sent) * SMSS, newly * SMSS, taken)
        assert (SMSS * sender.window.window, SMSS * sender.window.threshold) == (rfc.cwnd, rfc.ssthresh)
    return rfc


@given(
    st.integers(0, 10**6),
    st.integers(5, 300),
    st.sampled_from([0.0, 0.05, 0.3, 1.0]),
    st.integers(0, 40),
    st.integers(1, 12),
)
@settings(deadline=None, max_examples=60, derandomize=True)
def test_hystart_plus_is_the_rfc_s_pseudocode(seed, base, slope, noise, most):
    follow(seed, base, slope, noise, most)


def test_hystart_plus_ends_where_a_queue_grows_and_comes_back_where_it_does_not():
    """A segment each tick is 640 of them in 40 ms: noise of as much takes slow start back until they are in flight."""
    assert follow(1, 40, 0.3, 0, 1).ssthresh < 200 * SMSS
    for seed in range(4):
        noisy = follow(seed, 40, 0.0, 40, 1)
        assert noisy.ssthresh > 640 * SMSS
        assert noisy.resumed > 0


def test_hystart_plus_is_for_the_first_slow_start():
    """After a loss or a time-out slow start goes up to the threshold (section 4.3), by two at most as elsewhere."""
    sender = Sender(HYSTART_PLUS, 10.0)
    sender.window.threshold = 100.0
    for k in range(50):
        sender.hear(1.0 + k, 0.04 + 0.01 * k, 4.0)
    assert (sender.window.threshold, sender.start.samples) == (100.0, 0.0)
    assert sender.window.window == pytest.approx(100.0, abs=1.0)
