"""What BBR 3 remembers of a connection."""

from __future__ import annotations

from typing import Annotated

import numpy as np


class Bbr3State:
    """State of BBR 3, in bytes, byte/s and s; inf: no such bound."""

    phase: float
    """0: startup; 1: drain; 2: down; 3: cruise; 4: refill; 5: up; 6: probe RTT"""
    rate: float
    window: float
    bandwidth: float
    """Greatest of this cycle; 0: none was seen"""
    bandwidth_before: float
    """Of the cycle before"""
    bandwidth_low: float
    bandwidth_latest: float
    """Greatest of this round trip"""
    high: float
    low: float
    delivered_latest: float
    """Most that came within a round trip"""
    min_rtt: float
    min_rtt_s: float
    """When it was seen"""
    probed_rtt: float
    """Least since the last probe of it"""
    probed_s: float
    full: float
    """Bandwidth that a fuller pipe would exceed by a quarter"""
    full_rounds: float
    full_now: float
    """1: three round trips brought no quarter more"""
    filled: float
    """1: the pipe was full once"""
    round_end: float
    """Delivered or lost by when a round trip ends"""
    loss_round_end: float
    losing: float
    """1: losses in this round trip"""
    loss_events: float
    """Acknowledgements in it that told of losses"""
    feedback: float
    """0: none expected; 1: a probe starts; 2: it is answered; 3: it has stopped; 4: the pipe is refilled"""
    probing: float
    """1: what is acknowledged now was sent by a probe"""
    risky: float
    """1: the last probe stopped at `high`"""
    too_high: float
    """1: the probe before lost too much"""
    rounds: float
    """Since the last probe"""
    wait_s: float
    """Until the next one"""
    phase_s: float
    growth: float
    """Doublings of how fast `high` grows"""
    per_packet: float
    """Acknowledged for each packet that it grows by"""
    counted: float
    """Acknowledged since it grew"""
    probe_end_s: float
    """Of a probe of the RTT; 0: not known yet"""
    probe_round: float
    window_before: float
    """What it is again after such a probe, or after a timeout"""
    recovering: float
    """Of `Sample`"""
    ahead_s: float
    ahead: float
    ahead_rounds: float
    extra: float
    extra_before: float
    lost: float
    delivered: float
    limited: float
    random: float
    """In [0, 1), evenly spread from draw to draw"""
    sampled: float
    """Rate of what is acknowledged now"""
    known: float
    """1: it doesn't tell of data that were short"""
    passed: float
    """Delivered since that was sent"""
    gone: float
    """Lost since then"""
    flight: float
    """In flight when it was sent"""
    round_starts: float
    """1: with it"""
    loss_round_starts: float
    marks: float
    mark: float
    """The newest that was an RTT old"""
    ring_times: Annotated[np.ndarray, 64]
    ring_bytes: Annotated[np.ndarray, 64]
    """Delivered by then"""
    ring_lost: Annotated[np.ndarray, 64]
    ring_flight: Annotated[np.ndarray, 64]
    """In flight then"""
