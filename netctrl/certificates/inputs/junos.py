"""Drop profiles of Junos, as `show configuration class-of-service` prints them, with or without `| display set`.

Fill levels are percent of the queue's buffer, and the queue is the present one. `interpolate` draws lines from point to
point, from (0, 0) on; without it the probability stays at a point's value up to the next one. Beyond the last point QFX
switches drop every packet, and other systems interpolate to 100 % at a full buffer.

Sources: Junos OS, Class of Service User Guide, "RED Drop Profiles", `drop-profiles`, `schedulers`, `buffer-size`;
Traffic Management User Guide of QFX switches, "Understanding CoS WRED Drop Profiles".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise

from netctrl.certificates.inputs.braces import blocks
from netctrl.certificates.inputs.queue import InstalledQueue, Length, Thresholds
from netctrl.core.errors import FileError, InvalidValue

_STAIRS = (
    "its probability rises in stairs: certify has laws of one line, as `interpolate` draws it, and a step to 100 %"
)
_Points = list[tuple[float, float]]


@dataclass(slots=True)
class _Profile:
    numbers: dict[str, list[str]] = field(default_factory=lambda: {"fill-level": [], "drop-probability": []})
    interpolated: bool = False


@dataclass(slots=True)
class _Scheduler:
    maps: list[tuple[str, str]] = field(default_factory=list)
    """Profile, and the packets that it is for."""
    ecn: bool = False
    buffer: str | None = None
    """In time."""


def read_junos(text: str, source: str) -> tuple[InstalledQueue, ...]:
    """Drop profiles of each scheduler, and those of none.

    Parameters
    ----------
    text : str
        Configuration, in braces or as `set` commands.
    source : str
        Name of the input in messages.

    Raises
    ------
    FileError
        No drop profile.
    """
    profiles: dict[str, _Profile] = {}
    schedulers: dict[str, _Scheduler] = {}
    for words in _commands(text, source):
        if "drop-profiles" in words[:-1]:
            _, name, *rest = words[words.index("drop-profiles") :]
            _take(profiles.setdefault(name, _Profile()), rest)
        elif "schedulers" in words[:-1]:
            _, name, *rest = words[words.index("schedulers") :]
            _schedule(schedulers.setdefault(name, _Scheduler()), rest)
    if not profiles:
        raise FileError(source, "no profile behind drop-profiles")
    queues = [
        replace(_queue(name, profiles.get(name), scheduler), parent=f"{of}, {priority}")
        for of, scheduler in schedulers.items()
        for name, priority in scheduler.maps
    ]
    used = {queue.handle for queue in queues}
    unused = (name for name in profiles if name not in used)
    return (*queues, *(_queue(name, profiles[name], _Scheduler()) for name in unused))


def _commands(text: str, source: str) -> Iterable[list[str]]:
    """Statements as words; `inactive:` ones, and those that `deactivate` and `delete` name, aren't there."""
    for words in blocks(source, "\n".join(_ended(line) for line in text.splitlines())).statements():
        if words and "inactive:" not in words and words[0] not in ("deactivate", "delete"):
            yield words


def _ended(line: str) -> str:
    return f"{line};" if line.lstrip().startswith(("set ", "deactivate ", "delete ")) else line


def _take(profile: _Profile, words: list[str]) -> None:
    into: list[str] = []
    for word in words:
        if word == "interpolate":
            profile.interpolated = True
        elif word in profile.numbers:
            into = profile.numbers[word]
        else:
            into.append(word)


def _schedule(scheduler: _Scheduler, words: list[str]) -> None:
    match words:
        case ["explicit-congestion-notification", *_]:
            scheduler.ecn = True
        case ["buffer-size", "temporal", time, *_]:
            scheduler.buffer = time
        case ["drop-profile-map", *given] if "drop-profile" in given[:-1]:
            at = given.index("drop-profile")
            scheduler.maps.append((given[at + 1], " ".join(given[:at])))


def _queue(name: str, profile: _Profile | None, scheduler: _Scheduler) -> InstalledQueue:
    queue = InstalledQueue(kind="wred", handle=name)
    try:
        if profile is None:
            raise InvalidValue("drop-profile", name, "one of drop-profiles, which isn't in this file")
        buffer = None if scheduler.buffer is None else _time(scheduler.buffer)
        points = _points(profile)
        if not profile.interpolated:
            step = [point for point in points if point[1] > 0.0][:1]
            if not step or step[0][1] < 100.0:
                return replace(queue, reason=_STAIRS)
            points = step * 2
        else:
            points = _line(points)
    except InvalidValue as error:
        return queue.unread(error)
    if len(points) != 2:
        shown = ", ".join(f"{level:g}:{probability:g}" for level, probability in points)
        return replace(queue, reason=f"its lines have several slopes ({shown}): certify has laws of one line")
    (low, _), (high, percent) = points
    ends = (Length(low, "percent"), Length(high, "percent"))
    law = Thresholds(low=ends[0], high=ends[1], percent=percent, ecn=scheduler.ecn, buffer=buffer)
    beyond = f"above {high:g} % of the buffer every packet is taken as dropped, as on QFX"
    return replace(queue, law=law, notes=() if percent == 100.0 else (beyond,))


def _time(text: str) -> Length:
    """Buffer in microseconds, or with k in thousands of them."""
    return Length.read(text.removesuffix("k"), "ms" if text.endswith("k") else "us")


def _points(profile: _Profile) -> _Points:
    """Points (fill level, probability) in percent, rising."""
    levels, probabilities = ([_percent(name, text) for text in texts] for name, texts in profile.numbers.items())
    if not levels or len(levels) != len(probabilities):
        raise InvalidValue("drop-probability", len(probabilities), f"one for each fill level, {len(levels)}")
    points = sorted(zip(levels, probabilities, strict=True))
    if any(one[0] == other[0] or one[1] > other[1] for one, other in pairwise(points)):
        raise InvalidValue("drop-probability", probabilities, "values that rise with the fill levels")
    return points


def _percent(name: str, text: str) -> float:
    value = Length.read(text.removesuffix("%"), "percent").value
    if value > 100.0:
        raise InvalidValue(name, text, "at most 100 percent")
    return value


def _line(points: _Points) -> _Points:
    """Corners of the line from where it leaves 0 to where it ends or reaches 100 %."""
    corners = [(0.0, 0.0), *points] if points[0][0] > 0.0 else list(points)
    zeros = [point for point in corners if point[1] == 0.0]
    ones = [point for point in corners if point[1] == 100.0]
    corners = [*zeros[-1:], *(point for point in corners if 0.0 < point[1] < 100.0), *ones[:1]]
    if len(corners) < 2:
        raise InvalidValue("drop-probability", [point[1] for point in points], "a probability that rises from 0")
    kept = corners[:1]
    for middle, after in pairwise(corners[1:]):
        before = kept[-1]
        rises = (after[1] - before[1]) * (middle[0] - before[0]), (middle[1] - before[1]) * (after[0] - before[0])
        if abs(rises[0] - rises[1]) > 1e-9:
            kept.append(middle)
    return [*kept, corners[-1]]
