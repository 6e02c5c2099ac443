"""Stable model from a subspace: candidates for A and C, selected by their simulated outputs, then refined.

No method from Γ to A and C is best on all data: the shift of Γ, the regression of states and the closed shift are each
best on some, and the first two may be unstable. Each candidate gets its optimal B, D and initial states (a linear
problem), and the one with the least squared simulation error is selected. The error over all parameters has a local
optimum nearby. With drifting noise it may be farther from the plant, so it is used only where it also improves the fit
on left-out data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from netctrl.ident.output_error import Fitted, balanced, fit, refine
from netctrl.ident.subspace.lq_reduction import LqReduction, Segment, first_samples, lq_reduce
from netctrl.ident.subspace.methods import Subspace, shift, states_regressed, subspace
from netctrl.ident.validate import simulated

_COMPARED = 50_000  # samples for the comparison of candidates
_FOLDS = 3
_INSIDE = 1.0 - 1e-9
_CIRCLES = 0.999, 0.99999  # radii to which poles from outside are moved

Refine = Literal["auto"] | bool


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Stable model in scaled units, and details of its estimation."""

    fitted: Fitted
    found: Subspace
    raw_radius: float
    """Spectral radius of the unguarded shift of Γ."""
    stabilised: str
    """Action of the stability guard; empty without one."""
    refined: bool


def estimate(
    segments: Sequence[Segment], data: LqReduction, method: str, order: int, feedthrough: bool, refined: Refine
) -> Estimate:
    """Model of `order` states by the weighting of `method`."""
    found = subspace(data, method)
    samples = sum(len(u) for u, _ in segments)
    best = _best(found, order, first_samples(segments, _COMPARED), feedthrough)
    short = samples <= _COMPARED
    if refined is True or (refined == "auto" and short and _pays(segments, data.horizon, method, order, feedthrough)):
        return replace(best, fitted=refine(best.fitted, segments, feedthrough), refined=True)
    return best if short else replace(best, fitted=fit(best.fitted.A, best.fitted.C, segments, feedthrough))


def stable_versions(A: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """A where it is stable; otherwise A with unstable poles mirrored, and with them moved just inside the circle.

    Each pole gets a circle of its own, as one output observes only one of two modes with the same pole.
    """
    values, vectors = np.linalg.eig(A)
    outside = np.abs(values) >= _INSIDE
    if not outside.any():
        yield "", A
        return
    if np.linalg.cond(vectors) < 1e10:
        size = np.maximum(np.abs(values), 1.0 / _CIRCLES[0])
        ways = [("mirrored", values / size**2)]
        moduli = np.round(np.abs(values), 12)
        place = np.searchsorted(np.unique(moduli[outside]), moduli) + 1.0
        unit = values / np.maximum(np.abs(values), 1e-9)
        ways += [("moved inside", unit * (1.0 - (1.0 - radius) * place)) for radius in _CIRCLES]
        for said, moved in ways:
            yield said, (vectors * np.where(outside, moved, values) @ np.linalg.inv(vectors)).real


def _best(found: Subspace, order: int, segments: Sequence[Segment], feedthrough: bool) -> Estimate:
    gamma, p = found.gamma(order), found.n_outputs
    raw, closed, C = shift(gamma, p), shift(gamma, p, closed=True), gamma[:p]
    candidates = [*((said, A, C) for said, A in stable_versions(raw)), ("closed shift", closed, C)]
    for with_u in (True, False) if feedthrough else (False,):
        A, other = states_regressed(found, order, with_u)
        candidates += [(said, version, other) for said, version in stable_versions(A)]
    fits = [(said, fit(A, C, segments, feedthrough)) for said, A, C in candidates]
    said, best = min(fits, key=lambda pair: pair[1].error)
    radius = float(np.abs(np.linalg.eigvals(raw)).max())
    guarded = (said or "states regressed") if radius >= _INSIDE else ""
    return Estimate(best, found, radius, guarded, refined=False)


def _pays(segments: Sequence[Segment], horizon: int, method: str, order: int, feedthrough: bool) -> bool:
    """Whether refinement on two thirds of the trace improves the fit on the remaining one, summed over all three."""
    total = 0.0
    thirds = _thirds(segments)
    for k in range(_FOLDS):
        left_out = thirds[k]
        rest = [part for j, part in enumerate(thirds) if j != k]
        made_from = [segment for part in rest for segment in part]
        data = lq_reduce(made_from, horizon)
        if data.columns.sum() < data.triangles.shape[1]:
            return False
        found = subspace(data, method)
        if found.U.shape[1] < order:
            return False
        plain = _best(found, order, made_from, feedthrough).fitted
        total += _error(refine(plain, made_from, feedthrough), left_out) - _error(plain, left_out)
    return total < 0.0


def _thirds(segments: Sequence[Segment]) -> list[list[Segment]]:
    """The trace in three parts of equal length; a part may cut a segment."""
    edges = np.linspace(0, sum(len(u) for u, _ in segments), _FOLDS + 1).astype(int)
    parts: list[list[Segment]] = [[] for _ in range(_FOLDS)]
    first = 0
    for u, y in segments:
        for k in range(_FOLDS):
            inside = slice(max(edges[k] - first, 0), max(edges[k + 1] - first, 0))
            if len(u[inside]):
                parts[k].append((u[inside], y[inside]))
        first += len(u)
    return parts


def _error(fitted: Fitted, segments: Sequence[Segment]) -> float:
    """Sum of squares of the simulation error about its mean, over the outputs."""
    usable = [(u, y) for u, y in segments if len(u) > 4 * len(fitted.A)]
    if not usable:
        return 0.0
    model = fitted.A, fitted.B, fitted.C, fitted.D
    left = np.vstack([y for _, y in usable]) - simulated(model, usable)
    return float(left.var(axis=0).sum() * len(left))


def settled(fitted: Fitted) -> Fitted:
    """Coordinates determined by the plant alone: balanced, each state with positive sign where it is observed most."""
    found = balanced(fitted)
    rows = np.abs(found.C).argmax(axis=0)
    signs = np.where(found.C[rows, np.arange(found.C.shape[1])] < 0.0, -1.0, 1.0)
    return replace(
        found,
        A=found.A * signs * signs[:, None],
        B=found.B * signs[:, None],
        C=found.C * signs,
        initial=found.initial * signs,
    )
