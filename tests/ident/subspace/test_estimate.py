"""Poles that the data put outside the unit circle, and where they are moved."""

from __future__ import annotations

import numpy as np
import pytest

from netctrl.ident.subspace.estimate import stable_versions


@pytest.mark.parametrize("poles", [(1.07, 1.2, -1.05, 0.5), (1.07, 1.2), (1.0, 1.0 + 1e-6, 0.3), (0.9, 1.01)])
def test_each_pole_is_moved_to_a_circle_of_its_own(poles) -> None:
    """Two modes with one pole would leave a state that one output doesn't see."""
    T = np.random.default_rng(3).standard_normal((len(poles), len(poles)))
    A = T @ np.diag(poles) @ np.linalg.inv(T)
    for said, version in stable_versions(A):
        moved = np.sort(np.linalg.eigvals(version).real)
        assert np.abs(moved).max() < 1.0
        if said == "moved inside":
            assert np.diff(moved).min() > 5e-6
            kept = [pole for pole in poles if abs(pole) < 1.0]
            assert all(np.abs(moved - pole).min() < 1e-9 for pole in kept)


def test_a_pair_stays_a_pair() -> None:
    A = np.array([[1.0, -0.4], [0.4, 1.0]])
    for _, version in stable_versions(A):
        pair = np.linalg.eigvals(version)
        assert pair[0] == pytest.approx(np.conj(pair[1]))
        assert np.abs(np.angle(pair)) == pytest.approx(np.angle(1.0 + 0.4j))
