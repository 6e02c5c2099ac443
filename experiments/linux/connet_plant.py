"""CONNET's plant in the kernel: three bursty sources behind tbf regulators, tbf bottlenecks with a FIFO, premium CBR.

All in namespaces of one machine, so that one clock stamps both ends of the premium flow: the sender's in the packet,
the kernel's on arrival (SO_TIMESTAMPNS). Re-applying tbf's rate refills its bucket, so buckets are small, a change
below the dead-band isn't made, and a period is half a second.
"""

import time
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
from linux.connet_bursts import send_bursts
from linux.connet_disciplines import release_at_instants, serve
from linux.testbed import Job, Testbed
from linux.traffic import UdpSource, absorb_tcp, open_tcp_sink, open_udp_sink, receive_udp, send_udp

from netctrl.core.units import BITS_PER_BYTE
from netctrl.kernel.scenarios.traffic import constant_times, poisson_times
from netctrl.linux.kernel.messages import ROOT, Counters
from netctrl.linux.pacing.tcp import TcpRun, send_tcp
from netctrl.model.network import Link, Network

MEGA, MILLI = 1e6, 1e-3
OPEN = 1e9
"""A regulator that regulates nothing [bit/s]."""
SOURCES = ("s1", "s2", "s3")
SIZE = 1042
"""Packet of 1000 bytes, with its Ethernet header, as other traffic and the premium flow send it [byte]."""
BOTTLENECK_BUCKET = 1600
"""A packet and half of one: a late timer loses little capacity, and packets wait as behind a wire [byte]."""
PREMIUM_PORT, OTHER_PORT, TCP_PORT = 5001, 5002, 5003
TBF = 0x10000
_LEAD_S = 1.0  # until the sources send
_READING_S = 0.01  # at least, for what waits in the socket
_GRACE_S = 0.3  # what is in queues at the end arrives
_PATIENCE_S = 30.0
_AT_ONCE = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Plant:
    """What is built. Rates in bit/s of Ethernet frames, sizes in bytes of them."""

    capacity: float = 100e6
    buffer: int = 100 * SIZE
    """In the bottleneck."""
    offered: float = 50e6
    """By each source, in bursts after exponential pauses; half the capacity, as in the paper's Fig. 13."""
    burst: int = 10
    """Packets that a source sends at once."""
    size: int = SIZE
    bucket: int = 10
    """Packets that a regulator lets through at once."""
    waiting: int = 50
    """Packets that may wait in it."""
    shares: tuple[float, ...] = (1.0 / 3.0,) * len(SOURCES)
    """Of R, by regulator."""
    limits: tuple[float, float] = (1.0, 95.0)
    """Of R under a law [Mbit/s]."""
    flows: int = 2
    """UDP flows of each source, each with its own bursts."""
    cubic: int = 0
    """TCP connections of each source, which send what they can; with them it sends no bursts."""
    hops: int = 1
    """Bottlenecks in a row."""
    discipline: str = "fifo"
    """Of the bottlenecks: a key of `connet_disciplines.LINES`."""
    release: tuple[float, float] | None = (0.002, 0.006)
    """What a regulator let through is held until the next of instants with uniform distances from one to the other
    [s], as where tbf's timer is the kernel's tick; an open one holds nothing."""
    premium_rate: float = 1e6
    premium_size: int = SIZE
    interval: float = 1.0
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


class Books(NamedTuple):
    """Packets of a whole run, once nothing is under way."""

    sent: tuple[int, ...]
    """By each source."""
    premium_sent: int
    premium_received: int
    regulators: tuple[Counters, ...]
    bottleneck: Counters


def pipe(plant: Plant) -> list[str]:
    """Nodes from the first router to the sink."""
    return ["r", *(f"r{number}" for number in range(2, plant.hops + 1)), "h"]


