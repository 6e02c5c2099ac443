"""Onset of oscillation in the nonlinear fluid: bisection on ARC's gain, from small deviations of the equilibrium.

A late amplitude above the early one does not indicate instability reliably: a saturated limit cycle doesn't grow, and
round-off may grow after all deviations have decayed. So the test has two parts: the amplitude at the end exceeds
round-off, and it has grown or is far above the initial deviation.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from netctrl.core.errors import InvalidValue, checked_number
from netctrl.core.units import BITS_PER_BYTE
from netctrl.laws.aqm.arc import ArcQueue
from netctrl.laws.aqm.fluid import PROBABILITY
from netctrl.model.design.arc import ArcSetting
from netctrl.plants.equilibrium import tcp_equilibrium
from netctrl.plants.linearize import applicable_plant, arc_arrival_rate
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.sim.fluid.kernel import advance
from netctrl.sim.fluid.problem import Problem, problem

_PACKET = 1000.0  # bytes; all results are per packet
_DEVIATION = 1e-3  # initial relative deviation of the windows
_ROUND_OFF = 1e-9  # relative amplitude of round-off
_SATURATED = 20.0 * _DEVIATION  # relative amplitude above any decaying deviation
_STEPS_PER_RTT = 50
_EPOCHS_PER_RUN = 600


def oscillates(series: np.ndarray, level: float) -> bool:
    """Whether a deviation from `level` persists: above round-off at the end, and grown or large.

    Parameters
    ----------
    series : ndarray
        Series with the deviation, over many periods; the first fifth counts as a transient.
    level : float
        Its equilibrium, above 0.
    """
    fifth = len(series) // 5
    deviation = series / level - 1.0
    early = float(np.sqrt(np.mean(deviation[fifth : 3 * fifth] ** 2)))
    late = float(np.sqrt(np.mean(deviation[3 * fifth :] ** 2)))
    return late > _ROUND_OFF and (late > early or late > _SATURATED)


def arc_onset(
    flows: float, rtt_s: float, setting: ArcSetting, *, between: tuple[float, float], tolerance: float = 1e-3
) -> float:
    """Gain alpha per packet above which the nonlinear fluid under ARC oscillates.

    Parameters
    ----------
    flows : float
        N, equal TCP flows.
    rtt_s : float
        Round-trip time in equilibrium, with queueing [s].
    setting : ArcSetting
        The link and the law without its gain.
    between : (float, float)
        A stable and an unstable gain; the bisection is geometric.
    tolerance : float
        Relative width at which it ends.

    Raises
    ------
    InvalidValue
        `between` doesn't contain the onset, or the equilibrium's queueing delay exceeds `rtt_s`.
    """
    low, high = (checked_number("between", gain, "two gains above 0", above=0.0) for gain in between)
    if _unstable(low, flows, rtt_s, setting) or not _unstable(high, flows, rtt_s, setting):
        raise InvalidValue(
            "between", between, "a gain at which the fluid is stable and a greater one at which it isn't"
        )
    while high / low > 1.0 + tolerance:
        middle = (low * high) ** 0.5
        if _unstable(middle, flows, rtt_s, setting):
            high = middle
        else:
            low = middle
    return (low * high) ** 0.5


def _unstable(alpha: float, flows: float, rtt_s: float, setting: ArcSetting) -> bool:
    rest = tcp_equilibrium(flows, rtt_s, arc_arrival_rate(setting, applicable_plant(setting)))
    ready = _near_rest(alpha, flows, rtt_s, setting)
    advance(ready.plant, ready.state, ready.record, np.zeros((0, ready.steps)), 0, ready.steps)
    return oscillates(ready.record.links[5, 0], float(rest.marking))


def _near_rest(alpha: float, flows: float, rtt_s: float, setting: ArcSetting) -> Problem:
    """The simulator's arrays in equilibrium, except for the windows."""
    gamma, d, C = setting.utilization, setting.epoch_s, float(setting.capacity_packet_per_s)
    queue = 0.0
    if applicable_plant(setting) == "phys":
        queue = setting.target_queue_packets - d * C * (1.0 - gamma) / gamma
    if queue / C >= rtt_s:
        raise InvalidValue("rtt_s", rtt_s, f"more than the queueing delay of the equilibrium ({queue / C:g} s)")
    line = Link(
        id="link",
        source="a",
        target="b",
        capacity=C * BITS_PER_BYTE * _PACKET,
        buffer=_PACKET * (queue + C * (rtt_s + d)) * 10.0,
        queue=ArcQueue(
            alpha=alpha, epoch=d, target_utilization=gamma, target_queue=setting.target_queue_packets * _PACKET
        ),
    )
    senders = Flow(id="tcp", rtt=rtt_s - queue / C)
    ready = problem(
        Scenario(
            name="onset",
            duration=max(_EPOCHS_PER_RUN * d, 1000.0 * rtt_s),
            interval=d,
            step=d / ceil(d * _STEPS_PER_RTT / rtt_s),
            links=(line,),
            flows=(senders,),
        )
    )
    rest = tcp_equilibrium(flows, rtt_s, arc_arrival_rate(setting, applicable_plant(setting)))
    ready.plant.event_value[:] = flows
    state = ready.state
    state.window[:] = rest.window * (1.0 + _DEVIATION)
    state.rate[:] = rest.window / rtt_s
    state.signal[:] = state.law[:, PROBABILITY] = rest.marking
    state.backlog[:] = queue
    return ready
