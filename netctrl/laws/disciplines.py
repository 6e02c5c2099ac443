"""Queue disciplines of links with several queues, as in files; run by the packet engine."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

import msgspec

from netctrl.core.errors import InvalidValue, checked_number
from netctrl.core.units import packets_per_second
from netctrl.laws.aqm.codel import CodelParameters, CodelQueue, raised
from netctrl.laws.aqm.law import QueueRecord
from netctrl.laws.aqm.records import QUEUES, DropTailQueue, Queue
from netctrl.laws.l4s.dualpi2 import DualPi2Queue
from netctrl.laws.targets.pie_law import PIE_MAX
from netctrl.model.io.fields import (
    Duration,
    Rate,
    Size,
    duration,
    identifier,
    number,
    optional,
    rate,
    read_fields,
    size,
    whole,
)


class PrioQueue(QueueRecord, frozen=True, kw_only=True, tag="prio"):
    """Strict priorities: a packet is sent only while no band before its own has one.

    A packet for which the buffer has no room takes that of bands behind its own, from their head.
    """

    bands: int = 2
    """A flow's band is its `priority`, from 0, which is first; what is beyond them is in the last."""

    def __post_init__(self) -> None:
        read_fields(self, bands=whole(1, 64))


class DrrQueue(QueueRecord, frozen=True, kw_only=True, tag="drr"):
    """Deficit round robin: a queue for each flow, which get shares in the ratio of the flows' `weight`.

    Where the buffer has no room, the longest queue loses its first packet. Source: Shreedhar, Varghese, IEEE/ACM
    Transactions on Networking 4(3), 1996.
    """

    quantum: Size | None = None
    """What a flow of weight 1 may send in a round [byte]; null: a packet."""

    def __post_init__(self) -> None:
        read_fields(self, quantum=optional(size))


class WfqQueue(QueueRecord, frozen=True, kw_only=True, tag="wfq"):
    """Weighted fair queueing, self-clocked: a queue for each flow, in shares of the flows' `weight`.

    Each queue has a buffer of its own; what finds no room there is dropped. Source: `netctrl.laws.link`.
    """


class CbqQueue(QueueRecord, frozen=True, kw_only=True, tag="cbq"):
    """Class-based queueing: as `wfq`, with a queue for each class, of which each is sure of a share of the link."""

    shares: tuple[float, ...]
    """Of each class, in any ratio. A flow's class is its `priority`, from 0; what is beyond them is in the last."""

    def __post_init__(self) -> None:
        read_fields(self, shares=_shares)


class FqCodelQueue(QueueRecord, frozen=True, kw_only=True, tag="fq_codel"):
    """FQ-CoDel: flows are hashed to queues with a CoDel each, served in turn; a queue that was empty comes first.

    Where the buffer has no room, the longest queue loses its first packet. Source: RFC 8290.
    """

    target: Duration = 5e-3
    """CoDel's acceptable standing queueing delay [s]."""
    interval: Duration = 100e-3
    """CoDel's interval [s]."""
    quantum: Size | None = None
    """What a queue may send in a round [byte]; null: a packet."""
    buckets: int = 1024
    """Queues that flows are hashed to; 0: each flow has its own."""

    def __post_init__(self) -> None:
        read_fields(self, target=duration, interval=duration, quantum=optional(size), buckets=whole(0, 65536))


class CakeQueue(QueueRecord, frozen=True, kw_only=True, tag="cake"):
    """CAKE: COBALT in a queue for each flow, served in turn as those of `fq_codel`.

    Hosts, tins and its ACK filter aren't modelled, and the link is its shaper. Source: Linux, net/sched/sch_cake.c.
    """

    rtt: Duration = 100e-3
    """COBALT's interval [s]."""
    target: Duration | None = None
    """Its target [s]; null: a twentieth of `rtt`."""
    bandwidth: Rate | None = None
    """Of its shaper, by which targets and rounds of slow links follow [bit/s]; null: unlimited."""

    def __post_init__(self) -> None:
        read_fields(self, rtt=duration, target=optional(duration), bandwidth=optional(rate))

    @property
    def asked(self) -> CodelParameters:
        """COBALT's target and interval before its shaper raises them."""
        return CodelParameters(self.rtt / 20.0 if self.target is None else self.target, self.rtt, 1.0)

    def times(self, packet_bytes: float) -> CodelParameters:
        """COBALT's target and interval with packets of a size [byte]."""
        if self.bandwidth is None:
            return self.asked
        return raised(self.asked, packets_per_second(self.bandwidth, packet_bytes))

    @property
    def quantum(self) -> float:
        """What a queue may send in a round [byte]."""
        return 1514.0 if self.bandwidth is None else min(max(self.bandwidth / (8.0 * 4096.0), 300.0), 1514.0)


