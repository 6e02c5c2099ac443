"""Tuning by simulation: a weight or a rate factor, a Pareto front, the greatest utilization at a loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, log, sqrt
from typing import Any, Literal

import msgspec
import numpy as np

from netctrl.core.errors import InvalidValue, NoAdmissibleDesign, checked_function, checked_number, checked_word
from netctrl.model.law import LinkRateLaw
from netctrl.scenario.figures import Estimate
from netctrl.scenario.network.graph import with_utilization
from netctrl.scenario.network.policy import HftracPolicy, StaticPacing
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario, checked_demands
from netctrl.sim.network.run import simulate_network

LawOf = Callable[[Scenario], LinkRateLaw | None]
"""Function from a scenario to its policy's law: `netctrl.scenario_law`."""

OBJECTIVES = ("loss", "backlog")
_COARSE = 13
_GOLDEN = (sqrt(5.0) - 1.0) / 2.0
_RANGES = {HftracPolicy: ("mu", 1e-4, 1e2), StaticPacing: ("factor", 1.0005, 4.0)}


class Tuned(msgspec.Struct, frozen=True, kw_only=True):
    """Best value of one number of a policy."""

    field: str
    """Name of the policy's number: mu or factor."""
    value: float
    """Best value of the field."""
    scenario: Scenario
    """The scenario with the best value."""
    loss: Estimate
    """Share of the traffic that is lost, in the runs used for the choice, so slightly too good; use other run numbers
    for fresh results."""
    backlog: Estimate
    """Backlog of all links in these runs [byte]."""
    tried: tuple[tuple[float, float, float], ...]
    """(value, loss ratio, backlog [byte]) of all values tried, sorted by value."""
    at_bound: bool
    """Whether the best value is an end of the range, so that a better one may lie beyond."""
    allowed: bool
    """Whether it loses at most `max_loss`. If not, no value tried does, and this one has the least loss."""


class MaxUtilization(msgspec.Struct, frozen=True, kw_only=True):
    """Greatest utilization of the busiest link at which the loss stays within a limit."""

    utilization: float
    """Utilization of the busiest link."""
    loss_ratio: Estimate
    """Loss ratio at this utilization."""
    low: float
    """As `high`, the lower one."""
    high: float
    """Utilizations at which the ends of the loss's 95 % interval reach the limit."""


def tunable(scenario: Scenario) -> str | None:
    """Name of the number of the scenario's policy that `tune` finds; None where there is none."""
    found = _RANGES.get(type(scenario.control)) if scenario.under_demands else None
    return None if found is None else found[0]


