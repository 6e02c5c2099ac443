"""Figures of certificates of queues: gain margins around a box, a threshold's limit cycle, a network's eigenvalues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.colors import TwoSlopeNorm
from matplotlib.lines import Line2D

from netctrl.certificates.certify import subject_of
from netctrl.certificates.codel import CycleSubject
from netctrl.certificates.installed import InstalledCertificates
from netctrl.certificates.predicted import figures_map
from netctrl.certificates.record import QueueCertificate
from netctrl.certificates.search import MarginMap, margin_map
from netctrl.core.errors import InvalidValue
from netctrl.core.units import BITS_PER_BYTE, format_quantity, packets_per_second
from netctrl.design.queue.design import certificate_of
from netctrl.design.queue.record import QueueDesign
from netctrl.plants.ecn.dctcp import StepFluid, fluid_cycle
from netctrl.plotting.style import ACCENT, INK, PALE, SECOND, ShownFigure, canvas, decades, finish

_SHOWN_DB = 24.0
_LEVELS = np.arange(-_SHOWN_DB, _SHOWN_DB + 3.0, 3.0)
"""Of the map [dB]."""
_DELAYS, _LATE = 6, "#6aa84f"
"""Lines of delays, at most some, and their colour."""
_WIDE = 100.0
"""Range of rates from which on only decades have room for their names."""
_MAPPED = "a law with a map of its gain margin: pie, dualpi2, pi2, red or wred"
_RATE, _RTT = "rate of the link per flow", "round-trip time without the queue"
_WHITE = "white: windows below 2 packets, or beyond the law's range"
_COLOURS = (ACCENT, SECOND, "#38761d", "#741b47", "#0b5394", "#7f6000")
_NEAR, _FAR = 1.4, 1.4
"""Half width of the picture around the origin, and by how much it reaches beyond the furthest crossing."""


def certificate_figure(found: QueueCertificate) -> ShownFigure:
    """Map of the gain margin around a certificate's box.

    Raises
    ------
    InvalidValue
        A threshold or CoDel, which have no gain margin.
    """
    over = _margins(found)
    if over is None:
        raise InvalidValue("plot", found.law.name, _MAPPED)
    return margin_figure(found, over)


def has_map(found: QueueCertificate) -> bool:
    """Whether a certificate's law has gain margins to draw."""
    return not isinstance(subject_of(found.law.name, found.law.parameters), CycleSubject)


def _margins(found: QueueCertificate) -> MarginMap | None:
    """Map of a certificate's gain margins; None of a law without them, as of `has_map`."""
    law = subject_of(found.law.name, found.law.parameters)
    return None if isinstance(law, CycleSubject) else margin_map(law, found.inputs)


def queue_figure(design: QueueDesign) -> ShownFigure:
    """Map of the gain margin of a queue's design around its box; InvalidValue for CoDel's."""
    return certificate_figure(certificate_of(design))


def installed_figure(found: InstalledCertificates) -> ShownFigure:
    """Maps of the gain margins of all queues whose law has one, side by side.

    Raises
    ------
    InvalidValue
        There is none.
    """
    drawn = []
    for each in found.queues:
        if each.certificate is not None and (over := _margins(each.certificate)) is not None:
            drawn.append((each.name, each.certificate, over))
    if not drawn:
        raise InvalidValue("plot", found.verdict, f"a queue of {_MAPPED}")
    return margins_figure(drawn, columns=min(3, len(drawn)))


def margin_figure(found: Any, over: Any) -> ShownFigure:
    """Map of the gain margin over the rate of a flow and the round-trip time.

    Parameters
    ----------
    found : QueueCertificate
    over : MarginMap
    """
    figure = canvas(7.4, 5.6)
    axes = figure.subplots()
    wide = over.rate_per_flow[-1] > _WIDE * over.rate_per_flow[0]
    _bar(figure, [axes], _map(axes, found, over, (1.0,) if wide else (1.0, 2.0, 5.0)))
    handles = [*_handles(found, over), *_delays(axes, found, over)]
    axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=4, frameon=False)
    finish(axes, _RATE, _RTT, f"{found.verdict.partition('; ')[0]}\n{_WHITE}", grid=False)
    return figure


