"""A network under demands as a scenario of links and flows for the kernel, and its readings as the network's results.

Demands are UDP packets, each of which leaves as soon as its bytes have accumulated. Where a demand's ways split, each
packet takes the link that is furthest behind its share, as in the packet engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from netctrl.core.units import BITS_PER_BYTE, MICROSECOND, NANOSECOND
from netctrl.kernel.plan import ARRIVAL, TRANSFER, Answer
from netctrl.kernel.scenarios.link_control import LinkControl, rater_task
from netctrl.kernel.scenarios.network_links import kernel_links
from netctrl.kernel.scenarios.planner import KernelPlan, payload_share, plan_scenario
from netctrl.kernel.scenarios.rater import RaterTask
from netctrl.kernel.scenarios.result import joined, simulation_result
from netctrl.kernel.scenarios.traffic import series_times
from netctrl.model.io.provenance import Provenance
from netctrl.scenario.network.plan import DemandPaths, LinkPlan
from netctrl.scenario.network.policy import Controlled, StaticPacing
from netctrl.scenario.network.routed import tcp_of
from netctrl.scenario.network.runs import RunFigures
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow, FlowDraw
from netctrl.scenario.tcp_aqm.offers import Demand

_ACK_BYTES = 66


class RunTraffic(NamedTuple):
    """Traffic of a run's demands."""

    number: int
    """Number of the run, which is added to the kernel's seed."""
    rates: np.ndarray
    """(steps, I) rates of demands, 0 for those that are TCP [bit/s]."""
    starts: Sequence[np.ndarray]
    """When the flows of each demand that is TCP start [s]."""
    phase: np.ndarray
    """(N,) tick of the interval at which each link acts."""
    late: np.ndarray
    """(steps, messages) delay of each message in ticks; -1: lost."""
    received: np.ndarray
    """(steps, N) whether a central command arrives."""


class NetworkRun(NamedTuple):
    """One run, ready for the kernel."""

    scenario: Scenario
    """Scenario of links and flows."""
    plan: KernelPlan
    demand: tuple[int, ...]
    """Index of each group's demand."""
    task: RaterTask | None
    """Task of the program that sets rates; None: they don't change."""


def network_run(scenario: Scenario, plan: LinkPlan, traffic: RunTraffic, packet_size: int) -> NetworkRun:
    """A run's links, flows and packets.

    Parameters
    ----------
    scenario : Scenario
        Of a routed network.
    plan : LinkPlan
    traffic : RunTraffic
    packet_size : int
        [byte], with Ethernet's header.
    """
    by_name = {link.id: link for link in plan.network.links}
    chosen = [by_name[name] for name in plan.links]
    links = kernel_links(chosen, scenario.network.queue)
    paths, groups = DemandPaths(plan), _Groups([link.id for link in links])
    carried = {each.demand for each in tcp_of(scenario)}
    begins = scenario.interval * np.arange(scenario.steps)
    for i, demand in enumerate(plan.network.demands):
        if demand.id not in carried:
            times = series_times(begins, traffic.rates[:, i], packet_size, scenario.duration)
            groups.add_packets(paths, i, times)
    for each, starts in zip(tcp_of(scenario), traffic.starts, strict=True):
        i = paths.index[each.demand]
        main = [chosen[k] for k in paths.main(i)]
        back = sum(link.delay + _ACK_BYTES * BITS_PER_BYTE / link.capacity for link in main)
        for path, mine in _by_path(paths, i, starts):
            trip = sum(chosen[k].delay for k in path) + back
            groups.add_tcp(i, path, each.sender, each.ecn, trip, mine)
    network = Scenario(
        name=scenario.name,
        links=links,
        flows=tuple(groups.groups),
        duration=scenario.duration,
        interval=scenario.interval,
        packet_size=packet_size,
        seed=scenario.seed + traffic.number,
    )
    rates = {}
    if isinstance(scenario.control, StaticPacing):
        desired = scenario.control.factor * plan.nominal
        for rate, link, paced in zip(desired.tolist(), links, plan.paced, strict=True):
            if paced:
                rates[link.id] = rate
    control = None
    if isinstance(scenario.control, Controlled):
        control = LinkControl(
            law=plan.law,
            links=[link.id for link in links],
            interval_s=scenario.interval,
            paced=plan.paced,
            phase=traffic.phase,
            late=traffic.late,
            received=traffic.received,
        )
    made = plan_scenario(network, groups.draws, times=groups.times, rates=rates, control=control)
    task = None if control is None else rater_task(control, network, made.places)
    return NetworkRun(network, made, tuple(groups.demand), task)


class _Groups:
    """Groups of flows, each over one path."""

    def __init__(self, links: Sequence[str]) -> None:
        self.links = links
        self.groups: list[Flow] = []
        self.draws: list[FlowDraw] = []
        self.demand: list[int] = []
        self.times: dict[str, Sequence[np.ndarray]] = {}

    def add_packets(self, paths: DemandPaths, i: int, times: np.ndarray) -> None:
        """A stream for each path of a demand."""
        if all(len(ways) == 1 for ways in paths.ways[i].values()):
            streams = [(tuple(paths.main(i)), times)]
        else:
            streams = _by_path(paths, i, times)
        for path, mine in streams:
            group = Flow(id=self._id(i), path=self._names(path), offers=Demand(rates=[1.0], interval=1.0))
            self.times[group.id] = [mine]
            self._add(i, group, np.zeros(1), np.zeros(1))

    def add_tcp(self, i: int, path: tuple[int, ...], sender: str, ecn: bool, trip: float, starts: np.ndarray) -> None:
        """Endless flows over one path."""
        group = Flow(
            id=self._id(i), path=self._names(path), rtt=(trip, trip), count=len(starts), sender=sender, ecn=ecn
        )
        self._add(i, group, np.full(len(starts), trip), starts)

    def _add(self, i: int, group: Flow, rtt: np.ndarray, starts: np.ndarray) -> None:
        self.groups.append(group)
        self.draws.append(FlowDraw(rtt, starts, np.full(len(starts), np.inf), np.ones(len(starts))))
        self.demand.append(i)

    def _id(self, i: int) -> str:
        return f"demand{i}.{self.demand.count(i)}"

    def _names(self, path: Sequence[int]) -> tuple[str, ...]:
        return tuple(self.links[k] for k in path)


