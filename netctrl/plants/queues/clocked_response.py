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
"""

from __future__ import annotations

from functools import cache
from math import inf, pi, prod, sqrt
from typing import Any, NamedTuple, Protocol

import numpy as np

from netctrl.plants.queues.mean_value import through

__all__ = [
    "CLOCKED_EXPONENTS",
    "ClockedMode",
    "clocked_exponent",
    "clocked_leading",
    "clocked_mode",
    "clocked_most",
    "clocked_probability",
    "clocked_response",
    "clocked_window",
]

_FACTORS = 200
"""Of kappa's product."""
_FRACTION = 0.5
"""Of a window that is not sent, on average [packet]."""
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


class ClockedMode(NamedTuple):
    """What the response depends on beside the damping."""

    hits: Any
    """m, marks of an open flow in a round trip."""
    waits: Any
    """S/w, the sender's round trip over R."""


class _Mean(NamedTuple):
    """Mean window of open and deaf flows, (kappa + deaf y (1 + less y))/(y (1 + (less + kappa) y)) with y = √p."""

    kappa: float
    deaf: float
    """What deaf flows add, times 1 + m [packet]."""
    less: float
    """E[W] = kappa/(y (1 + less y))."""

    def hits(self, root: Any) -> Any:
        """m = p E[W]."""
        return root * self.kappa / (root * self.less + 1.0)

    def window(self, y: Any) -> Any:
        return (self.kappa + self.deaf * y * (1.0 + self.less * y)) / (y * (1.0 + (self.less + self.kappa) * y))

    def root(self, window: Any) -> Any:
        """y of a mean window."""
        square = window * (self.less + self.kappa) - self.deaf * self.less
        linear = window - self.deaf
        return (np.sqrt(linear * linear + 4.0 * square * self.kappa) - linear) / (2.0 * square)

    def steepness(self, y: Any) -> Any:
        """−d ln(window)/d ln y."""
        both, deaf = (self.less + self.kappa) * y, self.deaf * y
        return (
            1.0 + both / (1.0 + both) - deaf * (1.0 + 2.0 * self.less * y) / (self.kappa + deaf * (1.0 + self.less * y))
        )


@cache
def _mean(increase: float, decrease: float, spread: float, lost: float) -> _Mean:
    kept = 1.0 - decrease
    product = prod((1.0 - kept ** (2 * n)) / (1.0 - kept ** (2 * n - 1)) for n in range(1, _FACTORS))
    kappa = sqrt(2.0 * increase / pi) * product
    less = lost / decrease * (1.0 - kappa * kappa * decrease / (2.0 * increase)) / kappa
    return _Mean(kappa, (kept + 0.5 * decrease * spread) * increase / decrease, less)


def _mean_of(law: ClockedLaw) -> _Mean:
    return _mean(law.increase, law.decrease, law.spread, law.lost)


def _part(window: Any, less: float) -> Any:
    """What is left of a window less so many packets where it is large; above 0 for every one."""
    return window * window / (window + less)


def _whole(part: Any, less: float) -> Any:
    """The window of which this is left."""
    return 0.5 * (part + np.sqrt(part * (part + 4.0 * less)))


def clocked_window(law: ClockedLaw, p: Any) -> Any:
    """Packets on the path and in the queue in equilibrium at a marking probability [packet]."""
    return _part(_part(_mean_of(law).window(np.sqrt(p)), _FRACTION), law.held)


def clocked_probability(law: ClockedLaw, window: Any) -> Any:
    """Marking probability in equilibrium at a number of packets on the path and in the queue."""
    return _mean_of(law).root(_whole(_whole(window, law.held), _FRACTION)) ** 2


def clocked_exponent(law: ClockedLaw, p: Any) -> Any:
    """−∂ ln w/∂ ln p in equilibrium."""
    mean, root = _mean_of(law), np.sqrt(p)
    window = mean.window(root)
    flight = _part(window, _FRACTION)
    return 0.5 * mean.steepness(root) * _steeper(window, _FRACTION) * _steeper(flight, law.held)


def _steeper(window: Any, less: float) -> Any:
    """d ln(part)/d ln(window)."""
    return 1.0 + less / (window + less)


