"""Search for the gains of a PI law, and for the line of RED or WRED, on samples of a box.

Gains are sought first in real numbers and then in the target's steps.

For an integral gain α the proportional gain β(α) with the greatest disk margin is found on a scan that narrows, and by
bisection the greatest α at which that margin is enough. In a target's steps the same is decided among the whole numbers
from there on down, with the gains that the implementation computes from them.

The line p = P (queue − min)/(max − min) has one gain, its slope: the steeper it is, the less the queue differs between
few and many flows. The greatest slope with enough margin is found by bisection. P is the least whole percent at which
the heaviest load takes half of the line or less, and max follows, rounded up to whole bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import ceil, exp, inf, log
from typing import Any, NamedTuple

import numpy as np

from netctrl.certificates.box import Box
from netctrl.certificates.loops import box_loops
from netctrl.certificates.red import RedLine, RedSubject
from netctrl.core.register import CERTIFIED
from netctrl.design.queue.samples import PiSamples, Point, sampled_disk_margin
from netctrl.laws.targets.dualpi2 import DUALPI2_MAX, DUALPI2_STEP, dualpi2_gain, dualpi2_sent, nearest_dualpi2_steps
from netctrl.laws.targets.pie_law import PIE_MAX, PIE_STEP
from netctrl.laws.targets.red import red_weight_log

PI_LAWS, LINES, CODELS = ("pie", "dualpi2", "pi2", "docsis-pie"), ("red", "wred"), ("codel", "fq_codel", "cake")
"""Laws whose gains are found, those whose lines are, and those whose times are."""
TARGETS_MS = (2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100)
INTERVALS_MS = (20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000)
"""Times of CoDel that are tried, where the target is from a fiftieth to half of the interval."""
_RATIOS = (0.02, 2000.0)
"""Range of β/α in which β is sought, over the longest round trip in updates."""
_SCAN, _NARROWED, _ROUNDS = 33, 9, 4
_LEAST_ALPHA, _MOST_ALPHA = 1e-9, 1e4
_BISECTIONS = 24
_AROUND = 3
"""Whole steps on each side of the best real β that are tried."""
_BELOW = 200
"""Whole steps of α below the best real one that are tried."""
_SHARES, _FACTORS, _DOUBLED = (1.0, 0.4, 0.15), (0.6, 1.0, 1.6), (0.5, 1.0, 2.0)
"""Of the greatest α, of the steadiest β, and of the shipped gains, which make candidates."""


class Steps(NamedTuple):
    """Steps in which a target takes gains."""

    step: float
    """[1/s]; 0: any."""
    most: int
    """Number of steps."""
    nearest: Callable[[float], int]
    """Number of steps whose gain in effect is nearest to one in 1/s."""
    sent: Callable[[float], int]
    """Number of steps that a gain given in 1/s becomes."""
    effect: Callable[[int], float]
    """Gain in effect [1/s]."""


_REAL = Steps(0.0, 0, round, round, float)
_PIE = Steps(PIE_STEP, PIE_MAX, *[lambda gain: round(gain / PIE_STEP)] * 2, lambda steps: steps * PIE_STEP)
_DUALPI2 = Steps(DUALPI2_STEP, DUALPI2_MAX, nearest_dualpi2_steps, dualpi2_sent, dualpi2_gain)


def target_steps(law: str, given: Mapping[str, Any]) -> Steps:
    """Steps of a law's gains; of PIE those of tc, and none in the real numbers of RFC 8033."""
    if law == "dualpi2":
        return _DUALPI2
    return _PIE if law == "pie" and given.get("implementation", "linux") == "linux" else _REAL


class Gains(NamedTuple):
    """Gains with the disk margin that they have on the samples."""

    alpha: float
    """As the target takes it [1/s]."""
    beta: float
    """The same."""
    disk_margin: float


def best_beta(samples: PiSamples, alpha: float, trips: float) -> Gains:
    """Real β with the greatest disk margin for α; `trips` is the longest round trip in updates."""
    low, high = (log(alpha * ratio * trips) for ratio in _RATIOS)
    points, found = _SCAN, Gains(alpha, 0.0, -inf)
    for _ in range(_ROUNDS):
        grid = np.linspace(low, high, points)
        margins = samples.disk_margins(np.full(points, alpha), np.exp(grid))
        best = int(np.argmax(margins))
        if margins[best] > found.disk_margin:
            found = Gains(alpha, float(np.exp(grid[best])), float(margins[best]))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, points - 1)]
        points = _NARROWED
    return found


def fastest(samples: PiSamples, least: float, trips: float, law: str, given: Mapping[str, Any]) -> Gains | None:
    """Greatest α with a disk margin of `least`, and of its β the steadiest; None: the target has none so small."""
    low, high = log(_LEAST_ALPHA), log(_MOST_ALPHA)
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        enough = best_beta(samples, float(np.exp(middle)), trips).disk_margin >= least
        low, high = (middle, high) if enough else (low, middle)
    real = best_beta(samples, float(np.exp(low)), trips)
    target = target_steps(law, given)
    if not target.step:
        return real if real.disk_margin >= least else None
    top = min(target.nearest(real.alpha) + 1, target.most)
    for steps in range(top, max(top - _BELOW, 0), -1):
        found = _in_steps(samples, steps, trips, law, given)
        if found is not None and found.disk_margin >= least:
            return found
    return None


