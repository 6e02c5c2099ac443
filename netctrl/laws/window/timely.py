"""TIMELY, one completion event at a time. Source: Mittal et al., SIGCOMM 2015, Algorithm 1.

Patched: Zhu et al., CoNEXT 2016, Algorithm 2: the rate follows the round trip itself where its gradient is small.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from netctrl.core.errors import InvalidValue
from netctrl.laws.window.law import SHARE, Acknowledged, Packet, Path, SchemeRecord, WindowLaw
from netctrl.model.io.fields import Duration, Rate, Size, duration, flag, rate, read_fields, size, whole

_MIN_SHARE = 1e-3  # of line rate; a rate of 0 would never see another round trip


class Timely(SchemeRecord, frozen=True, kw_only=True, tag="timely"):
    """Rates by the gradient of round-trip times.

    Source: Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015, Algorithm 1;
    patched: Zhu et al., "ECN or Delay: Lessons Learnt from Analysis of DCQCN and TIMELY", CoNEXT 2016, Algorithm 2.
    """

    patched: bool = False
    """Patched TIMELY, in place of Algorithm 1."""
    smoothing: float = 0.875
    """alpha: weight of the newest difference."""
    decrease: float = 0.8
    """beta. With `patched` 0.008 is the paper's."""
    low: Duration = 50e-6
    """T_low of the round trip [s]."""
    high: Duration = 500e-6
    """T_high of the round trip [s]."""
    increase: Rate = 10e6
    """delta, additive increase [bit/s]."""
    segment: Size = 16e3
    """Acknowledged bytes from one update to the next."""
    fast_after: int = 5
    """Updates without a rise after which the increase is five-fold (HAI)."""

    def __post_init__(self) -> None:
        read_fields(self, patched=flag, smoothing=SHARE, decrease=SHARE, low=duration, high=duration)
        read_fields(self, increase=rate, segment=size, fast_after=whole(1, 1000))
        if self.high <= self.low:
            raise InvalidValue("high", self.high, f"a time above low ({self.low:g} s)")


class TimelyParameters(NamedTuple):
    """Parameters of TIMELY."""

    patched: float
    """1: Algorithm 2 of Zhu et al., CoNEXT 2016"""
    smoothing: float
    """alpha"""
    decrease: float
    """beta"""
    low: float
    """T_low [ns]"""
    high: float
    """T_high [ns]"""
    increase: float
    """delta [bit/s]"""
    segment: float
    """Acknowledged from one update to the next [byte]"""
    fast_after: float
    """Updates without a rise after which the increase is five-fold"""


class TimelyState(NamedTuple):
    """State of TIMELY."""

    window: float
    """[byte]"""
    rate: float
    """[bit/s]"""
    before: float
    """Round trip of the update before; 0: there was none [ns]"""
    difference: float
    """Moving average of its changes [ns]"""
    falls: float
    """Updates without a rise"""
    pending: float
    """Acknowledged since the last update [byte]"""


def timely_step(state: TimelyState, seen: Acknowledged, path: Path, p: TimelyParameters) -> TimelyState:
    """TIMELY: the rate once a segment, from the round trip of its last packet.

    Source: Mittal et al., SIGCOMM 2015, Algorithm 1; patched: Zhu et al., CoNEXT 2016, Algorithm 2.
    """
    pending = state.pending + seen.newly
    if pending < p.segment:
        return TimelyState(state.window, state.rate, state.before, state.difference, state.falls, pending)
    before = seen.rtt if state.before == 0.0 else state.before
    difference = state.difference + p.smoothing * (seen.rtt - before - state.difference)
    gradient = difference / path.base_rtt
    rate = min(state.rate, path.line_rate)
    falls = 0.0
    if seen.rtt < p.low:
        rate += p.increase
    elif seen.rtt > p.high:
        rate *= 1.0 - p.decrease * (1.0 - p.high / seen.rtt)
    elif p.patched != 0.0:
        falls = state.falls
        w = min(max(2.0 * gradient + 0.5, 0.0), 1.0)
        rate = p.increase * (1.0 - w) + rate * (1.0 - p.decrease * w * (seen.rtt - p.low) / p.low)
    elif gradient <= 0.0:
        falls = state.falls + 1.0
        rate += p.increase * (5.0 if falls >= p.fast_after else 1.0)
    else:
        rate *= 1.0 - p.decrease * min(gradient, 1.0)
    rate = min(max(rate, _MIN_SHARE * path.line_rate), path.line_rate)
    return TimelyState(state.window, rate, seen.rtt, difference, falls, 0.0)


def _start(_: Timely, __: Path) -> float:
    return inf


def _read(scheme: Timely, _: Packet) -> TimelyParameters:
    return TimelyParameters(
        float(scheme.patched),
        scheme.smoothing,
        scheme.decrease,
        scheme.low * 1e9,
        scheme.high * 1e9,
        scheme.increase,
        scheme.segment,
        float(scheme.fast_after),
    )


TIMELY = WindowLaw(Timely, TimelyParameters, TimelyState, _read, timely_step, start=_start)
