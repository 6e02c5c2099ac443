"""The network that laws of link rates know: a scenario's links, and its flows as demands."""

from __future__ import annotations

from typing import Any

import msgspec

from netctrl.model.io.record_file import taken
from netctrl.model.network import Demand, Link, Network
from netctrl.scenario.tcp_aqm.flows import Flow


def graph_of(scenario: Any) -> Network:
    """Links of a scenario, and the demands that laws of link rates assume of its flows, with their ways."""
    links = tuple(Link(**taken(link, *Link.__struct_fields__)) for link in scenario.links)
    ends = {link.id: (link.source, link.target) for link in links}
    demands = tuple(
        Demand(
            id=flow.id,
            source=ends[flow.path[0]][0],
            target=ends[flow.path[-1]][1],
            mean=flow.demand.mean,
            std=flow.demand.std,
            split=flow.split or dict.fromkeys(flow.path, 1.0),
        )
        for flow in scenario.flows
        if flow.demand is not None
    )
    return Network(links=links, demands=demands)


def with_utilization(scenario: Any, utilization: float) -> Any:
    """The scenario with all demands' means scaled so that the busiest link is offered this share of its capacity.

    Above 1 it is overloaded and loses the rest. Deviations stay.

    Raises
    ------
    InvalidValue
        A share out of bounds, or ways of a demand that don't lead to its end.
    """
    from netctrl.laws.link_rate.routing import at_utilization  # SciPy

    means = {each.id: each.mean for each in at_utilization(graph_of(scenario), utilization).demands}
    return scenario.replace(flows=tuple(_with_mean(flow, means.get(flow.id)) for flow in scenario.flows))


def _with_mean(flow: Flow, mean: float | None) -> Flow:
    if mean is None or flow.demand is None:
        return flow
    name, demand = "expected" if flow.answered else "offers", msgspec.structs.replace(flow.demand, mean=mean)
    return msgspec.structs.replace(flow, **{name: demand})
