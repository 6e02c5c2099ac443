"""MPCC, one acknowledgement at a time, by the closed form of its quadratic program.

W = clip(c − K(N) Q, 0, P_BD), with the fair window c = min(R_out/(R_in N), 1) P_BD and the P-step gain of the scalar
Riccati recursion. Source: the MPCC thesis, (3.4) to (3.7), Algorithm 1, (A.1).
"""

from __future__ import annotations

from math import inf
from typing import Literal, NamedTuple

import numpy as np

from netctrl.laws.window.law import MAX_HOPS, Acknowledged, Hops, Packet, Path, SchemeRecord, Telemetry, WindowLaw
from netctrl.laws.window.riccati import riccati_gain
from netctrl.model.io.fields import Duration, Size, duration, number, one_of, optional, read_fields, size, whole
from netctrl.model.law import MpccLaw

DELAY_FREE, DELAYED, FEED_FORWARD, HOLD = 0.0, 1.0, 2.0, 3.0
_VARIANTS = ("delay-free", "delayed", "feed-forward", "hold")


class Mpcc(SchemeRecord, frozen=True, kw_only=True, tag="mpcc"):
    """Model predictive congestion control by its closed form, W = clip(c − K(N) Q, 0, P_BD).

    Source: the MPCC thesis, chapters 3 and 4, Algorithm 1 and (3.7).
    """

    variant: Literal["delay-free", "delayed", "feed-forward", "hold"] = "delay-free"
    """delayed: on the queue that (3.7) predicts; feed-forward: K = 0, W = c(N); hold: delay-free, and while all queues
    are empty the window stays, as the thesis's section 3.4 says."""
    horizon: int = 5
    """P, prediction horizon [acknowledgement]."""
    queue_weight: float = 1.0
    """W_Q, weight of the queue."""
    window_weight: float = 1.0
    """W_R, weight of the window's deviation from what leaves."""
    bdp: Size | None = None
    """P_BD,max, the largest window [byte]; null: link rate times round trip of the flow's path."""
    rtt: Duration | None = None
    """D [s]; null: of the flow's path, without queues."""
    packet_size: Size | None = None
    """Of (A.1) [byte]; null: a full packet on the wire. The thesis has 1080."""
    window: Size | None = None
    """W of (A.1) [byte], by which the law steps; null: the flow's own at each acknowledgement. With it the gain is a
    table K[N]."""
    initial_window: Size | None = None
    """Window of a new flow [byte]; null: P_BD, the path's bandwidth-delay product."""

    def __post_init__(self) -> None:
        read_fields(
            self, horizon=whole(1, 1000, "a whole number of steps"), bdp=optional(size), packet_size=optional(size)
        )
        read_fields(self, queue_weight=number("a weight of at least 0, to 1e12", at_least=0.0, at_most=1e12))
        read_fields(self, window_weight=number("a weight above 0, to 1e12", above=0.0, at_most=1e12))
        read_fields(self, rtt=optional(duration), window=optional(size), initial_window=optional(size))
        read_fields(self, variant=one_of(*_VARIANTS))


class MpccParameters(NamedTuple):
    """Parameters of MPCC."""

    variant: float
    """0: delay-free; 1: on the queue that (3.7) predicts; 2: K = 0; 3: holds its window while queues are empty"""
    packet: float
    """Of (A.1) [byte]"""
    given_window: float
    """W of (A.1), with K by number of flows in a table; 0: the flow's own, without [byte]"""
    horizon: float
    """P [acknowledgement]"""
    queue_weight: float
    """W_Q"""
    window_weight: float
    """W_R"""


class MpccState(NamedTuple):
    """State of MPCC."""

    window: float
    """[byte]"""
    rate: float
    """[bit/s]"""
    fed: float
    """Windows that memory has been given"""


class Told(NamedTuple):
    """By the port that counts."""

    queue: float
    """[byte]"""
    flows: float
    share: float
    """R_out/(R_in N)"""


def bottleneck(path: Path, hops: Hops) -> Told:
    """The hop with the longest queue (Algorithm 1); where all are empty, that with the least fair share.

    The thesis leaves N = 1 there, so that each new round would start from P_BD.
    """
    queue = 0.0
    place = MAX_HOPS
    for h in range(MAX_HOPS):
        if float(h) < path.hops and hops[h].queue > queue:
            queue = hops[h].queue
            place = h
    if place < MAX_HOPS:
        flows = max(hops[place].flows, 1.0)
        return Told(queue, flows, path.rates[place] / (path.line_rate * flows))
    least = Told(0.0, 1.0, inf)
    for h in range(MAX_HOPS):
        if float(h) < path.hops:
            flows = max(hops[h].flows, 1.0)
            share = path.rates[h] / (path.line_rate * flows)
            if share < least.share:
                least = Told(0.0, flows, share)
    return least


