"""A pacing law on packets, on a network of holds, bursts and losses that a search found."""

from __future__ import annotations

from math import ceil
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from netctrl.core.units import BITS_PER_BYTE
from netctrl.engines.engine import simulate
from netctrl.model.design.design import PacingDesign
from netctrl.scenario.links import Change, Link
from netctrl.scenario.result import HEADER_BYTES
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Stream

_SETTLED_RTTS, _APART_RTTS, _PERIOD_S, _AFTER_DRAIN_S = 100.0, 15.0, 4.0, 1.0
_LATER = (0.0, 0.25, 0.5)  # of a second: starts of the holds
_MOST_TRIES, _MOST_BITS_TRIED = 100, 1e12  # of networks that are replayed after the search
_SAMPLES = 20  # of the queue, in a round trip
_FAST = 100.0  # times the capacity, at which bursts come


class Figures(NamedTuple):
    """Of packets, the worst of three starts by each; or what is asked for, or proved."""

    utilization: float
    """Least share of what bursts leave of the capacity that is used."""
    share: float
    """Least share of it that one of the flows has."""
    queue_s: float
    """Longest queue [s]."""

    def spent(self, asked: Figures, flows: int) -> tuple[float, float, float]:
        """Of what may be lost of the capacity and of a flow's fair share, and of the time in the queue, the parts that
        are; above 1, more."""
        fair = 1.0 / flows
        unfair = (fair - self.share) / (fair - asked.share) if flows > 1 else 0.0
        return (1.0 - self.utilization) / (1.0 - asked.utilization), unfair, self.queue_s / asked.queue_s


class Network(NamedTuple):
    """What is done to packets in each of T round trips."""

    holds: np.ndarray
    """(N, T) time that acknowledgements of each flow are held [s]."""
    bursts: np.ndarray
    """(T,) data that comes at once where the round trip begins [byte]."""


def worst_on_packets(
    design: PacingDesign, found: list[Network], most: Network, loss: float, asked: Figures
) -> tuple[Figures, Network]:
    """The worst on packets of some networks, and of those that differ from the worst in one hold or burst, again and
    again: none there, or in full.

    The worst spends most of what it may; of time in the queue nothing counts that may be spent.
    """

    def tried(network: Network) -> tuple[float, Figures, Network]:
        figures = replay(design, network, loss)
        used, unfair, queued = figures.spent(asked, design.inputs.flows)
        return max(used, unfair, queued if queued > 1.0 else 0.0), figures, network

    worst = max(map(tried, found), key=itemgetter(0))
    bits = len(_LATER) * replay_end(design.inputs.rtt_s, 0.0) * design.inputs.bottleneck_bit_per_s
    full = np.vstack(most)
    places = np.argwhere(full.T).tolist()  # round trip, and flow whose hold it is, or the burst
    left, since = min(_MOST_TRIES, int(_MOST_BITS_TRIED / bits)), 0
    while left > 0 and since < len(places):
        k, row = places[left % len(places)]
        grid = np.vstack(worst[2])
        grid[row, k] = 0.0 if grid[row, k] > 0.5 * full[row, k] else full[row, k]
        other = tried(Network(grid[:-1], grid[-1]))
        since = 0 if other[0] > worst[0] else since + 1
        worst, left = max(worst, other, key=itemgetter(0)), left - 1
    return worst[1:]


def replay(design: PacingDesign, network: Network, loss: float) -> Figures:
    """The law on packets."""
    used, shares, queues = zip(*(_once(design, network, loss, later) for later in _LATER), strict=True)
    return Figures(min(used), min(shares), max(queues))


def replay_end(rtt: float, span: float) -> float:
    """When a replay ends [s]: after the law has come to rest, between two drains on the clock."""
    return _PERIOD_S * ceil(_SETTLED_RTTS * rtt / _PERIOD_S) + _AFTER_DRAIN_S + _LATER[-1] + span


def _once(design: PacingDesign, network: Network, loss: float, later: float) -> Figures:
    asked, step = design.inputs, design.inputs.rtt_s
    start, span = replay_end(step, 0.0) - _LATER[-1] + later, step * len(network.bursts)
    names = [f"flow {k + 1}" for k in range(asked.flows)]
    capacity, sender, size = asked.bottleneck_bit_per_s, {"kind": "paced", "law": design.law}, asked.packet_size_bytes
    line = Link(id="line", source="a", target="b", capacity=capacity, buffer=asked.buffer_bytes, loss=loss)
    at, took = start + step * np.arange(len(network.bursts)), network.bursts * BITS_PER_BYTE / (_FAST * capacity)
    bursts = {f"burst {k + 1}": k for k in np.flatnonzero(network.bursts >= size).tolist()}
    scenario = Scenario(
        links=(line, *(Link(id=f"back {name}", source="b", target="a", capacity=capacity) for name in names)),
        flows=(  # started at once they would overflow the buffer, and take 10 s to forget it
            *(
                Flow(
                    id=name,
                    path=("line",),
                    ack_path=(f"back {name}",),
                    rtt=step,
                    sender=sender,
                    ecn=False,
                    start=begins,
                )
                for name, begins in zip(names, (0.0, _APART_RTTS * step), strict=False)
            ),
            *(
                Flow(
                    id=name,
                    path=("line",),
                    offers=Stream(rate=_FAST * capacity, spacing="constant"),
                    start=at[k],
                    stop=at[k] + took[k],
                )
                for name, k in bursts.items()
            ),
        ),
        changes=tuple(
            Change(link=f"back {name}", at=when, delay=hold)
            for name, holds in zip(names, network.holds.tolist(), strict=True)
            for when, hold in zip(at.tolist(), holds, strict=True)
        ),
        packet_size=size,
        duration=start + span,
        warmup=start,
        interval=step / _SAMPLES,
    )
    found = simulate(scenario, "packet").measures()
    payload = (1.0 - HEADER_BYTES / size) * (1.0 - loss)
    left = 1.0 - sum(found["goodput", name] for name in bursts) / (payload * capacity)
    share = min(found["throughput", name] for name in names) / capacity
    idle, queue = 1.0 - found["utilization", "line"], BITS_PER_BYTE * found["backlog most", "line"] / capacity
    return Figures(1.0 - idle / left, share / left, queue)
