"""What simulation finds best, against brute force with the same random streams, closed forms and the definition."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netctrl.core.errors import InvalidValue, NoAdmissibleDesign
from netctrl.design.hftrac.scenario_law import scenario_law
from netctrl.engines.sweep import tune_cells
from netctrl.laws.link_rate.routing import routing
from netctrl.model.network import Demand, Link, Network
from netctrl.scenario.builders import routed
from netctrl.scenario.figures import Estimate
from netctrl.scenario.network.graph import graph_of, with_utilization
from netctrl.scenario.network.policy import Backpressure, Fifo, HftracPolicy, Policy, StaticPacing
from netctrl.scenario.network.sweep import Grid, SweepSpec
from netctrl.scenario.network.traffic import GaussianTraffic
from netctrl.scenario.scenario import Scenario
from netctrl.sim.network.run import simulate_network
from netctrl.sim.network.tune import Tuned, max_utilization, pareto_front, tunable, tune

TAU = 0.01
RUNS = 4


def scenario(policy: Policy, *, std: float = 3e6, buffers: tuple[float | None, float | None] = (8e3, 3e3)):
    """Two links in a row: pacing the first spares the small buffer of the second, at the cost of its own."""
    links = (
        Link(id="ab", source="A", target="B", capacity=20e6, buffer=buffers[0]),
        Link(id="bc", source="B", target="C", capacity=9e6, buffer=buffers[1], delay=TAU),
    )
    demands = (Demand(source="A", target="C", mean=8e6, std=std),)
    network = Network(links=links, demands=demands)
    return routed(network, interval=TAU, duration=300 * TAU, warmup=0.0, control=policy)


def no_law(scenario: Scenario) -> None:
    return None


PACED = StaticPacing(links=("ab",))


def estimates(requested: Scenario, field: str, value: float) -> tuple[Estimate, Estimate]:
    """Loss ratio and backlog, from a simulation with the same streams."""
    changed: dict[str, Any] = {field: value}
    there = requested.replace(control=msgspec.structs.replace(requested.control, **changed))
    found = simulate_network(there, scenario_law(there), runs=RUNS)
    return found.interval("loss", "network"), found.interval("backlog", "network")


def measured(requested: Scenario, field: str, value: float) -> tuple[float, float]:
    """Means of these."""
    loss, backlog = estimates(requested, field, value)
    return loss.mean, backlog.mean


def check_record(found: Tuned, requested: Scenario) -> None:
    """What holds for every answer."""
    values = [value for value, _, _ in found.tried]
    assert values == sorted(set(values))
    assert getattr(found.scenario.control, found.field) == found.value
    changed: dict[str, Any] = {found.field: found.value}
    policy = msgspec.structs.replace(requested.control, **changed)
    assert found.scenario == requested.replace(control=policy)
    assert (found.loss, found.backlog) == estimates(requested, found.field, found.value)
    assert (found.value, found.loss.mean, found.backlog.mean) in found.tried


# --- tune -------------------------------------------------------------------------------------------------------------


def test_the_least_loss_is_that_of_brute_force() -> None:
    requested = scenario(PACED)
    found = tune(requested, no_law, runs=RUNS, low=1.05, high=2.4)
    check_record(found, requested)
    losses = [measured(requested, "factor", float(factor))[0] for factor in np.geomspace(1.05, 2.4, 100)]
    assert 0.0 < found.loss.mean <= 1.001 * min(losses)
    assert min(losses) < 0.8 * min(losses[0], losses[-1])  # a valley, not an end
    assert (found.field, found.at_bound, found.allowed) == ("factor", False, True)


def test_mu_is_found_with_its_designs() -> None:
    requested = scenario(HftracPolicy(architecture="god"))
    found = tune(requested, scenario_law, runs=RUNS, low=1e-3, high=10.0)
    check_record(found, requested)
    losses = [measured(requested, "mu", float(mu))[0] for mu in np.geomspace(1e-3, 10.0, 25)]
    assert 0.0 < found.loss.mean <= 1.01 * min(losses)
    assert found.field == "mu"


def test_of_values_without_loss_the_one_with_the_least_backlog_is_the_best() -> None:
    # Without losses a larger factor only ever empties the queue faster; above capacity / mean = 2.5 it changes nothing.
    requested = scenario(PACED, buffers=(None, None))
    found = tune(requested, no_law, runs=RUNS, low=1.05, high=2.4)
    check_record(found, requested)
    assert {loss for _, loss, _ in found.tried} == {0.0}
    assert found.backlog.mean == min(backlog for _, _, backlog in found.tried)
    level = tune(requested, no_law, runs=RUNS, low=2.6, high=4.0)
    assert (level.value, level.at_bound) == (2.6, True)  # all are the same: the first


def test_an_end_of_the_range_is_told() -> None:
    requested = scenario(PACED, buffers=(None, 3e3))  # nothing is lost at the first link: the slower, the better
    found = tune(requested, no_law, runs=RUNS, low=1.3, high=2.4)
    check_record(found, requested)
    assert (found.value, found.at_bound) == (pytest.approx(1.3), True)
    losses = [loss for _, loss, _ in found.tried]
    assert losses == sorted(losses)


def test_the_least_backlog_keeps_the_loss_that_is_allowed() -> None:
    requested = scenario(PACED, buffers=(None, 3e3))
    tried = [(float(factor), *measured(requested, "factor", float(factor))) for factor in np.geomspace(1.1, 2.4, 100)]
    for max_loss in (0.01, 0.02):
        found = tune(requested, no_law, objective="backlog", max_loss=max_loss, runs=RUNS, low=1.1, high=2.4)
        check_record(found, requested)
        assert found.allowed
        assert found.loss.mean <= max_loss
        best = min(backlog for _, loss, backlog in tried if loss <= max_loss)
        assert found.backlog.mean <= 1.02 * best
    free = tune(requested, no_law, objective="backlog", max_loss=1.0, runs=RUNS, low=1.1, high=2.4)
    assert free.backlog.mean <= min(backlog for _, _, backlog in tried)


def test_where_nothing_loses_as_little_the_answer_says_so() -> None:
    requested = scenario(PACED)
    found = tune(requested, no_law, objective="backlog", max_loss=0.0, runs=RUNS, low=1.05, high=2.4)
    check_record(found, requested)
    assert not found.allowed
    least = tune(requested, no_law, runs=RUNS, low=1.05, high=2.4)
    assert found.value == least.value


def test_the_same_question_has_the_same_answer_and_more_tolerance_takes_fewer_runs() -> None:
    requested = scenario(PACED)
    first, again = (tune(requested, no_law, runs=RUNS) for _ in range(2))
    assert first == again
    coarse = tune(requested, no_law, runs=RUNS, tolerance=0.5)
    assert {value for value, _, _ in coarse.tried} < {value for value, _, _ in first.tried}
    values = [value for value, _, _ in first.tried]
    assert (min(values), max(values)) == pytest.approx((1.0005, 4.0))


def test_values_without_a_design_are_passed_over() -> None:
    def picky(requested: Scenario) -> Any:
        if requested.control.mu > 0.5:  # ty: ignore[unresolved-attribute]
            raise NoAdmissibleDesign("too much")
        return scenario_law(requested)

    requested = scenario(HftracPolicy(architecture="god"))
    found = tune(requested, picky, runs=RUNS, low=0.1, high=10.0)
    assert max(value for value, _, _ in found.tried) <= 0.5
    check_record(found, requested)
    with pytest.raises(NoAdmissibleDesign, match=r"^no mu from 1 to 10 gives a design$"):
        tune(requested, picky, runs=RUNS, low=1.0, high=10.0)


@pytest.mark.parametrize(
    ("policy", "options", "expected"),
    [
        (Fifo(), {}, "control: got 'fifo', takes hftrac (mu) or static (factor): others have nothing to tune"),
        (
            Backpressure(),
            {},
            "control: got 'backpressure', takes hftrac (mu) or static (factor): others have nothing to tune",
        ),
        (PACED, {"objective": "delay"}, "objective: got 'delay', takes loss or backlog"),
        (
            PACED,
            {"objective": "backlog"},
            "max_loss: got None, takes a share from 0 to 1, as in 0.001: the loss up to which the backlog counts",
        ),
        (
            PACED,
            {"objective": "backlog", "max_loss": 1.5},
            "max_loss: got 1.5, takes a share from 0 to 1, as in 0.001: the loss up to which the backlog counts",
        ),
        (PACED, {"max_loss": 0.1}, "max_loss: got 0.1, takes no value: it is for the objective backlog"),
        (PACED, {"low": 0.0}, "low: got 0.0, takes a number above 0"),
        (PACED, {"low": 2.0, "high": 2.0}, "high: got 2.0, takes a number above low (2)"),
        (PACED, {"low": 5.0}, "high: got 4.0, takes a number above low (5)"),
        (PACED, {"high": float("inf")}, "high: got inf, takes a number above low (1.0005)"),
        (PACED, {"tolerance": 0.0}, "tolerance: got 0.0, takes a number from 1e-4 to 1"),
        (PACED, {"runs": 0}, "runs: got 0, takes a whole number from 1 to 1000000"),
    ],
)
def test_what_can_not_be_tuned_is_refused(policy: Policy, options: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        tune(scenario(policy), no_law, **options)
    assert str(caught.value) == expected


def test_what_is_tunable() -> None:
    policies = (Fifo(), Backpressure(), StaticPacing(), HftracPolicy(architecture="god"))
    assert [tunable(scenario(policy)) for policy in policies] == [None, None, "factor", "mu"]


# --- max_utilization --------------------------------------------------------------------------------------------------


def losses_at(requested: Scenario, utilizations: np.ndarray) -> np.ndarray:
    """(U, RUNS) loss ratios with the same streams."""
    return np.array(
        [
            simulate_network(with_utilization(requested, float(each)), runs=RUNS).figures()["loss", "network"]
            for each in utilizations
        ]
    )


@pytest.mark.slow
def test_the_greatest_utilization_is_that_of_brute_force() -> None:
    requested = scenario(Fifo())
    step = 4e-3
    grid = np.arange(0.3, 0.999, step)
    means = losses_at(requested, grid).mean(axis=1)
    assert (np.diff(means) >= 0.0).all()  # more traffic of the same streams loses more: one crossing
    for loss in (1e-3, 1e-2):
        found = max_utilization(requested, no_law, loss=loss, runs=RUNS, tolerance=1e-4)
        crossing = grid[means <= loss].max()
        assert crossing - 1e-4 <= found.utilization <= crossing + step
        assert found.loss_ratio.mean == losses_at(requested, np.array([found.utilization])).mean()
        assert found.loss_ratio.mean <= loss < losses_at(requested, np.array([found.utilization + 1e-4])).mean()
        assert found.low < found.utilization < found.high
        for end, side in ((found.low, 1.0), (found.high, -1.0)):
            there = simulate_network(with_utilization(requested, end), runs=RUNS).interval("loss", "network")
            assert there.half_width is not None
            assert there.mean + side * there.half_width == pytest.approx(loss, rel=0.03)


def test_a_fluid_without_fluctuations_fills_its_link() -> None:
    requested = scenario(Fifo(), std=0.0)
    found = max_utilization(requested, no_law, runs=RUNS)
    assert (found.low, found.utilization, found.high) == (0.999, 0.999, 0.999)
    assert (found.loss_ratio.mean, found.loss_ratio.half_width) == (0.0, 0.0)


@pytest.mark.parametrize("loss", [1e-9, 0.02])
def test_of_a_constant_surplus_all_but_a_buffer_is_lost(loss: float) -> None:
    # r T offered, C T sent, B kept, with r = 1.25 u C.
    capacity, buffer, scale = 10e6, 4e3, 1.25
    graph = Network(
        links=(Link(source="A", target="B", capacity=capacity, buffer=buffer),),
        demands=(Demand(source="A", target="B", mean=1e6),),
    )
    spread = GaussianTraffic(scale=scale)
    requested = routed(graph, interval=TAU, duration=300 * TAU, warmup=0.0, spread=spread)
    found = max_utilization(requested, no_law, loss=loss, runs=1, tolerance=1e-6)
    expected = (capacity + 8.0 * buffer / requested.duration) / (scale * capacity * (1.0 - loss))
    assert found.utilization == pytest.approx(expected, abs=2e-6)
    assert (found.low, found.high) == (found.utilization, found.utilization)
    assert found.loss_ratio.half_width is None


def test_where_too_much_is_lost_at_the_low_end_it_is_told() -> None:
    with pytest.raises(InvalidValue) as caught:
        max_utilization(scenario(Fifo()), no_law, loss=1e-3, low=0.9, runs=RUNS)
    lost = losses_at(scenario(Fifo()), np.array([0.9])).mean()
    assert (
        str(caught.value) == f"low: got 0.9, takes a utilization at which at most 0.001 is lost; there it is {lost:g}"
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"loss": 0.0}, "loss: got 0.0, takes a share above 0, to 1"),
        ({"low": 0.0}, "low: got 0.0, takes a utilization above 0, below 1"),
        ({"low": 0.9, "high": 0.8}, "high: got 0.8, takes a utilization above low (0.9), to 1"),
        ({"high": 1.1}, "high: got 1.1, takes a utilization above low (0.3), to 1"),
        ({"tolerance": 0.0}, "tolerance: got 0.0, takes a number from 1e-6 to 1"),
    ],
)
def test_bounds_out_of_order_are_refused(options: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        max_utilization(scenario(Fifo()), no_law, **options)
    assert str(caught.value) == expected


def test_a_law_is_made_anew_for_each_utilization() -> None:
    requested = scenario(HftracPolicy(architecture="god", mu=0.1), std=5e5)
    seen: list[float | None] = []

    def noted(there: Scenario) -> Any:
        seen.append(max(routing(graph_of(there)).load / [link.capacity for link in there.links]))
        return scenario_law(there)

    found = max_utilization(requested, noted, loss=1e-2, runs=RUNS, tolerance=1e-2)
    assert found.utilization == pytest.approx(min(seen, key=lambda each: abs(each - found.utilization)), abs=1e-9)
    assert len(seen) == len(set(seen))
    assert found.low <= found.utilization <= found.high


# --- pareto_front -----------------------------------------------------------------------------------------------------

POINTS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=30)


@given(POINTS)
def test_the_front_is_what_nothing_dominates(points: list[tuple[int, int]]) -> None:
    def dominated(x: int, y: int) -> bool:
        return any(a <= x and b <= y and (a < x or b < y) for a, b in points)

    front = pareto_front([x for x, _ in points], [y for _, y in points])
    assert sorted(front.tolist()) == [i for i, point in enumerate(points) if not dominated(*point)]
    assert [points[i] for i in front] == sorted(points[i] for i in front)
    assert front.dtype == np.int64


@pytest.mark.parametrize(
    ("loss", "backlog", "expected"),
    [
        ([1.0, 2.0], [1.0], "backlog: got '1 numbers', takes as many as loss has, 2"),
        ([1.0, np.nan], [1.0, 2.0], 'loss: got "a number that isn\'t finite", takes a list of finite numbers'),
        ([1.0], [np.inf], 'backlog: got "a number that isn\'t finite", takes a list of finite numbers'),
        ([[1.0]], [[1.0]], "loss: got 'an array of shape (1, 1)', takes a list of finite numbers"),
        (["a"], [1.0], 'loss: got "what isn\'t all numbers", takes a list of finite numbers'),
    ],
)
def test_points_are_pairs_of_finite_numbers(loss: Any, backlog: Any, expected: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        pareto_front(loss, backlog)
    assert str(caught.value) == expected


# --- the cells of a sweep ---------------------------------------------------------------------------------------------


SCALE = "flows.*.offers.spread.scale"


def swept(*grid: Grid) -> SweepSpec:
    shared = msgspec.to_builtins(scenario(PACED))
    return SweepSpec(name="tuned", scenario=shared, runs=RUNS, grid=grid)


def test_cells_that_differ_in_what_is_tuned_only_are_one() -> None:
    spec = swept(
        Grid(label="FIFO", set={"control": {"kind": "fifo"}}),
        Grid(label="static", over={SCALE: [0.9, 1.0], "control.factor": [1.2, 1.5, 2.0]}),
        Grid(label="static", set={"seed": 2}, over={"control.factor": [1.2]}),
    )
    shares: list[float] = []
    found = tune_cells(spec, no_law, objective="loss", progress=shares.append)
    assert [(cell.label, cell.values) for cell, _ in found] == [
        ("static", {SCALE: 0.9}),
        ("static", {SCALE: 1.0}),
        ("static", {}),
    ]
    assert shares == pytest.approx([1 / 3, 2 / 3, 1.0])
    for cell, best in found:
        assert best == tune(cell.scenario, no_law, runs=RUNS)


def test_what_goes_wrong_names_the_cell() -> None:
    with pytest.raises(InvalidValue) as caught:
        tune_cells(swept(Grid(set={"control": {"kind": "fifo"}})), no_law, objective="loss")
    assert str(caught.value) == "tune: got 'loss', takes a sweep with a control of kind hftrac or static"
    with pytest.raises(InvalidValue) as caught:
        tune_cells(swept(), no_law, objective="backlog")
    assert str(caught.value).startswith("max_loss: got None, takes a share from 0 to 1")

    def hopeless(requested: Scenario) -> Any:
        raise NoAdmissibleDesign("never")

    late = Grid(label="late", over={"seed": [7], "control": [{"kind": "hftrac", "architecture": "god"}]})
    with pytest.raises(NoAdmissibleDesign, match=r"^late \(seed = 7, control = a table\): no mu from 0"):
        tune_cells(swept(late), hopeless, objective="loss")
