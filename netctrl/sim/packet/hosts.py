"""What the packet engine remembers of data-centre senders, and of what links tell them: columns of further tables.

Units as in `netctrl.sim.packet.state`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.laws.window.law import MAX_HOPS, Hop
from netctrl.sim.tables import columns

__all__ = ["COUNTER", "HOST", "PORT", "TELEMETRY_OF", "HostState"]

HOST = columns(
    "port law kind telemetry payload header ack notification timeout line "
    "next una expected farthest nacked notified progress"
)
"""What stays, then what changes. `port` is the sender's own link, `kind` a row of paths; `notification` and `timeout`
are intervals; a flow is at byte `next`, its receiver at `expected`."""
PORT = columns("telemetry sent flows seen_head seen_tail timeout counts pause resume waiting told paused flow")
"""Of a link: what it writes into packets (`netctrl.laws.window.law.Telemetry`), bytes sent, flows that it counts until
they have been away for `timeout`; whether it `counts` what waits in it by the link that it came from. Of a link with
priority flow control: its thresholds, what waits of it in the node where it ends, whether that has `told` it to pause,
and whether it is `paused`. `flow` is the one whose own port it is, or -1."""
COUNTER = columns("time before after listed")
"""When a link saw a flow last, and its neighbours in the link's list, which is in order of time."""
TELEMETRY_OF = (MAX_HOPS, len(Hop._fields))
"""Shape of a packet's telemetry."""


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
