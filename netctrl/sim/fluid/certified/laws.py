"""Laws of queues in the fluid, each with the arithmetic of the implementation that runs it, in integers for Linux."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from netctrl.laws.aqm.law import Seen
from netctrl.laws.aqm.pie import PieParameters, PieQueue, PieState, pie_step
from netctrl.laws.aqm.red import RedParameters, red_adapted
from netctrl.laws.l4s.pi2 import pi2_base
from netctrl.laws.targets.docsis_pie import ACTIVE, DocsisPieParameters, DocsisPieState, docsis_step, mean_spread_rate
from netctrl.laws.targets.dualpi2 import DUALPI2_ONE, Dualpi2Law, Dualpi2State, dualpi2_step
from netctrl.laws.targets.pie import PIE_START, pie_drop_rate
from netctrl.laws.targets.pie import PieState as LinuxPieState
from netctrl.laws.targets.pie import pie_step as linux_pie_step
from netctrl.laws.targets.pie_law import PIE_ONE, PieLaw
from netctrl.laws.targets.reading import DelayReading
from netctrl.sim.fluid.certified.kernel import Marking

_TICK_S, _NS = 64e-9, 1e9
_SPARED_PACKETS = 2.0
"""Backlog below which neither PIE nor DualPI2 marks, in full packets."""


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


@dataclass(slots=True)
class FluidLaw:
    """A law with its state."""

    update_s: float
    """Time between two updates, in effect [s]."""
    target_s: float
    """Target of the queueing delay, in effect [s]."""
    first: Any
    """State of a new queue."""
    resting: Callable[[float], Any]
    """State that has held an output and the target for long."""
    step: Callable[[Any, Sight], Any]
    """State after an update."""
    marks: Callable[[Any], Marking]
    """What is marked with this state."""
    reading: DelayReading = DelayReading.BACKLOG
    """Delay that it reads."""
    marked_leaving: bool = False
    """Whether packets are marked as they leave."""
    state: Any = None

    def begin(self) -> None:
        """Set the state of a new queue."""
        self.state = self.first

    def rest(self, x: float) -> None:
        """Set the state that has held the output x and the target for long."""
        self.state = self.resting(x)

    def act(self, sight: Sight) -> Marking:
        """Update the state; what is marked until the next update."""
        self.state = self.step(self.state, sight)
        return self.marks(self.state)


def fluid_linux_pie(law: PieLaw) -> FluidLaw:
    """Linux's pie: integers, spread drops, its burst allowance, its caps of a step, and no drops below half the target.

    Source: `netctrl.laws.targets.pie`.
    """
    target = law.target_ticks
    target_s = target * _TICK_S

    def step(state: LinuxPieState, sight: Sight) -> LinuxPieState:
        elapsed = round(law.update_s / _TICK_S)
        state = state._replace(burst_time=max(state.burst_time - elapsed, 0))
        if law.dq_rate_estimator:
            state = state._replace(avg_dq_rate=max(int(sight.rate * sight.packet_bytes * _TICK_S * 256.0), 1))
        return linux_pie_step(law, state, round(sight.delay_s * _NS), round(sight.backlog_packets * sight.packet_bytes))

    def marks(state: LinuxPieState) -> Marking:
        if state.burst_time > 0:
            return Marking(0.0, 0.0)
        p = pie_drop_rate(state.prob / PIE_ONE)
        return Marking(p, p, 0.5 * target_s if state.prob < PIE_ONE // 5 else 0.0, _SPARED_PACKETS)

    def resting(x: float) -> LinuxPieState:
        return LinuxPieState(prob=round(x * PIE_ONE), qdelay=target, qdelay_old=target, burst_time=0)

    return FluidLaw(law.update_s, target_s, PIE_START, resting, step, marks, law.reading)


def fluid_rfc_pie(queue: PieQueue, reading: DelayReading) -> FluidLaw:
    """PIE of RFC 8033 in real numbers, with its burst allowance and its caps."""
    parameters = PieParameters(queue.target, queue.alpha, queue.beta, queue.burst)

    def step(state: PieState, sight: Sight) -> PieState:
        return pie_step(state, Seen(queue.update, 0.0, 0.0, sight.delay_s * sight.rate, sight.rate), parameters)

    def resting(x: float) -> PieState:
        return PieState(x, x, queue.target, queue.burst)

    def marks(state: PieState) -> Marking:
        return Marking(state.probability, state.probability)

    return FluidLaw(queue.update, queue.target, PieState(0.0, 0.0, 0.0, 0.0), resting, step, marks, reading)


def fluid_linux_dualpi2(law: Dualpi2Law) -> FluidLaw:
    """Linux's dualpi2 in integers; its scalable queue is a constant delay, without its step. An output is p'.

    Source: `netctrl.laws.targets.dualpi2`.
    """

    def step(state: Dualpi2State, sight: Sight) -> Dualpi2State:
        return dualpi2_step(law, state, round(sight.delay_s * _NS))

    def resting(x: float) -> Dualpi2State:
        return Dualpi2State(round(x * DUALPI2_ONE), law.target_ns)

    def marks(state: Dualpi2State) -> Marking:
        base = state.prob / DUALPI2_ONE
        return Marking(base * base, min(law.coupling * base, 1.0), 0.0, _SPARED_PACKETS)

    leaving = not law.drop_early
    update, target = law.update_ns / _NS, law.target_ns / _NS
    return FluidLaw(update, target, Dualpi2State(), resting, step, marks, DelayReading.HEAD, leaving)


def fluid_pi2(target_s: float, update_s: float, alpha: float, beta: float, coupling: float) -> FluidLaw:
    """PI2 in one queue in real numbers; its state is p' and the delay of the last update."""

    def step(state: tuple[float, float], sight: Sight) -> tuple[float, float]:
        return pi2_base(state[0], sight.delay_s, state[1], target_s, alpha, beta), sight.delay_s

    def resting(x: float) -> tuple[float, float]:
        return x, target_s

    def marks(state: tuple[float, float]) -> Marking:
        return Marking(state[0] * state[0], min(coupling * state[0], 1.0))

    return FluidLaw(update_s, target_s, (0.0, 0.0), resting, step, marks)


