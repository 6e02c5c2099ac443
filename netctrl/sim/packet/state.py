"""What the packet engine remembers: tables of whole numbers, and what stands in their columns.

Times are nanoseconds, sizes bytes, rates bit/s, sequence numbers segments. Packets stand in a pool with a free list, so
that memory follows what is under way. What a sender and a receiver remember of each segment stands in one ring a flow,
which grows with the flow's window.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.core.jit import INLINED, njit
from netctrl.sim.heap import PLACE_BITS, event, push
from netctrl.sim.packet.hosts import HOST, HostState
from netctrl.sim.tables import chained, columns, doubled

LINK = columns(
    "head tail wait busy last bytes buffer rate delay served scheduled law decides epoch acted enqueued "
    "full ack tx_full tx_ack arrived departed lost marked packets chosen waited_ns started sent "
    "discipline first queues salt new new_tail old old_tail loss jitter trace step steps cursor turn left slot header "
    "pace gate area most round bunch run police"
)
"""`loss` is a share, or with a `run` that of going bad, `run` that of going good again, negative while the link is bad
and loses all. `jitter` is in half nanoseconds, odd where it is normal and a standard deviation, negative where packets
overtake each other. `police`: 1 + first row of a policer among the traces, or 0."""
SUBQUEUE = columns("head tail bytes deficit quantum next listed")
"""`next` in the list of queues that have a turn, while `listed`."""
PACKET = columns("next flow seq hop info time start back")
"""`info` is size, kind, marks and generation (below); `back` is when data was sent, or up to where an ACK acknowledges;
`start` when its transmission begins, or on links that serve by events when it came."""
FLOW = columns(
    "state kind group route ack_route line_head line_tail line_delay line_last "
    "una next pipe due recover recovery lost_to retry lost rack_time rack_seq rack_rtt reordered persist heard probe "
    "marked undo undo_at backoff srtt rttvar expected ahead stamp echo held quick came limited used filled out edge "
    "reduced farthest resent_head resent_tail steps probe_again prior reduced_delivered sent_before room undo_left "
    "undo_window undo_threshold rto_at timer armed rto size last_bytes write most pacer exact ring mask ecn law "
    "generation session start stop access asked bytes sent again timeouts cuts received gap variation paced pace carry "
    "woken priority left rtt_sum rtt_count dropped delays burst within trip rates interval until full pausing fixed "
    "told opens gate under_way listed delays_acks answers planned offload piece slow_start"
)
"""From `una` to `reduced` 0 as a connection begins. `write`: segments of each write of a program, or 0; `most`: what
the receiver takes beyond `una` [segment]; `limited`: the segment up to which data were short; `used`: what was in
flight at most since the window was `filled` last [ns]; `out`: what was after a program wrote last, NEVER where that
filled it. Of receivers that delay acknowledgements: 1 + the one that is `held`, until it `answers` at last [ns], for
which an event may be `planned`; how many are sent at once (`quick`) and when data `came` last [ns]. `piece`: segments
that leave at once, with `offload`. Of messages: packets `under_way`, and links by which it is `listed` as one of their
flows."""
AVERAGE_DELAY, AVERAGE_JITTER, HELD, TOLD, FIXED = range(5)
"""Columns of `regulated`: of datagrams moving averages of delays and of their differences [ns]; of gates what is left
of a pause over its mean, the rate that a control has set, and the one at which a change holds it [bit/s]."""
SESSION = columns("group first objects missing stop")
META = columns(
    "now base heap free left agenda sample events hops short live most responses sent received dropped acks "
    "offered delivered rings free_row rows_left log bin width last_timer counters min_rto at_once"
)
"""Free rows for transfers; lengths of their log, of a bin of their bytes [ns], and of one of the backlogs [byte]; the
row whose timer ends last, plus one. Of how many links a flow has counters. Least time by which the retransmission
timeout of TCP exceeds the round trip [ns]. How many writes may come whole at once."""
WAY = columns("hop share behind more")
"""Of a choice: where it leads, its share of the bytes, what it is behind it, and whether another follows."""

ARRIVES, FREE, EPOCH, WAKE, TIMER, THINK, PAUSE, RESUME = range(8)
"""Kinds of event, in the order in which they come at one time."""

DATA, ACK, SYN, SYNACK, DATAGRAM, MESSAGE, MESSAGE_ACK = range(7)
"""Kinds of packet; those of messages are of data-centre senders."""
SIZE_MASK = (1 << 20) - 1
KIND_SHIFT, KIND_MASK = 20, 7
CAPABLE, MARKED, REDUCED, AGAIN = 1 << 23, 1 << 24, 1 << 25, 1 << 26
"""ECN-capable; congestion experienced, or on an ACK its echo; the sender has cut its window; sent before."""
GENERATION_SHIFT, GENERATION_MASK = 27, 0xFF
RUN_SHIFT = 35
"""Of an ACK: so many segments before the one that it answers came without a gap."""
ECT0, ECT1 = CAPABLE, CAPABLE | 1 << 35
"""Of what isn't an ACK: it can be marked; the same, of a scalable sender."""
NO_ECN, CLASSIC_ECN, SCALABLE_ECN = range(3)
"""Of a flow, its column `ecn`: its packets have none of these, ECT0 or ECT1."""
_ANSWERED = -2
STEPS = 1 << 36
"""Of a packet in an L queue: the step applies to it."""
NOTIFIED, MISSING = 1 << 25, 1 << 26
"""Of the acknowledgement of a message's packet: it carries a notification of marks (CNP); a packet is missing."""
DUPLICATE = 1 << 25
"""Of an ACK: what it answers had come before (DSACK); it has AGAIN where what it answers was sent again."""


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
    """Links of all paths; -1 ends one, -2 that of an acknowledgement, -3 - w goes one of the ways from row w on."""
    ways: np.ndarray
    """(W, ...) `WAY`."""
    window: np.ndarray
    """(F, ...) states of windows' laws."""
    allowed: np.ndarray
    """(P, 2) of rate senders: rate, and what may be in flight."""
    rate: np.ndarray
    """(P, ...) states of their laws."""
    settings: np.ndarray
    """(P, ...) settings of their laws."""
    queue: np.ndarray
    """(L, ...) states of queues' laws."""
    subqueue: np.ndarray
    """(Q, ...) int64, `SUBQUEUE`: queues of links that are served by events."""
    heads: np.ndarray
    """(Q, ...) states of laws that choose at their heads."""
    trace: np.ndarray
    """(N, 2) int64 of links' traces: when a step ends, or a packet can go [ns]; the rate until then [bit/s]. Two rows
    of a policer: rate [bit/s] and time in which its bucket fills [ns], and when it is full."""
    parameters: np.ndarray
    """(L, ...) of queues' laws."""
    random: np.ndarray
    """(L + F + S,) uint64: states of generators."""
    sent: np.ndarray
    """(R,) int64 when a segment was sent last [ns]."""
    mark: np.ndarray
    """(R,) uint8 what a sender knows of a segment."""
    after: np.ndarray
    """(R,) int64 the segment that was sent again next after this one."""
    got: np.ndarray
    """(R,) int64 what a receiver has out of order: 1 + the first segment of its run; 0: nothing."""
    session: np.ndarray
    """(S, ...) int64, `SESSION`."""
    web: np.ndarray
    """(G, 4) of groups of Web sessions: scale and shape of objects, their greatest size [byte], think time [s]."""
    rates: np.ndarray
    """(N,) of groups of demands, flow by flow and interval by interval, and then of changes [bit/s]."""
    agenda: np.ndarray
    """(A, 4) int64 what happens when: time, kind, which, value."""
    series: np.ndarray
    """(8, N, T) of the first N links, which are the scenario's: backlog, and arrived, departed, lost, marked so far
    [byte]; probability, or packets chosen so far; time in the queue so far [ns], and of how many packets."""
    packets: np.ndarray
    """(N, T) packets that arrived at them so far."""
    carried: np.ndarray
    """(G, T) payload received so far [byte]."""
    group: np.ndarray
    """(G,) int64 the same, now."""
    trips: np.ndarray
    """(3, G, T) so far: sum of round trips that were measured, of datagrams of their ways [ns], their number, and of
    datagrams the sum of differences from the way of the one before [ns]."""
    trip: np.ndarray
    """(3, G) int64 the same, now."""
    windows: np.ndarray
    """(2, G, T) of open connections: mean window, and mean of what is in flight [byte]; NaN where none is open."""
    response: np.ndarray
    """(N, 4) int64 of objects: group, when asked for [ns], size [byte], time to the last byte [ns]."""
    regulated: np.ndarray
    """(F, 5) of datagrams and gates: `AVERAGE_DELAY` and so on."""
    hosts: HostState
    """Of data-centre senders."""


