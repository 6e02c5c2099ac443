"""MPCC's closed form: the note's numbers, the program itself, laws, the misprint of (4.13), the door."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpcc_model import decide_from_model

from netctrl.core.errors import InfeasibleProgram, InvalidValue
from netctrl.laws.window.explicit import decide_from_table, decide_window, decide_windows
from netctrl.laws.window.riccati import riccati_gain
from netctrl.mpc.explicit import (
    ack_interval,
    fair_window,
    feasible_queue,
    queue_gain,
    queue_gain_by_sinh,
    queue_input_gain,
    window_problem,
    window_table,
)
from netctrl.mpc.formulate import condensed
from netctrl.mpc.qp.program import QPStatus
from netctrl.mpc.qp.solve import solve_qp

HORIZONS = (3, 5, 10, 20)
AGREEMENT = 1e-9
"""Of P_BD, closed form against DAQP and qpOASES; experiments/mpcc/closed_form.py has the 10,000 instances."""
# Note on MPCC, B = 1/3, WQ = 1: horizon, WR, gain.
NOTE_GAINS = [
    (1, 1.0, 0.3),
    (3, 1.0, 0.6661379857),
    (5, 1.0, 0.7957578145),
    (10, 1.0, 0.8452198244),
    (20, 1.0, 0.8471245836),
    (5, 100.0, 0.016465687),
    (20, 100.0, 0.0577077436),
]
# Section 5.2 of the thesis with P_BD = 3750 B: WR, and W at Q = 0, 100, 500, 1100, 5000.
NOTE_QUEUES = [0.0, 100.0, 500.0, 1100.0, 5000.0]
NOTE_WINDOWS = {
    1.0: [937.5, 884.007327, 670.036636, 349.080600, 0.0],
    100.0: [937.5, 931.901813, 909.509067, 875.919948, 657.590671],
}
SECTION_5_2: dict[str, Any] = {
    "bdp_bytes": 3750.0,
    "rate_in_bit_per_s": 1e9,
    "rate_out_bit_per_s": 1e9,
    "interval_s": 1080.0 * 34.752e-6 / 3750.0,
    "horizon": 5,
    "queue_weight": 1.0,
    "window_weight": 1.0,
    "most_flows": 64,
}


@pytest.mark.parametrize(("horizon", "window_weight", "gain"), NOTE_GAINS)
def test_gains_of_the_note(horizon: int, window_weight: float, gain: float) -> None:
    for found in (queue_gain, queue_gain_by_sinh, riccati_gain):
        assert found(1.0 / 3.0, horizon, 1.0, window_weight) == pytest.approx(gain, abs=6e-11)


def test_section_5_2_of_the_thesis() -> None:
    dt = ack_interval(1080.0, 34.752e-6, 3750.0)
    assert dt == pytest.approx(1.0008576e-5, rel=1e-12)
    assert queue_input_gain(dt, 4, 1e9, 3750.0) == pytest.approx(1.3344768, rel=1e-12)
    assert fair_window(1e9, 1e9, 3750.0, 4) == 937.5
    for weight, windows in NOTE_WINDOWS.items():
        table = window_table(**(SECTION_5_2 | {"window_weight": weight}))
        np.testing.assert_allclose(table.windows(NOTE_QUEUES, 4), windows, atol=6e-7)


def test_g_as_printed_in_4_13_lets_the_queue_grow() -> None:
    """(4.13) prints g = 2 (Ā x)' W̄_Q B̄', whose transpose has B̄ where the linear term has B̄'."""
    P, B, Q = 3, 0.5, 1000.0
    lower = B * np.tril(np.ones((P, P)))
    H, ones = 2.0 * (lower.T @ lower + np.eye(P)), np.ones(P)
    printed, right = 2.0 * lower @ ones * Q, 2.0 * lower.T @ ones * Q
    assert np.linalg.solve(H, -printed)[0] == pytest.approx(11.05, abs=5e-3)
    assert np.linalg.solve(H, -right)[0] == pytest.approx(-718.23, abs=5e-3)
    assert -queue_gain(B, P, 1.0, 1.0) * Q == pytest.approx(-718.23, abs=5e-3)
    # What (4.12) to (4.14) are meant to be the minimum of: J of (4.10), by its slope in u.
    requested = window_problem(
        input_gain=B, fair_window_bytes=1e4, bdp_bytes=2e4, flows=4, horizon=P, queue_weight=1.0, window_weight=1.0
    )
    program = condensed(requested)
    assert program.plan(solve_qp(program.program(np.array([Q]))).x, np.array([Q]))[0][0, 0] == pytest.approx(
        -718.23, abs=5e-3
    )


