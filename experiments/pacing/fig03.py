"""Pacing paper, Fig. 3: throughput of the flows of Fig. 2, without control and with it, over deep and shallow buffers.

H-TCP never leaves a buffer of one BDP empty, so that its throughput has no saw-tooth; over a tenth of it, it has one.
"""

import numpy as np
import pacing.paper_link as paper
import pandas as pd
from common import Outcome, verdicts
from matplotlib.figure import Figure

import netctrl
from netctrl.scenario.result import Result

BUFFERS = {"one BDP": paper.BUFFER, "a tenth of a BDP": 0.1 * paper.BUFFER}
FLOWS = {"Reno alone": netctrl.Flow(sender="reno")} | paper.CASES
COLOURS = dict(
    zip(FLOWS, (paper.GREY, paper.BLUE, paper.ORANGE, paper.RED, "#8064a2", "#222222", paper.GREEN), strict=True)
)


def main(*, full: bool = False) -> Outcome:
    links = {(name, size): paper.run([flow], buffer=BUFFERS[size]) for size in BUFFERS for name, flow in FLOWS.items()}
    found = {case: paper.means(link) for case, link in links.items()}
    deep, shallow = BUFFERS
    computed = {
        "fig3-free": found[paper.FREE, deep].rate_std,
        "fig3-free-shallow": found[paper.FREE, shallow].rate_std,
        "fig3-known": found[paper.KNOWN, deep].rate_std,
        "fig3-known-shallow": found[paper.KNOWN, shallow].rate_std,
        "fig3-ratio": (found[paper.KNOWN, shallow].rate_std / found[paper.FREE, shallow].rate_std) ** 2,
        "fig3-unknown": found[paper.UNKNOWN, deep].rate_std,
        "fig3-cap": found[paper.AT_CAP, shallow].rate_std,
        "fig3-own": found[paper.OWN_RATE, shallow].rate_std,
        "fig3-own-rate": found[paper.OWN_RATE, shallow].rate,
    }
    rows = [
        (name, *(f"{found[name, size].rate:.3f} ± {found[name, size].rate_std:.3f}" for size in BUFFERS))
        for name in FLOWS
    ]
    table = pd.DataFrame(rows, columns=["flow", *(f"Gbit/s, {size}" for size in BUFFERS)])
    frames = [
        pd.DataFrame({"flow": name, "buffer": size, "second": np.arange(10, 60), "gbit_per_s": paper.by_second(link)})
        for (name, size), link in links.items()
    ]
    return Outcome("fig03", "pacing", pd.concat(frames, ignore_index=True), draw(links), computed, table)


def draw(links: dict[tuple[str, str], Result]) -> Figure:
    figure = Figure(figsize=(13.0, 7.4), layout="constrained")
    for column, size in zip(figure.subplots(2, 2).T, BUFFERS, strict=True):
        for axes, names in zip(column, (list(FLOWS)[:2], list(FLOWS)[2:]), strict=True):
            for name in names:
                link = links[name, size]
                smooth = paper.throughput(link)[0].reshape(-1, 10).mean(axis=1) / 1e9
                axes.plot(link.time_s[9::10], smooth, color=COLOURS[name], lw=0.8, label=name)
            paper.grid(axes, f"buffer of {size}", xlabel="time [s]", ylabel="Gbit/s in 0.1 s")
            axes.legend(fontsize=7, loc="lower center", ncols=3)
        column[0].set(title=f"Fig. 3a: without control, buffer of {size}", ylim=(5.0, 10.3))
        column[1].set(title=f"Fig. 3b and ours: with it, buffer of {size}", ylim=(0.0, 10.8))
    figure.suptitle(
        "Pacing paper, Fig. 3: throughput at 10 Gbit/s and 4 ms, RTTs up by 0.02 ms on average", fontsize=11
    )
    figure.supxlabel(verdicts("pacing", "Fig. 3"), fontsize=8.5)
    return figure
