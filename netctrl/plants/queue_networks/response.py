"""Frequency response of a network of queues around its equilibrium, exact for delays, hold and sampling.

Link l of C_l packets a second has the queueing delay D_l. Group i has N_i flows with the window w_i, the round trip
R_i = tau_i + Σ D_l over the queues of its path, and the share y_il = N_i w_i/(R_i C_l) of the link's rate. Times of a
group are those at its first queue: what passes there now comes to queue l after g_il, by propagation and the standing
queues between. Marks at l come back to the sender, and change what comes to the first queue, after
m_il = R_i − g_il (less D_l where packets are marked as they leave). With Q_i and V_i of
`netctrl.plants.queues.window_response` at sigma = R_i s,

    δW_i/w_i = −Q_i Σ_k r_ik n_ik e^(−s m_ik) δx_k/x_k − V_i δR_i/R_i,    δR_i = Σ_k δD_k,

where p_ik ~ x_k^n_ik and r_ik = (p_ik/P_i) ∂P_i/∂p_ik = (p_ik/P_i) (1 − P_i)/(1 − p_ik) for P_i = 1 − Π (1 − p_ik).
A queue is first in, first out: what leaves k is what came, later by D_k + δD_k. So with k < l on the path

    s δD_l = Σ_i y_il [ e^(−s g_il) (δW_i/w_i − δR_i/R_i) − Σ_{k<l} s e^(−s (g_il − g_ik)) δD_k ],

or A(s) δD = −B(s) δ(ln x). A queue that is full only of what another queue lets through doesn't move.
This is Misra, Gong and Towsley's network of links (SIGCOMM 2000, Section 3), with the windows' own delays, the forward
delays and the queues' order kept. With one link it is the loop of `netctrl.plants.queues.queue_response`.

Laws that act every d seconds, all at the same interval, close with z = e^(i theta) and s_m = i (theta + 2 pi m)/d,

    L(z)_lk = (proportional_l (1 − 1/z) + integral_l)/(d x_l) Σ_m [A⁻¹ B](s_m)_lk e^(−s_m age_l)/s_m.

Else theta is omega times a time, RED's rows are L_lk = (dx_l/dD_l)/x_l [A⁻¹ B]_lk e^(−s age)/(1 + s/corner), and of PI
laws the main alias m = 0 alone is in L: exact if all are RED, an approximation otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import pi
from typing import Any

import numpy as np

from netctrl.plants.aliases import SMALL_ANGLE, held_aliases
from netctrl.plants.queue_networks.equilibrium import NetworkEquilibrium
from netctrl.plants.queue_networks.group import GroupResponse, group_response, leading_powers
from netctrl.plants.queue_networks.matrices import Matrix, solved
from netctrl.plants.queues.mean_value import MeanValue, unknown_phase
from netctrl.plants.queues.queue_laws import Averaged, SampledPi
from netctrl.plants.queues.queue_loop import BLOCK
from netctrl.plants.queues.window_response import response

_ALIASES, _FEW = 16, 5
"""On each side: with the leading powers' sums in closed form they leave less than 1e-8, or 1e-5 for a first look."""

Turn = Callable[[float], Any]
"""Delay [s] -> e^(−s delay)."""


