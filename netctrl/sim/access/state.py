"""State of the kernels of an access link.

Packets are of kinds: 0 premium, then a kind for each regulated flow, then one for each flow of cross traffic.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.plants.regulators import Gates

PREMIUM = 0
WAITING, TAKEN, NODE_COUNT, NODE_OUT = range(4)
"""Rows of `counts`: packets in the buffer before a node, and those it took; packets in a node's buffer, and those gone.
"""


class AccessLinkPlant(NamedTuple):
    """Constants. H hops, F flows, K = F + 1 kinds. Times in seconds."""

    service: np.ndarray
    """(K,) sizes on the wire."""
    limit: int
    """Limit of packets in a node; with fair queueing, in each queue."""
    premium_phase: float
    premium_period: float
    flow_start: np.ndarray
    """(H + 1,) flows that enter before each hop."""
    first_cross: int
    """The kinds from this one on leave after their hop."""
    spacing: float
    """Time between packets of a burst."""
    variation: np.ndarray
    """(F,) pauses are mean times (1 - variation + variation * draw)."""
    queue: np.ndarray
    """(K,) of each kind; empty: FIFO."""
    cost: np.ndarray
    """(K,) L/w, for fair queueing."""


class AccessLinkTraffic(NamedTuple):
    """Variables, changed in place. Q queues, N and B places in buffers."""

    time: np.ndarray
    """(1,) time up to which the simulation is complete."""
    premium: np.ndarray
    """(1,) premium packets released."""
    gates: Gates
    arrived: np.ndarray
    """(H, B) times of released packets."""
    arrived_kind: np.ndarray
    """(H, B)"""
    gone: np.ndarray
    """(H, N) departures in order: those up to `time`, then, with FIFO, those of packets in the node."""
    entered: np.ndarray
    """(H, N) their arrivals at the first node."""
    kind: np.ndarray
    """(H, N)"""
    counts: np.ndarray
    """(4, H)"""
    last: np.ndarray
    """(H,) departure of the last packet taken; with fair queueing, of the one in service."""
    released: np.ndarray
    """(K,) packets since the start."""
    dropped: np.ndarray
    """(H, K)"""
    departed: np.ndarray
    """(H, K)"""
    measured: np.ndarray
    """(6,)"""
    ring_entered: np.ndarray
    """(H, Q, limit) queues of fair queueing, (H, 0, 0) with FIFO."""
    ring_kind: np.ndarray
    ring_head: np.ndarray
    """(H, Q)"""
    ring_count: np.ndarray
    """(H, Q)"""
    tag: np.ndarray
    """(H, Q + 1) of each queue's first packet, and of the packet in service (`netctrl.laws.link`)."""
    serving: np.ndarray
    """(H,) kind in service, -1: none."""
    serving_entered: np.ndarray
    """(H,)"""
