"""Exact coordinated control: one Riccati recursion per link, over the growing set of informed links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg as sl

from netctrl.core.errors import InvalidValue, NoAdmissibleDesign, RiccatiStatus, checked_kind, checked_whole
from netctrl.model.io.display import Shown
from netctrl.model.law import AgedColumns, AgedGain
from netctrl.model.network_model import InformationPattern, NetworkModel
from netctrl.synthesis.check import steady_covariance
from netctrl.synthesis.localized.region import Region, check_splits, checked_weight, regions, sources, together
from netctrl.synthesis.riccati.dare import DareSolution, solve_dare
from netctrl.synthesis.threads import blas_threads

MAX_STATES = 2000
"""Largest number of states of a region, whose Riccati equation is dense."""


@dataclass(frozen=True, slots=True, repr=False)
class CoordinatedSynthesis(Shown):
    """Optimal coordinated controller for an information pattern, and its cost."""

    law: AgedGain
    """The controller."""
    cost: float
    """Σ_l E f_l² + mu_l E b_l² under the demands' deviations [(bit/s)²]."""
    cost_rate: float
    """Part of the cost due to the rates."""
    residual: float
    """Greatest relative residual of the Riccati equations."""
    spectral_radius: float
    """Largest spectral radius of the closed loops that remain once every link of a region is informed."""


def coordinated(
    model: NetworkModel, weight: float | np.ndarray, information: InformationPattern, *, reach: int | None = None
) -> CoordinatedSynthesis:
    """Optimal controller for links that learn of disturbances with delays.

    At age t a disturbance at link e is known to the links S(t) = {l: n_le ≤ t − 1}. The recursion runs back to age 1
    from P of the Riccati equation, which holds once all links know of it:

        P_t = Q + A'P_{t+1}A − A'P_{t+1}B_S (R_SS + B_S'P_{t+1}B_S)⁻¹ B_S'P_{t+1}A,    cost Σ_i sigma_i² h_i'P_1 h_i.

    Without information delays this is the GOD architecture.

    Parameters
    ----------
    model : NetworkModel
        Model of N links.
    weight : float or ndarray, shape (N,)
        mu > 0, weight of a squared backlog relative to a squared rate, as in `localized`.
    information : InformationPattern
        Delays after which each link learns of a disturbance (`netctrl.plants.information.information_pattern`).
    reach : int, optional
        Largest information delay [samples] of links that help although the disturbance's traffic doesn't reach them.

    Returns
    -------
    CoordinatedSynthesis

    Raises
    ------
    InvalidValue
        A weight that isn't above 0, a reach that isn't a whole number, information about another number of links, or a
        region of more than 2000 states.
    NoAdmissibleDesign
        A link on the traffic's route never learns of it, or too late; or a Riccati equation that can't be solved.

    Examples
    --------
    >>> import netctrl
    >>> from netctrl.plants.information import information_pattern
    >>> from netctrl.synthesis.localized.coordinated import coordinated
    >>> network = netctrl.read("merge")
    >>> model = netctrl.network_model(network, interval_s=0.01)
    >>> information = information_pattern(network, 0.01, model.links, "out-of-band")
    >>> found = coordinated(model, 0.1, information)
    >>> round(found.cost / 1e13, 3), found.spectral_radius < 1.0
    (1.469, True)

    References
    ----------
    Lamperski, Doyle, "The H2 control problem for quadratically invariant systems with delays", IEEE TAC 2015, in the
    special case in which each disturbance enters at one node.
    """
    checked_kind("model", model, NetworkModel)
    checked_kind("information", information, InformationPattern)
    mu = checked_weight(weight, model.n_links)
    far = int(model.delay.sum()) + model.n_links
    if reach is not None:
        far = checked_whole("reach", reach, "a whole number of samples of at least 0")
    disturbances = sources(model)
    found = regions(model, mu, information, np.full(model.n_links, far))
    check_splits(information, model.links, disturbances)
    recursions = _Recursions(model.links)
    columns = []
    for region in found.values():
        ordered = region.ordered()
        columns.append(AgedColumns(links=ordered.links, gains=recursions.of(ordered).gains))
    cost = rate = 0.0
    for (links, shares), variance in disturbances.items():
        region = together([found[link] for link in links]).ordered()
        P, Z, _ = recursions.of(region)
        first = len(P) - len(region.links)
        b = np.zeros(len(P))
        b[first + np.searchsorted(region.links, links)] = shares
        cost += variance * float(b @ P @ b)
        rate += variance * float(b @ Z @ b)
    return CoordinatedSynthesis(
        law=AgedGain(interval_s=model.interval_s, delay=model.delay, links=model.links, columns=tuple(columns)),
        cost=float(cost),
        cost_rate=float(rate),
        residual=max(last.solution.residual for last in recursions.settled.values()),
        spectral_radius=max(last.solution.spectral_radius for last in recursions.settled.values()),
    )