@dataclass(frozen=True)
class NetworkResponse:
    """Matrix response L of a network's laws at gain 1.

    Parameters
    ----------
    equilibrium : NetworkEquilibrium
    continuous_s : float
        Where the laws don't share one interval: theta is omega times this [s].
    """

    equilibrium: NetworkEquilibrium
    continuous_s: float = 1.0

    @cached_property
    def marking(self) -> tuple[int, ...]:
        """Places, in the order of queueing links, of those whose laws mark."""
        order, marking = self.equilibrium.order, self.equilibrium.marking
        return tuple(order.index(k) for k in marking)

    @cached_property
    def laws(self) -> tuple[Any, ...]:
        """Laws of the links that mark, each a `SampledPi` or `Averaged`, with the gains in effect."""
        found = self.equilibrium
        return tuple(found.network.links[k].at(float(found.outputs[k])) for k in found.marking)

    @cached_property
    def sampled(self) -> bool:
        """Whether all laws act at the same interval, so that L is the exact sampled response."""
        intervals = {law.update_s if isinstance(law, SampledPi) else None for law in self.laws}
        return len(intervals) == 1 and None not in intervals

    @property
    def exact(self) -> bool:
        """Whether nothing of the linear loop is left out: one interval of updates, or averaging laws alone."""
        return self.sampled or all(isinstance(law, Averaged) for law in self.laws)

    @property
    def epoch(self) -> float:
        """Time that an angle of 1 rad stands for, per rad/s [s]."""
        return self.laws[0].update_s if self.sampled else self.continuous_s

    @cached_property
    def outputs(self) -> tuple[float, ...]:
        """x of the laws that mark."""
        return tuple(float(self.equilibrium.outputs[k]) for k in self.equilibrium.marking)

    @cached_property
    def ages(self) -> tuple[float, ...]:
        """Ages of the delays that the laws read [s]."""
        found = self.equilibrium
        links = [(found.network.links[k], float(found.delays[k])) for k in found.marking]
        return tuple(link.age_s + link.age_queues * delay for link, delay in links)

    @cached_property
    def groups(self) -> tuple[GroupResponse, ...]:
        """All groups of flows."""
        return tuple(group_response(self.equilibrium, i) for i in range(len(self.equilibrium.network.groups)))

    def at(self, theta: Any, *, coarse: bool = False) -> np.ndarray:
        """L at angles (n,) above 0, (n, S, S); `coarse` takes few aliases, for a first look."""
        theta = np.asarray(theta, dtype=float)
        rows = self.weighted(theta, coarse=coarse)
        return rows / np.stack([w + 0.0 * theta for w in self.weights(theta)], axis=1)[:, :, None]

    def weights(self, theta: Any) -> list:
        """Factor r of each row that takes the integrator out of its law: 1 − 1/z, s d/(1 + s d), or 1."""
        if self.sampled:
            return [-np.expm1(-1j * theta)] * len(self.laws)
        s = 1j * theta / self.epoch
        return [
            s * law.update_s / (1.0 + s * law.update_s) if isinstance(law, SampledPi) else np.ones_like(s)
            for law in self.laws
        ]

    def weighted(self, theta: np.ndarray, *, coarse: bool = False) -> np.ndarray:
        """r L at angles (n,) from 0 to pi, (n, S, S); finite at 0."""
        most = self.aliases(coarse=coarse) if self.sampled else 0
        size = max(1, BLOCK // (2 * most + 1) // 2)
        parts = [self._weighted(theta[i : i + size], most) for i in range(0, len(theta), size)]
        return np.concatenate(parts)

    def aliases(self, *, coarse: bool) -> int:
        """Number of aliases on each side: more where the plant is fast."""
        fast = 4.0 / min(group.trip for group in self.groups) * self.epoch / pi
        return int(np.ceil(_FEW + 2.0 * fast if coarse else _ALIASES + 8.0 * fast))

    def _weighted(self, theta: np.ndarray, most: int) -> np.ndarray:
        s = 1j * (theta[:, None] + 2.0 * pi * np.arange(-most, most + 1)) / self.epoch
        G = self.plant(s, lambda delay: np.exp(-s * delay))
        size = len(self.laws)
        found = np.empty((len(theta), size, size), dtype=complex)
        for row, law in enumerate(self.laws):
            late = np.exp(-s * self.ages[row])
            for column in range(size):
                value = G[row][column] * late
                if self.sampled:
                    found[:, row, column] = self._held(theta, s, value, row, column)
                else:
                    factor = law_factor(law, self.outputs[row], s, lambda delay: np.exp(-s * delay))
                    found[:, row, column] = (value * factor)[:, 0]
        return found

    def _held(self, theta: np.ndarray, s: np.ndarray, value: np.ndarray, row: int, column: int) -> np.ndarray:
        """An entry of r L from its aliases, of which those beyond are summed in closed form."""
        law, d, most = self.laws[row], self.epoch, s.shape[1] // 2
        beside = np.delete(s, most, axis=1)
        rest = (np.delete(value, most, axis=1) / beside).sum(axis=1)
        apart = np.abs(theta) > SMALL_ANGLE
        third, fourth = (table[self.marking[row]][self.marking[column]] for table in self._leading)
        fourth = fourth if most >= _ALIASES else {}
        for delay in {**third, **fourth}:
            factors, whole = (third.get(delay, 0.0), fourth.get(delay, 0.0)), delay + self.ages[row]
            rest = rest - _delayed(beside, whole, factors).sum(axis=1)
            rest = rest + held_aliases(
                theta, np.array(whole / d), np.array(factors[0] * d**3), np.array(factors[1] * d**4)
            )
            # Above small angles the closed form has the main alias in it.
            rest = rest - np.where(apart, _delayed(np.where(apart, s[:, most], 1j), whole, factors), 0.0)
        weight = -np.expm1(-1j * theta)
        x = self.outputs[row]
        counted = (law.proportional * weight + law.integral) * (law.steeper(x) / x)
        return counted * (held_share(theta) * value[:, most] + weight * rest / d)

    def aliased(self, theta: float) -> float:
        """Size of the nearest aliases, which L leaves out where intervals differ, over that of the response there."""
        sizes = []
        for row, law in enumerate(self.laws):
            if isinstance(law, SampledPi):
                turns = theta / self.epoch + 2.0 * pi * np.arange(-_FEW, _FEW + 1) / law.update_s
                s = 1j * turns[None, :]
                G = self.plant(s, lambda delay, s=s: np.exp(-s * delay))
                size = sum(np.abs(entry / s)[0] for entry in G[row] if not isinstance(entry, float))
                sizes.append(float(np.delete(size, _FEW).sum() / size[_FEW]))
        return max(sizes, default=0.0)

    def plant(self, s: Any, turn: Turn) -> Matrix:
        """A⁻¹ B for the links that mark: −δD_l/δ ln x_k; s and the turns are arrays or functions over cells."""
        A, B = self.matrices(s, turn)
        G = solved(A, [[B[row][k] for k in self.marking] for row in range(len(A))])
        return [G[row] for row in self.marking]

    def matrices(self, s: Any, turn: Turn) -> tuple[Matrix, Matrix]:
        """A and B over all queueing links."""
        return link_matrices(self.groups, len(self.equilibrium.order), s, turn)

    @cached_property
    def _leading(self) -> tuple:
        return leading_powers(self.groups, len(self.equilibrium.order))


def link_matrices(groups: Sequence[GroupResponse], size: int, s: Any, turn: Turn) -> tuple[Matrix, Matrix]:
    """A and B over `size` links; s, the turns and the groups' numbers are arrays or functions over cells."""
    A: Matrix = [[0.0] * size for _ in range(size)]
    B: Matrix = [[0.0] * size for _ in range(size)]
    for k in range(size):
        A[k][k] = s
    for group in groups:
        Q, V = response(group.sender, s * group.trip, [turn(group.trip)], group.damping, group.mode)
        slow = (V + 1.0) * (1.0 / group.trip)
        for i, link in enumerate(group.at):
            moved, share = turn(group.ahead[i]), group.shares[i]
            for j, other in enumerate(group.at):
                if group.queued[j]:
                    A[link][other] = moved * slow * share + A[link][other]
                    if j < i:
                        A[link][other] = s * turn(group.ahead[i] - group.ahead[j]) * share + A[link][other]
                if group.marks[j]:
                    shift = turn(group.ahead[i] + group.back[j])
                    B[link][other] = Q * shift * (share * group.marks[j]) + B[link][other]
    return A, B


def held_share(theta: np.ndarray) -> np.ndarray:
    """(1 − e^(−i theta))/(i theta)."""
    return np.exp(-0.5j * theta) * np.sinc(theta / (2.0 * pi))


def law_factor(law: SampledPi | Averaged, x: float, s: Any, turn: Turn) -> Any:
    """r times a law's response from the delay that it reads to ln x, in continuous time."""
    if isinstance(law, Averaged):
        return law.rise(x) / x / (s * (1.0 / law.corner) + 1.0)
    counted = turn(law.update_s) * -law.proportional + (law.proportional + law.integral)
    return counted * (law.steeper(x) / x) / (s * law.update_s + 1.0)


def phases(omega: MeanValue, known: bool) -> Turn:
    """e^(−i omega delay) for delays, each computed once; of a phase that isn't `known`, its modulus and slopes alone.

    What isn't known is the last coordinate of the cells.
    """
    kept: dict[float, MeanValue] = {}

    def turn(delay: float) -> MeanValue:
        if delay not in kept:
            turned = (omega * delay).turn()
            if not known and delay != 0.0:
                unsure = unknown_phase(omega, -1)
                turned = MeanValue(unsure.value + 0.0 * turned.value, unsure.slopes + turned.slopes, omega.half)
            kept[delay] = turned
        return kept[delay]

    return turn


def _delayed(s: np.ndarray, delay: float, factors: tuple[float, float]) -> np.ndarray:
    return np.exp(-s * delay) * (factors[0] + factors[1] / s) / s**3
