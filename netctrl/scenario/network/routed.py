"""A graph with routed demands, as in HFTraC. It becomes links and flows."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import Any

import msgspec

from netctrl.core.errors import InvalidValue
from netctrl.core.units import BITS_PER_BYTE
from netctrl.laws.aqm.records import DropTailQueue
from netctrl.laws.disciplines import LINK_QUEUES, LinkQueue
from netctrl.model.io.fields import flag, number, optional, read_fields, record
from netctrl.model.io.record_file import Record
from netctrl.model.io.validation_errors import shorten
from netctrl.model.network import MAX_UTILIZATION, UTILIZATION_TAKES, Network
from netctrl.scenario.links import Link
from netctrl.scenario.network.traffic import SPREADS, GaussianTraffic, Spread
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Demand

_ACK_BYTES = 40.0
"""Of acknowledgements, which go back over links without queues."""


class Routed(Record, frozen=True, kw_only=True, tag_field="kind", tag="routed"):
    """A graph with routed demands: a flow for each, over the graph's links.

    The scenario's own flows are demands whose packets a sender carries, such as TCP, by their ids: endless data in the
    demand's place, over its ways; controllers still assume the demand. Flows of other ids name their paths.

    Raises
    ------
    InvalidValue
        A value out of bounds, a graph without demands, or demands without a path.
    """

    graph: Network
    """Network with demands."""
    queue: LinkQueue = DropTailQueue()
    """Law of every link's queue."""
    utilization: float | None = None
    """Share of its capacity that the busiest link is offered, to which all demands' means are scaled; null: the graph's
    own. Above 1 it is overloaded and loses the rest. Deviations stay."""
    spread: Spread = GaussianTraffic()
    """Distribution of the demands' rates."""
    per_demand: bool = False
    """As `Scenario.per_demand`."""

    def __post_init__(self) -> None:
        read_fields(self, graph=record(Network), queue=record(*LINK_QUEUES), per_demand=flag, spread=record(*SPREADS))
        read_fields(self, utilization=optional(number(UTILIZATION_TAKES, above=0.0, at_most=MAX_UTILIZATION)))
        if not self.graph.demands:
            raise InvalidValue("graph", "no demands", 'at least one demand: "demands": [{"source", "target", "mean"}]')

    @property
    def usual(self) -> dict[str, Any]:
        """Fields of the scenario, unless it says otherwise; 10 ms is the interval of the HFTraC paper."""
        return {"interval": 0.01, "packet_size": 1500.0, "per_demand": self.per_demand or None}

    def links(self) -> tuple[Link, ...]:
        """The links, all with the same kind of queue."""
        return tuple(Link(**msgspec.structs.asdict(link), queue=self.queue) for link in self.graph.links)

    def flows(self, given: Sequence[Flow], duration: float) -> tuple[Flow, ...]:
        """A flow for each demand, in the graph's order, and the others that are given.

        Parameters
        ----------
        given : sequence of Flow
        duration : float
            Of the scenario [s].

        Raises
        ------
        InvalidValue
            A flow without a path that isn't a demand, or a demand without one.
        """
        from netctrl.laws.link_rate.routing import at_utilization, main_path, with_ways  # SciPy

        graph = with_ways(at_utilization(self.graph, self.utilization))
        carried = {flow.id: flow for flow in given}
        known = [demand.id for demand in graph.demands]
        for place, flow in enumerate(given):
            if carried[flow.id] is not flow or (flow.id not in known and not flow.path):
                there = shorten(", ".join(known), 200)
                takes = f"the id of a demand, once, or of a flow with a path; there are {there}"
                raise InvalidValue(f"flows[{place}].id", flow.id, takes)
        found = []
        for demand in graph.demands:
            offers = Demand(mean=demand.mean, std=demand.std, spread=self.spread)
            several = any(share < 1.0 for share in (demand.split or {}).values())
            place: dict[str, Any] = {"path": main_path(graph, demand), "split": demand.split if several else None}
            if demand.id not in carried:
                found.append(Flow(id=demand.id, offers=offers, ecn=False, **place))
                continue
            flow = carried.pop(demand.id)
            links = [link for link in graph.links if link.id in place["path"]]
            own = fsum(2.0 * link.delay + _ACK_BYTES * BITS_PER_BYTE / link.capacity for link in links)
            rtt = flow.rtt if flow.rtt[1] > 0.0 else (own, own)
            found.append(msgspec.structs.replace(flow, expected=offers, ecn=bool(flow.ecn), rtt=rtt, **place))
        return (*found, *(flow for flow in given if flow.id in carried))
