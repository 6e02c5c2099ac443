"""Margins of an `OpenLoop`: the interval of stable gains, phase and delay, each from certified crossings."""

from __future__ import annotations

from itertools import pairwise
from math import degrees, inf, log, nan, pi, sqrt

import numpy as np

from netctrl.frequency.certified.closed_loop import ClosedLoop, Critical
from netctrl.frequency.certified.exponential import HIDDEN, values
from netctrl.frequency.certified.interchange import closed_loop
from netctrl.frequency.certified.isolation import Zero, zeros
from netctrl.frequency.records import Margins, decibel
from netctrl.model.open_loop import OpenLoop

_MAX_CROSSINGS = 2000  # phase crossings examined in search of a gain that stabilises an unstable loop
_MAX_DELAYS = 20_000
_TRIED = 4
_EQUAL = 1e-12
_NO_GAIN = (0.0, 0.0, nan)

Interval = tuple[float, float, float]
"""Least and greatest gain, and the x at which the greatest one is reached."""


def certified_margins(loop: OpenLoop) -> Margins:
    """Margins of 1 + L = 0 for any `OpenLoop`; see `netctrl.margins`.

    Raises
    ------
    InvalidValue
        An algebraic loop (L(i∞) = −1), or a loop that needs too much work (bandwidth times delay).
    """
    try:
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            return _margins(closed_loop(loop))
    except (FloatingPointError, ZeroDivisionError, OverflowError, np.linalg.LinAlgError):
        raise HIDDEN from None


def _margins(closed: ClosedLoop) -> Margins:
    poles = closed.unstable_poles()
    crossovers = [] if closed.is_zero else closed.crossovers()
    places = np.array([z.at for z in crossovers])
    angles = np.angle(-closed.response(places)) if places.size else places
    phases = [(pi if m == -pi else float(m), float(x)) for m, x in zip(angles, places, strict=True)]  # in (−π, π]
    phase, crossover = min(phases, key=lambda pair: abs(pair[0]), default=(inf, nan))
    window: list[Critical] = []
    if poles is None:
        low, high, at = 1.0, 1.0, nan
        phase, delay = 0.0, 0.0
    elif poles:
        low, high, at = _nearest_stable(closed, crossovers, window)
        delay = _delay_to_remove(closed, crossovers, poles)
    else:
        low, high, at = _gains_around(closed, 1.0, window)
        # Until the first crossover reaches 180°. Where |L| stays at 1 or above up to infinite frequency, no delay is
        # short enough; one more sample reverses L(−1).
        delay = min((margin % (2.0 * pi) / closed.frequency(x) for margin, x in phases), default=inf)
        if not closed.end_gain() < 1.0 - _EQUAL:
            delay = min(delay, closed.dt)
    return Margins(
        stable=poles == 0,
        verdict="marginal" if poles is None else "unstable" if poles else "stable",
        unstable_poles=0 if poles is None else poles,
        gain_margin_db=decibel(high),
        gain_reduction_db=decibel(low),
        phase_margin_deg=degrees(phase),
        delay_margin_s=delay,
        crossover_rad_s=closed.frequency(crossover),
        phase_crossover_rad_s=closed.frequency(at),
        crossovers_rad_s=tuple(closed.frequency(z.at) for z in crossovers),
        phase_crossovers_rad_s=tuple(sorted({closed.frequency(c.at) for c in window})),
    )


def _delay_to_remove(closed: ClosedLoop, crossovers: list[Zero], poles: float) -> float:
    """Minus the least delay [s] to remove for the loop to be stable; −inf where no delay suffices."""
    if closed.dt or not closed.delay:
        return nan if closed.dt else -inf
    without = -closed.delay / closed.unit if closed.unstable_poles(delay=0.0) == 0 else -inf
    if poles == inf:
        return without
    found = []
    for first, period, direction in closed.delay_events(crossovers)[1]:
        count = int(min(max(0.0, (closed.delay - first) / period + 1.0), _MAX_DELAYS))
        times = [first + j * period for j in range(count)]
        found += [(t, 2 * direction) for t in times if _EQUAL * closed.delay < t < closed.delay]
    # The last crossings first: removing the delay reverses them in this order.
    left = poles
    for delay, change in sorted(found, reverse=True):
        left -= change
        if left == 0:
            return (delay - closed.delay) / closed.unit
    return without