class FqPieQueue(QueueRecord, frozen=True, kw_only=True, tag="fq_pie"):
    """FQ-PIE: Linux's PIE in a queue for each flow, served in turn as those of `fq_codel`.

    What comes to a full buffer is dropped. Source: Linux, net/sched/sch_fq_pie.c.
    """

    target: Duration = 15e-3
    """Delay of a queue [s]."""
    update: Duration = 15e-3
    """Time between updates [s]."""
    alpha: float = 2.0
    """Gain on the delay's error, as tc takes it [1/16 Hz]."""
    beta: float = 20.0
    """Gain on its change, likewise [1/16 Hz]."""
    quantum: Size | None = None
    """What a queue may send in a round [byte]; null: a packet."""
    buckets: int = 1024
    """Queues that flows are hashed to; 0: each flow has its own."""

    def __post_init__(self) -> None:
        gain = number("a whole number of sixteenths of 1/s from 0 to 32", at_least=0.0, at_most=float(PIE_MAX))
        read_fields(self, target=duration, update=duration, alpha=gain, beta=gain)
        read_fields(self, quantum=optional(size), buckets=whole(0, 65536))

    @property
    def sent(self) -> dict[str, float]:
        """PIE's parameters by their names in tc(8)."""
        return {"target": self.target, "tupdate": self.update, "alpha": self.alpha, "beta": self.beta, "ecn": 1.0}


def _shares(field: str, value: Any) -> tuple[float, ...]:
    takes = "a list of 2 to 64 shares, each from 1e-6 to 1e6, in any ratio"
    if not isinstance(value, list | tuple) or not 2 <= len(value) <= 64:
        raise InvalidValue(field, value, takes)
    return tuple(
        checked_number(f"{field}[{k}]", each, takes, at_least=1e-6, at_most=1e6) for k, each in enumerate(value)
    )


class KernelQueue(QueueRecord, frozen=True, kw_only=True, tag="qdisc"):
    """A queueing discipline of the Linux kernel, whatever it does: `kernel` engine only, but `pie` on packets, too."""

    discipline: str
    """Name in tc(8), such as cake, fq_pie or dualpi2."""
    parameters: dict[str, float] = msgspec.field(default_factory=dict)
    """By their names in tc(8): times in seconds, sizes in bytes, flags as 0 or 1; the others are the kernel's
    defaults. `limit` is bounded by the link's buffer."""

    def __post_init__(self) -> None:
        read_fields(self, discipline=identifier)
        if not isinstance(self.parameters, dict):
            raise InvalidValue("parameters", self.parameters, "a table of names and numbers")
        for name, value in self.parameters.items():
            checked_number(f"parameters.{name}", value, "a number", at_least=0.0, at_most=2.0**32)


DISCIPLINES = (PrioQueue, WfqQueue, CbqQueue, DrrQueue, FqCodelQueue, FqPieQueue, CakeQueue, DualPi2Queue)
"""With several queues; the packet engine runs them."""

LINK_QUEUES = (*QUEUES, *DISCIPLINES, KernelQueue)

LinkQueue: Any = reduce(or_, LINK_QUEUES) | str
"""Every kind of queue that a link may have; in a file, `kind` tells which."""


def queue_in(queue: LinkQueue) -> Queue:
    """Kind of each queue of a discipline; a single queue is returned unchanged."""
    if isinstance(queue, FqCodelQueue):
        return CodelQueue(target=queue.target, interval=queue.interval)
    if isinstance(queue, CakeQueue):
        return CodelQueue(interval=queue.rtt)
    return DropTailQueue() if isinstance(queue, (*DISCIPLINES, KernelQueue)) else queue
