"""StateSpace: what it takes, that nobody can change it afterwards, and the way to python-control and back."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle

import control
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from netctrl import InvalidValue, StateSpace

A, B, C, D = [[0.0, 1.0], [-2.0, -3.0]], [[0.0], [1.0]], [[1.0, 0.0]], [[0.5]]
NAMES = ("A", "B", "C", "D")


def entries(*shape: int):
    return arrays(float, shape, elements=st.floats(-1e6, 1e6))


@st.composite
def systems(draw) -> StateSpace:
    n, m, p = draw(st.tuples(st.integers(0, 4), st.integers(1, 3), st.integers(1, 3)))
    dt = draw(st.sampled_from([0.0, 0.1, 2.0]))
    return StateSpace(draw(entries(n, n)), draw(entries(n, m)), draw(entries(p, n)), draw(entries(p, m)), dt)


def test_fields_are_float_matrices_and_counts_follow() -> None:
    system = StateSpace([[0, 1], [-2, -3]], [[0], [1]], [[1, 0], [0, 1], [1, 1]], dt=1)
    assert (system.n_states, system.n_inputs, system.n_outputs) == (2, 1, 3)
    assert all(getattr(system, name).dtype == float for name in NAMES)
    assert system.D.tolist() == [[0.0], [0.0], [0.0]]
    assert type(system.dt) is float


def test_a_scalar_system_may_be_written_as_numbers() -> None:
    assert StateSpace(-1, 1, 1, 0) == StateSpace([[-1.0]], [[1.0]], [[1.0]], [[0.0]])


def test_time_is_continuous_unless_said() -> None:
    assert StateSpace(A, B, C).dt == 0.0


def test_input_is_copied_and_result_is_read_only() -> None:
    given_arrays = [np.array(value) for value in (A, B, C, D)]
    before = [array.copy() for array in given_arrays]
    system = StateSpace(*given_arrays)
    for array in given_arrays:
        assert array.flags.writeable
        array += 7.0
    for name, array in zip(NAMES, before, strict=True):
        assert np.array_equal(getattr(system, name), array)
        with pytest.raises(ValueError, match="read-only"):
            getattr(system, name)[0, 0] = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        system.dt = 1.0  # ty: ignore[invalid-assignment]


@pytest.mark.parametrize(
    ("argument", "matrices", "shape"),
    [
        ("A", ([[1.0, 2.0]], B, C, D), "(1, 1)"),
        ("A", (np.zeros((2, 2, 2)), B, C, D), "any"),
        ("B", (A, [0.0, 1.0], C, D), "(2, any)"),
        ("B", (A, [[1.0]], C, D), "(2, any)"),
        ("C", (A, B, [[1.0], [0.0]], D), "(any, 2)"),
        ("D", (A, B, C, [[1.0, 2.0]]), "(1, 1)"),
    ],
)
def test_a_shape_that_does_not_fit_is_named_with_the_one_that_would(argument, matrices, shape) -> None:
    with pytest.raises(InvalidValue) as refusal:
        StateSpace(*matrices)
    assert refusal.value.argument == argument
    assert str(np.array(matrices[NAMES.index(argument)], ndmin=2).shape) in str(refusal.value.got)
    assert shape in refusal.value.takes


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, "one", None, [1.0, [2.0]], 1 + 1j, np.array(1 + 1j)],
    ids=["nan", "inf", "text", "None", "ragged", "complex", "complex array"],
)
def test_entries_are_finite_and_real(value) -> None:
    with pytest.raises(InvalidValue) as refusal:
        StateSpace([[value]] if np.ndim(np.array(value, dtype=object)) == 0 else value, 1, 1)
    assert refusal.value.argument == "A"


@pytest.mark.parametrize("dt", [None, True, False, -0.1, math.nan, math.inf, "1s"], ids=repr)
def test_dt_is_zero_or_seconds(dt) -> None:
    with pytest.raises(InvalidValue, match="seconds") as refusal:
        StateSpace(A, B, C, D, dt)
    assert refusal.value.argument == "dt"


@given(systems(), st.data())
def test_equality_is_of_every_entry_and_of_dt(system, data) -> None:
    values = {name: getattr(system, name) for name in NAMES} | {"dt": system.dt}
    assert StateSpace(**values) == system
    assert StateSpace(**(values | {"dt": system.dt + 0.5})) != system
    name = data.draw(st.sampled_from([name for name in NAMES if values[name].size]))
    changed = values[name].copy()
    changed.flat[data.draw(st.integers(0, changed.size - 1))] += 1.0
    assert StateSpace(**(values | {name: changed})) != system


def test_other_shapes_and_other_types_are_unequal_and_nothing_hashes() -> None:
    system = StateSpace(A, B, C, D)
    assert system != StateSpace(-1, 1, 1)
    assert system != (A, B, C, D)
    with pytest.raises(TypeError):
        hash(system)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))], ids=["deepcopy", "pickle"])
def test_a_copy_is_equal_and_still_read_only(again) -> None:
    """Runs in parallel send models through pickle; NumPy forgets there that an array was read-only."""
    system = StateSpace(A, B, C, D, 0.1)
    other = again(system)
    assert other == system
    assert not any(getattr(other, name).flags.writeable for name in NAMES)


@given(systems())
def test_round_trip_through_python_control(system) -> None:
    there = system.to_control()
    assert isinstance(there, control.StateSpace)
    assert there.dt == system.dt
    assert control.isctime(there, strict=True) == (system.dt == 0.0)
    for name in NAMES:
        assert np.array_equal(getattr(there, name), getattr(system, name))
    assert StateSpace.from_control(there) == system


@pytest.mark.parametrize("dt", [0, 0.1])
def test_from_python_control_keeps_the_response_and_no_alias(dt) -> None:
    theirs = control.ss(np.array(A), np.array(B), np.array(C), np.array(D), dt)
    ours = StateSpace.from_control(theirs)
    point = 0.3 + 0.7j
    expected = (ours.C @ np.linalg.solve(point * np.eye(2) - ours.A, ours.B) + ours.D)[0, 0]
    assert theirs(point) == pytest.approx(expected, rel=1e-12)
    theirs.A[0, 0] = 99.0
    assert ours.A[0, 0] == 0.0


@pytest.mark.parametrize("dt", [None, True])
def test_an_unspecified_sampling_time_is_refused_with_the_remedy(dt) -> None:
    theirs = control.ss(A, B, C, D, dt)
    with pytest.raises(InvalidValue, match="in seconds") as refusal:
        StateSpace.from_control(theirs)
    assert refusal.value.got is dt
    assert "dt" in refusal.value.argument


@pytest.mark.parametrize("system", [control.tf([1.0], [1.0, 1.0]), "a system", None], ids=["tf", "text", "None"])
def test_from_control_takes_a_control_statespace_only(system) -> None:
    """A transfer function has no one realisation: control.ss(...) is the user's choice to make."""
    with pytest.raises(InvalidValue) as refusal:
        StateSpace.from_control(system)
    assert "StateSpace" in refusal.value.takes or "control.ss" in refusal.value.takes


def test_to_pandas_is_the_block_matrix_with_names() -> None:
    table = StateSpace(A, [[0.0, 3.0], [1.0, 4.0]], C, [[0.5, 0.6]]).to_pandas()
    assert list(table.index) == ["x0", "x1", "y0"]
    assert list(table.columns) == ["x0", "x1", "u0", "u1"]
    assert table.loc["x1", "x0"] == -2.0
    assert table.loc["x0", "u1"] == 3.0
    assert table.loc["y0", "x0"] == 1.0
    assert table.loc["y0", "u1"] == 0.6


def test_html_says_sizes_time_and_poles() -> None:
    html = StateSpace(A, B, C, D)._repr_html_()
    assert "<table>" in html
    assert "2, 1, 1" in html
    assert "continuous" in html
    assert "-1" in html
    assert "-2" in html
    assert "0.1 s" in StateSpace(A, B, C, D, 0.1)._repr_html_()
    assert "…" in StateSpace(np.eye(9), np.ones((9, 1)), np.ones((1, 9)))._repr_html_()
    assert "poles" not in StateSpace(np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((1, 0)), 2)._repr_html_()
