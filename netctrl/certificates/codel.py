"""CoDel, FQ-CoDel and CAKE for `netctrl certify`: the cycle of one flow in a queue, in ms and Mbit/s, over a box.

CoDel spaces its drops by a schedule, so that no loop has margins: the queue always swings, and the verdict is that of
the swing itself (`netctrl.plants.codel.cycle`), at points of the box. Under fair queueing each flow has a queue
and its share of the rate; what others leave idle it has besides, so that a flow's utilization is the link's least.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from netctrl.certificates.box import Asked, Box, Point, axes, box_of, points_of, sender_names
from netctrl.certificates.ecn import EcnSubject, ecn_verdict
from netctrl.certificates.point_records import BeyondLoop, CodelSwing, PredictedFigures, SenderVerdict, most_p99_s
from netctrl.certificates.record import QueueVerdict
from netctrl.core.errors import InvalidValue, Status, did_you_mean
from netctrl.core.units import BITS_PER_BYTE, TIMES, checked_quantity
from netctrl.laws.aqm.codel import CodelParameters, raised
from netctrl.plants.codel.cycle import LEAST_WINDOW, CodelCycle, codel_cycle, codel_flows
from netctrl.plants.codel.tube import longest_delay

_LOOKED, _LOOKED_TOGETHER = (3, 5, 4), (2, 3, 2)
"""Flows, round-trip times and rates at which a box is looked at: with the cycle of one flow, or many in one queue."""
SENDERS = {
    "linux-creno": ("cubic", True),
    "linux-reno": ("reno", True),
    "cubic": ("cubic", True),
    "reno": ("reno", True),
    "rfc-creno": ("cubic", False),
    "rfc-reno": ("reno", False),
}
"""Sender -> law of its window, and whether it spreads a cut over a round trip as Linux does."""
_SHARED = "a flow's utilization is the link's least: flows also use what others' empty queues leave"
_LEAST_WINDOW = 2.0
_CAKE_PACKETS = 4.0
"""CAKE drops nothing that waits for less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodelSubject:
    """CoDel or COBALT in one queue, or in a queue for each flow."""

    name: str
    implementation: str
    parameters: Mapping[str, float | int | str | bool]
    codel: CodelParameters
    per_flow: bool
    """Whether each flow has a queue of its own, with its share of the rate."""
    drops: bool = True
    """Whether packets are dropped and not marked."""
    notes: tuple[str, ...] = field(default=())
    in_bytes: bool = False
    read: str = "delay of the packet that leaves"
    marked: str = "as packets leave"

    @property
    def target_s(self) -> float:
        """Delay that it lets stand [s]."""
        return self.codel.target

    @property
    def gains(self) -> dict[str, float]:
        """Its two times."""
        return {"target": self.codel.target, "interval": self.codel.interval}

    def at(self, rate: float) -> CodelSubject:
        """The law as it acts at a rate of the link [packet/s], by which CAKE raises its times."""
        return replace(self, codel=raised(self.codel, rate)) if self.codel.cobalt else self

    def least_rate(self, at: Point) -> float:
        """Rate of the link from which on the target can be met with a point's flows and round-trip time [packet/s]."""
        packets = _CAKE_PACKETS if self.codel.cobalt else _LEAST_WINDOW
        return max(packets / self.codel.target, _LEAST_WINDOW * at.flows / (self.codel.target + at.rtt_s))

    def cycle(self, sender: str, at: Point) -> CodelCycle | None:
        """The cycle of a flow at a point; None where it takes too long."""
        law, spread = SENDERS[sender]
        codel, path = self.at(at.rate).codel, at.rtt_s + 1.0 / at.rate
        if not self.per_flow and round(at.flows) > 1:
            return codel_flows(law, round(at.flows), at.rate, path, codel, marks=not self.drops, spread=spread)
        own = at.rate / at.flows
        return codel_cycle(law, own, path, codel, marks=not self.drops, spread=spread, link_rate=at.rate)


