"""Delays and utilization of queues with senders of data centres, by packets: DCTCP, DCQCN and HPCC.

DCTCP's flows share one link, as in `netctrl.checks.engines`, but times are in round trips, of microseconds here. Rates
of DCQCN and windows of HPCC run in a dumbbell: a host for each flow, at the link's rate, and no losses. Flows begin one
after another, since those that begin at once at the line rate fill any buffer, which priority flow control would stop.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netctrl.certificates.box import Point
from netctrl.certificates.certify import certify, subject_of
from netctrl.certificates.ecn import EcnSubject
from netctrl.certificates.ecn.dcqcn import DcqcnSubject
from netctrl.certificates.ecn.dctcp import DctcpSubject
from netctrl.certificates.ecn.hpcc import HpccSubject
from netctrl.certificates.ecn.in_time import standing_queue
from netctrl.certificates.point_records import BeyondLoop, most_p99_s
from netctrl.certificates.record import PredictedFigures, QueueCertificate
from netctrl.certificates.red import RedSubject
from netctrl.checks.engines import SEEDS, moments
from netctrl.checks.laws import red_queue
from netctrl.core.errors import InvalidValue
from netctrl.core.units import BITS_PER_BYTE, packets_per_second
from netctrl.engines.engine import simulate
from netctrl.laws.aqm.threshold import ThresholdQueue
from netctrl.laws.window.dcqcn import Dcqcn
from netctrl.laws.window.hpcc import Hpcc
from netctrl.model.io.record_file import taken
from netctrl.scenario.fabric.topology import Dumbbell, Packets
from netctrl.scenario.fabric.watch import Watch
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.transfers import received_rates

_WARM_TRIPS, _WARM_WINDOWS, _RUN_TRIPS, _RUN_WINDOWS = 200.0, 4.0, 600.0, 10.0
"""Round trips of a run, at least and for each packet of a window, which grows by one in a round trip."""
_MOST_PACKETS = 2e7
_SAMPLES = 8000
_MEASURED, _SHORTEST_S, _LONGEST_S = 1e6, 0.02, 0.3
"""Packets in a dumbbell, and the time that they may take [s]."""
_BEGUN = 0.35
"""Share of a run in which flows of a dumbbell begin; its second half is looked at."""
_HEADER, _ACK, _TELEMETRY = 48.0, 46.0, 52.0
"""Of packets in a dumbbell [byte]."""
_NEVER_S = 1.0
"""Time-out of a dumbbell in which nothing is lost."""
_MOST_FLOWS = 1000
_LEAST_RATE = 1e6
"""Below which DCQCN's packets don't fall [bit/s]; its fluid has no such bound."""


def has_data_centre(found: QueueCertificate) -> bool:
    """Whether a certificate is of senders of data centres that this module runs."""
    marked = found.law.name in ("red", "wred") and set(found.inputs.senders) == {"dctcp"}
    return marked or found.law.name in ("dctcp", "dcqcn", "hpcc")


def data_centre_figures(found: QueueCertificate, at: BeyondLoop) -> PredictedFigures:
    """Figures at a point: of the loop or the cycle where these tell them there, else of packets, means of the seeds.

    Parameters
    ----------
    found : QueueCertificate
    at : BeyondLoop

    Raises
    ------
    InvalidValue
        A run that would take too long.
    """
    subject, inputs = subject_of(found.law.name, found.law.parameters), found.inputs
    size = inputs.packet_size_bytes
    if isinstance(subject, RedSubject | DctcpSubject) and (alone := _alone(found, at)) is not None:
        return alone
    flows = max(round(at.flows), 1)
    if flows > _MOST_FLOWS:
        raise InvalidValue("check", f"packet with {flows} flows", f"at most {_MOST_FLOWS} flows")
    rate = packets_per_second(at.capacity_bit_per_s * flows / at.flows, size)
    point = Point(flows, at.rtt_s, rate)
    if isinstance(subject, RedSubject | DctcpSubject):
        runs = [_on_a_link(subject, point, size, seed) for seed in SEEDS]
    elif isinstance(subject, DcqcnSubject | HpccSubject):
        runs = [_in_a_dumbbell(subject, point, size, seed) for seed in SEEDS]
    else:
        raise InvalidValue("check", found.law.name, "red, wred, dctcp, dcqcn or hpcc")
    mean, deviation, most, used = np.mean(runs, axis=0).tolist()
    return PredictedFigures(
        sender=at.sender,
        flows=flows,
        capacity_bit_per_s=rate * size * BITS_PER_BYTE,
        rtt_s=at.rtt_s,
        delay_mean_s=mean,
        delay_std_s=deviation,
        delay_p99_s=most,
        utilization=used,
        most_p99_s=most_p99_s(inputs.p99_s, _standing_s(subject, point, size)),
        least_utilization=inputs.utilization * (subject.eta if isinstance(subject, HpccSubject) else 1.0),
        by="packet",
    )


def _alone(found: QueueCertificate, at: BeyondLoop) -> PredictedFigures | None:
    """Figures of DCTCP's loop or cycle at a point, where these tell them there."""
    where = taken(found.inputs, "packet_size_bytes", "senders", "p99_s", "utilization")
    where |= taken(at, "rtt_s", "flows", "capacity_bit_per_s")
    return certify(found.law.name, parameters=found.law.parameters, **where).certificate.predicted


