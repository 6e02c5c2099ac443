"""Maps of one gain over flows and round-trip time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from netctrl.core.errors import optional_import
from netctrl.model.io.display import Plotted, Rows

if TYPE_CHECKING:
    import pandas as pd

INFEASIBLE, UNSTABLE, THIN, UNCHECKED, ADMISSIBLE = range(5)
"""Classes of a point: no equilibrium; unstable; margins too small; margins met but a simulation needed; admissible."""
_BORDER = 1e-3  # relative; points this close to a bound count as beyond it


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StabilityMap(Plotted):
    """Map of one gain over flows and round-trip time: no equilibrium, unstable, too little margin, or admissible.

    Parameters
    ----------
    flows : ndarray, shape (n,)
        N.
    rtt_s : ndarray, shape (m,)
        tau [s].
    limit, kept, rests : ndarray, shape (m, n)
        Gain below which the loop is stable, up to which it meets the rule's margins, and up to which loops with these
        margins also come to rest; nan without an equilibrium.
    gain : float
        The gain under test.
    title : str
        Title of plots.
    """

    flows: np.ndarray
    rtt_s: np.ndarray
    limit: np.ndarray
    kept: np.ndarray
    rests: np.ndarray
    gain: float
    title: str = ""

    @property
    def classes(self) -> np.ndarray:
        """0 no equilibrium, 1 unstable, 2 too little margin, 3 margins without a simulation, 4 admissible; (m, n)."""
        k = self.gain * (1.0 + _BORDER)
        margins = np.where(k <= self.rests, ADMISSIBLE, UNCHECKED)
        stable = np.where(k < self.limit, np.where(k <= self.kept, margins, THIN), UNSTABLE)
        return np.where(np.isnan(self.limit), INFEASIBLE, stable)

    @property
    def gain_margin_db(self) -> np.ndarray:
        """Gain margin [dB] at each point, shape (m, n); nan without an equilibrium."""
        return 20.0 * np.log10(self.limit / self.gain)

    def to_pandas(self) -> pd.DataFrame:
        """One row a point: flows, rtt_s, limit, kept, gain_margin_db, class."""
        with optional_import():
            import pandas as pd

        flows, rtt = np.meshgrid(self.flows, self.rtt_s)
        columns = {"flows": flows, "rtt_s": rtt, "limit": self.limit, "kept": self.kept}
        columns |= {"gain_margin_db": self.gain_margin_db, "class": self.classes}
        return pd.DataFrame({name: np.ravel(values) for name, values in columns.items()})

    def _shown(self) -> Rows:
        names = ("no equilibrium", "unstable", "too little margin", "to be simulated", "admissible")
        counts = np.bincount(self.classes.ravel(), minlength=5) / self.classes.size
        rows = [("points", str(self.classes.size)), ("gain", f"{self.gain:.6g}")]
        return f"StabilityMap {self.title}", rows + [(n, f"{c:.1%}") for n, c in zip(names, counts, strict=True)]
