"""Linear responses of senders' windows to the marking probability and to the round-trip time.

Around an equilibrium with the window w, the probability p and the round trip R,
one flow's window moves, in sigma = R s, by

    δW/w = −Q(sigma) e^(−sigma) δp/p − V(sigma) δR/R.

AIMD (Misra, Gong, Towsley, SIGCOMM 2000, with increase a and decrease b; Reno is a = 1, b = 1/2):
    W' = a/R − b W (W/R)(t−R) p(t−R),  p = a/(b w²), and with the damping k = a/w
    Q = k/(sigma + k (1 + e^(−sigma))),  V = k (1 − e^(−sigma))/(sigma + k (1 + e^(−sigma))).
Cubic (RFC 9438), with its own curve or the Reno-friendly line, whichever is above: `cubic_response`.
DCTCP, and Prague with it (Alizadeh, Javanmard, Prabhakar, "Analysis of DCTCP", SIGMETRICS 2011, (3) and (4)), where the
probability is small changes of a constant and not a step: each window sees marks, and
    W' = a/R − W m/(2R),  m' = (g/R)(p(t−R) − m),  p = 2a/w,  Q = k/(sigma + k) · g/(sigma + g),  V = 0.
Senders whose windows acknowledgements clock, as those of Linux: `clocked_response`, V = 0.
Slow start, time-outs and the reduction's own granularity are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from netctrl.plants.queues.clocked_response import (
    CLOCKED_EXPONENTS,
    ClockedMode,
    Leading,
    Means,
    clocked_exponent,
    clocked_leading,
    clocked_mode,
    clocked_probability,
    clocked_response,
    clocked_window,
)
from netctrl.plants.queues.cubic_response import (
    EXPONENTS,
    STEEPEST,
    TRIP_EXPONENTS,
    CubicMode,
    cubic_exponent,
    cubic_leading,
    cubic_least_exponent,
    cubic_mode,
    cubic_response,
    cubic_window,
)

DUPLICATES = 3.0
"""Duplicate acknowledgements that tell of a loss (RFC 5681, Section 3.2; RFC 6675)."""


class Sender(NamedTuple):
    """What a sender does at a mark and without one."""

    name: str
    increase: float
    """a [packet per round trip]."""
    decrease: float
    """b, share of the window that a mark takes; that of a window's marks for a scalable sender."""
    exponent: float
    """Of p in the window: w = (constant) · p^−exponent; of Cubic where it is Reno-friendly."""
    averaging: float = 0.0
    """g of the moving average of marks; 0: no average."""
    curve: float = 0.0
    """C of Cubic's curve [packet/s³]; 0: no curve."""
    spread: float = 0.0
    """Share of a round trip over which a cut leaves the flight of a sender that acknowledgements clock; 0: windows are
    sent at the rate w/R."""
    lost: float = 0.0
    """What such a sender loses at a cut beside its share, since it counts whole packets, on average [packet]."""
    held: float = 0.0
    """What waits at its receiver for an acknowledgement, on average [packet]."""

    notice: float = 0.0
    """Packets from a drop's gap to the one that tells such a sender of it; 0: packets are marked."""

    def turns(self, mode: Any) -> tuple[Any, ...]:
        """Delays of which the response needs e^(−s delay), in the sender's round trips."""
        found = (1.0, self.spread) if 0.0 < self.spread < 1.0 else (1.0,)
        return (*found, mode.notice) if self.notice else found

    def under(self, drops: bool) -> Sender:
        """This sender where packets are dropped and not marked: one of Linux as it is without ECN."""
        return _WITHOUT_ECN.get(self, self) if drops else self

    @property
    def scalable(self) -> bool:
        """Whether the window falls as 1/p, so that marks per round trip don't depend on the rate."""
        return self.exponent == 1.0

    @property
    def exponents(self) -> tuple[float, float]:
        """Bounds of −∂ ln w/∂ ln p."""
        if self.spread:
            return CLOCKED_EXPONENTS
        return EXPONENTS if self.curve else (self.exponent, self.exponent)

    @property
    def trip_exponents(self) -> tuple[float, float]:
        """Bounds of 1 − ∂ ln w/∂ ln R: by how much the rate w/R falls with the round trip."""
        return TRIP_EXPONENTS if self.curve else (1.0, 1.0)

    def exponents_near(self, p: Any, trip: Any, by_p: Any, by_trip: Any) -> tuple[Any, Any]:
        """Least −∂ ln w/∂ ln p and greatest 1 − ∂ ln w/∂ ln R where ln p and ln R move by at most these widths."""
        if not self.curve:
            return np.full_like(p, self.exponents[0]), np.ones_like(p)
        least = cubic_least_exponent(np.log(p), np.log(trip), self.curve, self.increase, 0.5 * by_p + 1.5 * by_trip)
        return least, 2.5 - 3.0 * least

    def slopes(self, p: Any, trip: Any) -> tuple[Any, Any]:
        """−∂ ln w/∂ ln p and 1 − ∂ ln w/∂ ln R."""
        if self.spread:
            return clocked_exponent(self, p), 1.0
        if not self.curve:
            return self.exponent, 1.0
        e = cubic_exponent(np.log(p), np.log(trip), self.curve, self.increase)
        return e, 2.5 - 3.0 * e

    def window(self, p: Any, trip: Any) -> Any:
        """Window in equilibrium at a marking probability and a round trip [s], which only Cubic's depends on
        [packet]."""
        if self.curve:
            return np.exp(cubic_window(np.log(p), np.log(trip), self.curve, self.increase))
        if self.spread:
            return clocked_window(self, p)
        return (self.increase / self.decrease / p) ** self.exponent

    def probability(self, window: Any) -> Any:
        """Marking probability in equilibrium at a window [packet], of a sender without a curve."""
        if self.spread:
            return clocked_probability(self, window)
        return self.increase / self.decrease * window ** (-1.0 / self.exponent)

    def mode(self, ln_p: Any, ln_trip: Any) -> tuple[Any, CubicMode | ClockedMode | None]:
        """ln w, and what the response of some senders depends on, from ln p and ln R; also as functions over cells."""
        if self.spread:
            return clocked_mode(self, ln_p)
        if self.curve:
            given = (ln_p, ln_trip, self.curve, self.increase)
            return cubic_window(*given), cubic_mode(*given)
        return ln_p * -self.exponent + self.exponent * float(np.log(self.increase / self.decrease)), None

    def fastest(self, p: Any, trip: Any) -> Any:
        """Bound of |sigma Q| for a large sigma, of Cubic for every one."""
        w = self.window(p, trip)
        return STEEPEST * p * w if self.curve else self.increase / w


