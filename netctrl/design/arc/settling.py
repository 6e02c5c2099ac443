"""Simulation of ARC's nonlinear loop, to see whether it comes to rest: Reno's window, the queue and the law.

The fluid of Misra, Gong and Towsley for one class of flows, exact for the epoch: p is held, arrivals are counted.
Plain Python, so that a design needs no compiling; the same functions are compiled for thousands of runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, pi, sqrt

from netctrl.laws.aqm.arc import ArcParameters, ArcState, arc_step
from netctrl.laws.aqm.law import Seen
from netctrl.model.design.arc import ArcSetting
from netctrl.plants.equilibrium import MIN_WINDOW, tcp_equilibrium
from netctrl.plants.linearize import applicable_plant, arc_arrival_rate, standing_queue

OSCILLATES = 0.05
"""Coefficient of variation of p, after a settling time, from which a loop counts as oscillating."""
_RESTS = 0.01  # below it the loop counts as at rest
_STEPS_PER_RTT = 16
_STEPS_PER_RADIAN = 24
_PERIODS_PER_BLOCK = 3.0
_MAX_BLOCKS = 30
_MAX_STEPS = 150_000  # per block; a run that comes to rest takes few blocks
_BUFFER_RTTS = 6.0
"""Buffer in round trips at capacity; the excess is lost, and senders notice the loss."""
STARTS = ((1.2, 1.0), (0.0, 0.0), (2.0, 0.5))
"""Window and probability of each start, over their equilibrium values; the window is at least one packet."""


@dataclass(frozen=True, slots=True)
class Settling:
    """Final behaviour of the fluid, for the worst of its starts."""

    probability_cv: float
    """Standard deviation of p over its mean, over epochs after a settling time."""
    utilization: float
    queue_packets: float
    """Mean queue [packet]."""
    duration_s: float
    """Simulated time of the longest run [s]."""

    @property
    def oscillates(self) -> bool:
        """Whether there is a limit cycle, or at least no rest."""
        return self.probability_cv >= OSCILLATES


def settle(flows: float, rtt: float, setting: ArcSetting, alpha: float, crossover: float) -> Settling | None:
    """Run the fluid at one operating point from each of `STARTS`, until it rests or has had enough time.

    Epochs far shorter than an integration step are processed several at a time, which neglects the hold within a step.
    None where windows are so large that a run would exceed the limit on steps.

    Parameters
    ----------
    flows, rtt : float
        N, and tau in equilibrium, with queueing [s].
    setting : ArcSetting
    alpha : float
        [1/packet]
    crossover : float
        Gain crossover of the loop [rad/s]; it sets the time that the fluid is run: blocks of three of its periods.
    """
    capacity, d = float(setting.capacity_packet_per_s), setting.epoch_s
    plant = applicable_plant(setting)
    queue = standing_queue(setting)
    rest = tcp_equilibrium(flows, rtt, float(arc_arrival_rate(setting, plant)))
    # The queue responds within a round trip, all else within the crossover's time.
    longest = min(max(rtt / _STEPS_PER_RTT, 1.0 / (_STEPS_PER_RADIAN * crossover)), 0.5 * rtt)
    together = max(1, int(longest / d))
    held = together * d
    substeps = ceil(held / longest * (1.0 - 1e-12))
    step = held / substeps
    length = ceil((1.0 + _BUFFER_RTTS) * rtt / step) + 3
    block = max(24, ceil(_PERIODS_PER_BLOCK * 2.0 * pi / (crossover * held)), ceil(24.0 * rtt / held))
    if block * substeps > _MAX_STEPS:
        return None
    worst: list[tuple[float, float, float, float]] = []
    for window_part, mark_part in STARTS:
        window = max(MIN_WINDOW, window_part * rest.window)
        p = min(1.0, mark_part * rest.marking)
        rates, marks, seen = [window / rtt] * length, [p] * length, [0.0] * block
        state = [window, queue, p, 0.0, 0.0, 0.0]
        parameters = (substeps, together, flows, capacity, rtt - queue / capacity, step, alpha, setting.utilization)
        time, cv, done = block * held, inf, 0
        while done < _MAX_BLOCKS and not cv < _RESTS:
            state[3], state[4] = 0.0, 0.0
            epochs(rates, marks, seen, state, *parameters, setting.target_queue_packets, _BUFFER_RTTS * rtt)
            mean = sum(seen) / block
            # Without a mark, as between two bursts of a slow limit cycle, p varies by more than with a single one.
            cv = sqrt(sum((value - mean) ** 2 for value in seen) / block) / mean if mean > 0.0 else sqrt(block)
            done += 1
        worst.append((cv, state[3] / (capacity * time), state[4] / time, done * time))
    return Settling(
        probability_cv=max(run[0] for run in worst),
        utilization=min(run[1] for run in worst),
        queue_packets=max(run[2] for run in worst),
        duration_s=max(run[3] for run in worst),
    )


def epochs(
    rates: list[float],
    marks: list[float],
    seen: list[float],
    state: list[float],
    substeps: int,
    together: int,
    flows: float,
    capacity: float,
    base: float,
    step: float,
    alpha: float,
    gamma: float,
    target: float,
    buffer_s: float,
) -> None:
    """Advance the fluid by `len(seen)` groups of epochs: implicit midpoint rule, delayed windows interpolated.

    Parameters
    ----------
    rates, marks : sequence of float
        Ring buffers of one flow's rate [packet/s] and of the probability, one step apart; `state[5]` is the newest
        index.
    seen : sequence of float
        Filled with p at each epoch.
    state : sequence of float
        Window, queue [packet], p, the sums of departures [packet] and of queue over time [packet s], and the index.
    substeps, together : int
        Number of steps between two updates of the law, and number of epochs that these represent.
    flows, capacity, base, step, alpha, gamma, target, buffer_s : float
        N, C [packet/s], round trip without queueing [s], step [s], the law's gain, gamma and q0, and the time to drain
        a full buffer [s].
    """
    window, queue, p, departed, waited = state[0], state[1], state[2], state[3], state[4]
    place, length = int(state[5]), len(rates)
    served, most = capacity * step, capacity * buffer_s
    longest = float(length - 3)
    for k in range(len(seen)):
        counted = 0.0
        for _ in range(substeps):
            rtt = base + queue / capacity
            back = min(max(rtt / step - 0.5, 0.0), longest)
            whole = int(back)
            part = back - whole
            newer, older = rates[place - whole], rates[place - whole - 1]
            delayed = newer + part * (older - newer)
            signal = marks[place - whole - (1 if part > 0.0 else 0)]
            loss = 0.5 * delayed * signal
            after = max(window + step * (1.0 / rtt - loss * window) / (1.0 + 0.5 * step * loss), 1.0)
            arrivals = flows * 0.5 * (window + after) / rtt * step
            offered = queue + arrivals
            gone = min(offered, served)
            queue = min(offered - gone, most)
            lost = offered - gone - queue
            window = after
            counted += arrivals
            departed += gone
            waited += queue * step
            place = place + 1 if place + 1 < length else 0
            rates[place] = window / (base + queue / capacity)
            marks[place] = p + (1.0 - p) * lost / arrivals
        # Each epoch reads the queue anew; the arrivals are those of all epochs of the group.
        at_the_end = Seen(substeps * step, counted, 0.0, together * queue, capacity)
        p = arc_step(ArcState(p), at_the_end, ArcParameters(alpha, gamma, together * target)).probability
        seen[k] = p
    state[0], state[1], state[2], state[3], state[4], state[5] = window, queue, p, departed, waited, float(place)
