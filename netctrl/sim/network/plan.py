"""A network scenario for a simulator of packets: its plan, and what each run draws, the same as in the fluid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from netctrl.errors import InvalidValue
from netctrl.laws.link_rate.fir import WORK_CONSERVING
from netctrl.model.law import LinkRateLaw
from netctrl.plants.routing import routing
from netctrl.scenario.network.plan import LinkPlan
from netctrl.scenario.network.policy import Backpressure
from netctrl.scenario.network.scenario import NetworkScenario
from netctrl.scenario.network.trace_window import scenario_trace
from netctrl.sim.network.demands import DemandSource
from netctrl.sim.network.messages import message_table, rates_by_messages, rates_in_time
from netctrl.sim.network.problem import LinkProblem, link_problem

__all__ = ["link_plan", "run_tables"]

_MAX_TABLE = 2**28  # bytes
_CHUNK = 2**21  # bytes of demands at a time


def link_plan(scenario: NetworkScenario, law: LinkRateLaw | None = None) -> LinkPlan:
    """What the fluid runs, as routes and numbers.

    Raises
    ------
    InvalidValue
        What `netctrl.sim.network.problem` refuses, and backpressure.
    """
    if isinstance(scenario.policy, Backpressure):
        takes = "fifo, static, hftrac or design: backpressure looks at each moment into the next queues"
        raise InvalidValue("policy.kind", "backpressure", takes)
    ready = link_problem(scenario, law)
    return LinkPlan(
        network=ready.network,
        links=ready.model.links,
        delay=ready.model.delay,
        split=_split(ready),
        nominal=ready.plant.nominal,
        weight=ready.weight,
        paced=ready.taps.mode != WORK_CONSERVING,
        law=rates_in_time(ready) if scenario.messages.ideal else rates_by_messages(scenario, ready, law),
    )


def _split(ready: LinkProblem) -> tuple[tuple[int, int, float], ...]:
    routes = routing(ready.network)
    row = np.cumsum(routes.load > 0.0) - 1  # of the links that carry something
    split = routes.split.tocoo()
    return tuple(
        (int(i), int(row[link]), float(share))
        for link, i, share in zip(split.row, split.col, split.data, strict=True)
        if routes.load[link] > 0.0
    )


def run_tables(scenario: NetworkScenario, plan: LinkPlan, runs: Sequence[int]) -> Iterator[bytes]:
    """What the runs of these numbers draw, each as bytes for a program to read.

    Little-endian: rates, (steps, I) float64 [bit/s], 0 of what TCP carries; then phases, (N,) int32, by how many ticks
    each message is late or −1, (steps, messages) int32, and whether a central command arrives, (steps, N) uint8.

    Raises
    ------
    InvalidValue
        At once: more than 256 MiB a run, or what `netctrl.sim.network.demands` refuses.
    FileError
        The trace can't be read.
    """
    demands, N, steps = len(plan.network.demands), len(plan.links), scenario.steps
    messages, late = plan.law.messages, not scenario.messages.ideal
    size = steps * (8 * demands + (4 * messages + N if late else 0))
    if size > _MAX_TABLE:
        got = f"{steps} intervals of {demands} demands and {messages} messages, {size / 2**20:.0f} MiB a run"
        takes = f"at most {_MAX_TABLE / 2**20:g} MiB in a program's table: a shorter duration or a longer interval"
        raise InvalidValue("duration", got, takes)
    trace = scenario_trace(scenario)

    def source(run: int) -> DemandSource:
        return DemandSource(scenario, plan.network, range(run, run + 1), trace=trace)

    source(runs[0])  # what it refuses is said before anything is written
    return (_table(scenario, plan, run, source(run)) for run in runs)


def _table(scenario: NetworkScenario, plan: LinkPlan, run: int, source: DemandSource) -> bytes:
    chunk = max(1, _CHUNK // (8 * len(plan.network.demands)))
    carried = {each.demand for each in scenario.tcp}
    udp = np.array([demand.id not in carried for demand in plan.network.demands], dtype=float)
    rates = (source.draw(min(chunk, scenario.steps - first)) for first in range(0, scenario.steps, chunk))
    parts = [np.ascontiguousarray(udp * rate[:, :, 0], dtype="<f8").tobytes() for rate in rates]
    if not scenario.messages.ideal:
        messages = plan.law.messages
        phase, late, received = message_table(scenario, run, messages, len(plan.links))
        parts += [phase.astype("<i4").tobytes(), late[:, :messages].astype("<i4").tobytes()]
        parts.append(received.astype(np.uint8).tobytes())
    return b"".join(parts)
