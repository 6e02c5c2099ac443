"""Run a scenario packet by packet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import ceil
from pathlib import Path

import numpy as np

from netctrl.errors import InvalidValue, checked_function, checked_kind
from netctrl.laws.aqm.records import DesignQueue
from netctrl.model.design.design import HftracDesign
from netctrl.model.io.provenance import Provenance, provenance
from netctrl.scenario.links import Links
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario, checked_network
from netctrl.sim.packet.kernel import advance_packets, resume
from netctrl.sim.packet.lacks import flows_lack
from netctrl.sim.packet.problem import PacketProblem, packet_problem
from netctrl.sim.packet.rates import advance_rates
from netctrl.sim.packet.senders.receiver import HEADERS
from netctrl.sim.packet.state import FLOW, LINK, META, PacketState, grown
from netctrl.sim.tcp_aqm.traffic import draw_flows

__all__ = ["packet_result", "run_packets", "simulate_packets"]

Progress = Callable[[float], None]

_PARTS, _MAX_PART_S = 50, 200.0


def simulate_packets(
    scenario: Scenario,
    *,
    design: HftracDesign | None = None,
    progress: Progress | None = None,
    argv: Iterable[str] = (),
    inputs: Iterable[Path] = (),
) -> Result:
    """Run one scenario packet by packet.

    Parameters
    ----------
    scenario : Scenario
    design : HftracDesign, optional
        Sets the links' rates; else the one whose file `scenario.control` names.
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
    checked_network(scenario, Links)
    if design is not None:
        checked_kind("design", design, HftracDesign)
    if progress is not None:
        checked_function("progress", progress)
    missing = flows_lack(scenario)
    if missing is not None:
        raise InvalidValue("scenario", missing, "what the packet engine has")
    for link in scenario.links:
        if isinstance(link.queue, DesignQueue):
            raise InvalidValue(f"links.{link.id}.queue", "design", "a kind with a law; `--design FILE` fills the place")
    ready = packet_problem(scenario, design)
    made = provenance(argv=argv, seed=scenario.seed, inputs=inputs, libraries=("numpy", "numba"))
    return packet_result(scenario, run_packets(ready, float(scenario.initial_window), progress), made)


def run_packets(ready: PacketProblem, first_window: float, progress: Progress | None = None) -> PacketState:
    """The tables at the end."""
    state, parts = ready.state, max(1 if progress is None else _PARTS, ceil(ready.end / 1e9 / _MAX_PART_S))
    for part in range(1, parts + 1):
        end = ready.end * part // parts
        while not _advanced(ready, state, first_window, end):
            state, waiting = grown(state)
            if waiting >= 0:
                resume(state, waiting)
        if progress is not None:
            progress(part / parts)
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
    _, start, size, took = state.response[: state.meta[META["responses"]]].T
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
            "one_way": None if answered.all() else np.where(answered, np.nan, trips),
            "jitter": None if answered.all() else np.where(answered, np.nan, changes),
        },
        totals={
            name: np.bincount(connections["flow"], connections[name], len(answered)) for name in ("sent", "resent")
        },
        tables={
            "transfers": {"start": start / 1e9, "size": size.astype(float), "duration": took / 1e9},
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
