"""A data centre's flows: those of the scenario, Poisson arrivals and incast, drawn before the run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.core.units import BITS_PER_BYTE
from netctrl.scenario.fabric.flow_sizes import flow_size, mean_flow_size
from netctrl.scenario.fabric.flows import ends_of
from netctrl.scenario.fabric.plan import Transfers
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Incast, Sizes

_NS = 1e9
_MAX_FLOWS = 20_000_000


def draw_fabric_flows(scenario: Scenario) -> Transfers:
    """All flows of a scenario. Arrivals of sizes and incasts have separate random streams.

    Among flows that start at the same time, those of given hosts come first, then arrivals of sizes, then incasts.

    Raises
    ------
    InvalidValue
        Too many flows for memory.
    """
    net, end = scenario.network, scenario.duration
    given, sizes, incasts = (
        [(place, flow) for place, flow in enumerate(scenario.flows) if isinstance(flow.offers, kind)]
        for kind in (float, Sizes, Incast)
    )
    arrivals, chosen, _ = np.random.SeedSequence(scenario.seed).spawn(3)
    parts = [_given(given)]
    parts += [
        _sizes(*each, rng, net.hosts, net.host_rate, end) for each, rng in zip(sizes, _streams(arrivals), strict=False)
    ]
    parts += [_incast(*each, rng, net.hosts, end) for each, rng in zip(incasts, _streams(chosen), strict=False)]
    whole = Transfers(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    order = np.argsort(whole.start, kind="stable")
    return Transfers(*(column[order] for column in whole))


def _streams(first: np.random.SeedSequence) -> Iterator[np.random.Generator]:
    """For one group after the other."""
    yield np.random.default_rng(first)
    while True:
        yield np.random.default_rng(*first.spawn(1))


def _given(flows: list[tuple[int, Flow]]) -> Transfers:
    rows = [(*ends, flow.offers, flow.start[0] * _NS, place) for place, flow in flows for ends in ends_of(flow)]
    return Transfers(*np.rint(np.array(rows).reshape(-1, 5)).astype(np.int64).T)


def _sizes(place: int, flow: Flow, rng: np.random.Generator, hosts: int, rate: float, end: float) -> Transfers:
    """Arrivals in [start, stop) of all hosts together: their number is Poisson, their times are even."""
    offers, first, stop = flow.offers, flow.start[0], end if flow.stop is None else min(flow.stop[0], end)
    per_second = hosts * offers.load * rate / (BITS_PER_BYTE * mean_flow_size(offers.distribution))
    if per_second * (stop - first) > _MAX_FLOWS:
        takes = f"a lower load, larger flows or a shorter duration: at most {_MAX_FLOWS} flows"
        raise InvalidValue(f"flows.{flow.id}.offers.load", offers.load, takes)
    count = int(rng.poisson(per_second * max(stop - first, 0.0)))
    start = np.sort(((first + rng.random(count) * (stop - first)) * _NS).astype(np.int64))
    source = rng.integers(hosts, size=count)
    target = (source + rng.integers(1, hosts, size=count)) % hosts
    size = np.maximum(np.rint(flow_size(offers.distribution, rng.random(count))).astype(np.int64), 1)
    return Transfers(source, target, size, start, np.full(count, place))


def _incast(place: int, flow: Flow, rng: np.random.Generator, hosts: int, end: float) -> Transfers:
    incast, first, stop = flow.offers, flow.start[0], end if flow.stop is None else min(flow.stop[0], end)
    if (stop - first) / incast.interval * incast.senders > _MAX_FLOWS:
        takes = f"a longer interval, fewer senders or a shorter duration: at most {_MAX_FLOWS} flows"
        raise InvalidValue(f"flows.{flow.id}.offers.interval", incast.interval, takes)
    times = np.arange(first, stop, incast.interval)
    order = np.empty((len(times), incast.senders + 1), dtype=np.int64)
    for row in order:
        row[:] = rng.permutation(hosts)[: incast.senders + 1]
    source = order[:, 1:].ravel()
    target = np.repeat(order[:, 0], incast.senders)
    start = np.repeat(np.rint(times * _NS).astype(np.int64), incast.senders)
    size = np.full(len(source), round(incast.size), dtype=np.int64)
    return Transfers(source, target, size, start, np.full(len(source), place))