def clocked_mode(law: ClockedLaw, ln_p: Any) -> tuple[Any, ClockedMode]:
    """ln w in equilibrium, and what the response depends on; also as functions over cells."""
    mean = _mean_of(law)

    def flight(u: Any) -> Any:
        return _part(mean.window(np.exp(0.5 * u)), _FRACTION)

    def flight_slope(_: Any, high: Any) -> Any:
        return 0.5 * _STEEPER * _steeper(mean.window(np.exp(0.5 * high)), _FRACTION)

    def slope(low: Any, high: Any) -> Any:
        return flight_slope(low, high) * _steeper(flight(high), law.held)

    ln_flight = through(ln_p, lambda u: np.log(flight(u)), flight_slope)
    ln_window = through(ln_p, lambda u: np.log(_part(flight(u), law.held)), slope)
    return ln_window, ClockedMode(mean.hits(_exp(ln_p * 0.5)), _exp(-ln_flight) * law.held + 1.0)


def _exp(u: Any) -> Any:
    return through(u, np.exp, lambda _, high: np.exp(high))


def clocked_response(law: ClockedLaw, sigma: Any, echo: Any, cut: Any, damping: Any, mode: ClockedMode) -> Any:
    """Q.

    Parameters
    ----------
    law : ClockedLaw
    sigma, echo, cut : complex, ndarray or MeanValue
        R s, and e^(−waits sigma) and e^(−spread waits sigma).
    damping : float, ndarray or MeanValue
        a/w.
    mode : ClockedMode
    """
    m, own = mode.hits, sigma * mode.waits
    k = damping / mode.waits
    inverse = 1.0 / own
    mean = (1.0 - echo) * inverse
    o = 1.0 / (m + 1.0)
    hit = m * mean + 1.0  # numerator and denominator of Q are multiplied by it: divisions take longest
    if law.spread == 1.0:  # o F + (1 − F) c F/(1 + m F) is F/(1 + m F)
        return damping * mean / ((own + k * o) * hit + k * echo)
    part = (1.0 - cut) * inverse * (1.0 / law.spread)
    late, open_ = (1.0 - part) * (m * o), hit * o
    return damping * (part * open_ + late * mean) / (own * hit + k * (open_ * (cut + 1.0) + late * echo))


def clocked_leading(law: ClockedLaw, damping: Any, mode: ClockedMode) -> list[tuple[float, Any, Any]]:
    """Q at high frequencies: (f, factor of e^(−f waits sigma)/sigma², factor of e^(−f waits sigma)/sigma³).

    With u = waits sigma, Q ~ N/(u + D) with N = n₁/u + n₂/u² and D = d₀, so that Q ~ n₁/u² + (n₂ − n₁ d₀)/u³.
    """
    m, f, waits = mode.hits, law.spread, mode.waits
    o, k = 1.0 / (m + 1.0), damping / waits
    c = m * o
    full, part = {0.0: 1.0, 1.0: -1.0}, {0.0: 1.0 / f, f: -1.0 / f}
    first = _sum((part, o), (full, c))
    second = _sum((_product(full, full), -c * m), (_product(part, full), -c))
    den = _sum(({0.0: 1.0, f: 1.0}, k * o), ({1.0: 1.0}, k * c))
    second = _sum((second, 1.0), (_product(first, den), -1.0))
    square, cube = damping / (waits * waits), damping / (waits * waits * waits)
    return [(each, square * first.get(each, 0.0 * k), cube * second[each]) for each in sorted(second)]


def _sum(*terms: tuple[dict[float, Any], Any]) -> dict[float, Any]:
    found: dict[float, Any] = {}
    for factors, weight in terms:
        for delay, factor in factors.items():
            found[delay] = found.get(delay, 0.0) + weight * factor
    return found


def _product(one: dict[float, Any], other: dict[float, Any]) -> dict[float, Any]:
    found: dict[float, Any] = {}
    for i, x in one.items():
        for j, y in other.items():
            found[i + j] = found.get(i + j, 0.0) + x * y
    return found


def clocked_most(law: ClockedLaw, p: float, u: float) -> float:
    """Bound of |Q| for |sigma| >= u on the imaginary axis; inf where it says nothing."""
    _, mode = clocked_mode(law, np.log(p))
    m, waits = float(mode.hits), float(mode.waits)
    k, u = law.increase / float(clocked_window(law, p)) / waits, u * waits
    if u <= 2.0 * m:
        return inf
    o = 1.0 / (1.0 + m)
    part, late = 2.0 / (law.spread * u), 2.0 / (u - 2.0 * m)  # of |G| and of |F/(1 + m F)|
    held = (1.0 + part) * (1.0 - o) * u / (u - 2.0 * m)
    room = u - k * (2.0 * o + held)
    return waits * k * (o * part + (1.0 + part) * (1.0 - o) * late) / room if room > 0.0 else inf
