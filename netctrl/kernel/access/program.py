"""The inside of an access link: sources, measurement and law, once a period, around the kernel's queues."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from math import inf
from pathlib import Path

import numpy as np

from netctrl.kernel.access.datagrams import Packets, Receiver, Sender
from netctrl.kernel.access.sources import Sources
from netctrl.kernel.access.task import AccessDraws, AccessTask, plan_of, read_task, write_periods
from netctrl.kernel.plan import LINE, Program
from netctrl.kernel.programs import FOLDER, begin_s, in_namespace, own_program
from netctrl.kernel.scenarios.queues import HTB_CLASS
from netctrl.kernel.scenarios.rater import route_sockets
from netctrl.linux.kernel.messages import ROOT, Counters
from netctrl.linux.kernel.netlink import RouteSocket
from netctrl.plants.access import DELAY_SUM, MEASURED, observe, read_premium
from netctrl.scenario.access.periods import run_periods
from netctrl.scenario.access.result import AccessLinkSample, access_link_sample
from netctrl.scenario.access.scenario import source_of
from netctrl.units import BITS_PER_BYTE

_UDP_HEADERS = 14 + 20 + 8
"""Of a packet, with its Ethernet header [byte]."""
_PORT = 4001
_AHEAD_PACKETS, _AHEAD_S = 1024, 1.0


def access_program() -> Program:
    """The program, which reads its task in the folder of results, and is ready before time 0."""
    return own_program("netctrl.kernel.access.program")


def warm_up() -> None:
    """Compile what the program calls, since what is compiled inside isn't kept."""
    observe(np.zeros(MEASURED + 1), 0.0, True)


class _Link:
    """The link at work: `advance` runs a period."""

    def __init__(self, task: AccessTask, draws: AccessDraws, begin: float) -> None:
        self.task, self.begin, self.period = task, begin, 0
        self.parts = parts = task.parts
        self.sources = Sources(parts, draws)
        hops, self.entry = len(task.queues), np.zeros(1 + len(draws.pauses), dtype=int)
        self.entry[1 + parts.flows :] = [flow.hop for flow in parts.cross]
        leaves = np.full(len(self.entry), hops - 1)
        leaves[1 + parts.flows :] = self.entry[1 + parts.flows :]
        size = np.full(len(self.entry), int(parts.packet_size))
        size[0] = int(parts.premium.size)
        self.bits = BITS_PER_BYTE * size
        self.senders, self.receivers = {}, {}
        addresses = tuple(task.addresses[hop] for hop in leaves.tolist())
        for hop, namespace in task.hosts.items():
            with in_namespace(namespace):
                self.senders[hop] = Sender(begin, _PORT, addresses, size - _UDP_HEADERS)
        for hop in sorted(set(leaves.tolist())):
            with in_namespace(task.ends[hop]):
                self.receivers[hop] = Receiver(begin, _PORT)
        self.measured = np.zeros(MEASURED + 1)
        self.expected = np.zeros(len(self.entry), dtype=int)
        self.sent = np.zeros(hops)
        self.routes: tuple[list[RouteSocket], list[RouteSocket]] = ([], [])

    def advance(self, rate: float, burst: int) -> AccessLinkSample:
        """One period with all regulators at `rate` together [bit/s]."""
        start, self.period = self.period * self.task.interval, self.period + 1
        end = self.period * self.task.interval
        self.measured[DELAY_SUM:] = 0.0
        received, lost = np.zeros((2, len(self.entry)), dtype=int)
        for packets in _slices(self.sources.release(rate, burst, start, end)):
            self._sleep(float(packets.at_s[0]))
            for hop, sender in self.senders.items():
                mine = self.entry[packets.kind] == hop
                sender.send(Packets(*(column[mine] for column in packets)))
            self._read(received, lost)
        self._sleep(end)
        self._read(received, lost)
        return self._sample(rate, burst, received, lost)

    def _sleep(self, until: float) -> None:
        time.sleep(max(self.begin + until - time.monotonic(), 0.0))

    def _read(self, received: np.ndarray, lost: np.ndarray) -> None:
        """Packets that came, and those that are missing before them: a flow's packets don't overtake each other."""
        for receiver in self.receivers.values():
            found = receiver.read()
            for kind in np.unique(found.kind).tolist():
                mine = found.kind == kind
                numbers = found.number[mine]
                if kind == 0:
                    self._measure(found.at_s[mine], numbers)
                received[kind] += len(numbers)
                lost[kind] += numbers[-1] + 1 - self.expected[kind] - len(numbers)
                self.expected[kind] = numbers[-1] + 1

    def _measure(self, at: np.ndarray, numbers: np.ndarray) -> None:
        delays = at - (self.sources.phase + self.sources.period * numbers)
        for number, delay in zip(numbers.tolist(), delays.tolist(), strict=True):
            observe(self.measured, delay, self.expected[0] == 0 and number == numbers[0])

    def _sample(self, rate: float, burst: int, received: np.ndarray, lost: np.ndarray) -> AccessLinkSample:
        parts, F, interval = self.parts, self.parts.flows, self.task.interval
        queues = _counters(self.routes[0], self.task.queues, HTB_CLASS)
        wires = _counters(self.routes[1], self.task.wires, ROOT)
        total = np.array([float(queue.bytes) for queue in queues])
        busy = BITS_PER_BYTE * (total - self.sent) / interval / parts.line.capacity
        self.sent = total
        rates = received[: F + 1] * self.bits[: F + 1] / interval
        premium = read_premium(self.measured, parts.line.base_delay, bool(self.expected[0] == 0))
        return access_link_sample(
            premium,
            rates,
            lost[: F + 1],
            source_of(parts),
            len(parts.regulated),
            time_s=self.period * interval,
            rate_bit_per_s=rate,
            burst=burst,
            regulator_lost=0,
            utilization=float(busy.max()),
            backlog=tuple(
                queue.backlog_packets + wire.backlog_packets for queue, wire in zip(queues, wires, strict=True)
            ),
        )


def _counters(routes: list[RouteSocket], places: tuple[tuple[int, int], ...], parent: int) -> list[Counters]:
    return [route.qdisc(index, parent).counters for route, (_, index) in zip(routes, places, strict=True)]


def _slices(packets: Packets) -> Generator[Packets]:
    """Packets that are handed over at a time: few enough for the memory, and not further ahead than `fq` takes them."""
    first = 0
    while first < len(packets.at_s):
        within = int(np.searchsorted(packets.at_s, packets.at_s[first] + _AHEAD_S))
        last = min(first + _AHEAD_PACKETS, max(within, first + 1))
        yield Packets(*(column[first:last] for column in packets))
        first = last


@contextmanager
def _at_work(task: AccessTask, draws: AccessDraws, line: socket.socket) -> Generator[_Link]:
    with route_sockets(np.array(task.queues)) as queues, route_sockets(np.array(task.wires)) as wires:
        link = _Link(task, draws, begin_s(line))
        link.routes = queues, wires
        yield link


def main() -> int:
    """The inside."""
    folder = Path(FOLDER)
    task, draws = read_task(folder)
    warm_up()
    with socket.socket(fileno=LINE) as line, _at_work(task, draws, line) as link:
        if task.law is None:
            write_periods([link.advance(inf, 0) for _ in range(task.periods)], None, folder)
        else:
            found = run_periods(plan_of(task.law), link.advance)
            write_periods(found.samples, found, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
