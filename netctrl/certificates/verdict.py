"""Verdict of a queue's law over a box: the loop with each sender, at the points that decide each criterion."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isinf, pi, radians
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from netctrl.certificates.box import MIN_FACTOR, MIN_PHASE_DEG, MIN_WINDOW, Box
from netctrl.certificates.ecn.ramp import dctcp_in_time, in_time
from netctrl.certificates.loops import Mixture, box_loops, loop_at, read_mixture, usual_margins
from netctrl.certificates.margin_records import SampledLoop, SenderVerdict
from netctrl.certificates.record import QueueVerdict
from netctrl.certificates.red import RedSubject
from netctrl.certificates.search.points import box_points, least_near, least_point
from netctrl.certificates.search.reach import reach
from netctrl.certificates.senders import LINUX_SENDERS, is_linux, with_senders
from netctrl.certificates.subject import Subject
from netctrl.errors import InvalidValue, NetctrlError, Status
from netctrl.frequency.batch import PointMargins
from netctrl.frequency.branch_bound import Cover, Minimum
from netctrl.frequency.records import decibel
from netctrl.frequency.sampled_gain import BOX_TOLERANCE
from netctrl.frequency.sampled_margins import point_proofs, sampled_margins
from netctrl.frequency.sampled_stability import box_keeps, box_upper_gain, point_keeps, stable_gains
from netctrl.plants.queues.queue_loop import QueueLoop
from netctrl.plants.queues.window_response import CRENO, RENO
from netctrl.units import format_quantity

__all__ = ["Worst", "absent", "least_looked_at", "queue_verdict", "worst"]

_RULE = (MIN_FACTOR, radians(MIN_PHASE_DEG))
_NOTICED_DB = 0.5
"""By how much less Linux's senders have where a certificate of others says so."""
_SEVERITY = (Status.ADMISSIBLE, Status.STABLE, Status.UNSTABLE, Status.INFEASIBLE)
_SAME = 1e-3
"""Difference of margins that is rounding [dB or degree]."""

Loops = list[tuple[Mixture, QueueLoop]]
"""Loops of a law in a box, with their senders."""


class Worst(NamedTuple):
    """Loop and point of a box with the least gain margin."""

    mixture: Mixture
    loop: QueueLoop
    flows: float
    """Flows of the loop."""
    rtt: float
    """Round-trip time without the queue [s]."""
    unstable: bool
    """Stability of the loop there."""
    factor: float
    """Factor attained there: above 1, by how much the gain may grow; else by how much it must fall."""
    proved: float | None
    """Bound of the factor in the whole box; that of the unstable point where there is one. None: only points were
    looked at."""

    @property
    def least(self) -> float:
        """Factor on which a verdict rests: the proved one, or what was attained where nothing is proved."""
        return self.factor if self.proved is None else self.proved


class _Shown(NamedTuple):
    """A loop of which something is proved in a box."""

    loop: QueueLoop
    starts: list[tuple[float, float]]
    """Where the proof begins: flows and round-trip time [s]."""
    leaves: list[Cover]
    """Cells that showed it; none at a point."""


class _Judged(NamedTuple):
    """A box with one sender or mixture."""

    verdict: SenderVerdict
    loops: Loops
    phase: SampledLoop | None = None
    """The loop at the point with the least phase margin; None where it isn't stable."""
    reduction: SampledLoop | None = None
    """The same at the point where the gain may fall least."""
    why: str = ""
    """Why it has no equilibrium; empty: it has one."""

    @property
    def points(self) -> list[SampledLoop]:
        """Those that decide."""
        return [each for each in (self.verdict.sampled, self.phase, self.reduction) if each is not None]


def queue_verdict(subject: Subject, box: Box) -> QueueVerdict:
    """Verdict of the linear loop; where DCTCP's flows don't keep the design rule in it, that of their fluid in time."""
    if not isinstance(subject, RedSubject) or not in_time(subject, box):
        return _linear_verdict(subject, box)
    linear = None if subject.steps else _linear_verdict(subject, box)
    if linear is not None and linear.status is Status.ADMISSIBLE:
        return linear
    return dctcp_in_time(subject, box, linear)