@pytest.mark.parametrize("solver", ["daqp", "qpoases"])
@pytest.mark.parametrize("horizon", HORIZONS)
def test_the_law_is_the_program(horizon: int, solver: str) -> None:
    """Random feasible programs, all flows' numbers, queues above their bound as well."""
    rng = np.random.default_rng([7, horizon])
    for _ in range(150):
        flows, bdp, B = int(rng.integers(1, 65)), 10.0 ** rng.uniform(3.0, 6.0), 10.0 ** rng.uniform(-2.0, 1.5)
        c, WR = min(bdp / flows * 10.0 ** rng.uniform(-0.5, 0.1), bdp), 10.0 ** rng.uniform(-3.0, 3.0)
        queue = rng.uniform(0.0, feasible_queue(B, c, bdp, flows)[1])
        program = condensed(
            window_problem(
                input_gain=B,
                fair_window_bytes=c,
                bdp_bytes=bdp,
                flows=flows,
                horizon=horizon,
                queue_weight=1.0,
                window_weight=WR,
            )
        )
        found = solve_qp(program.program(np.array([queue])), solver=solver)
        window = decide_window(queue, queue_gain(B, horizon, 1.0, WR), c, B, flows, bdp)
        assert abs(program.first_input(found.x, np.array([queue]))[0] + c - window) <= AGREEMENT * bdp


@settings(max_examples=50)
@given(st.integers(0, 10**6))
def test_active_bounds_are_a_prefix(seed: int) -> None:
    """Within the queue's bounds only u = −c is ever active, from the first step on; the queue never grows."""
    rng = np.random.default_rng(seed)
    flows, horizon, B = int(rng.integers(2, 30)), int(rng.integers(1, 12)), 10.0 ** rng.uniform(-2.0, 0.5)
    c = rng.uniform(0.2, 1.0) / flows
    requested = window_problem(
        input_gain=B,
        fair_window_bytes=c,
        bdp_bytes=1.0,
        flows=flows,
        horizon=horizon,
        queue_weight=1.0,
        window_weight=10.0 ** rng.uniform(-2.0, 2.0),
    )
    program = condensed(requested)
    queue = rng.uniform(0.01, flows - 1.0)
    found = solve_qp(program.program(np.array([queue])))
    u = program.plan(found.x, np.array([queue]))[0][:, 0]
    active = found.multipliers[:horizon] < -1e-12
    assert np.abs(found.multipliers[horizon:]).max() <= 1e-9  # no bound of the queue
    assert active.tolist() == sorted(active.tolist(), reverse=True)
    assert (u <= 1e-12).all()
    assert (np.diff(u) >= -1e-10).all()


WEIGHTS = st.floats(-6.0, 6.0).map(lambda e: 10.0**e)


@given(WEIGHTS, st.integers(1, 200), WEIGHTS, WEIGHTS)
def test_both_forms_of_the_gain_agree(B: float, horizon: int, WQ: float, WR: float) -> None:
    gain = queue_gain(B, horizon, WQ, WR)
    assert queue_gain_by_sinh(B, horizon, WQ, WR) == pytest.approx(gain, rel=1e-9)
    assert riccati_gain(B, horizon, WQ, WR) == pytest.approx(gain, rel=1e-9)


def test_a_window_that_costs_nothing_empties_the_queue_in_one_step() -> None:
    for found in (queue_gain, queue_gain_by_sinh):
        assert found(0.5, 7, 1.0, 0.0) == pytest.approx(2.0, rel=1e-15)


def test_nearly_no_cost_of_the_window_is_no_cost() -> None:
    for weight in (1e-6, 1e-16, 1e-300, 5e-324):
        assert riccati_gain(0.5, 7, 1e12, weight) == pytest.approx(2.0, rel=1e-12)


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.booleans())
def test_the_feasible_queues(seed: int, above: bool) -> None:
    """Just inside the program has a solution, just outside none, and then the quickest way back is W = 0."""
    rng = np.random.default_rng(seed)
    flows, B, bdp = int(rng.integers(1, 9)), 10.0 ** rng.uniform(-1.0, 0.5), 1000.0
    c = bdp / flows * rng.uniform(0.3, 1.0)
    requested = window_problem(
        input_gain=B,
        fair_window_bytes=c,
        bdp_bytes=bdp,
        flows=flows,
        horizon=int(rng.integers(1, 7)),
        queue_weight=1.0,
        window_weight=1.0,
    )
    program, ends = condensed(requested), feasible_queue(B, c, bdp, flows)
    margin = 1e-6 * bdp
    end, out = (ends[1], 1.0) if above else (ends[0], -1.0)
    assert solve_qp(program.program(np.array([end - out * margin]))).status is QPStatus.SOLVED
    with pytest.raises(InfeasibleProgram, match=r"(state 0 at step 1.*input 0 at|input 0 at.*state 0 at step 1)"):
        solve_qp(program.program(np.array([end + out * margin])))
    if above:
        assert decide_window(end + margin, 0.0, c, B, flows, bdp) == 0.0


