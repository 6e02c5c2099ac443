"""Windows of senders that acknowledgements clock, whose cuts leave the flight packet by packet.

An acknowledgement tells a sender that a packet has left, and lets it send one. So the packets in flight W change by
what acknowledgements add and cuts take, whatever the delay is, and while flows of one round-trip time R keep a queue
busy, its delay follows their windows without a lag: C δD = N δW. Such a sender

- grows by a/W with each acknowledgement while it is open;
- at a mark, becomes deaf for the W acknowledgements of a round trip: it neither grows nor cuts again (RFC 3168, 6.1.2);
- takes the cut b W out of its flight over the first `spread` of this round trip. A window that is cut at once waits
  until b W packets have left, spread = b (RFC 5681); proportional rate reduction (RFC 6937, as in Linux) sends 1 − b
  packets for each that leaves, spread = 1.

With p the probability of a mark, m = p E[W] marks in an open round trip and o = 1/(1 + m) the share of time in which
a flow is open, c = 1 − o. A change of the hits h of an open flow, and of the deaf c, is

    δh/h = e^(−sigma) δp/p + δA/A − δc/o,   δc = c e^(−sigma) (F δp/p + δW/W)/(1 + m F),   F = (1 − e^(−sigma))/sigma,

where δA of the rate of acknowledgements cancels. With k = a/W, E = e^(−spread sigma) and G = (1 − E)/(spread sigma),
the mean of e^(−sigma u) over the cut,

    δW/W = −Q e^(−sigma) δp/p,
    Q = k (o G + (1 − G) c F/(1 + m F)) / (sigma + k o (1 + E) + k (1 − G) c e^(−sigma)/(1 + m F)).

In equilibrium the windows of open flows have the mean kappa/√p, with hits in proportion to the window (Dumas,
Guillemin, Robert, "A Markovian analysis of additive-increase multiplicative-decrease algorithms", Advances in Applied
Probability 34, 2002), and E[W²] = a/(b p). A sender that counts whole packets goes from W to (1 − b) W − l, where l is
the mean of what it loses of the fraction of a window and of that of the cut one. Then W + l/b is of the kind before,
hit in proportion to W, and the mean is l/b (1 − kappa² b/(2 a)) less where windows are large. Deaf flows have
1 − b + b spread/2 of the window that was hit. In flight is the whole part of a window, half a packet less on average
where it is large.

A receiver that acknowledges every second packet holds half of one on average. Then a flow has S = w + held in flight, w
of them on the path and in the queue, and its round trip is that of S packets at the rate of acknowledgements, S/w =
`waits` times R. Marked packets are acknowledged at once. So Q is S/w times that of k = a/S and (S/w) sigma.

**A packet that is dropped** tells its sender nothing; `notice` later ones do, three with selective acknowledgements.
Such a flow stops to grow at the gap, t = notice/S of its round trips before the cut begins: it is closed for 1 + t, o =
1/(1 + m (1 + t)), and with T = e^(−t sigma) and F = (1 − e^(−(1 + t) sigma))/sigma

    Q = k o (T G + (1 − T G) m F/(1 + m F))
        / (sigma + k o (1 + T E) + k o (1 − T G) m e^(−(1 + t) sigma)/(1 + m F)).

Until its sender notices, a dropped packet is in the sender's window and not in the queue; then proportional rate
reduction makes it good with the cut, over one round trip with the mean H = (1 − e^(−sigma))/sigma of e^(−u sigma). So
the queue loses p w (1 + t + 1/2) packets of each flow, and beside windows moves it

    δD/R = −(Q − p T H/sigma) e^(−sigma) δp/p − (p/sigma) δp/p.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import inf, pi, prod, sqrt
from typing import Any, NamedTuple, Protocol

import numpy as np

from netctrl.plants.aliases import horner
from netctrl.plants.queues.mean_value import through

_FACTORS, _NEWTON = 200, 30
"""Of kappa's product; steps."""
_FRACTION = 0.5
"""Of a window that is not sent, on average [packet]."""
_MADE_GOOD = 0.5
"""Mean time until a packet is made good whose drop is known [round trip]."""
_STEEPER = 1.1
"""Bound of −∂ ln(mean window of open and deaf flows)/∂ ln √p."""
CLOCKED_EXPONENTS = (0.5, _STEEPER)
"""Bounds of −∂ ln w/∂ ln p for windows from 2 packets on."""


class ClockedLaw(Protocol):
    """What a clocked sender does."""

    @property
    def increase(self) -> float: ...
    @property
    def decrease(self) -> float: ...
    @property
    def spread(self) -> float: ...
    @property
    def lost(self) -> float: ...
    @property
    def held(self) -> float: ...
    @property
    def notice(self) -> float: ...


