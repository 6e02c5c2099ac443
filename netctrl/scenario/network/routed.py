"""Routed network: a graph under fluctuating demands, with controlled link rates as in HFTraC."""

from __future__ import annotations

from math import isclose
from typing import Any, ClassVar

from netctrl.core.errors import InvalidValue
from netctrl.laws.aqm.codel import CodelQueue
from netctrl.laws.aqm.pi import PiQueue
from netctrl.laws.aqm.pie import PieQueue
from netctrl.laws.aqm.records import DropTailQueue
from netctrl.laws.aqm.red import RedQueue
from netctrl.model.io.fields import flag, number, optional, read_fields, record, records
from netctrl.model.io.record_file import Record
from netctrl.model.io.validation_errors import shorten
from netctrl.model.network import MAX_UTILIZATION, UTILIZATION_TAKES, Network
from netctrl.scenario.checks import check_unused
from netctrl.scenario.network.policy import POLICIES
from netctrl.scenario.network.traffic import Demands, TcpDemand

_MAX_STEPS = 1e9
_LINK_QUEUES = (DropTailQueue, RedQueue, PiQueue, PieQueue, CodelQueue)


class Routed(Record, frozen=True, kw_only=True, tag_field="kind", tag="routed"):
    """A graph with routed demands. The rates of its links are set once an interval.

    A scenario's traffic is a group of kind `demands` (without it demands are Gaussian) and TCP in place of some
    demands. Its control is a policy; the default is `fifo`.
    """

    default_interval: ClassVar[float] = 0.01
    """Default tau [s], interval at which rates are set; 10 ms is the HFTraC paper's."""

    graph: Network
    """Network with demands."""
    queue: DropTailQueue | RedQueue | PiQueue | PieQueue | CodelQueue = DropTailQueue()
    """Queue law of every link's buffer; only packet engines support laws other than `droptail`."""
    utilization: float | None = None
    """Share of its capacity that the busiest link is offered, to which all demands' means are scaled; null: the graph's
    own. Above 1 it is overloaded and loses the rest. Deviations stay."""
    per_demand: bool = False
    """Whether the fluid tracks backlogs by demand: a link's departures then have the composition of its backlog, and
    each demand has its own loss, throughput and delay. Otherwise departures split in the demands' nominal shares.
    Packet engines always track demands."""

    def __post_init__(self) -> None:
        read_fields(self, graph=record(Network), queue=record(*_LINK_QUEUES), per_demand=flag)
        read_fields(self, utilization=optional(number(UTILIZATION_TAKES, above=0.0, at_most=MAX_UTILIZATION)))
        if not self.graph.demands:
            raise InvalidValue("graph", "no demands", 'at least one demand: "demands": [{"source", "target", "mean"}]')

    def check(self, scenario: Any) -> None:
        """InvalidValue for parts of a scenario that don't fit this graph or each other."""
        check_unused(scenario, "step")
        steps, interval = scenario.duration / scenario.interval, scenario.interval
        if not 1.0 <= round(steps) <= _MAX_STEPS or not isclose(steps, round(steps), rel_tol=1e-6):
            takes = f"a whole number of intervals of {interval:g} s, from 1 to {_MAX_STEPS:g}"
            raise InvalidValue("duration", scenario.duration, takes)
        if scenario.warmup_steps >= steps:
            takes = f"a time at least one interval shorter than duration ({scenario.duration:g} s)"
            raise InvalidValue("warmup", scenario.warmup, takes)
        self._check_traffic(scenario)
        if scenario.control is not None:
            record(*POLICIES)("control", scenario.control)
        known = [link.id for link in self.graph.links]
        for name in getattr(scenario.control, "links", ()):
            if name not in known:
                raise InvalidValue("control.links", name, f"ids of links; there are {shorten(', '.join(known), 200)}")

    def _check_traffic(self, scenario: Any) -> None:
        read_fields(scenario, flows=records(Demands, TcpDemand))
        groups = [each for each in scenario.flows if isinstance(each, Demands)]
        if len(groups) > 1:
            raise InvalidValue(
                "flows", f"{len(groups)} groups of kind demands", "at most one, which covers all demands"
            )
        known = [demand.id for demand in self.graph.demands]
        carried = [each.demand for each in tcp_of(scenario)]
        for name in carried:
            if name not in known or carried.count(name) > 1:
                takes = f"ids of demands without repetition; there are {shorten(', '.join(known), 200)}"
                raise InvalidValue("flows.demand", name, takes)


def demands_of(scenario: Any) -> Demands:
    """Traffic of a graph's demands; Gaussian by default."""
    return next((each for each in scenario.flows if isinstance(each, Demands)), Demands())


def tcp_of(scenario: Any) -> tuple[TcpDemand, ...]:
    """Demands that are TCP, in the scenario's order."""
    return tuple(each for each in scenario.flows if isinstance(each, TcpDemand))
