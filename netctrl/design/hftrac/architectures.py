"""Controllers of each architecture, with their costs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from netctrl.core.errors import InvalidValue, NoAdmissibleDesign, RiccatiStatus
from netctrl.model.design.hftrac import HftracInputs
from netctrl.model.io.record_file import taken
from netctrl.model.law import LinkRateLaw, StaticGain
from netctrl.model.network import Network
from netctrl.model.network_model import InformationPattern, NetworkModel
from netctrl.plants.information import information_pattern
from netctrl.plants.linearize import network_state_space
from netctrl.synthesis.check import steady_covariance
from netctrl.synthesis.localized.coordinated import coordinated, exact_work
from netctrl.synthesis.localized.localized import localized
from netctrl.synthesis.myopic.fir import myopic_fir
from netctrl.synthesis.myopic.static import myopic
from netctrl.synthesis.riccati.delayed import delayed_regulator

MAX_DENSE_STATES = 3000
"""Largest number of states of an architecture with a dense equation."""
_NO_LENGTH = 1e-9
EXACT_STATES = 600
"""Up to this size the exact controller is cheaper than a truncated one, where links share their Riccati equations, and
others are compared with it."""


class Plant(NamedTuple):
    """The network as modelled for its controllers."""

    network: Network
    model: NetworkModel
    mu: np.ndarray
    nominal: list[float]


class Made(NamedTuple):
    """Controller of one architecture, with its cost."""

    law: LinkRateLaw
    cost: float
    cost_rate: float
    bound: float
    spectral_radius: float
    note: str
    residual: float | None = None
    information_delay: int | None = None
    controller: str | None = None
    horizon: int | None = None
    excess: float | None = None
    region: int | None = None
    reach: int | None = None
    messages: int | None = None


def synthesised(plant: Plant, requested: HftracInputs, n_jobs: int) -> Made:
    """The controller of the requested architecture, with its cost."""
    match requested.architecture:
        case "god":
            return _central(plant, 0, None)
        case "centralized":
            if requested.information_delay is not None:
                return _central(plant, requested.information_delay, None)
            return _central(plant, *_nearest(plant))
        case "myopic":
            return _myopic(plant, requested)
        case _ if requested.horizon == "exact":
            return _exact(plant, requested)
        case _ if requested.horizon == "auto" and plant.model.n_states <= EXACT_STATES:
            information = _information(plant, requested.communication)
            if exact_work(plant.model, plant.mu, information) <= 2 * EXACT_STATES**3:
                return _exact(plant, requested)
    return _localized(plant, requested, n_jobs)


def _central(plant: Plant, delay: int, node: str | None) -> Made:
    """Central controller; GOD if the delay is 0."""
    A, B, H = _matrices(plant)
    Q, W = _weights(plant, len(A)), (H * plant.model.std**2) @ H.T
    made = delayed_regulator(A, B, Q, np.eye(plant.model.n_links), W, delay=delay)
    if made.regulator.status is not RiccatiStatus.STABILISING:
        raise NoAdmissibleDesign(f"the Riccati equation has no solution: {made.regulator.remedy}")
    K = made.K
    power = np.linalg.matrix_power(A, delay)
    rates = float(np.sum((K.T @ K) * steady_covariance(A + B @ K, power @ W @ power.T)))
    model = plant.model
    law = StaticGain(interval_s=model.interval_s, links=model.links, delay=model.delay, gain=K, information_delay=delay)
    return Made(
        law=law,
        cost=made.cost,
        cost_rate=rates,
        bound=made.cost,
        spectral_radius=made.regulator.spectral_radius,
        note="all is known at once" if delay == 0 else f"all is known {delay} samples late",
        residual=made.regulator.residual,
        information_delay=delay,
        controller=node,
    )


def _localized(plant: Plant, requested: HftracInputs, n_jobs: int) -> Made:
    information = _information(plant, requested.communication)
    horizon = requested.horizon if isinstance(requested.horizon, int) else None
    found = localized(
        plant.model,
        plant.mu,
        information,
        horizon=horizon,
        tolerance=requested.tolerance,
        reach=requested.reach,
        n_jobs=n_jobs,
    )
    bound = found.bound
    if plant.model.n_states <= EXACT_STATES:
        bound = coordinated(plant.model, plant.mu, information, reach=requested.reach).cost
    excess = found.cost / bound - 1.0 if bound > 0.0 else 0.0
    note = (
        f"at rest after {found.horizon} samples" if horizon else f"at most {100.0 * excess:.2g} % above the least cost"
    )
    return Made(
        **taken(found, "law", "cost", "cost_rate", "spectral_radius", "region"),
        bound=bound,
        note=f"{requested.communication}, {note}",
        horizon=found.horizon,
        excess=excess,
        reach=int(found.reach.max()),
        messages=int(found.messages.sum()),
    )


def _exact(plant: Plant, requested: HftracInputs) -> Made:
    found = coordinated(plant.model, plant.mu, _information(plant, requested.communication), reach=requested.reach)
    return Made(
        **taken(found, "law", "cost", "cost_rate", "spectral_radius", "residual"),
        bound=found.cost,
        note=f"{requested.communication}, exact",
        excess=0.0,
        region=max(len(column.links) for column in found.law.columns),
    )


def _myopic(plant: Plant, requested: HftracInputs) -> Made:
    if isinstance(requested.horizon, int):
        found = myopic_fir(plant.model, plant.mu, horizon=requested.horizon)
        note, radius, length = f"filters of {found.horizon} samples, locally optimal", 0.0, found.horizon
    else:
        found = myopic(plant.model, *_matrices(plant), plant.mu)
        note, radius, length = "static gains, locally optimal", found.spectral_radius, None
    # A myopic controller knows less than one with in-band messages, whose bound applies.
    information = _information(plant, "in-band")
    if plant.model.n_states <= EXACT_STATES:
        bound = coordinated(plant.model, plant.mu, information).cost
    else:
        bound = localized(plant.model, plant.mu, information).bound
    kept = taken(found, "law", "cost", "cost_rate")
    return Made(**kept, bound=bound, spectral_radius=radius, note=note, horizon=length)


def _matrices(plant: Plant) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    states = plant.model.n_states
    if states > MAX_DENSE_STATES:
        takes = (
            "coordinated for so many states, or myopic with a horizon; the equation of the others is dense "
            f"(at most {MAX_DENSE_STATES})"
        )
        raise InvalidValue("architecture", f"a network of {states} states", takes)
    system, H = network_state_space(plant.model)
    return system.A.toarray(), system.B.toarray(), H.toarray()


def _weights(plant: Plant, states: int) -> np.ndarray:
    Q = np.zeros((states, states))
    backlogs = plant.model.first_backlog + np.arange(plant.model.n_links)
    Q[backlogs, backlogs] = plant.mu
    return Q


def _information(plant: Plant, communication: str) -> InformationPattern:
    return information_pattern(plant.network, plant.model.interval_s, plant.model.links, communication)


def _nearest(plant: Plant) -> tuple[int, str]:
    """Round-trip delay between the farthest controlled link and the node nearest to it; and that node."""
    pattern = _information(plant, "out-of-band")
    nodes = len(pattern.offsets) - 1
    # Without lines of length 0, which a sparse graph can't hold; 32 bits, as SciPy before 1.15 needs.
    ends = pattern.to.astype(np.int32), pattern.offsets.astype(np.int32)
    graph = sp.csr_array((pattern.samples + _NO_LENGTH, *ends), shape=(nodes, nodes))
    used = np.unique(pattern.node)
    away = dijkstra(graph, indices=used).max(axis=0)
    best = int(np.argmin(away))
    return 2 * int(np.floor(away[best])), str(plant.network.nodes[best].id)
