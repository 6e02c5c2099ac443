"""Maps of the design rule over flows and round-trip time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from netctrl.frequency.batch import GainBands
from netctrl.model.display import html_table, plot

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["StabilityMap"]


@dataclass(frozen=True, slots=True, eq=False)
class StabilityMap:
    """Where one gain is unstable, admissible or slow, over flows and round-trip time.

    Parameters
    ----------
    flows : ndarray, shape (n,)
        N.
    rtt_s : ndarray, shape (m,)
        tau [s].
    bands : GainBands
        Arrays of shape (m, n), in the unit of `gain`.
    gain : float
        k, the gain under test.
    title : str
        What is mapped, for plots.
    """

    flows: np.ndarray
    rtt_s: np.ndarray
    bands: GainBands
    gain: float
    title: str = ""

    @property
    def classes(self) -> np.ndarray:
        """0 unstable, 1 stable with too little margin, 2 admissible, 3 stable and slow; shape (m, n)."""
        k, bands = self.gain, self.bands
        return np.where(k >= bands.limit, 0, np.where(k > bands.high, 1, np.where(k >= bands.low, 2, 3)))

    @property
    def gain_margin_db(self) -> np.ndarray:
        """Gain margin [dB] at each point, shape (m, n)."""
        return 20.0 * np.log10(self.bands.limit / self.gain)

    def to_pandas(self) -> pd.DataFrame:
        """One row a point: flows, rtt_s, low, high, limit, gain_margin_db, class."""
        import pandas as pd

        flows, rtt = np.meshgrid(self.flows, self.rtt_s)
        columns = {
            "flows": flows,
            "rtt_s": rtt,
            "low": self.bands.low,
            "high": self.bands.high,
            "limit": self.bands.limit,
        }
        columns |= {"gain_margin_db": self.gain_margin_db, "class": self.classes}
        return pd.DataFrame({name: np.ravel(values) for name, values in columns.items()})

    def plot(self, **options: Any) -> Figure:
        """The map as a matplotlib Figure (`netctrl.plotting.draw`)."""
        return plot(self, **options)

    def _repr_html_(self) -> str:
        names = ("unstable", "too little margin", "admissible", "slow")
        counts = np.bincount(self.classes.ravel(), minlength=4) / self.classes.size
        rows = [("points", str(self.classes.size)), ("gain", f"{self.gain:.6g}")]
        return html_table(
            f"StabilityMap {self.title}", rows + [(n, f"{c:.1%}") for n, c in zip(names, counts, strict=True)]
        )