_Sum = dict[tuple[int, ...], Any]
"""Sum of products of turns, by the number of each."""
Leading = tuple[tuple[int, ...], Any, Any]


class ClockedMode(NamedTuple):
    """What the response depends on beside the damping."""

    hits: Any
    """m, marks of an open flow in a round trip."""
    waits: Any
    """S/w, the sender's round trip over R."""
    notice: Any
    """t, from a drop's gap to the cut in the sender's round trips; 0 of marks."""
    dropped: Any
    """Share of packets that is dropped; 0 of marks."""


class _Mean(NamedTuple):
    """Mean window of all flows with y = √p, (E + notice m + deaf (1 + ...))/(1 + m + notice p) with m = p E.

    Beyond y = 1, where p is no probability, it goes on as 1/y, so that every window has its y.
    """

    kappa: float
    deaf: float
    """Packets that flows in a cut add, times 1 + m + notice p."""
    less: float
    """E = kappa/(y (1 + less y)), the mean of open flows."""
    above: tuple[float, ...]
    """Coefficients of y^0, y^1, ... of the quotient's parts."""
    below: tuple[float, ...]

    def hits(self, root: Any) -> Any:
        """m."""
        return root * self.kappa / (root * self.less + 1.0)

    def window(self, y: Any) -> Any:
        y, beyond = np.minimum(y, 1.0), np.maximum(y, 1.0)
        return horner(y, self.above) / horner(y, self.below) / beyond

    def root(self, window: Any) -> Any:
        """y of a mean window, without `notice`."""
        beyond = np.maximum(self.window(1.0) / window, 1.0)
        window = window * beyond
        square = window * (self.less + self.kappa) - self.deaf * self.less
        linear = window - self.deaf
        return beyond * (np.sqrt(linear * linear + 4.0 * square * self.kappa) - linear) / (2.0 * square)

    def steepness(self, y: Any) -> Any:
        """−d ln(window)/d ln y."""
        (above, up), (below, down) = (
            (horner(y, each), horner(y, [i * c for i, c in enumerate(each)])) for each in (self.above, self.below)
        )  # and y times derivatives
        return np.where(y > 1.0, 1.0, down / below - up / above)


@cache
def _mean(increase: float, decrease: float, spread: float, lost: float, notice: float) -> _Mean:
    kept = 1.0 - decrease
    product = prod((1.0 - kept ** (2 * n)) / (1.0 - kept ** (2 * n - 1)) for n in range(1, _FACTORS))
    kappa = sqrt(2.0 * increase / pi) * product
    less = lost / decrease * (1.0 - kappa * kappa * decrease / (2.0 * increase)) / kappa
    deaf = (kept + 0.5 * decrease * spread) * increase / decrease
    above, below = (kappa, deaf, deaf * less + notice * kappa), (0.0, 1.0, less + kappa, notice, notice * less)
    return _Mean(kappa, deaf, less, above, below if notice else below[:3])


def _mean_of(law: ClockedLaw) -> _Mean:
    return _mean(law.increase, law.decrease, law.spread, law.lost, law.notice)


def clocked_moment(law: ClockedLaw) -> float:
    """Variance of what a cut takes over its mean's square, 2 kappa² b²/(a (1 − (1 − b)²)) − 1: windows are hit in
    proportion to their size, and E[W³] = 2 a E[W]/(p (1 − (1 − b)²))."""
    kappa, b = _mean_of(law).kappa, law.decrease
    return 2.0 * kappa**2 * b**2 / (law.increase * (1.0 - (1.0 - b) ** 2)) - 1.0


def _part(window: Any, less: float) -> Any:
    """What is left of a window less so many packets where it is large; above 0 for every one."""
    return window * window / (window + less)


def _whole(part: Any, less: float) -> Any:
    """The window of which this is left."""
    return 0.5 * (part + np.sqrt(part * (part + 4.0 * less)))


def clocked_window(law: ClockedLaw, p: Any) -> Any:
    """Packets on the path and in the queue in equilibrium at a marking probability [packet]."""
    window = _part(_part(_mean_of(law).window(np.sqrt(p)), _FRACTION), law.held)
    return window / _missing(law, p, window) if law.notice else window


def _missing(law: ClockedLaw, p: Any, window: Any) -> Any:
    """A window over what is left of it without the packets that were dropped and not yet made good."""
    return (1.0 + _MADE_GOOD + law.notice / window) * p + 1.0


def clocked_probability(law: ClockedLaw, window: Any) -> Any:
    """Marking probability in equilibrium at a number of packets on the path and in the queue."""
    p = _mean_of(law).root(_whole(_whole(window, law.held), _FRACTION)) ** 2
    if not law.notice:
        return p
    for _ in range(_NEWTON):
        move = np.log(clocked_window(law, p) / window) / clocked_exponent(law, p)
        p = p * np.exp(np.minimum(np.maximum(move, -2.0), 2.0))
        if (np.abs(move) < 1e-13).all():
            break
    return p


