"""HFTraC's testbed as the kernel can carry it: the paper's, slowed down, with a network of its own for agents' words.

Rates are divided and times multiplied by `SLOWER`; buffers stay as they are, in bytes and in packets. So queues last as
many control intervals, and loads are what they were: only the kernel's own delays are smaller beside an interval.
Fig. 14, which is run in virtual time only, has the paper's own rates: TCP's timers don't slow down with the links.
"""

import math
from typing import NamedTuple

import msgspec

from netctrl.model.datasets import network_path
from netctrl.model.network import Demand, Link, Network, read_network
from netctrl.scenario.builders import routed
from netctrl.scenario.network.policy import Fifo, HftracPolicy, Policy, StaticPacing
from netctrl.scenario.network.traffic import GaussianTraffic, LongRangeTraffic, Spread, TriangularTraffic
from netctrl.scenario.scenario import Scenario

MEGA, FRAME = 1e6, 1514
SLOWER = 4.0
PAPER_INTERVAL = 0.01
INTERVAL = PAPER_INTERVAL * SLOWER
"""[s]"""
OWN_RATES = ("14",)
"""Figures with the paper's rates and interval."""
TELLER = "M"
"""Node where all words pass, and a central controller sits."""
WORDS = 1e9
"""Capacity of what words pass [bit/s]."""
WAYS = ("fifo", "static", "god", "coordinated", "centralized", "myopic")
ROUND_TRIP = 1
"""Of a central controller [sample]: it hears of an interval in the next one, and its command is obeyed at once."""
SHARE, DEVIATION = 0.95, 8.0 / 38.0
"""Figs. 13 and 14: nominal rate of TCP over what the background leaves; deviation of the background over its mean."""
PROPAGATION = 0.2e-3
"""Of each link, by the paper, which calls it negligible; laws are designed for an interval [s]."""
STREAM, SEGMENT = 3.16, 1448
"""Fig. 14: mean rate of the video [Mbit/s], which is TCP's payload; payload of a frame [byte]."""
STEADY, CHANGED, ENDS = 21.0, 30.0, (0.0, 60.0)
"""Fig. 10b: rate of Src1, taken to be steady; the paper's mean and ends of triangular rates, Src2's [Mbit/s]."""
PUBLISHED, SAME = 1.0, 0.0
"""Fig. 10b: which rates are triangular: the paper's numbers, or both demands of the testbed with their deviation."""


class Case(NamedTuple):
    """One point of a figure."""

    figure: str
    """6a, 7, 10 (10a), 10b, 13 or 14."""
    x: float
    """Utilization; in Fig. 10a what is sent over what is believed; in Fig. 10b `PUBLISHED` or `SAME`; in Figs. 13 and
    14 the background's mean [paper's Mbit/s]."""
    way: str
    value: float
    """mu, or the factor of static pacing; 0 of FIFO."""

    @property
    def interval(self) -> float:
        """Sampling interval [s]."""
        return PAPER_INTERVAL * slower(self.figure)


def slower(figure: str) -> float:
    """What the paper's rates are divided by, and its times multiplied."""
    return 1.0 if figure in OWN_RATES else SLOWER


def scenario(case: Case, seconds: float, warmup: float) -> Scenario:
    """As the simulator takes it, and as laws are designed for it; TCP of Figs. 13 and 14 is a steady demand there."""
    return routed(
        slowed(_network(case), slower(case.figure)),
        name=f"linux-hftrac-{case.figure}",
        utilization={"7": case.x, "10": 0.95}.get(case.figure),
        interval=case.interval,
        duration=_whole(seconds + warmup, case.interval),
        warmup=_whole(warmup, case.interval),
        control=policy(case),
        spread=_spread(case),
    )


def _spread(case: Case) -> Spread:
    """Of the demands that aren't steady. Fig. 14 has the substitute for the paper's traces."""
    if case.figure == "10b":
        low, high = ENDS
        half = 0.5 * (high - low) * MEGA / slower(case.figure)
        return TriangularTraffic(half_width=half if case.x == PUBLISHED else None)
    if case.figure == "14":
        return LongRangeTraffic()
    return GaussianTraffic(scale=case.x if case.figure == "10" else 1.0)