# ---------------------------------------------------------------------- gains


def _gains_around(closed: ClosedLoop, gain: float, window: list[Critical]) -> Interval:
    """The interval of gains around a stable one in which the loop is stable. `window` gets the crossings."""
    neutral = closed.neutral_gain(delayed=False)
    end = closed.crossing_end()
    high = end
    if high is None:  # two turns of the delay beyond the last crossover: all crossings with gain·|L| > 1, and the next
        high = max((z.high for z in closed.crossovers(gain)), default=0.0) + 4.0 * pi / closed.min_delay()
    window += closed.criticals(0.0, high)
    while end is None and neutral == inf and not any(c.gain > gain for c in window) and high < 1e12:
        window += closed.criticals(high, 2.0 * high)
        high *= 2.0
    limit, at = _min_above(window, gain, neutral)
    while end is None and limit < inf:
        # Beyond the window an earlier crossing needs a |L| greater than at the crossing found.
        more = [c for band in _bands(closed, limit, high) for c in closed.criticals(*band)]
        window += more
        nearer, there = _min_above(more, gain, neutral)
        if nearer >= limit * (1.0 - _EQUAL):
            break
        limit, at = nearer, there
    below = [c.gain for c in window] + [neutral]
    return max((k for k in below if k < gain), default=0.0), limit, at


def _min_above(found: list[Critical], gain: float, neutral: float) -> tuple[float, float]:
    """First critical gain above `gain`, and its x; infinite frequency for the neutral limit."""
    limit = (neutral, inf) if gain < neutral < inf else (inf, nan)
    return min([limit, *((c.gain, c.at) for c in found if c.gain > gain)], key=lambda pair: pair[0])


def _bands(closed: ClosedLoop, gain: float, start: float) -> list[tuple[float, float]]:
    """Intervals beyond `start` with gain·|L| > 1; of an unbounded one the first turns."""
    f = closed.level(gain)
    if f.vanishes:
        return []
    last = max(closed.level_end(f), start)
    ends = [start, *(z.at for z in zeros(f, start, last)), last, last + 4.0 * pi / closed.min_delay()]
    middles = np.array([0.5 * (a + b) for a, b in pairwise(ends)])
    above = values(f, middles) > 0.0
    return [(a, b) for (a, b), up in zip(pairwise(ends), above, strict=True) if up and b > a * (1.0 + _EQUAL)]


def _nearest_stable(closed: ClosedLoop, crossovers: list[Zero], window: list[Critical]) -> Interval:
    """Interval of stable gains nearest to 1, for an unstable loop."""
    neutral = closed.neutral_gain(delayed=False)
    end = closed.crossing_end()
    if end is None:
        turn = 2.0 * pi / closed.min_delay()
        end = max([closed.corner(), *(z.high for z in crossovers)]) + 2.0 * turn
        end = min(end, _MAX_CROSSINGS * turn)
    window += closed.criticals(0.0, end)
    # Without delay the gain may pass the neutral limit, where a pole returns from infinity: the count starts again.
    most = neutral if closed.neutral_terms() else inf
    events: list[tuple[float, float]] = [(c.gain, c.change) for c in window if c.gain < most]
    events = sorted([*events, *([(neutral, nan)] if 0.0 < neutral < inf else [])])
    if not events:
        return _NO_GAIN
    edges = [0.0, *(k for k, _ in events), inf]
    count: float | None = nan
    stable = []
    for (low, high), (_, change) in zip(pairwise(edges), [(0.0, nan), *events], strict=True):
        if low >= most:
            break
        count = count + change if count is not None else nan
        if count != count:
            count = closed.unstable_poles(_inside(low, high))
        if count == 0 and high > low * (1.0 + 1e-9) and not low < 1.0 < high:
            stable.append((log(1.0 / high) if high <= 1.0 else log(low), low, high))
    for _, low, high in sorted(stable)[:_TRIED]:
        middle = _inside(low, high)
        if closed.unstable_poles(middle) == 0:
            return _gains_around(closed, middle, [])
    return _NO_GAIN


def _inside(low: float, high: float) -> float:
    """Gain well inside an interval."""
    return (2.0 * low or 1.0) if high == inf else 0.5 * high if low == 0.0 else sqrt(low * high)
