"""Longest delay in which every start of a flow in CoDel's queue ends: a proof of the fluid of `codel_cycle`.

While the delay D is at least the target T, drops are at most an interval I apart, and the sender hears of them after
the wait and the path d. So from where the window crosses L = C (d + T) upward, or from a cut that leaves D above T, a
cut comes within

    tau = I + D_m + d + 4/C,

D_m being the longest delay until then; while a sender recovers from a loss, its window doesn't grow. If no window grows
in tau from L beyond W_m = C (d + D_m), and none after a cut, then W_m is never passed: the windows up to W_m are an
invariant set, and D_m bounds the delay for ever. Starts above it come in, since each cut takes off a share of the
window that growth until the next one doesn't make up.

Growth in tau. Reno: a packet in a round trip, tau/(d + T). Cubic: the curve M + c (t − K)³, of which the window lags by
at most R times its greatest slope, from M as low as a cut can leave it (a window of at least β L is cut, M is .85 of it
by fast convergence); or the line of its Reno-friendly region. In flight are whole packets, so that L is crossed by up
to one. Sums are rounded up by more than their rounding errors.
"""

from __future__ import annotations

from netctrl.laws.aqm.codel import CodelParameters
from netctrl.laws.tcp.cubic import AIMD, BETA, C

_CELLS = 8
"""In each direction of a box."""
_ROUNDS = 200
_MORE = 1.0 + 1e-9
"""Rounding."""
_ACKS = 4.0
"""Packets until a drop is heard: one until CoDel acts, three that are acknowledged after it."""
_FAST = 0.5 * (1.0 + BETA)
_MOST = 100.0
"""Delay over target and interval beyond which nothing is looked for."""
_SHARE = 0.95
"""Of what a cut takes off, which may grow again until the next one."""
_STARTS = 2.0
"""Longest delays of starts, over D_m."""

Ends = tuple[float, float]


def longest_delay(
    sender: str, rate: Ends, path_s: Ends, codel: CodelParameters, *, spread: bool = True
) -> float | None:
    """D_m of all rates and paths of a box [s]; None where it isn't proved.

    Every start with a delay of at most 2 D_m ends below D_m, at every point of the box, whatever CoDel's state is.

    Parameters
    ----------
    sender : str
        "reno" or "cubic".
    rate, path_s : (float, float)
        C [packet/s] and d [s].
    codel : CodelParameters
        Target and interval [s]. CoDel drops nothing that waits for less than two packets either.
    spread : bool
        As of `codel_cycle`.

    Examples
    --------
    >>> found = longest_delay("reno", (1666.0, 1667.0), (0.05, 0.0501), CodelParameters(5e-3, 0.1))
    >>> round(1e3 * found, 1)
    7.3
    """
    bounds = []
    for rates in _cells(rate):
        for paths in _cells(path_s):
            found = _of_cell(sender, rates, paths, codel, spread)
            if found is None:
                return None
            bounds.append(found)
    return max(bounds)


def _cells(ends: Ends) -> list[Ends]:
    low, high = ends
    if low == high:
        return [ends]
    edges = [low * (high / low) ** (k / _CELLS) for k in range(1, _CELLS)]
    return list(zip([low, *edges], [*edges, high], strict=True))


def _of_cell(sender: str, rate: Ends, path: Ends, codel: CodelParameters, spread: bool) -> float | None:
    """D_m of a cell: the least fixed point, found from below and then checked with a little more."""
    delay = target = max(codel.target, 2.0 / rate[0])
    for _ in range(_ROUNDS):
        wanted = _reached(sender, rate, path, codel, delay, spread)
        if wanted is None or wanted > _MOST * (target + codel.interval):
            return None
        if wanted <= delay:
            return delay if _comes_in(sender, rate, path, codel, delay) else None
        delay = wanted * (1.0 + 1e-4)
    return None


def _reached(sender: str, rate: Ends, path: Ends, codel: CodelParameters, delay: float, spread: bool) -> float | None:
    """Longest delay before a cut from where the target is crossed, if none until then is longer than `delay`."""
    target = max(codel.target, 2.0 / rate[0])
    tau = codel.interval + delay + path[1] + _ACKS / rate[0]
    linear = (1.0 if sender == "reno" else AIMD) * tau / (path[0] + target)
    grown = linear
    if sender == "cubic":
        level, trip = rate[1] * (path[1] + target), path[1] + target
        least = _FAST * BETA * rate[0] * (path[0] + codel.target)
        begun = ((1.0 - BETA) * rate[1] * (path[1] + delay) / C) ** (1.0 / 3.0)
        z, lag = 0.0, 0.0
        for _ in range(_ROUNDS):
            lag = 3.0 * C * max(z, begun) ** 2 * trip
            further = ((level + lag - least) / C) ** (1.0 / 3.0)
            if further <= z:
                break
            z = further * (1.0 + 1e-6)
        else:
            return None
        slope = 3.0 * C * max(z, begun) ** 2
        if (
            not spread and slope * trip >= rate[0] * codel.target
        ):  # bursts reach the target: a cut may come at any window
            return None
        grown = max(lag + C * ((z + tau) ** 3 - z**3), linear)
    return (target + (grown + 1.0) / rate[0]) * _MORE


def _comes_in(sender: str, rate: Ends, path: Ends, codel: CodelParameters, delay: float) -> bool:
    """Whether cuts take windows in, from starts with up to twice the longest delay."""
    start, target = _STARTS * delay, codel.target
    tau = codel.interval + start + path[1] + _ACKS / rate[0]
    level, most = rate[0] * (path[0] + target), rate[0] * (path[0] + delay)
    left = BETA if sender == "cubic" else 0.5
    line = (1.0 if sender == "reno" else AIMD) * tau / (path[0] + target)
    if left * level < 2.0 or line > _SHARE * (1.0 - left) * most:
        return False
    if sender == "reno" or left * (path[1] + start) <= path[0] + target:  # one cut is enough
        return True
    least = (1.0 - _FAST) * level / left
    return bool((least / C) ** (1.0 / 3.0) >= 2.0 * (tau + path[1] + start))