def margins_figure(entries: Sequence[tuple[str, Any, Any]], columns: int = 3) -> ShownFigure:
    """Maps of several laws' gain margins, each as `margin_figure`'s.

    Parameters
    ----------
    entries : sequence of (str, QueueCertificate, MarginMap)
        Titles, certificates and maps.
    columns : int
        Maps side by side.
    """
    rows = -(-len(entries) // columns)
    figure = canvas(4.0 * columns, 3.3 * rows + 0.6)
    grid = figure.subplots(rows, columns, squeeze=False)
    filled = None
    for axes, (title, found, over) in zip(grid.flat, entries, strict=False):
        filled = _map(axes, found, over, (1.0,))
        axes.set_title(title, fontsize=10)
        axes.tick_params(labelsize=8)
    for axes in grid.flat[len(entries) :]:
        axes.set_axis_off()
    if filled is not None:
        _bar(figure, list(grid.flat), filled)
    title, found, over = entries[0]
    figure.legend(handles=_handles(found, over), loc="outside lower center", ncols=4, frameon=False)
    figure.supylabel(_RTT, fontsize=10)
    figure.suptitle(f"horizontally: {_RATE}; {_WHITE}", fontsize=10)
    return figure


def _bar(figure: ShownFigure, axes: list[Any], filled: Any) -> None:
    bar = figure.colorbar(filled, ax=axes, label="gain margin [dB]", ticks=_LEVELS[::2])
    bar.ax.axhline(6.0, color=INK, lw=1.2)


def _map(axes: Any, found: Any, over: Any, rate_steps: tuple[float, ...]) -> Any:
    """The map, its limits, the box and its worst point."""
    bits = BITS_PER_BYTE * found.inputs.packet_size_bytes
    rate = over.rate_per_flow * bits
    shown = np.ma.masked_invalid(np.clip(over.gain_margin_db, -_SHOWN_DB, _SHOWN_DB))
    filled = axes.contourf(
        rate, over.rtt_s, shown, levels=_LEVELS, cmap="PuOr", norm=TwoSlopeNorm(0.0, -_SHOWN_DB, _SHOWN_DB)
    )
    axes.contour(rate, over.rtt_s, shown, levels=[0.0], colors=INK, linewidths=1.6)
    axes.contour(rate, over.rtt_s, shown, levels=[6.0], colors=INK, linewidths=1.2, linestyles="dashed")
    if _is_box(found, over):
        low, high = (each * bits for each in over.box_rate_per_flow)
        short, long = found.inputs.rtt_s
        axes.plot([low, high, high, low, low], [short, short, long, long, short], color=INK, lw=2.4, ls="dotted")
    worst = found.certificate.sampled
    if worst is not None:
        if worst.flows is None:
            at = worst.windows_packets[0] / (worst.rtt_s + worst.queue_delay_s) * bits
        else:
            at = worst.capacity_bit_per_s / worst.flows
        axes.plot([at], [worst.rtt_s], "o", color="white", mec=INK, mew=1.6, ms=9)
    axes.set(xscale="log", yscale="log")
    decades(axes.xaxis, "bit/s", rate_steps)
    decades(axes.yaxis, "s")
    return filled


def _delays(axes: Any, found: Any, over: Any) -> list[Line2D]:
    """Lines of the delay's 99th percentile, of a queue's law where its loop tells it, and their entry in the legend."""
    figures = None
    if isinstance(found, QueueCertificate):
        law: Any = subject_of(found.law.name, found.law.parameters)
        figures = figures_map(law, found.inputs, over)
    if figures is None or not np.isfinite(figures[2]).any():
        return []
    rate, late = over.rate_per_flow * BITS_PER_BYTE * found.inputs.packet_size_bytes, np.ma.masked_invalid(figures[2])
    lines = axes.contour(rate, over.rtt_s, late, levels=_DELAYS, colors=_LATE, linewidths=1.6)
    axes.clabel(lines, fmt=lambda value: format_quantity(float(f"{value:.3g}"), "s"), fontsize=8)
    return [Line2D([], [], color=_LATE, lw=1.6, label="99 % wait less")]


def _is_box(found: Any, over: Any) -> bool:
    low, high = over.box_rate_per_flow
    short, long = found.inputs.rtt_s
    return bool(low < high or short < long)


def _handles(found: Any, over: Any) -> list[Line2D]:
    handles = [
        Line2D([], [], color=INK, lw=1.6, label="limit of stability"),
        Line2D([], [], color=INK, lw=1.2, ls="dashed", label="6 dB"),
    ]
    if _is_box(found, over):
        handles.append(Line2D([], [], color=INK, lw=2.4, ls="dotted", label="the requested box"))
    if found.certificate.sampled is not None:
        handles.append(Line2D([], [], color="white", marker="o", mec=INK, mew=1.6, ms=9, ls="", label="worst point"))
    return handles


def eigenloci_figure(found: Any, loci: Any) -> ShownFigure:
    """Eigenvalues of the return ratio L over all angles, which must not encircle −1.

    Parameters
    ----------
    found : NetworkCertificate
    loci : Eigenloci
        Its eigenvalues.
    """
    figure = canvas(6.4, 6.0)
    axes = figure.subplots()
    crossings = np.array([each.real for each in loci.crossings])
    reach = max(_NEAR, _FAR * float(-crossings.min(initial=0.0)))
    for k, curve in enumerate(loci.curves.T):
        colour = _COLOURS[k % len(_COLOURS)]
        axes.plot(curve.real, curve.imag, color=colour, lw=1.6, label=f"eigenvalue {k + 1}")
        axes.plot(curve.real, -curve.imag, color=colour, lw=0.8, ls="dashed")
    turn = np.linspace(0.0, 2.0 * np.pi, 200)
    axes.plot(np.cos(turn), np.sin(turn), color="#999999", lw=0.6)
    if len(crossings):
        axes.plot(crossings, np.zeros(len(crossings)), "o", color="white", mec=INK, mew=1.4, ms=6, label="crossings")
    axes.plot([-1.0], [0.0], "+", color="#cc0000", ms=14, mew=2.2, label="−1")
    axes.axhline(0.0, color=PALE, lw=0.6, zorder=0)
    axes.axvline(0.0, color=PALE, lw=0.6, zorder=0)
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xlabel="real part", ylabel="imaginary part")
    axes.set_title(f"{found.verdict}\ndashed: negative frequencies", fontsize=10, wrap=True)
    axes.legend(loc="lower right", fontsize=8)
    return figure


