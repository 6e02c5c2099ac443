"""Links whose law sets a marking probability each epoch: a program inside the kernel, in front of the link's queue.

The loop, its readings and the eBPF classifier are those of `netctrl linux mark`; the law is that of the register. It is
ready before time 0, and tells at each sample what has been marked so far.
"""

from __future__ import annotations

import socket
import sys
import time
from math import inf

import msgspec
import numpy as np

from netctrl.errors import InvalidValue
from netctrl.kernel.plan import LINE, Program
from netctrl.kernel.programs import begin_s, own_program
from netctrl.laws.aqm.arc import ArcQueue
from netctrl.laws.aqm.law import QueueLaw, QueueRecord, Seen
from netctrl.laws.aqm.records import Queue, law_record
from netctrl.linux.kernel.netlink import RouteSocket
from netctrl.linux.kernel.qdisc import HtbClassOptions
from netctrl.linux.marking.epochs import Epoch, MarkSample, run_epochs
from netctrl.linux.marking.program import Marker
from netctrl.units import BITS_PER_BYTE

__all__ = ["MARKS", "MarkTask", "marker_program", "marking_law"]

MARKS = np.dtype([("marked", "u8"), ("dropped", "u8"), ("probability", "f8")])
"""Row that a marker tells at each sample: packets so far, and its present probability."""


class MarkTask(msgspec.Struct, frozen=True, kw_only=True):
    """Task of a marker."""

    interface: int
    """Index of the link's interface."""
    parent: int
    """Class that has the link's queue."""
    queue: Queue
    packet: float
    """Size of a packet [byte of frames]."""
    buffer: float | None
    """Buffer of the link [byte]; None: unlimited."""
    interval: float
    """Between two samples [s]."""
    samples: int


def marking_law(queue: QueueRecord) -> QueueLaw | None:
    """Law of a queue that a marker can run, as it acts by epochs; None: it can't.

    Raises
    ------
    InvalidValue
        An error of the rate that ARC measures, which is for simulators.
    """
    law = law_record(queue)
    if law is None or law.epoch is None or law.head is not None:
        return None
    if isinstance(queue, ArcQueue) and queue.rate_error is not None:
        raise InvalidValue("rate_error", queue.rate_error, "null: the marker measures the true rate")
    return law


def marker_program(task: MarkTask) -> Program:
    """The program that carries out a task."""
    return own_program("netctrl.kernel.scenarios.marker", msgspec.json.encode(task).decode())


class _Samples:
    """Readings of a marker at each sample, which is waited for between epochs."""

    def __init__(self, marker: Marker, task: MarkTask, begin_s: float) -> None:
        self.marker, self.task, self.begin_s = marker, task, begin_s
        self.rows: list[tuple[int, int, float]] = []
        self.probability = 0.0

    def wait(self, left_s: float) -> bool:
        """Wait, and take the samples of that time; True after the last one."""
        until = time.monotonic() + left_s
        while len(self.rows) < self.task.samples:
            due = self.begin_s + self.task.interval * (len(self.rows) + 1)
            if due > until:
                _sleep_until(until)
                return False
            _sleep_until(due)
            counts = self.marker.counts()
            self.rows.append((counts.marked, counts.dropped, self.probability))
        return True

    def heard(self, sample: MarkSample) -> None:
        """An epoch has ended."""
        self.probability = sample.probability


class _Decider:
    """A law with its state, which the loop asks."""

    def __init__(self, task: MarkTask, law: QueueLaw, route: RouteSocket) -> None:
        buffer = inf if task.buffer is None else task.buffer
        self.task, self.law, self.route = task, law, route
        self.parameters = law.read(task.queue, task.packet, buffer)
        self.state = law.state(*(0.0 for _ in law.state._fields))

    def decide(self, _: float, epoch: Epoch) -> float:
        """The next probability."""
        packet = self.task.packet
        capacity = self._capacity() / (BITS_PER_BYTE * packet)
        seen = Seen(epoch.elapsed_s, epoch.arrived_bytes / packet, 0.0, epoch.backlog_bytes / packet, capacity)
        self.state = self.law.step(self.state, seen, self.parameters)
        return float(self.state.probability)

    def _capacity(self) -> float:
        """Rate of the link's class now, which its capacity, a factor or a law sets [bit/s]."""
        classes = self.route.classes(self.task.interface)
        options = next(each.options for each in classes if each.handle == self.task.parent)
        return BITS_PER_BYTE * float(HtbClassOptions.decode(options).rate)


def _sleep_until(at_s: float) -> None:
    time.sleep(max(at_s - time.monotonic(), 0.0))


def main(words: list[str]) -> int:
    """The inside."""
    task = msgspec.json.decode(words[0], type=MarkTask)
    law = marking_law(task.queue)
    if law is None or law.epoch is None:
        raise InvalidValue("queue", task.queue, "one whose law acts by epochs")
    with socket.socket(fileno=LINE) as line, RouteSocket() as route, Marker(task.interface, drop=True) as marker:
        begin = begin_s(line)
        _sleep_until(begin)
        samples, decider = _Samples(marker, task, begin), _Decider(task, law, route)
        run_epochs(
            marker,
            lambda: route.qdisc(task.interface, task.parent).counters.backlog_bytes,
            law.epoch(task.queue),
            decider.decide,
            wait=samples.wait,
            heard=samples.heard,
        )
        line.sendall(np.array(samples.rows, MARKS).tobytes())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
