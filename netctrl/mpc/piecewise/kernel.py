"""Point location in a piecewise-affine law, compiled; nothing is checked here."""

from __future__ import annotations

import numpy as np

from netctrl.core.jit import INLINED, njit
from netctrl.mpc.piecewise.tree import TOLERANCE


@njit(**INLINED)
def locate(
    t: np.ndarray,
    rows: np.ndarray,
    right: np.ndarray,
    first: np.ndarray,
    split: np.ndarray,
    value: np.ndarray,
    child: np.ndarray,
    leaf_first: np.ndarray,
    leaf: np.ndarray,
) -> int:
    """The first region of its leaf that holds t (q,), in [−1, 1]; −1 for none."""
    for i in range(len(t)):
        if not abs(t[i]) <= 1.0 + TOLERANCE:
            return -1
    node = 0 if len(value) > 0 else -1
    while node >= 0:
        at = -value[node]
        for i in range(len(t)):
            at += split[node, i] * t[i]
        node = child[node, 1 if at > 0.0 else 0]
    for place in range(leaf_first[-1 - node], leaf_first[-node]):
        r = leaf[place]
        inside = True
        for k in range(first[r], first[r + 1]):
            at = 0.0
            for i in range(len(t)):
                at += rows[k, i] * t[i]
            if at > right[k] + TOLERANCE:
                inside = False
                break
        if inside:
            return r
    return -1


@njit(cache=True)
def decide_points(
    points: np.ndarray,
    rows: np.ndarray,
    right: np.ndarray,
    first: np.ndarray,
    split: np.ndarray,
    value: np.ndarray,
    child: np.ndarray,
    leaf_first: np.ndarray,
    leaf: np.ndarray,
    gain: np.ndarray,
    offset: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Inputs (count, m) and regions (count,) of points (count, q)."""
    inputs, region = np.zeros((len(points), offset.shape[1])), np.empty(len(points), np.int64)
    for p in range(len(points)):
        r = locate(points[p], rows, right, first, split, value, child, leaf_first, leaf)
        region[p] = r
        if r >= 0:
            for j in range(offset.shape[1]):
                u = offset[r, j]
                for i in range(points.shape[1]):
                    u += gain[r, j, i] * points[p, i]
                inputs[p, j] = u
    return inputs, region
