"""Where the paper's law freezes: its threshold d* in closed form and step by step, and how a flow comes to rest.

d* is of a link whose RTT is what the model says. Below the bottleneck no rate has an effect, and each is what makes the
prediction its mean: RTTs that are up at random move it, one step at a time.
"""

import numpy as np
import pacing.paper_link as paper
import pandas as pd
from common import Outcome, verdicts
from matplotlib.figure import Figure
from msgspec.structs import replace

import netctrl
from netctrl.laws.pacing.best_rate import freeze_deviation
from netctrl.laws.pacing.pacing import PacingSample, arx_state, pacer
from netctrl.laws.rate.paced import PacedSender

SEEDS = (0, 1)
PSIS = (0.1, 1.0, 10.0)
START = 5e9
SLOPE = 0.1
"""b_1 where the RTT is what the model says: RTTs over rates, each in its unit."""
BARE = replace(
    netctrl.pacing(past_rtts=1, smoothing=0.0, step=1e-12, guarded=False).law,
    **dict.fromkeys(("rtt_unit_s", "rate_unit_bit_per_s", "start_rate_bit_per_s"), 1.0),
    **dict.fromkeys(("period_s", "slope_floor", "deviation_floor"), 0.0),
    max_rate_bit_per_s=1e9,
)
"""The law that learns nothing, its averages that of now."""
WEIGHTS = np.logspace(0.0, 4.0, 9)
NOISES = (paper.QUIET, paper.NOISE, 5e-5, 1e-4)
MOSTS = (1.2e10, 2e10, paper.SENDER, 1e11)
REST_S = 120.0


def main(*, full: bool = False) -> Outcome:
    limits = pd.DataFrame(
        [(psi, xi, threshold(psi, xi), found_threshold(psi, xi)) for psi in PSIS for xi in WEIGHTS if xi >= 10.0 * psi],
        columns=["psi", "xi", "closed_form", "by_steps"],
    )
    below = pd.DataFrame(
        [(noise, xi, seed, begun_below(noise, xi, seed)) for noise in NOISES for xi in WEIGHTS for seed in SEEDS],
        columns=["noise_s", "xi", "seed", "gbit_per_s"],
    )
    rests = pd.DataFrame(
        [
            {"most": most, "noise_s": noise, "seed": seed, "rest_s": last, "gbit_per_s": rate}
            for most in MOSTS
            for noise in NOISES
            for seed in SEEDS
            for last, rate in [paper.at_rest(paper.run([paper.paper_flow(most)], noise, seed, duration=REST_S))]
        ]
    )
    found = learned()
    certificate = netctrl.pacing(
        max_rate_bit_per_s=paper.SENDER, rtt_s=paper.RTT, bottleneck_bit_per_s=paper.CAPACITY
    ).certificate
    computed = {
        "freeze-closed": float(np.abs(limits.by_steps / limits.closed_form - 1.0).max()),
        "freeze-quiet": below_of(below, paper.QUIET, 100.0),
        "freeze-noisy": below_of(below, 5e-5, 100.0),
        "freeze-light": below_of(below, paper.NOISE, 1.0),
        "freeze-certificate": 1e3 * certificate.freeze_below_s,
        "rest-quiet": rest_of(rests, paper.SENDER, paper.QUIET),
        "rest-ten": rest_of(rests, 1e11, paper.QUIET),
        "rest-noisy": rest_of(rests, paper.SENDER, 1e-4),
        "learn-paper": float(found[found.law == "paper"].met.mean()),
        "learn-own": float(found[found.law == paper.OWN_RATE].met.mean()),
    }
    return Outcome("freeze", "pacing", rests, draw(limits, below, rests), computed, table_of(rests))


def threshold(psi: float, xi: float) -> float:
    """d* in closed form, in units of the RTT and with rates in units of that in force."""
    return float(freeze_deviation(psi, xi, SLOPE, 1.0, 1.0))


def found_threshold(psi: float, xi: float) -> float:
    """The same by bisection: the deviation above which the law, step by step, leaves its rate."""
    low, high = -2.0, 2.0  # powers of ten about d*
    for _ in range(12):
        share = 0.5 * (low + high)
        low, high = (low, share) if leaves(psi, xi, 10.0**share * threshold(psi, xi)) else (share, high)
    return 10.0 ** (0.5 * (low + high)) * threshold(psi, xi)


def leaves(psi: float, xi: float, d: float) -> bool:
    """On a link whose RTT is what the model says, from a prediction that is off its mean by d: is the rate left?"""
    law = replace(BARE, psi=psi, xi=xi)
    start = {"theta": [1.0 - SLOPE, SLOPE], "phi": [1.0, 1.0], "rate": 1.0, "mean_rate": 1.0}
    state = arx_state(law, **start, mean_rtt=1.0 - d, variance=d * d)
    ready, rate = pacer(law), 1.0
    for n in range(30):
        rate, state = netctrl.pace(ready, state, PacingSample(float(n + 1), 1.0 + SLOPE * (rate - 1.0)))
    return abs(rate - 1.0) > 0.5


