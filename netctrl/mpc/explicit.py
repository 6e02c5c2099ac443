"""MPCC's quadratic program in closed form: gain, law, feasible queues, and a table of gains.

The proof is in docs/explanation/mpcc.md. The per-packet code is compiled: `netctrl.laws.window.explicit`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from netctrl.core.errors import InvalidValue, checked_number, checked_numbers, checked_whole
from netctrl.core.units import BITS_PER_BYTE
from netctrl.model.statespace import StateSpace
from netctrl.mpc.problem import MpcProblem

_MAX_FLOWS = 10_000_000
_MAX_STEPS = 100_000
_MAX_GAIN = 1e12  # far beyond any network; no overflow within this bound
_MAX_RATIO = 1e30


@dataclass(frozen=True, slots=True, eq=False)
class WindowTable:
    """The law W = clip(c − K Q, 0, P_BD) for each number of flows at the bottleneck.

    Above the queue's bound (N − 1) P_BD, W is at most c − (Q − (N − 1) P_BD)/B, the fastest return to the bound.
    """

    bdp_bytes: float
    """P_BD: greatest window [byte]."""
    gain: np.ndarray
    """(N_max + 1,) K for 0 .. N_max flows; the entry for 0 flows is that for 1."""
    fair_window: np.ndarray
    """(N_max + 1,) c [byte], at most P_BD."""
    input_gain: np.ndarray
    """(N_max + 1,) B: bytes that a byte of each window adds to the queue in one interval."""
    horizon: int
    queue_weight: float
    window_weight: float

    def __post_init__(self) -> None:
        for part in (self.gain, self.fair_window, self.input_gain):
            part.setflags(write=False)

    @property
    def most_flows(self) -> int:
        """Greatest number of flows in the table, N_max."""
        return len(self.gain) - 1

    def windows(self, queue_bytes: Any, flows: Any) -> np.ndarray:
        """Windows [byte] for queues [byte] and numbers of flows, arrays that broadcast.

        Raises
        ------
        InvalidValue
            A queue below 0 or not finite; flows below 1, above the table or not whole.
        """
        from netctrl.laws.window.explicit import decide_windows

        queue, count = np.asarray(queue_bytes, dtype=float), np.asarray(flows)
        if not (np.isfinite(queue).all() and (queue >= 0.0).all()):
            raise InvalidValue("queue_bytes", queue_bytes, "finite numbers of bytes of at least 0")
        known = count.dtype.kind in "iuf" and ((count >= 1) & (count <= self.most_flows)).all()  # NaN is neither
        if not known or (count % 1 != 0).any():
            takes = f"whole numbers from 1 to {self.most_flows}: without flows there is no queue to control"
            raise InvalidValue("flows", flows, takes)
        shape = np.broadcast_shapes(queue.shape, count.shape)
        each = (
            np.array(np.broadcast_to(queue, shape)).ravel(),
            np.array(np.broadcast_to(count, shape), np.int64).ravel(),
        )
        return decide_windows(*each, self.gain, self.fair_window, self.input_gain, self.bdp_bytes).reshape(shape)


def queue_gain(input_gain: Any, horizon: int, queue_weight: float, window_weight: float) -> Any:
    """Gain K_P of u = −K_P Q, the first input that minimises Σ_{k=1..P} WQ Q_k² + WR u_{k−1}² on Q₊ = Q + B u.

    s = WQ; P − 1 times s = WQ + s WR/(WR + B² s); K_P = B s/(WR + B² s).

    Parameters
    ----------
    input_gain : array_like
        B, dimensionless (bytes of queue per byte of window).
    horizon : int
        P, at least 1.
    queue_weight, window_weight : float
        WQ above 0 and WR at least 0.

    Raises
    ------
    InvalidValue
        A value out of these bounds.

    Source: the scalar Riccati recursion; MPCC thesis, Sections 4.4 and 4.5.
    """
    B, P, WQ, WR = _checked(input_gain, horizon, queue_weight, window_weight)
    # s in units of WQ and WR in units of B² WQ, independent of the user's units.
    r = WR / (WQ * B * B)
    s = np.ones_like(r)
    for _ in range(P - 1):
        s = 1.0 + s * r / (r + s)
    found = s / (r + s) / B
    return float(found) if found.ndim == 0 else found


def queue_gain_by_sinh(input_gain: Any, horizon: int, queue_weight: float, window_weight: float) -> Any:
    """Gain K_P = (2y/B) sinh(Pθ)/cosh((P + ½)θ) with y = (B/2) √(WQ/WR), θ = 2 asinh(y); arguments of `queue_gain`.

    Computed without overflowing hyperbolic functions: sinh/cosh = e^(−θ/2) (1 − e^(−2Pθ))/(1 + e^(−(2P+1)θ)).
    """
    B, P, WQ, WR = _checked(input_gain, horizon, queue_weight, window_weight)
    if WR == 0.0:
        found = 1.0 / B
        return float(found) if found.ndim == 0 else found
    y = 0.5 * B * np.sqrt(WQ / WR)
    half = np.arcsinh(y)
    ratio = np.exp(-half) * -np.expm1(-4.0 * P * half) / (1.0 + np.exp(-2.0 * (2 * P + 1) * half))
    found = 2.0 * y / B * ratio
    return float(found) if found.ndim == 0 else found


def ack_interval(packet_bytes: float, rtt_s: float, window_bytes: float) -> float:
    """Time between two acknowledgements of a flow [s], dt = packet · D/W.

    Raises
    ------
    InvalidValue
        A window of 0 (without acknowledgements), or numbers that aren't finite and above 0.

    Source: MPCC thesis (A.1).
    """
    packet = checked_number("packet_bytes", packet_bytes, "a size above 0 in bytes", above=0.0)
    rtt = checked_number("rtt_s", rtt_s, "a time above 0 in seconds", above=0.0)
    takes = "a window above 0 in bytes: with 0 there are no acknowledgements; use at least one packet"
    return packet * rtt / checked_number("window_bytes", window_bytes, takes, above=0.0)


def queue_input_gain(interval_s: float, flows: Any, rate_in_bit_per_s: float, bdp_bytes: float) -> Any:
    """Input gain B = dt N R_in/(8 P_BD): bytes of queue per byte of all N windows in an interval; flows broadcast.

    Source: MPCC thesis (3.4), with R_in = R W/P_BD (its text has a spurious dt there).
    """
    dt = checked_number("interval_s", interval_s, "a time above 0 in seconds", above=0.0)
    rate = checked_number("rate_in_bit_per_s", rate_in_bit_per_s, "a rate above 0 in bit/s", above=0.0)
    bdp = checked_number("bdp_bytes", bdp_bytes, "a size above 0 in bytes", above=0.0)
    return dt * _flows(flows) * rate / (BITS_PER_BYTE * bdp)


def fair_window(rate_out_bit_per_s: float, rate_in_bit_per_s: float, bdp_bytes: float, flows: Any) -> Any:
    """Fair window c = R_out P_BD/(R_in N), at most P_BD [byte], at which the queue is constant; flows broadcast.

    Where R_out > N R_in the flows can't fill the link, and with the printed c > P_BD the program has no solution.

    Source: MPCC thesis (3.4), (4.1).
    """
    out = checked_number("rate_out_bit_per_s", rate_out_bit_per_s, "a rate above 0 in bit/s", above=0.0)
    rate = checked_number("rate_in_bit_per_s", rate_in_bit_per_s, "a rate above 0 in bit/s", above=0.0)
    bdp = checked_number("bdp_bytes", bdp_bytes, "a size above 0 in bytes", above=0.0)
    return np.minimum(out * bdp / (rate * _flows(flows)), bdp)


def feasible_queue(input_gain: float, fair_window_bytes: float, bdp_bytes: float, flows: int) -> tuple[float, float]:
    """Least and greatest queue Q for which the program has a solution, whatever its horizon [byte].

    −B (P_BD − c) ≤ Q ≤ (N − 1) P_BD + B c: one step must lead to within the queue's bounds, where u = 0 keeps it.
    """
    B = checked_number("input_gain", input_gain, "a number above 0", above=0.0)
    bdp = checked_number("bdp_bytes", bdp_bytes, "a size above 0 in bytes", above=0.0)
    takes = "a size from 0 to the bandwidth-delay product: above it the program has no solution for small queues"
    c = checked_number("fair_window_bytes", fair_window_bytes, takes, at_least=0.0, at_most=bdp)
    N = checked_whole("flows", flows, "a whole number of flows of at least 1", at_least=1)
    return -B * (bdp - c), (N - 1) * bdp + B * c


def window_table(
    *,
    bdp_bytes: float,
    rate_in_bit_per_s: float,
    rate_out_bit_per_s: float,
    interval_s: float,
    horizon: int,
    queue_weight: float,
    window_weight: float,
    most_flows: int,
) -> WindowTable:
    """Table of the law's gains K[N], fair windows c[N] and input gains B[N] for N = 1 .. `most_flows`.

    Raises
    ------
    InvalidValue
        Arguments that `queue_gain`, `queue_input_gain` or `fair_window` reject, or more than ten million flows.
    """
    takes = f"a whole number of flows from 1 to {_MAX_FLOWS}"
    most = checked_whole("most_flows", most_flows, takes, at_least=1, at_most=_MAX_FLOWS)
    N = np.maximum(np.arange(most + 1), 1)
    B = queue_input_gain(interval_s, N, rate_in_bit_per_s, bdp_bytes)
    c = fair_window(rate_out_bit_per_s, rate_in_bit_per_s, bdp_bytes, N)
    K = queue_gain(B, horizon, queue_weight, window_weight)
    return WindowTable(float(bdp_bytes), K, c, B, int(horizon), float(queue_weight), float(window_weight))


def window_problem(
    *,
    input_gain: float,
    fair_window_bytes: float,
    bdp_bytes: float,
    flows: int,
    horizon: int,
    queue_weight: float,
    window_weight: float,
    soft_weight: float = np.inf,
) -> MpcProblem:
    """MPCC's program as an `MpcProblem` for solvers: state Q [byte], input u = W − c [byte], intervals of 1.

    −c ≤ u ≤ P_BD − c, 0 ≤ Q ≤ (N − 1) P_BD, weights on Q(1) .. Q(P).

    Source: MPCC thesis (4.2), (4.3), (4.10).
    """
    feasible_queue(input_gain, fair_window_bytes, bdp_bytes, flows)
    _checked(input_gain, horizon, queue_weight, window_weight)
    return MpcProblem(
        plant=StateSpace([[1.0]], [[input_gain]], [[1.0]], dt=1.0),
        horizon=horizon,
        state_weight=queue_weight,
        input_weight=window_weight,
        state_lower=0.0,
        state_upper=(flows - 1) * bdp_bytes,
        input_lower=-fair_window_bytes,
        input_upper=bdp_bytes - fair_window_bytes,
        soft_weight=soft_weight,
        input_scale=bdp_bytes,
        state_scale=input_gain * bdp_bytes,
    )


def _checked(
    input_gain: Any, horizon: int, queue_weight: float, window_weight: float
) -> tuple[np.ndarray, int, float, float]:
    B = checked_numbers("input_gain", input_gain, "numbers above 0: B = dt N R_in/(8 P_BD)")
    if not ((B >= 1.0 / _MAX_GAIN) & (B <= _MAX_GAIN)).all():  # NaN is neither
        takes = f"numbers from {1.0 / _MAX_GAIN:g} to {_MAX_GAIN:g}: B = dt N R_in/(8 P_BD)"
        raise InvalidValue("input_gain", input_gain, takes)
    takes = f"a number of steps from 1 to {_MAX_STEPS}"
    P = checked_whole("horizon", horizon, takes, at_least=1, at_most=_MAX_STEPS)
    WQ = checked_number("queue_weight", queue_weight, "a weight above 0: with 0 the queue is not controlled", above=0.0)
    WR = checked_number("window_weight", window_weight, "a weight of at least 0", at_least=0.0)
    if WR > 0.0 and not 1.0 / _MAX_RATIO <= WQ / WR <= _MAX_RATIO:
        raise InvalidValue(
            "window_weight", window_weight, f"0, or a weight within a factor of {_MAX_RATIO:g} of the queue's"
        )
    return B, P, WQ, WR


def _flows(flows: Any) -> np.ndarray:
    N = np.asarray(flows)
    if N.dtype.kind not in "iuf" or not (np.isfinite(N).all() and (N >= 1).all()):
        raise InvalidValue("flows", flows, "numbers of flows of at least 1: without flows there is no queue to control")
    return N
