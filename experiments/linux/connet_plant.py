"""CONNET's plant in the kernel: three bursty sources behind tbf regulators, one tbf bottleneck with a FIFO, premium CBR.

All in namespaces of one machine, so that one clock stamps both ends of the premium flow: the sender's in the packet,
the kernel's on arrival (SO_TIMESTAMPNS). Re-applying tbf's rate refills its bucket, so buckets are small, a change below
the dead-band isn't made, and a period is half a second.
"""

from __future__ import annotations

import heapq
import os
import socket
import struct
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from netctrl.linux.netlink import ROOT, Counters
from netctrl.linux.testbed import Testbed
from netctrl.model.network import Link, Network
from netctrl.units import BITS_PER_BYTE

MEGA, MILLI, NS = 1e6, 1e-3, 10**9
HEADERS = 14 + 20 + 8
"""Ethernet, IP, UDP: tbf counts all of them [byte]."""
OPEN = 1e9
"""A regulator that regulates nothing [bit/s]."""
SOURCES = ("s1", "s2", "s3")
BOTTLENECK_BUCKET = 1600
"""A packet and half of one: a late timer loses little capacity, and packets wait as behind a wire [byte]."""
SINK_PORT, DROP_PORT = 5001, 5002
_SO_RCVBUFFORCE, _SO_TIMESTAMPNS = 33, 35
_STAMP = struct.Struct("=Qq")
_TIMESPEC = struct.Struct("=qq")
_LEAD_S = 0.2
_GRACE_S = 0.3  # what is in queues at the end arrives
_MOST_LATE_S = 0.05


@dataclass(frozen=True, slots=True)
class Plant:
    """What is built. Rates in bit/s of Ethernet frames, sizes in bytes of them."""

    capacity: float = 20e6
    buffer: int = 100_000
    """In the bottleneck."""
    offered: float = 10e6
    """By each source, in bursts of its flows after exponential pauses."""
    flows: int = 2
    """Of a source."""
    burst: int = 8
    """Packets that a flow sends at once."""
    size: int = 1042
    bucket: int = 8
    """Packets that a regulator lets through at once."""
    waiting: int = 3
    """Packets that may wait in it."""
    premium_rate: float = 1e6
    premium_size: int = 250
    interval: float = 0.5
    dead_band: float = 0.01
    """Share of the rate by which a change has to differ from it."""

    @property
    def bucket_bytes(self) -> int:
        return self.bucket * self.size + 1

    @property
    def waiting_bytes(self) -> int:
        return self.waiting * self.size + 1


class Sample(NamedTuple):
    """One period of the link."""

    rate: float
    """Of all regulators together [Mbit/s]."""
    delay_ms: float
    """Mean over the premium packets that arrived."""
    jitter_ms: float
    """Mean distance of a packet's delay from that of the one before."""
    received: int
    lost: int
    """Premium packets by numbers that are missing."""
    other_mbit_s: float
    """What the bottleneck sent of the sources' traffic."""
    late_ms: float
    """The loop, at the period's end."""
    change_us: float
    """One change of a regulator's rate, mean; 0: none was made."""


class Books(NamedTuple):
    """Packets of a whole run, once nothing is under way."""

    sent: tuple[int, ...]
    """By each source."""
    premium_sent: int
    premium_received: int
    regulators: tuple[Counters, ...]
    bottleneck: Counters


def network(plant: Plant) -> Network:
    """Sources and the premium sender at a router, a bottleneck to the sink."""
    limit = plant.waiting_bytes
    links = [Link(source=name, target="r", id=f"{name}r", capacity=OPEN, buffer=limit) for name in SOURCES]
    links.append(Link(source="p", target="r", id="pr", capacity=OPEN))
    links.append(Link(source="r", target="h", id="rh", capacity=plant.capacity, buffer=plant.buffer))
    back = [Link(source=link.target, target=link.source, id=f"{link.id}.", capacity=OPEN) for link in links]
    return Network(links=(*links, *back))


