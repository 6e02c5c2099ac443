"""ARC paper, Fig. 4: throughput under a sinusoidal error of the rate estimate: linear model, fluid and ns-3.

The paper's alpha = 0.112 is unstable per packet; it is read as per cent here (data/claims/arc.csv, conf-validation).
"""

import math

import numpy as np
import pandas as pd
from common import Outcome
from matplotlib.figure import Figure
from packets import available, run_all

from netctrl.frequency.loop import response
from netctrl.laws.aqm.arc import ArcQueue, RateError
from netctrl.model.design.arc import ArcSetting
from netctrl.plants.linearize import arc_loop
from netctrl.scenario.links import Link
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.sim.fluid.run import simulate

ALPHA, EPOCH, FLOWS, RTT = 1.12e-3, 0.2, 35, 0.1
GAMMAS, FREQUENCIES = (0.95, 0.5), (0.1, 100.0)
START, SETTLED = 50.0, 100.0
AMPLITUDE = 0.5e6
SHORT, LONG = (round(SETTLED + turns * 2.0 * math.pi / FREQUENCIES[0], 1) for turns in (2, 4))


def scenario(gamma: float, frequency: float, amplitude: float = AMPLITUDE, duration: float = SHORT) -> Scenario:
    error = RateError(amplitude=amplitude, frequency_rad_s=frequency, start=START) if amplitude else None
    queue = ArcQueue(alpha=ALPHA, epoch=EPOCH, target_utilization=gamma, rate_error=error)
    line = Link(id="line", source="a", target="b", capacity="8Mbit", delay="10ms", buffer="500kB", queue=queue)
    flows = Flow(id="ftp", path=("line",), rtt="90ms:110ms", count=FLOWS, start="0s:5s")
    return Scenario(name=f"Fig. 4: gamma {gamma}, {frequency} rad/s", duration=duration, links=(line,), flows=(flows,))


def model(gamma: float, frequency: float) -> complex:
    """Linear response of the throughput to the error, as the law meets it: averaged over an epoch and held.

    Arrivals seen are arrivals plus error, so that arrivals = −L/(1 + L) · error; an error that is faster than the
    epoch is folded to a slow one.
    """
    seen = math.sin(0.5 * frequency * EPOCH) / (0.5 * frequency * EPOCH)
    turns = round(frequency * EPOCH / (2.0 * math.pi))
    slow = abs(frequency - 2.0 * math.pi * turns / EPOCH)
    setting = ArcSetting(capacity_packet_per_s=1000.0, utilization=gamma, epoch_s=EPOCH)
    L = complex(response(arc_loop(FLOWS, RTT, setting, "noq").scaled(ALPHA / EPOCH), np.array([slow]))[0])
    return -seen * L / (1.0 + L)


def slow_frequency(frequency: float) -> float:
    """What an epoch makes of a frequency [rad/s]."""
    return abs(frequency - 2.0 * math.pi * round(frequency * EPOCH / (2.0 * math.pi)) / EPOCH)


def amplitude_at(result: Result, frequency: float) -> float:
    """Amplitude of the throughput at a frequency, by least squares after the transient [Mbit/s]."""
    chosen = result.time_s > SETTLED
    t = result.time_s[chosen] - 0.5 * result.scenario.interval
    y = result.series["departed"][0, chosen] * 8e-6 / result.scenario.interval
    basis = np.stack([np.sin(frequency * t), np.cos(frequency * t), np.ones_like(t), t], axis=1)
    found = np.linalg.lstsq(basis, y, rcond=None)[0]
    return float(np.hypot(found[0], found[1]))


def throughput(result: Result) -> float:
    return result.between(SETTLED)["throughput", result.links[0]] / 1e6


