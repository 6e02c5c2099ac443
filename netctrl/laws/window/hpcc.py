"""HPCC, one acknowledgement at a time. Source: Li et al., SIGCOMM 2019, Algorithm 1."""

from __future__ import annotations

from typing import NamedTuple

from netctrl.laws.window.law import (
    MAX_HOPS,
    SHARE,
    Acknowledged,
    Hop,
    Hops,
    Packet,
    Path,
    SchemeRecord,
    Telemetry,
    WindowLaw,
)
from netctrl.model.io.fields import Duration, Size, duration, flag, optional, read_fields, size, whole


class Hpcc(SchemeRecord, frozen=True, kw_only=True, tag="hpcc"):
    """High precision congestion control: multiplicative to a target utilization by telemetry.

    Source: Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, Algorithm 1 and section 5.1.
    """

    target: float = 0.95
    """eta, target utilization."""
    stages: int = 5
    """maxStage: rounds of additive increase before a multiplicative one."""
    increase: Size = 80.0
    """W_AI, additive increase [byte]."""
    rtt: Duration | None = None
    """T [s]; null: the longest of all paths, without queues."""
    paced: bool = True
    """Sends at W/T between acknowledgements."""

    def __post_init__(self) -> None:
        read_fields(self, target=SHARE, stages=whole(0, 1000), increase=size, rtt=optional(duration), paced=flag)


class HpccParameters(NamedTuple):
    """Parameters of HPCC."""

    target: float
    """eta"""
    stages: float
    """maxStage"""
    increase: float
    """W_AI [byte]"""
    rtt: float
    """T [ns]"""
    paced: float
    """1: sends at W/T"""


class HpccState(NamedTuple):
    """State of HPCC."""

    window: float
    """[byte]"""
    rate: float
    """[bit/s]"""
    started: float
    """1: telemetry has come"""
    reference: float
    """W^c [byte]"""
    stage: float
    """incStage"""
    updated: float
    """lastUpdateSeq [byte]"""
    utilization: float
    """U"""
    before: Hops
    """Telemetry of the acknowledgement before"""


class Load(NamedTuple):
    """Of a link: its normalised in-flight bytes, and the time that they were measured in [ns]."""

    share: float
    span: float


def hop_load(hop: Hop, before: Hop, capacity: float, rtt: float, busiest: Load) -> Load:
    """The busier of this link and the busiest so far."""
    elapsed = hop.time - before.time
    if elapsed <= 0.0:
        return busiest
    rate = (hop.sent - before.sent) * 8e9 / elapsed
    share = min(hop.queue, before.queue) * 8e9 / (capacity * rtt) + rate / capacity
    return Load(share, elapsed) if share > busiest.share else busiest


def inflight(hops: Hops, before: Hops, path: Path, rtt: float, average: float) -> float:
    """U, the moving average of the busiest link's normalised in-flight bytes (MeasureInflight)."""
    busiest = Load(0.0, 0.0)
    for h in range(MAX_HOPS):
        if float(h) < path.hops:
            busiest = hop_load(hops[h], before[h], path.rates[h], rtt, busiest)
    span = min(busiest.span, rtt)
    return (1.0 - span / rtt) * average + span / rtt * busiest.share


def hpcc_step(state: HpccState, seen: Acknowledged, path: Path, p: HpccParameters) -> HpccState:
    """HPCC: the window from telemetry, and the rate W/T. Source: Li et al., SIGCOMM 2019, Algorithm 1."""
    most = path.line_rate * p.rtt / 8e9
    if state.started == 0.0:
        return HpccState(state.window, state.rate, 1.0, most, state.stage, state.updated, 1.0, seen.hops)
    U = inflight(seen.hops, state.before, path, p.rtt, state.utilization)
    relative = U / p.target
    multiplicative = relative >= 1.0 or state.stage >= p.stages
    window = state.reference + p.increase
    if multiplicative:
        window = state.reference / max(relative, 1e-9) + p.increase
    window = min(max(window, 1.0), most)
    rate = window * 8e9 / p.rtt if p.paced != 0.0 else state.rate
    if seen.una <= state.updated:
        return HpccState(window, rate, 1.0, state.reference, state.stage, state.updated, U, seen.hops)
    return HpccState(
        window, rate, 1.0, window, 0.0 if multiplicative else state.stage + 1.0, seen.next_byte, U, seen.hops
    )


def _start(scheme: Hpcc, path: Path) -> float:
    return path.bdp if scheme.rtt is None else path.line_rate * scheme.rtt / 8.0


def _read(scheme: Hpcc, packet: Packet) -> HpccParameters:
    T = packet.longest if scheme.rtt is None else scheme.rtt * 1e9
    return HpccParameters(scheme.target, float(scheme.stages), scheme.increase, T, float(scheme.paced))


HPCC = WindowLaw(Hpcc, HpccParameters, HpccState, _read, hpcc_step, start=_start, telemetry=Telemetry.QUEUES)
