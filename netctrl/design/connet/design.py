"""CONNET: control of the rate of other traffic, for a requested delay or jitter of premium packets.

Source: El-Gendy, Shin, Fathy, "CONNET: Self-Controlled Access Links for Delay and Jitter Requirements".
docs/explanation/connet.md derives the method and lists the paper's misprints.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from netctrl.core.errors import InvalidValue, NoAdmissibleDesign, RiccatiStatus, Status, checked_number, checked_word
from netctrl.core.units import unit_scale
from netctrl.design.connet.certificate import Made, certificate, doubts, margin_around, rows, steady
from netctrl.design.connet.slopes import slope_loop
from netctrl.model.datasets import model_of
from netctrl.model.design.connet import CONNET_METHODS, ConnetInputs, ConnetMethod
from netctrl.model.design.design import ConnetDesign
from netctrl.model.fit import IdentificationResult
from netctrl.model.identified import IdentifiedModel, InputCurve
from netctrl.model.io.record_file import taken
from netctrl.model.law import LqgLaw, LqiLaw
from netctrl.synthesis.riccati.dare import DareSolution, solve_dare
from netctrl.synthesis.riccati.tracking import integral_regulator, kalman_filter, tracking_loop

PAPER_INPUT_WEIGHT = 1.0 / 43378.0
"""Factor of the weight C'C, with which the printed gain is reproduced to 3.5e-4 (theory: Q1 = 43378 C'C, Q2 = 1)."""
LQI_INPUT_WEIGHT = 0.01
CURVE_DISK_MARGIN = 1.3
"""At the worst slope, by default: a gain 4.7 times as high."""
_RATE_UNIT, _TIME_UNIT = 1e6, 1e-3  # Mbit/s and ms, the units of weights

Track = str | Sequence[float] | Sequence[str | Sequence[float]]
Reference = Mapping[str, float] | Sequence[float]


def connet(
    model: IdentifiedModel | IdentificationResult | str | os.PathLike[str],
    *,
    method: ConnetMethod = "lqi",
    track: Track | None = None,
    limits: Sequence[tuple[float, float]] | None = None,
    input_weight: float | None = None,
    disk_margin: float | None = None,
    references: Iterable[Reference] = (),
    accept: Literal["admissible", "stable"] = "admissible",
    argv: Sequence[str] = (),
    inputs: Iterable[Path] = (),
) -> ConnetDesign:
    """Design a law that makes delay, jitter or a weighted sum of outputs follow a reference, from an identified model.

    "lqi" has integral action on the tracked output, which follows its reference even where the model's gain is wrong.
    "paper" is the published LQG regulator, u = −K x̂ with the reference in the estimator; its steady-state error
    depends on the model.

    Parameters
    ----------
    model : IdentifiedModel, IdentificationResult, path or str
        Model with noise (K and innovation_covariance): n states, m inputs, p outputs. A name is that of a model that
        comes with netctrl. With a result of `netctrl.identify` the certificate has the loop around each model that the
        trace allows, too.
    method : {"lqi", "paper"}
        Integral action, or the published regulator.
    track : str, sequence of float, or several of these, optional
        Name of an output, p weights, or a row of weights for each of up to m combinations. By default the first
        output; with "paper" the one that comes nearest to its reference.
    limits : sequence of (float, float), optional
        Lowest and highest value of each input, in the model's units; by default the range in which it was identified.
    input_weight : float, optional
        Cost of squared inputs in Mbit/s (or the model's units, where it names none), relative to squared sums of errors
        ("lqi", 0.01 by default) or squared outputs ("paper", 1/43378) in ms. A smaller weight makes the loop faster.
    disk_margin : float, optional
        Least disk margin, above 0 and below 2, in place of an input weight: the smallest weight that keeps it. With a
        model that has a curve it is kept at all slopes that the trace allows at the references, at all those along the
        curve where none is given; then 1.3 is the default.
    references : iterable of mapping or sequence, optional
        References of the outputs, by name or all p, that the certificate checks.
    accept : {"admissible", "stable"}
        "stable" returns, with warnings, also a design for a model that is none for a controller: from a trace with
        feedback, with a steady gain that the trace doesn't determine within a factor of two, or for references outside
        what its trace visited.
    argv, inputs : sequence of str, iterable of Path
        Command line and files, for the provenance.

    Returns
    -------
    ConnetDesign

    Raises
    ------
    InvalidValue
        An argument out of its bounds, a model without noise, or a combination that no input moves in steady state.
    NoAdmissibleDesign
        No gain stabilises the model, or `accept` would be needed; the message says why.

    Examples
    --------
    >>> import netctrl
    >>> design = netctrl.connet(netctrl.read("connet-paper"), track="delay", limits=[(0.0, 95.0)])
    >>> str(design.certificate.status), round(design.certificate.spectral_radius, 4)
    ('admissible', 0.9123)

    References
    ----------
    CONNET paper, eqs. (1) to (4), with its sign u = −K x̂; its L results from counting the innovation twice.
    """
    draws = model.draws if isinstance(model, IdentificationResult) else None
    model = model_of(model.model if isinstance(model, IdentificationResult) else model)
    checked_word("method", method, CONNET_METHODS)
    checked_word("accept", accept, ("admissible", "stable"))
    weight = LQI_INPUT_WEIGHT if method == "lqi" else PAPER_INPUT_WEIGHT
    if input_weight is not None:
        weight = checked_number("input_weight", input_weight, "a number above 0", above=0.0, at_most=1e12)
    bounds = _limits(model, limits)
    if model.curve is not None:
        if method != "lqi":
            raise InvalidValue("method", method, "lqi: the published law takes no model with a curve")
        bounds = _visited_limits(model.curve, bounds)
    W = None if track is None else _tracked(model, track)
    desired = [_reference(model, each) for each in references]
    scale = weight * np.diag(_scales(model.input_units, _RATE_UNIT)) ** 2
    make = _lqi if method == "lqi" else _paper
    if disk_margin is not None and input_weight is not None:
        raise InvalidValue("disk_margin", disk_margin, "no disk margin beside an input weight: one sets the other")
    if disk_margin is not None or (model.curve is not None and input_weight is None):
        asked = CURVE_DISK_MARGIN if disk_margin is None else disk_margin
        alpha = checked_number("disk_margin", asked, "a number above 0, at most 1.99", above=0.0, at_most=1.99)
        slopes = _slopes_asked(model, desired)

        def margin(factor: float) -> float:
            return _least_margin(model, make(model, W, factor * scale, bounds), slopes)

        weight *= _factor_for(alpha, margin)
        scale = weight * np.diag(_scales(model.input_units, _RATE_UNIT)) ** 2
    made = make(model, W, scale, bounds)
    W = made.tracked
    requested = ConnetInputs(
        model=model,
        law=method,
        tracked=rows(W),
        limits=rows(bounds),
        input_weight=weight,
        references=rows(np.reshape(desired, (-1, len(model.C)))),
    )
    proof = certificate(model, made, desired, draws)
    design = ConnetDesign.of(requested, made.law, proof, argv=argv, files=inputs, libraries=("numpy", "scipy"))
    if proof.status is Status.UNSTABLE:
        raise NoAdmissibleDesign(proof.warnings[0], design)
    reason = next(iter(doubts(model, made, proof.references, proof.slopes, proof.drawn)), None)
    if reason is not None and accept == "admissible":
        raise NoAdmissibleDesign(f"{reason}; accept='stable' takes the design all the same", design)
    return design


def _slopes_asked(model: IdentifiedModel, desired: Sequence[np.ndarray]) -> tuple[float, float]:
    """Lowest and highest slope ratio that the trace allows in the pieces of the curve at the references, or in all."""
    if (curve := model.curve) is None:
        return 1.0, 1.0
    place, pieces = model.outputs.index(curve.output), np.ones(len(curve.slope_band), dtype=bool)
    if desired:
        offsets = _frame(model, np.zeros((1, 2)))
        away = np.array(desired)[:, place] - offsets["output_offset"][place]
        v = offsets["input_offset"][0] + away / steady(model.state_space)[place, 0]
        asked = np.searchsorted(curve.linearised, v) - 1
        pieces[:] = False
        for near in (-1, 0, 1):  # a loop with noise sees the neighbours too
            pieces[(asked + near).clip(0, len(pieces) - 1)] = True
    return float(curve.slope_band[pieces, 0].min()), float(curve.slope_band[pieces, 1].max())


def _least_margin(model: IdentifiedModel, made: Made, slopes: tuple[float, float]) -> float:
    """Least disk margin over slopes: at their ends and at 1."""
    if model.curve is not None:
        loop = slope_loop(model.state_space, made.law)
        return min(map(loop.alpha, {*slopes, 1.0}))
    return margin_around(model.state_space, made.law)


def _factor_for(alpha: float, margin: Callable[[float], float]) -> float:
    """Smallest factor of the input weight with which the margin is `alpha`: slower loops have more of it."""
    low, high = -8.0, 8.0
    if (most := margin(10.0**high)) < alpha:
        raise InvalidValue("disk_margin", alpha, f"at most {most:.3g}, which the slowest loop around this model has")
    while high - low > 0.02:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if margin(10.0**middle) >= alpha else (middle, high)
    return 10.0**high


class _Noise(NamedTuple):
    """Noise covariances of the innovation form, w = K e."""

    state: np.ndarray
    """(n, n) K V K'"""
    both: np.ndarray
    """(n, p) K V"""
    output: np.ndarray
    """(p, p) V"""


def _noise(model: IdentifiedModel) -> _Noise:
    K, V = model.K, model.innovation_covariance
    if K is None or V is None:
        takes = "a model with K and innovation_covariance, as netctrl.identify gives: an estimator needs its noise"
        raise InvalidValue("model", "a model without noise", takes)
    return _Noise(K @ V @ K.T, K @ V, V)


def _paper(model: IdentifiedModel, W: np.ndarray | None, weight: np.ndarray, bounds: np.ndarray) -> Made:
    """Section 4, with the paper's estimator gain, whose noise covariances count the innovation twice."""
    outputs = np.diag(_scales(model.output_units, _TIME_UNIT))
    regulator = solve_dare(model.A, model.B, model.C.T @ outputs**2 @ model.C, weight)
    noise = _noise(model)
    L, estimator = kalman_filter(model.A, model.C, noise.state, 4.0 * noise.output, 2.0 * noise.both)
    _check(regulator, "the regulator")
    _check(estimator, "the estimator")
    law = LqgLaw(**_frame(model, bounds), L=L, K=-regulator.K)
    if W is None:
        T = steady(tracking_loop(model.state_space, law).response)
        W = np.eye(len(T))[[int(np.argmin(np.abs(1.0 - np.diag(T))))]]
    return Made(law, W, regulator, estimator)


def _lqi(model: IdentifiedModel, W: np.ndarray | None, weight: np.ndarray, bounds: np.ndarray) -> Made:
    W = np.eye(len(model.C))[[0]] if W is None else W
    units = _scales(model.output_units, _TIME_UNIT)[np.abs(W).argmax(axis=1)]
    try:
        K, integral, regulator = integral_regulator(
            model.state_space, W, integral_weight=np.diag(units**2), input_weight=weight
        )
    except InvalidValue as error:
        raise InvalidValue("track", error.got, error.takes) from None
    noise = _noise(model)
    curve = model.curve
    seen = [model.outputs.index(curve.output)] if curve is not None else list(range(len(model.C)))
    if curve is not None and (np.delete(W, seen, axis=1) != 0.0).any():
        raise InvalidValue("track", W.tolist(), f"{curve.output}, whose curve the model has: identify that of another")
    # Another output has another curve: the estimator of a law with a curve sees its own output alone.
    few = noise.output[np.ix_(seen, seen)], noise.both[:, seen]
    gains, estimator = kalman_filter(model.A, model.C[seen], noise.state, *few)
    L = np.zeros((len(model.A), len(model.C)))
    L[:, seen] = gains
    _check(regulator, "the regulator")
    _check(estimator, "the estimator")
    table = None if curve is None else np.stack([curve.inputs, curve.linearised])
    law = LqiLaw(**_frame(model, bounds), L=L, K=K, W=W, integral_gain=integral, curve=table)
    return Made(law, W, regulator, estimator)


def _check(solution: DareSolution, what: str) -> None:
    if solution.status is not RiccatiStatus.STABILISING:
        raise NoAdmissibleDesign(f"{what}: {solution.status}. {solution.remedy}")


def _frame(model: IdentifiedModel, bounds: np.ndarray) -> dict:
    signals = ("inputs", "outputs", "input_units", "output_units", "input_offset", "output_offset")
    plant = taken(model, *signals, "A", "B", "C", "D")
    return plant | {"interval_s": model.dt, "low": bounds[:, 0], "high": bounds[:, 1]}


def _limits(model: IdentifiedModel, limits: Sequence[tuple[float, float]] | None) -> np.ndarray:
    m = len(model.inputs)
    takes = f"a lowest and a highest value for each of the {m} inputs ({', '.join(model.inputs)})"
    if limits is None:
        if model.input_range is None:
            raise InvalidValue("limits", None, f"{takes}: the model has no input_range")
        return np.array(model.input_range)
    try:
        found = np.array(limits, dtype=float)
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.shape != (m, 2) or not np.isfinite(found).all() or not (found[:, 0] < found[:, 1]).all():
        raise InvalidValue("limits", limits, takes)
    return found


def _visited_limits(curve: InputCurve, bounds: np.ndarray) -> np.ndarray:
    """Limits within what the curve's trace visited: beyond it the curve isn't known."""
    inside = bounds.clip(curve.inputs[0], curve.inputs[-1])
    if not inside[0, 0] < inside[0, 1]:
        visited = f"limits within what the curve's trace visited, {curve.inputs[0]:.4g} to {curve.inputs[-1]:.4g}"
        raise InvalidValue("limits", bounds.tolist(), visited)
    return inside


def _tracked(model: IdentifiedModel, track: Track) -> np.ndarray:
    p, names = len(model.outputs), model.outputs
    takes = f"an output ({', '.join(names)}), {p} weights, or several of these"
    if not isinstance(track, (str, tuple, list, np.ndarray)) or (isinstance(track, np.ndarray) and track.ndim == 0):
        raise InvalidValue("track", track, takes)
    several = not isinstance(track, str) and any(isinstance(each, str) or np.ndim(each) > 0 for each in track)
    rows: Sequence[Any] = track if several else [track]
    found = np.zeros((len(rows), p))
    for row, each in zip(found, rows, strict=True):
        if isinstance(each, str):
            if each not in names:
                raise InvalidValue("track", each, takes)
            row[names.index(each)] = 1.0
        else:
            try:
                row[:] = np.asarray(each, dtype=float)
            except (TypeError, ValueError, OverflowError):
                raise InvalidValue("track", track, takes) from None
    if not len(found) or not np.isfinite(found).all() or not found.any(axis=1).all():
        raise InvalidValue("track", track, takes)
    return found


def _reference(model: IdentifiedModel, reference: Reference) -> np.ndarray:
    takes = f"finite values of {', '.join(model.outputs)}, by name or in this order"
    try:
        if isinstance(reference, Mapping):
            if set(reference) != set(model.outputs):
                raise ValueError
            reference = [reference[name] for name in model.outputs]
        found = np.array(reference, dtype=float)
    except (TypeError, ValueError):
        raise InvalidValue("references", reference, takes) from None
    if found.shape != (len(model.outputs),) or not np.isfinite(found).all():
        raise InvalidValue("references", reference, takes)
    return found


def _scales(units: Sequence[str], of: float) -> np.ndarray:
    """Size of one unit of each signal in Mbit/s or ms; 1 where the unit is unknown."""
    known = [unit_scale(unit) for unit in units]
    return np.array([1.0 if scale is None else scale / of for scale in known])
