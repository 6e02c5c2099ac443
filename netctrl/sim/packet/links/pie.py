"""Links with Linux's PIE (`netctrl.laws.targets.pie_packets`); rows of `heads` have the law's state in each queue."""

from __future__ import annotations

from numba.extending import register_jitable

from netctrl.core.jit import INLINED, INSIDE, njit
from netctrl.laws.aqm.fluid import PROBABILITY
from netctrl.laws.aqm.pie import pie_scale
from netctrl.laws.record import compiled_view
from netctrl.laws.targets.pie import spread_chooses
from netctrl.laws.targets.pie_packets import PacketPie, pie_choice, pie_leaves, update_pie
from netctrl.sim.packet.state import CAPABLE, LINK, PACKET, SUBQUEUE, PacketState, chance

BY_PIE = 4
"""When a law decides: Linux's PIE, by epochs, on packets as they come."""
L_FIRST, L_QUEUES, Q_BYTES = LINK["first"], LINK["queues"], SUBQUEUE["bytes"]
K_INFO = PACKET["info"]
_NS = 1e9

_view = compiled_view(PacketPie)
for each in (pie_scale, spread_chooses):
    register_jitable(**INLINED)(each)
_choice, _leaves, _update = (njit(each, **INLINED) for each in (pie_choice, pie_leaves, update_pie))


@njit(**INLINED)
def came_to_pie(net: PacketState, link: int, q: int, k: int) -> int:
    """What becomes of a packet that comes to queue q: 0 it waits, 1 it is marked, 2 it is dropped."""
    capable = net.packet[k, K_INFO] & CAPABLE != 0
    return _choice(_view(net.heads[q]), float(net.subqueue[q, Q_BYTES]), capable, chance(net.random, link))


@njit(**INLINED)
def left_pie(net: PacketState, q: int, now: int, waited: int) -> None:
    """A packet leaves queue q after it has waited so long [ns]."""
    _leaves(_view(net.heads[q]), now / _NS, waited / _NS, float(net.subqueue[q, Q_BYTES]))


@njit(**INSIDE)
def update_link_pie(net: PacketState, link: int) -> None:
    """The law acts; of several queues the greatest probability is the link's."""
    first, net.queue[link, PROBABILITY] = net.link[link, L_FIRST], 0.0
    for q in range(first, first + net.link[link, L_QUEUES]):
        state = _view(net.heads[q])
        _update(state, float(net.subqueue[q, Q_BYTES]))
        net.queue[link, PROBABILITY] = max(net.queue[link, PROBABILITY], state.probability)
