"""What the packet engine remembers of data-centre senders, and of what links tell them: columns of further tables.

Units as in `netctrl.sim.packet.state`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.laws.window.law import MAX_HOPS, Hop
from netctrl.sim.tables import columns

HOST = columns(
    "port law kind telemetry payload header ack notification timeout line "
    "next una expected farthest nacked notified progress flow ready after transfer watch "
    "timer_after"
)
"""What stays, then what changes. `port` is the sender's own link, `kind` a row of paths; `notification` and `timeout`
are intervals; a flow is at byte `next`, its receiver at `expected`. A flow of a host whose flows take turns is `ready`
while it waits for its turn, `after` which comes another; `transfer` is the row of those that it carries, or -1, `watch`
its place among the watched ones, or -1. In a free row `after` is the next free one. Timers of transfers run equally
long: one event is for the first, `timer_after` is the row of the next, plus one."""
PORT = columns(
    "telemetry sent flows seen_head seen_tail timeout counts pause resume waiting told paused flow "
    "turns ready_head ready_tail pauses paused_since paused_ns sampled watched"
)
"""Of a link: what it writes into packets (`netctrl.laws.window.law.Telemetry`), bytes sent, flows that it counts until
they have been away for `timeout`; whether it `counts` what waits in it by the link that it came from. Of a link with
priority flow control: its thresholds, what waits of it in the node where it ends, whether that has `told` it to pause,
and whether it is `paused`. `flow` is the one whose own port it is, or -1. Of a host's port: whether its flows take
`turns`, and the list of those that may send. How often and how long it was paused. Whether its queue is `sampled`, and
its place among the watched ones, or -1."""
COUNTER = columns("time before after listed")
"""When a link saw a flow last, and its neighbours in the link's list, which is in order of time."""
TELEMETRY_OF = (MAX_HOPS, len(Hop._fields))
"""Shape of a packet's telemetry."""
TRANSFER = columns("size port kind finish watch")
"""What a host sends once: payload, its port, a row of paths, when its last byte came, or -1, and its place among the
watched ones, or -1. It has a row of flows only while it goes on."""
LOG_COLUMNS = 9


class TransferState(NamedTuple):
    """T transfers of a run in order of their start, and what is seen of them: V of them and U links are watched."""

    transfer: np.ndarray
    """(T, ...) int64, `TRANSFER`."""
    way: np.ndarray
    """(T, 2, W) int32: links there and back, -1 behind the last."""
    histogram: np.ndarray
    """int64: samples of sampled links by backlog, in steps of META's `width`."""
    series: np.ndarray
    """(U, N) int64: samples of the watched links' backlogs [byte]."""
    bins: np.ndarray
    """(V, B) int64: bytes that came of the watched transfers in each of META's `bin`."""
    log: np.ndarray
    """(A, LOG_COLUMNS) float64 of acknowledgements of the watched transfers."""


def no_transfers() -> TransferState:
    """Where all flows have rows of their own."""
    whole = np.zeros((0, 0), dtype=np.int64)
    return TransferState(
        np.zeros((0, len(TRANSFER)), dtype=np.int64),
        np.zeros((0, 2, 0), dtype=np.int32),
        np.zeros(0, dtype=np.int64),
        whole,
        whole,
        np.zeros((0, LOG_COLUMNS)),
    )


class HostState(NamedTuple):
    """Tables of a run; B flows of such senders, C kinds of path, L links, F flows, M packets."""

    host: np.ndarray
    """(B, ...) int64, `HOST`."""
    port: np.ndarray
    """(L, ...) int64, `PORT`."""
    law: np.ndarray
    """(B, ...) states of the flows' laws: window [byte], rate [bit/s], and their own."""
    memory: np.ndarray
    """(B, H) what laws keep besides."""
    parameters: np.ndarray
    """(C, ...) of laws."""
    path: np.ndarray
    """(C, ...) rows of `netctrl.laws.window.law.Path`."""
    table: np.ndarray
    """(C, N) what laws look up."""
    start: np.ndarray
    """(C,) windows of a new flow [byte]."""
    crossed: np.ndarray
    """(C, MAX_HOPS) int64: links of a path, -1 behind the last."""
    counter: np.ndarray
    """(F W, ...) int64, `COUNTER`: of flow f at the h-th link of its way in row f W + h."""
    telemetry: np.ndarray
    """(M, MAX_HOPS, 4) int64 of packets; of one where no law reads it."""
    transfers: TransferState
