"""The rate of one sender, as the pacing paper's one-step program sets it: in closed form, with its bounds.

Source: pacing paper, eqs. (3) to (8). docs/explanation/pacing.md says what the law does that the paper doesn't say.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from netctrl.errors import InvalidValue, checked_number
from netctrl.laws.pacing.best_rate import best_rate, clipped, freeze_deviation, pacing_cost


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
    least_rate: float
    """0 in the paper."""
    max_rate: float
    """R"""


def pacing_program(
    *,
    psi: float,
    xi: float,
    slope: float,
    rtt_at_zero: float,
    mean_rtt: float,
    variance: float,
    mean_rate: float,
    least_rate: float = 0.0,
    max_rate: float = inf,
) -> PacingProgram:
    """The program, checked once.

    Raises
    ------
    InvalidValue
        ψ, a mean or the variance that isn't above 0, a slope of 0 (the rate would have no effect: hold it), bounds that
        exclude each other.
    """
    above = "a number above 0"
    if checked_number("slope", slope, "a number other than 0") == 0.0:
        raise InvalidValue("slope", slope, "a number other than 0: hold the rate where it has no effect on the RTT")
    least = checked_number("least_rate", least_rate, "a rate of at least 0", at_least=0.0)
    takes = f"a rate of at least least_rate, {least:g}"
    most = (
        inf
        if isinstance(max_rate, float) and max_rate == inf
        else checked_number("max_rate", max_rate, takes, at_least=least)
    )
    return PacingProgram(
        checked_number("psi", psi, above, above=0.0),
        checked_number("xi", xi, "a number of at least 0", at_least=0.0),
        float(slope),
        checked_number("rtt_at_zero", rtt_at_zero, "a number"),
        checked_number("mean_rtt", mean_rtt, above, above=0.0),
        checked_number("variance", variance, above, above=0.0),
        checked_number("mean_rate", mean_rate, above, above=0.0),
        least,
        float(most),
    )


def program_rate(program: PacingProgram) -> float:
    """Eq. (7) within its bounds: r = clip(((ξ/μ_r − b_1/μ_ℓ) μ_v/(2ψ b_1) + μ_ℓ − ℓ_0)/b_1, least, most).

    The second derivative of the cost is 2ψ b_1²/μ_v, above 0 for either sign of b_1. The paper leaves out the bounds.
    """
    return clipped(best_rate(*program[:7]), program.least_rate, program.max_rate)


def program_cost(program: PacingProgram, rate: float) -> float:
    """What eq. (3) minimises, with eq. (6), at a rate."""
    return pacing_cost(checked_number("rate", rate, "a number"), *program[:7])


def freeze_threshold(program: PacingProgram) -> float:
    """d*, in the RTTs' unit: d = ℓ̂ − μ_ℓ obeys d ← d²/d* where μ_v is d², so below d* it dies and the rate freezes
    where it is; above, it grows until the rate is at R.

    d* = 2ψ b_1 / (ξ/μ_r − b_1/μ_ℓ), about 2ψ b_1 μ_r/ξ. inf: it always freezes.
    """
    return freeze_deviation(program.psi, program.xi, program.slope, program.mean_rtt, program.mean_rate)
