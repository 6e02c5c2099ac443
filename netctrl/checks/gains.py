"""Figures of a queue with the gains of a law at the corners of a box: its delay, its link's use, and steps of the load.

On packets a run has all of it: all flows begin, the queue rests, and then flows double and halve again a few times, or
with a queue for each flow the rate of one halves and doubles.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import msgspec
import numpy as np

from netctrl.certificates.codel import CodelSubject
from netctrl.certificates.record import CertifyInputs
from netctrl.certificates.red import RedSubject
from netctrl.certificates.subject import PiSubject
from netctrl.checks import checked_engines
from netctrl.checks.engines import SEEDS, check_scenario, growth_s, moments, settling_s
from netctrl.checks.laws import fluid_queue
from netctrl.checks.point import CheckPoint, corners_of
from netctrl.checks.steps import AFTER_S, AFTER_TRIPS, TARGETS, joining
from netctrl.core.units import BITS_PER_BYTE
from netctrl.engines.engine import simulate
from netctrl.model.design.queue_checks import GainsFigures
from netctrl.scenario.links import Change
from netctrl.sim.fluid.certified.run import STARTS, swing_of, time_above

_NEAR, _, _FULL = STARTS
_LOOKED_AT_S, _LEAST_TRIPS = 20.0, 200.0
"""Duration of the fluid's run after a start [s], and its least number of round trips."""
_DOUBLINGS = {"packet": 3, "kernel": 1}
_SAMPLE_S = 5e-3
_USUAL_S, _USUAL_PACKETS = 5e-3, 1.5
"""CoDel's usual target, whatever a design has, and the packets that it has at least, as by CAKE and OpenWrt's sqm."""
_GROWTHS, _LOOKED_AT_MOST_S = 6.0, 240.0
"""Cuts of a window that a run of CoDel has, at most, and its longest duration without steps [s]."""


def gains_figures(
    subject: PiSubject | RedSubject | CodelSubject, inputs: CertifyInputs, engine: str, seeds: tuple[int, ...] = SEEDS
) -> tuple[GainsFigures, ...]:
    """Figures at the corners of a box with its first sender: in the fluid, which has no chance, of the largest and the
    smallest windows.

    Parameters
    ----------
    subject : PiSubject, RedSubject or CodelSubject
    inputs : CertifyInputs
        The box.
    engine : str
        "fluid", "packet" or "kernel".
    seeds : tuple of int
        Of runs with packets, whose medians the figures are: in a rare run a queue empties or stands for seconds.

    Raises
    ------
    InvalidValue
        A law or sender that the engine hasn't.
    """
    (name,) = checked_engines(engine)
    figures = []
    for point in corners_of(subject, inputs, name):
        if name == "fluid":
            rest = swing_of(fluid_queue(point), _NEAR)
            found = (rest.mean_delay_s, None, None, _after_full(point), rest.utilization)
        else:
            *others, begun, doubled, used = np.median([_run(point, name, seed) for seed in seeds], axis=0).tolist()
            found = (*others, max(begun, doubled), used)
        mean, deviation, most, above, used = found
        figures.append(
            GainsFigures(
                engine=name,
                senders=point.mixture.text,
                flows=point.flows,
                rtt_s=point.rtt_s,
                parameters=dict(point.subject.parameters),
                mean_delay_s=mean,
                deviation_s=deviation,
                delay_99_s=most,
                above_s=above,
                utilization=used,
            )
        )
    return tuple(figures)


def _target(point: CheckPoint) -> float:
    """Target of a law, of CoDel the usual one [s]; of a line the middle of the usual one, from the lower threshold to
    three times that."""
    if isinstance(point.subject, CodelSubject):
        return max(_USUAL_S, _USUAL_PACKETS / point.loop.rate)
    if not isinstance(point.subject, RedSubject):
        return point.target_s
    return 2.0 * float(point.subject.parameters["min_bytes"]) / (point.loop.rate * point.packet_bytes)


def _after_full(point: CheckPoint) -> float:
    """Time above two targets after a full queue with twice the windows, in the fluid [s]."""
    duration = max(_LOOKED_AT_S, _LEAST_TRIPS * (point.rtt_s + point.target_s))
    return time_above(fluid_queue(point), _FULL, TARGETS * point.target_s, duration)


def _run(point: CheckPoint, engine: Any, seed: int) -> list[float]:
    """Mean, deviation and 99th percentile of the delay; times above two targets after all flows begin, and after they
    double [s]; utilization."""
    times = None
    if isinstance(point.subject, CodelSubject):
        warm = settling_s(point)
        times = warm, warm + min(max(warm, _GROWTHS * growth_s(point)), _LOOKED_AT_MOST_S)
    base = check_scenario(point, engine, seed, times)
    warm, rested, times = base.warmup, base.duration, _DOUBLINGS[engine]
    after = max(min(AFTER_S, rested), AFTER_TRIPS * (point.rtt_s + point.target_s))
    begins = [rested + 2.0 * i * after for i in range(times)]
    end, (line,) = begins[-1] + after, base.links
    steps: dict[str, Any]
    if point.subject.per_flow:
        halved = [Change(at=at, link=line.id, capacity=line.capacity / 2.0) for at in begins]
        back = [Change(at=at + after, link=line.id, capacity=line.capacity) for at in begins[:-1]]
        steps = {"changes": (*halved, *back)}
    else:
        joined = [joining(base, at, point.rtt_s, name=f"more{i}", until=at + after) for i, at in enumerate(begins)]
        steps = {"flows": (*base.flows, *chain(*joined))}
    scenario = msgspec.structs.replace(
        base, **steps, duration=end, interval=max(min(base.interval, _SAMPLE_S), end / 1e5)
    )
    result: Any = simulate(scenario, engine)
    time, step = result.time_s, scenario.interval
    delay = BITS_PER_BYTE * result.series["backlog"][0] / result.series["capacity"][0]
    resting = (time > warm) & (time <= rested)
    late, above = delay[resting], step * (delay > TARGETS * _target(point))
    doubled = sum(float(above[(time > at) & (time <= at + after)].sum()) for at in begins) / times
    used = BITS_PER_BYTE * result.series["departed"][0][resting].sum() / (line.capacity * step * len(late))
    return [*moments(late), above[time <= after].sum(), doubled, used]
