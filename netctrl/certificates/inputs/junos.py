"""Drop profiles of Junos, as `show configuration class-of-service` prints them, with or without `| display set`.

Fill levels are percent of the queue's buffer, and the queue is the present one. `interpolate` draws lines from point to
point, from (0, 0) on; without it the probability stays at a point's value up to the next one. Beyond the last point QFX
switches drop every packet, and other systems interpolate to 100 % at a full buffer.

Sources: Junos OS, Class of Service User Guide, "RED Drop Profiles", `drop-profiles`, `schedulers`, `buffer-size`;
Traffic Management User Guide of QFX switches, "Understanding CoS WRED Drop Profiles".
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, pairwise

from netctrl.certificates.inputs.braces import blocks
from netctrl.certificates.inputs.queue import Input, InstalledQueue, Length, Thresholds, whole
from netctrl.core.errors import FileError, InvalidValue

_STAIRS = (
    "its probability rises in stairs: certify has laws of one line, as `interpolate` draws it, and a step to 100 %"
)
_COMMANDS = ("set ", "deactivate ")
_Words = list[list[str]]


def read_junos(given: Input) -> tuple[InstalledQueue, ...]:
    """Drop profiles of each scheduler, and those of none.

    Parameters
    ----------
    given : Input
        Configuration, in braces or as `set` commands; what is inactive isn't read.

    Raises
    ------
    FileError
        No drop profile.
    """
    ended = (f"{line};" if line.lstrip().startswith(_COMMANDS) else line for line in given.content.splitlines())
    tables: dict[str, dict[str, _Words]] = {"drop-profiles": {}, "schedulers": {}}
    statements = list(blocks(given._replace(content="\n".join(ended))).statements())
    off = {("set", *words[1:]) for words in statements if words[:1] == ["deactivate"]}
    for words in statements:
        table = next((name for name in tables if name in words[:-1]), None)
        inactive = "inactive:" in words or any(tuple(words[:end]) in off for end in range(len(words) + 1))
        if table and not inactive and words[0] != "deactivate":
            name, *rest = words[words.index(table) + 1 :]
            tables[table].setdefault(name, []).append(rest)
    profiles, schedulers = tables.values()
    if not profiles:
        raise FileError(given.source, "no profile behind drop-profiles")
    queues = [
        replace(_queue(words[-1], profiles, scheduler), parent=f"{of}, {' '.join(words[1:-2])}")
        for of, scheduler in schedulers.items()
        for words in scheduler
        if words[:1] == ["drop-profile-map"] and words[-2:-1] == ["drop-profile"]
    ]
    used = {queue.handle for queue in queues}
    return (*queues, *(_queue(name, profiles, []) for name in profiles if name not in used))


def _queue(name: str, profiles: dict[str, _Words], scheduler: _Words) -> InstalledQueue:
    queue = InstalledQueue(kind="wred", handle=name)
    try:
        if name not in profiles:
            raise InvalidValue("drop-profile", name, "one of drop-profiles, which isn't in this file")
        times = (words[2] for words in scheduler if words[:2] == ["buffer-size", "temporal"] and words[2:])
        buffer = next((Length.read(t.removesuffix("k"), "ms" if t.endswith("k") else "us") for t in times), None)
        corners = _corners(profiles[name])
    except InvalidValue as error:
        return queue.unread(error)
    (low, start), (high, percent) = corners[0], corners[-1]
    if start:
        return replace(queue, reason=_STAIRS)
    if any((level - low) * percent != probability * (high - low) for level, probability in corners):
        shown = ", ".join(f"{level}:{probability}" for level, probability in corners)
        return replace(queue, reason=f"its lines have several slopes ({shown}): certify has laws of one line")
    law = Thresholds(
        low=Length(low, "percent"),
        high=Length(high, "percent"),
        percent=percent,
        ecn=["explicit-congestion-notification"] in scheduler,
        buffer=buffer,
    )
    beyond = f"above {high} % of the buffer every packet is taken as dropped, as on QFX"
    return replace(queue, law=law, notes=() if percent == 100.0 else (beyond,))


def _corners(profile: _Words) -> list[tuple[int, int]]:
    """Corners (fill level, probability) in percent, from the last one at 0 to the first one at 100 %.

    A step to 100 % has both at one level, and stairs begin above 0.
    """
    numbers: dict[str, list[int]] = {"fill-level": [], "drop-probability": []}
    name = ""
    for word in chain.from_iterable(profile):
        if word in numbers:
            name = word
        elif word != "interpolate":
            numbers.setdefault(name, []).append(whole(name, word.removesuffix("%"), 100))
    levels, probabilities = numbers["fill-level"], numbers["drop-probability"]
    points = sorted(zip(levels, probabilities, strict=False))
    rising = all(one[0] < other[0] and one[1] <= other[1] for one, other in pairwise(points))
    if not levels or len(levels) != len(probabilities) or not rising or points[-1][1] == 0:
        raise InvalidValue("drop-probability", probabilities, "one for each fill level, which rises with it to above 0")
    if not any("interpolate" in words for words in profile):
        return [(point[0], 0 if point[1] == 100 else point[1]) for point in points if point[1]][:1] + points[-1:]
    zeros = [point for point in [(0, 0), *points] if point[1] == 0]
    ones = [point for point in points if point[1] == 100]
    return [zeros[-1], *(point for point in points if 0 < point[1] < 100), *ones[:1]]
