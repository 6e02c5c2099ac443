"""What a queue does when its load changes at once: flows or capacity doubled or halved, or all flows beginning.

A run of packets for each step: flows come to rest, then the load changes, and the time after it is looked at. Flows
that come begin by slow start, as all do in the first step; those that leave stop at once.
"""

from __future__ import annotations

from math import ceil
from typing import Any

import msgspec
import numpy as np

from netctrl.certificates.point_records import LoadStep
from netctrl.checks.engines import check_scenario, settling_s
from netctrl.checks.point import CheckPoint
from netctrl.core.units import BITS_PER_BYTE
from netctrl.engines.engine import simulate
from netctrl.scenario.links import Change
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow

AFTER_S, AFTER_TRIPS = 5.0, 60.0
"""Time after a step that is looked at: seconds, and round trips with the queue."""
TARGETS = 2.0
"""Delay above which a step is felt, in targets."""
_MOST_PACKETS = 2e6
"""Of a run, as far as it then settles for as long as it is looked at."""
_SAMPLE_S, _WINDOW_S = 2e-3, 0.1
"""Of the delay, and time over which utilization is a mean."""
_BUSY = 0.95


def load_steps(point: CheckPoint, engine: str, seed: int = 1) -> tuple[LoadStep, ...]:
    """Steps of the load at a certificate's point, with packets.

    Parameters
    ----------
    point : CheckPoint
    engine : str
        "packet" or "kernel".
    seed : int

    Raises
    ------
    InvalidValue
        As `check_scenario`.
    """
    return tuple(
        _looked_at(name, scenario, begins, point, engine) for name, scenario, begins in _scenarios(point, engine, seed)
    )


def _scenarios(point: CheckPoint, engine: str, seed: int) -> list[tuple[str, Scenario, float]]:
    """Name, scenario and time of each step."""
    after = max(AFTER_S, AFTER_TRIPS * (point.rtt_s + point.target_s))
    settled = max(min(settling_s(point), _MOST_PACKETS / point.loop.rate - after), after)
    base = check_scenario(point, engine, seed, (settled, settled + after))
    end, interval = settled + after, max(_SAMPLE_S, (settled + after) / 1e5)
    base = msgspec.structs.replace(base, duration=end, warmup=0.0, interval=interval)
    at_once = tuple(msgspec.structs.replace(group, start=(0.0, 0.0)) for group in base.flows)
    found = [("all flows begin", msgspec.structs.replace(base, flows=at_once, duration=after), 0.0)]
    (line,) = base.links
    shares = {"capacity halves": 0.5, "capacity doubles": 2.0}
    if point.subject.per_flow:  # with a queue for each flow others take from its share alone
        shares = {"flows double": 0.5, "flows halve": 2.0} | shares
    else:
        others = _other_flows(base, settled, point.rtt_s)
        found += [(name, msgspec.structs.replace(base, flows=flows), settled) for name, flows in others]
    for name, factor in shares.items():
        change = Change(at=settled, link=line.id, capacity=factor * line.capacity)
        found.append((name, msgspec.structs.replace(base, changes=(change,)), settled))
    return found


def _other_flows(base: Scenario, settled: float, rtt_s: float) -> list[tuple[str, tuple[Flow, ...]]]:
    """Flows twice as many, begun within a round trip, and half as many: every second one of each group leaves."""
    fewer: list[Flow] = []
    for group in base.flows:
        leaving = group.count // 2
        fewer.append(msgspec.structs.replace(group, count=group.count - leaving))
        if leaving:
            left = {"id": f"{group.id}-leaving", "count": leaving, "stop": (settled, settled)}
            fewer.append(msgspec.structs.replace(group, **left))
    found = [("flows double", (*base.flows, *joining(base, settled, rtt_s)))]
    return [*found, ("flows halve", tuple(fewer))] if len(fewer) > len(base.flows) else found


def joining(base: Scenario, at: float, rtt_s: float, *, name: str = "more", until: float | None = None) -> list[Flow]:
    """As many flows again as a scenario has, begun within a round trip [s].

    Parameters
    ----------
    base : Scenario
    at, rtt_s : float
        When they begin, and the time in which they do [s].
    name : str
        Of these, behind those of their groups.
    until : float, optional
        When they stop [s].
    """
    stop = None if until is None else (until, until)
    return [
        msgspec.structs.replace(group, id=f"{group.id}-{name}", start=(at, at + rtt_s), stop=stop)
        for group in base.flows
    ]


def _looked_at(name: str, scenario: Scenario, begins: float, point: CheckPoint, engine: Any) -> LoadStep:
    result: Any = simulate(scenario, engine)
    after = result.time_s > begins
    capacity, interval = result.series["capacity"][0][after], scenario.interval
    delay = BITS_PER_BYTE * result.series["backlog"][0][after] / capacity
    parts = max(ceil(_WINDOW_S / interval), 1)
    whole = len(delay) // parts * parts
    served, could = (
        each[:whole].reshape(-1, parts).sum(axis=1)
        for each in (result.series["departed"][0][after] * BITS_PER_BYTE, capacity * interval)
    )
    return LoadStep(
        name=name,
        peak_s=float(delay.max()),
        above_two_targets_s=interval * int(np.count_nonzero(delay > TARGETS * point.target_s)),
        underused_s=interval * parts * int(np.count_nonzero(served < _BUSY * could)),
    )
