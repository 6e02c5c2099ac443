"""A law of one link's rate that solves a program in each interval, for all engines with packets."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import msgspec
import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.core.register import RUNNING_LAWS
from netctrl.core.units import BITS_PER_BYTE
from netctrl.laws.link_rate.distributed_step import Measured
from netctrl.model.design.mpc import MpcLaw
from netctrl.model.io.arrays import array, plain
from netctrl.model.network import Link as GraphLink
from netctrl.model.network import Network
from netctrl.scenario.network.plan import FlowLinks, LinkPlan, RunDraws
from netctrl.scenario.network.policy import DesignPolicy
from netctrl.scenario.network.track import regulator_of
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Demand

_MBIT = 1e6


class DecidedRates(NamedTuple):
    """A link's law as data."""

    law: bytes
    """JSON of the law."""
    nominal: np.ndarray
    """(1,) rate at first [bit/s]"""
    announced: np.ndarray
    """(K + lead,) rate that is known to arrive in each interval [bit/s]; empty: what arrived in the last one is taken
    for it"""
    ticks: int = 1
    """of an interval"""

    def read(self) -> MpcLaw:
        """The law."""
        return msgspec.json.decode(self.law, type=MpcLaw, dec_hook=array)


class RateDecider:
    """The law at work.

    Parameters
    ----------
    law : MpcLaw
    first : float
        Rate before the first decision [bit/s].
    announced : ndarray
        As of `DecidedRates`.
    acts_late : bool
        Whether decisions take effect, and measurements are read, as late as the law's plant says, because the link that
        is simulated has no delay of its own.
    """

    def __init__(self, law: MpcLaw, first: float, announced: np.ndarray, *, acts_late: bool = True) -> None:
        self.running: Any = RUNNING_LAWS["mpc"](law, [first / _MBIT])
        problem = self.running.controller.problem
        self._announced, self._interval = announced / _MBIT, law.interval_s
        self._under_way = deque([first] * (int(problem.delays.max()) if acts_late else 0))
        self._seen: deque[float] = deque(maxlen=1 + (problem.measurement_delay if acts_late else 0))

    @classmethod
    def of(cls, decided: DecidedRates) -> RateDecider:
        """Of a law as data."""
        return cls(decided.read(), float(decided.nominal[0]), decided.announced)

    def decide(self, step: int, seen: Measured) -> float:
        """The rate from now on [bit/s], from what the link measured in the interval that ended [bit/s]."""
        self._seen.append(seen.backlog * self._interval / _MBIT)
        foreseen = np.array([(seen.arrived - seen.lost) / _MBIT])
        if len(self._announced):
            foreseen = self._announced[step : step + self.running.lead, None]
        rate = self.running.decide([self._seen[0]], disturbances=foreseen)
        self._under_way.append(_MBIT * float(rate[0]))
        return self._under_way.popleft()


def decided_links(scenario: Any, law: MpcLaw, policy: DesignPolicy) -> FlowLinks:
    """Links of a scenario whose rates a law sets that is one of model predictive control.

    Raises
    ------
    InvalidValue
        A law of no link, a link that isn't there, or flows that are announced and have no rates of their own.
    """
    places = {link.id: place for place, link in enumerate(scenario.links)}
    if law.link is None:
        takes = "a Design for a link: `[plant]` of kind link, or design_mpc(..., link=...)"
        raise InvalidValue("design", "one of a plant that is no link", takes)
    if law.link not in places:
        takes = f"one for a link that is there: {', '.join(places)}"
        raise InvalidValue("control", f"a Design for link {law.link}", takes)
    interval, link = law.interval_s, scenario.links[places[law.link]]
    wanted = _MBIT * float(law.reference[0]) / BITS_PER_BYTE
    if link.buffer is not None and link.buffer <= wanted:
        takes = f"more than the {wanted:g} bytes that the law holds there"
        raise InvalidValue(f"links.{link.id}.buffer", link.buffer, takes)
    steps = int(scenario.duration / interval * (1.0 + 1e-12))
    announced = np.zeros(0)
    if law.preview:
        problem = law.problem
        lead = int(np.min(problem.get("delay", 0))) + problem["horizon"] + 1
        announced = announced_rates(scenario, law.link, policy.announced, interval, steps + lead)
    elif policy.announced:
        raise InvalidValue("control.announced", policy.announced, "none: the Design's law takes no preview")
    first = np.clip(announced[0], 1.0, link.capacity) if len(announced) else _MBIT * law.safe_input[0]
    decided = DecidedRates(msgspec.json.encode(law, enc_hook=plain), np.array([float(first)]), announced)
    graph = Network(links=(GraphLink(**{name: getattr(link, name) for name in GraphLink.__struct_fields__}),))
    plan = LinkPlan(graph, (link.id,), np.zeros(1), (), decided.nominal, None, np.ones(1, dtype=bool), decided)
    nothing = np.zeros((steps, 0)), np.zeros(1, dtype=np.int64), np.zeros((steps, 0), dtype=np.int64)
    drawn = RunDraws(*nothing, np.ones((steps, 1), dtype=bool))
    return FlowLinks(plan, np.array([places[link.id]]), drawn, interval, steps)


def announced_rates(scenario: Any, link: str, flows: tuple[str, ...], interval: float, count: int) -> np.ndarray:
    """Mean rate that flows without acknowledgements offer a link in each interval, (count,) [bit/s].

    Those of `flows`, by default all that cross the link, with their starts, ends and changes; their ways to the link
    take no time here.
    """
    known = {flow.id: flow for flow in scenario.flows}
    for name in flows:
        if name not in known or known[name].answered or link not in known[name].path:
            takes = f"ids of streams, bursts or demands that cross link {link}"
            raise InvalidValue("control.announced", name, takes)
    found = np.zeros(count)
    for flow in scenario.flows:
        if not flow.answered and link in flow.path and (not flows or flow.id in flows):
            found += flow.count * _offered(scenario, flow, interval, count)
    return found


def _offered(scenario: Any, flow: Flow, interval: float, count: int) -> np.ndarray:
    """Mean rate of one of these flows in each interval."""
    edges, offers = interval * np.arange(count + 1), flow.offers
    starts, stops = float(np.mean(flow.start)), np.inf if flow.stop is None else float(np.mean(flow.stop))
    # Its rate is constant between these times.
    times, rates = [0.0], []
    if isinstance(offers, Demand) and offers.rates is not None:  # from its start on, repeated
        held, series = offers.lasts(interval), offers.rates.rate_bit_per_s.mean(axis=1)
        places = np.arange(int(edges[-1] / held) + 2)
        times, rates = (starts + held * places).tolist(), series[places % len(series)].tolist()
    else:
        own = regulator_of(flow) or offers
        rates = [float((own.mean or 0.0) if isinstance(own, Demand) else own.rate)]
        for change in sorted(scenario.changes, key=lambda each: each.at):
            if change.flow == flow.id:
                times.append(change.at)
                rates.append(rates[0] if change.rate is None else change.rate)
    times = np.array(times)
    sent = np.concatenate([[0.0], np.cumsum(np.diff(times) * rates[:-1])])

    def until(at: np.ndarray) -> np.ndarray:
        row = np.searchsorted(times, at, side="right") - 1
        return sent[row] + (at - times[row]) * np.array(rates)[row]

    return np.diff(until(np.clip(edges, starts, stops))) / interval
