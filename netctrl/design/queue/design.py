"""Laws of queues that people run, designed for a box of operating points and certified in their target's steps.

Two problems are solved here; a third, **figures**, chooses among `candidates` on packets (`netctrl.checks.designs`).
**speed**: the greatest integral gain alpha/T, for RED and WRED the steepest line, whose disk margin is at least a given
one at every point of the box. **margin**: the proportional gain beta with which the least disk margin of the box is
greatest, where alpha is given. A disk margin alone would be greatest with no gain at all.

A search on samples of the box proposes a law in the target's steps, a proof over the whole box accepts it or names a
worse point, and the search goes on with that point among its samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import radians, tan
from typing import Any, NamedTuple, get_args

import msgspec

from netctrl.certificates.box import Box, Where
from netctrl.certificates.certify import certify, check_parameters, described
from netctrl.certificates.loops import LINUX_SENDERS, box_loops, judged_box
from netctrl.certificates.record import CERTIFICATE_SCHEMA, QueueCertificate
from netctrl.certificates.subject import PiSubject, Subject
from netctrl.certificates.verdict import absent, least_looked_at
from netctrl.core.errors import (
    InvalidValue,
    NetctrlError,
    NoAdmissibleDesign,
    Status,
    checked_number,
    checked_whole,
    checked_word,
)
from netctrl.core.register import CERTIFIED
from netctrl.core.units import format_quantity
from netctrl.design.queue.record import Asked, Objective, QueueDesign, QueueInputs, QueueProof
from netctrl.design.queue.samples import TOLERANCE, DiskProof, Point, pi_samples, prove_disk_margin
from netctrl.design.queue.search import (
    CODELS,
    LINES,
    PI_LAWS,
    SHIPPED_LINES,
    completed,
    fastest,
    guarded,
    guarded_lines,
    ladder,
    line_of,
    steadiest,
    steepest,
    target_steps,
)
from netctrl.frequency.records import decibel
from netctrl.model.law import QueueLaw
from netctrl.plants.queues.window_response import CUBIC

DISK_MARGIN = 2.0 / 3.0
"""Disk margin of a factor 2 (6 dB) in gain, or 37 degrees of phase, or of both in part: it implies the design rule."""
GUARD = 2.0 * tan(radians(20.0) / 2.0)
"""Disk margin that implies 20 degrees and 3 dB: a guard against errors of the model, where figures on packets judge."""
LAWS = (*PI_LAWS, *LINES, *CODELS)
_FOUND = {
    **dict.fromkeys(PI_LAWS, ("beta",)),
    "red": ("max_bytes", "probability"),
    "wred": ("max_bytes", "max_percent"),
    **dict.fromkeys(CODELS, ("target_s", "interval_s")),
    "cake": ("rtt_s", "target_s"),
}
"""Law -> parameters that the design finds with either objective."""
_MOST = 1.8
"""Greatest disk margin that can be asked for; 2 is that of no gain."""
_SLOWER = (1.0, 1.25, 1.6, 2.0, 2.5, 3.2, 4.0, 5.0, 6.4, 8.0, 10.0, 12.5, 16.0, 20.0, 25.0, 32.0)
"""Multiples of the update interval to be tried where the smallest gains of a target are too large."""
_ROUNDS = 6
_MORE = 1.1
"""Greatest factor by which more disk margin is asked of the samples where a proof was cut short."""
_A_LINE: dict[str, dict[str, Any]] = {"red": {"limit_bytes": 1}, "wred": {"max_bytes": 1, "max_percent": 100}}
"""Parameters of any line, for what doesn't depend on it."""
_REMEDY = "narrow the box, or ask for a smaller disk margin"


class Problem(NamedTuple):
    """What a design is asked for, checked."""

    inputs: QueueInputs
    given: dict[str, Any]
    """Parameters of the law that the design leaves, with all that the search needs."""
    box: Box
    curved: bool
    """Whether Cubic's own curve is in play and left out."""

    @property
    def law(self) -> str:
        """Its name."""
        return self.inputs.law

    @property
    def least(self) -> float | None:
        """Disk margin that is kept; None where the greatest is sought."""
        return self.inputs.least_disk_margin

    def design(
        self, made: dict[str, Any], proof: DiskProof | None, argv: Iterable[str], warnings: Iterable[str] = ()
    ) -> QueueDesign:
        """Design of a law with its proof; None of CoDel, which has its cycle."""
        subject, box = law_of(self.law, made), self.box
        verdict = certify(subject, **msgspec.structs.asdict(box.inputs)).certificate
        law = QueueLaw(name=self.law, implementation=subject.implementation, parameters=made, gains=subject.gains)
        if proof is None:
            at = verdict.predicted or verdict.beyond[0]
            certificate = QueueProof(
                status=Status.ADMISSIBLE,
                disk_margin=None,
                disk_margin_proved=None,
                sender=at.sender,
                flows=at.flows,
                rtt_s=at.rtt_s,
                speed=None,
                verdict=verdict,
                warnings=(*warnings, *verdict.warnings),
            )
            return QueueDesign.of(self.inputs, law, certificate, argv=argv)
        figures = self.inputs.objective == "figures" and self.least is not None
        enough = min(self.least or DISK_MARGIN, DISK_MARGIN) if figures else DISK_MARGIN
        certificate = QueueProof(
            status=Status.ADMISSIBLE if proof.proved >= enough else verdict.status,
            disk_margin=proof.found,
            disk_margin_proved=proof.proved,
            sender=proof.sender,
            flows=None if box.inputs.flows is None else proof.flows,
            rtt_s=proof.rtt,
            speed=subject.sampled.integral / subject.sampled.update_s
            if isinstance(subject, PiSubject)
            else subject.gains["slope_per_byte"],
            verdict=verdict,
            warnings=(
                *warnings,
                *_warnings(self.law, self.given, made),
                *(_about_cubic(subject, box) if self.curved else ()),
                *verdict.warnings,
            ),
        )
        return QueueDesign.of(self.inputs, law, certificate, argv=argv)


