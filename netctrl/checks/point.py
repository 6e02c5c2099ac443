"""Operating point of a certificate at which its nonlinear checks run."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import pi
from typing import NamedTuple

import msgspec

from netctrl.certificates.box import Box, axes, box_of
from netctrl.certificates.certify import subject_of
from netctrl.certificates.codel import CodelSubject
from netctrl.certificates.loops import Mixture, classes_of, loop_at, loops_of, read_mixture
from netctrl.certificates.pi_laws import pi2
from netctrl.certificates.point_records import BeyondLoop, PredictedFigures
from netctrl.certificates.record import CertifyInputs, QueueCertificate, SampledLoop
from netctrl.certificates.red import RedSubject
from netctrl.certificates.subject import PiSubject
from netctrl.core.errors import InvalidValue
from netctrl.core.units import BITS_PER_BYTE, packets_per_second
from netctrl.frequency.sampled_stability import stable_gains
from netctrl.plants.queues.queue_loop import QueueLoop
from netctrl.plants.queues.window_response import SENDERS

_CHECKED = ("pie", "docsis-pie", "pi2", "dualpi2", "red", "wred")
"""Laws of which the fluid has the nonlinear rules."""
_FLOWS_OF_WINDOW = 20.0
"""Flows in place of a window alone: a loop's linear part doesn't depend on their number."""


class CheckPoint(NamedTuple):
    """Worst point of a certificate, with its loop."""

    subject: PiSubject | RedSubject | CodelSubject
    mixture: Mixture
    stretches: tuple[float, ...]
    loop: QueueLoop
    flows: float
    rtt_s: float
    """Without the queue [s]."""
    packet_bytes: float
    output: float
    """The law's output in equilibrium."""
    period_s: float
    """Of the oscillation at the loop's limit [s]."""
    instead: str = ""
    """Senders of the point, where the engine has others in place of the certificate's."""
    drops: bool = False
    """Whether the certificate's senders lose packets, and don't see marks."""

    @property
    def trip_s(self) -> float:
        """Longest round-trip time with the standing queue [s]."""
        return max(float(self.loop.trip(k, self.rtt_s, self.target_s)) for k in self.loop.classes)

    @property
    def target_s(self) -> float:
        """Standing delay of the queue [s]."""
        return self.subject.target_s or float(self.loop.standing(self.output))


_INSTEAD = {
    "fluid": {"linux-reno": "reno", "linux-creno": "creno", "rfc-reno": "reno", "rfc-creno": "creno"},
    "packet": {"linux-reno": "rfc-reno", "linux-creno": "rfc-creno"},
    "kernel": {},
}
"""Engine -> sender of a certificate -> the one that runs in its place; those without ECN as those with it."""


def point_of(certificate: QueueCertificate, engine: str = "kernel") -> CheckPoint:
    """The worst point of a certificate, with the senders that an engine has in place of the certificate's.

    The fluid sends windows at the rate w/R, without the clock of acknowledgements. Senders of packets have the cuts of
    RFC 5681.

    Raises
    ------
    InvalidValue
        A certificate without an equilibrium, or of a law or sender without a nonlinear check.
    """
    subject = _checked(certificate, _CHECKED)
    verdict = certificate.certificate
    at = verdict.sampled
    if at is None:
        raise InvalidValue("check", certificate.verdict, "a certificate with an equilibrium")
    if engine == "fluid" and _is_curved(at):  # the worst of the senders that the fluid has
        others = [each.sampled for each in verdict.senders if each.sampled is not None and not _is_curved(each.sampled)]
        if not others:
            takes = "packet or kernel: the fluid has no curve of Cubic"
            raise InvalidValue("check", f"fluid with {at.sender}", takes)
        at = min(others, key=lambda each: each.gain_margin_db)
    inputs = certificate.inputs
    box, mixtures, loops = _loops_in(engine, subject, inputs, at.sender)
    if at.flows is None or at.capacity_bit_per_s is None or inputs.capacity_bit_per_s is None:
        trip = loops[0].trip(loops[0].classes[0], at.rtt_s, subject.target_s)
        flows = box.rate * trip / at.windows_packets[0]
    else:
        flows = at.flows * inputs.capacity_bit_per_s[1] / at.capacity_bit_per_s
    return _at(subject, mixtures, loops, box, flows, at.rtt_s, 10.0 ** (at.gain_margin_db / 20.0))


def _checked(certificate: QueueCertificate, laws: tuple[str, ...]) -> PiSubject | RedSubject:
    """The certificate's law, of those that are checked."""
    name = certificate.law.name
    subject = subject_of(name, certificate.law.parameters) if name in laws else None
    if not isinstance(subject, PiSubject | RedSubject):
        raise InvalidValue("check", name, f"a law with a nonlinear check: {', '.join(laws)}")
    return subject


def point_at(certificate: QueueCertificate, at: BeyondLoop | PredictedFigures) -> CheckPoint:
    """A point of a certificate for packets; the loop may be unstable there, or have no equilibrium. With a queue for
    each flow it is one flow at its share of the rate.

    Raises
    ------
    InvalidValue
        A law without packets.
    """
    made = subject_of(certificate.law.name, certificate.law.parameters)
    subject = made if isinstance(made, CodelSubject) else _checked(certificate, (*_CHECKED, "fq_pie"))
    return _on_packets(subject, certificate.inputs, at.sender, at.flows, at.rtt_s, at.capacity_bit_per_s)