def network(plant: Plant) -> Network:
    """Sources and the premium sender at a router, bottlenecks to the sink."""
    limit, nodes = plant.waiting_bytes, pipe(plant)
    links = []
    for name in SOURCES:
        last = name if plant.release is None else f"{name}g"
        if last != name:
            links.append(Link(source=name, target=last, id=f"{name}r", capacity=OPEN, buffer=limit))
        links.append(Link(source=last, target="r", id=f"{last}r", capacity=OPEN, buffer=limit))
    links.append(Link(source="p", target="r", id="pr", capacity=OPEN))
    links += [
        Link(source=one, target=other, id=f"{one}{other}", capacity=plant.capacity, buffer=plant.buffer)
        for one, other in pairwise(nodes)
    ]
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
        nodes = pipe(self.plant)
        lines = [f"{one}{other}" for one, other in pairwise(nodes)]
        buckets = {f"{name}r": self.plant.bucket_bytes for name in SOURCES} | dict.fromkeys(lines, BOTTLENECK_BUCKET)
        bed = Testbed(network(self.plant), burst_bytes=buckets, segment=self.plant.cubic > 0)
        self.bed = bed = held.enter_context(bed)
        self._furnish(lines)
        self._regulators = [(held.enter_context(bed.route_socket(name)), bed.index(f"{name}r")) for name in SOURCES]
        self._router, self._bottleneck = held.enter_context(bed.route_socket(nodes[-2])), bed.index(lines[-1])
        with bed.inside("h"):
            self._sink = held.enter_context(open_udp_sink(PREMIUM_PORT))
            held.enter_context(open_udp_sink(OTHER_PORT))  # nobody reads it: the port is there, so no ICMP comes
        self._end = time.monotonic() + _LEAD_S
        self._jobs = self._start_udp()
        self._transfers = self._start_tcp(held)
        self._started, self._periods = False, 0
        self._rates = [OPEN] * len(SOURCES)
        self._total = OPEN
        self._next, self._last = 0, np.empty(0)
        self._early = np.empty((0, 3))
        self._received = 0
        self._sent_bytes = 0

    def _furnish(self, lines: list[str]) -> None:
        plant = self.plant
        for line in lines:
            serve(self.bed, line, plant.discipline, PREMIUM_PORT, plant.size, BOTTLENECK_BUCKET)

    def _start_udp(self) -> list[Job]:
        """What each node sends, the premium sender last."""
        plant, bed, address = self.plant, self.bed, self.bed.address("h")
        jobs, bursty = [], SOURCES if plant.cubic == 0 else ()
        for name, generator in zip(bursty, np.random.default_rng(self.seed).spawn(len(bursty)), strict=True):
            rate, size = plant.offered / plant.flows, plant.burst * plant.size
            times = [poisson_times(rate, size, self.seconds, generator) for _ in range(plant.flows)]
            jobs.append(bed.start(name, send_bursts, address, OTHER_PORT, times, plant.burst, plant.size, self._end))
        times = constant_times(plant.premium_rate, plant.premium_size, self.seconds)
        premium = UdpSource(address, PREMIUM_PORT, times, plant.premium_size)
        return [*jobs, bed.start("p", send_udp, [premium], self._end)]

    def _start_tcp(self, held: ExitStack) -> list[Job]:
        """Connections of each source, one source after the other."""
        if self.plant.cubic == 0:
            return []
        bed, until = self.bed, self._end + self.seconds
        with bed.inside("h"):
            listener = held.enter_context(open_tcp_sink(TCP_PORT))
        bed.start("h", absorb_tcp, listener, until + _PATIENCE_S)  # connecting may take its time
        left, options = until - time.monotonic(), {"congestion": "cubic", "every_s": self.plant.interval}
        return [
            bed.start(name, send_tcp, bed.address("h"), TCP_PORT, left, **options)
            for name in SOURCES
            for _ in range(self.plant.cubic)
        ]

    def advance(self, rate: float = OPEN / MEGA) -> Sample:
        """One period with all regulators that work at `rate` together [Mbit/s]; by default open."""
        if not self._started:  # the first period begins with the sources
            time.sleep(max(self._end - time.monotonic(), 0.0))
            self._started = True
        self._regulate(rate * MEGA)
        self._end += self.plant.interval
        self._periods += 1
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

    def _regulate(self, desired: float) -> None:
        """Change what has to change."""
        plant = self.plant
        if abs(desired - self._total) > plant.dead_band * self._total:
            self._total = desired
        for k, (regulator, index) in enumerate(self._regulators):
            opened = k in self.failed or self._total >= OPEN
            rate = OPEN if opened else self._total * plant.shares[k]
            if plant.release is not None and (rate == OPEN) != (self._rates[k] == OPEN):
                release_at_instants(self.bed, f"{SOURCES[k]}gr", _AT_ONCE if rate == OPEN else plant.release)
            if rate != self._rates[k]:
                regulator.change_tbf(index, ROOT, TBF, rate, plant.bucket_bytes, plant.waiting_bytes)
                self._rates[k] = rate

    def transfers(self, begin_s: float, end_s: float) -> list[float]:
        """Rate at which each TCP connection's data were acknowledged between two times of the run [Mbit/s]; waits for
        their end."""
        began, rates = self._end - self._periods * self.plant.interval, []
        for job in self._transfers:
            run: TcpRun = job.result(self.seconds + _PATIENCE_S)
            arrived = np.interp([began + begin_s, began + end_s], run.times_s, run.column("arrived_bytes"))
            rates.append(float(np.diff(arrived)[0]) * BITS_PER_BYTE / (end_s - begin_s) / MEGA)
        return rates

    def close_books(self) -> Books:
        """Wait until sources have ended and queues are empty, and count."""
        *others, (premium,) = (job.result(self.seconds + _PATIENCE_S) for job in self._jobs)
        rest = receive_udp([self._sink], time.monotonic() + _GRACE_S).get(0)
        return Books(
            sent=tuple(sum(each.offered - each.dropped for each in flows) for flows in others),
            premium_sent=premium.offered - premium.dropped,
            premium_received=self._received + (0 if rest is None else len(rest.numbers)),
            regulators=tuple(each.qdisc(index).counters for each, index in self._regulators),
            bottleneck=self._router.qdisc(self._bottleneck).counters,
        )
