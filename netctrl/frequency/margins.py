"""Gain, phase and delay margins with exact delay, and the gains that meet a design rule."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import msgspec

from netctrl.errors import InvalidValue
from netctrl.frequency.loop import (
    gain_crossings,
    lag_crossings,
    lag_turning_points,
    magnitude,
    magnitude_turning_points,
    phase_lag,
)
from netctrl.model.display import html_table
from netctrl.model.loop import DelayLoop

if TYPE_CHECKING:
    import pandas as pd

_ONE = 1.0 + 1e-12  # |L| at a crossing that is both gain and phase crossover, round-off included

__all__ = ["GainBand", "Margins", "decibel", "factor", "gain_at_phase_margin", "gain_band", "margins"]


def decibel(ratio: float) -> float:
    """An amplitude ratio in dB; 0 gives −inf and inf gives inf."""
    return 20.0 * math.log10(ratio) if ratio > 0.0 else -math.inf


def factor(db: float) -> float:
    """dB as an amplitude ratio."""
    return 10.0 ** (db / 20.0)


class Margins(msgspec.Struct, frozen=True, kw_only=True):
    """How far a loop is from instability, and which way. A margin that no finite change uses up is inf."""

    stable: bool
    unstable_poles: int
    """Closed-loop poles in the right half plane, counted by Nyquist's criterion."""
    gain_margin_db: float
    """Factor by which the gain may grow; where the loop is unstable, below 0 dB: by how much it must fall."""
    gain_reduction_db: float
    """Factor (below 0 dB) by which the gain may fall; −inf unless the loop is only conditionally stable."""
    phase_margin_deg: float
    """180° minus the unwrapped lag at the worst gain crossover; below 0 where the loop is unstable."""
    delay_margin_s: float
    """Extra delay [s] that the loop stands; below 0 where the loop is unstable."""
    crossover_rad_s: float
    """Gain crossover that the phase margin belongs to; nan if |L| never is 1."""
    phase_crossover_rad_s: float
    """Phase crossover that the gain margin belongs to; nan if there is none."""
    crossovers_rad_s: tuple[float, ...]
    """All gain crossovers, ascending."""
    phase_crossovers_rad_s: tuple[float, ...]
    """All phase crossovers (lag = 180° + 360°·j) that can matter: up to the first one past every turning point and,
    where the loop is stable, past every gain crossover."""

    def to_pandas(self) -> pd.Series:
        """The scalar fields as a pandas Series."""
        import pandas as pd

        return pd.Series(
            {name: getattr(self, name) for name in self.__struct_fields__ if not name.endswith("overs_rad_s")}
        )

    def _repr_html_(self) -> str:
        return html_table("Margins", [(name, f"{value:.6g}") for name, value in self.to_pandas().items()])


def margins(loop: DelayLoop) -> Margins:
    """Margins of 1 + L = 0, exact for the delay.

    Stability is Nyquist's count from the gain crossovers alone: between two of them where |L| > 1, each level 180° +
    360°·j that the lag has climbed is a pair of unstable poles (docs/arc.md, "Stability from crossings").

    Parameters
    ----------
    loop : DelayLoop

    Returns
    -------
    Margins
        With several crossovers, those of the crossing that is closest to instability.
    """
    crossovers = gain_crossings(loop)
    unstable = _unstable_poles(loop, crossovers)
    stable = unstable == 0
    phase_crossovers = _phase_crossings(loop, crossovers if stable else [])
    sizes = [magnitude(loop, w) for w in phase_crossovers]

    # Unstable: the gain must fall below the largest |L| on the negative real axis. Stable: only |L| < 1 limits growth.
    up = [(1.0 / size, w) for size, w in zip(sizes, phase_crossovers, strict=True) if not stable or size <= _ONE]
    if loop.integrators == 2 and _rises_from_dc(loop):
        up.append((0.0, 0.0))  # beyond the negative real axis from the start: no gain is small enough
    down = [1.0 / size for size in sizes if stable and size > _ONE]
    gain_margin, phase_crossover = min(up, default=(math.inf, math.nan))
    phase_margins = [(math.pi - phase_lag(loop, w), w) for w in crossovers]
    if stable:  # the next odd multiple of 180° above the lag is what more delay reaches first
        phase_margins = [(pm % (2.0 * math.pi), w) for pm, w in phase_margins]
    phase_margin, crossover = min(phase_margins, default=(math.inf, math.nan))
    return Margins(
        stable=stable,
        unstable_poles=unstable,
        gain_margin_db=decibel(gain_margin),
        gain_reduction_db=decibel(max(down, default=0.0)),
        phase_margin_deg=math.degrees(phase_margin),
        delay_margin_s=min((pm / w for pm, w in phase_margins), default=math.inf),
        crossover_rad_s=crossover,
        phase_crossover_rad_s=phase_crossover,
        crossovers_rad_s=tuple(crossovers),
        phase_crossovers_rad_s=tuple(phase_crossovers),
    )


