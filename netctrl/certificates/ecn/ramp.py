"""DCTCP and DCQCN below two thresholds that make no linear loop, judged by their fluids in time.

Where the probability rises over fewer bytes than the queue swings, or the queue stands above both thresholds, a slope
says nothing. The queue is judged as at a step then, by its cycle, so that the verdict and its figures move continuously
with the thresholds until they are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import log1p

from netctrl.certificates.box import MIN_WINDOW, Box
from netctrl.certificates.ecn.points import Point, points_of
from netctrl.certificates.ecn.record import QueueSwing, RampCycle
from netctrl.certificates.record import QueueVerdict
from netctrl.certificates.red import RedSubject
from netctrl.errors import Status
from netctrl.plants.ecn.dctcp import Cycle
from netctrl.plants.ecn.ramp import dctcp_ramp_cycle
from netctrl.units import BITS_PER_BYTE, format_quantity

__all__ = ["IN_TIME", "dctcp_in_time", "in_time", "worst_cycle"]

_LOOKED = (13, 5, 3)
"""Flows, round-trip times and rates at which the fluid of a box is integrated."""
_LARGEST = 1e5
"""Window of a flow, whose cycle takes thousands of round trips [packet]."""
IN_TIME = (
    "small deviations from an equilibrium don't describe this queue: the verdict is that of the nonlinear fluid, "
    "integrated in time"
)
"""Note of such a verdict."""
_NOTES = (
    IN_TIME,
    "the fluid has equal flows in step: on packets, flows out of step swing less, and windows of a few packets, which "
    "move by whole ones, lose up to 5 % of the capacity more",
)


def in_time(subject: RedSubject, box: Box) -> bool:
    """Whether the fluid in time has this law and these senders: marks that don't adapt, and DCTCP alone."""
    marks = not (subject.drops or subject.parameters.get("adaptive"))
    small = box.rate * box.rtt[1] / box.flows[0] <= _LARGEST
    return marks and small and set(box.inputs.senders) == {"dctcp"} and box.inputs.stretches == (1.0,)


def dctcp_in_time(subject: RedSubject, box: Box, linear: QueueVerdict | None) -> QueueVerdict:
    """Verdict of DCTCP's queue by its cycle at the box's points; what a stable linear loop says stays beside it."""
    size = box.inputs.packet_size_bytes
    marks = [(q / size, p) for q, p in subject.marks]
    points = points_of(box, subject.name, _LOOKED)
    most = max(points, key=lambda at: at.flows / (at.rate * at.rtt_s + marks[-1][0]))
    window = (most.rate * most.rtt_s + marks[-1][0]) / most.flows
    if window < MIN_WINDOW * (1.0 - 1e-9):
        why = (
            f"windows of {window:.3g} packets with the queue at the upper threshold, for {most.flows:.4g} flows at "
            f"{format_quantity(most.rtt_s, 's')}; below {MIN_WINDOW:g} every packet is marked and the queue stays above"
        )
        return QueueVerdict(
            status=Status.INFEASIBLE, linear=None, sampled=None, reach=None, warnings=(why, *subject.notes)
        )
    forgetting = 0.0 if subject.weight == 1.0 else -log1p(-subject.weight)
    limit = subject.parameters.get("limit_bytes")

    def run(at: Point) -> Cycle:
        return dctcp_ramp_cycle(at.flows, at.rate, at.rtt_s, marks, 1.0 / 16.0, forgetting, spaced=subject.spaced)

    cycle = worst_cycle(run, points, marks, size, None if limit is None else float(limit) / size)
    stable = linear is not None and linear.status is Status.STABLE
    kept = linear if stable else None
    between = () if len(points) == 1 else (f"{len(points)} points were looked at; between them nothing is proved",)
    return QueueVerdict(
        status=Status.ADMISSIBLE if cycle.held else Status.STABLE,
        linear=None if kept is None else kept.linear,
        sampled=None if kept is None else kept.sampled,
        reach=None if kept is None else kept.reach,
        warnings=(*(subject.notes if kept is None else kept.warnings), *_NOTES, *between),
        cycle=cycle,
    )


def worst_cycle(
    run: Callable[[Point], Cycle],
    points: Iterable[Point],
    marks: list[tuple[float, float]],
    packet_bytes: float,
    limit_packets: float | None = None,
) -> RampCycle:
    """Cycle at the point where most of the capacity is lost, or the queue comes nearest to a packet of each flow."""
    found = {at: run(at) for at in points}
    spare = {at: cycle.lowest - at.flows / (at.rate * at.rtt_s) for at, cycle in found.items()}
    at = min(found, key=lambda each: (-found[each].lost, spare[each]))
    cycle, product = found[at], at.rate * at.rtt_s
    longest = max(each.highest * p.rate * p.rtt_s for p, each in found.items())
    return RampCycle(
        flows=at.flows,
        rtt_s=at.rtt_s,
        capacity_bit_per_s=at.rate * BITS_PER_BYTE * packet_bytes,
        thresholds_packets=(marks[0][0], marks[-1][0]),
        window_packets=(product + cycle.mean * product) / at.flows,
        fluid=QueueSwing(
            highest_packets=cycle.highest * product,
            lowest_packets=cycle.lowest * product,
            mean_packets=cycle.mean * product,
            period_s=cycle.period * at.rtt_s,
            marked_share=cycle.marked,
        ),
        lost_share=cycle.lost,
        longest_queue_packets=longest,
        limit_packets=limit_packets,
        points=len(found),
    )
