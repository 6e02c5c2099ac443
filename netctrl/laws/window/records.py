"""How senders in a data centre set their windows and rates: MPCC and its peers, as data.

Parameters carry their papers' names in words; where a paper gives a number, it is the default.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from netctrl.errors import InvalidValue
from netctrl.model.io.fields import (
    Duration,
    Rate,
    Size,
    duration,
    flag,
    number,
    one_of,
    optional,
    rate,
    read_fields,
    size,
    whole,
)
from netctrl.model.law import MpccLaw

__all__ = ["SCHEMES", "Dcqcn", "Dctcp", "FixedWindow", "Hpcc", "Mpcc", "Scheme", "Timely", "mpcc_scheme"]

VARIANTS = ("delay-free", "delayed", "feed-forward", "hold")
_PART = "a share above 0, below 1"


class _Scheme(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind"):
    pass


class FixedWindow(_Scheme, frozen=True, kw_only=True, tag="fixed"):
    """No control: a window that stays, or none, and line rate."""

    window: Size | None = None
    """[byte]; null: no limit."""

    def __post_init__(self) -> None:
        read_fields(self, window=optional(size))


class Mpcc(_Scheme, frozen=True, kw_only=True, tag="mpcc"):
    """Model predictive congestion control by its closed form, W = clip(c − K(N) Q, 0, P_BD).

    Source: the MPCC thesis, chapters 3 and 4, Algorithm 1 and (3.7).
    """

    variant: Literal["delay-free", "delayed", "feed-forward", "hold"] = "delay-free"
    """delayed: on the queue that (3.7) predicts; feed-forward: K = 0, W = c(N); hold: delay-free, and while all queues
    are empty the window stays, as the thesis's section 3.4 says."""
    horizon: int = 5
    """P."""
    queue_weight: float = 1.0
    """W_Q."""
    window_weight: float = 1.0
    """W_R."""
    bdp: Size | None = None
    """P_BD,max, the largest window [byte]; null: link rate times round trip of the flow's path."""
    rtt: Duration | None = None
    """D [s]; null: of the flow's path, without queues."""
    packet_size: Size | None = None
    """Of (A.1) [byte]; null: a full packet on the wire. The thesis has 1080."""
    window: Size | None = None
    """W of (A.1) [byte], by which the law steps; null: the flow's own at each acknowledgement. With it the gain is a
    table K[N]."""
    initial_window: Size | None = None
    """[byte]; null: P_BD."""

    def __post_init__(self) -> None:
        read_fields(
            self, horizon=whole(1, 1000, "a whole number of steps"), bdp=optional(size), packet_size=optional(size)
        )
        read_fields(self, queue_weight=number("a weight of at least 0, to 1e12", at_least=0.0, at_most=1e12))
        read_fields(self, window_weight=number("a weight above 0, to 1e12", above=0.0, at_most=1e12))
        read_fields(self, rtt=optional(duration), window=optional(size), initial_window=optional(size))
        read_fields(self, variant=one_of(*VARIANTS))


class Hpcc(_Scheme, frozen=True, kw_only=True, tag="hpcc"):
    """High precision congestion control: multiplicative to a target utilization by telemetry.

    Source: Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, Algorithm 1 and section 5.1.
    """

    target: float = 0.95
    """eta."""
    stages: int = 5
    """maxStage: rounds of additive increase before a multiplicative one."""
    increase: Size = 80.0
    """W_AI [byte]."""
    rtt: Duration | None = None
    """T [s]; null: the longest of all paths, without queues."""
    paced: bool = True
    """Sends at W/T between acknowledgements."""

    def __post_init__(self) -> None:
        read_fields(self, target=number(_PART, above=0.0, at_most=1.0), stages=whole(0, 1000), increase=size)
        read_fields(self, rtt=optional(duration), paced=flag)


class Dctcp(_Scheme, frozen=True, kw_only=True, tag="dctcp"):
    """Data center TCP: the window shrinks by the marked part of its packets.

    Source: Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, (1), (2) and section 3.4.
    """

    gain: float = 1.0 / 16.0
    """g of the moving average of the marked part."""
    threshold: Size = 30e3
    """K [byte], of a queue at a link of `threshold_rate`; in proportion to the rate of others."""
    threshold_rate: Rate = 1e10
    initial_window: Size | None = None
    """[byte]; null: the path's bandwidth-delay product."""
    slow_start: bool = False

    def __post_init__(self) -> None:
        read_fields(self, gain=number(_PART, above=0.0, at_most=1.0), threshold=size, threshold_rate=rate)
        read_fields(self, initial_window=optional(size), slow_start=flag)


