"""Certificates of queue laws as people run them, over boxes of flows, round-trip times, rates and senders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import signature
from math import inf, isinf, pi, radians
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from netctrl.certificates.box import MIN_FACTOR, MIN_GAIN_DB, MIN_PHASE_DEG, MIN_WINDOW, Box, Ends, box_of
from netctrl.certificates.docsis import docsis_pie
from netctrl.certificates.ecn.ramp import dctcp_in_time, in_time
from netctrl.certificates.ecn.subjects import ECN_SUBJECTS, EcnSubject, sender_of
from netctrl.certificates.inputs.tc import NO_LAW
from netctrl.certificates.loops import Mixture, box_loops, classes_of, linear_margins, read_mixture
from netctrl.certificates.points import box_points, least_near, least_point
from netctrl.certificates.reach import reach
from netctrl.certificates.record import (
    CERTIFICATE_SCHEMA,
    CertifiedLaw,
    QueueCertificate,
    QueueVerdict,
    SampledLoop,
)
from netctrl.certificates.red import RED_SUBJECTS, RedSubject
from netctrl.certificates.subject import SUBJECTS, PiSubject, Subject, fq_pie
from netctrl.errors import InvalidValue, NetctrlError, Status, did_you_mean
from netctrl.frequency.batch import PointMargins
from netctrl.frequency.branch_bound import Minimum
from netctrl.frequency.records import decibel
from netctrl.frequency.sampled_margins import PointProofs, point_proofs, sampled_margins
from netctrl.frequency.sampled_stability import BoxProofs, box_proofs, point_keeps, stable_gains
from netctrl.model.io.provenance import provenance
from netctrl.plants.queues.queue_loop import QueueLoop
from netctrl.plants.queues.window_response import CRENO, RENO

__all__ = [
    "MIN_GAIN_DB",
    "MIN_PHASE_DEG",
    "Worst",
    "absent",
    "certify",
    "check_parameters",
    "described",
    "subject_of",
    "worst",
]

_RULE = (MIN_FACTOR, radians(MIN_PHASE_DEG))

_SMALL_WINDOW = 25.0
"""From it on `reno` has at most 1.5 dB more than `linux-reno` under Linux's pie and dualpi2 [packet]."""

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
        "reno" (by default), "cubic", "creno" (Cubic where it is Reno-friendly), "dctcp", or mixtures as in
        "reno+dctcp": the certificate holds for each. The laws "dctcp" and "dcqcn" are for the senders of their names.
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
    by = sender_of(subject, senders)
    box = box_of(subject, rtt_s, flows, capacity_bit_per_s, window_packets, packet_size_bytes, by, stretches)
    return QueueCertificate(
        schema=CERTIFICATE_SCHEMA,
        law=described(subject),
        inputs=box.inputs,
        certificate=subject.verdict(box) if isinstance(subject, EcnSubject) else _verdict(subject, box),
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
    """Verdict of the linear loop; where DCTCP's flows don't keep the design rule in it, that of their fluid in time."""
    if not isinstance(subject, RedSubject) or not in_time(subject, box):
        return _linear_verdict(subject, box)
    linear = None if subject.steps else _linear_verdict(subject, box)
    if linear is not None and linear.status is Status.ADMISSIBLE:
        return linear
    return dctcp_in_time(subject, box, linear)


def _linear_verdict(subject: Subject, box: Box) -> QueueVerdict:
    reason = absent(subject, box)
    if reason is not None:
        return QueueVerdict(
            status=Status.INFEASIBLE, linear=None, sampled=None, reach=None, warnings=(reason, *subject.notes)
        )
    loops = box_loops(subject, box)
    found = worst(loops, box)
    sampled = _sampled(box, found)
    phase = _least(loops, box, lambda each: each.phase) if sampled.stable else sampled
    reduction = _least(loops, box, lambda each: each.reduction) if sampled.stable else sampled
    looked = QueueVerdict(
        status=Status.STABLE,
        linear=None,
        sampled=sampled,
        reach=None,
        warnings=(),
        least_phase=phase if phase.phase_margin_deg < sampled.phase_margin_deg - _SAME else None,
        least_reduction=reduction if _room(reduction) < _room(sampled) - _SAME else None,
    )
    status = Status.UNSTABLE
    if sampled.stable:
        held = not looked.lacking and found.least >= MIN_FACTOR and _hold(loops, box)
        status = Status.ADMISSIBLE if held else Status.STABLE
    return replace(
        looked,
        status=status,
        linear=linear_margins(subject, box),
        reach=reach(subject, box, likely=sampled.stable and not looked.lacking, lacking_s=looked.lacking_s),
        warnings=(*subject.notes, *_about_senders(subject, loops, box), *_about_proofs(loops, box)),
    )


def _about_senders(subject: Subject, loops: Loops, box: Box) -> list[str]:
    """Warning that Linux's senders have less than those of the literature, which are sent at a rate; or none."""
    linux = isinstance(subject, PiSubject) and subject.implementation.startswith("Linux")
    if not linux or not all(any(each in (RENO, CRENO) for each, _ in mixture.parts) for mixture, _ in loops):
        return []
    if min(float(loop.windows(box.flows[1], box.rtt[0]).min()) for _, loop in loops) >= _SMALL_WINDOW:
        return []
    return [
        f"with windows below {_SMALL_WINDOW:g} packets Linux's senders have up to "
        f"{4 if subject.name == 'dualpi2' else 14} dB less than reno and creno: "
        "certify linux-reno and linux-creno, too"
    ]


def _about_proofs(loops: Loops, box: Box) -> list[str]:
    """Warning that nothing is proved of the loops without bounds over cells; or none."""
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
    if best.loop.several_clocks:
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
