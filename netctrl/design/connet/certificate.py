"""CONNET's certificate: steady state at references, margins, and warnings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from netctrl.core.errors import InvalidValue, Status
from netctrl.design.connet.slopes import SlopeCheck, check_slopes
from netctrl.frequency.hinf_norm import CAREFUL_ALPHA, bandwidth, discrete_disk_margin
from netctrl.laws.tracking.tracking import linearised
from netctrl.model.design.connet import ConnetCertificate, DrawnLoops, ReferenceCheck, SlopeProof
from netctrl.model.fit import Draws, central, settled
from netctrl.model.identified import IdentifiedModel
from netctrl.model.law import LqiLaw, TrackingLaw
from netctrl.model.statespace import StateSpace
from netctrl.synthesis.riccati.dare import DareSolution
from netctrl.synthesis.riccati.tracking import TrackingLoop, tracking_loop

SURE = 0.95
"""Least share of the models that a trace allows, with which a loop is to be stable."""
_GAIN_CHANGE = 0.2
_TRACKS = 0.01
_OFF_CURVE = 0.05
_NEVER_NEGATIVE = ("delay", "jitter", "throughput")
_TRACE = "identify from a trace in open loop whose input takes the whole range, for long enough at each level"


class Made(NamedTuple):
    """A law with its tracked outputs and the solutions of its two Riccati equations."""

    law: TrackingLaw
    tracked: np.ndarray
    regulator: DareSolution
    estimator: DareSolution


def certificate(
    model: IdentifiedModel, made: Made, desired: Sequence[np.ndarray], draws: Draws | None = None
) -> ConnetCertificate:
    """Certificate of a law with its model, with the references to check, each (p,), and with draws of models."""
    law, W = made.law, made.tracked
    plant = model.state_space
    loop = tracking_loop(plant, law)
    poles = np.linalg.eigvals(loop.response.A)
    radius = float(np.abs(poles).max())
    gain = steady(plant)
    reach = W @ gain
    attainable = _attainable(model, made, reach)
    stable = radius < 1.0
    T = steady(loop.response) if stable else np.full((len(W[0]),) * 2, np.nan)
    error = _dc_error(W, T, gain) if stable else None
    margin = discrete_disk_margin(loop.difference) if stable else None
    changed = [_changed(plant, law, W, 1.0 + change) for change in (-_GAIN_CHANGE, _GAIN_CHANGE)]
    known = [error for error in changed if error is not None]
    controller = np.linalg.eigvals(loop.controller)
    curve, slopes = model.curve, None
    if curve is not None and stable and isinstance(law, LqiLaw):
        slopes = check_slopes(model, curve, law)
    checks = tuple(_check_reference(model, made, gain, reference, slopes) for reference in desired)
    left = np.linalg.svd(gain)
    rank = int(np.sum(left[1] > 1e-9 * left[1][0]))
    proof = {
        "closed_loop_poles": _poles(poles),
        "spectral_radius": radius,
        "controller_poles": _poles(controller),
        "dc_tracking": rows(T) if stable else (),
        "dc_error": error,
        "dc_error_gain": max(known) if len(known) == len(changed) else None,
        "bandwidth_hz": _bandwidth(loop, W, gain) if stable else None,
        "disc_alpha": 0.0 if margin is None else margin.alpha,
        "lowest_gain": 1.0 if margin is None else margin.lowest_gain,
        "highest_gain": 1.0 if margin is None else margin.highest_gain,
        "phase_deg": 0.0 if margin is None else margin.phase_deg,
        "plant_dc_gain": rows(gain),
        "attainable": rows(attainable),
        "untracked": rows(left[0].T[rank:]),
        "residual_regulator": made.regulator.residual,
        "residual_estimator": made.estimator.residual,
        "slopes": None if slopes is None else slopes.proof,
        "references": checks,
        "drawn": None if draws is None else _drawn(draws, law, plant.dt),
    }
    warnings = tuple(_warnings(model, made, proof, controller))
    status = Status.ADMISSIBLE
    if not stable:
        status = Status.UNSTABLE
    elif (
        any(_is_off(each) for each in (error, proof["dc_error_gain"]))
        or proof["disc_alpha"] < CAREFUL_ALPHA
        or any(doubts(model, made, checks, None if slopes is None else slopes.proof, proof["drawn"]))
    ):
        status = Status.STABLE
    return ConnetCertificate(status=status, warnings=warnings, **proof)


def margin_around(plant: StateSpace, law: TrackingLaw) -> float:
    """Disk margin of the loop around a plant; 0 where it isn't stable."""
    loop = tracking_loop(plant, law)
    stable = np.abs(np.linalg.eigvals(loop.response.A)).max() < 1.0
    return discrete_disk_margin(loop.difference).alpha if stable else 0.0


