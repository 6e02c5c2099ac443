"""Piecewise linear relations against the functions themselves."""

from __future__ import annotations

import os
from math import sqrt

import numpy as np
import pytest

from netctrl.checks.worst.relations import Relations, _silent, affine, valued


def ends(relations, value):
    """Least and greatest value."""
    return relations.least(value).bound, -relations.least(-value).bound


@pytest.mark.parametrize("seed", range(5))
def test_minimum_maximum_and_choice_are_exact(seed):
    rng = np.random.default_rng(seed)
    for _ in range(10):
        a, b, bit = rng.uniform(-2, 2), rng.uniform(-2, 2), int(rng.integers(2))
        relations = Relations()
        x, y, z = relations.variable(-2, 2), relations.variable(-2, 2), relations.variable(0, 1, 1)
        for variable, value in ((x, a), (y, b), (z, bit)):
            relations.equal(variable, value)
        for found, expected in (
            (relations.maximum(x, y), max(a, b)),
            (relations.minimum(x, y), min(a, b)),
            (relations.choice(z, x, y), a if bit else b),
        ):
            assert ends(relations, found) == pytest.approx((expected, expected), abs=1e-5)


@pytest.mark.parametrize(("f", "low", "high"), [(sqrt, 0.05, 1.3), (lambda u: u * u, -0.1, 0.13), (abs, -0.3, 0.2)])
def test_hulls_hold_the_curve(f, low, high):
    rng = np.random.default_rng(1)
    for u in rng.uniform(low, high, 10):
        relations = Relations()
        x = relations.variable(low, high)
        y = relations.curve(x, f)
        relations.equal(x, float(u))
        least, greatest = ends(relations, y)
        assert least - 1e-6 <= f(u) <= greatest + 1e-6


def test_hulls_hold_products_and_quotients():
    """McCormick's hull is at most half the product of the ranges wide."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        w, d = rng.uniform(0.3, 1.5), rng.uniform(1.0, 1.4)
        relations = Relations()
        x, y = relations.variable(0.3, 1.5), relations.variable(1.0, 1.4)
        product, quotient = relations.product(x, y), relations.quotient(x, y)
        relations.equal(x, w)
        relations.equal(y, d)
        for found, value, range_ in ((product, w * d, 1.2), (quotient, w / d, 1.5 - 0.3 / 1.4)):
            least, greatest = ends(relations, found)
            assert least - 1e-5 <= value <= greatest + 1e-5
            assert greatest - least <= 0.5 * range_ * 0.4 + 1e-5


def test_settled_bounds_are_those_of_the_relations():
    relations = Relations(seconds=5.0)
    x = relations.variable(-1.0, 2.0)
    found = relations.settle(relations.maximum(x, -x) + relations.minimum(x, relations.constant(0.5)))
    assert (found.low, found.high) == pytest.approx((0.0, 2.5), abs=1e-4)


def test_values_go_into_trees_and_out_again():
    relations = Relations()
    tree = {"a": [1.0, 2.0], "b": 3.0}
    assert valued(affine(relations, tree), np.empty(0)) == tree


def test_only_the_solver_is_silent(capfd):
    """What others write to the process's output meanwhile comes after."""
    with _silent():
        os.write(1, b"HighsMipSolverData: a repair\nothers' line\n")
        assert not capfd.readouterr().out
    assert capfd.readouterr().out == "others' line\n"


def test_what_is_settled_of_one_is_known_of_those_alike():
    """Unless its own range is another."""
    relations = Relations(seconds=5.0)
    like, other = [relations.variable(-1.0, 1.0) for _ in range(2)], relations.variable(-1.0, 2.0)
    found = [relations.settle(relations.maximum(x, -x)) for x in relations.alike((*like, other))]
    assert [each.high for each in found] == pytest.approx((1.0, 1.0, 2.0), abs=1e-4)
    assert found[0].low == found[1].low == pytest.approx(0.0, abs=1e-4)
