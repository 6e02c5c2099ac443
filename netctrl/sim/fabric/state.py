"""State of a data centre's packet kernel: tables of whole numbers and their columns.

Times are nanoseconds, sizes bytes, rates bit/s. Packets, slots of active flows and entries of flow counters stand in
pools with free lists: memory follows what is under way, not what has passed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.errors import InvalidValue
from netctrl.laws.window.law import MAX_HOPS as SWITCH_HOPS
from netctrl.laws.window.law import Hop
from netctrl.sim.heap import PLACE_BITS
from netctrl.sim.tables import chained, columns, doubled

__all__ = ["ENTRY", "FLOW", "META", "PACKET", "PORT", "SLOT", "FabricState", "fabric_state", "grown"]

MAX_HOPS = 1 + SWITCH_HOPS
"""Ports on a path, the sender's own included."""
HOP_COLUMNS = len(Hop._fields)
LOG_COLUMNS = 9


PORT = columns(
    "head tail bytes count pipe_head pipe_tail busy scheduled paused ingress told delay switch to_host buffer "
    "tx_bytes tx_packets drops pauses paused_since paused_time area changed most ready_head ready_tail "
    "seen_head seen_tail flows rate mark_low mark_high tx_full tx_ack watched"
)
PACKET = columns("next slot size kind hop seq payload sent mark notice ingress arrives hops")
HOPS_AT = len(PACKET)
"""First column of a packet's telemetry; of each hop: queue [byte], flows, bytes sent, time [ns]."""
SLOT = columns(
    "next flow size next_byte una expected farthest ready wake pace nic done packets listed notified progress nacked "
    "path watch timer timer_next"
)
ROUTE_AT = len(SLOT)
"""First column of a slot's ports: there, and from ROUTE_AT + MAX_HOPS back."""
FLOW = columns("start size finish acked nic path watch")
ENTRY = columns("time before after listed")
META = columns(
    "now heap packet_free slot_free packets_left slots_left next_flow sample draw events hops sent received dropped "
    "sent_bytes received_bytes dropped_bytes live live_bytes acks active log completed again timer_head timer_tail "
    "marked most_packets most_slots"
)


class FabricState(NamedTuple):
    """Tables of a run; P ports, M packets, S slots, F flows, C kinds of path."""

    port: np.ndarray
    """(P, ...) int64, `PORT`."""
    packet: np.ndarray
    """(M, ...) int64, `PACKET` and telemetry."""
    slot: np.ndarray
    """(S, ...) int64, `SLOT` and ports of both ways."""
    entry: np.ndarray
    """(S · MAX_HOPS, ...) int64, `ENTRY`: when a port last saw a flow."""
    law: np.ndarray
    """(S, ...) float64: each flow's congestion control."""
    memory: np.ndarray
    """(S, H) float64: what a law keeps besides."""
    flow: np.ndarray
    """(F, ...) int64, `FLOW`."""
    route: np.ndarray
    """(F, 2, MAX_HOPS) int32: ports there and back, −1 after the last."""
    heap: np.ndarray
    """int64: time, kind and place of events to come."""
    meta: np.ndarray
    """int64, `META`."""
    draws: np.ndarray
    """float64 from 0 to 1, for marking by chance."""
    log: np.ndarray
    """(L, LOG_COLUMNS) float64: acknowledgements of watched flows."""
    series: np.ndarray
    """(watched ports, T) int64: sampled queues."""
    bins: np.ndarray
    """(watched flows, B) int64: bytes that arrived."""
    histogram: np.ndarray
    """int64: samples of switch queues by size."""


def fabric_state(
    port: np.ndarray,
    flow: np.ndarray,
    route: np.ndarray,
    *,
    law_width: int,
    memory: int,
    watched: tuple[int, int],
    samples: int,
    bins: int,
    log: int,
    histogram: int,
    packets: int = 4096,
    slots: int = 256,
) -> FabricState:
    """Empty pools for given ports and flows; `watched` counts ports and flows."""
    meta = np.zeros(len(META), dtype=np.int64)
    table = np.zeros((packets, HOPS_AT + SWITCH_HOPS * HOP_COLUMNS), dtype=np.int64)
    active = np.zeros((slots, ROUTE_AT + 2 * MAX_HOPS), dtype=np.int64)
    chained(table, PACKET["next"], 0)
    chained(active, SLOT["next"], 0)
    meta[META["packets_left"]], meta[META["slots_left"]] = packets, slots
    meta[[META["timer_head"], META["timer_tail"]]] = -1
    return FabricState(
        port=port,
        packet=table,
        slot=active,
        entry=np.zeros((slots * MAX_HOPS, len(ENTRY)), dtype=np.int64),
        law=np.zeros((slots, law_width)),
        memory=np.zeros((slots, memory)),
        flow=flow,
        route=route,
        heap=np.zeros(64 + 4 * len(port) + slots, dtype=np.int64),
        meta=meta,
        draws=np.zeros(0),
        log=np.zeros((log, LOG_COLUMNS)),
        series=np.zeros((watched[0], samples), dtype=np.int64),
        bins=np.zeros((watched[1], bins), dtype=np.int64),
        histogram=np.zeros(histogram, dtype=np.int64),
    )


def grown(state: FabricState) -> FabricState:
    """The same state with twice the room in each pool that is short of it.

    Raises
    ------
    InvalidValue
        More flows are active than an event can name.
    """
    meta = state.meta
    if meta[META["packets_left"]] < 8:
        size = len(state.packet)
        packet = doubled(state.packet)
        chained(packet, PACKET["next"], size)
        packet[-1, PACKET["next"]] = meta[META["packet_free"]] if meta[META["packets_left"]] else -1
        meta[META["packet_free"]] = size
        meta[META["packets_left"]] += size
        state = state._replace(packet=packet)
    if meta[META["slots_left"]] < 2:
        size = len(state.slot)
        if 2 * size > 1 << PLACE_BITS:
            takes = f"fewer at a time: at most {1 << PLACE_BITS} may be active, or still counted by ports"
            raise InvalidValue("flows", size, takes)
        slot = doubled(state.slot)
        chained(slot, SLOT["next"], size)
        slot[-1, SLOT["next"]] = meta[META["slot_free"]] if meta[META["slots_left"]] else -1
        meta[META["slot_free"]] = size
        meta[META["slots_left"]] += size
        tables = {name: doubled(getattr(state, name)) for name in ("entry", "law", "memory")}
        state = state._replace(slot=slot, **tables)
    if meta[META["heap"]] + 16 > len(state.heap):
        state = state._replace(heap=doubled(state.heap))
    return state