def _standing_s(subject: RedSubject | EcnSubject, at: Point, size: float) -> float:
    """Delay that a law holds without a swing [s]; of DCQCN at least a third of the upper threshold, below which a queue
    is as it was meant; of HPCC, which holds none, a third of a round trip."""
    if isinstance(subject, RedSubject):
        marks = [(q / size, p) for q, p in subject.marks]
        return standing_queue(at, marks, spaced=subject.spaced) / at.rate
    if isinstance(subject, DctcpSubject):
        return subject.threshold(at.rate, size) / at.rate
    if isinstance(subject, HpccSubject):
        return at.rtt_s / 3.0
    upper = subject.kmax_bytes / (at.rate * size)
    within = not subject.steps and subject.probability(at, size) <= subject.pmax
    return max(subject.wait(at, size), upper / 3.0) if within else upper


def _on_a_link(subject: RedSubject | DctcpSubject, at: Point, size: float, seed: int) -> tuple[float, ...]:
    """Mean, deviation and 99th percentile of the delay of DCTCP's packets [s], and utilization."""
    limit = 0.0
    if isinstance(subject, DctcpSubject):
        queue: Any = ThresholdQueue(threshold=subject.threshold(at.rate, size) * size)
    else:
        queue = ThresholdQueue(threshold=subject.marks[0][0]) if subject.steps else red_queue(subject)
        limit = float(subject.parameters.get("limit_bytes", 0.0))
    product = at.rate * at.rtt_s
    trip = at.rtt_s + _standing_s(subject, at, size)
    window = at.rate * trip / at.flows
    warm = max(_WARM_TRIPS, _WARM_WINDOWS * window) * trip
    duration = warm + max(_RUN_TRIPS, _RUN_WINDOWS * window) * trip
    if (packets := at.rate * duration) > _MOST_PACKETS:
        raise InvalidValue("check", f"a run of {packets:.2g} packets", f"at most {_MOST_PACKETS:.0e}")
    line = Link(
        id="line",
        source="left",
        target="right",
        capacity=at.rate * size * BITS_PER_BYTE,
        buffer=limit or 100.0 * (product + window * at.flows) * size,
        queue=queue,
    )
    bulk = Flow(
        id="f", path=("line",), rtt=at.rtt_s, count=int(at.flows), sender="dctcp", start=(0.0, 0.1 * warm), ecn=True
    )
    scenario = Scenario(
        name="check of dctcp",
        links=(line,),
        flows=(bulk,),
        duration=duration,
        warmup=warm,
        interval=max(trip / 8.0, duration / _SAMPLES),
        packet_size=size,
        seed=seed,
    )
    result: Any = simulate(scenario, "packet")
    delay = BITS_PER_BYTE * result.series["backlog"][0] / line.capacity
    return *moments(delay[result.time_s > warm]), float(result["utilization", line.id])


def _in_a_dumbbell(subject: DcqcnSubject | HpccSubject, at: Point, size: float, seed: int) -> tuple[float, ...]:
    """The same of hosts that send by DCQCN or HPCC."""
    flows, capacity = int(at.flows), at.rate * size * BITS_PER_BYTE
    duration = min(max(_MEASURED / at.rate, _SHORTEST_S), _LONGEST_S)
    port = "s0>s1"
    stored = 3.0 * (size + _ACK) / (at.rate * size)  # by three links on the way there and back
    network = Dumbbell(
        senders=flows,
        host_rate=capacity,
        delay=max(at.rtt_s - stored, 1e-9) / 6.0,
        retransmission_timeout=_NEVER_S,
        packets=Packets(payload=size - _HEADER, header=_HEADER, ack=_ACK, telemetry=_TELEMETRY),
        watch=Watch(flows=tuple(range(flows)), ports=(port,), bin=duration / 8.0),
    )
    starts = np.sort(np.random.default_rng(seed).uniform(0.0, _BEGUN * duration, flows)).tolist()
    sender = _sender(subject, capacity)
    hosts = (
        Flow(id=f"f{i}", source=i, target=flows, offers=1e12, sender=sender, start=start)
        for i, start in enumerate(starts)
    )
    scenario = Scenario(
        name=f"check of {subject.name}",
        network=network,
        flows=tuple(hosts),
        duration=duration,
        interval=duration / _SAMPLES,
        seed=seed,
    )
    result: Any = simulate(scenario, "packet")
    queue = result.series["backlog", port]
    late = received_rates(result.tables["received"])[:, 4:].mean(axis=1).sum()
    delay = BITS_PER_BYTE * queue[len(queue) // 2 :] / capacity
    return *moments(delay), min(float(late / result.totals["capacity", port, 0]), 1.0)


def _sender(subject: DcqcnSubject | HpccSubject, capacity: float) -> Dcqcn | Hpcc:
    """The packets' sender of a certificate."""
    if isinstance(subject, HpccSubject):
        return Hpcc(target=subject.eta, increase=subject.wai_bytes)
    return Dcqcn(
        mark_low=subject.kmin_bytes,
        mark_high=max(subject.kmax_bytes, subject.kmin_bytes + 1.0),
        mark_most=subject.pmax,
        threshold_rate=capacity,
        notification_interval=subject.cnp_s,
        gain=subject.g,
        alpha_interval=subject.alpha_s,
        increase_interval=subject.timer_s,
        increase_bytes=subject.counter_bytes,
        fast_stages=subject.f,
        increase=subject.rai_bit_per_s,
        hyper_increase=subject.rai_bit_per_s,
        least_rate=min(subject.rai_bit_per_s, _LEAST_RATE),
    )
