"""Checks of a certificate in nonlinear models.

In the fluid a queue is deterministic: it comes to rest from each of three starts, or it swings for ever. On packets and
in the kernel marks come by chance, so that a stable queue swings, too. There the envelope of its delay around the
frequency at which the loop leaves stability decides (`netctrl.checks.steadiness`), as a mean over three seeds. A run
lasts a number of that oscillation's periods, after the windows and the law have come to rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from netctrl.certificates.point_records import most_p99_s
from netctrl.certificates.record import CertifyInputs, PredictedFigures
from netctrl.checks.laws import buffer_bytes, fluid_queue, queue_of
from netctrl.checks.point import CheckPoint
from netctrl.checks.steadiness import AT_LIMIT, Envelope, envelope
from netctrl.core.errors import InvalidValue
from netctrl.core.units import BITS_PER_BYTE
from netctrl.engines.engine import simulate
from netctrl.model.design.queue_checks import CheckRun, QueueCheck
from netctrl.plants.queues.queue_laws import SampledPi
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.sim.fluid.certified.run import STARTS, swing_of

SEEDS = (1, 2, 3)
_WARM_PERIODS, _PERIODS = 20.0, 100.0
_WARM_S, _LEAST_S = 20.0, 30.0
_UPDATES, _TRIPS = 600.0, 2.0
"""In which a new queue's law and its windows come to rest: updates, and round trips a packet of a window."""
_SAMPLES, _MOST_SAMPLES = 32, 1e5
"""In a period and in a run."""
_MOST_PACKETS = {"packet": 3e7, "kernel": 1e7}
"""Of one run."""
_LEAST_MEASURED, _MOST_MEASURED = 1e6, 6e6
"""Packets of a run that tells delays where the loop doesn't, as far as its time permits."""
_MOST_WARM_S, _LEAST_MEASURED_S, _MOST_MEASURED_S = 300.0, 60.0, 1800.0
"""Longest warm-up of such a run, and its shortest and longest duration [s]."""
_SENDERS = {"reno": "reno", "creno": "cubic", "cubic": "cubic", "dctcp": "dctcp"}
_CLOCKED = {
    "packet": {"rfc-reno": "reno", "rfc-creno": "cubic"},
    "kernel": {"linux-reno": "reno", "linux-creno": "cubic", "linux-reno-noecn": "reno", "linux-creno-noecn": "cubic"},
}
"""Senders that only one engine has."""


_NOTES = {
    "dualpi2": ("the scalable queue is a constant delay, without its step",),
    "docsis-pie": (
        "the buffer is 100 ms or 10 targets: the law begins when a third of it has filled",
        "spread drops have their mean rate over sizes of packets",
    ),
    "red": ("the average of an empty queue falls at the link's rate",),
}
"""Notes of the fluid; the first of docsis-pie and red are those of packets, too."""


def check_fluid(point: CheckPoint) -> QueueCheck:
    """Swing of the queue at a certificate's worst point, from three starts."""
    queue = fluid_queue(point)
    runs = []
    for start in STARTS:
        found = swing_of(queue, start)
        runs.append(
            CheckRun(
                start=start.name,
                seed=None,
                settles=found.settles,
                swing_s=found.swing_s,
                mean_delay_s=found.mean_delay_s,
                utilization=found.utilization,
            )
        )
    return QueueCheck(
        engine="fluid",
        settles=all(run.settles for run in runs),
        flows=point.flows,
        period_s=point.period_s,
        envelope_ratio=None,
        runs=tuple(runs),
        notes=_NOTES.get(point.subject.name, ()),
        senders=point.instead,
    )


def check_packets(point: CheckPoint, engine: str, seeds: tuple[int, ...] = SEEDS) -> QueueCheck:
    """Swing and envelope of the queue at a certificate's worst point, with packets.

    Parameters
    ----------
    point : CheckPoint
    engine : str
        "packet" or "kernel".
    seeds : tuple of int
        A run each.

    Raises
    ------
    InvalidValue
        A law or sender that the engine has not with the certificate's arithmetic, or a run that would take too long.
    """
    runs, ratios, period = [], [], point.period_s
    for seed in seeds:
        scenario, delay, used = _run(point, engine, seed)
        found = envelope(delay, scenario.interval, period)
        found = Envelope(2.0, period, 0.0) if found is None else found
        ratios.append(found.ratio)
        low, high = np.quantile(delay, [0.05, 0.95])
        mean, deviation, most = moments(delay)
        runs.append(
            CheckRun(
                start=None,
                seed=seed,
                settles=found.ratio > AT_LIMIT,
                swing_s=float(high - low),
                mean_delay_s=mean,
                utilization=used,
                deviation_s=deviation,
                delay_99_s=most,
            )
        )
    ratio = float(np.mean(ratios))
    notes = []
    if any(k.sender.name in ("creno", "linux-creno", "rfc-creno") for k in point.loop.classes):
        notes.append("creno runs as Cubic, which leaves its Reno-friendly region where windows are large")
    if engine == "packet" and point.subject.name in ("docsis-pie", "red"):
        notes.append(_NOTES[point.subject.name][0])
    return QueueCheck(
        engine=engine,
        settles=ratio > AT_LIMIT,
        flows=float(sum(group.count for group in scenario.flows)),
        period_s=period,
        envelope_ratio=ratio,
        runs=tuple(runs),
        notes=tuple(notes),
        senders=point.instead,
    )


