"""Scalable TCP: the window grows by a hundredth for each acknowledgement, and a loss takes an eighth of it.

Source: Kelly, "Scalable TCP: improving performance in highspeed wide area networks", ACM SIGCOMM CCR 33 (2003),
section 3.
"""

from netctrl.laws.tcp.sender import Acked, TcpSender, TcpWindow


def scalable_grow(state: TcpWindow, acked: Acked) -> None:
    if acked.recovered:
        state.window += acked.packets if state.window < state.threshold else 0.01 * acked.packets


def scalable_cut(state: TcpWindow) -> None:
    state.window = max(0.875 * state.window, 2.0)


SCALABLE = TcpSender("scalable", TcpWindow, scalable_grow, scalable_cut)
