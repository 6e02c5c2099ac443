"""Margins of a loop, as a record, and their decibels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import msgspec

from netctrl.core.errors import optional_import
from netctrl.model.io.display import Rows, Shown

if TYPE_CHECKING:
    import pandas as pd

Verdict = Literal["stable", "unstable", "marginal"]


def decibel(ratio: float) -> float:
    """An amplitude ratio in dB; 0 gives −inf and inf gives inf."""
    return 20.0 * math.log10(ratio) if ratio > 0.0 else -math.inf


def factor(db: float) -> float:
    """dB as an amplitude ratio."""
    return 10.0 ** (db / 20.0)


class Margins(Shown, msgspec.Struct, frozen=True, kw_only=True):
    """Margins of a loop: its distance from instability. A margin that no finite change uses up is inf."""

    stable: bool
    """Whether provably no closed-loop pole lies in the right half plane (outside the unit circle) or on its boundary.
    """
    verdict: Verdict
    """"stable", "unstable", or "marginal": a closed-loop pole lies on the boundary to rounding, or any small change of
    a delay decides (neutral loops). The margins of a marginal loop are 0."""
    unstable_poles: float
    """Closed-loop poles in the right half plane, counted by Nyquist's criterion; inf for a neutral loop whose gain
    stays above 1 at high frequency; 0 for a marginal loop."""
    gain_margin_db: float
    """Factor by which the gain may grow. For an unstable loop it is below 0 dB, the factor by which the gain must fall
    (−inf: no smaller gain is stable)."""
    gain_reduction_db: float
    """Factor (below 0 dB) by which the gain may fall; −inf unless the loop is only conditionally stable. Together
    with the gain margin it bounds the interval of stable gains, for an unstable loop the nearest one; above 0 dB the
    gain must rise."""
    phase_margin_deg: float
    """Least phase change that takes the loop to the boundary, in (−180, 180]: 180° plus the phase at the gain crossover
    where that is smallest in size. A negative one of a stable loop means that phase lead, not lag, destabilises it."""
    delay_margin_s: float
    """Extra delay [s] that the loop tolerates. For an unstable loop it is below 0, minus the delay to remove (−inf: it
    is unstable without delay, too). In discrete time the loop tolerates every whole number of samples below it, and the
    field is nan for an unstable loop."""
    crossover_rad_s: float
    """Gain crossover of the phase margin; nan if |L| is never 1."""
    phase_crossover_rad_s: float
    """Phase crossover of the gain margin; nan if there is none, inf where the gain at infinite frequency is the limit.
    """
    crossovers_rad_s: tuple[float, ...]
    """All gain crossovers, ascending."""
    phase_crossovers_rad_s: tuple[float, ...]
    """All relevant phase crossovers (lag = 180° + 360°·j): up to the first one past every turning point and,
    where the loop is stable, past every gain crossover."""

    def to_pandas(self) -> pd.Series:
        """The scalar fields as a pandas Series."""
        with optional_import():
            import pandas as pd

        return pd.Series(
            {name: getattr(self, name) for name in self.__struct_fields__ if not name.endswith("overs_rad_s")}
        )

    def _shown(self) -> Rows:
        rows = self.to_pandas().items()
        return "Margins", [(k, v if isinstance(v, str) else f"{v:.6g}") for k, v in rows]
