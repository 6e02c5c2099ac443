"""Run a scenario packet by packet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from netctrl.core.errors import InvalidValue, checked_function, checked_kind, checked_number, checked_numbers
from netctrl.laws.aqm.records import DesignQueue
from netctrl.laws.tracking.online_map import OnlineStaticMap
from netctrl.laws.tracking.online_shift import OnlineShift
from netctrl.laws.tracking.schedule import GainSchedule
from netctrl.model.design.design import ConnetDesign, HftracDesign, LinkDesign
from netctrl.model.io.provenance import Provenance, provenance
from netctrl.model.law import TrackingLaw
from netctrl.scenario.fabric.topology import TOPOLOGIES
from netctrl.scenario.links import Links
from netctrl.scenario.network.track import Track
from netctrl.scenario.network.tracking import GateDraws
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario, checked_network
from netctrl.sim.fluid.traffic import draw_flows
from netctrl.sim.network.flow_links import flow_links
from netctrl.sim.packet.fabric import fabric_problem
from netctrl.sim.packet.fabric_run import centre_result
from netctrl.sim.packet.kernel import advance_packets, resume
from netctrl.sim.packet.lacks import flows_lack
from netctrl.sim.packet.problem import PacketProblem, packet_problem
from netctrl.sim.packet.rates import advance_rates
from netctrl.sim.packet.senders.receiver import HEADERS
from netctrl.sim.packet.state import FLOW, LINK, META, PacketState, grown
from netctrl.sim.packet.tracking import RegulatedRun, run_tracked

Progress = Callable[[float], None]

_PARTS, _MAX_PART_S = 50, 200.0
_MAX_PERIODS = 10_000_000


def simulate_packets(
    scenario: Scenario,
    *,
    design: LinkDesign | ConnetDesign | TrackingLaw | None = None,
    gains: np.ndarray | None = None,
    schedule: GainSchedule | OnlineStaticMap | OnlineShift | None = None,
    progress: Progress | None = None,
    argv: Iterable[str] = (),
    inputs: Iterable[Path] = (),
) -> Result:
    """Run one scenario packet by packet.

    Parameters
    ----------
    scenario : Scenario
    design : HftracDesign, MpcDesign, ConnetDesign or TrackingLaw, optional
        Sets the links' rates, or with a control of kind track (CONNET, MPC) those of flows; else the one whose file
        `scenario.control` names.
    gains : ndarray, shape (N + 1,) or (C, N + 1), optional
        In a data centre: K[N] of MPCC for all paths, or for each of C kinds of path, the shortest round trip first. By
        default the Riccati gain of the scheme's weights.
    schedule : GainSchedule, OnlineStaticMap or OnlineShift, optional
        With a control of kind track: gives the law the same speed at all points of the curve
        (`netctrl.laws.tracking.schedule`); an `OnlineStaticMap` also learns the curve from each interval
        (`netctrl.laws.tracking.online_map`), which the table `curve` of the result has; an `OnlineShift` learns how far
        the law's own curve has moved, the column `shift` of the table `signals`.
    progress : callable, optional
        Called now and then with the share that is done, from 0 to 1.
    argv, inputs : iterable of str and of Path
        Command line and files, for the provenance.

    Raises
    ------
    InvalidValue
        What the engine doesn't have, or can't hold.
    FileError
        The Design file can't be read.
    """
    checked_network(scenario, Links, *TOPOLOGIES)
    centre = scenario.kind in TOPOLOGIES
    for name, value in {"design": design, "schedule": schedule}.items() if centre else {"gains": gains}.items():
        if value is not None:
            raise InvalidValue(name, type(value).__name__, f"None {'in' if centre else 'without'} a data centre")
    if design is not None and not isinstance(scenario.control, Track):
        checked_kind("design", design, LinkDesign)
    if progress is not None:
        checked_function("progress", progress)
    made = provenance(argv=argv, seed=scenario.seed, inputs=inputs, libraries=("numpy", "numba"))
    if centre:
        ready, plan = fabric_problem(scenario, gains)
        return centre_result(scenario, plan, run_packets(ready, 0.0, progress), made)
    missing = flows_lack(scenario)
    if missing is not None:
        raise InvalidValue("scenario", missing, "what the packet engine has")
    for link in scenario.links:
        if isinstance(link.queue, DesignQueue):
            raise InvalidValue(f"links.{link.id}.queue", "design", "a kind with a law; `--design FILE` fills the place")
    ready = packet_problem(scenario, flow_links(scenario, design if isinstance(design, LinkDesign) else None))
    if isinstance(scenario.control, Track):
        if isinstance(design, HftracDesign):
            raise InvalidValue("design", design.method, "a CONNET or MPC Design, with a control of kind track")
        state, tables = run_tracked(scenario, ready, design, schedule=schedule, progress=progress)
        return _with_tables(packet_result(scenario, state, made), tables)
    if schedule is not None:
        raise InvalidValue("schedule", type(schedule).__name__, "None without a control of kind track")
    return packet_result(scenario, run_packets(ready, float(scenario.initial_window), progress), made)


def simulate_rates(
    scenario: Scenario, rate_bit_per_s: Any, burst: Any = 0, *, interval: float | None = None, argv: Iterable[str] = ()
) -> Result:
    """Run a scenario with given rates of the flows that its `Track` controls, for a trace of inputs and outputs.

    Parameters
    ----------
    scenario : Scenario
        With a control of kind track, whose law is left out.
    rate_bit_per_s : array_like, shape (T,), or float
        Rate of all these flows together in each period [bit/s]; inf: each sends what it offers.
    burst : array_like, shape (T,), or int
        Packets that a flow releases at once; 0: as its group has it.
    interval : float, optional
        Of the periods [s]; by default the scenario's.
    argv : iterable of str
        Command line, for the provenance.

    Returns
    -------
    Result
        With a table `signals` (`netctrl.sim.packet.tracking.RegulatedRun.signals`).

    Raises
    ------
    InvalidValue
        A number of values other than the periods of the scenario's duration, or a value out of bounds.

    Examples
    --------
    >>> from netctrl.scenario.builders import access_link
    >>> from netctrl.scenario.network.track import Track
    >>> from netctrl.sim.packet.run import simulate_rates
    >>> found = simulate_rates(access_link(control=Track(), duration="4s"), [20e6, 40e6, 60e6, 80e6])
    >>> found.tables["signals"]["rate"].tolist()
    [20000000.0, 40000000.0, 60000000.0, 80000000.0]
    """
    checked_network(scenario, Links)
    if not isinstance(scenario.control, Track):
        raise InvalidValue("scenario", scenario.control, "one with a control of kind track")
    length = scenario.interval if interval is None else checked_number("interval", interval, "a time in s", above=0.0)
    T = round(scenario.duration / length)
    if not 1 <= T <= _MAX_PERIODS:
        takes = f"a time of which the duration, {scenario.duration:g} s, has 1 to {_MAX_PERIODS}"
        raise InvalidValue("interval", length, takes)
    rates = _each("rate_bit_per_s", rate_bit_per_s, T, "rates of at least 0 in bit/s; inf opens the regulators")
    bursts = _each("burst", burst, T, "numbers of packets from 1 to 10000, or 0 for each group's own")
    if (bursts > 10_000).any() or (bursts % 1.0 > 0.0).any():
        raise InvalidValue("burst", burst, "whole numbers of packets up to 10000")
    ready = packet_problem(scenario)
    run = RegulatedRun(scenario, ready, length)
    for each, packets in zip(rates.tolist(), bursts.tolist(), strict=True):
        run.advance(each, int(packets))
    run.advance_to(ready.end)
    made = provenance(argv=argv, seed=scenario.seed, libraries=("numpy", "numba"))
    return _with_tables(packet_result(scenario, run.state, made), {"signals": run.signals()})


def gate_draws(scenario: Scenario) -> dict[str, GateDraws]:
    """Of each group by its id what its flows draw, for engines whose packets are to leave when this one's do."""
    state = packet_problem(scenario).state
    groups, L = state.flow[:, FLOW["group"]], len(state.link)
    rows = [np.flatnonzero(groups == g) for g in range(len(scenario.flows))]
    return {
        group.id: GateDraws(state.flow[each, FLOW["opens"]], state.random[L + each])
        for group, each in zip(scenario.flows, rows, strict=True)
    }


