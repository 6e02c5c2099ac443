"""Loops of a law and its senders: one for each sender or mixture, and for each range with other gains."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from math import pi
from typing import NamedTuple

import numpy as np

from netctrl.certificates.box import Box, Ends
from netctrl.certificates.record import LinearMargins
from netctrl.certificates.subject import Subject
from netctrl.errors import InvalidValue, did_you_mean
from netctrl.frequency.margins import margins
from netctrl.frequency.sampled_stability import nearest_crossings
from netctrl.model.loop import DelayLoop
from netctrl.plants.queues.queue_laws import SampledPi, WindowClass
from netctrl.plants.queues.queue_loop import QueueLoop
from netctrl.plants.queues.queue_tail import tail_bound
from netctrl.plants.queues.window_response import SENDERS, Sender

__all__ = [
    "MIXTURE_TAKES",
    "Mixture",
    "box_loops",
    "check_bounded",
    "classes_of",
    "loop_at",
    "loops_of",
    "read_mixture",
    "usual_margins",
]

MIXTURE_TAKES = (
    f"senders ({', '.join(SENDERS)}), or a mixture of them with the shares of flows, as in reno+dctcp or .8reno+.2dctcp"
)
_PART = re.compile(r"\s*([0-9]*\.?[0-9]+)?\s*([a-z][a-z0-9-]*)\s*")
_SAFE = 0.45
"""Half, less what is not known of a crossing."""
_NEGLIGIBLE = 1e-5
"""Response below which no margin is looked for."""


_SELDOM = 300.0
"""Time between updates up to which a response is computed [round trip]."""


class Mixture(NamedTuple):
    """Senders that share a link."""

    text: str
    parts: tuple[tuple[Sender, float], ...]
    """(sender, share of the flows); shares sum to 1."""


def read_mixture(text: str) -> Mixture:
    """A sender, or several with their shares of the flows; InvalidValue for another text."""
    parts = []
    for part in text.split("+"):
        match = _PART.fullmatch(part)
        if match is None:
            raise InvalidValue("sender", text, MIXTURE_TAKES)
        if match[2] == "dcqcn":
            raise InvalidValue("sender", text, f"{MIXTURE_TAKES}; dcqcn alone, at thresholds: `netctrl certify dcqcn`")
        if match[2] not in SENDERS:
            raise InvalidValue("sender", text, MIXTURE_TAKES + did_you_mean(match[2], SENDERS))
        parts.append((SENDERS[match[2]], float(match[1]) if match[1] else None))
    given = [share for _, share in parts if share is not None]
    if given and (len(given) < len(parts) or abs(sum(given) - 1.0) > 1e-6 or min(given) <= 0.0):
        raise InvalidValue("sender", text, f"{MIXTURE_TAKES}; shares above 0 for all or for none, which sum to 1")
    return Mixture(text, tuple((sender, share or 1.0 / len(parts)) for sender, share in parts))


def classes_of(subject: Subject, mixture: Mixture, stretches: tuple[float, ...]) -> tuple[WindowClass, ...]:
    """Classes of flows: each sender at each round-trip time."""
    found = [
        subject.seen_by(sender.under(subject.drops))._replace(share=share / len(stretches), stretch=stretch)
        for sender, share in mixture.parts
        for stretch in stretches
    ]
    if not any(each.queued for each in found):
        raise InvalidValue(
            "sender",
            mixture.text,
            f"at least one classic sender for {subject.name}: without one the step of its scalable queue marks, "
            "not its PI law",
        )
    if len({each.sender.spread > 0.0 for each in found}) > 1:
        clocked = ", ".join(sender.name for sender in SENDERS.values() if sender.spread)
        takes = f"only senders that acknowledgements clock ({clocked}) in a mixture, or none of them"
        raise InvalidValue("sender", mixture.text, takes)
    if len(set(stretches)) > 1 and len({each.sender.notice for each in found}) > 1:
        takes = "with several round-trip times senders that are all with ECN, or all without"
        raise InvalidValue("sender", mixture.text, takes)
    return tuple(found)


def check_bounded(loop: QueueLoop, what: str) -> None:
    """InvalidValue where a loop has no bound over cells, which `what` needs."""
    if loop.several_clocks:
        senders = "+".join(dict.fromkeys(k.sender.name for k in loop.classes))
        takes = f"one round-trip time for {senders} {what}; reno and creno for several"
        raise InvalidValue("stretches", tuple(dict.fromkeys(k.stretch for k in loop.classes)), takes)


def loops_of(
    subject: Subject,
    classes: tuple[WindowClass, ...],
    box: Box,
    around: Sequence[tuple[Ends, Ends]] = (),
) -> list[QueueLoop]:
    """One loop for each range of the law's output with gains of its own.

    Of a law in continuous time the angles up to pi stand for frequencies that provably cover the box, or that cover
    the points where the loop's range begins and ends in the boxes (N, tau) `around` it.
    """
    found = []
    for loop in subject.loops(classes, box.rate, box.inputs.packet_size_bytes):
        if isinstance(loop.law, SampledPi):
            _check_pace(loop, box)
            found.append(loop)
            continue
        check_bounded(loop, f"under {subject.name}")
        points = [((n, n), (tau, tau)) for each in around for n, tau in loop.starts(*each)]
        found.append(_covered(loop, points if around else [(box.flows, box.rtt)]))
    return found


def loop_at(subject: Subject, mixture: Mixture, box: Box, flows: float, rtt: float) -> QueueLoop:
    """The loop whose range of outputs has the equilibrium of a point; the last where none has."""
    classes = classes_of(subject, mixture, box.inputs.stretches)
    loops = subject.loops(classes, box.rate, box.inputs.packet_size_bytes)
    return next((each for each in loops if each.holds(each.output(flows, rtt))), loops[-1])


def _check_pace(loop: QueueLoop, box: Box) -> None:
    """InvalidValue for a law that acts so seldom that its response takes many thousands of aliases."""
    shortest = min(float(loop.trip(k, box.rtt[0], loop.standing(1.0))) for k in loop.classes)
    if loop.epoch > _SELDOM * shortest:
        takes = f"a time of at most {_SELDOM:g} of the shortest round trips with the queue, {shortest:.3g} s"
        raise InvalidValue("tupdate", loop.epoch, takes)


def box_loops(subject: Subject, box: Box, around: Sequence[tuple[Ends, Ends]] = ()) -> list[tuple[Mixture, QueueLoop]]:
    """Loops of a law with each of a box's senders, as in `loops_of`."""
    return [
        (mixture, loop)
        for mixture in map(read_mixture, box.inputs.senders)
        for loop in loops_of(subject, classes_of(subject, mixture, box.inputs.stretches), box, around)
    ]


