"""Gates of regulators in the packet engine: a burst of packets, then a pause, whose mean a rate sets.

A gate lets a flow's next packet through at one time, `opens`. Of datagrams the flow itself sends then; segments of TCP
wait in a queue, a link without delay before the flow's path, whose wire is busy until then.

A change of the rate stretches what is left of a pause by the ratio of the mean pauses, which keeps exponential pauses
exponential and even ones in proportion; a burst that has begun is finished as it began. At rate 0 the remaining share
of the mean pause is kept instead.
"""

from __future__ import annotations

from math import log

from netctrl.core.jit import INLINED, INSIDE, njit
from netctrl.sim.packet.state import FLOW, HELD, NEVER, SHARE, PacketState, chance

_LONGEST = 1e17  # a longer mean pause is that of rate 0 [ns]
_BITS = 8e9  # of a byte in a second, in bit/s and ns

F_OPENS, F_PAUSING, F_FULL = (FLOW[name] for name in ("opens", "pausing", "full"))
F_GAP, F_VARIATION, F_LEFT, F_BURST, F_WITHIN = (FLOW[name] for name in ("gap", "variation", "left", "burst", "within"))


@njit(cache=True, error_model="numpy", nogil=True)
def mean_pause(rate: float, burst: int, full: int, within: int) -> int:
    """Mean time from the last packet of a burst to the first of the next [ns], at least 1; NEVER at rate 0.

    Parameters
    ----------
    rate : float
        Mean rate of the flow [bit/s].
    burst : int
        Packets of a burst.
    full : int
        Size of a packet [byte].
    within : int
        Time between packets of a burst [ns].
    """
    if rate <= 0.0 or _BITS * full * burst > _LONGEST * rate:
        return NEVER
    return max(round(_BITS * full * burst / rate - float((burst - 1) * within)), 1)


@njit(**INLINED)
def _pause(net: PacketState, f: int, since: int, share: float) -> None:
    """So much of the mean pause is left from a time on."""
    flow = net.flow
    if flow[f, F_GAP] >= NEVER:
        net.regulated[f, HELD], flow[f, F_OPENS] = share, NEVER
    else:
        flow[f, F_OPENS] = since + max(round(share * float(flow[f, F_GAP])), 1)


@njit(**INLINED)
def pass_gate(net: PacketState, f: int, now: int) -> None:
    """A packet goes through: the next one after a while, after a burst a pause.

    The pause is mean · (1 − v + v · exponential) with v its variation.
    """
    flow = net.flow
    flow[f, F_LEFT] -= 1
    flow[f, F_PAUSING] = 0
    if flow[f, F_LEFT] > 0:
        flow[f, F_OPENS] = now + flow[f, F_WITHIN]
        return
    flow[f, F_LEFT], flow[f, F_PAUSING] = flow[f, F_BURST], 1
    share = 1.0
    if flow[f, F_VARIATION] > 0:
        v = flow[f, F_VARIATION] / SHARE
        share = 1.0 - v + v * -log(1.0 - chance(net.random, len(net.link) + f))
    _pause(net, f, now, share)


@njit(**INSIDE)
def set_gate(net: PacketState, f: int, since: int, rate: float, burst: int) -> None:
    """Another rate [bit/s] and burst [packet], of a pause from `since` on."""
    flow = net.flow
    before, gap = flow[f, F_GAP], mean_pause(rate, burst, flow[f, F_FULL], flow[f, F_WITHIN])
    if gap == before and burst == flow[f, F_BURST]:
        return
    flow[f, F_GAP], flow[f, F_BURST] = gap, burst
    if flow[f, F_PAUSING] == 0:
        return
    flow[f, F_LEFT] = burst
    if flow[f, F_OPENS] > since:  # else its packet may go now
        share = net.regulated[f, HELD]
        if before < NEVER:
            share = float(flow[f, F_OPENS] - since) / float(before)
        _pause(net, f, since, share)
