"""Queues of ECN's senders that no slope describes, judged by their nonlinear fluids, integrated in time.

At a step the probability has no slope. Where it rises over fewer bytes than the queue swings, or the queue stands above
both thresholds, a slope says nothing either. Such a queue is judged by the cycle in which its fluid ends, at points of
the box: the link stays busy where the queue never falls below a packet of each flow, since windows move by whole
packets. A queue between near thresholds is judged as at a step, so that the verdict and its figures move continuously
with the thresholds until they are equal.

What users feel follows from the cycle, too (`felt`): packets of DCTCP's flows, which are out of step, hardly ever wait
longer than the fluid's longest queue, and leave no more of the link unused. Where windows are of a few packets, which
move by whole ones, or the fluid's queue is at rest, which that of packets isn't, packets tell.

For a step two predictions stand beside the cycle: its describing function, and the sawtooth of Alizadeh et al.
(SIGCOMM 2010). Nothing rests on them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import log1p

import numpy as np

from netctrl.certificates.box import MIN_WINDOW, Box, Point, axes, points_of, worst_of
from netctrl.certificates.ecn.dctcp import LARGEST_WINDOW, LOOKED, DctcpSubject, smallest_threshold
from netctrl.certificates.point_records import (
    BeyondLoop,
    PredictedFigures,
    QueueSwing,
    RampCycle,
    StepCycle,
    most_p99_s,
)
from netctrl.certificates.record import QueueVerdict
from netctrl.certificates.red import RedSubject
from netctrl.core.errors import Status
from netctrl.core.units import BITS_PER_BYTE, format_quantity
from netctrl.plants.ecn.dctcp import Cycle, dctcp_ramp_cycle, described_cycle, fluid_cycle, sawtooth_cycle

_SPARE = 1.0
"""Packets of each flow that the fluid's queue must keep: windows move by whole packets."""
_LEAST_WINDOW = 10.0
"""Windows from which on the fluid's figures are those of packets [packet]."""
_RULE_2010, _RULE_2011 = 1.0 / 7.0, 0.17
IN_TIME = (
    "small deviations from an equilibrium don't describe this queue: the verdict is that of the nonlinear fluid, "
    "integrated in time"
)
"""Note of such a verdict."""
Felt = tuple[PredictedFigures | None, tuple[BeyondLoop, ...]]
"""Worst figures; or None and the points at which packets have to tell them."""
_NOTES = (
    IN_TIME,
    "the fluid has equal flows in step: on packets, flows out of step swing less, and windows of a few packets, which "
    "move by whole ones, lose up to 5 % of the capacity more",
)


def dctcp_verdict(subject: DctcpSubject, box: Box) -> QueueVerdict:
    """Limit cycles at the box's points, the worst of them, and the smallest threshold of the box."""
    size = box.inputs.packet_size_bytes
    points = subject.points(box)
    small = [each for each in points if subject.always_marks(each, size)]
    if small:
        at = max(small, key=lambda each: each.flows)
        window = subject.fluid(at, size).window
        return _always_marked(
            subject, points, at, window, size, "with the queue at the threshold", "stays above the threshold"
        )
    cycles = {each: fluid_cycle(subject.fluid(each, size)) for each in points}
    at = _worst(cycles)
    found, fluid = cycles[at], subject.fluid(at, size)
    flows, rtt, rates = axes(box, subject.name)
    smallest, safe = (
        smallest_threshold(flows, rtt, rates, subject.gain, spare_packets=spare) for spare in (0.0, _SPARE)
    )
    largest = rates[1] * rtt[1]
    step = StepCycle(
        flows=at.flows,
        rtt_s=at.rtt_s,
        capacity_bit_per_s=at.rate * BITS_PER_BYTE * size,
        threshold_packets=subject.threshold(at.rate, size),
        window_packets=fluid.window,
        fluid=_swing(found, at),
        repeats=found.periodic,
        described=_swing(described_cycle(fluid), at),
        sawtooth=_swing(sawtooth_cycle(fluid), at),
        lost_share=found.lost,
        longest_queue_packets=max(c.highest * p.rate * p.rtt_s for p, c in cycles.items()),
        smallest_threshold_packets=smallest.packets,
        smallest_threshold_s=smallest.delay_s,
        safe_threshold_packets=safe.packets,
        safe_threshold_s=safe.delay_s,
        rule_2010_packets=_RULE_2010 * largest,
        rule_2011_packets=_RULE_2011 * largest,
        points=len(points),
    )
    figures, beyond = felt(cycles, lambda each: subject.threshold(each.rate, size), box)
    held = _spare(at, found) > 0.0 if figures is None else figures.as_asked
    return QueueVerdict(
        status=Status.ADMISSIBLE if held else Status.STABLE,
        warnings=(*subject.notes, *_looked(len(points))),
        step=step,
        predicted=figures,
        beyond=beyond,
    )