def clocked_exponent(law: ClockedLaw, p: Any) -> Any:
    """−∂ ln w/∂ ln p in equilibrium."""
    mean, root = _mean_of(law), np.sqrt(p)
    window = mean.window(root)
    flight = _part(window, _FRACTION)
    found = 0.5 * mean.steepness(root) * _steeper(window, _FRACTION) * _steeper(flight, law.held)
    return _steeper_drops(law, p, _part(flight, law.held), found) if law.notice else found


def _steeper(window: Any, less: float) -> Any:
    """d ln(part)/d ln(window)."""
    return 1.0 + less / (window + less)


def _steeper_drops(law: ClockedLaw, p: Any, window: Any, exponent: Any) -> Any:
    """−∂ ln/∂ ln p of a window without the packets that are missing, of one with this exponent."""
    late = law.notice / window * p
    missing = _missing(law, p, window)
    return exponent + (missing - 1.0 + late * exponent) / missing


def clocked_mode(law: ClockedLaw, ln_p: Any) -> tuple[Any, ClockedMode]:
    """ln w in equilibrium, and what the response depends on; also as functions over cells."""
    mean = _mean_of(law)

    def flight(u: Any) -> Any:
        return _part(mean.window(np.exp(0.5 * u)), _FRACTION)

    def flight_slope(_: Any, high: Any) -> Any:
        return 0.5 * _STEEPER * _steeper(mean.window(np.exp(0.5 * high)), _FRACTION)

    def slope(low: Any, high: Any) -> Any:
        most = flight_slope(low, high) * _steeper(flight(high), law.held)
        return _steeper_drops(law, np.exp(high), _part(flight(high), law.held), most) if law.notice else most

    ln_flight = through(ln_p, lambda u: np.log(flight(u)), flight_slope)
    ln_window = through(ln_p, lambda u: np.log(clocked_window(law, np.exp(u))), slope)
    hits = mean.hits(_exp(ln_p * 0.5))
    if not law.notice:
        return ln_window, ClockedMode(hits, _exp(-ln_flight) * law.held + 1.0, 0.0, 0.0)
    away = _exp(-ln_flight)
    return ln_window, ClockedMode(hits, away * law.held + 1.0, away * law.notice, _exp(ln_p))


def _exp(u: Any) -> Any:
    return through(u, np.exp, lambda _, high: np.exp(high))


class Means(NamedTuple):
    """Means over cells in place of quotients by sigma, whose bounds would be loose where it is small."""

    turns: Sequence[Any]
    """`mean_turn` of each of the sender's turns."""
    fall: Any = None
    """`mean_fall` of its round trip, of drops."""
    path: Any = None
    """(1 − e^(−s T))/(R s) of the time T from a drop to the next packet's acknowledgement, of drops."""


def clocked_response(
    law: ClockedLaw, sigma: Any, turned: Sequence[Any], damping: Any, mode: ClockedMode, means: Means | None = None
) -> Any:
    """Q.

    Parameters
    ----------
    law : ClockedLaw
    sigma : complex, ndarray or MeanValue
        R s.
    turned : sequence of the same
        e^(−waits sigma); e^(−spread waits sigma), of a spread below 1; e^(−t waits sigma), of drops.
    damping : float, ndarray or MeanValue
        a/w.
    mode : ClockedMode
    means : Means, optional
        Of cells.
    """
    # In the sender's own round trip, `waits` times R, with the letters of the module: k = a/S of the flight S, and
    # echo e^(−sigma), mean F, cut E, part G, late T. Over cells F, G and T − 1 come as means: bounds of 1/sigma are
    # loose where it is small.
    m, own, echo = mode.hits, sigma * mode.waits, turned[0]
    k = damping / mode.waits
    inverse = 1.0 / own
    mean = (1.0 - echo) * inverse if means is None else means.turns[0]
    cut, part = echo, mean
    if law.spread < 1.0:
        cut = turned[1]
        part = (1.0 - cut) * inverse * (1.0 / law.spread) if means is None else means.turns[1]
    if law.notice:
        late, t = turned[-1], mode.notice
        o = 1.0 / (m * (t + 1.0) + 1.0)  # share of time in which a flow is open
        gap = (1.0 - late) * inverse if means is None else means.turns[-1] * t
        mean, part, cut, echo = gap + late * mean, late * part, late * cut, late * echo
    else:
        o = 1.0 / (m + 1.0)
    hit = m * mean + 1.0  # 1 + m F: numerator and denominator of Q are multiplied by it, as divisions take longest
    if law.spread == 1.0 and not law.notice:  # o F + (1 − F) c F/(1 + m F) is F/(1 + m F)
        return damping * mean / ((own + k * o) * hit + k * echo)
    late, open_ = (1.0 - part) * (m * o), hit * o  # (1 − G) c with c = m o, the deaf share; o (1 + m F)
    return damping * (part * open_ + late * mean) / (own * hit + k * (open_ * (cut + 1.0) + late * echo))


