"""What a kernel measured, as the result of a scenario of links and flows."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from netctrl.core.errors import NetctrlError
from netctrl.core.units import MICROSECOND, NANOSECOND
from netctrl.kernel.plan import ARRIVAL, OBJECT, TRANSFER, Answer
from netctrl.kernel.regulated.task import Left
from netctrl.kernel.scenarios.marker import MARKS
from netctrl.kernel.scenarios.planner import KernelPlan, payload_share
from netctrl.linux.kernel.messages import read_qdisc
from netctrl.linux.kernel.queue_options import queue_counts
from netctrl.model.io.provenance import Provenance
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.offers import Web

_READING_HEAD, _NETLINK_HEAD = 12, 16


def simulation_result(
    scenario: Scenario,
    plan: KernelPlan,
    results: Sequence[tuple[int, bytes]],
    version: str,
    provenance: Provenance,
    left: Left | None = None,
) -> Result:
    """Result of a run.

    Parameters
    ----------
    scenario, plan : Scenario, KernelPlan
    results : sequence of (int, bytes)
        From `netctrl.kernel.boot.run_plan`.
    version : str
        Of the kernel.
    provenance : Provenance
    left : Left, optional
        What the program has left that sends regulated flows.

    Raises
    ------
    NetctrlError
        Readings are missing.
    """
    links = _links(plan, [body for kind, body in results if kind == Answer.READING])
    _add_marks(plan, links, [body for kind, body in results if kind == Answer.SAID])
    sent, packets, drops, backlog, marks, probability = np.moveaxis(links, 2, 0).transpose(0, 2, 1)
    # Disciplines count drops and marks in packets; taken to be as long as those sent.
    length = sent[:, -1:] / np.maximum(packets[:, -1:], 1.0)
    length = np.where(packets[:, -1:] > 0.0, length, scenario.packet_size)
    departed, lost, marked = (np.diff(each, axis=1, prepend=0.0) for each in (sent, drops * length, marks * length))
    carried, rtt, window = _transfers(scenario, plan, results)
    one_way, jitter = _arrivals(scenario, plan, results, carried)
    if left is not None:
        _add_regulated(plan, left, carried, one_way, jitter)
    objects = _objects(scenario, results, carried)
    acked, sent, again = _flow_totals(plan, results)
    groups = np.array(plan.flows, dtype=np.int64)
    count = len(scenario.flows)
    return Result.of_series(
        scenario,
        f"kernel-{version}",
        provenance,
        links={
            "backlog": backlog,
            "arrived": departed + lost + np.diff(backlog, axis=1, prepend=0.0),
            "departed": departed,
            "lost": lost,
            "marked": marked,
            "probability": probability,
        },
        header=scenario.packet_size * (1.0 - payload_share(scenario.packet_size)),
        flows={"payload": carried, "rtt": rtt, "window": window, "one_way": one_way, "jitter": jitter},
        totals={"sent": np.bincount(groups, sent, count), "resent": np.bincount(groups, again, count)},
        tables={
            "transfers": {
                "flow": objects["group"].astype(np.int64),
                "start": objects["asked_ns"] * NANOSECOND,
                "size": objects["bytes"].astype(float),
                "duration": (objects["at_ns"] - objects["asked_ns"]) * NANOSECOND,
            },
            "connections": {
                "flow": groups,
                "start": np.array(plan.starts),
                "read": acked,
                "sent": sent,
                "resent": again,
            },
        },
    )


def _flow_totals(plan: KernelPlan, results: Sequence[tuple[int, bytes]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Payload acknowledged, sent, and sent again by each TCP flow at its last reading, each (F,) [byte]."""
    totals = np.zeros((3, len(plan.flows)))
    for row in joined(results, Answer.TRANSFER, TRANSFER):
        totals[:, row["flow"]] = row["acked"], row["sent"], row["resent"]
    acked, sent, again = totals
    # a connection's SYN and FIN are acknowledged like a byte each
    return np.minimum(np.maximum(acked - 1.0, 0.0), sent - again), sent, again


def _links(plan: KernelPlan, readings: Sequence[bytes]) -> np.ndarray:
    """Bytes, packets, drops, backlog [byte], marks, probability: (T, L, 6); what a wire loses counts as a drop."""
    kinds = [*plan.kinds, *("netem" for _ in plan.lossy)]
    count = plan.samples * len(kinds)
    if len(readings) != count:
        raise NetctrlError(f"the kernel left {len(readings)} of {count} readings of queues")
    rows = []
    for number, body in enumerate(readings):
        queue = read_qdisc(body[_READING_HEAD + _NETLINK_HEAD :])
        wanted = kinds[number % len(kinds)]
        if queue.kind != wanted:
            raise NetctrlError(f"the kernel reported a queue {queue.kind} where {wanted} was put")
        seen, own = queue.counters, queue_counts(queue.kind, queue.xstats)
        rows.append((seen.bytes, seen.packets, seen.drops, seen.backlog_bytes, own.marked, own.probability))
    found = np.array(rows, dtype=float).reshape(plan.samples, len(kinds), 6)
    links, wires = np.split(found, [len(plan.kinds)], axis=1)
    for k, wire in zip(plan.lossy, np.moveaxis(wires, 1, 0), strict=True):
        own, lost = links[:, k], wire[:, 2]
        own[:, 0] -= own[:, 0] / np.maximum(own[:, 1], 1.0) * lost
        own[:, 1] -= lost
        own[:, 2] += lost
    return links


