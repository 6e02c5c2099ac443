"""Links as the packet engine's tables: rates, buffers, laws; of those served by events queues, traces, loss, jitter."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.core.units import BITS_PER_BYTE
from netctrl.laws.aqm.codel import CodelParameters
from netctrl.laws.aqm.fluid import FIRST, STATES, epoch_of, law_of
from netctrl.laws.aqm.records import law_record
from netctrl.laws.disciplines import (
    CakeQueue,
    CbqQueue,
    DrrQueue,
    FqCodelQueue,
    FqPieQueue,
    KernelQueue,
    PrioQueue,
    WfqQueue,
    queue_in,
)
from netctrl.laws.l4s.dualpi2 import DualPi2Queue, DualPi2State, dualpi2_state
from netctrl.laws.record import width
from netctrl.laws.targets.pie_law import PieLaw
from netctrl.laws.targets.pie_packets import PacketPie, pie_on_packets, pie_row
from netctrl.model.link_trace import LinkTrace, TraceOfLink
from netctrl.scenario.fabric.pfc import Pfc
from netctrl.scenario.links import Link, impairments
from netctrl.sim.packet.links.laws import HEAD_STATES
from netctrl.sim.packet.links.links import BY_ARRIVAL, BY_EPOCH, BY_EPOCH_AT_HEAD
from netctrl.sim.packet.links.pie import BY_PIE
from netctrl.sim.packet.links.served import CAKE, CBQ, DRR, DUAL, FIFO, FQ, PRIO, TAG, WEIGHT, WFQ
from netctrl.sim.packet.links.trace import NANOBITS, OPPORTUNITIES, RATES
from netctrl.sim.packet.senders.receiver import ACK_BYTES
from netctrl.sim.packet.state import LINK, SHARE, SUBQUEUE

Queues = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Rows of links, and states and parameters of their laws."""
_NS = 1e9
_UNLIMITED = 1 << 60
_MAX_EPOCH_S = 500.0

_MAX_QUEUES = 1 << 22
_DISCIPLINES = {
    DualPi2Queue: DUAL,
    PrioQueue: PRIO,
    CbqQueue: CBQ,
    WfqQueue: WFQ,
    DrrQueue: DRR,
    FqCodelQueue: FQ,
    FqPieQueue: FQ,
    CakeQueue: CAKE,
}
_HEADS = max(HEAD_STATES, width(DualPi2State), width(PacketPie))


class Line(NamedTuple):
    """A link of a network; what of `netctrl.scenario.links.Link` its tables need."""

    id: str
    capacity: float
    delay: float
    buffer: float | None
    queue: Any
    trace: None = None
    loss: float = 0.0
    loss_run: None = None
    jitter: float = 0.0
    reorder: bool = False
    spread: str = "uniform"
    aggregation: float = 0.0
    policer: None = None
    pfc: Pfc | None = None


def link_tables(links: Sequence[Link | Line], full: int) -> Queues:
    """Links with nothing on them.

    Raises
    ------
    InvalidValue
        A value that the engine can't hold: its name in the scenario.
    """
    link = np.zeros((len(links), len(LINK)), dtype=np.int64)
    for name in ("head", "tail", "wait"):
        link[:, LINK[name]] = -1
    parameters = []
    for row, each in zip(link, links, strict=True):
        number, values = _law(each, float(full))
        parameters.append(values)
        row[LINK["law"]] = number
        row[LINK["buffer"]] = _UNLIMITED if each.buffer is None else round(each.buffer)
        if isinstance(each.queue, CakeQueue):
            values[FIRST : FIRST + len(CodelParameters._fields)] = each.queue.times(full)
        if isinstance(each.queue, KernelQueue):
            row[LINK["buffer"]] = min(row[LINK["buffer"]], pie_on_packets(each.queue.parameters).limit * full)
        rate = whole_rate(f"links.{each.id}.capacity", each.capacity, full)
        row[LINK["rate"]], row[LINK["delay"]], row[LINK["round"]] = rate, round(each.delay * _NS), rate // 2
        row[LINK["full"]], row[LINK["ack"]] = full, ACK_BYTES
        for size, name in ((full, "tx_full"), (ACK_BYTES, "tx_ack")):
            row[LINK[name]] = wire_time(size, rate)
        _decide_when(row, each)
    return link, np.zeros((len(link), STATES)), np.array(parameters)