_GOLDEN, _FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@njit(**INLINED)
def scrambled(z: np.uint64) -> np.uint64:
    """64 bits, each of which depends on all of z's. Source: Steele, Lea, Flood 2014 (SplitMix64)."""
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


NEVER = 1 << 62
"""A time after all others [ns]."""
SHARE = 2.0**53
"""Of 1, in a column that has a share as a whole number: as fine as `chance`."""


@njit(**INLINED)
def chance(random: np.ndarray, place: int) -> float:
    """The next number of a generator, evenly from [0, 1)."""
    random[place] += _GOLDEN
    return float(scrambled(random[place]) >> np.uint64(11)) * 2.0**-53


_NEXT, _FREE, _LEFT, _LIVE, _BASE, _HEAP = (
    PACKET["next"],
    *(META[name] for name in ("free", "left", "live", "base", "heap")),
)


@njit(**INLINED)
def release(net: PacketState, k: int) -> None:
    """A packet back to the pool."""
    net.packet[k, _NEXT] = net.meta[_FREE]
    net.meta[_FREE] = k
    net.meta[_LEFT] += 1
    net.meta[_LIVE] -= 1


@njit(**INLINED)
def codepoint(ecn: int) -> int:
    """Bits of packets of a flow, by its column `ecn`: 0, ECT0 or ECT1."""
    if ecn == NO_ECN:
        return 0
    return ECT0 if ecn == CLASSIC_ECN else ECT1


