"""`random-detect` of Cisco IOS, IOS XE, IOS XR and NX-OS, and of Arista EOS, from `show running-config`.

IOS has thresholds of an average with the weight 2^-9 in packets, and one packet of 10 is dropped at the upper one,
where a configuration doesn't say otherwise; its default thresholds depend on the router's buffers. NX-OS and EOS name
each value, and read the present queue unless they have a `weight`.

Sources: Cisco IOS Quality of Service Solutions Command Reference, random-detect (precedence, dscp, ecn,
exponential-weighting-constant); Cisco IOS XR Modular QoS Command Reference, random-detect; Cisco Nexus 9000 Series
NX-OS Quality of Service Configuration Guide; Arista EOS User Manual, Quality of Service, `random-detect ecn`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from netctrl.certificates.inputs.queue import NO_WEIGHT, UNITS, InstalledQueue, Length, Thresholds
from netctrl.core.errors import InvalidValue

_LABELS = ("dscp", "precedence", "prec", "cos", "exp", "mpls", "discard-class", "qos-group", "traffic-class", "color")
_ENDS = {
    **dict.fromkeys(("minimum-threshold", "min-threshold", "min"), "min"),
    **dict.fromkeys(("maximum-threshold", "max-threshold", "max"), "max"),
}
_PERCENT = ("drop-probability", "max-mark-probability", "mark-probability")
_NUMBERS = (
    "thresholds in numbers: the defaults depend on the router's buffers; take them from `show policy-map interface`, "
    "and write them as in `random-detect precedence 0 20 40 10`"
)


@dataclass(slots=True)
class _Class:
    """What a class or an interface says about random-detect."""

    policy: str
    name: str
    lines: list[list[str]] = field(default_factory=list)
    ecn: bool = False
    weight: str | None = None
    limit: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Line:
    """One line of thresholds."""

    label: list[str] = field(default_factory=list)
    lengths: list[tuple[str, str]] = field(default_factory=list)
    percent: str | None = None
    named: bool = False
    weight: str | None = None
    ecn: bool = False


def read_cisco(text: str) -> tuple[InstalledQueue, ...]:
    """Laws of each class or interface with random-detect, one for each line of thresholds.

    Parameters
    ----------
    text : str
        Configuration.
    """
    return tuple(queue for each in _classes(text) for queue in _queues(each))


def _classes(text: str) -> Iterator[_Class]:
    found: dict[tuple[str, str], _Class] = {}
    policy = interface = name = ""
    for line in text.splitlines():
        words = line.partition("!")[0].split()
        match words:
            case ["policy-map", *_, last]:
                policy, name = last, ""
            case ["class", *_, last] if policy:
                name = last
            case ["interface", _, *_]:
                policy, interface = "", " ".join(words[1:])
                name = interface
            case ["tx-queue" | "uc-tx-queue", _]:
                policy, name = "", f"{interface} {' '.join(words)}"
            case ["queue-limit", *limit]:
                found.setdefault((policy, name), _Class(policy, name)).limit = limit
        if "random-detect" in words and words[0] not in ("no", "default"):
            at = words.index("random-detect")
            each = found.setdefault((policy, name), _Class(policy, name))
            match words[at + 1 :]:
                case ["ecn"]:
                    each.ecn = True
                case ["exponential-weighting-constant", weight]:
                    each.weight = weight
                case rest:
                    each.lines.append([*words[:at], *rest])
    yield from (each for each in found.values() if each.lines or each.ecn or each.weight)


def _queues(given: _Class) -> list[InstalledQueue]:
    handle = f"{given.policy} {given.name}".strip() if given.policy else ""
    queue = InstalledQueue(kind="wred", handle=handle, device="" if given.policy else given.name)
    queues = []
    for line in (_parsed(words) for words in given.lines):
        if not line.lengths and not line.label:
            continue
        each = replace(queue, parent=" ".join(line.label))
        try:
            queues.append(_judged(each, line, given))
        except InvalidValue as error:
            queues.append(each.unread(error))
    return queues or [queue.unread(InvalidValue("random-detect", None, _NUMBERS))]


def _parsed(words: list[str]) -> _Line:
    """A line's words, from the left to the right."""
    line = _Line()
    unit, end = "packets", ""
    left = iter(words)
    for word in left:
        if word in _LABELS or word == "tx-queue":
            line.label += [word, next(left, "")]
        elif word in _ENDS:
            line.named, end = True, word
        elif word in _PERCENT:
            line.named, line.percent = True, next(left, "")
        elif word == "probability":
            line.named, end = True, word
        elif word == "weight":
            line.weight = next(left, "")
        elif word == "ecn":
            line.ecn = True
        elif word in UNITS and line.lengths and line.lengths[-1][1] == "":
            line.lengths[-1] = (line.lengths[-1][0], word)
        elif word in ("percent", "percentage"):
            unit = "percent"
        elif word[0].isdigit() and end == "probability":
            line.percent = word
        elif word[0].isdigit():
            line.lengths.append((word, ""))
        elif not word.endswith("-based"):
            line.label.append(word)
    line.lengths = [(value, each or unit) for value, each in line.lengths]
    return line


def _judged(queue: InstalledQueue, line: _Line, given: _Class) -> InstalledQueue:
    if len(line.lengths) < 2:
        raise InvalidValue("random-detect", " ".join(line.label) or None, _NUMBERS)
    if "cells" in line.label:
        raise InvalidValue("random-detect", "cells", "thresholds in packets, bytes or time")
    low, high = (Length.read(value, unit) for value, unit in line.lengths[:2])
    notes = []
    if line.percent is not None:
        percent = Length.read(line.percent.removesuffix("%"), "percent").value
    elif line.named:
        raise InvalidValue("drop-probability", None, "the probability at the maximum threshold in percent")
    else:
        denominator = line.lengths[2][0] if len(line.lengths) > 2 else "10"
        percent = 100.0 / (Length.read(denominator, "packets").value or 1.0)
    weight = line.weight if line.weight is not None else given.weight
    if weight is None:
        weight = "0" if line.named else "9"
        notes.append(NO_WEIGHT if line.named else "no exponential-weighting-constant: 9, IOS's default, is taken")
    law = Thresholds(
        low=low,
        high=high,
        percent=percent,
        ecn=line.ecn or given.ecn,
        weight_log=int(Length.read(weight, "packets").value),
        buffer=_limit(given.limit),
    )
    return replace(queue, law=law, notes=tuple(notes))


def _limit(words: list[str]) -> Length | None:
    """The queue's limit; None where there is none in packets, bytes or time."""
    unit = words[1] if len(words) > 1 else "packets"
    return Length.read(words[0], unit) if words and unit in UNITS else None
