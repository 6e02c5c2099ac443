"""Verdict of a queue's law over a box: the loop with each sender, at the points that decide each criterion.

How a verdict is proved. The loop L of a law at gain 1 has one open-loop pole at z = 1 and none outside the unit circle.
As its gain k grows from 0, closed-loop poles cross the circle where k L = −1. The number of unstable poles is counted
at one point of the box (Nyquist's criterion, `stable_gains`); if no point of the box has k L = −1 for any k from 1 to
some factor, that number is the same at every point, since poles move continuously with N, tau and k. So three
statements over cells of (angle, ln N, ln tau), by branch and bound with discs that contain L, decide:

1. the least factor k >= 1 with k L = −1 anywhere in the box is the proved gain margin (`box_upper_gain`);
2. for the design rule no k from 1/2 to 2 has k L = −1: 6 dB of growth and, for loops that a smaller gain makes
   unstable, 6 dB of reduction;
3. where |L| = 1 the angle from −1 is at least 30 degrees (2 and 3: `box_keeps`).

Each range of x in which the law's gains are constants is a loop of its own on its part of the box; together they cover
it. What has no bound over cells (flows of several round-trip times that acknowledgements clock) is judged at points.
"""

from __future__ import annotations

from dataclasses import replace as replace_loop
from math import inf, isinf, pi, radians
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from netctrl.certificates.box import MIN_FACTOR, MIN_PHASE_DEG, MIN_WINDOW, Box
from netctrl.certificates.ecn.in_time import dctcp_in_time, in_time
from netctrl.certificates.loops import (
    LINUX_SENDERS,
    Mixture,
    box_loops,
    classes_of,
    is_linux,
    loop_at,
    read_mixture,
    usual_margins,
)
from netctrl.certificates.point_records import (
    GUARD_GAIN_DB,
    GUARD_PHASE_DEG,
    MIN_GAIN_DB,
    SampledLoop,
    SenderVerdict,
    rounded,
)
from netctrl.certificates.predicted import Predicted, predicted, without_loop
from netctrl.certificates.record import QueueVerdict
from netctrl.certificates.red import RedSubject
from netctrl.certificates.search import box_points, least_near, least_point, reach
from netctrl.certificates.subject import Subject
from netctrl.core.errors import NetctrlError, Status
from netctrl.frequency.branch_bound import Cover, Minimum
from netctrl.frequency.margin_grid import gain_factors
from netctrl.frequency.records import decibel
from netctrl.frequency.sampled_gain import BOX_TOLERANCE
from netctrl.frequency.sampled_margins import point_proofs, sampled_margins
from netctrl.frequency.sampled_stability import box_keeps, box_upper_gain, point_keeps, stable_gains
from netctrl.plants.queues.queue_laws import SampledPi
from netctrl.plants.queues.queue_loop import QueueLoop
from netctrl.plants.queues.window_response import CRENO, RENO

_RULE = (MIN_GAIN_DB, MIN_PHASE_DEG)
"""Margins that are asked for [dB, degree]."""
_GUARD = (GUARD_GAIN_DB, GUARD_PHASE_DEG)
"""The same where delays in ms are known and as asked."""
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
    points: list[SampledLoop]
    """The loop where margins are least, one point for each criterion."""


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
    boxes = [box.with_senders(name) for name in box.inputs.senders]
    reasons = [absent(subject, one) for one in boxes]
    loops_of = [[] if reason else box_loops(subject, one) for one, reason in zip(boxes, reasons, strict=True)]
    # Gain margins are looked for to the least that points of all senders have, and to what the rule asks for: larger
    # ones decide nothing, and their proof takes the most cells.
    looked = [
        least_looked_at(loops, one) for loops, one in zip(loops_of, boxes, strict=True) if loops and not one.point
    ]
    least = min((at.factor for at in looked if not at.unstable), default=inf)
    below = max(least, MIN_FACTOR / (1.0 - 2.0 * BOX_TOLERANCE))
    felt = Predicted(None, ())
    if not any(reasons) and not subject.jumps:
        felt = predicted([pair for loops in loops_of for pair in loops], box, subject)
    rule = _GUARD if felt.figures is not None and felt.figures.as_asked else _RULE
    each = [
        _Judged(SenderVerdict(sender=one.inputs.senders[0], status=Status.INFEASIBLE, sampled=None), [], [])
        if reason
        else _of_sender(loops, one, below, rule)
        for one, reason, loops in zip(boxes, reasons, loops_of, strict=True)
    ]
    status = max((found.verdict.status for found in each), key=_SEVERITY.index)
    senders = tuple(found.verdict for found in each)
    if status is Status.INFEASIBLE:
        why = (*(reason for reason in reasons if reason), *subject.notes)
        beyond = without_loop(boxes, reasons)
        return QueueVerdict(status=status, warnings=why, senders=senders, beyond=beyond)
    if status is Status.ADMISSIBLE and felt.figures is not None and not felt.figures.as_asked:
        status = Status.STABLE

    margins = [found.sampled for found in senders if found.sampled is not None]
    proved = [at.gain_margin_db_proved for at in margins if at.gain_margin_db_proved is not None]
    sampled = min(margins, key=lambda at: at.gain_margin_db)
    sampled = replace(sampled, gain_margin_db_proved=min(proved) if len(proved) == len(margins) else None)
    points = [at for found in each for at in found.points]
    phase = min(points, key=lambda at: at.phase_margin_deg)
    reduction = min(points, key=_room)
    less_phase = sampled.stable and phase.phase_margin_deg < sampled.phase_margin_deg - _SAME
    less_room = sampled.stable and _room(reduction) < _room(sampled) - _SAME
    lacking_s = min((at.rtt_s for at in points if not at.keeps()), default=inf)

    loops = [pair for found in each for pair in found.loops]
    clocked = sum(len(box_points(loop, box)) for _, loop in loops if loop.several_clocks)
    between = "" if box.point else f", at {clocked} points and at those near the worst of them"
    why = "acknowledgements clock flows of several round-trip times: no bound over cells is known, nothing is proved"
    unproved = [f"{why}; margins are exact{between}"] if clocked else []
    return QueueVerdict(
        status=status,
        linear=usual_margins(subject, box),
        sampled=sampled,
        reach=reach(subject, box, likely=isinf(lacking_s), lacking_s=lacking_s),
        warnings=(*subject.notes, *_about_senders(subject, box, sampled, loops), *unproved),
        least_phase=phase if less_phase else None,
        least_reduction=reduction if less_room else None,
        senders=senders,
        predicted=felt.figures,
        beyond=felt.beyond,
    )


