"""Margins of a law's loop as it is usually given, for comparison with published ones."""

from __future__ import annotations

from netctrl.certificates.box import Box
from netctrl.certificates.loops import Mixture, read_mixture
from netctrl.certificates.record import LinearMargins
from netctrl.certificates.subject import Subject
from netctrl.frequency.margins import margins
from netctrl.model.loop import DelayLoop

__all__ = ["linear_margins"]


def linear_margins(subject: Subject, box: Box) -> LinearMargins | None:
    """Worst of the box's corners in the loop as it is usually given; None where there is a mixture or Cubic."""
    mixtures = [read_mixture(text) for text in box.inputs.senders]
    curved = any(sender.curve for mixture in mixtures for sender, _ in mixture.parts)
    if curved or len(box.inputs.stretches) > 1 or any(len(mixture.parts) > 1 for mixture in mixtures):
        return None
    found = [
        _linear_at(subject, mixture, box, flows, rtt)
        for mixture in mixtures
        for flows in set(box.flows)
        for rtt in set(box.rtt)
    ]
    return min(found, key=lambda each: each.gain_margin_db)


def _linear_at(subject: Subject, mixture: Mixture, box: Box, flows: float, rtt: float) -> LinearMargins:
    # Published loops have windows that are sent at a rate.
    sender, trip = mixture.parts[0][0]._replace(spread=0.0), rtt * box.inputs.stretches[0]
    if box.inputs.window_packets is not None:
        window = box.rate * (trip + subject.target_s) / flows  # as it was given
    else:
        window = box.rate * trip / flows
    x, law = subject.usual(sender, sender.probability(window), box.rate, box.inputs.packet_size_bytes)
    damping = sender.increase / window
    lags = (trip, trip / damping) if sender.scalable else (trip, trip / (2.0 * damping))
    if sender.scalable and sender.averaging:
        lags = (*lags, trip / sender.averaging)
    loop = DelayLoop(
        gain=law.gain * subject.seen_by(sender).power / x * trip / (1.0 if sender.scalable else 2.0),
        integrators=law.integrators,
        lags=(*lags, *law.lags),
        leads=law.leads,
        delay=trip,
    )
    found = margins(loop)
    return LinearMargins(
        sender=mixture.text,
        rtt_s=rtt,
        window_packets=window,
        stable=found.stable,
        gain_margin_db=found.gain_margin_db,
        phase_margin_deg=min(found.phase_margin_deg, 180.0),
    )
