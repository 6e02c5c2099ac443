"""CONNET paper, Section 4 and Fig. 7: the printed numbers, and the loop of eq. (4) with references that change."""

import numpy as np
import pandas as pd
from common import Outcome
from connet.links import COLOURS, LIMITS, LQI, PRINTED, laws, printed_model, stretch
from matplotlib.figure import Figure

import netctrl
from netctrl.synthesis.riccati.tracking import tracking_loop

STEPS = ((0.46, 0.043), (0.97, 0.656), (0.53, 0.157), (1.43, 0.918), (0.68, 0.361))
"""References on the curve of packets [ms]; the paper's own are not printed."""


def main(*, full: bool = False) -> Outcome:
    model = printed_model()
    reference = stretch(STEPS, 100.0)
    outputs = {}
    ways = laws()
    for name, law in ways.items():
        loop = tracking_loop(model.state_space, law)
        x, rows = np.zeros(loop.response.n_states), []
        for r in reference:
            rows.append(np.concatenate([loop.response.C @ x, loop.effort.C @ x]))
            x = loop.response.A @ x + loop.response.B @ r
        outputs[name] = np.array(rows)
    designed = netctrl.connet(model, method="paper", track="jitter", limits=LIMITS)
    printed = tracking_loop(model.state_space, ways[PRINTED])
    T = printed.response.steady_gain()
    ends = np.arange(99, 500, 100)
    desired = reference[ends]

    def worst(name: str, column: int) -> float:
        return float(np.abs(outputs[name][ends, column] / desired[:, column] - 1.0).max())

    poles = np.sort(np.abs(np.linalg.eigvals(printed.response.A)))[::-1]
    computed = {
        "model-pole": float(np.abs(np.linalg.eigvals(model.A)).max()),
        "section4-k": float(np.abs(designed.law.K[0, 0])),
        "section4-l": float(np.abs(designed.law.L[1, 1])),
        "section4-pole": float(poles[0]),
        "section4-bandwidth": float(designed.certificate.bandwidth_hz or 0.0),
        "section4-dc-jitter": float(T[1, 1]),
        "section4-dc-delay": float(T[0, 0]),
        "fig7-jitter": worst(PRINTED, 1),
        "fig7-delay": worst(PRINTED, 0),
        "fig7-lqi-delay": worst(LQI, 0),
    }
    time = np.arange(len(reference)) * model.dt
    figure = Figure(figsize=(9.0, 7.2), layout="constrained")
    panels = figure.subplots(3, 1, sharex=True)
    for name, rows in outputs.items():
        for axes, column in zip(panels, rows.T, strict=True):
            axes.step(time, column, where="post", color=COLOURS[name], lw=1.2, label=name)
    for axes, column in zip(panels, reference.T, strict=False):
        axes.step(time, column, where="post", color="#222222", lw=1.0, ls="--", label="reference")
    for axes, label in zip(panels, ("delay [ms]", "jitter [ms]", "R [Mbit/s]"), strict=True):
        axes.set_ylabel(label)
        axes.grid(color="#dddddd", lw=0.6)
    panels[0].legend(fontsize=8, ncols=3)
    panels[-1].set_xlabel("time [s]")
    figure.suptitle("CONNET paper, Fig. 7: the linear loop, references on the curve of packets", fontsize=12)
    said = (
        "Paper: both references are tracked. The model has one line of attainable pairs: the printed loop follows the"
    )
    figure.supxlabel(f"{said} jitter's reference, LQI the delay's.", fontsize=8.5)
    parts = [
        pd.DataFrame(rows, columns=["delay_ms", "jitter_ms", "rate_mbit_s"]).assign(law=name, time_s=time)
        for name, rows in outputs.items()
    ]
    return Outcome("fig07", "connet", pd.concat(parts, ignore_index=True), figure, computed)