def test_a_soft_bound_gives_the_same_beyond_the_feasible_queues() -> None:
    common: dict[str, Any] = {"input_gain": 0.3, "fair_window_bytes": 250.0, "bdp_bytes": 1000.0, "flows": 4}
    requested = window_problem(**common, horizon=5, queue_weight=1.0, window_weight=1.0, soft_weight=1e6)
    program = condensed(requested)
    queue = feasible_queue(0.3, 250.0, 1000.0, 4)[1] + 500.0
    assert program.plan(solve_qp(program.program(np.array([queue]))).x, np.array([queue]))[0][0, 0] == pytest.approx(
        -250.0, abs=1e-9
    )


def test_more_than_the_flows_can_send() -> None:
    """R_out > N R_in: the printed c is above P_BD and leaves nothing feasible; c = P_BD is what can be had."""
    assert fair_window(4e9, 1e9, 3750.0, 2) == 3750.0
    np.testing.assert_array_equal(fair_window(2e9, 1e9, 3750.0, np.array([1, 2, 4])), [3750.0, 3750.0, 1875.0])
    with pytest.raises(InvalidValue, match="no solution for small queues"):
        window_problem(
            input_gain=1.0,
            fair_window_bytes=7500.0,
            bdp_bytes=3750.0,
            flows=2,
            horizon=3,
            queue_weight=1.0,
            window_weight=1.0,
        )


def test_tables_and_kernels_say_the_same() -> None:
    table = window_table(**SECTION_5_2)
    rng = np.random.default_rng(3)
    queues, flows = rng.uniform(0.0, 3e5, 500), rng.integers(1, 65, 500)
    arrays = table.gain, table.fair_window, table.input_gain
    many = table.windows(queues, flows)
    np.testing.assert_array_equal(decide_windows(queues, flows, *arrays, 3750.0), many)
    for queue, N, window in zip(queues[:100], flows[:100], many[:100], strict=True):
        assert decide_from_table(queue, N, *arrays, 3750.0) == window
        given_window = decide_from_model(queue, N, 3750.0, 1080.0, 34.752e-6, 1e9, 1e9, 3750.0, 5, 1.0, 1.0)
        assert given_window == pytest.approx(window, abs=1e-8)
    # Below one packet dt no longer grows.
    small = [decide_from_model(500.0, 4, w, 1080.0, 34.752e-6, 1e9, 1e9, 3750.0, 5, 1.0, 1.0) for w in (0.0, 1080.0)]
    assert small[0] == small[1]


def test_a_table_may_be_long() -> None:
    table = window_table(**(SECTION_5_2 | {"most_flows": 100_000}))
    assert table.most_flows == 100_000
    for N in (1, 77, 100_000):
        assert table.gain[N] == pytest.approx(queue_gain_by_sinh(table.input_gain[N], 5, 1.0, 1.0), rel=1e-12)
    assert (table.windows(1e6, np.arange(1, 100_001)) >= 0.0).all()
    with pytest.raises(ValueError, match="read-only"):
        table.gain[1] = 0.0


@pytest.mark.parametrize(
    ("parts", "argument", "said"),
    [
        ({"horizon": 0}, "horizon", "from 1"),
        ({"horizon": 5.0}, "horizon", "from 1"),
        ({"queue_weight": 0.0}, "queue_weight", "above 0"),
        ({"queue_weight": -1.0}, "queue_weight", "above 0"),
        ({"window_weight": -1.0}, "window_weight", "at least 0"),
        ({"window_weight": 1e40}, "window_weight", "factor"),
        ({"bdp_bytes": np.nan}, "bdp_bytes", "bytes"),
        ({"rate_in_bit_per_s": 0.0}, "rate_in_bit_per_s", "above 0"),
        ({"rate_out_bit_per_s": np.inf}, "rate_out_bit_per_s", "above 0"),
        ({"interval_s": 0.0}, "interval_s", "above 0"),
        ({"interval_s": 1e12}, "input_gain", "from 1e-12 to 1e\\+12"),
        ({"most_flows": 0}, "most_flows", "from 1"),
        ({"most_flows": 10**9}, "most_flows", "to 10000000"),
    ],
)
def test_the_door(parts: dict, argument: str, said: str) -> None:
    with pytest.raises(InvalidValue, match=said) as refusal:
        window_table(**(SECTION_5_2 | parts))
    assert refusal.value.argument == argument


def test_no_flows_no_window() -> None:
    table = window_table(**SECTION_5_2)
    for flows in (0, -1, 65, 1.5, np.nan, "4", True):
        with pytest.raises(InvalidValue, match="from 1 to 64"):
            table.windows(100.0, flows)
    for queue in (-1.0, np.nan, np.inf):
        with pytest.raises(InvalidValue, match="finite numbers of bytes"):
            table.windows(queue, 4)
    with pytest.raises(InvalidValue, match="use at least one packet") as refusal:
        ack_interval(1080.0, 34.752e-6, 0.0)
    assert refusal.value.argument == "window_bytes"
    for flows in (0, "4"):
        with pytest.raises(InvalidValue, match="without flows"):
            fair_window(1e9, 1e9, 3750.0, flows)
    with pytest.raises(InvalidValue, match="at least 1"):
        feasible_queue(1.0, 10.0, 100.0, 0)
