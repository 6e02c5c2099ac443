"""What simulation finds best: a weight or a rate factor, a Pareto front, the greatest utilization at a loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, log, sqrt
from typing import Any, Literal

import msgspec
import numpy as np

from netctrl.errors import (
    InvalidValue,
    NoAdmissibleDesign,
    checked_function,
    checked_kind,
    checked_number,
    checked_word,
)
from netctrl.model.law import LinkRateLaw
from netctrl.scenario.network.policy import HftracPolicy, StaticPacing
from netctrl.scenario.network.result import Estimate, NetworkSummary
from netctrl.scenario.network.scenario import NetworkScenario
from netctrl.sim.network.run import simulate_network

__all__ = [
    "OBJECTIVES",
    "LawOf",
    "MaxUtilization",
    "Tuned",
    "check_objective",
    "max_utilization",
    "pareto_front",
    "tunable",
    "tune",
]

LawOf = Callable[[NetworkScenario], LinkRateLaw | None]
"""Of a scenario the law that its policy needs: `netctrl.scenario_law`."""

OBJECTIVES = ("loss", "backlog")
_COARSE = 13
_GOLDEN = (sqrt(5.0) - 1.0) / 2.0
_RANGES = {HftracPolicy: ("mu", 1e-4, 1e2), StaticPacing: ("factor", 1.0005, 4.0)}


class Tuned(msgspec.Struct, frozen=True, kw_only=True):
    """The best value of one number of a policy."""

    field: str
    """Of the policy: mu or factor."""
    value: float
    scenario: NetworkScenario
    """With it."""
    summary: NetworkSummary
    """Of the very runs that it was chosen by, so a little too good; fresh ones have other run numbers."""
    tried: tuple[tuple[float, float, float], ...]
    """(value, loss ratio, backlog [byte]) of all that was tried, by value."""
    at_bound: bool
    """Whether the best is an end of the range: then it may lie beyond."""
    allowed: bool
    """Whether it loses at most `max_loss`. If not, nothing that was tried does, and this loses the least."""


class MaxUtilization(msgspec.Struct, frozen=True, kw_only=True):
    """The greatest utilization of the busiest link at which the loss stays within what is allowed."""

    utilization: float
    loss_ratio: Estimate
    """There."""
    low: float
    high: float
    """Utilizations at which the ends of the loss's 95 % interval would just be allowed."""


def tunable(scenario: NetworkScenario) -> str | None:
    """The number of the scenario's policy that `tune` finds, None where there is none."""
    found = _RANGES.get(type(scenario.policy))
    return None if found is None else found[0]


def tune(
    scenario: NetworkScenario,
    law: LawOf,
    *,
    objective: Literal["loss", "backlog"] = "loss",
    max_loss: float | None = None,
    low: float | None = None,
    high: float | None = None,
    runs: int = 20,
    tolerance: float = 0.02,
) -> Tuned:
    """Find mu of an `hftrac` policy, or the factor of a `static` one, by simulation.

    A grid of 13 values, even in their logarithms, then golden section around the best, all with the same random
    streams. Where one loses as little as another, the one with less backlog is the better.

    Parameters
    ----------
    scenario : NetworkScenario
    law : callable
        Of a scenario (`netctrl.scenario_law`).
    objective : {"loss", "backlog"}
        The least loss; or the least backlog of all that lose at most `max_loss`.
    max_loss : float, optional
        Of what is offered; needed for "backlog".
    low, high : float, optional
        Range, by default 1e-4 to 100 for mu and 1.0005 to 4 for a factor.
    runs : int
    tolerance : float
        Of the value, relative.

    Raises
    ------
    InvalidValue
        A policy without such a number, bounds out of order, or an objective that isn't known.
    NoAdmissibleDesign
        No value that was tried gives a design.
    """
    checked_kind("scenario", scenario, NetworkScenario)
    checked_function("law", law)
    field, *bounds = _RANGES.get(type(scenario.policy), (None, 1.0, 2.0))
    if field is None:
        takes = "hftrac (mu) or static (factor): others have nothing to tune"
        raise InvalidValue("policy", scenario.policy.__struct_config__.tag, takes)
    max_loss = check_objective(objective, max_loss)
    low = checked_number("low", bounds[0] if low is None else low, "a number above 0", above=0.0)
    high = checked_number("high", bounds[1] if high is None else high, f"a number above low ({low:g})", above=low)
    tolerance = checked_number("tolerance", tolerance, "a number from 1e-4 to 1", at_least=1e-4, at_most=1.0)
    seen: dict[float, tuple[NetworkScenario, NetworkSummary] | None] = {}

    def price(value: float) -> tuple[float, float]:
        if value not in seen:
            seen[value] = _try(scenario, law, field, value, runs)
        found = seen[value]
        if found is None:  # no design of this weight
            return np.inf, np.inf
        loss, backlog = found[1].loss_ratio.mean, found[1].backlog_bytes.mean
        return max(loss - max_loss, 0.0) if max_loss is not None else loss, backlog

    best, at_bound = _min(price, low, high, tolerance)
    chosen = seen[best]
    if chosen is None:
        raise NoAdmissibleDesign(f"no {field} from {low:g} to {high:g} gives a design")
    tried = tuple(
        (value, found[1].loss_ratio.mean, found[1].backlog_bytes.mean)
        for value, found in sorted(seen.items())
        if found is not None
    )
    allowed = max_loss is None or chosen[1].loss_ratio.mean <= max_loss
    made = {"scenario": chosen[0], "summary": chosen[1], "tried": tried}
    return Tuned(field=field, value=best, at_bound=at_bound, allowed=allowed, **made)


