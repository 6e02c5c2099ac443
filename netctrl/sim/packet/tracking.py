"""A law that tracks delays on packets: it measures each of its intervals, and sets the rates of flows in the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from netctrl.core.errors import InvalidValue, checked_flag, checked_kind, checked_names, checked_word
from netctrl.core.units import BITS_PER_BYTE
from netctrl.laws.tracking.online_map import OnlineStaticMap, curve_values
from netctrl.laws.tracking.online_shift import OnlineShift
from netctrl.laws.tracking.schedule import GainSchedule
from netctrl.model.design.design import ConnetDesign, MpcDesign
from netctrl.model.law import TrackingLaw
from netctrl.model.signals import SignalTrace
from netctrl.plants.access import read_premium
from netctrl.scenario.network.track import tracked_groups
from netctrl.scenario.network.tracking import (
    MBIT,
    TRACKED_SIGNALS,
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
    design: ConnetDesign | MpcDesign | TrackingLaw | None = None,
    *,
    schedule: GainSchedule | OnlineStaticMap | OnlineShift | None = None,
    progress: Callable[[float], None] | None = None,
) -> tuple[PacketState, dict[str, dict[str, np.ndarray]]]:
    """Run a scenario under the law of its `Track`: the state at the end, and the result's tables `signals`, of each
    interval, and `curve`, where one is learned.

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
    tables = {"signals": run.signals() | law_columns(plan, found)}
    if found.curve is not None:
        values = zip(plan.law.outputs, curve_values(found.curve).T, strict=True)
        tables["curve"] = {plan.law.inputs[0]: found.curve.points, **dict(values)}
    return run.state, tables


def access_link_signals(
    result: Result, *, outputs: Sequence[str] = ("delay", "jitter"), burst: bool = False, measured: Measured = "period"
) -> SignalTrace:
    """Rate, delay and jitter of a simulated link with regulated flows as signals, for `netctrl.identify`.

    Parameters
    ----------
    result : Result
        Of `netctrl.sim.packet.run.simulate_rates` with rates that excite the link, such as those of `netctrl.gbn`, or
        of another run with a control of kind track.
    outputs : sequence of {"delay", "jitter", "throughput"}
        Outputs, in ms and Mbit/s.
    burst : bool
        Whether bursts [packets] are a second input.
    measured : {"average", "period"}
        Delays and jitters: moving averages over packets at the end of a period (as in the CONNET paper), or means over
        the period.

    Returns
    -------
    SignalTrace
        Inputs "R" [Mbit/s] and, with `burst`, "burst" [packets].

    Raises
    ------
    InvalidValue
        Open regulators, so that R is infinite; an unknown output, or a result without signals.

    Examples
    --------
    >>> import netctrl, numpy as np
    >>> from netctrl.scenario.builders import access_link
    >>> from netctrl.sim.packet.run import simulate_rates
    >>> link = access_link(duration="200s", control=netctrl.Track())
    >>> run = simulate_rates(link, netctrl.gbn(200, (20e6, 80e6), np.random.default_rng(1))[:, 0])
    >>> trace = netctrl.access_link_signals(run)
    >>> trace.inputs, trace.outputs, len(trace)
    (('R',), ('delay', 'jitter'), 200)
    """
    checked_kind("result", result, Result)
    checked_names("outputs", outputs, "some of delay, jitter, throughput")
    checked_word("measured", measured, ("average", "period"))
    checked_flag("burst", burst)
    if not outputs or not all((name, measured) in TRACKED_SIGNALS for name in outputs):
        raise InvalidValue("outputs", (*outputs, measured), "some of delay, jitter, throughput; average or period")
    if "signals" not in result.tables:
        raise InvalidValue("result", "no signals", "a run with a control of kind track")
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