_LOOKED = 41
_WIDER = 4.0
"""Factor by which a single number of flows is widened on both sides."""


def step_figure(design: Any) -> ShownFigure:
    """Swing of the queue over the number of flows, at the round-trip time and the rate of the worst point.

    Parameters
    ----------
    design : EcnDesign
    """
    proof, box = design.certificate, design.inputs.box
    rate = packets_per_second(proof.capacity_bit_per_s, box.packet_size_bytes)
    product = rate * proof.rtt_s
    low, high = box.flows
    if low == high:
        low, high = low / _WIDER, high * _WIDER
    flows = np.geomspace(low, high, _LOOKED)
    threshold = _packets(design.law.parameters, rate, box.packet_size_bytes)
    cycles = [fluid_cycle(StepFluid(product / N, threshold / product, design.inputs.gain)) for N in flows]
    figure = canvas(7.4, 4.6)
    axes = figure.subplots()
    ends = [[getattr(cycle, name) * product for cycle in cycles] for name in ("lowest", "highest", "mean")]
    axes.fill_between(flows, ends[0], ends[1], color=ACCENT, alpha=0.25, lw=0.0, label="queue of the fluid")
    axes.plot(flows, ends[2], color=ACCENT, lw=1.6, label="its mean")
    axes.axhline(threshold, color=INK, lw=1.4, ls="dashed", label=f"threshold K, {threshold:.4g} packets")
    axes.plot(flows, flows, color=INK, lw=1.2, ls="dotted", label="a packet of each flow")
    if box.flows[0] == box.flows[1]:
        axes.axvline(box.flows[0], color=INK, lw=0.8)
    axes.set(xscale="log", ylim=(0.0, None))
    decades(axes.xaxis)
    rtt, capacity = (
        format_quantity(float(f"{value:.4g}"), unit)
        for value, unit in ((proof.rtt_s, "s"), (proof.capacity_bit_per_s, "bit/s"))
    )
    title = f"limit cycle of the fluid at {rtt} and {capacity}, g {design.inputs.gain:g}"
    finish(axes, "number of flows", "queue [packets]", title, legend=9, grid=False, loc="upper left", frameon=False)
    return figure


def _packets(parameters: dict[str, Any], rate: float, packet_bytes: float) -> float:
    if "k_s" in parameters:
        return float(parameters["k_s"]) * rate
    return float(parameters["k_packets"]) if "k_packets" in parameters else parameters["k_bytes"] / packet_bytes
