"""Frequency response of TCP under a law that acts once per epoch, with the window's own delay and p held between.

The plant, linearised at the equilibrium with R = tau (docs/explanation/arc.md derives it), in sigma = tau s:

    noq:  P = −(N/tau) (w0³/2) e^(−sigma) / (w0 sigma + 1 + e^(−sigma))
    phys: P = −(N/tau) (w0³/2) sigma e^(−sigma) / (w0 sigma² + (w0 + 1) sigma + 2 + sigma e^(−sigma))

A law that acts every d seconds, holds p in between and counts the arrivals of its epoch closes, with z = e^(i theta),

    L(z) = −alpha c(z) (1/d) Σ_m P(s_m)/s_m²,   s_m = i (theta + 2 pi m)/d,   c = proportional · (1 − 1/z) + integral

where ARC counts arrivals (proportional 1) and samples a standing queue (integral gamma, else 0).

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

from netctrl.laws.aqm.delay_pi import DelayPi
from netctrl.model.design.arc import ArcSetting, Plant
from netctrl.plants.aliases import SMALL_ANGLE, held_aliases, majorant
from netctrl.plants.linearize import applicable_plant, arc_arrival_rate

_COARSE = 1e-5
"""Relative error bound of the response from a quarter of the aliases."""
_BLOCK = 40_000
"""Aliases evaluated at a time; working arrays stay in a core's cache."""


class Disc(NamedTuple):
    """Discs that contain the response over cells: centre, and each coordinate's share of the radius."""

    centre: np.ndarray
    """Complex, shape (k,): the response at the cell's centre."""
    parts: np.ndarray
    """Shape (k, 4): shares of angle, ln N, ln tau and extra delay in the radius; inf where no bound is known yet."""
    stretch: np.ndarray
    """Shape (k, 4): the response is a point of the disc times a real factor within e^±(their sum)."""


