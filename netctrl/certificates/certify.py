"""Certificates of queue laws as people run them, over boxes of flows, round-trip times, rates and senders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import signature
from math import inf, isinf, pi, radians
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from netctrl.certificates.box import MIN_FACTOR, MIN_GAIN_DB, MIN_PHASE_DEG, MIN_WINDOW, Box, Ends
from netctrl.certificates.docsis import docsis_pie
from netctrl.certificates.ecn.subjects import ECN_SUBJECTS, EcnSubject
from netctrl.certificates.inputs.tc import NO_LAW
from netctrl.certificates.loops import Mixture, box_loops, classes_of, read_mixture, usual_margins
from netctrl.certificates.points import box_points, least_near
from netctrl.certificates.reach import reach
from netctrl.certificates.record import (
    CERTIFICATE_SCHEMA,
    CertifiedLaw,
    QueueCertificate,
    QueueVerdict,
    SampledLoop,
    SenderVerdict,
)
from netctrl.certificates.red import RED_SUBJECTS
from netctrl.certificates.senders import LINUX_SENDERS, is_linux, judged_box, with_senders
from netctrl.certificates.subject import SUBJECTS, Subject, fq_pie
from netctrl.errors import InvalidValue, NetctrlError, Status, did_you_mean
from netctrl.frequency.branch_bound import Minimum
from netctrl.frequency.records import decibel
from netctrl.frequency.sampled_margins import PointProofs, point_proofs, sampled_margins
from netctrl.frequency.sampled_stability import BoxProofs, box_proofs, point_keeps, stable_gains
from netctrl.model.io.provenance import provenance
from netctrl.plants.queues.queue_loop import QueueLoop
from netctrl.plants.queues.window_response import CRENO, RENO
from netctrl.units import format_quantity, long_rtt

__all__ = [
    "MIN_GAIN_DB",
    "MIN_PHASE_DEG",
    "Worst",
    "absent",
    "certify",
    "check_parameters",
    "described",
    "least_looked_at",
    "subject_of",
    "worst",
]

_RULE = (MIN_FACTOR, radians(MIN_PHASE_DEG))

_NOTICED_DB = 0.5
"""By how much less Linux's senders have where a certificate of others says so."""
_SEVERITY = (Status.ADMISSIBLE, Status.STABLE, Status.UNSTABLE, Status.INFEASIBLE)

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


def certify(
    law: str | Subject | EcnSubject,
    *,
    rtt_s: float | Ends,
    flows: float | Ends | None = None,
    capacity_bit_per_s: float | Ends | None = None,
    window_packets: float | Ends | None = None,
    packet_size_bytes: float = 1500.0,
    senders: str | Iterable[str] | None = None,
    stretches: Sequence[float] = (1.0,),
    parameters: Mapping[str, Any] | None = None,
    argv: Iterable[str] = (),
) -> QueueCertificate:
    """Certificate of a queue's law: exact margins of the loop that runs, proved for every point of a box.

    Parameters
    ----------
    law : str or Subject
        "pie", "fq_pie", "docsis-pie", "pi2", "dualpi2", "red", "wred", "dctcp", "dcqcn", or a subject of
        `netctrl.certificates`.
    rtt_s : float or (float, float)
        Round-trip time without the queue [s].
    flows, capacity_bit_per_s : float or (float, float), optional
        Number of flows and rate of the link [bit/s]; both, or the window.
    window_packets : float or (float, float), optional
        Window of one flow [packet], at one round-trip time.
    packet_size_bytes : float
        [byte]
    senders : str or iterable of str, optional
        "linux-creno", "linux-reno", "reno", "cubic", "creno" (Cubic where it is Reno-friendly), "dctcp", or mixtures as
        in "reno+dctcp": the certificate holds for each. By default PI laws of Linux have "linux-creno", "linux-reno",
        and "cubic" where its curve is in play; "dctcp" and "dcqcn" the senders of their names; all others "reno".
    stretches : sequence of float
        Round-trip times of equal groups of flows, over `rtt_s`. With several, certificates of senders that
        acknowledgements clock are exact at points, and prove nothing between them.
    parameters : mapping, optional
        The law's, in SI units, as in {"alpha": 0.16, "target_s": 0.015}; else its defaults.
    argv : iterable of str
        Command line, for the provenance.

    Returns
    -------
    QueueCertificate

    Raises
    ------
    InvalidValue
        A value outside its bounds, an unknown law or sender, or flows and a window together.

    Notes
    -----
    Derived in the documentation, "Certificates of queues"; sources are named at `netctrl.plants.queues.queue_loop`.

    Examples
    --------
    >>> import netctrl
    >>> found = netctrl.certify("pie", rtt_s=(0.01, 0.03), flows=(3.0, 5.0), capacity_bit_per_s=20e6)
    >>> found.certificate.status.value
    'admissible'
    """
    if not isinstance(law, str | EcnSubject) and not hasattr(law, "loops"):
        raise InvalidValue("law", law, "the name of a law, or a subject")
    subject = subject_of(law, parameters or {}) if isinstance(law, str) else law
    box = judged_box(
        subject,
        rtt_s=rtt_s,
        flows=flows,
        capacity_bit_per_s=capacity_bit_per_s,
        window_packets=window_packets,
        packet_size_bytes=packet_size_bytes,
        senders=senders,
        stretches=stretches,
    )
    verdict = subject.verdict(box) if isinstance(subject, EcnSubject) else _verdict(subject, box)
    warnings = (*long_rtt(box.rtt[1] * max(box.inputs.stretches)), *verdict.warnings)
    return QueueCertificate(
        schema=CERTIFICATE_SCHEMA,
        law=described(subject),
        inputs=box.inputs,
        certificate=replace(verdict, warnings=warnings),
        provenance=provenance(argv=argv, libraries=("numpy",)),
    )


