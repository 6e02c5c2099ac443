"""`random-detect` of Cisco IOS, IOS XE, IOS XR and NX-OS, and of Arista EOS, from `show running-config`.

IOS has thresholds of an average with the weight 2^-9 in packets, and one packet of 10 is dropped at the upper one,
where a configuration doesn't say otherwise; its default thresholds depend on the router's buffers. NX-OS and EOS name
each value, and read the present queue unless they have a `weight`.

Sources: Cisco IOS Quality of Service Solutions Command Reference, random-detect (precedence, dscp, ecn,
exponential-weighting-constant); Cisco IOS XR Modular QoS Command Reference, random-detect; Cisco Nexus 9000 Series
NX-OS Quality of Service Configuration Guide; Arista EOS User Manual, Quality of Service, `random-detect ecn`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

from netctrl.certificates.inputs.queue import NO_WEIGHT, UNITS, Input, InstalledQueue, Length, Thresholds, whole
from netctrl.core.errors import InvalidValue

_LABELS = {"dscp", "precedence", "prec", "cos", "exp", "discard-class", "qos-group", "traffic-class", "tx-queue"}
_PERCENT = {"drop-probability", "max-mark-probability", "probability", "percentage"}
_NUMBERS = (
    "thresholds in numbers: the defaults depend on the router's buffers; take them from `show policy-map interface`, "
    "and write them as in `random-detect precedence 0 20 40 10`"
)


@dataclass(slots=True)
class _Class:
    """What a class or an interface says about random-detect."""

    queue: InstalledQueue
    lines: list[list[str]] = field(default_factory=list)
    ecn: bool = False
    weight: str | None = None
    limit: list[str] = field(default_factory=list)


def read_cisco(given: Input) -> tuple[InstalledQueue, ...]:
    """Laws of each class or interface with random-detect, one for each line of thresholds.

    Parameters
    ----------
    given : Input
        Configuration.
    """
    found: dict[InstalledQueue, _Class] = {}
    queue = InstalledQueue(kind="wred")
    policy = ""
    for words in (line.partition("!")[0].split() for line in given.content.splitlines()):
        match words:
            case ["policy-map", *_, policy]:
                queue = InstalledQueue(kind="wred", handle=policy)
            case ["class", *_, name] if policy:
                queue = InstalledQueue(kind="wred", handle=f"{policy} {name}")
            case ["interface", _, *_]:
                queue, policy = InstalledQueue(kind="wred", device=" ".join(words[1:])), ""
            case ["tx-queue" | "uc-tx-queue", _]:
                queue = replace(queue, handle=" ".join(words))
            case ["queue-limit", *limit]:
                found.setdefault(queue, _Class(queue)).limit = limit
        if "random-detect" in words and words[0] not in ("no", "default"):
            at = words.index("random-detect")
            each = found.setdefault(queue, _Class(queue))
            match words[at + 1 :]:
                case ["ecn"]:
                    each.ecn = True
                case ["exponential-weighting-constant", weight]:
                    each.weight = weight
                case rest:
                    each.lines.append([*words[:at], *rest])
    return tuple(queue for each in found.values() if each.lines or each.ecn or each.weight for queue in _queues(each))


def _queues(given: _Class) -> list[InstalledQueue]:
    told = [line for line in given.lines if line and not line[0].endswith("-based")]
    queues = [_judged(line, given) for line in told]
    return queues or [given.queue.unread(InvalidValue("random-detect", None, _NUMBERS))]


def _judged(words: list[str], given: _Class) -> InstalledQueue:
    """The law of one line; each word is what the one before says, else a threshold or a name."""
    unit, label, lengths, notes = "packets", list[str](), list[list[str]](), list[str]()
    percent, weight = None, given.weight
    for before, word in pairwise(["", *words]):
        if before in _PERCENT and word not in _PERCENT:
            percent = word.removesuffix("%")
        elif before == "weight":
            weight = word
        elif word == "percent" and not lengths:
            unit = word
        elif word in UNITS and lengths:
            lengths[-1][1] = word
        elif word[0].isdigit() and before not in _LABELS:
            lengths.append([word, unit])
        elif word not in _PERCENT | {"weight", "ecn"} and not word.endswith("threshold"):
            label.append(word)
    queue = replace(given.queue, parent=" ".join(label))
    named = any(word in _PERCENT or word.endswith("threshold") for word in words)
    try:
        if len(lengths) < 2 or "cells" in label:
            raise InvalidValue("random-detect", queue.parent or None, _NUMBERS)
        low, high = (Length.read(*each) for each in lengths[:2])
        if named:
            most: float = whole("drop-probability", percent, 100)
        else:
            most = 100.0 / (whole("mark probability denominator", lengths[2][0] if lengths[2:] else "10") or 1)
        if weight is None:
            weight = "0" if named else "9"
            notes.append(NO_WEIGHT if named else "no exponential-weighting-constant: 9, IOS's default, is taken")
        amount, *its = [*given.limit, "packets"][:2] if given.limit else ("", "")
        law = Thresholds(
            low=low,
            high=high,
            percent=most,
            ecn=given.ecn or "ecn" in words,
            weight_log=whole("weight", weight, 31),
            buffer=Length.read(amount, its[0]) if its[0] in UNITS else None,
        )
    except InvalidValue as error:
        return queue.unread(error)
    return replace(queue, law=law, notes=tuple(notes))
