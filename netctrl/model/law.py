"""Control laws as data, with units: what is simulated, exported and run."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

__all__ = [
    "AgedColumns",
    "AgedGain",
    "ArcLaw",
    "ArxPacer",
    "FirColumns",
    "FirGain",
    "LinkRateLaw",
    "LqgLaw",
    "LqiLaw",
    "MpccLaw",
    "MpccTable",
    "MyopicGain",
    "PacingLaw",
    "StaticGain",
    "TargetRttPacer",
    "TrackingLaw",
]


class ArcLaw(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind", tag="arc"):
    """Aggregate Rate Control: every epoch, p ← p + alpha (b − gamma (d C − (q − q0))), b ← 0.

    b counts what arrived in the epoch and q is what waits at its end, in packets with `alpha_per_packet` or in bytes
    with `alpha_per_byte` (then d C and q0 in bytes too). Each arrival is marked with probability p, clipped to [0, 1].

    Source: ARC paper, Algorithm 2 (which prints alpha for packets beside variables in bytes).
    """

    alpha_per_packet: float
    alpha_per_byte: float
    epoch_s: float
    target_utilization: float
    """gamma."""
    target_queue_packets: float
    """q0."""
    capacity_bit_per_s: float
    """C."""
    packet_size_bytes: float


class _Arrays(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, eq=False):
    """Its arrays can't be written."""

    def __post_init__(self) -> None:
        for field in self.__struct_fields__:
            msgspec.structs.force_setattr(self, field, _fixed(getattr(self, field)))


def _fixed(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_fixed, value))
    if isinstance(value, np.ndarray):
        value = value.view()
        value.setflags(write=False)
    return value


class _LinkRates(_Arrays, frozen=True, kw_only=True, tag_field="kind", eq=False):
    """A law for the rates of N links, as deviations from their nominal rates.

    The state x has each link's rates f_l(n), f_l(n − 1), ..., f_l(n − n_l), then the backlogs, each over the interval;
    all in bit/s, so that gains have no dimension. u is the rate to send at, f_l(n + 1) = u_l(n).
    """

    interval_s: float
    """tau."""
    links: tuple[str, ...]
    """(N,) their ids."""
    delay: np.ndarray
    """(N,) samples in each link's line, n_l."""


class StaticGain(_LinkRates, frozen=True, kw_only=True, tag="static", eq=False):
    """GOD and centralized HFTraC: u(n) = K x̂(n).

    x̂(n) is the state predicted from what was known `information_delay` samples ago and from the rates sent since; the
    state itself where that is 0.
    """

    gain: np.ndarray
    """(N, n) K."""
    information_delay: int
    """Round trip to the controller [samples]."""


class FirColumns(_Arrays, frozen=True, kw_only=True, eq=False):
    """Responses to a unit at one link e, over T samples: q = n_e + 2 columns, the first for its backlog and the others
    for the rates in its line, newest first."""

    links: np.ndarray
    """(m,) numbers of the links that respond; e is the first."""
    u: np.ndarray
    """(q, m, T) M(1), ..., M(T): commanded rates."""
    b: np.ndarray
    """(q, m, T) R(1), ..., R(T), backlog rows. Those of rates hold the commanded rates, one sample or more later, and
    what was in e's line, moving along."""


class FirGain(_LinkRates, frozen=True, kw_only=True, tag="fir", eq=False):
    """Coordinated HFTraC: δ = x − x̂, u(n) = Σ_t M(t + 1) δ(n − t), x̂(n + 1) = Σ_t R(t + 2) δ(n − t).

    Myopic HFTraC of finite length too: then a link's columns hold that link alone, and all that arrives at it is δ.

    Source: HFTraC paper, eq. (14).
    """

    columns: tuple[FirColumns, ...]
    """(N,)"""


class AgedColumns(_Arrays, frozen=True, kw_only=True, eq=False):
    """What is done about a disturbance at one link e, by its age."""

    links: np.ndarray
    """(m,) numbers of the links that respond."""
    gains: tuple[np.ndarray, ...]
    """Each (m, n) for the n states of these links, rates before backlogs: at ages 1, 2, ..., and the last for ever."""


