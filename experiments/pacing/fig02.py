"""Pacing paper, Fig. 2: RTTs of a flow without control, what the model says of them, and RTTs under the law.

The paper prints no numbers; those beside its claims are of an independent study of it. Beside its law at R = 10 Gbit/s,
which is the bottleneck: R of the sender's link, a fixed cap that knows the bottleneck too, and the own-rate law.
"""

import numpy as np
import pacing.paper_link as paper
import pandas as pd
from common import Outcome, verdicts
from matplotlib.figure import Figure

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.laws.tracking.estimators import nlms_step, sgd_step
from netctrl.scenario.result import Result

PAST, STEP = 5, 0.5
"""p and α; q is 1."""
UNITS = {"first RTT, R": None, "s, Gbit/s": (1.0, 1e9), "ms, Gbit/s": (1e-3, 1e9), "s, bit/s": (1.0, 1.0)}
"""Of RTTs [s] and rates [bit/s]."""


def main(*, full: bool = False) -> Outcome:
    links = {name: paper.alone(name) for name in paper.CASES}
    found = {name: paper.means(link) for name, link in links.items()}
    quiet = {name: paper.means(paper.alone(name, paper.QUIET)) for name in (paper.KNOWN, paper.AT_CAP, paper.OWN_RATE)}
    times, rtts, predicted = tracked()
    computed = fits(times, rtts, predicted) | single(found, quiet) | proxies(links, found)
    table = pd.DataFrame(
        [
            (name, f"{each.rate:.3f} ± {each.rate_std:.3f}", f"{each.rtt:.2f} ± {each.rtt_std:.2f}",
             f"{each.rtt_p99:.2f}", f"{each.lost_mb:.1f}")
            for name, each in found.items()
        ],
        columns=["flow", "Gbit/s", "RTT [ms]", "its 99th percentile", "lost [MB]"],
    )  # fmt: skip
    return Outcome("fig02", "pacing", table_of(links), draw(links, found, (times, rtts, predicted)), computed, table)


def tracked(every: float = 0.01) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times [s], RTTs [s] of the uncontrolled flow and what NLMS says of each from those before it."""
    times, rtts, rates = uncontrolled(every)
    return times, rtts, rtts[0] * predictions(nlms_step, rtts / rtts[0], rates / paper.CAPACITY)


def uncontrolled(every: float, noise: float = paper.NOISE) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times [s], RTTs [s] and mean rates until then [bit/s] of H-TCP alone."""
    link = paper.run([paper.CASES[paper.FREE]], noise, interval=every)
    seen = ~np.isnan(link.series["rtt"][0])
    return link.time_s[seen], link.series["rtt"][0, seen], link.series["pace"][0, seen]


def predictions(learn, rtts: np.ndarray, rates: np.ndarray, past: int = PAST, step: float = STEP) -> np.ndarray:
    """Eqs. (1) and (2) over a trace, RTTs and rates in any units: (N,), NaN where there is none, or none any more."""
    theta, found = np.zeros((past + 1, 1)), np.full(len(rtts), np.nan)
    theta[0] = 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        for n in range(past, len(rtts)):
            phi = np.append(rtts[n - past : n][::-1], rates[n - 1])
            try:
                theta, error = learn(theta, phi, [rtts[n]], step=step)
            except InvalidValue:  # what was learned isn't finite
                break
            found[n] = rtts[n] - error[0]
    return found


def fit(times: np.ndarray, rtts: np.ndarray, predicted: np.ndarray) -> float:
    """Variance accounted for after the warm-up [%]; -inf where predictions end."""
    late = times > paper.WARM_UP_S
    if not np.isfinite(predicted[late]).all():
        return -np.inf
    return float(100.0 * (1.0 - np.var((rtts - predicted)[late]) / np.var(rtts[late])))