def _covered(loop: QueueLoop, boxes: list[tuple[Ends, Ends]]) -> QueueLoop:
    """The loop with angles up to pi for frequencies beyond which it provably meets no margin of any of the boxes.

    Beyond them |L| is at most half of what it is at some crossing of the negative axis, and at most 1/2: so neither
    the least gain margin of a box nor a gain crossover is beyond.
    """
    left = [(flows, rtt, starts) for flows, rtt in boxes if (starts := loop.starts(flows, rtt))]
    longest = [max(_longest(loop, *each) for each in starts) for _, _, starts in left]
    loop = replace(loop, continuous_s=min([loop.continuous_s, *(2.0 * each for each in longest)]))
    crossings = np.zeros(len(left))
    while left:
        bounds = np.array([tail_bound(loop, pi / loop.continuous_s, flows, rtt) for flows, rtt, _ in left])
        unknown = np.flatnonzero((bounds <= 0.5) & (crossings == 0.0))  # a crossing stays one as the range grows
        if unknown.size:
            crossings[unknown] = _crossings(loop, [left[i][2] for i in unknown])
        open_ = np.flatnonzero((bounds > 0.5) | (bounds > np.maximum(_SAFE * crossings, _NEGLIGIBLE)))
        left, crossings = [left[i] for i in open_], crossings[open_]
        if left:
            loop = replace(loop, continuous_s=0.5 * loop.continuous_s)
    return loop


def _crossings(loop: QueueLoop, starts: list[list[tuple[float, float]]]) -> np.ndarray:
    """Greatest |L| up to 1 at a crossing of the negative axis, of several lists of points (N, tau)."""
    points = np.array([point for each in starts for point in each])
    found = nearest_crossings(loop, points[:, 0], points[:, 1])
    return np.maximum.reduceat(found, np.cumsum([0, *map(len, starts[:-1])]))


def _longest(loop: QueueLoop, flows: float, rtt: float) -> float:
    standing = loop.standing(float(loop.output(flows, rtt)))
    return max(float(loop.trip(k, rtt, standing)) for k in loop.classes)


def usual_margins(subject: Subject, box: Box) -> LinearMargins | None:
    """Worst of the box's corners in the loop as it is usually given; without Cubic's curve; None where
    there is a mixture, or no other sender."""
    mixtures = [read_mixture(text) for text in box.inputs.senders]
    if len(box.inputs.stretches) > 1 or any(len(mixture.parts) > 1 for mixture in mixtures):
        return None
    mixtures = [mixture for mixture in mixtures if not mixture.parts[0][0].curve]
    found = [
        _usual_at(subject, mixture, box, flows, rtt)
        for mixture in mixtures
        for flows in set(box.flows)
        for rtt in set(box.rtt)
    ]
    return min(found, key=lambda each: each.gain_margin_db, default=None)


def _usual_at(subject: Subject, mixture: Mixture, box: Box, flows: float, rtt: float) -> LinearMargins:
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