def _linear_verdict(subject: Subject, box: Box) -> QueueVerdict:
    """The worst status of the senders, and of each criterion the point that decides it among all of them."""
    boxes = [with_senders(box, (name,)) for name in box.inputs.senders]
    reasons = [absent(subject, one) for one in boxes]
    loops_of = [[] if reason else box_loops(subject, one) for one, reason in zip(boxes, reasons, strict=True)]
    below = _decides(loops_of, boxes)
    each = [
        _absent(one, reason) if reason else _of_sender(loops, one, below)
        for one, reason, loops in zip(boxes, reasons, loops_of, strict=True)
    ]
    status = max((found.verdict.status for found in each), key=_SEVERITY.index)
    senders = tuple(found.verdict for found in each)
    if status is Status.INFEASIBLE:
        return QueueVerdict(
            status=status,
            linear=None,
            sampled=None,
            reach=None,
            warnings=(*(found.why for found in each if found.why), *subject.notes),
            senders=senders,
        )
    sampled, phase, reduction = _least_of(each)
    loops = [pair for found in each for pair in found.loops]
    lacking_s = min((at.rtt_s for found in each for at in found.points if not at.keeps), default=inf)
    return QueueVerdict(
        status=status,
        linear=usual_margins(subject, box),
        sampled=sampled,
        reach=reach(subject, box, likely=isinf(lacking_s), lacking_s=lacking_s),
        warnings=(*subject.notes, *_about_senders(subject, loops, box), *_about_proofs(loops, box)),
        least_phase=phase,
        least_reduction=reduction,
        senders=senders,
    )


def _decides(loops_of: list[Loops], boxes: list[Box]) -> float:
    """Factor up to which gain margins are looked for in boxes of one sender each, with their loops: to the least of all
    their points, and to what the rule asks for. Larger ones decide nothing, and their proof takes the most cells."""
    looked = [least_looked_at(*each) for each in zip(loops_of, boxes, strict=True) if each[0] and not each[1].point]
    least = min((at.factor for at in looked if not at.unstable), default=inf)
    return max(least, MIN_FACTOR / (1.0 - 2.0 * BOX_TOLERANCE))


def _least_of(each: list[_Judged]) -> tuple[SampledLoop, SampledLoop | None, SampledLoop | None]:
    """Points with the least gain margin, phase margin and room for a smaller gain of all senders; None for those that
    are the first, and where a sender is unstable."""
    margins = [found.verdict.sampled for found in each if found.verdict.sampled is not None]
    sampled = min(margins, key=lambda at: at.gain_margin_db)
    proved = [at.gain_margin_db_proved for at in margins if at.gain_margin_db_proved is not None]
    sampled = replace(sampled, gain_margin_db_proved=min(proved) if len(proved) == len(margins) else None)
    if not sampled.stable:
        return sampled, None, None
    points = [at for found in each for at in found.points]
    phase = min(points, key=lambda at: at.phase_margin_deg)
    reduction = min(points, key=_room)
    return (
        sampled,
        phase if phase.phase_margin_deg < sampled.phase_margin_deg - _SAME else None,
        reduction if _room(reduction) < _room(sampled) - _SAME else None,
    )


def _absent(box: Box, reason: str) -> _Judged:
    """A box of one sender or mixture that has no equilibrium somewhere."""
    verdict = SenderVerdict(sender=box.inputs.senders[0], status=Status.INFEASIBLE, sampled=None)
    return _Judged(verdict, [], why=reason)


def _of_sender(loops: Loops, box: Box, below: float) -> _Judged:
    """A box of one sender or mixture; its gain margin is looked for up to the factor `below`."""
    name = box.inputs.senders[0]
    found, shown = worst(loops, box, below)
    sampled = _sampled(box, found)
    if not sampled.stable:
        return _Judged(SenderVerdict(sender=name, status=Status.UNSTABLE, sampled=sampled), loops)
    looked = _Judged(
        SenderVerdict(sender=name, status=Status.STABLE, sampled=sampled),
        loops,
        _least(loops, box, lambda each: each.phase),
        _least(loops, box, lambda each: each.reduction),
    )
    if not all(at.keeps for at in looked.points) or found.least < MIN_FACTOR or not _hold(loops, box, shown):
        return looked
    return looked._replace(verdict=replace(looked.verdict, status=Status.ADMISSIBLE))


