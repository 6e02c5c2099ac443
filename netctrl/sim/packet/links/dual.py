"""Links with two coupled queues, the L queue in front: DualPI2 (`netctrl.laws.l4s.dualpi2`).

The row of `heads` of the L queue has the law's state and parameters.
"""

from __future__ import annotations

from netctrl.core.jit import INLINED, INSIDE, njit
from netctrl.laws.aqm.fluid import PROBABILITY, SCALABLE_PROBABILITY
from netctrl.laws.l4s.dualpi2 import (
    DualPi2State,
    classic_is_next,
    fresh_credit,
    judge_packet,
    spend_credit,
    update_dualpi2,
)
from netctrl.laws.record import compiled_view
from netctrl.sim.packet.state import CAPABLE, ECT1, LINK, MARKED, PACKET, STEPS, SUBQUEUE, PacketState, chance

L_FIRST, L_BYTES = LINK["first"], LINK["bytes"]
Q_HEAD, Q_BYTES = SUBQUEUE["head"], SUBQUEUE["bytes"]
K_INFO, K_START = PACKET["info"], PACKET["start"]
_NS = 1e9

_view = compiled_view(DualPi2State)
_classic_is_next, _fresh_credit, _judge_packet, _spend_credit, _update = (
    njit(each, **INLINED) for each in (classic_is_next, fresh_credit, judge_packet, spend_credit, update_dualpi2)
)


@njit(**INLINED)
def coupled_queue(net: PacketState, link: int, k: int) -> int:
    """Queue of a packet: the L queue for ECT(1) and for marked ones. Source: RFC 9331, section 5.1."""
    info = net.packet[k, K_INFO]
    low = info & ECT1 == ECT1 or (info & CAPABLE != 0 and info & MARKED != 0)
    return net.link[link, L_FIRST] + (0 if low else 1)


@njit(**INLINED)
def note_step(net: PacketState, link: int, q: int, k: int) -> None:
    """A packet comes to queue q: whether the step will apply to it."""
    state = _view(net.heads[net.link[link, L_FIRST]])
    net.packet[k, K_INFO] &= ~STEPS
    if q == net.link[link, L_FIRST] and net.subqueue[q, Q_BYTES] >= state.step_bytes:
        net.packet[k, K_INFO] |= STEPS


@njit(**INLINED)
def next_of_two(net: PacketState, link: int) -> int:
    """The queue whose first packet is next, or -1; both empty, the credit begins anew."""
    first, sub = net.link[link, L_FIRST], net.subqueue
    state = _view(net.heads[first])
    low, classic = sub[first, Q_HEAD] >= 0, sub[first + 1, Q_HEAD] >= 0
    if not low and not classic:
        state.credit = _fresh_credit(state.weight, state.packet)
        return -1
    return first + (1 if _classic_is_next(state.credit, low, classic) else 0)


@njit(**INLINED)
def judge_head(net: PacketState, link: int, q: int, k: int, now: int) -> int:
    """What becomes of a packet that was taken from queue q: SEND, MARK or DROP."""
    first, info = net.link[link, L_FIRST], net.packet[k, K_INFO]
    state = _view(net.heads[first])
    late = info & STEPS != 0 and (now - net.packet[k, K_START]) / _NS > state.step
    backlog = float(net.link[link, L_BYTES])
    return _judge_packet(state, q == first, info & CAPABLE != 0, late, backlog, chance(net.random, link))


@njit(**INLINED)
def spend(net: PacketState, link: int, q: int, size: int) -> None:
    """A packet of queue q is sent: that counts while the other queue has packets."""
    first = net.link[link, L_FIRST]
    if net.subqueue[2 * first + 1 - q, Q_HEAD] >= 0:
        state = _view(net.heads[first])
        state.credit = _spend_credit(state.credit, state.weight, q != first, float(size))


@njit(**INSIDE)
def update_coupling(net: PacketState, link: int, now: int) -> None:
    """The law acts on the age of the older of both first packets."""
    first, age = net.link[link, L_FIRST], 0
    for q in (first, first + 1):
        k = net.subqueue[q, Q_HEAD]
        if k >= 0:
            age = max(age, now - net.packet[k, K_START])
    state = _view(net.heads[first])
    _update(state, age / _NS)
    net.queue[link, PROBABILITY] = state.base_probability * state.base_probability
    net.queue[link, SCALABLE_PROBABILITY] = min(state.coupling * state.base_probability, 1.0)
