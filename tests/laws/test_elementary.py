"""Elementary functions of laws against arithmetic of 60 digits."""

from __future__ import annotations

import math
from decimal import Decimal, getcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netctrl.laws.elementary import cube_root, logarithm

getcontext().prec = 60


def apart(found: float, exact: Decimal, unit: float) -> float:
    """Difference in units in the last place of `unit`."""
    return float(abs(Decimal(found) - exact) / Decimal(math.ulp(unit)))


@given(st.floats(1.0, 2.0**63) | st.floats(1.0, 2.0))
def test_logarithm(x: float) -> None:
    exact = Decimal(x).ln()
    assert apart(logarithm(x), exact, max(float(exact), 1.0)) <= 3.0


@given(st.floats(-12.0, 12.0).map(lambda power: 10.0**power))
def test_cube_root(x: float) -> None:
    exact = Decimal(x) ** (Decimal(1) / 3)
    assert apart(cube_root(x), exact, float(exact)) <= 1.5


@pytest.mark.parametrize("root", [1.0, 2.0, 3.0, 10.0, 100.0])
def test_exact_values(root: float) -> None:
    assert cube_root(root * root * root) == pytest.approx(root, rel=3e-16)
    assert cube_root(0.0) == logarithm(1.0) == 0.0