def _about_senders(subject: Subject, loops: Loops, box: Box) -> list[str]:
    """Warning that Linux's senders have less in this box than those that were asked for, which are sent at a rate; or
    none."""
    asked = [read_mixture(name) for name in box.inputs.senders]
    if not is_linux(subject) or not all(any(each in (RENO, CRENO) for each, _ in mixture.parts) for mixture in asked):
        return []
    ours = with_senders(box, LINUX_SENDERS)
    try:
        reason = absent(subject, ours)
        if reason is not None:
            return [f"with Linux's senders there is no equilibrium in this box: {reason}"]
        least, theirs = least_looked_at(box_loops(subject, ours), ours), least_looked_at(loops, box)
    except InvalidValue:  # RED has no loop of these with several round-trip times
        return []
    less = decibel(theirs.factor) - decibel(least.factor)
    if less < _NOTICED_DB:
        return []
    flows = "" if box.inputs.flows is None else f" with {least.flows:.4g} flows"
    return [
        f"Linux's senders have {less:.1f} dB less than {theirs.mixture.text} in this box: {least.mixture.text} "
        f"{decibel(least.factor):.2f} dB{flows} at {format_quantity(float(f'{least.rtt:.4g}'), 's')}"
    ]


def least_looked_at(loops: Loops, box: Box) -> Worst:
    """Least gain margin of loops at the points of a box from which proofs begin, without a proof."""
    return min((each for found in loops for each in _looked_at(*found, box)), key=lambda each: each.factor)


def _about_proofs(loops: Loops, box: Box) -> list[str]:
    """Warning that nothing is proved of the loops without bounds over cells; or none."""
    looked = sum(len(box_points(loop, box)) for _, loop in loops if loop.several_clocks)
    between = "" if box.point else f", at {looked} points and at those near the worst of them"
    why = "acknowledgements clock flows of several round-trip times: no bound over cells is known, nothing is proved"
    return [f"{why}; margins are exact{between}"] if looked else []


def absent(subject: Subject, box: Box) -> str | None:
    """Why the box has a point without an equilibrium that the loop describes; None: it has no such point."""
    for mixture in map(read_mixture, box.inputs.senders):
        most = box.flows[1], box.rtt[0]
        loop = loop_at(subject, mixture, box, *most)
        windows = loop.windows(*most)
        least = int(np.argmin(windows))
        if windows[least] < MIN_WINDOW * (1.0 - 1e-9):
            return (
                f"{mixture.text}: windows of {windows[least]:.3g} packets at the most flows and the shortest "
                f"round-trip time; below {MIN_WINDOW:g} senders wait for time-outs, which no window law describes"
            )
        output = float(loop.computed(loop.output(*most)))
        if output > subject.greatest:
            above = f"above {subject.greatest:.4g} {subject.beyond}"
            return f"{mixture.text}: the law's output would be {output:.3g}; {above}"
    return None


def _hold(loops: Loops, box: Box, shown: list[_Shown]) -> bool:
    """A stable box keeps the rule, provably where bounds are known; `shown` as of `worst`."""
    if loops[0][1].several_clocks:
        return all(point_keeps(loop, *point, *_RULE) for _, loop in loops for point in box_points(loop, box))
    if box.point:
        return all(point_proofs(loop, *box.point, *_RULE).keeps for loop, *_ in shown)
    return all(box_keeps(loop, box.flows, box.rtt, *_RULE, starts, Cover.of(leaves)) for loop, starts, leaves in shown)


