"""Exceptions that carry what a program needs and say what a person needs, and the check at the door."""

from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netctrl.core.errors import FileError, InvalidValue, NetctrlError, NoAdmissibleDesign, Status, checked_number


def test_invalid_value_carries_what_it_says() -> None:
    error = InvalidValue("rtt", "500", "a time with its unit")
    assert (error.argument, error.got, error.takes) == ("rtt", "500", "a time with its unit")
    assert str(error) == "rtt: got '500', takes a time with its unit"
    assert isinstance(error, ValueError)
    assert isinstance(error, NetctrlError)


def test_file_error_names_the_path_and_is_an_os_error() -> None:
    error = FileError("some/file", "can't be read")
    assert isinstance(error, OSError)
    assert isinstance(error, NetctrlError)
    assert (error.path, error.why) == ("some/file", "can't be read")
    assert str(error) == "some/file: can't be read"


def test_no_admissible_design_carries_the_best_one() -> None:
    best = object()
    assert NoAdmissibleDesign("none", best).design is best
    assert NoAdmissibleDesign("none").design is None


@pytest.mark.parametrize(
    "error",
    [InvalidValue("rtt", "500", "a time"), FileError("a/b", "is not JSON"), NoAdmissibleDesign("none", "best")],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("again", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))], ids=["copy", "pickle"])
def test_errors_come_back_whole_from_another_process(error, again) -> None:
    """joblib pickles what a worker raises; an exception that can't be rebuilt kills the whole pool instead."""
    other = again(error)
    assert type(other) is type(error)
    assert str(other) == str(error)
    assert vars(other) == vars(error)


@pytest.mark.parametrize("value", [3, 3.0, np.float64(3.0), np.int64(3), np.float32(3.0), Fraction(3)], ids=repr)
def test_numbers_of_any_kind_become_floats(value) -> None:
    number = checked_number("x", value, "a number")
    assert type(number) is float
    assert number == 3.0


@pytest.mark.parametrize(
    "value",
    [True, False, np.True_, None, math.nan, math.inf, -math.inf, np.nan, 10**400, 1j, "5", b"5", "five", [5.0], (5.0,)],
    ids=lambda value: repr(value)[:12],
)
def test_what_is_no_finite_number_is_refused(value) -> None:
    with pytest.raises(InvalidValue) as refusal:
        checked_number("gain", value, "a number")
    assert (refusal.value.argument, refusal.value.takes) == ("gain", "a number")
    assert refusal.value.got is value


@given(st.floats(-10, 10), st.none() | st.floats(-5, 5), st.none() | st.floats(-5, 5), st.none() | st.floats(-5, 5))
def test_bounds_are_the_ones_that_were_given(value, above, at_least, at_most) -> None:
    bounds = {"above": above, "at_least": at_least, "at_most": at_most}
    bounds = {name: bound for name, bound in bounds.items() if bound is not None}
    inside = (
        (above is None or value > above)
        and (at_least is None or value >= at_least)
        and (at_most is None or value <= at_most)
    )
    if inside:
        assert checked_number("x", value, "a number", **bounds) == value
    else:
        with pytest.raises(InvalidValue):
            checked_number("x", value, "a number", **bounds)


def test_a_bound_itself_is_in_or_out() -> None:
    assert checked_number("x", 1.0, "t", at_least=1.0, at_most=1.0) == 1.0
    with pytest.raises(InvalidValue):
        checked_number("x", 1.0, "t", above=1.0)


def test_status_is_its_word() -> None:
    """Certificates hold the word, so a program may compare either with it."""
    assert {status.name: f"{status}" for status in Status} == {
        "ADMISSIBLE": "admissible",
        "STABLE": "stable",
        "UNSTABLE": "unstable",
        "INFEASIBLE": "infeasible",
    }
    assert Status("stable") is Status.STABLE
    assert Status.STABLE == "stable"


def test_a_value_nested_too_deeply_to_show_is_refused_all_the_same() -> None:
    nested: list = []
    for _ in range(100_000):
        nested = [nested]
    assert str(InvalidValue("graph", nested, "a graph")) == "graph: got a list nested too deeply to show, takes a graph"