def _on_packets(
    subject: PiSubject | RedSubject | CodelSubject,
    inputs: CertifyInputs,
    sender: str,
    flows: float,
    rtt: float,
    capacity: float,
) -> CheckPoint:
    looped: PiSubject | RedSubject
    if isinstance(subject, CodelSubject):  # no loop: of one at the same delay packets need no more than its flows
        subject = subject.at(packets_per_second(capacity, inputs.packet_size_bytes))
        looped = pi2(target_s=subject.target_s)
    else:
        looped = subject
    number = 1.0 if subject.per_flow else flows
    rate = capacity * number / flows
    inputs = msgspec.structs.replace(
        inputs, rtt_s=(rtt, rtt), flows=(number, number), capacity_bit_per_s=(rate, rate), senders=(sender,)
    )
    box, mixtures, _ = _loops_in("packet", looped, inputs, sender)
    return _made(subject, mixtures, loop_at(looped, mixtures[1], box, number, rtt), box, number, rtt, 0.0)


def _is_curved(found: SampledLoop) -> bool:
    return any(sender.curve for sender, _ in read_mixture(found.sender).parts)


def corners_of(subject: PiSubject | RedSubject | CodelSubject, inputs: CertifyInputs, engine: str) -> list[CheckPoint]:
    """The corners of a box with its first sender; for the fluid those with the largest and the smallest windows. With a
    queue for each flow they are one flow at its share of the rate.

    Parameters
    ----------
    subject : PiSubject, RedSubject or CodelSubject
    inputs : CertifyInputs
        The box.
    engine : str
        "fluid", "packet" or "kernel".

    Raises
    ------
    InvalidValue
        A sender that the engine hasn't.
    """
    if isinstance(subject, CodelSubject):
        flows, rtts, rates = axes(box_of(subject, **msgspec.structs.asdict(inputs)), subject.name)
        size = inputs.packet_size_bytes * BITS_PER_BYTE
        at = product(zip(flows, reversed(rates), strict=True), rtts)
        return [
            _on_packets(subject, inputs, inputs.senders[0], number, rtt, rate * size)
            for (number, rate), rtt in dict.fromkeys(at)
        ]
    box, mixtures, loops = _loops_in(engine, subject, inputs, inputs.senders[0])
    corners = [
        (box.flows[0], box.rtt[1]),
        (box.flows[1], box.rtt[0]),
        (box.flows[0], box.rtt[0]),
        (box.flows[1], box.rtt[1]),
    ]
    corners = corners[: 2 if engine == "fluid" else 4]
    return [_at(subject, mixtures, loops, box, *corner) for corner in dict.fromkeys(corners)]


def _at(
    subject: PiSubject | RedSubject,
    mixtures: tuple[Mixture, Mixture],
    loops: list[QueueLoop],
    box: Box,
    flows: float,
    rtt: float,
    factor: float = 1.0,
) -> CheckPoint:
    """A point of a box with mixtures of the certificate and of the engine; `factor` is its gain margin, if known."""
    near = []  # of a point at the end of a range of gains there are two, and RED's lines have delays of their own
    for loop in loops:
        x = float(loop.output(flows, rtt))
        if loop.within[0] * (1.0 - 1e-6) <= x <= loop.within[1] * (1.0 + 1e-6):
            near.append(loop)
    if not near:
        raise InvalidValue("check", mixtures[1].text, "senders with an equilibrium at the worst point")
    loop = min(near, key=lambda loop: abs(stable_gains(loop, flows, rtt).factor - factor))
    asked = box.asked(flows)
    number = _FLOWS_OF_WINDOW if asked is None else asked[0]
    loop, flows = replace(loop, rate=loop.rate * number / flows), number
    limits = stable_gains(loop, flows, rtt)
    angle = limits.upper_angle if limits.unstable_poles == 0 else limits.lower_angle
    return _made(subject, mixtures, loop, box, flows, rtt, 2.0 * pi * loop.epoch / angle)


def _made(
    subject: PiSubject | RedSubject | CodelSubject,
    mixtures: tuple[Mixture, Mixture],
    loop: QueueLoop,
    box: Box,
    flows: float,
    rtt: float,
    period_s: float,
) -> CheckPoint:
    certified, mixture = mixtures
    return CheckPoint(
        subject=subject,
        mixture=mixture,
        stretches=box.inputs.stretches,
        loop=loop,
        flows=flows,
        rtt_s=rtt,
        packet_bytes=box.inputs.packet_size_bytes,
        output=float(loop.output(flows, rtt)),
        period_s=period_s,
        instead=f"{mixture.text} for {certified.text}" if mixture.text != certified.text else "",
        drops=any(sender.under(subject.drops).notice > 0.0 for sender, _ in certified.parts),
    )


def _loops_in(
    engine: str, subject: PiSubject | RedSubject, inputs: CertifyInputs, sender: str
) -> tuple[Box, tuple[Mixture, Mixture], list[QueueLoop]]:
    """Box, the certificate's mixture and what the engine has in place of its senders, and that one's loops."""
    box, certified, others = box_of(subject, **msgspec.structs.asdict(inputs)), read_mixture(sender), _INSTEAD[engine]
    parts = tuple((SENDERS[others.get(s.name.removesuffix("-noecn"), s.name)], share) for s, share in certified.parts)
    mixture = certified
    if parts != certified.parts:
        mixture = Mixture("+".join(dict.fromkeys(sender.name for sender, _ in parts)), parts)
    return box, (certified, mixture), loops_of(subject, classes_of(subject, mixture, inputs.stretches), box)
