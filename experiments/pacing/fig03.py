"""Pacing paper, Fig. 3: throughput of the flows of Fig. 2, without control and with it, over deep and shallow buffers.

H-TCP never leaves a buffer of one BDP empty, so that its throughput has no saw-tooth; over a tenth of it, it has one.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from common import Outcome, verdicts
from matplotlib.figure import Figure
from pacing.paper_link import (
    AT_CAP,
    BLUE,
    BUFFER,
    CASES,
    FREE,
    GREEN,
    GREY,
    KNOWN,
    ORANGE,
    RED,
    RTT,
    TO_TARGET,
    UNKNOWN,
    by_second,
    grid,
    means,
    run,
)

import netctrl

BUFFERS = {"one BDP": BUFFER, "a tenth of a BDP": 0.1 * BUFFER}
FLOWS = {"Reno alone": netctrl.RenoFlow(RTT)} | CASES
COLOURS = dict(zip(FLOWS, (GREY, BLUE, ORANGE, RED, "#8064a2", "#222222", GREEN), strict=True))


def main(*, full: bool = False) -> Outcome:
    links = {(name, size): run([flow], buffer_bytes=BUFFERS[size]) for size in BUFFERS for name, flow in FLOWS.items()}
    found = {case: means(link) for case, link in links.items()}
    deep, shallow = BUFFERS
    computed = {
        "fig3-free": found[FREE, deep].rate_std,
        "fig3-free-shallow": found[FREE, shallow].rate_std,
        "fig3-known": found[KNOWN, deep].rate_std,
        "fig3-known-shallow": found[KNOWN, shallow].rate_std,
        "fig3-ratio": (found[KNOWN, shallow].rate_std / found[FREE, shallow].rate_std) ** 2,
        "fig3-unknown": found[UNKNOWN, deep].rate_std,
        "fig3-cap": found[AT_CAP, shallow].rate_std,
        "fig3-target": found[TO_TARGET, shallow].rate_std,
        "fig3-target-rate": found[TO_TARGET, shallow].rate,
    }
    rows = [
        (name, *(f"{found[name, size].rate:.3f} ± {found[name, size].rate_std:.3f}" for size in BUFFERS))
        for name in FLOWS
    ]
    table = pd.DataFrame(rows, columns=["flow", *(f"Gbit/s, {size}" for size in BUFFERS)])
    frames = [
        pd.DataFrame({"flow": name, "buffer": size, "second": np.arange(10, 60), "gbit_per_s": by_second(link)})
        for (name, size), link in links.items()
    ]
    return Outcome("fig03", "pacing", pd.concat(frames, ignore_index=True), draw(links), computed, table)


def draw(links: dict[tuple[str, str], netctrl.BottleneckLink]) -> Figure:
    figure = Figure(figsize=(13.0, 7.4), layout="constrained")
    for column, size in zip(figure.subplots(2, 2).T, BUFFERS, strict=True):
        for axes, names in zip(column, (list(FLOWS)[:2], list(FLOWS)[2:]), strict=True):
            for name in names:
                link = links[name, size]
                smooth = link.throughput[0].reshape(-1, 10).mean(axis=1) / 1e9
                axes.plot(link.time_s[9::10], smooth, color=COLOURS[name], lw=0.8, label=name)
            grid(axes, f"buffer of {size}", xlabel="time [s]", ylabel="Gbit/s in 0.1 s")
            axes.legend(fontsize=7, loc="lower center", ncols=3)
        column[0].set(title=f"Fig. 3a: without control, buffer of {size}", ylim=(5.0, 10.3))
        column[1].set(title=f"Fig. 3b and ours: with it, buffer of {size}", ylim=(0.0, 10.8))
    figure.suptitle(
        "Pacing paper, Fig. 3: throughput at 10 Gbit/s and 4 ms, RTTs up by 0.02 ms on average", fontsize=11
    )
    figure.supxlabel(verdicts("pacing", "Fig. 3"), fontsize=8.5)
    return figure
