"""Linear responses of senders' windows to the marking probability and to the round-trip time.

Around an equilibrium with the window w, the probability p and the round trip R,
one flow's window moves, in sigma = R s, by

    δW/w = −Q(sigma) e^(−sigma) δp/p − V(sigma) δR/R.

AIMD (Misra, Gong, Towsley, SIGCOMM 2000, with increase a and decrease b; Reno is a = 1, b = 1/2):
    W' = a/R − b W (W/R)(t−R) p(t−R),  p = a/(b w²), and with the damping k = a/w
    Q = k/(sigma + k (1 + e^(−sigma))),  V = k (1 − e^(−sigma))/(sigma + k (1 + e^(−sigma))).
DCTCP, and Prague with it (Alizadeh, Javanmard, Prabhakar, "Analysis of DCTCP", SIGMETRICS 2011, (3) and (4)), where the
probability is small changes of a constant and not a step: each window sees marks, and
    W' = a/R − W m/(2R),  m' = (g/R)(p(t−R) − m),  p = 2a/w,  Q = k/(sigma + k) · g/(sigma + g),  V = 0.
Slow start, time-outs and the reduction's own granularity are left out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["CRENO", "DCTCP", "RENO", "SENDERS", "Sender", "response"]


class Sender(NamedTuple):
    """What a sender does at a mark and without one."""

    name: str
    increase: float
    """a [packet per round trip]."""
    decrease: float
    """b, share of the window that a mark takes; that of a window's marks for a scalable sender."""
    exponent: float
    """Of p in the window: w = (constant) · p^−exponent."""
    averaging: float = 0.0
    """g of the moving average of marks; 0: no average."""

    @property
    def scalable(self) -> bool:
        """Whether the window falls as 1/p, so that marks per round trip don't depend on the rate."""
        return self.exponent == 1.0

    def window(self, p: Any) -> Any:
        """Window in equilibrium at a marking probability [packet]."""
        return (self.increase / self.decrease / p) ** self.exponent

    def probability(self, window: Any) -> Any:
        """Marking probability in equilibrium at a window [packet]."""
        return self.increase / self.decrease * window ** (-1.0 / self.exponent)


RENO = Sender("reno", 1.0, 0.5, 0.5)
CRENO = Sender("creno", 3.0 * 0.3 / 1.7, 0.3, 0.5)
"""Cubic where it is Reno-friendly (RFC 9438, Section 4.3): decrease to .7, increase 3 (1 − .7)/(1 + .7)."""
DCTCP = Sender("dctcp", 1.0, 0.5, 1.0, 1.0 / 16.0)
"""RFC 8257 with its g."""
SENDERS = {sender.name: sender for sender in (RENO, CRENO, DCTCP)}


def response(sender: Sender, sigma: Any, echo: Any, damping: Any) -> tuple[Any, Any]:
    """Q and V of a window; V is 0 for a scalable sender.

    Parameters
    ----------
    sender : Sender
    sigma, echo : complex, ndarray or MeanValue
        R s and e^(−R s).
    damping : float, ndarray or MeanValue
        k = a/w.
    """
    if sender.scalable:
        slow = sender.averaging / (sigma + sender.averaging) if sender.averaging else 1.0
        return damping / (sigma + damping) * slow, 0.0
    found = damping / (sigma + damping * (echo + 1.0))
    return found, found * (1.0 - echo)
