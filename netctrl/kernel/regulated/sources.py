"""When regulated flows' packets leave: bursts and pauses of the packet engine, with the same draws."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from netctrl.kernel.regulated.datagrams import Packets
from netctrl.kernel.regulated.task import RegulatedTask
from netctrl.laws.rate.gate import Gate, mean_pause, pass_gate, set_gate
from netctrl.scenario.network.track import GateSettings

_NS = 1e9
_DRAWN = 512  # at a time
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def chances(state: np.uint64, first: int, count: int) -> np.ndarray:
    """(count,) numbers of a generator from its `first` on, evenly from [0, 1).

    Source: Steele, Lea, Flood, Fast splittable pseudorandom number generators, 2014 (SplitMix64).
    """
    z = state + _GOLDEN * np.arange(first + 1, first + count + 1, dtype=np.uint64)
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


class Source:
    """Gate of one flow (`netctrl.laws.rate.gate`), which goes on from call to call. Times in ns."""

    def __init__(self, gate: GateSettings, packet: int, opens: int, random: np.uint64, span: tuple[int, int]) -> None:
        self.packet, self.within = packet, max(round(_NS * gate.within_s), 1)
        self.variation, self.random = gate.variation, random
        self.start, self.stop = span
        mean = mean_pause(gate.rate, gate.burst, packet, self.within)
        self.gate = Gate(int(opens), mean, gate.burst, gate.burst, 1, 0.0)
        self.drawn, self.used = np.zeros(0), 0

    def set(self, now: int, rate: float, burst: int) -> None:
        """Another rate [bit/s] and burst from now on: a pause is stretched, a burst is finished."""
        self.gate = set_gate(self.gate, self.within, self.packet, max(now, self.start), rate, burst)

    def release(self, now: int, end: int) -> np.ndarray:
        """Times of the packets up to `end`."""
        gate = self.gate._replace(opens=max(self.gate.opens, now))
        found: list[np.ndarray] = [np.zeros(0, dtype=np.int64)]
        while gate.opens <= end and gate.opens < self.stop:
            count = min(gate.left, (min(end, self.stop - 1) - gate.opens) // self.within + 1)
            found.append(gate.opens + self.within * np.arange(count))
            rest = gate._replace(left=gate.left - count + 1)  # the last packet is still to go
            drawn = self._drawn() if rest.left == 1 and self.variation > 0.0 else 0.0
            gate = pass_gate(rest, self.within, self.variation, int(found[-1][-1]), drawn)
        self.gate = gate
        return np.concatenate(found)

    def _drawn(self) -> float:
        place = self.used % _DRAWN
        if place == 0:
            self.drawn = chances(self.random, self.used, _DRAWN)
        self.used += 1
        return float(self.drawn[place])


class Sources:
    """All regulated flows, numbered as kinds of packets in the order of the task's groups."""

    def __init__(self, task: RegulatedTask) -> None:
        self.gates: list[Source] = []
        group: list[int] = []
        for place, each in enumerate(task.groups):
            spans = zip(each.start_ns.tolist(), each.stop_ns.tolist(), strict=True)
            rows = zip(each.draws.opens.tolist(), each.draws.random, spans, strict=True)
            self.gates += [Source(each.gate, task.packet_size, *row) for row in rows]
            group += [place] * len(each.draws.opens)
        self.group = np.array(group)
        """(F,) place of each flow's group."""
        self.told = np.array([task.groups[place].gate.rate for place in group])
        self.bursts = np.array([task.groups[place].gate.burst for place in group])
        self.fixed = np.full(len(group), np.nan)
        self.changes, self.numbers = list(task.changes), np.zeros(len(group), dtype=np.int64)

    def command(self, now: int, flows: np.ndarray, rates: np.ndarray, bursts: np.ndarray) -> None:
        """A law sets rates [bit/s] and bursts of some flows from now on [ns]."""
        self.told[flows], self.bursts[flows] = rates, bursts
        self._set(now, flows)

    def release(self, begin: int, end: int) -> Packets:
        """Packets of (begin, end] [ns]."""
        turns = sorted({at for at, _, _ in self.changes if begin < at < end})
        found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        for since, until in pairwise((begin, *turns, end)):
            for at, place, rate in self.changes:
                if at == since:
                    flows = np.flatnonzero(self.group == place)
                    self.fixed[flows] = np.nan if rate is None else rate
                    self._set(since, flows)
            for kind, gate in enumerate(self.gates):
                times = gate.release(since, until)
                first = self.numbers[kind]
                self.numbers[kind] += len(times)
                found.append((times, np.full(len(times), kind), first + np.arange(len(times))))
        at_ns, kinds, numbers = (np.concatenate(columns) for columns in zip(*found, strict=True))
        order = np.argsort(at_ns, kind="stable")
        return Packets(at_ns[order] / _NS, kinds[order], numbers[order])

    def _set(self, now: int, flows: np.ndarray) -> None:
        for kind in flows.tolist():
            fixed = float(self.fixed[kind])
            rate = float(self.told[kind]) if np.isnan(fixed) else fixed
            self.gates[kind].set(now, rate, int(self.bursts[kind]))
