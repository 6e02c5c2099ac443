"""Checks of a certificate on packets and in the Linux kernel: scenarios of its worst point, and what they show.

Figures of a PI law at the corners of a box: what its queue is like there, in the fluid or on packets.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netctrl.certificates.record import CertifyInputs
from netctrl.certificates.subject import PiSubject
from netctrl.checks.check import checked_engines
from netctrl.checks.laws import buffer_bytes, fluid_queue, queue_of
from netctrl.checks.point import CheckPoint, corners_of
from netctrl.checks.steadiness import AT_LIMIT, Envelope, envelope
from netctrl.engines.engine import simulate
from netctrl.errors import InvalidValue
from netctrl.model.design.queue_checks import CheckRun, GainsFigures, QueueCheck
from netctrl.plants.queues.queue_laws import SampledPi
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import BulkFlows
from netctrl.sim.queue_fluid.run import STARTS, swing_of, time_above
from netctrl.units import BITS_PER_BYTE

__all__ = ["SEEDS", "check_packets", "check_scenario", "gains_figures"]

SEEDS = (1, 2, 3)
_WARM_PERIODS, _PERIODS = 20.0, 100.0
_WARM_S, _LEAST_S = 10.0, 30.0
_UPDATES, _TRIPS = 600.0, 2.0
"""In which a new queue's law and its windows come to rest: updates, and round trips a packet of a window."""
_SAMPLES, _MOST_SAMPLES = 32, 1e5
"""In a period and in a run."""
_MOST_PACKETS = {"packet": 3e7, "kernel": 1e7}
"""Of one run."""
_SENDERS = {"reno": "reno", "creno": "cubic", "cubic": "cubic", "dctcp": "dctcp"}
_CLOCKED = {
    "packet": {"rfc-reno": "reno", "rfc-creno": "cubic"},
    "kernel": {
        "linux-reno": "reno",
        "linux-creno": "cubic",
        "linux-reno-noecn": "reno",
        "linux-creno-noecn": "cubic",
    },
}
"""Senders that only one engine has."""


def check_packets(
    point: CheckPoint, engine: str, seeds: tuple[int, ...] = SEEDS, flows: int | None = None
) -> QueueCheck:
    """Swing and envelope of the queue at a certificate's worst point, with packets.

    Parameters
    ----------
    point : CheckPoint
    engine : str
        "packet" or "kernel".
    seeds : tuple of int
        A run each.
    flows : int, optional
        Number of flows, with the rate of the link in proportion; by default the point's.

    Raises
    ------
    InvalidValue
        A law or sender that the engine has not with the certificate's arithmetic, or a run that would take too long.
    """
    runs, ratios, period = [], [], point.period_s
    for seed in seeds:
        scenario = check_scenario(point, engine, seed, flows)
        result: Any = simulate(scenario, engine)
        late = result.time_s > scenario.time.warmup
        delay = BITS_PER_BYTE * result.backlog_bytes[0][late] / scenario.links[0].capacity
        found = envelope(delay, scenario.interval, period)
        found = Envelope(2.0, period, 0.0) if found is None else found
        ratios.append(found.ratio)
        low, high = np.quantile(delay, [0.05, 0.95])
        runs.append(
            CheckRun(
                start=None,
                seed=seed,
                settles=found.ratio > AT_LIMIT,
                swing_s=float(high - low),
                mean_delay_s=float(delay.mean()),
                utilization=float(result.summary().links[0].utilization),
            )
        )
    ratio = float(np.mean(ratios))
    return QueueCheck(
        engine=engine,
        settles=ratio > AT_LIMIT,
        flows=float(sum(group.count for group in scenario.flows)),
        period_s=period,
        envelope_ratio=ratio,
        runs=tuple(runs),
        notes=_notes(point, engine),
        senders=point.instead,
    )


