"""Gain, phase and delay margins with exact delay, and the gains that meet a design rule."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

import msgspec

from netctrl.core.errors import InvalidValue, checked_number
from netctrl.frequency.loop import (
    gain_crossings,
    lag_crossings,
    lag_turning_points,
    magnitude,
    magnitude_turning_points,
    phase_lag,
)
from netctrl.frequency.records import Margins, decibel, factor
from netctrl.model.loop import DelayLoop
from netctrl.model.open_loop import OpenLoop

if TYPE_CHECKING:
    from netctrl.frequency.certified.interchange import ControlSystem
    from netctrl.model.statespace import StateSpace

_ONE = 1.0 + 1e-12  # |L| at a crossing that is both gain and phase crossover, round-off included
_BOUNDARY = 1e-12  # phase margin [rad] or relative gain margin that rounding can't distinguish from 0
_TURN = 2.0 * math.pi


def margins(loop: DelayLoop | OpenLoop | ControlSystem | StateSpace, delay_s: float = 0.0) -> Margins:
    """Gain, phase and delay margins of a feedback loop, exact for every delay, and certified.

    The loop L is closed by negative unit feedback, 1 + L = 0. Crossings are isolated, not searched for on a grid. A
    `DelayLoop` is monotone between turning points that are roots of a polynomial. For every other loop the frequency
    axis is divided until a bound decides each interval: no crossing, or one. The closed loop's unstable poles are
    counted by the argument of its characteristic function, followed through intervals on which it is certainly not 0
    (documentation, "Margins of any loop").

    Parameters
    ----------
    loop : DelayLoop, OpenLoop, python-control TransferFunction or StateSpace, netctrl StateSpace
        Single input, single output, closed by negative unit feedback. Proper; poles may lie anywhere, also on the
        imaginary axis, and a negative gain is positive feedback. Continuous time, or discrete with dt in seconds.
    delay_s : float
        Delay [s] at the loop's output, on top of its own; in discrete time a whole number of samples.

    Returns
    -------
    Margins
        With several crossovers, those of the crossing that is closest to instability.

    Raises
    ------
    InvalidValue
        Another type, several inputs or outputs, an improper loop, an algebraic loop (L = −1 at infinite frequency), or
        too many crossings (bandwidth times delay) to examine.

    Examples
    --------
    Three equal poles, 2/(s + 1)³, with a delay of 0.5 s; without delay the gain margin would be 4:

    >>> import control, netctrl
    >>> found = netctrl.margins(control.tf([2], [1, 3, 3, 1]), delay_s=0.5)
    >>> found.stable, round(found.gain_margin_db, 2), round(found.phase_margin_deg, 2)
    (True, 4.97, 45.64)

    An unstable plant, 2 e^(−0.3 s)/(s − 1): feedback stabilises it until the gain falls by half.

    >>> found = netctrl.margins(control.tf([2], [1, -1]), delay_s=0.3)
    >>> found.stable, round(found.gain_reduction_db, 2)
    (True, -6.02)

    Notes
    -----
    A `DelayLoop`'s stability is Nyquist's count from the gain crossovers alone: between two of them where |L| > 1, each
    level 180° + 360°·j that the lag has climbed is a pair of unstable poles (docs/explanation/arc.md, "Stability from
    crossings").
    """
    from netctrl.frequency.certified.interchange import any_loop, checked_delay, from_control

    later = checked_delay(delay_s)
    if not isinstance(loop, DelayLoop | OpenLoop):
        loop = from_control(loop, later, argument="loop")
    elif later > 0.0:
        simple = isinstance(loop, DelayLoop)
        loop = msgspec.structs.replace(loop, delay=loop.delay + later) if simple else loop.delayed(later)
    if isinstance(loop, DelayLoop):
        with suppress(OverflowError, ZeroDivisionError):
            if (found := _of_corners(loop)) is not None:
                return found
    from netctrl.frequency.certified.margins import certified_margins

    return certified_margins(any_loop(loop))


def _of_corners(loop: DelayLoop) -> Margins | None:
    """Margins of a `DelayLoop`; None where it is unstable and not monotone, or on the boundary."""
    crossovers = gain_crossings(loop)
    # |L| falls through 1 at the last crossover, rises at the one before, and so on: between two where |L| > 1, each
    # level 180° + 360°·j that the lag has climbed is a pair of unstable poles.
    climbed = [math.floor((phase_lag(loop, w) + math.pi) / _TURN) for w in reversed(crossovers)]
    unstable = 2 * (sum(climbed[0::2]) - sum(climbed[1::2]))
    stable = unstable == 0
    if not stable and len(crossovers) > 1:
        return None
    phase_crossovers = _phase_crossings(loop, crossovers if stable else [])
    sizes = [magnitude(loop, w) for w in phase_crossovers]

    # Unstable: the gain must fall below the largest |L| on the negative real axis. Stable: only |L| < 1 limits growth.
    up = [(1.0 / size, w) for size, w in zip(sizes, phase_crossovers, strict=True) if not stable or size <= _ONE]
    if loop.integrators == 2 and loop.delay + sum(loop.lags) > sum(loop.leads):
        up.append((0.0, 0.0))  # the lag exceeds 180° from the start: no gain is small enough
    down = [1.0 / size for size in sizes if stable and size > _ONE]
    gain_margin, phase_crossover = min(up, default=(math.inf, math.nan))
    lacking = [(math.pi - phase_lag(loop, w), w) for w in crossovers]
    # More delay first reaches the next odd multiple of 180° above the lag.
    delay_margin = min(((pm % _TURN if stable else pm) / w for pm, w in lacking), default=math.inf)
    if not stable and delay_margin <= -loop.delay * (1.0 - 1e-9):
        delay_margin = -math.inf
    wrapped = ((math.pi - (math.pi - pm) % _TURN, w) for pm, w in lacking)  # in (−π, π]
    phase_margin, crossover = min(wrapped, key=lambda pair: abs(pair[0]), default=(math.inf, math.nan))
    if abs(phase_margin) <= _BOUNDARY or abs(gain_margin - 1.0) <= _BOUNDARY:
        return None
    return Margins(
        stable=stable,
        verdict="stable" if stable else "unstable",
        unstable_poles=unstable,
        gain_margin_db=decibel(gain_margin),
        gain_reduction_db=decibel(max(down, default=0.0)),
        phase_margin_deg=math.degrees(phase_margin),
        delay_margin_s=delay_margin,
        crossover_rad_s=crossover,
        phase_crossover_rad_s=phase_crossover,
        crossovers_rad_s=tuple(crossovers),
        phase_crossovers_rad_s=tuple(phase_crossovers),
    )


def _phase_crossings(loop: DelayLoop, crossovers: list[float]) -> list[float]:
    """All phase crossovers up to the first one beyond `crossovers` and beyond every turning point of |L| and the lag.

    Later ones have smaller |L|. An unstable loop may have thousands below its crossover, and only the first ones
    determine how far the gain must fall, so the caller passes no crossovers then.
    """
    turns = lag_turning_points(loop)
    beyond = max([0.0, *crossovers, *magnitude_turning_points(loop), *turns])
    lags = [loop.integrators * 0.5 * math.pi, phase_lag(loop, beyond), *(phase_lag(loop, w) for w in turns)]
    level = math.pi * (2 * math.ceil((min(lags) / math.pi - 1.0) / 2.0) + 1)  # least odd multiple of 180° in reach
    found: list[float] = []
    while True:
        here = lag_crossings(loop, level, turns)
        found += [w for w in here if w <= beyond]
        later = [w for w in here if w > beyond]
        if later or level > max(lags):
            return sorted(found + later[:1])
        level += _TURN


class GainBand(msgspec.Struct, frozen=True, kw_only=True):
    """Interval of gains, as multiples of a loop's own, that meet a rule on gain and phase margin."""

    low: float
    """Lowest gain: the phase margin is at its upper bound."""
    high: float
    """Highest gain; below `low` where no gain meets the rule."""
    limit: float
    """Gain at which the loop becomes unstable; every lower one is stable."""
    binding: Literal["phase margin", "gain margin"]
    """The margin that sets `high`."""
    intervals: tuple[tuple[float, float], ...]
    """All intervals of gains that meet the rule, ascending; (low, high) is the last one. There are several only where
    the phase isn't monotone."""


def gain_band(
    loop: DelayLoop, gain_margin_db: float = 6.0, phase_margin_deg: tuple[float, float] = (30.0, 60.0)
) -> GainBand:
    """Gains at which a loop meets a design rule on its gain margin and its phase margin.

    |L| falls strictly, so the gain crossover rises with the gain and passes each frequency once. The rule becomes a
    condition on the lag at the crossover, solved by one root per bound without a search over gains.

    Parameters
    ----------
    loop : DelayLoop
        One whose |L| falls at every frequency.
    gain_margin_db : float
        Lowest gain margin [dB], from 0 to 300.
    phase_margin_deg : (float, float)
        Lowest and highest phase margin [degree], between −180 and 180, rising.

    Returns
    -------
    GainBand

    Raises
    ------
    InvalidValue
        A value outside these bounds, another type of loop, or |L| that doesn't fall monotonically.

    Examples
    --------
    >>> from netctrl import DelayLoop
    >>> from netctrl.frequency.margins import gain_band
    >>> band = gain_band(DelayLoop(gain=1.0, delay=1.0, integrators=1, leads=(), lags=()))
    >>> round(band.low, 4), round(band.high, 4), round(band.limit, 4)
    (0.5236, 0.7873, 1.5708)

    References
    ----------
    ARC paper, eq. (8), with the delay exact.
    """
    if not isinstance(loop, DelayLoop):
        raise InvalidValue("loop", loop, "a DelayLoop (netctrl.from_control converts a loop with real corners)")
    if magnitude_turning_points(loop):
        takes = "a loop whose |L| falls at every frequency, as with no more zeros than integrators"
        raise InvalidValue("loop", loop, takes)
    allowed = factor(
        checked_number("gain_margin_db", gain_margin_db, "a gain margin from 0 to 300 dB", at_least=0.0, at_most=300.0)
    )
    takes = "two values in rising order: the lowest and the highest phase margin in degrees, from -180 to 180"
    if not isinstance(phase_margin_deg, tuple | list) or len(phase_margin_deg) != 2:
        raise InvalidValue("phase_margin_deg", phase_margin_deg, takes)
    least, most = (
        math.radians(checked_number("phase_margin_deg", x, takes, at_least=-180.0, at_most=180.0))
        for x in phase_margin_deg
    )
    if not least < most:
        raise InvalidValue("phase_margin_deg", phase_margin_deg, takes)
    turns = lag_turning_points(loop)
    limits = lag_crossings(loop, math.pi, turns)
    limit = 1.0 / magnitude(loop, limits[0]) if limits else math.inf
    lowest, highest = (lag_crossings(loop, math.pi - margin, turns) for margin in (most, least))
    edges = sorted(lowest + highest)
    intervals: list[tuple[float, float]] = []
    bindings: list[Literal["phase margin", "gain margin"]] = []
    empty = (math.inf, 0.0)
    for a, b in zip([0.0, *edges], [*edges, math.inf], strict=True):
        middle = 0.5 * (a + b) if math.isfinite(b) else 2.0 * a + 1.0
        if not math.pi - most < phase_lag(loop, middle) < math.pi - least:
            continue
        low = 1.0 / magnitude(loop, a) if a > 0.0 else 0.0
        by_phase = 1.0 / magnitude(loop, b) if math.isfinite(b) else math.inf
        by_gain = min((1.0 / magnitude(loop, w) for w in limits if w > a), default=math.inf) / allowed
        high = min(by_phase, by_gain)
        if low <= high:
            intervals.append((low, high))
            bindings.append("phase margin" if by_phase <= by_gain else "gain margin")
        else:
            empty = (low, high)
    low, high = intervals[-1] if intervals else empty
    return GainBand(
        low=low, high=high, limit=limit, binding=bindings[-1] if bindings else "gain margin", intervals=tuple(intervals)
    )
