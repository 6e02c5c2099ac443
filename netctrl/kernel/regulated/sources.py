"""When regulated flows' packets leave: bursts and pauses of the packet engine, with the same draws."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from netctrl.core.units import BITS_PER_BYTE
from netctrl.kernel.regulated.datagrams import Packets
from netctrl.kernel.regulated.task import RegulatedTask
from netctrl.scenario.network.track import GateSettings

_NS = 1e9
_NEVER = 1 << 62
_LONGEST = 1e17  # a longer mean pause is that of rate 0 [ns]
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


class Gate:
    """Regulator of one flow (`netctrl.sim.packet.links.gates`), which goes on from call to call. Times in ns."""

    def __init__(self, gate: GateSettings, packet: int, opens: int, random: np.uint64, span: tuple[int, int]) -> None:
        self.packet, self.within = packet, max(round(_NS * gate.within_s), 1)
        self.variation, self.opens, self.random = gate.variation, opens, random
        self.start, self.stop = span
        self.burst = self.left = gate.burst
        self.mean = self._mean(gate.rate, gate.burst)
        self.pausing, self.held = True, 0.0
        self.drawn, self.used = np.zeros(0), 0

    def set(self, now: int, rate: float, burst: int) -> None:
        """Another rate [bit/s] and burst from now on: a pause is stretched, a burst is finished."""
        since, before, mean = max(now, self.start), self.mean, self._mean(rate, burst)
        if (mean, burst) == (before, self.burst):
            return
        self.mean, self.burst = mean, burst
        if self.pausing:
            self.left = burst
            if self.opens > since:  # else its packet may go now
                self._pause(since, self.held if before == _NEVER else (self.opens - since) / before)

    def release(self, now: int, end: int) -> np.ndarray:
        """Times of the packets up to `end`."""
        self.opens = max(self.opens, now)
        found: list[np.ndarray] = [np.zeros(0, dtype=np.int64)]
        while self.opens <= end and self.opens < self.stop:
            count = min(self.left, (min(end, self.stop - 1) - self.opens) // self.within + 1)
            found.append(self.opens + self.within * np.arange(count))
            last = int(found[-1][-1])
            self.left -= count
            self.pausing = self.left == 0
            if not self.pausing:
                self.opens = last + self.within
                continue
            self.left = self.burst
            self._pause(last, self._share())
        return np.concatenate(found)

    def _mean(self, rate: float, burst: int) -> int:
        """Mean pause; `_NEVER` at rate 0."""
        bits = _NS * BITS_PER_BYTE * self.packet * burst
        if rate <= 0.0 or bits > _LONGEST * rate:
            return _NEVER
        return max(round(bits / rate - float((burst - 1) * self.within)), 1)

    def _pause(self, since: int, share: float) -> None:
        if self.mean == _NEVER:
            self.held, self.opens = share, _NEVER
        else:
            self.opens = since + max(round(share * self.mean), 1)

    def _share(self) -> float:
        """The next pause over its mean."""
        v = self.variation
        if v == 0.0:
            return 1.0
        place = self.used % _DRAWN
        if place == 0:
            self.drawn = chances(self.random, self.used, _DRAWN)
        self.used += 1
        return float(1.0 - v + v * -np.log(1.0 - self.drawn[place]))


class Sources:
    """All regulated flows, numbered as kinds of packets in the order of the task's groups."""

    def __init__(self, task: RegulatedTask) -> None:
        self.gates: list[Gate] = []
        group: list[int] = []
        for place, each in enumerate(task.groups):
            spans = zip(each.start_ns.tolist(), each.stop_ns.tolist(), strict=True)
            rows = zip(each.draws.opens.tolist(), each.draws.random, spans, strict=True)
            self.gates += [Gate(each.gate, task.packet_size, *row) for row in rows]
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
