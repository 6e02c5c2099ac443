"""HFTraC paper, Fig. 16: utilization under PIE and CoDel with TCP Vegas on Abilene, with and without HFTraC.

In ns-3: four senders and one receiver, behind an edge link of its own at New York; the paper's picture shows where its
senders are, its text doesn't, so Seattle, Sunnyvale, Los Angeles and Houston are ours. PIE acts every 30 ms, CoDel's
interval is 100 ms, buffers hold 200 packets, as in the paper. Links have a fifth of its 100 Mbit/s and senders a fifth
of its flows, 1 and 6 for 5 and 30; UDP of Figs. 16c and 16d comes from Los Angeles. mu is 0.1; nominal rates of TCP
fill 98 % of the edge link in equal parts.

What is shown is kept: 5 runs of 30 s that count, after 3 s, for each point, where the paper has 100 s (`python
experiments/full.py hftrac-fig16`). Two points run for 4 s beside it each time.
"""

import msgspec
import pandas as pd
from common import Measured, Outcome, measured
from hftrac.fig_common import FIFO, WAYS, Way, at_link, curve, grid, panel, verdict
from hftrac.networks import MEGA, abilene
from hftrac.packet_study import Case, PacketStudy, beside_udp, means, short_over_kept
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from netctrl.laws.aqm.codel import CodelQueue
from netctrl.laws.aqm.pie import PieQueue
from netctrl.model.network import Demand, Link, Network
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow

SENDERS = ("STTL", "SNVA", "LOSA", "HSTN")
BACKGROUND = "LOSA"
PACKET_SIZE = 1500.0
CAPACITY, BUFFER = 20e6, 200.0 * PACKET_SIZE
FLOWS = {"light": 1, "heavy": 6}
"""Of each sender."""
TARGETS = (5.0, 15.0, 30.0)
"""[ms]"""
FIXED = 20.0
LEVELS = (4.0, 8.0)
"""Means of the background [Mbit/s]."""
SECONDS, WARMUP = 30.0, 3.0
SHORT_SECONDS = 4.0
SHORT = (("fifo", "CoDel", "heavy", 15.0, 0.0), ("coordinated", "CoDel", "heavy", 15.0, 0.0))
MU, SHARE, DEVIATION = 0.1, 0.98, 0.2
LOOKS = {"fifo": FIFO, "coordinated": Way("coordinated HFTraC", "#38761d", "-", WAYS["coordinated"].at(MU))}
KINDS = ("PIE", "CoDel")


def network(level: float) -> Network:
    base = abilene()
    edge = Link(id="edge", source="NYCM", target="Dst", capacity=CAPACITY, buffer=BUFFER)
    links = (*(msgspec.structs.replace(each, capacity=CAPACITY, buffer=BUFFER) for each in base.links), edge)
    each = (SHARE * CAPACITY - level * MEGA) / len(SENDERS)
    demands = [Demand(id=sender, source=sender, target="Dst", mean=each) for sender in SENDERS]
    if level > 0.0:
        std = DEVIATION * level * MEGA
        demands.append(Demand(id="udp", source=BACKGROUND, target="Dst", mean=level * MEGA, std=std))
    return msgspec.structs.replace(base, links=links, demands=tuple(demands), nodes=())


def requested(case: Case, seconds: float) -> Scenario:
    way, kind, load, target, level = case
    pie, codel = PieQueue(target=1e-3 * target, update=0.03), CodelQueue(target=1e-3 * target, interval=0.1)
    flows = {"count": FLOWS[load], "sender": "vegas", "start": (0.0, 0.5)}
    queue, tcp = pie if kind == "PIE" else codel, [Flow(id=sender, **flows) for sender in SENDERS]
    return beside_udp("fig16", network(level), LOOKS[way].policy, tcp, seconds, WARMUP, queue=queue)


