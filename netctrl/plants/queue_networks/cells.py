"""Equilibria of a network over cells of round-trip times, numbers of flows and rates, with bounds of their slopes.

In a cell the same links are full, and the outputs x of their laws solve F_l = Σ_i y_il − 1 = 0 with the shares
y_il = N_i w_i/(R_i C_l). With P_i the probability of a mark on group i's path, p_ik ~ x_k^n_ik, e_i = −∂ ln w/∂ ln P,

    M_ik = ∂ ln P_i/∂ ln x_k = n_ik p_ik (1 − P_i)/(P_i (1 − p_ik)),
    ∂F_l/∂ ln x_k = −J_lk,   J_lk = Σ_i y_il e_i M_ik,

so that X = ∂ ln x/∂u solves J X = ∂F/∂u for the logarithm u of a quantity. Let ln x stay within rho of its value at the
cell's centre, and let J and ∂F/∂u then stay within Δ and Δ' of theirs. Then

    |X| <= (1 − |J⁻¹| Δ)⁻¹ (|J⁻¹ ∂F/∂u| + |J⁻¹| Δ'),

entry by entry. If this bound times the cell's half widths is at most rho, ln x can't leave the range that was taken.
All queues stand at the targets of PI laws, so that round trips don't depend on x.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal, NamedTuple

import numpy as np

from netctrl.plants.queue_networks.equilibrium import NetworkEquilibrium
from netctrl.plants.queues.cubic_response import EXPONENT_SLOPE
from netctrl.plants.queues.window_response import Sender

_NEWTON, _STEP, _CLOSE = 60, 0.7, 1e-13
_TRIES, _WIDER = 5, 1.3
"""Ranges of the outputs that are tried in a cell, and the factor from one to the next."""
_SPARE = 1e-9


class Coordinate(NamedTuple):
    """Quantity whose logarithm is a coordinate of cells."""

    kind: Literal["rtt", "flows", "rate"]
    place: int
    """Number of the group, or of the link for a rate."""


class _Signed(NamedTuple):
    """Functions over cells: values at the centres and bounds of the distance from them, of one shape."""

    value: np.ndarray
    off: np.ndarray

    @property
    def most(self) -> np.ndarray:
        """Bound of the modulus."""
        return np.abs(self.value) + self.off


class CellEquilibria(NamedTuple):
    """Equilibria over k cells of d coordinates, with I groups and K full links.

    Values are those at the centres, and slopes bounds of |∂ ln (value)/∂u| in the whole cell.
    """

    known: np.ndarray
    """Whether the cell's bounds hold, (k,)."""
    ln_x: np.ndarray
    """(k, K)"""
    by: np.ndarray
    """(k, K, d)"""
    trips: np.ndarray
    """R [s], (k, I)."""
    trips_by: np.ndarray
    """(k, I, d)"""
    ln_marked: np.ndarray
    """ln P, (k, I)."""
    marked_by: np.ndarray
    """(k, I, d)"""
    windows: np.ndarray
    """[packet], (k, I)."""
    windows_by: np.ndarray
    """(k, I, d)"""
    shares: np.ndarray
    """y, 0 off the path, (k, I, K)."""
    shares_by: np.ndarray
    """(k, I, K, d)"""
    marks: np.ndarray
    """M, 0 off the path, (k, I, K)."""
    marks_by: np.ndarray
    """(k, I, K, d)"""


