"""CONNET's plant in the kernel: three bursty sources behind tbf regulators, a tbf bottleneck with a FIFO, premium CBR.

All in namespaces of one machine, so that one clock stamps both ends of the premium flow: the sender's in the packet,
the kernel's on arrival (SO_TIMESTAMPNS). Re-applying tbf's rate refills its bucket, so buckets are small, a change
below the dead-band isn't made, and a period is half a second.
"""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from netctrl.linux.kernel.netlink import ROOT, Counters
from netctrl.linux.testbed.bed import Testbed
from netctrl.linux.testbed.schedules import constant_times, poisson_times
from netctrl.linux.testbed.traffic import (
    UdpSource,
    absorb_tcp,
    open_tcp_sink,
    open_udp_sink,
    receive_udp,
    send_tcp,
    send_udp,
)
from netctrl.model.network import Link, Network
from netctrl.units import BITS_PER_BYTE

MEGA, MILLI, MICRO = 1e6, 1e-3, 1e-6
OPEN = 1e9
"""A regulator that regulates nothing [bit/s]."""
SOURCES = ("s1", "s2", "s3")
BOTTLENECK_BUCKET = 1600
"""A packet and half of one: a late timer loses little capacity, and packets wait as behind a wire [byte]."""
PREMIUM_PORT, OTHER_PORT, TCP_PORT = 5001, 5002, 5003
TBF = 0x10000
_LEAD_S = 1.0  # until the sources send
_READING_S = 0.01  # at least, for what waits in the socket
_GRACE_S = 0.3  # what is in queues at the end arrives
_PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True)
class Plant:
    """What is built. Rates in bit/s of Ethernet frames, sizes in bytes of them."""

    capacity: float = 20e6
    buffer: int = 100_000
    """In the bottleneck."""
    offered: float = 10e6
    """By each source, in bursts after exponential pauses; half the capacity, as in the paper's Fig. 13."""
    burst: int = 8
    """Packets that a source sends at once."""
    size: int = 1042
    bucket: int = 8
    """Packets that a regulator lets through at once."""
    waiting: int = 3
    """Packets that may wait in it."""
    cubic: int = 0
    """TCP connections of each source, which send what they can; with them it sends no bursts."""
    premium_rate: float = 1e6
    premium_size: int = 250
    interval: float = 0.5
    dead_band: float = 0.01
    """Share of the rate by which a change has to differ from it."""

    @property
    def bucket_bytes(self) -> int:
        return self.bucket * self.size

    @property
    def waiting_bytes(self) -> int:
        return self.waiting * self.size


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
    """Premium packets, by numbers that are missing."""
    other_mbit_s: float
    """What the bottleneck sent of the sources' traffic."""
    late_ms: float
    """The loop, at the period's end."""
    change_us: float
    """One change of a regulator's rate, mean; 0: none was made."""
    load: float
    """Of the machine, over a minute."""


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
        """Numbers of regulators that are open whatever the rate is."""
        self._held = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as held:
            self._build(held)
            self._held = held.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def _build(self, held: ExitStack) -> None:
        buckets = {f"{name}r": self.plant.bucket_bytes for name in SOURCES} | {"rh": BOTTLENECK_BUCKET}
        self.bed = bed = held.enter_context(Testbed(network(self.plant), burst_bytes=buckets))
        self._regulators = [(held.enter_context(bed.route_socket(name)), bed.index(f"{name}r")) for name in SOURCES]
        self._router, self._bottleneck = held.enter_context(bed.route_socket("r")), bed.index("rh")
        with bed.inside("h"):
            self._sink = held.enter_context(open_udp_sink(PREMIUM_PORT))
            held.enter_context(open_udp_sink(OTHER_PORT))  # nobody reads it: the port is there, so no ICMP comes
        self._end = time.monotonic() + _LEAD_S
        self._jobs = [bed.start(node, send_udp, [source], self._end) for node, source in self._traffic()]
        self._start_tcp(held)
        self._started = False
        self._rates = [OPEN] * len(SOURCES)
        self._total = OPEN
        self._next, self._last = 0, np.empty(0)
        self._early = np.empty((0, 3))
        self._received = 0
        self._sent_bytes = 0

    def _traffic(self) -> list[tuple[str, UdpSource]]:
        """What each node sends, the premium sender last."""
        plant, address = self.plant, self.bed.address("h")
        found, bursty = [], SOURCES if plant.cubic == 0 else ()
        for name, generator in zip(bursty, np.random.default_rng(self.seed).spawn(len(bursty)), strict=True):
            bursts = poisson_times(plant.offered, plant.burst * plant.size, self.seconds, generator)
            found.append((name, UdpSource(address, OTHER_PORT, np.repeat(bursts, plant.burst), plant.size)))
        times = constant_times(plant.premium_rate, plant.premium_size, self.seconds)
        return [*found, ("p", UdpSource(address, PREMIUM_PORT, times, plant.premium_size))]

    def _start_tcp(self, held: ExitStack) -> None:
        if self.plant.cubic == 0:
            return
        bed, until = self.bed, self._end + self.seconds
        with bed.inside("h"):
            listener = held.enter_context(open_tcp_sink(TCP_PORT))
        bed.start("h", absorb_tcp, listener, until + _GRACE_S)
        for name in SOURCES:
            for _ in range(self.plant.cubic):
                bed.start(name, send_tcp, bed.address("h"), TCP_PORT, until, congestion="cubic", every_s=1.0)

    def advance(self, rate: float = OPEN / MEGA) -> Sample:
        """One period with all regulators that work at `rate` together [Mbit/s]; by default open."""
        if not self._started:  # the first period begins with the sources
            time.sleep(max(self._end - time.monotonic(), 0.0))
            self._started = True
        change_us = self._regulate(rate * MEGA)
        self._end += self.plant.interval
        packets = self._arrived()
        late = (time.monotonic() - self._end) / MILLI
        total = self._router.qdisc(self._bottleneck).counters.bytes
        new, self._sent_bytes = total - self._sent_bytes, total
        delays = packets[:, 1] / MILLI
        steps = np.abs(np.diff(np.concatenate([self._last[-1:], delays])))
        expected, self._next = self._next, int(packets[-1, 0]) + 1 if len(packets) else self._next
        self._last = delays if len(delays) else self._last
        return Sample(
            rate=self._total / MEGA,
            delay_ms=float(delays.mean()) if len(delays) else np.nan,
            jitter_ms=float(steps.mean()) if len(steps) else np.nan,
            received=len(delays),
            lost=self._next - expected - len(delays),
            other_mbit_s=(new - len(delays) * self.plant.premium_size) * BITS_PER_BYTE / (self.plant.interval * MEGA),
            late_ms=late,
            change_us=change_us,
            load=os.getloadavg()[0],
        )

    def _arrived(self) -> np.ndarray:
        """(n, 3) numbers, delays and arrivals [s] of premium packets that the kernel stamped before the period's end.

        A machine that stood still has them read late: they count where they belong, as far as that isn't over.
        """
        found = receive_udp([self._sink], max(self._end, time.monotonic() + _READING_S)).get(0)
        if found is not None:
            self._received += len(found.numbers)
            new = np.column_stack([found.numbers, found.delay_s, found.received_s])
            self._early = np.concatenate([self._early, new])
        inside = self._early[:, 2] < self._end
        packets, self._early = self._early[inside], self._early[~inside]
        return packets

    def _regulate(self, desired: float) -> float:
        """Change what has to change; mean time of a change [us]."""
        plant = self.plant
        if abs(desired - self._total) > plant.dead_band * self._total:
            self._total = desired
        share = self._total if self._total >= OPEN else self._total / len(SOURCES)
        began, made = time.perf_counter(), 0
        for k, (regulator, index) in enumerate(self._regulators):
            rate = OPEN if k in self.failed else share
            if rate != self._rates[k]:
                regulator.change_tbf(index, ROOT, TBF, rate, plant.bucket_bytes, plant.waiting_bytes)
                self._rates[k] = rate
                made += 1
        return (time.perf_counter() - began) / made / MICRO if made else 0.0

    def close_books(self) -> Books:
        """Wait until sources have ended and queues are empty, and count."""
        *others, premium = (job.result(self.seconds + _PATIENCE_S)[0] for job in self._jobs)
        rest = receive_udp([self._sink], time.monotonic() + _GRACE_S).get(0)
        return Books(
            sent=tuple(each.offered - each.dropped for each in others),
            premium_sent=premium.offered - premium.dropped,
            premium_received=self._received + (0 if rest is None else len(rest.numbers)),
            regulators=tuple(each.qdisc(index).counters for each, index in self._regulators),
            bottleneck=self._router.qdisc(self._bottleneck).counters,
        )


def environment() -> dict[str, Any]:
    """What a run in the kernel depends on beside the code."""
    system = os.uname()
    return {"kernel": system.release, "machine": system.machine, "cores": os.cpu_count()}
