"""Figure of a threshold's Design: the swing of the queue over the number of flows."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from netctrl.plants.ecn.dctcp import StepFluid, fluid_cycle
from netctrl.plotting.style import ACCENT, INK, ShownFigure
from netctrl.units import format_quantity, packets_per_second

__all__ = ["step_figure"]

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
    figure = ShownFigure(figsize=(7.4, 4.6), layout="constrained")
    axes = figure.subplots()
    ends = [[getattr(cycle, name) * product for cycle in cycles] for name in ("lowest", "highest", "mean")]
    axes.fill_between(flows, ends[0], ends[1], color=ACCENT, alpha=0.25, lw=0.0, label="queue of the fluid")
    axes.plot(flows, ends[2], color=ACCENT, lw=1.6, label="its mean")
    axes.axhline(threshold, color=INK, lw=1.4, ls="dashed", label=f"threshold K, {threshold:.4g} packets")
    axes.plot(flows, flows, color=INK, lw=1.2, ls="dotted", label="a packet of each flow")
    if box.flows[0] == box.flows[1]:
        axes.axvline(box.flows[0], color=INK, lw=0.8)
    axes.set(xscale="log", xlabel="number of flows", ylabel="queue [packets]", ylim=(0.0, None))
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.legend(loc="upper left", frameon=False, fontsize=9)
    rtt, capacity = (
        format_quantity(float(f"{value:.4g}"), unit)
        for value, unit in ((proof.rtt_s, "s"), (proof.capacity_bit_per_s, "bit/s"))
    )
    axes.set_title(f"limit cycle of the fluid at {rtt} and {capacity}, g {design.inputs.gain:g}", fontsize=10)
    return figure


def _packets(parameters: dict[str, Any], rate: float, packet_bytes: float) -> float:
    if "k_s" in parameters:
        return float(parameters["k_s"]) * rate
    return float(parameters["k_packets"]) if "k_packets" in parameters else parameters["k_bytes"] / packet_bytes