@dataclass(frozen=True, slots=True, eq=False)
class NetworkCells:
    """Network whose full links all mark, around an equilibrium.

    Parameters
    ----------
    found : NetworkEquilibrium
        At one point.
    coordinates : tuple of Coordinate
    least_window : float
        Below it nothing is known [packet].
    """

    found: NetworkEquilibrium
    coordinates: tuple[Coordinate, ...]
    least_window: float = 0.0

    def at(self, centre: np.ndarray, half: np.ndarray) -> CellEquilibria:
        """Equilibria over cells of the coordinates' logarithms, (k, d) each."""
        with np.errstate(all="ignore"):  # where no equilibrium is found, or no bound is known
            return self._at(centre, half)

    def _at(self, centre: np.ndarray, half: np.ndarray) -> CellEquilibria:
        point = self._values(centre)
        ln_x, solved = self._solved(point)
        middle = self._slopes(ln_x, ln_x, point, point)
        J, F = middle.J[0], middle.F[0]
        one = np.eye(J.shape[1])
        inverse = np.linalg.inv(np.where(np.isfinite(J).all(axis=(1, 2), keepdims=True), J, one))
        X, size = inverse @ F, np.abs(inverse)
        low, high = self._values(centre - half), self._values(centre + half)
        known, tried = np.zeros(len(centre), dtype=bool), _WIDER * np.abs(X) + _SPARE
        off_X, rho = np.full(X.shape, inf), np.zeros(ln_x.shape)
        for _ in range(_TRIES):
            wide = (tried * half[:, None, :]).sum(axis=2)
            ends = self._slopes(ln_x - wide, ln_x + wide, low, high)
            off, off_F = (size @ each.off for each in (_signed(J, ends.J), _signed(F, ends.F)))
            usable = off.sum(axis=2).max(axis=1) < 1.0
            found = np.linalg.solve(np.where(usable[:, None, None], one - off, one), np.abs(X) + off_F)
            held = usable & (found <= tried).all(axis=(1, 2)) & ~known
            off_X[held], rho[held] = (off @ found + off_F)[held], wide[held]
            known |= held
            if known.all():
                break
            tried = np.where(usable[:, None, None], _WIDER * found, tried)
        ends = self._slopes(ln_x - rho, ln_x + rho, low, high)
        known &= solved & self._inside(ends)
        return self._described(known, ln_x, _Signed(X, off_X), (point, high), (middle, ends))

    def _values(self, u: np.ndarray) -> _Point:
        """R, N and C of all groups and links at logarithms (k, d)."""
        network = self.found.network
        rtt, flows = (np.tile([getattr(g, name) for g in network.groups], (len(u), 1)) for name in ("rtt_s", "flows"))
        rates = np.tile([link.rate for link in network.links], (len(u), 1))
        tables = {"rtt": rtt, "flows": flows, "rate": rates}
        for column, (kind, place) in enumerate(self.coordinates):
            tables[kind][:, place] = np.exp(u[:, column])
        waits = self.found.trips - np.array([g.rtt_s for g in network.groups])
        return _Point(rtt, flows, rates, rtt + waits)

    def _marks(self, ln_x: np.ndarray) -> np.ndarray:
        """1 − p of each group at each full link, 1 off its path, (k, I, K)."""
        network, order = self.found.network, self.found.order
        kept = np.ones((len(ln_x), len(network.groups), len(order)))
        for i, group in enumerate(network.groups):
            for link, seen in zip(group.path, group.seen, strict=True):
                if link in order:
                    at = order.index(link)
                    kept[:, i, at] = 1.0 - np.minimum(seen.factor * np.exp(ln_x[:, at] * seen.power), 1.0)
        return kept

    def _solved(self, point: _Point) -> tuple[np.ndarray, np.ndarray]:
        """ln x of the full links at points, by Newton's method from the known equilibrium, and whether it was found."""
        start = np.log(self.found.outputs[list(self.found.order)])
        ln_x = np.tile(start, (len(point.trips), 1))
        off = np.full(ln_x.shape, inf)
        for _ in range(_NEWTON):
            at = self._slopes(ln_x, ln_x, point, point)
            loads = at.shares[0].sum(axis=1)
            off = np.log(loads)
            move = np.linalg.solve(
                np.where(np.isfinite(at.J[0]), at.J[0], np.eye(ln_x.shape[1])), (off * loads)[:, :, None]
            )[:, :, 0]
            ln_x = np.minimum(ln_x + np.clip(np.where(np.isfinite(move), move, 0.0), -_STEP, _STEP), -1e-9)
            if (np.abs(off) < _CLOSE).all():
                break
        return ln_x, (np.abs(off) < 1e3 * _CLOSE).all(axis=1)

    def _slopes(self, below: np.ndarray, above: np.ndarray, low: _Point, high: _Point) -> _Ends:
        """Bounds of everything where ln x lies between (k, K) and quantities between two points."""
        network, order = self.found.network, list(self.found.order)
        least, most = self._marks(above), self._marks(below)  # 1 − p
        kept = least.prod(axis=2), most.prod(axis=2)
        P = 1.0 - kept[1], 1.0 - kept[0]
        senders = [group.sender for group in network.groups]

        def window(group: int, p: np.ndarray, at: _Point) -> np.ndarray:
            return senders[group].window(p[:, group], at.trips[:, group])

        windows = tuple(
            np.stack([window(i, P[1 - a], at) for i in range(len(senders))], axis=1) for a, at in ((0, low), (1, high))
        )
        # The rate w/R of a flow falls as P and as R grow.
        rates = tuple(
            np.stack([window(i, P[1 - a], at) / at.trips[:, i] for i in range(len(senders))], axis=1)
            for a, at in ((0, high), (1, low))
        )
        crossed = np.array([[float(k in group.path) for k in range(len(network.links))] for group in network.groups])
        every = tuple(
            rates[a][:, :, None] * own.flows[:, :, None] * crossed / other[:, None, :]
            for a, own, other in ((0, low, high.rates), (1, high, low.rates))
        )
        shares = tuple(each[:, :, order] for each in every)
        M = self._shares_of_marks((least, most), kept)
        e = self._exponents(senders, P, low, high)
        J = tuple(np.einsum("kil,ki,kim->klm", shares[a], e[a], M[a]) for a in (0, 1))
        F = self._by_quantities(shares, e, low, high)
        return _Ends(J, F, shares, tuple(each.sum(axis=1) for each in every), P, windows, M, e, (below, above))

    def _shares_of_marks(
        self, kept: tuple[np.ndarray, np.ndarray], whole: tuple[np.ndarray, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of M: with q = (1 − P)/(1 − p) it is n p q/(1 − q + p q), which grows with p and q."""
        network, order = self.found.network, self.found.order
        powers = np.zeros((len(network.groups), len(order)))
        for i, group in enumerate(network.groups):
            for link, seen in zip(group.path, group.seen, strict=True):
                if link in order:
                    powers[i, order.index(link)] = seen.power

        def share(p: np.ndarray, q: np.ndarray) -> np.ndarray:
            return powers * np.where(powers > 0.0, p * q / (1.0 - q + p * q), 0.0)

        others = [whole[e][:, :, None] / kept[e] for e in (0, 1)]  # q of each end
        return share(1.0 - kept[1], others[0]), share(1.0 - kept[0], others[1])

    def _exponents(
        self, senders: list[Sender], P: tuple[np.ndarray, np.ndarray], low: _Point, high: _Point
    ) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of −∂ ln w/∂ ln P, (k, I)."""
        found = np.empty((2, *P[0].shape))
        for i, sender in enumerate(senders):
            p, trip = np.sqrt(P[0][:, i] * P[1][:, i]), np.sqrt(low.trips[:, i] * high.trips[:, i])
            e, _ = sender.slopes(p, trip)
            moved = 0.25 * np.log(P[1][:, i] / P[0][:, i]) + 0.75 * np.log(high.trips[:, i] / low.trips[:, i])
            width = EXPONENT_SLOPE * moved if sender.curve else 0.0
            found[0, :, i], found[1, :, i] = e - width, e + width
        return found[0], found[1]

    def _by_quantities(self, shares: tuple, e: tuple, low: _Point, high: _Point) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of ∂F/∂u at Σ y = 1, (k, K, d)."""
        order = list(self.found.order)
        found = np.zeros((2, *shares[0].shape[::2], len(self.coordinates)))
        for column, (kind, place) in enumerate(self.coordinates):
            for a in (0, 1):
                if kind == "flows":
                    found[a, :, :, column] = shares[a][:, place]
                elif kind == "rtt":
                    curved = self.found.network.groups[place].sender.curve
                    falls = 2.5 - 3.0 * e[1 - a][:, place] if curved else 1.0  # 1 − ∂ ln w/∂ ln R
                    based = falls * self._based(place, (low, high)[a])
                    found[1 - a, :, :, column] = -shares[a][:, place] * based[:, None]
                elif place in order:
                    at = order.index(place)
                    found[1 - a, :, at, column] = -shares[a][:, :, at].sum(axis=1)
        return found[0], found[1]

    @staticmethod
    def _based(group: int, point: _Point) -> np.ndarray:
        """∂ ln R/∂ ln tau; grows with tau."""
        return point.rtt[:, group] / point.trips[:, group]

    def _inside(self, ends: _Ends) -> np.ndarray:
        """Whether the same links are full in the whole cell, laws in their ranges, and windows large enough."""
        network, order = self.found.network, self.found.order
        idle = [k for k in range(len(network.links)) if k not in order]
        held = np.all(ends.loads[1][:, idle] < 1.0 - _SPARE, axis=1)
        held = np.logical_and(held, np.all(ends.windows[0] >= self.least_window, axis=1))
        for at, k in enumerate(order):
            x = float(self.found.outputs[k])
            one = next((each for each in network.links[k].ranges if each.low <= x <= each.high), None)
            if one is None:
                return np.zeros_like(held)
            low, high = (np.exp(each[:, at]) for each in ends.ln_x)
            held = np.logical_and(held, (low >= one.low) & (high <= min(one.high, network.links[k].greatest)))
        return held

    def _described(
        self, known: np.ndarray, ln_x: np.ndarray, by: _Signed, points: tuple[_Point, _Point], seen: tuple[_Ends, _Ends]
    ) -> CellEquilibria:
        network, order, d = self.found.network, self.found.order, len(self.coordinates)
        (point, high), (middle, ends) = points, seen
        k, groups, full = middle.shares[0].shape
        trips = _Signed(np.zeros((k, groups, d)), np.zeros((k, groups, d)))
        for column, (kind, place) in enumerate(self.coordinates):
            if kind == "rtt":
                trips.value[:, place, column] = self._based(place, point)
                trips.off[:, place, column] = self._based(place, high) - self._based(place, point)
        M, e = _signed(middle.M[0], ends.M), _signed(middle.e[0], ends.e)
        marked = _Signed(  # d ln P = Σ M dX
            M.value @ by.value, M.off @ by.most + np.abs(M.value) @ by.off
        )
        curved = np.array([group.sender.curve > 0.0 for group in network.groups])
        falls = _Signed(np.where(curved, 2.5 - 3.0 * e.value, 1.0), np.where(curved, 3.0, 0.0) * e.off)
        by_trip, loss = _times(falls, trips), _times(e, marked)
        rate = _Signed(-by_trip.value - loss.value, by_trip.off + loss.off)  # of ln (w/R)
        windows = _Signed(rate.value + trips.value, rate.off + trips.off)
        shares = _Signed(*(np.repeat(each[:, :, None], full, axis=2) for each in rate))
        for column, (kind, place) in enumerate(self.coordinates):
            if kind == "flows":
                shares.value[:, place, :, column] += 1.0
            elif kind == "rate" and place in order:
                shares.value[:, :, order.index(place), column] -= 1.0
        return CellEquilibria(
            known=known,
            ln_x=ln_x,
            by=by.most,
            trips=point.trips,
            trips_by=trips.most,
            ln_marked=np.log(middle.P[0]),
            marked_by=marked.most,
            windows=middle.windows[0],
            windows_by=windows.most,
            shares=middle.shares[0],
            shares_by=shares.most,
            marks=middle.M[0],
            marks_by=self._marks_by(middle, ends, by, marked),
        )

    def _marks_by(self, middle: _Ends, ends: _Ends, by: _Signed, marked: _Signed) -> np.ndarray:
        """Bounds of |∂ ln M/∂u|: d ln M = n d ln x/(1 − p) − d ln P/(1 − P), since d ln p = n d ln x."""
        network, order = self.found.network, self.found.order
        found = np.zeros((*middle.M[0].shape, len(self.coordinates)))
        for i, group in enumerate(network.groups):
            whole = _signed(1.0 / (1.0 - middle.P[0][:, i]), tuple(1.0 / (1.0 - P[:, i]) for P in ends.P))
            less = _times(whole, _Signed(marked.value[:, i], marked.off[:, i]))
            for link, seen in zip(group.path, group.seen, strict=True):
                if link not in order:
                    continue
                at = order.index(link)
                own = [
                    seen.power / (1.0 - np.minimum(seen.factor * np.exp(each[:, at] * seen.power), 1.0))
                    for each in (middle.ln_x[0], *ends.ln_x)
                ]
                more = _times(_signed(own[0], (own[1], own[2])), _Signed(by.value[:, at], by.off[:, at]))
                found[:, i, at] = np.abs(more.value - less.value) + more.off + less.off
        return found


class _Point(NamedTuple):
    """Quantities at points."""

    rtt: np.ndarray
    """tau of the groups, (k, I) [s]."""
    flows: np.ndarray
    """N, (k, I)."""
    rates: np.ndarray
    """C of the links, (k, L) [packet/s]."""
    trips: np.ndarray
    """R, (k, I) [s]."""


class _Ends(NamedTuple):
    """Least and greatest values."""

    J: tuple[np.ndarray, ...]
    F: tuple[np.ndarray, ...]
    """∂F/∂u."""
    shares: tuple[np.ndarray, ...]
    loads: tuple[np.ndarray, ...]
    """Of all links, (k, L)."""
    P: tuple[np.ndarray, ...]
    windows: tuple[np.ndarray, ...]
    M: tuple[np.ndarray, ...]
    e: tuple[np.ndarray, ...]
    ln_x: tuple[np.ndarray, ...]


def _signed(value: np.ndarray, ends: tuple[np.ndarray, ...]) -> _Signed:
    """A value and how far both ends are from it."""
    return _Signed(value, np.maximum(np.maximum(ends[1] - value, value - ends[0]), 0.0))


def _times(factor: _Signed, slopes: _Signed) -> _Signed:
    """Product of a factor and slopes, which have one more axis."""
    value, off = factor.value[..., None], factor.off[..., None]
    return _Signed(value * slopes.value, np.abs(value) * slopes.off + off * slopes.most)
