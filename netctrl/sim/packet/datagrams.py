"""Groups of datagrams and of regulated flows as the packet engine's tables: bursts and pauses, and demands with the
rates of all intervals."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from netctrl.core.units import BITS_PER_BYTE
from netctrl.laws.rate.gate import mean_pause
from netctrl.plants.access import pause_mean
from netctrl.scenario.network.track import gate_of
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.sim.network.demand_draws import DemandDraws
from netctrl.sim.packet.links.tables import nanoseconds
from netctrl.sim.packet.senders.tcp import DEMAND
from netctrl.sim.packet.state import FLOW, SHARE

_MAX_PAUSE_S, _MAX_INTERVAL_S = 10.0, 500.0


def set_bursts(row: np.ndarray, group: Flow, full: int, seed: int, flow: int, start: int) -> int:
    """A row of a flow behind a regulator, of a stream with bursts of one packet; the answer is when it opens [ns].

    From `start` on it is somewhere in a pause: what is left of it, over its mean, is uniform of even pauses and
    exponential of exponential ones.
    """
    rate, burst, within, variation = gate_of(group, full)
    nanoseconds(f"flows.{group.id}.rate", pause_mean(rate, burst, full * BITS_PER_BYTE, within), _MAX_PAUSE_S)
    row[FLOW["within"]] = max(nanoseconds(f"flows.{group.id}.access_rate", within, _MAX_PAUSE_S), 1)
    pause = mean_pause(rate, burst, full, int(row[FLOW["within"]]))
    row[FLOW["gap"]], row[FLOW["variation"]] = pause, round(variation * SHARE)
    row[FLOW["burst"]] = row[FLOW["left"]] = burst
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1 << 20, flow)))
    share = variation * rng.exponential() if variation > 0.0 else 0.0
    share += (1.0 - variation) * rng.random() if variation < 1.0 else 0.0
    opens = start + round(share * pause)
    row[FLOW["start"]], row[FLOW["opens"]], row[FLOW["pausing"]] = start, opens, 1
    return opens


class Demands:
    """Rows of demands, and the rates of all."""

    def __init__(self, scenario: Scenario, given: Mapping[str, np.ndarray]) -> None:
        self._draws, self._given = DemandDraws(scenario), given
        self._rates = [np.zeros(0)]

    def draw(self, group: Flow) -> np.ndarray:
        """Draw the rates of a group's flows; the answer is where each one's begin in `rates`."""
        begin = sum(map(len, self._rates))
        rates = self._draws.rates(group) if group.id not in self._given else self._given[group.id]
        self._rates.append(np.ascontiguousarray(rates.T).ravel())
        return begin + self._draws.intervals(group) * np.arange(group.count)

    def set(self, row: np.ndarray, group: Flow, place: int, start: int) -> None:
        """A row of a flow that starts then [ns], and whose rates begin at this place."""
        interval = max(nanoseconds(f"flows.{group.id}.offers.interval", self._draws.lasts(group), _MAX_INTERVAL_S), 1)
        row[FLOW["kind"]], row[FLOW["rates"]], row[FLOW["interval"]] = DEMAND, place, interval
        row[FLOW["until"]] = min(row[FLOW["stop"]], start + self._draws.intervals(group) * interval)

    @property
    def rates(self) -> np.ndarray:
        """Of all, as `PacketState.rates` has them."""
        return np.concatenate(self._rates)
