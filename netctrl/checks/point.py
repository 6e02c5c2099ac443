"""Operating point of a certificate at which its nonlinear checks run."""

from __future__ import annotations

from dataclasses import replace
from math import pi
from typing import NamedTuple

from netctrl.certificates.box import Box, box_of
from netctrl.certificates.certify import subject_of
from netctrl.certificates.loops import Mixture, classes_of, loops_of, read_mixture
from netctrl.certificates.record import QueueCertificate, SampledLoop
from netctrl.certificates.red import RedSubject
from netctrl.certificates.subject import PiSubject
from netctrl.errors import InvalidValue
from netctrl.frequency.sampled_stability import stable_gains
from netctrl.plants.queues.queue_loop import QueueLoop

__all__ = ["CheckPoint", "point_of"]

_CHECKED = ("pie", "docsis-pie", "pi2", "dualpi2", "red", "wred")
"""Laws of which the fluid has the nonlinear rules."""
_FLOWS_OF_WINDOW = 20.0
"""Flows in place of a window alone: a loop's linear part doesn't depend on their number."""


class CheckPoint(NamedTuple):
    """Worst point of a certificate, with its loop."""

    subject: PiSubject | RedSubject
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

    @property
    def target_s(self) -> float:
        """Standing delay of the queue [s]."""
        return self.subject.target_s or float(self.loop.standing(self.output))


def point_of(certificate: QueueCertificate) -> CheckPoint:
    """The worst point of a certificate.

    Raises
    ------
    InvalidValue
        A certificate without an equilibrium, or of a law without a nonlinear check.
    """
    name = certificate.law.name
    subject = subject_of(name, certificate.law.parameters) if name in _CHECKED else None
    if not isinstance(subject, PiSubject | RedSubject):
        raise InvalidValue("check", name, f"a law with a nonlinear check: {', '.join(_CHECKED)}")
    at = certificate.certificate.sampled
    if at is None:
        raise InvalidValue("check", certificate.verdict, "a certificate with an equilibrium")
    inputs = certificate.inputs
    box = box_of(
        subject,
        inputs.rtt_s,
        inputs.flows,
        inputs.capacity_bit_per_s,
        inputs.window_packets,
        inputs.packet_size_bytes,
        inputs.senders,
        inputs.stretches,
    )
    mixture = read_mixture(at.sender)
    if any(sender.name == "cubic" for sender, _ in mixture.parts):
        raise InvalidValue("check", at.sender, "senders whose windows the engines have: all but cubic")
    loop, flows = _loop(subject, mixture, box, at)
    number = _FLOWS_OF_WINDOW if at.flows is None else at.flows
    loop, flows = replace(loop, rate=loop.rate * number / flows), number
    limits = stable_gains(loop, flows, at.rtt_s)
    angle = limits.upper_angle if limits.unstable_poles == 0 else limits.lower_angle
    return CheckPoint(
        subject=subject,
        mixture=mixture,
        stretches=inputs.stretches,
        loop=loop,
        flows=flows,
        rtt_s=at.rtt_s,
        packet_bytes=inputs.packet_size_bytes,
        output=float(loop.output(flows, at.rtt_s)),
        period_s=2.0 * pi * loop.epoch / angle,
    )


def _share(box: Box, capacity: float) -> float:
    """Greatest rate of a box over one of its rates."""
    return 1.0 if box.inputs.capacity_bit_per_s is None else box.inputs.capacity_bit_per_s[1] / capacity


def _loop(subject: PiSubject | RedSubject, mixture: Mixture, box: Box, at: SampledLoop) -> tuple[QueueLoop, float]:
    """Loop of the worst point, which may be at the end of a range of gains, and its flows.

    Each line of RED has a standing delay of its own, and so an output of its own.
    """
    loops = loops_of(subject, classes_of(subject, mixture, box.inputs.stretches), box)
    flows = None if at.flows is None or at.capacity_bit_per_s is None else at.flows * _share(box, at.capacity_bit_per_s)
    if flows is None:
        trip = loops[0].trip(loops[0].classes[0], at.rtt_s, subject.target_s)
        flows = box.rate * trip / at.windows_packets[0]
    certified = 10.0 ** (at.gain_margin_db / 20.0)
    near = []
    for loop in loops:
        x = float(loop.output(flows, at.rtt_s))
        if loop.within[0] * (1.0 - 1e-6) <= x <= loop.within[1] * (1.0 + 1e-6):
            near.append(loop)
    return min(near, key=lambda loop: abs(stable_gains(loop, flows, at.rtt_s).factor - certified)), flows