def predicted_queue(queue: float, B: float, fair: float, memory: np.ndarray, fed: float, steps: float) -> float:
    """Q + B sum of (W(k - i) - c), oldest first, never below 0 on its way (3.7).

    `memory` is a ring of past windows [byte], of which `fed` came in; `steps` of them are under way.
    """
    length = len(memory)
    count = int(min(steps, fed, float(length)))
    place = (int(fed) - count) % length
    found = queue
    for _ in range(count):
        found = max(found + B * (memory[place] - fair), 0.0)
        place += 1
        if place == length:
            place = 0
    return found


def mpcc_step(
    state: MpccState, seen: Acknowledged, path: Path, p: MpccParameters, table: np.ndarray, memory: np.ndarray
) -> MpccState:
    """MPCC: W = clip(c - K(N) Q, 1 byte, P_BD), c = min(R_out/(R_in N), 1) P_BD, from an acknowledgement's telemetry.

    K from a table by the number of flows N, or by the scalar Riccati recursion at each step.

    Source: the MPCC thesis, (3.4) to (3.7), Algorithm 1, (A.1).
    """
    told = bottleneck(path, seen.hops)
    fair = min(told.share, 1.0) * path.bdp
    if p.variant == FEED_FORWARD:
        return MpccState(max(fair, 1.0), state.rate, state.fed)
    if p.variant == HOLD and told.queue == 0.0:
        return state
    queue = told.queue
    K = table[min(int(told.flows), len(table) - 1)] if p.given_window > 0.0 else 0.0
    if p.given_window == 0.0 or p.variant == DELAYED:
        # (A.1): in a round trip come W/packet acknowledgements. At less than a packet it would be none.
        step_window = p.given_window if p.given_window > 0.0 else max(state.window, p.packet)
        B = p.packet * path.base_rtt * told.flows * path.line_rate / (step_window * 8e9 * path.bdp)
        if p.given_window == 0.0:
            K = riccati_gain(B, int(p.horizon), p.queue_weight, p.window_weight)
        if p.variant == DELAYED:
            queue = predicted_queue(queue, B, fair, memory, state.fed, step_window / p.packet)
    # 1 byte: a sender with nothing under way may send one packet, else it would never hear again.
    window = min(max(fair - K * queue, 1.0), path.bdp)
    if p.variant == DELAYED:
        memory[int(state.fed) % len(memory)] = window
    return MpccState(window, state.rate, state.fed + 1.0)


def _path(scheme: Mpcc, path: Path) -> Path:
    """A record may have a P_BD and a D of its own."""
    if scheme.rtt is not None:
        path = path._replace(base_rtt=scheme.rtt * 1e9, bdp=path.line_rate * scheme.rtt / 8.0)
    return path if scheme.bdp is None else path._replace(bdp=scheme.bdp)


def _start(scheme: Mpcc, path: Path) -> float:
    return path.bdp if scheme.initial_window is None else scheme.initial_window


def _read(scheme: Mpcc, packet: Packet) -> MpccParameters:
    return MpccParameters(
        float(_VARIANTS.index(scheme.variant)),
        scheme.packet_size or packet.wire,
        scheme.window or 0.0,
        float(scheme.horizon),
        scheme.queue_weight,
        scheme.window_weight,
    )


def _table(scheme: Mpcc, path: Path, wire: float, most: int) -> np.ndarray:
    """K of 0 to `most` flows, with the scheme's `window` as W of (A.1); none without.

    B = Δt N R_in/(8 P_BD) with Δt = packet · D/W, (3.4) and (A.1).
    """
    if scheme.window is None:
        return np.zeros(2)
    from netctrl.laws.window.explicit import riccati_gains

    each = (scheme.packet_size or wire) * path.base_rtt
    B = each * np.arange(most + 1) * path.line_rate / (scheme.window * 8e9 * path.bdp)
    return riccati_gains(B, scheme.horizon, scheme.queue_weight, scheme.window_weight)


def _memory(scheme: Mpcc, path: Path, wire: float) -> int:
    if scheme.variant != "delayed":
        return 1
    return max(1, int(max(path.bdp, scheme.window or 0.0) / (scheme.packet_size or wire)))


MPCC = WindowLaw(
    Mpcc,
    MpccParameters,
    MpccState,
    _read,
    mpcc_step,
    start=_start,
    telemetry=Telemetry.FLOWS,
    path=_path,
    table=_table,
    memory=_memory,
)


def mpcc_scheme(law: MpccLaw) -> Mpcc:
    """Law of a Design as a scheme for senders: its windows, weights, and certified interval."""
    return Mpcc(
        variant="delayed" if law.delayed else "delay-free",
        horizon=law.horizon,
        queue_weight=law.queue_weight,
        window_weight=law.window_weight,
        bdp=law.bdp_bytes,
        rtt=law.rtt_s,
        packet_size=law.packet_size_bytes,
        window=law.packet_size_bytes * law.rtt_s / law.interval_s,
    )