def exact_work(model: NetworkModel, mu: np.ndarray, information: InformationPattern) -> int:
    """Σ n³ over the Riccati equations, of n states, that `coordinated` solves."""
    far = int(model.delay.sum()) + model.n_links
    found = regions(model, mu, information, np.full(model.n_links, far))
    return sum({np.sort(region.links).tobytes(): region.n_states**3 for region in found.values()}.values())


class _Settled(NamedTuple):
    """State-space model and Riccati solution of a region whose links are all informed."""

    A: np.ndarray
    B: np.ndarray
    Q: np.ndarray
    solution: DareSolution
    Z: np.ndarray
    """Cost to go due to the rates."""


class _Recursion(NamedTuple):
    P: np.ndarray
    """P_1: the cost to go at age 1."""
    Z: np.ndarray
    """Part of P due to the rates."""
    gains: tuple[np.ndarray, ...]


class _Recursions:
    """Recursions computed so far; regions of the same links share one Riccati equation, equal regions everything."""

    def __init__(self, names: Sequence[str]) -> None:
        self.settled: dict[bytes, _Settled] = {}
        self._names = names
        self._solved: dict[bytes, _Recursion] = {}

    def of(self, region: Region) -> _Recursion:
        """Recursion of a region whose links are in the order of their numbers, as the gains are."""
        key, links = region._replace(travel=region.heard).key(), region.links.tobytes()  # it takes no travel times
        if key not in self._solved:
            with blas_threads(region.n_states):
                if links not in self.settled:
                    self.settled[links] = _settled(region, self._names)
                self._solved[key] = _recursion(region, self.settled[links])
        return self._solved[key]


def _settled(region: Region, names: Sequence[str]) -> _Settled:
    n, m = region.n_states, len(region.links)
    if n > MAX_STATES:
        takes = f"a network or a reach with regions of at most {MAX_STATES} states, or the localized synthesis"
        raise InvalidValue("horizon", f"exact, for a region of {n} states", takes)
    A, B = region.matrices()
    Q = np.zeros((n, n))
    Q[n - m :, n - m :] = np.diag(region.weight)
    solution = solve_dare(A, B, Q, np.eye(m))
    if solution.status is not RiccatiStatus.STABILISING:
        some = ", ".join(names[link] for link in region.links[:5]) + (", ..." if m > 5 else "")
        why = "traffic circulates among them and never leaves, or a weight is lost in rounding"
        raise NoAdmissibleDesign(f"the Riccati equation of the links {some} has no solution: {why}. {solution.remedy}")
    return _Settled(A, B, Q, solution, steady_covariance((A + B @ solution.K).T, solution.K.T @ solution.K))


def _recursion(region: Region, last: _Settled) -> _Recursion:
    A, B, Q, solution, Z = last
    P, gains = solution.X, [solution.K]
    n, m = B.shape
    for age in range(int(region.heard.max()), 0, -1):
        hears = np.flatnonzero(region.heard <= age - 1)
        BS = B[:, hears]
        PA = P @ A
        K = np.zeros((m, n))
        K[hears] = -sl.solve(np.eye(len(hears)) + BS.T @ P @ BS, BS.T @ PA, assume_a="pos")
        closed = A + B @ K
        P = Q + A.T @ P @ closed
        P = 0.5 * (P + P.T)
        Z = K.T @ K + closed.T @ Z @ closed
        gains.append(K)
    return _Recursion(P, Z, tuple(gains[::-1]))
