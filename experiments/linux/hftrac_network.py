"""HFTraC's testbed as the kernel can carry it: the paper's, slowed down, with a network of its own for agents' words.

Rates are divided and times multiplied by `SLOWER`; buffers stay as they are, in bytes and in packets. So queues last as
many control intervals, and loads are what they were: only the kernel's own delays are smaller beside an interval.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec

from netctrl.datasets import network_path
from netctrl.model.network import Demand, Link, Network, read_network
from netctrl.scenario.network.policy import Fifo, HftracPolicy, Policy, StaticPacing
from netctrl.scenario.network.traffic import Demands, GaussianTraffic
from netctrl.scenario.scenario import Scenario

__all__ = ["FRAME", "INTERVAL", "MEGA", "SLOWER", "TELLER", "WAYS", "Case", "built", "paths", "policy", "scenario"]

MEGA, FRAME = 1e6, 1514
SLOWER = 4.0
INTERVAL = 0.01 * SLOWER
"""[s]; the paper's is 10 ms."""
TELLER = "M"
"""Node where all words pass, and a central controller sits."""
WORDS = 1e9
"""Capacity of what words pass [bit/s]."""
WAYS = ("fifo", "static", "god", "coordinated", "centralized", "myopic")
ROUND_TRIP = 1
"""Of a central controller [sample]: it hears of an interval in the next one, and its command is obeyed at once."""
SHARE, DEVIATION = 0.95, 8.0 / 38.0
"""Fig. 13: nominal rate of TCP over what the background leaves; deviation of the background over its mean."""


class Case(NamedTuple):
    """One point of a figure."""

    figure: str
    """6a, 7, 10 or 13."""
    x: float
    """Utilization; in Fig. 10 what is sent over what is believed; in Fig. 13 the background's mean [paper's Mbit/s]."""
    way: str
    value: float
    """mu, or the factor of static pacing; 0 of FIFO."""


def scenario(case: Case, seconds: float, warmup: float) -> Scenario:
    """As the simulator takes it, and as laws are designed for it; Fig. 13's TCP is a steady demand there."""
    return Scenario.of(
        name=f"linux-hftrac-{case.figure}",
        graph=slowed(_background(case.x) if case.figure == "13" else _testbed(case.figure)),
        interval=INTERVAL,
        duration=_whole(seconds + warmup),
        warmup=_whole(warmup),
        control=policy(case),
        flows=(Demands(spread=GaussianTraffic(scale=case.x if case.figure == "10" else 1.0)),),
        utilization={"6a": None, "7": case.x, "10": 0.95, "13": None}[case.figure],
    )


def policy(case: Case) -> Policy:
    if case.way == "fifo":
        return Fifo()
    if case.way == "static":
        return StaticPacing(factor=case.value)
    if case.way == "coordinated":
        return HftracPolicy(architecture="coordinated", mu=case.value, horizon="auto")
    delay = ROUND_TRIP if case.way == "centralized" else None
    return HftracPolicy(architecture=case.way, mu=case.value, information_delay=delay)  # ty: ignore[invalid-argument-type]


def slowed(network: Network) -> Network:
    """With the same buffers and numbers of intervals."""
    links = tuple(
        msgspec.structs.replace(each, capacity=each.capacity / SLOWER, delay=each.delay * SLOWER)
        for each in network.links
    )
    demands = tuple(
        msgspec.structs.replace(each, mean=each.mean / SLOWER, std=each.std / SLOWER) for each in network.demands
    )
    return msgspec.structs.replace(network, links=links, demands=demands)


def built(network: Network) -> Network:
    """What stands in the kernel: the links, and lines for words between all nodes that have one.

    Only the link between the sources' switches has its delay: behind the others there is no controlled link.
    """
    fed = {link.source for link in network.links}
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


def _background(level: float) -> Network:
    """Fig. 13's: with the last link, 42 Mbit/s from S3 to Dst, and nominal rates for this background."""
    base = _testbed("13")
    left = min(30.0 - 0.25 * level, 42.0 - level)  # at S1 -> S3 and at S3 -> Dst
    split = {"e2": 1.0, "s23": 0.75, "s21": 0.25, "s13": 1.0, "s3d": 1.0}
    demands = (
        Demand(id="p1", source="H1", target="Dst", mean=SHARE * left * MEGA),
        Demand(id="p2", source="H2", target="Dst", mean=level * MEGA, std=DEVIATION * level * MEGA, split=split),
    )
    last = Link(id="s3d", source="S3", target="Dst", capacity=42 * MEGA, buffer=37500.0)
    return msgspec.structs.replace(base, links=(*base.links, last), demands=demands, nodes=())


def _whole(seconds: float) -> float:
    return math.ceil(seconds / INTERVAL - 1e-9) * INTERVAL
