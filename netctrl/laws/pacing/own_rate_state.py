"""State and parameters of pacing to a queue of the own rate, as records and as rows for the law."""

from __future__ import annotations

from math import inf

import numpy as np

from netctrl.laws.record import as_record, width
from netctrl.model.law import OwnRatePacer

START, CRUISE, DRAIN = 0.0, 1.0, 2.0
"""Phases."""
FIRST_WINDOW = 10.0
"""Of a start [packet]."""


class OwnRateState:
    """State of an own-rate law; its rate is where `ArxState` has it."""

    time_s: float
    """Of the newest sample [s]"""
    applied_s: float
    """Of the newest window [s]"""
    rate: float
    """In force [bit/s]"""
    min_rtt: float
    """ℓ₀ [s]"""
    target_rtt: float
    """ℓ₀ + α/x [s]"""
    delivered_rate: float
    """Over the last round trip [bit/s]"""
    prediction: float
    """Of the RTT to come [s]"""
    samples: float
    phase: float
    """START, CRUISE or DRAIN"""
    window: float
    """W [packet]"""
    most_in_flight: float
    """What may be [byte]"""
    delivered_bytes: float
    round_s: float
    """This round trip began [s]"""
    round_bytes: float
    """Delivered by then [byte]"""
    round_end: float
    """It ends once so much is delivered or lost [byte]"""
    round_rtt: float
    """Least of this round trip [s]"""
    round_sum: float
    """Of its RTTs [s]"""
    round_samples: float
    """Samples before it"""
    rtt: float
    """ℓ, least of the last round trip [s]"""
    recent_rtt: float
    """Least of the newest few samples [s]"""
    recent: float
    """Their number"""
    rate_before: float
    """Delivered over the round trip before the last [bit/s]"""
    flat: float
    """Round trips of the start without growth"""
    free: float
    """Round trips without a queue"""
    emptied: float
    """Number of times that the queue ran empty by itself; half of it is forgotten each period"""
    lowest_before: float
    """Least RTT of the period before [s]"""
    lost_bytes: float
    """-1: not known yet"""
    lost_base: float
    """Lost when there was no excess of losses last [byte]"""
    sent_base: float
    """Sent by then [byte]"""
    share: float
    """Of α that the buffer is taken to hold"""
    share_s: float
    """Time of its last cut [s]"""
    round_lost: float
    """Lost when this round trip began [byte]"""
    marked: float
    """Acknowledged with marks by then [byte]"""
    marks: float
    """Their average share, of L4S; 1: none was heard yet"""
    limit: float
    """Greatest window since the last significant losses or marks [packet]"""
    limit_s: float
    """Time of these [s]"""
    deaf: float
    """Round trips to come that hear of losses of what was sent before a cut"""
    probe_s: float
    """The next drain begins [s]"""
    drain_until_s: float
    """[s]"""
    saved: float
    """Window before the drain [packet]"""
    drain_s: float
    """The drain began [s]"""
    drained: float
    """Queueing delay before it [s]; 0 where there was none to speak of"""
    drain_rtt: float
    """Least RTT of packets sent in it [s]"""
    drain_rounds: float
    """Round trips of packets sent in it"""
    drain_sum: float
    """Of their least RTTs [s]"""
    drain_spread: float
    """Of their spreads [s]"""
    wander: float
    """What jitter adds to the least RTT of a round trip, beyond ℓ₀: the less of the last two drains' [s]"""
    wander_before: float
    """As of the last drain [s]"""
    spread: float
    """Mean RTT less the least, of the round trip before it [s]"""
    seen_s: float
    """When the least RTT was seen last [s]"""
    fastest: float
    """Highest delivered rate of late [bit/s]"""
    foreign: float
    """Drains in a row that left most of the queue"""
    competing: float
    """1: with Cubic's window, as others keep a queue"""
    peak: float
    """Window at its last cut in competition [packet]"""
    cut_s: float
    """Time of this cut [s]"""
    lowest_rtt: float
    """Since the last drain [s]"""
    bad_rtt: float
    bad_time: float
    held: float
    floored: float
    resets: float


class OwnRateParameters:
    """Parameters of an own-rate law."""

    packets: float
    """a [packet]"""
    packets_per_root: float
    """c [packet √s]"""
    gain: float
    """γ"""
    tolerated_loss: float
    cut: float
    growth: float
    noise_share: float
    drain_share: float
    probe_s: float
    patience_drains: float
    scalable: float
    """1: L4S"""
    packet: float
    """[byte]"""
    min_rate: float
    """[bit/s]"""
    max_rate: float
    """[bit/s]"""
    start_rate: float
    """[bit/s]"""


def own_rate_settings(law: OwnRatePacer) -> np.ndarray:
    """The row of a law's parameters."""
    return np.array(
        [
            *(law.queue_packets, law.queue_packets_per_root_rate, law.gain, law.tolerated_loss, law.cut, law.growth),
            *(law.noise_share, law.drain_share, law.probe_s, law.patience_drains, float(law.l4s)),
            *(law.packet_size_bytes, law.least_rate_bit_per_s, law.max_rate_bit_per_s, law.start_rate_bit_per_s),
        ]
    )


def own_rate_start(law: OwnRatePacer) -> np.ndarray:
    """The row of the state before the first sample."""
    row = np.zeros(width(OwnRateState))
    state = as_record(OwnRateState, row)
    state.time_s = state.applied_s = -inf
    state.rate = law.start_rate_bit_per_s
    state.window = FIRST_WINDOW
    state.share = state.marks = 1.0
    state.min_rtt = state.round_rtt = state.recent_rtt = state.lowest_rtt = state.lowest_before = state.limit = inf
    state.most_in_flight = inf
    state.lost_bytes = -1.0
    return row
