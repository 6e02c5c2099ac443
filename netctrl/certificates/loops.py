"""Loops of a law and its senders: who sends, as which classes of flows, and one loop for each range of constant gains.

A certificate holds for every sender or mixture of a box, and each has loops of its own. A law such as PIE scales its
gains in steps of its output x: in each range of x its gains are constants, and a linear loop describes it. The
equilibrium x falls with tau and rises with N, so a range of x is a part of the box; `QueueLoop.within` says which, and
the parts of all loops cover the box. The response of a loop is derived at `netctrl.plants.queues.queue_response`.

A law that acts at intervals has a response on the unit circle, at angles up to pi. One in continuous time (RED) has
frequencies without end. It is treated as if it acted every `continuous_s` seconds: angles up to pi then stand for
frequencies up to pi/`continuous_s`, and that is made so short that no margin can be beyond (`_covered`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import pi
from typing import NamedTuple, Unpack

import numpy as np

from netctrl.certificates.box import Asked, Box, Ends, box_of, sender_names
from netctrl.certificates.codel import CodelSubject, CycleSubject, codel_box
from netctrl.certificates.ecn import EcnSubject
from netctrl.certificates.record import LinearMargins
from netctrl.certificates.subject import Subject
from netctrl.core.errors import InvalidValue, did_you_mean
from netctrl.frequency.margins import margins
from netctrl.frequency.sampled_stability import nearest_crossings
from netctrl.model.loop import DelayLoop
from netctrl.plants.queues.cubic_response import cubic_share
from netctrl.plants.queues.queue_laws import SampledPi, WindowClass
from netctrl.plants.queues.queue_loop import QueueLoop, tail_bound
from netctrl.plants.queues.window_response import CUBIC, SENDERS, Sender

LINUX_SENDERS = ("linux-creno", "linux-reno")
"""What Linux sends: Cubic, by default, on its Reno-friendly line, and Reno."""
_CURVED = 0.05
"""Share of Cubic's curve from which it counts: below it gain margins of `cubic` and `creno` are within .5 dB."""
_TAKES = (
    f"senders ({', '.join(SENDERS)}), or a mixture of them with the shares of flows, as in reno+dctcp or .8reno+.2dctcp"
)
_PART = re.compile(r"\s*([0-9]*\.?[0-9]+)?\s*([a-z][a-z0-9-]*)\s*")
_SAFE = 0.45
"""Half, less what is not known of a crossing."""
_NEGLIGIBLE = 1e-5
"""Response below which no margin is looked for."""
_SELDOM = 300.0
"""Time between updates up to which a response is computed [round trip]: beyond, it takes many thousands of aliases."""


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
            raise InvalidValue("sender", text, _TAKES)
        if match[2] == "dcqcn":
            raise InvalidValue("sender", text, f"{_TAKES}; dcqcn alone, at thresholds: `netctrl certify dcqcn`")
        if match[2] not in SENDERS:
            raise InvalidValue("sender", text, _TAKES + did_you_mean(match[2], SENDERS))
        parts.append((SENDERS[match[2]], float(match[1]) if match[1] else None))
    given = [share for _, share in parts if share is not None]
    if given and (len(given) < len(parts) or abs(sum(given) - 1.0) > 1e-6 or min(given) <= 0.0):
        raise InvalidValue("sender", text, f"{_TAKES}; shares above 0 for all or for none, which sum to 1")
    return Mixture(text, tuple((sender, share or 1.0 / len(parts)) for sender, share in parts))


def judged_box(subject: Subject | CycleSubject, **where: Unpack[Asked]) -> Box:
    """The box of a law, with its system's senders where none are asked for.

    PI laws of Linux have Linux's: `linux-creno`, `linux-reno`, and `cubic` where its curve is in play at the largest
    windows of the box. ECN's thresholds have the sender of their name, all others `reno`; so has RED, whose loop has no
    bound for several round-trip times of Linux's.

    Raises
    ------
    InvalidValue
        A value outside its bounds, or a sender other than that of ECN's thresholds.
    """
    asked = where.get("senders")
    if isinstance(subject, CodelSubject):
        return codel_box(subject, where)
    if isinstance(subject, EcnSubject):
        given = () if asked is None else sender_names(asked)
        if given not in ((), (subject.name,)):
            raise InvalidValue("sender", given, f"{subject.name} alone, for which these thresholds are certified")
        where["senders"] = subject.name
        return box_of(subject, **where)
    box = box_of(subject, **where)
    if asked is not None or subject.in_bytes or not is_linux(subject):
        return box
    flows, rtt = box.flows[0], box.rtt[1]  # where windows are largest
    loop = loop_at(subject, read_mixture(LINUX_SENDERS[0]), box, flows, rtt)
    x = float(loop.output(flows, rtt))
    trips = [(k, np.log(loop.trip(k, rtt, loop.standing(x)))) for k in loop.classes]
    shares = [cubic_share(np.log(k.factor * x**k.power), trip, CUBIC.curve, CUBIC.increase) for k, trip in trips]
    return box.with_senders(*LINUX_SENDERS, *([CUBIC.name] if max(shares) > _CURVED else []))