class AgedGain(_LinkRates, frozen=True, kw_only=True, tag="aged", eq=False):
    """Exact coordinated HFTraC: u(n) is the sum over all disturbances that still show of gain(age) times what they make
    of the state, each followed by itself with the model.

    Source: the recursion of `netctrl.synthesis.localized.coordinated`.
    """

    columns: tuple[AgedColumns, ...]
    """(N,)"""


class MyopicGain(_LinkRates, frozen=True, kw_only=True, tag="myopic", eq=False):
    """Myopic HFTraC: u_l = k_l b_l + g_l f_l."""

    backlog_gain: np.ndarray
    """(N,) k_l."""
    rate_gain: np.ndarray
    """(N,) g_l."""


LinkRateLaw = StaticGain | FirGain | AgedGain | MyopicGain


class _Observer(_Arrays, frozen=True, kw_only=True, tag_field="kind", eq=False):
    """A law that follows references r for p outputs with m inputs, by an observer of n states.

    Inside, inputs and outputs are deviations from their offsets, in the model's units. v is the input that was really
    applied, within the limits: so the observer knows of saturation.
    """

    interval_s: float
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    input_units: tuple[str, ...]
    output_units: tuple[str, ...]
    input_offset: np.ndarray
    """(m,)"""
    output_offset: np.ndarray
    """(p,)"""
    low: np.ndarray
    """(m,) least inputs."""
    high: np.ndarray
    """(m,) greatest inputs."""
    A: np.ndarray
    """(n, n)"""
    B: np.ndarray
    """(n, m)"""
    C: np.ndarray
    """(p, n)"""
    D: np.ndarray
    """(p, m)"""
    L: np.ndarray
    """(n, p) estimator gain."""
    K: np.ndarray
    """(m, n) state feedback."""


class LqgLaw(_Observer, frozen=True, kw_only=True, tag="lqg", eq=False):
    """CONNET as published: u = −K x̂, x̂₊ = A x̂ + B v + L (y − r − C x̂ − D v).

    Source: CONNET paper, eqs. (2) and (3), with v, the input after saturation, as its algorithm stores.
    """


class LqiLaw(_Observer, frozen=True, kw_only=True, tag="lqi", eq=False):
    """With integral action: u = −K x̂ − K_z z, x̂₊ = A x̂ + B v + L (y − C x̂ − D v), z₊ = z + W (r − y).

    Where u leaves the limits, z is first set back along K_z' so that u is as near to v as it can (Hanus' conditioning).
    """

    W: np.ndarray
    """(q, p) combinations of outputs that follow their references."""
    integral_gain: np.ndarray
    """(m, q) K_z."""


TrackingLaw = LqgLaw | LqiLaw


class MpccTable(_Arrays, frozen=True, kw_only=True, eq=False):
    """What a sender looks up by the number of flows that telemetry tells."""

    flows: np.ndarray
    """(k,) N, one after the other."""
    gain: np.ndarray
    """(k,) K"""
    fair_window: np.ndarray
    """(k,) c [byte]"""
    B: np.ndarray
    """(k,)"""


class MpccLaw(_Arrays, frozen=True, kw_only=True, tag_field="kind", tag="mpcc", eq=False):
    """Model predictive congestion control, solved: W = clip(c − K Q, 0, P_BD), at most c − (Q − (N − 1) P_BD)/B.

    With `delayed`, of Q̄ = Q + B Σ (W(k − i) − c) over the last `delay_steps` windows, oldest first and never below 0,
    in place of Q. Where no switch has a queue, c of the hop with the least fair share.

    Source: MPCC thesis, (3.4), (3.7), (4.8) to (4.17), of which this is the exact solution (docs/mpcc.md).
    """

    delayed: bool
    flows: int
    """N that `gain`, `fair_window` and `B` are for."""
    gain: float
    """K: bytes of window for a byte of queue."""
    fair_window: float
    """c [byte]"""
    B: float
    """Bytes that the queue gains in an interval for each byte of window above c."""
    interval_s: float
    """Δt, from one acknowledgement to the next."""
    delay_steps: int
    """τ"""
    bdp_bytes: float
    """P_BD"""
    rtt_s: float
    """D"""
    rate_bit_per_s: float
    """R_in"""
    bottleneck_bit_per_s: float
    """R_out"""
    packet_size_bytes: float
    horizon: int
    queue_weight: float
    window_weight: float
    table: MpccTable | None
    """By number of flows."""