def _phase_crossings(loop: DelayLoop, crossovers: list[float]) -> list[float]:
    """All phase crossovers up to the first one beyond `crossovers` and beyond every turning point of |L| and the lag.

    Later ones have smaller |L|. An unstable loop may have thousands below its crossover, and only the first ones tell
    how far the gain must fall, so none is passed for it.
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
        level += 2.0 * math.pi


def _unstable_poles(loop: DelayLoop, crossovers: list[float]) -> int:
    def levels(lag: float) -> int:  # 180° + 360°·j at or below this lag, j = 0, 1, ...
        return math.floor((lag + math.pi) / (2.0 * math.pi))

    # |L| falls through 1 at the last crossover, rises at the one before, and so on: what was climbed in between counts.
    climbed = [levels(phase_lag(loop, w)) for w in reversed(crossovers)]
    return 2 * (sum(climbed[0::2]) - sum(climbed[1::2]))


def _rises_from_dc(loop: DelayLoop) -> bool:
    return loop.delay + sum(loop.lags) > sum(loop.leads)


class GainBand(msgspec.Struct, frozen=True, kw_only=True):
    """Gains k (multiples of the loop as given) that meet a rule on gain and phase margin."""

    low: float
    """Least gain: the phase margin is at its upper bound."""
    high: float
    """Greatest gain; low > high where no gain meets the rule."""
    limit: float
    """Every gain below it is stable, the loop at it is not."""
    binding: Literal["phase margin", "gain margin"]
    """What sets `high`."""
    intervals: tuple[tuple[float, float], ...]
    """All intervals of gains that meet the rule, ascending; (low, high) is the last. More than one only where the phase
    isn't monotone."""


def gain_band(
    loop: DelayLoop, gain_margin_db: float = 6.0, phase_margin_deg: tuple[float, float] = (30.0, 60.0)
) -> GainBand:
    """Gains at which the gain margin is at least `gain_margin_db` and the phase margin lies in `phase_margin_deg`.

    |L| falls strictly, so the gain crossover rises with the gain and visits each frequency once: the rule becomes a
    condition on the lag at the crossover, and one root for each bound solves it. No search over gains.

    Raises
    ------
    InvalidValue
        |L| doesn't fall monotonically.

    Notes
    -----
    ARC paper, eq. (8), with the delay exact.
    """
    _refuse_rising(loop)
    least, most = (math.radians(x) for x in phase_margin_deg)
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
        by_gain = min((1.0 / magnitude(loop, w) for w in limits if w > a), default=math.inf) / factor(gain_margin_db)
        high = min(by_phase, by_gain)
        if low <= high:
            intervals.append((low, high))
            bindings.append("phase margin" if by_phase <= by_gain else "gain margin")
        else:
            empty = (low, high)
    low, high = intervals[-1] if intervals else empty
    return GainBand(
        low=low,
        high=high,
        limit=limit,
        binding=bindings[-1] if bindings else "gain margin",
        intervals=tuple(intervals),
    )


def gain_at_phase_margin(loop: DelayLoop, phase_margin_deg: float) -> tuple[float, ...]:
    """Gains k, ascending, at which the loop k·L has its gain crossover at this phase margin. |L| must fall."""
    _refuse_rising(loop)
    return tuple(1.0 / magnitude(loop, w) for w in lag_crossings(loop, math.pi - math.radians(phase_margin_deg)))


def _refuse_rising(loop: DelayLoop) -> None:
    if magnitude_turning_points(loop):
        raise InvalidValue(
            "loop", loop, "a loop whose |L| falls at every frequency, as with no more zeros than integrators"
        )