def subject_of(name: str, parameters: Mapping[str, Any]) -> Subject | EcnSubject:
    """The named law with its parameters; InvalidValue for an unknown name or parameter."""
    laws: dict[str, Callable[..., Subject | EcnSubject]] = {
        **SUBJECTS,
        "fq_pie": fq_pie,
        "docsis-pie": docsis_pie,
        **RED_SUBJECTS,
        **ECN_SUBJECTS,
    }
    if name in NO_LAW:
        raise InvalidValue("law", name, f"one of {', '.join(laws)}; {name} has no certificate: {NO_LAW[name]}")
    if name not in laws:
        raise InvalidValue("law", name, f"one of {', '.join(laws)}{did_you_mean(name, laws)}")
    check_parameters(name, laws[name], parameters)
    return laws[name](**parameters)


def check_parameters(name: str, make: Callable[..., object], parameters: Mapping[str, Any]) -> None:
    """InvalidValue for a parameter that the function which makes a law doesn't have, or that it lacks."""
    known = signature(make).parameters
    for each in parameters:
        if each not in known:
            takes = f"parameters of {name}: {', '.join(known)}{did_you_mean(each, known)}"
            raise InvalidValue("parameters", each, takes)
    missing = [key for key, each in known.items() if each.default is each.empty]
    if any(key not in parameters for key in missing):
        raise InvalidValue("parameters", None, f"{', '.join(missing)} of {name}")


def described(subject: Subject | EcnSubject) -> CertifiedLaw:
    """Record of a law, for a certificate."""
    return CertifiedLaw(
        name=subject.name,
        implementation=subject.implementation,
        parameters=dict(subject.parameters),
        gains=subject.gains,
        reading_age=subject.read,
        marked=subject.marked,
    )


def _verdict(subject: Subject, box: Box) -> QueueVerdict:
    each = [_of_sender(subject, with_senders(box, (name,))) for name in box.inputs.senders]
    senders = tuple(found for found, _ in each)
    worst = max(senders, key=_severity)
    if worst.sampled is None:
        reasons = [reason for _, reason in each if reason]
        return QueueVerdict(
            status=worst.status,
            linear=None,
            sampled=None,
            reach=None,
            warnings=(*reasons, *subject.notes),
            senders=senders,
        )
    return QueueVerdict(
        status=worst.status,
        linear=usual_margins(subject, box),
        sampled=worst.sampled,
        reach=reach(subject, box, MIN_FACTOR, likely=worst.sampled.gain_margin_db >= MIN_GAIN_DB),
        warnings=(*subject.notes, *_about_senders(subject, box), *_about_proofs(subject, box)),
        senders=senders,
    )


def _severity(found: SenderVerdict) -> tuple[int, float]:
    margin = inf if found.sampled is None else found.sampled.gain_margin_db
    return _SEVERITY.index(found.status), -margin


def _of_sender(subject: Subject, box: Box) -> tuple[SenderVerdict, str]:
    """Verdict of a box of one sender or mixture, and why it has no equilibrium; empty: it has one."""
    reason = absent(subject, box)
    if reason is not None:
        return SenderVerdict(sender=box.inputs.senders[0], status=Status.INFEASIBLE, sampled=None), reason
    loops = box_loops(subject, box)
    found = worst(loops, box)
    sampled = _sampled(box, found)
    return SenderVerdict(sender=found.mixture.text, status=_status(loops, box, found), sampled=sampled), ""


def _about_senders(subject: Subject, box: Box) -> list[str]:
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
        least, theirs = (least_looked_at(box_loops(subject, each), each) for each in (ours, box))
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


