"""Interface of TCP window laws: growth with acknowledgements, and reduction at a loss.

Both change a state in place, whose fields a law may add to; numba compiles them.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any, NamedTuple

SLOW_STARTS = "standard", "hystart", "hystart++"
"""What slow start ends by, but for losses: nothing else, HyStart as Linux has it, HyStart++ (RFC 9406)."""


class TcpWindow:
    """State of all windows; zeros at first, but for the first two, `rtt` and `min_rtt`."""

    window: float
    """[packet]"""
    threshold: float
    """Below it, slow start [packet]"""
    rtt: float
    """The last that was seen [s]"""
    min_rtt: float
    """[s]"""
    max_rtt: float
    """Since the last cut [s]"""
    cut_s: float
    """When it was cut last [s]"""
    recovered_s: float
    """Losses before are of the same round trip [s]"""
    timed_out: float
    """1: at a timeout; a law that hears of it makes it 0"""
    even: float
    """1: acknowledgements come evenly, in parts of packets, as in a fluid"""


class Acked(NamedTuple):
    """What a window may grow by."""

    packets: float
    """That were acknowledged"""
    since: float
    """The last cut [s]"""
    rtt: float
    """With queueing [s]"""
    recovered: bool
    """The round trip of the last cut is over"""


class Echoed(NamedTuple):
    """What an acknowledgement tells of marks."""

    marked: bool
    """The packet that it acknowledges was marked"""
    packets: float
    """Acknowledged by now, since the acknowledgement before"""
    outstanding: float
    """Sent and not acknowledged in order [packet]"""


class TcpSender(NamedTuple):
    """A law."""

    name: str
    state: Any
    """`TcpWindow`, or a class that adds fields to it, zeros at first."""
    grow: FunctionType
    """grow(state, acked)"""
    cut: FunctionType
    """cut(state): at a loss, at most once a round trip."""
    mark: FunctionType | None = None
    """mark(state): at a mark, at most once a round trip; None: as at a loss."""
    echo: FunctionType | None = None
    """echo(state, echoed): with each acknowledgement, of which each tells of its own packet's mark (RFC 8257); None:
    receivers echo a mark until they hear that the window was cut (RFC 3168)."""
    scalable: bool = False
    """Its packets are of L4S, ECT(1): mark is called at each mark, but while losses are repaired, and spaces cuts
    itself; grow is called with what is acknowledged without a mark, whatever was cut (RFC 9331)."""
    slow_start: str | None = "standard"
    """One of SLOW_STARTS, unless a flow says another; None: it has its own."""
