"""The law that a network scenario's policy asks for."""

from __future__ import annotations

from netctrl.design.hftrac.design import hftrac
from netctrl.errors import InvalidValue, checked_kind
from netctrl.model.design.design import AnyDesign, HftracDesign, read_design
from netctrl.model.law import LinkRateLaw
from netctrl.model.network import Network
from netctrl.plants.routing import at_utilization
from netctrl.scenario.network.policy import DesignPolicy, HftracPolicy
from netctrl.scenario.network.scenario import NetworkScenario

__all__ = ["design_law", "scenario_law"]


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
    policy = scenario.policy
    if isinstance(policy, HftracPolicy):
        network = at_utilization(scenario.network, scenario.utilization)
        arguments = {name: getattr(policy, name) for name in _ARGUMENTS}
        return hftrac(network, scenario.interval, **arguments).law
    if not isinstance(policy, DesignPolicy):
        return None
    return design_law(scenario, read_design(policy.file), "policy.file", policy.file)


def design_law(scenario: NetworkScenario, design: AnyDesign, argument: str, name: str) -> LinkRateLaw:
    """The law of a Design that was made for a scenario's network and interval.

    Raises
    ------
    InvalidValue
        Another Design; it names `argument`, whose value is `name`.
    """
    if not isinstance(design, HftracDesign):
        raise InvalidValue(argument, name, f"an HFTraC Design; this one is of method {design.method}")
    requested = design.inputs
    if requested.interval_s != scenario.interval:
        takes = f"a Design for an interval of {scenario.interval:g} s; this one is for {requested.interval_s:g} s"
        raise InvalidValue(argument, name, takes)
    differing = _difference(requested.network, at_utilization(scenario.network, scenario.utilization))
    if differing is not None:
        raise InvalidValue(argument, name, f"a Design for this network; its {differing}")
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