class _Pacer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind"):
    """A sender's pacing rate from its round-trip times, by one step of prediction (`netctrl.laws.pacing.pacing`)."""

    psi: float
    """ψ, weight of the predicted RTT's variance."""
    xi: float
    """ξ, weight of the rate."""
    period_s: float
    """T, least time between two rates."""
    least_rate_bit_per_s: float
    """Above 0: without packets there are no acknowledgements, and no way out."""
    max_rate_bit_per_s: float
    """R"""
    start_rate_bit_per_s: float
    """In force until enough samples have come."""


class ArxPacer(_Pacer, frozen=True, tag="arx-pacer"):
    """MPC pacing as published: ℓ̂(n) = Σ a_i ℓ(n − i) + Σ b_i r(n − i), learned as it goes, and eq. (7) with its bounds.

    Inside, RTTs are in units of `rtt_unit_s` and rates in units of `rate_unit_bit_per_s`. With `guarded`, a sample is
    used every max(T, RTT), and what docs/pacing.md lists is guarded against; else it is Algorithm 1 to the letter.

    Source: pacing paper, Algorithm 1.
    """

    past_rtts: int
    """p"""
    past_rates: int
    """q"""
    step: float
    """α"""
    normalised: bool
    """Whether α is divided by |φ|²."""
    smoothing: float
    """γ of the moving averages."""
    guarded: bool
    rtt_unit_s: float | None
    """None: the first RTT."""
    rate_unit_bit_per_s: float
    first_slope: float
    """b_1 at the start [RTT unit over rate unit]."""
    slope_floor: float
    """A b_1 below it: the rate is held [RTT unit over rate unit]."""
    deviation_floor: float
    """√μ_v is never below this share of μ_ℓ."""
    theta_limit: float
    """|θ| beyond it: the estimate starts again."""


class TargetRttPacer(_Pacer, frozen=True, tag="target-rtt-pacer"):
    """Pacing to a target RTT, without knowledge of the bottleneck: eq. (7) with the target in place of μ_ℓ, and
    ℓ̂ = F/Ĉ + (H/Ĉ)(r − Ĉ) for F in flight, a delivered rate Ĉ and a horizon H of the least RTT.

    The target is the least RTT and a share of it, clip(`queue_share` − `queue_share_slope` ln w, `least_queue_share`,
    `queue_share`) for a window of w packets, or one packet's time where that is longer: who sends more aims at less,
    so that like flows come to like rates.

    A loss ends the start, halves the rate for a round trip, and bounds the target by what the buffer held. At most two
    bandwidth-delay products, or four packets, are in flight.

    Source: docs/pacing.md, after the theory that the pacing paper leaves open.
    """

    packet_size_bytes: float
    queue_share: float
    queue_share_slope: float
    least_queue_share: float
    interval_share: float
    """A rate is set every max(T, this share of the least RTT)."""
    horizon_rtts: float
    """H over the least RTT. With half of it one flow is as good, but several share unevenly (docs/pacing.md)."""
    start_growth: float
    """Rate over delivered rate until a queue is seen for the first time."""
    growth: float
    """The same where no queue has been seen for two round trips; the greatest at any time."""
    decrease: float
    """Least rate over delivered rate."""
    probe_s: float
    """The queue is drained, to see the least RTT, every max(this, `probe_rtts` of it)."""
    probe_rtts: float
    drain_share: float
    """In flight over Ĉ times least RTT, to which a drain goes."""
    competitive: bool
    """Whether the target follows Cubic's window where a queue is seen that others keep up; needs to hear of losses."""


PacingLaw = ArxPacer | TargetRttPacer