def _run(
    point: CheckPoint, engine: Any, seed: int, times: tuple[float, float] | None = None
) -> tuple[Scenario, np.ndarray, float]:
    """Scenario of a point, delay of its queue [s] and utilization after the warm-up."""
    scenario = check_scenario(point, engine, seed, times)
    result: Any = simulate(scenario, engine)
    delay = BITS_PER_BYTE * result.series["backlog"][0] / scenario.links[0].capacity
    return scenario, delay[result.time_s > scenario.warmup], result["utilization", scenario.links[0].id]


def moments(delay: np.ndarray) -> tuple[float, float, float]:
    """Mean, deviation and 99th percentile of a delay in even steps [s]."""
    deviation = float(delay.std()) if np.ptp(delay) > 0.0 else 0.0  # else rounding of the mean
    return float(delay.mean()), deviation, float(np.quantile(delay, 0.99))


def measured(point: CheckPoint, inputs: CertifyInputs, seeds: tuple[int, ...] = SEEDS) -> PredictedFigures:
    """Figures of packets at a point of which the loop says nothing, means of the seeds.

    Parameters
    ----------
    point : CheckPoint
    inputs : CertifyInputs
        What is asked.
    seeds : tuple of int
        A run each.

    Raises
    ------
    InvalidValue
        A law or sender that packets have not with the certificate's arithmetic.
    """
    rate, warm = point.loop.rate, settling_s(point)
    long = max(400.0 * point.trip_s, 30.0 * growth_s(point), _LEAST_MEASURED / rate)
    run = min(max(_LEAST_MEASURED_S, long), _MOST_MEASURED_S)
    shorter = min(_MOST_MEASURED / (rate * (warm + run)), 1.0)
    times = warm * shorter, (warm + run) * shorter
    found = []
    for seed in seeds:
        _, late, used = _run(point, "packet", seed, times)
        found.append((*moments(late), used))
    return figures_of(point, inputs, np.mean(found, axis=0).tolist(), "packet")


def settling_s(point: CheckPoint) -> float:
    """Time in which a new queue's law and its windows come to rest [s]."""
    return min(max(_WARM_S, 4.0 * growth_s(point)), _MOST_WARM_S)


def growth_s(point: CheckPoint) -> float:
    """Time in which a window grows from nothing by a packet a round trip [s]."""
    return point.loop.rate / point.flows * point.trip_s**2


def figures_of(
    point: CheckPoint,
    inputs: CertifyInputs,
    means: Sequence[float],
    engine: Literal["packet", "kernel"],
    flows: float | None = None,
) -> PredictedFigures:
    """Record of figures of an engine at a point.

    Parameters
    ----------
    point : CheckPoint
    inputs : CertifyInputs
        What is asked.
    means : sequence of float
        Mean, deviation and 99th percentile of the delay [s], and utilization.
    engine : str
    flows : float, optional
        Flows that ran; the point's by default.
    """
    mean, deviation, most, used = means
    number = point.flows if flows is None else flows
    return PredictedFigures(
        sender=point.instead or point.mixture.text,
        flows=number,
        capacity_bit_per_s=point.loop.rate * number / point.flows * point.packet_bytes * BITS_PER_BYTE,
        rtt_s=point.rtt_s,
        delay_mean_s=mean,
        delay_std_s=deviation,
        delay_p99_s=most,
        utilization=used,
        most_p99_s=most_p99_s(inputs.p99_s, point.target_s),
        least_utilization=inputs.utilization,
        by=engine,
    )


def check_scenario(point: CheckPoint, engine: str, seed: int, times: tuple[float, float] | None = None) -> Scenario:
    """Scenario of a certificate's worst point: one link with the law's queue, long flows, a whole number of each.

    Parameters
    ----------
    point : CheckPoint
    engine : str
        "packet" or "kernel".
    seed : int
    times : (float, float), optional
        When it is looked at from, and its end [s]; by default in proportion to the loop's period.

    Raises
    ------
    InvalidValue
        As in `check_packets`.
    """
    queue = queue_of(point, engine)
    wanted = max(round(point.flows), 1)
    counts = [max(round(k.share * wanted), 1) for k in point.loop.classes]
    rate = point.loop.rate / point.flows * sum(counts)
    warm, duration = times or _times(point, _MOST_PACKETS[engine] / rate)
    groups, marks = [], not point.drops and point.subject.name != "docsis-pie"  # modems know no ECN
    for k, count in zip(point.loop.classes, counts, strict=True):
        has: dict[str, Any] = _SENDERS | _CLOCKED[engine]
        sender = has.get(k.sender.name)
        if sender is None or not k.queued:
            takes = f"senders that this engine has: {', '.join(has)}; with dualpi2 not dctcp"
            raise InvalidValue("check", f"{engine} with {k.sender.name} under {point.subject.name}", takes)
        groups.append(
            Flow(
                id=f"{k.sender.name}{len(groups)}",
                path=("line",),
                rtt=point.rtt_s * k.stretch,
                count=count,
                sender=sender,
                start=(0.0, 0.1 * min(warm, _WARM_S)),
                ecn=marks and (engine == "packet" or bool(point.subject.parameters.get("ecn", True))),
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
    return Scenario(
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
