"""Link rates that a law sets once an interval: a program inside the kernel, at all links that the law controls.

The law is that of the other engines, with the same messages late and lost. What a link measures are the counters of its
queue, what it sets is the rate of its HTB class.
"""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from heapq import merge
from pathlib import Path
from typing import NamedTuple

import numpy as np

from netctrl.core.units import BITS_PER_BYTE
from netctrl.kernel.plan import LINE, Program
from netctrl.kernel.programs import FOLDER, begin_s, in_namespace, own_program, read_record
from netctrl.kernel.scenarios.queues import HTB_CLASS, HTB_HANDLE, bucket_bytes
from netctrl.laws.link_rate.distributed_step import LinkRates, Measured, command_links, link_memory, measure_links
from netctrl.linux.kernel.netlink import RouteSocket
from netctrl.scenario.network.decided import DecidedRates, RateDecider

_LEAST_OF_CAPACITY, _LEAST_OF_NOMINAL = 0.1, 0.5


class LinkControl(NamedTuple):
    """Law of N links over K intervals, with its messages."""

    law: LinkRates | None
    """None: `decided` has it."""
    decided: DecidedRates | None
    nominal: np.ndarray
    """(N,) rates around which links are controlled [bit/s]."""
    ticks: int
    """Of an interval."""
    interval_s: float
    paced: np.ndarray
    """(N,) whether a link sends at the law's rate."""
    phase: np.ndarray
    """(N,) tick of the interval at which each link acts."""
    late: np.ndarray
    """(K, messages) delay of each message in ticks; -1: lost."""
    received: np.ndarray
    """(K, N) whether a central command arrives."""


class RaterTask(NamedTuple):
    """Task of the program, for N links over K intervals."""

    control: LinkControl
    capacity: np.ndarray
    """(N,) at first [bit/s]."""
    changes: np.ndarray
    """(C, 3) time [s], link, and capacity from then on [bit/s]; in order."""
    place: np.ndarray
    """(N, 2) number of each link's namespace, index of its interface."""
    packet: float
    """[byte]"""

    def warm_up(self) -> None:
        """Compile the law, since what is compiled inside isn't kept."""
        N = len(self.capacity)
        Decider(self).decide(0, np.arange(N), np.zeros((4, N)))


def least_rates(capacity: np.ndarray, nominal: np.ndarray) -> np.ndarray:
    """Least rates that are set, (N,): a tenth of the capacity, but at most half of the nominal rate [bit/s].

    HTB sends a packet that waits at the rate that it found; at a lower one it would stand before what a later rate
    lets through.
    """
    return np.minimum(_LEAST_OF_CAPACITY * capacity, _LEAST_OF_NOMINAL * nominal)


def rater_program() -> Program:
    """The program, which reads the task in the folder of results."""
    return own_program("netctrl.kernel.scenarios.rater")


class Decider:
    """The law with its memory: counters at a tick to rates."""

    def __init__(self, task: RaterTask) -> None:
        control = self.control = task.control
        self.memory = None if control.law is None else link_memory(control.law, control.phase)
        self.decider = None if control.decided is None else RateDecider.of(control.decided)
        self.command = control.nominal.copy() if self.memory is None else self.memory.command
        self.before = np.zeros((4, len(task.capacity)))
        self.received = task.control.received.astype(np.int64)
        self.capacity = task.capacity.copy()

    def decide(self, tick: int, acting: np.ndarray, counted: np.ndarray) -> np.ndarray:
        """Rates (N,) from now on, of the links that act at this tick; `counted`, (4, N): arrived, departed, lost,
        waiting [byte]."""
        law, ticks = self.control.law, self.control.ticks
        step, share = tick // ticks, tick % ticks / ticks
        unit = BITS_PER_BYTE / self.control.interval_s
        arrived, rate, lost = unit * (counted - self.before)[:3]
        if step == 0:  # before the start all sent at the rates with which they begin
            rate = rate + (1.0 - share) * self.control.nominal
        self.before[:, acting] = counted[:, acting]
        seen = np.stack([rate, unit * counted[3], arrived, lost])
        if self.decider is not None:
            self.command[0] = self.decider.decide(step, Measured(*seen[:, 0].tolist()))
        elif law is not None and self.memory is not None:
            measure_links(law, self.memory, tick, seen, self.control.late[step])
            command_links(law, self.memory, tick, self.received[step])
        return self.rates()

    def rates(self) -> np.ndarray:
        """Rates (N,) in force, within what links can be set to."""
        return np.clip(self.command, least_rates(self.capacity, self.control.nominal), self.capacity)


@contextmanager
def route_sockets(places: np.ndarray) -> Generator[list[RouteSocket]]:
    """One for each link, in its namespace."""
    with ExitStack() as held:
        made: dict[int, RouteSocket] = {}
        for number in places[:, 0].tolist():
            if number not in made:
                with in_namespace(number):
                    made[number] = held.enter_context(RouteSocket())
        yield [made[number] for number in places[:, 0].tolist()]


def _moments(task: RaterTask) -> Iterator[tuple[float, int, int]]:
    """Time [s], tick, and change, in order; -1 for the one that it isn't."""
    control, ticks = task.control, task.control.ticks
    phases = np.unique(control.phase).tolist()
    numbers = (step * ticks + phase for step in range(len(control.received)) for phase in phases)
    acts = ((tick * control.interval_s / ticks, tick, -1) for tick in numbers)
    return merge(((at, -1, row) for row, at in enumerate(task.changes[:, 0].tolist())), acts)


def main() -> int:
    """The inside."""
    task = read_record(Path(FOLDER), RaterTask)
    task.warm_up()
    decider, indices, control = Decider(task), task.place[:, 1].tolist(), task.control
    with socket.socket(fileno=LINE) as line, route_sockets(task.place) as routes:
        rates = np.full(len(indices), np.nan)

        def keep(desired: np.ndarray, links: np.ndarray) -> None:
            for link in links[control.paced[links].astype(bool)].tolist():
                if desired[link] != rates[link]:
                    rate = float(desired[link])
                    routes[link].change_htb_class(indices[link], HTB_HANDLE, HTB_CLASS, rate, bucket_bytes(rate))
                    rates[link] = desired[link]

        keep(decider.rates(), np.arange(len(indices)))
        begin = begin_s(line)
        counted = np.zeros((4, len(indices)))
        for due, tick, change in _moments(task):
            time.sleep(max(begin + due - time.monotonic(), 0.0))
            if tick < 0:
                link = int(task.changes[change, 1])
                decider.capacity[link] = task.changes[change, 2]
                keep(decider.rates(), np.array([link]))
                continue
            acting = np.flatnonzero(control.phase == tick % control.ticks)
            for link in acting.tolist():
                counters = routes[link].qdisc(indices[link], HTB_CLASS).counters
                lost = task.packet * counters.drops
                arrived = counters.bytes + lost + counters.backlog_bytes
                counted[:, link] = arrived, counters.bytes, lost, counters.backlog_bytes
            keep(decider.decide(tick, acting, counted), acting)
    return 0


if __name__ == "__main__":
    sys.exit(main())