def is_linux(subject: Subject) -> bool:
    """Whether Linux runs a law."""
    return subject.implementation.startswith("Linux")


def classes_of(subject: Subject, mixture: Mixture, stretches: tuple[float, ...]) -> tuple[WindowClass, ...]:
    """Classes of flows: each sender at each round-trip time.

    Parameters
    ----------
    subject : Subject
    mixture : Mixture
    stretches : tuple of float
        Round-trip times of equal groups of flows, over the box's.

    Raises
    ------
    InvalidValue
        Senders whose flows the law's loop can't have together.
    """
    found = [
        subject.seen_by(sender.under(subject.drops))._replace(share=share / len(stretches), stretch=stretch)
        for sender, share in mixture.parts
        for stretch in stretches
    ]
    takes = ""
    if len(set(stretches)) > 1 and len({each.sender.notice for each in found}) > 1:
        takes = "with several round-trip times senders that are all with ECN, or all without"
    if len({each.sender.spread > 0.0 for each in found}) > 1:
        clocked = ", ".join(sender.name for sender in SENDERS.values() if sender.spread)
        takes = f"only senders that acknowledgements clock ({clocked}) in a mixture, or none of them"
    if not any(each.queued for each in found):
        takes = (
            f"at least one classic sender for {subject.name}: without one the step of its scalable queue marks, "
            "not its PI law"
        )
    if takes:
        raise InvalidValue("sender", mixture.text, takes)
    return tuple(found)


def check_bounded(loop: QueueLoop, what: str) -> None:
    """InvalidValue where a loop has no bound over cells, which `what` needs."""
    if loop.several_clocks:
        senders = "+".join(dict.fromkeys(k.sender.name for k in loop.classes))
        takes = f"one round-trip time for {senders} {what}; reno and creno for several"
        raise InvalidValue("stretches", tuple(dict.fromkeys(k.stretch for k in loop.classes)), takes)


def box_loops(subject: Subject, box: Box, around: Sequence[tuple[Ends, Ends]] = ()) -> list[tuple[Mixture, QueueLoop]]:
    """Loops of a law with each of a box's senders.

    Parameters
    ----------
    subject : Subject
    box : Box
    around : sequence of (flows, round-trip times)
        As of `loops_of`.
    """
    return [
        (mixture, loop)
        for mixture in map(read_mixture, box.inputs.senders)
        for loop in loops_of(subject, classes_of(subject, mixture, box.inputs.stretches), box, around)
    ]


def loops_of(
    subject: Subject, classes: tuple[WindowClass, ...], box: Box, around: Sequence[tuple[Ends, Ends]] = ()
) -> list[QueueLoop]:
    """One loop for each range of the law's output with gains of its own.

    Parameters
    ----------
    subject : Subject
    classes : tuple of WindowClass
    box : Box
    around : sequence of (flows, round-trip times)
        Boxes (N, tau [s]). Of a law in continuous time the angles up to pi stand for frequencies that provably cover
        `box`, or, if these are given, the points where the loop's range begins and ends in them.

    Raises
    ------
    InvalidValue
        A law that acts too seldom, or several round-trip times of clocked senders under a law in continuous time.
    """
    found = []
    for loop in subject.loops(classes, box.rate, box.inputs.packet_size_bytes):
        if isinstance(loop.law, SampledPi):
            shortest = min(float(loop.trip(k, box.rtt[0], loop.standing(1.0))) for k in loop.classes)
            if loop.epoch > _SELDOM * shortest:
                takes = f"a time of at most {_SELDOM:g} of the shortest round trips with the queue, {shortest:.3g} s"
                raise InvalidValue("tupdate", loop.epoch, takes)
            found.append(loop)
        else:
            check_bounded(loop, f"under {subject.name}")
            points = [((n, n), (tau, tau)) for each in around for n, tau in loop.starts(*each)]
            found.append(_covered(loop, points if around else [(box.flows, box.rtt)]))
    return found


