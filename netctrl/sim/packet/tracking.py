"""A law that tracks delays on packets: it measures each of its intervals, and sets the rates of flows in the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from netctrl.errors import InvalidValue
from netctrl.laws.tracking.online_map import OnlineStaticMap
from netctrl.laws.tracking.schedule import GainSchedule
from netctrl.model.design.design import ConnetDesign
from netctrl.model.law import TrackingLaw
from netctrl.model.signals import SignalTrace
from netctrl.plants.access import read_premium
from netctrl.scenario.network.track import tracked_groups
from netctrl.scenario.network.tracking import (
    MBIT,
    Measured,
    Period,
    driven_columns,
    law_columns,
    run_periods,
    track_plan,
    tracked_flows,
)
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.sim.packet.kernel import advance_packets, resume
from netctrl.sim.packet.problem import PacketProblem
from netctrl.sim.packet.senders.receiver import HEADERS
from netctrl.sim.packet.senders.regulators import command_regulators
from netctrl.sim.packet.senders.tcp import UDP
from netctrl.sim.packet.state import AVERAGE_DELAY, AVERAGE_JITTER, FLOW, META, PacketState, grown
from netctrl.units import BITS_PER_BYTE

_NS = 1e9
_MS = 1e3


class RegulatedRun:
    """A simulation that goes on period by period, each at a given rate of the flows that a `Track` controls.

    Parameters
    ----------
    scenario : Scenario
        With a control of kind track. Results don't depend on how a run is divided into periods of the same rate.
    ready : PacketProblem
        Its tables.
    interval : float
        Of the periods [s].
    """

    def __init__(self, scenario: Scenario, ready: PacketProblem, interval: float) -> None:
        self.state: PacketState = ready.state
        self._ready, self._interval, self._window = ready, interval, float(scenario.initial_window)
        self.periods: list[tuple[float, int, Period]] = []
        groups, flow = tracked_groups(scenario), ready.state.flow
        index = {group.id: place for place, group in enumerate(scenario.flows)}
        self._group = index[scenario.control.measures]
        self._premium = int(np.flatnonzero(flow[:, FLOW["group"]] == self._group)[0])
        self._flows = np.concatenate([np.flatnonzero(flow[:, FLOW["group"]] == index[group.id]) for group in groups])
        self._tracked = tracked_flows(scenario)

    def advance(self, rate_bit_per_s: float, burst: int = 0) -> Period:
        """Simulate a period.

        Parameters
        ----------
        rate_bit_per_s : float
            Of all regulated flows together; inf: each sends what it offers.
        burst : int
            Packets that each flow releases at once; 0: as its group has it.
        """
        rates, bursts = self._tracked.rates(rate_bit_per_s), self._tracked.bursts(burst)
        self._make_room()
        command_regulators(self.state, self._flows, int(self.state.meta[META["now"]]), rates, bursts)
        before, received = self._counters()
        self.advance_to(round((len(self.periods) + 1) * self._interval * _NS))
        after, now_received = self._counters()
        averages, delays = self.state.regulated[self._premium], after - before
        measured = np.array([averages[AVERAGE_DELAY], averages[AVERAGE_JITTER], 0.0, delays[0], delays[2], delays[1]])
        measured[:5] /= _NS
        found = read_premium(measured, 0.0, bool(after[1] == 0))
        throughput = BITS_PER_BYTE * (now_received - received) / self._interval
        self.periods.append((rate_bit_per_s, burst, Period(*(_MS * float(each) for each in found[:4]), throughput)))
        return self.periods[-1][-1]

    def signals(self) -> dict[str, np.ndarray]:
        """Columns of the table `signals` (`netctrl.scenario.network.tracking.driven_columns`)."""
        return driven_columns(self._interval, self.periods)

    def advance_to(self, end: int) -> None:
        """Simulate on to a time [ns], at unchanged rates."""
        while not advance_packets(self.state, self._ready.interval, self._ready.full, self._window, end):
            self.state, waiting = grown(self.state)
            if waiting >= 0:
                resume(self.state, waiting)

    def _make_room(self) -> None:
        """In the heap, for an event of each flow."""
        meta, flows = self.state.meta, len(self.state.flow)
        while meta[META["heap"]] + flows + 64 > len(self.state.heap):
            self.state, _ = grown(self.state)

    def _counters(self) -> tuple[np.ndarray, float]:
        """Sums of the measured flow's delays, their number and changes so far [ns]; bytes of the others' packets."""
        rows = self.state.flow[self._flows]
        full, received = rows[:, FLOW["full"]], rows[:, FLOW["received"]]  # of TCP bytes of payload, else packets
        packets = np.where(rows[:, FLOW["kind"]] == UDP, received, received / (full - HEADERS))
        return self.state.trip[:, self._group].copy(), float((packets * full).sum())


def run_tracked(
    scenario: Scenario,
    ready: PacketProblem,
    design: ConnetDesign | TrackingLaw | None = None,
    *,
    schedule: GainSchedule | OnlineStaticMap | None = None,
    progress: Callable[[float], None] | None = None,
) -> tuple[PacketState, dict[str, np.ndarray]]:
    """Run a scenario under the law of its `Track`: the tables at the end, and the signals of each interval.

    Parameters
    ----------
    scenario, design, schedule
        As for `netctrl.scenario.network.tracking.track_plan`, with the same exceptions.
    ready : PacketProblem
    progress : callable, optional
        Called after each interval with the share that is done.
    """
    plan = track_plan(scenario, design, schedule)
    run = RegulatedRun(scenario, ready, plan.law.interval_s)

    def advance(rate: float, burst: int) -> Period:
        found = run.advance(rate, burst)
        if progress is not None:
            progress(len(run.periods) / len(plan.reference))
        return found

    found = run_periods(plan, advance)
    run.advance_to(ready.end)
    return run.state, run.signals() | law_columns(plan, found)


def tracking_signals(result: Result, outputs: Sequence[str], burst: bool, measured: Measured) -> SignalTrace:
    """Rates and what was measured of a result with a table `signals`, for `netctrl.identify`.

    Parameters and errors are those of `netctrl.access_link_signals`.
    """
    signals = result.tables["signals"]
    if not np.isfinite(signals["rate"]).all():
        raise InvalidValue("result", "open regulators", "a run in which R has a value in every period")
    mean = "mean " if measured == "period" else ""
    columns = [signals["throughput"] / MBIT if name == "throughput" else _MS * signals[mean + name] for name in outputs]
    inputs = {"R": signals["rate"] / MBIT} | ({"burst": signals["burst"]} if burst else {})
    return SignalTrace(
        interval_s=float(signals["time"][0]),
        input_values=np.column_stack(list(inputs.values())),
        output_values=np.column_stack(columns),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
    )