def _of_sender(loops: Loops, box: Box, below: float, rule: tuple[float, float]) -> _Judged:
    """A box of one sender or mixture; its gain margin is looked for up to the factor `below`, and a rule [dB, degree]
    is proved."""
    name, asked = box.inputs.senders[0], (10.0 ** (rule[0] / 20.0), radians(rule[1]))
    found, shown = _worst(loops, box, below, asked)
    sampled = _sampled(box, found, asked)
    if not sampled.stable:
        return _Judged(SenderVerdict(sender=name, status=Status.UNSTABLE, sampled=sampled), loops, [sampled])
    points = [sampled]
    for criterion in () if box.point else ("phase", "reduction"):
        mixture, loop, flows, rtt = least_point(loops, box, lambda each, of=criterion: getattr(each, of))
        known = stable_gains(loop, flows, rtt)
        at = Worst(mixture, loop, flows, rtt, known.unstable_poles > 0, known.factor, None)
        points.append(_sampled(box, at, asked))
    # The verdict rests on the proved factor, or on what was attained where nothing is proved.
    enough = (found.factor if found.proved is None else found.proved) >= asked[0]
    held = enough and all(at.keeps(*rule) for at in points)
    if held and loops[0][1].several_clocks:
        held = all(point_keeps(loop, *point, *asked) for _, loop in loops for point in box_points(loop, box))
    elif held and box.point:
        held = all(point_proofs(loop, *box.point, *asked).keeps for loop, *_ in shown)
    elif held:  # the cells that showed the gain margin are fine enough for most of the rule
        held = all(
            box_keeps(loop, box.flows, box.rtt, *asked, starts, Cover.of(leaves)) for loop, starts, leaves in shown
        )
    status = Status.ADMISSIBLE if held else Status.STABLE
    return _Judged(SenderVerdict(sender=name, status=status, sampled=sampled), loops, points)


def _about_senders(subject: Subject, box: Box, asked: SampledLoop, loops: Loops) -> list[str]:
    """Warning that Linux's senders have less in this box than those that were asked for, which are sent at a rate; or
    none. Their margin is looked for at the points from which proofs begin, of which the least is made exact.

    Parameters
    ----------
    subject : Subject
    box : Box
    asked : SampledLoop
        The point with the least gain margin of the senders that were asked for.
    loops : list of (Mixture, QueueLoop)
        Of these.
    """
    mixtures = [read_mixture(name) for name in box.inputs.senders]
    rated = all(any(sender in (RENO, CRENO) for sender, _ in mixture.parts) for mixture in mixtures)
    several = isinstance(subject, RedSubject) and len(set(box.inputs.stretches)) > 1  # no loop of clocked senders
    if not rated or several or not is_linux(subject):
        return []
    ours = box.with_senders(*LINUX_SENDERS)
    if reason := absent(subject, ours):
        return [f"with Linux's senders there is no equilibrium in this box: {reason}"]
    # A law in continuous time is looked at up to where the senders that were asked for have margins: this is no proof.
    apart = min(loop.continuous_s for _, loop in loops)
    found = []
    for mixture in map(read_mixture, LINUX_SENDERS):
        for each in subject.loops(
            classes_of(subject, mixture, box.inputs.stretches), box.rate, box.inputs.packet_size_bytes
        ):
            loop = each if isinstance(each.law, SampledPi) else replace_loop(each, continuous_s=apart)
            points = box_points(loop, box) if loop.several_clocks else loop.starts(box.flows, box.rtt)
            if points:
                factors = gain_factors(loop, *np.transpose(points))
                found.append((float(factors.min()), mixture, loop, points[int(factors.argmin())]))
    _, mixture, loop, (flows, rtt) = min(found, key=lambda each: each[0])
    least = decibel(stable_gains(loop, flows, rtt).factor)
    if (less := asked.gain_margin_db - least) < _NOTICED_DB:
        return []
    where = ("" if box.inputs.flows is None else f" with {flows:.4g} flows") + f" at {rounded(rtt, 's')}"
    return [
        f"Linux's senders have {less:.1f} dB less than {asked.sender} in this box: {mixture.text} {least:.2f} dB{where}"
    ]


