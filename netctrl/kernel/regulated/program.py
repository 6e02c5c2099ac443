"""The program inside: sends regulated flows around the kernel's queues, measures them, and takes a law's steps."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Generator
from pathlib import Path

import numpy as np

from netctrl.core.units import BITS_PER_BYTE, NANOSECOND
from netctrl.kernel.plan import LINE, Program
from netctrl.kernel.programs import FOLDER, begin_s, in_namespace, own_program
from netctrl.kernel.regulated.datagrams import Arrivals, Packets, Receiver, Sender
from netctrl.kernel.regulated.sources import Sources
from netctrl.kernel.regulated.task import Left, RegulatedTask, read_task, write_left
from netctrl.laws.rate.gate import Gate, mean_pause, pass_gate, set_gate
from netctrl.plants.access import DELAY_SUM, MEASURED, observe, read_premium
from netctrl.scenario.network.tracking import Period, run_periods

_UDP_HEADERS = 14 + 20 + 8
"""Of a packet, with its Ethernet header [byte]."""
_PORT = 4002
_AHEAD_PACKETS, _AHEAD_S = 1024, 1.0
_MS = 1e3


def regulated_program() -> Program:
    """The program, which reads its task in the folder of results, and is ready before time 0."""
    return own_program("netctrl.kernel.regulated.program")


def warm_up() -> None:
    """Compile what the program calls, since what is compiled inside isn't kept."""
    observe(np.zeros(MEASURED + 1), 0.0, True)
    gate = Gate(0, mean_pause(1.0, 1, 1, 1), 1, 1, 1, 0.0)
    pass_gate(set_gate(gate, 1, 1, 0, 1.0, 1), 1, 0.0, 0, 0.0)


class _Flows:
    """The flows at work, period by period."""

    def __init__(self, task: RegulatedTask, begin: float) -> None:
        self.task, self.begin, self.period = task, begin, 0
        self.sources = Sources(task)
        group = self.group = self.sources.group
        self.host = np.array([task.groups[place].host for place in group])
        addresses = tuple(task.groups[place].address for place in group.tolist())
        self.payload = task.packet_size - _UDP_HEADERS
        payloads = np.full(len(group), self.payload)
        self.senders, self.receivers = {}, []
        for namespace in dict.fromkeys(self.host.tolist()):
            with in_namespace(namespace):
                self.senders[namespace] = Sender(begin, _PORT, addresses, payloads)
        for namespace in dict.fromkeys(each.end for each in task.groups):
            with in_namespace(namespace):
                self.receivers.append(Receiver(begin, _PORT))
        self.sent = [np.zeros(0) for _ in group]
        self.first = np.zeros(len(group), dtype=np.int64)
        self.before = np.full(len(group), np.nan)
        self.received = np.zeros(len(group), dtype=np.int64)
        self.series = np.zeros((len(task.groups), task.samples, 5))
        tracking = task.tracking
        self.tracked = np.flatnonzero(np.isin(group, tracking.groups if tracking else ()))
        if tracking is not None:
            places = {place: np.flatnonzero(group == place) for place in tracking.groups}
            self.tracked = np.concatenate([places[place] for place in tracking.groups])
        self.premium = int(np.flatnonzero(group == tracking.measures)[0]) if tracking else -1
        self.measured, self.seen = np.zeros(MEASURED + 1), False

    def advance(self, rate: float, burst: int) -> Period:
        """One period with all tracked flows at `rate` together [bit/s]."""
        start, end = (self._end(self.period + later) for later in (0, 1))
        self.period += 1
        if self.task.tracking is not None:
            flows = self.task.tracking.flows
            self.sources.command(start, self.tracked, flows.rates(rate), flows.bursts(burst))
        self.measured[DELAY_SUM:] = 0.0
        before = int(self.received[self.tracked].sum())
        for packets in _slices(self.sources.release(start, end)):
            self._sleep(float(packets.at_s[0]))
            self._send(packets)
            self._read()
        self._sleep(end * NANOSECOND)
        self._read()
        found = read_premium(self.measured, 0.0, not self.seen)
        count = int(self.received[self.tracked].sum()) - before
        throughput = count * self.task.packet_size * BITS_PER_BYTE / self.task.interval_s
        return Period(*(_MS * float(each) for each in found[:4]), throughput)

    def _end(self, period: int) -> int:
        """[ns]"""
        return round(period * self.task.interval_s / NANOSECOND)

    def _sleep(self, until: float) -> None:
        time.sleep(max(self.begin + until - time.monotonic(), 0.0))

    def _send(self, packets: Packets) -> None:
        for kind in np.unique(packets.kind).tolist():
            self.sent[kind] = np.append(self.sent[kind], packets.at_s[packets.kind == kind])
        for host, sender in self.senders.items():
            mine = self.host[packets.kind] == host
            sender.send(Packets(*(column[mine] for column in packets)))

    def _read(self) -> None:
        for receiver in self.receivers:
            found = receiver.read()
            for kind in np.unique(found.kind).tolist():
                self._take(kind, Arrivals(*(column[found.kind == kind] for column in found)))

    def _take(self, kind: int, found: Arrivals) -> None:
        """Packets of a flow that came, in their order; those sent before them aren't kept longer."""
        delays = found.at_s - self.sent[kind][found.number - self.first[kind]]
        changes = np.abs(np.diff(delays, prepend=self.before[kind]))
        last = int(found.number.max()) + 1
        self.sent[kind], self.first[kind] = self.sent[kind][last - self.first[kind] :], last
        self.before[kind] = delays[-1]
        self.received[kind] += len(delays)
        if kind == self.premium:
            for delay in delays.tolist():
                observe(self.measured, delay, not self.seen)
                self.seen = True
        sample = np.minimum((found.at_s / self.task.sample_s).astype(int), self.task.samples - 1)
        pairs = ~np.isnan(changes)
        rows = (np.full(len(delays), float(self.payload)), np.ones(len(delays)), delays, np.where(pairs, changes, 0.0))
        for column, values in enumerate((*rows, pairs.astype(float))):
            np.add.at(self.series[self.group[kind], :, column], sample, values)


def _slices(packets: Packets) -> Generator[Packets]:
    """Packets that are handed over at a time: few enough for the memory, and not further ahead than `fq` takes them."""
    first = 0
    while first < len(packets.at_s):
        within = int(np.searchsorted(packets.at_s, packets.at_s[first] + _AHEAD_S))
        last = min(first + _AHEAD_PACKETS, max(within, first + 1))
        yield Packets(*(column[first:last] for column in packets))
        first = last


def main() -> int:
    """The inside."""
    folder = Path(FOLDER)
    task = read_task(folder)
    warm_up()
    with socket.socket(fileno=LINE) as line:
        flows, found = _Flows(task, begin_s(line)), None
        if task.tracking is None:
            for _ in range(task.periods):
                flows.advance(np.inf, 0)
        else:
            found = run_periods(task.tracking.plan, flows.advance)
    write_left(Left(flows.series, found), folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
