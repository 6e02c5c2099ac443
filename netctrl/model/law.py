"""Control laws as data, with units: the records that are simulated, exported and run."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np


class ArcLaw(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind", tag="arc"):
    """Aggregate Rate Control: every epoch, p ← p + alpha (b − gamma (d C − (q − q0))), b ← 0.

    b counts the arrivals of the epoch and q is the queue at its end, in packets with `alpha_per_packet` or in bytes
    with `alpha_per_byte` (then d C and q0 are in bytes too). Each arrival is marked with probability p, clipped to
    [0, 1].

    Source: ARC paper, Algorithm 2 (which prints alpha per packet beside variables in bytes).
    """

    alpha_per_packet: float
    """Gain, with packets counted."""
    alpha_per_byte: float
    """Gain, with bytes counted."""
    epoch_s: float
    """d, from one update to the next [s]."""
    target_utilization: float
    """gamma, share of the capacity that is aimed at."""
    target_queue_packets: float
    """q0, backlog that is aimed at [packet]."""
    capacity_bit_per_s: float
    """C, capacity of the link [bit/s]."""
    packet_size_bytes: float
    """Size of a packet with its headers [byte]."""


class ArrayRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, eq=False):
    """A record whose arrays are read-only."""

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


class _LinkRates(ArrayRecord, frozen=True, kw_only=True, tag_field="kind", eq=False):
    """A law for the rates of N links, as deviations from their nominal rates.

    The state x has each link's rates f_l(n), f_l(n − 1), ..., f_l(n − n_l), then the backlogs divided by the
    interval, all in bit/s, so that gains have no dimension. u is the rate to send at, f_l(n + 1) = u_l(n).
    """

    interval_s: float
    """tau, sampling interval [s]."""
    links: tuple[str, ...]
    """(N,) ids of the links."""
    delay: np.ndarray
    """(N,) delay n_l of each link [samples]."""


class StaticGain(_LinkRates, frozen=True, kw_only=True, tag="static", eq=False):
    """GOD and centralized HFTraC: u(n) = K x̂(n).

    x̂(n) is the state predicted from data that is `information_delay` samples old and from the rates sent since; it is
    the state itself if `information_delay` is 0.
    """

    gain: np.ndarray
    """(N, n) gain K."""
    information_delay: int
    """Round-trip delay to the controller [samples]."""


class FirColumns(ArrayRecord, frozen=True, kw_only=True, eq=False):
    """Responses to a unit disturbance at one link e, over T samples.

    There are q = n_e + 2 columns: the first for the link's backlog, the others for the rates in its line, newest
    first. A truncated column is alone, q = 1: it may leave something over, and so does all that is in the line. What is
    left over is a fresh disturbance at the link where it arrives."""

    links: np.ndarray
    """(m,) indices of the links that respond; e is the first."""
    u: np.ndarray
    """(q, m, T) M(1), ..., M(T): commanded rates."""
    b: np.ndarray
    """(q, m, T) R(1), ..., R(T), backlog rows. The rows of rates hold the commanded rates, one sample or more later,
    and the initial content of e's line as it moves along."""


class FirGain(_LinkRates, frozen=True, kw_only=True, tag="fir", eq=False):
    """Coordinated HFTraC: δ = x − x̂, u(n) = Σ_t M(t + 1) δ(n − t), x̂(n + 1) = Σ_t R(t + 2) δ(n − t).

    Myopic HFTraC of finite length is such a law too: then a link's columns hold that link alone, and δ is all that
    arrives at it.

    Source: HFTraC paper, eq. (14).
    """

    columns: tuple[FirColumns, ...]
    """(N,) one for each disturbed link."""


class AgedColumns(ArrayRecord, frozen=True, kw_only=True, eq=False):
    """Response to a disturbance at one link e, by the disturbance's age."""

    links: np.ndarray
    """(m,) indices of the links that respond."""
    gains: tuple[np.ndarray, ...]
    """Each (m, n) for the n states of these links, rates before backlogs: at ages 1, 2, ..., the last one for ever."""


class AgedGain(_LinkRates, frozen=True, kw_only=True, tag="aged", eq=False):
    """Exact coordinated HFTraC: u(n) sums gain(age) times state over all disturbances that have not yet decayed.

    The state of each disturbance is propagated separately by the model.

    Source: the recursion of `netctrl.synthesis.localized.coordinated`.
    """

    columns: tuple[AgedColumns, ...]
    """(N,) one for each disturbed link."""


class MyopicGain(_LinkRates, frozen=True, kw_only=True, tag="myopic", eq=False):
    """Myopic HFTraC: u_l = k_l b_l + g_l f_l."""

    backlog_gain: np.ndarray
    """(N,) k_l."""
    rate_gain: np.ndarray
    """(N,) g_l."""


LinkRateLaw = StaticGain | FirGain | AgedGain | MyopicGain


