"""Results of each demand in runs of a network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from netctrl.errors import InvalidValue

__all__ = ["DemandResult"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class DemandResult:
    """Results of R runs for each of I demands, in the network's order, after the warm-up; arrays (R, I).

    offered = delivered + lost + growth of the demand's traffic in the network.

    Parameters
    ----------
    offered_bytes, delivered_bytes, lost_bytes, growth_bytes : ndarray, shape (R, I)
        Traffic that the demand sent, that left its last link, that was lost at any link, and the growth
        from the end of the warm-up to the end of the run of its traffic that waits or is between links.
    delay_s : ndarray, shape (R, I)
        Mean time from source to target of the delivered traffic; NaN without any.
    """

    offered_bytes: np.ndarray
    delivered_bytes: np.ndarray
    lost_bytes: np.ndarray
    growth_bytes: np.ndarray
    delay_s: np.ndarray

    def __post_init__(self) -> None:
        for name in self.__slots__:
            values = getattr(self, name)
            if values.shape != self.offered_bytes.shape or values.ndim != 2:
                raise InvalidValue(name, values.shape, "an array of shape (runs, demands)")
            values.setflags(write=False)