def fluid_docsis_pie(parameters: DocsisPieParameters, update_s: float) -> FluidLaw:
    """DOCSIS-PIE in real numbers, with its states, its burst protection and its caps.

    Source: `netctrl.laws.targets.docsis_pie`.
    """

    def step(state: DocsisPieState, sight: Sight) -> DocsisPieState:
        arrived = sight.rate * update_s  # of a busy link, apart from what the backlog changes
        return docsis_step(state, Seen(update_s, arrived, 0.0, sight.backlog_packets, sight.rate), parameters)

    def resting(x: float) -> DocsisPieState:
        return DocsisPieState(0.0, x, parameters.target, 0.0, 0.0, ACTIVE, 0.0)

    def marks(state: DocsisPieState) -> Marking:
        p = mean_spread_rate(min(state.drop_probability * parameters.size, 0.85))
        p = p if state.probability > 0.0 else 0.0
        return Marking(p, p, 0.0, parameters.spared)

    first = DocsisPieState(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    return FluidLaw(update_s, parameters.target, first, resting, step, marks)


def fluid_red(parameters: RedParameters, target_s: float, update_s: float) -> FluidLaw:
    """RED and WRED in real numbers; the average moves with arrivals, in the kernel. The state is the probability at the
    upper threshold, which an adaptive one changes at each update, half a second apart; `target_s` is the standing delay
    of the equilibrium."""
    most = parameters.max_probability

    def step(state: float, sight: Sight) -> float:
        if parameters.adaptive == 0.0:
            return state
        return red_adapted(sight.average_packets, state, parameters.min_threshold, parameters.max_threshold)

    def marks(state: float) -> Marking:
        return Marking(0.0, 0.0, 0.0, 0.0, state, parameters)

    return FluidLaw(update_s, target_s, most, lambda _: most, step, marks)
