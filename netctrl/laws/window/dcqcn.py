"""DCQCN's reaction point. Source: Zhu et al., SIGCOMM 2015, section 3.1, (1) to (4) and Fig. 7.

Its timers are read when a packet is sent or an acknowledgement comes, which is when the rate matters.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from netctrl.core.errors import InvalidValue
from netctrl.laws.window.law import SHARE, Acknowledged, Marking, Packet, Path, SchemeRecord, WindowLaw
from netctrl.model.io.fields import Duration, Rate, Size, duration, optional, rate, read_fields, size, whole


class Dcqcn(SchemeRecord, frozen=True, kw_only=True, tag="dcqcn"):
    """Rates by notifications of marked packets, with fast recovery, additive and hyper increase.

    Source: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, section 3 and Fig. 14.
    """

    mark_low: Size = 5e3
    """K_min [byte], of a queue at a link of `threshold_rate`; in proportion to the rate of others."""
    mark_high: Size = 200e3
    """K_max [byte], as `mark_low`."""
    mark_most: float = 0.01
    """P_max, probability of a mark at K_max."""
    threshold_rate: Rate = 4e10
    """Rate of the link that `mark_low` and `mark_high` are for [bit/s]."""
    notification_interval: Duration = 50e-6
    """Least time between two notifications (CNP) of a flow [s]."""
    gain: float = 1.0 / 256.0
    """g of the moving average of notifications."""
    alpha_interval: Duration = 55e-6
    """Without a notification, alpha decays so often [s]."""
    increase_interval: Duration = 55e-6
    """The rate's timer [s]."""
    increase_bytes: Size = 10e6
    """The rate's byte counter [byte]."""
    fast_stages: int = 5
    """F, stages of fast recovery."""
    increase: Rate = 40e6
    """R_AI, additive increase [bit/s]."""
    hyper_increase: Rate = 200e6
    """R_HAI, hyper increase [bit/s]."""
    least_rate: Rate = 40e6
    """Least rate of a flow [bit/s]."""
    window: Size | None = None
    """Cap of what is under way [byte]; null: none, as in the paper."""

    def __post_init__(self) -> None:
        read_fields(self, mark_low=size, mark_high=size, mark_most=SHARE, threshold_rate=rate)
        read_fields(self, notification_interval=duration, alpha_interval=duration, gain=SHARE)
        read_fields(self, increase_interval=duration, increase_bytes=size, fast_stages=whole(1, 1000))
        read_fields(self, increase=rate, hyper_increase=rate, least_rate=rate, window=optional(size))
        if self.mark_high <= self.mark_low:
            raise InvalidValue("mark_high", self.mark_high, f"a size above mark_low ({self.mark_low:g} bytes)")


class DcqcnParameters(NamedTuple):
    """Parameters of DCQCN."""

    gain: float
    """g"""
    alpha_interval: float
    """Of alpha's decay [ns]"""
    increase_interval: float
    """Of the rate's timer [ns]"""
    increase_bytes: float
    """Of the rate's byte counter [byte]"""
    fast_stages: float
    """F"""
    increase: float
    """R_AI [bit/s]"""
    hyper_increase: float
    """R_HAI [bit/s]"""
    least_rate: float
    """[bit/s]"""


class DcqcnState(NamedTuple):
    """State of DCQCN."""

    window: float
    """[byte]"""
    rate: float
    """R_C [bit/s]"""
    target: float
    """R_T [bit/s]"""
    alpha: float
    """How much a notification takes"""
    alpha_at: float
    """Of its next decay [ns]"""
    timer_at: float
    """Of the rate's timer [ns]"""
    times: float
    """That the timer went off"""
    counted: float
    """Sent since the byte counter went off [byte]"""
    counts: float
    """That the byte counter went off"""
    notified: float
    """1: a notification has come; until then it sends at line rate"""


class Target(NamedTuple):
    """A rate and the target that it goes to [bit/s]."""

    rate: float
    target: float


def raised(now: Target, times: float, counts: float, line: float, F: float, R_AI: float, R_HAI: float) -> Target:
    """One event of timer or byte counter: fast recovery, additive or hyper increase (Fig. 7)."""
    target = now.target
    if max(times, counts) > F:
        step = R_AI
        if min(times, counts) > F:
            step = R_HAI * (min(times, counts) - F)
        target = min(target + step, line)
    return Target(min(0.5 * (target + now.rate), line), target)


def dcqcn_sent(state: DcqcnState, now: float, count: float, path: Path, p: DcqcnParameters) -> DcqcnState:
    """What timers and byte counter did up to `now`; `count` bytes went out since the last call."""
    if state.notified == 0.0:
        return state
    alpha = state.alpha
    alpha_at = state.alpha_at
    while alpha_at <= now:
        alpha *= 1.0 - p.gain
        alpha_at += p.alpha_interval
    line = path.line_rate
    to = Target(state.rate, state.target)
    counted = state.counted + count
    counts = state.counts
    while counted >= p.increase_bytes:
        counted -= p.increase_bytes
        counts += 1.0
        to = raised(to, state.times, counts, line, p.fast_stages, p.increase, p.hyper_increase)
    times = state.times
    timer_at = state.timer_at
    while timer_at <= now:
        timer_at += p.increase_interval
        times += 1.0
        to = raised(to, times, counts, line, p.fast_stages, p.increase, p.hyper_increase)
    return DcqcnState(state.window, to.rate, to.target, alpha, alpha_at, timer_at, times, counted, counts, 1.0)


def dcqcn_step(state: DcqcnState, seen: Acknowledged, path: Path, p: DcqcnParameters) -> DcqcnState:
    """DCQCN: on a notification R_T <- R_C, R_C <- R_C (1 - alpha/2), alpha <- (1 - g) alpha + g; counters start again.

    Source: Zhu et al., SIGCOMM 2015, section 3.1, (1) to (4) and Fig. 7.
    """
    now = dcqcn_sent(state, seen.now, 0.0, path, p)
    if not seen.notified:
        return now
    alpha = 1.0 if state.notified == 0.0 else now.alpha
    return DcqcnState(
        state.window,
        max(now.rate * (1.0 - 0.5 * alpha), p.least_rate),
        now.rate,
        (1.0 - p.gain) * alpha + p.gain,
        seen.now + p.alpha_interval,
        seen.now + p.increase_interval,
        0.0,
        0.0,
        0.0,
        1.0,
    )


def _start(scheme: Dcqcn, _: Path) -> float:
    return inf if scheme.window is None else scheme.window


def _read(scheme: Dcqcn, _: Packet) -> DcqcnParameters:
    return DcqcnParameters(
        scheme.gain,
        scheme.alpha_interval * 1e9,
        scheme.increase_interval * 1e9,
        scheme.increase_bytes,
        float(scheme.fast_stages),
        scheme.increase,
        scheme.hyper_increase,
        scheme.least_rate,
    )


def _marking(scheme: Dcqcn) -> Marking:
    return Marking(scheme.mark_low, scheme.mark_high, scheme.mark_most, scheme.threshold_rate)


DCQCN = WindowLaw(
    Dcqcn,
    DcqcnParameters,
    DcqcnState,
    _read,
    dcqcn_step,
    start=_start,
    sent=dcqcn_sent,
    marking=_marking,
    notification=lambda scheme: scheme.notification_interval,
)
