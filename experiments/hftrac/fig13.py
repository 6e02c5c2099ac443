"""HFTraC paper, Fig. 13: TCP Cubic beside background UDP on the lab testbed, with and without coordinated HFTraC.

In ns-3, as the fluid has no TCP. The testbed is Fig. 7a's with its link from S3 to Dst. The paper publishes neither mu
nor nominal rates: mu is 0.1 here, and TCP is taken to send 95 % of what the background leaves. Fractional Gaussian
noise stands in for the traces. The links have delays of 10 ms, not 0.2 ms, so that propagation is a sampling interval.

2 runs of 10 s that count, after 1.5 s, at four levels of the background: short enough for CI, half a minute of one
core. The paper doesn't say how long. The third panel is that flow's round trip, as Fig. 14 has it of a video stream.
"""

from __future__ import annotations

import msgspec
import pandas as pd
from common import Outcome
from hftrac.fig_common import FIFO, STATIC, WAYS, Way, grid, panel, verdict
from hftrac.networks import MEGA, STEP, demand, link, testbed
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from packets import run_networks

from netctrl.model.demand_traffic import LongRangeTraffic
from netctrl.model.network import Network
from netctrl.model.network_scenario import NetworkScenario, TcpDemand

LEVELS = (5.0, 15.0, 20.0, 25.0)
"""Means of the background [Mbit/s]."""
MU, FACTOR = 0.1, 1.1
"""Of coordinated control; of static pacing, over nominal rates."""
SHARE = 0.95
"""Nominal rate of TCP over what the background leaves to it."""
DEVIATION = 8.0 / 38.0
"""Of the background over its mean: the testbed's."""
SECONDS, WARMUP, RUNS = 10.0, 1.5, 2
LOOKS = {
    "fifo": FIFO,
    "coordinated": Way("coordinated HFTraC", "#38761d", "-", WAYS["coordinated"].at(MU)),
    "static": Way(f"static pacing, factor {FACTOR:g}", STATIC.colour, "--", STATIC.at(FACTOR)),
}
LEVEL = "mean background UDP [Mbit/s]"


def main(*, full: bool = False) -> Outcome:
    cases = [(name, level) for name in LOOKS for level in LEVELS]
    found = run_networks([asked(level, LOOKS[name]) for name, level in cases], RUNS)
    rows = [
        {
            "way": name,
            "level": level,
            "run": run,
            "goodput": result.tcp.goodput_bit_per_s[run, 0] / MEGA,
            "loss": 100.0 * result.loss_ratio[run],
            "round_trip": 1e3 * result.tcp.round_trip_s[run, 0],
            "sent_again": 100.0 * result.tcp.retransmission_ratio[run, 0],
            **{f"lost_{link_id}": lost for link_id, lost in zip(result.links, result.lost_bytes[run], strict=True)},
        }
        for (name, level), result in zip(cases, found, strict=True)
        for run in range(RUNS)
        if result.tcp is not None
    ]
    data = pd.DataFrame(rows)
    return Outcome("fig13", "hftrac", data, draw(data), compute(data))


def network(level: float) -> Network:
    """The testbed with its last link, and nominal rates for this background."""
    base = testbed()
    left = min(30.0 - 0.25 * level, 42.0 - level)  # at S1 -> S3 and at S3 -> Dst
    split = {"e2": 1.0, "s23": 0.75, "s21": 0.25, "s13": 1.0, "s3d": 1.0}
    demands = (
        demand("p1", "H1", "Dst", SHARE * left, 0.0),
        demand("p2", "H2", "Dst", level, DEVIATION * level, split),
    )
    links = (*base.links, link("s3d", "S3", "Dst", 42, 0.3, delay=0.0))
    return msgspec.structs.replace(base, links=links, demands=demands, nodes=())


def asked(level: float, way: Way) -> NetworkScenario:
    return NetworkScenario(
        name="fig13",
        network=network(level),
        interval=STEP,
        duration=WARMUP + SECONDS,
        warmup=WARMUP,
        policy=way.policy,
        traffic=LongRangeTraffic(),
        tcp=(TcpDemand(demand="p1", variant="cubic"),),
    )


def compute(data: pd.DataFrame) -> dict[str, float]:
    mean = data.groupby(["way", "level"]).mean()
    fifo, paced, static = (mean.loc[name] for name in LOOKS)
    less, more = 1.0 - paced.loss / fifo.loss, paced.goodput / fifo.goodput - 1.0
    found = {
        "fig13-loss-15": less[15.0],
        "fig13-loss-20": less[20.0],
        "fig13-throughput-15": more[15.0],
        "fig13-throughput-20": more[20.0],
        "fig13-throughput-25": more[25.0],
        "fig13-loss-25": less[25.0],
        "fig13-last-25": 1.0 - paced.lost_s3d[25.0] / fifo.lost_s3d[25.0],
        "fig13-low": fifo.loss[5.0] / fifo.loss[25.0],
        "fig13-low-place": fifo.lost_s13[5.0] / fifo.filter(like="lost_").loc[5.0].sum(),
        "fig13-static-throughput": (static.goodput / fifo.goodput)[25.0] - 1.0,
        "fig13-static-loss": static.loss[25.0] / fifo.loss[25.0],
        "fig14-rtt": (paced.round_trip / fifo.round_trip).mean() - 1.0,
    }
    return {name: float(value) for name, value in found.items()}


def draw(data: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(15.0, 4.9), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    draw_over_level(left, data, "goodput")
    draw_over_level(middle, data, "loss")
    draw_over_level(right, data, "round_trip")
    middle.set_yscale("log")
    panel(left, "Fig. 13: what TCP Cubic brings to its end", LEVEL, "goodput [Mbit/s]")
    panel(middle, "Fig. 13: total loss", LEVEL, "loss, of what TCP and UDP send [%]", legend=None)
    panel(right, "as Fig. 14: TCP's round trip, a bulk flow in place of a video", LEVEL, "round trip [ms]", legend=None)
    grid(left, middle, right)
    verdict(
        figure,
        "Paper: coordinated HFTraC loses less, by over a half where the background is 15 to 20 Mbit/s, and so TCP is"
        " faster. In stock ns-3 TCP is faster where the background is heavy, and S3 -> Dst\nloses less; at 25 Mbit/s"
        " hosts lose of the background what their buffers have no room for."
        f" mu = {MU:g}. Points: {RUNS} runs of {SECONDS:g} s; lines: their means.",
    )
    return figure


def draw_over_level(axes: Axes, data: pd.DataFrame, column: str) -> None:
    for name, way in LOOKS.items():
        part = data[data.way == name]
        mean = part.groupby("level")[column].mean()
        axes.plot(mean.index, mean, color=way.colour, ls=way.style, lw=1.5, label=way.label)
        axes.plot(part.level, part[column], color=way.colour, ls="none", marker="o", ms=3.5)
