"""Figures of pacing laws: outcomes of the paper's law, and the target of a target-RTT law."""

from __future__ import annotations

import numpy as np
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure

from netctrl.model.design.design import PacingDesign
from netctrl.model.design.pacing import PacingMap
from netctrl.model.law import ArxPacer, TargetRttPacer
from netctrl.plotting.style import ACCENT, INK, ShownFigure
from netctrl.units import packets_per_second

__all__ = ["pacing_figure"]

_COLOURS = ("#9fb8d9", "#b5d6a7", "#eeb5a0")
_SAYS = ("freezes", "runs to R: a cap", "runs to R: no effect")
_DEVIATION = 0.2  # of a sawtooth


def pacing_figure(design: PacingDesign, over: PacingMap | None = None, *, deviation: float = _DEVIATION) -> Figure:
    """Deviations or the target of a pacing design; with a map, outcomes over (ψ, ξ) for each R over the bottleneck.

    `deviation` is the relative error of predicted RTTs."""
    panels = 0 if over is None else len(over.ratios)
    figure = ShownFigure(figsize=(4.6 + 3.2 * panels, 4.4), layout="constrained")
    axes = np.atleast_1d(figure.subplots(1, 1 + panels))
    if isinstance(design.law, ArxPacer):
        _deviations(axes[0], design)
    else:
        _targets(axes[0], design.law, design.inputs.rtt_s)
    if over is not None:
        for place, panel in enumerate(axes[1:]):
            _outcomes(panel, design, over, place, deviation)
    figure.suptitle(design.summary()[0], fontsize=11).set_parse_math(False)
    return figure


def _deviations(axes, design: PacingDesign) -> None:
    """Draw the map of deviations, d → d²/d*."""
    d_star = design.certificate.freeze_below_s
    rtt = design.inputs.rtt_s
    span = 2.0 * (rtt if d_star is None else d_star)
    d = np.linspace(0.0, span, 200)
    if d_star is not None:
        axes.plot(1e3 * d, 1e3 * d * d / d_star, color=ACCENT, lw=1.8, label="next d = d²/d*")
        axes.axvline(1e3 * d_star, color="#b45f06", lw=1.0, ls=":", label=f"d* = {1e3 * d_star:.3g} ms")
    axes.plot(1e3 * d, 1e3 * d, color=INK, lw=0.9, ls="--", label="stays")
    axes.set_xlabel("deviation of the predicted RTT [ms]")
    axes.set_ylabel("after the next rate [ms]")
    axes.set_title("below d* it freezes", fontsize=10)
    axes.legend(fontsize=8)
    axes.grid(color="#dddddd", lw=0.6)


def _targets(axes, law: TargetRttPacer, rtt: float) -> None:
    """Draw the target's queue over the rate, for the certificate's RTT."""
    rates = np.logspace(6.0, 11.0, 200)
    packets = packets_per_second(rates, law.packet_size_bytes)
    share = law.queue_share - law.queue_share_slope * np.log(np.maximum(rtt * packets, 1.0))
    share = np.clip(share, law.least_queue_share, law.queue_share)
    axes.loglog(rates / 1e6, 100.0 * np.maximum(share, 1.0 / (packets * rtt)), color=ACCENT, lw=1.8)
    axes.axhline(10.0, color=INK, lw=0.9, ls="--", label="10 % of the RTT")
    axes.set_xlabel("delivered rate [Mbit/s]")
    axes.set_ylabel("target's queue [% of the least RTT]")
    axes.set_title(f"at an RTT of {1e3 * rtt:g} ms", fontsize=10)
    axes.legend(fontsize=8)
    axes.grid(color="#dddddd", lw=0.6)


def _outcomes(axes, design: PacingDesign, over: PacingMap, place: int, deviation: float) -> None:
    found = over.outcomes(deviation)[place]
    colours, norm = ListedColormap(_COLOURS), BoundaryNorm([-0.5, 0.5, 1.5, 2.5], 3)
    axes.pcolormesh(over.psi, over.xi, found, cmap=colours, norm=norm, rasterized=True)
    for kind in np.unique(found):
        axes.fill_between([], [], color=_COLOURS[kind], label=_SAYS[kind])
    axes.plot(design.inputs.psi, design.inputs.xi, "o", color=INK, ms=5, label="this design")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("psi")
    axes.set_ylabel("xi")
    axes.set_title(f"R = {over.ratios[place]:g} x bottleneck, d = {100.0 * deviation:g} % of RTT", fontsize=10)
    axes.legend(fontsize=8, loc="upper left")
