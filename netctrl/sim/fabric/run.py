"""Run a data centre packet by packet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from netctrl.errors import checked_function
from netctrl.model.io.provenance import Provenance, provenance
from netctrl.scenario.fabric.result import FabricResult
from netctrl.scenario.fabric.topology import TOPOLOGIES
from netctrl.scenario.scenario import Scenario, checked_network
from netctrl.sim.fabric.kernel import advance_fabric
from netctrl.sim.fabric.problem import FabricProblem, fabric_problem
from netctrl.sim.fabric.state import FLOW, META, PORT, FabricState, grown

__all__ = ["simulate_fabric"]

Progress = Callable[[float], None]

_BIN = 1000  # byte, of the histogram of queues
_DRAWS = 1 << 16
_PARTS = 50


def simulate_fabric(
    scenario: Scenario,
    gains: np.ndarray | None = None,
    *,
    progress: Progress | None = None,
    argv: Iterable[str] = (),
    inputs: Iterable[Path] = (),
) -> FabricResult:
    """Run a data centre's scenario.

    Parameters
    ----------
    scenario : Scenario
    gains : ndarray, shape (N + 1,) or (C, N + 1), optional
        K[N] of MPCC for all paths, or for each of C kinds of path, the shortest round trip first. By default the
        Riccati gain of the scheme's weights.
    progress : callable, optional
        Called repeatedly with the completed share, from 0 to 1.
    argv, inputs : iterable of str and of Path
        Command line and files, for the provenance.

    Raises
    ------
    InvalidValue
        As in `netctrl.sim.fabric.problem`.
    """
    checked_network(scenario, *TOPOLOGIES)
    if progress is not None:
        checked_function("progress", progress)
    ready = fabric_problem(scenario, gains)
    rng = np.random.default_rng(np.random.SeedSequence(scenario.seed).spawn(3)[2])
    chance = ready.max_marking > 0.0
    state = ready.state._replace(draws=rng.random(_DRAWS) if chance else np.zeros(4))
    for part in range(1, _PARTS + 1):
        end = ready.end * part // _PARTS
        while not advance_fabric(state, ready.hosts, ready.rule, ready.max_marking, ready.interval, _BIN, end):
            state = grown(state)
            if chance and state.meta[META["draw"]] > len(state.draws) - 2:
                state = state._replace(draws=rng.random(_DRAWS))
                state.meta[META["draw"]] = 0
        if progress is not None:
            progress(part / _PARTS)
    record = provenance(argv=argv, seed=scenario.seed, inputs=inputs, libraries=("numpy", "numba"))
    return _result(scenario, ready, state, record)


def _result(scenario: Scenario, ready: FabricProblem, state: FabricState, record: Provenance) -> FabricResult:
    port, meta, flow = state.port, state.meta, state.flow
    elapsed = max(ready.end, 1)
    area = port[:, PORT["area"]] + port[:, PORT["bytes"]] * (ready.end - port[:, PORT["changed"]])
    since = np.where(port[:, PORT["paused"]] == 1, ready.end - port[:, PORT["paused_since"]], 0)
    names = {"under_way": "live", "under_way_bytes": "live_bytes", "most_under_way": "most_packets"}
    same = (
        "sent", "received", "dropped", "sent_bytes", "received_bytes", "dropped_bytes", "acks", "again", "marked",
        "hops", "events",
    )  # fmt: skip
    counts = {name: int(meta[META[column]]) for name, column in (names | {each: each for each in same}).items()}
    return FabricResult(
        scenario=scenario,
        source=ready.flows.source,
        target=ready.flows.target,
        size_bytes=ready.flows.size,
        start_ns=ready.flows.start,
        finish_ns=flow[:, FLOW["finish"]].copy(),
        ideal_ns=ready.ideal,
        incast=ready.flows.incast,
        ports=ready.fabric.names,
        switch_port=port[:, PORT["switch"]] == 1,
        rate_bit_per_s=ready.fabric.rate.astype(float),
        sent_bytes=port[:, PORT["tx_bytes"]].copy(),
        queue_mean_bytes=area / elapsed,
        queue_most_bytes=port[:, PORT["most"]].copy(),
        drops=port[:, PORT["drops"]].copy(),
        pauses=port[:, PORT["pauses"]].copy(),
        paused_ns=port[:, PORT["paused_time"]] + since,
        histogram=state.histogram,
        histogram_bytes=_BIN,
        queue_bytes=state.series,
        acknowledgements=state.log[: meta[META["log"]]],
        arrived_bytes=state.bins,
        counts=counts,
        provenance=record,
    )