def send_bursts(sockets: list[socket.socket], plant: Plant, seed: int, start: float, seconds: float) -> list[int]:
    """Send the traffic of all sources until it is time to end; returns packets sent by each."""
    random = np.random.default_rng(seed)
    payload = bytes(plant.size - HEADERS)
    period = plant.burst * plant.size * BITS_PER_BYTE / (plant.offered / plant.flows)
    sent = [0] * len(sockets)
    due = [(start + random.exponential(period), k) for k in range(len(sockets)) for _ in range(plant.flows)]
    heapq.heapify(due)
    end = start + seconds
    while due[0][0] < end:
        at, k = due[0]
        wait = at - time.monotonic()
        if wait > 0.0:
            time.sleep(wait)
        elif wait < -_MOST_LATE_S:  # what a machine that stood still has missed isn't sent at once
            at = at - wait
        for _ in range(plant.burst):
            try:
                sockets[k].send(payload)
                sent[k] += 1
            except (BlockingIOError, ConnectionRefusedError):
                continue
        heapq.heapreplace(due, (at + random.exponential(period), k))
    return sent


def send_evenly(out: socket.socket, plant: Plant, start: float, seconds: float) -> int:
    """Send numbered, stamped premium packets until it is time to end; returns how many."""
    gap = plant.premium_size * BITS_PER_BYTE / plant.premium_rate
    packet = bytearray(plant.premium_size - HEADERS)
    number, end = 0, start + seconds
    at = start
    while at < end:
        wait = at - time.monotonic()
        if wait > 0.0:
            time.sleep(wait)
        elif wait < -_MOST_LATE_S:
            at = at - wait
        _STAMP.pack_into(packet, 0, number, time.time_ns())
        try:
            out.send(packet)
            number += 1
        except (BlockingIOError, ConnectionRefusedError):
            pass
        at += gap
    return number