def _add_marks(plan: KernelPlan, links: np.ndarray, said: Sequence[bytes]) -> None:
    """What the markers in front of queues marked and dropped, and their probability."""
    found = {struct.unpack_from("=I", body)[0]: body for body in said}
    if missing := set(range(len(plan.marked))) - set(found):
        raise NetctrlError(f"{len(missing)} of {len(plan.marked)} markers have not left their counts")
    for number in range(len(plan.marked)):  # other programs are prepared after them
        body = found[number]
        rows: np.ndarray = np.frombuffer(body, MARKS, offset=4)
        if len(rows) != plan.samples:
            raise NetctrlError(f"a marker left {len(rows)} of {plan.samples} samples")
        own = links[:, plan.marked[number]]
        own[:, 2] += rows["dropped"]
        own[:, 4], own[:, 5] = rows["marked"], rows["probability"]


def joined(results: Sequence[tuple[int, bytes]], kind: int, form: np.dtype) -> np.ndarray:
    """All results of one kind, in their order."""
    return np.frombuffer(b"".join(body for each, body in results if each == kind), form)


def _transfers(
    scenario: Scenario, plan: KernelPlan, results: Sequence[tuple[int, bytes]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Data acknowledged [byte], and means of the smoothed round trips [s] and of the windows [byte], all (G, T)."""
    shape = len(scenario.flows), plan.samples
    carried, total, windows, count = (np.zeros(shape) for _ in range(4))
    rows = joined(results, Answer.TRANSFER, TRANSFER)
    edges = scenario.interval * np.arange(plan.samples + 1)
    sample = np.rint(rows["at_ns"] * NANOSECOND / scenario.interval).astype(int) - 1
    for number, group in enumerate(plan.flows):
        chosen = rows["flow"] == number
        at, acked, rtt = sample[chosen], rows["acked"][chosen].astype(float), rows["rtt_us"][chosen]
        window = scenario.packet_size * rows["window"][chosen]
        level = np.interp(edges[1:], edges[at + 1], acked, left=0.0) if len(at) else np.zeros(plan.samples)
        carried[group] += np.diff(np.maximum.accumulate(level), prepend=0.0)
        np.add.at(total[group], at[rtt > 0], rtt[rtt > 0] * MICROSECOND)
        np.add.at(windows[group], at[rtt > 0], window[rtt > 0])
        np.add.at(count[group], at[rtt > 0], 1.0)
    known = count > 0.0
    trips = np.divide(total, count, out=np.zeros(shape), where=known)
    return carried, trips, np.divide(windows, count, out=np.full(shape, np.nan), where=known)


def _arrivals(
    scenario: Scenario, plan: KernelPlan, results: Sequence[tuple[int, bytes]], carried: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean time from the first queue, and mean difference from the flow's previous packet [s], both (G, T).

    Payloads are added to `carried`.
    """
    shape = len(scenario.flows), plan.samples
    delay, change, count, pairs = (np.zeros(shape) for _ in range(4))
    rows = joined(results, Answer.ARRIVALS, ARRIVAL)
    rows = rows[rows["at_ns"] * NANOSECOND <= scenario.interval * plan.samples]
    for stream, (group, times) in enumerate(plan.streams):
        found = rows[rows["stream"] == stream]
        at = found["at_ns"] * NANOSECOND
        sample = np.minimum((at / scenario.interval).astype(int), plan.samples - 1)
        taken = at - times[found["number"]]
        np.add.at(carried[group], sample, found["bytes"].astype(float))
        np.add.at(delay[group], sample, taken)
        np.add.at(count[group], sample, 1.0)
        np.add.at(change[group], sample[1:], np.abs(np.diff(taken)))
        np.add.at(pairs[group], sample[1:], 1.0)
    mean = np.divide(delay, count, out=np.full(shape, np.nan), where=count > 0.0)
    return mean, np.divide(change, pairs, out=np.full(shape, np.nan), where=pairs > 0.0)


def _add_regulated(plan: KernelPlan, left: Left, carried: np.ndarray, one_way: np.ndarray, jitter: np.ndarray) -> None:
    """The same of flows that a program sends."""
    for each, series in zip(plan.regulated, left.series, strict=True):
        payload, packets, delays, changes, pairs = series.T
        carried[each.group] += payload
        np.divide(delays, packets, out=one_way[each.group], where=packets > 0.0)
        np.divide(changes, pairs, out=jitter[each.group], where=pairs > 0.0)


def _objects(scenario: Scenario, results: Sequence[tuple[int, bytes]], carried: np.ndarray) -> np.ndarray:
    """Objects that came within the time; those of Web sessions are added to `carried`, when their last byte came."""
    rows = joined(results, Answer.OBJECT, OBJECT)
    rows = rows[rows["at_ns"] * NANOSECOND <= scenario.interval * carried.shape[1]]
    sample = np.minimum((rows["at_ns"] * NANOSECOND / scenario.interval).astype(int), carried.shape[1] - 1)
    for number, group in enumerate(scenario.flows):
        if isinstance(group.offers, Web):
            chosen = rows["group"] == number
            np.add.at(carried[number], sample[chosen], rows["bytes"][chosen].astype(float))
    return rows
