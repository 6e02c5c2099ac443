"""What oracles that integrate in time share: the past of a signal, how fast deviations grow, and random numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numba
import numpy as np


@numba.njit(cache=True)
def past(history: np.ndarray, now: int, steps: float) -> float:
    """A signal some steps ago, between two of its values; `history` is a ring."""
    n = len(history)
    whole = int(np.floor(steps))
    a = history[(now - whole) % n]
    return a + (steps - whole) * (history[(now - whole - 1) % n] - a)


def grown(deviation: np.ndarray, size: int) -> float:
    """Growth of the peaks of `size` values each over the last half, in natural logarithms a value.

    What decays by more than eight decades is looked at up to there: below is rounding.
    """
    peaks = np.array([deviation[i : i + size].max() for i in range(0, len(deviation) - size, size)])
    last = max(int(np.flatnonzero(peaks > 1e-8 * peaks.max())[-1]) + 1, 4)
    late = np.log(np.maximum(peaks[last // 2 : last], 1e-300))
    return float(np.polyfit(np.arange(len(late)), late, 1)[0] / size)


def words(seed: int) -> Iterator[int]:
    """Numbers from 0 to 2^64 - 1 of SplitMix64 (Steele, Lea, Flood 2014)."""
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) % 2**64
        z = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
        yield z ^ (z >> 31)


def shares(seed: int) -> Iterator[float]:
    """The same numbers, evenly from [0, 1)."""
    return ((word >> 11) / 2**53 for word in words(seed))
