"""TCP Prague's window: DCTCP's cut, a growth that marks don't halt, both of a flow with a round trip of 25 ms or more.

A window W that grows by 1/W for each packet without a mark, and is cut by half of the marked part p once a round trip,
rests at 1 - p = p W/2: about 2/p packets. Where marks come at random, the first one after a round trip cuts it, on
average 1/p packets later: W + 1/p = p W²/2, so that it is (1 + √3)/p. In a virtual round trip V above the true one R,
of V/R round trips, it grows by (R/V)² as much in each and is cut once: its rate W/R is that of a flow whose round trip
is V.

Source: draft-briscoe-iccrg-prague-congestion-control-04. Of it there are ECT(1), the mark of each packet, the average
of the marked part, the cut and the growth, the virtual round trip of at least 25 ms from the first mark on, Reno's cut
at a loss. There are not: pacing (`cap` over the window paces), windows below two packets, the detection of classic
queues that mark, the wait of some round trips before it becomes independent of the round trip.
"""

from __future__ import annotations

from netctrl.core.jit import njit
from netctrl.laws.tcp.dctcp import DctcpState, dctcp_average, dctcp_cut
from netctrl.laws.tcp.reno import reno_cut, reno_window
from netctrl.laws.tcp.sender import Acked, Echoed, TcpSender

_VIRTUAL_S = 25e-3


class PragueState(DctcpState):
    """State of Prague."""

    spared: float
    """To be acknowledged before the window may be cut again [packet]"""
    heard: float
    """1: a mark has come"""


@njit(cache=True, error_model="numpy")
def virtual_trips(rtt: float) -> float:
    """Round trips in a virtual one, V/R with V = max(R, 25 ms)."""
    return max(_VIRTUAL_S / rtt, 1.0)


def _grow(state: PragueState, acked: Acked) -> None:
    """By 1/W for each packet, over (V/R)²; in slow start as Reno."""
    if acked.recovered:
        grown = reno_window(state.window, acked.packets, state.threshold)
        trips = 1.0 if state.window < state.threshold else virtual_trips(state.rtt)
        state.window += (grown - state.window) / (trips * trips)


def _cut(state: PragueState) -> None:
    """At a loss, Reno's; a mark doesn't cut it again in this virtual round trip."""
    state.window = reno_cut(state.window)
    state.spared = state.window * virtual_trips(state.rtt)


def _mark(state: PragueState) -> None:
    """W (1 - alpha/2), once in a virtual round trip."""
    if state.spared <= 0.0:
        state.window = dctcp_cut(state.window, state.unmarked)
        state.threshold = state.window
        state.spared = state.window * virtual_trips(state.rtt)


def _echo(state: PragueState, echoed: Echoed) -> None:
    """DCTCP's alpha, once in a virtual round trip; 1 until the first mark."""
    state.spared -= echoed.packets
    if echoed.marked:
        state.heard = 1.0
    if state.heard > 0.0:
        trips = virtual_trips(state.rtt)
        after = dctcp_average(state.unmarked, state.left, state.acks, state.marks, echoed, trips)
        state.unmarked = after.unmarked
        state.left = after.left
        state.acks = after.acks
        state.marks = after.marks


PRAGUE = TcpSender("prague", PragueState, _grow, _cut, _mark, _echo, scalable=True)
