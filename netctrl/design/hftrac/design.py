"""HFTraC: control of a network's link rates from backlogs and rates, with the cost of each architecture.

Source: Wu, Bi, Michael, Tang, Doyle, Matni, "A Control-Theoretic Approach to In-Network Congestion Management".
docs/explanation/hftrac.md derives the method and lists the paper's misprints.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

from netctrl.core.errors import InvalidValue, Status, checked_jobs, checked_number, checked_whole, checked_word
from netctrl.core.units import format_quantity
from netctrl.design.hftrac.architectures import Made, Plant, synthesised
from netctrl.laws.link_rate.routing import STD_TAKES, Routing, routing, varied
from netctrl.model.datasets import network_of
from netctrl.model.design.design import HftracDesign
from netctrl.model.design.hftrac import (
    ARCHITECTURES,
    Architecture,
    ArchitectureCost,
    HftracCertificate,
    HftracInputs,
    UnmetDemand,
    unmet_text,
)
from netctrl.model.io.record_file import taken
from netctrl.model.network import Network
from netctrl.plants.information import COMMUNICATIONS
from netctrl.plants.linearize import network_model

if TYPE_CHECKING:
    import networkx

Horizon = int | Literal["auto", "exact", "truncated"]
_NAMED = 3


def hftrac(
    network: Network | networkx.Graph | str | os.PathLike[str],
    interval_s: float,
    *,
    mu: float | None = None,
    std: float | str | None = None,
    architecture: Architecture = "coordinated",
    information_delay: int | None = None,
    communication: Literal["out-of-band", "in-band"] = "out-of-band",
    horizon: Horizon = "auto",
    reach: int | None = None,
    tolerance: float = 1e-3,
    compare: bool = False,
    n_jobs: int = 1,
    argv: Sequence[str] = (),
    inputs: Iterable[Path] = (),
) -> HftracDesign:
    """Design the controller of a network's link rates for one architecture, and certify its cost.

        min Σ_l E f_l² + mu_l E (b_l/tau)²

    f_l and b_l are deviations of rates and backlogs from their nominal values, under fluctuating demands. An overloaded
    link's nominal rate is its capacity (`netctrl.laws.link_rate.routing.routing`); the certificate then names the
    demands that can't be met, and the design is stable but not admissible.

    Parameters
    ----------
    network : Network, networkx graph, path or str
        Network with demands, whose `std` is the fluctuation from one interval to the next. A name is that of a
        network that comes with netctrl; a graph is read by `Network.from_networkx`, an undirected edge as a link in
        each direction.
    interval_s : float
        tau, time between two updates of the rates [s].
    mu : float, optional
        Weight lambda tau² > 0 of all links; by default from each link's `weight`.
    std : float or str, optional
        Standard deviation of the demands for which the network gives none (0): a rate [bit/s], or as "10%" the share of
        each one's mean.
    architecture : {"god", "centralized", "coordinated", "myopic"}
        Information of the controllers. god: everything at once. centralized: everything at one place, delayed.
        coordinated: each link has delayed data of others. myopic: each link has only its own backlog and rates.
    information_delay : int, optional
        Round-trip delay to a central controller [samples]; by default to the node for which it is shortest.
    communication : {"out-of-band", "in-band"}
        Messages of a coordinated controller: over all lines in both directions, or with the data.
    horizon : int or {"auto", "exact", "truncated"}
        Length of a coordinated controller's responses [samples]. "exact" is the optimum, of infinite length;
        "truncated" leaves out links and samples that matter little; "auto" is the cheaper of these: exact up to some
        600 states. For a myopic controller "auto" gives static gains; a number is the length of its filters, for
        networks in which no links feed one another in a cycle.
    reach : int, optional
        Links with a larger information delay [samples] that the disturbed traffic doesn't reach are left out.
    tolerance : float
        Excess over the least cost that truncated columns aim at; the certificate has what is proved, with a warning
        where that is more.
    compare : bool
        Whether the certificate also gives the other architectures' costs.
    n_jobs : int
        Number of threads of the localized synthesis, −1: all cores.
    argv, inputs : sequence of str, iterable of Path
        Command line and files, for the provenance.

    Returns
    -------
    HftracDesign

    Raises
    ------
    InvalidValue
        An argument outside its bounds, a network that can't be routed, links without a weight, or a network too large
        for the architecture's dense equation; or there is nothing to judge: no demand varies, or all delays round to 0.
    NoAdmissibleDesign
        The information arrives too late, the horizon is too short, or traffic circulates; the message says
        where.

    Examples
    --------
    Cost of information, relative to an architecture that knows everything at once:

    >>> import netctrl
    >>> design = netctrl.hftrac(netctrl.read("merge"), interval_s=0.01, mu=0.1, compare=True)
    >>> {each.architecture: round(each.over_god, 3) for each in design.certificate.comparison}
    {'god': 0.0, 'centralized': 0.444, 'coordinated': 0.019, 'myopic': 0.12}

    References
    ----------
    HFTraC paper, eqs. (5) to (14).
    """
    checked_jobs(n_jobs)
    requested = hftrac_inputs(
        varied(network_of(network), std),
        interval_s,
        mu,
        architecture,
        information_delay,
        communication,
        horizon,
        reach,
        tolerance,
    )
    plant, unmet, rounded = hftrac_plant(requested)
    # Refuse a network that would get a verdict on nothing: without a fluctuation, or without a delay.
    if not plant.model.std.any():
        takes = f"{STD_TAKES}: none of the {len(plant.model.std)} demands varies (std 0), so there is nothing to judge"
        raise InvalidValue("std", None, takes)
    longest = max(link.delay for link in requested.network.links if link.id in plant.model.links)
    if plant.model.coupling.nnz and not plant.model.delay.any() and longest > 0.0:
        takes = (
            f"an interval below {format_quantity(2.0 * longest, 's')}: the longest delay is"
            f" {format_quantity(longest, 's')}, and all of them round to 0 samples, so that nothing would be delayed"
        )
        raise InvalidValue("interval", requested.interval_s, takes)
    made = synthesised(plant, requested, n_jobs)
    table = _comparison(plant, requested, made, n_jobs) if compare else ()
    certificate = HftracCertificate(
        status=Status.STABLE if unmet else Status.ADMISSIBLE,
        **taken(made, "cost", "cost_rate", "bound", "spectral_radius", "residual"),
        **taken(made, "information_delay", "controller", "horizon", "region", "reach", "messages"),
        cost_queue=made.cost - made.cost_rate,
        excess_over_exact=made.excess,
        gap_to_bound=made.cost / made.bound - 1.0 if made.bound > 0.0 else 0.0,
        states=plant.model.n_states,
        links=plant.model.n_links,
        nominal_rate=dict(zip(plant.model.links, plant.nominal, strict=True)),
        break_even_delay_s=_break_even(plant, table),
        comparison=table,
        unmet=unmet,
        warnings=(*map(unmet_text, unmet[:_NAMED]), *rounded, *_missed(requested, made)),
    )
    libraries = ("numpy", "scipy", "numba")
    return HftracDesign.of(requested, made.law, certificate, argv=argv, files=inputs, libraries=libraries)


def hftrac_inputs(
    network: Network,
    interval_s: float,
    mu: float | None,
    architecture: Architecture,
    information_delay: int | None,
    communication: Literal["out-of-band", "in-band"],
    horizon: Horizon,
    reach: int | None,
    tolerance: float = 1e-3,
) -> HftracInputs:
    """Inputs of a design, checked as in `hftrac`."""
    checked_number("interval", interval_s, "a sampling interval above 0 in seconds", above=0.0)
    if mu is not None:
        checked_number(
            "mu", mu, "a number above 0 (lambda·interval²); with 0 backlogs would never be reduced", above=0.0
        )
    checked_word("architecture", architecture, ARCHITECTURES)
    checked_word("communication", communication, COMMUNICATIONS)
    if information_delay is not None and architecture != "centralized":
        raise InvalidValue("information_delay", information_delay, "no value unless the architecture is centralized")
    samples = "a whole number of samples of at least"
    if information_delay is not None:
        information_delay = checked_whole("information_delay", information_delay, f"{samples} 0")
    if reach is not None:
        reach = checked_whole("reach", reach, f"{samples} 0")
    if not isinstance(horizon, str) or horizon not in ("auto", "exact", "truncated"):
        horizon = checked_whole("horizon", horizon, f"auto, exact, truncated, or {samples} 1", at_least=1)
    tolerance = checked_number("tolerance", tolerance, "a number above 0 and below 1", above=0.0, at_most=1.0 - 1e-9)
    if horizon in ("exact", "truncated") and architecture == "myopic":
        takes = "auto or a whole number of samples: the optimal myopic controller is unknown"
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
        tolerance=tolerance,
    )


def _missed(requested: HftracInputs, made: Made) -> tuple[str, ...]:
    """Caution where the excess that is proved is larger than the tolerance."""
    if isinstance(requested.horizon, int) or made.excess is None or made.excess <= requested.tolerance:
        return ()
    takes = f"{made.excess:.2g} above the least cost is what could be proved, not {requested.tolerance:g} as asked"
    return (f"{takes}; a larger mu or tolerance, or horizon exact, gives a proof",)


def hftrac_plant(requested: HftracInputs) -> tuple[Plant, tuple[UnmetDemand, ...], tuple[str, ...]]:
    """The network as modelled for its controllers, the demands that its links can't carry, and what was rounded."""
    routes = routing(requested.network)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = network_model(requested.network, requested.interval_s, routes)
    by_name = {link.id: link for link in requested.network.links}
    mu = np.full(model.n_links, requested.mu)
    if requested.mu is None:
        lacking = [name for name in model.links if not by_name[name].weight]
        if lacking:
            takes = f"a number above 0, or a `weight` above 0 at each link; {lacking[0]} has none"
            raise InvalidValue("mu", None, takes)
        mu = np.array([by_name[name].weight for name in model.links]) * requested.interval_s**2
    plant = Plant(requested.network, model, mu, [float(rate) for rate in routes.load if rate > 0.0])
    return plant, _unmet(requested.network, routes), tuple(str(warning.message) for warning in caught)