def begun_below(noise: float, xi: float, seed: int) -> float:
    """What a flow with nothing underneath sends that begins at half the bottleneck, R = 40 Gbit/s [Gbit/s]."""
    law = paper.paper_flow(paper.SENDER, xi, START).sender.law
    link = paper.run([netctrl.Flow(sender=PacedSender(law=law))], noise, seed, duration=20.0)
    return float(link.series["pace"][0, link.time_s > 15.0].mean() / 1e9)


def below_of(below: pd.DataFrame, noise: float, xi: float) -> float:
    return float(below[(below.noise_s == noise) & np.isclose(below.xi, xi)].gbit_per_s.mean())


def rest_of(rests: pd.DataFrame, most: float, noise: float) -> float:
    """Mean time of the last queue; of runs that still have one at their end, that."""
    return float(rests[(rests.most == most) & (rests.noise_s == noise)].rest_s.mean())


def learned() -> pd.DataFrame:
    """Whether a flow is at 95 % of the bottleneck or more with RTTs of at most a tenth more than there are without
    queue, told R from the bottleneck to ten times as much; the last half minute of a minute."""
    rows = []
    for noise in (paper.QUIET, paper.NOISE, 1e-4):
        for most in (paper.CAPACITY, *MOSTS):
            for xi in (1.0, 100.0):
                rows.append({"law": "paper", "met": met(paper.paper_flow(most, xi), noise)})
        rows.append({"law": paper.OWN_RATE, "met": met(paper.CASES[paper.OWN_RATE], noise)})
    return pd.DataFrame(rows)


def met(flow, noise: float) -> bool:
    each = paper.means(paper.run([flow], noise), warmup=30.0)
    return each.rate >= 0.95 * paper.CAPACITY / 1e9 and each.rtt <= 1.1 * 1e3 * (paper.RTT + noise)


def table_of(rests: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for most in MOSTS:
        cells = [f"{most / 1e9:g} Gbit/s"]
        for noise in NOISES:
            of = rests[(rests.most == most) & (rests.noise_s == noise)]
            resting = of[of.rest_s < REST_S - 5.0]
            cells.append(
                "no rest"
                if len(resting) < len(of)
                else f"{resting.rest_s.mean():.0f} s, {resting.gbit_per_s.mean():.2f}"
            )
        rows.append(cells)
    return pd.DataFrame(rows, columns=["R", *(f"RTTs up by {1e3 * noise:g} ms" for noise in NOISES)])


def draw(limits: pd.DataFrame, below: pd.DataFrame, rests: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(13.0, 8.2), layout="constrained")
    (law, flow), (rest, time) = figure.subplots(2, 2)
    for (psi, of), colour in zip(limits.groupby("psi"), (paper.GREEN, paper.BLUE, paper.ORANGE), strict=True):
        law.loglog(of.xi, of.closed_form, color=colour, lw=1.2, label=f"psi = {psi:g}")
        law.loglog(of.xi, of.by_steps, "o", color=colour, ms=4)
    paper.grid(law, "d*: closed form (lines), law step by step (dots)", xlabel="xi", ylabel="deviation over the RTT")
    law.legend(fontsize=8)
    colours = dict(zip(NOISES, (paper.BLUE, paper.GREEN, paper.ORANGE, paper.RED), strict=True))
    for noise, of in below.groupby("noise_s"):
        mean = of.groupby("xi").gbit_per_s.mean()
        flow.semilogx(mean.index, mean, "o-", color=colours[noise], lw=1.2, ms=4, label=f"{1e3 * noise:g} ms")
    flow.axhline(paper.CAPACITY / 1e9, color=paper.GREY, lw=0.9, ls="--")
    paper.grid(flow, "R = 40 Gbit/s, begun at 5, nothing underneath", xlabel="xi", ylabel="sent after 15 s [Gbit/s]")
    flow.legend(fontsize=8, title="RTTs up by")
    link = paper.run([paper.paper_flow(paper.SENDER)], paper.QUIET)
    rest.plot(link.time_s[::5], paper.throughput(link)[0, ::5] / 1e9, color=paper.BLUE, lw=0.6)
    other = rest.twinx()
    other.plot(link.time_s[::2], 1e3 * link.series["rtt"][0, ::2], color=paper.RED, lw=0.5)
    other.set(ylabel="RTT [ms]", ylim=(3.5, 15.0))
    paper.grid(rest, "R = 40 Gbit/s over H-TCP, quiet RTTs", xlabel="time [s]", ylabel="Gbit/s", ylim=(0.0, 11.0))
    for noise, of in rests.groupby("noise_s"):
        mean = of.groupby("most").mean(numeric_only=True)
        time.plot(mean.index / paper.CAPACITY, mean.rest_s, "o-", color=colours[noise], lw=1.2, ms=4)
        time.plot(of.most / paper.CAPACITY, of.rest_s, ".", color=colours[noise], ms=4)
    time.axhline(REST_S, color=paper.GREY, lw=0.9, ls="--")
    paper.grid(
        time, "over H-TCP: when its last queue was seen", xlabel="R over the bottleneck", ylabel="[s]", yscale="log"
    )
    figure.suptitle("MPC pacing: where it freezes, and how it comes to rest", fontsize=11)
    figure.supxlabel(verdicts("pacing", "Abstract", "ours, freeze"), fontsize=8.5)
    return figure
