"""Pacing paper, Section IV-E: beside BBR, which the paper couldn't compare with; on three links, one flow at a time.

Drop-tail buffers of one BDP; RTTs are up by 0.5 % on average, so that at 4 ms it is Fig. 2's 0.02 ms.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from common import Outcome, verdicts
from matplotlib.figure import Figure
from msgspec.structs import replace
from pacing import paper_link as paper
from pacing.paper_link import BLUE, GREEN, ORANGE, RED, by_second, grid, throughput

import netctrl
from netctrl.laws.rate.cap import CapSender
from netctrl.laws.rate.paced import PacedSender
from netctrl.scenario.result import Result

SEEDS = (0, 1, 2)
WARM_UP_S, DURATION_S = 15.0, 75.0
"""Of BBR's ten seconds, six, where it looks for the least RTT."""
NOISE_SHARE = 0.005
CAP_SHARE = 0.9986
RAISED = 1.1
"""Times the base RTT: what BBR's probes go beyond."""


class Link(NamedTuple):
    name: str
    capacity: float
    rtt: float


LINKS = (
    Link("10 Gbit/s, 4 ms", 1e10, 4e-3),
    Link("1 Gbit/s, 40 ms", 1e9, 40e-3),
    Link("100 Mbit/s, 20 ms", 1e8, 20e-3),
)
BBR, KNOWN, UNKNOWN, AT_CAP, OWN_RATE = (
    "BBR",
    "paper, R = capacity",
    "paper, R = 4 x capacity",
    "fixed cap",
    "own rate",
)


def flows(link: Link) -> dict[str, netctrl.Flow]:
    def paper(most: float) -> netctrl.Flow:
        law = netctrl.pacing(max_rate_bit_per_s=most).law
        return netctrl.Flow(sender=PacedSender(law=replace(law, start_rate_bit_per_s=most), window="htcp"))

    return {
        "H-TCP": netctrl.Flow(sender="htcp"),
        "Cubic": netctrl.Flow(sender="cubic"),
        BBR: netctrl.Flow(sender="bbr"),
        KNOWN: paper(link.capacity),
        UNKNOWN: paper(4.0 * link.capacity),
        AT_CAP: netctrl.Flow(sender=CapSender(rate=CAP_SHARE * link.capacity, window="htcp")),
        OWN_RATE: netctrl.Flow(sender="own-rate"),
    }


def run(link: Link, flow: netctrl.Flow, seed: int) -> Result:
    buffer, interval = link.capacity * link.rtt / 8.0, link.rtt / 40.0
    given = {"capacity": link.capacity, "rtt": link.rtt, "buffer": buffer, "duration": DURATION_S, "interval": interval}
    return paper.run([flow], NOISE_SHARE * link.rtt, seed, queue="droptail", **given)


def measured(link: Link, seen: Result) -> dict[str, float]:
    late = seen.time_s > WARM_UP_S
    rtts = seen.series["rtt"][0, late]
    rates = by_second(seen, warmup=WARM_UP_S) * 1e9 / link.capacity
    return {
        "utilization": float(rates.mean()),
        "deviation": float(rates.std()),
        "rtt": float(np.nanmean(rtts) / link.rtt),
        "rtt_std": float(np.nanstd(rtts) / link.rtt),
        "rtt_p99": float(np.nanpercentile(rtts, 99.0) / link.rtt),
        "lost_share": float(seen.series["lost"][0, late].sum() * 8.0 / (link.capacity * (DURATION_S - WARM_UP_S))),
    }


def main(*, full: bool = False) -> Outcome:
    rows, shown = [], {}
    for link in LINKS:
        for name, flow in flows(link).items():
            for seed in SEEDS:
                seen = run(link, flow, seed)
                rows.append({"link": link.name, "flow": name, "seed": seed} | measured(link, seen))
                if link is LINKS[0] and seed == SEEDS[0]:
                    shown[name] = seen
    data = pd.DataFrame(rows)
    mean = data.drop(columns="seed").groupby(["link", "flow"], sort=False).mean()
    return Outcome("bbr", "pacing", data, draw(mean, shown), compute(mean, shown[BBR]), table_of(mean))


