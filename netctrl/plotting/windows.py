"""Figure of a window law of data-centre senders: the law itself, and the decay of a burst."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from netctrl.model.design.design import MpccDesign
from netctrl.plotting.style import ACCENT, INK, ShownFigure

__all__ = ["window_figure"]


def window_figure(design: MpccDesign) -> Figure:
    """Window over queue, a burst's queue over time, and gains over the number of flows if the law has a table."""
    law, proof = design.law, design.certificate
    figure = ShownFigure(figsize=(14.0 if law.table is not None else 10.5, 4.6), layout="constrained")
    panels = figure.subplots(1, 3 if law.table is not None else 2)
    empty = law.fair_window / law.gain
    queue = np.linspace(0.0, 1.5 * empty, 400)
    panels[0].plot(queue, np.clip(law.fair_window - law.gain * queue, 0.0, law.bdp_bytes), color=ACCENT, lw=1.8)
    panels[0].axhline(law.fair_window, color=INK, lw=0.9, ls="--", label="fair window c")
    panels[0].set_xlabel("predicted queue [byte]" if law.delayed else "queue [byte]")
    panels[0].set_ylabel("window [byte]")
    panels[0].set_title(f"the law: K = {law.gain:.6g}", fontsize=10)
    panels[0].legend(fontsize=8)
    burst = np.array(proof.burst_queue_bytes)
    time = np.arange(len(burst)) * law.interval_s / law.rtt_s
    panels[1].step(time, burst, where="post", color=ACCENT, lw=1.4)
    panels[1].axhline(law.packet_size_bytes, color=INK, lw=0.9, ls="--", label="a packet")
    panels[1].set_xlabel("time [round trips]")
    panels[1].set_ylabel("queue [byte]")
    idle = f"{100.0 * proof.idle_share:.3g} % of it unused"
    panels[1].set_title(f"a burst of one P_BD: {proof.settling_rtts:.3g} round trips, {idle}", fontsize=10)
    panels[1].legend(fontsize=8)
    if law.table is not None:
        panels[2].loglog(law.table.flows, law.table.gain, color=ACCENT, lw=1.6, label="K")
        panels[2].loglog(
            law.table.flows, law.table.fair_window / law.bdp_bytes, color="#b45f06", lw=1.6, label="c/P_BD"
        )
        panels[2].set_xlabel("flows")
        panels[2].set_title("the table", fontsize=10)
        panels[2].legend(fontsize=8)
    for axes in panels:
        axes.grid(color="#dddddd", lw=0.6)
    figure.suptitle(design.summary()[0], fontsize=11).set_parse_math(False)
    return figure
