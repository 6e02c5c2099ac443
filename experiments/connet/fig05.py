"""CONNET paper, Fig. 5: models from traces, by a ramp and by a binary signal; and what designs from them track.

Traces are of the printed model with its printed noise: there the truth is known. 20 each, order 2.
"""

import numpy as np
import pandas as pd
from common import Outcome
from connet.links import LIMITS, printed_model
from matplotlib.figure import Figure

import netctrl
from netctrl.synthesis.riccati.tracking import tracking_loop

RUNS, SAMPLES = 20, 2000
LOW, HIGH = 1.5, 95.0
"""Section 3.2 [Mbit/s]."""


def ramp(samples: int) -> np.ndarray:
    """Up and down, in 20 levels of which each holds for 10 s."""
    levels = np.concatenate([np.linspace(LOW, HIGH, 20), np.linspace(HIGH, LOW, 20)])
    return np.resize(np.repeat(levels, 10), samples)


def trace(rates: np.ndarray, seed: int) -> netctrl.SignalTrace:
    model, rng = printed_model(), np.random.default_rng(seed)
    noise = rng.multivariate_normal(np.zeros(2), model.innovation_covariance, len(rates))
    x, outputs = np.zeros(2), np.empty((len(rates), 2))
    for k, (rate, e) in enumerate(zip(rates, noise, strict=True)):
        outputs[k] = model.C @ x + model.D[:, 0] * rate + e
        x = model.A @ x + model.B[:, 0] * rate + model.K @ e
    return netctrl.SignalTrace(
        interval_s=1.0, input_values=rates, output_values=outputs, inputs=("R",), outputs=("delay", "jitter")
    )


def steady(model: netctrl.IdentifiedModel, method: str, track: str) -> float:
    """What the loop with the true model settles at, for a unit of the reference of `track` and its partner."""
    truth = printed_model().state_space
    # Of every model, also those whose gain its trace doesn't determine: what they lead to is the figure.
    law = netctrl.connet(model, method=method, track=track, limits=LIMITS, accept="stable").law
    loop = tracking_loop(truth, law).response
    if np.abs(np.linalg.eigvals(loop.A)).max() >= 1.0:
        return np.nan
    gain = truth.steady_gain()[:, 0]
    row = law.outputs.index(track)
    return float((loop.steady_gain() @ gain)[row] / gain[row])


def main(*, full: bool = False) -> Outcome:
    inputs = {
        "ramp": lambda seed: ramp(SAMPLES),
        "binary": lambda seed: netctrl.gbn(SAMPLES, (LOW, HIGH), np.random.default_rng(seed))[:, 0],
    }
    rows = []
    for name, make in inputs.items():
        for seed in range(RUNS):
            found = netctrl.identify(trace(make(seed), seed), order=2, method="n4sid", horizon=10)
            poles = np.sort_complex(np.linalg.eigvals(found.model.A))
            paper, lqi = steady(found.model, "paper", "jitter"), steady(found.model, "lqi", "delay")
            rows.append((name, seed, poles[0].real, poles[1].real, paper, lqi))
    columns = ["input", "seed", "fast_pole", "slow_pole", "paper_jitter", "lqi_delay"]
    data = pd.DataFrame(rows, columns=columns)
    true = np.sort(np.linalg.eigvals(printed_model().A))
    figure = Figure(figsize=(10.0, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for (name, part), colour in zip(data.groupby("input", sort=False), ("#b45f06", "#1f4e9c"), strict=True):
        left.plot(part.fast_pole, part.slow_pole, "o", color=colour, ms=4, label=f"from a {name} signal")
        right.plot(part.seed, part.paper_jitter, "o", color=colour, ms=4, label=f"paper's recipe, {name}")
        right.plot(part.seed, part.lqi_delay, "+", color=colour, ms=6, label=f"LQI, {name}")
    left.plot(*true, "x", color="#c0504d", ms=9, mew=2, label="the model")
    left.set(xlabel="fast pole", ylabel="slow pole")
    right.axhline(1.0, color="#222222", lw=0.8, ls="--")
    right.set(xlabel="identification", ylabel="settles at, over its reference")
    for axes in (left, right):
        axes.grid(color="#dddddd", lw=0.6)
        axes.legend(fontsize=8)
    figure.suptitle(f"CONNET paper, Fig. 5: order 2 from {SAMPLES} samples with the printed noise", fontsize=12)
    said = (
        "Paper: a model of order 2 is good enough. The published recipe tracks by luck; integral action always tracks."
    )
    figure.supxlabel(said, fontsize=8.5)

    def median_error(name: str) -> float:
        part = data[data.input == name]
        return float(np.maximum(abs(part.fast_pole - true[0]), abs(part.slow_pole - true[1])).median())

    computed = {
        "fig5-ramp-poles": median_error("ramp"),
        "fig5-binary-poles": median_error("binary"),
        "fig5-paper-least": float(data.paper_jitter.min()),
        "fig5-paper-most": float(data.paper_jitter.max()),
        "fig5-lqi": float((data.lqi_delay - 1.0).abs().max() > 1e-9),
    }
    return Outcome("fig05", "connet", data, figure, computed)
