"""HFTraC paper, Fig. 15: utilization under RED and PI with TCP Reno on the lab testbed, with and without HFTraC.

In ns-3: 20 flows from each source, ECN, packets of 1 kB as in the paper. It publishes neither mu, nominal rates,
buffers nor gains of PI: mu is 0.1 here; nominal rates are what fills S3 -> Dst, half for each source; buffers are 100
kB; RED's upper threshold is three times the lower; PI's gains are by the rule of Hollot et al. for 40 flows with a
round trip of 50 ms (crossover at 4 rad/s). The queue is at all links. Of Fig. 15b's UDP the mean is known to the
controllers.

What is shown is kept: 5 runs of 30 s that count, after 3 s, for each point, and one level of background (`python
experiments/full.py hftrac-fig15`). Two points run for 4 s beside it each time.
"""

import msgspec
import numpy as np
import pandas as pd
from common import Measured, Outcome, measured
from hftrac.fig_common import FIFO, WAYS, Way, at_link, curve, grid, panel, verdict
from hftrac.networks import demand, link, testbed
from hftrac.packet_study import Case, PacketStudy, beside_udp, means, short_over_kept
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from netctrl.laws.aqm.pi import PiQueue
from netctrl.laws.aqm.red import RedQueue
from netctrl.model.network import Network
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow

PACKET = 1000
"""[byte]"""
TARGETS = {"RED": (2, 5, 15), "PI": (2, 5, 10)}
"""Lower threshold of RED, reference of PI [packet]."""
FIXED = {"RED": 15, "PI": 10}
LEVELS = (0.0, 20.0)
"""Means of the background [Mbit/s]; the first is none."""
BUFFER, BOTTLENECK = 100e3, 42.0
SECONDS, WARMUP = 30.0, 3.0
SHORT_SECONDS = 4.0
SHORT = (("fifo", "PI", 10, 0.0), ("coordinated", "PI", 10, 0.0))
MU = 0.1
DEVIATION = 8.0 / 38.0
LOOKS = {"fifo": FIFO, "coordinated": Way("coordinated HFTraC", "#38761d", "-", WAYS["coordinated"].at(MU))}
SPLIT = {"e2": 1.0, "s23": 0.75, "s21": 0.25, "s13": 1.0, "s3d": 1.0}


def network(level: float) -> Network:
    base = testbed()
    links = (*base.links, link("s3d", "S3", "Dst", BOTTLENECK, 0.3, delay=0.0))
    each = 0.5 * (BOTTLENECK - level)
    demands = [demand("p1", "H1", "Dst", each, 0.0), demand("p2", "H2", "Dst", each, 0.0, SPLIT)]
    if level > 0.0:
        demands.append(demand("udp", "H2", "Dst", level, DEVIATION * level, SPLIT))
    wide = tuple(msgspec.structs.replace(each, buffer=BUFFER) for each in links)
    return msgspec.structs.replace(base, links=wide, demands=tuple(demands), nodes=())


def requested(case: Case, seconds: float) -> Scenario:
    way, kind, target, level = case
    size = float(target * PACKET)
    red = RedQueue(min_threshold=size, max_threshold=3.0 * size)
    pi = PiQueue(alpha=2.4e-4, beta=2.32e-4, reference_queue=size)
    flows = {"count": 20, "sender": "reno", "start": (0.0, 0.5), "ecn": True}
    queue, tcp = red if kind == "RED" else pi, [Flow(id=name, **flows) for name in ("p1", "p2")]
    return beside_udp("fig15", network(level), LOOKS[way].policy, tcp, seconds, WARMUP, queue=queue, packet_size=PACKET)


QUEUES = ("backlog", "backlog_all")
"""At S3 -> Dst, at all links."""
POINTS = [(kind, target, 0.0) for kind, targets in TARGETS.items() for target in targets]
POINTS += [(kind, target, level) for kind, target in FIXED.items() for level in LEVELS[1:]]
STUDY = PacketStudy(
    name="hftrac-fig15",
    columns=("way", "queue", "target", "level"),
    cases=[(way, *point) for way in LOOKS for point in POINTS],
    scenario=requested,
    measure=lambda result: at_link(result, "s3d", PACKET),
    seconds=SECONDS,
    short=SHORT,
)


def main(*, full: bool = False) -> Outcome:
    data = STUDY.kept_runs()
    computed = compute(data) | short_over_kept(STUDY, data, SHORT_SECONDS, "utilization")
    return Outcome("fig15", "hftrac", data, draw(means(data, STUDY.columns)), computed)


def compute(data: pd.DataFrame) -> dict[str, float | Measured]:
    found, by_run = {}, dict(list(data.groupby("run")))
    for kind in TARGETS:
        name = kind.lower()
        gained = {run: gains(some[some.queue == kind]) for run, some in by_run.items()}
        each = data[data.queue == kind].set_index(["way", "target", "level", "run"]).sort_index()
        fifo, paced = (each.loc[way] for way in LOOKS)
        first, level = (TARGETS[kind][0], 0.0), (FIXED[kind], LEVELS[1])
        at_queue, at_all = (pd.DataFrame({run: each[x] for run, each in gained.items()}) for x in QUEUES)
        found |= {
            f"fig15a-{name}-most": measured(at_queue.loc[at_queue.mean(axis=1).idxmax()]),
            f"fig15a-{name}-least": measured(at_queue.loc[at_queue.mean(axis=1).idxmin()]),
            f"fig15a-{name}-all": measured(at_all.loc[at_all.mean(axis=1).idxmax()]),
            f"fig15a-{name}-queue": measured(paced.backlog[first] / fifo.backlog[first]),
            f"fig15b-{name}": measured(np.minimum(paced.utilization[level], fifo.utilization[level])),
            f"fig15b-{name}-queue": measured(paced.backlog[level] / fifo.backlog[level]),
            f"fig15b-{name}-loss": measured(1.0 - paced.loss[level] / fifo.loss[level]),
        }
    return found


def gains(run: pd.DataFrame) -> pd.DataFrame:
    """Points of utilization beyond FIFO's at the same queue at S3 -> Dst, and at all queues; a row a target."""
    fifo, paced = (run[(run.way == way) & (run.level == 0.0)].set_index("target") for way in LOOKS)
    return pd.DataFrame({column: more(fifo, paced, column) for column in QUEUES})


def more(fifo: pd.DataFrame, paced: pd.DataFrame, column: str) -> pd.Series:
    """Points of utilization beyond FIFO's at the same queue, by straight lines; else at its shortest or longest."""
    one = fifo.sort_values(column)
    return paced.utilization - np.interp(paced[column], one[column], one.utilization)


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
        "A short queue at the bottleneck is used better, as packets wait before it; where all queues count there is no"
        f" gain. mu = {MU:g}; means of {STUDY.runs} runs of {SECONDS:g} s with 95 % intervals.",
        "Fig. 15a",
        "Fig. 15b",
    )
    return figure


def draw_ways(axes: Axes, data: pd.DataFrame, x: str) -> None:
    for name, way in LOOKS.items():
        for kind, marker in (("RED", "o"), ("PI", "s")):
            part = data[(data.way == name) & (data.queue == kind)]
            label = f"{kind}, {'no HFTraC' if name == 'fifo' else way.label}"
            curve(
                axes, way, x, "utilization", part, ls="-" if kind == "RED" else "--", marker=marker, ms=5.0, label=label
            )