def worst(loops: Loops, box: Box, below: float) -> tuple[Worst, list[_Shown]]:
    """Least gain margin of all the law's loops in the box, proved where the loops are stable and have bounds; and what
    showed it, for each loop of which something is proved.

    Nothing is proved beyond what the least of the loops has, and the factor `below`.
    """
    looked = [point for mixture, loop in loops for point in _looked_at(mixture, loop, box)]
    best, proved, shown = min(looked, key=lambda each: each.factor), inf, []
    if best.unstable:
        return best, shown
    curved = not box.point and any(k.sender.curve for k in best.loop.classes)
    if best.loop.several_clocks or (curved and best.factor < MIN_FACTOR):
        # Where Cubic's margin is small, tens of thousands of cells prove nothing, and the verdict is known.
        flows, rtt, factor = least_near(best.loop, box, best.flows, best.rtt)
        return best._replace(flows=flows, rtt=rtt, factor=factor, unstable=factor <= 1.0, proved=None), shown
    for mixture, loop in loops:
        starts = loop.starts(box.flows, box.rtt)
        if not starts:
            continue
        leaves: list[Cover] = []
        most = min(best.factor, below)
        if box.point:
            limit = point_proofs(loop, *box.point, *_RULE).upper
        else:
            limit = box_upper_gain(loop, box.flows, box.rtt, starts, leaves, below=most)
        shown.append(_Shown(loop, starts, leaves))
        proved = min(proved, limit.proved)
        if limit.found < most:
            flows, rtt = (float(np.exp(u)) for u in limit.where[1:3])
            best = Worst(mixture, loop, flows, rtt, limit.found <= 1.0, limit.found, limit.proved)
    return best._replace(proved=proved), shown


def _looked_at(mixture: Mixture, loop: QueueLoop, box: Box) -> list[Worst]:
    """The loop at the points from which its proof begins, or at all that are looked at."""
    points = []
    for flows, rtt in box_points(loop, box) if loop.several_clocks else loop.starts(box.flows, box.rtt):
        found = stable_gains(loop, flows, rtt)
        points.append(Worst(mixture, loop, flows, rtt, found.unstable_poles > 0, found.factor, found.factor))
    return points


def _least(loops: Loops, box: Box, criterion: Callable[[PointMargins], np.ndarray]) -> SampledLoop:
    """The loop at the point of the box with the least value of a criterion."""
    mixture, loop, flows, rtt = least_point(loops, box, criterion)
    known = stable_gains(loop, flows, rtt)
    return _sampled(box, Worst(mixture, loop, flows, rtt, known.unstable_poles > 0, known.factor, None))


def _room(found: SampledLoop) -> float:
    """By how much the gain may fall [dB]."""
    return inf if found.gain_reduction_db is None else -found.gain_reduction_db


def _sampled(box: Box, found: Worst) -> SampledLoop:
    loop, flows, rtt = found.loop, found.flows, found.rtt
    x, lower = float(loop.output(flows, rtt)), stable_gains(loop, flows, rtt).lower
    stable, bounded = not found.unstable, not loop.several_clocks and found.proved is not None
    asked = box.asked(flows)
    at = Minimum(found.least, found.factor, np.array([pi, np.log(flows), np.log(rtt), 0.0]), 0)
    proofs = point_proofs(loop, *box.point, *_RULE) if box.point and stable and bounded else None
    try:
        exact = sampled_margins(loop, flows, rtt, 1.0, at, stable=stable, proofs=proofs, bounded=bounded)
    except NetctrlError:  # no proof was decided: the verdict rests on others, and these margins are those of a scan
        exact = sampled_margins(loop, flows, rtt, 1.0, at, stable=stable, bounded=False)
    return SampledLoop(
        sender=found.mixture.text,
        flows=None if asked is None else asked[0],
        capacity_bit_per_s=None if asked is None else asked[1],
        rtt_s=rtt,
        queue_delay_s=float(loop.standing(x)),
        windows_packets=tuple(float(w) for w in loop.windows(flows, rtt)),
        probabilities=tuple(float(k.factor * x**k.power) for k in loop.classes),
        stable=stable,
        gain_margin_db=decibel(found.factor),
        gain_margin_db_proved=None if found.unstable or found.proved is None else decibel(found.proved),
        gain_reduction_db=decibel(lower) if lower > 0.0 and not found.unstable else None,
        phase_margin_deg=exact.phase_margin_deg,
        delay_margin_s=None if isinf(exact.delay_margin_s) else exact.delay_margin_s,
        disk_margin=exact.disk_margin,
    )
