"""Runs of window senders over one drop-tail link, whose losses are single packets."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from netctrl.model.design.design import Provenance
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.sim.bottleneck.losses import WindowFlows, run_windows
from netctrl.sim.bottleneck.window import WINDOWS, first_window
from netctrl.sim.tcp_aqm.lacks import ACK_BYTES
from netctrl.sim.tcp_aqm.problem import choose_step
from netctrl.sim.tcp_aqm.traffic import draw_flows, fluid_flows
from netctrl.units import packets_per_second

_STEPS_PER_RTT = 10


def simulate_one_line(scenario: Scenario, made: Provenance, progress: Callable[[float], None] | None = None) -> Result:
    """Run a scenario of `is_one_line`; its seed draws whose packets are lost, too."""
    index = {link.id: row for row, link in enumerate(scenario.links)}
    first, size = scenario.flows[0], scenario.packet_size
    line = scenario.links[index[first.path[0]]]
    draws = draw_flows(scenario, merged=False)
    per_sample = round(scenario.interval / choose_step(scenario))
    shortest = min(float(draw.rtt_s.min()) for draw in draws)
    every = max(per_sample, int(np.ceil(scenario.interval * _STEPS_PER_RTT / shortest)))
    step, samples = scenario.interval / every, int(scenario.duration / scenario.interval * (1.0 + 1e-12))
    capacity, longer = np.full(every * samples, line.capacity), np.zeros(every * samples)
    delay = {link.id: link.delay for link in scenario.links}
    for change in sorted(scenario.changes, key=lambda change: change.at):
        begins = round(change.at / step)
        if change.capacity is not None and change.link == line.id:
            capacity[begins:] = change.capacity
        if change.delay is not None:
            ways = first.both_ways.count(change.link)
            longer[begins:] += ways * (change.delay - delay[change.link])
            delay[change.link] = change.delay
    counts = [len(draw.rtt_s) for draw in draws]
    rtts = np.concatenate([draw.rtt_s for draw in draws])
    record = run_windows(
        WindowFlows(
            law=np.repeat([WINDOWS.index(group.sender) for group in scenario.flows], counts),
            row=np.array([first_window(rtt, float(scenario.initial_window)) for rtt in rtts]),
            base_s=rtts,
            start_s=np.concatenate([draw.start_s for draw in draws]),
            stop_s=np.concatenate([draw.stop_s for draw in draws]),
            group=np.repeat(np.arange(len(counts)), counts),
        ),
        packets_per_second(capacity, size),
        longer,
        (line.buffer or 0.0) / size,
        step,
        every,
        np.random.default_rng(np.random.SeedSequence(scenario.seed, spawn_key=(len(counts) + 2,))),
        progress,
    )
    links = np.zeros((5, len(index), samples))
    delivered = record.delivered.sum(axis=0)
    links[:, index[line.id]] = record.backlog[1], record.arrived, delivered, record.lost.sum(axis=0), 0.0 * delivered
    for name in first.ack_path:
        links[1:3, index[name]] = delivered * ACK_BYTES / size
    trips = np.divide(record.trip, record.delivered, out=np.zeros_like(record.trip), where=record.delivered > 0.0)
    links *= size
    return Result.of_series(
        scenario,
        "fluid",
        made,
        links=dict(zip(("backlog", "arrived", "departed", "lost", "marked"), links, strict=True)),
        flows=fluid_flows(scenario, record.delivered, trips),
    )
