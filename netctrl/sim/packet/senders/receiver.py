"""Receivers of the packet engine: what came, and its acknowledgement on the way back."""

from __future__ import annotations

from netctrl.core.jit import INLINED, INSIDE, njit
from netctrl.plants.access import averaged
from netctrl.sim.packet.links.links import enqueue
from netctrl.sim.packet.state import (
    ACK,
    AGAIN,
    ARRIVES,
    AVERAGE_DELAY,
    AVERAGE_JITTER,
    DATA,
    DATAGRAM,
    DUPLICATE,
    FLOW,
    GENERATION_MASK,
    GENERATION_SHIFT,
    KIND_SHIFT,
    MARKED,
    MESSAGE,
    META,
    PACKET,
    REDUCED,
    RUN_SHIFT,
    SIZE_MASK,
    SYNACK,
    THINK,
    PacketState,
    plan,
    release,
)

HEADERS, ACK_BYTES = 40, 40
"""Of IP and TCP; an acknowledgement is nothing else [byte]."""
NOTHING, OF_A_MESSAGE = -1, -2
"""What else than a flow may come of a packet."""

F_GROUP, F_ACK_ROUTE, F_SIZE, F_LAST, F_WRITE, F_ECHO = (
    FLOW[name] for name in ("group", "ack_route", "size", "last_bytes", "write", "echo")
)
F_LINE_HEAD, F_LINE_TAIL, F_LINE_DELAY, F_LINE_LAST = (
    FLOW[name] for name in ("line_head", "line_tail", "line_delay", "line_last")
)
F_EXPECTED, F_AHEAD, F_RING, F_MASK = (FLOW[name] for name in ("expected", "ahead", "ring", "mask"))
F_GENERATION, F_RECEIVED, F_EXACT = (FLOW[name] for name in ("generation", "received", "exact"))
F_DELAYS_ACKS, F_HELD, F_QUICK, F_CAME = (FLOW[name] for name in ("delays_acks", "held", "quick", "came"))
F_ANSWERS, F_PLANNED, F_RTO = (FLOW[name] for name in ("answers", "planned", "rto"))
F_TRIP, F_DELAYS, F_STAMP = FLOW["trip"], FLOW["delays"], FLOW["stamp"]
K_NEXT, K_FLOW, K_SEQ, K_HOP, K_INFO, K_TIME, K_BACK = (
    PACKET[name] for name in ("next", "flow", "seq", "hop", "info", "time", "back")
)
M_RECEIVED, M_DELIVERED = META["received"], META["delivered"]

_LATEST = 40_000_000  # after what it answers [ns]: TCP_DELACK_MIN of Linux
_QUICK = 16  # acknowledgements at once, of a connection's first data, after a pause, and after duplicates
_QUICK_AT_MARK = 2
_TICK = 1_000_000  # of timestamps [ns]


@njit(**INLINED)
def on_line(net: PacketState, f: int, k: int, now: int) -> None:
    """A packet of flow f on what is left of its way back, where nothing ever waits."""
    flow, packet = net.flow, net.packet
    arrives = max(now + flow[f, F_LINE_DELAY], flow[f, F_LINE_LAST])
    flow[f, F_LINE_LAST] = arrives
    packet[k, K_TIME], packet[k, K_NEXT] = arrives, -1
    last = flow[f, F_LINE_TAIL]
    flow[f, F_LINE_TAIL] = k
    if last >= 0:
        packet[last, K_NEXT] = k
    else:
        flow[f, F_LINE_HEAD] = k
        plan(net, arrives, ARRIVES, len(net.link) + f)


@njit(**INLINED)
def send_back(net: PacketState, f: int, k: int, now: int) -> None:
    """An acknowledgement goes into the first link of flow f's way back, or, where none is ever busy, on its line."""
    hop = net.flow[f, F_ACK_ROUTE]
    net.packet[k, K_HOP] = hop
    link = net.route[hop]
    if link >= 0:
        enqueue(net, link, k, now)
    else:
        on_line(net, f, k, now)


@njit(**INSIDE)
def _answer(net: PacketState, f: int, k: int, now: int) -> None:
    """`send_back`, as a function, so that the kernel stays small."""
    send_back(net, f, k, now)


@njit(**INSIDE)
def _waits(net: PacketState, f: int, k: int, in_order: bool, now: int, first_mark: bool) -> bool:
    """Whether an acknowledgement waits for the next packet: each second one goes, if data come in order.

    Sources: RFC 5681, section 4.2, and RFC 8257, section 3.2, with the numbers of Linux.
    """
    flow, packet = net.flow, net.packet
    if flow[f, F_CAME] == 0 or now - flow[f, F_CAME] > flow[f, F_RTO] or packet[k, K_INFO] & DUPLICATE != 0:
        flow[f, F_QUICK] = _QUICK
    elif first_mark:
        flow[f, F_QUICK] = max(flow[f, F_QUICK], _QUICK_AT_MARK)
    flow[f, F_CAME] = now
    held = flow[f, F_HELD] - 1
    if held >= 0:
        flow[f, F_HELD] = 0
        if flow[f, F_EXACT] == 1 and (packet[held, K_INFO] ^ packet[k, K_INFO]) & MARKED != 0:
            _answer(net, f, held, now)
        else:
            release(net, held)
        return False
    if not in_order:
        return False
    if flow[f, F_QUICK] > 0:
        flow[f, F_QUICK] -= 1
        return False
    flow[f, F_HELD], flow[f, F_ANSWERS] = k + 1, now + _LATEST
    if flow[f, F_PLANNED] == 0:
        flow[f, F_PLANNED] = 1
        plan(net, flow[f, F_ANSWERS], THINK, len(net.session) + f)
    return True