def check_objective(objective: str, max_loss: float | None) -> float | None:
    """`max_loss` as `tune` takes it with an objective; InvalidValue where they don't go together."""
    checked_word("objective", objective, OBJECTIVES)
    if objective == "backlog":
        takes = "a share from 0 to 1, as in 0.001: the loss up to which the backlog counts"
        return checked_number("max_loss", max_loss, takes, at_least=0.0, at_most=1.0)
    if max_loss is not None:
        raise InvalidValue("max_loss", max_loss, "no value: it is for the objective backlog")
    return None


def max_utilization(
    scenario: NetworkScenario,
    law: LawOf,
    *,
    loss: float = 1e-3,
    low: float = 0.3,
    high: float = 0.999,
    runs: int = 20,
    tolerance: float = 1e-4,
) -> MaxUtilization:
    """The greatest utilization at which the mean loss ratio is at most `loss`, by bisection with common random numbers.

    Raises
    ------
    InvalidValue
        The loss is above `loss` at `low` already, or bounds out of order.
    """
    checked_kind("scenario", scenario, NetworkScenario)
    checked_function("law", law)
    loss = checked_number("loss", loss, "a share above 0, to 1", above=0.0, at_most=1.0)
    low = checked_number("low", low, "a utilization above 0, below 1", above=0.0, at_most=1.0)
    high = checked_number("high", high, f"a utilization above low ({low:g}), to 1", above=low, at_most=1.0)
    tolerance = checked_number("tolerance", tolerance, "a number from 1e-6 to 1", at_least=1e-6, at_most=1.0)
    seen: dict[float, Estimate] = {}

    def at(utilization: float) -> Estimate:
        if utilization not in seen:
            requested = msgspec.structs.replace(scenario, utilization=utilization)
            seen[utilization] = simulate_network(requested, law(requested), runs=runs, watch=False).summary().loss_ratio
        return seen[utilization]

    def crossing(side: float) -> float:
        """Where mean + side · half width reaches `loss`."""

        def within(utilization: float) -> bool:
            found = at(utilization)
            return found.mean + side * (found.half_width or 0.0) <= loss

        if within(high):
            return high
        if not within(low):
            if side:
                return low
            raise InvalidValue(
                "low", low, f"a utilization at which at most {loss:g} is lost; there it is {at(low).mean:g}"
            )
        below, above = low, high
        while above - below > tolerance:
            middle = 0.5 * (below + above)
            below, above = (middle, above) if within(middle) else (below, middle)
        return below

    chosen = crossing(0.0)
    return MaxUtilization(utilization=chosen, loss_ratio=at(chosen), low=crossing(1.0), high=crossing(-1.0))


def pareto_front(loss: Sequence[float], backlog: Sequence[float]) -> np.ndarray:
    """Numbers of the points that no other point is at least as good as in both and better in one, by loss."""
    x, y = _numbers("loss", loss), _numbers("backlog", backlog)
    if len(x) != len(y):
        raise InvalidValue("backlog", f"{len(y)} numbers", f"as many as loss has, {len(x)}")
    front: list[int] = []
    for number in np.lexsort((y, x)):  # by loss, then by backlog: equal points follow one another
        last = front[-1] if front else None
        if last is None or y[number] < y[last] or (x[number], y[number]) == (x[last], y[last]):
            front.append(int(number))
    return np.array(front, dtype=np.int64)


def _numbers(name: str, values: Sequence[float]) -> np.ndarray:
    try:
        found = np.asarray(values, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InvalidValue(name, "what isn't all numbers", "a list of finite numbers") from None
    if found.ndim != 1 or not np.isfinite(found).all():
        got = f"an array of shape {found.shape}" if found.ndim != 1 else "a number that isn't finite"
        raise InvalidValue(name, got, "a list of finite numbers")
    return found


def _try(
    scenario: NetworkScenario, law: LawOf, field: str, value: float, runs: int
) -> tuple[NetworkScenario, NetworkSummary] | None:
    changed: dict[str, Any] = {field: value}
    requested = msgspec.structs.replace(scenario, policy=msgspec.structs.replace(scenario.policy, **changed))
    try:
        made = law(requested)
    except NoAdmissibleDesign:
        return None
    return requested, simulate_network(requested, made, runs=runs, watch=False).summary()


def _min(
    price: Callable[[float], tuple[float, float]], low: float, high: float, tolerance: float
) -> tuple[float, bool]:
    """The value of the least price, and whether it is an end of the range."""
    grid = [float(value) for value in np.geomspace(low, high, _COARSE)]
    best = min(range(_COARSE), key=lambda i: price(grid[i]))
    a, b = log(grid[max(best - 1, 0)]), log(grid[min(best + 1, _COARSE - 1)])
    c, d = b - _GOLDEN * (b - a), a + _GOLDEN * (b - a)
    tried = {grid[best]}
    while b - a > tolerance:
        tried |= {exp(c), exp(d)}
        if price(exp(c)) <= price(exp(d)):
            b, d = d, c
            c = b - _GOLDEN * (b - a)
        else:
            a, c = c, d
            d = a + _GOLDEN * (b - a)
    value = min(sorted(tried), key=price)
    return value, value in (grid[0], grid[-1])
