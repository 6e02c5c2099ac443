"""Changes of links and flows during a run, as entries of the packet engine's agenda."""

from __future__ import annotations

import numpy as np

from netctrl.scenario.network.track import regulator_of
from netctrl.scenario.scenario import Scenario
from netctrl.sim.packet.kernel import CAPACITY, DELAY, LINE_DELAY, RATE_FIXED, RATE_FREE
from netctrl.sim.packet.links.tables import whole_rate
from netctrl.sim.packet.state import FLOW

_NS = 1e9

Agenda = list[tuple[int, int, int, int]]
"""When, what, which, and a value (`netctrl.sim.packet.kernel`)."""


def link_changes(scenario: Scenario, flow: np.ndarray) -> Agenda:
    """Capacities and delays of links; a delay is that of acknowledgements too, where these take the same lines."""
    full, index = int(scenario.packet_size), {link.id: row for row, link in enumerate(scenario.links)}
    delays = {link.id: round(link.delay * _NS) for link in scenario.links}
    line = flow[:, FLOW["line_delay"]].copy()
    found: Agenda = []
    for change in sorted(scenario.changes, key=lambda change: change.at):
        if change.flow:
            continue
        at, row = round(change.at * _NS), index[change.link]
        if change.capacity is not None:
            found.append((at, CAPACITY, row, whole_rate("changes.capacity", change.capacity, full)))
        if change.delay is not None:
            new = round(change.delay * _NS)
            found.append((at, DELAY, row, new))
            back = [not group.ack_path and change.link in group.path for group in scenario.flows]
            for f in np.flatnonzero(np.array(back)[flow[:, FLOW["group"]]]):
                line[f] += new - delays[change.link]
                found.append((at, LINE_DELAY, int(f), int(line[f])))
            delays[change.link] = new
    return found


def rate_changes(scenario: Scenario, flow: np.ndarray, first: int) -> tuple[Agenda, list[float]]:
    """Rates of flows that change, and the rates, whose places begin at `first`."""
    groups = {group.id: (g, group) for g, group in enumerate(scenario.flows)}
    found: Agenda = []
    rates: list[float] = []
    for change in scenario.changes:
        if not change.flow:
            continue
        g, group = groups[change.flow]
        own = (regulator_of(group) or group.offers).rate
        kind, rate = (RATE_FREE, own) if change.rate is None else (RATE_FIXED, change.rate)
        at, place = round(change.at * _NS), first + len(rates)
        rates.append(rate)
        found += [(at, kind, int(f), place) for f in np.flatnonzero(flow[:, FLOW["group"]] == g)]
    return found, rates
