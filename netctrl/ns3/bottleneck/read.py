"""Run a bottleneck's program from `netctrl.ns3.bottleneck.render`, and read its results."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import numpy as np

from netctrl.laws.pacing.pacing import EVENTS
from netctrl.model.design.design import Provenance
from netctrl.ns3.cpp import nanoseconds
from netctrl.ns3.program import Ns3, Running, read_table, run_seed, whole
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario

__all__ = ["run_bottleneck"]

_NS = 1e-9
_LINK_COLUMNS, _FLOW_COLUMNS, _FLOW_ROW = 4, 3, 9


def run_bottleneck(
    folder: Path,
    scenario: Scenario,
    *,
    ns3: Ns3,
    provenance: Provenance,
    **running: Unpack[Running],
) -> Result:
    """Run the compiled program in `folder` for the scenario's seed.

    Parameters
    ----------
    folder : Path
    scenario : Scenario
        Scenario of the rendering; the seed may differ.
    ns3, provenance, **running
        As in `netctrl.ns3.tcp_aqm.read.run_program`, with the same exceptions.

    Returns
    -------
    Result
    """
    run_seed(folder, scenario.seed, **running)
    with whole(folder):
        return _read(folder, scenario, f"ns-{ns3.version}", provenance)


def _read(folder: Path, scenario: Scenario, simulator: str, provenance: Provenance) -> Result:
    answered, seed = np.array([group.answered for group in scenario.flows]), scenario.seed
    n = int(answered.sum())
    K = nanoseconds("duration", scenario.duration) // nanoseconds("interval", scenario.interval)
    series = read_table(folder / f"series-{seed}.csv", _LINK_COLUMNS + _FLOW_COLUMNS * n, K)
    _, delay, queue, dropped = series[:, :_LINK_COLUMNS].T.copy()
    arrived, rate, window = series[:, _LINK_COLUMNS:].T.reshape(n, _FLOW_COLUMNS, K).transpose(1, 0, 2).copy()
    flows = read_table(folder / f"flows-{seed}.csv", _FLOW_ROW, n)
    start, read, sent, again = flows[:, :4].T.copy()
    samples = np.fromfile(folder / f"rtts-{seed}.bin", dtype="<i8")
    if len(samples) % 3:
        raise ValueError(f"rtts-{seed}.bin ends within a record")
    flow, at, rtt = samples.reshape(-1, 3).T
    link = {"backlog_most": queue, "lost": dropped, "delay": delay}
    if answered.all():  # cross traffic isn't recorded, so neither is all that departs
        link["departed"] = arrived.sum(axis=0)
    events = dict(zip(EVENTS, flows[:, 4:].astype(np.int64).T.copy(), strict=True))
    groups, counts = np.flatnonzero(answered), {"read": read, "sent": sent, "resent": again}
    found = {"delivered": arrived, "pace": rate, "window": window, "rtt": _mean_trips(scenario, flow, at, rtt, n, K)}
    return Result.of_series(
        scenario,
        simulator,
        provenance,
        links={name: series[None] for name, series in link.items()},
        flows={name: _spread(each, answered) for name, each in found.items()},
        totals={"sent": _spread(sent, answered), "resent": _spread(again, answered)},
        tables={
            "trips": {"flow": groups[flow], "time": at * _NS, "rtt": rtt * _NS},
            "connections": {
                "flow": groups,
                "start": start * _NS,
                **counts,
                **events,
            },
        },
    )


def _spread(values: np.ndarray, answered: np.ndarray) -> np.ndarray:
    """Rows of the TCP flows at their places among all flows; NaN in those of cross traffic."""
    found = np.full((len(answered), *values.shape[1:]), np.nan)
    found[answered] = values
    return found


def _mean_trips(
    scenario: Scenario, flow: np.ndarray, at: np.ndarray, rtt: np.ndarray, flows: int, bins: int
) -> np.ndarray:
    """Mean round trip of each flow in each bin, (n, K) [s]; 0 without any."""
    place = np.minimum((at * _NS / scenario.interval).astype(np.int64), bins - 1) + bins * flow
    count = flows * bins
    times, total = np.bincount(place, minlength=count), np.bincount(place, rtt * _NS, count)
    return np.divide(total, times, out=np.zeros(count), where=times > 0).reshape(-1, bins)
