"""HFTraC paper, Fig. 15: utilization under RED and PI with TCP Reno on the lab testbed, with and without HFTraC.

In ns-3: 20 flows from each source, ECN, packets of 1 kB as in the paper. It publishes neither mu, nominal rates,
buffers nor gains of PI: mu is 0.1 here; nominal rates are what fills S3 -> Dst, half for each source; buffers are 100
kB; RED's upper threshold is three times the lower; PI's gains are by the rule of Hollot et al. for 40 flows with a
round trip of 50 ms (crossover at 4 rad/s). The queue is at all links. Of Fig. 15b's UDP the mean is known to the
controllers.

One run of 4 s that count, after 3 s, for each point, and one level of background: short enough for CI, half a minute of
one core.
"""

from __future__ import annotations

import msgspec
import numpy as np
import pandas as pd
from common import Outcome
from hftrac.fig_common import FIFO, WAYS, Way, at_link, grid, panel, verdict
from hftrac.networks import STEP, demand, link, testbed
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from packets import run_networks

from netctrl.model.demand_traffic import LongRangeTraffic
from netctrl.model.network import Network
from netctrl.model.network_scenario import NetworkScenario, TcpDemand
from netctrl.model.queue import PiQueue, RedQueue

PACKET = 1000
"""[byte]"""
TARGETS = {"RED": (2, 5, 15), "PI": (2, 5, 10)}
"""Lower threshold of RED, reference of PI [packet]."""
FIXED = {"RED": 15, "PI": 10}
LEVELS = (0.0, 20.0)
"""Means of the background [Mbit/s]; the first is none."""
BUFFER, BOTTLENECK = 100e3, 42.0
SECONDS, WARMUP = 4.0, 3.0
MU = 0.1
DEVIATION = 8.0 / 38.0
LOOKS = {"fifo": FIFO, "coordinated": Way("coordinated HFTraC", "#38761d", "-", WAYS["coordinated"].at(MU))}
SPLIT = {"e2": 1.0, "s23": 0.75, "s21": 0.25, "s13": 1.0, "s3d": 1.0}


def main(*, full: bool = False) -> Outcome:
    points = [(kind, target, 0.0) for kind, targets in TARGETS.items() for target in targets]
    points += [(kind, target, level) for kind, target in FIXED.items() for level in LEVELS[1:]]
    cases = [(way, *point) for way in LOOKS for point in points]
    found = run_networks([asked(*case) for case in cases], 1, packet_size=PACKET)
    rows = []
    for case, result in zip(cases, found, strict=True):
        rows.append(
            {
                **dict(zip(("way", "queue", "target", "level"), case, strict=True)),
                **at_link(result, "s3d", PACKET),
            }
        )
    data = pd.DataFrame(rows)
    return Outcome("fig15", "hftrac", data, draw(data), compute(data))


def network(level: float) -> Network:
    base = testbed()
    links = (*base.links, link("s3d", "S3", "Dst", BOTTLENECK, 0.3, delay=0.0))
    each = 0.5 * (BOTTLENECK - level)
    demands = [demand("p1", "H1", "Dst", each, 0.0), demand("p2", "H2", "Dst", each, 0.0, SPLIT)]
    if level > 0.0:
        demands.append(demand("udp", "H2", "Dst", level, DEVIATION * level, SPLIT))
    wide = tuple(msgspec.structs.replace(each, buffer=BUFFER) for each in links)
    return msgspec.structs.replace(base, links=wide, demands=tuple(demands), nodes=())


def asked(way: str, kind: str, target: int, level: float) -> NetworkScenario:
    size = float(target * PACKET)
    red = RedQueue(min_threshold=size, max_threshold=3.0 * size)
    pi = PiQueue(alpha=2.4e-4, beta=2.32e-4, reference_queue=size)
    flows = {"flows": 20, "variant": "newreno", "start": (0.0, 0.5), "ecn": True}
    return NetworkScenario(
        name="fig15",
        network=network(level),
        interval=STEP,
        duration=WARMUP + SECONDS,
        warmup=WARMUP,
        policy=LOOKS[way].policy,
        traffic=LongRangeTraffic(),
        tcp=(TcpDemand(demand="p1", **flows), TcpDemand(demand="p2", **flows)),
        queue=red if kind == "RED" else pi,
    )


def compute(data: pd.DataFrame) -> dict[str, float]:
    found = {}
    for kind in TARGETS:
        name, some = kind.lower(), data[data.queue == kind]
        fifo, paced = (some[some.way == way].set_index(["target", "level"]) for way in LOOKS)
        first, level = (TARGETS[kind][0], 0.0), (FIXED[kind], LEVELS[1])
        by_queue, by_all = more(fifo, paced, "backlog"), more(fifo, paced, "backlog_all")
        found |= {
            f"fig15a-{name}-most": by_queue.max(),
            f"fig15a-{name}-least": by_queue.min(),
            f"fig15a-{name}-all": by_all.max(),
            f"fig15a-{name}-queue": paced.backlog[first] / fifo.backlog[first],
            f"fig15b-{name}": min(paced.utilization[level], fifo.utilization[level]),
            f"fig15b-{name}-queue": paced.backlog[level] / fifo.backlog[level],
        }
    return {name: float(value) for name, value in found.items()}


def more(fifo: pd.DataFrame, paced: pd.DataFrame, column: str) -> pd.Series:
    """Points of utilization beyond FIFO's at the same queue, by straight lines; else at its shortest or longest."""
    one, other = (each.xs(0.0, level="level").sort_values(column) for each in (fifo, paced))
    return other.utilization - np.interp(other[column], one[column], one.utilization)


def draw(data: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(15.0, 4.9), layout="constrained")
    left, middle, right = figure.subplots(1, 3, sharey=True)
    alone = data[data.level == 0.0]
    draw_ways(left, alone, "backlog")
    draw_ways(middle, alone, "backlog_all")
    fixed = data[[row.target == FIXED[row.queue] for row in data.itertuples()]]
    draw_ways(right, fixed, "level")
    panel(
        left,
        "Fig. 15a: over the queue at S3 -> Dst",
        "mean queue at S3 -> Dst [packet]",
        "utilization of S3 -> Dst [%]",
    )
    panel(middle, "the same over all queues", "mean of all queues together [packet]", legend=None)
    panel(right, "Fig. 15b: with UDP; RED at 15 packets, PI at 10", "mean background UDP [Mbit/s]", legend=None)
    grid(left, middle, right)
    verdict(
        figure,
        "Paper: with HFTraC up to 5 % more utilization at the same buffer occupancy. Here, in stock ns-3, a short queue"
        " at the bottleneck is used better, as packets wait at hosts and switches before it; where\nall queues count"
        " there is no gain. With UDP the bottleneck is full either way."
        f" mu = {MU:g}, one run of {SECONDS:g} s each.",
    )
    return figure


def draw_ways(axes: Axes, data: pd.DataFrame, x: str) -> None:
    for name, way in LOOKS.items():
        for kind, marker in (("RED", "o"), ("PI", "s")):
            part = data[(data.way == name) & (data.queue == kind)]
            style = {"ls": "-" if kind == "RED" else "--", "marker": marker, "ms": 5.0, "lw": 1.5}
            label = f"{kind}, {'no HFTraC' if name == 'fifo' else way.label}"
            axes.plot(part[x], part.utilization, color=way.colour, label=label, **style)