def _decide_when(row: np.ndarray, link: Link | Line) -> None:
    """When the law of a link's queue decides, in its row."""
    law, epoch = law_record(queue_in(link.queue)), epoch_of(queue_in(link.queue))
    if law is not None and law.head is not None:
        row[LINK["served"]] = 1
    elif law is not None:
        row[LINK["decides"]] = BY_ARRIVAL if epoch is None else BY_EPOCH
    elif isinstance(link.queue, DualPi2Queue):
        row[LINK["decides"]], epoch = BY_EPOCH_AT_HEAD, link.queue.update
    elif (pie := _pie_of(link.queue)) is not None:
        row[LINK["decides"]], row[LINK["served"]], epoch = BY_PIE, 1, pie.update_s
    if row[LINK["decides"]] >= BY_EPOCH and epoch is not None:
        row[LINK["epoch"]] = max(nanoseconds(f"links.{link.id}.queue", epoch, _MAX_EPOCH_S), 1)


def _pie_of(queue: Any) -> PieLaw | None:
    """Linux's PIE in the queues of a link."""
    if isinstance(queue, FqPieQueue):
        return pie_on_packets(queue.sent)
    return pie_on_packets(queue.parameters) if isinstance(queue, KernelQueue) else None


def _law(link: Link | Line, packet_size: float) -> tuple[int, np.ndarray]:
    try:
        return law_of(queue_in(link.queue), packet_size, link.buffer)
    except InvalidValue as error:
        raise InvalidValue(f"links.{link.id}.{error.argument}", error.got, error.takes) from None


def nanoseconds(name: str, seconds: float, most: float = inf) -> int:
    """A time in whole nanoseconds; InvalidValue beyond `most` [s]."""
    if seconds > most:
        raise InvalidValue(name, seconds, f"at most {most:g} s, for the packet engine")
    return round(seconds * _NS)


def whole_rate(name: str, rate: float, full: int) -> int:
    """Whole bit/s, at which packets take from 1 ns to 100 s."""
    if not 1e-9 <= full * BITS_PER_BYTE / rate <= 100.0 or rate < 1.0:
        raise InvalidValue(name, float(rate), f"a rate at which a packet of {full} bytes takes from 1 ns to 100 s")
    return round(rate)