def _unmet(network: Network, routes: Routing) -> tuple[UnmetDemand, ...]:
    """Demands of which less arrives than their mean, the one with the greatest loss first."""
    overloaded = np.flatnonzero(routes.lost)
    crossed = routes.rate[overloaded].toarray() > 0.0
    found = [
        UnmetDemand(
            demand=demand.id,
            mean_bit_per_s=demand.mean,
            delivered_bit_per_s=float(routes.delivered[i]),
            links=tuple(network.links[row].id for row in overloaded[crossed[:, i]]),
        )
        for i, demand in enumerate(network.demands)
        if crossed[:, i].any()
    ]
    return tuple(sorted(found, key=lambda each: each.delivered_bit_per_s - each.mean_bit_per_s))


def _comparison(plant: Plant, requested: HftracInputs, made: Made, n_jobs: int) -> tuple[ArchitectureCost, ...]:
    """All architectures with equal weights; the requested one as it was designed.

    The horizon is that of coordinated control, unless myopic control was requested.
    """
    costs: dict[Architecture, Made] = {requested.architecture: made}
    for other in ARCHITECTURES:
        if other not in costs:
            horizon = "auto" if "myopic" in (other, requested.architecture) else requested.horizon
            changed = msgspec.structs.replace(requested, architecture=other, horizon=horizon)
            costs[other] = synthesised(plant, changed, n_jobs)
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


def _break_even(plant: Plant, table: Sequence[ArchitectureCost]) -> float | None:
    """Delay d where GOD's cost plus d Σ mu sigma² equals the myopic cost; the sum is over links that demands enter."""
    if not table:
        return None
    cost = {row.architecture: row.cost for row in table}
    a_sample = float(plant.mu @ (plant.model.injection.multiply(plant.model.injection) @ plant.model.std**2))
    return float(plant.model.interval_s * (cost["myopic"] - cost["god"]) / a_sample) if a_sample > 0.0 else None
