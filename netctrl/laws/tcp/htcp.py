"""H-TCP's window as a fluid: growth that rises with the time since the last loss, and an adaptive backoff."""

from __future__ import annotations

from netctrl.core.jit import njit
from netctrl.laws.tcp.sender import Acked, TcpSender, TcpWindow

_LOW_SPEED = 1.0  # s, Δ_L
_MIN_BACKOFF, _MAX_BACKOFF = 0.5, 0.8
_MIN_WINDOW = 2.0  # packets
_CHANGE = 0.2  # of the throughput, Δ_B


@njit(cache=True)
def htcp_increase(since: float, backoff: float) -> float:
    """α, packets a round trip: 2(1 − β) times 1 up to a second after the loss, then 1 + 10(Δ − Δ_L) + (Δ − Δ_L)²/4.

    Source: draft-leith-tcp-htcp-06, section 3. Linux scales it down where RTTs are below 0.1 s; here it isn't.
    """
    late = max(since - _LOW_SPEED, 0.0)
    return 2.0 * (1.0 - backoff) * (1.0 + 10.0 * late + 0.25 * late * late)


@njit(cache=True, error_model="numpy")
def htcp_window(window: float, since: float, backoff: float, acknowledged: float, threshold: float) -> float:
    """The window after `acknowledged` packets more, `since` seconds after the last loss [packet]."""
    if window < threshold:
        return window + acknowledged
    return window + htcp_increase(since, backoff) * acknowledged / window


@njit(cache=True, error_model="numpy")
def htcp_backoff(min_rtt: float, max_rtt: float, rate: float, rate_before: float) -> float:
    """β, by which the window is multiplied: 1/2 where the throughput at a loss is off by more than a fifth from that at
    the one before, else RTT_min/RTT_max, so that the queue just empties; within 0.5 and 0.8.

    Parameters
    ----------
    min_rtt, max_rtt : float
        Of the flow, and since its last loss [s].
    rate, rate_before : float
        Throughput at this loss and at the one before, in one unit; 0 before the first.

    Source: draft-leith-tcp-htcp-06, section 3.
    """
    if abs(rate - rate_before) > _CHANGE * rate_before:
        return _MIN_BACKOFF
    return min(max(min_rtt / max_rtt, _MIN_BACKOFF), _MAX_BACKOFF)


class HtcpState(TcpWindow):
    """State of H-TCP."""

    rate: float
    """Throughput at the last loss; 0: there was none [packet/s]"""
    backoff: float
    """Of the last loss; 0: there was none"""


def _grow(state: HtcpState, acked: Acked) -> None:
    if acked.recovered:
        backoff = state.backoff if state.backoff > 0.0 else _MIN_BACKOFF
        state.window = htcp_window(state.window, acked.since, backoff, acked.packets, state.threshold)


def _cut(state: HtcpState) -> None:
    rate = state.window / state.rtt
    state.backoff = htcp_backoff(state.min_rtt, state.max_rtt, rate, state.rate)
    state.window = max(state.backoff * state.window, _MIN_WINDOW)
    state.rate = rate
    state.max_rtt = 0.0


HTCP = TcpSender("htcp", HtcpState, _grow, _cut)
