"""The result of an identification: a model in the trace's units, its fit, and what to be careful of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from netctrl.ident.bend import line_slopes
from netctrl.ident.cautions import Fits, cautions
from netctrl.ident.data.delays import chained
from netctrl.ident.data.signals import Scale
from netctrl.ident.search.choice import Score, Validation
from netctrl.ident.search.found import Found
from netctrl.ident.subspace.dependence import Feedback
from netctrl.ident.subspace.lq_reduction import LqReduction, Segment, about
from netctrl.ident.validate import Matrices, predicted, simulated, variance_accounted_for
from netctrl.model.design.design import provenance
from netctrl.model.fit import Draws, IdentificationResult, OrderChoice
from netctrl.model.identified import Identification, IdentifiedModel
from netctrl.model.signals import SignalTrace

_FEWEST, _NUMBERS = 40, 2_000  # draws of the steady gain in a model file, and numbers
_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What a model was found from."""

    learned: SignalTrace
    """The trace as given."""
    tried: SignalTrace | None
    """Held-out data, delays removed."""
    delays: tuple[int, ...]
    scale: Scale
    segments: list[Segment]
    """Scaled, delays removed, faults left out."""
    data: LqReduction
    answers: Feedback
    choice: OrderChoice | None
    """Order by the correlations; None where it was given."""
    validation: Validation
    score: Score | None
    """Of the candidate chosen."""


def result_of(
    found: Found,
    evidence: Evidence,
    allowed: Matrices | None,
    warnings: list[str],
    argv: Iterable[str],
    files: Iterable[Path],
) -> IdentificationResult:
    """The model in the trace's units, with its fit and its warnings; `allowed` are scaled draws of it."""
    scale, learned, tried = evidence.scale, evidence.learned, evidence.tried
    delays, score = evidence.delays, evidence.score
    A, B, C, D = found.matrices
    fit, vaf, ahead = _tried(found, scale, evidence.segments)
    held, held_vaf, held_ahead = (None, None, None) if tried is None else _tried(found, scale, scale.scaled(tried))
    fits = Fits(vaf, ahead, held_vaf, held_ahead)
    drawn = None if allowed is None else _drawn(allowed, scale, delays)
    gains = None if drawn is None else drawn.steady_gains()[: max(_FEWEST, _NUMBERS // (len(C) * B.shape[1]))]
    noise = found.noise
    if noise is not None:
        with np.errstate(over="ignore"):
            K, V = noise.K / scale.y_size, noise.V * scale.y_size * scale.y_size[:, None]
        if not np.isfinite(V).all() or (np.diag(V) < _TINY).any():
            noise = None
            warnings.append("no Kalman gain: squares of the outputs aren't floats; take another unit")
    answers, data, choice = evidence.answers, evidence.data, evidence.choice
    biased = bool(answers.determined) or (answers.found and not found.consistent)
    warnings += cautions(found.matrices, found.guard, found.noise, data, learned, fits, choice, answers, biased, gains)
    A, B, C, D, K = chained(
        A,
        B / scale.u_size,
        C * scale.y_size[:, None],
        D * scale.y_size[:, None] / scale.u_size,
        None if noise is None else K,
        delays,
    )
    how = Identification(
        method=found.method,
        order=len(A),
        delays=delays,
        horizon=data.horizon,
        samples=len(learned),
        segments=len(learned.starts),
        singular_values=found.singular_values,
        vaf=vaf,
        held_out_vaf=held_vaf,
        left_out_vaf=_shares(None if score is None else score.simulated),
        left_out_predicted_vaf=_shares(None if score is None else score.predicted),
        stabilised=found.guard is not None and found.guard.stabilised != "",
        refined=found.refined,
        feedback=answers.found,
        biased=biased,
        line_slopes=line_slopes(learned.input_values, learned.output_values, fit),
        steady_gain_draws=gains,
        warnings=tuple(warnings),
    )
    model = IdentifiedModel(
        A=A,
        B=B,
        C=C,
        D=D,
        dt=learned.interval_s,
        inputs=learned.inputs,
        outputs=learned.outputs,
        input_offset=scale.u_mean,
        output_offset=scale.y_mean + scale.y_size * found.offset,
        input_range=np.stack([learned.input_values.min(axis=0), learned.input_values.max(axis=0)], axis=1),
        output_range=_visited(learned.output_values, fit),
        K=K,
        innovation_covariance=None if noise is None else V,
        identification=how,
        provenance=provenance(argv=argv, inputs=files, libraries=("numpy", "scipy", "numba")),
    )
    return IdentificationResult(
        model=model,
        trace=learned,
        simulated=fit,
        predicted_vaf=ahead,
        held_out=tried,
        held_out_simulated=held,
        held_out_predicted_vaf=held_ahead,
        order=choice,
        draws=drawn,
        alternatives=evidence.validation.alternatives,
    )


def _drawn(models: Matrices, scale: Scale, delays: tuple[int, ...]) -> Draws:
    """The models in the trace's units, with delays."""
    size, per = scale.y_size[:, None], scale.u_size
    made = [chained(A, B / per, C * size, D * size / per, None, delays)[:4] for A, B, C, D in zip(*models, strict=True)]
    A, B, C, D = (np.array(part) for part in zip(*made, strict=True))
    return Draws(A=A, B=B, C=C, D=D)


def _shares(left: np.ndarray | None) -> np.ndarray | None:
    """VAF of relative error variances [%]; None where there is none."""
    return None if left is None or not np.isfinite(left).all() else 100.0 * (1.0 - left)


def _tried(found: Found, scale: Scale, segments: list[Segment]) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Simulated outputs in physical units, their VAF, and that of the prediction one sample ahead."""
    deviations = about(segments, found.offset)
    measured = deviations[0][1] if len(deviations) == 1 else np.vstack([y for _, y in deviations])
    fit = simulated(found.matrices, deviations)
    vaf, ahead = variance_accounted_for(measured, fit), None
    if found.noise is not None:
        ahead = variance_accounted_for(measured, predicted(found.matrices, found.noise.K, deviations))
    fit *= scale.y_size
    fit += scale.y_mean + scale.y_size * found.offset
    return fit, vaf, ahead


def _visited(measured: np.ndarray, simulated: np.ndarray) -> np.ndarray:
    """(p, 2) range of the simulated outputs, which have no noise, within that of the measured ones."""
    low, high = np.nanmin(measured, axis=0), np.nanmax(measured, axis=0)
    return np.stack([simulated.min(axis=0).clip(low, high), simulated.max(axis=0).clip(low, high)], axis=1)
