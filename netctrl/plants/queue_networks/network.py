"""Links with laws of their queues, flows whose paths cross them, and the order in which packets cross links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from netctrl.core.errors import InvalidValue
from netctrl.plants.queues.queue_laws import Averaged, SampledPi, WindowClass


class LawRange(NamedTuple):
    """Law of a queue within a range of its output, in which its gains stay."""

    low: float
    high: float
    law: SampledPi | Averaged


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLink:
    """Link with a queue and its law.

    Parameters
    ----------
    name : str
    rate : float
        C [packet/s].
    delay_s : float
        Propagation behind the queue, one way [s].
    ranges : tuple of LawRange
        In the order of the output; empty for a link without a law, which must not be a bottleneck.
    greatest : float
        Output beyond which the law acts differently.
    beyond : str
        What it does there.
    age_s, age_queues, marked_leaving
        As in `netctrl.plants.queues.queue_response.QueueResponse`.
    """

    name: str
    rate: float
    delay_s: float = 0.0
    ranges: tuple[LawRange, ...] = ()
    greatest: float = 1.0
    beyond: str = "it acts otherwise"
    age_s: float = 0.0
    age_queues: float = 0.0
    marked_leaving: bool = False

    def at(self, x: float) -> SampledPi | Averaged:
        """Law at an output; of two ranges that meet there, the one with the larger gain."""
        near = [each.law for each in self.ranges if each.low * (1.0 - 1e-9) <= x <= each.high * (1.0 + 1e-9)]
        laws = near or [self.ranges[-1].law]
        return max(laws, key=lambda law: law.integral if isinstance(law, SampledPi) else law.slope)

    def standing(self, x: float) -> float:
        """Delay of the queue at an output above 0 [s]."""
        return float(self.at(x).delay(x))

    @property
    def threshold_s(self) -> float:
        """Delay up to which the law's output is 0 in equilibrium [s]."""
        return max(float(self.ranges[0].law.delay(0.0)), 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PathFlows:
    """Flows with one sender, one path and one round-trip time.

    Parameters
    ----------
    name : str
    flows : float
        How many.
    rtt_s : float
        Round-trip time without queues [s].
    path : tuple of int
        Numbers of the links, in the order in which they are crossed.
    seen : tuple of WindowClass
        At each of these links: sender, factor and power of its marks, and whether the flows wait in the queue that the
        law reads. `share` and `stretch` aren't used.
    """

    name: str
    flows: float
    rtt_s: float
    path: tuple[int, ...]
    seen: tuple[WindowClass, ...]

    @property
    def sender(self) -> Any:
        """Law of the windows."""
        return self.seen[0].sender


@dataclass(frozen=True, slots=True, eq=False)
class QueueNetwork:
    """Links and flows.

    Raises
    ------
    InvalidValue
        A path that crosses a link twice or a link that there isn't, or forward delays beyond the round-trip time.
    """

    links: tuple[QueueLink, ...]
    groups: tuple[PathFlows, ...]

    def __post_init__(self) -> None:
        for group in self.groups:
            if not group.path or not all(0 <= k < len(self.links) for k in group.path):
                raise InvalidValue(f"flows.{group.name}.path", group.path, f"numbers of the {len(self.links)} links")
            if len(set(group.path)) < len(group.path):
                raise InvalidValue(
                    f"flows.{group.name}.path", group.path, "each link at most once: a path without loops"
                )
            ahead = sum(self.links[k].delay_s for k in group.path)
            if group.rtt_s < ahead * (1.0 - 1e-9):
                takes = f"at least {ahead:g} s, the delays of the links of its path"
                raise InvalidValue(f"flows.{group.name}.rtt", group.rtt_s, takes)


def checked_order(network: QueueNetwork, queueing: Sequence[int]) -> tuple[int, ...]:
    """Queueing links, each behind those from which packets come to it.

    Raises
    ------
    InvalidValue
        Links in a ring, each of which gets packets that waited in another.
    """
    kept = set(queueing)
    ahead: dict[int, set[int]] = {k: set() for k in queueing}
    for group in network.groups:
        for first, then in pairwise([k for k in group.path if k in kept]):
            ahead[then].add(first)
    order: list[int] = []
    while len(order) < len(ahead):
        free = [k for k in queueing if k not in order and ahead[k] <= set(order)]
        if not free:
            ring = ", ".join(network.links[k].name for k in queueing if k not in order)
            takes = "bottlenecks that paths cross in one order: these queues feed each other in a ring"
            raise InvalidValue("links", ring, takes)
        order += free
    return tuple(order)