def _drawn(draws: Draws, law: TrackingLaw, dt: float) -> DrawnLoops:
    plants = zip(draws.A, draws.B, draws.C, draws.D, strict=True)
    found = np.array([margin_around(StateSpace(*plant, dt), law) for plant in plants])
    return DrawnLoops(
        models=len(found),
        stable=float((found > 0.0).mean()),
        alpha=float(np.quantile(found, 1.0 - SURE, method="lower")),
        least_alpha=float(found.min()),
    )


def doubts(
    model: IdentifiedModel,
    made: Made,
    checks: Iterable[ReferenceCheck],
    slopes: SlopeProof | None,
    drawn: DrawnLoops | None,
) -> Iterable[str]:
    """Why the model is no model for a controller: an uncertain gain, feedback in its trace, references not seen."""
    if drawn is not None and drawn.stable < SURE:
        yield (
            f"of {drawn.models} models that the trace allows, {drawn.stable:.0%} make a stable loop: take a larger"
            " input weight or disk margin, or a longer trace"
        )
    how, W = model.identification, made.tracked
    if how is not None and how.biased:
        yield f"the model is from a trace with feedback, so that its gain may be wrong, even in sign: {_TRACE}"
    draws = None if how is None else how.steady_gain_draws
    if draws is not None:
        ratios = np.linalg.eigvals((W @ draws) @ np.linalg.pinv(W @ steady(model.state_space))).real
        ratios = np.sort(ratios, axis=1).T
        if model.curve is not None:  # its slopes have bands of their own: the sign of all draws counts
            known, low, high, which = bool((ratios > 0.0).all()), ratios.min(), ratios.max(), ""
        else:
            ends = np.array([central(each) for each in ratios])
            known, low, high, which = all(map(settled, ratios)), ends[:, 0].min(), ends[:, 1].max(), " (nine in ten)"
        if not known:
            yield (
                f"the trace doesn't determine the steady gain: {len(draws)} draws of it are {low:.3g} to {high:.3g}"
                f" times the model's{which}; {_TRACE}"
            )
    bent = None if how is None or model.curve is not None else how.line_slopes
    for row, weights in zip(() if bent is None else bent, W.T, strict=False):
        if weights.any() and not (row[0] >= 0.5 and row[1] <= 2.0):
            yield (
                f"the link isn't a line: where its trace was, slopes are {row[0]:.3g} to {row[1]:.3g} times the"
                " model's, and margins are those of one slope; identify with the curve (`netctrl identify --curve`)"
            )
    curve, held = model.curve, None if slopes is None else slopes.held
    if slopes is not None and held is None:
        yield (
            "for no reference is it proved that the loop is stable with the slopes that the trace allows, and the input"
            " off its limits: take a larger input weight or disk margin, or a longer trace"
        )
    for check in checks:
        if curve is not None and held is not None and not check.held:
            low, high = held.references
            yield (
                f"reference {curve.output} {check.reference[model.outputs.index(curve.output)]:.4g} is outside"
                f" {low:.4g} to {high:.4g}, for which it is proved that the loop holds it ({model.inputs[0]}"
                f" {held.inputs[0]:.4g} to {held.inputs[1]:.4g}): ask for one inside, or take a larger input weight or"
                " a longer trace"
            )
        elif not check.seen:
            where = ", ".join(
                f"{name} {low:.4g} to {high:.4g}"
                for name, (low, high) in zip(model.inputs, _visited(model, made.law), strict=True)
            )
            named = ", ".join(f"{name} {value:.4g}" for name, value in zip(model.outputs, check.reference, strict=True))
            reach = "; ".join(f"{a:.4g} to {b:.4g}" for a, b in _attainable(model, made, W @ steady(model.state_space)))
            yield f"reference {named} is outside what the model was seen at ({where}), which gives {reach}: {_TRACE}"


