"""HFTraC: the rates of a network's links, controlled from backlogs and rates, with the price of each architecture.

Source: Wu, Bi, Michael, Tang, Doyle, Matni, "A Control-Theoretic Approach to In-Network Congestion Management".
docs/hftrac.md derives what is here and lists the paper's misprints.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from netctrl.errors import (
    InvalidValue,
    NoAdmissibleDesign,
    RiccatiStatus,
    Status,
    checked_kind,
    checked_number,
    checked_whole,
    checked_word,
)
from netctrl.fluid.information import COMMUNICATIONS, information_pattern
from netctrl.fluid.linearize import network_model, network_state_space
from netctrl.fluid.routing import nominal_network, routing
from netctrl.model.artifact import HftracDesign, provenance, read_design
from netctrl.model.gain import LinkRateLaw, StaticGain
from netctrl.model.hftrac import ARCHITECTURES, Architecture, ArchitectureCost, HftracCertificate, HftracInputs
from netctrl.model.information import InformationPattern
from netctrl.model.network import Network
from netctrl.model.network_model import NetworkModel
from netctrl.model.network_scenario import NetworkScenario
from netctrl.model.policy import DesignPolicy, HftracPolicy
from netctrl.synthesis.check import steady_covariance
from netctrl.synthesis.coordinated import coordinated
from netctrl.synthesis.delayed import delayed_regulator
from netctrl.synthesis.localized import localized
from netctrl.synthesis.myopic import myopic
from netctrl.synthesis.myopic_fir import myopic_fir

__all__ = ["hftrac", "scenario_law"]

MOST_DENSE_STATES = 3000
"""Of an architecture whose equation is dense."""
_NO_LENGTH = 1e-9
EXACT_STATES = 600
"""Up to here a controller of finite length is held against the exact one, not only against a bound."""

Horizon = int | Literal["auto", "exact"]


def hftrac(
    network: Network,
    interval_s: float,
    *,
    mu: float | None = None,
    architecture: Architecture = "coordinated",
    information_delay: int | None = None,
    communication: Literal["out-of-band", "in-band"] = "out-of-band",
    horizon: Horizon = "auto",
    reach: int | None = None,
    compare: bool = False,
    n_jobs: int = 1,
    argv: Sequence[str] = (),
    inputs: Iterable[Path] = (),
) -> HftracDesign:
    """Design the rates of a network's links for one architecture, and say what the architecture costs.

    Least Σ_l E f_l² + mu_l E (b_l/tau)², deviations of rates from the nominal ones and backlogs, under demands that
    fluctuate.

    Parameters
    ----------
    network : Network
        With demands; `std` is what each fluctuates by, from one interval to the next.
    interval_s : float
        tau [s]: rates are set so often.
    mu : float, optional
        lambda tau² > 0, of all links; by default from each link's `weight`.
    architecture : {"god", "centralized", "coordinated", "myopic"}
        Who knows what: all at once; all, later, at one place; each link what has come to it; each link itself.
    information_delay : int, optional
        Round trip to a central controller [samples]; by default to the node from which it is least.
    communication : {"out-of-band", "in-band"}
        Of a coordinated controller: over all lines in both directions, or with the data.
    horizon : int or {"auto", "exact"}
        Length of a coordinated controller's responses [samples]: "auto" keeps within 1e-6 of the least cost, "exact" is
        the best there is, of infinite length. Of a myopic controller: with "auto" its gains are static, a number is
        the length of its filters, for networks in which no links feed one another in a circle.
    reach : int, optional
        Links that hear of a disturbance later than this [samples] and to which its fluid doesn't come take no part.
    compare : bool
        Whether the certificate holds the other architectures too.
    n_jobs : int
        Threads of the localized synthesis, −1: all cores.
    argv, inputs : sequence of str, iterable of Path
        Command line and files, for the provenance.

    Returns
    -------
    HftracDesign

    Raises
    ------
    InvalidValue
        An argument outside its bounds, a network that can't be routed, links without a weight, or a network too large
        for the architecture's dense equation.
    NoAdmissibleDesign
        The information comes too late, the horizon is too short, or fluid goes around in a circle; the text says where.

    Notes
    -----
    HFTraC paper, eqs. (5) to (14).
    """
    asked = _checked(network, interval_s, mu, architecture, information_delay, communication, horizon, reach)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        plant = _plant(asked)
    made = _design(plant, asked, n_jobs)
    table = _comparison(plant, asked, made, n_jobs) if compare else ()
    certificate = HftracCertificate(
        status=Status.ADMISSIBLE,
        cost=made.cost,
        cost_rate=made.cost_rate,
        cost_queue=made.cost - made.cost_rate,
        spectral_radius=made.spectral_radius,
        horizon=made.horizon,
        excess_over_exact=made.excess,
        gap_to_bound=made.cost / made.bound - 1.0 if made.bound > 0.0 else 0.0,
        bound=made.bound,
        residual=made.residual,
        information_delay=made.information_delay,
        controller=made.controller,
        states=plant.model.n_states,
        links=plant.model.n_links,
        region=made.region,
        nominal_rate=dict(zip(plant.model.links, plant.nominal, strict=True)),
        break_even_delay_s=_break_even(plant, table),
        comparison=table,
        warnings=tuple(str(warning.message) for warning in caught),
    )
    record = provenance(argv=argv, inputs=inputs, libraries=("numpy", "scipy", "numba"))
    return HftracDesign(
        schema="netctrl.design/1", inputs=asked, law=made.law, certificate=certificate, provenance=record
    )


def scenario_law(scenario: NetworkScenario) -> LinkRateLaw | None:
    """The law that a scenario's policy asks for, designed or read; None where it needs none.

    Raises
    ------
    InvalidValue, NoAdmissibleDesign
        What `hftrac` raises; a Design file of another method, or one for another network or interval.
    FileError
        The Design file can't be read.
    """
    checked_kind("scenario", scenario, NetworkScenario)
    policy, network = scenario.policy, nominal_network(scenario)
    if isinstance(policy, HftracPolicy):
        arguments = {name: getattr(policy, name) for name in _ARGUMENTS}
        return hftrac(network, scenario.interval, **arguments).law
    if not isinstance(policy, DesignPolicy):
        return None
    design = read_design(policy.file)
    if not isinstance(design, HftracDesign):
        raise InvalidValue("policy.file", policy.file, f"an HFTraC Design; this one is of method {design.method}")
    asked = design.inputs
    if asked.interval_s != scenario.interval:
        takes = f"a Design for an interval of {scenario.interval:g} s; this one is for {asked.interval_s:g} s"
        raise InvalidValue("policy.file", policy.file, takes)
    differing = _difference(asked.network, network)
    if differing is not None:
        raise InvalidValue("policy.file", policy.file, f"a Design for this network; its {differing}")
    return design.law


_ARGUMENTS = ("architecture", "mu", "information_delay", "communication", "horizon", "reach")


def _difference(theirs: Network, ours: Network) -> str | None:
    """What of a law's network isn't as in ours, of all that a law depends on; None where nothing is."""
    both = [_traits(network) for network in (theirs, ours)]
    for trait in dict.fromkeys([*both[0], *both[1]]):
        one, other = (traits.get(trait) for traits in both)
        if one != other:
            return (
                f"{trait} is {'not there' if one is None else one}, and here {'not there' if other is None else other}"
            )
    return None


def _traits(network: Network) -> dict[str, object]:
    traits: dict[str, object] = {}
    for link in network.links:
        traits |= {f"links.{link.id}.{name}": getattr(link, name) for name in ("source", "target", "delay", "weight")}
    for demand in network.demands:
        names = ("source", "target", "mean", "std", "split")
        traits |= {f"demands.{demand.id}.{name}": getattr(demand, name) for name in names}
    return {name: value for name, value in traits.items() if value is not None}


class _Plant(NamedTuple):
    """The network as its controllers see it."""

    network: Network
    model: NetworkModel
    mu: np.ndarray
    nominal: list[float]


class _Made(NamedTuple):
    """What one architecture gives."""

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


def _design(plant: _Plant, asked: HftracInputs, n_jobs: int) -> _Made:
    match asked.architecture:
        case "god":
            return _central(plant, 0, None)
        case "centralized":
            if asked.information_delay is not None:
                return _central(plant, asked.information_delay, None)
            return _central(plant, *_nearest(plant))
        case "myopic":
            return _myopic(plant, asked)
        case _ if asked.horizon == "exact":
            return _exact(plant, asked)
    return _localized(plant, asked, n_jobs)


def _central(plant: _Plant, delay: int, node: str | None) -> _Made:
    """GOD where the delay is 0."""
    A, B, H = _matrices(plant)
    Q, W = _weights(plant, len(A)), (H * plant.model.std**2) @ H.T
    made = delayed_regulator(A, B, Q, np.eye(plant.model.n_links), W, delay=delay)
    if made.regulator.status is not RiccatiStatus.STABILISING:
        raise NoAdmissibleDesign(f"the Riccati equation has no answer: {made.regulator.remedy}")
    K = made.K
    power = np.linalg.matrix_power(A, delay)
    rates = float(np.sum((K.T @ K) * steady_covariance(A + B @ K, power @ W @ power.T)))
    model = plant.model
    law = StaticGain(interval_s=model.interval_s, links=model.links, delay=model.delay, gain=K, information_delay=delay)
    return _Made(
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


def _localized(plant: _Plant, asked: HftracInputs, n_jobs: int) -> _Made:
    information = _information(plant, asked.communication)
    horizon = asked.horizon if isinstance(asked.horizon, int) else None
    found = localized(plant.model, plant.mu, information, horizon=horizon, reach=asked.reach, n_jobs=n_jobs)
    bound = found.bound
    if plant.model.n_states <= EXACT_STATES:
        bound = coordinated(plant.model, plant.mu, information, reach=asked.reach).cost
    return _Made(
        law=found.law,
        cost=found.cost,
        cost_rate=found.cost_rate,
        bound=bound,
        spectral_radius=0.0,
        note=f"{asked.communication}, at rest after {found.horizon} samples",
        horizon=found.horizon,
        excess=found.cost / bound - 1.0 if bound > 0.0 else 0.0,
        region=found.region,
    )


def _exact(plant: _Plant, asked: HftracInputs) -> _Made:
    found = coordinated(plant.model, plant.mu, _information(plant, asked.communication), reach=asked.reach)
    return _Made(
        law=found.law,
        cost=found.cost,
        cost_rate=found.cost_rate,
        bound=found.cost,
        spectral_radius=found.spectral_radius,
        note=f"{asked.communication}, exact",
        residual=found.residual,
        excess=0.0,
        region=max(len(column.links) for column in found.law.columns),
    )


def _myopic(plant: _Plant, asked: HftracInputs) -> _Made:
    if isinstance(asked.horizon, int):
        found = myopic_fir(plant.model, plant.mu, horizon=asked.horizon)
        note, radius, length = f"filters of {found.horizon} samples, locally optimal", 0.0, found.horizon
    else:
        found = myopic(plant.model, *_matrices(plant), plant.mu)
        note, radius, length = "static gains, locally optimal", found.spectral_radius, None
    # Who knows only itself knows less than who hears what travels with the data.
    information = _information(plant, "in-band")
    if plant.model.n_states <= EXACT_STATES:
        bound = coordinated(plant.model, plant.mu, information).cost
    else:
        bound = localized(plant.model, plant.mu, information).bound
    return _Made(
        law=found.law,
        cost=found.cost,
        cost_rate=found.cost_rate,
        bound=bound,
        spectral_radius=radius,
        note=note,
        horizon=length,
    )


def _checked(
    network: Network,
    interval_s: float,
    mu: float | None,
    architecture: Architecture,
    information_delay: int | None,
    communication: Literal["out-of-band", "in-band"],
    horizon: Horizon,
    reach: int | None,
) -> HftracInputs:
    if not isinstance(network, Network):
        raise InvalidValue("network", type(network).__name__, "a netctrl.Network (netctrl.read_network makes one)")
    checked_number("interval", interval_s, "a sampling interval above 0 in seconds", above=0.0)
    if mu is not None:
        checked_number("mu", mu, "a number above 0 (lambda·interval²); with 0 nothing brings backlogs back", above=0.0)
    checked_word("architecture", architecture, ARCHITECTURES)
    checked_word("communication", communication, COMMUNICATIONS)
    if information_delay is not None and architecture != "centralized":
        raise InvalidValue("information_delay", information_delay, "no value: it is that of a centralized controller")
    samples = "a whole number of samples of at least"
    if information_delay is not None:
        information_delay = checked_whole("information_delay", information_delay, f"{samples} 0")
    if reach is not None:
        reach = checked_whole("reach", reach, f"{samples} 0")
    if not isinstance(horizon, str) or horizon not in ("auto", "exact"):
        horizon = checked_whole("horizon", horizon, f"auto, exact, or {samples} 1", at_least=1)
    if horizon == "exact" and architecture == "myopic":
        takes = "auto or a whole number of samples: of myopic controllers the best is not known"
        raise InvalidValue("horizon", horizon, takes)
    return HftracInputs(
        network=network,
        interval_s=float(interval_s),
        architecture=architecture,
        mu=None if mu is None else float(mu),
        information_delay=information_delay,
        communication=communication,
        horizon=horizon,
        reach=reach,
    )


def _plant(asked: HftracInputs) -> _Plant:
    routes = routing(asked.network)
    model = network_model(asked.network, asked.interval_s, routes)
    by_name = {link.id: link for link in asked.network.links}
    mu = np.full(model.n_links, asked.mu)
    if asked.mu is None:
        lacking = [name for name in model.links if not by_name[name].weight]
        if lacking:
            takes = f"a number above 0, or a `weight` above 0 at each link; {lacking[0]} has none"
            raise InvalidValue("mu", None, takes)
        mu = np.array([by_name[name].weight for name in model.links]) * asked.interval_s**2
    return _Plant(asked.network, model, mu, [float(rate) for rate in routes.load if rate > 0.0])


def _matrices(plant: _Plant) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    states = plant.model.n_states
    if states > MOST_DENSE_STATES:
        takes = (
            "coordinated for so many states, or myopic with a horizon; the equation of the others is dense "
            f"(at most {MOST_DENSE_STATES})"
        )
        raise InvalidValue("architecture", f"a network of {states} states", takes)
    system, H = network_state_space(plant.model)
    return system.A.toarray(), system.B.toarray(), H.toarray()


def _weights(plant: _Plant, states: int) -> np.ndarray:
    Q = np.zeros((states, states))
    backlogs = plant.model.first_backlog + np.arange(plant.model.n_links)
    Q[backlogs, backlogs] = plant.mu
    return Q


def _information(plant: _Plant, communication: str) -> InformationPattern:
    return information_pattern(plant.network, plant.model.interval_s, plant.model.links, communication)


def _nearest(plant: _Plant) -> tuple[int, str]:
    """Round trip between the node that is nearest to the farthest controlled link, and that link; and the node."""
    pattern = _information(plant, "out-of-band")
    nodes = len(pattern.offsets) - 1
    # Without lines of no length, which a sparse graph doesn't hold; 32 bits, as SciPy before 1.15 takes no others.
    ends = pattern.to.astype(np.int32), pattern.offsets.astype(np.int32)
    graph = sp.csr_array((pattern.samples + _NO_LENGTH, *ends), shape=(nodes, nodes))
    used = np.unique(pattern.node)
    away = dijkstra(graph, indices=used).max(axis=0)
    best = int(np.argmin(away))
    return 2 * int(np.floor(away[best])), str(plant.network.nodes[best].id)


def _comparison(plant: _Plant, asked: HftracInputs, made: _Made, n_jobs: int) -> tuple[ArchitectureCost, ...]:
    """All architectures with the same weights; the one that was asked for as it was made.

    The horizon is that of coordinated control, unless myopic control was asked for.
    """
    costs: dict[Architecture, _Made] = {asked.architecture: made}
    for other in ARCHITECTURES:
        if other not in costs:
            horizon = "auto" if "myopic" in (other, asked.architecture) else asked.horizon
            changed = msgspec.structs.replace(asked, architecture=other, horizon=horizon)
            costs[other] = _design(plant, changed, n_jobs)
    god = costs["god"].cost
    return tuple(
        ArchitectureCost(
            architecture=name,
            cost=costs[name].cost,
            over_god=costs[name].cost / god - 1.0 if god > 0.0 else 0.0,
            note=costs[name].note,
        )
        for name in ARCHITECTURES
    )


def _break_even(plant: _Plant, table: Sequence[ArchitectureCost]) -> float | None:
    """Where GOD's cost and d Σ mu sigma² are a myopic controller's; the sum is over the links that demands enter."""
    if not table:
        return None
    cost = {row.architecture: row.cost for row in table}
    a_sample = float(plant.mu @ (plant.model.injection.multiply(plant.model.injection) @ plant.model.std**2))
    return float(plant.model.interval_s * (cost["myopic"] - cost["god"]) / a_sample) if a_sample > 0.0 else None
