"""A network scenario for packet simulators: its plan, and the draws of each run, the same as in the fluid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.laws.link_rate.fir import WORK_CONSERVING
from netctrl.model.law import LinkRateLaw
from netctrl.scenario.network.plan import LinkPlan, RunDraws
from netctrl.scenario.network.policy import Backpressure, messages_of
from netctrl.scenario.network.runs import scenario_trace, tcp_of
from netctrl.scenario.scenario import Scenario
from netctrl.sim.network.demands import DemandSource
from netctrl.sim.network.messages import link_rates, message_table, rates_by_messages
from netctrl.sim.network.problem import LinkProblem, link_problem

_MAX_TABLE = 2**28  # bytes
_CHUNK = 2**21  # bytes of demands at a time


def link_plan(
    scenario: Scenario, law: LinkRateLaw | None = None, *, sampled_delays: bool = False, messages: bool = False
) -> LinkPlan:
    """Routes and numbers of the fluid's run; `messages`: links hear by messages even where all are in time.

    Raises
    ------
    InvalidValue
        As in `netctrl.sim.network.problem`; also backpressure.
    """
    if isinstance(scenario.control, Backpressure):
        takes = "fifo, static, credit, hftrac or design; backpressure reads the next queues continuously"
        raise InvalidValue("control.kind", "backpressure", takes)
    ready = link_problem(scenario, law)
    prices = ready.prices._replace(lag=ready.prices.delay + sampled_delays)  # packets aren't stored for an interval
    rates = rates_by_messages if messages else link_rates
    return LinkPlan(
        network=ready.network,
        links=ready.model.links,
        delay=ready.model.delay,
        split=_split(ready),
        nominal=ready.plant.nominal,
        weight=ready.weight,
        paced=ready.taps.mode != WORK_CONSERVING,
        law=rates(scenario, ready._replace(prices=prices), law),
    )


def _split(ready: LinkProblem) -> tuple[tuple[int, int, float], ...]:
    routes = ready.routes
    row = np.cumsum(routes.load > 0.0) - 1  # rows of the links with traffic
    split = routes.split.tocoo()
    return tuple(
        (int(i), int(row[link]), float(share))
        for link, i, share in zip(split.row, split.col, split.data, strict=True)
        if routes.load[link] > 0.0
    )


def run_draws(scenario: Scenario, plan: LinkPlan, runs: Sequence[int]) -> Iterator[RunDraws]:
    """Draws of the runs with these numbers, the same as in the fluid.

    Raises
    ------
    InvalidValue
        Raised at once: more than 256 MiB per run, or as in `netctrl.sim.network.demands`.
    FileError
        The trace can't be read.
    """
    if not runs:
        raise InvalidValue("runs", runs, "one run or more")
    demands, N, steps = len(plan.network.demands), len(plan.links), scenario.steps
    messages, late = plan.law.messages, not messages_of(scenario.control).ideal
    size = steps * (8 * demands + (4 * messages + N if late else 0))
    if size > _MAX_TABLE:
        got = f"{steps} intervals of {demands} demands and {messages} messages, {size / 2**20:.0f} MiB a run"
        takes = f"at most {_MAX_TABLE / 2**20:g} MiB in a run's table: a shorter duration or a longer interval"
        raise InvalidValue("duration", got, takes)
    trace = scenario_trace(scenario)

    def source(run: int) -> DemandSource:
        return DemandSource(scenario, range(run, run + 1), trace=trace)

    source(runs[0])  # raises its errors before any run
    return (_draws(scenario, plan, run, source(run)) for run in runs)


def _draws(scenario: Scenario, plan: LinkPlan, run: int, source: DemandSource) -> RunDraws:
    demands, N, steps = plan.network.demands, len(plan.links), scenario.steps
    chunk = max(1, _CHUNK // (8 * len(demands)))
    carried = {each.id for each in tcp_of(scenario)}
    udp = np.array([demand.id not in carried for demand in demands], dtype=float)
    rates = np.empty((steps, len(demands)))
    for first in range(0, steps, chunk):
        rates[first : first + chunk] = udp * source.draw(min(chunk, steps - first))[:, :, 0]
    if messages_of(scenario.control).ideal:
        nothing = np.zeros(N, dtype=np.int64), np.zeros((steps, 0), dtype=np.int64), np.ones((steps, N), dtype=bool)
        return RunDraws(rates, *nothing)
    messages = plan.law.messages
    phase, late, received = message_table(scenario, run, messages, N)
    return RunDraws(rates, phase, late[:, :messages], received)


def run_tables(scenario: Scenario, plan: LinkPlan, runs: Sequence[int]) -> Iterator[bytes]:
    """Draws of runs, each as bytes for a program; raises as `run_draws`.

    Little-endian: rates, float64; then, where messages may be late, phases, int32, lateness, int32, and commands that
    arrive, uint8.
    """
    return (_bytes(each, messages_of(scenario.control).ideal) for each in run_draws(scenario, plan, runs))


def _bytes(draws: RunDraws, ideal: bool) -> bytes:
    parts = [draws.rates.astype("<f8")]
    if not ideal:
        parts += [draws.phase.astype("<i4"), draws.late.astype("<i4"), draws.received.astype(np.uint8)]
    return b"".join(part.tobytes() for part in parts)
