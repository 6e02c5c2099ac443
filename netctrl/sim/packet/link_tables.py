"""Tables of links that the packet engine serves by events: their queues, traces, loss and jitter."""

from __future__ import annotations

from math import inf

import numpy as np

from netctrl.errors import InvalidValue
from netctrl.laws.aqm.records import DrrQueue, FqCodelQueue, PrioQueue
from netctrl.model.link_trace import LinkTrace, TraceOfLink
from netctrl.scenario.tcp_aqm.scenario import Link, Scenario
from netctrl.sim.packet.laws import HEAD_STATES
from netctrl.sim.packet.served import DRR, FIFO, FQ, OPPORTUNITIES, PRIO, RATES
from netctrl.sim.packet.state import LINK, SUBQUEUE

__all__ = ["queue_tables", "trace_table"]

_MAX_QUEUES = 1 << 22
_SHARE = 2.0**53
_DISCIPLINES = {PrioQueue: PRIO, DrrQueue: DRR, FqCodelQueue: FQ}


def queue_tables(scenario: Scenario, link: np.ndarray, weight: np.ndarray, full: int) -> tuple[np.ndarray, np.ndarray]:
    """Queues of links that are served by events, and states of the laws at their heads; rows of links point to them.

    Parameters
    ----------
    scenario : Scenario
    link : ndarray
        Rows of links, which are changed.
    weight : ndarray, shape (F,)
        Of each flow.
    full : int
        A packet with its headers [byte].
    """
    quanta: list[np.ndarray] = []
    count = 0
    for number, (row, each) in enumerate(zip(link, scenario.links, strict=True)):
        row[LINK["loss"]], row[LINK["jitter"]] = round(each.loss * _SHARE), round(each.jitter * 1e9)
        row[LINK["discipline"]] = discipline = _DISCIPLINES.get(type(each.queue), FIFO)
        for name in ("new", "new_tail", "old", "old_tail"):
            row[LINK[name]] = -1
        if discipline or each.trace is not None or each.loss or each.jitter:
            row[LINK["served"]] = 1
        if row[LINK["served"]] == 0:
            continue
        if isinstance(each.queue, FqCodelQueue) and each.queue.buckets:
            salts = np.random.SeedSequence(scenario.seed, spawn_key=(1 << 21, number))
            row[LINK["salt"]] = int(salts.generate_state(1, np.uint64)[0] >> np.uint64(1)) | 1
        quanta.append(_quanta(each, weight, full))
        row[LINK["first"]], row[LINK["queues"]] = count, len(quanta[-1])
        count += len(quanta[-1])
        if count > _MAX_QUEUES:
            raise InvalidValue(f"links.{each.id}.queue", f"{count} queues", f"at most {_MAX_QUEUES} of all links")
    table = np.zeros((count, len(SUBQUEUE)), dtype=np.int64)
    table[:, SUBQUEUE["head"]] = table[:, SUBQUEUE["tail"]] = -1
    table[:, SUBQUEUE["quantum"]] = np.concatenate(quanta) if quanta else 0
    return table, np.zeros((count, HEAD_STATES))


def _quanta(link: Link, weight: np.ndarray, full: int) -> np.ndarray:
    """What each queue of a link may send in a round [byte]; a flow's data and acknowledgements have one queue each."""
    queue = link.queue
    if not isinstance(queue, DrrQueue | FqCodelQueue):
        return np.zeros(queue.bands if isinstance(queue, PrioQueue) else 1, dtype=np.int64)
    quantum = full if queue.quantum is None else queue.quantum
    if isinstance(queue, FqCodelQueue):
        return np.full(queue.buckets or 2 * len(weight), max(round(quantum), 1))
    return np.maximum(np.rint(quantum * np.repeat(weight, 2)), 1.0).astype(np.int64)


def trace_table(scenario: Scenario, link: np.ndarray) -> np.ndarray:
    """Steps of all links' traces; rows of links point to them, and are changed."""
    steps = [np.zeros((0, 2), dtype=np.int64)]
    for row, each in zip(link, scenario.links, strict=True):
        if each.trace is None:
            continue
        row[LINK["step"]] = sum(map(len, steps))
        steps.append(_steps(each.id, each.trace))
        row[LINK["steps"]] = len(steps[-1])
        row[LINK["trace"]] = OPPORTUNITIES if isinstance(each.trace, LinkTrace) else RATES
        if isinstance(each.trace, LinkTrace):
            row[LINK["slot"]] = row[LINK["left"]] = round(each.trace.packet_size_bytes)
            row[LINK["header"]] = round(each.trace.header_bytes)
    return np.concatenate(steps)


def _steps(name: str, trace: TraceOfLink) -> np.ndarray:
    """Times [ns] of opportunities, or ends of intervals and the rates until then [bit/s]."""
    if isinstance(trace, LinkTrace):
        return np.column_stack([np.rint(1e6 * trace.times_ms), np.zeros(len(trace.times_ms))]).astype(np.int64)
    rates = trace.rate_bit_per_s[:, 0]
    ends = np.rint(trace.interval_s * 1e9 * np.arange(1, len(rates) + 1))
    if np.diff(ends, prepend=0.0).min(initial=inf) < 1.0:
        raise InvalidValue(f"links.{name}.trace", trace.interval_s, "intervals of at least 1 ns")
    return np.column_stack([ends, np.rint(rates)]).astype(np.int64)
