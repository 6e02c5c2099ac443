"""Designed ECN thresholds on packets and in the Linux kernel, at random points: what stays unused, and with less K.

`PYTHONPATH=experiments python -m engines.thresholds` prints a table; `--docs` writes docs/assets/ecn-thresholds.csv.
Points have 20 to 100 Mbit/s, 5 to 40 ms and windows of 3 to 40 packets without a queue. "Out of step": flows start at
random within .3 s, and their round trips are up to 20 % shorter than the design's.
"""

from collections.abc import Callable
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from common import tables

import netctrl
from netctrl.core.units import packets_per_second
from netctrl.laws.aqm.threshold import ThresholdQueue
from netctrl.laws.disciplines import KernelQueue
from netctrl.laws.targets.step import STEP_OFF_S

POINTS, SEED, PACKET = 24, 5, 1514
SECONDS, TRIPS = 6.0, 300.0
"""Shortest run, and shortest run in round trips; its second half counts."""
APART_S, SHORTER = 0.3, 0.2
BUSY = 1e-3
"""Share of the link that may stay unused."""


class Place(NamedTuple):
    """A point with its threshold."""

    rate: float
    """[bit/s]"""
    rtt: float
    """[s]"""
    flows: int
    packets: int
    """K by `netctrl.ecn_design`."""


def places(random: np.random.Generator) -> list[Place]:
    """Random points with designed thresholds."""
    found = []
    for _ in range(POINTS):
        rate = round(float(np.exp(random.uniform(*np.log([20e6, 100e6])))), -4)
        rtt = round(float(np.exp(random.uniform(*np.log([5e-3, 40e-3])))), 4)
        window = float(np.exp(random.uniform(*np.log([3.0, 40.0]))))
        flows = max(1, round(packets_per_second(rate, PACKET) * rtt / window))
        where = {"rtt_s": rtt, "flows": float(flows), "capacity_bit_per_s": rate, "packet_size_bytes": float(PACKET)}
        found.append(
            Place(rate, rtt, flows, int(netctrl.ecn_design(**where, unit="packets").law.parameters["k_packets"]))
        )
    return found


def unused(place: Place, engine: str, queue: Any, apart: bool, sender: str = "dctcp") -> float:
    """Share of the link that stays unused in the second half of a run."""
    groups = (netctrl.Flow(id="f", path=("l",), rtt=place.rtt, count=place.flows, sender=sender, ecn=True),)
    if apart:
        random = np.random.default_rng(place.flows)
        shares = random.random((place.flows, 2))
        groups = tuple(
            netctrl.Flow(
                id=f"f{k}",
                path=("l",),
                rtt=round(place.rtt * (1.0 - SHORTER * shorter), 7),
                count=1,
                sender=sender,
                ecn=True,
                start=round(APART_S * late, 4),
            )
            for k, (shorter, late) in enumerate(shares)
        )
    scenario = netctrl.Scenario(
        name="step",
        links=(netctrl.Link(id="l", source="a", target="b", capacity=place.rate, queue=queue),),
        flows=groups,
        duration=ceil(max(SECONDS / place.rtt, TRIPS)) * place.rtt,
        packet_size=PACKET,
        interval=place.rtt,
    )
    sent = netctrl.simulate(scenario, engine).series["departed"][0]
    return 1.0 - float(sent[len(sent) // 2 :].mean()) * 8.0 / place.rtt / place.rate


def red(place: Place, packets: int) -> KernelQueue:
    """Linux's RED as `netctrl export tc` sets it."""
    least = packets * PACKET + 1
    return KernelQueue(
        discipline="red", parameters={"limit": 16 * least, "min": least, "max": least, "weight_log": 1, "ecn": 1}
    )


def codel(place: Place, packets: int) -> KernelQueue:
    """Linux's CoDel with the same threshold as a wait."""
    wait = packets / packets_per_second(place.rate, PACKET)
    off = {"target": STEP_OFF_S, "interval": STEP_OFF_S}
    return KernelQueue(discipline="codel", parameters={"limit": 10_000, **off, "ce_threshold": wait})


def step(place: Place, packets: int) -> ThresholdQueue:
    """The packet engine's threshold."""
    return ThresholdQueue(threshold=packets * PACKET)


QUEUES: dict[str, tuple[str, Callable[[Place, int], Any], bool, str]] = {
    "packets, in step": ("packet", step, False, "dctcp"),
    "packets, out of step": ("packet", step, True, "dctcp"),
    "Prague on packets": ("packet", step, False, "prague"),
    "Linux's RED": ("kernel", red, False, "dctcp"),
    "Linux's CoDel": ("kernel", codel, False, "dctcp"),
}
THRESHOLDS: dict[str, Callable[[int], int]] = {
    "K": lambda packets: packets,
    "K - 3": lambda packets: max(packets - 3, 1),
    "K/2": lambda packets: max(packets // 2, 1),
}


def table() -> pd.DataFrame:
    """One row for each threshold: points with a busy link, median and largest share that stays unused."""
    drawn, rows = places(np.random.default_rng(SEED)), []
    for name, of in THRESHOLDS.items():
        row = {"threshold": name}
        for title, (engine, queue, apart, sender) in QUEUES.items():
            lost = np.array([unused(each, engine, queue(each, of(each.packets)), apart, sender) for each in drawn])
            busy = f"{int((lost <= BUSY).sum())} of {POINTS}"
            row[title] = f"{busy}; {100 * max(np.median(lost), 0.0):.2g} %, {100 * lost.max():.2g} %"
        rows.append(row)
    return pd.DataFrame(rows)


if __name__ == "__main__":
    tables(ecn_thresholds=table)
