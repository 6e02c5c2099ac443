"""State and parameters of pacing to a target RTT, as records and as rows for the law."""

from __future__ import annotations

from math import inf
from typing import Annotated, NamedTuple

import numpy as np

from netctrl.laws.record import as_record, width
from netctrl.model.law import TargetRttPacer

RING = 32
"""Marks that are kept."""


class TargetState:
    """State of a target-RTT law; a row of it begins with the single numbers, in this order."""

    time_s: float
    """Of the newest sample [s]"""
    applied_s: float
    """Of the newest rate [s]"""
    rate: float
    """In force [bit/s]"""
    min_rtt: float
    """[s]"""
    target_rtt: float
    """[s]"""
    delivered_rate: float
    """[bit/s]"""
    prediction: float
    """Of the RTT to come [s]"""
    samples: float
    phase: float
    """0: start; 1: cruise; 2: drain; 3: drained"""
    recent_rtt: float
    """Least since the last rate [s]"""
    free_since_s: float
    """A queue stood last [s]"""
    probe_s: float
    """The next drain begins [s]"""
    drain_until_s: float
    """[s]"""
    lowest_rtt: float
    """Of this period [s]"""
    lowest_rtt_before: float
    """Of the one before [s]"""
    highest_rtt: float
    """Since the last loss, or of this period [s]"""
    highest_rate: float
    """Delivered, of this period [bit/s]"""
    highest_rate_before: float
    """Of the one before [bit/s]"""
    foreign: float
    """1: the queue is somebody else's"""
    marks: float
    """That the rings were given"""
    delivered_bytes: float
    lost_bytes: float
    """-1: not known yet"""
    cubic_highest: float
    """Window at the last cut [packet]"""
    cubic_cut_s: float
    """[s]"""
    cubic_until_s: float
    """It isn't cut again before [s]"""
    room_s: float
    """Half of the queue at the last loss [s]"""
    cut_until_s: float
    """The rate is halved until [s]"""
    most_in_flight: float
    """What may be [byte]"""
    bad_rtt: float
    """RTTs that are none"""
    bad_time: float
    """Times that go backwards"""
    held: float
    """Rates held for want of a number"""
    floored: float
    """Rates that would have been below the least one"""
    resets: float
    ring_times: Annotated[np.ndarray, 32]
    """Of the newest marks [s]"""
    ring_bytes: Annotated[np.ndarray, 32]
    """Delivered by then [byte]"""


class TargetQueue(NamedTuple):
    """A queue that a law aims at."""

    delay: float
    """[s]"""
    bound: bool
    """By the buffer"""


class TargetParameters:
    """Parameters of a target-RTT law."""

    psi: float
    xi: float
    period: float
    """T [s]"""
    min_rate: float
    """[bit/s]"""
    max_rate: float
    """[bit/s]"""
    packet: float
    """[byte]"""
    queue_share: float
    """Of the least RTT that is to wait"""
    queue_share_slope: float
    """Over ln(window)"""
    min_queue_share: float
    interval_share: float
    """Between two rates, over the least RTT"""
    start_growth: float
    """Until a queue is seen"""
    growth: float
    """Where no queue is seen"""
    decrease: float
    """Least rate over the delivered rate"""
    probe_s: float
    """Between two drains [s]"""
    probe_rtts: float
    """The same, in least RTTs"""
    drain_share: float
    """Of the pipe, to which a drain goes"""
    competitive: float
    """1: finds foreign queues"""
    start_rate: float
    """[bit/s]"""
    horizon_rtts: float
    """H over the least RTT"""


def target_settings(law: TargetRttPacer) -> np.ndarray:
    """The row of a law's parameters."""
    return np.array(
        [
            *(law.psi, law.xi, law.period_s, law.least_rate_bit_per_s, law.max_rate_bit_per_s),
            *(law.packet_size_bytes, law.queue_share, law.queue_share_slope, law.least_queue_share, law.interval_share),
            *(law.start_growth, law.growth, law.decrease, law.probe_s, law.probe_rtts, law.drain_share),
            *(law.competitive, law.start_rate_bit_per_s, law.horizon_rtts),
        ]
    )


def target_start(law: TargetRttPacer) -> np.ndarray:
    """The row of the state before the first sample."""
    row = np.zeros(width(TargetState))
    state = as_record(TargetState, row)
    state.time_s = state.applied_s = -inf
    state.rate = law.start_rate_bit_per_s
    state.min_rtt = state.recent_rtt = state.lowest_rtt = state.lowest_rtt_before = inf
    state.room_s = state.most_in_flight = inf
    state.cut_until_s = -inf
    state.lost_bytes = -1.0  # not known yet
    return row