@njit(**INLINED)
def is_answer(kind: int) -> bool:
    """Whether packets of a kind go back to the sender."""
    return kind in (ACK, SYNACK, MESSAGE_ACK)


@njit(**INLINED)
def plan(net: PacketState, time: int, kind: int, place: int) -> None:
    """An event; `time` [ns]."""
    net.meta[_HEAP] = push(net.heap, net.meta[_HEAP], event(time - net.meta[_BASE], kind, place))


def grown(state: PacketState) -> tuple[PacketState, int]:
    """The same state with more room where it is short, and the flow that waits for it, or -1."""
    meta = state.meta
    flow = int(meta[META["short"]]) - 1
    meta[META["short"]] = 0
    if meta[META["left"]] < 64:
        size = len(state.packet)
        places = len(state.link) + len(state.flow) + 2 * size
        if (state.link[:, LINK["jitter"]] < 0).any() and places > 1 << PLACE_BITS:
            raise InvalidValue("links", f"{size} packets under way", "fewer where packets overtake each other")
        packet = doubled(state.packet)
        chained(packet, PACKET["next"], size)
        packet[-1, PACKET["next"]] = meta[META["free"]] if meta[META["left"]] else -1
        meta[META["free"]] = size
        meta[META["left"]] += size
        state = state._replace(packet=packet)
        if len(state.hosts.telemetry) > 1:
            telemetry = doubled(state.hosts.telemetry)
            state = state._replace(hosts=state.hosts._replace(telemetry=telemetry))
    if meta[META["rows_left"]] < 1:
        state = _more_rows(state)
    if meta[META["heap"]] + len(state.link) + len(state.flow) + 64 > len(state.heap):
        state = state._replace(heap=doubled(state.heap))
    while meta[META["responses"]] + 1 + meta[META["at_once"]] >= len(state.response):
        state = state._replace(response=doubled(state.response))
    if flow >= 0 and len(state.flow):
        row = state.flow[flow]
        if row[FLOW["next"]] - row[FLOW["una"]] > row[FLOW["mask"]]:
            state = _longer_ring(state, flow)
    return state, flow


