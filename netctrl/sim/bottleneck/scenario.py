"""Run a bottleneck's scenario as a fluid."""

from __future__ import annotations

from math import inf

import numpy as np

from netctrl.errors import InvalidValue
from netctrl.laws.aqm.codel import CodelQueue
from netctrl.model.io.provenance import Provenance
from netctrl.model.law import ArxPacer, PacingLaw
from netctrl.scenario.bottleneck.line import Bottleneck, SingleFlow
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario, checked_network
from netctrl.sim.bottleneck.flows import OPEN, BbrFlow, PacedFlow, PacingFlow, RateCap
from netctrl.sim.bottleneck.run import BottleneckLink, CoDel, simulate_bottleneck
from netctrl.units import BITS_PER_BYTE

__all__ = ["run_bottleneck"]


def run_bottleneck(scenario: Scenario, law: PacingLaw | None, origin: Provenance) -> Result:
    """Run the scenario by `simulate_bottleneck`; cross traffic is a constant rate, the mean of its packets.

    Parameters
    ----------
    scenario : Scenario
    law : PacingLaw, optional
        Law of the flows with sender paced. The paper's law caps the rate of H-TCP; a target-RTT law works without a
        window.
    origin : Provenance

    Raises
    ------
    InvalidValue
        A paced flow without a law; a queue other than droptail and codel; too many steps.
    """
    line: Bottleneck = checked_network(scenario, Bottleneck)
    random = np.random.default_rng(np.random.SeedSequence(scenario.seed))
    starts = np.array([flow.start for flow in scenario.flows]) + line.start_spread * random.random(len(scenario.flows))
    flows = [
        _flow(*each, law) for each in zip(scenario.flows, line.rtts_s(scenario.flows), starts.tolist(), strict=True)
    ]
    if line.cross > 0.0:
        flows.append(RateCap(line.cross, line.rtt))
    queue = line.queue
    if not isinstance(queue, CodelQueue) and queue.__struct_config__.tag != "droptail":
        raise InvalidValue("queue.kind", queue.__struct_config__.tag, "droptail or codel, in the fluid of a bottleneck")
    found = simulate_bottleneck(
        flows,
        line.capacity,
        line.buffer,
        scenario.duration,
        queue=CoDel(queue.target, queue.interval) if isinstance(queue, CodelQueue) else "droptail",
        bin_s=scenario.interval,
        packet_size_bytes=scenario.packet_size,
        random=random,
    )
    return _result(scenario, found, starts, origin)


def _flow(flow: SingleFlow, rtt: float, start: float, law: PacingLaw | None) -> PacingFlow:
    stop = inf if flow.stop is None else flow.stop
    if flow.sender == "paced":
        if law is None:
            raise InvalidValue("flows", "paced", "a Design of pacing for flows of sender paced")
        return PacedFlow(law, rtt, start, stop, "htcp" if isinstance(law, ArxPacer) else None)
    if flow.sender == "cap":
        return RateCap(flow.rate or OPEN, rtt, start, stop, "htcp")
    return BbrFlow(rtt, start, stop) if flow.sender == "bbr" else RateCap(OPEN, rtt, start, stop, flow.sender)


def _result(scenario: Scenario, found: BottleneckLink, starts: np.ndarray, origin: Provenance) -> Result:
    n, width = len(scenario.flows), found.time_s[0] / BITS_PER_BYTE
    for name in ("delay_s", "backlog_bytes", "lost_bytes", "throughput", "rates"):
        if not np.isfinite(getattr(found, name)).all():
            raise InvalidValue(name, "nan or inf", "finite numbers")
    delivered, sent, lost = (
        each * scale for each, scale in ((found.throughput, width), (found.rates, width), (found.lost_bytes, 1.0))
    )
    return Result.of_series(
        scenario,
        "fluid",
        origin,
        links={
            "backlog_most": found.backlog_bytes[None],
            "arrived": sent.sum(axis=0)[None],
            "departed": delivered.sum(axis=0)[None],
            "lost": lost.sum(axis=0)[None],
            "delay": found.delay_s[None],
        },
        flows={"delivered": delivered[:n], "pace": found.rates[:n], "rtt": found.rtt_s[:n]},
        totals={"sent": sent[:n].sum(axis=1), "resent": lost[:n].sum(axis=1)},
        tables={"connections": {"start": starts, "sent": sent[:n].sum(axis=1), "resent": lost[:n].sum(axis=1)}},
    )
