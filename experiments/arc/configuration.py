"""ARC paper, sections III and IV: the configuration alpha = 1.42e-5, d = 1 s (or 2.84e-5, 2 s), checked by number."""

import math

import numpy as np
import pandas as pd
from common import Outcome
from matplotlib.figure import Figure

import netctrl
from netctrl.design.arc.design import arc_gain_bands
from netctrl.frequency.branch_bound import Sector
from netctrl.frequency.margins import gain_band, margins
from netctrl.frequency.sampled_gain import gains_at
from netctrl.frequency.sampled_margins import spectral_radius
from netctrl.model.design.arc import ArcSetting
from netctrl.plants.linearize import arc_loop
from netctrl.plants.tcp_response import arc_response

LINK = {"capacity_packet_per_s": 1250.0, "utilization": 0.98}
VALIDATION = ArcSetting(capacity_packet_per_s=1000.0, utilization=0.95, epoch_s=0.2)
FLOWS, RTT = 50.0, 0.5


def flows_that_keep_30_degrees(gain: float) -> float:
    low, high = 10.0, 500.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        keeps = gain_band(arc_loop(middle, RTT, ArcSetting(**LINK), "paper")).high >= gain
        low, high = (low, middle) if keeps else (middle, high)
    return high


def main(*, full: bool = False) -> Outcome:
    first = netctrl.arc(FLOWS, RTT, alpha_per_packet=1.42e-5, simulation=False).certificate
    second = netctrl.arc(FLOWS, RTT, alpha_per_packet=2.84e-5, epoch_s=2.0, simulation=False).certificate
    paper = first.paper
    validation = arc_loop(35.0, 0.1, VALIDATION, "paper")
    computed = {
        "conf-admissible-low": paper.alpha_over_epoch.low,
        "conf-admissible-high": paper.alpha_over_epoch.high,
        "conf-limit": paper.alpha_over_epoch.limit,
        "conf-flows": flows_that_keep_30_degrees(1.42e-5),
        "conf-eq9": paper.minimum_stability.sustainable_error,
        "conf-fragile-ratio": paper.minimum_stability.alpha_ratio,
        "conf-fragile-margin": paper.minimum_stability.gain_margin_db,
        "conf-epoch": second.sampled.spectral_radius,
        "conf-epoch-1": first.sampled.spectral_radius,
        "conf-validation": margins(validation.scaled(0.112 / 0.2)).gain_margin_db,
        "conf-validation-percent": margins(validation.scaled(0.00112 / 0.2)).gain_margin_db,
        "conf-domain": RTT * 1225.0 / math.sqrt(2.0),
    }
    epochs = np.geomspace(0.05, 5.0, 120)
    data = pd.DataFrame({"epoch_s": epochs})
    band = arc_gain_bands(FLOWS, RTT, ArcSetting(**LINK))
    data["paper_low"], data["paper_high"], data["paper_limit"] = (
        float(bound) * epochs for bound in (band.low, band.high, band.limit)
    )
    for plant in ("noq", "phys"):
        data[f"sampled_{plant}_limit"] = [
            float(gains_at(arc_response(ArcSetting(**LINK, epoch_s=d), plant), FLOWS, RTT, [Sector()])[0])
            for d in epochs
        ]
    data["radius_at_1.42e-5_times_epoch"] = [
        spectral_radius(arc_response(ArcSetting(**LINK, epoch_s=d)), FLOWS, RTT, 1.42e-5 * d) for d in epochs
    ]
    return Outcome("configuration", "arc", data, draw(data), computed)


def draw(data: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(7.2, 5.4), layout="constrained")
    axes = figure.subplots()
    d = data["epoch_s"]
    axes.fill_between(d, data["paper_low"], data["paper_high"], color="#6aa84f", alpha=0.45, lw=0)
    axes.loglog(d, data["paper_limit"], color="#222222", ls="--", lw=1.4)
    axes.loglog(d, data["sampled_noq_limit"], color="#c0504d", lw=2.2)
    axes.plot([1.0, 2.0], [1.42e-5, 2.84e-5], "o", ms=8, color="#1f4e9c")
    texts = [
        ((0.062, 6.5e-7), "admissible by\neq. 8 (exact delay)", "#38761d"),
        ((0.062, 1.05e-5), "limit of eq. 7,\nwhich ignores the epoch", "#222222"),
        ((0.062, 5.2e-5), "limit of the sampled loop (noq)", "#a03028"),
    ]
    for (x, y), text, colour in texts:
        axes.text(x, y, text, color=colour, fontsize=9.5)
    points = [
        ((1.0, 1.42e-5), "paper: d = 1 s,\nstable", (9, -11), "left"),
        ((2.0, 2.84e-5), "paper: d = 2 s,\nunstable", (-10, 3), "right"),
    ]
    for (x, y), text, shift, side in points:
        axes.annotate(text, (x, y), xytext=shift, ha=side, textcoords="offset points", fontsize=9.5, color="#1f4e9c")
    axes.set(xlabel="epoch d [s]", ylabel="alpha [per packet]")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.grid(which="major", color="#dddddd", lw=0.6)
    axes.set_ylim(1.5e-7, 1.2e-4)
    axes.set_title("ARC at 50 flows, RTT 0.5 s, 10 Mbit/s", fontsize=11)
    figure.supxlabel(
        "Paper: alpha/d may be kept while d doubles. Not reproduced: the sampled loop"
        " has spectral radius 1.177 at d = 2 s.",
        fontsize=8.5,
    )
    return figure
