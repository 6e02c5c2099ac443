"""A network under fluctuating demands on packets: its tables, its runs, their result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from netctrl.core.errors import InvalidValue, checked_function, checked_jobs, checked_whole
from netctrl.core.units import BITS_PER_BYTE
from netctrl.model.io.provenance import provenance
from netctrl.scenario.network.plan import DemandPaths, LinkPlan
from netctrl.scenario.network.routed import Routed, tcp_of
from netctrl.scenario.network.runs import RunFigures, runs_result
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario, checked_network
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.sim.network.plan import RunDraws, run_draws, tcp_starts
from netctrl.sim.packet.kernel import FLOW_STARTS
from netctrl.sim.packet.lacks import network_lacks
from netctrl.sim.packet.links.tables import Line, link_tables
from netctrl.sim.packet.problem import ANSWERED, ARRIVED, ENDLESS, PacketProblem, Traffic, first_state, flow_row
from netctrl.sim.packet.rates import RateMemory, rate_control, rate_memory, start_pacing
from netctrl.sim.packet.run import run_packets
from netctrl.sim.packet.senders.demands import CHOICE
from netctrl.sim.packet.senders.receiver import ACK_BYTES, HEADERS
from netctrl.sim.packet.senders.tcp import DEMAND
from netctrl.sim.packet.state import FLOW, META, SESSION, WAY

PACKET_SIZE = 1500
"""[byte], with headers."""
_NS = 1e9
_FIRST_WINDOW = 10.0
_CHANCE = 6  # stream of a run, beside those of its traffic, messages and starts

Progress = Callable[[float], None]


def simulate_network_packets(
    scenario: Scenario,
    plan: LinkPlan,
    runs: range,
    *,
    packet_size: int = PACKET_SIZE,
    sampled_delays: bool = False,
    n_jobs: int = 1,
    watch: bool = True,
    progress: Progress | None = None,
    argv: Iterable[str] = (),
    inputs: Iterable[Path] = (),
) -> Result:
    """Run a network under fluctuating demands packet by packet, many times.

    Parameters
    ----------
    scenario : Scenario
    plan : LinkPlan
        Its routes and its law (`netctrl.sim.network.plan.link_plan`).
    runs : range
        Numbers of the runs; run r has the demands and messages of run r in the fluid and in ns-3.
    packet_size : int
        [byte], with headers.
    sampled_delays : bool
        Delay what each link sends as the sampled model does, n_l + 1 intervals, instead of by its propagation delay.
    n_jobs : int
        Runs at a time, -1: one for each core.
    watch : bool
        Keep the first run's time series.
    progress : callable, optional
        Called now and then with the share that is done, from 0 to 1.
    argv, inputs : iterable of str and of Path
        Command line and files, for the provenance.

    Raises
    ------
    InvalidValue
        What the engine doesn't have, or can't hold.
    FileError
        The scenario's trace can't be read.
    """
    checked_network(scenario, Routed)
    if progress is not None:
        checked_function("progress", progress)
    if not runs:
        raise InvalidValue("runs", runs, "one run or more")
    checked_jobs(n_jobs)
    size = checked_whole("packet_size", packet_size, "100 to 65000 bytes", at_least=100, at_most=65000)
    missing = network_lacks(scenario)
    if missing is not None:
        raise InvalidValue("scenario", missing, "what the packet engine has")
    from joblib import Parallel, delayed

    lines = _lines(scenario, plan, size, sampled_delays)
    tasks = (
        delayed(_run)(scenario, plan, lines, draws, size, run, scenario.steps if watch and run == runs[0] else 0)
        for run, draws in zip(runs, run_draws(scenario, plan, runs), strict=True)
    )
    found: list[RunFigures] = []
    for each in Parallel(n_jobs, prefer="threads", return_as="generator")(tasks):
        found.append(each)
        if progress is not None:
            progress(len(found) / len(runs))
    origin = provenance(argv=argv, seed=scenario.seed, inputs=inputs, libraries=("numpy", "numba"))
    return runs_result(scenario, plan, runs, found, "packet", origin)


# --- one run ---------------------------------------------------------------------------------------------------------


def _run(
    scenario: Scenario, plan: LinkPlan, lines: Sequence[Line], draws: RunDraws, size: int, run: int, watched: int
) -> RunFigures:
    ready, memory = network_problem(scenario, plan, lines, draws, size, run, watched)
    state = run_packets(ready, _FIRST_WINDOW)
    count = scenario.steps - scenario.warmup_steps
    offered, delivered = np.array([state.meta[META["offered"]], state.meta[META["delivered"]]]) - memory.ends
    arrived, departed, lost, growth = (memory.now - memory.counted).astype(float)
    waiting, rate_square, backlog_square = memory.sums / count
    grown, demands = state.flow - memory.flow, len(plan.network.demands)
    return RunFigures(
        float(offered), float(delivered), arrived, departed, lost, growth,
        waiting * (scenario.interval / BITS_PER_BYTE), rate_square, backlog_square,
        _tcp(scenario, grown, demands, size), _demands(grown[:demands], size),
        memory.watched,
    )  # fmt: skip


def _demands(grown: np.ndarray, size: int) -> np.ndarray:
    """(5, I) `DEMAND_TOTALS`, from what the demands' rows grew by."""
    sent, received, lost, delays = grown[:, [FLOW[name] for name in ("sent", "received", "dropped", "delays")]].T
    offered, delivered = size * sent, size * received
    delay = np.divide(delays / _NS, received, out=np.full(len(grown), np.nan), where=received > 0)
    return np.array([offered, delivered, lost, offered - delivered - lost, delay])


