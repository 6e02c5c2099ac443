"""What is drawn or sampled outside the kernels: round-trip time, start and stop of each flow, capacities in steps.

The fluid simulator and the ns-3 exporter use the same draws, so both run the same flows.
"""

from __future__ import annotations

from math import inf

import numpy as np

from netctrl.scenario.result import HEADER_BYTES
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow, FlowDraw

HOSTS = 64
"""Largest number of different round-trip times in a group; ns-3 has a host for each."""

_WINDOW = 0.1
"""A trace's opportunities are single packets; the fluid has their means over so long [s]."""
_LEAST_SHARE = 0.05
"""Of a trace's mean rate: what the fluid has where there is no opportunity, as its delays need a rate above 0."""


def draw_flows(scenario: Scenario, *, merged: bool = True) -> tuple[FlowDraw, ...]:
    """Round-trip times, starts and stops of every flow, one FlowDraw per group, in the order of scenario.flows.

    Ranges are drawn from uniformly by stratified sampling, at most HOSTS different round-trip times a group.
    Each group has a random stream of its own, spawned from scenario.seed. With `merged`, groups with `classes` give
    one row a class, at the midpoints of equal parts of the ranges; without, one row a flow always.
    """
    streams = np.random.SeedSequence(scenario.seed).spawn(len(scenario.flows))
    return tuple(
        _draw(group, np.random.default_rng(stream), merged)
        for group, stream in zip(scenario.flows, streams, strict=True)
    )


def _draw(group: Flow, rng: np.random.Generator, merged: bool) -> FlowDraw:
    classes = group.classes if merged else None
    rows = classes or group.count
    hosts = rows if classes else min(rows, HOSTS)
    within = np.full(hosts, 0.5) if classes else rng.random(hosts)
    rtt = _spread(group.rtt, within)
    return FlowDraw(
        rtt_s=rng.permutation(rtt[np.arange(rows) % hosts]),
        start_s=_times(group.start, rows, classes, rng),
        stop_s=np.full(rows, inf) if group.stop is None else _times(group.stop, rows, classes, rng),
        flows=np.full(rows, group.count / rows),
    )


def _times(span: tuple[float, float], rows: int, classes: int | None, rng: np.random.Generator) -> np.ndarray:
    if classes:
        return rng.permutation(_spread(span, np.full(rows, 0.5)))
    return rng.uniform(*span, size=rows)


def _spread(span: tuple[float, float], within: np.ndarray) -> np.ndarray:
    """One value in each of len(within) equal parts of a range, `within` of the way through it."""
    low, high = span
    return low + (high - low) * (np.arange(len(within)) + within) / len(within)


def fluid_flows(scenario: Scenario, delivered: np.ndarray, rtt: np.ndarray) -> dict[str, np.ndarray]:
    """Series of flows in a fluid, which sends whole packets, (G, T): bytes with headers, payload, round trips [s]."""
    size = scenario.packet_size
    return {"delivered": size * delivered, "payload": (size - HEADER_BYTES) * delivered, "rtt": rtt}


def link_rates(scenario: Scenario, row: int, step: float, count: int) -> np.ndarray:
    """Capacity of a link in each of `count` steps, shape (count,) [bit/s]; all above 0."""
    if scenario.links[row].trace is None:
        return scenario.capacity_at(step * np.arange(1, count + 1))[row]
    windows = int(np.ceil(step * count / _WINDOW - 1e-9))
    rates = scenario.capacity_at(_WINDOW * np.arange(1, windows + 1))[row]
    places = (step / _WINDOW * np.arange(count) + 1e-9).astype(np.int64)
    return np.maximum(rates, _LEAST_SHARE * rates.mean())[np.minimum(places, windows - 1)]