class SignalLaw(ArrayRecord, frozen=True, kw_only=True, tag_field="kind", eq=False):
    """A law between named signals of a model: p outputs and m inputs."""

    interval_s: float
    """Sampling interval [s]."""
    inputs: tuple[str, ...]
    """Names of the m inputs."""
    outputs: tuple[str, ...]
    """Names of the p outputs."""
    input_units: tuple[str, ...]
    """Units of the inputs."""
    output_units: tuple[str, ...]
    """Units of the outputs."""
    input_offset: np.ndarray
    """(m,) inputs at the model's zero."""
    output_offset: np.ndarray
    """(p,) outputs at the model's zero."""


class _Observer(SignalLaw, frozen=True, kw_only=True, eq=False):
    """A law with which p outputs follow references r by m inputs, with an observer of n states.

    Internally, inputs and outputs are deviations from their offsets, in the model's units. v is the input after
    saturation, so the observer accounts for saturation.
    """

    low: np.ndarray
    """(m,) lowest inputs."""
    high: np.ndarray
    """(m,) highest inputs."""
    A: np.ndarray
    """(n, n) state matrix"""
    B: np.ndarray
    """(n, m) input matrix"""
    C: np.ndarray
    """(p, n) output matrix"""
    D: np.ndarray
    """(p, m) feedthrough"""
    L: np.ndarray
    """(n, p) estimator gain."""
    K: np.ndarray
    """(m, n) state feedback."""


class LqgLaw(_Observer, frozen=True, kw_only=True, tag="lqg", eq=False):
    """CONNET as published: u = −K x̂, x̂₊ = A x̂ + B v + L (y − r − C x̂ − D v).

    Source: CONNET paper, eqs. (2) and (3), with v, the input after saturation, as its algorithm stores.
    """


class LqiLaw(_Observer, frozen=True, kw_only=True, tag="lqi", eq=False):
    """CONNET with integral action: u = −K x̂ − K_z z, x̂₊ = A x̂ + B v + L (y − C x̂ − D v), z₊ = z + W (r − y).

    Where u leaves the limits, z is first set back along K_z' so that u comes as close to v as possible (Hanus'
    conditioning).
    """

    W: np.ndarray
    """(q, p) combinations of outputs that follow their references."""
    integral_gain: np.ndarray
    """(m, q) K_z."""
    curve: np.ndarray | None = None
    """(2, k) inputs, rising, and the model's inputs there: the law sends what the inverse of this table gives; offsets
    of inputs are the model's, limits those of what is sent. Null: a straight line."""


TrackingLaw = LqgLaw | LqiLaw


class MpccTable(ArrayRecord, frozen=True, kw_only=True, eq=False):
    """Gains by number of flows, for senders that receive this number by telemetry."""

    flows: np.ndarray
    """(k,) consecutive values of N."""
    gain: np.ndarray
    """(k,) gain K"""
    fair_window: np.ndarray
    """(k,) fair window c [byte]"""
    B: np.ndarray
    """(k,) B, as of the law."""


class MpccLaw(ArrayRecord, frozen=True, kw_only=True, tag_field="kind", tag="mpcc", eq=False):
    """Explicit model predictive congestion control: W = clip(c − K Q, 0, P_BD), at most c − (Q − (N − 1) P_BD)/B.

    With `delayed`, Q̄ = Q + B Σ (W(k − i) − c) over the last `delay_steps` windows, oldest first and never below 0,
    replaces Q. Where no switch has a queue, c is that of the hop with the smallest fair share.

    Source: MPCC thesis, (3.4), (3.7), (4.8) to (4.17), whose exact solution this is (docs/explanation/mpcc.md).
    """

    delayed: bool
    """Whether windows that are on their way count."""
    flows: int
    """N for which `gain`, `fair_window` and `B` are computed."""
    gain: float
    """K: reduction of the window [byte] per byte of queue."""
    fair_window: float
    """Fair window c [byte]"""
    B: float
    """Bytes that the queue gains in an interval for each byte of window above c."""
    interval_s: float
    """Δt, time between two acknowledgements [s]."""
    delay_steps: int
    """τ, windows that are on their way."""
    bdp_bytes: float
    """P_BD, bandwidth-delay product [byte]."""
    rtt_s: float
    """D, round-trip time [s]."""
    rate_bit_per_s: float
    """R_in, rate of a sender's link [bit/s]."""
    bottleneck_bit_per_s: float
    """R_out, rate of the bottleneck [bit/s]."""
    packet_size_bytes: float
    """Size of a packet with its headers [byte]."""
    horizon: int
    """P, prediction horizon [acknowledgement]."""
    queue_weight: float
    """W_Q, weight of the queue."""
    window_weight: float
    """W_R, weight of the window's deviation from c."""
    table: MpccTable | None
    """Gains by number of flows."""