def _visited(model: IdentifiedModel, law: TrackingLaw) -> np.ndarray:
    """(m, 2) inputs within the limits that the model's trace visited, as far as it is known."""
    limits = np.stack([law.low, law.high], axis=1)
    if model.input_range is None:
        return limits
    return np.stack([limits[:, i].clip(*model.input_range.T) for i in (0, 1)], axis=1)


def _attainable(model: IdentifiedModel, made: Made, reach: np.ndarray) -> np.ndarray:
    """(q, 2) steady tracked outputs within the limits, what the trace visited, and what such an output can be."""
    law, W = made.law, made.tracked
    away = np.stack([linearised(law, each) for each in _visited(model, law).T], axis=1) - law.input_offset[:, None]
    ends = np.sort(reach[:, :, None] * away, axis=2).sum(axis=1) + (W @ law.output_offset)[:, None]
    least = np.array([0.0 if name in _NEVER_NEGATIVE else -np.inf for name in model.outputs])
    seen = np.column_stack([least, np.full(len(least), np.inf)])
    if model.output_range is not None and model.curve is None:  # a curve's ends are the floor and the ceiling
        seen = np.maximum(model.output_range, least[:, None])
    with np.errstate(invalid="ignore"):
        parts = np.sort(np.where(W[:, :, None] == 0.0, 0.0, W[:, :, None] * seen), axis=2).sum(axis=1)
    return np.clip(ends, parts[:, :1], parts[:, 1:])


def _warnings(model: IdentifiedModel, made: Made, proof: dict, controller: np.ndarray) -> Iterable[str]:
    if proof["spectral_radius"] >= 1.0:
        yield f"the closed loop isn't stable: spectral radius {proof['spectral_radius']:.6g}"
        return
    if _is_off(proof["dc_error"]):
        much = 100.0 * proof["dc_error"]
        yield f"tracked outputs settle {much:.3g} % off their references; method lqi has no such error"
    if proof["dc_error_gain"] is None:
        yield "with a plant whose gain is 20 % off the model's the loop isn't stable: take a larger input weight"
    elif _is_off(proof["dc_error_gain"]):
        much = 100.0 * proof["dc_error_gain"]
        yield f"tracking rests on the model: with a gain 20 % off it settles {much:.3g} % off; method lqi does not"
    outside = np.abs(controller) > 1.0 + 1e-9
    if outside.any():
        largest = float(np.abs(controller).max())
        yield f"the controller by itself isn't stable (|pole| {largest:.6g}): in saturation or open loop it diverges"
    if proof["disc_alpha"] < CAREFUL_ALPHA:
        yield (
            f"disk margin {proof['disc_alpha']:.3g} is below {CAREFUL_ALPHA:.3g} (a gain twice as high):"
            " take a larger input weight"
        )
    if proof["untracked"]:
        freedom = len(made.tracked[0]) - len(proof["untracked"])
        yield (
            f"{len(model.inputs)} input{'s' * (len(model.inputs) > 1)}, {len(model.outputs)} outputs: only {freedom}"
            f" combination{'s' * (freedom > 1)} can follow; {_curve(model, proof['plant_dc_gain'])}"
        )
    for check in proof["references"]:
        named = ", ".join(f"{name} {value:.4g}" for name, value in zip(model.outputs, check.reference, strict=True))
        got = ", ".join(f"{name} {value:.4g}" for name, value in zip(model.outputs, check.attained, strict=True))
        if not check.within_limits:
            yield f"reference {named} can't be reached within the input limits, which allow {got}"
        elif check.off_curve > _OFF_CURVE:
            yield f"reference {named} is off the characteristic curve: it settles at {got}"
    yield from doubts(model, made, proof["references"], proof["slopes"], proof["drawn"])
    if model.identification is not None:
        yield from model.identification.warnings


def _curve(model: IdentifiedModel, gain: Sequence[Sequence[float]]) -> str:
    """How outputs depend on each other if there is one input."""
    if len(model.inputs) > 1:
        return "these determine the others"
    steps = [row[0] for row in gain]
    first = int(np.argmax(np.abs(steps)))
    others = [
        f"{name} changes by {step / steps[first]:.4g} for 1 of {model.outputs[first]}"
        for name, step in zip(model.outputs, steps, strict=True)
        if name != model.outputs[first]
    ]
    return "; ".join(others)


