"""Frequency response of TCP under a law that acts once an epoch: the window delayed on itself, p held.

The plant, linearised at the equilibrium with R = tau (docs/arc.md derives it), in sigma = tau s:

    noq:  P = −(N/tau) (w0³/2) e^(−sigma) / (w0 sigma + 1 + e^(−sigma))
    phys: P = −(N/tau) (w0³/2) sigma e^(−sigma) / (w0 sigma² + (w0 + 1) sigma + 2 + sigma e^(−sigma))

A law that acts every d seconds, holds p in between and counts the arrivals of its epoch closes, with z = e^(i theta),

    L(z) = −alpha c(z) (1/d) Σ_m P(s_m)/s_m²,   s_m = i (theta + 2 pi m)/d,   c = proportional · (1 − 1/z) + integral

where ARC counts arrivals (proportional 1) and samples a queue that stands (integral gamma, else 0).

The sum over the aliases m falls as |m|^−3 and is evaluated with its two leading tails in closed form. `disc` bounds the
response over a whole cell of angles, flows, round-trip times and extra delays, so that a statement about all of them
can be proved from finitely many evaluations.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from netctrl.fluid.linearize import applicable_plant, arc_arrival_rate
from netctrl.model.arc import ArcSetting, Plant

__all__ = ["Disc", "TcpResponse", "arc_response"]

_SMALL = 0.05  # rad
_COARSE = 1e-5
"""Relative: more than a quarter of the aliases is ever off."""
_BLOCK = 1_500_000
"""Aliases evaluated at a time; working arrays stay below some hundred megabytes."""


class Disc(NamedTuple):
    """Discs that hold the response over cells: centre, and each coordinate's share of the radius."""

    centre: np.ndarray
    """Complex, shape (k,): the response at the cell's centre."""
    parts: np.ndarray
    """Shape (k, 4): what angle, ln N, ln tau and extra delay add to the radius; inf where nothing is known yet."""


