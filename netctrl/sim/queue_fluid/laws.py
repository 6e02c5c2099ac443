"""Laws of queues in the fluid, each with the arithmetic of the implementation that runs it, in integers for Linux."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from netctrl.laws.aqm.law import Seen
from netctrl.laws.aqm.pie import PieParameters, PieQueue, PieState, pie_step
from netctrl.laws.aqm.red import RedParameters, red_adapted
from netctrl.laws.l4s.pi2 import pi2_base
from netctrl.laws.targets import dualpi2 as linux_dualpi2
from netctrl.laws.targets import pie as linux_pie
from netctrl.laws.targets.docsis_pie import ACTIVE, DocsisPieParameters, DocsisPieState, docsis_step, mean_spread_rate
from netctrl.laws.targets.dualpi2 import DUALPI2_ONE, Dualpi2Law, Dualpi2State
from netctrl.laws.targets.pie_law import PIE_ONE, PieLaw
from netctrl.laws.targets.reading import DelayReading
from netctrl.sim.queue_fluid.kernel import Marking

_TICK_S, _NS = 64e-9, 1e9
_SPARED_PACKETS = 2.0
"""Backlog below which neither PIE nor DualPI2 marks, in full packets."""
_DOCSIS_START = DocsisPieState(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Sight:
    """What a law sees at an update."""

    delay_s: float
    """Delay that it reads [s]."""
    backlog_packets: float
    rate: float
    """C [packet/s]."""
    packet_bytes: float
    average_packets: float = 0.0
    """RED's average of the backlog."""


class FluidLaw(Protocol):
    """A law with its state."""

    @property
    def update_s(self) -> float:
        """Time between two updates [s]."""
        ...

    @property
    def target_s(self) -> float:
        """Target of the queueing delay [s]."""
        ...

    @property
    def reading(self) -> DelayReading:
        """Delay that it reads."""
        ...

    @property
    def marked_leaving(self) -> bool:
        """Whether packets are marked as they leave."""
        ...

    def begin(self) -> None:
        """Set the state of a new queue."""
        ...

    def rest(self, x: float) -> None:
        """Set the state that has held the output x and the target for long."""
        ...

    def act(self, sight: Sight) -> Marking:
        """Update the state; what is marked until the next update."""
        ...


