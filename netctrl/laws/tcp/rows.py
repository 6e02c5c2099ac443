"""Windows of TCP senders as rows of numbers for kernels: one compiled function for all laws."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from netctrl.core.jit import by_number, njit
from netctrl.core.register import TCP_SENDERS
from netctrl.laws.record import as_record, compiled_view, width
from netctrl.laws.tcp.sender import TcpWindow
from netctrl.laws.tcp.slow_start import SlowStart, slow_start

WINDOWS = TCP_SENDERS.usable()
"""Names of laws; a kernel takes their places."""
_SENDERS = [TCP_SENDERS[name] for name in WINDOWS]
WIDTH = max(width(each.state) for each in _SENDERS)
"""Length of a row: what the law with the most needs."""
LONGEST = WIDTH + width(SlowStart)
"""The same, with `SlowStart` behind it."""
EXACT = frozenset(each.name for each in _SENDERS if each.echo is not None)
"""Laws whose receivers echo each packet's mark."""
SCALABLE = frozenset(each.name for each in _SENDERS if each.scalable)
"""Laws whose packets have ECT(1)."""


def first_window(rtt: float, packets: float) -> np.ndarray:
    """The row of a fluid's window of so many packets in slow start, of a flow with this base round trip [s]."""
    row = np.zeros(WIDTH)
    state = as_record(TcpWindow, row)
    state.window, state.threshold, state.rtt, state.min_rtt, state.even = packets, inf, rtt, inf, 1.0
    return row


def _on_row(state: Any, function: Any, options: dict[str, Any]) -> Any:
    """What a law does, on the row of its state."""
    view, act = compiled_view(state), njit(function, **options)

    def on_row(row, *given):
        act(view(row), *given)

    return njit(on_row, **options)


def window_acts(**options: Any) -> tuple[Any, Any]:
    """`grow(number, row, acked)` and `cut(number, row)`: the law of this place in WINDOWS; `options` are numba's."""
    grow = {k: _on_row(each.state, each.grow, options) for k, each in enumerate(_SENDERS)}
    cut = {k: _on_row(each.state, each.cut, options) for k, each in enumerate(_SENDERS)}
    return by_number(grow, "row, acked", **options), by_number(cut, "row", **options)


def mark_acts(**options: Any) -> tuple[Any, Any]:
    """`mark(number, row)` and `echo(number, row, echoed)`, as in `TcpSender`; echo does nothing for laws without."""
    mark = {k: _on_row(each.state, each.mark or each.cut, options) for k, each in enumerate(_SENDERS)}
    echo = {k: _on_row(each.state, each.echo, options) for k, each in enumerate(_SENDERS) if each.echo is not None}
    return by_number(mark, "row", **options), by_number(echo, "row, echoed", **options)


def slow_start_act(**options: Any) -> Any:
    """`slow_start(number, row, acked, newly)`, as in `netctrl.laws.tcp.slow_start`, on rows as long as LONGEST."""
    start, window, act = compiled_view(SlowStart), compiled_view(TcpWindow), njit(slow_start, **options)

    def on_row(number, row, acked, newly):
        return act(number, start(row[WIDTH:]), window(row), acked, newly)

    return njit(on_row, **options)