@dataclass(frozen=True, slots=True, eq=False)
class TcpResponse:
    """L at gain 1 of one link and epoch, for any number of flows and round-trip time.

    Parameters
    ----------
    queue : bool
        Whether a queue stands in equilibrium (`phys`), which the law samples and the round trip includes.
    rate : float
        Arrival rate in equilibrium [packet/s].
    epoch : float
        d [s].
    proportional, integral : float
        What the law makes of the arrivals of its epoch, and of the queue at its end [1/packet, in units of its gain].
    late : float
        Age of what the law reads, or of what it says, beside the round trip [s].
    delayed_window : bool
        False takes the window's delayed copy undelayed, as Hollot et al. do: to compare with, never to certify.
    """

    queue: bool
    rate: float
    epoch: float
    proportional: float = 1.0
    integral: float = 0.0
    late: float = 0.0
    delayed_window: bool = True

    def at(
        self, theta: ArrayLike, flows: ArrayLike, rtt: ArrayLike, extra: ArrayLike = 0.0, *, coarse: bool = False
    ) -> np.ndarray:
        """L(e^(i theta)); complex `theta` continues it into z = e^(i theta) off the unit circle. All broadcast.

        `coarse` takes a quarter of the aliases: good to some 1e-6, for a first look.
        """
        theta, flows, rtt, extra = np.broadcast_arrays(
            np.asarray(theta), *(np.asarray(a, dtype=float) for a in (flows, rtt, extra))
        )
        shape = theta.shape
        out = np.empty(theta.size, dtype=complex)
        window, delta = (rtt * self.rate / flows).ravel(), (self.epoch / rtt).ravel()
        angle, late = theta.ravel(), 1.0 + ((extra + self.late) / rtt).ravel()
        scale = 0.5 * flows.ravel() * window**3 / delta
        aliases = self._aliases(window, delta) // (4 if coarse else 1)
        # Points with like numbers of aliases go together: a short epoch needs few, a long one with small windows many.
        for most in np.unique(aliases):
            members = np.flatnonzero(aliases == most)
            for start in range(0, members.size, max(1, _BLOCK // (2 * int(most) + 1))):
                i = members[start : start + max(1, _BLOCK // (2 * int(most) + 1))]
                out[i] = scale[i] * self._sum(angle[i], window[i], delta[i], late[i], int(most))
        return out.reshape(shape)

    def _aliases(self, window: np.ndarray, delta: np.ndarray) -> np.ndarray:
        """How many aliases on each side leave a tail below some 1e-11 of the response at its crossings."""
        turn = delta * (1.0 + (2.0 / window if self.queue else 1.0 / window)) / pi
        return 2 ** np.ceil(np.log2(24.0 + 40.0 * turn)).astype(int)

    def _denominator(self, sigma, window):
        echo = np.exp(-sigma) if self.delayed_window else np.ones_like(sigma)
        if self.queue:
            return window * sigma * sigma + (window + 1.0 + echo) * sigma + 2.0
        return window * sigma + 1.0 + echo

    def _sum(self, angle, window, delta, late, most: int) -> np.ndarray:
        turns = 2.0 * pi * np.arange(-most, most + 1)
        sigma = 1j * (angle[:, None] + turns) / delta[:, None]
        w, plain = window[:, None], (window + 1.0 if self.queue else np.ones_like(window))
        u = np.exp(-1j * angle)
        echo = _turned(angle, turns, delta)
        away = echo if np.all(late == 1.0) else np.exp(-late[:, None] * sigma)
        b = plain[:, None] + (echo if self.delayed_window else 1.0)
        # 1/D less its leading powers of 1/sigma, whose sums have closed forms. At small angles the second power's would
        # cancel against the nearest alias's, and isn't needed.
        wide = np.abs(angle) > _SMALL
        both = w * sigma
        if self.queue:
            D = (both + b) * sigma + 2.0
            left = np.where(wide[:, None], ((b * b - 2.0 * w) * sigma + 2.0 * b) / both, -(b * sigma + 2.0))
            terms = left * away / (both * sigma * sigma * D)
        else:
            left = np.where(wide[:, None], b * b / both, -b)
            terms = left * away / (both * sigma * sigma * (both + b))
        echoed = _held(u, delta, late + (1.0 if self.delayed_window else 0.0), 4)
        tails = _held(u, delta, late, 3) / window
        tails = tails - wide * (plain * _held(u, delta, late, 4) + echoed) / window**2
        counted = self.proportional * (1.0 - u) + self.integral
        return counted * (terms.sum(axis=1) + delta * tails)

    def disc(self, centre: np.ndarray, half: np.ndarray) -> Disc:
        """Discs that hold L over cells of (theta, ln N, ln tau, extra delay [s]); centre and half widths, (k, 4).

        By the mean value theorem, with each alias's logarithmic derivative bounded over the cell. Angles must stay
        above 0. The bounds' tails are geometric majorants; no grid stands behind them.
        """
        theta, flows, rtt, extra = centre[:, 0], np.exp(centre[:, 1]), np.exp(centre[:, 2]), centre[:, 3]
        # Large cells need no more digits than their size: a quarter of the aliases, and what that may be off.
        small = half[:, 0] < 1e-3 * theta
        values = self.at(theta, flows, rtt, extra, coarse=True)
        if small.any():
            values[small] = self.at(theta[small], flows[small], rtt[small], extra[small])
        parts = np.zeros((len(centre), 4))
        window, delta = rtt * self.rate / flows, self.epoch / rtt
        most = np.maximum(6, np.ceil((8.0 + 4.0 / window) * delta / (2.0 * pi))).astype(int)
        most = 2 ** np.ceil(np.log2(most)).astype(int)
        for count in np.unique(most):
            members = np.flatnonzero(most == count)
            size = max(1, _BLOCK // (2 * int(count) + 1) // 4)
            for start in range(0, members.size, size):
                i = members[start : start + size]
                parts[i] = self._slopes(
                    theta[i], flows[i], window[i], delta[i], ((extra + self.late) / rtt)[i], half[i], int(count)
                )
        with np.errstate(invalid="ignore"):
            shares = np.where(half > 0.0, parts * half, 0.0)
        shares[:, 0] += np.where(small, 1e-9, _COARSE) * np.abs(values)
        return Disc(values, shares)

    def _slopes(self, theta, flows, window, delta, extra, half, most: int) -> np.ndarray:
        """Bounds over cells of |∂L| by angle, ln N, ln tau and extra delay [s]; inf where a cell is too large."""
        h_theta, h_flows, h_rtt, h_extra = half.T[:, :, None]
        rtt = self.epoch / delta
        m = np.arange(-most, most + 1)
        turned = np.abs(theta[:, None] + 2.0 * pi * m)
        x = turned / delta[:, None]
        low = np.maximum(turned - h_theta, 0.0) / delta[:, None] * np.exp(-h_rtt)
        high = (turned + h_theta) / delta[:, None] * np.exp(h_rtt)
        w, both = window[:, None], h_flows + h_rtt
        w_low, w_high = w * np.exp(-both), w * np.exp(both)
        late = 1.0 + extra[:, None] * np.exp(h_rtt) + h_extra / rtt[:, None] * np.exp(h_rtt)
        at_centre = np.abs(self._denominator(1j * x, w))
        dx = np.maximum(high - x, x - low)
        if self.queue:
            change = w_high * high**2 - w * x**2 + (w_high + 1.0) * high - (w + 1.0) * x + dx + high * dx
            least = np.maximum(at_centre - change, np.maximum(w_low * low, w_low * low**2 - 2.0 - high))
        else:
            change = w_high * high - w * x + dx
            least = np.maximum(at_centre - change, w_low * low - 2.0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            usable = (least > 0.0) & (low > 0.0)
            inverse = np.where(usable, 1.0 / least, np.inf)
            if self.queue:
                size = inverse / low
                by_sigma = late + 1.0 / low + (2.0 * w_high * high + w_high + 2.0 + high) * inverse
                by_flows = (w_high * high**2 + (w_high + 4.0) * high + 4.0) * inverse
                by_rtt = late * high + ((w_high + 4.0) * high + 6.0 + high**2) * inverse
            else:
                size = inverse / low**2
                by_sigma = late + 2.0 / low + (w_high + 1.0) * inverse
                by_flows = (w_high * high + 4.0) * inverse
                by_rtt = late * high + (4.0 + high) * inverse
            counted = self.proportional * np.minimum(2.0, theta[:, None] + h_theta) + self.integral
            falls = (3.0, 3.0, 2.0, 2.0)
            weights = (
                (self.proportional + counted * by_sigma / delta[:, None] * np.exp(h_rtt)) * size,
                counted * by_flows * size,
                counted * by_rtt * size,
                counted * high * size,
            )
            sums = [_majorant(each, p) for each, p in zip(weights, falls, strict=True)]
            scale = 0.5 * flows * window**3 / delta * np.exp(4.0 * half[:, 2] + 2.0 * half[:, 1])
            slopes = np.stack([scale * total for total in sums], axis=1)
        slopes[:, 3] /= rtt * np.exp(-half[:, 2])
        return np.where(np.isfinite(slopes), slopes, np.inf)

    def least_angle(self, flows: tuple[float, float], rtt: tuple[float, float], extra: float = 0.0) -> float:
        """An angle below which L is within 0.05 rad of the negative imaginary axis, over a whole box."""
        window = self.rate * rtt[1] / flows[0]
        delta = self.epoch / rtt[1]
        # Of the main alias: hold and delays turn it by theta (1/2 + late/delta), its denominator by about
        # w0 theta/delta; the others together are below theta²/12 of it times |D| <= 2 + w0 theta/delta.
        late = 1.0 + (extra + self.late) / rtt[0]
        total = 1.0 + (late + window + 3.0) / delta + (self.proportional / self.integral if self.queue else 0.0)
        return min(0.05 / total, 0.02)


def arc_response(setting: ArcSetting, plant: Plant | None = None, *, delayed_window: bool = True) -> TcpResponse:
    """The response of one link under ARC; `plant` is the one that applies unless another is asked for.

    Parameters
    ----------
    setting : ArcSetting
        Link and law without its gain; a scalar capacity.
    plant : {"noq", "phys"}, optional
    delayed_window : bool
        False for Hollot's simplification, to compare with.
    """
    chosen = applicable_plant(setting) if plant is None else plant
    return TcpResponse(
        queue=chosen == "phys",
        rate=float(arc_arrival_rate(setting, chosen)),
        epoch=setting.epoch_s,
        integral=setting.utilization if chosen == "phys" else 0.0,
        delayed_window=delayed_window,
    )


def _turned(angle: np.ndarray, turns: np.ndarray, delta: np.ndarray) -> np.ndarray:
    """e^(−sigma) for all angles and aliases."""
    if np.all(delta == delta[0]):
        return np.exp(-1j * angle / delta)[:, None] * np.exp(-1j * turns / delta[0])
    return np.exp(-1j * (angle[:, None] + turns) / delta[:, None])


def _held(u: np.ndarray, delta: np.ndarray, late: np.ndarray, power: int) -> np.ndarray:
    """(1/delta) Σ_m e^(−late sigma_m)/sigma_m^power in closed form: samples of a delayed power of time.

    Time is in round trips. The inverse transform is (t − late)₊^(power−1)/(power−1)!, sampled at t = k delta; with
    late = n delta + r its z-transform is u^(n+1) delta^(power−1)/(power−1)! Σ_k u^k (k + x)^(power−1), x = 1 − r/delta.
    """
    whole = np.floor(late / delta)
    x = 1.0 - (late - whole * delta) / delta
    v = 1.0 / (1.0 - u)
    first, second = u * v * v, u * (1.0 + u) * v**3
    if power == 3:
        sums, factorial = second + 2.0 * x * first + x * x * v, 2.0
    else:
        third = u * (1.0 + 4.0 * u + u * u) * v**4
        sums, factorial = third + 3.0 * x * second + 3.0 * x * x * first + x**3 * v, 6.0
    return u ** (whole + 1.0) * delta ** (power - 1) / factorial * sums


def _majorant(terms: np.ndarray, power: float) -> np.ndarray:
    """Σ over all aliases of bounds that fall at least as |m|^−power beyond the last ones computed."""
    most = terms.shape[1] // 2
    edge = np.maximum(terms[:, 0], terms[:, -1])
    # Σ_(j > M) (M − 1/2)^p/(j − 1/2)^p <= (M − 1/2)^p / ((p − 1) M^(p−1)) + ..., on both sides.
    tail = 2.0 * edge * (most + 1.0) / (power - 1.0)
    return terms.sum(axis=1) + tail
