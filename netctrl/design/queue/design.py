"""Laws of queues that people run, designed for a box of operating points and certified in their target's steps.

Two problems are solved. **speed**: the greatest integral gain alpha/T, for RED and WRED the steepest line, whose disk
margin is at least a given one at every point of the box. **margin**: the proportional gain beta with which the least
disk margin of the box is greatest, where alpha is given. A disk margin alone would be greatest with no gain at all.

A search on samples of the box proposes a law in the target's steps, a proof over the whole box accepts it or names a
worse point, and the search goes on with that point among its samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

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
from netctrl.design.queue.record import Objective, QueueDesign, QueueInputs, QueueProof
from netctrl.design.queue.samples import TOLERANCE, DiskProof, Point, pi_samples, prove_disk_margin
from netctrl.design.queue.search import LINES, PI_LAWS, completed, fastest, line_of, steadiest, steepest, target_steps
from netctrl.frequency.records import decibel
from netctrl.model.law import QueueLaw
from netctrl.plants.queues.window_response import CUBIC

DISK_MARGIN = 2.0 / 3.0
"""Disk margin of a factor 2 (6 dB) in gain, or 37 degrees of phase, or of both in part: it implies the design rule."""
LAWS = (*PI_LAWS, *LINES)
_FOUND = {
    **dict.fromkeys(PI_LAWS, ("beta",)),
    "red": ("max_bytes", "probability"),
    "wred": ("max_bytes", "max_percent"),
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


def queue_design(
    law: str,
    *,
    parameters: Mapping[str, Any] | None = None,
    objective: Objective = "speed",
    disk_margin: float | None = None,
    argv: Iterable[str] = (),
    **where: Unpack[Where],
) -> QueueDesign:
    """Law of a queue for a box of flows, round-trip times, rates and senders, as its target runs it.

    With the objective "speed" it is the law with the greatest integral gain, of RED and WRED with the steepest line,
    whose disk margin 2/‖S − T‖∞ is at least `disk_margin` everywhere in the box. With "margin" it is the beta with
    which the least disk margin of the box is greatest, at the alpha that is given. The law is in whole steps of its
    target, and the certificate is proved for it.

    Parameters
    ----------
    law : str
        "pie", "docsis-pie", "pi2", "dualpi2", "red" or "wred".
    parameters : mapping, optional
        Other parameters of the law, in SI units, as in {"target_s": 0.01}; for "red" and "wred" with `min_bytes`.
    objective : {"speed", "margin"}
        "margin" only for laws with gains.
    disk_margin : float, optional
        Of the objective "speed", above 0 and at most 1.8; by default 2/3, which implies 6 dB and 36.9 degrees.
    argv : iterable of str
        Command line, for the provenance.
    **where
        The box: `rtt_s`, `flows`, `capacity_bit_per_s`, `window_packets`, `packet_size_bytes`, `senders` and
        `stretches` of `netctrl.certify`.

    Returns
    -------
    QueueDesign

    Raises
    ------
    InvalidValue
        A value outside its bounds, or a parameter that the design finds.
    NoAdmissibleDesign
        There is no equilibrium somewhere in the box, or no law of the target has this disk margin.

    Notes
    -----
    The problem "speed" is that of Åström, Panagopoulos and Hägglund ("Design of PI controllers based on non-convex
    optimization", Automatica 34, 1998), over a box and with the disk margin as its constraint: a change Δx of the load,
    in the law's output, leaves ∫(D − target) dt = Δx T/alpha at every point of the box.

    Examples
    --------
    >>> import netctrl
    >>> found = netctrl.queue_design("pie", rtt_s=0.02, flows=4.0, capacity_bit_per_s=20e6)
    >>> found.law.parameters["alpha"], found.law.parameters["beta"], found.certificate.disk_margin_proved > 2 / 3
    (0.1875, 2.0, True)
    """
    if parameters is not None and not isinstance(parameters, Mapping):
        raise InvalidValue("parameters", parameters, "a mapping from names to values, as in {'target_s': 0.015}")
    given = _checked(law, dict(parameters or {}), objective)
    least = _least(objective, disk_margin)
    box = judged_box(_any_law(law, given), **where)
    curved = where.get("senders") is None and CUBIC.name in box.inputs.senders
    if curved:  # its proofs take minutes
        box = box.with_senders(*LINUX_SENDERS)
    inputs = QueueInputs(law=law, objective=objective, least_disk_margin=least, parameters=given, box=box.inputs)
    made, proof = _searched(law, given, box, least)
    subject = law_of(law, made)
    verdict = certify(subject, **msgspec.structs.asdict(box.inputs)).certificate
    certificate = QueueProof(
        status=Status.ADMISSIBLE if proof.proved >= DISK_MARGIN else verdict.status,
        disk_margin=proof.found,
        disk_margin_proved=proof.proved,
        sender=proof.sender,
        flows=None if box.inputs.flows is None else proof.flows,
        rtt_s=proof.rtt,
        speed=subject.sampled.integral / subject.sampled.update_s
        if isinstance(subject, PiSubject)
        else subject.gains["slope_per_byte"],
        verdict=verdict,
        warnings=(*_warnings(law, given, made), *(_about_cubic(subject, box) if curved else ()), *verdict.warnings),
    )
    found = QueueLaw(name=law, implementation=subject.implementation, parameters=made, gains=subject.gains)
    return QueueDesign.of(inputs, found, certificate, argv=argv)


def law_of(name: str, parameters: Mapping[str, Any]) -> Subject:
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
    checked_word("objective", objective, ("speed", "margin"))
    if objective == "margin" and law in LINES:
        raise InvalidValue("objective", objective, f"speed: the line of {law} has no second gain")
    found = (*_FOUND[law], "alpha") if law in PI_LAWS and objective == "speed" else _FOUND[law]
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


def _least(objective: str, disk_margin: float | None) -> float | None:
    if objective == "margin":
        if disk_margin is not None:
            raise InvalidValue("disk_margin", disk_margin, "no value with the objective margin")
        return None
    if disk_margin is None:
        return DISK_MARGIN
    return checked_number(
        "disk_margin", disk_margin, f"a number above 0 and at most {_MOST:g}", above=0.0, at_most=_MOST
    )


def _any_law(law: str, given: Mapping[str, Any]) -> Subject:
    """The law with any gains: equilibria of laws with a target don't depend on them."""
    if law in PI_LAWS:
        return CERTIFIED[law](**given)
    return CERTIFIED[law](**line_of(law, given, 2 * given["min_bytes"], 100))


def _searched(law: str, given: dict[str, Any], box: Box, least: float | None) -> tuple[dict[str, Any], DiskProof]:
    """Parameters and their proof."""
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


def _pi(
    law: str, given: dict[str, Any], box: Box, want: float, more: Sequence[Point], least: float | None
) -> dict[str, Any] | None:
    """Parameters of a PI law that the samples propose."""
    base = CERTIFIED[law](**given)
    samples = pi_samples(base, box, more)
    longest = max(box.rtt[1] * stretch for stretch in box.inputs.stretches) + base.target_s
    trips = longest / base.nominal.update_s
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
    if usual is None or made["tupdate_s"] == usual:
        return ()
    times = " instead of ".join(format_quantity(each, "s") for each in (made["tupdate_s"], usual))
    return (f"updates every {times}: at the shorter interval the smallest gains of {law} are too large for this box",)