def _covered(loop: QueueLoop, boxes: list[tuple[Ends, Ends]]) -> QueueLoop:
    """The loop with angles up to pi for frequencies beyond which it provably meets no margin of any of the boxes.

    Beyond them |L| is at most half of what it is at some crossing of the negative axis, and at most 1/2: so neither
    the least gain margin of a box nor a gain crossover is beyond. The interval is halved for the boxes of which the
    bound of the tail doesn't say so yet; it bounds |L| at all higher frequencies, so nothing there is sampled.
    """
    left = [(flows, rtt, starts) for flows, rtt in boxes if (starts := loop.starts(flows, rtt))]
    longest = [
        max(
            float(loop.trip(k, tau, loop.standing(float(loop.output(n, tau)))))
            for n, tau in starts
            for k in loop.classes
        )
        for _, _, starts in left
    ]
    loop = replace(loop, continuous_s=min([loop.continuous_s, *(2.0 * each for each in longest)]))
    crossings = np.zeros(len(left))
    while left:
        bounds = np.array([tail_bound(loop, pi / loop.continuous_s, flows, rtt) for flows, rtt, _ in left])
        unknown = np.flatnonzero((bounds <= 0.5) & (crossings == 0.0))  # a crossing stays one as the range grows
        if unknown.size:
            points = [np.array(left[i][2]) for i in unknown]
            found = nearest_crossings(loop, *np.concatenate(points).T)
            crossings[unknown] = np.maximum.reduceat(found, np.cumsum([0, *map(len, points[:-1])]))
        open_ = np.flatnonzero((bounds > 0.5) | (bounds > np.maximum(_SAFE * crossings, _NEGLIGIBLE)))
        left, crossings = [left[i] for i in open_], crossings[open_]
        if left:
            loop = replace(loop, continuous_s=0.5 * loop.continuous_s)
    return loop


def loop_at(subject: Subject, mixture: Mixture, box: Box, flows: float, rtt: float) -> QueueLoop:
    """The loop whose range of outputs has the equilibrium of a point; the last where none has.

    Parameters
    ----------
    subject : Subject
    mixture : Mixture
    box : Box
    flows, rtt : float
        Flows of the loop, and the round-trip time without the queue [s].
    """
    classes = classes_of(subject, mixture, box.inputs.stretches)
    loops = subject.loops(classes, box.rate, box.inputs.packet_size_bytes)
    return next((each for each in loops if each.holds(each.output(flows, rtt))), loops[-1])


def usual_margins(subject: Subject, box: Box) -> LinearMargins | None:
    """Worst of the box's corners in the loop as it is usually given; None for mixtures and for Cubic's curve alone.

    It is Hollot's (IEEE Trans. Automatic Control 47(6), 2002) with the law's own gains: senders at the rate w/R, with
    the increase a of a window a round trip, R = tau, and the window's delayed effect on itself taken as undelayed,

        L(s) = gain (power/x) (R/2) e^(−s R) law(s)/((1 + s R)(1 + s R w/(2 a))),

    for scalable senders R in place of R/2 and w/a in place of w/(2 a), and the lag of their average of marks beside
    it. The law's slope over x is power/x, since windows answer ln p = power ln x + constant.
    """
    mixtures = [read_mixture(text) for text in box.inputs.senders]
    if len(box.inputs.stretches) > 1 or any(len(mixture.parts) > 1 for mixture in mixtures):
        return None
    mixtures = [mixture for mixture in mixtures if not mixture.parts[0][0].curve]
    found = []
    for mixture, flows, rtt in product(mixtures, set(box.flows), set(box.rtt)):
        # Published loops have windows that are sent at a rate.
        sender, trip = mixture.parts[0][0]._replace(spread=0.0), rtt * box.inputs.stretches[0]
        with_queue = trip + subject.target_s if box.inputs.window_packets is not None else trip  # as it was given
        window = box.rate * with_queue / flows
        x, law = subject.usual(sender, sender.probability(window), box.rate, box.inputs.packet_size_bytes)
        half = 1.0 if sender.scalable else 2.0
        lags = (trip, trip / (half * sender.increase / window))
        if sender.scalable and sender.averaging:
            lags = (*lags, trip / sender.averaging)
        known = margins(
            DelayLoop(
                gain=law.gain * subject.seen_by(sender).power / x * trip / half,
                integrators=law.integrators,
                lags=(*lags, *law.lags),
                leads=law.leads,
                delay=trip,
            )
        )
        found.append(
            LinearMargins(
                sender=mixture.text,
                rtt_s=rtt,
                window_packets=window,
                stable=known.stable,
                gain_margin_db=known.gain_margin_db,
                phase_margin_deg=min(known.phase_margin_deg, 180.0),
            )
        )
    return min(found, key=lambda each: each.gain_margin_db, default=None)