RENO = Sender("reno", 1.0, 0.5, 0.5)
CRENO = Sender("creno", 3.0 * 0.3 / 1.7, 0.3, 0.5)
"""Cubic where it is Reno-friendly (RFC 9438, Section 4.3): decrease to .7, increase 3 (1 − .7)/(1 + .7)."""
CUBIC = CRENO._replace(name="cubic", curve=0.4)
"""Cubic with its curve (RFC 9438, Sections 4.2 and 4.3)."""
DCTCP = Sender("dctcp", 1.0, 0.5, 1.0, 1.0 / 16.0)
"""RFC 8257 with its g."""
LINUX_RENO = RENO._replace(name="linux-reno", spread=1.0, held=0.5)
"""Reno as Linux sends it: acknowledgements of every second packet clock it, and a cut is spread over a round trip
(RFC 6937)."""
LINUX_CRENO = CRENO._replace(name="linux-creno", spread=1.0, lost=0.85, held=0.5)
"""Cubic of Linux where it is Reno-friendly: it forgets the fraction of the window, and rounds a cut one down."""
RFC_RENO = RENO._replace(name="rfc-reno", spread=RENO.decrease)
"""Reno of RFC 5681: acknowledgements clock it, and a cut keeps it silent until the flight has fallen."""
RFC_CRENO = CRENO._replace(name="rfc-creno", spread=CRENO.decrease)
LINUX_RENO_NOECN = LINUX_RENO._replace(name="linux-reno-noecn", lost=0.25, notice=DUPLICATES)
"""Reno of Linux without ECN: packets are dropped, which selective acknowledgements tell (RFC 6675). Of a cut it loses
what it rounds down, measured."""
LINUX_CRENO_NOECN = LINUX_CRENO._replace(name="linux-creno-noecn", lost=0.5, notice=DUPLICATES)
_WITHOUT_ECN = {LINUX_RENO: LINUX_RENO_NOECN, LINUX_CRENO: LINUX_CRENO_NOECN}
SENDERS = {
    sender.name: sender
    for sender in (
        RENO,
        CRENO,
        CUBIC,
        DCTCP,
        LINUX_RENO,
        LINUX_CRENO,
        LINUX_RENO_NOECN,
        LINUX_CRENO_NOECN,
        RFC_RENO,
        RFC_CRENO,
    )
}


def response(
    sender: Sender,
    sigma: Any,
    turned: Sequence[Any],
    damping: Any,
    mode: CubicMode | ClockedMode | None = None,
    means: Means | None = None,
) -> tuple[Any, Any]:
    """Q and V of a window; V is 0 for a scalable sender and for one that acknowledgements clock.

    Parameters
    ----------
    sender : Sender
    sigma : complex, ndarray or MeanValue
        R s.
    turned : sequence of the same
        e^(−R s f) for each f of the sender's `turns`; of one that acknowledgements clock R is `mode.waits` as long.
    damping : float, ndarray or MeanValue
        k = a/w.
    mode : CubicMode or ClockedMode, optional
        Of a sender with a curve, or that acknowledgements clock.
    means : Means, optional
        Over cells, of a sender that acknowledgements clock.
    """
    if sender.curve or sender.spread:
        if isinstance(mode, ClockedMode):
            return clocked_response(sender, sigma, turned, damping, mode, means), 0.0
        if mode is None:
            raise TypeError("mode: the response of this sender depends on it")
        return cubic_response(sigma, turned[0], mode)
    echo = turned[0]
    if sender.scalable:
        return scalable_response(sigma, damping, sender.averaging), 0.0
    return aimd_response(sigma, echo, damping)


def aimd_response(sigma: Any, echo: Any, damping: Any) -> tuple[Any, Any]:
    """Q and V of AIMD."""
    found = damping / (sigma + damping * (echo + 1.0))
    return found, found * (1.0 - echo)


def scalable_response(sigma: Any, damping: Any, averaging: float) -> Any:
    """Q of DCTCP, or of one that doesn't average its marks."""
    found = damping / (sigma + damping)
    return found * (averaging / (sigma + averaging)) if averaging else found


def leading(sender: Sender, damping: Any, mode: CubicMode | ClockedMode | None = None) -> list[Leading]:
    """Q at high frequencies: numbers of the sender's turns, with the factors of their product over sigma and over
    sigma²; of a sender that acknowledgements clock, over sigma² and sigma³."""
    if isinstance(mode, ClockedMode):
        return clocked_leading(sender, damping, mode)
    if mode is not None:
        return [((0,), *cubic_leading(mode))]
    if sender.scalable and sender.averaging:
        return [((0,), 0.0 * damping, damping * sender.averaging)]
    square = damping * damping
    plain = ((0,), damping, -square)
    return [plain] if sender.scalable else [plain, ((1,), 0.0 * damping, -square)]
