"""Single flows over one link in the fluid, seen as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

import netctrl
from netctrl.laws.rate.cap import CapSender
from netctrl.laws.rate.paced import PacedSender
from netctrl.scenario.builders import bottleneck
from netctrl.scenario.links import Change
from netctrl.sim.fluid.paced import paced_problem
from netctrl.sim.fluid.paced_kernel import advance_paced


class Seen(NamedTuple):
    """Series of n flows over one link in K intervals."""

    time_s: np.ndarray
    throughput: np.ndarray
    """(n, K) delivered [bit/s]."""
    rates: np.ndarray
    """(n, K) sent [bit/s]; of windows alone, of all of them, (1, K)."""
    rtt_s: np.ndarray
    """(n, K)"""
    delay_s: np.ndarray
    """(K,) of the queue."""
    highest: np.ndarray
    """(K,) greatest backlog [byte]."""
    lost: np.ndarray
    """(K,) of all flows [byte]."""
    capacity: np.ndarray
    """(K,) [bit/s]."""
    scenario: netctrl.Scenario
    result: Any


def plain(sender: str, rtt: float, start: float = 0.0, stop: float | None = None) -> netctrl.Flow:
    return netctrl.Flow(sender=sender, rtt=rtt, start=start, stop=stop)


def paced(law: Any, rtt: float, start: float = 0.0, window: str | None = None) -> netctrl.Flow:
    return netctrl.Flow(sender=PacedSender(law=law, window=window), rtt=rtt, start=start)


def capped(rate: float, rtt: float, window: str | None = None) -> netctrl.Flow:
    return netctrl.Flow(sender=CapSender(rate=rate, window=window), rtt=rtt)


def scenario_of(
    flows: Sequence[netctrl.Flow],
    rate: float,
    buffer: float,
    duration: float,
    *,
    interval: float | None = None,
    noise: float = 0.0,
    changes: Sequence[tuple[float, float]] = (),
    **fields: Any,
) -> netctrl.Scenario:
    """Flows over a bottleneck; by default an interval is the longest round trip. `changes`: times and capacities."""
    own = [replace(each, id=f"f{k}", rtt_noise=noise) for k, each in enumerate(flows)]
    made = bottleneck(
        flows=own,
        capacity=rate,
        buffer=buffer,
        duration=duration,
        warmup=0.0,
        interval=max(each.rtt[1] for each in flows) if interval is None else interval,
        **fields,
    )
    return made.replace(changes=tuple(Change(at=at, link="bottleneck", capacity=value) for at, value in changes))


def seen(scenario: netctrl.Scenario) -> Seen:
    """A run in the fluid."""
    result = netctrl.simulate(scenario, "fluid")
    series, bits = result.series, 8.0 / scenario.interval
    return Seen(
        time_s=result.time_s,
        throughput=bits * series["delivered"],
        rates=series["pace"] if "pace" in series.values else bits * series["arrived"],
        rtt_s=series["rtt"],
        delay_s=series["delay"][0],
        highest=series["backlog_most"][0],
        lost=series["lost"][0],
        capacity=series["capacity"][0],
        scenario=scenario,
        result=result,
    )


def run(flows: Sequence[netctrl.Flow], rate: float, buffer: float, duration: float, **fields: Any) -> Seen:
    """`seen` of `scenario_of`."""
    return seen(scenario_of(flows, rate, buffer, duration, **fields))


def last_states(scenario: netctrl.Scenario) -> np.ndarray:
    """States of the flows' laws at the end, a row each."""
    ready = paced_problem(scenario)
    advance_paced(*ready)
    return ready.flows.state


def jain(shares: np.ndarray) -> float:
    """Jain's index of fairness: 1 for equal shares, 1/n if one has all."""
    return float(shares.sum() ** 2 / (len(shares) * (shares @ shares)))
