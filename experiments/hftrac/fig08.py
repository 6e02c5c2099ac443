"""HFTraC paper, Figs. 8 and 9, on a stand-in: its CAIDA traces aren't public.

In their place normal rates with a long memory, fractional Gaussian noise of Hurst parameter 0.8, with the means that
the paper scales its traces to (13.75 and 27.5 Mbit/s: it names the two sources the other way round, which its testbed
can't carry) and the deviation of its other experiments, 8 Mbit/s.
"""

import numpy as np
import pandas as pd
from common import Outcome
from hftrac.fig07 import by_load, draw_loss, draw_queue
from hftrac.fig_common import grid, panel, scenario, verdict
from hftrac.networks import MEGA, STEP
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

from netctrl.model.datasets import network_path
from netctrl.model.network import Network, read_network
from netctrl.scenario.network.policy import Fifo
from netctrl.scenario.network.traffic import LongRangeTraffic
from netctrl.sim.network.demands import DemandSource

HURST = 0.8
STAND_IN = LongRangeTraffic(hurst=HURST)
MEANS = (13.75, 27.5)
LOAD = (MEANS[0] + 0.25 * MEANS[1]) / 30.0
"""Utilization of the busiest link at the paper's means."""
SCALES = {1: "#1f4e9c", 10: "#38761d", 100: "#c0504d"}
"""Samples of 10 ms that are averaged."""
TRACE = 400.0
"""[s]"""
SHOWN = 40.0
"""Of it drawn [s]."""


def main(*, full: bool = False) -> Outcome:
    network = read_network(network_path("testbed"))
    rate, load = trace(network), by_load(network, STAND_IN)
    series = pd.DataFrame({"time_s": STEP * np.arange(1, len(rate) + 1), "rate": rate})
    data = pd.concat({"8": series, "9": load}, names=["part", "row"]).reset_index()
    return Outcome("fig08", "hftrac", data, draw(rate, load), compute(rate, load))


def trace(network: Network) -> np.ndarray:
    """What Src2 sends, by 10 ms [Mbit/s]."""
    requested = scenario(network, Fifo(), duration=TRACE, warmup=0.0, utilization=LOAD, spread=STAND_IN)
    source = DemandSource(requested, range(1))
    return source.draw(requested.steps)[:, 1, 0] / MEGA


def averaged(rate: np.ndarray, samples: int) -> np.ndarray:
    return rate.reshape(-1, samples).mean(axis=1)


def compute(rate: np.ndarray, load: pd.DataFrame) -> dict[str, float]:
    loss = load.pivot(index="load", columns="way", values="loss")
    gain = 1.0 - loss.div(loss.fifo, axis=0)
    means = [averaged(rate, samples) for samples in SCALES]
    found = {
        "fig8-normal": max(abs(stats.kurtosis(part)) for part in means),
        "fig8-variance": means[-1].var() / means[0].var(),
        "fig8-neighbours": np.corrcoef(rate[:-1], rate[1:])[0, 1],
        "fig9-heavy": gain.coordinated[0.95],
        "fig9-most": gain.coordinated.max(),
        "fig9-least": gain.coordinated.min(),
        "fig9-one": gain.one.min(),
        "fig9-static": (loss.static / loss.coordinated)[0.95],
        "fig9-static-light": (loss.static / loss.coordinated)[0.75],
        "fig9-backpressure": (loss.backpressure / loss.coordinated)[0.75],
    }
    return {name: float(value) for name, value in found.items()}


def draw(rate: np.ndarray, load: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(15.0, 9.4), layout="constrained")
    (series, histograms), (left, right) = figure.subplots(2, 2)
    draw_series(series, rate)
    draw_histograms(histograms, rate)
    draw_loss(left, load, "Fig. 9: loss on the stand-in; mu and factor tuned for each load")
    draw_queue(right, load, "Fig. 9: mean queue")
    grid(series, histograms, left, right)
    verdict(
        figure,
        "A stand-in for the paper's data, which aren't public: fractional Gaussian noise, whose neighbouring samples"
        " are correlated by half. 95 % intervals; all ways run under the same demands.",
        "Fig. 8",
        "Fig. 8b",
        "Fig. 9",
    )
    return figure


def draw_series(axes: Axes, rate: np.ndarray) -> None:
    for samples, colour in SCALES.items():
        part = averaged(rate, samples)[: round(SHOWN / STEP / samples)]
        time = STEP * samples * (np.arange(len(part)) + 0.5)
        axes.plot(time, part, color=colour, lw=0.3 + 0.7 * np.log10(samples), label=f"{1e3 * STEP * samples:g} ms")
    title = f"Fig. 8a: stand-in for the CAIDA trace, Hurst parameter {HURST:g}"
    panel(axes, title, "time [s]", "rate [Mbit/s]", legend="upper right")


def draw_histograms(axes: Axes, rate: np.ndarray) -> None:
    at = np.linspace(0.0, 60.0, 400)
    for samples, colour in SCALES.items():
        part = averaged(rate, samples)
        bins = 60 if samples < 100 else 25
        axes.hist(part, bins=bins, density=True, color=colour, alpha=0.3)
        label = f"{1e3 * STEP * samples:g} ms: N({part.mean():.1f}, {part.std():.1f}²)"
        axes.plot(at, stats.norm.pdf(at, part.mean(), part.std()), color=colour, lw=1.5, label=label)
    panel(axes, "Fig. 8b: histograms and normal fits", "rate [Mbit/s]", "density [s/Mbit]")
