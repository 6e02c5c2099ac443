"""Closed forms of sums over aliases, against the sums themselves."""

from __future__ import annotations

import numpy as np
import pytest

from netctrl.plants.aliases import SMALL_ANGLE, held_aliases, turned

SMALL, LARGE = np.array([1e-3, 0.02, 0.0999]), np.array([0.1001, 0.7, 2.0, 3.1, np.pi])
MIXED = np.concatenate([SMALL, LARGE])
TERMS = 200_000


def summed(angle: float, delay: float, third: float, fourth: float, second: float = 0.0) -> complex:
    """All aliases up to a number that leaves some 1e-11, without the main one at small angles."""
    m = np.arange(-TERMS, TERMS + 1)
    m = m[m != 0] if angle <= SMALL_ANGLE else m
    s = 1j * (angle + 2.0 * np.pi * m)
    return complex((np.exp(-s * delay) * (second / s**2 + third / s**3 + fourth / s**4)).sum())


@pytest.mark.parametrize("angles", [SMALL, LARGE, MIXED])
@pytest.mark.parametrize(
    ("delay", "third", "fourth"), [(0.3, 2.0, -1.5), (4.75, -0.4, 3.0), (2.0, 1.0, 1.0), (7.1, 0.0, 2.0)]
)
def test_closed_forms_are_the_sums_of_all_aliases(angles, delay: float, third: float, fourth: float) -> None:
    found = held_aliases(angles, *(np.array([each]) for each in (delay, third, fourth)))
    expected = [summed(angle, delay, third, fourth) for angle in angles]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("delay", [0.0, 0.3, 2.0, 4.75])
def test_terms_that_fall_as_the_square_only(delay: float) -> None:
    """To 2/(2 pi)²/TERMS = 3e-7."""
    zero, second = np.zeros(1), np.array([1.7])
    found = held_aliases(MIXED, np.array([delay]), zero, np.array([0.6]), second)
    expected = [summed(angle, delay, 0.0, 0.6, 1.7) for angle in MIXED]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=5e-7)


@pytest.mark.parametrize("angles", [SMALL, LARGE, MIXED])
def test_arrays_of_points_are_their_single_points(angles: np.ndarray) -> None:
    rng = np.random.default_rng(1)
    delay, third, fourth = rng.uniform(0.0, 9.0, (4, 1)), rng.normal(size=(4, 1)), rng.normal(size=(4, 1))
    found = held_aliases(angles, delay, third, fourth)
    assert found.shape == (4, len(angles))
    for row, *point in zip(found, delay, third, fourth, strict=True):
        each = [held_aliases(np.array([angle]), *point)[0] for angle in angles]
        np.testing.assert_allclose(row, each, rtol=1e-13)
    without = held_aliases(angles, delay, np.zeros(()), fourth)
    np.testing.assert_allclose(without + held_aliases(angles, delay, third, 0.0 * fourth), found, rtol=1e-12)


def test_sums_continue_off_the_unit_circle() -> None:
    angle = 0.7 + 0.2j
    s = 1j * (angle + 2.0 * np.pi * np.arange(-TERMS, TERMS + 1))
    expected = (np.exp(-s * 1.4) * (0.8 / s**3 - 2.0 / s**4)).sum()
    found = held_aliases(np.array([angle]), np.array([1.4]), np.array([0.8]), np.array([-2.0]))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("count", [3, 1000])
def test_turned_angles_are_complex_exponentials_also_at_half_turns(count: int) -> None:
    angles = np.append(np.random.default_rng(2).uniform(-300.0, 300.0, count), np.pi * np.arange(-9.0, 9.0))
    np.testing.assert_allclose(turned(angles), np.exp(-1j * angles), rtol=0.0, atol=1e-15)
    np.testing.assert_allclose(turned(angles + 0.5j), np.exp(-1j * angles + 0.5), rtol=1e-14)
