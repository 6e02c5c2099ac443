"""Pacing paper, Fig. 4: a capacity that goes from 10 to 5 Gbit/s and back, without control, with it, and by others.

The paper doesn't say how often; here every 10 s, and every second in the table.
"""

import numpy as np
import pacing.paper_link as paper
import pandas as pd
from common import Outcome, verdicts
from matplotlib.figure import Figure

import netctrl
from netctrl.scenario.result import Result

LOW = 5e9
HALF_S = 10.0
WARM_UP_S, DURATION_S = 20.0, 100.0
AT_LOW = "fixed cap of 4.993 Gbit/s"
BBR = "BBR"
FLOWS = {name: paper.CASES[name] for name in (paper.FREE, paper.KNOWN, paper.UNKNOWN, paper.OWN_RATE)}
FLOWS |= {AT_LOW: paper.capped(4.993e9), BBR: netctrl.Flow(sender="bbr")}


def wave(flow, noise: float = paper.NOISE, half: float = HALF_S) -> Result:
    turns = range(2, round(DURATION_S / half))
    levels = [(k * half, paper.CAPACITY if k % 2 else LOW) for k in turns]
    changes = [netctrl.Change(at=at, link="bottleneck", capacity=level) for at, level in levels]
    return paper.run([flow], noise, changes=changes, duration=DURATION_S)


def main(*, full: bool = False) -> Outcome:
    links = {name: wave(flow) for name, flow in FLOWS.items()}
    found = {name: paper.means(link, warmup=WARM_UP_S) for name, link in links.items()}
    fast = {name: paper.means(wave(flow, half=1.0), warmup=WARM_UP_S) for name, flow in FLOWS.items()}
    quiet, noisy = wave(FLOWS[paper.KNOWN], paper.QUIET), wave(FLOWS[paper.KNOWN], 10.0 * paper.NOISE)
    computed = {
        "fig4-free-std": found[paper.FREE].rate_std,
        "fig4-known": at_capacity(links[paper.KNOWN], LOW),
        "fig4-known-quiet": at_capacity(quiet, LOW),
        "fig4-known-high": at_capacity(links[paper.KNOWN], paper.CAPACITY),
        "fig4-known-std": found[paper.KNOWN].rate_std,
        "fig4-known-rtt": found[paper.KNOWN].rtt_std,
        "fig4-noisy-std": paper.means(noisy, warmup=WARM_UP_S).rate_std,
        "fig4-unknown-std": found[paper.UNKNOWN].rate_std,
        "fig4-cap": found[AT_LOW].rate,
        "fig4-cap-std": found[AT_LOW].rate_std,
        "fig4-own": found[paper.OWN_RATE].rate,
        "fig4-own-rtt": found[paper.OWN_RATE].rtt,
    }
    rows = [
        (name, *(f"{at_capacity(links[name], level):.2f}" for level in (paper.CAPACITY, LOW)),
         f"{found[name].rtt:.2f} ± {found[name].rtt_std:.2f}", f"{found[name].lost_mb:.1f}",
         f"{fast[name].rate:.2f}", f"{fast[name].rtt:.2f} ± {fast[name].rtt_std:.2f}")
        for name in FLOWS
    ]  # fmt: skip
    columns = ["flow", "Gbit/s of 10", "of 5", "RTT [ms]", "lost [MB]", "Gbit/s, changes every second", "its RTT [ms]"]
    return Outcome("fig04", "pacing", table_of(links), draw(links), computed, pd.DataFrame(rows, columns=columns))


def at_capacity(link: Result, capacity: float) -> float:
    """Mean throughput where the link has this capacity, after the warm-up [Gbit/s]."""
    chosen = (link.time_s > WARM_UP_S) & np.isclose(link.series["capacity"][0], capacity)
    return float(paper.throughput(link)[0, chosen].mean() / 1e9)


def table_of(links: dict[str, Result]) -> pd.DataFrame:
    frames = [
        pd.DataFrame(
            {
                "flow": name,
                "time_s": link.time_s[9::10],
                "gbit_per_s": paper.throughput(link)[0].reshape(-1, 10).mean(axis=1) / 1e9,
                "rtt_ms": 1e3 * link.series["rtt"][0, 9::10],
            }
        )
        for name, link in links.items()
    ]
    return pd.concat(frames, ignore_index=True)


def draw(links: dict[str, Result]) -> Figure:
    figure = Figure(figsize=(14.0, 8.8), layout="constrained")
    titles = {
        paper.FREE: "Fig. 4a: H-TCP alone",
        paper.KNOWN: "Fig. 4b: R = 10 Gbit/s",
        paper.UNKNOWN: "ours: R = 40 Gbit/s",
    }
    for axes, (name, link) in zip(figure.subplots(3, 2).ravel(), links.items(), strict=True):
        axes.plot(link.time_s, link.series["capacity"][0] / 1e9, color="#bbbbbb", lw=1.0)
        smooth = paper.throughput(link)[0].reshape(-1, 10).mean(axis=1) / 1e9
        axes.plot(link.time_s[9::10], smooth, color=paper.BLUE, lw=0.9, label="throughput")
        paper.grid(axes, titles.get(name, f"ours: {name}"), xlabel="time [s]", ylabel="Gbit/s", ylim=(0.0, 11.0))
        other = axes.twinx()
        other.plot(link.time_s[::2], 1e3 * link.series["rtt"][0, ::2], color=paper.RED, lw=0.5)
        other.set(ylim=(3.5, 15.0), ylabel="RTT [ms]")
    figure.suptitle(
        "Pacing paper, Fig. 4: 10 and 5 Gbit/s in turn; throughput (blue), RTT (red), RTTs up by 0.02 ms on average",
        fontsize=11,
    )
    figure.supxlabel(verdicts("pacing", "Fig. 4"), fontsize=8.5)
    return figure