def main(*, full: bool = False) -> Outcome:
    cases = [(gamma, frequency) for gamma in GAMMAS for frequency in FREQUENCIES]
    scenarios = [scenario(*case, duration=LONG if full else SHORT) for case in cases]
    runs = {"fluid": [simulate(each) for each in scenarios]}
    if available():
        runs["ns-3"] = run_all(scenarios)
    rows = []
    for results in runs.values():
        for (gamma, frequency), result in zip(cases, results, strict=True):
            predicted = abs(model(gamma, frequency)) * AMPLITUDE / 1e6
            rows.append(
                {
                    "simulator": result.simulator,
                    "gamma": gamma,
                    "frequency_rad_s": frequency,
                    "target_mbit_s": 8.0 * gamma,
                    "throughput_mbit_s": throughput(result),
                    "model_amplitude_mbit_s": predicted,
                    "amplitude_mbit_s": amplitude_at(result, slow_frequency(frequency)),
                }
            )
    data = pd.DataFrame(rows)

    def value(simulator: str, gamma: float, frequency: float, column: str) -> float:
        chosen = data.simulator.str.startswith(simulator) & (data.gamma == gamma) & (data.frequency_rad_s == frequency)
        return float(data[chosen][column].iloc[0])

    computed = {
        "fig4-model": abs(model(0.95, 0.1)) * AMPLITUDE / 1e6,
        "fig4-fluid-slow": value("fluid", 0.95, 0.1, "amplitude_mbit_s"),
        "fig4-fluid-fast": value("fluid", 0.95, 100.0, "amplitude_mbit_s"),
        "fig4-fluid-half": value("fluid", 0.5, 0.1, "throughput_mbit_s"),
    }
    if "ns-3" in runs:
        computed |= {
            "fig4-ns3-slow": value("ns-3", 0.95, 0.1, "amplitude_mbit_s"),
            "fig4-ns3-fast": value("ns-3", 0.95, 100.0, "amplitude_mbit_s"),
            "fig4-ns3-half": value("ns-3", 0.5, 0.1, "throughput_mbit_s"),
        }
    return Outcome("fig04", "arc", data, draw(cases, runs), computed)


def draw(cases: list[tuple[float, float]], runs: dict[str, list[Result]]) -> Figure:
    figure = Figure(figsize=(11.0, 6.4), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True).T
    styles = {"fluid": ("#1f4e9c", 1.6, 3), "ns-3": ("#b45f06", 0.8, 2)}
    for k, (gamma, frequency) in enumerate(cases):
        axes = panels[k // 2][k % 2]
        for name, results in runs.items():
            result = results[k]
            colour, width, order = styles[name]
            y = (result.series["departed"][0] * 8e-6 / result.scenario.interval)[: len(result.time_s) // 10 * 10]
            axes.plot(
                np.arange(len(y) // 10) + 0.5,
                y.reshape(-1, 10).mean(axis=1),
                color=colour,
                lw=width,
                zorder=order,
                label=name,
            )
        t = np.linspace(SETTLED, runs["fluid"][k].time_s[-1], 800)
        if frequency < 1.0:
            H = model(gamma, frequency)
            wave = AMPLITUDE / 1e6 * (H * np.exp(1j * frequency * (t - START))).imag
            axes.plot(t, 8.0 * gamma + wave, color="#222222", ls="--", lw=1.2, zorder=4, label="linear model")
        else:
            axes.axhline(8.0 * gamma, color="#222222", ls="--", lw=1.2, zorder=4, label="linear model (below 0.03)")
        axes.set_title(f"target {gamma:g}, error at {frequency:g} rad/s", fontsize=10)
        axes.set_ylim(8.0 * gamma - 2.0, 8.0 * gamma + 3.0)
        axes.grid(color="#dddddd", lw=0.6)
        axes.legend(fontsize=8, ncols=3)
        axes.set(ylabel="throughput [Mbit/s]", xlabel="time [s]")
    figure.suptitle(
        "ARC paper, Fig. 4: 35 flows, RTT 90 to 110 ms, 8 Mbit/s, error of 0.5 Mbit/s (alpha read as per cent)",
        fontsize=11,
    )
    return figure
