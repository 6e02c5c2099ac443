"""Figures of what an identified model says: fits of several models, residuals, Bode plot, step."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from netctrl.model.answers import Bode, FitComparison, Residuals, StepResponse
from netctrl.plotting.style import ACCENT, INK, PALE, SECOND, canvas, finish

_COLOURS = (ACCENT, SECOND, "#3d7a37", "#7b4ea3", INK)


def fitcomparison_figure(found: FitComparison, *, samples: int = 400) -> Figure:
    """Measured and simulated outputs, the last samples, with each model's VAF."""
    trace = found.trace
    figure = canvas(10.0, 1.0 + 2.6 * len(trace.outputs), found._shown()[0])
    t = (np.arange(len(trace)) * trace.interval_s)[-samples:]
    panels = figure.subplots(len(trace.outputs), 1, sharex=True, squeeze=False)[:, 0]
    for k, (axes, name) in enumerate(zip(panels, trace.outputs, strict=True)):
        axes.plot(t, trace.output_values[-samples:, k], color="#999999", lw=1.0, label="measured")
        for i, model in enumerate(found.models):
            simulated, ahead = found.vaf[i, :2, k]
            label = f"{model}: {simulated:.1f} % simulated, {ahead:.1f} % one step ahead"
            axes.plot(t, found.simulated[i, -samples:, k], color=_COLOURS[i % len(_COLOURS)], lw=1.2, label=label)
        finish(axes, y=name, legend=8, loc="upper left")
    panels[-1].set_xlabel("time [s]")
    return figure


def residuals_figure(found: Residuals) -> Figure:
    """Correlations of the innovations with themselves and with past inputs, with 99 % bands."""
    p, m = len(found.outputs), len(found.inputs)
    figure = canvas(3.6 * (m + 1), 0.8 + 2.4 * p, found.verdict)
    panels = figure.subplots(p, m + 1, sharex=True, squeeze=False)
    for i, name in enumerate(found.outputs):
        shown: list[tuple[str, int, np.ndarray, float]] = [
            (f"{name}, itself", 1, found.autocorrelation[1:, i], found.white[i])
        ]
        for j, each in enumerate(found.inputs):
            shown.append((f"{name}, past {each}", 0, found.cross_correlation[:, i, j], found.unexplained[i, j]))
        for axes, (title, first, values, chance) in zip(panels[i], shown, strict=True):
            lags, out = first + np.arange(len(values)), np.abs(values) > found.band
            axes.axhspan(-found.band, found.band, color=PALE)
            axes.vlines(lags, 0.0, values, colors=np.where(out, SECOND, ACCENT).tolist(), lw=2.5)
            axes.axhline(0.0, color=INK, lw=0.6)
            low = max(1.2 * float(np.abs(values).max()), 2.0 * found.band)
            axes.set_ylim(-low, low)
            finish(axes, title=f"{title}: p = {chance:.2g}", size=9, grid=False)
    for axes in panels[-1]:
        axes.set_xlabel("lag [samples]")
    return figure


def bode_figure(found: Bode) -> Figure:
    """Gain and phase of each output from each input, with their bands."""
    p, m = len(found.outputs), len(found.inputs)
    figure = canvas(1.0 + 4.2 * m, 0.6 + 3.8 * p)
    panels = figure.subplots(2 * p, m, sharex=True, squeeze=False)
    for i, name in enumerate(found.outputs):
        for j, each in enumerate(found.inputs):
            gain, phase = panels[2 * i, j], panels[2 * i + 1, j]
            gain.loglog(found.frequency_hz, np.abs(found.response[:, i, j]), color=ACCENT)
            phase.semilogx(found.frequency_hz, found.phase_deg[:, i, j], color=ACCENT)
            for axes, band in ((gain, found.gain_band), (phase, found.phase_band)):
                _shade(axes, found.frequency_hz, band, i, j)
            finish(gain, y="gain", title=f"{each} -> {name}", **_legend(found.gain_band))
            finish(phase, y="phase [°]")
    for axes in panels[-1]:
        axes.set_xlabel("frequency [Hz]")
    return figure


def stepresponse_figure(found: StepResponse) -> Figure:
    """Response of each output to a unit step of each input, with its band."""
    p, m = len(found.outputs), len(found.inputs)
    figure = canvas(1.0 + 4.2 * m, 0.6 + 2.6 * p)
    panels = figure.subplots(p, m, sharex=True, squeeze=False)
    t = np.arange(len(found.response)) * found.dt
    for i, name in enumerate(found.outputs):
        for j, each in enumerate(found.inputs):
            panels[i, j].step(t, found.response[:, i, j], where="post", color=ACCENT)
            _shade(panels[i, j], t, found.band, i, j, step="post")
            finish(panels[i, j], y=name, title=f"unit step of {each}", **_legend(found.band))
    for axes in panels[-1]:
        axes.set_xlabel("time [s]")
    return figure


def _shade(axes: Any, x: np.ndarray, band: np.ndarray | None, i: int, j: int, **options: Any) -> None:
    if band is not None:
        low, high = band[:, :, i, j]
        axes.fill_between(x, low, high, color=ACCENT, alpha=0.2, lw=0.0, label="95 % band", **options)


def _legend(band: np.ndarray | None) -> dict[str, Any]:
    return {} if band is None else {"legend": 8}
