"""Models in scaled units, found by a candidate's way or by SIPPY, with their noise and what kept them stable."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.ident.cautions import Guard
from netctrl.ident.descent.innovations import Noise, noise_of
from netctrl.ident.descent.likelihood import Innovations
from netctrl.ident.descent.output_error import settled
from netctrl.ident.search.choice import Validation
from netctrl.ident.search.learner import DESCENDED, Candidate, Learner
from netctrl.ident.subspace.estimate import INSIDE
from netctrl.ident.subspace.lq_reduction import LqReduction, Segment, about
from netctrl.ident.subspace.methods import METHODS, Subspace, shift, subspace
from netctrl.ident.subspace.sippy_ import by_sippy
from netctrl.ident.validate import Matrices, predicted, simulated


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Identified model in scaled units."""

    matrices: Matrices
    offset: np.ndarray
    noise: Noise | None
    singular_values: np.ndarray
    guard: Guard | None
    method: str
    refined: bool
    consistent: bool
    """Whether feedback doesn't bias it."""


def candidate_of(method: str, n: int, refine: Any, validation: Validation, samples: int) -> Candidate:
    """The candidate of a method by name, refined where asked or where that pays."""
    if method == "pbsid":
        return Candidate("pbsid", n, "likelihood", rough=refine is False)
    plain = Candidate(cast(Any, own_method(method)), n)
    fine = replace(plain, refinement="simulation")
    if refine is not True:
        pays = refine == "auto" and samples <= DESCENDED and validation.possible
        fine = fine if pays and validation.score(fine).simulation < validation.score(plain).simulation else plain
    return replace(fine, noise="gain")


def found_by(learner: Learner, candidate: Candidate) -> Found:
    """The candidate's model in settled coordinates; InvalidValue where the data give none."""
    space = learner.space("cva" if candidate.start == "arx" else candidate.start)
    if isinstance(space, Subspace) and candidate.start != "arx":
        space.gamma(candidate.order)  # refuses an order that the data don't have
    made = learner.model(candidate)
    if made is None:
        raise InvalidValue("order", candidate.order, "fewer states, or another method: the data give no such model")
    made = _no_worse(made, learner)
    guard = None
    if candidate.refinement != "likelihood" and isinstance(space, Subspace):
        said, fitted = cast(Any, learner.fitted(candidate))
        radius = float(np.abs(np.linalg.eigvals(shift(space.gamma(candidate.order), space.n_outputs))).max())
        guard = Guard((said or "states regressed") if radius >= INSIDE else "", radius, fitted.error)
    A, B, C, D = made.matrices
    T, inverse = settled(A, np.hstack([B, made.K]), C)  # noise states see K alone
    noise = Noise(inverse @ made.K, made.V) if np.isfinite(made.V).all() else None
    return Found(
        (inverse @ A @ T, inverse @ B, C @ T, D),
        made.offset,
        noise,
        space.singular_values,
        guard,
        str(candidate),
        candidate.refinement != "none",
        candidate.refinement == "likelihood",
    )


def _no_worse(made: Innovations, learner: Learner) -> Innovations:
    """The model, with another K where the likelihood predicts one output worse than the simulation for another."""
    if not made.K.any() or np.abs(np.linalg.eigvals(made.A)).max() >= 1.0:
        return made
    deviations = about(learner.segments, made.offset)
    y = np.vstack([y for _, y in deviations])
    alone = np.nanvar(y - simulated(made.matrices, deviations), axis=0)
    if (np.nanvar(y - predicted(made.matrices, made.K, deviations), axis=0) <= alone).all():
        return made
    noise = noise_of(made.matrices, deviations, learner.data, made.K)
    return made if noise is None else replace(made, K=noise.K, V=noise.V)


def of_sippy(segments: list[Segment], data: LqReduction, method: str, n: int, feedthrough: bool) -> Found:
    """The model of a method of SIPPY, with K and V of its own or better ones."""
    matrices, K = by_sippy(segments, method, n, data.horizon, feedthrough)
    offset, values = np.zeros(data.n_outputs), subspace(data, own_method(method)).singular_values
    noise = noise_of(matrices, segments, data, K)
    return Found(matrices, offset, noise, values, None, method, refined=False, consistent=False)


def own_method(method: str) -> str:
    """netctrl's weighting closest to a method."""
    name = method.removeprefix("sippy-")
    return name if name in METHODS else "cva"