def felt(cycles: Mapping[Point, Cycle], standing: Callable[[Point], float], box: Box) -> Felt:
    """What users of DCTCP's queue feel by its cycles; or where some don't tell it, points that are the worst of those
    that do and of those that don't: with the least utilization, and with the longest delays.

    Parameters
    ----------
    cycles : mapping of Point to Cycle
    standing : callable
        Queue that the law holds without a swing, at a point [packet].
    box : Box
    """
    size, asked = box.inputs.packet_size_bytes, box.inputs.p99_s
    told: dict[Point, PredictedFigures] = {}
    silent: dict[Point, PredictedFigures] = {}
    for at, cycle in cycles.items():
        held = standing(at)
        windows = (at.rate * at.rtt_s + held) / at.flows
        kind = told if cycle.period > 0.0 and windows >= _LEAST_WINDOW else silent
        kind[at] = PredictedFigures(
            sender="dctcp",
            flows=at.flows,
            capacity_bit_per_s=at.rate * size * BITS_PER_BYTE,
            rtt_s=at.rtt_s,
            delay_mean_s=cycle.mean * at.rtt_s,
            delay_std_s=cycle.deviation * at.rtt_s,
            delay_p99_s=cycle.highest * at.rtt_s,
            utilization=1.0 - cycle.lost,
            most_p99_s=most_p99_s(asked, held / at.rate),
            least_utilization=box.inputs.utilization,
            by="cycle",
        )
    if not silent:
        return worst_of(list(told.values())), ()
    worst = []
    for kind in (silent, told) if told else (silent,):
        worst.append(min(kind, key=lambda at, of=kind: of[at].utilization))
        worst.append(max(kind, key=lambda at, of=kind: of[at].delay_p99_s / of[at].most_p99_s))
    why = "windows of a few packets, or a queue at rest"
    return None, tuple(beyond_at(at, "dctcp", size, why) for at in dict.fromkeys(worst))


def beyond_at(at: Point, sender: str, packet_bytes: float, why: str) -> BeyondLoop:
    """A point at which packets tell what users feel.

    Parameters
    ----------
    at : Point
    sender : str
    packet_bytes : float
    why : str
        Reason in words.
    """
    rate = at.rate * packet_bytes * BITS_PER_BYTE
    return BeyondLoop(sender=sender, flows=at.flows, capacity_bit_per_s=rate, rtt_s=at.rtt_s, why=why)


def in_time(subject: RedSubject, box: Box) -> bool:
    """Whether the fluid in time has this law and these senders: marks that don't adapt, and DCTCP alone."""
    marks = not (subject.drops or subject.parameters.get("adaptive"))
    small = box.rate * box.rtt[1] / box.flows[0] <= LARGEST_WINDOW
    return marks and small and set(box.inputs.senders) == {"dctcp"} and box.inputs.stretches == (1.0,)


def dctcp_in_time(subject: RedSubject, box: Box, linear: QueueVerdict | None) -> QueueVerdict:
    """Verdict of DCTCP's queue by its cycle at the box's points.

    Parameters
    ----------
    subject : RedSubject
    box : Box
    linear : QueueVerdict, optional
        Verdict of the linear loop; what a stable one says stays beside the cycle.
    """
    size = box.inputs.packet_size_bytes
    marks = [(q / size, p) for q, p in subject.marks]
    points = points_of(box, subject.name, LOOKED)
    most = max(points, key=lambda at: at.flows / (at.rate * at.rtt_s + marks[-1][0]))
    window = (most.rate * most.rtt_s + marks[-1][0]) / most.flows
    if window < MIN_WINDOW * (1.0 - 1e-9):
        return _always_marked(
            subject, points, most, window, size, "with the queue at the upper threshold", "stays above"
        )
    forgetting = 0.0 if subject.weight == 1.0 else -log1p(-subject.weight)
    limit = subject.parameters.get("limit_bytes")

    def run(at: Point) -> Cycle:
        return dctcp_ramp_cycle(at.flows, at.rate, at.rtt_s, marks, 1.0 / 16.0, forgetting, spaced=subject.spaced)

    cycles = {at: run(at) for at in points}
    cycle = worst_cycle(cycles, marks, size, None if limit is None else float(limit) / size)
    beside = QueueVerdict(status=Status.INFEASIBLE, warnings=subject.notes)
    if linear is not None and linear.status is Status.STABLE:
        beside = linear
    figures, beyond = felt(cycles, lambda at: standing_queue(at, marks, spaced=subject.spaced), box)
    if beside.predicted is not None and not any(each.period for each in cycles.values()):
        figures, beyond = beside.predicted, ()  # at rest, around which the loop knows the chance of marks
    if cycle.overflows:  # packets are lost, which the fluid leaves out
        lost = "the queue reaches its limit"
        figures, beyond = (
            None,
            tuple(beyond_at(at, "dctcp", size, lost) for at in dict.fromkeys((_worst(cycles), most))),
        )
    held = cycle.held if figures is None else figures.as_asked
    return QueueVerdict(
        status=Status.ADMISSIBLE if held else Status.STABLE,
        linear=beside.linear,
        sampled=beside.sampled,
        reach=beside.reach,
        warnings=(*beside.warnings, *_NOTES, *_looked(len(points))),
        cycle=cycle,
        predicted=figures,
        beyond=beyond,
    )