def fits(times: np.ndarray, rtts: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Of the model, of the last RTT in its place, and of eq. (2) as printed: in how many units it tells something."""
    _, _, rates = uncontrolled(0.01)
    tells = 0
    for sizes in UNITS.values():
        unit, rate = sizes or (rtts[0], paper.CAPACITY)
        tells += fit(times, rtts / unit, predictions(sgd_step, rtts / unit, rates / rate)) > 0.0
    design = netctrl.pacing(max_rate_bit_per_s=paper.CAPACITY, rtt_s=float(rtts[0]))
    return {
        "fig2a-fit": fit(times, rtts, predicted),
        "fig2a-last": fit(times, rtts, np.append(np.nan, rtts[:-1])),
        "alpha-limit": max(each.limit for each in design.certificate.sgd_limits),
        "alpha-units": float(tells),
    }


def single(found: dict[str, paper.Means], quiet: dict[str, paper.Means]) -> dict[str, float]:
    half = paper.means(paper.run([paper.paper_flow(paper.CAPACITY, start=0.5 * paper.CAPACITY)], paper.QUIET))
    rests = [
        paper.at_rest(paper.run([paper.CASES[paper.UNKNOWN]], paper.QUIET, seed, duration=120.0)) for seed in range(5)
    ]
    return {
        "fig2a-rtt": found[paper.FREE].rtt,
        "fig2a-std": found[paper.FREE].rtt_std,
        "fig2b-rate-quiet": quiet[paper.KNOWN].rate,
        "fig2b-rate": found[paper.KNOWN].rate,
        "fig2b-rtt": found[paper.KNOWN].rtt,
        "fig2b-std": found[paper.KNOWN].rtt_std,
        "fig2b-variance": (found[paper.KNOWN].rtt_std / found[paper.FREE].rtt_std) ** 2,
        "fig2b-half": half.rate,
        "fig2b-unknown-rest": float(np.mean([last for last, _ in rests])),
        "fig2b-unknown-rate": float(np.mean([rate for _, rate in rests])),
        "fig2b-unknown-std": found[paper.UNKNOWN].rtt_std,
        "fig2b-frozen": found[paper.FROZEN].rate,
        "fig2b-cap": found[paper.AT_CAP].rate,
        "fig2b-cap-rtt": found[paper.AT_CAP].rtt,
        "fig2b-own": found[paper.OWN_RATE].rate,
        "fig2b-own-rtt": found[paper.OWN_RATE].rtt,
    }


def proxies(links: dict[str, Result], found: dict[str, paper.Means]) -> dict[str, float]:
    """Mean rate of the law over the throughput, after the warm-up."""
    values = {}
    for key, name in (("known", paper.KNOWN), ("unknown", paper.UNKNOWN)):
        times, rates = paper.law_rates(links[name], paper.CASES[name].sender.law)
        values[f"proxy-{key}"] = float(rates[times > paper.WARM_UP_S].mean() / 1e9 / found[name].rate)
    return values


def table_of(links: dict[str, Result]) -> pd.DataFrame:
    frames = [
        pd.DataFrame({"flow": name, "time_s": link.time_s[::100], "rtt_ms": 1e3 * link.series["rtt"][0, ::100]})
        for name, link in links.items()
    ]
    return pd.concat(frames, ignore_index=True)


def draw(links: dict[str, Result], found: dict[str, paper.Means], shown: tuple[np.ndarray, ...]) -> Figure:
    figure = Figure(figsize=(13.0, 9.2), layout="constrained")
    panels = figure.subplots(3, 2).ravel()
    times, rtts, predicted = shown
    near = (times > 20.0) & (times < 32.0)
    panels[0].plot(times[near], 1e3 * rtts[near], color=paper.BLUE, lw=0.8, label="measured")
    panels[0].plot(
        times[near], 1e3 * predicted[near], color=paper.ORANGE, lw=0.8, ls="--", label="one step ahead, NLMS"
    )
    paper.grid(
        panels[0], f"Fig. 2a: H-TCP alone, a sample each 10 ms, fit {fit(*shown):.1f} %", xlabel="time [s]",
        ylabel="RTT [ms]",
    )  # fmt: skip
    panels[0].legend(fontsize=8, loc="upper right")
    titles = {
        paper.KNOWN: "Fig. 2b: R = 10 Gbit/s",
        paper.UNKNOWN: f"ours: {paper.UNKNOWN}, xi = 100",
        paper.FROZEN: f"ours: {paper.FROZEN}",
    }
    for axes, name in zip(panels[1:], list(paper.CASES)[1:], strict=True):
        link, each = links[name], found[name]
        axes.plot(link.time_s[::20], 1e3 * link.series["rtt"][0, ::20], color=paper.BLUE, lw=0.5)
        title = f"{titles.get(name, f'ours: {name}')}: {each.rate:.2f} Gbit/s, RTT {each.rtt:.2f} ± {each.rtt_std:.2f}"
        paper.grid(axes, title, xlabel="time [s]", ylabel="RTT [ms]", ylim=(3.8, 8.5))
        other = axes.twinx()
        if name in (paper.KNOWN, paper.UNKNOWN, paper.FROZEN):
            at, rates = paper.law_rates(link, paper.CASES[name].sender.law)
            other.plot(at[::100], rates[::100] / 1e9, color=paper.RED, lw=0.8)
        else:
            width = 100
            sent = link.series["pace"][0, : len(link.time_s) // width * width].reshape(-1, width).mean(axis=1)
            other.plot(link.time_s[width - 1 :: width], sent / 1e9, color=paper.GREEN, lw=0.8)
        other.set_ylim(0.0, 42.0 if name == paper.UNKNOWN else 13.0)
        other.set_ylabel(
            "its rate [Gbit/s]" if name in (paper.KNOWN, paper.UNKNOWN, paper.FROZEN) else "sent [Gbit/s]", fontsize=9
        )
    figure.suptitle("Pacing paper, Fig. 2: one flow at 10 Gbit/s and 4 ms, RTTs up by 0.02 ms on average", fontsize=11)
    figure.supxlabel(verdicts("pacing", "Fig. 2a", "Fig. 2b", "Fig. 2b, R = 40 Gbit/s"), fontsize=8)
    return figure