def absent(subject: Subject, box: Box) -> str | None:
    """Why the box has a point without an equilibrium that the loop describes; None: it has no such point.

    The output rises with N and falls with tau, windows the other way: most flows at the shortest round trip decide.
    """
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
        output = float(loop.law.computed(loop.output(*most)))
        if output > subject.greatest:
            above = f"above {subject.greatest:.4g} {subject.beyond}"
            return f"{mixture.text}: the law's output would be {output:.3g}; {above}"
    return None


def least_looked_at(loops: Loops, box: Box) -> Worst:
    """Least gain margin of loops at the points of a box from which proofs begin, or at all that are looked at where
    nothing is proved."""
    found = []
    for mixture, loop in loops:
        for flows, rtt in box_points(loop, box) if loop.several_clocks else loop.starts(box.flows, box.rtt):
            gains = stable_gains(loop, flows, rtt)
            found.append(Worst(mixture, loop, flows, rtt, gains.unstable_poles > 0, gains.factor, gains.factor))
    return min(found, key=lambda each: each.factor)


def _worst(loops: Loops, box: Box, below: float, asked: tuple[float, float]) -> tuple[Worst, list[_Shown]]:
    """Least gain margin of all the law's loops in the box, proved where the loops are stable and have bounds.

    Nothing is proved beyond what the least of the loops has, and the factor `below`.

    Parameters
    ----------
    loops : list of (Mixture, QueueLoop)
    box : Box
    below : float
        Factor of the gains from which on nothing is looked for.
    asked : (float, float)
        The rule, a factor and an angle [rad], whose proof at a point shares its discs.

    Returns
    -------
    (Worst, list)
        The least, and what showed it, for each loop of which something is proved.
    """
    best, proved, shown = least_looked_at(loops, box), inf, []
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
            limit = point_proofs(loop, *box.point, *asked).upper
        else:
            limit = box_upper_gain(loop, box.flows, box.rtt, starts, leaves, below=most)
        shown.append(_Shown(loop, starts, leaves))
        proved = min(proved, limit.proved)
        if limit.found < most:
            flows, rtt = (float(np.exp(u)) for u in limit.where[1:3])
            best = Worst(mixture, loop, flows, rtt, limit.found <= 1.0, limit.found, limit.proved)
    return best._replace(proved=proved), shown


def _room(found: SampledLoop) -> float:
    """By how much the gain may fall [dB]."""
    return inf if found.gain_reduction_db is None else -found.gain_reduction_db


def _sampled(box: Box, found: Worst, asked: tuple[float, float]) -> SampledLoop:
    """Record of the loop at a point, with all its margins; proved where its response has bounds."""
    loop, flows, rtt = found.loop, found.flows, found.rtt
    x, lower = float(loop.output(flows, rtt)), stable_gains(loop, flows, rtt).lower
    stable, bounded = not found.unstable, not loop.several_clocks and found.proved is not None
    where = box.asked(flows)
    least = found.factor if found.proved is None else found.proved
    at = Minimum(least, found.factor, np.array([pi, np.log(flows), np.log(rtt), 0.0]), 0)
    proofs = point_proofs(loop, *box.point, *asked) if box.point and stable and bounded else None
    try:
        exact = sampled_margins(loop, flows, rtt, 1.0, at, stable=stable, proofs=proofs, bounded=bounded)
    except NetctrlError:  # no proof was decided: the verdict rests on others, and these margins are those of a scan
        exact = sampled_margins(loop, flows, rtt, 1.0, at, stable=stable, bounded=False)
    return SampledLoop(
        sender=found.mixture.text,
        flows=None if where is None else where[0],
        capacity_bit_per_s=None if where is None else where[1],
        rtt_s=rtt,
        queue_delay_s=float(loop.standing(x)),
        windows_packets=tuple(float(w) for w in loop.windows(flows, rtt)),
        probabilities=tuple(float(k.factor * x**k.power) for k in loop.classes),
        stable=stable,
        gain_margin_db=decibel(found.factor),
        gain_margin_db_proved=None if found.unstable or found.proved is None else decibel(found.proved),
        gain_reduction_db=decibel(lower) if lower > 0.0 and stable else None,
        phase_margin_deg=exact.phase_margin_deg,
        delay_margin_s=None if isinf(exact.delay_margin_s) else exact.delay_margin_s,
        disk_margin=exact.disk_margin,
    )