def check_scenario(point: CheckPoint, engine: str, seed: int, flows: int | None = None) -> Scenario:
    """Scenario of a certificate's worst point: one link with the law's queue, long flows, a whole number of each.

    Raises
    ------
    InvalidValue
        As in `check_packets`.
    """
    queue = queue_of(point, engine)
    if flows is not None and point.subject.in_bytes:
        raise InvalidValue("flows", flows, f"those of the point: thresholds of {point.subject.name} are in bytes")
    wanted = max(round(point.flows), 1) if flows is None else flows
    counts = [max(round(k.share * wanted), 1) for k in point.loop.classes]
    rate = point.loop.rate / point.flows * sum(counts)
    warm, duration = _times(point, _MOST_PACKETS[engine] / rate)
    groups = []
    for k, count in zip(point.loop.classes, counts, strict=True):
        has = _SENDERS | _CLOCKED[engine]
        sender = has.get(k.sender.name)
        if sender is None or not k.queued:
            takes = f"senders that this engine has: {', '.join(has)}; with dualpi2 not dctcp"
            raise InvalidValue("check", f"{engine} with {k.sender.name} under {point.subject.name}", takes)
        groups.append(
            BulkFlows(
                id=f"{k.sender.name}{len(groups)}",
                path=("line",),
                rtt=point.rtt_s * k.stretch,
                count=count,
                sender=sender,
                start=(0.0, 0.2 * min(warm, _WARM_S)),
                ecn=not point.drops and (engine == "packet" or _marks(point)),
            )
        )
    if rate * duration > _MOST_PACKETS[engine]:
        takes = f"a point with fewer packets: a run would take {rate * duration:.2g}"
        raise InvalidValue("check", engine, takes)
    share = 1.0 if point.subject.in_bytes else rate / point.loop.rate
    line = Link(
        id="line",
        source="left",
        target="right",
        capacity=rate * point.packet_bytes * BITS_PER_BYTE,
        delay=min(group.rtt[0] for group in groups) / 4.0,
        buffer=buffer_bytes(point) * share,
        queue=queue,
    )
    return Scenario.of(
        name=f"check of {point.subject.name}",
        links=(line,),
        flows=tuple(groups),
        duration=duration,
        warmup=warm,
        interval=max(point.period_s / _SAMPLES, duration / _MOST_SAMPLES),
        packet_size=point.packet_bytes,
        seed=seed,
    )


def _times(point: CheckPoint, most_s: float) -> tuple[float, float]:
    """Time until a run is looked at, and its end [s]; in proportion to the loop's period where the end would be above
    `most_s`."""
    period, law, loop = point.period_s, point.loop.law, point.loop
    warm, run = _WARM_PERIODS * period, _PERIODS * period
    if max(warm, _WARM_S) + max(run, _LEAST_S) <= most_s:
        return max(warm, _WARM_S), max(warm, _WARM_S) + max(run, _LEAST_S)
    windows = zip(loop.classes, loop.windows(point.flows, point.rtt_s), strict=True)
    growth = max(_TRIPS * w * float(loop.trip(k, point.rtt_s, point.target_s)) for k, w in windows)
    warm = max(warm, growth, _UPDATES * law.update_s if isinstance(law, SampledPi) else 0.0)
    return warm, warm + run


def _marks(point: CheckPoint) -> bool:
    """True where the law marks packets in the kernel, in place of dropping them."""
    return bool(point.subject.parameters.get("ecn", True))


def _notes(point: CheckPoint, engine: str) -> tuple[str, ...]:
    found = []
    if any(k.sender.name in ("creno", "linux-creno", "rfc-creno") for k in point.loop.classes):
        found.append("creno runs as Cubic, which leaves its Reno-friendly region where windows are large")
    if engine == "packet" and point.subject.name == "docsis-pie":
        found.append("packets are marked by chance, at the mean rate of spread drops, and the law acts by intervals")
    if engine == "packet" and point.subject.name == "red":
        found.append("packets are marked by chance, at the mean rate of spaced marks, and the average moves with time")
    return tuple(found)


_NEAR, _EMPTY, _FULL = STARTS
_LOOKED_AT_S, _LEAST_TRIPS = 20.0, 200.0
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
    duration = max(_LOOKED_AT_S, _LEAST_TRIPS * (point.rtt_s + point.target_s))
    above = time_above(queue, _FULL, 2.0 * point.target_s, duration)
    rest = swing_of(queue, _NEAR)
    return _figures(point, "fluid", rest.mean_delay_s, None, None, above, rest.utilization)


def _on_packets(point: CheckPoint, engine: str) -> GainsFigures:
    found = []
    for seed in SEEDS:
        scenario = check_scenario(point, engine, seed)
        result: Any = simulate(scenario, engine)
        delay = BITS_PER_BYTE * result.backlog_bytes[0] / scenario.links[0].capacity
        late = delay[result.time_s > scenario.time.warmup]
        above = scenario.interval * np.count_nonzero(delay[: len(delay) - len(late)] > 2.0 * point.target_s)
        used = result.summary().links[0].utilization
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
