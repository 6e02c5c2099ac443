"""From a scenario of an access link to what its kernels take: arrays, draws ahead, and rates that are commanded."""

from __future__ import annotations

from math import inf

import numpy as np

from netctrl.plants.access import pause_mean
from netctrl.scenario.access.scenario import AccessLinkScenario
from netctrl.sim.access.state import AccessLinkPlant, AccessLinkTraffic, Gates
from netctrl.units import BITS_PER_BYTE

__all__ = [
    "access_link_plant",
    "access_link_traffic",
    "command",
    "draw_ahead",
    "first_pauses",
    "flow_rates",
    "flow_streams",
    "silent_gates",
    "source_of",
]

_BUFFER = 4096  # packets released at a time: what is worked on stays in the cache
_DRAWS = 512


def source_of(scenario: AccessLinkScenario) -> np.ndarray:
    """The source of each regulated flow."""
    return np.repeat(np.arange(len(scenario.sources)), [source.flows for source in scenario.sources])


def access_link_plant(scenario: AccessLinkScenario) -> AccessLinkPlant:
    """What a scenario's kernel needs and does not change."""
    F, cross = scenario.flows, sorted(scenario.cross, key=lambda flow: flow.hop)
    K = 1 + F + len(cross)
    bits = np.full(K, scenario.size * BITS_PER_BYTE)
    bits[0] = scenario.premium_size * BITS_PER_BYTE
    entering = np.bincount([0] * F + [flow.hop for flow in cross], minlength=scenario.hops)
    if scenario.discipline == "wfq":
        queue, weight = np.arange(K), np.full(K, 1.0 / K)
    elif scenario.discipline == "cbq":
        queue = np.minimum(np.arange(K), 1)
        weight = np.where(queue == 0, scenario.premium_share, 1.0 - scenario.premium_share)
    else:
        queue, weight = np.zeros(0, dtype=np.int64), np.ones(K)
    period = bits[0] / scenario.premium_rate
    phase = period * np.random.default_rng([scenario.seed, 0]).uniform()
    return AccessLinkPlant(
        service=bits / scenario.capacity,
        limit=scenario.limit,
        premium_phase=phase,
        premium_period=period,
        # Cross traffic of the first hop comes after the regulated flows, so that their kinds stay 1 to F.
        flow_start=np.concatenate(([0], np.cumsum(entering))),
        first_cross=1 + F,
        spacing=scenario.size * BITS_PER_BYTE / scenario.access_rate,
        variation=scenario.pause_variation,
        queue=queue,
        cost=bits / (scenario.capacity * weight),
    )


def flow_streams(scenario: AccessLinkScenario) -> list[np.random.Generator]:
    """A random stream for each flow, so that none depends on how many packets another sent."""
    flows = scenario.flows + len(scenario.cross)
    return [np.random.default_rng([scenario.seed, flow + 1]) for flow in range(flows)]


def silent_gates(count: int) -> Gates:
    """Of flows that send nothing yet."""
    return Gates(
        next=np.full(count, inf),
        left=np.ones(count, dtype=np.int64),
        burst=np.ones(count, dtype=np.int64),
        pause=np.full(count, inf),
        pausing=np.ones(count, dtype=np.bool_),
        held=np.zeros(count),
        draws=np.zeros((count, _DRAWS)),
        used=np.full(count, _DRAWS),
    )


def access_link_traffic(
    scenario: AccessLinkScenario, plant: AccessLinkPlant, streams: list[np.random.Generator]
) -> AccessLinkTraffic:
    """An empty link; cross traffic runs, regulated flows have rate 0."""
    H, F, K = scenario.hops, len(streams), len(plant.service)
    Q = 1 + int(plant.queue.max()) if len(plant.queue) else 0
    # All that a node may hold, and all that comes at a time: released before any hop, or held in one before.
    node = H * (_BUFFER + max(Q, 1) * scenario.limit + 1) + 1
    ring = (H, Q, scenario.limit if Q else 0)
    traffic = AccessLinkTraffic(
        time=np.zeros(1),
        premium=np.zeros(1, dtype=np.int64),
        gates=silent_gates(F),
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
        ring_tag=np.zeros(ring),
        ring_entered=np.zeros(ring),
        ring_kind=np.zeros(ring, dtype=np.int16),
        ring_head=np.zeros((H, Q), dtype=np.int64),
        ring_count=np.zeros((H, Q), dtype=np.int64),
        tag=np.zeros((H, Q + 1)),
        serving=np.full(H, -1, dtype=np.int64),
        serving_entered=np.zeros(H),
    )
    gates = traffic.gates
    first_pauses(gates, plant.variation, streams)
    for place, flow in enumerate(sorted(scenario.cross, key=lambda flow: flow.hop)):
        row = scenario.flows + place
        gates.burst[row] = flow.burst
        gates.pause[row] = pause_mean(flow.rate, flow.burst, scenario.size * BITS_PER_BYTE, plant.spacing)
        gates.left[row], gates.next[row] = flow.burst, gates.held[row] * gates.pause[row]
    return traffic


def first_pauses(gates: Gates, variation: float, streams: list[np.random.Generator]) -> None:
    """Phases: what is left of the pause in which each flow starts, over its mean; and the first draws."""
    for flow, stream in enumerate(streams):
        gates.held[flow] = (1.0 - variation) * stream.uniform() + variation * stream.standard_exponential()
    draw_ahead(gates, streams)


def draw_ahead(gates: Gates, streams: list[np.random.Generator]) -> None:
    """Fill the draws up, where half of a flow's are used; each stays next to those that it followed."""
    M = gates.draws.shape[1]
    for flow in np.flatnonzero(2 * gates.used > M):
        used = gates.used[flow]
        gates.draws[flow, : M - used] = gates.draws[flow, used:].copy()
        gates.draws[flow, M - used :] = streams[flow].standard_exponential(used)
        gates.used[flow] = 0


def flow_rates(scenario: AccessLinkScenario, rate: float, time: float) -> np.ndarray:
    """Of each regulated flow [bit/s]: its part of the rate or of what is offered; of a failed regulator, all of it."""
    failed = {each.source: each.rate for each in scenario.failures if each.start <= time < each.stop}
    of_source = [
        failed.get(place, min(rate * source.share, source.offered)) for place, source in enumerate(scenario.sources)
    ]
    return np.array([of_source[place] / scenario.sources[place].flows for place in source_of(scenario)])


def command(gates: Gates, time: float, rates: np.ndarray, bursts: np.ndarray, size: float, spacing: float) -> None:
    """Set regulated flows to new rates and bursts from `time` on.

    A pause that goes on is stretched by the ratio of the means: exponential ones stay so, even ones keep their share.
    A burst that goes on is finished. Where nothing changes nothing is computed, to the bit.
    """
    for flow, (rate, burst) in enumerate(zip(rates.tolist(), bursts.tolist(), strict=True)):
        mean = pause_mean(rate, burst, size * BITS_PER_BYTE, spacing)
        before = gates.pause[flow]
        if mean == before and burst == gates.burst[flow]:
            continue
        if gates.pausing[flow] and gates.next[flow] > time:
            rest = gates.held[flow] if gates.next[flow] == inf else (gates.next[flow] - time) / before
            gates.held[flow] = rest
            gates.next[flow] = time + rest * mean if mean < inf else inf
            gates.left[flow] = burst
        gates.pause[flow], gates.burst[flow] = mean, burst