class KernelLink:
    """The plant at work for so many seconds: `advance` holds a rate for a period and says what came of it.

    Parameters
    ----------
    plant : Plant
    seconds : float
        How long sources send; `advance` may be called for so many periods.
    seed : int
        Of the bursts.
    """

    def __init__(self, plant: Plant, seconds: float, seed: int) -> None:
        self.plant, self.seconds, self.seed = plant, seconds, seed
        self.failed: frozenset[int] = frozenset()
        self._held = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as held:
            self._build(held)
            self._held = held.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def _build(self, held: ExitStack) -> None:
        plant = self.plant
        self.bed = bed = held.enter_context(Testbed(network(plant), burst_bytes=self._buckets()))
        self._regulators = [held.enter_context(bed.route_socket(name)) for name in SOURCES]
        self._index = [bed.index(f"{name}r") for name in SOURCES]
        self._router, self._bottleneck = held.enter_context(bed.route_socket("r")), bed.index("rh")
        self._sink = held.enter_context(_listener(bed, SINK_PORT, 4 << 20))
        self._sink.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        held.enter_context(_listener(bed, DROP_PORT, 2048))  # nobody reads it, but the port is there: no ICMP
        senders = [held.enter_context(_sender(bed, name, DROP_PORT)) for name in SOURCES]
        premium = held.enter_context(_sender(bed, "p", SINK_PORT))
        start = time.monotonic() + _LEAD_S
        self._sources = bed.start("r", send_bursts, senders, plant, self.seed, start, self.seconds)
        self._premium = bed.start("p", send_evenly, premium, plant, start, self.seconds)
        self._end = time.time_ns() + int((start - time.monotonic()) * NS)
        self._began = self._end
        self._rates = [OPEN] * len(SOURCES)
        self._total = OPEN
        self._early: list[tuple[int, int, int]] = []
        self._last: tuple[int, float] | None = None
        self.received = 0
        self._sent_bytes = 0

    def _buckets(self) -> dict[str, float]:
        return {f"{name}r": self.plant.bucket_bytes for name in SOURCES} | {"rh": BOTTLENECK_BUCKET}

    def advance(self, rate: float = OPEN / MEGA) -> Sample:
        """One period with all regulators that work at `rate` together [Mbit/s]; by default open."""
        if self._end == self._began:  # sources begin when the first period does
            _sleep_until(self._end)
        change_us = self._regulate(rate * MEGA)
        begin, self._end = self._end, self._end + int(self.plant.interval * NS)
        _sleep_until(self._end)
        late = (time.time_ns() - self._end) / NS / MILLI
        return self._sample(self._arrived(self._end), (self._end - begin) / NS, late, change_us)

    def _regulate(self, wanted: float) -> float:
        """Change what has to change; mean time of a change [us]."""
        if abs(wanted - self._total) > self.plant.dead_band * self._total:
            self._total = wanted
        share = self._total if self._total >= OPEN else self._total / len(SOURCES)
        began, made = time.perf_counter(), 0
        for k, regulator in enumerate(self._regulators):
            rate = OPEN if k in self.failed else share
            if rate != self._rates[k]:
                plant = self.plant
                regulator.change_tbf(self._index[k], ROOT, 0x10000, rate, plant.bucket_bytes, plant.waiting_bytes)
                self._rates[k] = rate
                made += 1
        return (time.perf_counter() - began) / max(made, 1) * 1e6 if made else 0.0

    def _arrived(self, until: int) -> list[tuple[int, int, int]]:
        """(number, sent, arrived) of premium packets that the kernel stamped before `until` [ns]."""
        found = self._early
        while True:
            try:
                data, ancillary, _, _ = self._sink.recvmsg(_STAMP.size, 64)
            except BlockingIOError:
                break
            seconds, rest = _TIMESPEC.unpack(ancillary[0][2])
            found.append((*_STAMP.unpack(data), seconds * NS + rest))
        self._early = [each for each in found if each[2] >= until]
        return [each for each in found if each[2] < until]

    def _sample(self, packets: list[tuple[int, int, int]], seconds: float, late: float, change_us: float) -> Sample:
        numbers = np.array([each[0] for each in packets], dtype=np.int64)
        delays = np.array([(each[2] - each[1]) / NS / MILLI for each in packets])
        before, self._last = self._last, (int(numbers[-1]), float(delays[-1])) if packets else self._last
        chain = delays if before is None else np.concatenate([[before[1]], delays])
        first = -1 if before is None else before[0]
        lost = int(numbers[-1]) - first - len(numbers) if packets else 0
        self.received += len(packets)
        total = self._router.qdisc(self._bottleneck).counters.bytes
        others = total - self._sent_bytes - len(packets) * self.plant.premium_size
        self._sent_bytes = total
        return Sample(
            rate=self._total / MEGA,
            delay_ms=float(delays.mean()) if packets else np.nan,
            jitter_ms=float(np.abs(np.diff(chain)).mean()) if len(chain) > 1 else np.nan,
            received=len(packets),
            lost=lost,
            other_mbit_s=others * BITS_PER_BYTE / seconds / MEGA,
            late_ms=late,
            change_us=change_us,
        )

    def close_books(self) -> Books:
        """Wait until sources have ended and queues are empty, and count."""
        sent = self._sources.result(self.seconds + 30.0)
        premium = self._premium.result(self.seconds + 30.0)
        time.sleep(_GRACE_S)
        self.received += len(self._arrived(2**63))
        rows = [each.qdisc(index).counters for each, index in zip(self._regulators, self._index, strict=True)]
        return Books(
            sent=tuple(sent),
            premium_sent=premium,
            premium_received=self.received,
            regulators=tuple(rows),
            bottleneck=self._router.qdisc(self._bottleneck).counters,
        )


def environment() -> dict[str, Any]:
    """What a run in the kernel depends on beside the code."""
    system = os.uname()
    return {"kernel": system.release, "machine": system.machine, "cores": os.cpu_count()}


def _listener(bed: Testbed, port: int, buffer: int) -> socket.socket:
    with bed.inside("h"):
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, buffer)
    made.setblocking(False)
    made.bind(("0.0.0.0", port))
    return made


def _sender(bed: Testbed, node: str, port: int) -> socket.socket:
    with bed.inside(node):
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setblocking(False)
    made.connect((bed.address("h"), port))
    return made


def _sleep_until(when: int) -> None:
    while (left := when - time.time_ns()) > 0:
        time.sleep(left / NS)