def clocked_missing(
    sigma: Any, turned: Sequence[Any], mode: ClockedMode, early: Any, mark: Any, means: Means | None = None
) -> Any:
    """p (early − mark T H)/sigma: packets of a flow that are dropped and not yet made good, over w and δp/p.

    Parameters
    ----------
    sigma, turned, mode, means
        As in `clocked_response`.
    early, mark : complex, ndarray or MeanValue
        Phases at the drop, and where the next packet's acknowledgement would tell of it.
    """
    if means is not None:
        rest = (means.turns[-1] * mode.notice + turned[-1] * means.fall * 0.5) * mode.waits
        return (early * means.path + mark * rest) * mode.dropped
    good = mark * turned[-1] * (1.0 - turned[0]) / (sigma * mode.waits)
    return (early - good) * mode.dropped / sigma


def clocked_leading(law: ClockedLaw, damping: Any, mode: ClockedMode) -> list[Leading]:
    """Q − p T H/sigma at high frequencies: numbers of the turns, factors of their product over sigma² and sigma³.

    With u = waits sigma and both parts times 1 + m F, Q ~ k o (N/u² − (m N (1 − e^(−(1 + t) u)) + N d)/u³).
    """
    m, waits, f = mode.hits, mode.waits, law.spread
    o = 1.0 / (m * (mode.notice + 1.0) + 1.0)
    k = damping / waits
    # Exponents of the turns e^(−sigma), E and T in a product: `closed` is u F = 1 − e^(−(1 + t) u) of closed flows,
    # `first` N = T G u + m u F, and `den` d, the part of the denominator that doesn't grow with u.
    none = (0,) * (1 + (f < 1.0) + bool(law.notice))
    gap = (*none[:-1], 1) if law.notice else none
    echo = _times((1, *none[1:]), gap)
    cut = _times((0, 1, *none[2:]), gap) if f < 1.0 else echo
    closed = {none: 1.0, echo: -1.0}
    first = _sum(({gap: 1.0}, 1.0 / f), ({cut: 1.0}, -1.0 / f), (closed, m))
    den = _sum(({none: 1.0}, k * o), ({cut: 1.0}, k * o), ({echo: 1.0}, k * o * m))
    second = _sum((_product(first, closed), -m), (_product(first, den), -1.0))
    square, cube = damping * o / (waits * waits), damping * o / (waits * waits * waits)
    found = {key: square * factor for key, factor in first.items()}
    if law.notice:
        good = mode.dropped / waits
        found = _sum((found, 1.0), ({gap: 1.0}, -good), ({echo: 1.0}, good))
    return [(key, found.get(key, 0.0 * k), cube * second[key]) for key in sorted(second)]


def _times(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(i + j for i, j in zip(one, other, strict=True))


def _sum(*terms: tuple[_Sum, Any]) -> _Sum:
    found: _Sum = {}
    for factors, weight in terms:
        for turns, factor in factors.items():
            found[turns] = found.get(turns, 0.0) + weight * factor
    return found


def _product(one: _Sum, other: _Sum) -> _Sum:
    found: _Sum = {}
    for i, x in one.items():
        for j, y in other.items():
            turns = _times(i, j)
            found[turns] = found.get(turns, 0.0) + x * y
    return found


def clocked_most(law: ClockedLaw, p: float, u: float) -> float:
    """Bound of |Q|, of drops of |Q e^(−sigma) + p/sigma|, for |sigma| >= u on the imaginary axis; inf where it says
    nothing."""
    _, mode = clocked_mode(law, np.log(p))
    m, waits, t = float(mode.hits), float(mode.waits), float(mode.notice)
    k, u = law.increase / float(clocked_window(law, p)) / waits, u * waits
    if u <= 2.0 * m:
        return inf
    o = 1.0 / (1.0 + m * (1.0 + t))
    # On the axis |1 − e^(−i x)| <= 2, so |F| <= 2/u and |1 + m F| >= 1 − 2 m/u.
    part, late = 2.0 / (law.spread * u), 2.0 / (u - 2.0 * m)  # of |G| and of |F/(1 + m F)|
    held = (1.0 + part) * m * o * u / (u - 2.0 * m)
    room = u - k * (2.0 * o + held)
    if room <= 0.0:
        return inf
    missing = float(mode.dropped) * waits / u * (1.0 + 2.0 / u)
    return waits * k * (o * part + (1.0 + part) * m * o * late) / room + missing