def problem_of(
    law: str,
    parameters: Mapping[str, Any] | None,
    objective: Objective,
    asked: Asked,
    disk_margin: float | None,
    where: Where,
) -> Problem:
    """What is asked for, as of `netctrl.queue_design`; InvalidValue for a value outside its bounds."""
    if parameters is not None and not isinstance(parameters, Mapping):
        raise InvalidValue("parameters", parameters, "a mapping from names to values, as in {'target_s': 0.015}")
    given = _checked(law, dict(parameters or {}), objective)
    least = _least(law, objective, disk_margin)
    box = judged_box(_any_law(law, given), **where)
    curved = where.get("senders") is None and CUBIC.name in box.inputs.senders
    if curved:  # its proofs take minutes
        box = box.with_senders(*LINUX_SENDERS)
    inputs = QueueInputs(
        law=law, objective=objective, least_disk_margin=least, parameters=given, box=box.inputs, **asked._asdict()
    )
    return Problem(inputs, given, box, curved)


def law_of(name: str, parameters: Mapping[str, Any]) -> Any:
    """A law that can be designed, with its parameters."""
    return CERTIFIED[name](**parameters)


def certificate_of(design: QueueDesign) -> QueueCertificate:
    """The certificate of a design's law, as `netctrl.certify` finds it for the same box."""
    subject = law_of(design.law.name, design.law.parameters)
    return QueueCertificate(
        schema=CERTIFICATE_SCHEMA,
        law=described(subject),
        inputs=design.inputs.box,
        certificate=design.certificate.verdict,
        provenance=design.provenance,
    )


def _checked(law: str, given: dict[str, Any], objective: str) -> dict[str, Any]:
    """Parameters that were given, with all that the search needs."""
    checked_word("law", law, LAWS)
    checked_word("objective", objective, get_args(Objective))
    if law in CODELS and objective != "figures":
        raise InvalidValue("objective", objective, f"figures: {law} drops by a schedule and has no margins")
    if objective == "margin" and law in LINES:
        raise InvalidValue("objective", objective, f"speed: the line of {law} has no second gain")
    found = (*_FOUND[law], "alpha") if law in PI_LAWS and objective != "margin" else _FOUND[law]
    for name in found:
        if name in given:
            raise InvalidValue("parameters", name, f"parameters of {law} without {name}, which the design finds")
    if law in LINES:
        given.setdefault("min_bytes", None)
        checked_whole("min", given["min_bytes"], "a whole number of bytes above 0", at_least=1)
        check_parameters(law, CERTIFIED[law], {**_A_LINE[law], **given})
        return completed(law, given)
    check_parameters(law, CERTIFIED[law], given)
    return given


def _least(law: str, objective: str, disk_margin: float | None) -> float | None:
    if objective == "margin" or law in CODELS:
        if disk_margin is not None:
            raise InvalidValue("disk_margin", disk_margin, "no value with the objective margin, or for CoDel")
        return None
    if disk_margin is None:
        return GUARD if objective == "figures" else DISK_MARGIN
    return checked_number(
        "disk_margin", disk_margin, f"a number above 0 and at most {_MOST:g}", above=0.0, at_most=_MOST
    )


def _any_law(law: str, given: Mapping[str, Any]) -> Subject:
    """The law with any gains: equilibria of laws with a target don't depend on them."""
    if law not in LINES:
        return CERTIFIED[law](**given)
    return CERTIFIED[law](**line_of(law, given, 2 * given["min_bytes"], 100))


def searched(problem: Problem) -> tuple[dict[str, Any], DiskProof]:
    """Parameters and their proof, of the objectives speed and margin; NoAdmissibleDesign where there are none."""
    law, given, box, least = problem.law, problem.given, problem.box, problem.least
    if law in LINES:
        found = _agreed(law, lambda want, more: steepest(law, given, box, want, more), box, least)
        if found is None:
            raise NoAdmissibleDesign(f"no line of {law} has this disk margin over this box; {_REMEDY}")
        reason = absent(law_of(law, found[0]), box)
        if reason is not None:
            raise NoAdmissibleDesign(reason)
        return found
    base = CERTIFIED[law](**given)
    reason = absent(base, box)
    if reason is not None:
        raise NoAdmissibleDesign(reason)
    for slower in _SLOWER if least is not None and target_steps(law, given).step else (1.0,):
        update = base.nominal.update_s
        here = {**given, "tupdate_s": update if slower == 1.0 else round(update * slower, 6)}  # whole microseconds
        found = _agreed(law, lambda want, more, here=here: _pi(law, here, box, want, more, least), box, least)
        if found is not None:
            return found
    if least is None:
        raise NoAdmissibleDesign(f"no beta makes {law} with this alpha stable over this box; {_REMEDY}, or less alpha")
    raise NoAdmissibleDesign(f"the smallest gains of {law} are too large for this disk margin over this box; {_REMEDY}")