def standing_queue(at: Point, marks: list[tuple[float, float]], *, spaced: bool = False) -> float:
    """Queue at which windows of DCTCP rest, (W p/2) (1 − (1 − p)^W) = 1: some 2/W of packets are marked [packet].

    Parameters
    ----------
    at : Point
    marks : list of (float, float)
        As of `worst_cycle`.
    spaced : bool
        Whether 2p/(1 + p) of packets are marked.
    """
    low, high = 0.0, marks[-1][0]
    queues, shares = np.transpose(marks)
    for _ in range(50):
        middle = 0.5 * (low + high)
        p = float(np.interp(middle, queues, shares, left=0.0))
        p = 2.0 * p / (1.0 + p) if spaced else p
        window = (at.rate * at.rtt_s + middle) / at.flows
        enough = 0.5 * window * p * (1.0 - (1.0 - p) ** window) >= 1.0
        low, high = (low, middle) if enough else (middle, high)
    return high


def worst_cycle(
    found: Mapping[Point, Cycle],
    marks: list[tuple[float, float]],
    packet_bytes: float,
    limit_packets: float | None = None,
) -> RampCycle:
    """Cycle at the point where most of the capacity is lost, or the queue comes nearest to a packet of each flow.

    Parameters
    ----------
    found : mapping of Point to Cycle
    marks : list of (float, float)
        Queues [packet] and probabilities of the law, straight in between.
    packet_bytes : float
        [byte]
    limit_packets : float, optional
        Longest queue that the law has room for [packet].
    """
    at = _worst(found)
    cycle, product = found[at], at.rate * at.rtt_s
    return RampCycle(
        flows=at.flows,
        rtt_s=at.rtt_s,
        capacity_bit_per_s=at.rate * BITS_PER_BYTE * packet_bytes,
        thresholds_packets=(marks[0][0], marks[-1][0]),
        window_packets=(product + cycle.mean * product) / at.flows,
        fluid=_swing(cycle, at),
        lost_share=cycle.lost,
        longest_queue_packets=max(each.highest * p.rate * p.rtt_s for p, each in found.items()),
        limit_packets=limit_packets,
        points=len(found),
    )


def _worst(cycles: Mapping[Point, Cycle]) -> Point:
    """Point where most of the capacity is lost, or the queue comes nearest to a packet of each flow."""
    return min(cycles, key=lambda each: (-cycles[each].lost, _spare(each, cycles[each])))


def _spare(at: Point, cycle: Cycle) -> float:
    """Shortest queue above a packet of each flow, over the bandwidth-delay product."""
    return cycle.lowest - _SPARE * at.flows / (at.rate * at.rtt_s)


def _always_marked(
    subject: DctcpSubject | RedSubject,
    points: list[Point],
    at: Point,
    window: float,
    packet_bytes: float,
    where: str,
    so: str,
) -> QueueVerdict:
    """No equilibrium: windows below 2 packets at the threshold; packets tell what it does, there and at the largest."""
    largest = max(points, key=lambda each: each.rate * each.rtt_s / each.flows)
    why = (
        f"windows of {window:.3g} packets {where}, for {at.flows:.4g} flows at {format_quantity(at.rtt_s, 's')}; "
        f"below {MIN_WINDOW:g} every packet is marked and the queue {so}"
    )
    beyond = tuple(
        beyond_at(each, "dctcp", packet_bytes, "windows of a few packets") for each in dict.fromkeys((at, largest))
    )
    return QueueVerdict(status=Status.INFEASIBLE, warnings=(why, *subject.notes), beyond=beyond)


def _looked(points: int) -> list[str]:
    return [] if points == 1 else [f"{points} points were looked at; between them nothing is proved"]


def _swing(cycle: Cycle, at: Point) -> QueueSwing:
    """Cycle in packets and seconds, from one in bandwidth-delay products and round trips."""
    product = at.rate * at.rtt_s
    return QueueSwing(
        highest_packets=cycle.highest * product,
        lowest_packets=cycle.lowest * product,
        mean_packets=cycle.mean * product,
        period_s=cycle.period * at.rtt_s,
        marked_share=cycle.marked,
    )
