"""Checks of a certificate on packets and in the Linux kernel: scenarios of its worst point, and what they show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from netctrl.certificates.record import CheckRun, QueueCheck
from netctrl.checks.point import CheckPoint
from netctrl.checks.steadiness import AT_LIMIT, Envelope, envelope
from netctrl.engines.engine import simulate
from netctrl.errors import InvalidValue
from netctrl.laws.aqm.pie import PieQueue
from netctrl.laws.disciplines import KernelQueue
from netctrl.laws.l4s.dualpi2 import DualPi2Queue
from netctrl.laws.l4s.pi2 import Pi2Queue
from netctrl.laws.targets.reading import DelayReading
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import BulkFlows
from netctrl.units import BITS_PER_BYTE

__all__ = ["KERNEL_HZ", "SEEDS", "check_packets", "check_scenario"]

SEEDS = (1, 2, 3)
KERNEL_HZ = 1000
"""CONFIG_HZ of the kernel engine."""
_WARM_PERIODS, _PERIODS = 20.0, 100.0
_WARM_S, _LEAST_S = 10.0, 30.0
_SAMPLES = 32
"""In a period."""
_MOST_PACKETS = {"packet": 3e7, "kernel": 6e6}
"""Of one run."""
_SENDERS = {"reno": "reno", "creno": "cubic", "dctcp": "dctcp"}
_BUFFER_S, _BUFFER_TARGETS = 1.0, 20.0


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
        notes=_notes(point),
    )


def check_scenario(point: CheckPoint, engine: str, seed: int, flows: int | None = None) -> Scenario:
    """Scenario of a certificate's worst point: one link with the law's queue, long flows, a whole number of each.

    Raises
    ------
    InvalidValue
        As in `check_packets`.
    """
    queue = _QUEUES[engine](point)
    wanted = max(round(point.flows), 1) if flows is None else flows
    warm = max(_WARM_PERIODS * point.period_s, _WARM_S)
    duration = warm + max(_PERIODS * point.period_s, _LEAST_S)
    groups = []
    for k in point.loop.classes:
        sender = _SENDERS.get(k.sender.name)
        if sender is None or not k.queued:
            takes = "classic senders (reno, creno) with dualpi2, else reno, creno or dctcp"
            raise InvalidValue("check", f"{engine} with {k.sender.name} under {point.subject.name}", takes)
        groups.append(
            BulkFlows(
                id=f"{k.sender.name}{len(groups)}",
                path=("line",),
                rtt=point.rtt_s * k.stretch,
                count=max(round(k.share * wanted), 1),
                sender=sender,
                start=(0.0, 2.0),
                ecn=engine == "packet" or point.subject.name != "pie",
            )
        )
    rate = point.loop.rate / point.flows * sum(group.count for group in groups)
    if rate * duration > _MOST_PACKETS[engine]:
        takes = f"a point with fewer packets: a run would take {rate * duration:.2g}"
        raise InvalidValue("check", engine, takes)
    buffer = rate * max(_BUFFER_S, _BUFFER_TARGETS * point.target_s) * point.packet_bytes
    line = Link(
        id="line",
        source="left",
        target="right",
        capacity=rate * point.packet_bytes * BITS_PER_BYTE,
        delay=min(group.rtt[0] for group in groups) / 4.0,
        buffer=buffer,
        queue=queue,
    )
    return Scenario.of(
        name=f"check of {point.subject.name}",
        links=(line,),
        flows=tuple(groups),
        duration=duration,
        warmup=warm,
        interval=max(point.period_s / _SAMPLES, 1e-3),
        packet_size=point.packet_bytes,
        seed=seed,
    )


def _packet_queue(point: CheckPoint) -> Any:
    subject, gains = point.subject, point.subject.sampled
    settings: dict[str, Any] = {"target": gains.target_s, "update": gains.update_s}
    settings |= {"alpha": gains.integral, "beta": gains.proportional}
    if subject.name == "pi2":
        return Pi2Queue(**settings, coupling=float(subject.coupling))
    if subject.name == "dualpi2":
        if not subject.marked_leaving:
            raise InvalidValue("check", "packet with drop_early", "the kernel, or dualpi2 without --drop-early")
        return DualPi2Queue(**settings, coupling=float(subject.coupling))
    if subject.thinning != 1.0 or subject.reading is not DelayReading.BACKLOG:
        takes = "--check kernel for Linux's pie; packets have RFC 8033's: --rfc --dq-rate-estimator"
        raise InvalidValue("check", "packet with Linux's pie" if subject.thinning != 1.0 else "packet", takes)
    return PieQueue(**settings)


def _kernel_queue(point: CheckPoint) -> Any:
    given: Mapping[str, Any] = point.subject.parameters
    name = point.subject.name
    if name == "pi2" or given.get("implementation") == "rfc":
        raise InvalidValue("check", f"kernel with {point.subject.implementation}", "a law of Linux: pie or dualpi2")
    times = {"target": given["target_s"], "tupdate": given["tupdate_s"]}
    limit = {"limit": 100_000}
    if name == "dualpi2":
        own = {"alpha": given["alpha"], "beta": given["beta"], "coupling_factor": given["coupling"]}
        own |= {"step_thresh": given["step_s"], "drop_enqueue": float(given["drop_early"])}
        return KernelQueue(discipline="dualpi2", parameters=times | own | limit)
    if given["hz"] != KERNEL_HZ:
        raise InvalidValue(
            "check", f"kernel with --hz {given['hz']}", f"--hz {KERNEL_HZ}, which the engine's kernel has"
        )
    own = {"alpha": round(16.0 * given["alpha"]), "beta": round(16.0 * given["beta"])}
    estimator = {"dq_rate_estimator": 1.0} if given["dq_rate_estimator"] else {}
    return KernelQueue(discipline="pie", parameters=times | own | limit | estimator)


_QUEUES: dict[str, Callable[[CheckPoint], Any]] = {"packet": _packet_queue, "kernel": _kernel_queue}


def _notes(point: CheckPoint) -> tuple[str, ...]:
    cubic = any(k.sender.name == "creno" for k in point.loop.classes)
    return ("creno runs as Cubic, which leaves its Reno-friendly region where windows are large",) if cubic else ()