def shipped_of(problem: Problem) -> dict[str, Any]:
    """Parameters with the gains, the line or the times that the implementation ships."""
    law, given = problem.law, problem.given
    if law in LINES:
        widths, percent = SHIPPED_LINES[law]
        return line_of(law, given, widths * given["min_bytes"], percent)
    known = CERTIFIED[law](**given).parameters
    return {**given, **{name: known[name] for name in (("alpha", "beta") if law in PI_LAWS else _FOUND[law])}}


def candidates(problem: Problem) -> list[dict[str, Any]]:
    """Parameters in the target's steps whose disk margin is enough at samples of the box; NoAdmissibleDesign where a PI
    law has no equilibrium, and lines without one left out. Of CoDel all with an interval in which flows can answer:
    the longest round-trip time, or the shipped one if that is shorter."""
    law, given, box = problem.law, problem.given, problem.box
    if law in CODELS:
        shipped = shipped_of(problem)
        least = min(box.rtt[1], CERTIFIED[law](**shipped).codel.interval)
        return [each for each in ladder(law, given, least) if each != shipped]
    least = (problem.least or GUARD) / (1.0 - 1.1 * TOLERANCE)  # of the samples, so that a proof finds it, too
    if law in LINES:
        return [each for each in guarded_lines(law, given, box, least) if absent(law_of(law, each), box) is None]
    base = CERTIFIED[law](**given)
    reason = absent(base, box)
    if reason is not None:
        raise NoAdmissibleDesign(reason)
    found = guarded(pi_samples(base, box), least, _trips(base, box), law, given)
    return [{**given, "alpha": each.alpha, "beta": each.beta} for each in found]


def _trips(base: PiSubject, box: Box) -> float:
    """Longest round trip of a box in updates of a law."""
    return (max(box.rtt[1] * stretch for stretch in box.inputs.stretches) + base.target_s) / base.nominal.update_s


def _pi(
    law: str, given: dict[str, Any], box: Box, want: float, more: Sequence[Point], least: float | None
) -> dict[str, Any] | None:
    """Parameters of a PI law that the samples propose."""
    base = CERTIFIED[law](**given)
    samples = pi_samples(base, box, more)
    trips = _trips(base, box)
    if least is None:
        others = {name: value for name, value in given.items() if name != "alpha"}
        found = steadiest(samples, base.nominal.integral, trips, law, others)
    else:
        found = fastest(samples, want, trips, law, given)
    return None if found is None else {**given, "alpha": found.alpha, "beta": found.beta}


def _agreed(law: str, propose: Any, box: Box, least: float | None) -> tuple[dict[str, Any], DiskProof] | None:
    """Proposal that its proof confirms; None: there is none."""
    want, more = 0.0 if least is None else least / (1.0 - 1.1 * TOLERANCE), []
    last: tuple[dict[str, Any], DiskProof] | None = None
    for _ in range(_ROUNDS):
        made = propose(want, more)
        if made is None:
            return None
        if last is not None and made == last[0] and least is None:
            return last
        last = made, prove_disk_margin(law_of(law, made), box)
        proof = last[1]
        if least is not None and proof.proved >= least:
            return last
        more.append((proof.flows, proof.rtt))
        if least is not None and proof.found >= want * (1.0 - 1e-3):  # its proof was cut short
            want *= min(least / proof.proved, _MORE)
    if least is None:
        return last
    raise NetctrlError(f"no law of {law} with this disk margin was proved in {_ROUNDS} rounds; {_REMEDY}")


def _about_cubic(subject: Subject, box: Box) -> tuple[str, ...]:
    """Warning of a design for Linux's senders in whose box Cubic's own curve is in play."""
    cubic = box.with_senders(CUBIC.name)
    found = least_looked_at(box_loops(subject, cubic), cubic)
    return (
        f"Cubic's own curve is in play: cubic has {decibel(found.factor):.2f} dB at the box's corners, without proof; "
        "with --sender linux-creno,linux-reno,cubic it is designed for, which takes minutes",
    )


def _warnings(law: str, given: Mapping[str, Any], made: Mapping[str, Any]) -> tuple[str, ...]:
    usual = CERTIFIED[law](**given).nominal.update_s if law in PI_LAWS else None
    if usual is None or made.get("tupdate_s", usual) == usual:
        return ()
    times = " instead of ".join(format_quantity(each, "s") for each in (made["tupdate_s"], usual))
    return (f"updates every {times}: at the shorter interval the smallest gains of {law} are too large for this box",)