def tune(
    scenario: Scenario,
    law: LawOf,
    *,
    objective: Literal["loss", "backlog"] = "loss",
    max_loss: float | None = None,
    low: float | None = None,
    high: float | None = None,
    runs: int = 20,
    tolerance: float = 0.02,
) -> Tuned:
    """Find the weight mu of an `hftrac` policy, or the factor of a `static` one, by simulation.

    A grid of 13 values, evenly spaced in their logarithms, then golden section around the best, all with the same
    random streams. Of two values with the same loss the one with less backlog is better.

    Parameters
    ----------
    scenario : Scenario
        Under demands, with an `hftrac` or `static` policy.
    law : callable
        From a scenario to its law: `netctrl.scenario_law`.
    objective : {"loss", "backlog"}
        The least loss; or the least backlog of all values that lose at most `max_loss`.
    max_loss : float, optional
        Allowed share of the offered traffic that is lost; needed for "backlog".
    low, high : float, optional
        Range, by default 1e-4 to 100 for mu and 1.0005 to 4 for a factor.
    runs : int
        Runs of each value.
    tolerance : float
        Relative accuracy of the value.

    Returns
    -------
    Tuned

    Raises
    ------
    InvalidValue
        A policy without such a number, bounds out of order, or an unknown objective.
    NoAdmissibleDesign
        No value that was tried gives a design.

    Examples
    --------
    >>> import netctrl
    >>> from netctrl.scenario.network.policy import StaticPacing
    >>> scenario = netctrl.read("hftrac-testbed").replace(duration="20s", control=StaticPacing(factor=1.1))
    >>> found = netctrl.tune(scenario, netctrl.scenario_law, runs=2, tolerance=0.5)
    >>> found.field, 1.0 < found.value < 1.5, found.at_bound
    ('factor', True, False)
    """
    checked_demands(scenario)
    checked_function("law", law)
    field, *bounds = _RANGES.get(type(scenario.control), (None, 1.0, 2.0))
    if field is None:
        takes = "hftrac (mu) or static (factor): others have nothing to tune"
        got = None if scenario.control is None else scenario.control.__struct_config__.tag
        raise InvalidValue("control", got, takes)
    max_loss = check_objective(objective, max_loss)
    low = checked_number("low", bounds[0] if low is None else low, "a number above 0", above=0.0)
    high = checked_number("high", bounds[1] if high is None else high, f"a number above low ({low:g})", above=low)
    tolerance = checked_number("tolerance", tolerance, "a number from 1e-4 to 1", at_least=1e-4, at_most=1.0)
    seen: dict[float, tuple[Scenario, Result] | None] = {}

    def price(value: float) -> tuple[float, float]:
        if value not in seen:
            seen[value] = _try(scenario, law, field, value, runs)
        found = seen[value]
        if found is None:  # no design of this weight
            return np.inf, np.inf
        loss, backlog = found[1]["loss", "network"], found[1]["backlog", "network"]
        return max(loss - max_loss, 0.0) if max_loss is not None else loss, backlog

    best, at_bound = _min(price, low, high, tolerance)
    chosen = seen[best]
    if chosen is None:
        raise NoAdmissibleDesign(f"no {field} from {low:g} to {high:g} gives a design")
    tried = tuple(
        (value, found[1]["loss", "network"], found[1]["backlog", "network"])
        for value, found in sorted(seen.items())
        if found is not None
    )
    loss, backlog = (chosen[1].interval(quantity, "network") for quantity in OBJECTIVES)
    allowed = max_loss is None or loss.mean <= max_loss
    made = {"scenario": chosen[0], "loss": loss, "backlog": backlog, "tried": tried}
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
    scenario: Scenario,
    law: LawOf,
    *,
    loss: float = 1e-3,
    low: float = 0.3,
    high: float = 0.999,
    runs: int = 20,
    tolerance: float = 1e-4,
) -> MaxUtilization:
    """Highest utilization of the busiest link at which the mean loss ratio is still allowed.

    By bisection, with the same random streams at each utilization.

    Parameters
    ----------
    scenario : Scenario
        Under demands, whose means are scaled.
    law : callable
        From a scenario to its law: `netctrl.scenario_law`.
    loss : float
        Allowed mean loss ratio.
    low, high : float
        Range of utilizations that is searched.
    runs : int
        Runs at each utilization.
    tolerance : float
        Accuracy of the utilization.

    Returns
    -------
    MaxUtilization

    Raises
    ------
    InvalidValue
        More is lost at `low` already than is allowed, or bounds out of order.

    Examples
    --------
    >>> import netctrl
    >>> scenario = netctrl.read("hftrac-testbed").replace(duration="20s")
    >>> found = netctrl.max_utilization(scenario, netctrl.scenario_law, loss=0.01, runs=2, tolerance=0.01)
    >>> found.loss_ratio.mean <= 0.01, found.low <= found.utilization <= found.high
    (True, True)
    """
    checked_demands(scenario)
    checked_function("law", law)
    loss = checked_number("loss", loss, "a share above 0, to 1", above=0.0, at_most=1.0)
    low = checked_number("low", low, "a utilization above 0, below 1", above=0.0, at_most=1.0)
    high = checked_number("high", high, f"a utilization above low ({low:g}), to 1", above=low, at_most=1.0)
    tolerance = checked_number("tolerance", tolerance, "a number from 1e-6 to 1", at_least=1e-6, at_most=1.0)
    seen: dict[float, Estimate] = {}

    def at(utilization: float) -> Estimate:
        if utilization not in seen:
            requested = with_utilization(scenario, utilization)
            found = simulate_network(requested, law(requested), runs=runs, watch=False)
            seen[utilization] = found.interval("loss", "network")
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
    """Points of the trade-off between loss and backlog that no other point dominates.

    A point dominates another one if it is at least as good in both and better in one.

    Parameters
    ----------
    loss, backlog : sequence of float, length n
        Coordinates of the points; less is better.

    Returns
    -------
    ndarray of int
        Indices of the points, by rising loss.

    Raises
    ------
    InvalidValue
        Sequences of different lengths, or an entry that isn't a finite number.

    Examples
    --------
    >>> import netctrl
    >>> netctrl.pareto_front(loss=[0.01, 0.02, 0.03], backlog=[5e3, 6e3, 1e3]).tolist()
    [0, 2]
    """
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


def _try(scenario: Scenario, law: LawOf, field: str, value: float, runs: int) -> tuple[Scenario, Result] | None:
    changed: dict[str, Any] = {field: value}
    requested = scenario.replace(control=msgspec.structs.replace(scenario.control, **changed))
    try:
        made = law(requested)
    except NoAdmissibleDesign:
        return None
    return requested, simulate_network(requested, made, runs=runs, watch=False)


def _min(
    price: Callable[[float], tuple[float, float]], low: float, high: float, tolerance: float
) -> tuple[float, bool]:
    """Value of least price, and whether it is an end of the range."""
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
