"""Figures of certificates of queues: the gain margin around the box that was asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.colors import TwoSlopeNorm
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from netctrl.plotting.style import INK, ShownFigure
from netctrl.units import BITS_PER_BYTE, format_quantity

__all__ = ["margin_figure"]

_SHOWN_DB = 24.0
_STEP_DB = 3.0


def margin_figure(found: Any, over: Any) -> ShownFigure:
    """Map of the gain margin over the rate of a flow and the round-trip time.

    Parameters
    ----------
    found : QueueCertificate
    over : MarginMap
    """
    figure = ShownFigure(figsize=(7.4, 5.6), layout="constrained")
    axes = figure.subplots()
    bits = BITS_PER_BYTE * found.inputs.packet_size_bytes
    rate = over.rate_per_flow * bits
    shown = np.ma.masked_invalid(np.clip(over.gain_margin_db, -_SHOWN_DB, _SHOWN_DB))
    levels = np.arange(-_SHOWN_DB, _SHOWN_DB + _STEP_DB, _STEP_DB)
    filled = axes.contourf(
        rate, over.rtt_s, shown, levels=levels, cmap="PuOr", norm=TwoSlopeNorm(0.0, -_SHOWN_DB, _SHOWN_DB)
    )
    bar = figure.colorbar(filled, ax=axes, label="gain margin [dB]", ticks=levels[::2])
    bar.ax.axhline(6.0, color=INK, lw=1.2)
    axes.contour(rate, over.rtt_s, shown, levels=[0.0], colors=INK, linewidths=1.6)
    axes.contour(rate, over.rtt_s, shown, levels=[6.0], colors=INK, linewidths=1.2, linestyles="dashed")
    low, high = (each * bits for each in over.box_rate_per_flow)
    short, long = found.inputs.rtt_s
    worst = found.certificate.sampled
    entries = [
        Line2D([], [], color=INK, lw=1.6, label="limit of stability"),
        Line2D([], [], color=INK, lw=1.2, ls="dashed", label="6 dB"),
    ]
    if low < high or short < long:
        axes.plot([low, high, high, low, low], [short, short, long, long, short], color=INK, lw=2.4, ls="dotted")
        entries.append(Line2D([], [], color=INK, lw=2.4, ls="dotted", label="the requested box"))
    if worst is not None:
        if worst.flows is None:
            at = worst.windows_packets[0] / (worst.rtt_s + worst.queue_delay_s) * bits
        else:
            at = found.inputs.capacity_bit_per_s[1] / worst.flows
        axes.plot([at], [worst.rtt_s], "o", color="white", mec=INK, mew=1.6, ms=9)
        entries.append(Line2D([], [], color="white", marker="o", mec=INK, mew=1.6, ms=9, ls="", label="worst point"))
    axes.set(xscale="log", yscale="log", xlabel="rate of the link per flow", ylabel="round-trip time without the queue")
    for axis, unit in ((axes.xaxis, "bit/s"), (axes.yaxis, "s")):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(
            FuncFormatter(lambda value, _, unit=unit: format_quantity(float(f"{value:.3g}"), unit))
        )
        axis.set_minor_formatter(NullFormatter())
    axes.legend(handles=entries, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=4, frameon=False)
    axes.set_title(f"{found.verdict}\nwhite: windows below 2 packets, or beyond the law's range", fontsize=10)
    return figure
