"""Search for the steepest line of RED or WRED whose loops keep a disk margin on samples of a box.

The line p = P (queue − min)/(max − min) has one gain, its slope: the steeper it is, the less the queue differs between
few and many flows. The greatest slope with enough margin is found by bisection. P is the least whole percent at which
the heaviest load takes half of the line or less, and max follows, rounded up to whole bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil, exp, log
from typing import Any

from netctrl.certificates.box import Box
from netctrl.certificates.loops import box_loops
from netctrl.certificates.red import RED_SUBJECTS, RedLine, RedSubject
from netctrl.design.queue.samples import Point, sampled_disk_margin
from netctrl.laws.targets.red import red_weight_log

_ROOM = 2.0
"""Probability at the upper threshold over that of the heaviest load, at least."""
_SLOPES = (1e-14, 1.0)
"""Between which slopes are sought [1/byte]."""
_BISECTIONS = 26
_LIMIT = 4
"""Longest queue of RED over its upper threshold."""


def completed(law: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters with those of RED's average that tc takes by default for max = 3 min, which doesn't depend on max."""
    if law == "wred" or "weight_log" in given:
        return dict(given)
    packet = given.get("average_packet", 1000)
    burst = given.get("burst") or max(ceil(5 * given["min_bytes"] / (3 * packet)), 1)
    red_weight_log(given["min_bytes"], burst, packet)
    return {**given, "average_packet": packet, "burst": burst}


def steepest(
    law: str, given: Mapping[str, Any], box: Box, least: float, more: Sequence[Point]
) -> dict[str, Any] | None:
    """Parameters with the steepest line that keeps a disk margin on the samples; None: there is none.

    Parameters
    ----------
    law : str
        "red" or "wred".
    given : mapping
        Other parameters of the law, with `min_bytes`, as of `completed`.
    box : Box
    least : float
        Disk margin.
    more : sequence of (float, float)
        Further points (N, tau) of the box.
    """
    any_line = RED_SUBJECTS[law](**line_of(law, given, 3 * given["min_bytes"], 100))
    low, high = (log(slope) for slope in _SLOPES)
    if sampled_disk_margin(_endless(any_line, exp(low)), box, more) < least:
        return None
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        enough = sampled_disk_margin(_endless(any_line, exp(middle)), box, more) >= least
        low, high = (middle, high) if enough else (low, middle)
    percent = max(ceil(100.0 * _ROOM * _heaviest(_endless(any_line, exp(low)), box)), 1)
    if percent > 100:
        return None
    return line_of(law, given, ceil(percent / 100.0 / exp(low)), percent)


def line_of(law: str, given: Mapping[str, Any], width: int, percent: int) -> dict[str, Any]:
    """Parameters with `width` bytes between the thresholds and a probability in percent at the upper one."""
    high = given["min_bytes"] + width
    if law == "wred":
        return {**given, "max_bytes": high, "max_percent": percent}
    limit = given.get("limit_bytes") or _LIMIT * high
    most = 1.0 - 2.0**-32  # what tc takes
    return {**given, "limit_bytes": limit, "max_bytes": high, "probability": min(percent / 100.0, most)}


def _endless(law: RedSubject, slope: float) -> RedSubject:
    """The law with a line up to a probability of 1, so that its end decides nothing."""
    return replace(law, lines=(RedLine(slope, law.lines[0].start_bytes, 0.0, 1.0),))


def _heaviest(law: RedSubject, box: Box) -> float:
    """Greatest p of the line in the box, at the most flows and the shortest round-trip time."""
    found = [float(loop.output(box.flows[1], box.rtt[0])) for _, loop in box_loops(law, box)]
    return max(x / (2.0 - x) if law.spaced else x for x in found)