POINTS = [(kind, load, target, 0.0) for kind in KINDS for load in FLOWS for target in TARGETS]
POINTS += [(kind, "heavy", FIXED, level) for kind in KINDS for level in LEVELS]
STUDY = PacketStudy(
    name="hftrac-fig16",
    columns=("way", "queue", "load", "target", "level"),
    cases=[(way, *point) for way in LOOKS for point in POINTS],
    scenario=requested,
    measure=lambda result: at_link(result, "edge", PACKET_SIZE),
    seconds=SECONDS,
    short=SHORT,
)


def main(*, full: bool = False) -> Outcome:
    data = STUDY.kept_runs()
    computed = compute(data) | short_over_kept(STUDY, data, SHORT_SECONDS, "utilization")
    return Outcome("fig16", "hftrac", data, draw(means(data, STUDY.columns)), computed)


def compute(data: pd.DataFrame) -> dict[str, float | Measured]:
    found = {}
    for kind in KINDS:
        runs = [of_run(one) for _, one in data[data.queue == kind].groupby("run")]
        found |= {f"fig16-{kind.lower()}-{name}": measured([run[name] for run in runs]) for name in runs[0]}
    return found


def of_run(one: pd.DataFrame) -> dict[str, float]:
    """Medians over the targets, or the backgrounds, of one run of each case."""
    fifo, paced = (one[one.way == way].set_index(["load", "level", "target"]).sort_index() for way in LOOKS)
    waits, all_wait, less = (
        paced.backlog / fifo.backlog,
        paced.backlog_all / fifo.backlog_all,
        1.0 - paced.loss / fifo.loss,
    )
    return {
        "fifo": fifo.utilization.min(),
        "paced": paced.utilization.min(),
        "queue-light": waits["light", 0.0].median(),
        "queue-heavy": waits["heavy", 0.0].median(),
        "all-heavy": all_wait["heavy", 0.0].median(),
        "queue-udp": waits["heavy"][list(LEVELS)].median(),
        "loss-heavy": less["heavy", 0.0].median(),
        "loss-udp": less["heavy"][list(LEVELS)].median(),
    }


def draw(data: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(15.0, 9.0), layout="constrained")
    (left, middle), (right, lost) = figure.subplots(2, 2)
    alone = data[data.level == 0.0]
    draw_ways(left, alone, "backlog_all", "utilization", {"light": "-", "heavy": "--"})
    draw_ways(middle, alone, "target", "backlog", {"light": "-", "heavy": "--"})
    draw_ways(right, data[data.level > 0.0], "level", "backlog", {"heavy": "--"})
    draw_ways(lost, alone, "target", "loss", {"heavy": "--"})
    panel(left, "Figs. 16a and 16b", "mean of all queues [packet]", "utilization of the edge link [%]")
    panel(middle, "what waits at the edge link", "target [ms]", "mean queue of the edge link [packet]", legend=None)
    title = f"the same beside UDP, as Figs. 16c and 16d: target {FIXED:g} ms"
    panel(right, title, "mean background UDP [Mbit/s]", "mean queue of the edge link [packet]", legend=None)
    panel(lost, "what is lost of all packets, heavy load", "target [ms]", "loss [%]", legend=None)
    grid(left, middle, right, lost)
    verdict(
        figure,
        "Vegas fills the edge link either way; with HFTraC less waits there and more on the way, and less is lost."
        f" mu = {MU:g}; means of {STUDY.runs} runs of {SECONDS:g} s with 95 % intervals.",
        "Fig. 16",
    )
    return figure


def draw_ways(axes: Axes, data: pd.DataFrame, x: str, y: str, styles: dict[str, str]) -> None:
    for name, way in LOOKS.items():
        for kind, marker in zip(KINDS, "os", strict=True):
            for load, style in styles.items():
                part = data[(data.way == name) & (data.queue == kind) & (data.load == load)]
                label = f"{kind}, {load}, {'no HFTraC' if name == 'fifo' else 'HFTraC'}"
                curve(axes, way, x, y, part.sort_values("target"), ls=style, marker=marker, ms=4.5, label=label)
