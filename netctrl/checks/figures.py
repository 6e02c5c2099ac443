"""Figures of a PI law at the corners of a box: what its queue is like there, in the fluid or on packets."""

from __future__ import annotations

from typing import Any

import numpy as np

from netctrl.certificates.record import CertifyInputs
from netctrl.certificates.subject import PiSubject
from netctrl.checks.check import checked_engines
from netctrl.checks.engines import SEEDS, check_scenario
from netctrl.checks.fluid import fluid_queue
from netctrl.checks.point import CheckPoint, corners_of
from netctrl.engines.engine import simulate
from netctrl.model.design.queue_checks import GainsFigures
from netctrl.sim.queue_fluid.run import STARTS, swing_of, time_above
from netctrl.units import BITS_PER_BYTE

__all__ = ["gains_figures"]

_NEAR, _EMPTY, _FULL = STARTS
_LOOKED_AT_S, _TRIPS = 20.0, 200.0
"""How long the fluid is looked at after a start, and at least in round trips."""


def gains_figures(subject: PiSubject, inputs: CertifyInputs, engine: str) -> tuple[GainsFigures, ...]:
    """Figures where windows are largest and where they are smallest, with the first sender of a box.

    In the fluid a start is a full queue of three targets with twice the windows; on packets slow start of all flows,
    means of three seeds.

    Parameters
    ----------
    subject : PiSubject
    inputs : CertifyInputs
        The box.
    engine : str
        "fluid", "packet" or "kernel".

    Raises
    ------
    InvalidValue
        A law or sender that the engine hasn't.
    """
    (name,) = checked_engines(engine)
    return tuple(
        _in_fluid(point) if name == "fluid" else _on_packets(point, name) for point in corners_of(subject, inputs, name)
    )


def _in_fluid(point: CheckPoint) -> GainsFigures:
    queue = fluid_queue(point)
    duration = max(_LOOKED_AT_S, _TRIPS * (point.rtt_s + point.target_s))
    above = time_above(queue, _FULL, 2.0 * point.target_s, duration)
    rest = swing_of(queue, _NEAR)
    return _figures(point, "fluid", rest.mean_delay_s, None, None, above, rest.utilization)


def _on_packets(point: CheckPoint, engine: str) -> GainsFigures:
    found = []
    for seed in SEEDS:
        scenario = check_scenario(point, engine, seed)
        result: Any = simulate(scenario, engine)
        delay = BITS_PER_BYTE * result.series["backlog"][0] / scenario.links[0].capacity
        late = delay[result.time_s > scenario.time.warmup]
        above = scenario.interval * np.count_nonzero(delay[: len(delay) - len(late)] > 2.0 * point.target_s)
        used = result["utilization", scenario.links[0].id]
        found.append((late.mean(), late.std(), np.quantile(late, 0.99), above, used))
    return _figures(point, engine, *np.mean(found, axis=0).tolist())


def _figures(
    point: CheckPoint, engine: str, mean: float, deviation: float | None, most: float | None, above: float, used: float
) -> GainsFigures:
    return GainsFigures(
        engine=engine,
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