def steadiest(samples: PiSamples, alpha: float, trips: float, law: str, given: Mapping[str, Any]) -> Gains | None:
    """Greatest disk margin with an α; None: no β makes it stable."""
    target = target_steps(law, given)
    if target.step:
        found = _in_steps(samples, target.sent(alpha), trips, law, given)
    else:
        found = best_beta(samples, alpha, trips)
    return found if found is not None and found.disk_margin > 0.0 else None


def _in_steps(samples: PiSamples, alpha: int, trips: float, law: str, given: Mapping[str, Any]) -> Gains | None:
    """Best whole β for a whole α, by the law that the target makes of both."""
    target = target_steps(law, given)
    near = target.nearest(best_beta(samples, target.effect(alpha), trips).beta)
    low, high = max(near - _AROUND, 1), min(near + _AROUND, target.most)
    pairs = [(alpha * target.step, beta * target.step) for beta in range(low, high + 1)]
    found = [Gains(*pair, samples.disk_margin(CERTIFIED[law](**given, alpha=pair[0], beta=pair[1]))) for pair in pairs]
    return max(found, key=lambda each: each.disk_margin, default=None)


def guarded(samples: PiSamples, least: float, trips: float, law: str, given: Mapping[str, Any]) -> list[Gains]:
    """Gains in the target's steps with a disk margin of `least`: shares of the greatest α around the steadiest β of
    each, and gains around the shipped ones, themselves left out."""
    top = fastest(samples, least, trips, law, given)
    if top is None:
        return []
    target = target_steps(law, given)
    shipped = tuple(CERTIFIED[law](**given).parameters[name] for name in ("alpha", "beta"))
    around = [(a, best_beta(samples, a, trips).beta) for a in (top.alpha * share for share in _SHARES)]
    pairs = [(a, b * factor) for a, b in around for factor in _FACTORS]
    pairs += [(shipped[0] * a, shipped[1] * b) for a in _DOUBLED for b in _DOUBLED]
    if target.step:
        most = target.most * target.step
        pairs = [tuple(min(max(round(v / target.step), 1) * target.step, most) for v in pair) for pair in pairs]
    near = [pair for pair in dict.fromkeys(pairs) if pair != shipped]
    found = [Gains(*pair, samples.disk_margin(CERTIFIED[law](**given, alpha=pair[0], beta=pair[1]))) for pair in near]
    return [each for each in found if each.disk_margin >= least]


_ROOM = 2.0
"""Probability at the upper threshold over that of the heaviest load, at least."""
_SLOPES = (1e-14, 1.0)
"""Between which slopes are sought [1/byte]."""
_HALVINGS = 26
_MORE = (1, 2, 4)
"""Probabilities at the upper threshold over the least, of candidates."""
SHIPPED_LINES = {"red": (2, 2), "wred": (1, 5)}
"""Law -> lower thresholds between the thresholds, and the probability in percent: tc-red(8)'s defaults, and SONiC's
AZURE_LOSSLESS (`netctrl.certificates.shipped`)."""
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


def ladder(law: str, given: Mapping[str, Any], least: float) -> list[dict[str, Any]]:
    """Parameters of CoDel, or of CAKE, whose target is a twentieth of its interval, with all times that are tried;
    `least` is the shortest interval [s]."""
    intervals = [ms for ms in INTERVALS_MS if 1e-3 * ms >= least]
    if law == "cake":
        return [{**given, "rtt_s": 1e-3 * ms, "target_s": 1e-3 * ms / 20.0} for ms in intervals]
    pairs = product(TARGETS_MS, intervals)
    return [{**given, "target_s": 1e-3 * t, "interval_s": 1e-3 * i} for t, i in pairs if 2 * t <= i <= 50 * t]


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
    any_line = CERTIFIED[law](**line_of(law, given, 3 * given["min_bytes"], 100))
    low, high = (log(slope) for slope in _SLOPES)
    if sampled_disk_margin(_endless(any_line, exp(low)), box, more) < least:
        return None
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        enough = sampled_disk_margin(_endless(any_line, exp(middle)), box, more) >= least
        low, high = (middle, high) if enough else (low, middle)
    percent = max(ceil(100.0 * _ROOM * _heaviest(_endless(any_line, exp(low)), box)), 1)
    if percent > 100:
        return None
    return line_of(law, given, ceil(percent / 100.0 / exp(low)), percent)


def guarded_lines(law: str, given: Mapping[str, Any], box: Box, least: float) -> list[dict[str, Any]]:
    """Parameters of lines with a disk margin of `least` on the samples: shares of the steepest slope, each up to
    several probabilities."""
    top = steepest(law, given, box, least, ())
    if top is None:
        return []
    percent = int(top.get("max_percent") or round(100.0 * top["probability"]))
    slope = percent / 100.0 / (top["max_bytes"] - top["min_bytes"])
    shares = dict.fromkeys(min(percent * more, 100) for more in _MORE)
    lines = [line_of(law, given, ceil(most / 100.0 / (slope * share)), most) for share in _SHARES for most in shares]
    return [line for line in lines if sampled_disk_margin(CERTIFIED[law](**line), box) >= least]


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