def codel_box(subject: CodelSubject, where: Asked) -> Box:
    """The box of a subject, with CUBIC as Linux has it where no senders are asked for; InvalidValue for others."""
    asked = where.get("senders")
    names = (next(iter(SENDERS)),) if asked is None else sender_names(asked)
    for name in names:
        if name not in SENDERS:
            takes = f"a sender whose cycle is known: {', '.join(SENDERS)}{did_you_mean(name, SENDERS)}"
            raise InvalidValue("sender", name, takes)
    where["senders"] = names
    return box_of(subject, **where)


CycleSubject = EcnSubject | CodelSubject
"""Laws without a linear loop, judged by their cycles."""


def cycle_verdict(subject: CycleSubject, box: Box) -> QueueVerdict:
    """Verdict of a law without a linear loop over a box."""
    return codel_verdict(subject, box) if isinstance(subject, CodelSubject) else ecn_verdict(subject, box)


class _Found(NamedTuple):
    sender: str
    at: Point
    cycle: CodelCycle


def cycle_felt(subject: CodelSubject, box: Box) -> tuple[float, float] | None:
    """Longest 99th percentile of the delay [s] and least utilization of the cycles at the corners of a box; None where
    one has none."""
    points = points_of(box, subject.name, (2, 2, 2))
    found = [subject.cycle(sender, at) for sender in box.inputs.senders for at in points]
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return None
    return max(each.p99_s for each in known), min(each.utilization for each in known)


def codel_verdict(subject: CodelSubject, box: Box) -> QueueVerdict:
    """Figures of the cycle at the box's points, the worst of them, and whether they are what a user asks for."""
    alone = subject.per_flow or axes(box, subject.name)[0][1] < 1.5
    points = points_of(box, subject.name, _LOOKED if alone else _LOOKED_TOGETHER)
    warnings = [*subject.notes]
    if subject.per_flow and any(at.flows > 1.0 for at in points):
        warnings.append(_SHARED)
    proved = _longest(subject, box)
    if len(points) > 1:
        known = "nothing is proved" if proved is None else "only the longest delay is proved"
        warnings.append(f"{len(points)} points were looked at; between them {known}")
    size, inputs = box.inputs.packet_size_bytes * BITS_PER_BYTE, box.inputs
    most = most_p99_s(inputs.p99_s, subject.target_s)
    why = "a cycle takes too many round trips" if alone else f"windows are below {LEAST_WINDOW:g} packets"
    found, senders, beyond = [], [], []
    for sender in box.inputs.senders:
        each = [_Found(sender, at, cycle) for at in points if (cycle := subject.cycle(sender, at)) is not None]
        found += each
        known = {one.at for one in each}
        beyond += [
            BeyondLoop(sender=sender, flows=at.flows, capacity_bit_per_s=at.rate * size, rtt_s=at.rtt_s, why=why)
            for at in points
            if at not in known
        ]
        kept = len(each) == len(points) and all(
            one.cycle.p99_s <= most and one.cycle.utilization >= inputs.utilization for one in each
        )
        senders.append(SenderVerdict(sender=sender, status=Status.ADMISSIBLE if kept else Status.STABLE, sampled=None))
    if beyond:  # packets tell, where windows are smallest and largest
        status = Status.STABLE if found else Status.INFEASIBLE
        ends = tuple(
            dict.fromkeys(
                pick(beyond, key=lambda at: at.capacity_bit_per_s * at.rtt_s / at.flows) for pick in (min, max)
            )
        )
        return QueueVerdict(status=status, warnings=tuple(warnings), senders=tuple(senders), beyond=ends)
    longest = max(found, key=lambda each: each.cycle.p99_s)
    least = min(found, key=lambda each: each.cycle.utilization)
    status = max((each.status for each in senders), key=[Status.ADMISSIBLE, Status.STABLE].index)
    return QueueVerdict(
        status=status,
        warnings=tuple(warnings),
        senders=tuple(senders),
        predicted=PredictedFigures(
            sender=longest.sender,
            flows=longest.at.flows,
            capacity_bit_per_s=longest.at.rate * size,
            rtt_s=longest.at.rtt_s,
            delay_mean_s=longest.cycle.mean_s,
            delay_std_s=longest.cycle.std_s,
            delay_p99_s=longest.cycle.p99_s,
            utilization=least.cycle.utilization,
            most_p99_s=most,
            least_utilization=inputs.utilization,
            by="cycle",
        ),
        codel=CodelSwing(
            sender=least.sender,
            flows=least.at.flows,
            capacity_bit_per_s=least.at.rate * size,
            rtt_s=least.at.rtt_s,
            utilization=least.cycle.utilization,
            period_s=least.cycle.period_s,
            least_rate_bit_per_s=max(subject.least_rate(at) for at in points) * size,
            points=len(points),
            longest_s_proved=proved,
        ),
    )


