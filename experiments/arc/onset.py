"""Where oscillation begins: the nonlinear fluid against the exact sampled limit, and what packets make of it."""

import math

import numpy as np
import pandas as pd
from common import Outcome, sampled, used, variation
from matplotlib.figure import Figure
from packets import available, run_all

import netctrl
from netctrl.frequency.branch_bound import Minimum, Sector
from netctrl.frequency.sampled_gain import greatest_gain
from netctrl.laws.aqm.arc import ArcQueue
from netctrl.model.design.arc import ArcSetting
from netctrl.plants.tcp_response import arc_response
from netctrl.scenario.result import Result
from netctrl.sim.fluid.onset import arc_onset
from netctrl.sim.fluid.run import simulate

FLOWS, RTT, C = 50.0, 0.5, 1250.0
RATIOS = (0.6, 1.0, 2.0)
SETTLED = 100.0


def settings() -> dict[str, ArcSetting]:
    """The two plants at three epochs: without a queue, and with a standing one of 100 packets."""
    made = {}
    for d in (0.5, 1.0, 2.0):
        made[f"noq-{d:g}"] = ArcSetting(capacity_packet_per_s=C, epoch_s=d)
        made[f"phys-{d:g}"] = ArcSetting(
            capacity_packet_per_s=C, epoch_s=d, utilization=1.0, target_queue_packets=100.0
        )
    return made


def limit_of(setting: ArcSetting) -> Minimum:
    return greatest_gain(arc_response(setting), (FLOWS, FLOWS), (RTT, RTT), Sector())


def predicted_period(setting: ArcSetting) -> float:
    """Of the eigenvalue that is on the unit circle at the limit [s]."""
    return 2.0 * math.pi * setting.epoch_s / float(limit_of(setting).where[0])


def scenario(alpha: float, duration: float, seed: int = 1) -> netctrl.Scenario:
    line = netctrl.Link(
        id="line", source="a", target="b", capacity="10Mbit", delay="10ms", buffer="500kB", queue=ArcQueue(alpha=alpha)
    )
    flows = netctrl.Flow(id="ftp", path=("line",), rtt="490ms:510ms", count=50, start="0s:20s")
    name = f"alpha = {alpha:.3g}"
    return netctrl.Scenario(name=name, duration=duration, warmup=SETTLED, links=(line,), flows=(flows,), seed=seed)


def epochs_of(result: Result) -> np.ndarray:
    """The probability of each epoch after the transient."""
    chosen = result.time_s > SETTLED
    return result.series["probability"][0, chosen][5::10]


def period(p: np.ndarray, epoch: float = 1.0) -> float:
    """Of the strongest frequency between 4 and 40 epochs, from a smoothed periodogram [s]."""
    x = p - p.mean()
    power = np.abs(np.fft.rfft(x * np.hanning(len(x)), 8 * len(x))) ** 2
    frequency = np.fft.rfftfreq(8 * len(x), epoch)
    width = 16  # two bins of the series' own resolution
    smooth = np.convolve(power, np.ones(width) / width, mode="same")
    inside = (frequency > 1.0 / (40.0 * epoch)) & (frequency < 1.0 / (4.0 * epoch))
    return 1.0 / frequency[inside][np.argmax(smooth[inside])]


def main(*, full: bool = False) -> Outcome:
    made = settings()
    limits = {name: limit_of(setting).found for name, setting in made.items()}
    onsets = {
        name: arc_onset(FLOWS, RTT, setting, between=(0.6 * limits[name], 1.6 * limits[name])) / limits[name]
        for name, setting in made.items()
    }
    computed = {f"onset-{name}": ratio for name, ratio in onsets.items()}
    limit, expected = limits["noq-1"], predicted_period(made["noq-1"])
    scenarios = [scenario(ratio * limit, 1500.0 if full else 400.0) for ratio in RATIOS]
    runs = {"fluid": [simulate(each) for each in scenarios]}
    if available():
        runs["ns-3"] = run_all(scenarios)
    rows = []
    for name, results in runs.items():
        for ratio, result in zip(RATIOS, results, strict=True):
            link, chosen = result.links[0], sampled(result, "probability", result.links[0])
            rows.append(
                {
                    "simulator": name,
                    "ratio": ratio,
                    "utilization": used(result, link),
                    "backlog_mean_kb": result["backlog", link] / 1e3,
                    "probability_mean": float(chosen.mean()),
                    "probability_cv": variation(chosen),
                    "period_s": period(epochs_of(result)) if variation(chosen) > 1e-3 else math.nan,
                    "predicted_period_s": expected,
                }
            )
    data = pd.DataFrame(rows)
    if "ns-3" in runs:
        packets = data[data.simulator == "ns-3"].set_index("ratio")
        computed["onset-ns3-cv"] = float(packets.probability_cv[2.0] / packets.probability_cv[0.6])
        computed["onset-ns3-period"] = float(packets.period_s[1.0] / expected)
    return Outcome("onset", "arc", data, draw(runs, onsets, data), computed)


def draw(runs: dict[str, list[Result]], onsets: dict[str, float], data: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(12.0, 6.8), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(2.0, 1.0))
    panels = left.subplots(len(RATIOS), 1, sharex=True)
    for k, (axes, ratio) in enumerate(zip(panels, RATIOS, strict=True)):
        for name, colour in (("ns-3", "#b45f06"), ("fluid", "#1f4e9c")):
            if name in runs:
                p = epochs_of(runs[name][k])[:300]
                axes.plot(SETTLED + np.arange(len(p)), p, color=colour, lw=1.2, label=name)
        axes.set(ylabel="p", ylim=(0.0, None))
        axes.set_title(f"alpha = {ratio:g} of the sampled limit (noq)", fontsize=9)
        axes.grid(color="#dddddd", lw=0.6)
    panels[0].legend(fontsize=8, ncols=2)
    panels[-1].set_xlabel("time [s]")
    above, below = right.subplots(2, 1)
    for plant, marker in (("noq", "o"), ("phys", "s")):
        d = [0.5, 1.0, 2.0]
        above.plot(d, [onsets[f"{plant}-{x:g}"] for x in d], marker=marker, label=plant)
    above.axhline(1.0, color="#222222", lw=0.8)
    above.set(xlabel="epoch [s]", ylabel="onset in the fluid / sampled limit", ylim=(0.9, 1.1))
    above.legend(fontsize=8)
    for name, part in data.groupby("simulator", sort=False):
        below.plot(part.ratio, part.probability_cv, marker="o", label=name)
    below.set(xlabel="alpha / limit", ylabel="coefficient of variation of p")
    below.legend(fontsize=8)
    figure.suptitle("Onset of oscillation: 50 flows, RTT 0.49 to 0.51 s, 10 Mbit/s, gamma 0.98, epoch 1 s", fontsize=11)
    return figure
