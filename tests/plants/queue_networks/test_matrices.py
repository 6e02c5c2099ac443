"""Small matrices by entries: against NumPy, and with entries that are 0."""

from __future__ import annotations

import numpy as np
import pytest

from netctrl.plants.queue_networks.matrices import determinant, solved


@pytest.mark.parametrize("size", range(1, 7))
def test_equations_and_determinants_are_numpys(size: int) -> None:
    rng = np.random.default_rng(size)
    A = rng.normal(size=(5, size, size)) + 1j * rng.normal(size=(5, size, size)) + 4.0 * np.eye(size)
    B = rng.normal(size=(5, size, 2))
    A[:, size - 1, 0] = A[:, 0, size - 1] = 0.0
    if size == 1:
        A += 2.0
    entries = [[A[:, i, j] if A[0, i, j] else 0.0 for j in range(size)] for i in range(size)]
    X = solved(entries, [[B[:, i, j] for j in range(2)] for i in range(size)])
    assert determinant(entries) == pytest.approx(np.linalg.det(A), rel=1e-12)
    expected = np.linalg.solve(A, B)
    for i in range(size):
        for j in range(2):
            assert X[i][j] == pytest.approx(expected[:, i, j], rel=1e-10)