class ArxPacer(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind", tag="arx-pacer"
):
    """MPC pacing as published: ℓ̂(n) = Σ a_i ℓ(n − i) + Σ b_i r(n − i), estimated online, and eq. (7) with its bounds.

    Internally, RTTs are in units of `rtt_unit_s` and rates in units of `rate_unit_bit_per_s`. With `guarded`, one
    sample is used every max(T, RTT) and the guards of docs/explanation/pacing.md apply; otherwise the law is exactly
    Algorithm 1.

    Source: pacing paper, Algorithm 1.
    """

    psi: float
    """ψ, weight of the predicted RTT's variance."""
    xi: float
    """ξ, weight of the rate."""
    period_s: float
    """T, shortest time between two rates [s]."""
    least_rate_bit_per_s: float
    """Lowest rate, above 0: without packets no acknowledgements would arrive and the rate could never rise again."""
    max_rate_bit_per_s: float
    """R, greatest rate [bit/s]."""
    start_rate_bit_per_s: float
    """Rate until enough samples have arrived [bit/s]."""
    past_rtts: int
    """p, past round-trip times in the model."""
    past_rates: int
    """q, past rates in the model."""
    step: float
    """α, step of the estimate."""
    normalised: bool
    """Whether α is divided by |φ|²."""
    smoothing: float
    """γ of the moving averages."""
    guarded: bool
    """Whether samples and estimates are guarded."""
    rtt_unit_s: float | None
    """Unit of RTTs [s]; None: the first RTT."""
    rate_unit_bit_per_s: float
    """Unit of rates inside [bit/s]."""
    first_slope: float
    """Initial b_1 [RTT unit over rate unit]."""
    slope_floor: float
    """The rate is held while b_1 is below this value [RTT unit over rate unit]."""
    deviation_floor: float
    """Lower bound of √μ_v as a share of μ_ℓ."""
    theta_limit: float
    """The estimate restarts when |θ| exceeds this value."""


class OwnRatePacer(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind", tag="own-rate-pacer"
):
    """Pacing to a queue of a + c √x packets, x the own rate [packet/s]: the equilibrium doesn't depend on round trips.

    All flows of a link see the same queueing delay q = a/x + c/√x, so all have the same rate. Each loss cuts the share
    of this queue that is kept, which time raises; a share of losses that is significantly above `tolerated_loss` cuts
    the window. All flows drain the queue together to see the least RTT; a queue that this leaves is kept by others,
    beside which the window is Cubic's.

    Source: docs/explanation/pacing.md; FAST TCP (Wei, Jin, Low, Hegde, IEEE/ACM ToN 14(6), 2006), where c = 0.
    """

    queue_packets: float = 2.0
    """a [packet]."""
    queue_packets_per_root_rate: float = 0.2
    """c [packet √s]."""
    gain: float = 0.5
    """γ, share of its error by which the window changes in a round trip."""
    tolerated_loss: float = 0.03
    """Share of losses that isn't answered."""
    cut: float = 0.15
    """Share by which significant losses cut the window, beyond the share that was lost."""
    growth: float = 1.15
    """Window over that of the round trip before, where no queue is seen."""
    noise_share: float = 0.15
    """Share of the RTTs' mean above their least, in a round trip, that is added to the queue aimed at."""
    drain_share: float = 0.95
    """Data in flight in a drain, over delivered rate times least RTT."""
    probe_s: float = 4.0
    """Drains begin at multiples of this on a clock that senders share to some 0.1 s [s]."""
    patience_drains: float = 2.0
    """Drains in a row that leave more than half of the queue, after which it is others' and the law has Cubic's window
    (RFC 9438) until a drain empties the queue; 0: never."""
    l4s: bool = False
    """Whether marks (ECN) are those of L4S: each is heard, and they limit the window as TCP Prague's. Else one cuts the
    share of the queue that is kept, or, where hardly any is, the window."""
    packet_size_bytes: float = 1500.0
    """Size of a packet with its headers [byte]."""
    least_rate_bit_per_s: float = 1e4
    """Lowest rate, above 0 [bit/s]."""
    max_rate_bit_per_s: float = 1e11
    """Highest rate [bit/s]."""
    start_rate_bit_per_s: float = 1e6
    """Rate before the first sample [bit/s]."""


PacingLaw = ArxPacer | OwnRatePacer


class QueueLaw(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind", tag="queue"):
    """A queue's law that people run, with the parameters that its implementation takes."""

    name: str
    """As in `netctrl certify NAME`."""
    implementation: str
    """Whose arithmetic, as in "Linux sch_pie"."""
    parameters: dict[str, float | int | str | bool]
    """In SI units, as in `netctrl.certify(NAME, parameters=...)`: whole steps of the implementation."""
    gains: dict[str, float]
    """As the implementation computes them: gains of an update where nothing scales them [1/s], or a line's slope."""
