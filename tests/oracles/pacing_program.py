"""The rate of one sender, as the pacing paper's one-step program sets it: in closed form, with its bounds.

Source: pacing paper, eqs. (3) to (8). docs/explanation/pacing.md says what the law does that the paper doesn't say.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from netctrl.laws.pacing.best_rate import best_rate, clipped, freeze_deviation


class PacingProgram(NamedTuple):
    """min over least ≤ r ≤ most of ℓ̂/μ_ℓ + ψ (ℓ̂ − μ_ℓ)²/μ_v − ξ r/μ_r with ℓ̂ = ℓ_0 + b_1 r.

    RTTs in one unit and rates in one unit, whichever: b_1 is in the first over the second, μ_v in the first squared.
    """

    psi: float
    """ψ"""
    xi: float
    """ξ"""
    slope: float
    """b_1"""
    rtt_at_zero: float
    """ℓ_0, eq. (8): RTT that the model predicts for r = 0."""
    mean_rtt: float
    """μ_ℓ(n)"""
    variance: float
    """μ_v(n)"""
    mean_rate: float
    """μ_r(n − 1)"""
    least_rate: float = 0.0
    max_rate: float = inf
    """R"""


def program_rate(program: PacingProgram) -> float:
    """Eq. (7) within its bounds: r = clip(((ξ/μ_r − b_1/μ_ℓ) μ_v/(2ψ b_1) + μ_ℓ − ℓ_0)/b_1, least, most).

    The second derivative of the cost is 2ψ b_1²/μ_v, above 0 for either sign of b_1. The paper leaves out the bounds.
    """
    return clipped(best_rate(*program[:7]), program.least_rate, program.max_rate)


def program_cost(program: PacingProgram, rate: float) -> float:
    """What eq. (3) minimises, with eq. (6), at a rate."""
    predicted = program.rtt_at_zero + program.slope * rate
    off = predicted - program.mean_rtt
    spread = program.psi * off * off / program.variance
    return predicted / program.mean_rtt + spread - program.xi * rate / program.mean_rate


def freeze_threshold(program: PacingProgram) -> float:
    """d*, in the RTTs' unit: d = ℓ̂ − μ_ℓ obeys d ← d²/d* where μ_v is d², so below d* it dies and the rate freezes
    where it is; above, it grows until the rate is at R.

    d* = 2ψ b_1 / (ξ/μ_r − b_1/μ_ℓ), about 2ψ b_1 μ_r/ξ. inf: it always freezes.
    """
    return freeze_deviation(program.psi, program.xi, program.slope, program.mean_rtt, program.mean_rate)
