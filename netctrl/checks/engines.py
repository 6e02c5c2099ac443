"""Checks of a certificate on packets and in the Linux kernel: scenarios of its worst point, and what they show."""

from __future__ import annotations

from typing import Any

import numpy as np

from netctrl.certificates.record import CheckRun, QueueCheck
from netctrl.checks.point import CheckPoint
from netctrl.checks.queues import buffer_bytes, queue_of
from netctrl.checks.steadiness import AT_LIMIT, Envelope, envelope
from netctrl.engines.engine import simulate
from netctrl.errors import InvalidValue
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import BulkFlows
from netctrl.units import BITS_PER_BYTE

__all__ = ["SEEDS", "check_packets", "check_scenario"]

SEEDS = (1, 2, 3)
_WARM_PERIODS, _PERIODS = 20.0, 100.0
_WARM_S, _LEAST_S = 10.0, 30.0
_SAMPLES = 32
"""In a period."""
_MOST_PACKETS = {"packet": 3e7, "kernel": 1e7}
"""Of one run."""
_SENDERS = {"reno": "reno", "creno": "cubic", "dctcp": "dctcp"}
_CLOCKED = {
    "packet": {"rfc-reno": "reno"},
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
    warm = max(_WARM_PERIODS * point.period_s, _WARM_S)
    duration = warm + max(_PERIODS * point.period_s, _LEAST_S)
    groups = []
    for k in point.loop.classes:
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
                count=max(round(k.share * wanted), 1),
                sender=sender,
                start=(0.0, 2.0),
                ecn=not k.sender.notice and (engine == "packet" or _marks(point)),
            )
        )
    rate = point.loop.rate / point.flows * sum(group.count for group in groups)
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
        interval=max(point.period_s / _SAMPLES, 1e-3),
        packet_size=point.packet_bytes,
        seed=seed,
    )


def _marks(point: CheckPoint) -> bool:
    """True where the law marks packets in the kernel, in place of dropping them."""
    return bool(point.subject.parameters.get("ecn", True))


def _notes(point: CheckPoint, engine: str) -> tuple[str, ...]:
    found = []
    if any(k.sender.name in ("creno", "linux-creno") for k in point.loop.classes):
        found.append("creno runs as Cubic, which leaves its Reno-friendly region where windows are large")
    if engine == "packet" and point.subject.name == "docsis-pie":
        found.append("packets are marked by chance, at the mean rate of spread drops, and the law acts by intervals")
    if engine == "packet" and point.subject.name == "red":
        found.append("packets are marked by chance, at the mean rate of spaced marks, and the average moves with time")
    return tuple(found)