def _more_rows(state: PacketState) -> PacketState:
    """Twice the rows for transfers, which are all that such a run has."""
    size, hosts = len(state.flow), state.hosts
    if len(state.link) + 2 * size > 1 << PLACE_BITS:
        takes = f"fewer at a time: at most {1 << PLACE_BITS} links and flows that go on, or that links still count"
        raise InvalidValue("flows", size, takes)
    longer: dict[str, Any] = {name: doubled(getattr(hosts, name)) for name in ("host", "law", "memory", "counter")}
    state = state._replace(flow=doubled(state.flow), route=doubled(state.route), hosts=hosts._replace(**longer))
    prepare_rows(state, size)
    return state


def prepare_rows(state: PacketState, first: int) -> None:
    """Rows for transfers from `first` on are as the first one was, and free."""
    flow, host, rows = state.flow, state.hosts.host, np.arange(first, len(state.flow))
    width = len(state.route) // len(flow)
    for name in ("kind", "ecn", "stop", "full"):
        flow[first:, FLOW[name]] = flow[0, FLOW[name]]
    for name in ("line_head", "line_tail", "session"):
        flow[first:, FLOW[name]] = -1
    flow[first:, FLOW["paced"]] = host[first:, HOST["flow"]] = rows
    flow[first:, FLOW["route"]], flow[first:, FLOW["ack_route"]] = rows * width, rows * width + width // 2
    state.route[first * width :] = _ANSWERED
    for name in ("law", "telemetry", "payload", "header", "ack", "notification", "timeout"):
        host[first:, HOST[name]] = host[0, HOST[name]]
    chained(host, HOST["after"], first)
    host[-1, HOST["after"]] = state.meta[META["free_row"]] if state.meta[META["rows_left"]] else -1
    state.meta[META["free_row"]] = first
    state.meta[META["rows_left"]] += len(rows)


def _longer_ring(state: PacketState, flow: int) -> PacketState:
    """Twice the ring of a flow, behind all rings; the old one is left empty."""
    row = state.flow[flow]
    old, size, at = int(row[FLOW["ring"]]), int(row[FLOW["mask"]]) + 1, int(state.meta[META["rings"]])
    state.meta[META["rings"]] = at + 2 * size
    rings = ("sent", "mark", "after", "got")
    again = _sent_again(state, row)
    if at + 2 * size > len(state.sent):
        longer: dict[str, Any] = {name: doubled(getattr(state, name), 2 * size) for name in rings}
        state = state._replace(**longer)
    segments = np.arange(row[FLOW["una"]], row[FLOW["una"]] + size)
    for name in rings:
        table = getattr(state, name)
        table[at + (segments & (2 * size - 1))] = table[old + (segments & (size - 1))]
    for here, following in pairwise((*again, -1)):
        state.after[at + (here & (2 * size - 1))] = following
    row[FLOW["resent_head"]], row[FLOW["resent_tail"]] = (again[0], again[-1]) if again else (-1, -1)
    row[FLOW["ring"]], row[FLOW["mask"]] = at, 2 * size - 1
    if row[FLOW["write"]] > 0:
        state.meta[META["at_once"]] = max(state.meta[META["at_once"]], 2 * size)
    return state


def _sent_again(state: PacketState, row: np.ndarray) -> list[int]:
    """Segments of a flow's list of those that were sent again, in order, without those that are acknowledged."""
    found, segment = [], int(row[FLOW["resent_head"]])
    while segment >= 0:
        found.append(segment)
        segment = int(state.after[row[FLOW["ring"]] + (segment & row[FLOW["mask"]])])
    return [each for each in found if each >= row[FLOW["una"]]]