def _about_proofs(subject: Subject, box: Box) -> list[str]:
    """Warning that nothing is proved of the loops without bounds over cells; or none."""
    loops = box_loops(subject, box)
    looked = sum(len(box_points(loop, box)) for _, loop in loops if loop.several_clocks)
    between = "" if box.point else f", at {looked} points and at those near the worst of them"
    why = "acknowledgements clock flows of several round-trip times: no bound over cells is known, nothing is proved"
    return [f"{why}; margins are exact{between}"] if looked else []


def absent(subject: Subject, box: Box) -> str | None:
    """Why the box has a point without an equilibrium that the loop describes; None: it has no such point."""
    for mixture in map(read_mixture, box.inputs.senders):
        classes = classes_of(subject, mixture, box.inputs.stretches)
        loops = subject.loops(classes, box.rate, box.inputs.packet_size_bytes)
        most = box.flows[1], box.rtt[0]
        loop = next((each for each in loops if each.holds(each.output(*most))), loops[-1])
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


def _hold(loops: Loops, box: Box) -> bool:
    return all(
        not any(point.unstable for point in _looked_at(mixture, loop, box)) and _keeps_rule(loop, box)
        for mixture, loop in loops
    )


def _keeps_rule(loop: QueueLoop, box: Box) -> bool:
    if loop.several_clocks:
        return all(point_keeps(loop, *point, *_RULE) for point in box_points(loop, box))
    starts = loop.starts(box.flows, box.rtt)
    return not starts or _proofs(loop, box, starts).keeps


def _proofs(loop: QueueLoop, box: Box, starts: list[tuple[float, float]]) -> PointProofs | BoxProofs:
    if box.point:
        return point_proofs(loop, *box.point, *_RULE)
    return box_proofs(loop, box.flows, box.rtt, tuple(starts), *_RULE)


def worst(loops: Loops, box: Box) -> Worst:
    """Least gain margin of all the law's loops in the box; proved, where the loops are stable and have bounds."""
    found = [point for mixture, loop in loops for point in _looked_at(mixture, loop, box)]
    best, proved = min(found, key=lambda each: each.factor), inf
    if best.unstable:
        return best
    curved = not box.point and any(k.sender.curve for k in best.loop.classes)
    if best.loop.several_clocks or (curved and best.factor < MIN_FACTOR):
        # Where Cubic's margin is small, tens of thousands of cells prove nothing, and the verdict is known.
        flows, rtt, factor = least_near(best.loop, box, best.flows, best.rtt)
        return best._replace(flows=flows, rtt=rtt, factor=factor, unstable=factor <= 1.0, proved=None)
    for mixture, loop in loops:
        starts = loop.starts(box.flows, box.rtt)
        if not starts:
            continue
        limit = _proofs(loop, box, starts).upper
        proved = min(proved, limit.proved)
        if limit.found < best.factor:
            flows, rtt = (float(np.exp(u)) for u in limit.where[1:3])
            best = Worst(mixture, loop, flows, rtt, limit.found <= 1.0, limit.found, limit.proved)
    return best._replace(proved=proved)


def _looked_at(mixture: Mixture, loop: QueueLoop, box: Box) -> list[Worst]:
    """The loop at the points from which its proof begins, or at all that are looked at."""
    points = []
    for flows, rtt in box_points(loop, box) if loop.several_clocks else loop.starts(box.flows, box.rtt):
        found = stable_gains(loop, flows, rtt)
        points.append(Worst(mixture, loop, flows, rtt, found.unstable_poles > 0, found.factor, found.factor))
    return points


def _status(loops: Loops, box: Box, found: Worst) -> Status:
    if found.unstable:
        return Status.UNSTABLE
    held = found.least >= MIN_FACTOR and _hold(loops, box)
    return Status.ADMISSIBLE if held else Status.STABLE


def _sampled(box: Box, found: Worst) -> SampledLoop:
    loop, flows, rtt = found.loop, found.flows, found.rtt
    x, lower = float(loop.output(flows, rtt)), stable_gains(loop, flows, rtt).lower
    stable, bounded = not found.unstable, not loop.several_clocks
    at = Minimum(found.least, found.factor, np.array([pi, np.log(flows), np.log(rtt), 0.0]), 0)
    proofs = point_proofs(loop, *box.point, *_RULE) if box.point and stable and bounded else None
    try:
        exact = sampled_margins(loop, flows, rtt, 1.0, at, stable=stable, proofs=proofs, bounded=bounded)
    except NetctrlError:  # no proof was decided: the verdict rests on others, and these margins are those of a scan
        exact = sampled_margins(loop, flows, rtt, 1.0, at, stable=stable, bounded=False)
    return SampledLoop(
        sender=found.mixture.text,
        flows=None if box.inputs.flows is None else flows,
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
