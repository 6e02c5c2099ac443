"""Pacing paper, Fig. 5: beside a flow of H-TCP; in one queue, and behind a fair queue.

Table I has FQ-CoDel, which serves flows in turn. A fair queue's other flow is H-TCP, whose own queue never empties, so
that what remains is a link of half the capacity for the flow that is paced, and for H-TCP what that doesn't take.
"""

import numpy as np
import pacing.paper_link as paper
import pandas as pd
from common import Outcome, verdicts
from matplotlib.figure import Figure

import netctrl
from netctrl.scenario.result import Result

JOINS_S, WARM_UP_S, DURATION_S = 10.0, 30.0, 90.0
NOISES = (paper.QUIET, 5e-6, paper.NOISE, 5e-5, 1e-4, 2e-4)
SEEDS = (0, 1)
AT_FOUR = "fixed cap of 4 Gbit/s"
FLOWS = {name: paper.CASES[name] for name in (paper.FREE, paper.KNOWN, paper.UNKNOWN, paper.OWN_RATE)} | {
    AT_FOUR: paper.capped(4e9),
    "Cubic": netctrl.Flow(sender="cubic"),
    "BBR": netctrl.Flow(sender="bbr"),
}


def one_queue(flow, noise: float = paper.NOISE, seed: int = 0) -> Result:
    return paper.run([flow, netctrl.Flow(sender="htcp", start=JOINS_S)], noise, seed, duration=DURATION_S)


def fair_queue(flow, noise: float = paper.NOISE, seed: int = 0) -> Result:
    half = netctrl.Change(at=JOINS_S, link="bottleneck", capacity=0.5 * paper.CAPACITY)
    return paper.run([flow], noise, seed, changes=[half], duration=DURATION_S)


QUEUES = {"one queue": one_queue, "fair queue": fair_queue}


def main(*, full: bool = False) -> Outcome:
    links = {(name, queue): QUEUES[queue](flow) for queue in QUEUES for name, flow in FLOWS.items()}
    found = {case: paper.means(link, warmup=WARM_UP_S) for case, link in links.items()}
    over = pd.DataFrame(
        [
            (queue, noise, seed, *paper.means(QUEUES[queue](FLOWS[paper.KNOWN], noise, seed), warmup=WARM_UP_S))
            for queue in QUEUES
            for noise in NOISES
            for seed in SEEDS
        ],
        columns=["queue", "noise_s", "seed", "rate", "rate_std", "rtt", "rtt_std", "rtt_p99", "lost_mb"],
    )
    fair = over[over.queue == "fair queue"].groupby("noise_s").mean(numeric_only=True)
    computed = {
        "fig5-one": found[paper.KNOWN, "one queue"].rate,
        "fig5-one-std": found[paper.KNOWN, "one queue"].rtt_std,
        "fig5-one-unknown": found[paper.UNKNOWN, "one queue"].rate,
        "fig5-fair": float(fair.loc[paper.NOISE, "rate"]),
        "fig5-fair-std": float(fair.loc[paper.NOISE, "rtt_std"]),
        "fig5-fair-noisy": float(fair.loc[5e-5, "rate"]),
        "fig5-fair-noisy-std": float(fair.loc[5e-5, "rtt_std"]),
        "fig5-cap": found[AT_FOUR, "one queue"].rate,
        "fig5-own": found[paper.OWN_RATE, "one queue"].rate,
        "fig5-own-fair": found[paper.OWN_RATE, "fair queue"].rate,
        "fig5-own-fair-std": found[paper.OWN_RATE, "fair queue"].rtt_std,
        "fig5-cubic": found["Cubic", "one queue"].rate,
        "fig5-bbr": found["BBR", "one queue"].rate,
    }
    rows = [
        (name, *(text for queue in QUEUES for text in told(found[name, queue])))
        for name in FLOWS
    ]  # fmt: skip
    columns = ["beside H-TCP", *(f"{what}, {queue}" for queue in QUEUES for what in ("Gbit/s", "RTT [ms]"))]
    return Outcome("fig05", "pacing", over, draw(links, over), computed, pd.DataFrame(rows, columns=columns))


def told(each) -> tuple[str, str]:
    return f"{each.rate:.2f} ± {each.rate_std:.2f}", f"{each.rtt:.2f} ± {each.rtt_std:.2f}"


def draw(links: dict[tuple[str, str], Result], over: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(14.0, 8.0), layout="constrained")
    panels = figure.subplots(2, 3)
    shown = (
        (paper.KNOWN, "one queue"),
        (paper.UNKNOWN, "one queue"),
        (paper.OWN_RATE, "one queue"),
        (paper.KNOWN, "fair queue"),
    )
    for axes, case in zip((*panels[0], panels[1, 0]), shown, strict=True):
        link = links[case]
        smooth = paper.throughput(link).reshape(len(link.flows), -1, 10).mean(axis=2) / 1e9
        axes.plot(link.time_s[9::10], smooth[0], color=paper.BLUE, lw=0.9, label="paced")
        if len(smooth) > 1:
            axes.plot(link.time_s[9::10], smooth[1], color=paper.GREY, lw=0.7, label="H-TCP")
        else:
            joined = link.time_s[9::10] > JOINS_S + 1.0
            rest = paper.CAPACITY / 1e9 - smooth[0, joined]
            axes.plot(link.time_s[9::10][joined], rest, color=paper.GREY, lw=0.7, label="left to H-TCP")
        paper.grid(axes, f"{case[0]}, {case[1]}", xlabel="time [s]", ylabel="Gbit/s", ylim=(0.0, 11.0))
        axes.legend(fontsize=8, loc="upper right")
        other = axes.twinx()
        other.plot(link.time_s[::2], 1e3 * link.series["rtt"][0, ::2], color=paper.RED, lw=0.4)
        other.set(ylim=(3.5, 15.0), ylabel="its RTT [ms]")
    colours = {"one queue": paper.ORANGE, "fair queue": paper.GREEN}
    for queue, of in over.groupby("queue"):
        mean = of.groupby("noise_s").mean(numeric_only=True)
        panels[1, 1].plot(1e3 * of.noise_s, of.rate, "o", color=colours[queue], ms=3)
        panels[1, 1].plot(1e3 * mean.index, mean.rate, color=colours[queue], lw=1.2, label=queue)
        panels[1, 2].plot(1e3 * mean.index, mean.rtt_std, "o-", color=colours[queue], lw=1.2, ms=3, label=queue)
    panels[1, 1].axhline(4.0, color=paper.GREY, lw=0.9, ls="--", label="paper; a fixed cap of 4 Gbit/s in either")
    panels[1, 2].plot(
        1e3 * np.array(NOISES), 1e3 * np.array(NOISES), color=paper.GREY, lw=0.9, ls="--", label="that of the noise"
    )
    axis = "mean of what RTTs are up by [ms]"
    paper.grid(panels[1, 1], "R = 10 Gbit/s: its share", xlabel=axis, ylabel="Gbit/s", xscale="log", ylim=(0.0, 6.0))
    paper.grid(panels[1, 2], "its RTTs", xlabel=axis, ylabel="standard deviation [ms]", xscale="log", yscale="log")
    panels[1, 1].legend(fontsize=8)
    panels[1, 2].legend(fontsize=8)
    figure.suptitle("Pacing paper, Fig. 5: beside a flow of H-TCP that joins after 10 s", fontsize=11)
    figure.supxlabel(verdicts("pacing", "Fig. 5", "Fig. 5, fair queue"), fontsize=8.5)
    return figure