@dataclass(frozen=True, slots=True, eq=False)
class TcpResponse:
    """Loop response L at gain 1 of one link and epoch, for any number of flows and round-trip time.

    Parameters
    ----------
    queue : bool
        Whether a queue stands in equilibrium (`phys`); the law samples it, and the round trip includes it.
    rate : float
        Arrival rate in equilibrium [packet/s].
    epoch : float
        d [s].
    proportional, integral : float
        The law's weights of the epoch's arrivals and of the queue at its end [1/packet, in units of its gain].
    late : float
        Delay of the law's measurements or of its marks, in addition to the round trip [s].
    delayed_window : bool
        False replaces the delayed window by the undelayed one, as Hollot et al. do: for comparisons, never to certify.
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
        # On each side so many that their tail is below some 1e-11 of the response at its crossings.
        turn = delta * (1.0 + (2.0 / window if self.queue else 1.0 / window)) / pi
        aliases = 2 ** np.ceil(np.log2(24.0 + 40.0 * turn)).astype(int) // (4 if coarse else 1)
        # Points with similar numbers of aliases share a block: a short epoch needs few, a long one with small windows
        # many.
        for most in np.unique(aliases):
            members = np.flatnonzero(aliases == most)
            for start in range(0, members.size, max(1, _BLOCK // (2 * int(most) + 1))):
                i = members[start : start + max(1, _BLOCK // (2 * int(most) + 1))]
                out[i] = scale[i] * self._sum(angle[i], window[i], delta[i], late[i], int(most))
        return out.reshape(shape)

    def _sum(self, angle, window, delta, late, most: int) -> np.ndarray:
        turns = 2.0 * pi * np.arange(-most, most + 1)
        y = (angle[:, None] + turns) / delta[:, None]  # sigma = i y: real on the unit circle
        main = 1j * angle / delta
        w, plain = window[:, None], (window + 1.0 if self.queue else np.ones_like(window))
        # Each alias has the main one's delay, times whole turns of the remaining share of an epoch.
        away = _phases(1.0 - (late / delta - np.floor(late / delta)), turns)
        echo = np.exp(-main)[:, None] * _phases(-1.0 / delta, turns) if self.delayed_window else 1.0
        b = plain[:, None] + echo
        # 1/D minus its two leading powers of 1/sigma, whose sums over the aliases have closed forms.
        square = y * y
        if self.queue:
            sigma = 1j * y
            less, D, pole = (b * b - 2.0 * w) * sigma + 2.0 * b, (w * sigma + b) * sigma + 2.0, sigma
        else:
            less, D, pole = b * b, b + 1j * (w * y), -square
        terms = less * away / (D * (w * square) ** 2)
        # At small angles the main alias would cancel against its part of the closed forms, so it is added separately
        # there.
        small = np.abs(angle) <= SMALL_ANGLE
        terms[small, most] = 1.0 / (D[small, most] * pole[small, most])

        echoed = late + 1.0 if self.delayed_window else late
        third, fourth = delta**3 / window, delta**4 / window**2
        tails = held_aliases(angle, late / delta, third, -plain * fourth)
        tails = tails - held_aliases(angle, echoed / delta, np.zeros_like(third), fourth)
        counted = -self.proportional * np.expm1(-1j * angle) + self.integral
        return counted * (np.exp(-late * main) * terms.sum(axis=1) + tails)

    def disc(self, centre: np.ndarray, half: np.ndarray) -> Disc:
        """Discs that contain L over cells of (theta, ln N, ln tau, extra delay [s]), given by centre and half widths,
        (k, 4).

        By the mean value theorem, with each alias's logarithmic derivative bounded over the cell. Angles must stay
        above 0. The bounds' tails are geometric majorants; no grid stands behind them.
        """
        theta, flows, rtt, extra = centre[:, 0], np.exp(centre[:, 1]), np.exp(centre[:, 2]), centre[:, 3]
        # Large cells need few digits: a quarter of the aliases, plus a bound of the error.
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
                parts[i] = self._slopes(theta[i], flows[i], rtt[i], extra[i] + self.late, half[i], int(count))
        with np.errstate(invalid="ignore"):
            shares = np.where(half > 0.0, parts * half, 0.0)
        shares[:, 0] += np.where(small, 1e-10, _COARSE) * np.abs(values)
        stretch = np.zeros_like(half)
        stretch[:, 1] = half[:, 1]
        return Disc(values, shares, stretch)

    def _slopes(self, theta, flows, rtt, late, half, most: int) -> np.ndarray:
        """Bounds over cells of |∂L| by angle, ln N, ln tau and extra delay [s]; inf where a cell is too large.

        In s rather than sigma, N L is r²/2 times Σ_m T(s_m)/d with a = N/(r tau²), and for large windows a is small:

            noq:  T = e^(−s (tau + late))/(s² D),  D = s + a (1 + e^(−s tau))
            phys: T = e^(−s (tau + late))/(s D),   D = s² + s/tau + a (s (1 + e^(−s tau)) + 2/tau)
        """
        h_theta, h_flows, h_rtt, h_extra = half.T[:, :, None]
        theta, d = theta[:, None], self.epoch
        turned = np.abs(theta + 2.0 * pi * np.arange(-most, most + 1))
        x, step = turned / d, h_theta / d
        low, high = np.maximum(turned - h_theta, 0.0) / d, (turned + h_theta) / d
        tau, short, long = (rtt[:, None] * np.exp(h) for h in (0.0, -h_rtt, h_rtt))
        a = flows[:, None] / (self.rate * tau * tau)
        more = a * np.exp(h_flows + 2.0 * h_rtt)
        age = long + late[:, None] + h_extra
        echo = np.exp(-1j * x * tau) if self.delayed_window else 1.0
        if self.queue:
            at_centre = np.abs(-x * x + 1j * x / tau + a * (1j * x * (1.0 + echo) + 2.0 / tau))
            by_s = 2.0 * high + 1.0 / short + more * (2.0 + high * long)
            by_flows = more * 2.0 * (high + 1.0 / short)
            by_rtt = high / short + more * (4.0 * high + high * high * long + 6.0 / short)
            otherwise = np.maximum(low / long, low * low - more * (high + 2.0 / short))  # its two parts
        else:
            at_centre = np.abs(1j * x + a * (1.0 + echo))
            by_s = 1.0 + more * long
            by_flows = 2.0 * more
            by_rtt = more * (4.0 + high * long)
            otherwise = low - 2.0 * more
        least = np.maximum(at_centre - (by_s * step + by_flows * h_flows + by_rtt * h_rtt), otherwise)
        poles = 1 if self.queue else 2
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            inverse = np.where((least > 0.0) & (low > 0.0), 1.0 / least, np.inf)
            size = inverse / low**poles
            counted = self.proportional * np.minimum(2.0, theta + h_theta) + self.integral
            weights = (
                (self.proportional + counted * (age + poles / low + by_s * inverse) / d) * size,
                counted * by_flows * inverse * size,
                counted * (high * long + by_rtt * inverse) * size,
                counted * high * size,
            )
            sums = [majorant(each, p) for each, p in zip(weights, (3.0, 3.0, 2.0, 2.0), strict=True)]
            slopes = np.stack([0.5 * self.rate**2 / (flows * d) * total for total in sums], axis=1)
        return np.where(np.isfinite(slopes), slopes, np.inf)

    def min_angle(self, flows: tuple[float, float], rtt: tuple[float, float], extra: float = 0.0) -> float:
        """Angle below which L is within 0.05 rad of the negative imaginary axis, over a whole box."""
        window = self.rate * rtt[1] / flows[0]
        delta = self.epoch / rtt[1]
        # Of the main alias: hold and delays turn it by theta (1/2 + late/delta), its denominator by about
        # w0 theta/delta; the others together are below theta²/12 of it times |D| <= 2 + w0 theta/delta.
        late = 1.0 + (extra + self.late) / rtt[0]
        total = 1.0 + (late + window + 3.0) / delta + (self.proportional / self.integral if self.queue else 0.0)
        return min(0.05 / total, 0.02)

    def sharp_angles(self, flows: np.ndarray, rtt: np.ndarray) -> np.ndarray:
        """Angles around which the response bends more sharply than by its delays, at k points (k, n): none."""
        return np.empty((np.broadcast(flows, rtt).size, 0))


def arc_response(setting: ArcSetting, plant: Plant | None = None, *, delayed_window: bool = True) -> TcpResponse:
    """Response of one link under ARC; `plant` is the applicable one unless another is given.

    Parameters
    ----------
    setting : ArcSetting
        Link and law without its gain; a scalar capacity.
    plant : {"noq", "phys"}, optional
    delayed_window : bool
        False for Hollot's simplification, for comparison.
    """
    chosen = applicable_plant(setting) if plant is None else plant
    return TcpResponse(
        queue=chosen == "phys",
        rate=float(arc_arrival_rate(setting, chosen)),
        epoch=setting.epoch_s,
        integral=setting.utilization if chosen == "phys" else 0.0,
        delayed_window=delayed_window,
    )


def delay_pi_response(setting: ArcSetting, law: DelayPi, late_s: float = 0.0) -> TcpResponse:
    """Response of TCP and a standing queue under a PI law on the queueing delay, for its margins.

    It is ARC's loop where a queue stands with free gains: ARC itself is the law with integral gamma alpha C and
    proportional gain alpha C. The queue grows over an update by the arrivals less the departures, so the law acts on
    arrivals and backlog: proportional b/C and integral a/C [1/packet].

    Parameters
    ----------
    setting : ArcSetting
        The link's setting; the gains of its law are not used.
    law : DelayPi
    late_s : float
        Age of the delay that the law reads [s].
    """
    capacity = float(setting.capacity_packet_per_s)
    return TcpResponse(
        queue=True,
        rate=float(arc_arrival_rate(setting, "phys")),
        epoch=law.update_s,
        proportional=law.proportional / capacity,
        integral=law.integral / capacity,
        late=late_s,
    )


def _phases(share: np.ndarray, turns: np.ndarray) -> np.ndarray:
    """e^(i share turns) for all shares and aliases; one row, which broadcasts, where all shares are the same."""
    different, rows = np.unique(share, return_inverse=True)
    table = np.exp(1j * different[:, None] * turns)
    return table if len(different) == 1 else table[rows.reshape(-1)]
