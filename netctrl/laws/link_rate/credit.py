"""Credit law of link rates: a link sends until a bit costs more in the next buffers than in its own.

A buffer's price is its mean fill at the time when the bit is there, E min(max(z, 0), B) / B with z uniform in its
forecast ± its spread. For a buffer far from both ends it is z/B, the value of the backlog next to a reflecting wall at
0 and an absorbing one at B without drift: the probability that it overflows before it is empty. What is held comes
later, and is then charged what the next buffer costs at that time, `later`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from netctrl.core.jit import njit
from netctrl.laws.record import Numbers, WholeNumbers

_HELD = 4.0
"""Intervals for which the spread of a link's own arrivals allows: of some length, as what is held stands in front of
what comes then."""
_LATER = 0.6
"""Mean fill that controlled feeders leave, over that of independent arrivals: one number for all networks."""
_UNBOUNDED = 1e300
_SERIES, _FAR = 1e-6, 500.0
"""Nearer to 0 the mean fill is ½ within rounding; above the other exp is out of range."""


class Prices(NamedTuple):
    """What N links weigh; E pairs of a link and one that it feeds, link by link. Without pairs a law is its sums."""

    start: WholeNumbers
    """(N + 1) start of each link's pairs"""
    link: WholeNumbers
    """(E) that is fed"""
    share: Numbers
    """(E) of what the link sends that goes there"""
    other: Numbers
    """(E) nominal rate at which others feed it, less its capacity [bit/s]"""
    spread: Numbers
    """(E) of its forecast [bit/s]"""
    delay: WholeNumbers
    """(N) propagation delay of each link, and the age at which it hears of the links that it feeds [sample]"""
    lag: WholeNumbers
    """(N) intervals between that in which a link sends and that in which it arrives: one more where links store one"""
    enters: Numbers
    """(N) mean rate of demands that enter there [bit/s]"""
    varies: Numbers
    """(N) spread of what does [bit/s]"""
    buffer: Numbers
    """(N) over the interval [bit/s]"""
    later: Numbers
    """(N) price of what comes later"""


def no_prices(N: int) -> Prices:
    """Those of a law that is its sums alone."""
    none, whole = np.zeros(0), np.zeros(0, dtype=np.int64)
    return Prices(np.zeros(N + 1, dtype=np.int64), whole, none, none, none, whole, whole, none, none, none, none)


def credit_prices(
    coupling: sp.csr_array,
    injection: sp.csr_array,
    delay: np.ndarray,
    carried: sp.csr_array,
    mean: np.ndarray,
    std: np.ndarray,
    offered: np.ndarray,
    capacity: np.ndarray,
    buffer: np.ndarray,
    paced: np.ndarray,
) -> Prices:
    """Prices for a network of N links and I demands.

    With ε the capacity less what is offered, σ² the variance of the demands that a link carries and θ = 2 ε/σ², a
    reflected diffusion on [0, B] has the mean fill 1/(θB) − 1/(exp(θB) − 1): ½ at full load, 1/(θB) at light load.

    Parameters
    ----------
    coupling, injection : sparse array, shapes (N, N) and (N, I)
    delay : ndarray, shape (N,)
        [sample]
    carried : sparse array, shape (N, I)
        Share of each demand that each link carries.
    mean, std : ndarray, shape (I,)
        Of the demands [bit/s].
    offered, capacity : ndarray, shape (N,)
        [bit/s]
    buffer : ndarray, shape (N,)
        Over the interval [bit/s]; inf is no bound.
    paced : ndarray of bool, shape (N,)
        Links that follow the law.
    """
    fed = coupling.tocsc()
    k = np.repeat(np.arange(len(delay)), np.diff(fed.indptr))
    m, share = fed.indices.astype(np.int64), fed.data
    own, all_ = injection.power(2) @ std**2, carried.power(2) @ std**2
    nominal = np.minimum(offered, capacity)
    others = own[m] + (coupling.power(2) @ all_)[m] - share**2 * all_[k]
    rounds = 2.0 * delay[k] + 2.0
    bounded = np.where(np.isfinite(buffer), buffer, _UNBOUNDED)
    wall = 2.0 * (capacity - offered) / np.maximum(all_, 1e-12 * capacity**2) * bounded
    wall = np.where(np.abs(wall) < _SERIES, _SERIES, wall)
    kept = paced[k]
    return Prices(
        start=np.concatenate([[0], np.cumsum(np.bincount(k[kept], minlength=len(delay)))]),
        link=m[kept],
        share=share[kept],
        other=(nominal[m] - share * nominal[k] - capacity[m])[kept],
        spread=np.sqrt(3.0 * rounds * np.maximum(others, 0.0))[kept],
        delay=delay.astype(np.int64),
        lag=delay.astype(np.int64) + 1,
        enters=injection @ mean,
        varies=np.sqrt(3.0 * _HELD * own),
        buffer=bounded,
        later=np.where(np.isfinite(buffer), _LATER * (1.0 / wall - 1.0 / np.expm1(np.minimum(wall, _FAR))), 0.0),
    )


