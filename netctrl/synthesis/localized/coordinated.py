"""Exact coordinated control: for each link a Riccati recursion in which more and more links hear of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg as sl

from netctrl.errors import InvalidValue, NoAdmissibleDesign, RiccatiStatus, checked_kind, checked_whole
from netctrl.model.information import InformationPattern
from netctrl.model.law import AgedColumns, AgedGain
from netctrl.model.network_model import NetworkModel
from netctrl.synthesis.check import steady_covariance
from netctrl.synthesis.localized.region import Region, check_splits, checked_weight, regions, sources, together
from netctrl.synthesis.riccati.dare import DareSolution, solve_dare
from netctrl.synthesis.threads import blas_threads

__all__ = ["CoordinatedSynthesis", "coordinated"]

MAX_STATES = 2000
"""Of one region: its Riccati equation is dense."""


@dataclass(frozen=True, slots=True)
class CoordinatedSynthesis:
    """The best coordinated controller for an information pattern, and its cost."""

    law: AgedGain
    cost: float
    """Σ_l E f_l² + mu_l E b_l² under the demands' deviations [(bit/s)²]."""
    cost_rate: float
    """Its part of the rates."""
    residual: float
    """Greatest relative residual of the Riccati equations."""
    spectral_radius: float
    """Greatest of the closed loops that remain once every link has heard."""


def coordinated(
    model: NetworkModel, weight: float | np.ndarray, information: InformationPattern, *, reach: int | None = None
) -> CoordinatedSynthesis:
    """The least cost of a controller that hears what `information` says, and the controller.

    A disturbance at link e is known to the links S(t) = {l: n_le ≤ t − 1} at its age t. From P of the Riccati equation,
    which holds once all have heard, back to age 1,

        P_t = Q + A'P_{t+1}A − A'P_{t+1}B_S (R_SS + B_S'P_{t+1}B_S)⁻¹ B_S'P_{t+1}A,    cost Σ_i sigma_i² h_i'P_1 h_i.

    Without delays it is the GOD architecture.

    Parameters
    ----------
    model : NetworkModel
    weight : float or ndarray, shape (N,)
        mu > 0, as in `localized`.
    information : InformationPattern
    reach : int, optional
        As in `localized`.

    Raises
    ------
    InvalidValue
        A weight that isn't above 0, a reach that is no whole number, information about another number of links, or a
        region of more than 2000 states.
    NoAdmissibleDesign
        A link that the fluid comes to never hears of it, or hears of it too late; or a Riccati equation that can't be
        solved.

    Notes
    -----
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
    check_splits(model, disturbances, found)
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


class _Settled(NamedTuple):
    """Once every link of a region has heard."""

    A: np.ndarray
    B: np.ndarray
    Q: np.ndarray
    solution: DareSolution
    Z: np.ndarray
    """Cost to go of the rates."""


class _Recursion(NamedTuple):
    P: np.ndarray
    """P_1: the cost to go at age 1."""
    Z: np.ndarray
    """Its part of the rates."""
    gains: tuple[np.ndarray, ...]


class _Recursions:
    """Those that were asked for so far; regions of the same links share their Riccati equation, like ones all."""

    def __init__(self, names: Sequence[str]) -> None:
        self.settled: dict[bytes, _Settled] = {}
        self._names = names
        self._solved: dict[bytes, _Recursion] = {}

    def of(self, region: Region) -> _Recursion:
        """That of a region whose links are in the order of their numbers, as the gains are."""
        key, links = region.key(), region.links.tobytes()
        if key not in self._solved:
            with blas_threads(region.n_states):
                if links not in self.settled:
                    self.settled[links] = _settled(region, self._names)
                self._solved[key] = _recursion(region, self.settled[links])
        return self._solved[key]


def _settled(region: Region, names: Sequence[str]) -> _Settled:
    n, m = region.n_states, len(region.links)
    if n > MAX_STATES:
        takes = f"networks, or a reach, whose regions have at most {MAX_STATES} states, or the localized synthesis"
        raise InvalidValue("horizon", f"exact, for a region of {n} states", takes)
    A, B = region.matrices()
    Q = np.zeros((n, n))
    Q[n - m :, n - m :] = np.diag(region.weight)
    solution = solve_dare(A, B, Q, np.eye(m))
    if solution.status is not RiccatiStatus.STABILISING:
        some = ", ".join(names[link] for link in region.links[:5]) + (", ..." if m > 5 else "")
        why = "fluid goes around a circle of them and never leaves it, or a weight is lost in rounding"
        raise NoAdmissibleDesign(f"the Riccati equation of the links {some} has no answer: {why}. {solution.remedy}")
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