def _tcp(scenario: Scenario, grown: np.ndarray, first: int, size: int) -> np.ndarray:
    """(4, M) `TCP_TOTALS`, from what the rows of TCP's flows grew by; they stand behind the demands."""
    found = np.zeros((4, len(tcp_of(scenario))))
    for m, each in enumerate(tcp_of(scenario)):
        received, sent, again, trips, count = (
            float(grown[first : first + each.flows, FLOW[name]].sum())
            for name in ("received", "sent", "again", "rtt_sum", "rtt_count")
        )
        payload = size - HEADERS
        found[:, m] = received, trips / max(count, 1.0) / _NS, payload * sent, payload * again
        first += each.flows
    return found


# --- tables ----------------------------------------------------------------------------------------------------------


def _lines(scenario: Scenario, plan: LinkPlan, size: int, sampled_delays: bool) -> list[Line]:
    by_name = {link.id: link for link in plan.network.links}
    found = []
    for name, samples in zip(plan.links, plan.delay.tolist(), strict=True):
        link = by_name[name]
        if link.buffer is not None and link.buffer < size:
            raise InvalidValue(
                f"network.graph.links.{name}.buffer", link.buffer, f"{size} bytes (a packet) or more, or null"
            )
        delay = (samples + 1) * scenario.interval if sampled_delays else link.delay
        found.append(Line(name, link.capacity, delay, link.buffer, scenario.network.queue))
    return found


def network_problem(
    scenario: Scenario, plan: LinkPlan, lines: Sequence[Line], draws: RunDraws, size: int, run: int, watched: int = 0
) -> tuple[PacketProblem, RateMemory]:
    """The kernel's tables for a run, and where its links are counted; flows of TCP stand behind the demands.

    Raises
    ------
    InvalidValue
        A value that the engine can't hold.
    """
    interval = round(scenario.interval * _NS)
    queues = link_tables(lines, size)
    place = np.arange(len(lines))
    control = rate_control(plan, draws, place, interval, scenario.steps, scenario.warmup_steps)
    start_pacing(queues[0], place[plan.paced], plan.law.nominal[plan.paced])
    paths = _Paths(plan)
    route, ways, rows = paths.of_demands()
    agenda: list[tuple[int, int, int, int]] = []
    for each, starts in zip(tcp_of(scenario), tcp_starts(scenario, run), strict=True):
        i = paths.index[each.demand]
        group = Flow(id="tcp", path=("way",), rtt=(1.0, 1.0), count=each.flows, sender=each.sender, ecn=each.ecn)
        back = sum(round((lines[k].delay + ACK_BYTES * BITS_PER_BYTE / lines[k].capacity) * _NS) for k in paths.main(i))
        for start in np.rint(starts * _NS).astype(np.int64).tolist():
            agenda.append((start, FLOW_STARTS, len(rows), 0))
            path = paths.next(i)
            rows.append(flow_row(group, i, len(route), len(route) + len(path) + 1))
            rows[-1][FLOW["line_delay"]], rows[-1][FLOW["stop"]] = back, ENDLESS
            route += [*path, ARRIVED, ANSWERED]
    flow = np.array(rows)
    flow[:, FLOW["last_bytes"]] = size - HEADERS
    seeds = np.random.SeedSequence(scenario.seed, spawn_key=(run, _CHANCE))
    random = seeds.generate_state(len(lines) + len(rows), np.uint64)
    sessions = np.zeros((0, len(SESSION)), dtype=np.int64)
    web = np.tile([0.0, 1.0, 0.0, 1.0], (len(plan.network.demands), 1))
    nothing = np.zeros((0, 2)), np.zeros((0, 0)), np.zeros((0, 0))
    weight = np.ones(len(flow))
    traffic = Traffic(flow, sessions, np.array(route), sorted(agenda), web, random, weight, nothing, ways)
    state = first_state(lines, queues, traffic, size)
    end = interval * scenario.steps
    memory = rate_memory(control, len(flow), watched)
    return PacketProblem(state, end + 1, size, end, (control, memory)), memory


class _Paths(DemandPaths):
    """With the packet kernel's routes."""

    def of_demands(self) -> tuple[list[int], np.ndarray, list[np.ndarray]]:
        """Routes with a choice at each node, its ways, and the demands' rows."""
        route: list[int] = []
        table: list[tuple[int, float, float, bool]] = []
        rows = []
        for i, (demand, nodes) in enumerate(zip(self.demands, self.ways, strict=True)):
            first = np.cumsum([len(table), *map(len, nodes.values())]).tolist()
            codes = {node: CHOICE - row for node, row in zip(nodes, first, strict=False)} | {demand.target: ARRIVED}
            rows.append(_demand_row(i, len(route)))
            route.append(codes[demand.source])
            for ways in nodes.values():
                for k, (link, share) in enumerate(ways, 1):
                    table.append((len(route), share, 0.0, k < len(ways)))
                    route += [link, codes[self.ends[link][1]]]
        return route, np.array(table, dtype=float).reshape(-1, len(WAY)), rows


def _demand_row(i: int, route: int) -> np.ndarray:
    row = np.zeros(len(FLOW), dtype=np.int64)
    row[FLOW["kind"]], row[FLOW["group"]], row[FLOW["route"]] = DEMAND, i, route
    for name in ("line_head", "line_tail", "session"):
        row[FLOW[name]] = -1
    return row