@njit(**INSIDE)
def answer_late(net: PacketState, f: int, now: int) -> None:
    """The event that a held acknowledgement waits for, or one that has been overtaken."""
    flow = net.flow
    k = flow[f, F_HELD] - 1
    flow[f, F_PLANNED] = 0
    if k < 0:
        return
    if flow[f, F_ANSWERS] > now:
        flow[f, F_PLANNED] = 1
        plan(net, flow[f, F_ANSWERS], THINK, len(net.session) + f)
        return
    flow[f, F_HELD] = 0
    _answer(net, f, k, now)


@njit(**INLINED)
def deliver(net: PacketState, k: int, now: int, full: int) -> int:
    """A packet of data came to its receiver, and turns into its acknowledgement; what is new in order is counted.

    What was sent before the last that came in order is refused, by more than a tick of the clock (PAWS: RFC 7323,
    section 5, as in Linux): something sent again has overtaken it.

    Returns the flow whose last segment came in order by this, or a write's, else NOTHING; OF_A_MESSAGE: all is left.
    """
    flow, packet, meta = net.flow, net.packet, net.meta
    f, info, seq = packet[k, K_FLOW], packet[k, K_INFO], packet[k, K_SEQ]
    kind = info >> KIND_SHIFT & 7
    meta[M_RECEIVED] += 1
    meta[M_DELIVERED] += info & SIZE_MASK
    if kind >= DATAGRAM:
        if kind == MESSAGE:
            return OF_A_MESSAGE
        group, trip, averages = flow[f, F_GROUP], now - packet[k, K_BACK], net.regulated[f]
        net.group[group] += (info & SIZE_MASK) - HEADERS
        net.trip[0, group] += trip
        net.trip[1, group] += 1
        if flow[f, F_RECEIVED] > 0:
            change = abs(trip - flow[f, F_TRIP])
            net.trip[2, group] += change
            averages[AVERAGE_DELAY] = averaged(averages[AVERAGE_DELAY], float(trip))
            averages[AVERAGE_JITTER] = averaged(averages[AVERAGE_JITTER], float(change))
        else:
            averages[AVERAGE_DELAY] = float(trip)
        flow[f, F_TRIP] = trip
        flow[f, F_RECEIVED] += 1
        flow[f, F_DELAYS] += trip
        release(net, k)
        return NOTHING
    if info >> GENERATION_SHIFT & GENERATION_MASK != flow[f, F_GENERATION]:
        release(net, k)
        return NOTHING
    finished, run, answer, told, echoed, in_order = NOTHING, 0, SYNACK, info & AGAIN, flow[f, F_ECHO], False
    if kind == DATA:
        answer = ACK
        ring, mask, got = flow[f, F_RING], flow[f, F_MASK], net.got
        if info & REDUCED != 0 or flow[f, F_EXACT] == 1:
            flow[f, F_ECHO] = 0
        if info & MARKED != 0:
            flow[f, F_ECHO] = 1
        expected, behind = flow[f, F_EXPECTED], flow[f, F_STAMP] - packet[k, K_BACK]
        if behind > _TICK and seq >= expected and flow[f, F_STAMP] // _TICK - packet[k, K_BACK] // _TICK > 1:
            packet[k, K_SEQ], told = expected - 1, AGAIN  # refused; the answer tells of nothing new
        elif seq == expected:
            if told != 0 and behind < 0:  # no other can be ahead of what comes
                flow[f, F_STAMP] = packet[k, K_BACK]
            first = expected
            expected += 1
            in_order = flow[f, F_AHEAD] == 0
            if flow[f, F_AHEAD] > 0:
                while got[ring + (expected & mask)] > 0:
                    got[ring + (expected & mask)] = 0
                    flow[f, F_AHEAD] -= 1
                    expected += 1
            flow[f, F_EXPECTED] = expected
            payload = (expected - first) * (full - HEADERS)
            write = flow[f, F_WRITE]
            if write > 0:
                whole = expected // write - first // write
                if whole > 0:
                    payload += whole * (flow[f, F_LAST] - (full - HEADERS))
                    finished = f
            elif expected == flow[f, F_SIZE]:
                payload += flow[f, F_LAST] - (full - HEADERS)
                finished = f
            net.group[flow[f, F_GROUP]] += payload
            flow[f, F_RECEIVED] += payload
        elif seq > expected:
            place = ring + (seq & mask)
            if got[place] > 0:
                told |= DUPLICATE
            else:
                before = got[ring + (seq - 1 & mask)] if seq - 1 > expected else 0
                got[place] = before if before > 0 else seq + 1
                flow[f, F_AHEAD] += 1
            run = seq + 2 - got[place]
        else:
            told |= DUPLICATE
        packet[k, K_BACK] = flow[f, F_EXPECTED]
    generation = flow[f, F_GENERATION] << GENERATION_SHIFT
    echo = MARKED if flow[f, F_ECHO] == 1 else 0
    packet[k, K_INFO] = ACK_BYTES | answer << KIND_SHIFT | echo | told | generation | run << RUN_SHIFT
    delays = flow[f, F_DELAYS_ACKS] == 1 and kind == DATA
    in_order = in_order and finished < 0 and info & REDUCED == 0  # a window that was cut may wait for this answer
    if not delays or not _waits(net, f, k, in_order, now, flow[f, F_ECHO] > echoed):
        send_back(net, f, k, now)
    return finished
