"""Arrays for the kernels of an access link from its scenario: constants, and draws ahead."""

from __future__ import annotations

from math import inf

import numpy as np

from netctrl.plants.access import pause_mean
from netctrl.plants.regulators import Gates, silent_gates
from netctrl.scenario.access.scenario import AccessLinkParts, access_parts, source_of
from netctrl.scenario.scenario import Scenario
from netctrl.sim.access.state import PREMIUM, AccessLinkPlant, AccessLinkTraffic
from netctrl.units import BITS_PER_BYTE

_BUFFER = 4096  # packets released at a time, so that the data stay in the cache
DRAWS = 512
"""Draws ahead of each flow."""


def packet_bits(parts: AccessLinkParts) -> np.ndarray:
    """Bits of a packet of each kind, (K,)."""
    bits = np.full(1 + parts.flows + len(parts.cross), parts.packet_size * BITS_PER_BYTE)
    bits[PREMIUM] = parts.premium.size * BITS_PER_BYTE
    return bits


def access_link_plant(scenario: Scenario) -> AccessLinkPlant:
    """Constants of a scenario's kernel."""
    parts = access_parts(scenario)
    line, F, bits = parts.line, parts.flows, packet_bits(parts)
    K = len(bits)
    entering = np.bincount([0] * F + [flow.hop for flow in parts.cross], minlength=line.hops)
    if line.discipline == "wfq":
        queue, weight = np.arange(K), np.full(K, 1.0 / K)
    elif line.discipline == "cbq":
        queue = np.minimum(np.arange(K), 1)
        weight = np.where(queue == 0, line.premium_share, 1.0 - line.premium_share)
    else:
        queue, weight = np.zeros(0, dtype=np.int64), np.ones(K)
    period = bits[PREMIUM] / parts.premium.rate
    phase = period * np.random.default_rng([scenario.seed, 0]).uniform()
    variations = [parts.regulated[place].pause_variation for place in source_of(parts)]
    return AccessLinkPlant(
        service=bits / line.capacity,
        limit=line.limit,
        premium_phase=phase,
        premium_period=period,
        # Cross traffic of the first hop comes after the regulated flows, so that their kinds stay 1 to F.
        flow_start=np.concatenate(([0], np.cumsum(entering))),
        first_cross=1 + F,
        spacing=parts.packet_size * BITS_PER_BYTE / line.access_rate,
        variation=np.array([*variations, *(flow.pause_variation for flow in parts.cross)]),
        queue=queue,
        cost=bits / (line.capacity * weight),
    )


def flow_streams(scenario: Scenario) -> list[np.random.Generator]:
    """Random stream of each flow, so that its draws don't depend on the packets of other flows."""
    parts = access_parts(scenario)
    flows = parts.flows + len(parts.cross)
    return [np.random.default_rng([scenario.seed, flow + 1]) for flow in range(flows)]


def access_link_traffic(
    parts: AccessLinkParts, plant: AccessLinkPlant, streams: list[np.random.Generator]
) -> AccessLinkTraffic:
    """An empty link; cross traffic runs, regulated flows have rate 0."""
    H, F, K, limit = parts.line.hops, len(streams), len(plant.service), plant.limit
    Q = 1 + int(plant.queue.max()) if len(plant.queue) else 0
    # Room for a node's packets, and for all arrivals at a time: released before any hop, or held in an earlier one.
    node = H * (_BUFFER + max(Q, 1) * limit + 1) + 1
    ring = (H, Q, limit if Q else 0)
    traffic = AccessLinkTraffic(
        time=np.zeros(1),
        premium=np.zeros(1, dtype=np.int64),
        gates=silent_gates(F, DRAWS),
        arrived=np.zeros((H, _BUFFER)),
        arrived_kind=np.zeros((H, _BUFFER), dtype=np.int16),
        gone=np.zeros((H, node)),
        entered=np.zeros((H, node)),
        kind=np.zeros((H, node), dtype=np.int16),
        counts=np.zeros((4, H), dtype=np.int64),
        last=np.zeros(H),
        released=np.zeros(K, dtype=np.int64),
        dropped=np.zeros((H, K), dtype=np.int64),
        departed=np.zeros((H, K), dtype=np.int64),
        measured=np.zeros(6),
        ring_entered=np.zeros(ring),
        ring_kind=np.zeros(ring, dtype=np.int16),
        ring_head=np.zeros((H, Q), dtype=np.int64),
        ring_count=np.zeros((H, Q), dtype=np.int64),
        tag=np.column_stack([np.full((H, Q), inf), np.zeros(H)]),
        serving=np.full(H, -1, dtype=np.int64),
        serving_entered=np.zeros(H),
    )
    gates = traffic.gates
    first_pauses(gates, plant.variation, streams)
    for row, flow in enumerate(parts.cross, parts.flows):
        gates.burst[row] = flow.burst
        gates.pause[row] = pause_mean(flow.rate, flow.burst, parts.packet_size * BITS_PER_BYTE, plant.spacing)
        gates.left[row], gates.next[row] = flow.burst, gates.held[row] * gates.pause[row]
    return traffic


def first_pauses(gates: Gates, variation: np.ndarray, streams: list[np.random.Generator]) -> None:
    """Phases, the remainder of the pause in which each flow starts over its mean, and the first draws."""
    for flow, (v, stream) in enumerate(zip(variation.tolist(), streams, strict=True)):
        gates.held[flow] = (1.0 - v) * stream.uniform() + v * stream.standard_exponential()
    draw_ahead(gates, streams)


def draw_ahead(gates: Gates, streams: list[np.random.Generator]) -> None:
    """Replenish the draws of flows that have used half of theirs; the order of draws is unchanged."""
    M = gates.draws.shape[1]
    for flow in np.flatnonzero(2 * gates.used > M):
        used = gates.used[flow]
        gates.draws[flow, : M - used] = gates.draws[flow, used:].copy()
        gates.draws[flow, M - used :] = streams[flow].standard_exponential(used)
        gates.used[flow] = 0
