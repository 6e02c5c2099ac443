"""Law that a network scenario's control specifies."""

from __future__ import annotations

from netctrl.core.errors import InvalidValue
from netctrl.core.register import LINK_LAWS
from netctrl.laws.link_rate.routing import with_ways
from netctrl.model.design.design import AnyDesign, HftracDesign, read_design
from netctrl.model.law import LinkRateLaw
from netctrl.model.network import Network
from netctrl.scenario.network.graph import graph_of
from netctrl.scenario.network.policy import Controlled, DesignPolicy, HftracPolicy
from netctrl.scenario.scenario import Scenario, checked_demands


def scenario_law(scenario: Scenario) -> LinkRateLaw | None:
    """The law that the control of a scenario under demands specifies: designed, or read from a Design file.

    Parameters
    ----------
    scenario : Scenario
        Under demands, as of a graph with routed demands.

    Returns
    -------
    LinkRateLaw or None
        None where the control needs no law.

    Raises
    ------
    InvalidValue, NoAdmissibleDesign
        As for `netctrl.hftrac`; a Design file of another method, or one for another network or interval.
    FileError
        The Design file can't be read.

    Examples
    --------
    >>> import netctrl
    >>> scenario = netctrl.read("hftrac-testbed")
    >>> law = netctrl.scenario_law(scenario)
    >>> scenario.control.architecture, type(law).__name__
    ('coordinated', 'AgedGain')
    >>> netctrl.scenario_law(scenario.replace(control=None)) is None
    True
    """
    policy = checked_demands(scenario).control
    if isinstance(policy, HftracPolicy):
        # Here: synthesis takes longer to import than most scenarios to run, and few ask for it.
        from netctrl.design.hftrac.architectures import synthesised
        from netctrl.design.hftrac.design import hftrac_inputs, hftrac_plant

        arguments = {name: getattr(policy, name) for name in _ARGUMENTS}
        requested = hftrac_inputs(graph_of(scenario), scenario.interval, **arguments)
        return synthesised(hftrac_plant(requested)[0], requested, n_jobs=1).law
    if isinstance(policy, DesignPolicy):
        return design_law(scenario, read_design(policy.file), "control.file", policy.file)
    if not isinstance(policy, Controlled):
        return None
    return LINK_LAWS[str(policy.__struct_config__.tag)].law(policy, graph_of(scenario), scenario.interval)


def design_law(scenario: Scenario, design: AnyDesign, argument: str, name: str) -> LinkRateLaw:
    """The law of a Design, checked to be for a scenario's graph and interval.

    Raises
    ------
    InvalidValue
        A Design that doesn't fit; the message names `argument`, whose value is `name`.
    """
    if not isinstance(design, HftracDesign):
        raise InvalidValue(argument, name, f"an HFTraC Design; this one is of method {design.method}")
    requested, graph = design.inputs, graph_of(checked_demands(scenario))
    if requested.interval_s != scenario.interval:
        takes = f"a Design for an interval of {scenario.interval:g} s; this one is for {requested.interval_s:g} s"
        raise InvalidValue(argument, name, takes)
    differing = _difference(with_ways(requested.network), graph)
    if differing is not None:
        raise InvalidValue(argument, name, f"a Design for this network; its {differing}")
    return design.law


_ARGUMENTS = ("architecture", "mu", "information_delay", "communication", "horizon", "reach")


def _difference(theirs: Network, ours: Network) -> str | None:
    """First difference of a law's network from the scenario's in what a law depends on; None without any."""
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
