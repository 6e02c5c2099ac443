"""Flow sizes of data centres: published distributions, piecewise linear between their points."""

from __future__ import annotations

from typing import Any

import numpy as np

from netctrl.core.errors import InvalidValue, checked_number

_WEB_SEARCH = (
    (0, 0), (10_000, 15), (20_000, 20), (30_000, 30), (50_000, 40), (80_000, 53), (200_000, 60), (1_000_000, 70),
    (2_000_000, 80), (5_000_000, 90), (10_000_000, 97), (30_000_000, 100),
)  # fmt: skip
_FB_HADOOP = (
    (0, 0), (100, 1), (200, 2), (300, 5), (350, 15), (400, 20), (500, 30), (600, 40), (700, 50), (1000, 60),
    (2000, 67), (7000, 70), (30_000, 72), (50_000, 82), (80_000, 87), (120_000, 90), (300_000, 95), (1_000_000, 97.5),
    (2_000_000, 99), (10_000_000, 100),
)  # fmt: skip

FLOW_SIZES: dict[str, tuple[tuple[float, float], ...]] = {"WebSearch": _WEB_SEARCH, "FB_Hadoop": _FB_HADOOP}
"""Name -> (size [byte], cumulative share [%]). Source: traffic_gen of the public HPCC simulator, after Alizadeh et al.,
SIGCOMM 2010 (WebSearch) and Roy et al., SIGCOMM 2015 (FB_Hadoop)."""


def checked_sizes(field: str, value: Any) -> str | tuple[tuple[float, float], ...]:
    """A name of `FLOW_SIZES`, or a distribution given as points (size [byte], cumulative share [%]).

    Raises
    ------
    InvalidValue
        An unknown name, sizes that don't increase, or shares that don't increase from 0 to 100.
    """
    if isinstance(value, str):
        if value not in FLOW_SIZES:
            raise InvalidValue(field, value, f"{', '.join(FLOW_SIZES)}, or points [size, cumulative %]")
        return value
    takes = "points [size in bytes, cumulative %], both increasing, with shares from 0 to 100"
    if not isinstance(value, list | tuple) or not 2 <= len(value) <= 10_000:
        raise InvalidValue(field, value, takes)
    points = []
    for point in value:
        if not isinstance(point, list | tuple) or len(point) != 2:
            raise InvalidValue(field, point, takes)
        low, share = (checked_number(field, each, takes, at_least=0.0, at_most=1e12) for each in point)
        if points and (low <= points[-1][0] or share < points[-1][1]):
            raise InvalidValue(field, point, takes)
        points.append((low, share))
    if points[0][1] != 0.0 or points[-1][1] != 100.0:
        raise InvalidValue(field, (points[0][1], points[-1][1]), takes)
    return tuple(points)


def flow_size(sizes: str | tuple[tuple[float, float], ...], share: np.ndarray) -> np.ndarray:
    """Quantile of the flow size [byte] at a share of all flows: the inverse of the distribution.

    Parameters
    ----------
    sizes : str or points
    share : ndarray
        Share from 0 to 1.
    """
    points = np.array(FLOW_SIZES[sizes] if isinstance(sizes, str) else sizes, dtype=float)
    return np.interp(100.0 * share, points[:, 1], points[:, 0])


def mean_flow_size(sizes: str | tuple[tuple[float, float], ...]) -> float:
    """Mean of a piecewise-linear distribution [byte]: Σ (middle of a piece) · (its share)."""
    points = np.array(FLOW_SIZES[sizes] if isinstance(sizes, str) else sizes, dtype=float)
    return float(0.5 * (points[1:, 0] + points[:-1, 0]) @ np.diff(points[:, 1]) / 100.0)