def _check_reference(
    model: IdentifiedModel, made: Made, gain: np.ndarray, reference: np.ndarray, slopes: SlopeCheck | None
) -> ReferenceCheck:
    law, W = made.law, made.tracked
    away = np.linalg.pinv(W @ gain) @ W @ (reference - law.output_offset)
    needed = law.input_offset + away
    least, most = linearised(law, law.low), linearised(law, law.high)
    slack = 1e-9 * np.maximum(most - least, 1e-300)
    within = bool(np.all((needed >= least - slack) & (needed <= most + slack)))
    attained = law.output_offset + gain @ (np.clip(needed, least, most) - law.input_offset)
    held, load = True, None
    if slopes is not None and model.curve is not None:
        nearest = int(np.abs(slopes.points - needed[0]).argmin())
        proved = slopes.points[slopes.held]
        held = bool(len(proved) > 0 and proved[0] - slack[0] <= needed[0] <= proved[-1] + slack[0])
        load = float(slopes.loads[nearest]) if held else None
        needed = model.curve.inverse(needed)
    low, high = _attainable(model, made, W @ gain).T
    room = 1e-9 * np.maximum(high - low, np.abs(high))
    seen = bool(np.all((W @ reference >= low - room) & (W @ reference <= high + room)))
    distance = np.abs(attained - reference) / np.maximum(np.abs(reference), 1e-300)
    return ReferenceCheck(
        reference=tuple(reference.tolist()),
        attained=tuple(attained.tolist()),
        needed=tuple(needed.tolist()),
        within_limits=within,
        held=held,
        load=load,
        seen=seen,
        off_curve=float(distance.max()),
    )


def _is_off(error: float | None) -> bool:
    return error is None or error > _TRACKS


def _dc_error(W: np.ndarray, T: np.ndarray, gain: np.ndarray) -> float:
    """Largest |W (y − r)| for references on the characteristic curve with |W r| = 1."""
    along = gain @ np.linalg.pinv(W @ gain)
    return float(np.abs(W @ (T - np.eye(len(T))) @ along).max())


def _changed(plant: StateSpace, law: TrackingLaw, W: np.ndarray, factor: float) -> float | None:
    other = StateSpace(plant.A, factor * plant.B, plant.C, factor * plant.D, plant.dt)
    loop = tracking_loop(other, law).response
    if np.abs(np.linalg.eigvals(loop.A)).max() >= 1.0:
        return None
    return _dc_error(W, steady(loop), factor * steady(plant))


def _bandwidth(loop: TrackingLoop, W: np.ndarray, gain: np.ndarray) -> float | None:
    """Smallest bandwidth of the tracked combinations, with references that move along the characteristic curve."""
    response = loop.response
    alone = len(W) == 1 and np.count_nonzero(W) == 1  # a single output follows its own reference
    along = np.linalg.pinv(W) if alone else gain @ np.linalg.pinv(W @ gain)
    found = []
    for row, direction in zip(W, along.T, strict=True):
        B, C = response.B @ direction[:, np.newaxis], row[np.newaxis] @ response.C
        found.append(bandwidth(StateSpace(response.A, B, C, [[0.0]], response.dt)))
    known = [each for each in found if each is not None]
    return min(known) if known else None


def steady(system: StateSpace) -> np.ndarray:
    """Gain at zero frequency; refused for a model with an integrator, where it is infinite."""
    if np.linalg.cond(np.eye(system.n_states) - system.A) > 1e12:
        raise InvalidValue("model", "a model with an integrator", "one whose outputs settle: no pole at 1")
    return system.steady_gain()


def _poles(poles: np.ndarray) -> tuple[tuple[float, float], ...]:
    order = np.lexsort((-poles.imag, -poles.real, -np.abs(poles).round(12)))
    return tuple((float(pole.real), float(pole.imag)) for pole in poles[order])


def rows(matrix: np.ndarray) -> tuple[tuple[float, ...], ...]:
    """A matrix as nested tuples for a record."""
    return tuple(tuple(row) for row in np.asarray(matrix, dtype=float).tolist())
