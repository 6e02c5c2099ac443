"""A data centre's flows: those of the scenario, Poisson arrivals and incast, drawn before the run."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.errors import InvalidValue
from netctrl.scenario.fabric.flow_sizes import flow_size, mean_flow_size
from netctrl.scenario.fabric.scenario import FabricScenario, Incast, PoissonFlows
from netctrl.units import BITS_PER_BYTE

__all__ = ["FlowTable", "draw_fabric_flows"]

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
    incast: np.ndarray
    """Whether it is part of an incast."""


def draw_fabric_flows(scenario: FabricScenario) -> FlowTable:
    """All flows of a scenario. Poisson arrivals and incasts have streams of their own: one doesn't move the other.

    Raises
    ------
    InvalidValue
        More flows than memory should hold.
    """
    hosts, end = scenario.topology.hosts, scenario.duration
    streams = np.random.SeedSequence(scenario.seed).spawn(3)
    parts = [_given(scenario)]
    if scenario.poisson is not None:
        parts.append(
            _poisson(scenario.poisson, hosts, scenario.topology.host_rate, end, np.random.default_rng(streams[0]))
        )
    if scenario.incast is not None:
        parts.append(_incast(scenario.incast, hosts, end, np.random.default_rng(streams[1])))
    whole = FlowTable(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    order = np.argsort(whole.start, kind="stable")
    return FlowTable(*(column[order] for column in whole))


def _given(scenario: FabricScenario) -> FlowTable:
    rows = np.array([(f.source, f.target, f.size, f.start * _NS) for f in scenario.flows]).reshape(-1, 4)
    source, target, size, start = np.rint(rows).astype(np.int64).T
    return FlowTable(source, target, size, start, np.zeros(len(rows), dtype=bool))


def _poisson(flows: PoissonFlows, hosts: int, rate: float, end: float, rng: np.random.Generator) -> FlowTable:
    """Arrivals in [0, stop) of all hosts together: their number is Poisson, their times are even."""
    stop = end if flows.stop is None else min(flows.stop, end)
    per_second = hosts * flows.load * rate / (BITS_PER_BYTE * mean_flow_size(flows.sizes))
    if per_second * stop > _MAX_FLOWS:
        takes = f"a lower load, larger flows or a shorter duration: at most {_MAX_FLOWS} flows"
        raise InvalidValue("poisson.load", flows.load, takes)
    count = int(rng.poisson(per_second * stop))
    start = np.sort((rng.random(count) * stop * _NS).astype(np.int64))
    source = rng.integers(hosts, size=count)
    target = (source + rng.integers(1, hosts, size=count)) % hosts
    size = np.maximum(np.rint(flow_size(flows.sizes, rng.random(count))).astype(np.int64), 1)
    return FlowTable(source, target, size, start, np.zeros(count, dtype=bool))


def _incast(incast: Incast, hosts: int, end: float, rng: np.random.Generator) -> FlowTable:
    if (end - incast.start) / incast.interval * incast.senders > _MAX_FLOWS:
        takes = f"a longer interval, fewer senders or a shorter duration: at most {_MAX_FLOWS} flows"
        raise InvalidValue("incast.interval", incast.interval, takes)
    times = np.arange(incast.start, end, incast.interval)
    order = np.empty((len(times), incast.senders + 1), dtype=np.int64)
    for row in order:
        row[:] = rng.permutation(hosts)[: incast.senders + 1]
    source = order[:, 1:].ravel()
    target = np.repeat(order[:, 0], incast.senders)
    start = np.repeat(np.rint(times * _NS).astype(np.int64), incast.senders)
    size = np.full(len(source), round(incast.size), dtype=np.int64)
    return FlowTable(source, target, size, start, np.ones(len(source), dtype=bool))
