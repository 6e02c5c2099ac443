"""Model order of a trace: canonical correlations of past and future above those of noise alone.

Without dynamics, the greatest correlation of a past of a and a future of b white numbers in N columns tends to
ρ = √(a/N (1 − b/N)) + √(b/N (1 − a/N)). A correlation above it, by a margin for the Hankel structure, is a state.

Source: Wachter 1980 (the edge); Bauer 2001 (SVC); Larimore 1990 (correlations).
"""

from __future__ import annotations

from math import log, sqrt

import numpy as np

from netctrl.ident.subspace.lq_reduction import LqReduction
from netctrl.ident.subspace.methods import Subspace, subspace
from netctrl.model.fit import OrderChoice

__all__ = ["choose_order", "noise_edge"]

_MARGIN = 1.1
_HALVES = 40
_MIN_PIECES = 8


def noise_edge(past: int, future: int, columns: int) -> float:
    """Greatest canonical correlation of noise of this size; 1 where it fills all dimensions."""
    a, b = past / columns, future / columns
    return sqrt(a * (1.0 - b)) + sqrt(b * (1.0 - a)) if a + b < 1.0 else 1.0


def choose_order(data: LqReduction, random: np.random.Generator, *, most: int) -> OrderChoice:
    """Number of correlations above the noise, from 1 to `most`, and the share of random halves of the trace that agree.

    Two other estimates are returned as well: the greatest drop of the correlations' logarithms among them, and the
    minimum of SVC(n) = ρ_{n+1}² + d(n) log(N) / N with d(n) = n (2p + m) parameters.
    """
    found = subspace(data, "cva")
    rho = found.singular_values
    N, d = int(data.columns.sum()), 2 * data.n_outputs + data.n_inputs
    order = _count(found, data, N, most)
    after = np.append(rho, 0.0)[: most + 1]
    svc = after**2 + np.arange(len(after)) * d * log(N) / N
    drops = -np.diff(np.log(np.maximum(np.append(rho, 0.0)[: order + 1], 1e-12)))
    return OrderChoice(
        order=order,
        noise_edge=noise_edge(*_sizes(data), N),
        correlations=rho,
        by_gap=int(np.argmax(drops)) + 1,
        by_svc=max(1, int(np.argmin(svc))),
        confidence=_agreement(data, order, most, random),
    )


def _sizes(data: LqReduction) -> tuple[int, int]:
    m, p = data.n_inputs, data.n_outputs
    return (m + p) * data.horizon, p * data.horizon


def _count(found: Subspace, data: LqReduction, columns: int, most: int) -> int:
    edge = noise_edge(*_sizes(data), columns)
    above = found.singular_values > min(_MARGIN * edge, 1.0 - 1e-9)
    return int(min(max(1, np.count_nonzero(above)), most))


def _agreement(data: LqReduction, order: int, most: int, random: np.random.Generator) -> float | None:
    """Share of random halves that agree; None where the trace has too few pieces."""
    F = len(data.columns)
    if F < _MIN_PIECES:
        return None
    same = []
    for _ in range(_HALVES):
        half = np.zeros(F)
        half[random.permutation(F)[: F // 2]] = 1.0
        columns = int(half @ data.columns)
        same.append(_count(subspace(data, "cva", data.drawn(half)), data, columns, most) == order)
    return float(np.mean(same))