def _longest(subject: CodelSubject, box: Box) -> float | None:
    """Longest delay of all senders in the box, where it is proved."""
    if not subject.per_flow and box.inputs.flows != (1.0, 1.0):
        return None
    flows, rtt, rate = axes(box, subject.name)
    if subject.codel.cobalt and subject.at(rate[0]).codel[:2] != subject.codel[:2]:
        return None
    each = (rate[0] / flows[1], rate[1] / flows[0])
    path = (rtt[0] + 1.0 / rate[1], rtt[1] + 1.0 / rate[0])
    found = []
    for sender in box.inputs.senders:
        law, spread = SENDERS[sender]
        found.append(longest_delay(law, each, path, subject.codel, spread=spread))
    known = [one for one in found if one is not None]
    return max(known) if len(known) == len(found) else None


def codel(*, target_s: float = 5e-3, interval_s: float = 0.1, ecn: bool = False) -> CodelSubject:
    """Linux's codel: one queue for all flows.

    Parameters
    ----------
    target_s, interval_s : float
        Delay that may stand, and how long it has to be above before the first drop [s].
    ecn : bool
        Whether packets of senders with ECN are marked and not dropped.

    Raises
    ------
    InvalidValue
        A value outside its bounds.
    """
    return _subject("codel", "Linux sch_codel", target_s, interval_s, ecn)


def fq_codel(*, target_s: float = 5e-3, interval_s: float = 0.1, ecn: bool = False) -> CodelSubject:
    """Linux's fq_codel: a CoDel in the queue of each flow, which has its share of the rate. As `codel`."""
    return _subject("fq_codel", "Linux sch_fq_codel", target_s, interval_s, ecn)


def cake(*, rtt_s: float = 0.1, target_s: float | None = None, ecn: bool = False) -> CodelSubject:
    """CAKE: a COBALT in the queue of each flow, whose shaper has the capacity of the box.

    Parameters
    ----------
    rtt_s : float
        Its keyword rtt, the interval [s].
    target_s : float, optional
        By default, and as tc has it, rtt/20 [s].
    ecn : bool
        As of `codel`.

    Raises
    ------
    InvalidValue
        A value outside its bounds.
    """
    checked_quantity("rtt", rtt_s, "a time above 0 in seconds", TIMES)
    return _subject("cake", "Linux sch_cake", rtt_s / 20.0 if target_s is None else target_s, rtt_s, ecn)


def _subject(name: str, implementation: str, target_s: float, interval_s: float, ecn: bool) -> CodelSubject:
    target = checked_quantity("target", target_s, "a delay above 0 in seconds", TIMES)
    interval = checked_quantity("interval", interval_s, "a time above 0 in seconds", TIMES)
    if interval < target:
        raise InvalidValue("interval", interval_s, f"a time of at least the target, {target:g} s")
    cake = name == "cake"
    times = {"target_s": target, "rtt_s" if cake else "interval_s": interval}
    return CodelSubject(
        name=name,
        implementation=implementation,
        parameters={**times, "ecn": ecn},
        codel=CodelParameters(target, interval, float(cake)),
        per_flow=name != "codel",
        drops=not ecn,
    )