def _by_path(paths: DemandPaths, i: int, times: np.ndarray) -> list[tuple[tuple[int, ...], np.ndarray]]:
    """Times by path, in turns that keep the demand's shares."""
    found: dict[tuple[int, ...], list[float]] = {}
    for time in times.tolist():
        found.setdefault(tuple(paths.next(i)), []).append(time)
    return [(path, np.array(mine)) for path, mine in found.items()]


# --- results ---------------------------------------------------------------------------------------------------------


def run_figures(
    scenario: Scenario,
    plan: LinkPlan,
    run: NetworkRun,
    results: Sequence[tuple[int, bytes]],
    version: str,
    provenance: Provenance,
    watched: int = 0,
) -> RunFigures:
    """Figures of the time after the warm-up from a run's readings; time series of `watched` intervals.

    Raises
    ------
    NetctrlError
        Readings are missing.
    """
    found = simulation_result(run.scenario, run.plan, results, version, provenance)
    counted = np.arange(scenario.steps) >= scenario.warmup_steps
    per_interval = BITS_PER_BYTE / scenario.interval
    series = found.series
    backlog, rate, waiting = series["backlog"], per_interval * series["departed"], per_interval * series["backlog"]
    before = backlog[:, scenario.warmup_steps - 1] if scenario.warmup_steps else 0.0
    demands = _demands(scenario, plan, run, results)
    tcp, sent, acked = _tcp(scenario, run, results)
    return RunFigures(
        entered=float(demands[0].sum() + sent),
        left=float(demands[1].sum() + acked),
        **{name: series[name][:, counted].sum(axis=1) for name in ("arrived", "departed", "lost")},
        growth=backlog[:, -1] - before,
        backlog=backlog[:, counted].mean(axis=1),
        rate_square=np.square(rate - plan.nominal[:, None])[:, counted].mean(axis=1),
        backlog_square=np.square(waiting - plan.law.setpoint)[:, counted].mean(axis=1),
        tcp=tcp,
        demands=demands,
        watched=np.stack([backlog, rate, series["lost"]])[:, :, :watched],
    )


def _demands(scenario: Scenario, plan: LinkPlan, run: NetworkRun, results: Sequence[tuple[int, bytes]]) -> np.ndarray:
    """(5, I) `DEMAND_TOTALS`.

    Packets of a stream don't overtake each other: one that didn't come is lost where a later one came, else it may
    be on its way.
    """
    rows = joined(results, Answer.ARRIVALS, ARRIVAL)
    rows = rows[rows["at_ns"] * NANOSECOND <= scenario.duration]
    size, since = run.scenario.packet_size, scenario.warmup_steps * scenario.interval
    offered, delivered, lost, delay = np.zeros((4, len(plan.network.demands)))
    for stream, (group, times) in enumerate(run.plan.streams):
        i, mine = run.demand[group], rows[rows["stream"] == stream]
        at, numbers = mine["at_ns"] * NANOSECOND, mine["number"].astype(int)
        came = np.zeros(len(times), dtype=bool)
        came[numbers] = True
        last = numbers.max(initial=-1)
        offered[i] += size * (times >= since).sum()
        delivered[i] += size * (at >= since).sum()
        lost[i] += size * (~came & (times >= since) & (np.arange(len(times)) < last)).sum()
        delay[i] += size * (at - times[numbers])[at >= since].sum()
    delay = np.divide(delay, delivered, out=np.full(len(delay), np.nan), where=delivered > 0.0)
    return np.stack([offered, delivered, lost, offered - delivered - lost, delay])


def _tcp(scenario: Scenario, run: NetworkRun, results: Sequence[tuple[int, bytes]]) -> tuple[np.ndarray, float, float]:
    """(4, M) `TCP_TOTALS`, and the bytes of packets that all of TCP sent and had acknowledged."""
    rows = joined(results, Answer.TRANSFER, TRANSFER)
    since = scenario.warmup_steps * scenario.interval
    names = [demand.id for demand in scenario.network.graph.demands]
    found, total = [], np.zeros(2)
    for each in tcp_of(scenario):
        grown, trips = np.zeros(3), []
        for flow, group in enumerate(run.plan.flows):
            if run.demand[group] == names.index(each.demand):
                mine = rows[rows["flow"] == flow]
                at = mine["at_ns"] * NANOSECOND
                for column, name in enumerate(("acked", "sent", "resent")):
                    values = mine[name].astype(float)
                    if len(values):
                        grown[column] += values[-1] - values[at <= since * (1.0 + 1e-12)].max(initial=0.0)
                trips += [mine["rtt_us"][(at > since) & (mine["rtt_us"] > 0)] * MICROSECOND]
        trip = np.concatenate([np.zeros(0), *trips])
        acked, sent, again = grown
        total += sent, acked
        mean = float(trip.mean()) if len(trip) else 0.0
        found.append((acked, mean, sent, again))
    sent, acked = total / payload_share(run.scenario.packet_size)
    return np.array(found).reshape(-1, 4).T, float(sent), float(acked)
