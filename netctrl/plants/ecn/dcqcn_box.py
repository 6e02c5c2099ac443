"""DCQCN's loop with bounds over cells of frequencies, flows, rates and round-trip times, for proofs.

In equilibrium a² alpha = tau² R_AI R (b + d)(c + e) (`netctrl.plants.ecn.dcqcn`). With ell = −ln(1 − p), n the packets
of an interval times ell, phi(n) = n/(e^n − 1) and lambda = p/((1 − p) ell), logarithmic derivatives are

    a: phi(n) by n,   b, c, d, e: −psi(n) = −(phi(n) + n + F n) by n (F = 0 for b and d) and 1 by p,   n: lambda by p,

so that with means over byte counter and timer, psi_0 of b and d and psi_F of c and e,

    ∂ ln p/∂ ln R = −(2 phi_a + phi_alpha − 1 + d psi_0/(b + d) + e psi_F/(c + e))
                     / (lambda (2 phi_a + phi_alpha + psi_0 + psi_F) − 2).

phi falls with n and stays below 1; n + phi, F n and lambda rise, so that ends of a range bound it. The denominator is
above 0, since psi >= 1 and lambda >= 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from netctrl.plants.ecn.dcqcn import DcqcnSender, dcqcn_equilibrium, polynomials_at
from netctrl.plants.queues.mean_value import MeanValue, coordinate

_THETA, _GAIN, _PHASE, _FLOWS, _RATE, _RTT = range(6)
_PIECES, _AT_ONCE = 8, 4000
_TRIES, _WIDER = 6, 1.3


@dataclass(frozen=True, slots=True, eq=False)
class DcqcnBox:
    """Closed loop s (plain + echo e^(−s D)) − κ slope C moved e^(−s D) over boxes, with the factor κ = k e^(−i phi).

    Parameters
    ----------
    sender : DcqcnSender
    slope : float
        dp/dq [1/packet].
    threshold : float
        K_min [packet].
    arriving : bool
        Whether the queue's delay adds to the loop's.
    unit_s : float
        The angle is omega times this [s].
    """

    sender: DcqcnSender
    slope: float
    threshold: float
    arriving: bool
    unit_s: float

    def disc(self, centre: np.ndarray, half: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Discs over cells (k, 6) of (angle, gain, phase, ln N, ln C, ln tau): centres (k,), and shares of the radii
        (k, 6). They contain the function, over omega, over the part of the cell's gains and phases in which 0 is
        closest."""
        with np.errstate(all="ignore"):  # where no bound is known
            starts = range(0, len(centre), _AT_ONCE)
            parts = [self._disc(centre[i : i + _AT_ONCE], half[i : i + _AT_ONCE]) for i in starts]
        return np.concatenate([each[0] for each in parts]), np.concatenate([each[1] for each in parts])

    def _disc(self, centre: np.ndarray, half: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        widths = half.copy()
        widths[:, [_GAIN, _PHASE]] /= _PIECES
        pieces = np.arange(1 - _PIECES, _PIECES, 2)
        theta, ln_flows, ln_rate, ln_rtt = (coordinate(centre, widths, i) for i in (_THETA, _FLOWS, _RATE, _RTT))
        gain, phase = (coordinate(centre, widths, at) + widths[:, at, None] * pieces for at in (_GAIN, _PHASE))
        ln_p, R = self._equilibrium(ln_rate - ln_flows)
        p, rate = ln_p.exp(), ln_rate.exp()
        delay = ln_rtt.exp()
        if self.arriving:
            delay = delay + (p * (1.0 / self.slope) + self.threshold) / rate
        omega = theta * (1.0 / self.unit_s)
        turned = (omega * delay).turn()
        plain, echo, moved = (_value(each, omega) for each in polynomials_at(self.sender, p, R))
        loop = moved * turned * rate * -self.slope
        total = (plain + echo * turned) * omega * 1j + loop * (gain * phase.turn())
        worst = np.argmin(np.where(np.isfinite(total.radius), total.least, -np.inf), axis=1)
        slopes = np.take_along_axis(total.slopes, worst[None, :, None], axis=2)[:, :, 0]
        parts = np.where(widths.T > 0.0, slopes * widths.T, 0.0).T
        return np.take_along_axis(total.value, worst[:, None], axis=1)[:, 0], np.where(
            np.isfinite(parts), parts, np.inf
        )

    def _equilibrium(self, ln_R: MeanValue) -> tuple[MeanValue, MeanValue]:
        """ln p and R over cells, each cell of ln R once."""
        radius = ln_R.radius
        cells, rows = np.unique(np.concatenate([ln_R.value, radius], axis=1), axis=0, return_inverse=True)
        found = np.log(dcqcn_equilibrium(self.sender, np.exp(cells[:, 0])).probability)
        slope = probability_slope(self.sender, found, cells[:, 0], cells[:, 1])
        ln_p, by = found[rows.ravel()][:, None], slope[rows.ravel()][:, None]
        return MeanValue(ln_p, ln_R.slopes * by, ln_R.half), ln_R.exp()

    def beyond(self, flows: tuple[float, float], rate: tuple[float, float], gain: float) -> float:
        """Frequency from which on the function isn't 0 at any factor up to a gain, over a whole box [rad/s].

        There omega (|plain| − |echo|) > gain slope C |moved|: over omega⁴ each term but the first falls with omega.
        """
        ends = np.log([rate[0] / flows[1], rate[1] / flows[0]])
        pieces = np.linspace(*ends, 65) if ends[1] > ends[0] else np.array([ends[0], ends[0]])
        middle, half = 0.5 * (pieces[1:] + pieces[:-1])[:, None], 0.5 * np.diff(pieces)[:, None]
        with np.errstate(all="ignore"):
            ln_p, R = self._equilibrium(coordinate(middle, half, 0))
            plain, echo, moved = (
                [each if isinstance(each, float) else float(each.most.max()) for each in row]
                for row in polynomials_at(self.sender, ln_p.exp(), R)
            )
        others = [a + b for a, b in zip(plain[1:], echo, strict=True)]
        omega = 1.0 / self.unit_s
        while True:
            falling = sum(c / omega ** (k + 1) for k, c in enumerate(others))
            falling += gain * self.slope * rate[1] * sum(c / omega ** (k + 2) for k, c in enumerate(moved))
            if falling < 1.0 or not np.isfinite(falling):
                return omega if np.isfinite(falling) else np.inf
            omega *= 1.1


def probability_slope(sender: DcqcnSender, ln_p: np.ndarray, ln_R: np.ndarray, width: np.ndarray) -> np.ndarray:
    """Bounds of |∂ ln p/∂ ln R| within a width of ln R around equilibria, (k,); inf: none was found."""
    tried = _WIDER * _slope_bound(sender, ln_p, ln_p, ln_R, ln_R) + 1e-9
    known = np.full(ln_p.shape, np.inf)
    for _ in range(_TRIES):
        moved = tried * width
        bound = _slope_bound(sender, ln_p - moved, np.minimum(ln_p + moved, -1e-9), ln_R - width, ln_R + width)
        known = np.where((bound <= tried) & np.isinf(known), bound, known)
        tried = _WIDER * bound
    return known


def _slope_bound(sender: DcqcnSender, p_low: Any, p_high: Any, R_low: Any, R_high: Any) -> np.ndarray:
    """Bound of |∂ ln p/∂ ln R| between logarithms of p and of R."""
    p, R = (np.exp(p_low), np.exp(p_high)), (np.exp(R_low), np.exp(R_high))
    ell = tuple(-np.log1p(-each) for each in p)
    lam = p[0] / ((1.0 - p[0]) * ell[0])

    def phi(packets: tuple[Any, Any]) -> tuple[Any, Any]:
        n = tuple(e * k for e, k in zip(ell, packets, strict=True))
        return _phi(n[1]), _phi(n[0])

    def psi(packets: tuple[Any, Any], stages: float) -> tuple[Any, Any]:
        n = tuple(e * k for e, k in zip(ell, packets, strict=True))
        return tuple(_phi(each) + each + stages * each for each in n)

    def of(time: float) -> tuple[Any, Any]:
        return time * R[0], time * R[1]

    cut, mean = phi(of(sender.notification_s)), phi(of(sender.alpha_s))
    counter = [psi((sender.counter, sender.counter), stages) for stages in (0.0, sender.stages)]
    timer = [psi(of(sender.timer_s), stages) for stages in (0.0, sender.stages)]
    least = sum(np.minimum(a[0], b[0]) for a, b in zip(counter, timer, strict=True))
    falls = 2.0 * cut[0] + mean[0]
    over = lam * (falls + least) - 2.0
    # The timer's shares of all events are between 0 and 1.
    most = 2.0 * cut[1] + mean[1] - 1.0 + sum(each[1] for each in timer)
    return np.maximum(most, 1.0 - falls) / over


def _phi(n: Any) -> Any:
    return n / np.expm1(n)


def _value(coefficients: tuple[Any, ...], omega: MeanValue) -> MeanValue:
    """A polynomial at i omega by its powers; a constant leads."""
    top = len(coefficients) - 1
    total: Any = 0.0
    for k, c in enumerate(coefficients):
        term: Any = c
        for _ in range(top - k):
            term = omega * term
        total = term * 1j ** (top - k) + total
    return total
