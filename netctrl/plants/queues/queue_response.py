"""Frequency response of senders, a queue and the law that marks its packets, exact for delays, hold and sampling.

Flows of K classes share one link of C packets a second with the delay D of its queue. Class i has the share f_i of the
N flows, the round trip R_i = stretch_i · tau + D (or an own small delay, where another queue serves it first) and marks
at the probability p_i = factor_i · x^power_i, where x is what the law computes: 1 and 1 for a law that marks, power 2
for PI2 (RFC 9332) and a factor of 2 for its scalable flows. With Q_i and V_i of
`netctrl.plants.queues.window_response` and the shares y_i = N f_i w_i/(C R_i) of the link's rate, which sum to 1,

    s δD = Σ y_i (δW_i/w_i − δR_i/R_i),
    δD/δx = −(1/x) Σ y_i power_i Q_i e^(−s(R_i − h_i)) / (s + Σ' y_i (1 + V_i)/R_i),

where Σ' is over the classes whose round trip has the queue in it. Where packets are marked as they leave, h_i is what
class i waited, D or the delay of its other queue; else 0. It is Misra, Gong and Towsley's fluid, with all its delays.

A law that acts every d seconds on D as it was `age` ago, x⁺ = x + integral (D − target) + proportional (D − D_old), and
holds x in between, closes with z = e^(i theta), s_m = i (theta + 2 pi m)/d

    L(z) = (proportional (1 − 1/z) + integral) (1/d) Σ_m −(δD/δx)(s_m) e^(−s_m age)/s_m.

A law that averages the queue at every packet (RED) is continuous: L = (dx/dD) · −(δD/δx) e^(−s age)/(1 + s/corner).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import inf, log, pi
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from netctrl.plants.queues.clocked_response import clocked_missing
from netctrl.plants.queues.high_frequencies import Equilibrium
from netctrl.plants.queues.queue_laws import MOST_SPACED, Averaged, SampledPi, WindowClass
from netctrl.plants.queues.several_trips import shared_queue
from netctrl.plants.queues.window_response import response

if TYPE_CHECKING:
    from netctrl.plants.queues.response_kernel import Placed

_ALIASES = 12
"""On each side, at least; with the tails' two leading powers they leave less than 1e-8 of the response."""
_FEW = 3
"""For a first look, which leaves less than 1e-5."""
_FEWER = 3
"""At small angles one of so many."""
_FASTEST = 20.0
"""Corner in half turns of an interval from which on half as many more do: the main alias is then much larger."""
_FEW_APART, _MOST_APART = 120, 350
"""More of them for `several_clocks`, for a first look and else; they leave less than 2e-5 and 1e-6 of the response."""
_NEWTON, _USUAL = 60, 0.01
"""Steps, and an output of which the delay is where they begin."""
_LEAST_WINDOW = 2.0
"""Of which a loop is asked [packet]."""
EDGE = 1e-9
"""Relative width by which a range is closed at its ends, against rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class QueueResponse:
    """Loop response L at gain 1, for any number of flows and round-trip time.

    Parameters
    ----------
    classes : tuple of WindowClass
        Shares sum to 1; at least one class is queued.
    law : SampledPi or Averaged
    rate : float
        C [packet/s].
    age_s : float
        How old the delay is that the law reads [s].
    age_queues : float
        The same, in standing delays of the queue: 1 where the packet at the head tells.
    marked_leaving : bool
        Whether packets are marked as they leave the queue and not as they come.
    within : (float, float)
        Range of x in which this loop holds; the response is 0 outside.
    continuous_s : float
        Of an averaging law: theta is omega times this [s].
    """

    classes: tuple[WindowClass, ...]
    law: SampledPi | Averaged
    rate: float
    age_s: float = 0.0
    age_queues: float = 0.0
    marked_leaving: bool = False
    within: tuple[float, float] = (0.0, inf)
    continuous_s: float = 1.0

    @property
    def clocked(self) -> bool:
        """Whether acknowledgements clock all senders, so that the queue follows their windows without a lag."""
        return all(k.sender.spread for k in self.classes)

    @property
    def several_clocks(self) -> bool:
        """Whether acknowledgements clock flows of several round-trip times: points are exact, bounds are not known."""
        return self.clocked and len({k.stretch for k in self.classes}) > 1

    @property
    def drops(self) -> bool:
        """Whether packets are dropped, each of which leaves the queue at once."""
        return any(k.sender.notice for k in self.classes)

    @property
    def epoch(self) -> float:
        """Time that an angle of 1 rad stands for, per rad/s [s]."""
        return self.law.update_s if isinstance(self.law, SampledPi) else self.continuous_s

    def standing(self, x: Any) -> Any:
        """Delay of the queue in equilibrium [s]."""
        return self.law.delay(x)

    def output(self, flows: ArrayLike, rtt: ArrayLike) -> np.ndarray:
        """The law's output x in equilibrium, with which N flows fill the link: by Newton's method on ln x.

        Of an averaging law with spaced marks it is 1.5 where no x up to it would do; above 1 there is no equilibrium.
        """
        flows, rtt = np.asarray(flows, dtype=float), np.asarray(rtt, dtype=float)
        if flows.size == rtt.size == 1:
            return np.full((flows + rtt).shape, _output(self, flows.item(), rtt.item()))
        return self._solved(flows, rtt)

    def _solved(self, flows: np.ndarray, rtt: np.ndarray) -> np.ndarray:
        aim = np.log(self.rate / flows)
        first = self.classes[0]
        window = self.rate * self.trip(first, rtt, np.maximum(self.standing(_USUAL), 0.0)) / flows
        most = log(MOST_SPACED) if isinstance(self.law, Averaged) and self.law.spaced else inf
        u = np.minimum(np.log(first.sender.probability(window) / first.factor) / first.power, most)
        if len(self.classes) == 1 and isinstance(self.law, SampledPi) and not first.sender.curve:
            return np.exp(u)
        for _ in range(_NEWTON):
            x = np.exp(u)
            standing = np.maximum(self.standing(x), 0.0)  # below 0 only below the range of a line
            rates: Any = 0.0
            slopes: Any = 0.0
            for k in self.classes:
                trip = self.trip(k, rtt, standing)
                rate = k.share * k.window(x, trip) / trip
                by_p, by_trip = k.sender.slopes(k.factor * x**k.power, trip)
                longer = 0.0 if isinstance(self.law, SampledPi) or not k.queued else x / self.law.rise(x) / trip
                rates, slopes = rates + rate, slopes + rate * (k.power * by_p + by_trip * longer)
            move = rates / slopes * (np.log(rates) - aim)
            u = np.minimum(u + np.minimum(np.maximum(move, -20.0), 20.0), most)
            if (np.abs(move) < 1e-13).all():
                break
        return np.exp(u)

    def holds(self, x: np.ndarray) -> np.ndarray:
        """Whether outputs are in the loop's range."""
        return (x >= self.within[0] * (1.0 - 10.0 * EDGE)) & (x <= self.within[1] * (1.0 + 10.0 * EDGE))

    def solved(self, x: np.ndarray) -> np.ndarray:
        """Whether an output is that of an equilibrium, and not the end of what an averaging law may have."""
        if isinstance(law := self.law, SampledPi):
            return np.ones(x.shape, dtype=bool)
        return (law.delay(x) > 0.0) & ((x < MOST_SPACED * (1.0 - EDGE)) | (not law.spaced))

    def flows(self, x: float, rtt: Any) -> Any:
        """Number of flows whose equilibrium has the output x."""
        trips = [self.trip(k, rtt, self.standing(x)) for k in self.classes]
        return self.rate / sum(k.share * k.window(x, R) / R for k, R in zip(self.classes, trips, strict=True))

    def windows(self, flows: float, rtt: float) -> np.ndarray:
        """Windows of the classes in equilibrium, (K,) [packet]."""
        at = np.array([rtt])
        return self.windows_of(self.output(np.array([flows]), at), at)[:, 0]

    def windows_of(self, x: np.ndarray, rtt: np.ndarray) -> np.ndarray:
        """Windows of the classes at known outputs, (K, ...) [packet]."""
        standing = self.standing(x)
        return np.stack([k.window(x, self.trip(k, rtt, standing)) for k in self.classes])

    def trip(self, k: WindowClass, rtt: Any, standing: Any) -> Any:
        """Round trip of a class at a base round trip and a standing delay [s]."""
        return rtt * k.stretch + k.wait(standing)

    def at(
        self, theta: ArrayLike, flows: ArrayLike, rtt: ArrayLike, extra: ArrayLike = 0.0, *, coarse: bool = False
    ) -> np.ndarray:
        """L(e^(i theta)); complex `theta` continues it off the unit circle. All broadcast.

        `coarse` takes few aliases: good to some 1e-5, for a first look.
        """
        theta, flows, rtt, extra = (np.asarray(a) for a in (theta, flows, rtt, extra))
        where = np.broadcast(flows, rtt)
        shape = np.broadcast_shapes(theta.shape, where.shape, extra.shape)
        known = self.placed(*(a.ravel() for a in np.broadcast_arrays(flows, rtt)), coarse=coarse)
        row = np.arange(where.size).reshape(where.shape)
        return known.at(*(np.broadcast_to(a, shape).ravel() for a in (theta, row, extra))).reshape(shape)

    def placed(self, flows: np.ndarray, rtt: np.ndarray, *, coarse: bool = False) -> Placed:
        """The response at points, whose equilibria are then known.

        Parameters
        ----------
        flows, rtt : ndarray, shape (k,)
            N and tau [s].
        coarse : bool
            As of `at`.
        """
        if flows.size == 1:
            return _known(self, flows.item(), rtt.item(), coarse)
        return self._placed(flows, rtt, coarse)

    def _placed(self, flows: np.ndarray, rtt: np.ndarray, coarse: bool) -> Placed:
        x = self._solved(flows, rtt)
        held = np.minimum(np.maximum(x, self.within[0]), self.within[1])
        found = self.placed_at(held, flows, rtt, self.aliases(float(rtt.min(initial=inf)), coarse=coarse))
        return found._replace(factor=np.where(self.holds(x), found.factor, 0.0))

    def placed_at(self, x: np.ndarray, flows: np.ndarray, rtt: np.ndarray, most: tuple[int, int]) -> Placed:
        """As `placed`, of known outputs x (k,), with `most` aliases, as of `aliases`."""
        from netctrl.plants.queues.response_kernel import placed  # Numba loads slowly

        return placed(self, x, flows, rtt, most)

    def aliases(self, shortest: float, *, coarse: bool) -> tuple[int, int]:
        """Number of aliases on each side, for round trips from `shortest` [s] on: more where the plant is fast; and the
        same at small angles, where the main one is so large that of few digits fewer do."""
        if isinstance(self.law, Averaged):
            return 0, 0
        corner = max(4.0 / self.trip(k, shortest, self.law.target_s) for k in self.classes)
        fast = corner * self.epoch / pi
        fast = min(fast, 0.5 * (fast + _FASTEST))
        most = int(np.ceil(_FEW + 2.0 * fast if coarse else _ALIASES + 8.0 * fast))
        if self.several_clocks:  # no tails are known
            most += _FEW_APART if coarse else _MOST_APART
        elif coarse:
            return most, -(-most // _FEWER)
        return most, most

    def delays(self, point: Equilibrium, extra: Any) -> list:
        """From a mark to the law's reading of what it does, for each class [s]; last, of the packet that is dropped."""
        less = [k.wait(point.standing) if self.marked_leaving else 0.0 for k in self.classes]
        late = point.late + extra
        return [trip + late - w for trip, w in zip(point.trips, less, strict=True)] + [late] * self.drops

    def point(self, x: Any, flows: Any, rtt: Any) -> Equilibrium:
        """Equilibrium at the output x, with N flows and tau [s]."""
        standing = self.standing(x)
        trips = [self.trip(k, rtt, standing) for k in self.classes]
        both = list(zip(self.classes, trips, strict=True))
        dampings = [k.sender.increase / k.window(x, trip) for k, trip in both]
        modes = [k.sender.mode(np.log(k.factor * x**k.power), np.log(trip))[1] for k, trip in both]
        shares = [
            flows * (k.share * k.sender.increase / self.rate) / (trip * damping)
            for k, trip, damping in zip(self.classes, trips, dampings, strict=True)
        ]
        return Equilibrium(standing, self.late(standing), self.law.rise(x), trips, dampings, shares, modes)

    def late(self, standing: Any) -> Any:
        """Age of the delay that the law reads [s]."""
        return self.age_s + self.age_queues * standing

    def term(self, s: Any, point: Equilibrium, echoes: list, marks: list, means: list | None = None) -> Any:
        """−x (δD/δx) e^(−s age)/s, or for an averaging law x times its whole loop.

        It takes s [rad/s], for each class the phases of its lags, those of marks, as `delays`, and of cells `Means`.
        """
        moves, den = self.parts(s, point, echoes, marks, means)
        if self.several_clocks:
            return shared_queue(s, [k.stretch for k in self.classes], moves, point.trips, point.shares) / s
        if isinstance(self.law, SampledPi):
            return sum(moves) / (den * s)
        return point.rise * sum(moves) / (den * (s / self.law.corner + 1.0))

    def parts(
        self, s: Any, point: Equilibrium, echoes: list, marks: list, means: list | None = None
    ) -> tuple[list[Any], Any]:
        """What windows of each class do to the delay by a relative change of x, and what the queue makes of it, as a
        divisor. Arguments as of `term`."""
        moves: list[Any] = []
        den: Any = 0.0 if self.clocked else s
        for i, k in enumerate(self.classes):
            trip, share, mode, known = point.trips[i], point.shares[i], point.modes[i], means[i] if means else None
            Q, V = response(k.sender, s * trip, echoes[i], point.dampings[i], mode, known)
            own = Q * marks[i]
            if k.sender.notice:
                own = own + clocked_missing(s * trip, echoes[i], mode, marks[-1], marks[i], known)
            moves.append(own * (share * k.power))
            if k.queued:
                den = den + (V + 1.0) * (share / trip)
        return moves, den

    def min_angle(self, flows: tuple[float, float], rtt: tuple[float, float], extra: float = 0.0) -> float:
        """Angle below which L is within 0.05 rad of its direction at 0, over a whole box."""
        lowest = max(float(self.output(flows[0], rtt[1])), self.within[0])
        standing = float(np.max(self.standing(max(float(self.output(flows[1], rtt[0])), lowest))))
        return min(0.05 * self.epoch / float(self._lags(lowest, standing, rtt[1], extra)), 0.02)

    def slowest(self, flows: np.ndarray, rtt: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sum of the loop's lags and delays, and its longest delay, at k points, (k,) and (k,) [s]."""
        x = self.output(flows, rtt)
        standing = np.maximum(self.standing(x), 0.0)
        delays = [self.trip(k, rtt, standing) for k in self.classes]
        return self._lags(x, standing, rtt), np.max(delays, axis=0) + self.late(standing)

    def _lags(self, x: Any, standing: Any, rtt: Any, extra: float = 0.0) -> Any:
        """Sum of the lags and delays by which L turns at low frequencies [s]."""
        total: Any = 0.0
        for k in self.classes:
            trip = self.trip(k, rtt, standing)
            slow = k.window(x, trip) / k.sender.increase
            average = 1.0 / k.sender.averaging if k.sender.averaging else 0.0
            told = k.sender.notice / _LEAST_WINDOW
            total = np.maximum(total, trip * (slow + average + told + 4.0) + self.late(standing) + extra)
        if isinstance(self.law, Averaged):
            return total + 1.0 / self.law.corner
        return total + self.epoch * (1.0 + self.law.proportional / self.law.integral)


@lru_cache(maxsize=256)
def _output(response: QueueResponse, flows: float, rtt: float) -> float:
    """Output at one point, of which margins ask many times."""
    return float(response._solved(np.asarray(flows), np.asarray(rtt)))


@lru_cache(maxsize=256)
def _known(response: QueueResponse, flows: float, rtt: float, coarse: bool) -> Placed:
    """The response at one point, of which margins ask many times."""
    return response._placed(np.array([flows]), np.array([rtt]), coarse)
