"""Result of an identification: the model, its simulated outputs, the chosen order, the uncertainty of the poles."""

from __future__ import annotations

from dataclasses import dataclass
from math import isinf
from typing import Any

import numpy as np

from netctrl.model.identified import ANSWERS, Identification, IdentifiedModel
from netctrl.model.io.display import Plotted, Rows
from netctrl.model.signals import SignalTrace


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class OrderChoice:
    """Order found in a trace, with the orders that two other rules give."""

    order: int
    """Number of canonical correlations above the noise."""
    noise_edge: float
    """Largest correlation that noise alone would give."""
    correlations: np.ndarray
    """Canonical correlations of past and future, in decreasing order."""
    by_gap: int
    """Order at the largest drop of their logarithms."""
    by_svc: int
    """Order by Bauer's singular value criterion."""
    confidence: float | None
    """Share of random halves of the trace that give the same order; None for a trace too short to halve."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Draws:
    """Models that the trace allows, drawn around the identified one."""

    A: np.ndarray
    """(k, n, n) of each draw."""
    B: np.ndarray
    """(k, n, m)."""
    C: np.ndarray
    """(k, p, n)."""
    D: np.ndarray
    """(k, p, m)."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class FitComparison(Plotted):
    """Fits of several models on one trace."""

    models: tuple[str, ...]
    """k names of the models: method and order."""
    trace: SignalTrace
    """Data of the comparison."""
    where: str
    """Which data these are."""
    horizon: float
    """Samples ahead of the longer prediction."""
    vaf: np.ndarray
    """(k, 3, p) variance accounted for [%]: simulated, predicted one sample ahead, predicted `horizon` ahead."""
    simulated: np.ndarray
    """(k, T, p) simulated outputs."""

    def _shown(self) -> Rows:
        ahead = "infinitely many" if isinf(self.horizon) else f"{self.horizon:g}"
        what = ("simulated", "one step ahead", f"{ahead} steps ahead")
        rows = [
            (f"{name}: {kind}", _by_name(self.trace.outputs, vaf))
            for name, fits in zip(self.models, self.vaf, strict=True)
            for kind, vaf in zip(what, fits, strict=True)
        ]
        return f"VAF on {self.where}, {len(self.trace)} samples", rows


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class Residuals(Plotted):
    """What the model leaves of the outputs, the innovations, and whether it is noise."""

    outputs: tuple[str, ...]
    """Names of the outputs."""
    inputs: tuple[str, ...]
    """Names of the inputs."""
    autocorrelation: np.ndarray
    """(L + 1, p) of each output's innovations, from lag 0."""
    cross_correlation: np.ndarray
    """(L + 1, p, m) of the innovations with the inputs of 0, ..., L samples ago."""
    band: float
    """99 % of the correlations of noise are within ± this."""
    white: np.ndarray
    """(p,) p-values of Ljung and Box's test: the probability that white innovations are as correlated as these."""
    unexplained: np.ndarray
    """(p, m) p-values: the probability that inputs without influence on what is left would explain as much."""
    verdict: str
    """One sentence, at a level of 1 % for either test."""

    def _shown(self) -> Rows:
        rows = [("verdict", self.verdict)]
        rows += [(f"{name} white", f"p = {p:.2g}") for name, p in zip(self.outputs, self.white, strict=True)]
        for name, values in zip(self.outputs, self.unexplained, strict=True):
            told = ", ".join(f"{each} p = {p:.2g}" for each, p in zip(self.inputs, values, strict=True))
            rows.append((f"{name} free of past inputs", told))
        return "Residuals", rows


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class Bode(Plotted):
    """Frequency response of an identified model, with 95 % bands where the model has draws."""

    inputs: tuple[str, ...]
    """Names of the inputs."""
    outputs: tuple[str, ...]
    """Names of the outputs."""
    frequency_hz: np.ndarray
    """(f,) frequencies."""
    response: np.ndarray
    """(f, p, m) complex gains, outputs' unit per inputs' unit."""
    phase_deg: np.ndarray
    """(f, p, m) phase, without jumps [degree]."""
    gain_band: np.ndarray | None
    """(2, f, p, m) lowest and highest magnitude."""
    phase_band: np.ndarray | None
    """(2, f, p, m) lowest and highest phase [degree]."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class StepResponse(Plotted):
    """Response to unit steps of the inputs, with a 95 % band where the model has draws."""

    inputs: tuple[str, ...]
    """Names of the inputs."""
    outputs: tuple[str, ...]
    """Names of the outputs."""
    dt: float
    """Sampling interval [s]."""
    response: np.ndarray
    """(T, p, m) deviations of the outputs from the operating point."""
    band: np.ndarray | None
    """(2, T, p, m) lowest and highest response."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class IdentificationResult(Plotted):
    """An identified model, the data that it was identified from, and its fit."""

    model: IdentifiedModel
    """The identified model."""
    trace: SignalTrace
    """Data that the model was identified from."""
    simulated: np.ndarray
    """(T, p) outputs simulated from the inputs alone and each segment's estimated initial state."""
    predicted_vaf: np.ndarray | None
    """(p,) VAF of the prediction one sample ahead [%], from each segment's initial state of the predictor; None without
    a Kalman gain."""
    held_out: SignalTrace | None
    """Data kept for validation; None if there was none."""
    held_out_simulated: np.ndarray | None
    """Outputs simulated on the held-out data."""
    held_out_predicted_vaf: np.ndarray | None
    """(p,) VAF of the prediction one sample ahead on the held-out data [%]."""
    order: OrderChoice | None
    """How the order was chosen; None where it was given."""
    pole_draws: np.ndarray | None
    """(draws, n) poles of block-bootstrap draws; None if none were requested."""
    draws: Draws | None = None
    """Models that the trace allows; None: not drawn."""

    def __post_init__(self) -> None:
        for name in ("simulated", "predicted_vaf", "held_out_simulated", "held_out_predicted_vaf", "pole_draws"):
            array = getattr(self, name)
            if array is not None:
                array.setflags(write=False)

    @property
    def poles(self) -> np.ndarray:
        """Eigenvalues of A, slowest first."""
        found = np.linalg.eigvals(self.model.A)
        return found[np.lexsort((-found.imag, -np.abs(found)))]

    @property
    def how(self) -> Identification:
        """Method, order, fit and warnings."""
        found = self.model.identification
        if found is None:  # only models that were not identified lack it
            raise ValueError("the model of an IdentificationResult has its identification")
        return found

    @property
    def verdict(self) -> str:
        """Share of the outputs' variance that the model explains, as one sentence."""
        held_out = self.how.held_out_vaf
        where = "of the whole trace" if held_out is None else "of the held-out part"
        return f"explains {_by_name(self.model.outputs, self.how.vaf if held_out is None else held_out)} {where}"

    def compare(self, *others: Any, horizon: float = 10) -> FitComparison:
        """VAF of this and other models: simulated, predicted one sample ahead and `horizon` samples ahead.

        Parameters
        ----------
        *others : IdentificationResult, IdentifiedModel or SignalTrace
            Models with the same signals, and at most one trace: by default the held-out part, else the whole trace.
        horizon : int or math.inf
            Samples ahead of the longer prediction.

        Returns
        -------
        FitComparison

        Raises
        ------
        InvalidValue
            Other signals, another sampling interval, missing outputs, or two traces.
        """
        return ANSWERS["compare"](self, others, horizon)

    def residuals(self, trace: SignalTrace | None = None) -> Residuals:
        """Test whether what the model leaves is noise: white, and not explained by past inputs.

        Parameters
        ----------
        trace : SignalTrace, optional
            Data with the model's signals; by default those that it was identified from.

        Returns
        -------
        Residuals

        Raises
        ------
        InvalidValue
            Other signals, another sampling interval, or missing outputs.

        References
        ----------
        Ljung and Box 1978; Ljung, System Identification, 1999, section 16.6.
        """
        return ANSWERS["residuals"](self, trace)

    def bode(self, frequencies: Any = None) -> Bode:
        """Frequency response of each output to each input (of the curve's v, where the model has a curve).

        Parameters
        ----------
        frequencies : array_like, optional
            Frequencies above 0 and up to half the sampling rate [Hz].

        Returns
        -------
        Bode

        Raises
        ------
        InvalidValue
            Frequencies out of range.
        """
        return ANSWERS["bode"](self, frequencies)

    def step(self, samples: int | None = None) -> StepResponse:
        """Response of each output to a unit step of each input (of the curve's v, where the model has a curve).

        Parameters
        ----------
        samples : int, optional
            Length; by default until the slowest pole has decayed, at most 1000.

        Returns
        -------
        StepResponse

        Raises
        ------
        InvalidValue
            Not a number of samples.
        """
        return ANSWERS["step"](self, samples)

    def table(self) -> tuple[str, list[tuple[str, str]], list[str]]:
        """Title, rows of (name, text) and notes."""
        model, how = self.model, self.how
        title = f"{how.method}, order {how.order}: {', '.join(model.inputs)} -> {', '.join(model.outputs)}"
        segments = f" in {how.segments} segments" if how.segments > 1 else ""
        rows = [
            ("samples", f"{how.samples}{segments}, every {model.dt:g} s; horizon {how.horizon}"),
            ("poles", ", ".join(_pole(pole) for pole in self.poles)),
            ("VAF, simulated", _by_name(model.outputs, how.vaf)),
        ]
        if how.held_out_vaf is not None:
            rows.append(("VAF, held out", _by_name(model.outputs, how.held_out_vaf)))
        if self.predicted_vaf is not None:
            rows.append(("VAF, one step ahead", _by_name(model.outputs, self.predicted_vaf)))
        if self.held_out_predicted_vaf is not None:
            rows.append(("VAF, held out, one step ahead", _by_name(model.outputs, self.held_out_predicted_vaf)))
        rows.append(("residuals", self.residuals().verdict))
        if self.pole_draws is not None:
            spread = ", ".join(f"{value:.2g}" for value in self.pole_spread())
            rows.append(("poles' std (bootstrap)", spread))
        if (choice := self.order) is not None:
            sure = "" if choice.confidence is None else f", in {choice.confidence:.0%} of the trace's halves"
            rows.append(("order", f"{choice.order} by noise{sure}; {choice.by_gap} by gap, {choice.by_svc} by SVC"))
        return title, rows, [f"warning: {warning}" for warning in how.warnings]

    def pole_spread(self) -> np.ndarray:
        """Root mean square distance of the drawn poles from their mean, slowest first, (n,); NaN without draws."""
        if self.pole_draws is None:
            return np.full(len(self.model.A), np.nan)
        return np.sqrt(np.mean(np.abs(self.pole_draws - self.pole_draws.mean(axis=0)) ** 2, axis=0))

    def _shown(self) -> Rows:
        title, rows, notes = self.table()
        return title, rows + [("", note) for note in notes]


def _pole(pole: complex) -> str:
    if pole.imag == 0.0:
        return f"{pole.real:.6g}"
    return f"{pole.real:.6g} {'+' if pole.imag > 0 else '-'} {abs(pole.imag):.6g}j"


def _by_name(names: tuple[str, ...], values: np.ndarray) -> str:
    return ", ".join(f"{name} {value:.2f} %" for name, value in zip(names, values, strict=True))
