"""What the packet engine remembers: tables of whole numbers, and what stands in their columns.

Times are nanoseconds, sizes bytes, rates bit/s, sequence numbers segments. Packets stand in a pool with a free list, so
that memory follows what is under way. What a sender and a receiver remember of each segment stands in one ring a flow,
which grows with the flow's window.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = ["FLOW", "INLINED", "LINK", "META", "PACKET", "SESSION", "PacketState", "chained", "columns", "grown"]

INLINED: dict[str, Any] = {"error_model": "numpy", "nogil": True, "_nrt": False, "forceinline": True}
"""How parts of the kernel are compiled: into it, and without reference counts, as nothing is allocated there."""


def columns(text: str) -> dict[str, int]:
    """Names, separated by blanks, as columns from 0."""
    return {name: place for place, name in enumerate(text.split())}


LINK = columns(
    "head tail wait wait_tail busy last bytes buffer rate delay served scheduled law decides epoch acted enqueued "
    "full ack tx_full tx_ack arrived departed lost marked packets chosen waited_ns started sent"
)
PACKET = columns("next flow seq hop info time start back")
"""`info` is size, kind, marks and generation (below); `back` is when data was sent, or up to where an ACK acknowledges;
`start` when its transmission begins, or on links that serve by events when it came."""
FLOW = columns(
    "state kind group route ack_route line_head line_tail line_delay line_last "
    "size last_bytes una next pipe recover recovery lost_to retry lost high1 high2 high3 "
    "timer armed backoff srtt rttvar rto expected ahead ring mask ecn echo reduced law generation session "
    "start stop access asked bytes sent again timeouts cuts received gap spacing"
)
SESSION = columns("group first objects missing stop")
META = columns("now base heap free left agenda sample events hops short live most responses sent received dropped acks")


class PacketState(NamedTuple):
    """Tables of a run; L links, F flows, M packets, S Web sessions, R segments in all rings."""

    link: np.ndarray
    """(L, ...) int64, `LINK`."""
    flow: np.ndarray
    """(F, ...) int64, `FLOW`."""
    packet: np.ndarray
    """(M, ...) int64, `PACKET`."""
    heap: np.ndarray
    """Events."""
    meta: np.ndarray
    """int64, `META`."""
    route: np.ndarray
    """Links of all paths; -1 ends one."""
    window: np.ndarray
    """(F, ...) states of senders' laws."""
    queue: np.ndarray
    """(L, ...) states of queues' laws."""
    parameters: np.ndarray
    """(L, ...) of queues' laws."""
    random: np.ndarray
    """(L + F + S,) uint64: states of generators."""
    sent: np.ndarray
    """(R,) int64 when a segment was sent last [ns]."""
    mark: np.ndarray
    """(R,) uint8 what a sender knows of a segment."""
    got: np.ndarray
    """(R,) int64 what a receiver has out of order: 1 + the first segment of its run; 0: nothing."""
    session: np.ndarray
    """(S, ...) int64, `SESSION`."""
    web: np.ndarray
    """(G, 4) of groups of Web sessions: scale and shape of objects, their greatest size [byte], think time [s]."""
    agenda: np.ndarray
    """(A, 4) int64 what happens when: time, kind, which, value."""
    series: np.ndarray
    """(6, L, T) backlog, and arrived, departed, lost, marked so far [byte]; probability, or packets chosen so far."""
    packets: np.ndarray
    """(L, T) packets that arrived so far."""
    carried: np.ndarray
    """(G, T) payload received so far [byte]."""
    group: np.ndarray
    """(G,) int64 the same, now."""
    response: np.ndarray
    """(N, 4) int64 of objects: group, when asked for [ns], size [byte], time to the last byte [ns]."""


def chained(table: np.ndarray, column: int, first: int) -> None:
    """Rows from `first` on as a free list."""
    table[first:, column] = np.arange(first + 1, len(table) + 1)
    table[-1, column] = -1


def grown(state: PacketState) -> tuple[PacketState, int]:
    """The same state with more room where it is short, and the flow that waits for it, or -1."""
    meta = state.meta
    flow = int(meta[META["short"]]) - 1
    meta[META["short"]] = 0
    if meta[META["left"]] < 64:
        size = len(state.packet)
        packet = np.vstack([state.packet, np.zeros_like(state.packet)])
        chained(packet, PACKET["next"], size)
        packet[-1, PACKET["next"]] = meta[META["free"]] if meta[META["left"]] else -1
        meta[META["free"]] = size
        meta[META["left"]] += size
        state = state._replace(packet=packet)
    if meta[META["heap"]] + 64 > len(state.heap):
        state = state._replace(heap=np.concatenate([state.heap, np.zeros_like(state.heap)]))
    if meta[META["responses"]] + 1 >= len(state.response):
        state = state._replace(response=np.vstack([state.response, np.zeros_like(state.response)]))
    if flow >= 0 and len(state.flow):
        row = state.flow[flow]
        if row[FLOW["next"]] - row[FLOW["una"]] > row[FLOW["mask"]]:
            state = _longer_ring(state, flow)
    return state, flow


def _longer_ring(state: PacketState, flow: int) -> PacketState:
    """Twice the ring of a flow, behind all rings; the old one is left empty. Tables double, so that copies stay few."""
    row, tables = state.flow[flow], ("sent", "mark", "got")
    old, size = int(row[FLOW["ring"]]), int(row[FLOW["mask"]]) + 1
    at = int((state.flow[:, FLOW["ring"]] + state.flow[:, FLOW["mask"]]).max()) + 1
    if at + 2 * size > len(state.sent):
        room = max(len(state.sent), 2 * size)
        longer = {name: np.pad(getattr(state, name), (0, room)) for name in tables}
        state = state._replace(**longer)
    segments = np.arange(row[FLOW["una"]], row[FLOW["una"]] + size)
    for name in tables:
        table = getattr(state, name)
        table[at + (segments & (2 * size - 1))] = table[old + (segments & (size - 1))]
    row[FLOW["ring"]], row[FLOW["mask"]] = at, 2 * size - 1
    return state
