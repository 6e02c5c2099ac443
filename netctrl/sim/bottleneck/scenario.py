"""Run a bottleneck's scenario as a fluid."""

from __future__ import annotations

from typing import Any

import numpy as np

from netctrl.errors import InvalidValue
from netctrl.laws.aqm.codel import CodelQueue
from netctrl.laws.rate.cap import CapSender
from netctrl.laws.rate.paced import PacedSender
from netctrl.model.io.provenance import Provenance
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow, FlowDraw
from netctrl.scenario.tcp_aqm.offers import Stream
from netctrl.sim.bottleneck.flows import OPEN, BbrFlow, PacedFlow, PacingFlow, RateCap
from netctrl.sim.bottleneck.run import BottleneckLink, CoDel, simulate_bottleneck
from netctrl.sim.tcp_aqm.traffic import draw_flows
from netctrl.units import BITS_PER_BYTE


def run_bottleneck(scenario: Scenario, origin: Provenance) -> Result:
    """Run the scenario by `simulate_bottleneck`; cross traffic is a constant rate, the mean of its packets.

    Parameters
    ----------
    scenario : Scenario
        One for which `netctrl.sim.bottleneck.lacks.has_pacers` holds.
    origin : Provenance

    Raises
    ------
    InvalidValue
        A paced flow without a law; too many steps.
    """
    (line,), draws = scenario.links, draw_flows(scenario, merged=False)
    starts = np.concatenate([draw.start_s for draw in draws])
    shortest = min(float(draw.rtt_s[0]) for draw in draws if draw.rtt_s[0] > 0.0)
    flows = [_flow(group, draw, shortest) for group, draw in zip(scenario.flows, draws, strict=True)]
    queue = CoDel(line.queue.target, line.queue.interval) if isinstance(line.queue, CodelQueue) else "droptail"
    found = simulate_bottleneck(
        flows,
        line.capacity,
        line.buffer or 0.0,
        scenario.duration,
        queue=queue,
        bin_s=scenario.interval,
        packet_size_bytes=scenario.packet_size,
        random=np.random.default_rng(np.random.SeedSequence(scenario.seed)),
    )
    return _result(scenario, found, starts, origin)


def _flow(group: Flow, draw: FlowDraw, shortest: float) -> PacingFlow:
    if isinstance(group.offers, Stream):
        return RateCap(group.offers.rate, shortest)
    rtt, start, stop = (float(each[0]) for each in (draw.rtt_s, draw.start_s, draw.stop_s))
    sender: Any = group.sender
    if isinstance(sender, PacedSender):
        return PacedFlow(sender.pacer(), rtt, start, stop, sender.window)
    if isinstance(sender, CapSender):
        return RateCap(sender.rate, rtt, start, stop, sender.window)
    return BbrFlow(rtt, start, stop) if sender == "bbr" else RateCap(OPEN, rtt, start, stop, sender)


def _result(scenario: Scenario, found: BottleneckLink, starts: np.ndarray, origin: Provenance) -> Result:
    answered = [group.answered for group in scenario.flows]
    width = found.time_s[0] / BITS_PER_BYTE
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
        flows={"delivered": delivered, "pace": found.rates, "rtt": np.where(np.c_[answered], found.rtt_s, np.nan)},
        totals={"sent": sent.sum(axis=1), "resent": lost.sum(axis=1)},
        tables={
            "connections": {
                "flow": np.flatnonzero(answered),
                "start": starts[answered],
                "sent": sent[answered].sum(axis=1),
                "resent": lost[answered].sum(axis=1),
            }
        },
    )
