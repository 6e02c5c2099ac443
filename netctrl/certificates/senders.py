"""Senders by which a law is judged where none are asked for: those of the system that runs it."""

from __future__ import annotations

from typing import Unpack

import msgspec
import numpy as np

from netctrl.certificates.box import Box, Where, box_of, sender_names
from netctrl.certificates.ecn.subjects import EcnSubject
from netctrl.certificates.loops import loop_at, read_mixture
from netctrl.certificates.subject import Subject
from netctrl.errors import InvalidValue
from netctrl.plants.queues.cubic_response import cubic_share
from netctrl.plants.queues.window_response import CUBIC

__all__ = ["LINUX_SENDERS", "is_linux", "judged_box", "with_senders"]

LINUX_SENDERS = ("linux-creno", "linux-reno")
"""What Linux sends: Cubic, by default, on its Reno-friendly line, and Reno."""
_CURVED = 0.05
"""Share of Cubic's curve from which it counts: below it gain margins of `cubic` and `creno` are within .5 dB."""


def judged_box(subject: Subject | EcnSubject, **where: Unpack[Where]) -> Box:
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
    if isinstance(subject, EcnSubject):
        given = () if asked is None else sender_names(asked)
        if given not in ((), (subject.name,)):
            raise InvalidValue("sender", given, f"{subject.name} alone, for which these thresholds are certified")
        where["senders"] = subject.name
        return box_of(subject, **where)
    box = box_of(subject, **where)
    if asked is not None or subject.in_bytes or not is_linux(subject):
        return box
    return with_senders(box, (*LINUX_SENDERS, *([CUBIC.name] if _is_curved(subject, box) else [])))


def is_linux(subject: Subject) -> bool:
    """Whether Linux runs a law."""
    return subject.implementation.startswith("Linux")


def with_senders(box: Box, names: tuple[str, ...]) -> Box:
    """A box with other senders."""
    return box._replace(inputs=msgspec.structs.replace(box.inputs, senders=names))


def _is_curved(subject: Subject, box: Box) -> bool:
    """Whether Cubic follows its own curve, and not only the Reno-friendly line, where windows are largest."""
    at = box.flows[0], box.rtt[1]
    loop = loop_at(subject, read_mixture(LINUX_SENDERS[0]), box, *at)
    x = float(loop.output(*at))
    return any(
        cubic_share(
            np.log(k.factor * x**k.power),
            np.log(loop.trip(k, box.rtt[1], loop.standing(x))),
            CUBIC.curve,
            CUBIC.increase,
        )
        > _CURVED
        for k in loop.classes
    )
