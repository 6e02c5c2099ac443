"""Gates of regulators (`netctrl.laws.rate.gate`) in the packet engine's tables.

Of datagrams the flow itself sends when its gate opens; segments of TCP wait in a queue, a link without delay before the
flow's path, whose wire is busy until then.
"""

from __future__ import annotations

from netctrl.core.jit import INLINED, INSIDE, njit
from netctrl.laws.rate import gate as law
from netctrl.laws.rate.gate import Gate
from netctrl.sim.packet.state import FLOW, HELD, SHARE, PacketState, chance

F_OPENS, F_PAUSING, F_FULL = (FLOW[name] for name in ("opens", "pausing", "full"))
F_GAP, F_VARIATION, F_LEFT, F_BURST, F_WITHIN = (FLOW[name] for name in ("gap", "variation", "left", "burst", "within"))


@njit(**INLINED)
def _gate(net: PacketState, f: int) -> Gate:
    row = net.flow[f]
    return Gate(row[F_OPENS], row[F_GAP], row[F_BURST], row[F_LEFT], row[F_PAUSING], net.regulated[f, HELD])


@njit(**INLINED)
def _keep(net: PacketState, f: int, gate: Gate) -> None:
    row = net.flow[f]
    row[F_OPENS], row[F_GAP], row[F_BURST], row[F_LEFT], row[F_PAUSING], net.regulated[f, HELD] = gate


@njit(**INLINED)
def pass_gate(net: PacketState, f: int, now: int) -> None:
    """A packet goes through; only the end of a burst draws."""
    row = net.flow[f]
    drawn = 0.0
    if row[F_LEFT] == 1 and row[F_VARIATION] > 0:
        drawn = chance(net.random, len(net.link) + f)
    _keep(net, f, law.pass_gate(_gate(net, f), row[F_WITHIN], row[F_VARIATION] / SHARE, now, drawn))


@njit(**INSIDE)
def set_gate(net: PacketState, f: int, since: int, rate: float, burst: int) -> None:
    """Another rate [bit/s] and burst [packet], of a pause from `since` on."""
    row = net.flow[f]
    _keep(net, f, law.set_gate(_gate(net, f), row[F_WITHIN], row[F_FULL], since, rate, burst))
