"""Run a data centre packet by packet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from netctrl.core.errors import checked_function
from netctrl.model.io.provenance import Provenance, provenance
from netctrl.scenario.fabric.result import fabric_result
from netctrl.scenario.fabric.topology import TOPOLOGIES
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario, checked_network
from netctrl.sim.fabric.problem import FabricProblem, fabric_problem
from netctrl.sim.packet.hosts import HOST, PORT, TRANSFER
from netctrl.sim.packet.run import run_packets
from netctrl.sim.packet.state import FLOW, LINK, META, PACKET, SIZE_MASK, SUBQUEUE, PacketState

Progress = Callable[[float], None]

_NO_WINDOW = 0.0  # TCP's first


def simulate_fabric(
    scenario: Scenario,
    gains: np.ndarray | None = None,
    *,
    progress: Progress | None = None,
    argv: Iterable[str] = (),
    inputs: Iterable[Path] = (),
) -> Result:
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
    state = run_packets(ready.packets, _NO_WINDOW, progress)
    record = provenance(argv=argv, seed=scenario.seed, inputs=inputs, libraries=("numpy", "numba"))
    return _result(scenario, ready, state, record)


def _result(scenario: Scenario, ready: FabricProblem, state: PacketState, record: Provenance) -> Result:
    link, port, transfers = state.link, state.hosts.port, state.hosts.transfers
    since = np.where(port[:, PORT["paused"]] == 1, ready.plan.end - port[:, PORT["paused_since"]], 0)
    waiting, area = _waiting(state, ready.plan.end)
    return fabric_result(
        scenario,
        "packet",
        record,
        ports=ready.plan.ports.names,
        links={
            **{name: link[:, LINK[name]] for name in ("arrived", "departed", "lost", "marked")},
            "capacity": ready.plan.ports.rate,
            "backlog": area / max(ready.plan.end, 1),
            "backlog_most": link[:, LINK["most"]],
            "drops": link[:, LINK["packets"]] - link[:, LINK["sent"]] - waiting,
            "pauses": port[:, PORT["pauses"]],
            "paused": (port[:, PORT["paused_ns"]] + since) / 1e9,
        },
        flows={"payload": _payload(scenario, ready, state)},
        transfers=ready.plan.flows,
        ideal=ready.plan.ideal,
        finish=transfers.transfer[:, TRANSFER["finish"]],
        backlog=transfers.series,
        histogram=transfers.histogram,
        log=transfers.log[: state.meta[META["log"]]],
        received=transfers.bins,
        counts=_counts(state, ready.plan.senders.ack),
    )


def _payload(scenario: Scenario, ready: FabricProblem, state: PacketState) -> np.ndarray:
    """Bytes that came of each group: whole transfers, and what is there of those that go on."""
    came = np.where(state.hosts.transfers.transfer[:, TRANSFER["finish"]] >= 0, ready.plan.flows.size, 0)
    rows = state.hosts.host[state.hosts.host[:, HOST["expected"]] > 0]
    # A row that is free again is that of a transfer that is over.
    came[rows[:, HOST["transfer"]]] = np.maximum(came[rows[:, HOST["transfer"]]], rows[:, HOST["expected"]])
    return np.bincount(ready.plan.flows.flow, came, len(scenario.flows))


def _waiting(state: PacketState, end: int) -> tuple[np.ndarray, np.ndarray]:
    """Packets that still wait at each link, and bytes times nanoseconds of all that waited until the end."""
    packet, count, area = state.packet, np.zeros(len(state.link), dtype=np.int64), state.link[:, LINK["area"]].copy()
    for place, q in enumerate(state.link[:, LINK["first"]].tolist()):
        for k in _chain(packet, int(state.subqueue[q, SUBQUEUE["head"]])):
            count[place] += 1
            area[place] += int(packet[k, PACKET["info"]] & SIZE_MASK) * (end - int(packet[k, PACKET["start"]]))
    return count, area


def _chain(packet: np.ndarray, first: int) -> Iterator[int]:
    """Packets of a list."""
    while first >= 0:
        yield first
        first = int(packet[first, PACKET["next"]])


def _counts(state: PacketState, ack: int) -> dict[str, int]:
    """Packets and bytes; those under way are what isn't free, the others are counted where they are sent and come."""
    meta = {name: int(state.meta[place]) for name, place in META.items()}
    free = list(_chain(state.packet, meta["free"]))[: meta["left"]]
    sizes = state.packet[:, PACKET["info"]] & SIZE_MASK
    answered = meta["received"]  # each packet that came was answered by one
    return {
        "sent": meta["sent"] + answered,
        "received": meta["received"] + meta["acks"],
        "dropped": meta["dropped"],
        "sent_bytes": meta["offered"] + answered * ack,
        "received_bytes": meta["delivered"] + meta["acks"] * ack,
        "dropped_bytes": int(state.link[:, LINK["lost"]].sum()),
        "under_way": len(sizes) - len(free),
        "under_way_bytes": int(sizes.sum() - sizes[free].sum()),
        "most_under_way": meta["most"],
        "acks": meta["acks"],
        "again": int(state.flow[:, FLOW["again"]].sum()),
        "marked": int(state.link[:, LINK["chosen"]].sum()),
        "hops": meta["hops"],
        "events": meta["events"],
    }
