"""DOCSIS-PIE (RFC 8034): PIE as cable modems must run it, for `netctrl certify`.

It is PIE with gains of its own, in real numbers, with these differences (RFC 8034, Appendix A):

- the gains are doubled where the output x is above .1, and eight times as large above 1;
- a packet of b bytes is dropped with the probability x b/1024;
- drops are spread as in Linux: none before that probability has summed up to .85, so that 1/1.85 of it is dropped;
- the delay is the backlog over the rate at which the modem may send, and no packet's waiting time.
"""

from __future__ import annotations

from math import inf

from netctrl.certificates.subject import PIE_NOTES, RUNGS, PiSubject, nominal_pi, scaled
from netctrl.laws.aqm.pie import pie_scale
from netctrl.laws.targets.pie import PIE_SPREAD
from netctrl.laws.targets.reading import DelayReading

__all__ = ["docsis_pie"]

_MEAN_BYTES = 1024.0
"""MEAN_PKTSIZE of RFC 8034."""
_HIGH = ((0.1, 1.0, 2.0), (1.0, 10.0, 8.0), (10.0, inf, 32.0))
"""(from, to, factor of the gains) for outputs above .1."""
_LARGEST_BYTES = 1500.0
_CAP = 0.85
"""Probability of a packet beyond which it no longer grows."""


def docsis_pie(
    *, target_s: float = 0.010, tupdate_s: float = 0.016, alpha: float = 0.25, beta: float = 2.5
) -> PiSubject:
    """DOCSIS-PIE with RFC 8034's names LATENCY_TARGET, INTERVAL [s], A and B [1/s].

    Raises
    ------
    InvalidValue
        A value that is not above 0.
    """
    nominal = nominal_pi(target_s, tupdate_s, alpha, beta)
    low = tuple((a, b, scaled(nominal, pie_scale((a * b) ** 0.5 or 0.5 * b))) for a, b in RUNGS if b <= _HIGH[0][0])
    return PiSubject(
        name="docsis-pie",
        implementation="RFC 8034",
        parameters={"target_s": target_s, "tupdate_s": tupdate_s, "alpha": alpha, "beta": beta},
        nominal=nominal,
        rungs=(*low, *((a, b, scaled(nominal, factor)) for a, b, factor in _HIGH)),
        unscaled=nominal,
        thinning=PIE_SPREAD,
        per_bytes=_MEAN_BYTES,
        reading=DelayReading.BACKLOG,
        greatest=_CAP * _MEAN_BYTES / _LARGEST_BYTES,
        beyond="the probability of large packets no longer grows",
        notes=PIE_NOTES,
    )
