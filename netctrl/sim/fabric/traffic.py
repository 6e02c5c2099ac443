"""A data centre's flows: those of the scenario, Poisson arrivals and incast, drawn before the run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from netctrl.errors import InvalidValue
from netctrl.scenario.fabric.flow_sizes import flow_size, mean_flow_size
from netctrl.scenario.fabric.flows import IncastFlows, MessageFlows, PoissonFlows
from netctrl.scenario.scenario import Scenario
from netctrl.units import BITS_PER_BYTE

_NS = 1e9
_MAX_FLOWS = 20_000_000


class FlowTable(NamedTuple):
    """F flows in order of their start; whole numbers."""

    source: np.ndarray
    target: np.ndarray
    size: np.ndarray
    """Payload [byte]."""
    start: np.ndarray
    """[ns]"""
    flow: np.ndarray
    """Index of its group in the scenario."""


def draw_fabric_flows(scenario: Scenario) -> FlowTable:
    """All flows of a scenario. Poisson arrivals and incasts have separate random streams.

    Among flows that start at the same time, messages come first, then Poisson arrivals, then incasts.

    Raises
    ------
    InvalidValue
        Too many flows for memory.
    """
    net, end = scenario.network, scenario.duration
    messages, poisson, incasts = (
        [(place, group) for place, group in enumerate(scenario.flows) if isinstance(group, kind)]
        for kind in (MessageFlows, PoissonFlows, IncastFlows)
    )
    arrivals, chosen, _ = np.random.SeedSequence(scenario.seed).spawn(3)
    parts = [_given(messages)]
    parts += [
        _poisson(*each, rng, net.hosts, net.host_rate, end)
        for each, rng in zip(poisson, _streams(arrivals), strict=False)
    ]
    parts += [_incast(*each, rng, net.hosts, end) for each, rng in zip(incasts, _streams(chosen), strict=False)]
    whole = FlowTable(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    order = np.argsort(whole.start, kind="stable")
    return FlowTable(*(column[order] for column in whole))


def _streams(first: np.random.SeedSequence) -> Iterator[np.random.Generator]:
    """For one group after the other."""
    yield np.random.default_rng(first)
    while True:
        yield np.random.default_rng(*first.spawn(1))


def _given(groups: list[tuple[int, MessageFlows]]) -> FlowTable:
    rows = [(*ends, each.size, each.start * _NS, place) for place, each in groups for ends in each.ends]
    return FlowTable(*np.rint(np.array(rows).reshape(-1, 5)).astype(np.int64).T)


def _poisson(
    place: int, flows: PoissonFlows, rng: np.random.Generator, hosts: int, rate: float, end: float
) -> FlowTable:
    """Arrivals in [0, stop) of all hosts together: their number is Poisson, their times are even."""
    stop = end if flows.stop is None else min(flows.stop, end)
    per_second = hosts * flows.load * rate / (BITS_PER_BYTE * mean_flow_size(flows.sizes))
    if per_second * stop > _MAX_FLOWS:
        takes = f"a lower load, larger flows or a shorter duration: at most {_MAX_FLOWS} flows"
        raise InvalidValue(f"flows.{flows.id}.load", flows.load, takes)
    count = int(rng.poisson(per_second * stop))
    start = np.sort((rng.random(count) * stop * _NS).astype(np.int64))
    source = rng.integers(hosts, size=count)
    target = (source + rng.integers(1, hosts, size=count)) % hosts
    size = np.maximum(np.rint(flow_size(flows.sizes, rng.random(count))).astype(np.int64), 1)
    return FlowTable(source, target, size, start, np.full(count, place))


def _incast(place: int, incast: IncastFlows, rng: np.random.Generator, hosts: int, end: float) -> FlowTable:
    if (end - incast.start) / incast.interval * incast.senders > _MAX_FLOWS:
        takes = f"a longer interval, fewer senders or a shorter duration: at most {_MAX_FLOWS} flows"
        raise InvalidValue(f"flows.{incast.id}.interval", incast.interval, takes)
    times = np.arange(incast.start, end, incast.interval)
    order = np.empty((len(times), incast.senders + 1), dtype=np.int64)
    for row in order:
        row[:] = rng.permutation(hosts)[: incast.senders + 1]
    source = order[:, 1:].ravel()
    target = np.repeat(order[:, 0], incast.senders)
    start = np.repeat(np.rint(times * _NS).astype(np.int64), incast.senders)
    size = np.full(len(source), round(incast.size), dtype=np.int64)
    return FlowTable(source, target, size, start, np.full(len(source), place))
