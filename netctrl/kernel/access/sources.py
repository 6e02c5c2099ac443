"""What an access link's sources release in a period: premium packets, and bursts of regulated and of cross traffic.

The bursts, pauses and commands are those of the packet engine, so that both links see the same arrivals.
"""

from __future__ import annotations

from math import inf

import numpy as np

from netctrl.errors import NetctrlError
from netctrl.kernel.access.datagrams import Packets
from netctrl.kernel.access.task import AccessDraws
from netctrl.plants.access import pause_mean
from netctrl.plants.regulators import command, silent_gates
from netctrl.scenario.access.scenario import AccessLinkParts, flow_rates, source_of
from netctrl.units import BITS_PER_BYTE


class Sources:
    """All sources of a link. Packets are of kinds: 0 premium, then one for each regulated flow and each cross flow.

    Parameters
    ----------
    parts : AccessLinkParts
        With UDP behind the regulators.
    draws : AccessDraws
    """

    def __init__(self, parts: AccessLinkParts, draws: AccessDraws) -> None:
        self.parts, self.pauses, self.phase = parts, draws.pauses, draws.premium_phase
        bits = parts.packet_size * BITS_PER_BYTE
        self.spacing = bits / parts.line.access_rate
        self.period = parts.premium.size * BITS_PER_BYTE / parts.premium.rate
        F = len(draws.pauses)
        self.gates = gates = silent_gates(F, 0)
        self.used = [1] * F
        gates.held[:] = [pauses[0] for pauses in draws.pauses]
        for row, flow in enumerate(parts.cross, parts.flows):
            gates.burst[row] = gates.left[row] = flow.burst
            gates.pause[row] = pause_mean(flow.rate, flow.burst, bits, self.spacing)
            gates.next[row] = gates.held[row] * gates.pause[row]
        self.numbers = [0] * (1 + F)
        self.own = np.array([parts.regulated[place].burst for place in source_of(parts)])

    def release(self, rate: float, burst: int, begin: float, end: float) -> Packets:
        """Packets of (begin, end] [s], with all regulators at `rate` together [bit/s].

        inf opens the regulators; `burst` packets are released at once, 0: each group's own number.
        """
        turns = sorted({turn for turn in self.parts.turns if begin < turn < end})
        found = [self._premium(end)]
        bursts = np.full(len(self.own), burst) if burst else self.own
        for since, until in zip((begin, *turns), (*turns, end), strict=True):
            rates = flow_rates(self.parts, rate, since)
            command(self.gates, since, rates, bursts, self.parts.packet_size, self.spacing)
            found += [self._flow(flow, until) for flow in range(len(self.pauses))]
        at, kind, number = (np.concatenate(columns) for columns in zip(*found, strict=True))
        order = np.argsort(at, kind="stable")
        return Packets(at[order], kind[order], number[order])

    def _premium(self, end: float) -> Packets:
        first = self.numbers[0]
        numbers = np.arange(first, max(int((end - self.phase) / self.period) + 2, first))
        times = self.phase + self.period * numbers
        numbers = numbers[times <= end]
        self.numbers[0] = first + len(numbers)
        return Packets(times[times <= end], np.zeros(len(numbers), dtype=int), numbers)

    def _flow(self, flow: int, end: float) -> Packets:
        """Bursts of a flow up to a time."""
        gates, pauses = self.gates, self.pauses[flow]
        times: list[np.ndarray] = [np.zeros(0)]
        next_, left = float(gates.next[flow]), int(gates.left[flow])
        while next_ <= end:
            count = min(left, int((end - next_) / self.spacing) + 1)
            times.append(next_ + self.spacing * np.arange(count))
            last, left = float(times[-1][-1]), left - count
            gates.pausing[flow] = left == 0
            if left > 0:
                next_ = last + self.spacing
                continue
            if self.used[flow] == len(pauses):
                raise NetctrlError(f"flow {flow} needs more than the {len(pauses)} pauses that were drawn for it")
            gates.held[flow], left = pauses[self.used[flow]], int(gates.burst[flow])
            self.used[flow] += 1
            next_ = last + gates.held[flow] * gates.pause[flow] if gates.pause[flow] < inf else inf
        gates.next[flow], gates.left[flow] = next_, left
        at = np.concatenate(times)
        first = self.numbers[flow + 1]
        self.numbers[flow + 1] = first + len(at)
        return Packets(at, np.full(len(at), flow + 1), np.arange(first, first + len(at)))
