"""Loops of a law and its senders: one for each sender or mixture, and for each range with other gains."""

from __future__ import annotations

import re
from typing import NamedTuple

from netctrl.certificates.subject import PiSubject
from netctrl.errors import InvalidValue, did_you_mean
from netctrl.plants.queues.queue_loop import QueueLoop
from netctrl.plants.queues.queue_response import SampledPi, WindowClass
from netctrl.plants.queues.window_response import SENDERS, Sender

__all__ = ["MIXTURE_TAKES", "Mixture", "classes_of", "loops_of", "read_mixture"]

MIXTURE_TAKES = (
    f"senders ({', '.join(SENDERS)}), or a mixture of them with the shares of flows, as in reno+dctcp or .8reno+.2dctcp"
)
_PART = re.compile(r"\s*([0-9]*\.?[0-9]+)?\s*([a-z][a-z0-9]*)\s*")


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
        if match[2] not in SENDERS:
            raise InvalidValue("sender", text, MIXTURE_TAKES + did_you_mean(match[2], SENDERS))
        parts.append((SENDERS[match[2]], float(match[1]) if match[1] else None))
    given = [share for _, share in parts if share is not None]
    if given and (len(given) < len(parts) or abs(sum(given) - 1.0) > 1e-6 or min(given) <= 0.0):
        raise InvalidValue("sender", text, f"{MIXTURE_TAKES}; shares above 0 for all or for none, which sum to 1")
    return Mixture(text, tuple((sender, share or 1.0 / len(parts)) for sender, share in parts))


def classes_of(subject: PiSubject, mixture: Mixture, stretches: tuple[float, ...]) -> tuple[WindowClass, ...]:
    """Classes of flows: each sender at each round-trip time."""
    if subject.apart and all(sender.scalable for sender, _ in mixture.parts):
        raise InvalidValue(
            "sender",
            mixture.text,
            f"at least one classic sender for {subject.name}: without one the step of its scalable queue marks, "
            "not its PI law",
        )
    found = []
    for sender, share in mixture.parts:
        for stretch in stretches:
            queued = not (subject.apart and sender.scalable)
            linear = subject.power == 1.0
            found.append(
                WindowClass(
                    sender,
                    share / len(stretches),
                    stretch,
                    factor=(subject.coupling if sender.scalable and not linear else 1.0) / subject.thinning,
                    power=1.0 if sender.scalable else subject.power,
                    queued=queued,
                    other_delay_s=0.0 if queued else subject.apart_delay_s,
                )
            )
    return tuple(found)


def loops_of(subject: PiSubject, classes: tuple[WindowClass, ...], rate: float) -> list[QueueLoop]:
    """One loop for each range of the law's output with gains of its own; `rate` in packets a second."""
    return [
        QueueLoop(
            classes,
            SampledPi(gains.integral, gains.proportional, gains.update_s, gains.target_s),
            rate,
            age_queues=subject.reading.age_s(1.0),
            marked_leaving=subject.marked_leaving,
            within=(low, high),
        )
        for low, high, gains in subject.rungs
    ]
