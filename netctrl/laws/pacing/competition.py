"""Own-rate flows beside others: whether a queue is others', and Cubic's window beside these."""

from __future__ import annotations

from netctrl.core.jit import njit
from netctrl.core.units import BITS_PER_BYTE
from netctrl.laws.elementary import cube_root
from netctrl.laws.pacing.own_rate_state import OwnRateParameters, OwnRateState
from netctrl.laws.tcp.cubic import BETA, C, cubic_window

# Shares of the queue that a drain leaves, at which it is others', and one's own; then Cubic's window.
_LEFT, _GONE = 0.5, 0.1
_TELLING = 3.0  # window [packet], below which what a drain leaves tells nothing, as in an outage
_WORTH, _FEW = 10.0, 4.0  # windows [packet] below which no competition begins, or one ends
_GIVEN_UP = 8.0  # drains after such an end, for which none begins
_PATIENCE = 0.8  # of the time that Cubic takes to come back, between two cuts; half where losses are significant
_PART = 0.5  # of the highest rate of late, the window that competition begins with


@njit(cache=True, error_model="numpy")
def _give_up(state: OwnRateState) -> None:
    state.competing = 0.0
    state.foreign = -_GIVEN_UP


@njit(cache=True, error_model="numpy")
def compete(state: OwnRateState, time: float, lost: bool, share: float) -> None:
    """Cubic's window. It answers each loss, but not before it is nearly back at its peak: a sender that loses all the
    time, as BBR does in short buffers, would take it down to nothing."""
    W = state.window
    since = time - state.cut_s
    back = cube_root((1.0 - BETA) / C * state.peak)
    if lost and since > max(state.rtt, (0.5 if share > 0.0 else 1.0) * _PATIENCE * back):
        state.peak = W
        state.window = max(min(BETA, 1.0 - share) * W, 1.0)
        state.cut_s = state.limit_s = time
        state.deaf = 1.0
        if W < _FEW:
            _give_up(state)
        return
    state.window = cubic_window(W, state.peak, BETA * state.peak, since, state.rtt, W)


@njit(cache=True, error_model="numpy")
def suspect(state: OwnRateState, p: OwnRateParameters, time: float, left: float, jitter: float) -> None:
    """A queue that the drains of all flows of this law leave, several times in a row, is kept by others."""
    if state.competing > 0.0:
        if left < _GONE * state.drained:
            state.competing = 0.0
            state.foreign = p.patience_drains - 1.0
    elif left <= _LEFT * state.drained + jitter or state.window < _TELLING:
        state.foreign = min(state.foreign, 0.0)
    else:
        state.foreign += 1.0
        if state.foreign >= p.patience_drains > 0.0 and state.window >= 1.0 and state.marks == 1.0:
            state.competing = 1.0
            state.peak = max(state.window, _PART * state.fastest * state.rtt / (BITS_PER_BYTE * p.packet))
            state.cut_s = time
            if state.peak < _WORTH:
                _give_up(state)
