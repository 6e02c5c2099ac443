"""A law that tracks delays on packets: it measures each of its intervals, and sets the rates of flows in the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isclose
from typing import Any, NamedTuple

import numpy as np

from netctrl.errors import InvalidValue
from netctrl.laws.tracking.online_map import OnlineStaticMap
from netctrl.laws.tracking.reference_governor import reference_governor
from netctrl.laws.tracking.schedule import GainSchedule
from netctrl.model.design.design import ConnetDesign, read_design
from netctrl.model.law import TrackingLaw
from netctrl.model.signals import SignalTrace
from netctrl.plants.access import read_premium
from netctrl.scenario.access.periods import Periods, run_periods
from netctrl.scenario.access.plan import MBIT, AccessLinkPlan, Measured, in_turn, middle, tracking_plan
from netctrl.scenario.network.track import Track, regulator_of, tracked_groups
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.sim.packet.kernel import advance_packets, resume
from netctrl.sim.packet.problem import PacketProblem
from netctrl.sim.packet.senders.receiver import HEADERS
from netctrl.sim.packet.senders.regulators import command_regulators
from netctrl.sim.packet.senders.tcp import UDP
from netctrl.sim.packet.state import AVERAGE_DELAY, AVERAGE_JITTER, FLOW, META, PacketState, grown
from netctrl.units import BITS_PER_BYTE, unit_scale

_NS = 1e9
_MS = 1e3


class Period(NamedTuple):
    """Measurements of one period, taken at its end, as `netctrl.scenario.access.plan` names them."""

    delay_ms: float
    """Moving average over received packets of the measured flow, d += (d_i - d)/8; 0 before the first."""
    jitter_ms: float
    """Moving average of |d_i - d_(i-1)|, computed likewise."""
    mean_delay_ms: float
    """Mean over the packets received in the period; without any, the moving average."""
    mean_jitter_ms: float
    other_bit_per_s: float
    """Throughput of the regulated flows, with headers."""


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
        shares = scenario.control.shares or (1.0 / len(groups),) * len(groups)
        self._group = index[scenario.control.measures]
        self._premium = int(np.flatnonzero(flow[:, FLOW["group"]] == self._group)[0])
        rows = [np.flatnonzero(flow[:, FLOW["group"]] == index[group.id]) for group in groups]
        counts = [len(each) for each in rows]
        self._flows = np.concatenate(rows)
        self._share = np.repeat(np.array(shares) / counts, counts)
        gates = [regulator_of(group) for group in groups]
        self._offered = np.repeat([gate.rate for gate in gates if gate], counts)
        self._bursts = np.repeat([gate.burst for gate in gates if gate], counts)

    def advance(self, rate_bit_per_s: float, burst: int = 0) -> Period:
        """Simulate a period.

        Parameters
        ----------
        rate_bit_per_s : float
            Of all regulated flows together; inf: each sends what it offers.
        burst : int
            Packets that each flow releases at once; 0: as its group has it.
        """
        rates = np.minimum(rate_bit_per_s * self._share, self._offered)
        bursts = np.full(len(rates), burst) if burst else self._bursts
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
        """Columns of the table `signals`: of each period its end, the rate of all regulated flows together (inf: what
        they offer) and the packets of a burst (0: each group's own), and what was measured, in SI units.

        `delay` and `jitter` are moving averages at the period's end, `mean delay` and `mean jitter` means over it.
        """
        rates, bursts, found = zip(*self.periods, strict=True)
        delay, jitter, mean_delay, mean_jitter, throughput = np.array(found).T
        return {
            "time": self._interval * np.arange(1, len(found) + 1),
            "rate": np.array(rates),
            "burst": np.array(bursts, dtype=float),
            "delay": delay / _MS,
            "jitter": jitter / _MS,
            "mean delay": mean_delay / _MS,
            "mean jitter": mean_jitter / _MS,
            "throughput": throughput,
        }

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
    scenario : Scenario
    ready : PacketProblem
    design : ConnetDesign or TrackingLaw, optional
        In place of the file that the control names.
    schedule : GainSchedule or OnlineStaticMap, optional
        Gives the law the same speed at all points of the curve (`netctrl.laws.tracking.schedule`); an `OnlineStaticMap`
        also learns from each interval (`netctrl.laws.tracking.online_map`).
    progress : callable, optional
        Called after each interval with the share that is done.

    Raises
    ------
    InvalidValue
        No law, a law that doesn't fit the control, or a duration that isn't a whole number of its intervals.
    FileError
        The Design file can't be read.
    """
    plan = _plan(scenario, _design(scenario.control, design), schedule)
    run = RegulatedRun(scenario, ready, plan.law.interval_s)

    def advance(rate: float, burst: int) -> Period:
        found = run.advance(rate, burst)
        if progress is not None:
            progress(len(run.periods) / len(plan.reference))
        return found

    found = run_periods(plan, advance)
    run.advance_to(ready.end)
    return run.state, run.signals() | _of_law(plan, found)


def _design(control: Track, design: Any) -> Any:
    if design is None and control.file:
        design = read_design(control.file)
        if not isinstance(design, ConnetDesign):
            takes = f"a CONNET Design; this one is of method {design.method}"
            raise InvalidValue("control.file", control.file, takes)
    if not isinstance(design, ConnetDesign | TrackingLaw):
        got = None if design is None else type(design).__name__
        raise InvalidValue("design", got, "a CONNET Design, unless control.file names its file")
    return design


def _plan(scenario: Scenario, design: Any, schedule: Any) -> AccessLinkPlan:
    """The law's intervals with their references."""
    control, whole = scenario.control, isinstance(design, ConnetDesign)
    law: TrackingLaw = design.law if whole else design
    interval = law.interval_s
    T = round(scenario.duration / interval)
    if T < 1 or not isclose(T * interval, scenario.duration, rel_tol=1e-6):
        raise InvalidValue("duration", scenario.duration, f"a whole number of the law's intervals of {interval:g} s")
    rows = control.reference
    if not rows and not whole:
        raise InvalidValue("control.reference", rows, "references, with a law that isn't a Design's")
    paper = whole and design.inputs.law == "paper"
    first = None
    if control.first_rate is not None:
        first = control.first_rate / (unit_scale(law.input_units[0]) or MBIT)
    return tracking_plan(
        T,
        law,
        in_turn(rows or design.inputs.references or (middle(design),), T),
        measured=control.measured or ("average" if paper else "period"),
        governor=reference_governor(law) if control.governor else None,
        schedule=schedule,
        start=round(control.start / interval),
        first_rate=first,
    )


def _of_law(plan: AccessLinkPlan, found: Periods[Period]) -> dict[str, np.ndarray]:
    """Columns of the table `signals`, in the law's units: measured outputs, their references, those that a governor
    gives, the inputs that the law commands, before their limits (NaN while it was off), and whether one is at its
    limit."""
    law, columns = plan.law, {}
    for place, name in enumerate(law.outputs):
        columns[f"measured {name}"] = found.measured[:, place]
        columns[f"reference {name}"] = plan.reference[:, place]
        columns[f"given {name}"] = found.given[:, place]
    columns |= {f"commanded {name}": found.commanded[:, place] for place, name in enumerate(law.inputs)}
    at_limit = (found.commanded >= law.high) | (found.commanded <= law.low)
    return columns | {"at limit": at_limit.any(axis=1).astype(float)}


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
