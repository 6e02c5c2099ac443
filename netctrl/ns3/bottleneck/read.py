"""Run a bottleneck's program from `netctrl.ns3.bottleneck.render`, and read its results."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import numpy as np

from netctrl.model.design.design import Provenance
from netctrl.ns3.cpp import nanoseconds
from netctrl.ns3.program import Ns3, Running, read_table, run_seed, whole
from netctrl.scenario.bottleneck.result import BottleneckResult
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
) -> BottleneckResult:
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
    BottleneckResult
    """
    run_seed(folder, scenario.seed, **running)
    with whole(folder):
        return _read(folder, scenario, f"ns-{ns3.version}", provenance)


def _read(folder: Path, scenario: Scenario, simulator: str, provenance: Provenance) -> BottleneckResult:
    n, seed = len(scenario.flows), scenario.seed
    K = nanoseconds("duration", scenario.duration) // nanoseconds("interval", scenario.interval)
    series = read_table(folder / f"series-{seed}.csv", _LINK_COLUMNS + _FLOW_COLUMNS * n, K)
    time, delay, queue, dropped = series[:, :_LINK_COLUMNS].T.copy()
    arrived, rate, window = series[:, _LINK_COLUMNS:].T.reshape(n, _FLOW_COLUMNS, K).transpose(1, 0, 2).copy()
    flows = read_table(folder / f"flows-{seed}.csv", _FLOW_ROW, n)
    start, read, sent, again = flows[:, :4].T.copy()
    samples = np.fromfile(folder / f"rtts-{seed}.bin", dtype="<i8")
    if len(samples) % 3:
        raise ValueError(f"rtts-{seed}.bin ends within a record")
    flow, at, rtt = samples.reshape(-1, 3).T
    return BottleneckResult(
        scenario=scenario,
        simulator=simulator,
        time_s=time,
        delay_s=delay,
        queue_bytes=queue,
        dropped_bytes=dropped,
        arrived_bytes=arrived,
        rate_bit_per_s=rate,
        window_bytes=window,
        rtt_flow=flow.copy(),
        rtt_time_s=at * _NS,
        rtt_s=rtt * _NS,
        start_s=start * _NS,
        read_bytes=read,
        sent_bytes=sent,
        again_bytes=again,
        events=flows[:, 4:].astype(np.int64),
        provenance=provenance,
    )
