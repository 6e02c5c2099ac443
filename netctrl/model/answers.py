"""Answers of identified models: fits compared, residuals, Bode plot and step response."""

from __future__ import annotations

from dataclasses import dataclass
from math import isinf

import numpy as np

from netctrl.model.io.display import Plotted, Rows
from netctrl.model.signals import SignalTrace


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
            (f"{name}: {kind}", by_name(self.trace.outputs, vaf))
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


def by_name(names: tuple[str, ...], values: np.ndarray) -> str:
    """Shares of outputs [%] as text."""
    return ", ".join(f"{name} {value:.2f} %" for name, value in zip(names, values, strict=True))