class Timely(_Scheme, frozen=True, kw_only=True, tag="timely"):
    """Rates by the gradient of round-trip times.

    Source: Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015, Algorithm 1;
    patched: Zhu et al., "ECN or Delay: Lessons Learnt from Analysis of DCQCN and TIMELY", CoNEXT 2016, Algorithm 2.
    """

    patched: bool = False
    smoothing: float = 0.875
    """alpha: weight of the newest difference."""
    decrease: float = 0.8
    """beta. With `patched` 0.008 is the paper's."""
    low: Duration = 50e-6
    """T_low of the round trip [s]."""
    high: Duration = 500e-6
    """T_high [s]."""
    increase: Rate = 10e6
    """delta [bit/s]."""
    segment: Size = 16e3
    """Acknowledged bytes from one update to the next."""
    fast_after: int = 5
    """Updates without a rise after which the increase is five-fold (HAI)."""

    def __post_init__(self) -> None:
        read_fields(self, patched=flag, smoothing=number("a share above 0, to 1", above=0.0, at_most=1.0))
        read_fields(self, decrease=number("a share above 0, to 1", above=0.0, at_most=1.0), low=duration, high=duration)
        read_fields(self, increase=rate, segment=size, fast_after=whole(1, 1000))
        if self.high <= self.low:
            raise InvalidValue("high", self.high, f"a time above low ({self.low:g} s)")


class Dcqcn(_Scheme, frozen=True, kw_only=True, tag="dcqcn"):
    """Rates by notifications of marked packets, with fast recovery, additive and hyper increase.

    Source: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, section 3 and Fig. 14.
    """

    mark_low: Size = 5e3
    """K_min [byte], of a queue at a link of `threshold_rate`; in proportion to the rate of others."""
    mark_high: Size = 200e3
    """K_max [byte]."""
    mark_most: float = 0.01
    """P_max."""
    threshold_rate: Rate = 4e10
    notification_interval: Duration = 50e-6
    """Least time between two notifications (CNP) of a flow [s]."""
    gain: float = 1.0 / 256.0
    """g."""
    alpha_interval: Duration = 55e-6
    """Without a notification, alpha decays so often [s]."""
    increase_interval: Duration = 55e-6
    """The rate's timer [s]."""
    increase_bytes: Size = 10e6
    """The rate's byte counter."""
    fast_stages: int = 5
    """F."""
    increase: Rate = 40e6
    """R_AI [bit/s]."""
    hyper_increase: Rate = 200e6
    """R_HAI [bit/s]."""
    least_rate: Rate = 40e6
    window: Size | None = None
    """Cap of what is under way [byte]; null: none, as in the paper."""

    def __post_init__(self) -> None:
        read_fields(
            self, mark_low=size, mark_high=size, mark_most=number("a share above 0, to 1", above=0.0, at_most=1.0)
        )
        read_fields(self, threshold_rate=rate, notification_interval=duration, alpha_interval=duration)
        read_fields(self, gain=number(_PART, above=0.0, at_most=1.0), increase_interval=duration, increase_bytes=size)
        read_fields(self, fast_stages=whole(1, 1000), increase=rate, hyper_increase=rate, least_rate=rate)
        read_fields(self, window=optional(size))
        if self.mark_high <= self.mark_low:
            raise InvalidValue("mark_high", self.mark_high, f"a size above mark_low ({self.mark_low:g} bytes)")


SCHEMES = (FixedWindow, Mpcc, Hpcc, Dctcp, Timely, Dcqcn)
Scheme = FixedWindow | Mpcc | Hpcc | Dctcp | Timely | Dcqcn
"""Every kind; in a file, `kind` tells which."""


def mpcc_scheme(law: MpccLaw) -> Mpcc:
    """A Design's law as senders run it: its windows, weights, and the interval that it was certified at."""
    return Mpcc(
        variant="delayed" if law.delayed else "delay-free",
        horizon=law.horizon,
        queue_weight=law.queue_weight,
        window_weight=law.window_weight,
        bdp=law.bdp_bytes,
        rtt=law.rtt_s,
        packet_size=law.packet_size_bytes,
        window=law.packet_size_bytes * law.rtt_s / law.interval_s,
    )
