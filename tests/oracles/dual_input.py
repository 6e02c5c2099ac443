"""100,000 packets for two coupled queues of one link, from calm to overload, and what netctrl's law makes of each."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from histories import words

from netctrl.laws.l4s.dualpi2 import (
    DROP,
    MARK,
    DualPi2Queue,
    DualPi2State,
    classic_is_next,
    dualpi2_state,
    fresh_credit,
    judge_packet,
    spend_credit,
    update_dualpi2,
)
from netctrl.laws.record import fields_of
from netctrl.laws.targets.dualpi2 import DUALPI2_ONE, Dualpi2Law, Dualpi2State, dualpi2_step

SIZE, SERVICE_NS, LIMIT, STEP_PACKETS = 1500, 120_000, 400, 1
"""Of each packet [byte]; 100 Mbit/s; of both queues [packet]; found in the L queue for the step to apply."""
# Packets, mean gap [ns], and of a hundred those with ECT(1), ECT(0) and CE; the others can't be marked.
_PHASES = (
    (20_000, 135_000, 50, 30, 2),
    (20_000, 118_000, 45, 40, 1),
    (20_000, 124_000, 90, 6, 0),
    (15_000, 80_000, 40, 30, 2),
    (25_000, 170_000, 60, 20, 1),
)
SENT, MARKED, DROPPED, FULL = "0123"
"""Fates of packets."""


class Arrival(NamedTuple):
    time_ns: int
    codepoint: int
    """As in the IP header: 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE."""


def arrivals(seed: int) -> list[Arrival]:
    """The packets."""
    random, now, found = words(seed), 0, []
    for count, gap, scalable, classic, marked in _PHASES:
        for _ in range(count):
            now += next(random) % (2 * gap)
            part = next(random) % 100
            kinds = (1,) * scalable + (2,) * classic + (3,) * marked
            found.append(Arrival(now, kinds[part] if part < len(kinds) else 0))
    return found


class Floats:
    """The law that all engines run, with the gains that the kernel has in effect for its defaults."""

    def __init__(self) -> None:
        gains = Dualpi2Law.sent().gains
        queue = DualPi2Queue(alpha=gains.integral, beta=gains.proportional, step_packets=STEP_PACKETS)
        self.state = DualPi2State()
        for name, value in zip(fields_of(DualPi2State), dualpi2_state(queue, float(SIZE)), strict=True):
            setattr(self.state, name, value)

    def update(self, delay_ns: int) -> int:
        update_dualpi2(self.state, delay_ns / 1e9)
        return round(self.state.base_probability * DUALPI2_ONE)

    def judge(self, low: bool, capable: bool, late: bool, backlog: int, first: int, second: int) -> str:
        """Two numbers below p' are one below p'², the square of the larger."""
        squared = (max(first, second) / 2.0**32) ** 2
        single = low and self.state.coupling * self.state.base_probability < 1.0
        fate = judge_packet(self.state, low, capable, late, float(backlog), first / 2.0**32 if single else squared)
        return DROPPED if fate == DROP else MARKED if fate == MARK else SENT


class Integers:
    """The law in the kernel's arithmetic."""

    def __init__(self) -> None:
        self.law, self.now = Dualpi2Law.sent(min_qlen_step=STEP_PACKETS), Dualpi2State()

    def update(self, delay_ns: int) -> int:
        self.now = dualpi2_step(self.law, self.now, delay_ns)
        return self.now.prob

    def judge(self, low: bool, capable: bool, late: bool, backlog: int, first: int, second: int) -> str:
        p, coupled, fate = self.now.prob, self.now.prob * self.law.coupling, SENT
        squared, overload = first <= p and second <= p, coupled > DUALPI2_ONE
        if backlog >= 2 * SIZE and low:
            fate = DROPPED if overload and squared else MARKED if overload or first <= coupled else SENT
        elif backlog >= 2 * SIZE and squared:
            fate = DROPPED if overload or not capable else MARKED
        return MARKED if fate == SENT and low and late else fate


def fates(
    packets: list[Arrival], law: Floats | Integers, random: Callable[[], tuple[int, int]]
) -> tuple[str, list[int]]:
    """Fate of each packet, and p' after each update in the kernel's unit; a packet that is taken takes two numbers of
    32 bits.

    An update comes before all else at its time, an arrival before a service.
    """
    found, base = [""] * len(packets), []
    queues: tuple[deque[tuple[int, bool]], deque[tuple[int, bool]]] = (deque(), deque())  # C, L
    update_ns, weight, step_ns = 16_000_000, 10.0, 1_000_000
    credit, busy, update, place, idle = fresh_credit(weight, SIZE), 0, update_ns, 0, True

    def serve(now: int) -> bool:
        nonlocal credit
        while queues[0] or queues[1]:
            classic = classic_is_next(credit, bool(queues[1]), bool(queues[0]))
            number, steps = queues[not classic].popleft()
            backlog = SIZE * (len(queues[0]) + len(queues[1]))
            late = steps and now - packets[number].time_ns > step_ns
            capable = packets[number].codepoint != 0
            fate = law.judge(not classic, capable, late, backlog, *random())
            found[number] = fate
            if fate == DROPPED:
                continue
            if queues[classic]:
                credit = spend_credit(credit, weight, classic, SIZE)
            return True
        credit = fresh_credit(weight, SIZE)
        return False

    while place < len(packets) or not idle:
        came = packets[place].time_ns if place < len(packets) else busy + 1
        now = min(came, came if idle else busy)
        if update <= now:
            ages = [update - packets[queue[0][0]].time_ns for queue in queues if queue]
            base.append(law.update(max(ages, default=0)))
            update += update_ns
            continue
        if place < len(packets) and came == now:
            low = packets[place].codepoint in (1, 3)
            if len(queues[0]) + len(queues[1]) >= LIMIT:
                found[place] = FULL
            else:
                queues[low].append((place, low and len(queues[1]) >= STEP_PACKETS))
            place += 1
            if not idle:
                continue
        idle = not serve(now)
        busy = now + SERVICE_NS
    return "".join(found), base
