"""Figures of laws of senders: a window law of data centres, and pacing laws."""

from __future__ import annotations

import numpy as np
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure

from netctrl.core.units import packets_per_second
from netctrl.model.design.design import MpccDesign, PacingDesign
from netctrl.model.design.pacing import PacingMap
from netctrl.model.law import OwnRatePacer
from netctrl.plotting.style import ACCENT, INK, SECOND, canvas, finish


def window_figure(design: MpccDesign) -> Figure:
    """Window over queue, a burst's queue over time, and gains over the number of flows if the law has a table."""
    law, proof = design.law, design.certificate
    figure = canvas(14.0 if law.table is not None else 10.5, 4.6, design.summary()[0])
    panels = figure.subplots(1, 3 if law.table is not None else 2)
    empty = law.fair_window / law.gain
    queue = np.linspace(0.0, 1.5 * empty, 400)
    panels[0].plot(queue, np.clip(law.fair_window - law.gain * queue, 0.0, law.bdp_bytes), color=ACCENT, lw=1.8)
    panels[0].axhline(law.fair_window, color=INK, lw=0.9, ls="--", label="fair window c")
    queue_name = "predicted queue [byte]" if law.delayed else "queue [byte]"
    finish(panels[0], queue_name, "window [byte]", f"the law: K = {law.gain:.6g}", legend=8)
    burst = np.array(proof.burst_queue_bytes)
    time = np.arange(len(burst)) * law.interval_s / law.rtt_s
    panels[1].step(time, burst, where="post", color=ACCENT, lw=1.4)
    panels[1].axhline(law.packet_size_bytes, color=INK, lw=0.9, ls="--", label="a packet")
    said = f"{proof.settling_rtts:.3g} round trips, {100.0 * proof.idle_share:.3g} % of it unused"
    finish(panels[1], "time [round trips]", "queue [byte]", f"a burst of one P_BD: {said}", legend=8)
    if law.table is not None:
        panels[2].loglog(law.table.flows, law.table.gain, color=ACCENT, lw=1.6, label="K")
        panels[2].loglog(law.table.flows, law.table.fair_window / law.bdp_bytes, color=SECOND, lw=1.6, label="c/P_BD")
        finish(panels[2], "flows", title="the table", legend=8)
    return figure


_COLOURS = ("#9fb8d9", "#b5d6a7", "#eeb5a0")
_SAYS = ("freezes", "runs to R: a cap", "runs to R: no effect")
_DEVIATION = 0.2  # of a sawtooth


def pacing_figure(design: PacingDesign, over: PacingMap | None = None, *, deviation: float = _DEVIATION) -> Figure:
    """Queue of an own-rate design; of the paper's law deviations, and outcomes over (ψ, ξ) for each ratio R/bottleneck.

    Parameters
    ----------
    over : PacingMap, optional
        Map of these outcomes; by default `netctrl.design.pacing.design.pacing_map`'s for the paper's law.
    deviation : float
        Relative error of predicted RTTs.
    """
    if over is None and design.inputs.mode == "paper":
        from netctrl.design.pacing.design import pacing_map

        over = pacing_map(design)
    panels = 0 if over is None else len(over.ratios)
    figure = canvas(4.6 + 3.2 * panels, 4.4, design.summary()[0])
    axes = np.atleast_1d(figure.subplots(1, 1 + panels))
    if isinstance(design.law, OwnRatePacer):
        _own_queues(axes[0], design.law, design.inputs.bottleneck_bit_per_s)
    else:
        _deviations(axes[0], design)
    if over is not None:
        for place, panel in enumerate(axes[1:]):
            _outcomes(panel, design, over, place, deviation)
    return figure


def _deviations(axes, design: PacingDesign) -> None:
    """Draw the map of deviations, d → d²/d*."""
    d_star = design.certificate.freeze_below_s
    rtt = design.inputs.rtt_s
    span = 2.0 * (rtt if d_star is None else d_star)
    d = np.linspace(0.0, span, 200)
    if d_star is not None:
        axes.plot(1e3 * d, 1e3 * d * d / d_star, color=ACCENT, lw=1.8, label="next d = d²/d*")
        axes.axvline(1e3 * d_star, color=SECOND, lw=1.0, ls=":", label=f"d* = {1e3 * d_star:.3g} ms")
    axes.plot(1e3 * d, 1e3 * d, color=INK, lw=0.9, ls="--", label="stays")
    labels = "deviation of the predicted RTT [ms]", "after the next rate [ms]"
    finish(axes, *labels, "below d* it freezes", legend=8)


def _own_queues(axes, law: OwnRatePacer, rate: float) -> None:
    """Draw the queueing delay of an own-rate law over the number of flows."""
    flows = np.logspace(0.0, 3.0, 200)
    each = packets_per_second(rate, law.packet_size_bytes) / flows
    delays = law.queue_packets / each + law.queue_packets_per_root_rate / np.sqrt(each)
    axes.loglog(flows, 1e3 * delays, color=ACCENT, lw=1.8)
    finish(axes, "flows", "queueing delay [ms]", f"at {rate / 1e6:g} Mbit/s, whatever the round trips")


def _outcomes(axes, design: PacingDesign, over: PacingMap, place: int, deviation: float) -> None:
    found = over.outcomes(deviation)[place]
    colours, norm = ListedColormap(_COLOURS), BoundaryNorm([-0.5, 0.5, 1.5, 2.5], 3)
    axes.pcolormesh(over.psi, over.xi, found, cmap=colours, norm=norm, rasterized=True)
    for kind in np.unique(found):
        axes.fill_between([], [], color=_COLOURS[kind], label=_SAYS[kind])
    axes.plot(design.inputs.psi, design.inputs.xi, "o", color=INK, ms=5, label="this design")
    axes.set(xscale="log", yscale="log")
    title = f"R = {over.ratios[place]:g} x bottleneck, d = {100.0 * deviation:g} % of RTT"
    finish(axes, "psi", "xi", title, legend=8, grid=False, loc="upper left")