def _each(name: str, values: Any, periods: int, takes: str) -> np.ndarray:
    found = checked_numbers(name, values, takes)
    found = np.full(periods, float(found)) if found.ndim == 0 else found
    if found.shape != (periods,) or not (found >= 0.0).all():
        raise InvalidValue(name, values, f"one value, or one for each of {periods} periods: {takes}")
    return found


def _with_tables(found: Result, tables: dict[str, dict[str, np.ndarray]]) -> Result:
    return replace(found, tables={**found.tables, **tables})


def run_packets(ready: PacketProblem, first_window: float, progress: Progress | None = None) -> PacketState:
    """The tables at the end."""
    state, parts = ready.state, max(1 if progress is None else _PARTS, ceil(ready.end / 1e9 / _MAX_PART_S))
    for part in range(1, parts + 1):
        state = run_to(ready, state, first_window, ready.end * part // parts)
        if progress is not None:
            progress(part / parts)
    return state


def run_to(ready: PacketProblem, state: PacketState, first_window: float, end: int) -> PacketState:
    """The tables at a time [ns]."""
    while not _advanced(ready, state, first_window, end):
        state, waiting = grown(state)
        if waiting >= 0:
            resume(state, waiting)
    return state


def _advanced(ready: PacketProblem, state: PacketState, first_window: float, end: int) -> bool:
    if ready.rates is None:
        return advance_packets(state, ready.interval, ready.full, first_window, end)
    return advance_rates(state, *ready.rates, ready.interval, ready.full, first_window, end)


def packet_result(scenario: Scenario, state: PacketState, made: Provenance) -> Result:
    """What the tables at the end say."""
    backlog, arrived, departed, lost, marked, law, waited, started = state.series
    L = len(backlog)
    decided = state.link[:L, LINK["epoch"]] > 0
    packets, chosen = (np.diff(each, prepend=0.0, axis=1) for each in (state.packets, law))
    share = np.divide(chosen, packets, out=np.zeros_like(chosen), where=packets > 0.0)
    answered = np.array([group.answered for group in scenario.flows])[:, None]
    trips, changes = _means(state.trips[0], state.trips[1]) / 1e9, _means(state.trips[2], state.trips[1]) / 1e9
    group, start, size, took = state.response[: state.meta[META["responses"]]].T
    connections = _connections(scenario, state)
    sums = {"arrived": arrived, "departed": departed, "lost": lost, "marked": marked}
    return Result.of_series(
        scenario,
        "packet",
        made,
        links={
            "backlog": backlog,
            **{name: np.diff(counted, prepend=0.0, axis=1) for name, counted in sums.items()},
            "probability": np.where(decided[:, None], law, share),
            "delay": _means(waited, started) / 1e9,
        },
        flows={
            "payload": np.diff(state.carried, prepend=0.0, axis=1),
            "rtt": np.where(answered, trips, np.nan),
            "window": state.windows[0],
            "in_flight": state.windows[1],
            "one_way": None if answered.all() else np.where(answered, np.nan, trips),
            "jitter": None if answered.all() else np.where(answered, np.nan, changes),
        },
        totals={
            name: np.bincount(connections["flow"], connections[name], len(answered)) for name in ("sent", "resent")
        },
        tables={
            "transfers": {"flow": group, "start": start / 1e9, "size": size.astype(float), "duration": took / 1e9},
            "connections": connections,
        },
    )


def _connections(scenario: Scenario, state: PacketState) -> dict[str, np.ndarray]:
    """Of each flow with acknowledgements its group, start [s], and payload read, sent and resent in the whole run."""
    answered = np.array([group.answered for group in scenario.flows])
    groups = state.flow[:, FLOW["group"]]
    starts, chosen = np.full(len(groups), np.nan), answered[groups]
    for g, draw in enumerate(draw_flows(scenario, merged=False)):
        if len(draw.start_s) == np.count_nonzero(groups == g):  # Web sessions open connections as they go
            starts[groups == g] = draw.start_s
    rows = state.flow[chosen]
    payload = rows[:, FLOW["full"]] - HEADERS
    return {
        "flow": rows[:, FLOW["group"]],
        "start": starts[chosen],
        "read": rows[:, FLOW["received"]].astype(float),
        "sent": (payload * rows[:, FLOW["sent"]]).astype(float),
        "resent": (payload * rows[:, FLOW["again"]]).astype(float),
    }


def _means(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    """What was added in each interval over how many times; NaN where none was."""
    grown, times = np.diff(total, prepend=0.0, axis=1), np.diff(count, prepend=0.0, axis=1)
    return np.divide(grown, times, out=np.full(grown.shape, np.nan), where=times > 0.0)