def wire_time(size: int, rate: int) -> int:
    """Time of so many bytes on a wire [ns], rounded."""
    return max((size * NANOBITS + rate // 2) // rate, 1)


def queue_tables(
    links: Sequence[Link | Line], link: np.ndarray, weight: np.ndarray, full: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Queues of links that are served by events, and states of the laws at their heads; rows of links point to them.

    Parameters
    ----------
    links : sequence of Link or Line
    link : ndarray
        Rows of links, which are changed.
    weight : ndarray, shape (F,)
        Of each flow.
    full : int
        A packet with its headers [byte].
    seed : int
        Of hashes.
    """
    quanta, heads = [np.zeros(0, dtype=np.int64)], [np.zeros((0, _HEADS))]
    count = 0
    for number, (row, each) in enumerate(zip(link, links, strict=True)):
        row[LINK["discipline"]] = discipline = _DISCIPLINES.get(type(each.queue), FIFO)
        for name in ("new", "new_tail", "old", "old_tail"):
            row[LINK[name]] = -1
        _impair(row, each)
        if discipline or each.trace is not None or impairments(each):
            row[LINK["served"]] = 1
        if row[LINK["served"]] == 0:
            continue
        if isinstance(each.queue, FqCodelQueue | FqPieQueue) and each.queue.buckets:
            salts = np.random.SeedSequence(seed, spawn_key=(1 << 21, number))
            row[LINK["salt"]] = int(salts.generate_state(1, np.uint64)[0] >> np.uint64(1)) | 1
        quanta.append(_quanta(each, weight, full))
        heads.append(np.zeros((len(quanta[-1]), _HEADS)))
        row[LINK["first"]], row[LINK["queues"]] = count, len(quanta[-1])
        if isinstance(each.queue, DualPi2Queue):
            heads[-1][0, : width(DualPi2State)] = dualpi2_state(each.queue, float(full))
        elif (pie := _pie_of(each.queue)) is not None:
            heads[-1][:, : width(PacketPie)] = pie_row(pie, float(full))
        if discipline in (CBQ, WFQ):
            row[LINK["queues"]] -= 1
            heads[-1][:-1, TAG] = inf
            heads[-1][:-1, WEIGHT] = each.queue.shares if discipline == CBQ else np.repeat(weight, 2)
        count += len(quanta[-1])
        if count > _MAX_QUEUES:
            raise InvalidValue(f"links.{each.id}.queue", f"{count} queues", f"at most {_MAX_QUEUES} of all links")
    table = np.zeros((count, len(SUBQUEUE)), dtype=np.int64)
    table[:, SUBQUEUE["head"]] = table[:, SUBQUEUE["tail"]] = -1
    table[:, SUBQUEUE["quantum"]] = np.concatenate(quanta)
    return table, np.concatenate(heads)


def _impair(row: np.ndarray, link: Link | Line) -> None:
    """What a link does to packets, in its row."""
    share, run = link.loss, 0.0
    if link.loss_run is not None:
        share, run = link.loss / (link.loss_run * (1.0 - link.loss)), 1.0 / link.loss_run
    row[LINK["loss"]], row[LINK["run"]] = round(share * SHARE), round(run * SHARE)
    jitter = 2 * round(link.jitter * _NS) + (link.spread == "normal")
    row[LINK["jitter"]] = -jitter if link.reorder else jitter
    row[LINK["bunch"]] = round(link.aggregation * _NS)


def _quanta(link: Link | Line, weight: np.ndarray, full: int) -> np.ndarray:
    """What each queue of a link may send in a round [byte], 0 where there are none; of fair links one more row.

    A flow's data and acknowledgements have one queue each.
    """
    queue = link.queue
    if not isinstance(queue, DrrQueue | FqCodelQueue | FqPieQueue | CakeQueue):
        rows = 1
        if isinstance(queue, DualPi2Queue):
            rows = 2
        elif isinstance(queue, PrioQueue):
            rows = queue.bands
        elif isinstance(queue, WfqQueue | CbqQueue):
            rows = 1 + (2 * len(weight) if isinstance(queue, WfqQueue) else len(queue.shares))
        return np.zeros(rows, dtype=np.int64)
    quantum = full if queue.quantum is None else queue.quantum
    if not isinstance(queue, DrrQueue):
        buckets = 0 if isinstance(queue, CakeQueue) else queue.buckets
        return np.full(buckets or 2 * len(weight), max(round(quantum), 1))
    return np.maximum(np.rint(quantum * np.repeat(weight, 2)), 1.0).astype(np.int64)


def trace_table(links: Sequence[Link | Line], link: np.ndarray) -> np.ndarray:
    """Steps of all links' traces, and policers; rows of links point to them, and are changed."""
    steps = [np.zeros((0, 2), dtype=np.int64)]
    for row, each in zip(link, links, strict=True):
        if each.policer is not None:
            row[LINK["police"]] = 1 + sum(map(len, steps))
            depth = nanoseconds(f"links.{each.id}.policer", BITS_PER_BYTE * each.policer.burst / each.policer.rate, 1e6)
            steps.append(np.array([[max(round(each.policer.rate), 1), depth], [0, 0]]))
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
