"""Loops of several signals: counts of turns and proofs on known functions, eigenvalues, the multi-loop disk margin."""

from __future__ import annotations

from math import pi

import numpy as np
import pytest

from netctrl.core.errors import NetctrlError
from netctrl.frequency.matrix import (
    Discs,
    avoids_zero,
    gain_crossovers,
    greatest_held,
    half_turns,
    locus,
    mu_bound,
    multiloop_disk_margin,
    negative_real,
    scan_angles,
    whole,
)


def polynomial(*roots: float) -> Discs:
    """Π (z − k root)/z on the unit circle with the gain k, and discs by its greatest slope."""

    def discs(centre: np.ndarray, half: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        z, gain = np.exp(1j * centre[:, 0]), centre[:, 1]
        values = np.prod([1.0 - gain * root / z for root in roots], axis=0)
        most = max(abs(root) for root in roots)
        far = gain + half[:, 1]
        rest = (1.0 + far * most) ** (len(roots) - 1) * len(roots) * most
        return values, np.stack([rest * far * half[:, 0], rest * half[:, 1], 0.0 * gain], axis=1)

    return discs


@pytest.mark.parametrize(("roots", "outside"), [((0.5, -0.9), 0), ((1.02, 0.3), 1), ((1.5, -1.01, 0.99), 2)])
def test_half_turns_count_zeros_outside_of_the_unit_circle(roots: tuple[float, ...], outside: int) -> None:
    assert whole(-half_turns(polynomial(*roots), (0.0, pi))) == outside


def test_a_zero_on_the_circle_is_undecided() -> None:
    with pytest.raises(NetctrlError, match="no decision"):
        half_turns(polynomial(1.0, 0.5), (0.0, pi))
    assert not avoids_zero(polynomial(-1.0))
    with pytest.raises(NetctrlError, match="not a whole number"):
        whole(0.4)


def test_gains_without_zero_end_a_little_before_the_first_one() -> None:
    def found(discs: Discs, attained: float) -> float:
        return greatest_held(lambda value: avoids_zero(discs, gain=(1.0, value)), attained, 1.0)

    discs = polynomial(0.5, -0.4)
    assert found(discs, 2.0) == pytest.approx(2.0 - 1e-3, abs=1e-12)
    assert found(discs, 2.05) == pytest.approx(2.05 - 0.1 * 1.05)
    assert found(polynomial(1.0), 2.0) == 1.0


def triangular(theta: np.ndarray) -> np.ndarray:
    """L with the eigenvalues 2/(z − 0.5) · e^(−i theta) and 3/(z + 0.2)."""
    z = np.exp(1j * theta)
    found = np.zeros((len(theta), 2, 2), dtype=complex)
    found[:, 0, 0] = 2.0 / (z - 0.5) / z
    found[:, 1, 1] = 3.0 / (z + 0.2)
    found[:, 0, 1] = 100.0 / z
    return found


def test_eigenvalues_cross_where_single_loops_do() -> None:
    angles = scan_angles(1.0)
    curves = locus(triangular, angles, triangular(angles), real_end=True)
    gains = sorted(each.gain for each in negative_real(curves))
    # z (z − 0.5) + 2 k = 0 on the circle: a pair with product 2 k = 1; at z = −1: no root. z + 0.2 + 3 k: k = 0.8/3.
    assert gains == pytest.approx([0.8 / 3.0, 0.5], rel=1e-12)
    assert all(abs(abs(each.value) - 1.0) < 1e-12 for each in gain_crossovers(curves))
    # |z − 0.5| = 2 has no root on the circle, |z + 0.2| = 3 neither.
    assert not gain_crossovers(curves)
    half = 0.5 * triangular(angles)
    known = gain_crossovers(locus(lambda theta: 0.5 * triangular(theta), angles, half, real_end=True))
    # |z − 0.5| = 1: 1.25 − cos theta = 1.
    assert [each.angle for each in known] == pytest.approx([np.arccos(0.25)], rel=1e-9)


def test_mu_of_rank_one_and_triangular_matrices() -> None:
    rng = np.random.default_rng(1)
    u, v = (rng.normal(size=(20, 3)) + 1j * rng.normal(size=(20, 3)) for _ in range(2))
    # Of u v^H and diagonal uncertainty, mu is Σ |u_i v_i|.
    assert mu_bound(u[:, :, None] * v.conj()[:, None, :]) == pytest.approx(np.abs(u * v).sum(axis=1), rel=2e-3)
    upper = np.triu(rng.normal(size=(20, 3, 3)))
    assert mu_bound(upper) == pytest.approx(np.abs(np.einsum("nii->ni", upper)).max(axis=1), rel=2e-2)


def test_mu_is_at_least_what_some_uncertainty_needs() -> None:
    rng = np.random.default_rng(2)
    M = rng.normal(size=(5, 3, 3)) + 1j * rng.normal(size=(5, 3, 3))
    found = mu_bound(M)
    least = np.zeros(5)
    for _ in range(4000):
        turns = np.exp(2j * pi * rng.uniform(size=3))
        least = np.maximum(least, np.abs(np.linalg.eigvals(M * turns)).max(axis=1))
    assert np.all(found >= least * (1.0 - 1e-9))
    assert np.all(found <= 1.06 * least)


def test_the_disk_margin_of_two_loops_apart_is_the_worse_one() -> None:
    def loop(theta: np.ndarray) -> np.ndarray:
        z = np.exp(1j * theta)
        found = np.zeros((len(theta), 2, 2), dtype=complex)
        found[:, 0, 0], found[:, 1, 1] = 0.3 / (z - 0.6), 0.8 / (z * (z - 0.1))
        return found

    angles = scan_angles(1.0)
    fine = np.linspace(1e-4, pi, 200_001)
    values = np.einsum("nii->ni", loop(fine))
    expected = (2.0 * np.abs(1.0 + values) / np.abs(1.0 - values)).min()
    assert multiloop_disk_margin(loop, angles, loop(angles)) == pytest.approx(expected, rel=1e-4)