def compute(mean: pd.DataFrame, bbr: Result) -> dict[str, float]:
    of = {name: mean.xs(name, level="flow") for name in (BBR, KNOWN, UNKNOWN, AT_CAP, OWN_RATE)}
    first = LINKS[0].name
    return {
        "bbr-period": period(bbr),
        "bbr-peak": float(of[BBR].loc[first, "rtt_p99"]),
        "bbr-known": float(of[KNOWN].loc[first, "rtt_std"] / of[BBR].loc[first, "rtt_std"]),
        "bbr-known-worst": float((of[KNOWN].rtt_std / of[BBR].rtt_std).max()),
        "bbr-known-rate": float((of[KNOWN].utilization / of[BBR].utilization).min()),
        "bbr-unknown": float((of[UNKNOWN].rtt / of[BBR].rtt).max()),
        "bbr-cap": float((of[AT_CAP].rtt / of[BBR].rtt).max()),
        "bbr-own-rtt": float((of[OWN_RATE].rtt / of[BBR].rtt).max()),
        "bbr-own-p99": float((of[OWN_RATE].rtt_p99 / of[BBR].rtt_p99).max()),
        "bbr-own-rate": float((of[OWN_RATE].utilization / of[BBR].utilization).min()),
        "bbr-own-std": 100.0 * float(of[OWN_RATE].deviation.max()),
    }


def period(seen: Result) -> float:
    """Median time between RTTs' rises beyond 1.1 times the base RTT, in base RTTs; noise of a few samples isn't one."""
    link = LINKS[0]
    late = seen.time_s > WARM_UP_S
    high = np.convolve(seen.series["delay"][0][late] > (RAISED - 1.0) * link.rtt, np.ones(5) / 5, "same") > 0.5
    rises = seen.time_s[late][1:][high[1:] & ~high[:-1]]
    return float(np.median(np.diff(rises)) / link.rtt) if len(rises) > 2 else np.nan


def table_of(mean: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for link in LINKS:
        for name, each in mean.loc[link.name].iterrows():
            rtts = [f"{1e3 * link.rtt * value:.2f}" for value in (each.rtt, each.rtt_p99)]
            rate = f"{100.0 * each.utilization:.1f} ± {100.0 * each.deviation:.1f}"
            rows.append((link.name, name, *rtts, rate, f"{100.0 * each.lost_share:.2g}"))
    columns = ["link", "flow", "mean RTT [ms]", "99th percentile", "throughput [% of capacity]", "lost [%]"]
    return pd.DataFrame(rows, columns=columns)


def draw(mean: pd.DataFrame, shown: dict[str, Result]) -> Figure:
    figure = Figure(figsize=(14.0, 7.8), layout="constrained")
    top, bottom = figure.subplots(2, 3)
    colours = {BBR: RED, KNOWN: ORANGE, AT_CAP: "#222222", OWN_RATE: GREEN}
    for name, colour in colours.items():
        seen = shown[name]
        near = (seen.time_s > 18.0) & (seen.time_s < 18.4)
        top[0].plot(seen.time_s[near], 1e3 * seen.series["rtt"][0, near], color=colour, lw=0.6, label=name)
        rtts = np.sort(seen.series["rtt"][0, seen.time_s > WARM_UP_S])[::50]
        rtts = 1e3 * rtts[~np.isnan(rtts)]
        top[1].plot(rtts, np.linspace(0.0, 1.0, len(rtts)), color=colour, lw=1.2, label=name)
    grid(top[0], f"RTTs, {LINKS[0].name}", xlabel="time [s]", ylabel="RTT [ms]")
    grid(top[1], "the same, distribution", xlabel="RTT [ms]", ylabel="share of samples")
    top[1].legend(fontsize=8, loc="lower right")
    for name, colour in colours.items():
        seen = shown[name]
        smooth = throughput(seen)[0].reshape(-1, 1000).mean(axis=1) / 1e9
        top[2].plot(seen.time_s[999::1000], smooth, color=colour, lw=0.9, label=name)
    grid(top[2], "throughput", xlabel="time [s]", ylabel="Gbit/s in 0.1 s", ylim=(0.0, 10.8))
    for axes, link in zip(bottom, LINKS, strict=True):
        for place, (name, each) in enumerate(mean.loc[link.name].iterrows()):
            colour = colours.get(str(name), (BLUE, "#777777", "", "", "#8064a2", "", "")[place])
            axes.plot(each.rtt, each.utilization, "o", color=colour, ms=6, label=name)
            axes.plot([each.rtt, each.rtt_p99], [each.utilization] * 2, color=colour, lw=1.2)
        labels = {"xlabel": "RTT over the base RTT: mean, line to the 99th percentile", "ylabel": "utilization"}
        grid(axes, link.name, **labels, ylim=(0.85, 1.01))
        axes.legend(fontsize=7.5, loc="lower right")
    figure.suptitle(
        "Pacing paper, Section IV-E: beside BBR; RTTs up by 0.5 % on average, buffers of one BDP", fontsize=11
    )
    figure.supxlabel(verdicts("pacing", "Section IV-E"), fontsize=8.5)
    return figure