def lossless_fill(
    prices: Prices, coupling: sp.csr_array, nominal: np.ndarray, capacity: np.ndarray, peak: np.ndarray, late: int = 0
) -> np.ndarray:
    """Fill of the buffers that feed each link up to which the link loses nothing, whatever comes.

    A link k that sends has a forecast z of what is in the buffer of m then for which Σ_m c_mk (p(z) − later_m) is at
    most its own fill. It knows what it sends itself. Others send at most C_j in place of f*_j, in each of the
    n_k + lag_k + 1 intervals between its last news of m and the arrival of what it sends, and `late` more:

        z ≤ B_m − (n_k + lag_k + 1 + late) D,  D = Σ_{j ≠ k} c_mj (C_j − f*_j) + peak_m − enters_m

    is enough, as a buffer grows only when one of its feeders sends. So its feeders' mean fills, after they sent, may be
    up to c_mk (p(B_m − ...) − later_m) − Σ_{m' ≠ m} c_m'k later_m'. Feeders without a bound have a fill of 0.

    Parameters
    ----------
    prices : Prices
    coupling : sparse array, shape (N, N)
        Shares, which are what goes on in each interval.
    nominal, capacity, peak : ndarray, shape (N,)
        f*, C and the most that enters at each link, inf without a bound [bit/s].
    late : int
        Samples by which the newest message that is there may be late, lost ones included.

    Returns
    -------
    ndarray, shape (N,)
        inf: it cannot fill. Below 0: something may be lost even where its feeders are empty.
    """
    N = len(prices.buffer)
    most, exceeds = coupling @ capacity + peak, coupling @ (capacity - nominal) + peak - prices.enters
    found = np.full(N, np.inf)
    for k in range(N):
        pairs = range(prices.start[k], prices.start[k + 1])
        charged = sum(prices.share[j] * prices.later[prices.link[j]] for j in pairs)
        for j in pairs:
            m, share = prices.link[j], prices.share[j]
            rounds = prices.delay[k] + prices.lag[k] + 1 + late
            z = prices.buffer[m] - rounds * (exceeds[m] - share * (capacity[k] - nominal[k]))
            found[m] = min(found[m], share * fill(z, prices.spread[j], prices.buffer[m]) - charged if z > 0.0 else -1.0)
    unpaced = (coupling > 0.0).sum(axis=1) > np.bincount(prices.link, minlength=N)
    return np.where(most <= capacity, np.inf, np.where(unpaced | (peak > capacity), -1.0, found))


@njit(inline="always")
def above(z: float, spread: float) -> float:
    """Mean of max(z + y, 0), y uniform between −spread and spread."""
    if z >= spread:
        return z
    if z <= -spread:
        return 0.0
    return (z + spread) * (z + spread) / (4.0 * spread)


@njit(inline="always")
def fill(z: float, spread: float, buffer: float) -> float:
    """Mean share of a buffer that is in use, for a forecast and its spread."""
    return (above(z, spread) - above(z - buffer, spread)) / buffer


@njit(inline="always")
def too_dear(prices: Prices, forecast: Numbers, link: int, here: float, rate: float) -> bool:
    """Whether a bit costs more in the next buffers than here, where a link sends at a rate.

    `forecast`, (E,), is what would be in the next buffers at a rate of 0, and `here` what would be in its own.
    """
    total = -fill(here - rate, prices.varies[link], prices.buffer[link])
    for j in range(prices.start[link], prices.start[link + 1]):
        following = prices.link[j]
        z = forecast[j] + prices.share[j] * rate
        # Nothing is held back from a link that would have nothing to send, however uncertain that is.
        ahead = fill(z, prices.spread[j], prices.buffer[following]) if z > 0.0 else 0.0
        total += prices.share[j] * (ahead - prices.later[following])
    return total > 0.0


@njit(inline="always")
def granted(prices: Prices, forecast: Numbers, link: int, here: float, most: float) -> float:
    """Greatest rate up to `most` at which a link's next bit costs less ahead than here."""
    if not too_dear(prices, forecast, link, here, most):
        return most
    low = 0.0
    high = most
    for _halving in range(16):
        middle = 0.5 * (low + high)
        if too_dear(prices, forecast, link, here, middle):
            high = middle
        else:
            low = middle
    return low
