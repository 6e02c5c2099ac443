"""Runs of window senders over one drop-tail link, whose losses are single packets: arrays for the kernel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.core.units import packets_per_second
from netctrl.laws.tcp.rows import WINDOWS, first_window
from netctrl.model.design.design import Provenance
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.lacks import refuse_packet_only
from netctrl.sim.fluid.lacks import ACK_BYTES, overflow_lack
from netctrl.sim.fluid.loss_kernel import LossPlant, LossRecord, LossState, advance_losses
from netctrl.sim.fluid.problem import choose_step
from netctrl.sim.fluid.traffic import draw_flows, fluid_flows, link_rates

_STEPS_PER_RTT = 10
_DRAWS = 65_537
_CHUNK = 4_000_000  # flow-steps between calls of progress


def simulate_one_line(scenario: Scenario, made: Provenance, progress: Callable[[float], None] | None = None) -> Result:
    """Run a scenario of `is_one_line`; its seed draws whose packets are lost, and the noise of round trips, too.

    Raises
    ------
    InvalidValue
        A feature that the fluid lacks, or a buffer of less than 16 packets.
    """
    refuse_packet_only(scenario, line=True)
    lack = overflow_lack(scenario)
    if lack is not None:
        raise InvalidValue(lack[0], lack[1], 'a feature of this engine; "packet" supports it')
    row = scenario.link_ids.index(scenario.flows[0].path[0])
    size, line = scenario.packet_size, scenario.links[row]
    draws = draw_flows(scenario, merged=False)
    counts = [len(draw.rtt_s) for draw in draws]
    per_sample = round(scenario.interval / choose_step(scenario))
    shortest = min(float(draw.rtt_s.min()) for draw in draws)
    every = max(per_sample, int(np.ceil(scenario.interval * _STEPS_PER_RTT / shortest)))
    step, samples = scenario.interval / every, int(scenario.duration / scenario.interval * (1.0 + 1e-12))
    capacity = packets_per_second(link_rates(scenario, row, step, every * samples), size)
    rtts = np.concatenate([draw.rtt_s for draw in draws])
    base = rtts + 1.0 / capacity[0]  # a packet's own time on the link
    random = np.random.default_rng(np.random.SeedSequence(scenario.seed, spawn_key=(len(counts) + 2,)))
    plant = LossPlant(
        step=step,
        buffer=(line.buffer or 0.0) / size,
        spread=_mean_difference(base),
        law=np.repeat([WINDOWS.index(group.sender) for group in scenario.flows], counts),
        base=base,
        start=np.concatenate([draw.start_s for draw in draws]),
        stop=np.concatenate([draw.stop_s for draw in draws]),
        group=np.repeat(np.arange(len(counts)), counts),
        capacity=capacity,
        taken=np.concatenate([[0.0], np.cumsum(capacity * step)]),
        longer=_longer(scenario, step, every * samples),
        uniform=random.random(_DRAWS),
        normal=random.standard_normal(_DRAWS),
    )
    rows = np.array([first_window(rtt, float(scenario.initial_window)) for rtt in rtts])
    record = _run(plant, rows, every, len(counts), progress)
    links = np.zeros((6, len(scenario.links), samples))
    delivered = record.delivered.sum(axis=0)
    links[:5, row] = record.backlog[1], record.arrived, delivered, record.lost.sum(axis=0), record.backlog[0]
    for name in scenario.flows[0].ack_path:
        links[1:3, scenario.link_ids.index(name)] = delivered * ACK_BYTES / size
    links *= size
    links[5, row] = record.waited
    trips = np.divide(record.trip, record.delivered, out=np.zeros_like(record.trip), where=record.delivered > 0.0)
    noise = random.exponential(np.c_[[group.rtt_noise for group in scenario.flows]], trips.shape)
    return Result.of_series(
        scenario,
        "fluid",
        made,
        links={
            **dict(zip(("backlog", "arrived", "departed", "lost", "backlog_most", "delay"), links, strict=True)),
            "marked": np.zeros_like(links[0]),
        },
        flows=fluid_flows(scenario, record.delivered, np.where(trips > 0.0, trips + noise, 0.0)),
    )


def _longer(scenario: Scenario, step: float, count: int) -> np.ndarray:
    """What changes have made a round trip longer by since the beginning, in each step [s]."""
    longer, delay = np.zeros(count), {link.id: link.delay for link in scenario.links}
    for change in sorted(scenario.changes, key=lambda change: change.at):
        if change.delay is not None:
            ways = scenario.flows[0].both_ways.count(change.link)
            longer[round(change.at / step) :] += ways * (change.delay - delay[change.link])
            delay[change.link] = change.delay
    return longer


def _run(
    plant: LossPlant, rows: np.ndarray, every: int, groups: int, progress: Callable[[float], None] | None
) -> LossRecord:
    """The record of a run of all steps from these rows of windows on, which it changes."""
    n, S = rows.shape[0], len(plant.capacity)
    K = S // every
    state = LossState(
        row=rows,
        held=np.zeros(n),
        flight=np.zeros(n),
        lost=np.zeros(n),
        heard=np.full(n, np.inf),
        told=np.zeros(n),
        fall=np.zeros(n),
        wake=np.zeros(n),
        line=np.zeros(5),
    )
    record = LossRecord(every, *(np.zeros((groups, K)) for _ in range(3)), np.zeros(K), np.zeros((2, K)), np.zeros(K))
    chunk = max(_CHUNK // n, 1000)
    for first in range(0, S, chunk):
        last = min(first + chunk, S)
        advance_losses(plant, state, record, first, last)
        if progress is not None:
            progress(last / S)
    return record


def _mean_difference(values: np.ndarray) -> float:
    """E|x − y| of two values drawn at random, from the gaps between neighbours."""
    below = np.arange(1, len(values)) / len(values)
    return float(2.0 * np.diff(np.sort(values)) @ (below * (1.0 - below)))