@dataclass(slots=True)
class LinuxPie:
    """Linux's pie: integers, spread drops, its burst allowance, its caps of a step, and no drops below half the target.

    Source: `netctrl.laws.targets.pie`.
    """

    law: PieLaw
    state: linux_pie.PieState = linux_pie.PIE_START
    marked_leaving: bool = False

    @property
    def update_s(self) -> float:
        """Interval in effect [s]."""
        return self.law.update_s

    @property
    def target_s(self) -> float:
        """Target in effect [s]."""
        return self.law.target_ticks * _TICK_S

    @property
    def reading(self) -> DelayReading:
        """Delay that it reads."""
        return self.law.reading

    def begin(self) -> None:
        """Set the state of a new queue."""
        self.state = linux_pie.PIE_START

    def rest(self, x: float) -> None:
        """Set the state that has held the probability x and the target for long."""
        target = self.law.target_ticks
        self.state = linux_pie.PieState(prob=round(x * PIE_ONE), qdelay=target, qdelay_old=target, burst_time=0)

    def act(self, sight: Sight) -> Marking:
        """Update the probability."""
        elapsed = round(self.law.update_s / _TICK_S)
        state = self.state._replace(burst_time=max(self.state.burst_time - elapsed, 0))
        if self.law.dq_rate_estimator:
            state = state._replace(avg_dq_rate=max(int(sight.rate * sight.packet_bytes * _TICK_S * 256.0), 1))
        backlog = round(sight.backlog_packets * sight.packet_bytes)
        self.state = state = linux_pie.pie_step(self.law, state, round(sight.delay_s * _NS), backlog)
        if state.burst_time > 0:
            return Marking(0.0, 0.0)
        p = linux_pie.pie_drop_rate(state.prob / PIE_ONE)
        return Marking(p, p, 0.5 * self.target_s if state.prob < PIE_ONE // 5 else 0.0, _SPARED_PACKETS)


@dataclass(slots=True)
class RfcPie:
    """PIE of RFC 8033 in real numbers, with its burst allowance and its caps."""

    queue: PieQueue
    reading: DelayReading
    state: PieState = field(default=PieState(0.0, 0.0, 0.0, 0.0))
    marked_leaving: bool = False

    @property
    def update_s(self) -> float:
        """[s]"""
        return self.queue.update

    @property
    def target_s(self) -> float:
        """[s]"""
        return self.queue.target

    def begin(self) -> None:
        """Set the state of a new queue."""
        self.state = PieState(0.0, 0.0, 0.0, 0.0)

    def rest(self, x: float) -> None:
        """Set the state that has held the probability x and the target for long."""
        self.state = PieState(x, x, self.queue.target, self.queue.burst)

    def act(self, sight: Sight) -> Marking:
        """Update the probability."""
        queue, read = self.queue, sight.delay_s * sight.rate
        seen = Seen(queue.update, 0.0, 0.0, read, sight.rate)
        parameters = PieParameters(queue.target, queue.alpha, queue.beta, queue.burst)
        self.state = pie_step(self.state, seen, parameters)
        return Marking(self.state.probability, self.state.probability)


@dataclass(slots=True)
class LinuxDualPi2:
    """Linux's dualpi2 in integers; its scalable queue is a constant delay, without its step.

    Source: `netctrl.laws.targets.dualpi2`.
    """

    law: Dualpi2Law
    state: Dualpi2State = field(default=Dualpi2State())
    reading: DelayReading = DelayReading.HEAD

    @property
    def update_s(self) -> float:
        """[s]"""
        return self.law.update_ns / _NS

    @property
    def target_s(self) -> float:
        """[s]"""
        return self.law.target_ns / _NS

    @property
    def marked_leaving(self) -> bool:
        """Whether packets are chosen as they leave."""
        return not self.law.drop_early

    def begin(self) -> None:
        """Set the state of a new queue."""
        self.state = Dualpi2State()

    def rest(self, x: float) -> None:
        """Set the state that has held p' = x and the target for long."""
        self.state = Dualpi2State(round(x * DUALPI2_ONE), self.law.target_ns)

    def act(self, sight: Sight) -> Marking:
        """Update p'."""
        self.state = linux_dualpi2.dualpi2_step(self.law, self.state, round(sight.delay_s * _NS))
        base = self.state.prob / DUALPI2_ONE
        return Marking(base * base, min(self.law.coupling * base, 1.0), 0.0, _SPARED_PACKETS)


@dataclass(slots=True)
class Pi2:
    """PI2 in one queue in real numbers."""

    target_s: float
    update_s: float
    alpha: float
    beta: float
    coupling: float
    base: float = 0.0
    old_delay_s: float = 0.0
    reading: DelayReading = DelayReading.BACKLOG
    marked_leaving: bool = False

    def begin(self) -> None:
        """Set the state of a new queue."""
        self.base, self.old_delay_s = 0.0, 0.0

    def rest(self, x: float) -> None:
        """Set the state that has held p' = x and the target for long."""
        self.base, self.old_delay_s = x, self.target_s

    def act(self, sight: Sight) -> Marking:
        """Update p'."""
        self.base = pi2_base(self.base, sight.delay_s, self.old_delay_s, self.target_s, self.alpha, self.beta)
        self.old_delay_s = sight.delay_s
        return Marking(self.base * self.base, min(self.coupling * self.base, 1.0))


@dataclass(slots=True)
class DocsisPie:
    """DOCSIS-PIE in real numbers, with its states, its burst protection and its caps.

    Source: `netctrl.laws.targets.docsis_pie`.
    """

    parameters: DocsisPieParameters
    update_s: float
    state: DocsisPieState = _DOCSIS_START
    reading: DelayReading = DelayReading.BACKLOG
    marked_leaving: bool = False

    @property
    def target_s(self) -> float:
        """[s]"""
        return self.parameters.target

    def begin(self) -> None:
        """Set the state of a new queue."""
        self.state = _DOCSIS_START

    def rest(self, x: float) -> None:
        """Set the state that has held the output x and the target for long."""
        self.state = DocsisPieState(0.0, x, self.target_s, 0.0, 0.0, ACTIVE, 0.0)

    def act(self, sight: Sight) -> Marking:
        """Update the output."""
        arrived = sight.rate * self.update_s  # of a busy link, apart from what the backlog changes
        seen = Seen(self.update_s, arrived, 0.0, sight.backlog_packets, sight.rate)
        self.state = docsis_step(self.state, seen, self.parameters)
        p = mean_spread_rate(min(self.state.drop_probability * self.parameters.size, 0.85))
        p = p if self.state.probability > 0.0 else 0.0
        return Marking(p, p, 0.0, self.parameters.spared)


@dataclass(slots=True)
class Red:
    """RED and WRED in real numbers; the average moves with arrivals, in the kernel.

    An adaptive one changes its probability at the upper threshold at each update, half a second apart.
    """

    parameters: RedParameters
    target_s: float
    """Standing delay of the equilibrium [s]."""
    update_s: float
    most: float = 0.0
    reading: DelayReading = DelayReading.BACKLOG
    marked_leaving: bool = False

    def begin(self) -> None:
        """Set the state of a new queue."""
        self.most = self.parameters.max_probability

    def rest(self, x: float) -> None:
        """Set the state that has held an output for long."""
        self.begin()

    def act(self, sight: Sight) -> Marking:
        """Adapt the probability at the upper threshold."""
        p = self.parameters
        if p.adaptive > 0.0:
            self.most = red_adapted(sight.average_packets, self.most, p.min_threshold, p.max_threshold)
        return Marking(0.0, 0.0, 0.0, 0.0, self.most, self.parameters)