def policy(case: Case) -> Policy:
    if case.way == "fifo":
        return Fifo()
    if case.way == "static":
        return StaticPacing(factor=case.value)
    if case.way == "coordinated":
        return HftracPolicy(architecture="coordinated", mu=case.value, horizon="auto")
    delay = ROUND_TRIP if case.way == "centralized" else None
    return HftracPolicy(architecture=case.way, mu=case.value, information_delay=delay)  # ty: ignore[invalid-argument-type]


def slowed(network: Network, factor: float = SLOWER) -> Network:
    """With the same buffers and numbers of intervals."""
    links = tuple(
        msgspec.structs.replace(each, capacity=each.capacity / factor, delay=each.delay * factor)
        for each in network.links
    )
    demands = tuple(
        msgspec.structs.replace(each, mean=each.mean / factor, std=each.std / factor) for each in network.demands
    )
    return msgspec.structs.replace(network, links=links, demands=demands)


def built(network: Network, *, delayed: bool = True) -> Network:
    """What stands in the kernel: the links, and lines for words between all nodes that have one.

    Only links between switches have their delay: behind the others there is no controlled link. Without `delayed` none
    has one.
    """
    fed = {link.source for link in network.links} if delayed else set()
    links = [
        link if link.delay and link.target in fed else msgspec.structs.replace(link, delay=0.0)
        for link in network.links
    ]
    nodes = dict.fromkeys(node for link in network.links for node in (link.source, link.target))
    for node in nodes:
        links += [
            Link(id=f"{node}.to", source=node, target=TELLER, capacity=WORDS),
            Link(id=f"{node}.from", source=TELLER, target=node, capacity=WORDS),
        ]
    return Network(name=network.name, links=tuple(links))


def paths(network: Network) -> dict[str, list[tuple[list[str], int]]]:
    """Ways of each demand, and how many of four packets take each."""
    last = ["s3d"] if any(link.id == "s3d" for link in network.links) else []
    return {"p1": [(["e1", "s13", *last], 4)], "p2": [(["e2", "s23", *last], 3), (["e2", "s21", "s13", *last], 1)]}


def _testbed(figure: str) -> Network:
    network = read_network(network_path("testbed"))
    if figure != "6a":
        return network
    links = tuple(
        msgspec.structs.replace(each, buffer=None) if each.id in ("e1", "e2") else each for each in network.links
    )
    return msgspec.structs.replace(network, links=links)


def _network(case: Case) -> Network:
    """At the paper's rates."""
    if case.figure == "13":
        left = min(30.0 - 0.25 * case.x, 42.0 - case.x)  # at S1 -> S3 and at S3 -> Dst
        return _background(case.x, SHARE * left)
    if case.figure == "14":
        return _background(case.x, STREAM * FRAME / SEGMENT)
    network = _testbed(case.figure)
    if case.figure != "10b" or case.x == SAME:
        return network
    one, other = network.demands
    steady = msgspec.structs.replace(one, mean=STEADY * MEGA, std=0.0)
    return msgspec.structs.replace(network, demands=(steady, msgspec.structs.replace(other, mean=CHANGED * MEGA)))


def _background(level: float, tcp: float) -> Network:
    """With the last link, 42 Mbit/s from S3 to Dst, and nominal rates for TCP beside this background [Mbit/s]."""
    base = _testbed("13")
    split = {"e2": 1.0, "s23": 0.75, "s21": 0.25, "s13": 1.0, "s3d": 1.0}
    demands = (
        Demand(id="p1", source="H1", target="Dst", mean=tcp * MEGA),
        Demand(id="p2", source="H2", target="Dst", mean=level * MEGA, std=DEVIATION * level * MEGA, split=split),
    )
    last = Link(id="s3d", source="S3", target="Dst", capacity=42 * MEGA, buffer=37500.0)
    return msgspec.structs.replace(base, links=(*base.links, last), demands=demands, nodes=())


def _whole(seconds: float, interval: float) -> float:
    return math.ceil(seconds / interval - 1e-9) * interval
