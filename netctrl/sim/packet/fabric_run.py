"""What the packet engine's tables say at the end of a data centre's run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from netctrl.model.io.provenance import Provenance
from netctrl.scenario.fabric.plan import FabricPlan
from netctrl.scenario.fabric.result import fabric_result
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.sim.packet.hosts import HOST, PORT, TRANSFER
from netctrl.sim.packet.state import FLOW, LINK, META, PACKET, SIZE_MASK, SUBQUEUE, PacketState


def centre_result(scenario: Scenario, plan: FabricPlan, state: PacketState, record: Provenance) -> Result:
    """Of a run whose plan is `plan`."""
    link, port, transfers = state.link, state.hosts.port, state.hosts.transfers
    since = np.where(port[:, PORT["paused"]] == 1, plan.end - port[:, PORT["paused_since"]], 0)
    waiting, area = _waiting(state, plan.end)
    return fabric_result(
        scenario,
        "packet",
        record,
        ports=plan.ports.names,
        links={
            **{name: link[:, LINK[name]] for name in ("arrived", "departed", "lost", "marked")},
            "capacity": plan.ports.rate,
            "backlog": area / max(plan.end, 1),
            "backlog_most": link[:, LINK["most"]],
            "drops": link[:, LINK["packets"]] - link[:, LINK["sent"]] - waiting,
            "pauses": port[:, PORT["pauses"]],
            "paused": (port[:, PORT["paused_ns"]] + since) / 1e9,
        },
        flows={"payload": _payload(scenario, plan, state)},
        transfers=plan.flows,
        ideal=plan.ideal,
        finish=transfers.transfer[:, TRANSFER["finish"]],
        backlog=transfers.series,
        histogram=transfers.histogram,
        log=transfers.log[: state.meta[META["log"]]],
        received=transfers.bins,
        counts=_counts(state, plan.senders.ack),
    )


def _payload(scenario: Scenario, plan: FabricPlan, state: PacketState) -> np.ndarray:
    """Bytes that came of each group: whole transfers, and what is there of those that go on."""
    came = np.where(state.hosts.transfers.transfer[:, TRANSFER["finish"]] >= 0, plan.flows.size, 0)
    rows = state.hosts.host[state.hosts.host[:, HOST["expected"]] > 0]
    # A row that is free again is that of a transfer that is over.
    came[rows[:, HOST["transfer"]]] = np.maximum(came[rows[:, HOST["transfer"]]], rows[:, HOST["expected"]])
    return np.bincount(plan.flows.flow, came, len(scenario.flows))


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
