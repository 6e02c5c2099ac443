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
from netctrl.laws.targets.docsis_pie import MEAN_BYTES, docsis_scale
from netctrl.laws.targets.pie import PIE_SPREAD
from netctrl.laws.targets.reading import DelayReading

__all__ = ["docsis_pie"]

_RUNGS = (*(rung for rung in RUNGS if rung[1] <= 0.1), (0.1, 1.0), (1.0, 10.0), (10.0, inf))
"""Ranges of the output in which the gains are constant."""
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
    return PiSubject(
        name="docsis-pie",
        implementation="RFC 8034",
        parameters={"target_s": target_s, "tupdate_s": tupdate_s, "alpha": alpha, "beta": beta},
        nominal=nominal,
        rungs=tuple((a, b, scaled(nominal, docsis_scale(a or 0.5 * b))) for a, b in _RUNGS),
        unscaled=nominal,
        thinning=PIE_SPREAD,
        per_bytes=MEAN_BYTES,
        reading=DelayReading.BACKLOG,
        drops=True,
        greatest=_CAP * MEAN_BYTES / _LARGEST_BYTES,
        beyond="the probability of large packets no longer grows",
        notes=PIE_NOTES,
    )
