"""CONNET in the kernel, as Fig. 5: models from traces of a kernel queue, and how they do on what they didn't see."""

from __future__ import annotations

import numpy as np
import pandas as pd
from common import Outcome, shown
from linux.connet_fig_common import first_repeat
from linux.connet_loop import designed, trace
from linux.connet_plant import Plant
from linux.connet_study import COLOURS, HELD_OUT, LQI, kept
from matplotlib.figure import Figure

import netctrl
from netctrl.model.fit import IdentificationResult


def main(*, full: bool = False) -> Outcome:
    data, interval = kept(), Plant().interval
    rows, series = [], None
    for number, part in data[data.kind == "trace"].groupby("repeat"):
        found = netctrl.identify(trace(part, interval), held_out=HELD_OUT)
        model, how = found.model, found.model.identification
        proof = designed(model).certificate
        gain = model.state_space.steady_gain()
        rows.append(
            {
                "repeat": number,
                "order": len(model.A),
                "gain_delay": gain[0, 0],
                "gain_jitter": gain[1, 0],
                "vaf_delay": how.vaf[0],
                "vaf_jitter": how.vaf[1],
                "held_out_delay": how.held_out_vaf[0],
                "held_out_jitter": how.held_out_vaf[1],
                "disc_alpha": proof.disc_alpha,
                "radius": proof.spectral_radius,
            }
        )
        series = found if series is None else series
    table = pd.DataFrame(rows)
    said = "Dashed line: from here on the model was not made from what is shown."
    figure = draw(first_repeat(data, "trace"), series, interval, said)
    computed = {
        "connet-ident-delay": float(table.held_out_delay.mean()),
        "connet-ident-jitter": float(table.held_out_jitter.mean()),
        "connet-ident-admissible": float((table.disc_alpha > 2.0 / 3.0).mean()),
        "connet-ident-gain": float(table.gain_delay.std() / table.gain_delay.mean()),
    }
    text = pd.DataFrame(
        [
            ("order", " ".join(map(str, table.order))),
            ("gain R to delay [ms per Mbit/s]", shown(table.gain_delay, 3)),
            ("gain R to jitter [ms per Mbit/s]", shown(table.gain_jitter, 3)),
            ("delay: variance accounted for, fitted [%]", shown(table.vaf_delay, 0)),
            ("delay: held out [%]", shown(table.held_out_delay, 0)),
            ("jitter: variance accounted for, fitted [%]", shown(table.vaf_jitter, 0)),
            ("jitter: held out [%]", shown(table.held_out_jitter, 0)),
            ("disk margin of the LQI loop", shown(table.disc_alpha, 2)),
        ],
        columns=["of five models", "mean ± 95 %"],
    )
    return Outcome("connet-identification", "linux", table, figure, computed, text)


def draw(runs: dict[str, pd.DataFrame], found: IdentificationResult, interval: float, said: str) -> Figure:
    run = next(iter(runs.values()))
    times = interval * np.arange(1, len(run) + 1)
    modelled = np.vstack([found.simulated, found.held_out_simulated])
    figure = Figure(figsize=(9.0, 6.4), layout="constrained")
    panels = figure.subplots(3, 1, sharex=True)
    for k, name in enumerate(("delay", "jitter")):
        panels[k].plot(times, run[f"{name}_ms"], color="#999999", lw=1.0, label="kernel")
        panels[k].plot(times, modelled[:, k], color=COLOURS[LQI], lw=1.0, label="model, simulated")
        panels[k].set_ylabel(f"{name} [ms]")
    panels[2].step(times, run.rate, where="pre", color="#222222", lw=1.0)
    panels[2].set(ylabel="R [Mbit/s]", xlabel="time [s]")
    for axes in panels:
        axes.grid(color="#dddddd", lw=0.6)
        axes.axvline(times[len(found.simulated)], color="#c0504d", lw=1.0, ls="--")
    panels[0].legend(fontsize=8, ncols=2)
    figure.suptitle("CONNET in the kernel: a model from a trace", fontsize=12)
    figure.supxlabel(said, fontsize=8.5)
    return figure
